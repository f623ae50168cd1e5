//! Audits and replays of recorded sessions: what they cost, why, and what they would have cost.
//!
//! The principal types are [`Recording`], [`Audit`] and [`Replay`].
//!
//! [`import`] reads a session that pi, Claude Code, Codex, Qwen Code or Hardpan recorded, whatever its
//! file name, into one form:
//!
//! - [`Recording`]: the whole session, with the lines that could not be understood.
//! - [`BilledRequest`]: a request that the provider billed: when, to which model, for how many tokens,
//!   and with which part of the conversation. Requests without a bill are [`UnbilledRequest`]s.
//! - [`RecordedEntry`]: a message or a compaction at its place in the tree of the conversation. Messages
//!   are made of [`RecordedPart`]s: text, reasoning, calls (each with what it does to files, a
//!   [`FileAction`]), results, images.
//! - [`Recording::context`]: the entries that a request contained, compactions applied.
//!
//! An [`Audit`] explains the bill of a recording: what was paid, what a stable prefix would have paid,
//! and each [`Loss`] with its likely cause. [`report`] shows audits as text, as JSON and as a page.
//!
//! A [`Replay`] runs the recorded work through a [`ReplayPolicy`], at the recorded times and with the
//! billed sizes, on the cache model. It tells what the policy would have cost, compared with the bill,
//! the best schedule of folds there is, and the floor (`docs/economy.md`).
//!
//! ```
//! use hardpan_audit::{Audit, Recording, Replay, ReplayPolicy, SourceAgent};
//! use hardpan_models::Catalogue;
//!
//! let lines = r#"{"type":"session","id":"s","timestamp":"2026-08-14T09:00:00Z","cwd":"/p","provider":"anthropic","modelId":"claude-sonnet-4-5"}
//! {"type":"message","timestamp":"2026-08-14T09:00:01Z","message":{"role":"user","content":[{"type":"text","text":"Hello!"}],"timestamp":1786698001000}}
//! {"type":"message","timestamp":"2026-08-14T09:00:05Z","message":{"role":"assistant","provider":"anthropic","model":"claude-sonnet-4-5","stopReason":"stop","content":[{"type":"text","text":"Hello to you."}],"usage":{"input":3,"output":9,"cacheRead":0,"cacheWrite":1684},"timestamp":1786698002000}}"#;
//! let recording = Recording::parse("s.jsonl", lines.as_bytes())?;
//! assert_eq!(recording.agent, SourceAgent::Pi);
//! let request = &recording.requests[0];
//! assert_eq!(request.usage.prompt(), 1687);
//! assert_eq!(request.ended.since(request.started), 3000);
//! assert_eq!(recording.context(request.leaf).len(), 1);
//!
//! let audit = Audit::from_recording(&recording, Catalogue::builtin());
//! assert_eq!(audit.billed.cost, 3.0 + 1.25 * 1684.0);
//! assert!(audit.losses.is_empty());
//!
//! let replay = Replay::new(&recording, Catalogue::builtin())?;
//! let appended = replay.run(ReplayPolicy::APPEND)?;
//! assert_eq!(appended.cost, 1.25 * 1687.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod cache_audit; // Audit: what was paid, what should have been, and why
mod conversation; // ImportedConversation: a recording as a session of ours
mod file_observer; // FileObserver: what recorded calls tell about files
pub mod import; // Recording: sessions of several agents in one form
mod model_facts; // ModelFacts: what the catalogue knows about a recorded model
pub mod replay; // Replay: recorded work with other layouts
pub mod report; // audits as text, JSON and a page

pub use cache_audit::{
    Audit, AuditedRequest, AvoidableBy, Bill, CacheOutcome, CauseCategory, CauseSource, Loss, LossCause,
    RequestTrigger, SideBill, UnexplainedLoss,
};
pub use conversation::{ImportedConversation, LeftOut};
pub use import::{
    AnswerStatus, BilledRequest, EntryContent, FileAction, ImportError, ImportProblem, RecordedCall,
    RecordedEntry, RecordedPart, RecordedResult, Recording, RequestShape, ShapePart, SideUsage, SourceAgent,
    Speaker, TextReplacement, UnbilledRequest, recording_agent,
};
pub use replay::{BilledTotals, Replay, ReplayCost, ReplayError, ReplayPolicy, ThinkingSwitches, replay};
pub use report::Report;
