//! [`RunContext`]: what stands before the conversation, kept as it was when the run began.
//!
//! A change before the conversation would lose the cache of all of it. So within a run the items stay as
//! they were, and what has changed since is shown once more at the end of the last message, after the
//! last breakpoint ([`push_closing_block`]), together with the date and the working directory.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Block, Content, Hash, Item, ItemCopy, ItemKind, MessageBody, MessagePart, Omission,
    OmissionReason, Origin, Prompt, Region, Segment, Text,
};
use serde::{Deserialize, Serialize};
use similar::TextDiff;

use crate::Snapshot;
use crate::layout::LayoutInput;
use crate::texts::fill_template;
use crate::time::format_utc;

/// How many unchanged lines a diff shows around a change.
const DIFF_CONTEXT: usize = 2;

/// From how long after the run's beginning on new input counts as a new run, whatever came before it:
/// by then the provider has forgotten what nobody read.
const LIFETIME_MS: i64 = 300_000;

/// The items as the first request of the run showed them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunContext {
    /// When the run began, in milliseconds since 1970; `None` before the first request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub began_at_ms: Option<i64>,
    /// The bodies by the key of their item.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    items: BTreeMap<Arc<str>, Text>,
    /// Identifies the changed items as they were last shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    shown_changes: Option<Hash>,
}

/// How a [`RunContext`] differs from an earlier one, for the session file.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RunContextChange {
    began_at_ms: Option<i64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    set: BTreeMap<Arc<str>, Text>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    gone: BTreeSet<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shown_changes: Option<Hash>,
}

/// The items of a snapshot, divided by where a request shows them.
#[derive(Default)]
pub struct RunItems {
    /// What stands before the conversation, in the order of the snapshot.
    pub before: Vec<Item>,
    /// The keys of those whose body is no longer current.
    pub outdated: BTreeSet<Arc<str>>,
    /// What has changed since the run began, and is to be shown in this request.
    pub changed: Vec<ChangedItem>,
    /// What has changed since the run began, but was shown already.
    pub left_out: Vec<Omission>,
}

/// An item that has changed since the run began, or is new.
pub struct ChangedItem {
    /// The item as it is now.
    pub item: Item,
    /// What stands before the conversation; `None` for a new item.
    former: Option<Text>,
}

impl ChangedItem {
    /// The change as a diff; `None` if the whole body is shorter, or there is no former one.
    pub fn diff_segment(&self, input: &LayoutInput<'_>) -> Option<Segment> {
        let former = self.former.as_ref()?;
        let diff = TextDiff::from_lines(former.as_str(), self.item.body.as_str())
            .unified_diff()
            .context_radius(DIFF_CONTEXT)
            .to_string();
        let text = fill_template(
            &input.texts.phrases.history.changed,
            &[("name", &self.item.title), ("diff", &diff)],
        );
        let origin = Origin::item(self.item.kind, &self.item.key, ItemCopy::Update);
        (text.len() < self.item.body.len()).then(|| Segment::new(text, origin))
    }
}

impl RunItems {
    /// How the copy of an item before the conversation is marked.
    pub fn copy_before(&self, item: &Item) -> ItemCopy {
        if self.outdated.contains(&item.key) { ItemCopy::Former } else { ItemCopy::Current }
    }
}

impl RunContext {
    /// True before the first request.
    pub fn is_empty(&self) -> bool {
        *self == RunContext::default()
    }

    /// Whether this request is the first of a run: it brings new input after a complete answer.
    pub fn is_new_run(&self, snapshot: &Snapshot) -> bool {
        let (Some(began), Some(input)) = (self.began_at_ms, snapshot.new_input()) else {
            return self.began_at_ms.is_none();
        };
        if snapshot.now.as_millisecond() - began > LIFETIME_MS {
            return true;
        }
        let new = snapshot.messages.iter().position(|message| message.id == *input);
        let before = &snapshot.messages[..new.unwrap_or(snapshot.messages.len())];
        !before.iter().rev().find(|message| is_answer(message)).is_some_and(has_calls)
    }

    /// Whether an item is not as the run showed it before the conversation. What the run does not keep
    /// counts as unchanged.
    pub fn differs(&self, item: &Item, is_kept: fn(&Item) -> bool) -> bool {
        is_kept(item) && self.items.get(&item.key) != Some(&item.body)
    }

    /// Divides the items of a snapshot, and remembers them if the run begins. `is_kept` tells which items
    /// the layout shows before the conversation.
    pub fn divide_items(&mut self, snapshot: &Snapshot, is_kept: fn(&Item) -> bool) -> RunItems {
        if self.is_new_run(snapshot) {
            let kept = snapshot.items.iter().filter(|item| is_kept(item));
            self.items = kept.map(|item| (item.key.clone(), item.body.clone())).collect();
            self.began_at_ms = Some(snapshot.now.as_millisecond());
            self.shown_changes = None;
            return RunItems { before: snapshot.items.clone(), ..RunItems::default() };
        }
        let mut divided = RunItems::default();
        for item in &snapshot.items {
            match self.items.get(&item.key) {
                _ if !is_kept(item) => divided.before.push(item.clone()),
                Some(body) if *body == item.body => divided.before.push(item.clone()),
                Some(body) => {
                    divided.outdated.insert(item.key.clone());
                    divided.before.push(Item { body: body.clone(), ..item.clone() });
                    divided.changed.push(ChangedItem { item: item.clone(), former: Some(body.clone()) });
                }
                None => divided.changed.push(ChangedItem { item: item.clone(), former: None }),
            }
        }
        let changed = divided.changed.iter();
        let hash = Hash::chain(
            changed.flat_map(|ChangedItem { item, .. }| [Hash::of(item.key.as_bytes()), item.body.hash()]),
        );
        let hash = (!divided.changed.is_empty()).then_some(hash);
        if hash == self.shown_changes && snapshot.new_input().is_none() {
            let known = std::mem::take(&mut divided.changed).into_iter();
            divided.left_out = known
                .map(|changed| Omission::of_item(changed.item.key, OmissionReason::TailUnchanged))
                .collect();
        }
        self.shown_changes = hash;
        divided
    }

    /// How this differs from an earlier state; `None` if it does not.
    pub fn change_since(&self, before: &RunContext) -> Option<RunContextChange> {
        if self == before {
            return None;
        }
        let is_new = |(key, body): &(&Arc<str>, &Text)| before.items.get(*key) != Some(*body);
        let set = self.items.iter().filter(is_new).map(|(key, body)| (key.clone(), body.clone()));
        let gone = before.items.keys().filter(|key| !self.items.contains_key(*key)).cloned();
        Some(RunContextChange {
            began_at_ms: self.began_at_ms,
            set: set.collect(),
            gone: gone.collect(),
            shown_changes: self.shown_changes,
        })
    }

    /// Applies a change that [`RunContext::change_since`] found.
    pub fn apply(&mut self, change: RunContextChange) {
        let RunContextChange { began_at_ms, set, gone, shown_changes } = change;
        self.items.retain(|key, _| !gone.contains(key));
        self.items.extend(set);
        self.began_at_ms = began_at_ms;
        self.shown_changes = shown_changes;
    }
}

fn is_answer(message: &AgentMessage) -> bool {
    matches!(&*message.body, MessageBody::Assistant { .. })
}

fn has_calls(message: &AgentMessage) -> bool {
    match &*message.body {
        MessageBody::Assistant { content, .. } => {
            content.iter().any(|part| matches!(part, MessagePart::ToolCall(_)))
        }
        _ => false,
    }
}

/// Adds what changes from request to request to the end of the last message: `changed`, and with new
/// input the date and the working directory, if `dated`. No breakpoint may stand on or after it.
pub fn push_closing_block(
    input: &LayoutInput<'_>,
    prompt: &mut Prompt,
    mut changed: Vec<Segment>,
    dated: bool,
) {
    let snapshot = input.snapshot;
    if dated && snapshot.new_input().is_some() && !snapshot.stands_alone {
        if let Some(last) = changed.last_mut() {
            last.text = Text::new(format!("{}\n\n", last.text));
        }
        let phrases = &input.texts.phrases.system;
        let rule = |name| Origin::rule(ItemKind::Panel, name);
        let now = fill_template(&phrases.date, &[("now", &format_utc(snapshot.now))]);
        changed.push(Segment::new(now, rule("clock")));
        if let Some(path) = &snapshot.working_directory {
            let line = fill_template(&phrases.working_directory, &[("path", path)]);
            changed.push(Segment::new(format!("\n{line}"), rule("working directory")));
        }
    }
    if let Some(last) = prompt.messages.last_mut().filter(|_| !changed.is_empty()) {
        last.blocks.push(Block::new(Region::Tail, Content::Text(changed)));
    }
}
