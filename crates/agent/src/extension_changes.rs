//! What extensions change in a request: remembered from one request to the next, so that a loss of cached
//! tokens can be put down to the extension that caused it.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_economy::{Cause, Verdict};
use hardpan_prompt::{AgentMessage, Hash, MessageId};
use serde_json::{Value, json};

/// What a handler changed in one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ExtensionChange {
    /// Who the handler belongs to.
    pub extension: Arc<str>,
    pub change: Change,
}

impl ExtensionChange {
    /// Whether it changed or added this message.
    pub fn touches(&self, message: &MessageId) -> bool {
        matches!(&self.change, Change::Messages(changed) if changed.contains_key(message))
    }
}

/// A change, and what tells it from another one at the same place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// The system prompt, with this put into it.
    System(Hash),
    /// Messages: those that it changed, added or took out.
    Messages(BTreeMap<MessageId, Hash>),
    /// The body of the request.
    Payload,
}

impl Change {
    /// A system prompt that was changed from `before` to `after`.
    pub fn of_system(before: &str, after: &str) -> Self {
        let same_start = before.bytes().zip(after.bytes()).take_while(|(a, b)| a == b).count();
        let (before, after) = (&before.as_bytes()[same_start..], &after.as_bytes()[same_start..]);
        let same_end = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
        Change::System(Hash::of(&after[..after.len() - same_end]))
    }

    /// Messages that were changed from `before` to `after`; `None` if they are the same.
    pub fn of_messages(before: &[AgentMessage], after: &[AgentMessage]) -> Option<Self> {
        let mut known: BTreeMap<&MessageId, &AgentMessage> =
            before.iter().map(|message| (&message.id, message)).collect();
        let mut changed = BTreeMap::new();
        for message in after {
            let is_same = known
                .remove(&message.id)
                .is_some_and(|known| Arc::ptr_eq(&known.body, &message.body) || known.body == message.body);
            if !is_same {
                let body = serde_json::to_vec(&*message.body).unwrap_or_default();
                changed.insert(message.id.clone(), Hash::of(&body));
            }
        }
        changed.extend(known.into_keys().map(|removed| (removed.clone(), Hash::of(b""))));
        (!changed.is_empty()).then_some(Change::Messages(changed))
    }
}

/// The extension that a loss is due to, if one changed the request differently from the one before.
pub(crate) fn culprit(
    verdict: &Verdict,
    before: &[ExtensionChange],
    now: &[ExtensionChange],
) -> Option<Arc<str>> {
    let is_new = |change: &&ExtensionChange, other: &[ExtensionChange]| !other.contains(change);
    let added = now.iter().filter(|change| is_new(change, before));
    let dropped = before.iter().filter(|change| is_new(change, now));
    let mut differing = added.chain(dropped);
    let found = match &verdict.cause {
        Cause::SystemChanged(_) => differing.find(|change| matches!(change.change, Change::System(_))),
        Cause::MessageChanged { .. } | Cause::LayoutChanged(_) | Cause::Folded => {
            differing.find(|change| matches!(change.change, Change::Messages(_)))
        }
        // The change is the same kind of change before and after a resume.
        Cause::Resumed if is_in_system(verdict) => {
            differing.find(|change| matches!(change.change, Change::System(_)))
        }
        _ => None,
    };
    // A body of its own explains any difference.
    let payload = || now.iter().chain(before).find(|change| change.change == Change::Payload);
    let is_difference = matches!(
        verdict.cause,
        Cause::SystemChanged(_)
            | Cause::MessageChanged { .. }
            | Cause::LayoutChanged(_)
            | Cause::ItemChanged { .. }
            | Cause::ToolsChanged { .. }
            | Cause::Unmarked
            | Cause::SettingChanged(_)
            | Cause::ThinkingChanged
            | Cause::EffortChanged
    );
    found.or_else(|| payload().filter(|_| is_difference)).map(|change| change.extension.clone())
}

fn is_in_system(verdict: &Verdict) -> bool {
    verdict.first_difference.as_ref().is_some_and(|difference| difference.address.starts_with("system"))
}

/// What extensions put into the system prompt of a request, for its record: a process that resumes the session
/// compares its first request with it. None if nothing was put there.
pub(crate) fn stored_system_changes(changes: &[ExtensionChange]) -> Option<Value> {
    let in_system = changes.iter().filter_map(|change| match change.change {
        Change::System(hash) => Some(json!({"extension": change.extension, "hash": hash})),
        _ => None,
    });
    let stored: Vec<Value> = in_system.collect();
    (!stored.is_empty()).then_some(Value::Array(stored))
}

/// The changes that a record stores.
pub(crate) fn read_system_changes(stored: &Value) -> Vec<ExtensionChange> {
    let read = |stored: &Value| {
        let extension = stored["extension"].as_str()?.into();
        let hash = serde_json::from_value(stored["hash"].clone()).ok()?;
        Some(ExtensionChange { extension, change: Change::System(hash) })
    };
    stored.as_array().into_iter().flatten().filter_map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_addition_to_another_prompt_is_the_same_change() {
        let date =
            |prompt: &str, date: &str| Change::of_system(prompt, &format!("{prompt} Today is {date}."));
        assert_eq!(date("You help.", "Monday"), date("You help people.", "Monday"));
        assert_ne!(date("You help.", "Monday"), date("You help.", "Tuesday"));
    }
}
