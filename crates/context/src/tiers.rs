//! `tiers` (seeds b and c): five stability tiers, a breakpoint after each but the last.

use std::sync::LazyLock;

use hardpan_prompt::{
    Block, Content, Copy, Item, Kind, LeftOut, Lifetime, Origin, Place, Role, Segment, Text, Tier,
};

use crate::history::{self, Calls, Exchanges};
use crate::layout::{Arrangement, Input, Layout, LayoutName};
use crate::snapshot::{ContextImage, is_chat};
use crate::system;
use crate::texts::fill;
use crate::turns::Turns;

/// The tiered layout.
pub struct Tiers;

/// The most pages in one request (seed c).
const MAX_PAGES: usize = 3;

impl Layout for Tiers {
    fn name(&self) -> LayoutName {
        LayoutName::Tiers
    }

    fn arrange(&self, input: &Input<'_>) -> Arrangement {
        let snapshot = input.snapshot;
        let mut prompt = input.blank();
        let shelves = Shelves::of(input, &mut prompt.left_out);
        let spoken = history::spoken(input, &snapshot.messages, Calls::Keep, Exchanges::Apart);
        prompt.left_out.extend(spoken.left_out);
        let tiers = &history::exchange_tiers(&snapshot.messages);
        let history_of = |tier: Tier| spoken.said.iter().filter(move |said| tiers[said.first] == tier);

        prompt.tools = input.tools(Place::L0, None);
        let mut turns = Turns::default();
        let mut l0 = system::segments(input, LayoutName::Tiers);
        l0.extend(shelves.l0(input));
        let mut l0 = Block::new(Place::L0, Content::Text(l0));
        if history_of(Tier::L0).next().is_none() {
            l0.breakpoint = Some(Lifetime::FiveMinutes);
        }
        prompt.system.push(l0);
        let start = turns.0.len();
        history_of(Tier::L0).for_each(|said| turns.said(said, Place::L0, input));
        turns.mark_last(start, Lifetime::FiveMinutes);

        let mut empty = 0;
        for (tier, place) in [(Tier::L1, Place::L1), (Tier::L2, Place::L2), (Tier::L3, Place::L3)] {
            let start = turns.0.len();
            let segments = shelves.segments(input, tier);
            if !segments.is_empty() {
                turns.say_segments(Role::User, place, segments);
                turns.say(Role::Assistant, place, &input.texts.phrases.tiers.ok, ok(Kind::File));
            }
            history_of(tier).for_each(|said| turns.said(said, place, input));
            turns.mark_last(start, Lifetime::FiveMinutes);
            empty += u32::from(turns.0.len() == start);
        }
        shelves.active(input, &mut turns);
        history_of(Tier::Active).for_each(|said| turns.said(said, Place::Active, input));
        let images: Vec<&ContextImage> = snapshot.images.iter().collect();
        turns.prompt(input, Place::Active, &images);

        let mut memory = snapshot.memory.clone();
        memory.empty_tiers += empty;
        let prompt = turns.finish(input, Place::Active, prompt);
        Arrangement { prompt, memory, measured: None }
    }
}

fn ok(kind: Kind) -> Origin {
    Origin::rule(kind, "ok")
}

/// Items sorted by what they are; what has no place in this layout is listed at once.
struct Shelves<'a> {
    legend: Option<&'a Item>,
    symbols: Vec<&'a Item>,
    files: Vec<&'a Item>,
    tree: Option<&'a Item>,
    pages: Vec<&'a Item>,
}

impl<'a> Shelves<'a> {
    fn of(input: &Input<'a>, left_out: &mut Vec<LeftOut>) -> Self {
        let snapshot = input.snapshot;
        let mut shelves =
            Shelves { legend: None, symbols: Vec::new(), files: Vec::new(), tree: None, pages: Vec::new() };
        let open: std::collections::BTreeSet<&str> = snapshot.items_of(Kind::File).map(Item::name).collect();
        let mut leave = |item: &Item, reason: &str| left_out.push(LeftOut::new(&*item.key, reason));
        for item in &snapshot.items {
            match item.kind {
                _ if is_chat(item) => leave(item, "the conversation is sent as messages"),
                // An empty file is worth knowing of; an empty panel or page is not.
                _ if item.kind != Kind::File && item.body.trim().is_empty() => leave(item, "it is empty"),
                Kind::Legend | Kind::Symbols | Kind::Tree if !snapshot.use_repo_map => {
                    leave(item, "the repository map is switched off (use_repo_map)");
                }
                Kind::Legend if shelves.legend.is_none() => shelves.legend = Some(item),
                Kind::Symbols if open.contains(item.name()) => leave(item, "the file itself is open"),
                Kind::Symbols => shelves.symbols.push(item),
                Kind::Tree if shelves.tree.is_none() => shelves.tree = Some(item),
                Kind::File => shelves.files.push(item),
                Kind::Page if shelves.pages.len() < MAX_PAGES => shelves.pages.push(item),
                Kind::Page => leave(item, "this layout takes at most 3 pages"),
                Kind::Legend | Kind::Tree => leave(item, "this layout takes only one of its kind"),
                Kind::Panel | Kind::System | Kind::History | Kind::Tool => {
                    leave(item, "this layout has no place for panels");
                }
            }
        }
        shelves
    }

    /// What follows the system prompt: legend, symbols and files of L0, each after an empty line.
    fn l0(&self, input: &Input<'_>) -> Vec<Segment> {
        let phrases = &input.texts.phrases.tiers;
        let mut segments = Vec::new();
        if let Some(legend) = self.legend {
            gap(&mut segments, Kind::Legend);
            segments.push(rule(&phrases.repo_map, Kind::Legend, "repository map header"));
            segments.push(whole(legend));
        }
        self.symbol_segments(Tier::L0, None, &mut segments);
        self.file_segments(input, Tier::L0, &mut segments);
        segments
    }

    /// The symbols and files of any tier but L0, as one user message.
    fn segments(&self, input: &Input<'_>, tier: Tier) -> Vec<Segment> {
        let mut segments = Vec::new();
        let header =
            rule(&input.texts.phrases.tiers.repo_map_continued, Kind::Symbols, "repository map header");
        self.symbol_segments(tier, Some(&header), &mut segments);
        self.file_segments(input, tier, &mut segments);
        segments.drain(..usize::from(!segments.is_empty())); // the gap before the first part
        segments
    }

    fn symbol_segments(&self, tier: Tier, header: Option<&Segment>, segments: &mut Vec<Segment>) {
        // Symbols start cached: one that nobody tracks yet is in L3 (seed c).
        let entries = self.symbols.iter().filter(|item| item.tier.unwrap_or(Tier::L3) == tier);
        for (index, item) in entries.enumerate() {
            gap(segments, Kind::Symbols);
            segments.extend(header.filter(|_| index == 0).cloned());
            segments.push(whole(item));
        }
    }

    fn file_segments(&self, input: &Input<'_>, tier: Tier, segments: &mut Vec<Segment>) {
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
            gap(segments, Kind::File);
            if index == 0 {
                segments.push(rule(header, Kind::File, "files header"));
            }
            let text = input.memo.text("fenced file", &[item.name()], item.body.hash(), || {
                fill(&phrases.file, &[("path", item.name()), ("content", &item.body)])
            });
            segments.push(Segment { text, origin: Origin::item(Kind::File, &item.key, Copy::Current) });
        }
    }

    /// Tree, pages, and what changed recently, symbols and files: each a message and its reply.
    fn active(&self, input: &Input<'_>, turns: &mut Turns) {
        let phrases = &input.texts.phrases.tiers;
        let mut pair = |segments: Vec<Segment>, reply: &Text, kind| {
            turns.say_segments(Role::User, Place::Active, segments);
            turns.say(Role::Assistant, Place::Active, reply, ok(kind));
        };
        if let Some(tree) = self.tree {
            let header = rule(&phrases.file_tree, Kind::Tree, "file tree header");
            let text = input.memo.text("file list", &[], tree.body.hash(), || {
                let count = tree.body.lines().count().to_string();
                fill(&phrases.file_list, &[("count", &count), ("files", &tree.body)])
            });
            let list = Segment { text, origin: Origin::item(Kind::Tree, &tree.key, Copy::Current) };
            pair(vec![header, list], &phrases.ok, Kind::Tree);
        }
        if !self.pages.is_empty() {
            let mut segments = vec![rule(&phrases.url_context, Kind::Page, "url header")];
            for (index, page) in self.pages.iter().enumerate() {
                if index > 0 {
                    segments.push(rule(&phrases.url_separator, Kind::Page, "url separator"));
                }
                let text = input.memo.text("page", &[&page.title], page.body.hash(), || {
                    format!("{}\n\n{}", page.title, page.body)
                });
                segments.push(Segment { text, origin: Origin::item(Kind::Page, &page.key, Copy::Current) });
            }
            pair(segments, &phrases.url_ok, Kind::Page);
        }
        let working = self.segments(input, Tier::Active);
        if !working.is_empty() {
            pair(working, &phrases.ok, Kind::File);
        }
    }
}

fn rule(text: &Text, kind: Kind, name: &'static str) -> Segment {
    Segment { text: text.clone(), origin: Origin::rule(kind, name) }
}

fn whole(item: &Item) -> Segment {
    Segment { text: item.body.clone(), origin: Origin::item(item.kind, &item.key, Copy::Current) }
}

static GAP: LazyLock<Text> = LazyLock::new(|| Text::new("\n\n"));

fn gap(segments: &mut Vec<Segment>, kind: Kind) {
    segments.push(rule(&GAP, kind, "gap"));
}
