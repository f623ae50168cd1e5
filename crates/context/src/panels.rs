//! The `panels` layout: every item as a made-up tool call and its result, the oldest change first;
//! then the conversation.
//!
//! Old conversation is detached into frozen history panels ([`detach`]).

mod breakdown; // what the breakdown shows of panels
mod detach; // which old messages leave the conversation for a frozen panel
mod state; // what is carried over from request to request
mod storage; // how sessions store it

use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Block, Call, Content, Hash, Item, ItemCopy, ItemKind, Json, MessageId, MessageState,
    Omission, OmissionReason, Origin, PromptMessage, Region, ResultPart, Role, Segment, Source, Text, Tier,
    TokenCounter, Tool, ToolOutcome, ToolResult, Volatility,
};

use rustc_hash::FxHashSet;

use crate::breakdown::{ContentDetails, LayoutDetails, PromptPiece};
use crate::breakpoints::CacheEnds;
use crate::declared_tools::{PromptHead, ToolPlace};
use crate::history::{self, ExchangeMerging, ToolCallHandling};
use crate::layout::{Arrangement, Layout, LayoutInput};
use crate::message_builder::MessageBuilder;
use crate::run_context::ChangedItem;
use crate::snapshot::is_conversation_placeholder;
use crate::texts::fill_template;
use crate::time::{format_utc, format_utc_ms};
use crate::{LayoutState, Snapshot, run_context, system};

pub use detach::DetachLimits;
use state::ShownPanel;
pub use state::{FrozenHistory, PanelsState};

/// The `panels` layout.
pub struct Panels;

/// The tool that the panels pretend to be results of.
const PANEL_TOOL: &str = "dynamic_panel";
/// What the ids of these calls begin with.
const CALL_PREFIX: &str = "panel_";
/// The id of the call that ends the panels.
const FOOTER_ID: &str = "panel_footer";

impl Layout for Panels {
    fn arrange(&self, input: &LayoutInput<'_>) -> Arrangement {
        let snapshot = input.snapshot;
        let mut prompt = input.empty_prompt();
        let mut layout_state = snapshot.layout_state.clone();
        let is_new_run = layout_state.panels.run.is_new_run(snapshot);
        let items = layout_state.panels.run.divide_items(snapshot, |item| reason_against(item).is_none());
        // The footer changes with a new run, and with it everything after the panels: the moment at
        // which detaching costs least.
        if is_new_run {
            refresh_histories(input, &mut layout_state.panels);
            detach_old_messages(input, &mut layout_state.panels);
        }
        let live = live_messages(&snapshot.messages, &layout_state.panels.histories);
        let kept = layout_state.panels.footer.take().filter(|_| !is_new_run);
        let footer = kept.unwrap_or_else(|| footer_text(input, &live));
        layout_state.panels.footer = Some(footer.clone());
        let panels = ordered_panels(&items.before, &layout_state.panels, &mut prompt.left_out);
        layout_state.panels.shown = count_hits(input, &panels);

        let own = Some(panel_tool(input));
        let place = ToolPlace { layout: self, region: Region::Base, own, beside: &[] };
        let PromptHead { tools, system } = place.begin_prompt(input, &mut layout_state.declared_tools);
        prompt.tools = tools;
        let reinjection = &input.texts.phrases.panels.reinjection;
        let hashes =
            [reinjection].into_iter().chain(system.iter().map(|segment| &segment.text)).map(Text::hash);
        let system_text = input.render_cache.get_or_render("reinjection", &[], Hash::chain(hashes), || {
            fill_template(reinjection, &[("system_prompt", &system::joined_text(&system))])
        });
        let has_system = !system.is_empty();
        prompt.system.extend(has_system.then(|| Block::new(Region::Base, Content::Text(system))));

        let mut builder = MessageBuilder::default();
        let mut ids = FxHashSet::from_iter([Arc::from(FOOTER_ID)]);
        let mut ends = CacheEnds::default();
        ends.add_system();
        // Frozen history never changes. Of the others, the one that changed last is the most likely to
        // change next.
        let last_of =
            |is_frozen: bool| panels.iter().rposition(|panel| (panel.kind == ItemKind::History) == is_frozen);
        let before = [last_of(true).map(|last| last + 1), last_of(false).filter(|last| *last > 0)];
        for (index, panel) in panels.iter().enumerate() {
            if before.contains(&Some(index)) {
                ends.add(&builder);
            }
            let id = panel_call_id(&panel.id, &mut ids);
            push_panel(input, panel, items.copy_before(panel), index == 0, id, &mut builder);
        }
        if !panels.is_empty() {
            ends.add(&builder);
            push_footer(input, footer.clone(), &mut builder);
        }
        if has_system && input.target.profile.protocol.traits().separate_system {
            let phrases = &input.texts.phrases.panels;
            builder.push_text(
                Role::User,
                Region::Panel,
                &system_text,
                Origin::rule(ItemKind::System, "reinjection"),
            );
            let origin = Origin::rule(ItemKind::System, "reinjection reply");
            builder.push_text(Role::Assistant, Region::Panel, &phrases.reinjection_ack, origin);
        }
        let history = history::convert_history(input, &live, ToolCallHandling::Keep, ExchangeMerging::Join);
        prompt.left_out.extend(history.left_out);
        history.messages.iter().for_each(|message| builder.push_converted(message, Region::Log, input));
        builder.push_user_prompt(input, Region::Log, &snapshot.images.iter().collect::<Vec<_>>());
        let inserted = builder.opening_messages();
        let mut prompt = builder.finish(input, Region::Log, prompt);
        let conversation = prompt.messages.len();
        let changed = changed_panels(input, &items.changed, &mut prompt.left_out);
        prompt.left_out.extend(items.left_out);
        run_context::push_closing_block(input, &mut prompt, changed, panels.is_empty());
        let measured = ends.mark(input, &mut prompt, inserted, conversation);
        Arrangement { prompt, layout_state, measured: Some(measured), fold: None }
    }

    fn is_about_panels(&self) -> bool {
        true
    }

    fn own_tool(&self) -> Option<&'static str> {
        Some(PANEL_TOOL)
    }

    fn own_call_prefix(&self) -> Option<&'static str> {
        Some(CALL_PREFIX)
    }

    fn breakdown_details(
        &self,
        _pieces: &[PromptPiece],
        snapshot: &Snapshot,
        state: &LayoutState,
        counter: &TokenCounter,
    ) -> LayoutDetails {
        let conversation_tokens = Some(breakdown::conversation_tokens(snapshot, &state.panels, counter));
        LayoutDetails { conversation_tokens, ..LayoutDetails::default() }
    }

    fn content_details(
        &self,
        source: &Source,
        _tier: Option<Tier>,
        before: &LayoutState,
        after: &LayoutState,
    ) -> ContentDetails {
        breakdown::content_details(source, &before.panels, &after.panels)
    }
}

fn panel_tool(input: &LayoutInput<'_>) -> Tool {
    let properties = serde_json::json!({"id": {"type": "string"}, "action": {"type": "string"}});
    Tool {
        name: PANEL_TOOL.into(),
        description: input.texts.phrases.panels.tool.as_str().into(),
        parameters: Json::new(&serde_json::json!({"type": "object", "properties": properties})),
        snippet: None,
        guidelines: Vec::new(),
    }
}

/// Limits with which the next request freezes the messages up to the turn of `last`, or all of them. None
/// if there is nothing to freeze.
pub fn freeze_limits(
    messages: &[AgentMessage],
    histories: &[Arc<FrozenHistory>],
    last: Option<&MessageId>,
) -> Option<DetachLimits> {
    let live = live_messages(messages, histories);
    let last = match last {
        Some(id) => live.iter().position(|message| message.id == *id)?,
        None => live.len().checked_sub(1)?,
    };
    detach::limits_up_to(&live, last)
}

/// Freezes what has grown too long.
fn detach_old_messages(input: &LayoutInput<'_>, layout_state: &mut PanelsState) {
    let messages = &input.snapshot.messages;
    let mut live = live_messages(messages, &layout_state.histories);
    let tokens = |message: &AgentMessage| detach::estimate_tokens(message, &input.render_cache.counter);
    while let Some(count) = detach::plan_detachment(&live, &input.snapshot.detach, tokens) {
        let chunk: Vec<AgentMessage> = live.drain(..count).collect();
        let number = |history: &Arc<FrozenHistory>| history.id.strip_prefix('H')?.parse().ok();
        let last = layout_state.histories.iter().filter_map(number).max().unwrap_or(0_usize);
        layout_state.histories.push(Arc::new(freeze_history(input, &chunk, last + 1)));
    }
}

/// The messages that are in no frozen history. Frozen histories usually hold the beginning of the
/// conversation, so that case is fast.
fn live_messages(messages: &[AgentMessage], histories: &[Arc<FrozenHistory>]) -> Vec<AgentMessage> {
    let frozen = || histories.iter().flat_map(|history| &history.messages);
    let mut here = messages.iter();
    if frozen().all(|id| here.next().is_some_and(|message| message.id == *id)) {
        let begun: FxHashSet<&MessageId> = here.clone().map(|message| &message.id).collect();
        if frozen().all(|id| !begun.contains(id)) {
            return here.cloned().collect();
        }
    }
    let frozen: FxHashSet<&MessageId> = frozen().collect();
    messages.iter().filter(|message| !frozen.contains(&message.id)).cloned().collect()
}

/// Freezes histories anew in which a message was summarised or deleted since, and drops those of which
/// nothing is left.
fn refresh_histories(input: &LayoutInput<'_>, state: &mut PanelsState) {
    let changed: FxHashSet<&MessageId> = input
        .snapshot
        .messages
        .iter()
        .filter(|message| message.state != MessageState::Whole)
        .map(|message| &message.id)
        .collect();
    if changed.is_empty() || state.histories.is_empty() {
        return;
    }
    state.histories.retain_mut(|history| {
        if !history.messages.iter().any(|id| changed.contains(id)) {
            return true;
        }
        let ids: FxHashSet<&MessageId> = history.messages.iter().collect();
        let chunk: Vec<AgentMessage> =
            input.snapshot.messages.iter().filter(|message| ids.contains(&message.id)).cloned().collect();
        if chunk.len() < history.messages.len() {
            return true; // a request that shows only a part of the conversation
        }
        let content = freeze_history(input, &chunk, 0).content;
        if content != history.content {
            Arc::make_mut(history).content = content;
        }
        chunk.iter().any(detach::is_active)
    });
}

fn freeze_history(input: &LayoutInput<'_>, chunk: &[AgentMessage], number: usize) -> FrozenHistory {
    let phrases = &input.texts.phrases.panels;
    let mut content = String::new();
    for message in chunk.iter().filter(|message| detach::is_active(message)) {
        for (role, part) in detach::history_lines(message) {
            content.push_str(&match part {
                detach::HistoryLine::Text(text) => fill_template(
                    &phrases.history_message,
                    &[("id", &message.id.0), ("role", role), ("text", text)],
                ),
                detach::HistoryLine::ToolCall(name, arguments) => {
                    let values =
                        [("id", &*message.id.0), ("role", role), ("name", name), ("arguments", arguments)];
                    fill_template(&phrases.history_call, &values)
                }
            });
        }
    }
    let name =
        |message: Option<&AgentMessage>| message.map_or_else(String::new, |message| message.id.to_string());
    let (first, last) = (name(chunk.first()), name(chunk.last()));
    FrozenHistory {
        id: format!("H{number}").into(),
        title: fill_template(&phrases.history_title, &[("first", &first), ("last", &last)]).into(),
        content: Text::new(content),
        // Its content is as old as its last message, so that it stands before what changed since.
        at_ms: chunk
            .iter()
            .rev()
            .find_map(|message| message.time)
            .unwrap_or(input.snapshot.now)
            .as_millisecond(),
        messages: chunk.iter().map(|message| message.id.clone()).collect(),
    }
}

/// Why this layout does not show an item as a panel; `None` if it does.
fn reason_against(item: &Item) -> Option<OmissionReason> {
    match item.kind {
        _ if is_conversation_placeholder(item) => Some(OmissionReason::ConversationItem),
        ItemKind::Symbols | ItemKind::Legend => Some(OmissionReason::NoSymbolMap),
        _ => None,
    }
}

/// Whether this layout shows an item as a panel; if not, it is listed as left out.
fn is_panel(item: &Item, left_out: &mut Vec<Omission>) -> bool {
    let reason = reason_against(item);
    left_out.extend(reason.clone().map(|reason| Omission::of_item(item.key.clone(), reason)));
    reason.is_none()
}

/// The panels in order: oldest change first, ties by id.
fn ordered_panels(items: &[Item], layout_state: &PanelsState, left_out: &mut Vec<Omission>) -> Vec<Item> {
    let shown = items.iter().filter(|item| is_panel(item, left_out));
    let mut panels: Vec<Item> =
        shown.map(|item| Item { changed_at_ms: last_change(item, layout_state), ..item.clone() }).collect();
    panels.extend(layout_state.histories.iter().map(|history| Item {
        key: format!("history:{}", history.id).into(),
        id: history.id.clone(),
        kind: ItemKind::History,
        title: history.title.clone(),
        body: history.content.clone(),
        changed_at_ms: history.at_ms,
        volatility: Volatility::Static,
        tier: None,
        unchanged_responses: None,
        shown_by: None,
    }));
    panels
        .sort_by(|a, b| a.changed_at_ms.cmp(&b.changed_at_ms).then_with(|| compare_panel_ids(&a.id, &b.id)));
    panels
}

/// When the content of a panel last changed. What comes later than the other panels, or does not know
/// its own time, changed when the run began: it must not push aside what stands before it.
fn last_change(item: &Item, PanelsState { shown, run, .. }: &PanelsState) -> i64 {
    match shown.iter().find(|last| last.key == item.key) {
        Some(last) if last.hash == item.body.hash() => last.changed_at_ms,
        Some(last) if item.changed_at_ms > last.changed_at_ms => item.changed_at_ms,
        None if shown.is_empty() => item.changed_at_ms,
        _ => run.began_at_ms.unwrap_or(item.changed_at_ms),
    }
}

/// Compares panel ids by their numbers: `P2` comes before `P10`.
fn compare_panel_ids(a: &str, b: &str) -> std::cmp::Ordering {
    fn split(id: &str) -> (&str, Option<u64>) {
        let letters = id.trim_end_matches(|c: char| c.is_ascii_digit());
        (letters, id[letters.len()..].parse().ok())
    }
    split(a).cmp(&split(b)).then_with(|| a.cmp(b))
}

/// Counts cache hits: a panel is a hit when it and all panels before it are as in the last request.
fn count_hits(input: &LayoutInput<'_>, panels: &[Item]) -> Vec<ShownPanel> {
    let before = &input.snapshot.layout_state.panels.shown;
    let prices = input.target.model.prices_at(0);
    let mut prefix_holds = true;
    let shown = panels.iter().enumerate().map(|(index, panel)| {
        let hash = panel.body.hash();
        prefix_holds &= before.get(index).is_some_and(|last| last.hash == hash);
        let known = before.iter().find(|last| last.key == panel.key);
        let tokens = input.target.factor.scale(input.render_cache.counter.count(&panel.body)) as f64;
        let price = if prefix_holds { prices.read() } else { prices.write() };
        ShownPanel {
            key: panel.key.clone(),
            hash,
            changed_at_ms: panel.changed_at_ms,
            hits: known.map_or(0, |last| last.hits) + u32::from(prefix_holds),
            misses: known.map_or(0, |last| last.misses) + u32::from(!prefix_holds),
            cost: known.map_or(0.0, |last| last.cost) + tokens * price / 1e6,
        }
    });
    shown.collect()
}

fn push_panel(
    input: &LayoutInput<'_>,
    panel: &Item,
    copy: ItemCopy,
    first: bool,
    id: Arc<str>,
    builder: &mut MessageBuilder,
) {
    let phrases = &input.texts.phrases.panels;
    let rule = |name| Origin::rule(panel.kind, name);
    let mut blocks = Vec::with_capacity(3);
    if first {
        blocks.push(Block::text(Region::Panel, phrases.header.clone(), rule("panel header")));
    }
    blocks.push(Block::text(Region::Panel, panel_timestamp(input, panel), rule("panel timestamp")));
    let arguments = Json::new(&serde_json::json!({ "id": &*panel.id }));
    let origin = Origin::item(panel.kind, &panel.key, copy);
    let body = Segment { text: panel_body(input, panel), origin };
    push_call_pair(builder, blocks, id, arguments, panel.kind, body);
}

fn panel_timestamp(input: &LayoutInput<'_>, panel: &Item) -> Text {
    let phrases = &input.texts.phrases.panels;
    let time = format_utc_ms(panel.changed_at_ms);
    input.render_cache.get_or_render("panel timestamp", &[&time], phrases.timestamp.hash(), || {
        fill_template(&phrases.timestamp, &[("iso_time", &time)])
    })
}

fn panel_body(input: &LayoutInput<'_>, panel: &Item) -> Text {
    let phrases = &input.texts.phrases.panels;
    input.render_cache.get_or_render("panel", &[&panel.id, &panel.title], panel.body.hash(), || {
        // A file that has no name but its path is shown as one.
        let is_path = panel.kind == ItemKind::File && *panel.title == *panel.name();
        let name = if is_path {
            fill_template(&phrases.file_name, &[("path", &panel.title)])
        } else {
            panel.title.to_string()
        };
        fill_template(&phrases.body, &[("id", &panel.id), ("name", &name), ("content", &panel.body)])
    })
}

/// The panels that changed within the run, for the end of the last message.
fn changed_panels(
    input: &LayoutInput<'_>,
    changed: &[ChangedItem],
    left_out: &mut Vec<Omission>,
) -> Vec<Segment> {
    let now = input.snapshot.now.as_millisecond();
    let mut segments: Vec<Segment> = Vec::new();
    for changed in changed.iter().filter(|changed| is_panel(&changed.item, left_out)) {
        let panel = &changed.item;
        let gap = if segments.is_empty() { "" } else { "\n\n" };
        let timestamp = panel_timestamp(input, &Item { changed_at_ms: now, ..panel.clone() });
        let rule = Origin::rule(panel.kind, "panel timestamp");
        segments.push(Segment::new(format!("{gap}{timestamp}\n"), rule));
        let whole = || {
            let origin = Origin::item(panel.kind, &panel.key, ItemCopy::Current);
            Segment { text: panel_body(input, panel), origin }
        };
        segments.push(changed.diff_segment(input).unwrap_or_else(whole));
    }
    segments
}

/// A unique call id for a panel: `panel_P1`. Users may give panels any id, and one id twice.
fn panel_call_id(id: &str, used: &mut FxHashSet<Arc<str>>) -> Arc<str> {
    let valid = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    let name = format!("{CALL_PREFIX}{}", id.chars().map(valid).collect::<String>());
    history::unique_id(&name, used)
}

/// The text that ends the panels: when each message was written, the time, the working directory.
fn footer_text(input: &LayoutInput<'_>, live: &[AgentMessage]) -> Text {
    let phrases = &input.texts.phrases.panels;
    let mut text = phrases.footer.to_string();
    let timed: Vec<&AgentMessage> =
        live.iter().filter(|m| detach::is_active(m) && m.time.is_some()).collect();
    if !timed.is_empty() {
        text.push_str(&phrases.footer_messages);
    }
    for message in timed {
        let time = message.time.map(format_utc).unwrap_or_default();
        let values = [("id", &*message.id.0), ("role", detach::role_name(message)), ("iso_time", &time)];
        text.push_str(&fill_template(&phrases.footer_message, &values));
    }
    text.push_str(&fill_template(&phrases.footer_datetime, &[("iso_time", &format_utc(input.snapshot.now))]));
    if let Some(path) = &input.snapshot.working_directory {
        let line = fill_template(&input.texts.phrases.system.working_directory, &[("path", path)]);
        text.push('\n');
        text.push_str(&line);
    }
    Text::new(text)
}

fn push_footer(input: &LayoutInput<'_>, text: Text, builder: &mut MessageBuilder) {
    let phrases = &input.texts.phrases.panels;
    let rule = |name| Origin::rule(ItemKind::Panel, name);
    let blocks = vec![Block::text(Region::Panel, text, rule("panel footer"))];
    let arguments = Json::new(&serde_json::json!({ "action": "end_panels" }));
    let ack = Segment { text: phrases.footer_ack.clone(), origin: rule("panel footer") };
    push_call_pair(builder, blocks, FOOTER_ID.into(), arguments, ItemKind::Panel, ack);
}

fn push_call_pair(
    builder: &mut MessageBuilder,
    mut blocks: Vec<Block>,
    id: Arc<str>,
    arguments: Json,
    kind: ItemKind,
    body: Segment,
) {
    let origin = Origin::rule(kind, "panel call");
    let call = Call { id: id.clone(), name: PANEL_TOOL.into(), arguments, origin: origin.clone() };
    blocks.push(Block::new(Region::Panel, Content::Call(call)));
    let result_origin = body.origin.clone();
    let parts = vec![ResultPart::Text(vec![body])];
    let result = ToolResult { call_id: id, parts, outcome: ToolOutcome::Done, origin: result_origin };
    builder.0.push(PromptMessage::new(Role::Assistant, blocks));
    builder.0.push(PromptMessage::new(Role::User, vec![Block::new(Region::Panel, Content::Result(result))]));
}
