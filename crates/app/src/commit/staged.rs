//! [`StagedChanges`]: what git has staged; and [`Repository`], which commits it.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::error::{CommitError, GitError};
use super::message::CommitMessage;

/// How much of a diff to read: more than any model reads, and little enough to fit into memory.
const MAX_DIFF_BYTES: usize = 64 << 20;

/// The flag of `git log` that limits how many earlier subjects the model sees as examples.
const RECENT_COUNT_FLAG: &str = "-10";

/// A git repository.
pub struct Repository {
    /// The root of the working tree.
    root: PathBuf,
}

/// The staged changes, with what the model should know about the repository.
pub struct StagedChanges {
    /// The hash of the tree, to check that we commit what the model saw.
    tree: String,
    /// The current branch, or `(none)`.
    pub branch: String,
    /// Subjects of the latest commits, newest first.
    pub recent: Vec<String>,
    /// The changed files, in git's order.
    pub files: Vec<StagedFile>,
    /// The diff, file by file.
    pub patches: Vec<FilePatch>,
    /// Whether the diff was longer than `MAX_DIFF_BYTES` and is incomplete.
    pub truncated: bool,
}

/// A staged file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StagedFile {
    /// git's status letter: `A`, `M`, `D`, `R`, `C`, `T` or `U`.
    pub status: char,
    /// Relative to the root of the working tree; the new path of a moved file.
    pub path: String,
}

/// The diff of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilePatch {
    /// From its `diff --git` line on. For a binary file, git writes a line that says so.
    pub text: String,
}

impl Repository {
    /// The repository that contains a folder.
    pub fn at(folder: &Path) -> Result<Self, CommitError> {
        let root = git(folder, &["rev-parse", "--show-toplevel"])
            .map_err(|source| CommitError::NoRepository { folder: folder.to_owned(), source })?;
        let root = root.trim_end_matches('\n');
        if root.is_empty() {
            return Err(CommitError::BareRepository { folder: folder.to_owned() });
        }
        Ok(Repository { root: root.into() })
    }

    /// Reads the staged changes. Fails if nothing is staged or there are conflicts.
    pub fn staged(&self) -> Result<StagedChanges, CommitError> {
        let files = files(&git(&self.root, &["diff", "--cached", "-M", "--name-status", "-z"])?);
        if files.is_empty() {
            return Err(CommitError::NothingStaged);
        }
        let conflicts = files.iter().filter(|file| file.status == 'U').map(|file| file.path.clone());
        let conflicts: Vec<String> = conflicts.collect();
        if !conflicts.is_empty() {
            return Err(CommitError::Conflicts { files: conflicts });
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
        let recent =
            git(&self.root, &["log", RECENT_COUNT_FLAG, "--no-merges", "--format=%s"]).unwrap_or_default();
        Ok(StagedChanges {
            tree: self.tree()?,
            branch: branch.trim().to_owned(),
            recent: recent.lines().map(str::to_owned).collect(),
            files,
            patches: patches(&String::from_utf8_lossy(&diff)),
            truncated,
        })
    }

    fn tree(&self) -> Result<String, CommitError> {
        git(&self.root, &["write-tree"]).map_err(CommitError::UnreadableChanges)
    }

    /// Commits. Hooks run, and their output and git's goes to standard error.
    pub fn commit(&self, staged: &StagedChanges, message: &CommitMessage) -> Result<(), CommitError> {
        if self.tree()? != staged.tree {
            return Err(CommitError::ChangesMoved);
        }
        let mut command = Command::new("git");
        command.arg("-C").arg(&self.root).args(["commit", "-F", "-"]);
        // Standard output is reserved for the message.
        command.stdin(Stdio::piped()).stdout(Stdio::from(std::io::stderr()));
        let mut child = command.spawn().map_err(GitError::NotStarted)?;
        let written =
            child.stdin.take().map_or(Ok(()), |mut input| input.write_all(message.to_string().as_bytes()));
        let status = child.wait().map_err(GitError::NotWaited)?;
        if !status.success() {
            return Err(CommitError::GitRefused { status });
        }
        written.map_err(CommitError::MessageNotPassed)
    }

    /// Lets the user edit the message in the editor that git would use.
    pub fn edit(&self, message: &CommitMessage) -> Result<CommitMessage, CommitError> {
        let editor = git(&self.root, &["var", "GIT_EDITOR"]).map_err(CommitError::NoEditor)?;
        let file = git(&self.root, &["rev-parse", "--git-path", "COMMIT_EDITMSG"])?;
        let file = self.root.join(file.trim_end_matches('\n'));
        let unusable = |source| CommitError::MessageFile { path: file.clone(), source };
        std::fs::write(&file, message.to_string()).map_err(unusable)?;
        // Like git: the editor may have arguments, so a shell parses the command.
        let script = format!("{} \"$@\"", editor.trim_end());
        let mut command = Command::new("sh");
        command.args(["-c", &script, "editor"]).arg(&file).current_dir(&self.root);
        command.stdout(Stdio::from(std::io::stderr()));
        let status = command.status().map_err(CommitError::EditorNotStarted)?;
        if !status.success() {
            return Err(CommitError::EditorFailed { status });
        }
        let edited = std::fs::read_to_string(&file).map_err(unusable)?;
        CommitMessage::from_editor(&edited).ok_or(CommitError::EmptyMessage)
    }
}

/// Runs git and returns its output as text.
fn git(folder: &Path, arguments: &[&str]) -> Result<String, GitError> {
    Ok(String::from_utf8_lossy(&git_bytes(folder, arguments, usize::MAX)?).into_owned())
}

/// Runs git and returns at most `most` bytes of its output.
fn git_bytes(folder: &Path, arguments: &[&str], most: usize) -> Result<Vec<u8>, GitError> {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).arg("--no-pager").args(arguments).env("GIT_TERMINAL_PROMPT", "0");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(GitError::NotStarted)?;
    // Read at the same time, since a full pipe would block git.
    let errors = child.stderr.take().map(|mut stderr| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            text
        })
    });
    let mut bytes = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(most as u64).read_to_end(&mut bytes).map_err(GitError::Unreadable)?;
    }
    if bytes.len() >= most {
        let _ = child.kill(); // fails if it has exited by itself
        let _ = child.wait();
        return Ok(bytes);
    }
    let status = child.wait().map_err(GitError::NotWaited)?;
    if !status.success() {
        let words = errors.and_then(|thread| thread.join().ok()).unwrap_or_default();
        let message = String::from_utf8_lossy(&words).trim().to_owned();
        return Err(GitError::Failed { arguments: arguments.join(" "), message });
    }
    Ok(bytes)
}

/// Parses `--name-status -z`: a status and a path, and a second path for moved or copied files.
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

/// Splits a diff into files. Content lines start with another character, so no content can look
/// like a header.
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
