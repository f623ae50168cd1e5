//! [`AnthropicFields`]: what a request of Anthropic Messages says besides its prompt.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_prompt::{Json, Tool};

/// What a request of Anthropic Messages says besides its prompt. The decoder fills it from the body;
/// a server adds the headers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AnthropicFields {
    /// The header `anthropic-version`.
    pub version: ApiVersion,
    /// The names in the header `anthropic-beta`.
    pub betas: Vec<String>,
    /// The fields that need a beta header.
    pub gated: Vec<GatedField>,
    /// `thinking.display`. `None`: the model's own default.
    pub display: Option<ThinkingDisplay>,
    /// `thinking.block_binding.prefix_mismatch_behavior`. `None`: the request does not say.
    pub mismatch: Option<MismatchBehavior>,
    /// The sampling parameters that the body has.
    pub sampling: BTreeMap<&'static str, f64>,
    /// `diagnostics`: the request asks why it missed the cache. `null` asks nothing.
    pub diagnostics: Option<DiagnosticsRequest>,
    /// `speed` as it is sent.
    pub speed: Option<Arc<str>>,
    /// `output_config.format` and `task_budget`.
    pub output_config: BTreeMap<&'static str, Json>,
    /// `context_management`.
    pub context_management: Option<Json>,
    /// Whether `compaction` asks for a summary instead of an answer.
    pub compaction: bool,
    /// `thread` as it is sent.
    pub thread: Option<Json>,
    /// `system`, `tools` and `messages` as they are sent, where `thread` asks the server to keep them.
    pub conversation: Option<Json>,
    /// Whether `fallbacks` names models or asks for the server's own.
    pub fallbacks: bool,
    /// The names of the tools that are in the prompt: declared, or defined by a system message.
    pub declared_tools: Vec<Arc<str>>,
    /// Those of them that Anthropic defines.
    pub typed_tools: BTreeSet<Arc<str>>,
    /// Tools that are declared but outside of the prompt until something refers to them, by name.
    pub deferred_tools: BTreeMap<Arc<str>, Tool>,
    /// Tools that system messages define outside of the prompt.
    pub inline_tools: Vec<Arc<str>>,
    /// Blocks that a prompt cannot represent and holds as text, by message and block.
    pub special_blocks: BTreeMap<(usize, usize), SpecialBlock>,
    /// Messages with a text block that carries citations, or a document, by message and block.
    pub sources: Vec<SourceBlock>,
}

impl AnthropicFields {
    /// Whether a tool of this name is in the prompt.
    pub fn is_declared(&self, name: &str) -> bool {
        self.declared_tools.iter().any(|known| **known == *name)
    }

    /// Whether a tool of this name is known, but outside of the prompt.
    pub fn is_deferred(&self, name: &str) -> bool {
        self.deferred_tools.contains_key(name) || self.inline_tools.iter().any(|known| **known == *name)
    }

    /// Whether one of these names is in the header `anthropic-beta`.
    pub fn has_beta(&self, names: &[&str]) -> bool {
        self.betas.iter().any(|beta| names.contains(&beta.as_str()))
    }
}

/// The version of the API that a request is written for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ApiVersion {
    /// The version that all clients of the first years send.
    #[default]
    V2023_06_01,
    /// Without sampling parameters.
    V2026_10_21,
}

impl ApiVersion {
    /// All versions, the oldest first.
    pub const ALL: [ApiVersion; 2] = [ApiVersion::V2023_06_01, ApiVersion::V2026_10_21];

    /// The value of the header `anthropic-version`.
    pub fn as_str(self) -> &'static str {
        match self {
            ApiVersion::V2023_06_01 => "2023-06-01",
            ApiVersion::V2026_10_21 => "2026-10-21",
        }
    }
}

/// A field that a server takes only with a beta header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatedField {
    /// Where it stands: `messages.3.clear_at`.
    pub path: String,
    /// The headers that allow it; one is enough.
    pub betas: &'static [&'static str],
}

/// How thinking comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThinkingDisplay {
    /// As a summary.
    Summarized,
    /// Without its text, with the signature only.
    Omitted,
    /// As short notes on the progress.
    Updates,
}

/// What becomes of thinking that is bound to another conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MismatchBehavior {
    /// The request is refused.
    Error,
    /// The block and all later thinking are left out.
    DropBlock,
}

/// What `diagnostics` asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DiagnosticsRequest {
    /// The answer whose request is compared with this one. `None`: the first of a chain.
    pub previous_message_id: Option<String>,
}

/// What is special about a block that a prompt holds as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpecialBlock {
    /// A summary that stands for everything before it.
    Compaction,
    /// A summary that was made on demand, with a signature: it comes first.
    SignedCompaction,
    /// A summary that failed: it stands for nothing.
    FailedCompaction,
    /// A call that the server runs itself.
    ServerToolUse,
    /// The result of such a call.
    ServerToolResult,
    /// A deferred tool that a system message adds or removes.
    DeferredToolChange,
    /// Anything else.
    Other,
}

/// A block with sources: a document, or text with citations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceBlock {
    /// Where it stands: `messages.3.content.1`.
    pub path: String,
    /// Whether the model wrote the message.
    pub in_answer: bool,
    /// Whether it is a document. If not, a text with citations.
    pub is_document: bool,
    /// The citations of a text, as a list.
    pub citations: Option<Json>,
}
