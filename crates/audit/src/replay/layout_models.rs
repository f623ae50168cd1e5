//! The layouts `panels`, `tiers` and `inline` as cost models: what changes where with each request.
//!
//! In `panels` and `tiers` a file that was read whole is an item, shown once as it is now, and the
//! result of the call says only that it was opened. All three have the time at the end of the
//! system prompt, so whatever follows is new with every second. `docs/layouts.md` describes the
//! layouts; symbol maps are not recorded and left out.

use std::collections::BTreeMap;

use hardpan_context::{ShownEntry, StabilityTracker, TrackedKey};
use hardpan_economy::cache::{CacheBlock, Section};
use hardpan_prompt::{CacheLifetime, Hash, Tier};

use super::ReplayCost;
use super::billed_cache::BilledCache;
use super::prompt_log::PromptLog;
use super::threads::{ReplayThread, RequestStep, SYSTEM};
use crate::file_tracker::TouchKind;

/// The size of "Current date and time: …", in tokens.
const TIME_TOKENS: usize = 30;
/// The size of "Opened 'src/main.rs' as P10", in tokens.
const OPENED_TOKENS: usize = 15;
/// The size of a panel's timestamp, call and heading, in tokens.
const PANEL_FRAME_TOKENS: usize = 60;
/// The size of a message's line in the footer of `panels`, in tokens.
const FOOTER_LINE_TOKENS: usize = 20;
/// The least size, in messages and tokens, of a part of the conversation that `panels` freezes, and
/// of what must stay live after it.
const MIN_FROZEN: (usize, usize) = (25, 5000);
const MIN_LIVE: (usize, usize) = (25, 7500);

/// The files that are shown as items, and the conversation without their bodies.
struct OpenFiles<'a> {
    thread: &'a ReplayThread,
    log: PromptLog<'a>,
    path: Vec<usize>,
    /// The last touch of each file.
    files: BTreeMap<usize, usize>,
    /// For each unit, whether it is replaced by a short line because an item shows its file.
    short: Vec<bool>,
}

impl<'a> OpenFiles<'a> {
    fn new(thread: &'a ReplayThread) -> Self {
        let short = vec![false; thread.units.len()];
        OpenFiles { thread, log: PromptLog::new(thread), path: Vec::new(), files: BTreeMap::new(), short }
    }

    fn advance(&mut self, step: &RequestStep) {
        self.log.advance(step);
        self.path.truncate(step.common);
        self.path.extend(&step.added);
        if step.is_cut {
            self.files.clear();
            self.short.fill(false);
        }
        for &number in &step.new_touches {
            let touch = self.thread.touches[number];
            self.files.insert(touch.file, number);
            self.short[touch.result] |= touch.kind == TouchKind::Shown;
        }
    }

    fn tokens(&self, unit: usize) -> usize {
        let tokens = self.log.size(unit);
        if self.short[unit] { tokens.min(OPENED_TOKENS) } else { tokens }
    }

    /// The units of the conversation, grouped by exchange.
    fn exchanges(&self) -> Vec<&[usize]> {
        let conversation = self.path.get(1..).unwrap_or_default();
        conversation.chunk_by(|_, unit| !self.thread.units[*unit].begins_exchange).collect()
    }

    /// The system prompt as two blocks: what does not change, and the time.
    fn system(&self, step: &RequestStep) -> [CacheBlock; 2] {
        let second = step.at.0.div_euclid(1000);
        let text = self.log.size(SYSTEM).saturating_sub(TIME_TOKENS);
        [
            block(Section::System, &["system"], text),
            block(Section::System, &["time", &second.to_string()], TIME_TOKENS),
        ]
    }
}

fn block(section: Section, names: &[&str], tokens: usize) -> CacheBlock {
    CacheBlock::new(section, Hash::of(names.join("\n").as_bytes()), tokens)
}

fn unit_block(unit: usize, tokens: usize) -> CacheBlock {
    block(Section::Messages, &["unit", &unit.to_string()], tokens)
}

fn mark_last(blocks: &mut [CacheBlock]) {
    if let Some(last) = blocks.last_mut() {
        last.marker = Some(CacheLifetime::FiveMinutes);
    }
}

/// Replays `panels`: panels in the order of their last change, a footer with the time, the system
/// prompt again, the conversation; markers after the footer and at the end.
pub(super) fn replay_panels(thread: &ReplayThread) -> ReplayCost {
    let (mut open_files, mut billed_cache) = (OpenFiles::new(thread), BilledCache::default());
    let mut frozen: Vec<usize> = Vec::new(); // where each frozen part of the conversation ends
    for step in &thread.steps {
        open_files.advance(step);
        frozen.retain(|end| *end < open_files.path.len());
        let live = freeze(&open_files, &mut frozen);
        let mut blocks = open_files.system(step).to_vec();
        let mut from = 1;
        for &end in &frozen {
            let tokens: usize = open_files.path[from..end].iter().map(|unit| open_files.tokens(*unit)).sum();
            blocks.push(block(
                Section::Messages,
                &["history", &end.to_string()],
                tokens + PANEL_FRAME_TOKENS,
            ));
            from = end;
        }
        let mut files: Vec<usize> = open_files.files.values().copied().collect();
        files.sort_unstable(); // touches are numbered in order of time
        for touch in files {
            let tokens = open_files.log.body_tokens(touch) + PANEL_FRAME_TOKENS;
            blocks.push(block(Section::Messages, &["panel", &touch.to_string()], tokens));
        }
        let conversation = &open_files.path[live..];
        let second = step.at.0.div_euclid(1000).to_string();
        blocks.push(block(
            Section::Messages,
            &["footer", &second],
            PANEL_FRAME_TOKENS + FOOTER_LINE_TOKENS * conversation.len(),
        ));
        mark_last(&mut blocks);
        // Only the system prompt is repeated: about half of the unit, the rest being tools.
        blocks.push(block(Section::Messages, &["again", &second], open_files.log.size(SYSTEM) / 2));
        blocks.extend(conversation.iter().map(|unit| unit_block(*unit, open_files.tokens(*unit))));
        mark_last(&mut blocks);
        billed_cache.send(step, &BilledCache::build_request(step, blocks));
    }
    billed_cache.cost
}

/// Freezes the oldest part of the live conversation if it is large enough. Returns where the live
/// part begins.
fn freeze(open_files: &OpenFiles<'_>, frozen: &mut Vec<usize>) -> usize {
    let live = frozen.last().copied().unwrap_or(1);
    let enough = |units: &[usize], (count, tokens): (usize, usize)| {
        units.len() >= count && units.iter().map(|unit| open_files.tokens(*unit)).sum::<usize>() >= tokens
    };
    let begins = |place: &usize| open_files.thread.units[open_files.path[*place]].begins_exchange;
    let cut = (live..open_files.path.len())
        .filter(begins)
        .find(|&place| enough(&open_files.path[live..place], MIN_FROZEN));
    match cut.filter(|&place| enough(&open_files.path[place..], MIN_LIVE)) {
        Some(place) => {
            frozen.push(place);
            place
        }
        None => live,
    }
}

/// Replays `tiers`: files and exchanges by how long they have been unchanged, a marker after each
/// tier but the last.
pub(super) fn replay_tiers(thread: &ReplayThread) -> ReplayCost {
    let (mut open_files, mut billed_cache) = (OpenFiles::new(thread), BilledCache::default());
    let mut tracker = StabilityTracker::default();
    for step in &thread.steps {
        open_files.advance(step);
        let shown = shown_entries(&open_files, &tracker);
        let mut blocks = open_files.system(step).to_vec();
        for tier in Tier::ALL {
            let within = shown.iter().filter(|one| one.tier == tier);
            let before = blocks.len();
            blocks.extend(within.map(|one| CacheBlock::new(Section::Messages, one.hash, one.tokens)));
            if tier != Tier::Active && (tier == Tier::L0 || blocks.len() > before) {
                mark_last(&mut blocks);
            }
        }
        billed_cache.send(step, &BilledCache::build_request(step, blocks));
        let target = (step.pricing.rules.minimum() * 11).div_ceil(10);
        tracker = tracker.record_response(&shown, target).0;
    }
    billed_cache.cost
}

fn shown_entries(open_files: &OpenFiles<'_>, tracker: &StabilityTracker) -> Vec<ShownEntry> {
    let tiers: BTreeMap<&TrackedKey, Tier> =
        tracker.entries().iter().map(|one| (&one.key, one.tier)).collect();
    let one = |key: TrackedKey, hash: Hash, tokens: usize| {
        let tier = tiers.get(&key).copied().unwrap_or(Tier::Active);
        ShownEntry { key, hash, tokens, tier }
    };
    let files = open_files.files.iter().map(|(file, touch)| {
        one(
            TrackedKey::File(file.to_string().into()),
            Hash::of(format!("file {touch}").as_bytes()),
            open_files.log.body_tokens(*touch),
        )
    });
    let exchanges = open_files.exchanges().into_iter().map(|units| {
        let tokens = units.iter().map(|unit| open_files.tokens(*unit)).sum();
        one(
            TrackedKey::Exchange(units[0].to_string().into()),
            Hash::of(format!("{units:?}").as_bytes()),
            tokens,
        )
    });
    files.chain(exchanges).collect()
}

/// Replays `inline`: the conversation as it was recorded after a system prompt with the time,
/// without a marker. No recording has attached files, and what tools showed stays in place.
pub(super) fn replay_inline(thread: &ReplayThread) -> ReplayCost {
    let (mut open_files, mut billed_cache) = (OpenFiles::new(thread), BilledCache::default());
    for step in &thread.steps {
        open_files.advance(step);
        let mut blocks = open_files.system(step).to_vec();
        blocks.extend(open_files.path[1..].iter().map(|unit| unit_block(*unit, open_files.log.size(*unit))));
        billed_cache.send(step, &BilledCache::build_request(step, blocks));
    }
    billed_cache.cost
}
