//! TAIL: what changes with every turn (the clock, the working directory, volatile items), after
//! everything that is cached.
//!
//! On models that take system messages for one turn, TAIL is such a message: it stays in the
//! request, so that nothing before the model's later answers ever changes, and costs nothing in later
//! turns. On other models TAIL is text at the end of the last message, and is not sent again.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{
    Block, Content, Hash, Item, ItemCopy, ItemKind, MessageId, Omission, OmissionReason, Origin, Prompt,
    PromptMessage, Region, Role, Segment, Text,
};

use rustc_hash::FxHashMap;

use super::state::{SentTail, StrataState};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;
use crate::message_builder::MessageBuilder;
use crate::texts::fill_template;

/// Whether TAIL is a system message for one turn.
pub fn is_turn_scoped(input: &LayoutInput<'_>) -> bool {
    input.target.model.system_messages
}

/// Drops TAILs whose message is no longer sent.
pub fn drop_lost_tails(strata: &mut StrataState, history: &[Arc<ConvertedMessage>]) {
    let users = || history.iter().filter(|converted| converted.role == Role::User);
    // TAILs are in the order of their messages, so that one walk finds all of them.
    let mut tails = strata.tails.iter().peekable();
    for id in users().filter_map(|converted| converted.ids.last()) {
        tails.next_if(|tail| tail.anchor == *id);
    }
    if tails.peek().is_none() {
        return;
    }
    let sent: BTreeSet<&MessageId> = users().flat_map(|converted| &converted.ids).collect();
    strata.tails.retain(|tail| sent.contains(&tail.anchor));
}

/// The TAILs of earlier turns, by the message that each follows.
pub struct FormerTails<'a>(FxHashMap<&'a MessageId, &'a Text>);

impl<'a> FormerTails<'a> {
    /// Those that a request must repeat; none where TAIL is not a message of its own.
    pub fn new(input: &LayoutInput<'_>, strata: &'a StrataState) -> Self {
        let tails = strata.tails.iter().filter(|_| is_turn_scoped(input));
        FormerTails(tails.map(|tail| (&tail.anchor, &tail.text)).collect())
    }

    /// Adds the TAIL that was sent between two messages of the conversation, if one was. A system
    /// message must be followed by the model.
    pub fn push_between(
        &self,
        before: &ConvertedMessage,
        next: &ConvertedMessage,
        builder: &mut MessageBuilder,
    ) {
        if self.0.is_empty() || before.role != Role::User || next.role != Role::Assistant {
            return;
        }
        if let Some(text) = before.ids.last().and_then(|last| self.0.get(last)) {
            builder.0.push(system_message(vec![Segment::new((*text).clone(), rule("former tail"))]));
        }
    }
}

/// Adds TAIL. It is sent with new input, and within a turn when something but the clock changed.
pub fn push_tail(
    input: &LayoutInput<'_>,
    strata: &mut StrataState,
    items: &[&Item],
    history: &[Arc<ConvertedMessage>],
    prompt: &mut Prompt,
) {
    let phrases = &input.texts.phrases.strata;
    let snapshot = input.snapshot;
    let mut segments: Vec<Segment> = Vec::new();
    if let Some(path) = &snapshot.working_directory {
        segments.push(Segment::new(
            fill_template(&phrases.tail_directory, &[("path", path)]),
            rule("working directory"),
        ));
    }
    for item in items {
        let text = input.render_cache.get_or_render("tail item", &[&item.title], item.body.hash(), || {
            fill_template(&phrases.tail_item, &[("title", &item.title), ("content", item.body.trim_end())])
        });
        segments.push(Segment { text, origin: Origin::item(item.kind, &item.key, ItemCopy::Current) });
    }
    let hash = Hash::chain(segments.iter().map(|segment| segment.text.hash()));
    let changed = strata.tail_hash != Some(hash);
    strata.tail_hash = Some(hash);
    if snapshot.new_input().is_none() && !changed {
        let leave = |item: &&Item| Omission::of_item(item.key.clone(), OmissionReason::TailUnchanged);
        prompt.left_out.extend(items.iter().map(leave));
        return;
    }
    let now = fill_template(&phrases.tail_now, &[("now", &crate::time::format_utc(snapshot.now))]);
    let mut tail = vec![
        Segment { text: phrases.tail.clone(), origin: rule("tail header") },
        Segment::new(now, rule("clock")),
    ];
    tail.append(&mut segments);
    let Some(last) = prompt.messages.last_mut() else { return };
    if !is_turn_scoped(input) {
        last.blocks.push(Block::new(Region::Tail, Content::Text(tail)));
        return;
    }
    if let Some(anchor) = last_sent_message(input, history) {
        let text: String = tail.iter().map(|segment| segment.text.as_str()).collect();
        strata.tails.retain(|sent| sent.anchor != *anchor);
        strata.tails.push(SentTail { anchor: anchor.clone(), text: Text::new(text) });
    }
    prompt.messages.push(system_message(tail));
}

/// The stored message that the prompt ends with. `None`: it ends with text that is not stored.
pub fn last_sent_message<'a>(
    input: &'a LayoutInput<'_>,
    history: &'a [Arc<ConvertedMessage>],
) -> Option<&'a MessageId> {
    let last = history.last().filter(|last| last.role == Role::User);
    let prompt = input.snapshot.prompt.as_ref().map(|prompt| &prompt.id);
    prompt.or_else(|| last.and_then(|last| last.ids.last()))
}

fn rule(name: &'static str) -> Origin {
    Origin::rule(ItemKind::Panel, name)
}

fn system_message(segments: Vec<Segment>) -> PromptMessage {
    let block = Block::new(Region::Tail, Content::Text(segments));
    PromptMessage { turn_scoped: true, ..PromptMessage::new(Role::System, vec![block]) }
}
