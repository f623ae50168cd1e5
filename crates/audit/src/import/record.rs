//! A recorded session.

use std::sync::Arc;

use hardpan_economy::Verdict;
use hardpan_economy::cache::Moment;
use hardpan_economy::ledger::Tokens;
use serde::Serialize;

use super::act::Act;

/// Who recorded a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Agent {
    /// pi.
    Pi,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// This one.
    Hardpan,
}

impl Agent {
    /// Its name, as `--json` has it.
    pub fn name(self) -> &'static str {
        match self {
            Agent::Pi => "pi",
            Agent::ClaudeCode => "claude-code",
            Agent::Codex => "codex",
            Agent::Hardpan => "hardpan",
        }
    }
}

/// A session as it was recorded.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The file.
    pub file: String,
    /// Who wrote it.
    pub agent: Agent,
    /// The session's own name, where it has one.
    pub id: Option<Arc<str>>,
    /// The folder it began in: relative paths are below it.
    pub cwd: Option<Arc<str>>,
    /// All that was said, in the order of the file: a tree by [`Entry::parent`].
    pub entries: Vec<Entry>,
    /// What the provider billed, in order of time.
    pub requests: Vec<BilledRequest>,
    /// Requests without a bill: aborted or failed. They may have written to the cache all the same, once they lived for
    /// about 1.5 seconds.
    pub unbilled: Vec<Unbilled>,
    /// What could not be read.
    pub problems: Vec<Problem>,
}

/// A line that could not be read, or not in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, in words for a person.
    pub what: String,
}

/// One thing that was said, at its place in the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The line it is on, from 1. An answer that is written in pieces has the first one's.
    pub line: usize,
    /// The entry it follows, always an earlier one; none for the beginning of a conversation.
    pub parent: Option<usize>,
    /// When it was said: for an answer, when it ended.
    pub at: Option<Moment>,
    /// What was said.
    pub said: Said,
}

/// What was said.
#[derive(Clone, Debug, PartialEq)]
pub enum Said {
    /// A message.
    Message {
        /// By whom.
        speaker: Speaker,
        /// What, in order.
        pieces: Vec<Piece>,
    },
    /// All before it was replaced by a summary.
    Compaction {
        /// The summary.
        summary: Arc<str>,
        /// The first entry that stays as it is; none where nothing does.
        kept: Option<usize>,
    },
}

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The person, or the agent in the person's place.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
}

/// A piece of a message.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Text.
    Text(Arc<str>),
    /// What the model thought, or its encrypted form.
    Reasoning(Arc<str>),
    /// A call of a tool.
    Call(Call),
    /// What a tool answered.
    Result(CallResult),
    /// An image.
    Image {
        /// Its size in the file.
        bytes: usize,
    },
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Joins it to its result.
    pub id: Arc<str>,
    /// The tool.
    pub tool: Arc<str>,
    /// The arguments as the model wrote them, nearly: JSON, or plain text where the tool takes that.
    pub arguments: Arc<str>,
    /// What it does to files.
    pub act: Act,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallResult {
    /// The call.
    pub call: Arc<str>,
    /// The text of it.
    pub text: Arc<str>,
    /// How many images are with it.
    pub images: usize,
    /// Whether the tool failed.
    pub failed: bool,
}

/// A request that the provider billed.
#[derive(Clone, Debug, PartialEq)]
pub struct BilledRequest {
    /// When it was sent: lifetimes count from here. Where only the end is recorded, the time of what was said last
    /// before.
    pub started: Moment,
    /// When its answer ended.
    pub ended: Moment,
    /// The provider, where it is recorded.
    pub provider: Option<Arc<str>>,
    /// The model.
    pub model: Arc<str>,
    /// What was billed.
    pub usage: Tokens,
    /// How far the model was to think, in the agent's word; none where it is not recorded.
    pub thinking: Option<Arc<str>>,
    /// How its answer ended.
    pub ending: Ending,
    /// The last entry that it had: [`Recording::context`] tells them all.
    pub leaf: Option<usize>,
    /// The entry of its answer.
    pub answer: Option<usize>,
    /// Whether the conversation was compacted since the request before in the same thread.
    pub compacted: bool,
    /// Which conversation it belongs to, by its first entry: sub-agents have their own.
    pub thread: usize,
    /// Whether its prompt was one of its own, not the conversation's: a commit message, a title.
    pub apart: bool,
    /// What the agent itself said of its cache at the time, where it says such things.
    pub verdict: Option<Arc<Verdict>>,
    /// The line that its bill is on, from 1.
    pub line: usize,
}

/// A request without a bill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unbilled {
    /// When it was sent.
    pub started: Moment,
    /// When it ended.
    pub ended: Moment,
    /// The model.
    pub model: Arc<str>,
    /// The last entry that it had.
    pub leaf: Option<usize>,
    /// The line it is on, from 1.
    pub line: usize,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// By itself.
    Complete,
    /// A person stopped it.
    Aborted,
    /// It broke.
    Failed,
}

impl Recording {
    pub(super) fn new(file: &str, agent: Agent) -> Self {
        Recording {
            file: file.into(),
            agent,
            id: None,
            cwd: None,
            entries: Vec::new(),
            requests: Vec::new(),
            unbilled: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The entries that a request had whose last one is `leaf`, in order: a compaction in place of what it replaced.
    pub fn context(&self, leaf: Option<usize>) -> Vec<usize> {
        let mut path: Vec<usize> = std::iter::successors(leaf, |&at| self.entries[at].parent).collect();
        path.reverse();
        let compaction =
            path.iter().rposition(|&at| matches!(self.entries[at].said, Said::Compaction { .. }));
        let Some(place) = compaction else { return path };
        let Said::Compaction { kept, .. } = self.entries[path[place]].said else { return path };
        let first = kept.and_then(|kept| path[..place].iter().position(|&at| at >= kept)).unwrap_or(place);
        let mut context = vec![path[place]];
        let is_message = |at: &usize| matches!(self.entries[*at].said, Said::Message { .. });
        context.extend(path[first..place].iter().copied().filter(is_message));
        context.extend(&path[place + 1..]);
        context
    }

    pub(super) fn report(&mut self, line: usize, what: impl Into<String>) {
        self.problems.push(Problem { line, what: what.into() });
    }

    pub(super) fn add(
        &mut self,
        line: usize,
        parent: Option<usize>,
        at: Option<Moment>,
        said: Said,
    ) -> usize {
        let parent = parent.filter(|parent| *parent < self.entries.len());
        self.entries.push(Entry { line, parent, at, said });
        self.entries.len() - 1
    }

    /// What all formats need at the end: requests in order of time, each with its thread and whether it was compacted.
    pub(super) fn settle(&mut self) {
        // Two processes can write one file; equal times keep the order of the file.
        self.requests.sort_by_key(|request| request.started);
        self.unbilled.sort_by_key(|request| request.started);
        let mut roots: Vec<usize> = Vec::with_capacity(self.entries.len());
        let mut compactions: Vec<usize> = Vec::with_capacity(self.entries.len());
        for (at, entry) in self.entries.iter().enumerate() {
            let is_compaction = matches!(entry.said, Said::Compaction { .. });
            roots.push(entry.parent.map_or(at, |parent| roots[parent]));
            let before = entry.parent.map_or(0, |parent| compactions[parent]);
            compactions.push(before + usize::from(is_compaction));
        }
        let mut seen: std::collections::BTreeMap<usize, usize> = std::collections::BTreeMap::new();
        for request in &mut self.requests {
            request.thread = request.leaf.map_or(0, |leaf| roots[leaf]);
            let count = request.leaf.map_or(0, |leaf| compactions[leaf]);
            let before = seen.insert(request.thread, count).unwrap_or(0);
            request.compacted = count > before;
        }
    }
}

/// How an answer ended, by the agents' and the providers' words for it.
pub(super) fn ending(stop_reason: Option<&str>) -> Ending {
    match stop_reason {
        Some("aborted" | "abort" | "cancelled" | "interrupted") => Ending::Aborted,
        Some("error" | "failed") => Ending::Failed,
        _ => Ending::Complete,
    }
}
