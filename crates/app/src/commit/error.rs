use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;

use hardpan_providers::{ProviderError, StreamError};

use hardpan_workspace::GitError;

use super::message::MessageProblem;
use crate::provider_route::RouteError;
use crate::target::TargetError;

/// Why a commit message cannot be written, or nothing can be committed. Each message says what to
/// do about it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CommitError {
    /// The folder belongs to no repository.
    #[error("{} is not in a git repository: change to one, or run `git init`", folder.display())]
    NoRepository {
        /// The folder.
        folder: PathBuf,
    },
    /// There is nothing to commit.
    #[error("nothing is staged: run `git add FILES` (or `git add -p`), then `hardpan commit` again")]
    NothingStaged,
    /// Some staged files have conflicts.
    #[error("these files have conflicts: {}. Resolve them and `git add` them, then run `hardpan commit` again", files.join(", "))]
    Conflicts {
        /// Their paths in the repository.
        files: Vec<String>,
    },
    /// The settings have commits signed.
    #[error(
        "your git settings sign commits (commit.gpgSign), and the sandbox that git runs in has no access to your keys. Commit yourself: hardpan commit --print | git commit -F -"
    )]
    Signed,
    /// There is no place for the message.
    #[error("cannot create a temporary folder: {0}")]
    NoTemporaryFolder(#[source] io::Error),
    /// Something else was staged while the message was written.
    #[error("the staged changes are no longer those that the message describes: run `hardpan commit` again")]
    ChangesMoved,
    /// git or a hook refused the commit.
    #[error(
        "git did not commit ({end}); see its output, or that of a hook, above. Your staged changes are untouched: fix the problem, then run `hardpan commit` again"
    )]
    GitRefused {
        /// How git ended.
        end: String,
    },
    /// The editor does not start.
    #[error("cannot run the editor: {0}")]
    EditorNotStarted(#[source] io::Error),
    /// The editor exited with an error.
    #[error("the editor failed ({status}); keeping the message unchanged")]
    EditorFailed {
        /// How it exited.
        status: ExitStatus,
    },
    /// The file that the editor shows cannot be read or written.
    #[error("cannot use {}: {source}", path.display())]
    MessageFile {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The user deleted the message in the editor.
    #[error("you left the message empty; keeping it unchanged")]
    EmptyMessage,
    /// git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// There is no such model.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The settings do not lead to the provider.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The provider did not answer.
    #[error(transparent)]
    Provider(#[from] ProviderError),
    /// The answer broke off.
    #[error("the answer failed: {0}; nothing was committed")]
    Answer(StreamError),
    /// The model's window is too small.
    #[error("the context window of {model} is too small for this commit: choose another model (--model)")]
    WindowTooSmall {
        /// Provider and model.
        model: String,
    },
    /// The model wrote no commit message, twice.
    #[error(
        "{model} wrote no usable message: {problem} ({first_line:?}). Nothing was committed: write one yourself (git commit), or choose another model (--model, small_model in config.toml)"
    )]
    NoUsableMessage {
        /// Provider and model.
        model: String,
        /// What is wrong with the second answer.
        problem: MessageProblem,
        /// How the second answer begins.
        first_line: String,
    },
}
