//! [`Recording`]: a recorded session in the form that all importers produce.

use hardpan_context::knowledge::FileObservation;
use hardpan_prompt::{AgentMessage, Image, Item, MediaType, TokenUsage};
use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_economy::Verdict;
use hardpan_economy::cache::Moment;
use serde::Serialize;

use super::file_action::FileAction;
use super::request_shape::RequestShape;

/// The agent that recorded a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum SourceAgent {
    /// The agent pi.
    Pi,
    /// Anthropic's Claude Code.
    ClaudeCode,
    /// OpenAI's Codex.
    Codex,
    /// Alibaba's Qwen Code.
    QwenCode,
    /// Hardpan itself.
    Hardpan,
}

impl SourceAgent {
    /// The agent's name in reports, such as `claude-code`.
    pub fn name(self) -> &'static str {
        match self {
            SourceAgent::Pi => "pi",
            SourceAgent::ClaudeCode => "claude-code",
            SourceAgent::Codex => "codex",
            SourceAgent::QwenCode => "qwen-code",
            SourceAgent::Hardpan => "hardpan",
        }
    }

    /// The agent's name in sentences, such as `Claude Code`.
    pub fn title(self) -> &'static str {
        match self {
            SourceAgent::Pi => "pi",
            SourceAgent::ClaudeCode => "Claude Code",
            SourceAgent::Codex => "Codex",
            SourceAgent::QwenCode => "Qwen Code",
            SourceAgent::Hardpan => "Hardpan",
        }
    }
}

/// A session as an agent recorded it.
#[derive(Clone, Debug)]
pub struct Recording {
    /// The name that was given when it was opened, usually a path.
    pub file: String,
    /// The agent that wrote the file.
    pub agent: SourceAgent,
    /// The session's own id, where the file has one.
    pub id: Option<Arc<str>>,
    /// The working folder at the start, which relative paths start from. `None` where it is not
    /// recorded.
    pub cwd: Option<Arc<str>>,
    /// The messages and compactions in the order of the file. They form a tree by
    /// [`RecordedEntry::parent`].
    pub entries: Vec<RecordedEntry>,
    /// The entries of sub-agents that are recorded in the same file, by their index.
    pub side_entries: BTreeSet<usize>,
    /// The requests that the provider billed, in order of time.
    pub requests: Vec<BilledRequest>,
    /// Requests without a bill, because they were aborted or failed. They may have written to the
    /// cache all the same, if they lasted for about 1.5 seconds.
    pub unbilled: Vec<UnbilledRequest>,
    /// What was billed beyond the recorded requests, according to the recording's own totals.
    pub side_usage: Vec<SideUsage>,
    /// The total that the recording itself gives, in dollars, answers included. `None` where it gives
    /// none.
    pub total_dollars: Option<f64>,
    /// Lines that could not be read, or only in part.
    pub problems: Vec<ImportProblem>,
}

/// What a model was billed for in requests of which only the sum is recorded: compactions, titles,
/// sub-agents with files of their own.
#[derive(Clone, Debug, PartialEq)]
pub struct SideUsage {
    /// The model's id as it is recorded.
    pub model: Arc<str>,
    /// The tokens of all these requests.
    pub usage: TokenUsage,
    /// What the requests were for, by the agent's names, where they are recorded: `compact`.
    pub purposes: Vec<Arc<str>>,
}

/// A line that could not be read, or only in part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportProblem {
    /// Line number in the file, from 1.
    pub line: usize,
    /// What is wrong with it and what was done about it, for people.
    pub message: String,
}

/// A message or a compaction, at its place in the tree of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedEntry {
    /// Line number in the file, from 1. For an answer on several lines, that of the first.
    pub line: usize,
    /// Index of the entry it follows, always a smaller one. `None` at the beginning of a
    /// conversation.
    pub parent: Option<usize>,
    /// When it was recorded; for an answer, when it ended.
    pub at: Option<Moment>,
    /// The message or the compaction itself.
    pub content: EntryContent,
    /// The message as our own agent stored it. `None` in recordings of others.
    pub message: Option<Arc<AgentMessage>>,
    /// What the message told about files, where the agent recorded it.
    pub observations: Vec<FileObservation>,
}

/// What an entry of a conversation is.
#[derive(Clone, Debug, PartialEq)]
pub enum EntryContent {
    /// A message of the user, the model or a tool.
    Message {
        /// Who wrote the message.
        speaker: Speaker,
        /// Its content, in order.
        parts: Vec<RecordedPart>,
    },
    /// A compaction: a summary replaces everything before it, but for what is kept.
    Compaction {
        /// The text that replaces the older entries.
        summary: Arc<str>,
        /// Index of the first entry before the compaction that stays. `None` if nothing does.
        kept: Option<usize>,
    },
}

/// Who wrote a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// The user, or the agent on the user's behalf.
    User,
    /// The model.
    Assistant,
    /// A tool that answers a call.
    Tool,
    /// The agent, to its model: what it is, its tools, its workplace. It means nothing to another agent.
    Agent,
}

/// A part of a message; a block in the terms of the providers.
#[derive(Clone, Debug, PartialEq)]
pub enum RecordedPart {
    /// Plain text.
    Text(Arc<str>),
    /// The model's reasoning, or its encrypted form.
    Reasoning(Arc<str>),
    /// The model calls a tool.
    Call(RecordedCall),
    /// A tool answers a call.
    Result(RecordedResult),
    /// An image.
    Image {
        /// Its approximate size in bytes, decoded.
        bytes: usize,
        /// The image itself, where the recording holds it in a form that providers take.
        image: Option<Box<Image>>,
    },
}

impl RecordedPart {
    /// An image of base64 data, which may stand in a `data:` address. Its type is what its first bytes
    /// say, whatever the recording calls it.
    pub(super) fn image(data: Option<&str>) -> Self {
        let bytes = data.unwrap_or_default().len() * 3 / 4;
        RecordedPart::Image { bytes, image: Self::usable_image(data).map(Box::new) }
    }

    /// The same image, if providers take it.
    pub(super) fn usable_image(data: Option<&str>) -> Option<Image> {
        let data = data.unwrap_or_default();
        let plain = match data.strip_prefix("data:").and_then(|address| address.split_once(";base64,")) {
            Some((_, plain)) => plain,
            None => data,
        };
        let first_bytes = [
            ("iVBORw0KGgo", MediaType::Png),
            ("/9j/", MediaType::Jpeg),
            ("R0lGOD", MediaType::Gif),
            ("UklGR", MediaType::Webp),
        ];
        let known = first_bytes.iter().find(|(start, _)| plain.starts_with(start));
        let image = known.map(|(_, media_type)| Image {
            media_type: *media_type,
            data: plain.into(),
            width: None,
            height: None,
        });
        let is_usable = |image: &Image| image.check_data().is_ok() && image.check().is_ok();
        image.filter(is_usable)
    }
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedCall {
    /// The provider's id, which the result repeats.
    pub id: Arc<str>,
    /// The name of the tool.
    pub tool: Arc<str>,
    /// The arguments, nearly as the model wrote them: JSON, or plain text for tools that take it.
    pub arguments: Arc<str>,
    /// What the call does to files.
    pub action: FileAction,
}

/// The answer of a tool to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedResult {
    /// The id of the call that it answers.
    pub call: Arc<str>,
    /// Its texts, joined by line feeds.
    pub text: Arc<str>,
    /// Its images; none in the place of one that the recording does not hold in a form that providers
    /// take.
    pub images: Vec<Option<Image>>,
    /// Whether the call failed.
    pub failed: bool,
}

/// A request that the provider billed.
#[derive(Clone, Debug, PartialEq)]
pub struct BilledRequest {
    /// When it was sent; lifetimes of cache entries count from here. Where only the end is
    /// recorded, the time of the entry before it.
    pub started: Moment,
    /// When its answer ended.
    pub ended: Moment,
    /// The provider's id. `None` where it is not recorded.
    pub provider: Option<Arc<str>>,
    /// The model's id as it is recorded.
    pub model: Arc<str>,
    /// The tokens that were billed.
    pub usage: TokenUsage,
    /// Tokens of the model per token of our own counter, as the agent estimated it at the time. Only
    /// Hardpan records it.
    pub factor: Option<f64>,
    /// The items that the request told the model of, in the order of their keys. Only Hardpan records
    /// them.
    pub items: Arc<Vec<Item>>,
    /// The thinking level by the agent's name for it. `None` where it is not recorded.
    pub thinking: Option<Arc<str>>,
    /// How its answer ended.
    pub status: AnswerStatus,
    /// The last entry of its prompt; [`Recording::context`] gives all of them.
    pub leaf: Option<usize>,
    /// The entry of its answer. `None` where the answer is not part of the conversation.
    pub answer: Option<usize>,
    /// Whether the conversation was compacted since the previous request of the same thread.
    pub compacted: bool,
    /// The conversation that it belongs to, by the index of its first entry. Sub-agents have their
    /// own.
    pub thread: usize,
    /// Whether its prompt is not the conversation but one of its own, for example for a commit
    /// message or a title.
    pub is_standalone: bool,
    /// The request itself, as far as the agent recorded it: system prompt, tools, settings.
    pub shape: Option<Arc<RequestShape>>,
    /// The agent's own verdict on what the cache lost. Only Hardpan records one.
    pub verdict: Option<Arc<Verdict>>,
    /// The line with its usage, from 1.
    pub line: usize,
}

/// A request that was aborted or failed, and has no usage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnbilledRequest {
    /// When it was sent.
    pub started: Moment,
    /// When it was aborted or failed.
    pub ended: Moment,
    /// The model's id as it is recorded.
    pub model: Arc<str>,
    /// The last entry of its prompt.
    pub leaf: Option<usize>,
    /// Line number in the file, from 1.
    pub line: usize,
}

/// How an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStatus {
    /// The model finished.
    Complete,
    /// The user stopped it.
    Aborted,
    /// It ended with an error.
    Failed,
}

impl Recording {
    /// An empty recording.
    pub(crate) fn new(file: &str, agent: SourceAgent) -> Self {
        Recording {
            file: file.into(),
            agent,
            id: None,
            cwd: None,
            entries: Vec::new(),
            side_entries: BTreeSet::new(),
            requests: Vec::new(),
            unbilled: Vec::new(),
            side_usage: Vec::new(),
            total_dollars: None,
            problems: Vec::new(),
        }
    }

    /// The entries of a request whose last one is `leaf`, in order. A compaction takes the place of
    /// what it replaced.
    pub fn context(&self, leaf: Option<usize>) -> Vec<usize> {
        let mut path: Vec<usize> = std::iter::successors(leaf, |&at| self.entries[at].parent).collect();
        path.reverse();
        let compaction =
            path.iter().rposition(|&at| matches!(self.entries[at].content, EntryContent::Compaction { .. }));
        let Some(place) = compaction else { return path };
        let EntryContent::Compaction { kept, .. } = self.entries[path[place]].content else { return path };
        let first = kept.and_then(|kept| path[..place].iter().position(|&at| at >= kept)).unwrap_or(place);
        let mut context = vec![path[place]];
        let is_message = |at: &usize| matches!(self.entries[*at].content, EntryContent::Message { .. });
        context.extend(path[first..place].iter().copied().filter(is_message));
        context.extend(&path[place + 1..]);
        context
    }

    pub(super) fn report_problem(&mut self, line: usize, message: impl Into<String>) {
        self.problems.push(ImportProblem { line, message: message.into() });
    }

    pub(crate) fn add_entry(
        &mut self,
        line: usize,
        parent: Option<usize>,
        at: Option<Moment>,
        content: EntryContent,
    ) -> usize {
        let parent = parent.filter(|parent| *parent < self.entries.len());
        self.entries.push(RecordedEntry {
            line,
            parent,
            at,
            content,
            message: None,
            observations: Vec::new(),
        });
        self.entries.len() - 1
    }

    /// What all importers need at the end: sorts the requests by time, and finds each one's thread
    /// and whether it was compacted.
    pub(super) fn finish(&mut self) {
        // Two processes can write one file, so its order is not that of time. The sort is stable.
        self.requests.sort_by_key(|request| request.started);
        self.unbilled.sort_by_key(|request| request.started);
        let mut roots: Vec<usize> = Vec::with_capacity(self.entries.len());
        let mut compactions: Vec<usize> = Vec::with_capacity(self.entries.len());
        for (at, entry) in self.entries.iter().enumerate() {
            let is_compaction = matches!(entry.content, EntryContent::Compaction { .. });
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

/// The status for a stop reason of any agent or provider.
pub(super) fn answer_status(stop_reason: Option<&str>) -> AnswerStatus {
    match stop_reason {
        Some("aborted" | "abort" | "cancelled" | "interrupted") => AnswerStatus::Aborted,
        Some("error" | "failed") => AnswerStatus::Failed,
        _ => AnswerStatus::Complete,
    }
}
