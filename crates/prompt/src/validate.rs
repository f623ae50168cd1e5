//! The providers' rules for requests, each with its own error.
//!
//! A server rejects a whole request for one broken rule. So [`validate`] checks every request
//! before it is sent, and the simulator checks the requests it receives with the same code. Where a
//! server's own words for a rejection are known, the [`Violation`] uses them.
//!
//! ```
//! use hardpan_prompt::validate::{ValidationRules, validate};
//! use hardpan_prompt::{Block, ItemKind, Origin, Prompt, PromptMessage, Region, Role, Text};
//!
//! let say = |text| Block::text(Region::Log, Text::new(text), Origin::rule(ItemKind::History, "example"));
//! let mut prompt = Prompt { max_tokens: 1024, ..Prompt::default() };
//! prompt.messages.push(PromptMessage::new(Role::User, vec![say("Hello!"), say("")]));
//!
//! let refusal = validate(&prompt, &ValidationRules::anthropic()).unwrap_err();
//! assert_eq!(refusal.to_string(), "messages.0.content.1: text content blocks must be non-empty");
//! assert!(validate(&prompt, &ValidationRules::openai()).is_ok());
//! ```

mod breakpoints; // number, order and position of cache breakpoints
mod content; // limits, tools, blocks: what one thing by itself can violate
mod conversation; // calls and results, who begins and who ends
mod system_messages; // where system messages may stand
mod tool_changes; // tools that come and go
mod violation; // Violation, Location

#[cfg(test)]
mod tests;

pub use violation::{Location, Violation};

use crate::{Block, Prompt};

/// The most breakpoints in a request, tools included; also what OpenAI writes per request.
pub const MAX_BREAKPOINTS: usize = 4;
/// The largest request body that Anthropic reads (32 MB).
pub const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;
/// The smallest thinking budget in tokens (Anthropic's).
pub const MIN_THINKING_TOKENS: u32 = 1024;

/// The form in which a server reads a conversation. It decides which rules apply, and in which words
/// a violation is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageForm {
    /// Calls, results and reasoning are blocks of messages; neighbouring messages of one role are
    /// one; reasoning is signed (Anthropic Messages).
    Blocks,
    /// Results are messages of their own, before the rest of theirs; reasoning is text (OpenAI Chat
    /// Completions, and the many servers that speak it).
    ToolMessages,
    /// Calls and results are parts of messages, which alternate: a message with calls follows the
    /// user's, and the next message answers all of them (Gemini).
    Parts,
    /// Calls, results and reasoning are items of one list; a result may stand anywhere after its
    /// call; reasoning is encrypted (OpenAI Responses).
    Items,
}

/// Whether a server accepts something that not all servers accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// The server takes it.
    Accepted,
    /// The server answers with an error, so the request must not contain it.
    Rejected,
}

/// The rules that a server and its model impose on a request. Start from
/// [`ValidationRules::anthropic`], [`ValidationRules::openai`],
/// [`ValidationRules::openai_responses`] or [`ValidationRules::gemini`] and change what differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationRules {
    /// How the server reads the conversation.
    pub form: MessageForm,
    /// A conversation that ends with an assistant message.
    pub prefill: Acceptance,
    /// System messages inside the conversation.
    pub system_messages: Acceptance,
    /// Explicit cache breakpoints.
    pub breakpoints: Acceptance,
    /// The most breakpoints in a request. `None`: more than are written is no error.
    pub max_breakpoints: Option<usize>,
    /// Calls and results in a request that declares no tools.
    pub undeclared_tools: Acceptance,
    /// A request without an answer (`max_tokens: 0`), which warms Anthropic's cache; never with a
    /// stream.
    pub warming: Acceptance,
    /// The most images in a request, those in tool results included.
    pub max_images: usize,
    /// The longest call id in characters. `None`: no limit is known.
    pub max_call_id: Option<usize>,
}

impl Acceptance {
    /// [`Accepted`](Self::Accepted) if `accepted` is true.
    pub fn from_flag(accepted: bool) -> Self {
        if accepted { Acceptance::Accepted } else { Acceptance::Rejected }
    }
}

impl ValidationRules {
    /// The rules of Anthropic's newest models, which are the strictest.
    pub fn anthropic() -> Self {
        ValidationRules {
            form: MessageForm::Blocks,
            prefill: Acceptance::Rejected,
            system_messages: Acceptance::Rejected,
            breakpoints: Acceptance::Accepted,
            max_breakpoints: Some(MAX_BREAKPOINTS),
            undeclared_tools: Acceptance::Rejected,
            warming: Acceptance::Rejected,
            max_images: 100,
            max_call_id: None,
        }
    }

    /// The rules of OpenAI's models without explicit breakpoints, and of servers like OpenAI's.
    pub fn openai() -> Self {
        ValidationRules {
            form: MessageForm::ToolMessages,
            prefill: Acceptance::Accepted,
            system_messages: Acceptance::Accepted,
            breakpoints: Acceptance::Rejected,
            max_breakpoints: Some(MAX_BREAKPOINTS),
            undeclared_tools: Acceptance::Accepted,
            warming: Acceptance::Rejected,
            max_images: 100,
            // From error reports; some models have since been seen to take more.
            max_call_id: Some(40),
        }
    }

    /// The rules of Gemini's own protocol.
    pub fn gemini() -> Self {
        ValidationRules {
            form: MessageForm::Parts,
            prefill: Acceptance::Accepted,
            system_messages: Acceptance::Rejected,
            breakpoints: Acceptance::Rejected,
            max_breakpoints: Some(MAX_BREAKPOINTS),
            undeclared_tools: Acceptance::Accepted,
            warming: Acceptance::Rejected,
            max_images: 100,
            max_call_id: None,
        }
    }

    /// The rules of OpenAI's Responses API for models without explicit breakpoints.
    pub fn openai_responses() -> Self {
        ValidationRules { form: MessageForm::Items, max_call_id: Some(64), ..ValidationRules::openai() }
    }
}

/// Checks a prompt before it is sent. The error is the first entry of [`find_violations`].
pub fn validate(prompt: &Prompt, rules: &ValidationRules) -> Result<(), Violation> {
    find_violations(prompt, rules).into_iter().next().map_or(Ok(()), Err)
}

/// Lists every rule that `prompt` breaks: first those that a server notices while it reads the
/// body, from tools through system prompt to messages, then those that concern the request as a
/// whole.
pub fn find_violations(prompt: &Prompt, rules: &ValidationRules) -> Vec<Violation> {
    let mut found = Vec::new();
    content::check_numbers(prompt, rules, &mut found);
    content::check_tools(prompt, rules, &mut found);
    content::check_blocks(prompt, rules, &mut found);
    content::check_image_count(prompt, rules, &mut found);
    breakpoints::check_breakpoints(prompt, rules, &mut found);
    content::check_tools_declared(prompt, rules, &mut found);
    system_messages::check_system_messages(prompt, rules, &mut found);
    tool_changes::check_tool_changes(prompt, rules, &mut found);
    conversation::check_conversation(prompt, rules, &mut found);
    found
}

/// Rejects a request body that is larger than the server reads.
pub fn check_size(bytes: usize) -> Result<(), Violation> {
    if bytes > MAX_REQUEST_BYTES { Err(Violation::TooLarge { bytes }) } else { Ok(()) }
}

/// Rejects a prompt that does not fit into the model's window.
pub fn check_window(tokens: usize, max: usize) -> Result<(), Violation> {
    if tokens > max { Err(Violation::TooLong { tokens, max }) } else { Ok(()) }
}

/// The blocks of system prompt and messages, each with its location.
fn located_blocks(prompt: &Prompt) -> impl Iterator<Item = (Location, &Block)> {
    let system = prompt.system.iter().enumerate().map(|(block, b)| (Location::System(block), b));
    let turns = prompt.messages.iter().enumerate().flat_map(|(message, turn)| {
        turn.blocks.iter().enumerate().map(move |(block, b)| (Location::Block { message, block }, b))
    });
    system.chain(turns)
}
