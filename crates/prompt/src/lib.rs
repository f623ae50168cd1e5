//! The vocabulary of Hardpan: what can be sent to a model, and what was said so far.
//!
//! Three types carry the rest of the product:
//!
//! - [`Item`]: one piece of keyed, mutable context (a file, a panel, a page, a symbol map entry).
//! - [`AgentMessage`]: one message of the conversation, as the agent stores it.
//! - [`Prompt`]: a finished request, made of [`PromptMessage`]s and [`Block`]s that each know their
//!   [`Origin`].
//!
//! A [`TokenCounter`] counts a prompt exactly, and [`validate`] checks it against the providers'
//! rules before it is sent.
//!
//! ```
//! use hardpan_prompt::{
//!     Block, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Text, TokenCounter, Vocabulary,
//! };
//!
//! let origin = Origin::rule(ItemKind::History, "example");
//! let hello = Block::text(Region::Log, Text::new("Hello!"), origin);
//! let messages = vec![PromptMessage::new(Role::User, vec![hello])];
//! let prompt = Prompt { messages, ..Prompt::default() };
//! let counter = TokenCounter::new(Vocabulary::O200k);
//! assert_eq!(counter.measure(&prompt).total(), 2);
//! ```
//!
//! This crate does no input or output and reads no clock.

mod block; // Prompt, PromptMessage, Block, Segment: the request before it becomes bytes
mod exchanges; // where the exchanges of a conversation begin and end
pub mod figures; // tokens and dollars as people read them
mod image; // Image: data, media type, size, token cost
mod item; // Item: keyed, mutable context
mod message; // AgentMessage: the conversation as the agent stores it
mod not_run; // NotRunReason: why a tool call has a result although its tool did not run
mod omission; // Omission: what is left out of a prompt, and why
mod origin; // Origin, Region: where each block came from and where it goes
mod prompt_tokens; // PromptTokens: the tokens of each block and segment of a prompt
mod provider_block; // ProviderBlock, WebSource: what a provider's own web search leaves in an answer
mod provider_report; // CacheDiagnosis, DroppedReasoning: what a provider says besides its answer
mod shared_content; // SharedContent: a block's content, shared between requests
mod text; // Text, Hash, Json: immutable text that knows its hash
mod thinking; // Effort: how much a model reasons before it answers
mod token_usage; // TokenUsage: tokens by how they are billed
mod tokens; // TokenCounter: exact token counts, prefix sums, learned factors
mod tool; // Tool: the declaration of a tool
mod tool_change; // ToolChange: a tool that comes or goes in the middle of a conversation
mod tree_line; // lines of a file list
pub mod validate; // the providers' rules for requests, each with its own error

pub use block::{
    Block, Breakpoint, Call, Content, Prompt, PromptMessage, Reasoning, ResultPart, Role, Segment, ToolBlock,
    ToolOutcome, ToolResult, WebSearch,
};
pub use exchanges::{begins_exchange, exchange_ranges};
pub use image::{Image, ImageError, MediaType};
pub use item::{Item, Tier, Volatility, key_name};
pub use message::{
    AgentMessage, CallResult, MessageBody, MessageFacts, MessageId, MessagePart, MessageState, ToolCall,
};
pub use not_run::{DeniedBy, NotRunReason};
pub use omission::{Omission, OmissionKey, OmissionReason, UnavailableCode};
pub use origin::{CacheLifetime, ItemCopy, ItemKind, Origin, Region, Source};
pub use prompt_tokens::PromptTokens;
pub use provider_block::{ProviderBlock, ProviderBlockKind, ProviderContent, WebSource, list_sources};
pub use provider_report::{CacheDiagnosis, ChangedPart, DroppedReasoning};
pub use shared_content::SharedContent;
pub use text::{Hash, HashChain, Json, Text};
pub use thinking::{Effort, Thinking, UnknownEffort};
pub use token_usage::TokenUsage;
pub use tokens::{
    CountedText, GivenSizes, TokenCounter, TokenFactor, TokenizerWork, UnknownVocabulary, Vocabulary,
};
pub use tool::Tool;
pub use tool_change::{AvailableTools, ToolChange, ToolChangeAction};
pub use tree_line::{files_of_folder_line, folder_line};
