//! Rules about system messages inside the conversation: which models take them, and where.

use crate::{Block, Content, Prompt, PromptMessage, Role};

use super::{Acceptance, Location, MessageForm, ValidationRules, Violation};

/// Checks that every system message follows a user message, and that a message of the model or
/// nothing comes after it. Neighbours count as one; a message that only sets the effort may stand
/// anywhere. OpenAI has no such rules.
pub(super) fn check_system_messages(prompt: &Prompt, rules: &ValidationRules, found: &mut Vec<Violation>) {
    if matches!(rules.form, MessageForm::ToolMessages | MessageForm::Items) {
        return;
    }
    for (index, message) in prompt.messages.iter().enumerate() {
        if message.role != Role::System {
            continue;
        }
        let at = Location::Message(index);
        if rules.system_messages == Acceptance::Rejected {
            found.push(Violation::SystemMessage { at });
        } else if !message.only_sets_effort() {
            found.extend(misplaced(prompt, index, at));
        }
        if message.turn_scoped {
            found.extend(not_turn_scoped(message, at));
        }
    }
}

fn misplaced(prompt: &Prompt, index: usize, at: Location) -> Option<Violation> {
    let is_spoken = |message: &&PromptMessage| message.role != Role::System;
    let (before, after) = prompt.messages.split_at(index);
    match before.iter().rfind(is_spoken) {
        None => return Some(Violation::SystemMessageFirst { at }),
        Some(before) if before.role == Role::Assistant => {
            return Some(Violation::SystemMessageAfterAnswer { at });
        }
        Some(_) => {}
    }
    let next = after.iter().find(is_spoken)?;
    (next.role == Role::User).then_some(Violation::SystemMessageBeforeUser { at })
}

fn is_tool_change(block: &Block) -> bool {
    matches!(*block.content, Content::ToolChange(_))
}

fn not_turn_scoped(message: &PromptMessage, at: Location) -> Option<Violation> {
    let what = match message {
        _ if message.effort.is_some() => "output_config",
        _ if message.blocks.iter().any(is_tool_change) => "content",
        _ if message.blocks.iter().any(|block| block.breakpoint.is_some()) => "cache_control",
        _ => return None,
    };
    Some(Violation::TurnScoped { at, what })
}
