//! A change of effort that keeps the cache: on models that take it, an empty system message before
//! the person's message sets the effort from there on, and the request's own effort stays what it
//! was when BASE was laid.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{Effort, MessageId, Prompt, PromptMessage, Role};

use super::state::{EffortChange, StrataState};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;

/// Decides how the asked effort is told, and notes a change in `strata`. Sets the effort of the
/// request itself.
pub fn settle_effort(
    input: &LayoutInput<'_>,
    strata: &mut StrataState,
    history: &[Arc<ConvertedMessage>],
    prompt: &mut Prompt,
) {
    let asked = prompt.effort.filter(|_| input.target.model.message_effort && prompt.thinking.is_on());
    let Some(asked) = asked else {
        (strata.first_effort, strata.effort_changes) = (None, Vec::new());
        return;
    };
    drop_lost_changes(strata, history);
    let Some(first) = strata.first_effort else {
        strata.first_effort = Some(asked);
        return;
    };
    // A change takes effect with the person's next message.
    let in_force = strata.effort_changes.last().map_or(first, |change| change.effort);
    if let Some(new) = input.snapshot.new_input().filter(|_| asked != in_force) {
        strata.effort_changes.push(EffortChange { before: new.clone(), effort: asked });
    }
    prompt.effort = Some(first);
}

/// Drops changes whose message is no longer part of the conversation.
fn drop_lost_changes(strata: &mut StrataState, history: &[Arc<ConvertedMessage>]) {
    if strata.effort_changes.is_empty() {
        return;
    }
    let sent: BTreeSet<&MessageId> = history.iter().flat_map(|converted| &converted.ids).collect();
    strata.effort_changes.retain(|change| sent.contains(&change.before));
}

/// The message that sets the effort before one of these messages of the person, if it changes there.
pub fn effort_message<'a>(
    strata: &StrataState,
    ids: impl IntoIterator<Item = &'a MessageId>,
) -> Option<PromptMessage> {
    if strata.effort_changes.is_empty() {
        return None;
    }
    let mut ids = ids.into_iter();
    let change = ids.find_map(|id| strata.effort_changes.iter().find(|change| change.before == *id))?;
    Some(setting_effort(change.effort))
}

fn setting_effort(effort: Effort) -> PromptMessage {
    PromptMessage { effort: Some(effort), ..PromptMessage::new(Role::System, Vec::new()) }
}
