//! [`fold_into_base`] lays BASE from the current items; [`replace_with_stubs`] removes the copies
//! that BASE makes redundant.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{
    Content, Item, ItemCopy, ItemKind, Json, MessageId, Origin, ResultPart, Role, Segment, SharedContent,
    Volatility,
};

use super::state::{BaseGroup, BaseItem, ItemUpdate, StrataState, Stub, UpdateForm};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;
use crate::texts::fill_template;

/// Lays BASE from the current bodies of the `live` items. Updates since the last fold are dropped.
/// Results that showed a body which BASE shows now get a stub, except in the turn in progress,
/// which is never touched.
pub fn fold_into_base(strata: &mut StrataState, live: &[&Item], history: &[Arc<ConvertedMessage>]) {
    let in_progress = first_of_turn_in_progress(history);
    let before: BTreeSet<&MessageId> =
        history[..in_progress].iter().flat_map(|converted| &converted.ids).collect();
    let telling = history[in_progress..].iter().filter(|converted| converted.has_text());
    let during: BTreeSet<&MessageId> = telling.flat_map(|converted| &converted.ids).collect();
    let mut folded = StrataState {
        has_base: true,
        folds: strata.folds + u32::from(strata.has_base),
        ..StrataState::default()
    };
    // Every earlier message that showed a body of a live item gets a stub; old stubs stay.
    let keys: BTreeSet<&str> = live.iter().map(|item| &*item.key).collect();
    let shown_by_messages = strata.updates.iter().filter(|update| update.form == UpdateForm::ShownByMessage);
    let shown_by_messages =
        shown_by_messages.map(|update| Stub { message: update.anchor.clone(), key: update.key.clone() });
    let mut stubs: Vec<Stub> = strata.stubs.iter().cloned().chain(shown_by_messages).collect();
    stubs.retain(|stub| keys.contains(&*stub.key) && before.contains(&stub.message));
    let placed_before = strata.base.iter().flat_map(|group| &group.items).map(|placed| &*placed.key);
    let told_before =
        strata.updates.iter().filter(|update| before.contains(&update.anchor)).map(|update| &*update.key);
    let shown_before: BTreeSet<&str> = placed_before.chain(told_before).collect();
    let mut placed: Vec<&Item> = Vec::new();
    for item in live {
        match &item.shown_by {
            // A body that this turn's message shows stays there. But an edit shows only a part: an
            // item that was shown before the turn goes into BASE whole.
            Some(message) if during.contains(message) && !shown_before.contains(&*item.key) => {
                folded.updates.push(ItemUpdate {
                    key: item.key.clone(),
                    kind: item.kind,
                    anchor: message.clone(),
                    form: UpdateForm::ShownByMessage,
                    text: Default::default(),
                    body: Some(item.body.clone()),
                });
            }
            said_by => {
                if let Some(message) = said_by.as_ref().filter(|message| before.contains(message)) {
                    stubs.push(Stub { message: message.clone(), key: item.key.clone() });
                }
                placed.push(item);
            }
        }
    }
    let mut seen: BTreeSet<(MessageId, Arc<str>)> = BTreeSet::new();
    stubs.retain(|stub| seen.insert((stub.message.clone(), stub.key.clone())));
    folded.stubs = stubs;
    folded.base = Arc::new(group_items(placed));
    folded.tail_hash = strata.tail_hash;
    // A fold that changes nothing before the old frontier can still read the cache up to it.
    folded.frontier = strata.frontier;
    *strata = folded;
}

/// The position where the turn in progress begins: the last message of the user, if tool results
/// have followed it; else the end.
fn first_of_turn_in_progress(history: &[Arc<ConvertedMessage>]) -> usize {
    let is_person = |converted: &Arc<ConvertedMessage>| {
        converted.role == Role::User
            && !converted.contents.iter().any(|content| matches!(**content, Content::Result(_)))
    };
    let ends_with_results = history.last().is_some_and(|last| last.role == Role::User && !is_person(last));
    if ends_with_results { history.iter().rposition(is_person).unwrap_or(0) } else { history.len() }
}

/// Groups items by volatility, the least volatile first; within a group by kind and key, never by
/// time, so that the order is stable.
fn group_items(mut items: Vec<&Item>) -> Vec<BaseGroup> {
    items.sort_by(|a, b| {
        (a.volatility, kind_order(a.kind), &a.key).cmp(&(b.volatility, kind_order(b.kind), &b.key))
    });
    let mut groups: Vec<BaseGroup> = Vec::new();
    for item in items {
        let name = group_name(item.volatility);
        if groups.last().is_none_or(|group| *group.name != *name) {
            groups.push(BaseGroup { name: Arc::from(name), items: Vec::new() });
        }
        let title = super::distinct_title(item).cloned();
        let placed = BaseItem { key: item.key.clone(), title, kind: item.kind, body: item.body.clone() };
        groups.last_mut().into_iter().for_each(|group| group.items.push(placed.clone()));
    }
    groups
}

fn group_name(volatility: Volatility) -> &'static str {
    match volatility {
        Volatility::Static => "still",
        Volatility::Slow => "calm",
        Volatility::Active | Volatility::Tail => "lively",
    }
}

/// The order of kinds within a group: the legend before the entries it explains, and the general
/// before the particular.
fn kind_order(kind: ItemKind) -> u8 {
    match kind {
        ItemKind::System | ItemKind::Tool => 0,
        ItemKind::Page => 1,
        ItemKind::Tree => 2,
        ItemKind::Legend => 3,
        ItemKind::Symbols => 4,
        ItemKind::File => 5,
        ItemKind::Panel => 6,
        ItemKind::History => 7,
    }
}

/// Replaces each body that BASE shows now by one line, and shortens the call that led to it.
pub fn replace_with_stubs(
    input: &LayoutInput<'_>,
    strata: &StrataState,
    history: &mut [Arc<ConvertedMessage>],
) {
    if strata.stubs.is_empty() {
        return;
    }
    let mut stubbed: BTreeSet<Arc<str>> = BTreeSet::new();
    for Stub { message, key } in &strata.stubs {
        let text =
            input.render_cache.get_or_render("stub", &[key], input.texts.phrases.strata.stub.hash(), || {
                fill_template(&input.texts.phrases.strata.stub, &[("key", key)])
            });
        for converted in history.iter_mut().filter(|converted| converted.ids.contains(message)) {
            for content in
                Arc::make_mut(converted).contents.iter_mut().filter(|it| super::is_result_of(it, message))
            {
                if let Content::Result(result) = content.edit() {
                    let origin = Origin::item(ItemKind::History, key, ItemCopy::Stub);
                    result.parts = vec![ResultPart::Text(vec![Segment { text: text.clone(), origin }])];
                    stubbed.insert(result.call_id.clone());
                }
            }
        }
    }
    let is_stubbed =
        |content: &SharedContent| matches!(&**content, Content::Call(call) if stubbed.contains(&call.id));
    for converted in history.iter_mut().filter(|converted| converted.contents.iter().any(is_stubbed)) {
        for content in Arc::make_mut(converted).contents.iter_mut().filter(|content| is_stubbed(content)) {
            if let Content::Call(call) = content.edit() {
                call.arguments =
                    shorten_arguments(&call.arguments, &input.texts.phrases.strata.stub_argument);
            }
        }
    }
}

/// The arguments of a call whose body BASE shows: short ones stay, since they say which file it was
/// about; long ones hold the body and are replaced by `phrase`.
fn shorten_arguments(arguments: &Json, phrase: &str) -> Json {
    /// In bytes: longer than most paths, shorter than any body worth replacing.
    const LONG: usize = 200;
    if arguments.as_str().len() <= LONG {
        return arguments.clone();
    }
    let mut value = arguments.value();
    if let serde_json::Value::Object(fields) = &mut value {
        for field in fields.values_mut().filter(|field| field.to_string().len() > LONG) {
            *field = phrase.into();
        }
    }
    Json::new(&value)
}
