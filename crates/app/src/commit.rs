//! Commit messages: [`Repository`] reads what git has staged, a [`MessageWriter`] lets a model
//! describe it, and [`Repository::commit`] commits it.

mod error; // CommitError
mod message; // CommitMessage: checks and cleans what a model wrote
mod model; // MessageWriter: asks the model
mod repository; // Repository: reads and commits
mod staged; // StagedChanges: what git has staged

use std::fmt;

use hardpan_providers::ClientNotice;

use crate::error_text;
use crate::side_requests::RecordBillsError;

pub use error::CommitError;
pub use message::{CommitMessage, MessageProblem};
pub use model::{CommitBill, MessageAuthor, MessageWriter};
pub use repository::Repository;
pub use staged::{FilePatch, StagedChanges, StagedFile};

/// What the user should know while a commit message is written.
#[derive(Debug)]
#[non_exhaustive]
pub enum CommitNotice {
    /// The model's answer is no commit message; it is asked once more.
    MessageRejected(MessageProblem),
    /// The diff is too long for one request.
    DiffSummarised {
        /// How many files are summarised.
        files: usize,
        /// In how many requests.
        requests: usize,
    },
    /// The model sees the rest of the files by name only.
    FilesByNameOnly {
        /// How many; none if nobody counted them.
        count: Option<usize>,
    },
    /// How an answer came about: a retry, a downgrade.
    Provider(ClientNotice),
    /// `hardpan cost` will not know about these requests.
    CostNotStored(RecordBillsError),
}

impl fmt::Display for CommitNotice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CommitNotice::MessageRejected(problem) => {
                write!(f, "cannot use the message: {problem}; asking the model once more")
            }
            CommitNotice::DiffSummarised { files, requests } => {
                let plural = if *requests == 1 { "" } else { "s" };
                write!(
                    f,
                    "the diff is too long for one request: summarising {files} files first, in {requests} request{plural}"
                )
            }
            CommitNotice::FilesByNameOnly { count: Some(count) } => {
                write!(f, "the model sees {count} more files by name only")
            }
            CommitNotice::FilesByNameOnly { count: None } => {
                f.write_str("the model sees some more files by name only")
            }
            CommitNotice::Provider(notice) => notice.fmt(f),
            CommitNotice::CostNotStored(error) => write!(f, "cannot store the cost: {}", error_text(error)),
        }
    }
}
