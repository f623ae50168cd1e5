//! The vocabulary of Hardpan: what can be said to a model, and what was said.
//!
//! Three types carry the rest of the product:
//!
//! - [`Item`]: one piece of keyed, mutable context (a file, a panel, a page, a symbol entry).
//! - [`AgentMessage`]: one entry of the conversation, as the agent keeps it.
//! - [`Prompt`]: a finished request, made of blocks that each know where they came from.
//!
//! ```
//! use hardpan_prompt::{Block, Counter, Kind, Origin, Place, Prompt, Role, Text, Turn, Vocabulary};
//!
//! let hello = Block::text(Place::Log, Text::new("Hello!"), Origin::rule(Kind::History, "example"));
//! let prompt = Prompt { turns: vec![Turn::new(Role::User, vec![hello])], ..Prompt::default() };
//! let counter = Counter::new(Vocabulary::O200k);
//! assert_eq!(counter.measure(&prompt).total(), 2);
//! ```
//!
//! This crate does no input or output, and looks at no clock.

mod block; // Prompt, Turn, Block, Segment: the request before it is bytes
mod held; // Held: what a block holds, shared
mod image; // Image: data, type, size, what it costs
mod item; // Item: keyed, mutable context
mod measure; // Measured: tokens of each block and segment of a prompt
mod message; // AgentMessage: the conversation as the agent keeps it
mod origin; // Origin, Place, LeftOut: where each block came from and where it went
mod text; // Text, Hash, Json: immutable text that knows its hash
mod tokens; // Counter: exact token counts, prefix sums, learned factors
mod tool; // Tool: a declared tool
pub mod validate; // the providers' rules, each with its own error

pub use block::{
    Block, Breakpoint, Call, Content, Outcome, Prompt, Reasoning, ResultPart, Role, Segment, Thinking,
    ToolBlock, ToolResult, Turn, WebSearch,
};
pub use held::Held;
pub use image::{Image, ImageError, MediaType};
pub use item::{Item, Tier, Volatility};
pub use measure::Measured;
pub use message::{AgentMessage, Body, CallResult, MessageId, Part, State, ToolCall};
pub use origin::{Copy, Kind, LeftOut, Lifetime, Origin, Place, Source};
pub use text::{Chain, Hash, Json, Text};
pub use tokens::{Counted, Counter, Factor, UnknownVocabulary, Vocabulary, Work};
pub use tool::Tool;
