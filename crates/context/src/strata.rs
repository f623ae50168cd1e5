//! `strata`, the default: a log-structured prompt.
//!
//! ```text
//! tools · system · BASE: items, least volatile first │ LOG: conversation, updates, prompt │ TAIL: what changes every turn
//! ```
//!
//! Between two folds nothing before the last breakpoint ever changes. An item that changed keeps its place in BASE; the
//! change is told in the LOG, where it became known. A fold lays BASE anew from what is true now.

mod base; // laying BASE: which items, in which groups, and what a fold stubs
mod garbage; // what a fold would drop, and whether it pays
mod marks; // the four breakpoints
mod updates; // what has changed since it was last told

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hardpan_prompt::{
    Block, Call, Content, Copy, Item, Json, Kind, LeftOut, MessageId, Origin, Outcome, Place, ResultPart,
    Role, Segment, Source, Text, Tool, ToolResult, Turn, Volatility,
};

use crate::history::{self, Calls, Exchanges, Said};
use crate::layout::{Arrangement, Input, Layout, LayoutName};
use crate::memory::{Group, StrataMemory, Update, UpdateForm};
use crate::snapshot::{ContextImage, is_chat};
use crate::system;
use crate::texts::fill;
use crate::turns::Turns;

/// The default layout.
pub struct Strata;

/// The tool that BASE pretends to be the result of.
const TOOL: &str = "context";

impl Layout for Strata {
    fn name(&self) -> LayoutName {
        LayoutName::Strata
    }

    fn arrange(&self, input: &Input<'_>) -> Arrangement {
        let snapshot = input.snapshot;
        let mut prompt = input.blank();
        let mut memory = snapshot.memory.clone();
        let strata = &mut memory.strata;
        let shown = shown_items(input, &mut prompt.left_out);
        let (tail, live): (Vec<&Item>, Vec<&Item>) =
            shown.into_iter().partition(|item| item.volatility == Volatility::Tail);
        let mut spoken = history::spoken(input, &snapshot.messages, Calls::Keep, Exchanges::Joined);
        prompt.left_out.append(&mut spoken.left_out);

        if snapshot.fold || !strata.laid || garbage::is_due(input, &strata.account) {
            base::fold(strata, &live, &spoken.said);
        } else {
            updates::forget_lost(strata, &spoken.said, snapshot.prompt.as_ref().map(|prompt| &prompt.id));
        }
        updates::tell(input, strata, &live, &spoken.said);
        base::stub(input, strata, &mut spoken.said);

        prompt.tools = input.tools(Place::Base, Some(tool(input)));
        prompt.system.extend(system::block(input, LayoutName::Strata, Place::Base));
        let copies = Copies::of(strata, &live);
        let mut turns = Turns::default();
        lay_base(input, &strata.base, &copies, &mut turns);
        lay_log(input, strata, &copies, &spoken.said, &mut turns);
        // What is said only to end with the user is not said again, so it is not cached.
        prompt = turns.finish(input, Place::Tail, prompt);
        lay_tail(input, strata, &tail, &mut prompt);
        let measured = marks::place(input, strata, &mut prompt);
        strata.account = garbage::charge(input, strata, &live, &prompt, &measured);
        Arrangement { prompt, memory, measured: Some(measured) }
    }
}

/// The items that are shown; the others are listed.
fn shown_items<'a>(input: &Input<'a>, left_out: &mut Vec<LeftOut>) -> Vec<&'a Item> {
    let snapshot = input.snapshot;
    let open: HashMap<&str, ()> = snapshot.items_of(Kind::File).map(|item| (item.name(), ())).collect();
    let stands =
        Some(&snapshot.memory.strata).filter(|strata| strata.laid && !snapshot.fold).map(updates::known);
    // A file's map entry that stands in BASE as it is now stays there, as garbage, until the next fold.
    let stands_in_base = |item: &Item| {
        stands.as_ref().is_some_and(|known| known.get(&*item.key).copied().flatten() == Some(&item.body))
    };
    let mut shown = Vec::with_capacity(snapshot.items.len());
    for item in &snapshot.items {
        let mut leave = |reason: &str| left_out.push(LeftOut::new(&*item.key, reason));
        if is_chat(item) {
            leave("the conversation is sent as messages");
        } else if item.kind != Kind::File && item.body.trim().is_empty() {
            leave("it is empty");
        } else if item.kind == Kind::Symbols && open.contains_key(item.name()) && !stands_in_base(item) {
            leave("the file itself is open");
        } else {
            shown.push(item);
        }
    }
    shown
}

fn tool(input: &Input<'_>) -> Tool {
    let properties = serde_json::json!({"group": {"type": "string"}});
    Tool {
        name: TOOL.into(),
        description: input.texts.phrases.strata.tool.as_str().into(),
        parameters: Json::new(&serde_json::json!({"type": "object", "properties": properties})),
        snippet: None,
        guidelines: Vec::new(),
    }
}

/// For each key, which of the places that show it is the current one.
struct Copies<'a> {
    /// The position of the last update for a key.
    last_update: HashMap<&'a str, usize>,
    current: HashMap<&'a str, &'a Text>,
}

impl<'a> Copies<'a> {
    fn of(strata: &'a StrataMemory, live: &[&'a Item]) -> Self {
        let last_update =
            strata.updates.iter().enumerate().map(|(index, update)| (&*update.key, index)).collect();
        let current = live.iter().map(|item| (&*item.key, &item.body)).collect();
        Copies { last_update, current }
    }

    fn in_base(&self, key: &str, body: &Text) -> Copy {
        let current = !self.last_update.contains_key(key) && self.current.get(key) == Some(&body);
        if current { Copy::Current } else { Copy::Former }
    }

    fn in_log(&self, index: usize, update: &Update) -> Copy {
        let last =
            self.last_update.get(&*update.key) == Some(&index) && self.current.contains_key(&*update.key);
        match update.form {
            UpdateForm::Closed => Copy::Stub,
            _ if !last => Copy::Former,
            UpdateForm::Diff => Copy::Update,
            UpdateForm::Body | UpdateForm::Said => Copy::Current,
        }
    }
}

/// The title of an item whose key does not say it: a panel's, a page's.
fn own_title(item: &Item) -> Option<&Arc<str>> {
    let has_one = matches!(item.kind, Kind::Panel | Kind::Page)
        && !item.title.is_empty()
        && *item.title != *item.name();
    Some(&item.title).filter(|_| has_one)
}

/// `panel:P1 · Todo List`, or the key alone.
fn named<'a>(key: &'a str, title: Option<&str>) -> Cow<'a, str> {
    title.map_or(Cow::Borrowed(key), |title| Cow::Owned(format!("{key} · {title}")))
}

/// BASE: one call and result per group, closed by a plain reply.
fn lay_base(input: &Input<'_>, groups: &[Group], copies: &Copies<'_>, turns: &mut Turns) {
    let phrases = &input.texts.phrases.strata;
    for group in groups {
        let id: Arc<str> = format!("context_{}", group.name).into();
        let origin = Origin::rule(Kind::Panel, "base group");
        let arguments = Json::new(&serde_json::json!({ "group": &*group.name }));
        let call = Call { id: id.clone(), name: TOOL.into(), arguments, origin: origin.clone() };
        let segments = group.items.iter().map(|placed| {
            let name = named(&placed.key, placed.title.as_deref());
            let text = input.memo.text("base item", &[&name], placed.body.hash(), || {
                fill(&phrases.item, &[("key", &name), ("content", &placed.body)])
            });
            Segment {
                text,
                origin: Origin::item(placed.kind, &placed.key, copies.in_base(&placed.key, &placed.body)),
            }
        });
        let parts = vec![ResultPart::Text(segments.collect())];
        let result = ToolResult { call_id: id, parts, outcome: Outcome::Done, origin };
        turns.0.push(Turn::new(Role::Assistant, vec![Block::new(Place::Base, Content::Call(call))]));
        turns.0.push(Turn::new(Role::User, vec![Block::new(Place::Base, Content::Result(result))]));
    }
    if !groups.is_empty() {
        turns.say(Role::Assistant, Place::Base, &phrases.base_ack, Origin::rule(Kind::Panel, "base reply"));
    }
}

/// LOG: the conversation, each message with what became known with it.
fn lay_log(
    input: &Input<'_>,
    strata: &StrataMemory,
    copies: &Copies<'_>,
    said: &[Arc<Said>],
    turns: &mut Turns,
) {
    let mut told: BTreeMap<&MessageId, Vec<(usize, &Update)>> = BTreeMap::new(); // few, and drained in order
    for (index, update) in strata.updates.iter().enumerate().filter(|(_, update)| !update.text.is_empty()) {
        told.entry(&update.anchor).or_default().push((index, update));
    }
    let blocks = |place: Place, updates: Vec<(usize, &Update)>| -> Vec<Block> {
        let block = |(index, update): (usize, &Update)| {
            let origin = Origin::item(update.kind, &update.key, copies.in_log(index, update));
            Block::text(place, update.text.clone(), origin)
        };
        updates.into_iter().map(block).collect()
    };
    for said in said {
        turns.said(said, Place::Log, input);
        if told.is_empty() || said.role != Role::User {
            continue;
        }
        let Some(turn) = turns.0.last_mut() else { continue };
        // Results come first in a message; a person's words come last.
        let at = turn.blocks.iter().take_while(|block| matches!(*block.content, Content::Result(_))).count();
        let news: Vec<Block> = said
            .ids
            .iter()
            .filter_map(|id| told.remove(id))
            .flat_map(|told| blocks(Place::Log, told))
            .collect();
        turn.blocks.splice(at..at, news);
    }
    turns.prompt(input, Place::Log, &input.snapshot.images.iter().collect::<Vec<&ContextImage>>());
    // Without a prompt no message carries them: they are told again with the next request, and so not cached.
    let place = if input.snapshot.prompt.is_some() { Place::Log } else { Place::Tail };
    let rest: Vec<Block> =
        std::mem::take(&mut told).into_values().flat_map(|told| blocks(place, told)).collect();
    match turns.0.last_mut().filter(|_| input.snapshot.prompt.is_some()) {
        Some(turn) => drop(turn.blocks.splice(0..0, rest)),
        None if rest.is_empty() => {}
        None => turns.0.push(Turn::new(Role::User, rest)),
    }
}

/// TAIL: after everything that is cached, with a user's prompt, and within a turn when something but the clock changed.
fn lay_tail(
    input: &Input<'_>,
    strata: &mut StrataMemory,
    items: &[&Item],
    prompt: &mut hardpan_prompt::Prompt,
) {
    let phrases = &input.texts.phrases.strata;
    let snapshot = input.snapshot;
    let rule = |name| Origin::rule(Kind::Panel, name);
    let mut segments: Vec<Segment> = Vec::new();
    if let Some(path) = &snapshot.working_directory {
        segments
            .push(Segment::new(fill(&phrases.tail_directory, &[("path", path)]), rule("working directory")));
    }
    for item in items {
        let text = input.memo.text("tail item", &[&item.title], item.body.hash(), || {
            fill(&phrases.tail_item, &[("title", &item.title), ("content", item.body.trim_end())])
        });
        segments.push(Segment { text, origin: Origin::item(item.kind, &item.key, Copy::Current) });
    }
    let hash = hardpan_prompt::Hash::chain(segments.iter().map(|segment| segment.text.hash()));
    let changed = strata.tail != Some(hash);
    strata.tail = Some(hash);
    if snapshot.asked().is_none() && !changed {
        let reason = "unchanged since it was sent in this turn";
        prompt.left_out.extend(items.iter().map(|item| LeftOut::new(&*item.key, reason)));
        return;
    }
    let now = fill(&phrases.tail_now, &[("now", &crate::time::iso(snapshot.now))]);
    let mut tail = vec![
        Segment { text: phrases.tail.clone(), origin: rule("tail header") },
        Segment::new(now, rule("clock")),
    ];
    tail.append(&mut segments);
    if let Some(turn) = prompt.turns.last_mut() {
        turn.blocks.push(Block::new(Place::Tail, Content::Text(tail)));
    }
}

/// Whether a message of the conversation is shown by this content.
fn shows(content: &Content, id: &MessageId) -> bool {
    matches!(content, Content::Result(result) if result.origin.source == Source::Message(id.clone()))
}

#[cfg(test)]
mod tests;
