//! The request before it is bytes.

use std::sync::Arc;

use crate::{Hash, Held, Image, Json, LeftOut, Lifetime, Origin, Place, Text, Tool};

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// The user, and whoever speaks in that role.
    User,
    /// The model.
    Assistant,
}

/// A piece of text and its origin. A text block is one or more of these, joined without a gap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The text.
    pub text: Text,
    /// Where it came from.
    pub origin: Origin,
}

impl Segment {
    /// A piece of text from somewhere.
    pub fn new(text: impl Into<Text>, origin: Origin) -> Self {
        Segment { text: text.into(), origin }
    }
}

/// A tool call as it goes on the wire: its id is valid and unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The id that its result names.
    pub id: Arc<str>,
    /// The tool.
    pub name: Arc<str>,
    /// An object.
    pub arguments: Json,
    /// Where it came from.
    pub origin: Origin,
}

/// Whether a tool did what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It did.
    Done,
    /// It failed; the content says how.
    Failed,
}

/// A tool's answer as it goes on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The call it answers.
    pub call_id: Arc<str>,
    /// What it says.
    pub parts: Vec<ResultPart>,
    /// Whether it did what it was asked.
    pub outcome: Outcome,
    /// Where it came from.
    pub origin: Origin,
}

/// A part of a tool's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResultPart {
    /// Text.
    Text(Vec<Segment>),
    /// An image.
    Image(Image),
}

/// Reasoning that goes back to the model that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reasoning {
    /// What is shown of it.
    pub text: Text,
    /// The provider's signature, to the byte.
    pub signature: Option<Arc<str>>,
    /// Encrypted reasoning, to the byte.
    pub redacted: Option<Arc<str>>,
    /// Where it came from.
    pub origin: Origin,
}

/// What a block holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Text, in segments.
    Text(Vec<Segment>),
    /// An image.
    Image(Image, Origin),
    /// Reasoning.
    Reasoning(Reasoning),
    /// A tool call.
    Call(Call),
    /// A tool's answer.
    Result(ToolResult),
}

/// The unit that a provider caches by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The region of the layout.
    pub place: Place,
    /// What it holds.
    pub content: Held,
    /// Whether a cache entry is asked for up to and including this block.
    pub breakpoint: Option<Lifetime>,
}

impl Block {
    /// A block without a breakpoint.
    pub fn new(place: Place, content: impl Into<Held>) -> Self {
        Block { place, content: content.into(), breakpoint: None }
    }

    /// A text block of one segment.
    pub fn text(place: Place, text: Text, origin: Origin) -> Self {
        Block::new(place, Content::Text(vec![Segment { text, origin }]))
    }

    /// Whether a provider accepts a breakpoint here: not on reasoning, and not on nothing.
    pub fn can_hold_breakpoint(&self) -> bool {
        match &*self.content {
            Content::Text(segments) => segments.iter().any(|s| !s.text.trim().is_empty()),
            Content::Reasoning(_) => false,
            Content::Image(..) | Content::Call(_) | Content::Result(_) => true,
        }
    }

    /// Whether it shows an image, by itself or in a tool's answer.
    pub fn has_image(&self) -> bool {
        match &*self.content {
            Content::Image(..) => true,
            Content::Result(result) => result.parts.iter().any(|part| matches!(part, ResultPart::Image(_))),
            Content::Text(_) | Content::Reasoning(_) | Content::Call(_) => false,
        }
    }

    /// The origin of the block as a whole: that of its first segment that no rule made, else its first.
    pub fn origin(&self) -> Option<&Origin> {
        match &*self.content {
            Content::Text(segments) => first_origin(segments),
            Content::Image(_, origin) => Some(origin),
            Content::Reasoning(reasoning) => Some(&reasoning.origin),
            Content::Call(call) => Some(&call.origin),
            Content::Result(result) => Some(&result.origin),
        }
    }

    /// The hash of everything the model sees of it: not of its breakpoint, and not of its origin.
    pub fn hash(&self) -> Hash {
        self.content.hash()
    }
}

impl Content {
    /// The hash of everything the model sees of it: not of its origin. [`Held::hash`] is the same, made once.
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
                let outcome = if r.outcome == Outcome::Failed { "failed" } else { "result" };
                Hash::chain([text(outcome), text(&r.call_id)].into_iter().chain(parts))
            }
        }
    }
}

fn first_origin(segments: &[Segment]) -> Option<&Origin> {
    segments.iter().find(|s| !s.origin.is_rule()).or(segments.first()).map(|s| &s.origin)
}

/// A message of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub blocks: Vec<Block>,
    /// The message's id, for the few servers that take one.
    pub id: Option<Arc<str>>,
    /// Documents attached by id, for the few servers that take them.
    pub documents: Vec<Arc<str>>,
}

impl Turn {
    /// A message without id or documents.
    pub fn new(role: Role, blocks: Vec<Block>) -> Self {
        Turn { role, blocks, id: None, documents: Vec::new() }
    }
}

/// A declared tool in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolBlock {
    /// The region of the layout.
    pub place: Place,
    /// The tool.
    pub tool: Tool,
    /// Whether a cache entry is asked for up to and including this tool.
    pub breakpoint: Option<Lifetime>,
}

/// Whether the model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// It does not.
    #[default]
    Off,
    /// It does, within so many tokens.
    Budget(u32),
}

/// A search of the web by the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebSearch {
    /// The most results to take in.
    pub max_results: u32,
}

/// Where a breakpoint stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breakpoint {
    /// The block, counted through tools, system and messages from 0.
    pub block: usize,
    /// How long its entry is to live.
    pub lifetime: Lifetime,
}

/// A finished request: what is shown is what is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// The model's id.
    pub model: Arc<str>,
    /// The most tokens it may answer with.
    pub max_tokens: u32,
    /// Whether it thinks first.
    pub thinking: Thinking,
    /// Declared tools.
    pub tools: Vec<ToolBlock>,
    /// The system prompt.
    pub system: Vec<Block>,
    /// The system message's id, for the few servers that take one.
    pub system_id: Option<Arc<str>>,
    /// The messages.
    pub turns: Vec<Turn>,
    /// The provider's web search, if wanted.
    pub web_search: Option<WebSearch>,
    /// What the snapshot holds and the request does not.
    pub left_out: Vec<LeftOut>,
}

impl Prompt {
    /// The blocks of system and messages in the provider's order.
    pub fn blocks(&self) -> impl Iterator<Item = &Block> {
        self.system.iter().chain(self.turns.iter().flat_map(|turn| &turn.blocks))
    }

    /// The same, to be changed.
    pub fn blocks_mut(&mut self) -> impl Iterator<Item = &mut Block> {
        self.system.iter_mut().chain(self.turns.iter_mut().flat_map(|turn| &mut turn.blocks))
    }

    /// Holds what a prompt before held, where it is equal, so that what is known of it stays known; `last` is then what this
    /// one holds.
    pub fn share(&mut self, last: &mut Vec<Held>) {
        let mut count = 0;
        for block in self.blocks_mut() {
            match last.get_mut(count) {
                Some(known) if known.is(&block.content) => {}
                Some(known) if **known == *block.content => block.content = known.clone(),
                Some(known) => *known = block.content.clone(),
                None => last.push(block.content.clone()),
            }
            count += 1;
        }
        last.truncate(count);
    }

    /// How many blocks there are, tools included.
    pub fn block_count(&self) -> usize {
        self.tools.len() + self.blocks().count()
    }

    /// The breakpoints, in order.
    pub fn breakpoints(&self) -> Vec<Breakpoint> {
        let tools = self.tools.iter().map(|tool| tool.breakpoint);
        let all = tools.chain(self.blocks().map(|block| block.breakpoint));
        all.enumerate()
            .filter_map(|(block, lifetime)| lifetime.map(|lifetime| Breakpoint { block, lifetime }))
            .collect()
    }

    /// The name of a block's position: `tools[0]`, `system[0]`, `messages[3].content[1]`.
    pub fn address(&self, block: usize) -> String {
        let Some(mut rest) = block.checked_sub(self.tools.len()) else { return format!("tools[{block}]") };
        if rest < self.system.len() {
            return format!("system[{rest}]");
        }
        rest -= self.system.len();
        for (index, turn) in self.turns.iter().enumerate() {
            if rest < turn.blocks.len() {
                return format!("messages[{index}].content[{rest}]");
            }
            rest -= turn.blocks.len();
        }
        format!("block {block}")
    }
}
