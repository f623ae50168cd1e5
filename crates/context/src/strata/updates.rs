//! What has changed since the model was last told.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use hardpan_prompt::{Content, Item, Kind, MessageId, Role, Text};
use similar::TextDiff;

use crate::history::Said;
use crate::layout::Input;
use crate::memory::{StrataMemory, Update, UpdateForm};
use crate::texts::fill;

/// The anchor of updates that no message carries; they are told again with the next request.
const NOWHERE: &str = "";

/// What the model knows of each item: its last told body, or none once it was told that the item is closed.
pub fn known(strata: &StrataMemory) -> HashMap<&str, Option<&Text>> {
    let placed = strata.base.iter().flat_map(|group| &group.items).map(|item| (&*item.key, Some(&item.body)));
    placed.chain(strata.updates.iter().map(|update| (&*update.key, update.body.as_ref()))).collect()
}

/// Forgets updates whose message is no longer sent: the model no longer knows them.
pub fn forget_lost(strata: &mut StrataMemory, said: &[Arc<Said>], prompt: Option<&MessageId>) {
    if strata.updates.is_empty() && strata.stubs.is_empty() {
        return;
    }
    // What is looked for is little, what was said is much: the latter is gone through once.
    let anchors = strata.updates.iter().map(|update| &update.anchor);
    let wanted: BTreeSet<MessageId> =
        anchors.chain(strata.stubs.iter().map(|stub| &stub.message)).cloned().collect();
    let mut sent: BTreeSet<&MessageId> = BTreeSet::from_iter(prompt);
    // News stand in a user's message: the model's own may have the same name, but carries none.
    let mut carriers: BTreeSet<&MessageId> = BTreeSet::from_iter(prompt);
    for said in said {
        for id in said.ids.iter().filter(|id| wanted.contains(*id)) {
            sent.insert(id);
            carriers.extend(Some(id).filter(|_| said.role == Role::User));
        }
    }
    // A diff stands on what was told before it: when one is lost, so are the later ones for its item.
    let mut lost: BTreeSet<Arc<str>> = BTreeSet::new();
    strata.updates.retain(|update| {
        let told = if update.form == UpdateForm::Said { &sent } else { &carriers };
        let keep =
            told.contains(&update.anchor) && !(lost.contains(&update.key) && update.form == UpdateForm::Diff);
        if !keep {
            lost.insert(update.key.clone());
        }
        keep
    });
    strata.stubs.retain(|stub| sent.contains(&stub.message));
}

/// Adds an update for each item that is new, changed or gone.
pub fn tell(input: &Input<'_>, strata: &mut StrataMemory, live: &[&Item], said: &[Arc<Said>]) {
    let anchor = anchor(input, said);
    let known = known(strata);
    let mut news = Vec::new();
    for item in live {
        let before = known.get(&*item.key).copied().flatten();
        if before == Some(&item.body) {
            continue;
        }
        let tells = |message: &&MessageId| is_last_word(strata, said, &item.key, message);
        let (form, text, anchor) = match item.said_by.as_ref().filter(tells) {
            Some(message) => (UpdateForm::Said, Text::default(), message.clone()),
            None => {
                let (form, text) = change(input, item, before);
                (form, text, anchor.clone())
            }
        };
        let (key, kind, body) = (item.key.clone(), item.kind, Some(item.body.clone()));
        news.push(Update { key, kind, anchor, form, text, body });
    }
    let mut here: HashMap<&str, ()> = live.iter().map(|item| (&*item.key, ())).collect();
    let placed = strata.base.iter().flat_map(|group| &group.items).map(|item| (&item.key, item.kind));
    let told = strata.updates.iter().map(|update| (&update.key, update.kind));
    for (key, kind) in placed.chain(told) {
        let open = known.get(&**key).copied().flatten().is_some();
        if !open || here.insert(key, ()).is_some() {
            continue;
        }
        // The map entry of a file that was opened is merely redundant.
        let silent = kind == Kind::Symbols && input.snapshot.items.iter().any(|item| item.key == *key);
        let text = if silent {
            Text::default()
        } else {
            Text::new(fill(&input.texts.phrases.strata.update_closed, &[("key", key)]))
        };
        news.push(Update {
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

/// Whether a message is sent, and nothing that was told about the item comes with it or after it: else the model would
/// take what it read last for true.
fn is_last_word(strata: &StrataMemory, said: &[Arc<Said>], key: &str, message: &MessageId) -> bool {
    let position = |message: &MessageId| said.iter().rposition(|said| said.ids.contains(message));
    let mut told = strata.updates.iter().filter(|update| *update.key == *key);
    position(message)
        .filter(|at| said[*at].has_text())
        .is_some_and(|at| told.all(|update| position(&update.anchor).is_some_and(|before| before < at)))
}

/// The message that carries the news: what was just typed, or the results of the tool round in progress. A person's message
/// that was sent before does not: news go before a person's words, and these may be cached by now. Nor does a message whose
/// name is taken: the news would stand with the other one, before what they replace.
fn anchor(input: &Input<'_>, said: &[Arc<Said>]) -> MessageId {
    let holds_results =
        |said: &&Arc<Said>| said.contents.iter().any(|content| matches!(**content, Content::Result(_)));
    let is_users = |said: &Said, id: &MessageId| said.role == Role::User && said.ids.contains(id);
    let fresh = input.snapshot.fresh.as_ref();
    let fresh = fresh.and_then(|id| Some((id, said.iter().rposition(|said| is_users(said, id))?)));
    let (carrier, before) = match (fresh, &input.snapshot.prompt, said.split_last()) {
        (Some((id, at)), ..) => (Some(id), &said[..at]),
        (None, Some(prompt), _) => (Some(&prompt.id), said),
        (None, None, Some((last, before))) => {
            (Some(last).filter(holds_results).and_then(|last| last.ids.last()), before)
        }
        (None, None, None) => (None, said),
    };
    let is_taken = |id: &&MessageId| before.iter().any(|said| is_users(said, id));
    carrier.filter(|id| !is_taken(id)).cloned().unwrap_or_else(|| MessageId::from(NOWHERE))
}

/// The shorter of the difference and the whole.
fn change(input: &Input<'_>, item: &Item, before: Option<&Text>) -> (UpdateForm, Text) {
    let phrases = &input.texts.phrases.strata;
    let name = super::named(&item.key, super::own_title(item).map(|title| &**title));
    let whole = || fill(&phrases.update_body, &[("key", &name), ("content", &item.body)]);
    let Some(before) = before else { return (UpdateForm::Body, Text::new(whole())) };
    let diff = TextDiff::from_lines(before.as_str(), item.body.as_str())
        .unified_diff()
        .context_radius(3)
        .to_string();
    if diff.len() < item.body.len() {
        (UpdateForm::Diff, Text::new(fill(&phrases.update_diff, &[("key", &name), ("diff", &diff)])))
    } else {
        (UpdateForm::Body, Text::new(whole()))
    }
}
