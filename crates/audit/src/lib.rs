//! What would have been: recorded sessions of this and other agents, and what they cost.
//!
//! [`import`] reads a session that pi, Claude Code, Codex or Hardpan recorded, whatever its name, into one form:
//!
//! - [`Recording`]: the file as read, with what could not be understood.
//! - [`BilledRequest`]: one request that the provider billed: when, to whom, for what tokens, and with which part of the
//!   conversation. A recording has them in order of time; those that nobody billed are [`Unbilled`].
//! - [`Entry`]: one thing that was said, at its place in the tree of the conversation, made of [`Piece`]s: text,
//!   reasoning, calls (each with what it does to files, an [`Act`]), results, images.
//! - [`Recording::context`]: the entries that a request had, compaction applied.
//!
//! An [`Audit`] explains the bill of a recording: what was paid, what a stable prefix would have paid, and each [`Loss`] with its
//! likely cause. [`report`] shows audits as text, as JSON and as a page.
//!
//! A [`Replay`] runs the recorded work through a [`Policy`], at the recorded times, with the billed sizes, on the cache model: what it would
//! have cost, against the bill, the best schedule of folds there is, and the floor (`docs/economy.md`).
//!
//! ```
//! use hardpan_audit::{Agent, Audit, Policy, Recording, Replay};
//! use hardpan_models::Catalogue;
//!
//! let lines = r#"{"type":"session","id":"s","timestamp":"2026-08-14T09:00:00Z","cwd":"/p","provider":"anthropic","modelId":"claude-sonnet-4-5"}
//! {"type":"message","timestamp":"2026-08-14T09:00:01Z","message":{"role":"user","content":[{"type":"text","text":"Hello!"}],"timestamp":1786698001000}}
//! {"type":"message","timestamp":"2026-08-14T09:00:05Z","message":{"role":"assistant","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","content":[{"type":"text","text":"Hello to you."}],"usage":{"input":3,"output":9,"cacheRead":0,"cacheWrite":1684},"timestamp":1786698002000}}"#;
//! let recording = Recording::parse("s.jsonl", lines.as_bytes())?;
//! assert_eq!(recording.agent, Agent::Pi);
//! let request = &recording.requests[0];
//! assert_eq!(request.usage.prompt(), 1687);
//! assert_eq!(request.ended.since(request.started), 3000);
//! assert_eq!(recording.context(request.leaf).len(), 1);
//!
//! let audit = Audit::of(&recording, Catalogue::builtin());
//! assert_eq!(audit.billed.cost, 3.0 + 1.25 * 1684.0);
//! assert!(audit.losses.is_empty());
//!
//! let replay = Replay::new(&recording, Catalogue::builtin());
//! let strata = replay.run(Policy::Strata);
//! assert_eq!(strata.cost, 1.25 * 1687.0);
//! # Ok::<(), hardpan_audit::ImportError>(())
//! ```

pub mod bill; // what was paid, what should have been, and why
mod files; // what a conversation tells about files
pub mod import; // recorded sessions of this and other agents, in one form
pub mod replay; // the recorded work through other policies
pub mod report; // audits as text, JSON and a page

pub use bill::{Audit, Bill, Judged, Loss, Lost, Outcome, Turn, Why};
pub use import::{
    Act, Agent, BilledRequest, Call, CallResult, Change, Ending, Entry, ImportError, Piece, Problem,
    Recording, Said, Speaker, Unbilled,
};
pub use replay::{Billed, Policy, Replay, Replayed, Settings, replay};
pub use report::Report;
