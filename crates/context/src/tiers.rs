//! The `tiers` layout: five stability tiers, with a breakpoint after each but the last.
//!
//! L0 holds what has been unchanged for longest, the active tier what changes. The
//! [`StabilityTracker`] decides what stands in which tier.

mod breakdown; // what the breakdown shows of tiers
mod stability; // which tier each file, symbol entry and exchange has earned
mod storage; // how sessions store that

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use hardpan_prompt::{
    AgentMessage, Block, Content, Item, ItemCopy, ItemKind, Omission, OmissionReason, Origin, Region, Role,
    Segment, Source, Text, Tier, TokenCounter, exchange_ranges, files_of_folder_line,
};

use crate::breakdown::{ContentDetails, LayoutDetails, PromptPiece, SessionFigure};
use crate::breakpoints::CacheEnds;
use crate::declared_tools::{PromptHead, ToolPlace};
use crate::history::{self, ConvertedMessage, ExchangeMerging, ToolCallHandling};
use crate::layout::{Arrangement, Coupling, Layout, LayoutInput, RepositoryView};
use crate::message_builder::MessageBuilder;
use crate::run_context::{self, ChangedItem, RunItems};
use crate::snapshot::{ContextImage, is_conversation_placeholder};
use crate::texts::fill_template;
use crate::{AssembledPrompt, Breakdown, LayoutState, Snapshot, Target};

pub use breakdown::{TierInfo, TierTokens};
use stability::ComingRequest;
pub use stability::{
    ShownEntry, StabilityTracker, SymbolMapFile, TierChange, TierChangeReason, TrackedEntry, TrackedKey,
    UnknownTrackedKey,
};

/// The `tiers` layout.
pub struct Tiers;

impl Layout for Tiers {
    fn repository_view(&self) -> RepositoryView {
        RepositoryView::Map
    }

    fn arrange(&self, input: &LayoutInput<'_>) -> Arrangement {
        let mut layout_state = input.snapshot.layout_state.clone();
        let items = place_for_request(input, &mut layout_state);
        let annotated = self.annotate(input.snapshot, &layout_state);
        let input = &LayoutInput { snapshot: &annotated, ..*input };
        let snapshot = input.snapshot;
        let mut prompt = input.empty_prompt();
        let shown = ItemsByKind::new(input, &items, &mut prompt.left_out);
        let history = history::convert_history(
            input,
            &snapshot.messages,
            ToolCallHandling::Keep,
            ExchangeMerging::Separate,
        );
        prompt.left_out.extend(history.left_out);
        let history = TieredHistory::new(snapshot, &history.messages);

        let items_of_l0 = shown.l0_segments(input);
        let place = ToolPlace { layout: self, region: Region::L0, own: None, beside: &items_of_l0 };
        let PromptHead { tools, system: mut l0 } =
            place.begin_prompt(input, &mut layout_state.declared_tools);
        prompt.tools = tools;
        let mut builder = MessageBuilder::default();
        let mut ends = CacheEnds::default();
        l0.extend(items_of_l0);
        prompt.system.extend((!l0.is_empty()).then(|| Block::new(Region::L0, Content::Text(l0))));
        history.push(input, Tier::L0, Region::L0, &mut builder, &mut ends);
        ends.add(&builder); // the end of the system prompt, if no history follows it

        let mut empty = 0;
        for (tier, region) in [(Tier::L1, Region::L1), (Tier::L2, Region::L2), (Tier::L3, Region::L3)] {
            let start = builder.0.len();
            let segments = shown.tier_segments(input, tier);
            if !segments.is_empty() {
                builder.push_segments(Role::User, region, segments);
                builder.push_text(
                    Role::Assistant,
                    region,
                    &input.texts.phrases.tiers.ok,
                    ok_origin(ItemKind::File),
                );
            }
            history.push(input, tier, region, &mut builder, &mut ends);
            if builder.0.len() == start {
                empty += 1;
            } else {
                ends.add(&builder);
            }
        }
        shown.push_active_messages(input, &mut builder);
        history.push(input, Tier::Active, Region::Active, &mut builder, &mut ends);
        let images: Vec<&ContextImage> = snapshot.images.iter().collect();
        builder.push_user_prompt(input, Region::Active, &images);

        layout_state.empty_tiers += empty;
        let inserted = builder.opening_messages();
        let mut prompt = builder.finish(input, Region::Active, prompt);
        let conversation = prompt.messages.len();
        let changed = shown.changed_segments(input, &items.changed, &mut prompt.left_out);
        prompt.left_out.extend(items.left_out);
        run_context::push_closing_block(input, &mut prompt, changed, true);
        let measured = ends.mark(input, &mut prompt, inserted, conversation);
        Arrangement { prompt, layout_state, measured: Some(measured), fold: None }
    }

    fn needs_coupling(&self, snapshot: &Snapshot) -> bool {
        snapshot.layout_state.tiers.is_empty() && snapshot.items_of(ItemKind::Symbols).next().is_some()
    }

    fn initial_state(&self, input: &LayoutInput<'_>, coupling: &Coupling) -> LayoutState {
        let entry = |item: &Item| SymbolMapFile {
            path: item.name().into(),
            tokens: input.target.factor.scale(input.render_cache.counter.count(&item.body)),
            references: coupling.references.get(item.name()).copied().unwrap_or(0.0),
        };
        let files: Vec<SymbolMapFile> = input.snapshot.items_of(ItemKind::Symbols).map(entry).collect();
        let target_tokens = stability::cache_target_tokens(input.target);
        let tiers = StabilityTracker::initial(&files, &coupling.clusters, target_tokens);
        LayoutState { tiers, ..input.snapshot.layout_state.clone() }
    }

    fn annotate<'a>(&self, snapshot: &'a Snapshot, state: &LayoutState) -> Cow<'a, Snapshot> {
        let tracker = &state.tiers;
        if tracker.is_empty() { Cow::Borrowed(snapshot) } else { Cow::Owned(tracker.assign_tiers(snapshot)) }
    }

    fn record_response(
        &self,
        state: &mut LayoutState,
        snapshot: &Snapshot,
        assembled: &AssembledPrompt,
        _target: &Target,
    ) -> Vec<TierChange> {
        let shown = stability::collect_shown_entries(snapshot, assembled);
        state.tiers = state.tiers.record_response(&shown);
        state.tiers.changes_since(&snapshot.layout_state.tiers)
    }

    fn breakdown_details(
        &self,
        pieces: &[PromptPiece],
        snapshot: &Snapshot,
        _state: &LayoutState,
        _counter: &TokenCounter,
    ) -> LayoutDetails {
        let user_prompt = snapshot.user_prompt();
        let tier_info = breakdown::summarise_tiers(pieces, user_prompt.as_ref().map(|(id, _)| *id));
        LayoutDetails { tier_info: Some(tier_info), ..LayoutDetails::default() }
    }

    fn content_details(
        &self,
        _source: &Source,
        tier: Option<Tier>,
        _before: &LayoutState,
        _after: &LayoutState,
    ) -> ContentDetails {
        ContentDetails { threshold: tier.and_then(Tier::threshold), ..ContentDetails::default() }
    }

    fn session_figures(&self, breakdown: &Breakdown, state: &LayoutState) -> Vec<SessionFigure> {
        vec![SessionFigure {
            name: "empty_tiers",
            label: "empty tiers",
            last_request: breakdown.empty_tiers,
            session: state.empty_tiers,
        }]
    }
}

/// Whether this layout shows an item before the conversation.
fn is_kept(item: &Item) -> bool {
    let has_no_place = match item.kind {
        ItemKind::Panel => !is_own_panel(item),
        kind => matches!(kind, ItemKind::System | ItemKind::History | ItemKind::Tool),
    };
    !has_no_place && !is_conversation_placeholder(item)
}

/// Whether the item is a panel of the agent's own. Others, such as git's status, change too often for
/// what this layout keeps in its place.
fn is_own_panel(item: &Item) -> bool {
    item.kind == ItemKind::Panel && item.key.starts_with("panel:")
}

/// Divides the items by where this request shows them, and moves the tracker's entries to the tiers that
/// they have in it.
fn place_for_request(input: &LayoutInput<'_>, state: &mut LayoutState) -> RunItems {
    let snapshot = input.snapshot;
    let before = state.tiers_run.clone();
    let is_new_run = before.is_new_run(snapshot);
    let mut items = state.tiers_run.divide_items(snapshot, is_kept);
    if !state.tiers.is_empty() {
        let target_tokens = stability::cache_target_tokens(input.target);
        let is_changed = |item: &Item| before.differs(item, is_kept);
        let coming = ComingRequest::new(snapshot, &items.before, is_changed, is_new_run, target_tokens);
        state.tiers = state.tiers.place(&coming);
        state.tiers.assign_item_tiers(&mut items.before);
    }
    items.changed.iter_mut().for_each(|changed| changed.item.tier = Some(Tier::Active));
    items
}

/// The conversation by tier. An exchange moves as a whole, so all its messages have the tier of the least
/// stable one.
struct TieredHistory<'a> {
    messages: &'a [Arc<ConvertedMessage>],
    tiers: Vec<Tier>,
    /// For each message, the tier that it had in the last request.
    tiers_before: Vec<Tier>,
}

impl<'a> TieredHistory<'a> {
    fn new(snapshot: &Snapshot, messages: &'a [Arc<ConvertedMessage>]) -> Self {
        let tracker = &snapshot.layout_state.tiers;
        let tiers = exchange_tiers(&snapshot.messages);
        let mut tiers_before = tiers.clone();
        for exchange in exchange_ranges(&snapshot.messages).into_iter().filter(|_| !tracker.is_empty()) {
            let key = TrackedKey::of_exchange(&snapshot.messages[exchange.start].id);
            tiers_before[exchange].fill(tracker.tier_of(&key).unwrap_or(Tier::Active));
        }
        TieredHistory { messages, tiers, tiers_before }
    }

    /// Adds the messages of a tier. Where messages join others in a cached tier, those others end where
    /// the last request has written: that is where this one reads from.
    fn push(
        &self,
        input: &LayoutInput<'_>,
        tier: Tier,
        region: Region,
        builder: &mut MessageBuilder,
        ends: &mut CacheEnds,
    ) {
        let mut has_joined = tier == Tier::Active;
        for message in self.messages.iter().filter(|message| self.tiers[message.first] == tier) {
            if self.tiers_before[message.first] != tier && !has_joined {
                has_joined = true;
                ends.add_written(builder);
            }
            builder.push_converted(message, region, input);
        }
    }
}

/// The tier of each message. An exchange moves as a whole, so all its messages have the tier of the
/// least stable one.
fn exchange_tiers(messages: &[AgentMessage]) -> Vec<Tier> {
    let mut tiers = vec![Tier::Active; messages.len()];
    for exchange in exchange_ranges(messages) {
        let least_stable =
            messages[exchange.clone()].iter().map(|message| message.tier.unwrap_or(Tier::Active)).max();
        tiers[exchange].fill(least_stable.unwrap_or(Tier::Active));
    }
    tiers
}

fn ok_origin(kind: ItemKind) -> Origin {
    Origin::rule(kind, "ok")
}

/// The items of a snapshot by kind, as far as this layout shows them.
struct ItemsByKind<'a> {
    legend: Option<&'a Item>,
    symbols: Vec<&'a Item>,
    files: Vec<&'a Item>,
    tree: Option<&'a Item>,
    pages: Vec<&'a Item>,
    panels: Vec<&'a Item>,
    /// The keys of those whose body is no longer current.
    outdated: &'a BTreeSet<Arc<str>>,
}

impl<'a> ItemsByKind<'a> {
    fn new(input: &LayoutInput<'_>, shown: &'a RunItems, left_out: &mut Vec<Omission>) -> Self {
        let snapshot = input.snapshot;
        let mut items = ItemsByKind {
            legend: None,
            symbols: Vec::new(),
            files: Vec::new(),
            tree: None,
            pages: Vec::new(),
            panels: Vec::new(),
            outdated: &shown.outdated,
        };
        let open: BTreeSet<&str> = snapshot.items_of(ItemKind::File).map(Item::name).collect();
        // What has changed since is listed, if at all, for its current body.
        let mut leave = |item: &Item, reason| {
            let is_current = !shown.outdated.contains(&item.key);
            left_out.extend(is_current.then(|| Omission::of_item(item.key.clone(), reason)));
        };
        for item in &shown.before {
            match item.kind {
                _ if is_conversation_placeholder(item) => leave(item, OmissionReason::ConversationItem),
                // An empty file is worth knowing of; an empty panel or page is not.
                _ if item.kind != ItemKind::File && item.body.trim().is_empty() => {
                    leave(item, OmissionReason::Empty);
                }
                ItemKind::Legend | ItemKind::Symbols | ItemKind::Tree if !snapshot.use_repo_map => {
                    leave(item, OmissionReason::RepoMapOff);
                }
                ItemKind::Legend if items.legend.is_none() => items.legend = Some(item),
                ItemKind::Symbols if open.contains(item.name()) => leave(item, OmissionReason::FileOpen),
                ItemKind::Symbols => items.symbols.push(item),
                ItemKind::Tree if items.tree.is_none() => items.tree = Some(item),
                ItemKind::File => items.files.push(item),
                ItemKind::Page => items.pages.push(item),
                ItemKind::Legend | ItemKind::Tree => leave(item, OmissionReason::OneOfItsKind),
                ItemKind::Panel if is_own_panel(item) => items.panels.push(item),
                ItemKind::Panel | ItemKind::System | ItemKind::History | ItemKind::Tool => {
                    leave(item, OmissionReason::NoPanels);
                }
            }
        }
        items
    }

    /// What follows the system prompt in L0: legend, symbols and files, each after an empty line.
    fn l0_segments(&self, input: &LayoutInput<'_>) -> Vec<Segment> {
        let phrases = &input.texts.phrases.tiers;
        let mut segments = Vec::new();
        if let Some(legend) = self.legend {
            push_gap(&mut segments, ItemKind::Legend);
            segments.push(rule_segment(&phrases.repo_map, ItemKind::Legend, "repository map header"));
            segments.push(self.item_segment(legend));
        }
        self.symbol_segments(Tier::L0, None, &mut segments);
        self.file_segments(input, Tier::L0, &mut segments);
        segments
    }

    /// The symbols and files of any tier but L0, as one user message.
    fn tier_segments(&self, input: &LayoutInput<'_>, tier: Tier) -> Vec<Segment> {
        let mut segments = Vec::new();
        let header = rule_segment(
            &input.texts.phrases.tiers.repo_map_continued,
            ItemKind::Symbols,
            "repository map header",
        );
        self.symbol_segments(tier, Some(&header), &mut segments);
        self.file_segments(input, tier, &mut segments);
        segments.drain(..usize::from(!segments.is_empty())); // the empty line before the first part
        segments
    }

    fn symbol_segments(&self, tier: Tier, header: Option<&Segment>, segments: &mut Vec<Segment>) {
        // Symbol entries rarely change, so one that is not tracked yet starts in the cached tier
        // L3.
        let entries = self.symbols.iter().filter(|item| item.tier.unwrap_or(Tier::L3) == tier);
        for (index, item) in entries.enumerate() {
            push_gap(segments, ItemKind::Symbols);
            segments.extend(header.filter(|_| index == 0).cloned());
            segments.push(self.item_segment(item));
        }
    }

    fn file_segments(&self, input: &LayoutInput<'_>, tier: Tier, segments: &mut Vec<Segment>) {
        let phrases = &input.texts.phrases.tiers;
        let header = match tier {
            Tier::L0 => &phrases.files_l0,
            Tier::L1 => &phrases.files_l1,
            Tier::L2 => &phrases.files_l2,
            Tier::L3 => &phrases.files_l3,
            Tier::Active => &phrases.files_active,
        };
        let files = self.files.iter().filter(|item| item.tier.unwrap_or(Tier::Active) == tier);
        for (index, item) in files.enumerate() {
            push_gap(segments, ItemKind::File);
            if index == 0 {
                segments.push(rule_segment(header, ItemKind::File, "files header"));
            }
            let text =
                input.render_cache.get_or_render("fenced file", &[item.name()], item.body.hash(), || {
                    fill_template(&phrases.file, &[("path", item.name()), ("content", &item.body)])
                });
            segments.push(Segment { text, origin: self.item_origin(item) });
        }
    }

    /// Adds the active tier: the tree, pages, panels, and recently changed symbols and files, each as a
    /// message with a reply.
    fn push_active_messages(&self, input: &LayoutInput<'_>, builder: &mut MessageBuilder) {
        let phrases = &input.texts.phrases.tiers;
        let mut pair = |segments: Vec<Segment>, reply: &Text, kind| {
            builder.push_segments(Role::User, Region::Active, segments);
            builder.push_text(Role::Assistant, Region::Active, reply, ok_origin(kind));
        };
        if let Some(tree) = self.tree {
            pair(self.tree_segments(input, tree), &phrases.ok, ItemKind::Tree);
        }
        if !self.pages.is_empty() {
            pair(self.page_segments(input), &phrases.url_ok, ItemKind::Page);
        }
        if !self.panels.is_empty() {
            pair(self.panel_segments(input), &phrases.ok, ItemKind::Panel);
        }
        let working = self.tier_segments(input, Tier::Active);
        if !working.is_empty() {
            pair(working, &phrases.ok, ItemKind::File);
        }
    }
}

impl ItemsByKind<'_> {
    fn item_origin(&self, item: &Item) -> Origin {
        let is_outdated = self.outdated.contains(&item.key);
        let copy = if is_outdated { ItemCopy::Former } else { ItemCopy::Current };
        Origin::item(item.kind, &item.key, copy)
    }

    fn item_segment(&self, item: &Item) -> Segment {
        Segment { text: item.body.clone(), origin: self.item_origin(item) }
    }

    fn tree_segments(&self, input: &LayoutInput<'_>, tree: &Item) -> Vec<Segment> {
        let phrases = &input.texts.phrases.tiers;
        let is_complete = tree.body.lines().all(|line| files_of_folder_line(line).is_none());
        let header = if is_complete { &phrases.file_tree } else { &phrases.file_tree_folders };
        let header = rule_segment(header, ItemKind::Tree, "file tree header");
        let text = input.render_cache.get_or_render("file list", &[], tree.body.hash(), || {
            let files = tree.body.lines().map(|line| files_of_folder_line(line).unwrap_or(1));
            let count = files.sum::<usize>().to_string();
            fill_template(&phrases.file_list, &[("count", &count), ("files", &tree.body)])
        });
        vec![header, Segment { text, origin: self.item_origin(tree) }]
    }

    fn page_segments(&self, input: &LayoutInput<'_>) -> Vec<Segment> {
        let phrases = &input.texts.phrases.tiers;
        let mut segments = vec![rule_segment(&phrases.url_context, ItemKind::Page, "url header")];
        for (index, page) in self.pages.iter().enumerate() {
            if index > 0 {
                segments.push(rule_segment(&phrases.url_separator, ItemKind::Page, "url separator"));
            }
            let text = input.render_cache.get_or_render("page", &[&page.title], page.body.hash(), || {
                format!("{}\n\n{}", page.title, page.body)
            });
            segments.push(Segment { text, origin: self.item_origin(page) });
        }
        segments
    }

    fn panel_segments(&self, input: &LayoutInput<'_>) -> Vec<Segment> {
        let phrases = &input.texts.phrases.tiers;
        let mut segments = vec![rule_segment(&phrases.panels, ItemKind::Panel, "panels header")];
        for (index, panel) in self.panels.iter().enumerate() {
            if index > 0 {
                push_gap(&mut segments, ItemKind::Panel);
            }
            let parts = [&*panel.id, &*panel.title];
            let text = input.render_cache.get_or_render("tiers panel", &parts, panel.body.hash(), || {
                let values = [("id", parts[0]), ("name", parts[1]), ("content", &panel.body)];
                fill_template(&phrases.panel, &values)
            });
            segments.push(Segment { text, origin: self.item_origin(panel) });
        }
        segments
    }

    /// The same items, to be shown at the end of the last message.
    fn closing_segments(&self, input: &LayoutInput<'_>) -> Vec<Segment> {
        let legend: Vec<Segment> = self.legend.map(|legend| self.item_segment(legend)).into_iter().collect();
        let tree = self.tree.map_or_else(Vec::new, |tree| self.tree_segments(input, tree));
        let pages = if self.pages.is_empty() { Vec::new() } else { self.page_segments(input) };
        let panels = if self.panels.is_empty() { Vec::new() } else { self.panel_segments(input) };
        join_parts([legend, tree, pages, panels, self.tier_segments(input, Tier::Active)])
    }

    /// What has changed within the run, for the end of the last message: a file or the tree as a diff, if
    /// that is shorter, all else whole.
    fn changed_segments(
        &self,
        input: &LayoutInput<'_>,
        changed: &[ChangedItem],
        left_out: &mut Vec<Omission>,
    ) -> Vec<Segment> {
        let mut whole = RunItems::default();
        let mut parts: Vec<Vec<Segment>> = Vec::new();
        for changed in changed {
            let shown = self.files.iter().chain(&self.panels).copied().chain(self.tree);
            let is_shown = shown.into_iter().any(|item| item.key == changed.item.key);
            match changed.diff_segment(input).filter(|_| is_shown) {
                Some(diff) => parts.push(vec![diff]),
                None => whole.before.push(changed.item.clone()),
            }
        }
        parts.push(ItemsByKind::new(input, &whole, left_out).closing_segments(input));
        join_parts(parts)
    }
}

/// Joins parts by an empty line.
fn join_parts(parts: impl IntoIterator<Item = Vec<Segment>>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    for part in parts {
        if !part.is_empty() && !segments.is_empty() {
            push_gap(&mut segments, ItemKind::File);
        }
        segments.extend(part);
    }
    segments
}

fn rule_segment(text: &Text, kind: ItemKind, name: &'static str) -> Segment {
    Segment { text: text.clone(), origin: Origin::rule(kind, name) }
}

static GAP: LazyLock<Text> = LazyLock::new(|| Text::new("\n\n"));

fn push_gap(segments: &mut Vec<Segment>, kind: ItemKind) {
    segments.push(rule_segment(&GAP, kind, "gap"));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_exchange_stands_where_its_least_stable_message_does() {
        let mut messages = ["user", "assistant", "user", "assistant"].map(|role| -> AgentMessage {
            serde_json::from_value(json!({"id": "m", "role": role, "content": "x"})).unwrap()
        });
        for (message, tier) in messages.iter_mut().zip([Tier::L1, Tier::L3, Tier::L2, Tier::L2]) {
            message.tier = Some(tier);
        }
        assert_eq!(exchange_tiers(&messages), [Tier::L3, Tier::L3, Tier::L2, Tier::L2]);
    }
}
