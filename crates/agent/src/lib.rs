//! The loop: from what a person types to what the agent did.
//!
//! - [`Agent`]: one conversation. [`Agent::prompt`] takes what was typed to its end, [`Agent::queue`] takes it while the agent
//!   works, [`Agent::abort`] stops it; whatever happens, the conversation stays valid and what was acknowledged is stored.
//! - [`Events`]: who is told and asked, in order; all that happens is an [`Event`].
//! - [`Setup`]: the edges, all passed in: what is around, how models are reached, who approves, the clock, the tools.
//!
//! The way of an input: command → `input` event → skill and template → `before_agent_start` → turns → follow-ups →
//! `agent_end`. The order of everything within it is in `docs/agent.md`.

mod agent; // Agent: one conversation, and whoever takes part in it
pub mod approval; // what may be done without asking
mod bill; // what each request cost, and what is said about it
pub mod books; // what was paid for what, and what was paid again
mod calls; // answering the calls of an answer
mod compact; // a summary in place of what was said long ago
mod conversation; // Conversation: the messages, and the log they are stored in
pub mod events; // who is told what
pub mod expand; // skills and templates: /skill:name args, /name args
mod guard; // the same call that fails again and again
mod input; // commands, the input event, expansion
mod knowledge; // which files the model knows whole
mod navigate; // going back to an earlier point
mod queue; // what was said while the agent worked
mod recall; // the layouts' memory in the session file
mod run; // a run, from a prompt to its end
mod setup; // what an agent is given to work with
mod shell; // commands that the person runs
mod spending; // what was used, and what it cost
mod track; // what is stable, counted after each answer
mod turn; // one request and its answer
mod warmth; // how long the cache will live, and keeping it warm

pub use agent::{Agent, AgentError, Command, Switch, Taken};
pub use compact::{Compacted, WhyCompact};
pub use conversation::Conversation;
pub use events::{CustomMessage, Event, Events, Fault, HandlerError, Input, InputSource, Stop};
pub use navigate::Leave;
pub use queue::{Accepted, Delivery, QueueMode, Waiting};
pub use setup::{
    AgentSettings, Approval, Approve, Approved, Connect, Coupling, Look, NobodyToAsk, Occasion, Reads, Setup,
    Surroundings,
};
pub use shell::Tell;
pub use spending::{Spent, TokenUsage, dollars};
pub use warmth::Warmth;
