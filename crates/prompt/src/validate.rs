//! The providers' rules, each with its own error.
//!
//! A server refuses a whole request for one broken rule, so every request is checked here before it is sent, and the
//! simulator checks with the same code what it receives. Where the server's words for a refusal are known, the
//! [`Violation`] has them.
//!
//! ```
//! use hardpan_prompt::validate::{Rules, validate};
//! use hardpan_prompt::{Block, Kind, Origin, Place, Prompt, Role, Text, Turn};
//!
//! let say = |text| Block::text(Place::Log, Text::new(text), Origin::rule(Kind::History, "example"));
//! let mut prompt = Prompt { max_tokens: 1024, ..Prompt::default() };
//! prompt.turns.push(Turn::new(Role::User, vec![say("Hello!"), say("")]));
//!
//! let refusal = validate(&prompt, &Rules::anthropic()).unwrap_err();
//! assert_eq!(refusal.to_string(), "messages.0.content.1: text content blocks must be non-empty");
//! assert!(validate(&prompt, &Rules::openai()).is_ok());
//! ```

mod content; // numbers, tools, blocks: what can be seen by looking at one thing
mod markers; // breakpoints
mod rounds; // calls and results, who begins and who ends
mod violation; // Violation, At

#[cfg(test)]
mod tests;

pub use violation::{At, Violation};

use crate::{Block, Prompt};

/// The most breakpoints in a request, tools included; also what OpenAI writes per request.
pub const MAX_BREAKPOINTS: usize = 4;
/// The largest request body that Anthropic reads (32 MB).
pub const MAX_REQUEST_BYTES: usize = 32 * 1024 * 1024;
/// The smallest thinking budget in tokens (Anthropic's).
pub const MIN_THINKING: u32 = 1024;

/// Whose message rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI Chat Completions, and those that speak it.
    OpenAi,
}

/// Whether a server takes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stance {
    /// It does.
    Accepts,
    /// It answers with an error.
    Refuses,
}

/// What a server and its model hold a request to. Start from [`Rules::anthropic`] or [`Rules::openai`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Whose message rules apply.
    pub protocol: Protocol,
    /// A conversation that ends with an assistant message.
    pub prefill: Stance,
    /// Cache breakpoints.
    pub breakpoints: Stance,
    /// Calls and results in a request that declares no tools.
    pub undeclared_tools: Stance,
    /// A request for no answer at all (`max_tokens: 0`), which warms Anthropic's cache; never with a stream.
    pub warming: Stance,
    /// The most images in a request.
    pub max_images: usize,
    /// The longest call id in characters, if there is a limit.
    pub max_call_id: Option<usize>,
}

impl Rules {
    /// Anthropic's newest models, which are the strictest.
    pub fn anthropic() -> Self {
        Rules {
            protocol: Protocol::Anthropic,
            prefill: Stance::Refuses,
            breakpoints: Stance::Accepts,
            undeclared_tools: Stance::Refuses,
            warming: Stance::Refuses,
            max_images: 100,
            max_call_id: None,
        }
    }

    /// OpenAI's models without explicit breakpoints, and the servers that are like it.
    pub fn openai() -> Self {
        Rules {
            protocol: Protocol::OpenAi,
            prefill: Stance::Accepts,
            breakpoints: Stance::Refuses,
            undeclared_tools: Stance::Accepts,
            warming: Stance::Refuses,
            max_images: 100,
            // From error reports; some models have since been seen to take more.
            max_call_id: Some(40),
        }
    }
}

/// The first rule that `prompt` breaks, in the order of [`violations`].
pub fn validate(prompt: &Prompt, rules: &Rules) -> Result<(), Violation> {
    violations(prompt, rules).into_iter().next().map_or(Ok(()), Err)
}

/// Every rule that `prompt` breaks. First what a server sees when it reads the body, from tools through system to
/// messages; then what it sees when it looks at the whole.
pub fn violations(prompt: &Prompt, rules: &Rules) -> Vec<Violation> {
    let mut found = Vec::new();
    content::check_numbers(prompt, rules, &mut found);
    content::check_tools(prompt, rules, &mut found);
    content::check_blocks(prompt, rules, &mut found);
    content::check_image_count(prompt, rules, &mut found);
    markers::check(prompt, rules, &mut found);
    content::check_declared(prompt, rules, &mut found);
    rounds::check(prompt, rules, &mut found);
    found
}

/// Refuses a request body that is larger than the server reads.
pub fn check_size(bytes: usize) -> Result<(), Violation> {
    if bytes > MAX_REQUEST_BYTES { Err(Violation::TooLarge { bytes }) } else { Ok(()) }
}

/// Refuses a prompt that is longer than the model's window.
pub fn check_window(tokens: usize, max: usize) -> Result<(), Violation> {
    if tokens > max { Err(Violation::TooLong { tokens, max }) } else { Ok(()) }
}

/// The blocks of system and messages, each with where it is.
fn blocks(prompt: &Prompt) -> impl Iterator<Item = (At, &Block)> {
    let system = prompt.system.iter().enumerate().map(|(block, b)| (At::System(block), b));
    let turns = prompt.turns.iter().enumerate().flat_map(|(message, turn)| {
        turn.blocks.iter().enumerate().map(move |(block, b)| (At::Block { message, block }, b))
    });
    system.chain(turns)
}
