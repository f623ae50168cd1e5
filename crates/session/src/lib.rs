//! What was said: a session is an append-only tree of entries, one JSON object per line.
//!
//! - [`Entry`]: one line, with its own name and that of the entry it follows.
//! - [`Session`]: a file as read. What cannot be understood is kept and reported as a [`Problem`]; only a file
//!   that is no session, or a newer one, is an error.
//! - [`Branch`]: the conversation from the root to one leaf, as the model is to see it.
//! - [`Log`]: a session that is being written; [`Log::append`] tells when an entry is durable.
//! - [`Store`]: the sessions of a data folder, to list, find, search and delete; [`Session::export`] makes documents.
//!
//! ```
//! use hardpan_prompt::{AgentMessage, Body, Part};
//! use hardpan_session::{Entry, Header, Session};
//!
//! let hello = AgentMessage::new("m1", Body::User { content: vec![Part::text("Hello!")] });
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

mod branch; // Branch: from the root to a leaf, with compactions applied
mod disk; // the file of a writer: private, locked, never longer than what is durable
mod entry; // Entry, Header: one line, and how it is written
mod export; // a session as Markdown, HTML or JSON lines
mod fields; // the fields of a line, parsed only where needed
mod log; // Log: a session that is being written
mod partial; // answers that a crash cut off, from their pieces
mod record; // Record: what an entry records
mod request; // RequestRecord: what a request used and cost
mod said; // what a message says, for readers
mod session; // Session: a file as read, with its problems
mod skim; // Summary: what a list tells about a session
mod store; // Store: the sessions of a data folder
mod tree; // the session as a whole: tree, leaves, labels, bill, forks

pub use branch::Branch;
pub use disk::{LogError, LogFailure};
pub use entry::{Entry, Header, VERSION};
pub use export::{Extent, Format, UnknownFormat};
pub use log::{Log, Saved};
pub use record::{Partial, Record};
pub use request::{RequestRecord, RequestUsage};
pub use said::Gist;
pub use session::{Problem, Session, SessionError};
pub use skim::Summary;
pub use store::{Match, Store, StoreError};
pub use tree::{Fork, Tree};
