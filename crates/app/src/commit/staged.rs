//! [`StagedChanges`]: what git has staged.

use hardpan_prompt::Hash;
use hardpan_workspace::{Git, GitError};

use super::error::CommitError;

/// How much of a diff to read: more than any model reads, and little enough to fit into memory.
const MAX_DIFF_BYTES: usize = 64 << 20;

/// The flag of `git log` that limits how many earlier subjects the model sees as examples.
const RECENT_COUNT_FLAG: &str = "-10";

/// For what is no diff.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// The staged changes, with what the model should know about the repository.
pub struct StagedChanges {
    /// The hash of the index, to check that we commit what the model saw.
    index: Hash,
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

impl StagedChanges {
    /// Reads the staged changes. Fails if nothing is staged or there are conflicts.
    pub(super) fn read(git: &Git) -> Result<Self, CommitError> {
        let files = files(&text(git, &["diff", "--cached", "-M", "--name-status", "-z", "--no-ext-diff"])?);
        if files.is_empty() {
            return Err(CommitError::NothingStaged);
        }
        let conflicts = files.iter().filter(|file| file.status == 'U').map(|file| file.path.clone());
        let conflicts: Vec<String> = conflicts.collect();
        if !conflicts.is_empty() {
            return Err(CommitError::Conflicts { files: conflicts });
        }
        let arguments = ["diff", "--cached", "-M", "--no-color", "--no-ext-diff", "--no-textconv"];
        let diff = git.read(&arguments, MAX_DIFF_BYTES)?;
        let truncated = diff.len() >= MAX_DIFF_BYTES;
        let branch =
            text(git, &["symbolic-ref", "--short", "-q", "HEAD"]).unwrap_or_else(|_| "(none)".into());
        // Before the first commit there is no log.
        let recent =
            text(git, &["log", RECENT_COUNT_FLAG, "--no-merges", "--no-show-signature", "--format=%s"]);
        Ok(StagedChanges {
            index: index_hash(git)?,
            branch: branch.trim().to_owned(),
            recent: recent.unwrap_or_default().lines().map(str::to_owned).collect(),
            files,
            patches: patches(&String::from_utf8_lossy(&diff)),
            truncated,
        })
    }

    /// Whether the same is still staged.
    pub(super) fn is_current(&self, git: &Git) -> Result<bool, CommitError> {
        Ok(index_hash(git)? == self.index)
    }
}

/// A hash of everything that a commit would contain.
fn index_hash(git: &Git) -> Result<Hash, CommitError> {
    Ok(Hash::of(&git.read(&["ls-files", "--stage", "-z"], MAX_TEXT_BYTES)?))
}

fn text(git: &Git, arguments: &[&str]) -> Result<String, GitError> {
    Ok(String::from_utf8_lossy(&git.read(arguments, MAX_TEXT_BYTES)?).into_owned())
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
