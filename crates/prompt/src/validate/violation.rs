//! What can be wrong with a request, in the servers' words where these are known.

use std::fmt;

use thiserror::Error;

use crate::ImageError;

use super::{MAX_BREAKPOINTS, MAX_REQUEST_BYTES, MIN_THINKING};

/// Where in the body a rule is broken. Written as the servers write it: `messages.3.content.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// A declared tool.
    Tool(usize),
    /// A block of the system prompt.
    System(usize),
    /// A message as a whole.
    Message(usize),
    /// A block of a message.
    Block {
        /// The message.
        message: usize,
        /// The block within it.
        block: usize,
    },
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            At::Tool(tool) => write!(f, "tools.{tool}"),
            At::System(block) => write!(f, "system.{block}"),
            At::Message(message) => write!(f, "messages.{message}"),
            At::Block { message, block } => write!(f, "messages.{message}.content.{block}"),
        }
    }
}

/// A broken rule: one variant for each.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Violation {
    /// There is no room for an answer.
    #[error("max_tokens: must be at least 1")]
    NoRoom,
    /// The thinking budget is under the minimum.
    #[error("thinking.budget_tokens: {budget} is under the minimum of {MIN_THINKING}")]
    ThinkingTooSmall {
        /// The budget in tokens.
        budget: u32,
    },
    /// The thinking budget leaves nothing for the answer.
    #[error("max_tokens: {max_tokens} must be greater than thinking.budget_tokens, which is {budget}")]
    ThinkingOverMax {
        /// The budget in tokens.
        budget: u32,
        /// What the whole answer may take.
        max_tokens: u32,
    },

    /// A declared or called tool has a name that is not allowed.
    #[error("{at}.name: \"{name}\" should match '^[a-zA-Z0-9_-]{{1,64}}$'")]
    ToolName {
        /// The tool or the call.
        at: At,
        /// Its name.
        name: String,
    },
    /// Two declared tools have one name.
    #[error("{at}.name: \"{name}\" is declared twice; tool names must be unique")]
    ToolTwice {
        /// The second of them.
        at: At,
        /// Their name.
        name: String,
    },
    /// A tool's parameters are not the schema of an object.
    #[error("{at}.input_schema: the parameters of \"{name}\" need \"type\": \"object\"")]
    ToolSchema {
        /// The tool.
        at: At,
        /// Its name.
        name: String,
    },

    /// There are no messages.
    #[error("messages: at least one message is required")]
    NoMessages,
    /// The conversation begins with the model.
    #[error("messages.0: the first message must use the \"user\" role")]
    FirstNotUser,
    /// A message says nothing.
    #[error("{at}: all messages must have non-empty content")]
    EmptyMessage {
        /// The message.
        at: At,
    },
    /// A block stands in a message of the wrong role, or in the system prompt.
    #[error("{at}: {what} blocks can only be in {home}")]
    Misplaced {
        /// The block.
        at: At,
        /// What it is.
        what: &'static str,
        /// Where it may be.
        home: &'static str,
    },
    /// A text block without a character.
    #[error("{at}: text content blocks must be non-empty")]
    EmptyText {
        /// The block.
        at: At,
    },
    /// A text block of nothing but white space.
    #[error("{at}: text content blocks must contain non-whitespace text")]
    BlankText {
        /// The block.
        at: At,
    },
    /// Reasoning that is neither signed nor redacted: no server takes it back.
    #[error(
        "{at}.signature: thinking needs the signature it came with; leave out the block where there is none"
    )]
    Unsigned {
        /// The block.
        at: At,
    },
    /// Nothing follows the reasoning, as after an aborted stream.
    #[error("{at}: an assistant message cannot end with thinking; leave it out or say something after it")]
    EndsInReasoning {
        /// The reasoning block.
        at: At,
    },
    /// A call id has characters that are not allowed.
    #[error("{at}.id: \"{id}\" should match '^[a-zA-Z0-9_-]+$'")]
    CallId {
        /// The call or the result.
        at: At,
        /// The id.
        id: String,
    },
    /// A call has no id.
    #[error("{at}.id: expected an id of at least 1 character, but it is empty")]
    EmptyCallId {
        /// The call or the result.
        at: At,
    },
    /// A call id is longer than the server takes.
    #[error("{at}.id: \"{id}\" is too long; at most {max} characters are accepted")]
    LongCallId {
        /// The call or the result.
        at: At,
        /// The id.
        id: String,
        /// The limit in characters.
        max: usize,
    },
    /// A call's arguments are not an object.
    #[error("{at}.input: the arguments of \"{id}\" should be an object")]
    Arguments {
        /// The call.
        at: At,
        /// Its id.
        id: String,
    },
    /// An image that no provider takes.
    #[error("{at}: {reason}")]
    RefusedImage {
        /// The block that holds it.
        at: At,
        /// Why.
        reason: ImageError,
    },
    /// More images than a request may hold.
    #[error("{at}: at most {max} images may be in a request. Found {found}.")]
    TooManyImages {
        /// The block that holds the first one too many.
        at: At,
        /// How many there are.
        found: usize,
        /// How many there may be.
        max: usize,
    },
    /// Calls or results in a request that declares no tools.
    #[error("{at}: a request with tool_use or tool_result blocks must declare its tools")]
    NoToolsDeclared {
        /// The first such block.
        at: At,
    },

    /// More breakpoints than the provider takes.
    #[error("A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {found}.")]
    TooManyBreakpoints {
        /// The first one too many.
        at: At,
        /// How many there are.
        found: usize,
    },
    /// A long-lived breakpoint comes after a short-lived one.
    #[error(
        "{at}.cache_control.ttl: 1h markers must come before 5m ones, counted through tools, system, messages"
    )]
    BreakpointOrder {
        /// The long-lived one.
        at: At,
    },
    /// A breakpoint on reasoning.
    #[error("{at}.cache_control: thinking blocks cannot be marked; mark the block before or after")]
    BreakpointOnReasoning {
        /// The block.
        at: At,
    },
    /// A breakpoint on text without content.
    #[error("{at}.cache_control: empty text blocks cannot be marked")]
    BreakpointOnEmptyText {
        /// The block.
        at: At,
    },
    /// A breakpoint for a server that understands none.
    #[error("{at}: unknown field for this server: cache markers are not understood")]
    BreakpointUnknown {
        /// The block.
        at: At,
    },

    /// Two calls have one id.
    #[error("{at}: tool_use ids must be unique; \"{id}\" was used before")]
    CallTwice {
        /// The second call.
        at: At,
        /// Their id.
        id: String,
    },
    /// Two results answer one call.
    #[error("{at}: each tool_use has one result; \"{id}\" was answered before")]
    ResultTwice {
        /// The second result.
        at: At,
        /// The call's id.
        id: String,
    },
    /// Anthropic: calls whose results do not stand at the beginning of the next message.
    #[error(
        "{at}: tool_use ids were found without tool_result blocks immediately after: {}. \
         Results come first in the content of the next message.",
        ids.join(", ")
    )]
    Unanswered {
        /// The first of the calls.
        at: At,
        /// The ids of all of them.
        ids: Vec<String>,
    },
    /// Anthropic: a result without its call in the message before.
    #[error("{at}: no tool_use block in the previous message has the tool_use_id of this tool_result: {id}")]
    Orphan {
        /// The result.
        at: At,
        /// The id it names.
        id: String,
    },
    /// OpenAI: calls that no tool message answers before the next message.
    #[error(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
         'tool_call_id'. Not answered at {at}: {}",
        ids.join(", ")
    )]
    NoToolMessage {
        /// The first of the calls.
        at: At,
        /// The ids of all of them.
        ids: Vec<String>,
    },
    /// OpenAI: a tool message that answers nothing.
    #[error(
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. \
         No call at {at}: {id}"
    )]
    StrayToolMessage {
        /// The result.
        at: At,
        /// The id it names.
        id: String,
    },
    /// Thinking is on, and the message that made the open calls does not begin with its reasoning.
    #[error(
        "{at}: with thinking on, the assistant message whose calls are being answered must begin with its \
         thinking block"
    )]
    ReasoningMissing {
        /// The block it begins with.
        at: At,
    },
    /// The conversation ends with the model, and the model may not be led on.
    #[error("{at}: the conversation must end with a user message; this request cannot prefill the answer")]
    Prefill {
        /// The last message.
        at: At,
    },

    /// The body is larger than the server reads.
    #[error("the request is {bytes} bytes; at most {MAX_REQUEST_BYTES} are accepted")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// The prompt is longer than the window.
    #[error("prompt is too long: {tokens} tokens > {max} maximum")]
    TooLong {
        /// Its length.
        tokens: usize,
        /// The window.
        max: usize,
    },
}

impl Violation {
    /// The `type` that Anthropic's error body gives it: 413 for `request_too_large`, else 400.
    pub fn error_type(&self) -> &'static str {
        match self {
            Violation::TooLarge { .. } => "request_too_large",
            _ => "invalid_request_error",
        }
    }
}
