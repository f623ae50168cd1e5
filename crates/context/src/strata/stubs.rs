//! What stands for the tool results that folds took out: [`replace_results`] puts lines and bodies in
//! their place, and takes out the calls that go with them; [`join_stubs`] decides at a fold which of
//! them do.
//!
//! A call whose result is garbage tells nothing that the line does not tell, so both go, and one line
//! tells of all pairs that a fold took out. It stands in the first of them, which keeps its call. The
//! model's words stay: those of a message that loses all its calls begin its next message.

use std::sync::Arc;

use hardpan_prompt::{
    Content, ItemCopy, ItemKind, Json, MessageId, Origin, ResultPart, Role, Segment, SharedContent, Text,
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::state::{StrataState, Stub, UpdateForm};
use crate::history::ConvertedMessage;
use crate::layout::LayoutInput;
use crate::texts::fill_template;

/// About how many tokens a line for one result has: the phrase, a path and an id.
pub const STUB_TOKENS: usize = 25;

/// About how many tokens one result more has in a line for several: an id, its length, at times a path.
pub const LISTED_STUB_TOKENS: usize = 12;

/// Arguments of a call that are longer than this, in bytes, hold a body and go with it; shorter ones
/// say what the call was about, and stay.
pub const LONG_ARGUMENTS: usize = hardpan_prompt::ToolCall::LONG_ARGUMENT;

/// Which of the results that folds took out go together with their calls: of those in `history` from
/// index `first` on, all but the first, as far as the rest is a conversation still. Earlier ones stay
/// as they are, since they are cached.
pub fn join_stubs(strata: &mut StrataState, history: &[Arc<ConvertedMessage>], first: usize) {
    let places = places_of_results(history);
    let place = |message: &MessageId| places.get(message).copied().flatten();
    let is_after = |message: &MessageId| place(message).is_some_and(|place| place > first);
    let joins = |stub: &Stub| {
        !stub.is_paged_out && is_after(&stub.message) && stub.told_in.as_ref().is_none_or(is_after)
    };
    let joining: FxHashSet<MessageId> =
        strata.stubs.iter().filter(|stub| joins(stub)).map(|stub| stub.message.clone()).collect();
    let told_in = tell_together(strata, history, first, &joining);
    for stub in strata.stubs.iter_mut().filter(|stub| joining.contains(&stub.message)) {
        stub.told_in = told_in.get(&stub.message).cloned();
    }
    strata.stubs.sort_by_key(|stub| places.get(&stub.message).copied().flatten());
}

/// The place of the message that holds each result; `None` where an id occurs twice.
fn places_of_results(history: &[Arc<ConvertedMessage>]) -> FxHashMap<MessageId, Option<usize>> {
    let mut places: FxHashMap<MessageId, Option<usize>> = FxHashMap::default();
    for (place, converted) in history.iter().enumerate() {
        for message in converted.contents.iter().filter_map(result_message) {
            places.entry(message.clone()).and_modify(|place| *place = None).or_insert(Some(place));
        }
    }
    places
}

/// For each of the `joining` results that goes with its call, the one whose line tells of it.
fn tell_together(
    strata: &StrataState,
    history: &[Arc<ConvertedMessage>],
    first: usize,
    joining: &FxHashSet<MessageId>,
) -> FxHashMap<MessageId, MessageId> {
    let has_calls = |converted: &ConvertedMessage| converted.contents.iter().any(is_call);
    let is_person =
        |converted: &Arc<ConvertedMessage>| converted.role == Role::User && !holds_results(converted);
    let turn = history.iter().rposition(is_person).unwrap_or(0);
    let anchors = anchors(strata);
    let mut told_in = FxHashMap::default();
    let mut line: Option<MessageId> = None;
    // Whether words of a message without its calls wait for the next message.
    let mut words_wait = false;
    for (index, pair) in history.windows(2).enumerate().skip(first) {
        let [answer, results] = pair else { continue };
        if answer.role != Role::Assistant || !has_calls(answer) {
            words_wait &= answer.role != Role::Assistant;
            continue;
        }
        let garbage = results.contents.iter().filter_map(result_message).filter(|id| joining.contains(*id));
        let mut garbage: Vec<&MessageId> = garbage.collect();
        if line.is_none() && !garbage.is_empty() {
            line = Some(garbage.remove(0).clone());
        }
        let calls = answer.contents.iter().filter(|content| is_call(content)).count();
        let is_emptied = garbage.len() == calls;
        let has_words = words_wait || answer.contents.iter().any(is_words);
        let may_go = || {
            let thinks = index > turn && answer.contents.iter().any(is_reasoning);
            // Words that another message follows stand by themselves.
            let has_place = history.get(index + 2).is_some_and(|next| {
                let thinks_first = next.role == Role::Assistant && next.contents.iter().any(is_reasoning);
                !(has_words && thinks_first)
            });
            let carries = results.ids.iter().any(|id| anchors.contains(id))
                || !results.contents.iter().all(|content| result_message(content).is_some());
            has_place && !thinks && !carries
        };
        let stays = is_emptied && !may_go();
        words_wait = is_emptied && !stays && has_words;
        if stays {
            continue;
        }
        told_in.extend(garbage.into_iter().cloned().zip(line.iter().cloned().cycle()));
    }
    told_in
}

/// The messages that something else is sent with or after.
fn anchors(strata: &StrataState) -> FxHashSet<&MessageId> {
    let updates = strata.updates.iter().filter(|update| !update.text.is_empty());
    let changes = strata.tool_changes.iter().map(|change| &change.after);
    updates.map(|update| &update.anchor).chain(changes).collect()
}

/// What takes the place of a tool result.
struct Replacement {
    text: Text,
    origin: Origin,
}

/// Takes out of the conversation what folds dropped: replaces results by a line or by the body of the
/// item, shortens the calls that led to them, and takes out those that go together with their results.
pub fn replace_results(
    input: &LayoutInput<'_>,
    strata: &StrataState,
    history: &mut Vec<Arc<ConvertedMessage>>,
) {
    let replacements = replacements(input, strata);
    if replacements.is_empty() {
        return;
    }
    take_out_pairs(strata, history);
    let mut replaced: FxHashMap<Arc<str>, Arc<str>> = FxHashMap::default();
    for converted in history.iter_mut() {
        if !converted.ids.iter().any(|id| replacements.contains_key(id)) {
            continue;
        }
        for content in &mut Arc::make_mut(converted).contents {
            let Some((id, replacement)) =
                result_message(content).and_then(|message| replacements.get_key_value(message))
            else {
                continue;
            };
            if let Content::Result(result) = content.edit() {
                let segment = Segment { text: replacement.text.clone(), origin: replacement.origin.clone() };
                result.parts = vec![ResultPart::Text(vec![segment])];
                replaced.insert(result.call_id.clone(), id.0.clone());
            }
        }
    }
    let is_replaced = |content: &SharedContent| matches!(&**content, Content::Call(call) if replaced.contains_key(&call.id));
    for converted in history.iter_mut().filter(|converted| converted.contents.iter().any(is_replaced)) {
        for content in Arc::make_mut(converted).contents.iter_mut().filter(|content| is_replaced(content)) {
            if let Content::Call(call) = content.edit()
                && let Some(id) = replaced.get(&call.id)
            {
                let phrase = fill_template(&input.texts.phrases.strata.stub_argument, &[("id", id)]);
                call.arguments = shorten_arguments(&call.arguments, &phrase);
            }
        }
    }
}

/// Takes out the results that another one's line tells of, with their calls.
fn take_out_pairs(strata: &StrataState, history: &mut Vec<Arc<ConvertedMessage>>) {
    let listed = strata.stubs.iter().filter(|stub| stub.told_in.is_some());
    let listed: FxHashSet<&MessageId> = listed.map(|stub| &stub.message).collect();
    if listed.is_empty() {
        return;
    }
    let holds_listed = |converted: &&Arc<ConvertedMessage>| {
        converted.role == Role::User && converted.ids.iter().any(|id| listed.contains(id))
    };
    let contents = history.iter().filter(holds_listed).flat_map(|converted| &converted.contents);
    let calls: FxHashSet<Arc<str>> = contents
        .filter(|content| result_message(content).is_some_and(|message| listed.contains(message)))
        .filter_map(|content| match &**content {
            Content::Result(result) => Some(result.call_id.clone()),
            _ => None,
        })
        .collect();
    let goes = |content: &SharedContent| match &**content {
        Content::Call(call) => calls.contains(&call.id),
        Content::Result(result) => calls.contains(&result.call_id),
        _ => false,
    };
    let mut kept: Vec<Arc<ConvertedMessage>> = Vec::with_capacity(history.len());
    // The words of messages that lost all their calls. They go with the model's next message.
    let mut words: Option<ConvertedMessage> = None;
    for mut converted in history.drain(..) {
        if converted.contents.iter().any(goes) {
            let message = Arc::make_mut(&mut converted);
            message.contents.retain(|content| !goes(content));
            if message.role == Role::Assistant && !message.contents.iter().any(is_call) {
                message.contents.retain(is_words);
                let said = words.take().into_iter().flat_map(|words| words.contents);
                message.contents.splice(0..0, said);
                words = Some(message.clone()).filter(|words| !words.contents.is_empty());
                continue;
            }
            if message.contents.is_empty() {
                continue;
            }
        }
        if let Some(words) = words.take() {
            if converted.role == Role::Assistant {
                Arc::make_mut(&mut converted).contents.splice(0..0, words.contents);
            } else {
                kept.push(Arc::new(words));
            }
        }
        kept.push(converted);
    }
    kept.extend(words.map(Arc::new));
    *history = kept;
}

fn replacements<'a>(
    input: &LayoutInput<'_>,
    strata: &'a StrataState,
) -> FxHashMap<&'a MessageId, Replacement> {
    let phrases = &input.texts.phrases.strata;
    let mut lines: FxHashMap<&MessageId, Vec<&Stub>> = FxHashMap::default();
    for stub in &strata.stubs {
        lines.entry(stub.told_in.as_ref().unwrap_or(&stub.message)).or_default().push(stub);
    }
    let line = |(message, stubs): (&'a MessageId, Vec<&'a Stub>)| {
        let text = match stubs.as_slice() {
            [Stub { message, what, tokens, is_paged_out, told_in: _ }] => {
                let tokens = tokens.to_string();
                let names = [&**what, &*message.0, tokens.as_str()];
                let phrase = if *is_paged_out { &phrases.paged_out } else { &phrases.stub };
                input.render_cache.get_or_render("stub", &names, phrase.hash(), || {
                    fill_template(phrase, &[("what", what), ("id", &message.0), ("tokens", &tokens)])
                })
            }
            stubs => {
                let copies = list_copies(stubs);
                input.render_cache.get_or_render("stubs", &[&copies], phrases.stubs.hash(), || {
                    fill_template(&phrases.stubs, &[("copies", &copies)])
                })
            }
        };
        let what = stubs.iter().find(|stub| stub.message == *message).map_or("", |stub| &stub.what);
        (message, Replacement { text, origin: Origin::item(ItemKind::History, &what.into(), ItemCopy::Stub) })
    };
    let mut replacements: FxHashMap<&MessageId, Replacement> = lines.into_iter().map(line).collect();
    let current: FxHashMap<&str, usize> =
        strata.updates.iter().enumerate().map(|(index, update)| (&*update.key, index)).collect();
    let bodies = strata.updates.iter().enumerate().filter(|(_, update)| update.form == UpdateForm::InResult);
    for (index, update) in bodies {
        let Some(body) = &update.body else { continue };
        let text = input.render_cache.get_or_render("result body", &[&update.key], body.hash(), || {
            fill_template(&phrases.update_body, &[("key", &update.key), ("content", body)])
        });
        let is_last = current.get(&*update.key) == Some(&index);
        let copy = if is_last { ItemCopy::Current } else { ItemCopy::Former };
        let origin = Origin::item(update.kind, &update.key, copy);
        replacements.insert(&update.anchor, Replacement { text, origin });
    }
    replacements
}

/// What each copy showed, and for every one of it the id and how many tokens it had:
/// `a.rs e12 (1203 tokens), e16 (88); bash e14 (97)`.
fn list_copies(stubs: &[&Stub]) -> String {
    let mut subjects: Vec<(&str, Vec<String>)> = Vec::new();
    for stub in stubs {
        let unit = if subjects.is_empty() { " tokens" } else { "" };
        let copy = format!("{} ({}{unit})", stub.message, stub.tokens);
        match subjects.iter_mut().find(|(what, _)| *what == &*stub.what) {
            Some((_, copies)) => copies.push(copy),
            None => subjects.push((&stub.what, vec![copy])),
        }
    }
    let subjects = subjects.iter().map(|(what, copies)| format!("{what} {}", copies.join(", ")));
    subjects.collect::<Vec<String>>().join("; ")
}

fn is_call(content: &SharedContent) -> bool {
    matches!(**content, Content::Call(_))
}

fn is_reasoning(content: &SharedContent) -> bool {
    matches!(**content, Content::Reasoning(_))
}

/// Whether it is something that the model said.
fn is_words(content: &SharedContent) -> bool {
    !is_call(content) && !is_reasoning(content)
}

fn holds_results(converted: &ConvertedMessage) -> bool {
    converted.contents.iter().any(|content| matches!(**content, Content::Result(_)))
}

fn result_message(content: &SharedContent) -> Option<&MessageId> {
    match &**content {
        Content::Result(result) => match &result.origin.source {
            hardpan_prompt::Source::Message(message) => Some(message),
            _ => None,
        },
        _ => None,
    }
}

/// The arguments of a call whose result is replaced: short ones stay, since they say what it was about;
/// long ones hold the body and are replaced by `phrase`.
fn shorten_arguments(arguments: &Json, phrase: &str) -> Json {
    if arguments.as_str().len() <= LONG_ARGUMENTS {
        return arguments.clone();
    }
    let mut value = arguments.value();
    if let serde_json::Value::Object(fields) = &mut value {
        for field in fields.values_mut().filter(|field| field.to_string().len() > LONG_ARGUMENTS) {
            *field = phrase.into();
        }
    }
    Json::new(&value)
}
