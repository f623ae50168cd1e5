//! The `strata` layout, the default: a log-structured prompt.
//!
//! ```text
//! tools · system · BASE: items, least volatile first │ LOG: conversation, updates, prompt │ TAIL: what changes every turn
//! ```
//!
//! Between two folds nothing before the last breakpoint ever changes, so every request reads it
//! from the cache. An item that changed keeps its old body in BASE; an update in the LOG, at the
//! point where the change became known, tells the model what is new. A fold, which may begin
//! wherever a cache entry ends, drops what something later replaced. One that begins before BASE
//! lays it anew from the current bodies.

mod base; // laying BASE: which items, in which groups, and what a fold replaces
mod breakpoints; // the four breakpoints
mod draft; // one prompt from one state
mod effort; // changes of effort that keep the cache
mod garbage; // what of a prompt is garbage, and what a fold does about it
mod idle; // what has not been used for long
mod lifetimes; // which parts are kept for an hour
mod sent_results; // the tool results of a prompt, with their calls
mod server_limits; // how much of a change of tools is told where servers make it
mod shown_copies; // what a prompt shows, and where
mod sites; // where a fold could begin, and whether one is due
mod state; // what is carried over from request to request
mod storage; // how sessions store it
mod stubs; // what stands for what folds took out
mod tail; // what changes every turn, at the end of the prompt
mod tool_changes; // tools that come and go without losing the cache
mod updates; // which items changed since the model was last told, and how it is told

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::{
    Block, Call, Content, Hash, Item, ItemCopy, ItemKind, Json, MessageId, Origin, PromptMessage, Region,
    ResultPart, Role, Segment, Text, Tool, ToolOutcome, ToolResult, key_name,
};

use crate::history::ConvertedMessage;
use crate::layout::{Arrangement, Layout, LayoutInput};
use crate::message_builder::MessageBuilder;
use crate::snapshot::ContextImage;
use crate::texts::fill_template;
use crate::{Fold, FoldOutlook, FoldReason, LayoutState};

use draft::{BaseChange, Draft, DraftInput};
pub use state::StrataState;
use state::{BaseGroup, ItemUpdate, UpdateForm};
use tool_changes::ToolChangeWalk;

/// The `strata` layout.
pub struct Strata;

/// The tool that the groups of BASE pretend to be results of.
const CONTEXT_TOOL: &str = "context";
/// What the ids of these calls begin with.
const CALL_PREFIX: &str = "context_";

impl Layout for Strata {
    fn arrange(&self, input: &LayoutInput<'_>) -> Arrangement {
        let state = &input.snapshot.layout_state.strata;
        let mut draft = DraftInput::new(input, state.clone(), BaseChange::Kept).run();
        if draft.may_declare_other_tools(input) {
            let state = StrataState { declared_tools: None, tool_changes: Vec::new(), ..state.clone() };
            draft = DraftInput::new(input, state, BaseChange::Kept).run();
        }
        let due = draft.fold_sites(input).choose_fold(input, &draft.strata.account, draft.cached);
        // The first request lays BASE where there was none: that is no fold.
        let due = due.filter(|due| state.has_base || due.garbage > 0);
        finish_arrangement(input, draft, due)
    }

    fn arrange_without_reasoning(&self, input: &LayoutInput<'_>, fold: Option<Fold>) -> Arrangement {
        let Some(fold) = fold else { return self.arrange(input) };
        let state = &input.snapshot.layout_state.strata;
        let mut draft = DraftInput::new(input, state.clone(), BaseChange::Kept).run();
        // What the fold keeps is cached as before: all that is missing comes after its place.
        draft.cached = if fold.reason == FoldReason::CacheLost { 0 } else { fold.position };
        finish_arrangement(input, draft, Some(fold))
    }

    fn own_tool(&self) -> Option<&'static str> {
        Some(CONTEXT_TOOL)
    }

    fn own_call_prefix(&self) -> Option<&'static str> {
        Some(CALL_PREFIX)
    }

    fn drops_small_breakpoints(&self) -> bool {
        true
    }

    fn tracks_known_files(&self) -> bool {
        true
    }

    fn folds(&self) -> bool {
        true
    }

    fn appends_effort(&self) -> bool {
        true
    }

    fn appends_tool_changes(&self) -> bool {
        true
    }

    fn declared_tools<'a>(&self, state: &'a LayoutState) -> Option<&'a [Tool]> {
        state.strata.declared_tools.as_ref().map(|declared| &**declared.tools)
    }

    fn base_count(&self, state: &LayoutState) -> Option<u32> {
        Some(state.strata.bases)
    }

    fn garbage_tokens(&self, state: &LayoutState) -> usize {
        state.strata.account.garbage_tokens
    }

    fn fold_outlook(&self, state: &LayoutState) -> Option<FoldOutlook> {
        state.strata.account.next_fold
    }

    fn paged_out<'a>(&self, state: &'a LayoutState) -> Vec<(&'a MessageId, usize)> {
        let paged = state.strata.stubs.iter().filter(|stub| stub.is_paged_out);
        paged.map(|stub| (&stub.message, stub.tokens)).collect()
    }

    fn cached_files<'a>(&self, state: &'a LayoutState) -> Vec<(&'a str, Hash)> {
        let placed = state.strata.base.iter().flat_map(|group| &group.items);
        let files = placed.filter(|placed| placed.kind == ItemKind::File);
        files.map(|file| (key_name(&file.key), file.body.hash())).collect()
    }
}

/// Carries out the fold that is due, if one is, and settles the accounts.
fn finish_arrangement<'a>(
    input: &'a LayoutInput<'a>,
    mut draft: Draft<'a>,
    due: Option<Fold>,
) -> Arrangement {
    match &due {
        None => draft.fold_sites(input).charge_rent(&mut draft.strata.account),
        Some(due) => {
            let lays_base = due.position <= sites::head_blocks(&draft.prompt);
            let folded = draft.fold(input, &input.snapshot.layout_state.strata, due.position, lays_base);
            let change = if lays_base { BaseChange::Laid } else { BaseChange::Kept };
            // Other tools at the beginning move all places.
            let fold_site = Some(due.position).filter(|_| !draft.declares_tools_anew(input, lays_base));
            draft = DraftInput { fold_site, ..DraftInput::new(input, folded, change) }.run();
            draft.fold_sites(input).charge_rent(&mut draft.strata.account);
        }
    }
    let Draft { prompt, mut strata, measured, garbage, met, .. } = draft;
    sites::update_account(&mut strata, &prompt, &measured, &garbage, met);
    let mut layout_state = input.snapshot.layout_state.clone();
    layout_state.strata = strata;
    Arrangement { prompt, layout_state, measured: Some(measured), fold: due }
}

fn context_tool(input: &LayoutInput<'_>) -> Tool {
    let properties = serde_json::json!({"group": {"type": "string"}});
    Tool {
        name: CONTEXT_TOOL.into(),
        description: input.texts.phrases.strata.tool.as_str().into(),
        parameters: Json::new(&serde_json::json!({"type": "object", "properties": properties})),
        snippet: None,
        guidelines: Vec::new(),
    }
}

/// For each item, which of its copies in the prompt is the current one.
struct CopyIndex<'a> {
    /// By key: the position of the last update about the item.
    last_update: BTreeMap<&'a str, usize>,
    current: BTreeMap<&'a str, &'a Text>,
}

impl<'a> CopyIndex<'a> {
    fn new(strata: &'a StrataState, live: &[&'a Item]) -> Self {
        let last_update =
            strata.updates.iter().enumerate().map(|(index, update)| (&*update.key, index)).collect();
        let current = live.iter().map(|item| (&*item.key, &item.body)).collect();
        CopyIndex { last_update, current }
    }

    fn in_base(&self, key: &str, body: &Text) -> ItemCopy {
        let current = !self.last_update.contains_key(key) && self.current.get(key) == Some(&body);
        if current { ItemCopy::Current } else { ItemCopy::Former }
    }

    fn in_log(&self, index: usize, update: &ItemUpdate) -> ItemCopy {
        let last =
            self.last_update.get(&*update.key) == Some(&index) && self.current.contains_key(&*update.key);
        match update.form {
            UpdateForm::Closed | UpdateForm::PagedOut => ItemCopy::Stub,
            _ if !last => ItemCopy::Former,
            UpdateForm::Diff => ItemCopy::Update,
            UpdateForm::Body | UpdateForm::ShownByMessage | UpdateForm::InResult => ItemCopy::Current,
        }
    }
}

/// The title of a panel or page, where its key does not say the same.
fn distinct_title(item: &Item) -> Option<&Arc<str>> {
    let has_one = matches!(item.kind, ItemKind::Panel | ItemKind::Page)
        && !item.title.is_empty()
        && *item.title != *item.name();
    Some(&item.title).filter(|_| has_one)
}

/// How the model sees an item named: `panel:P1 · Todo List`, or the key alone.
fn label<'a>(key: &'a str, title: Option<&str>) -> Cow<'a, str> {
    title.map_or(Cow::Borrowed(key), |title| Cow::Owned(format!("{key} · {title}")))
}

/// Adds BASE: one call and result per group, closed by a plain reply.
fn push_base(
    input: &LayoutInput<'_>,
    groups: &[BaseGroup],
    copies: &CopyIndex<'_>,
    builder: &mut MessageBuilder,
) {
    let phrases = &input.texts.phrases.strata;
    for group in groups {
        let id: Arc<str> = format!("{CALL_PREFIX}{}", group.name).into();
        let origin = Origin::rule(ItemKind::Panel, "base group");
        let arguments = Json::new(&serde_json::json!({ "group": &*group.name }));
        let call = Call { id: id.clone(), name: CONTEXT_TOOL.into(), arguments, origin: origin.clone() };
        let segments = group.items.iter().map(|placed| {
            let name = label(&placed.key, placed.title.as_deref());
            let text = input.render_cache.get_or_render("base item", &[&name], placed.body.hash(), || {
                fill_template(&phrases.item, &[("key", &name), ("content", &placed.body)])
            });
            Segment {
                text,
                origin: Origin::item(placed.kind, &placed.key, copies.in_base(&placed.key, &placed.body)),
            }
        });
        let parts = vec![ResultPart::Text(segments.collect())];
        let result = ToolResult { call_id: id, parts, outcome: ToolOutcome::Done, origin };
        builder
            .0
            .push(PromptMessage::new(Role::Assistant, vec![Block::new(Region::Base, Content::Call(call))]));
        builder
            .0
            .push(PromptMessage::new(Role::User, vec![Block::new(Region::Base, Content::Result(result))]));
    }
    if !groups.is_empty() {
        builder.push_text(
            Role::Assistant,
            Region::Base,
            &phrases.base_ack,
            Origin::rule(ItemKind::Panel, "base reply"),
        );
    }
}

/// Adds the LOG: the conversation, each message with the updates that are anchored to it. Returns
/// the changes of tools that come after it.
fn push_log<'a>(
    input: &'a LayoutInput<'a>,
    strata: &'a StrataState,
    copies: &CopyIndex<'_>,
    history: &[Arc<ConvertedMessage>],
    builder: &mut MessageBuilder,
) -> ToolChangeWalk<'a> {
    let mut updates_by_anchor: BTreeMap<&MessageId, Vec<(usize, &ItemUpdate)>> = BTreeMap::new(); // few, and drained in order
    for (index, update) in strata.updates.iter().enumerate().filter(|(_, update)| !update.text.is_empty()) {
        updates_by_anchor.entry(&update.anchor).or_default().push((index, update));
    }
    let blocks = |region: Region, updates: Vec<(usize, &ItemUpdate)>| -> Vec<Block> {
        let block = |(index, update): (usize, &ItemUpdate)| {
            let origin = Origin::item(update.kind, &update.key, copies.in_log(index, update));
            Block::text(region, update.text.clone(), origin)
        };
        updates.into_iter().map(block).collect()
    };
    let former_tails = tail::FormerTails::new(input, strata);
    let mut tool_changes = ToolChangeWalk::new(input, &strata.tool_changes);
    for (index, converted) in history.iter().enumerate() {
        tool_changes.push_before(converted, builder);
        if let Some(before) = index.checked_sub(1) {
            former_tails.push_between(&history[before], converted, builder);
        }
        if converted.role == Role::User {
            builder.0.extend(effort::effort_message(strata, &converted.ids));
        }
        builder.push_converted(converted, Region::Log, input);
        if updates_by_anchor.is_empty() || converted.role != Role::User {
            continue;
        }
        let Some(message) = builder.0.last_mut() else { continue };
        // Results come first in a message; a person's words come last.
        let at =
            message.blocks.iter().take_while(|block| matches!(*block.content, Content::Result(_))).count();
        let news: Vec<Block> = converted
            .ids
            .iter()
            .filter_map(|id| updates_by_anchor.remove(id))
            .flat_map(|updates| blocks(Region::Log, updates))
            .collect();
        message.blocks.splice(at..at, news);
    }
    builder.0.extend(effort::effort_message(strata, input.snapshot.prompt.as_ref().map(|prompt| &prompt.id)));
    builder.push_user_prompt(
        input,
        Region::Log,
        &input.snapshot.images.iter().collect::<Vec<&ContextImage>>(),
    );
    // Without a prompt no message carries these updates: they are sent again with the next request,
    // so they are not cached.
    let region = if input.snapshot.prompt.is_some() { Region::Log } else { Region::Tail };
    let rest: Vec<Block> = std::mem::take(&mut updates_by_anchor)
        .into_values()
        .flat_map(|updates| blocks(region, updates))
        .collect();
    match builder.0.last_mut().filter(|_| input.snapshot.prompt.is_some()) {
        Some(message) => drop(message.blocks.splice(0..0, rest)),
        None if rest.is_empty() => {}
        None => builder.0.push(PromptMessage::new(Role::User, rest)),
    }
    tool_changes
}

#[cfg(test)]
mod tests;
