//! `panels`, `tiers` and `inline` as cost models: what changes where with each request.
//!
//! In `panels` and `tiers` a file that was read whole is an item, shown once as it is now, and the result of the call says only that it
//! was opened. All three have the time in the system prompt, at its end, as their seeds do: whatever follows is
//! new with every second. `docs/layouts.md` describes the layouts; symbol maps are not recorded and left out.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_context::{Shown, Tracker};
use hardpan_economy::cache::{CacheBlock, Section};
use hardpan_prompt::{Hash, Lifetime, Tier};

use super::Replayed;
use super::log::Log;
use super::meter::Meter;
use super::work::{SYSTEM, Step, Thread};
use crate::files::Told;

/// "Current date and time: …", in tokens; other sizes likewise.
const TIME: usize = 30;
/// "Opened 'src/main.rs' as P10".
const OPENED: usize = 15;
/// A panel's timestamp, call and heading.
const PANEL_FRAME: usize = 60;
/// The line of a message in the footer of `panels`.
const FOOTER_LINE: usize = 20;
/// What a conversation must have before its oldest part is frozen, in messages and tokens, and what must stay (seed a).
const DETACH: (usize, usize) = (25, 5000);
const KEEP: (usize, usize) = (25, 7500);

/// The files that are open, and the conversation without their bodies.
struct Opened<'a> {
    thread: &'a Thread,
    log: Log<'a>,
    path: Vec<usize>,
    /// The last touch of each file.
    files: BTreeMap<usize, usize>,
    /// Units whose text is shown elsewhere.
    short: Vec<bool>,
}

impl<'a> Opened<'a> {
    fn new(thread: &'a Thread) -> Self {
        let short = vec![false; thread.units.len()];
        Opened { thread, log: Log::new(thread), path: Vec::new(), files: BTreeMap::new(), short }
    }

    fn advance(&mut self, step: &Step) {
        self.log.advance(step);
        self.path.truncate(step.common);
        self.path.extend(&step.added);
        if step.forgets {
            self.files.clear();
            self.short.fill(false);
        }
        for &number in &step.tells {
            let touch = self.thread.touches[number];
            self.files.insert(touch.file, number);
            self.short[touch.result] |= touch.told == Told::Shown;
        }
    }

    fn tokens(&self, unit: usize) -> usize {
        let tokens = self.log.size(unit);
        if self.short[unit] { tokens.min(OPENED) } else { tokens }
    }

    /// The conversation's units, by exchange.
    fn exchanges(&self) -> Vec<&[usize]> {
        let said = self.path.get(1..).unwrap_or_default();
        said.chunk_by(|_, unit| !self.thread.units[*unit].begins_exchange).collect()
    }

    /// The system prompt: what does not change, and the time.
    fn system(&self, step: &Step) -> [CacheBlock; 2] {
        let second = step.at.0.div_euclid(1000);
        let text = self.log.size(SYSTEM).saturating_sub(TIME);
        [
            block(Section::System, &["system"], text),
            block(Section::System, &["time", &second.to_string()], TIME),
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
        last.marker = Some(Lifetime::FiveMinutes);
    }
}

/// Panels by their last change, a footer with the time, the system prompt again, the conversation; markers after the footer and
/// at the end.
pub(super) fn panels(thread: &Thread) -> Replayed {
    let (mut opened, mut meter) = (Opened::new(thread), Meter::default());
    let mut frozen: Vec<usize> = Vec::new(); // where each frozen part of the conversation ends
    for step in &thread.steps {
        opened.advance(step);
        frozen.retain(|end| *end < opened.path.len());
        let live = freeze(&opened, &mut frozen);
        let mut blocks = opened.system(step).to_vec();
        let mut from = 1;
        for &end in &frozen {
            let tokens: usize = opened.path[from..end].iter().map(|unit| opened.tokens(*unit)).sum();
            blocks.push(block(Section::Messages, &["history", &end.to_string()], tokens + PANEL_FRAME));
            from = end;
        }
        let mut files: Vec<usize> = opened.files.values().copied().collect();
        files.sort_unstable(); // touches are numbered in order of time
        for touch in files {
            let tokens = opened.log.body(touch) + PANEL_FRAME;
            blocks.push(block(Section::Messages, &["panel", &touch.to_string()], tokens));
        }
        let said = &opened.path[live..];
        let second = step.at.0.div_euclid(1000).to_string();
        blocks.push(block(Section::Messages, &["footer", &second], PANEL_FRAME + FOOTER_LINE * said.len()));
        mark_last(&mut blocks);
        // The tools are not repeated; they are about half of what comes before the conversation.
        blocks.push(block(Section::Messages, &["again", &second], opened.log.size(SYSTEM) / 2));
        blocks.extend(said.iter().map(|unit| unit_block(*unit, opened.tokens(*unit))));
        mark_last(&mut blocks);
        meter.send(step, &Meter::request(step, blocks));
    }
    meter.replayed
}

/// Freezes the oldest part of the live conversation if it may be. Returns where the live part begins.
fn freeze(opened: &Opened<'_>, frozen: &mut Vec<usize>) -> usize {
    let live = frozen.last().copied().unwrap_or(1);
    let enough = |units: &[usize], (count, tokens): (usize, usize)| {
        units.len() >= count && units.iter().map(|unit| opened.tokens(*unit)).sum::<usize>() >= tokens
    };
    let begins = |place: &usize| opened.thread.units[opened.path[*place]].begins_exchange;
    let cut =
        (live..opened.path.len()).filter(begins).find(|&place| enough(&opened.path[live..place], DETACH));
    match cut.filter(|&place| enough(&opened.path[place..], KEEP)) {
        Some(place) => {
            frozen.push(place);
            place
        }
        None => live,
    }
}

/// Files and exchanges by how long they have been unchanged, a marker after each tier but the last.
pub(super) fn tiers(thread: &Thread) -> Replayed {
    let (mut opened, mut meter) = (Opened::new(thread), Meter::default());
    let mut tracker = Tracker::default();
    for step in &thread.steps {
        opened.advance(step);
        let shown = shown(&opened, &tracker);
        let mut blocks = opened.system(step).to_vec();
        for tier in Tier::ALL {
            let within = shown.iter().filter(|one| one.tier == tier);
            let before = blocks.len();
            blocks.extend(within.map(|one| CacheBlock::new(Section::Messages, one.hash, one.tokens)));
            if tier != Tier::Active && (tier == Tier::L0 || blocks.len() > before) {
                mark_last(&mut blocks);
            }
        }
        meter.send(step, &Meter::request(step, blocks));
        let target = (step.terms.rules.minimum() * 11).div_ceil(10);
        tracker = tracker.after_response(&shown, target).0;
    }
    meter.replayed
}

fn shown(opened: &Opened<'_>, tracker: &Tracker) -> Vec<Shown> {
    let tiers: BTreeMap<&str, Tier> = tracker.entries().iter().map(|one| (&*one.key, one.tier)).collect();
    let one = |key: String, hash: Hash, tokens: usize| {
        let tier = tiers.get(key.as_str()).copied().unwrap_or(Tier::Active);
        Shown { key: Arc::from(key), hash, tokens, tier }
    };
    let files = opened.files.iter().map(|(file, touch)| {
        one(format!("file:{file}"), Hash::of(format!("file {touch}").as_bytes()), opened.log.body(*touch))
    });
    let exchanges = opened.exchanges().into_iter().map(|units| {
        let tokens = units.iter().map(|unit| opened.tokens(*unit)).sum();
        one(format!("history:{}", units[0]), Hash::of(format!("{units:?}").as_bytes()), tokens)
    });
    files.chain(exchanges).collect()
}

/// The conversation as it was recorded, after a system prompt with the time, without a marker: nobody attached a file, and what
/// tools showed stays where it was shown.
pub(super) fn inline(thread: &Thread) -> Replayed {
    let (mut opened, mut meter) = (Opened::new(thread), Meter::default());
    for step in &thread.steps {
        opened.advance(step);
        let mut blocks = opened.system(step).to_vec();
        blocks.extend(opened.path[1..].iter().map(|unit| unit_block(*unit, opened.log.size(*unit))));
        meter.send(step, &Meter::request(step, blocks));
    }
    meter.replayed
}
