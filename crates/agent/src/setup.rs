//! What an agent is given to work with.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_context::{Assembled, LayoutName, Memo, Snapshot, Target, Texts};
use hardpan_prompt::Thinking;
use hardpan_providers::{Client, Usage};
use hardpan_tools::{Effect, Scope, Tool};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::Value;

use crate::expand::Expansions;
use crate::queue::QueueMode;

/// Everything that an agent does not know by itself: its edges.
pub struct Setup {
    /// The texts that a model reads.
    pub texts: Arc<Texts>,
    /// What is around.
    pub surroundings: Arc<dyn Surroundings>,
    /// How models are reached.
    pub connect: Arc<dyn Connect>,
    /// Who says whether a call that changes something may run.
    pub approve: Arc<dyn Approve>,
    /// The clock.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// The tools, in the order they are declared.
    pub tools: Vec<Arc<dyn Tool>>,
    /// What runs the person's own commands.
    pub shell: Option<Arc<dyn Tool>>,
    /// Which files tools may touch.
    pub scope: Scope,
    /// Skills and templates.
    pub expansions: Expansions,
    /// Whom requests are for at first.
    pub target: Target,
    /// How prompts are ordered.
    pub layout: LayoutName,
    /// Whether the model thinks first.
    pub thinking: Thinking,
    /// How the agent behaves.
    pub settings: AgentSettings,
}

/// How an agent behaves.
#[derive(Clone, Copy, Debug)]
pub struct AgentSettings {
    /// How steering messages are delivered.
    pub steering: QueueMode,
    /// How follow-ups are delivered.
    pub follow_up: QueueMode,
    /// Whether calls that only read run side by side.
    pub reads: Reads,
    /// How long a handler may take.
    pub handler_limit: Duration,
    /// The most turns of one run.
    pub most_turns: u32,
    /// The share of the window from which on the conversation is compacted; 0 for never.
    pub compact_at: f64,
}

impl Default for AgentSettings {
    fn default() -> Self {
        AgentSettings {
            steering: QueueMode::OneAtATime,
            follow_up: QueueMode::OneAtATime,
            reads: Reads::OneByOne,
            handler_limit: Duration::from_secs(30),
            most_turns: 1000,
            compact_at: 0.8,
        }
    }
}

/// How the read-only calls of one answer are run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reads {
    /// One after the other, as all others.
    #[default]
    OneByOne,
    /// Side by side; events, approvals and results stay in the order of the calls.
    SideBySide,
}

/// What is around an agent: files, tree, git, symbols, instructions.
pub trait Surroundings: Send + Sync {
    /// Everything that a request needs but the conversation, the tools and the memory. It may read files and take its
    /// time: it is called on a thread of its own, at the start of each run.
    fn observe(&self, look: &Look) -> Snapshot;

    /// Which files belong together: asked once, on a thread of its own, where the layout begins with tiers.
    fn coupling(&self) -> Coupling {
        Coupling::default()
    }

    /// The person's day at a moment, such as `2026-08-14`: what bills are added up by.
    fn day(&self, now: Timestamp) -> String {
        crate::books::day(now, &TimeZone::UTC)
    }
}

/// Which files belong together, and how much others refer to them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coupling {
    /// Paths of files that refer to each other.
    pub clusters: Vec<Vec<String>>,
    /// How much the others refer to a file, by its path: only the order matters.
    pub references: BTreeMap<String, f64>,
}

/// Why an agent looks around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// A run begins.
    Prompt,
    /// A tool may have changed something in the middle of one: what takes long can wait for the next prompt.
    Changed,
}

/// What a run is about, so that what is around can be chosen by it.
#[derive(Clone, Debug)]
pub struct Look {
    /// The time.
    pub now: Timestamp,
    /// Why it is looked.
    pub occasion: Occasion,
    /// What the person typed.
    pub prompt: String,
    /// The model's window, in tokens.
    pub window: usize,
    /// How many of the model's tokens one counted token stands for, by the catalogue: what is learned would change from
    /// session to session, and the choice with it.
    pub factor: f64,
    /// The files that the model knows, which are to be shown as they are now: path, and whether it has changed meanwhile.
    pub known: Vec<(String, bool)>,
}

/// How models are reached.
pub trait Connect: Send + Sync {
    /// A client for a model, with the id of the conversation. The error is told to the person.
    fn client(&self, target: &Target, session: &str) -> Result<Client, String>;

    /// Told what a request used, so that more can be learned from it.
    fn used(&self, _target: &Target, _assembled: &Assembled, _memo: &Memo, _usage: &Usage) {}
}

/// Who is asked before something is changed.
pub trait Approve: Send + Sync {
    /// Whether a call may run. A person may take as long as they like: nothing is timed here.
    fn approve<'a>(&'a self, question: &'a Approval) -> BoxFuture<'a, Approved>;

    /// Asks for a line of text; none where nobody answers.
    fn input<'a>(&'a self, _question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }
}

/// A call that wants to change something.
#[derive(Clone, Debug, Serialize)]
pub struct Approval {
    /// The call's id.
    pub call_id: Arc<str>,
    /// The tool.
    pub tool_name: Arc<str>,
    /// The arguments.
    pub args: Value,
}

/// The answer of whoever was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approved {
    /// It may run.
    Yes,
    /// It may not; the reason is told to the model.
    No(String),
}

/// Refuses everything that changes something: for places where there is nobody to ask.
#[derive(Clone, Copy, Debug, Default)]
pub struct NobodyToAsk;

impl Approve for NobodyToAsk {
    fn approve<'a>(&'a self, _question: &'a Approval) -> BoxFuture<'a, Approved> {
        let reason = "nobody is there to ask whether it may; only tools that read can be used";
        Box::pin(std::future::ready(Approved::No(reason.into())))
    }
}

/// Whether a tool must be asked about at all.
pub(crate) fn needs_approval(tool: &dyn Tool) -> bool {
    tool.effect() == Effect::Changes
}
