//! Sessions on disk: the conversation with a model as an append-only tree of entries, one JSON
//! object per line.
//!
//! - [`Entry`]: one line, with its own id and the id of the entry it follows (its parent).
//! - [`Session`]: a whole file, read into memory. A line that cannot be understood is kept and
//!   reported as a [`SessionProblem`]; only a file that is not a session, or comes from a newer
//!   version, is an error.
//! - [`Branch`]: the conversation from the root to one leaf, with compactions applied, as the model
//!   is to see it.
//! - [`SessionLog`]: a session open for writing; [`SessionLog::append`] returns a [`PendingSave`]
//!   that resolves once the entry is durable.
//! - [`SessionStore`]: all sessions of a data folder, to list, find, search and delete.
//!   [`Session::export`] turns one into Markdown, HTML or JSON lines.
//!
//! ```
//! use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
//! use hardpan_session::{Entry, Header, Session};
//!
//! let hello = AgentMessage::new("m1", MessageBody::User { content: vec![MessagePart::text("Hello!")] });
//! let header = Header { id: "s1".into(), time: None, cwd: "/project".into(), extra: Default::default() };
//! let file = header.to_line() + &Entry::message(None, hello.clone()).to_line();
//!
//! let session = Session::parse("s1.jsonl", file.as_bytes())?;
//! assert_eq!(session.branch(None)?.messages, [hello]);
//! assert!(session.problems.is_empty());
//! # Ok::<(), hardpan_session::SessionError>(())
//! ```
//!
//! The format is described in `docs/sessions.md`.

mod branch; // Branch: the conversation from the root to a leaf, with compactions applied
mod entry; // Entry, Header: the lines of a session file
mod export; // a session as Markdown, HTML or JSON lines
mod lines; // lines: splits a file of JSON lines
mod log; // SessionLog: a session open for writing
mod log_error; // LogError: why a session cannot be written
mod message_text; // EntryPreview: the readable text of messages
mod problem; // SessionProblem: what is wrong with a line of the file
mod raw_fields; // RawFields: the fields of a line, each parsed only when needed
mod recall; // StoredContent: the exact content of a stored message
mod record; // Record: the content of an entry
mod recovery; // PendingAnswer: answers that a crash cut off, put together from their pieces
mod request; // RequestRecord: what a request used and cost
mod session; // Session: a session file read into memory, with its problems
mod session_file; // SessionFile: the file behind a log; private, locked, never longer than what is durable
mod store; // SessionStore: the sessions of a data folder
mod summary; // SessionSummary: a session as a list shows it
mod tree; // EntryTree, Fork: tree, leaves, labels and requests of a whole session

pub use branch::{Branch, GIT_BRANCH_RECORD, LAYOUT_RECORD, POSITION_RECORD};
pub use entry::{DETAILS_FIELD, Entry, Header, VERSION};
pub use export::{ExportFormat, ExportScope, UnknownExportFormat};
pub use lines::lines;
pub use log::{PendingSave, SessionLog};
pub use log_error::{LogAction, LogError, LogErrorCause};
pub use message_text::EntryPreview;
pub use problem::{LineError, SessionProblem, SessionProblemKind};
pub use recall::{RecallError, StoredArgument, StoredContent};
pub use record::{PartialRecord, Record};
pub use request::RequestRecord;
pub use session::{Session, SessionError};
pub use store::{SearchMatch, SessionLookupError, SessionStore, TASKS_EXTENSION};
pub use summary::SessionSummary;
pub use tree::{EntryTree, Fork};
