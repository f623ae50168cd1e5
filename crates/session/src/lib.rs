//! What was said: a session is an append-only tree of entries, one JSON object per line.
//!
//! - [`Entry`]: one line, with its own name and that of the entry it follows.
//! - [`Session`]: a file as read. What cannot be understood is kept and reported as a [`Problem`]; only a file
//!   that is no session, or a newer one, is an error.
//! - [`Branch`]: the conversation from the root to one leaf, as the model is to see it.
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
mod entry; // Entry, Record, Header: one line, and how it is written
mod session; // Session: a file as read, with its problems

pub use branch::Branch;
pub use entry::{Entry, Header, Record, VERSION};
pub use session::{Problem, Session, SessionError};
