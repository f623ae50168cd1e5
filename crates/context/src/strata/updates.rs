//! [`record_updates`]: which items changed since the model was last told, and how it is told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use hardpan_prompt::{Content, Item, ItemKind, MessageId, Role, Text};
use similar::TextDiff;

use super::state::{ItemUpdate, StrataState, UpdateForm};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;
use crate::texts::fill_template;

/// The anchor of updates that no message can carry; they are sent again with the next request.
const NO_ANCHOR: &str = "";

/// What the model knows of each item: the body it was told last, or none once it was told that the
/// item is closed.
pub fn known_bodies(strata: &StrataState) -> BTreeMap<&str, Option<&Text>> {
    let placed = strata.base.iter().flat_map(|group| &group.items).map(|item| (&*item.key, Some(&item.body)));
    placed.chain(strata.updates.iter().map(|update| (&*update.key, update.body.as_ref()))).collect()
}

/// Drops updates whose message is no longer sent: the model no longer knows them.
pub fn drop_lost_updates(
    strata: &mut StrataState,
    history: &[Arc<ConvertedMessage>],
    prompt: Option<&MessageId>,
) {
    if strata.updates.is_empty() && strata.stubs.is_empty() {
        return;
    }
    // Few ids are wanted and the conversation is long, so it is searched once for all of them.
    let anchors = strata.updates.iter().map(|update| &update.anchor);
    let wanted: BTreeSet<MessageId> =
        anchors.chain(strata.stubs.iter().map(|stub| &stub.message)).cloned().collect();
    let mut sent: BTreeSet<&MessageId> = BTreeSet::from_iter(prompt);
    // Only user messages carry updates; a message of the model may have the same id.
    let mut carriers: BTreeSet<&MessageId> = BTreeSet::from_iter(prompt);
    for converted in history {
        for id in converted.ids.iter().filter(|id| wanted.contains(*id)) {
            sent.insert(id);
            carriers.extend(Some(id).filter(|_| converted.role == Role::User));
        }
    }
    // A diff builds on what was told before it: when one is lost, so are the later diffs of its
    // item.
    let mut lost: BTreeSet<Arc<str>> = BTreeSet::new();
    strata.updates.retain(|update| {
        let is_message =
            matches!(update.form, UpdateForm::ShownByMessage | UpdateForm::InResult | UpdateForm::PagedOut);
        let delivered_by = if is_message { &sent } else { &carriers };
        let keep = delivered_by.contains(&update.anchor)
            && !(lost.contains(&update.key) && update.form == UpdateForm::Diff);
        if !keep {
            lost.insert(update.key.clone());
        }
        keep
    });
    strata.stubs.retain(|stub| sent.contains(&stub.message));
    let lines: BTreeSet<MessageId> = strata.stubs.iter().map(|stub| stub.message.clone()).collect();
    for stub in &mut strata.stubs {
        stub.told_in = stub.told_in.take().filter(|line| lines.contains(line));
    }
}

/// Adds an update for each item that is new, changed or closed since the model was last told.
pub fn record_updates(
    input: &LayoutInput<'_>,
    strata: &mut StrataState,
    live: &[&Item],
    history: &[Arc<ConvertedMessage>],
) {
    let anchor = choose_anchor(input, history);
    let known = known_bodies(strata);
    let mut news = Vec::new();
    for item in live {
        let before = known.get(&*item.key).copied().flatten();
        let tells = |message: &&MessageId| is_latest_source(strata, history, &item.key, message);
        // What was paged out is shown again when a message shows it.
        let is_shown_again = || {
            is_paged_out(strata, &item.key) && item.shown_by.as_ref().is_some_and(|message| tells(&message))
        };
        if before == Some(&item.body) && !is_shown_again() {
            continue;
        }
        let (form, text, anchor) = match item.shown_by.as_ref().filter(tells) {
            Some(message) => (UpdateForm::ShownByMessage, Text::default(), message.clone()),
            None => {
                let (form, text) = render_change(input, item, before);
                (form, text, anchor.clone())
            }
        };
        let (key, kind, body) = (item.key.clone(), item.kind, Some(item.body.clone()));
        news.push(ItemUpdate { key, kind, anchor, form, text, body });
    }
    let mut here: BTreeSet<&str> = live.iter().map(|item| &*item.key).collect();
    let placed = strata.base.iter().flat_map(|group| &group.items).map(|item| (&item.key, item.kind));
    let updated = strata.updates.iter().map(|update| (&update.key, update.kind));
    for (key, kind) in placed.chain(updated) {
        let open = known.get(&**key).copied().flatten().is_some();
        if !open || !here.insert(key) {
            continue;
        }
        // The symbol entry of a file that was opened is not closed, only redundant: say nothing.
        let silent = kind == ItemKind::Symbols && input.snapshot.items.iter().any(|item| item.key == *key);
        let text = if silent {
            Text::default()
        } else {
            Text::new(fill_template(&input.texts.phrases.strata.update_closed, &[("key", key)]))
        };
        news.push(ItemUpdate {
            key: key.clone(),
            kind,
            anchor: anchor.clone(),
            form: UpdateForm::Closed,
            text,
            body: None,
        });
    }
    strata.updates.extend(news);
}

/// Whether the message is sent and shows the item's latest state, that is, no fold took out what it
/// shows, and no update about the item comes with it or after it. The model believes what it reads last.
fn is_latest_source(
    strata: &StrataState,
    history: &[Arc<ConvertedMessage>],
    key: &str,
    message: &MessageId,
) -> bool {
    let position =
        |message: &MessageId| history.iter().rposition(|converted| converted.ids.contains(message));
    if strata.is_taken_out(message) {
        return false;
    }
    let mut item_updates = strata.updates.iter().filter(|update| *update.key == *key);
    position(message).filter(|at| history[*at].has_text()).is_some_and(|at| {
        item_updates.all(|update| position(&update.anchor).is_some_and(|before| before < at))
    })
}

/// The message that carries new updates: the new input, or the results of the tool round in
/// progress. Not a user message that was sent before, because updates go before the user's words,
/// which may be cached by now. Nor a message whose id occurs earlier: the updates would be placed
/// with that one, before what they replace.
fn choose_anchor(input: &LayoutInput<'_>, history: &[Arc<ConvertedMessage>]) -> MessageId {
    let holds_results = |converted: &&Arc<ConvertedMessage>| {
        converted.contents.iter().any(|content| matches!(**content, Content::Result(_)))
    };
    let is_users = |converted: &ConvertedMessage, id: &MessageId| {
        converted.role == Role::User && converted.ids.contains(id)
    };
    let first_unsent = input.snapshot.first_unsent.as_ref();
    let first_unsent = first_unsent
        .and_then(|id| Some((id, history.iter().rposition(|converted| is_users(converted, id))?)));
    let (carrier, before) = match (first_unsent, &input.snapshot.prompt, history.split_last()) {
        (Some((id, at)), ..) => (Some(id), &history[..at]),
        (None, Some(prompt), _) => (Some(&prompt.id), history),
        (None, None, Some((last, before))) => {
            (Some(last).filter(holds_results).and_then(|last| last.ids.last()), before)
        }
        (None, None, None) => (None, history),
    };
    let is_taken = |id: &&MessageId| before.iter().any(|converted| is_users(converted, id));
    carrier.filter(|id| !is_taken(id)).cloned().unwrap_or_else(|| MessageId::from(NO_ANCHOR))
}

/// Renders a change as a diff or as the whole body, whichever is shorter.
fn render_change(input: &LayoutInput<'_>, item: &Item, before: Option<&Text>) -> (UpdateForm, Text) {
    let phrases = &input.texts.phrases.strata;
    let Some(before) = before else { return (UpdateForm::Body, render_body(input, item)) };
    let name = item_label(item);
    let diff = TextDiff::from_lines(before.as_str(), item.body.as_str())
        .unified_diff()
        .context_radius(3)
        .to_string();
    if diff.len() < item.body.len() {
        (UpdateForm::Diff, Text::new(fill_template(&phrases.update_diff, &[("key", &name), ("diff", &diff)])))
    } else {
        (UpdateForm::Body, render_body(input, item))
    }
}

/// The update that tells an item's whole body.
pub fn render_body(input: &LayoutInput<'_>, item: &Item) -> Text {
    let phrase = &input.texts.phrases.strata.update_body;
    Text::new(fill_template(phrase, &[("key", &item_label(item)), ("content", &item.body)]))
}

fn item_label(item: &Item) -> std::borrow::Cow<'_, str> {
    super::label(&item.key, super::distinct_title(item).map(|title| &**title))
}

/// Whether the model was shown the item once, and would have to recall it now.
pub fn is_paged_out(strata: &StrataState, key: &str) -> bool {
    let last = strata.updates.iter().rev().find(|update| *update.key == *key);
    last.is_some_and(|update| update.form == UpdateForm::PagedOut)
}
