//! What is staged, as git tells it; and the commit, as git makes it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::message::CommitMessage;

/// Of a diff, so much is read: more than any model does, and little enough to be held in memory.
const MAX_DIFF_BYTES: usize = 64 << 20;

/// So many first lines of earlier commits show how they are written here.
const RECENT_COUNT_FLAG: &str = "-10";

/// A git repository.
pub struct Repository {
    /// Its working tree.
    root: PathBuf,
}

/// What will be committed.
pub struct StagedChanges {
    /// The tree that it makes: what was shown is what is committed.
    tree: String,
    /// The branch, as git calls it.
    pub branch: String,
    /// The first lines of the last commits.
    pub recent: Vec<String>,
    /// The files, in git's order.
    pub files: Vec<StagedFile>,
    /// The diff, file by file.
    pub patches: Vec<FilePatch>,
    /// Whether the diff is longer than what was read of it.
    pub truncated: bool,
}

/// A staged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// What became of it: `A`, `M`, `D`, `R`, `C` or `T`.
    pub status: char,
    /// Its path.
    pub path: String,
}

/// What changes in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// git's text, from its `diff --git` line on. A binary file is a line that says so.
    pub text: String,
}

impl Repository {
    /// The repository that a folder lies in.
    pub fn at(folder: &Path) -> Result<Self> {
        let root = git(folder, &["rev-parse", "--show-toplevel"]).with_context(|| {
            format!("{} is in no git repository: go to one, or run `git init`", folder.display())
        })?;
        let root = root.trim_end_matches('\n');
        if root.is_empty() {
            bail!(
                "{} is in a repository without a working tree: nothing can be staged there",
                folder.display()
            );
        }
        Ok(Repository { root: root.into() })
    }

    /// What is staged. Nothing, and conflicts, are errors.
    pub fn staged(&self) -> Result<StagedChanges> {
        let files = files(&git(&self.root, &["diff", "--cached", "-M", "--name-status", "-z"])?);
        if files.is_empty() {
            bail!(
                "nothing is staged: choose what to commit with `git add FILES` (or `git add -p`), then run `hardpan commit` again"
            );
        }
        let open: Vec<&str> =
            files.iter().filter(|file| file.status == 'U').map(|file| file.path.as_str()).collect();
        if !open.is_empty() {
            bail!(
                "these files have conflicts: {}. Resolve them, `git add` them, then run `hardpan commit` again",
                open.join(", ")
            );
        }
        let arguments = [
            "-c",
            "core.quotePath=false",
            "diff",
            "--cached",
            "-M",
            "--no-color",
            "--no-ext-diff",
            "--no-textconv",
        ];
        let diff = git_bytes(&self.root, &arguments, MAX_DIFF_BYTES)?;
        let truncated = diff.len() >= MAX_DIFF_BYTES;
        let branch =
            git(&self.root, &["symbolic-ref", "--short", "-q", "HEAD"]).unwrap_or_else(|_| "(none)".into());
        // Before the first commit there is no log.
        let recent = git(&self.root, &["log", RECENT_COUNT_FLAG, "--no-merges", "--format=%s"]).unwrap_or_default();
        Ok(StagedChanges {
            tree: self.tree()?,
            branch: branch.trim().to_owned(),
            recent: recent.lines().map(str::to_owned).collect(),
            files,
            patches: patches(&String::from_utf8_lossy(&diff)),
            truncated,
        })
    }

    fn tree(&self) -> Result<String> {
        git(&self.root, &["write-tree"]).context("what is staged cannot be read")
    }

    /// Commits. Hooks run, and what they and git say is shown.
    pub fn commit(&self, staged: &StagedChanges, message: &CommitMessage) -> Result<()> {
        if self.tree()? != staged.tree {
            bail!("what is staged has changed since the message was written: run `hardpan commit` again");
        }
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.root).args(["commit", "-F", "-"]);
        // Standard output is for the message.
        command.stdin(Stdio::piped()).stdout(Stdio::from(std::io::stderr()));
        let mut child = command.spawn().context("git cannot be run")?;
        let written =
            child.stdin.take().map_or(Ok(()), |mut input| input.write_all(message.to_string().as_bytes()));
        let status = child.wait().context("git cannot be waited for")?;
        if !status.success() {
            bail!(
                "git did not commit ({status}); above is what it, or a hook, said. What is staged is as it was: mend it, then run `hardpan commit` again"
            );
        }
        written.context("git did not take the message")
    }

    /// Lets the person change the message in their editor: the one that git would use.
    pub fn edit(&self, message: &CommitMessage) -> Result<CommitMessage> {
        let editor = git(&self.root, &["var", "GIT_EDITOR"]).context("there is no editor: set EDITOR")?;
        let file = git(&self.root, &["rev-parse", "--git-path", "COMMIT_EDITMSG"])?;
        let file = self.root.join(file.trim_end_matches('\n'));
        let unreadable = || format!("{} cannot be used", file.display());
        std::fs::write(&file, message.to_string()).with_context(unreadable)?;
        // As git does it: the editor may have arguments, which a shell takes apart.
        let script = format!("{} \"$@\"", editor.trim_end());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "editor"]).arg(&file).current_dir(&self.root);
        command.stdout(Stdio::from(std::io::stderr()));
        let status = command.status().context("the editor cannot be run")?;
        if !status.success() {
            bail!("the editor failed ({status}); the message is as it was");
        }
        let edited = std::fs::read_to_string(&file).with_context(unreadable)?;
        CommitMessage::from_editor(&edited).context("the message is empty now; it was left as it was")
    }
}

/// What git prints, as text.
fn git(folder: &Path, arguments: &[&str]) -> Result<String> {
    Ok(String::from_utf8_lossy(&git_bytes(folder, arguments, usize::MAX)?).into_owned())
}

/// What git prints, at most so many bytes of it.
fn git_bytes(folder: &Path, arguments: &[&str], most: usize) -> Result<Vec<u8>> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).arg("--no-pager").args(arguments).env("GIT_TERMINAL_PROMPT", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("git cannot be run: is it installed?")?;
    // Read beside the output: a pipe that nobody empties would stop git.
    let errors = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            text
        })
    });
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(most as u64).read_to_end(&mut bytes).context("git's output cannot be read")?;
    }
    if bytes.len() >= most {
        let _ = child.kill(); // an error means that it has ended by itself
        let _ = child.wait();
        return Ok(bytes);
    }
    let status = child.wait().context("git cannot be waited for")?;
    if !status.success() {
        let words = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
        bail!("git {} failed: {}", arguments.join(" "), String::from_utf8_lossy(&words).trim());
    }
    Ok(bytes)
}

/// The files of `--name-status -z`: a status, a path, and for what was moved or copied another path.
fn files(list: &str) -> Vec<StagedFile> {
    let mut fields = list.split_terminator('\0');
    let mut files = Vec::new();
    while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
        let status = status.chars().next().unwrap_or('M');
        let path = if matches!(status, 'R' | 'C') { fields.next().unwrap_or(path) } else { path };
        files.push(StagedFile { status, path: path.to_owned() });
    }
    files
}

/// A diff, file by file. Lines of content begin with another character, so that no file can pretend.
fn patches(diff: &str) -> Vec<FilePatch> {
    let mut patches: Vec<FilePatch> = Vec::new();
    for line in diff.split_inclusive('\n') {
        match patches.last_mut() {
            Some(patch) if !line.starts_with("diff --git ") => patch.text.push_str(line),
            _ => patches.push(FilePatch { text: line.to_owned() }),
        }
    }
    patches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moved_files_are_known_by_their_new_name() {
        let found = files("M\0a b.rs\0R100\0old\0new\0A\0c\0");
        let found: Vec<(char, &str)> = found.iter().map(|file| (file.status, file.path.as_str())).collect();
        assert_eq!(found, [('M', "a b.rs"), ('R', "new"), ('A', "c")]);
    }

    #[test]
    fn a_diff_is_taken_apart_where_its_files_begin() {
        let diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-diff --git a/y b/y\n+new\ndiff --git a/z b/z\nBinary files differ\n";
        let found = patches(diff);
        assert_eq!(found.len(), 2);
        assert_eq!(found.iter().map(|patch| patch.text.as_str()).collect::<String>(), diff);
        assert!(found[1].text.ends_with("Binary files differ\n"));
    }
}
