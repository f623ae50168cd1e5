//! Whether the simulated model thinks before it answers, how long, and what of it is shown.

use hardpan_models::{Model, ThinkingOff};
use hardpan_prompt::{Block, Content, Effort, Prompt, PromptMessage, Role, Thinking};
use hardpan_providers::decode::{DecodedRequest, ThinkingDisplay};

use crate::tool_choice::ToolChoice;

/// Whether the model thinks before its answer to this request.
pub fn thinks(decoded: &DecodedRequest, model: &Model, choice: &ToolChoice) -> bool {
    let prompt = &decoded.prompt;
    let always = model.thinking.off == ThinkingOff::Never;
    let is_on = match prompt.thinking {
        Thinking::Adaptive | Thinking::Budget(_) => true,
        Thinking::BetweenTools => is_in_tool_round(prompt),
        Thinking::Disabled => false,
        Thinking::Unspecified => model.thinking.by_default || always,
    };
    if !is_on || !model.reasoning {
        return false;
    }
    // A forced call comes at once; a tool round that began without thinking goes on without.
    always || !(choice.is_forced() || (is_in_tool_round(prompt) && !round_has_thinking(prompt)))
}

/// Whether the model cannot leave out its thinking: it always thinks, or the request gives a budget.
pub fn must_think(decoded: &DecodedRequest, model: &Model) -> bool {
    model.thinking.off == ThinkingOff::Never || decoded.prompt.thinking.budget().is_some()
}

/// Whether the thinking of an answer goes out with its text.
pub fn is_shown(decoded: &DecodedRequest, model: &Model) -> bool {
    match decoded.anthropic.display {
        Some(ThinkingDisplay::Omitted) => false,
        Some(ThinkingDisplay::Summarized | ThinkingDisplay::Updates) => true,
        None => !model.thinking.hidden_by_default,
    }
}

/// Thinking for an answer whose script has none: the more effort, the longer.
pub fn made_up_thinking(decoded: &DecodedRequest, model: &Model) -> String {
    const STEPS: [&str; 8] = [
        "I consider the request and what is known so far.",
        "The last message says what is wanted.",
        "What was said before still holds.",
        "Nothing speaks against the obvious next step.",
        "I compare it with another way and prefer the first.",
        "I check the details once more.",
        "The risk is small.",
        "I am sure enough to answer.",
    ];
    let steps = match effort(&decoded.prompt, model) {
        None | Some(Effort::None | Effort::Minimal | Effort::Low) => 1,
        Some(Effort::Medium) => 2,
        Some(Effort::High) => 3,
        Some(Effort::XHigh) => 5,
        Some(Effort::Max) => STEPS.len(),
    };
    STEPS[..steps].join(" ")
}

/// The effort of the answer: that of the last system message before the last user message, else the
/// request's, else the model's own.
fn effort(prompt: &Prompt, model: &Model) -> Option<Effort> {
    let last_user = prompt.messages.iter().rposition(|message| message.role == Role::User).unwrap_or(0);
    let told = prompt.messages[..last_user].iter().rev().find_map(|message| message.effort);
    told.or(prompt.effort).or(model.thinking.default_effort)
}

fn has_results(message: &PromptMessage) -> bool {
    message.blocks.iter().any(|block| matches!(*block.content, Content::Result(_)))
}

/// Whether tool results are the last thing that was said.
pub fn is_in_tool_round(prompt: &Prompt) -> bool {
    let mut last = prompt.messages.iter().rev().take_while(|message| message.role != Role::Assistant);
    last.any(has_results)
}

/// Whether the model has thought since the last user message that is no tool result.
fn round_has_thinking(prompt: &Prompt) -> bool {
    let is_person = |message: &PromptMessage| message.role == Role::User && !has_results(message);
    let start = prompt.messages.iter().rposition(is_person).map_or(0, |person| person + 1);
    let is_thinking = |block: &Block| matches!(*block.content, Content::Reasoning(_));
    prompt.messages[start..].iter().flat_map(|message| &message.blocks).any(is_thinking)
}
