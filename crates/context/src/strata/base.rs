//! Laying BASE.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_prompt::{
    Content, Copy, Held, Item, Json, Kind, MessageId, Origin, ResultPart, Role, Segment, Volatility,
};

use crate::history::Said;
use crate::layout::Input;
use crate::memory::{Group, Placed, StrataMemory, Stub, Update, UpdateForm};
use crate::texts::fill;

/// Lays BASE from what is true now. Everything told since the last fold is dropped; results that showed a body which now
/// stands in BASE are stubbed, except in the turn in progress, which is never touched.
pub fn fold(strata: &mut StrataMemory, live: &[&Item], said: &[Arc<Said>]) {
    let in_progress = turn_in_progress(said);
    let before: BTreeSet<&MessageId> = said[..in_progress].iter().flat_map(|said| &said.ids).collect();
    let telling = said[in_progress..].iter().filter(|said| said.has_text());
    let during: BTreeSet<&MessageId> = telling.flat_map(|said| &said.ids).collect();
    let mut memory =
        StrataMemory { laid: true, folds: strata.folds + u32::from(strata.laid), ..StrataMemory::default() };
    // Whatever showed a body of an item that is shown anew is garbage: now, and when it was stubbed before.
    let keys: BTreeSet<&str> = live.iter().map(|item| &*item.key).collect();
    let said_before = strata.updates.iter().filter(|update| update.form == UpdateForm::Said);
    let said_before =
        said_before.map(|update| Stub { message: update.anchor.clone(), key: update.key.clone() });
    let mut stubs: Vec<Stub> = strata.stubs.iter().cloned().chain(said_before).collect();
    stubs.retain(|stub| keys.contains(&*stub.key) && before.contains(&stub.message));
    let placed_before = strata.base.iter().flat_map(|group| &group.items).map(|placed| &*placed.key);
    let told_before =
        strata.updates.iter().filter(|update| before.contains(&update.anchor)).map(|update| &*update.key);
    let shown_before: BTreeSet<&str> = placed_before.chain(told_before).collect();
    let mut placed: Vec<&Item> = Vec::new();
    for item in live {
        match &item.said_by {
            // An edit says what changed, not all there is: what was shown before the turn is shown whole again.
            Some(message) if during.contains(message) && !shown_before.contains(&*item.key) => {
                memory.updates.push(Update {
                    key: item.key.clone(),
                    kind: item.kind,
                    anchor: message.clone(),
                    form: UpdateForm::Said,
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
    memory.stubs = stubs;
    memory.base = Arc::new(groups(placed));
    memory.tail = strata.tail;
    // A fold that changes nothing up to there finds its frontier again.
    memory.frontier = strata.frontier;
    *strata = memory;
}

/// Where the turn in progress begins: at the last message that is a person's, if answers or tools have followed it.
fn turn_in_progress(said: &[Arc<Said>]) -> usize {
    let is_person = |said: &Arc<Said>| {
        said.role == Role::User
            && !said.contents.iter().any(|content| matches!(**content, Content::Result(_)))
    };
    let ends_with_results = said.last().is_some_and(|last| last.role == Role::User && !is_person(last));
    if ends_with_results { said.iter().rposition(is_person).unwrap_or(0) } else { said.len() }
}

/// Items by volatility, least first; within a group by kind and key, never by time.
fn groups(mut items: Vec<&Item>) -> Vec<Group> {
    items.sort_by(|a, b| (a.volatility, rank(a.kind), &a.key).cmp(&(b.volatility, rank(b.kind), &b.key)));
    let mut groups: Vec<Group> = Vec::new();
    for item in items {
        let name = group_name(item.volatility);
        if groups.last().is_none_or(|group| *group.name != *name) {
            groups.push(Group { name: Arc::from(name), items: Vec::new() });
        }
        let title = super::own_title(item).cloned();
        let placed = Placed { key: item.key.clone(), title, kind: item.kind, body: item.body.clone() };
        groups.last_mut().into_iter().for_each(|group| group.items.push(placed.clone()));
    }
    groups
}

fn group_name(volatility: Volatility) -> &'static str {
    match volatility {
        Volatility::Still => "still",
        Volatility::Calm => "calm",
        Volatility::Lively => "lively",
        Volatility::Tail => "tail",
    }
}

/// The legend before the entries it explains; the rest from the general to the particular.
fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::System | Kind::Tool => 0,
        Kind::Page => 1,
        Kind::Tree => 2,
        Kind::Legend => 3,
        Kind::Symbols => 4,
        Kind::File => 5,
        Kind::Panel => 6,
        Kind::History => 7,
    }
}

/// Puts one line in place of each body that moved to BASE.
pub fn stub(input: &Input<'_>, strata: &StrataMemory, said: &mut [Arc<Said>]) {
    if strata.stubs.is_empty() {
        return;
    }
    let mut stubbed: BTreeSet<Arc<str>> = BTreeSet::new();
    for Stub { message, key } in &strata.stubs {
        let text = input.memo.text("stub", &[key], input.texts.phrases.strata.stub.hash(), || {
            fill(&input.texts.phrases.strata.stub, &[("key", key)])
        });
        for said in said.iter_mut().filter(|said| said.ids.contains(message)) {
            for content in Arc::make_mut(said).contents.iter_mut().filter(|it| super::shows(it, message)) {
                if let Content::Result(result) = content.edit() {
                    let origin = Origin::item(Kind::History, key, Copy::Stub);
                    result.parts = vec![ResultPart::Text(vec![Segment { text: text.clone(), origin }])];
                    stubbed.insert(result.call_id.clone());
                }
            }
        }
    }
    let is_stubbed = |content: &Held| matches!(&**content, Content::Call(call) if stubbed.contains(&call.id));
    for said in said.iter_mut().filter(|said| said.contents.iter().any(is_stubbed)) {
        for content in Arc::make_mut(said).contents.iter_mut().filter(|content| is_stubbed(content)) {
            if let Content::Call(call) = content.edit() {
                call.arguments = shortened(&call.arguments, &input.texts.phrases.strata.stub_argument);
            }
        }
    }
}

/// A call whose body stands in BASE keeps its short arguments: which file it was about. The long ones are the body.
fn shortened(arguments: &Json, phrase: &str) -> Json {
    /// Bytes: longer than any path, shorter than what is worth its place.
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
