//! The finished request before it becomes bytes.
//!
//! The principal type is [`Prompt`]: tools, a system prompt and [`PromptMessage`]s, each made of
//! [`Block`]s. A block is the unit that providers cache by. Its text is made of [`Segment`]s, and
//! every segment carries its [`Origin`], so that a finished prompt can explain itself: which item,
//! message or rule each token came from.

use std::sync::Arc;

use crate::{
    CacheLifetime, Effort, Hash, Image, Json, Omission, Origin, ProviderContent, Region, SharedContent, Text,
    Thinking, Tool, ToolChange,
};

/// The speaker of a message, as the provider's protocol knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The person, and everything Hardpan says in their role: items, tool results, notes.
    User,
    /// The model's own earlier answers.
    Assistant,
    /// The operator in the middle of the conversation: a later instruction outranks earlier ones and
    /// the system prompt. Few models take it.
    System,
}

impl Role {
    /// A byte for hashes: contents that are equal but said by different speakers differ.
    pub fn mark(self) -> u8 {
        match self {
            Role::User => b'u',
            Role::Assistant => b'a',
            Role::System => b's',
        }
    }
}

/// A piece of text and its origin. A text block is one or more segments, joined without a
/// separator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Sent as it is: no separator is added before or after it.
    pub text: Text,
    /// The item, message or rule that this text came from.
    pub origin: Origin,
}

impl Segment {
    /// Pairs a text with its origin.
    pub fn new(text: impl Into<Text>, origin: Origin) -> Self {
        Segment { text: text.into(), origin }
    }
}

/// A tool call as it is sent: its id is already valid for the provider and unique in the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The id by which the matching [`ToolResult`] refers to this call.
    pub id: Arc<str>,
    /// Name of the called tool.
    pub name: Arc<str>,
    /// The arguments, always a JSON object.
    pub arguments: Json,
    /// The message in which the model made the call, or the rule that invented it.
    pub origin: Origin,
}

/// Whether a tool call succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToolOutcome {
    /// The tool did what it was asked.
    Done,
    /// The tool failed; the result's parts say how.
    Failed,
}

/// A tool's result as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// Id of the [`Call`] that this result answers.
    pub call_id: Arc<str>,
    /// The result's content, in the order the tool returned it.
    pub parts: Vec<ResultPart>,
    /// Failed results are marked as errors on the wire.
    pub outcome: ToolOutcome,
    /// Used for images; text parts carry the origins of their own segments.
    pub origin: Origin,
}

/// A part of a tool's result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultPart {
    /// Text, in segments that are joined without a separator.
    Text(Vec<Segment>),
    /// An image, such as a screenshot that the tool read.
    Image(Image),
}

/// Reasoning that is sent back to the model that produced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reasoning {
    /// The visible part; empty where the provider encrypts all of it.
    pub text: Text,
    /// The provider's signature over the text, sent back byte for byte.
    pub signature: Option<Arc<str>>,
    /// Encrypted reasoning, sent back byte for byte.
    pub redacted: Option<Arc<str>>,
    /// The assistant message that the reasoning belongs to.
    pub origin: Origin,
}

/// The content of a block. Blocks hold it behind [`SharedContent`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text, in segments that are joined without a separator.
    Text(Vec<Segment>),
    /// An image in a message of its own right, with its origin.
    Image(Image, Origin),
    /// The model's own reasoning; only in assistant messages.
    Reasoning(Reasoning),
    /// A tool call; only in assistant messages.
    Call(Call),
    /// A tool's result; only in user messages.
    Result(ToolResult),
    /// A tool that comes or goes; only in system messages.
    ToolChange(ToolChange),
    /// A block of the provider's own web search; only in assistant messages.
    Provider(ProviderContent),
}

/// One content block of the request: the unit that a provider caches by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The region of the layout that the block belongs to.
    pub region: Region,
    /// Shared between requests, so that its hash and its token counts are computed once.
    pub content: SharedContent,
    /// Asks the provider for a cache entry that ends with this block. `None`: no breakpoint.
    pub breakpoint: Option<CacheLifetime>,
}

impl Block {
    /// Makes a block without a breakpoint.
    pub fn new(region: Region, content: impl Into<SharedContent>) -> Self {
        Block { region, content: content.into(), breakpoint: None }
    }

    /// Makes a text block of a single segment.
    pub fn text(region: Region, text: Text, origin: Origin) -> Self {
        Block::new(region, Content::Text(vec![Segment { text, origin }]))
    }

    /// Whether a provider accepts a breakpoint here: not on reasoning and not on blank text.
    pub fn can_hold_breakpoint(&self) -> bool {
        match &*self.content {
            Content::Text(segments) => segments.iter().any(|s| !s.text.trim().is_empty()),
            // A provider's block goes back as it came.
            Content::Reasoning(_) | Content::Provider(_) => false,
            Content::Image(..) | Content::Call(_) | Content::Result(_) | Content::ToolChange(_) => true,
        }
    }

    /// Whether the block shows an image, directly or inside a tool's result.
    pub fn has_image(&self) -> bool {
        match &*self.content {
            Content::Image(..) => true,
            Content::Result(result) => result.parts.iter().any(|part| matches!(part, ResultPart::Image(_))),
            Content::Text(_)
            | Content::Reasoning(_)
            | Content::Call(_)
            | Content::ToolChange(_)
            | Content::Provider(_) => false,
        }
    }

    /// The origin of the block as a whole: that of its first segment that is not a layout's own
    /// text, or of its first segment if all are. `None` for a text block without segments.
    pub fn origin(&self) -> Option<&Origin> {
        match &*self.content {
            Content::Text(segments) => first_origin(segments),
            Content::Image(_, origin) => Some(origin),
            Content::Reasoning(reasoning) => Some(&reasoning.origin),
            Content::Call(call) => Some(&call.origin),
            Content::Result(result) => Some(&result.origin),
            Content::ToolChange(change) => Some(&change.origin),
            Content::Provider(block) => Some(&block.origin),
        }
    }

    /// Hash of everything the model sees of the block; breakpoint, region and origins do not count.
    pub fn hash(&self) -> Hash {
        self.content.hash()
    }
}

impl Content {
    /// Hash of everything the model sees; origins do not count. [`SharedContent::hash`] computes it
    /// once and keeps it.
    pub fn hash(&self) -> Hash {
        let segments = |segments: &[Segment]| match segments {
            [only] => only.text.hash(),
            many => {
                let joined: String = many.iter().map(|s| s.text.as_str()).collect();
                Hash::of(joined.as_bytes())
            }
        };
        let text = |text: &str| Hash::of(text.as_bytes());
        match self {
            Content::Text(parts) => Hash::chain([text("text"), segments(parts)]),
            Content::Image(image, _) => Hash::chain([text("image"), image.hash()]),
            Content::Reasoning(r) => Hash::chain([
                text("reasoning"),
                r.text.hash(),
                text(r.signature.as_deref().unwrap_or_default()),
                text(r.redacted.as_deref().unwrap_or_default()),
            ]),
            Content::Call(c) => Hash::chain([text("call"), text(&c.id), text(&c.name), c.arguments.hash()]),
            Content::Result(r) => {
                let parts = r.parts.iter().map(|part| match part {
                    ResultPart::Text(parts) => segments(parts),
                    ResultPart::Image(image) => image.hash(),
                });
                let outcome = if r.outcome == ToolOutcome::Failed { "failed" } else { "result" };
                Hash::chain([text(outcome), text(&r.call_id)].into_iter().chain(parts))
            }
            Content::ToolChange(change) => change.hash(),
            Content::Provider(block) => Hash::chain([text("provider"), block.json.hash()]),
        }
    }
}

fn first_origin(segments: &[Segment]) -> Option<&Origin> {
    segments.iter().find(|s| !s.origin.is_rule()).or(segments.first()).map(|s| &s.origin)
}

/// One message of the request: a role and its content blocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptMessage {
    /// Providers expect user and assistant messages to alternate; see
    /// [`validate`](crate::validate).
    pub role: Role,
    /// The content, in the order the model reads it.
    pub blocks: Vec<Block>,
    /// The message's id, for the few servers that accept one.
    pub id: Option<Arc<str>>,
    /// Ids of attached documents, for the few servers that accept them.
    pub documents: Vec<Arc<str>>,
    /// System messages only: the text counts until the next user message. It is sent again
    /// afterwards, but neither shown to the model nor billed.
    pub turn_scoped: bool,
    /// System messages only: the effort from the next user message on. Such a message may be empty.
    pub effort: Option<Effort>,
}

impl PromptMessage {
    /// Makes a message without an id, without documents and without an effort.
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        PromptMessage { role, blocks, id: None, documents: Vec::new(), turn_scoped: false, effort: None }
    }

    /// Whether the message does nothing but set the effort: it may stand anywhere.
    pub fn only_sets_effort(&self) -> bool {
        self.role == Role::System && self.blocks.is_empty() && self.effort.is_some()
    }
}

/// A declared tool, with its position in the layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolBlock {
    /// The region of the layout that the declaration belongs to.
    pub region: Region,
    /// Name, description and schema as the model sees them.
    pub tool: Tool,
    /// Asks the provider for a cache entry that ends with this tool. `None`: no breakpoint.
    pub breakpoint: Option<CacheLifetime>,
}

/// A web search that the provider itself performs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSearch {
    /// The most search results the provider may add to the prompt, or the most searches in an answer.
    pub max_results: u32,
}

/// A cache breakpoint and the block that carries it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// Index of the block, counted from 0 through tools, system prompt and messages.
    pub block: usize,
    /// How long the provider is asked to keep the entry.
    pub lifetime: CacheLifetime,
}

/// A finished request: what Hardpan shows of it is exactly what it sends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The model's id as the provider knows it.
    pub model: Arc<str>,
    /// The most tokens the answer may take, reasoning included.
    pub max_tokens: u32,
    /// The form of thinking that is asked for.
    pub thinking: Thinking,
    /// How much work the model puts into its answer. `None`: the request does not say.
    pub effort: Option<Effort>,
    /// Whether the provider shall drop reasoning that no longer fits what comes before it, in place
    /// of refusing the request.
    pub drop_stale_reasoning: bool,
    /// The declared tools; they come first in the provider's order.
    pub tools: Vec<ToolBlock>,
    /// The system prompt; it follows the tools.
    pub system: Vec<Block>,
    /// The system message's id, for the few servers that accept one.
    pub system_id: Option<Arc<str>>,
    /// The conversation, oldest message first.
    pub messages: Vec<PromptMessage>,
    /// The provider's own web search. `None`: not requested.
    pub web_search: Option<WebSearch>,
    /// What the snapshot contains and this request does not, each with the reason.
    pub left_out: Vec<Omission>,
}

impl Prompt {
    /// The blocks of system prompt and messages, in the provider's order. Tools are not included.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.system.iter().chain(self.messages.iter().flat_map(|message| &message.blocks))
    }

    /// Like [`blocks`](Self::blocks), but mutable.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.system.iter_mut().chain(self.messages.iter_mut().flat_map(|message| &mut message.blocks))
    }

    /// Reuses the content of the previous prompt wherever it is equal, so that hashes and token
    /// counts that are known already stay known. `last` holds the previous prompt's contents on
    /// entry and this prompt's on return.
    pub fn share_unchanged_content(&mut self, last: &mut Vec<SharedContent>) {
        let mut count = 0;
        for block in self.blocks_mut() {
            match last.get_mut(count) {
                Some(known) if known.ptr_eq(&block.content) => {}
                Some(known) if **known == *block.content => block.content = known.clone(),
                Some(known) => *known = block.content.clone(),
                None => last.push(block.content.clone()),
            }
            count += 1;
        }
        last.truncate(count);
    }

    /// Whether a block contains an image, tool results included.
    pub fn has_images(&self) -> bool {
        self.blocks().any(Block::has_image)
    }

    /// Number of blocks, declared tools included.
    pub fn block_count(&self) -> usize {
        self.tools.len() + self.blocks().count()
    }

    /// The breakpoints of tools, system prompt and messages, in this order.
    pub fn breakpoints(&self) -> Vec<Breakpoint> {
        let tools = self.tools.iter().map(|tool| tool.breakpoint);
        let all = tools.chain(self.blocks().map(|block| block.breakpoint));
        all.enumerate()
            .filter_map(|(block, lifetime)| lifetime.map(|lifetime| Breakpoint { block, lifetime }))
            .collect()
    }

    /// Whether the prompt ends with blocks that are made anew for each request, after breakpoints
    /// for everything that stays.
    pub fn ends_after_its_breakpoints(&self) -> bool {
        self.blocks().last().is_some_and(|block| block.region.is_transient() && block.breakpoint.is_none())
            && !self.breakpoints().is_empty()
    }

    /// The path of a block in the request body: `tools[0]`, `system[0]`, `messages[3].content[1]`.
    pub fn address(&self, block: usize) -> String {
        let Some(mut rest) = block.checked_sub(self.tools.len()) else { return format!("tools[{block}]") };
        if rest < self.system.len() {
            return format!("system[{rest}]");
        }
        rest -= self.system.len();
        for (index, message) in self.messages.iter().enumerate() {
            if rest < message.blocks.len() {
                return format!("messages[{index}].content[{rest}]");
            }
            rest -= message.blocks.len();
        }
        format!("block {block}")
    }
}
