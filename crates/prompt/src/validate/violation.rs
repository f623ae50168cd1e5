//! What can be wrong with a request, in the servers' words where these are known.

use std::fmt;

use thiserror::Error;

use crate::ImageError;

use super::{MAX_BREAKPOINTS, MAX_REQUEST_BYTES, MIN_THINKING_TOKENS};

/// Where in the request body a rule is broken, displayed as the servers do: `messages.3.content.1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    /// A declared tool, by index.
    Tool(usize),
    /// A block of the system prompt, by index.
    System(usize),
    /// A message as a whole, by index.
    Message(usize),
    /// A block of a message.
    Block {
        /// Index of the message, from 0.
        message: usize,
        /// Index of the block within the message, from 0.
        block: usize,
    },
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Location::Tool(tool) => write!(f, "tools.{tool}"),
            Location::System(block) => write!(f, "system.{block}"),
            Location::Message(message) => write!(f, "messages.{message}"),
            Location::Block { message, block } => write!(f, "messages.{message}.content.{block}"),
        }
    }
}

/// A broken rule; every rule has its own variant. The messages follow the servers' own words.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum Violation {
    /// `max_tokens` leaves no room for an answer.
    #[error("max_tokens: must be at least 1")]
    NoRoom,
    /// The thinking budget is under the minimum.
    #[error("thinking.budget_tokens: {budget} is under the minimum of {MIN_THINKING_TOKENS}")]
    ThinkingTooSmall {
        /// The requested budget, in tokens.
        budget: u32,
    },
    /// The thinking budget leaves nothing for the answer.
    #[error("max_tokens: {max_tokens} must be greater than thinking.budget_tokens, which is {budget}")]
    ThinkingOverMax {
        /// The requested budget, in tokens.
        budget: u32,
        /// The limit for the whole answer, reasoning included.
        max_tokens: u32,
    },

    /// A declared or called tool has a name that is not allowed.
    #[error("{at}.name: \"{name}\" should match '^[a-zA-Z0-9_-]{{1,64}}$'")]
    ToolName {
        /// Location of the declaration or the call.
        at: Location,
        /// The name as it was given.
        name: String,
    },
    /// Two declared tools have one name.
    #[error("{at}.name: \"{name}\" is declared twice; tool names must be unique")]
    ToolTwice {
        /// Location of the second declaration.
        at: Location,
        /// The name that both have.
        name: String,
    },
    /// A tool's parameters are not the schema of an object.
    #[error("{at}.input_schema: the parameters of \"{name}\" need \"type\": \"object\"")]
    ToolSchema {
        /// Location of the declaration.
        at: Location,
        /// The name as it was given.
        name: String,
    },

    /// An argument of a tool has a name that is not allowed.
    #[error(
        "{at}.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{{1,64}}$', and \"{name}\" of \"{tool}\" does not"
    )]
    ArgumentName {
        /// Location of the declaration.
        at: Location,
        /// The name of the tool.
        tool: String,
        /// The name as it was given.
        name: String,
    },

    /// The request has no messages.
    #[error("messages: at least one message is required")]
    NoMessages,
    /// The conversation begins with an assistant message.
    #[error("messages.0: the first message must use the \"user\" role")]
    FirstNotUser,
    /// A message has no content that the server would count.
    #[error("{at}: all messages must have non-empty content")]
    EmptyMessage {
        /// Location of the offending message.
        at: Location,
    },
    /// A block is in a message of the wrong role, or in the system prompt.
    #[error("{at}: {what} blocks can only be in {home}")]
    Misplaced {
        /// Location of the offending block.
        at: Location,
        /// The block's type, in the server's words.
        what: &'static str,
        /// The messages that may contain such a block.
        home: &'static str,
    },
    /// A text block whose text is empty.
    #[error("{at}: text content blocks must be non-empty")]
    EmptyText {
        /// Location of the offending block.
        at: Location,
    },
    /// A text block of nothing but white space.
    #[error("{at}: text content blocks must contain non-whitespace text")]
    BlankText {
        /// Location of the offending block.
        at: Location,
    },
    /// Reasoning that is neither signed nor redacted: no server takes it back.
    #[error(
        "{at}.signature: thinking needs the signature it came with; leave out the block where there is none"
    )]
    Unsigned {
        /// Location of the offending block.
        at: Location,
    },
    /// Nothing follows the reasoning, as after an aborted stream.
    #[error("{at}: an assistant message cannot end with thinking; leave it out or say something after it")]
    EndsInReasoning {
        /// Location of the reasoning block.
        at: Location,
    },
    /// A call id has characters that are not allowed.
    #[error("{at}.id: \"{id}\" should match '^[a-zA-Z0-9_-]+$'")]
    CallId {
        /// Location of the call or the result.
        at: Location,
        /// The id as it would be sent.
        id: String,
    },
    /// A call has no id.
    #[error("{at}.id: expected an id of at least 1 character, but it is empty")]
    EmptyCallId {
        /// Location of the call or the result.
        at: Location,
    },
    /// A call id is longer than the server takes.
    #[error("{at}.id: \"{id}\" is too long; at most {max} characters are accepted")]
    LongCallId {
        /// Location of the call or the result.
        at: Location,
        /// The id as it would be sent.
        id: String,
        /// The server's limit, in characters.
        max: usize,
    },
    /// A call's arguments are not an object.
    #[error("{at}.input: the arguments of \"{id}\" should be an object")]
    Arguments {
        /// Location of the call.
        at: Location,
        /// The call's id.
        id: String,
    },
    /// An image that no provider takes.
    #[error("{at}: {reason}")]
    RefusedImage {
        /// Location of the block with the image.
        at: Location,
        /// What is wrong with the image.
        reason: ImageError,
    },
    /// More images than a request may hold.
    #[error("{at}: at most {max} images may be in a request. Found {found}.")]
    TooManyImages {
        /// Location of the first image beyond the limit.
        at: Location,
        /// How many the request has.
        found: usize,
        /// How many the server accepts.
        max: usize,
    },
    /// Calls or results in a request that declares no tools.
    #[error("{at}: a request with tool_use or tool_result blocks must declare its tools")]
    NoToolsDeclared {
        /// Location of the first call or result.
        at: Location,
    },

    /// More breakpoints than the provider takes.
    #[error("A maximum of {MAX_BREAKPOINTS} blocks with cache_control may be provided. Found {found}.")]
    TooManyBreakpoints {
        /// Location of the first breakpoint beyond the limit.
        at: Location,
        /// How many the request has.
        found: usize,
    },
    /// A long-lived breakpoint comes after a short-lived one.
    #[error(
        "{at}.cache_control.ttl: 1h markers must come before 5m ones, counted through tools, system, messages"
    )]
    BreakpointOrder {
        /// Location of the one-hour breakpoint.
        at: Location,
    },
    /// A breakpoint on a reasoning block.
    #[error("{at}.cache_control: thinking blocks cannot be marked; mark the block before or after")]
    BreakpointOnReasoning {
        /// Location of the offending block.
        at: Location,
    },
    /// A breakpoint on text without content.
    #[error("{at}.cache_control: empty text blocks cannot be marked")]
    BreakpointOnEmptyText {
        /// Location of the offending block.
        at: Location,
    },
    /// A breakpoint for a server that understands none.
    #[error("{at}: unknown field for this server: cache markers are not understood")]
    BreakpointUnknown {
        /// Location of the offending block.
        at: Location,
    },

    /// Two calls have the same id.
    #[error("{at}: tool_use ids must be unique; \"{id}\" was used before")]
    CallTwice {
        /// Location of the second call.
        at: Location,
        /// The id that both have.
        id: String,
    },
    /// Two results answer the same call.
    #[error("{at}: each tool_use has one result; \"{id}\" was answered before")]
    ResultTwice {
        /// Location of the second result.
        at: Location,
        /// Id of the call that was answered before.
        id: String,
    },
    /// Anthropic: calls whose results do not stand at the beginning of the next message.
    #[error(
        "{at}: tool_use ids were found without tool_result blocks immediately after: {}. \
         Results come first in the content of the next message.",
        ids.join(", ")
    )]
    Unanswered {
        /// Location of the first of these calls.
        at: Location,
        /// The ids of all calls without a result.
        ids: Vec<String>,
    },
    /// Anthropic: a result without its call in the message before.
    #[error("{at}: no tool_use block in the previous message has the tool_use_id of this tool_result: {id}")]
    Orphan {
        /// Location of the result.
        at: Location,
        /// The call id that the result names.
        id: String,
    },
    /// OpenAI: calls that no tool message answers before the next message.
    #[error(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each \
         'tool_call_id'. Not answered at {at}: {}",
        ids.join(", ")
    )]
    NoToolMessage {
        /// Location of the first of these calls.
        at: Location,
        /// The ids of all calls without a result.
        ids: Vec<String>,
    },
    /// OpenAI: a tool message that answers nothing.
    #[error(
        "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. \
         No call at {at}: {id}"
    )]
    StrayToolMessage {
        /// Location of the result.
        at: Location,
        /// The call id that the result names.
        id: String,
    },
    /// Gemini: the message after calls does not answer each of them once.
    #[error(
        "Please ensure that the number of function response parts is equal to the number of function call \
         parts of the function call turn."
    )]
    ResponseCount {
        /// Location of the message with the calls, or with results that answer nothing.
        at: Location,
    },
    /// Gemini: a message with calls does not follow a message of the user.
    #[error(
        "Please ensure that function call turn comes immediately after a user turn or after a function \
         response turn."
    )]
    CallNotAfterUser {
        /// Location of the message with the calls.
        at: Location,
    },
    /// OpenAI Responses: a call without its output.
    #[error("No tool output found for function call {id}.")]
    NoToolOutput {
        /// Location of the call.
        at: Location,
        /// The call's id.
        id: String,
    },
    /// OpenAI Responses: an output without its call before it.
    #[error("No tool call found for function call output with call_id {id}.")]
    NoToolCall {
        /// Location of the output.
        at: Location,
        /// The call id that the output names.
        id: String,
    },
    /// Thinking is on, and the message that made the open calls does not begin with its reasoning.
    #[error(
        "{at}: with thinking on, the assistant message whose calls are being answered must begin with its \
         thinking block"
    )]
    ReasoningMissing {
        /// Location of the message's first block.
        at: Location,
    },
    /// The conversation ends with an assistant message, and the model accepts no prefill.
    #[error("{at}: the conversation must end with a user message; this request cannot prefill the answer")]
    Prefill {
        /// Location of the last message.
        at: Location,
    },

    /// A system message for a model that takes none.
    #[error("{at}: role 'system' is not supported on this model")]
    SystemMessage {
        /// Location of the system message.
        at: Location,
    },
    /// A system message before anybody has spoken.
    #[error(
        "{at}: use the top-level 'system' parameter for the initial system prompt; a system message must \
         follow a user message"
    )]
    SystemMessageFirst {
        /// Location of the system message.
        at: Location,
    },
    /// A system message right after an answer of the model, whose calls may still be open.
    #[error("{at}: a system message must follow a user message or a server tool result")]
    SystemMessageAfterAnswer {
        /// Location of the system message.
        at: Location,
    },
    /// A user message comes after a system message.
    #[error("{at}: a system message must be the last message or be followed by an assistant message")]
    SystemMessageBeforeUser {
        /// Location of the system message.
        at: Location,
    },
    /// A turn-scoped system message with more than text.
    #[error("{at}.{what}: not permitted on a system message with clear_at")]
    TurnScoped {
        /// Location of the system message.
        at: Location,
        /// The field that such a message cannot have.
        what: &'static str,
    },
    /// A tool comes or goes in the middle of a conversation, and the server knows nothing of that.
    #[error("{at}: unknown content for this server: tools cannot change within a conversation")]
    ToolChange {
        /// Location of the change.
        at: Location,
    },
    /// A tool comes back or goes that is not defined there.
    #[error("{at}: Tool reference '{name}' not found in available tools")]
    ToolReference {
        /// Location of the change.
        at: Location,
        /// The name that it refers to.
        name: String,
    },

    /// The request body is larger than the server reads.
    #[error("the request is {bytes} bytes; at most {MAX_REQUEST_BYTES} are accepted")]
    TooLarge {
        /// Size of the body.
        bytes: usize,
    },
    /// The prompt does not fit into the model's window.
    #[error("prompt is too long: {tokens} tokens > {max} maximum")]
    TooLong {
        /// Length of the prompt.
        tokens: usize,
        /// Size of the window, in tokens.
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
