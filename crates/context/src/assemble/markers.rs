//! Breakpoints in the form that the provider takes.

use hardpan_models::MarkerFormat;
use hardpan_prompt::{Prompt, PromptTokens, Role};

/// Removes breakpoints that the provider does not understand, and moves those that it takes
/// elsewhere.
pub fn adapt_breakpoints(prompt: &mut Prompt, format: MarkerFormat) {
    match format {
        MarkerFormat::None => {
            prompt.tools.iter_mut().for_each(|tool| tool.breakpoint = None);
            prompt.blocks_mut().for_each(|block| block.breakpoint = None);
        }
        MarkerFormat::PromptCacheBreakpoint => move_breakpoints_to_input(prompt),
        MarkerFormat::CacheControl => {}
    }
}

/// Removes breakpoints under the provider's minimum: the final form may be smaller than the prompt
/// that the layout measured.
pub fn remove_small_breakpoints(prompt: &mut Prompt, measured: &PromptTokens, minimum: usize) {
    let offset = prompt.tools.len();
    for (index, block) in prompt.blocks_mut().enumerate() {
        block.breakpoint = block.breakpoint.filter(|_| measured.tokens_through(index + offset) >= minimum);
    }
}

/// OpenAI takes markers on input only: a breakpoint on a message of the model moves back to the
/// last block before it that can hold one.
fn move_breakpoints_to_input(prompt: &mut Prompt) {
    let mut wanted = None;
    for message in prompt.messages.iter_mut().rev() {
        for block in message.blocks.iter_mut().rev() {
            if message.role == Role::Assistant {
                wanted = block.breakpoint.take().or(wanted);
            } else if wanted.is_some() && block.can_hold_breakpoint() {
                block.breakpoint = block.breakpoint.or(wanted);
                wanted = None;
            }
        }
    }
    if let (Some(lifetime), Some(block)) = (wanted, prompt.system.last_mut()) {
        block.breakpoint = block.breakpoint.or(Some(lifetime));
    }
}
