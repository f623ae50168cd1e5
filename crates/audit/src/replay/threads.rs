//! [`ReplayThread`]: a recorded conversation as a series of requests, made of units whose sizes add
//! up to what was billed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hardpan_economy::cache::{BlockKind, Moment};
use hardpan_prompt::{Text, TokenCounter, TokenUsage, Vocabulary};

use super::ThinkingSwitches;
use super::model_pricing::{ModelPricing, PricingTable};
use super::sizes::{UnsizedUnit, fit_first_request, fit_request};
use crate::file_tracker::{FileTouch, FileTracker};
use crate::import::{EntryContent, RecordedPart, Recording, Speaker};

/// The size assumed for an image, in counted tokens: about a megapixel.
const IMAGE_TOKENS: usize = 1200;
/// What a block costs in addition to its text, in counted tokens.
const BLOCK_FRAME_TOKENS: usize = 8;

/// One block of the conversation, or tokens that were sent but not recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PromptUnit {
    pub kind: BlockKind,
    /// Whether a message of the user begins here.
    pub begins_exchange: bool,
    /// Its tokens by our own counter, before they are fitted to the bill.
    pub counted: usize,
}

/// The index of the first unit: system prompt and tools.
pub(crate) const SYSTEM: usize = 0;

/// One conversation: the main one, or a sub-agent's.
#[derive(Debug, Default)]
pub(crate) struct ReplayThread {
    pub units: Vec<PromptUnit>,
    pub steps: Vec<RequestStep>,
    /// All touches of files; steps refer to them by index.
    pub touches: Vec<FileTouch>,
}

/// One request, described by how it differs from the previous one.
#[derive(Debug)]
pub(crate) struct RequestStep {
    pub at: Moment,
    pub ended: Moment,
    pub pricing: Rc<ModelPricing>,
    /// The thinking level. `None` if the model does not think.
    pub thinking: Option<Arc<str>>,
    pub thinking_switches: ThinkingSwitches,
    /// How many of its first units it shares with the previous request.
    pub common: usize,
    /// The units after the shared ones.
    pub added: Vec<usize>,
    /// Units whose size changes with this request, and their new sizes.
    pub sized: Vec<(usize, usize)>,
    /// The position in the request where the turn in progress begins.
    pub turn: usize,
    /// Whether the conversation was cut, so that the touches of earlier requests no longer hold.
    pub is_cut: bool,
    /// The touches that this request adds, by their index in [`ReplayThread::touches`].
    pub new_touches: Vec<usize>,
    /// All tokens of the request, as billed.
    pub total: usize,
    /// How they were billed.
    pub billed: TokenUsage,
}

/// Builds the threads of a recording.
pub(crate) fn build_threads(
    recording: &Recording,
    pricing: &PricingTable,
    thinking_switches: ThinkingSwitches,
) -> Vec<ReplayThread> {
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let mut threads: BTreeMap<usize, ThreadBuilder<'_>> = BTreeMap::new();
    for (index, request) in recording.requests.iter().enumerate() {
        let pricing = pricing.look_up(request);
        // A standalone request is a thread of its own.
        let (thread, context) = match request.is_standalone {
            true => (recording.entries.len() + index, Vec::new()),
            false => (request.thread, recording.context(request.leaf)),
        };
        let builder = threads.entry(thread).or_insert_with(|| ThreadBuilder::new(recording, &count));
        let outputs = &mut builder.outputs;
        let total = request.usage.prompt() as usize;
        let step = RequestStep {
            at: request.started,
            ended: request.ended,
            pricing,
            thinking: request.thinking.clone().filter(|level| !matches!(&**level, "off" | "none")),
            thinking_switches,
            common: 0,
            added: Vec::new(),
            sized: Vec::new(),
            turn: 0,
            is_cut: false,
            new_touches: Vec::new(),
            total,
            billed: request.usage,
        };
        if let Some(answer) = request.answer {
            outputs.insert(answer, request.usage.output as usize);
        }
        builder.add_request(&context, step);
    }
    threads.into_values().map(|builder| builder.thread).collect()
}

struct ThreadBuilder<'a> {
    recording: &'a Recording,
    count: &'a dyn Fn(&str) -> usize,
    thread: ReplayThread,
    /// The units of each entry.
    units_of: BTreeMap<usize, Vec<usize>>,
    /// The output billed for each answer.
    outputs: BTreeMap<usize, usize>,
    sizes: Vec<usize>,
    path: Vec<usize>,
    files: FileTracker<'a>,
    /// Calls on the path without a result yet: their unit, by id.
    calls: BTreeMap<Arc<str>, (usize, usize, usize)>,
    /// How many of `files.touches` earlier requests already have.
    told: usize,
    /// The index in the thread of each touch, so that a repeated beginning does not add it again.
    numbers: BTreeMap<(usize, usize, usize, u32, usize), usize>,
}

impl<'a> ThreadBuilder<'a> {
    fn new(recording: &'a Recording, count: &'a dyn Fn(&str) -> usize) -> Self {
        let system = PromptUnit { kind: BlockKind::Plain, begins_exchange: false, counted: 0 };
        ThreadBuilder {
            recording,
            count,
            thread: ReplayThread { units: vec![system], ..ReplayThread::default() },
            units_of: BTreeMap::new(),
            outputs: BTreeMap::new(),
            sizes: vec![0],
            path: vec![],
            files: FileTracker::new(recording.cwd.as_deref(), count),
            calls: BTreeMap::new(),
            told: 0,
            numbers: BTreeMap::new(),
        }
    }

    fn add_request(&mut self, context: &[usize], mut step: RequestStep) {
        let known_units = self.thread.units.len();
        for &entry in context {
            self.add_entry(entry);
        }
        let first = self.thread.steps.is_empty();
        let scale = step.pricing.factor;
        let fresh: Vec<UnsizedUnit> =
            context.iter().flat_map(|entry| self.new_units_of(*entry, known_units, scale)).collect();
        let units = context.iter().flat_map(|entry| &self.units_of[entry]).copied();
        let known: Vec<usize> = units.filter(|unit| *unit < known_units).collect();
        let known_total = known.iter().map(|unit| self.sizes[*unit]).sum::<usize>() + self.sizes[SYSTEM];
        let fitted = if first {
            fit_first_request(step.total, &fresh)
        } else {
            fit_request(step.total, known_total, &fresh)
        };
        if first {
            step.sized.push((SYSTEM, fitted.system));
            self.sizes[SYSTEM] = fitted.system;
        }
        for (unit, size) in fitted.sizes {
            self.sizes[unit] = size;
            step.sized.push((unit, size));
        }
        if fitted.unrecorded > 0 {
            let unit =
                PromptUnit { kind: BlockKind::Plain, begins_exchange: false, counted: fitted.unrecorded };
            let unrecorded = self.push_unit(unit, fitted.unrecorded);
            step.sized.push((unrecorded, fitted.unrecorded));
            if let Some(units) = context.last().and_then(|entry| self.units_of.get_mut(entry)) {
                units.push(unrecorded);
            }
        }
        self.shrink_newest(&known, fitted.excess, &mut step);
        self.diff_with_previous(context, &mut step);
        self.thread.steps.push(step);
    }

    /// Removes tokens that are no longer billed from the newest units: what was dropped is not
    /// recorded.
    fn shrink_newest(&mut self, known: &[usize], mut excess: usize, step: &mut RequestStep) {
        for &unit in known.iter().rev().chain([&SYSTEM]) {
            if excess == 0 {
                break;
            }
            let less = excess.min(self.sizes[unit]);
            if less > 0 {
                self.sizes[unit] -= less;
                excess -= less;
                step.sized.push((unit, self.sizes[unit]));
            }
        }
    }

    /// Finds what the request shares with the previous one, and which touches it adds.
    fn diff_with_previous(&mut self, context: &[usize], step: &mut RequestStep) {
        let mut path = vec![SYSTEM];
        let mut turn = 1;
        for entry in context {
            let units = &self.units_of[entry];
            if units.first().is_some_and(|unit| self.thread.units[*unit].begins_exchange) {
                turn = path.len();
            }
            path.extend(units);
        }
        let common = self.path.iter().zip(&path).take_while(|(old, new)| old == new).count();
        let is_cut = common < self.path.len();
        if is_cut {
            self.files.forget_all();
            self.calls.clear();
            self.told = 0;
        }
        self.observe_calls(context, if is_cut { 0 } else { common });
        step.common = common;
        step.added = path[common..].to_vec();
        step.turn = turn;
        step.is_cut = is_cut;
        step.new_touches = self.files.touches[self.told..]
            .iter()
            .map(|touch| {
                // After a cut, the shared beginning is observed again: its touches are already there.
                let FileTouch { file, call, result, generation, body, carrier: _, kind: _ } = *touch;
                *self.numbers.entry((file, call, result, generation, body)).or_insert_with(|| {
                    self.thread.touches.push(*touch);
                    self.thread.touches.len() - 1
                })
            })
            .collect();
        self.told = self.files.touches.len();
        self.path = path;
    }

    /// Passes the calls and results after a position of the request to the file tracker.
    fn observe_calls(&mut self, context: &[usize], from: usize) {
        let recording = self.recording;
        let mut place = 1;
        for entry in context {
            let EntryContent::Message { parts, .. } = &recording.entries[*entry].content else {
                place += self.units_of[entry].len();
                continue;
            };
            for (index, &unit) in self.units_of[entry].iter().enumerate() {
                place += 1;
                match parts.get(index) {
                    _ if place <= from => {}
                    Some(RecordedPart::Call(call)) => {
                        _ = self.calls.insert(call.id.clone(), (*entry, index, unit));
                    }
                    Some(RecordedPart::Result(result)) => {
                        let Some((entry, index, call_unit)) = self.calls.remove(&result.call) else {
                            continue;
                        };
                        let EntryContent::Message { parts, .. } = &recording.entries[entry].content else {
                            continue;
                        };
                        if let RecordedPart::Call(call) = &parts[index] {
                            self.files.observe(call_unit, call, unit, result);
                        }
                    }
                    Some(RecordedPart::Text(_) | RecordedPart::Reasoning(_) | RecordedPart::Image { .. })
                    | None => {}
                }
            }
        }
    }

    fn push_unit(&mut self, unit: PromptUnit, size: usize) -> usize {
        self.thread.units.push(unit);
        self.sizes.push(size);
        self.thread.units.len() - 1
    }

    fn add_entry(&mut self, entry: usize) {
        if self.units_of.contains_key(&entry) {
            return;
        }
        let recording = self.recording;
        let units = match &recording.entries[entry].content {
            EntryContent::Compaction { summary, .. } => {
                let counted = (self.count)(summary) + BLOCK_FRAME_TOKENS;
                vec![self.push_unit(PromptUnit { kind: BlockKind::Plain, begins_exchange: true, counted }, 0)]
            }
            EntryContent::Message { speaker, parts } => {
                let mut begins_exchange = *speaker == Speaker::User;
                let unit = |part| {
                    let (kind, counted) = self.measure_part(part);
                    let unit = PromptUnit { kind, begins_exchange, counted };
                    begins_exchange = false;
                    unit
                };
                let units: Vec<PromptUnit> = parts.iter().map(unit).collect();
                units.into_iter().map(|unit| self.push_unit(unit, 0)).collect()
            }
        };
        self.units_of.insert(entry, units);
    }

    fn measure_part(&self, part: &RecordedPart) -> (BlockKind, usize) {
        let count = self.count;
        match part {
            RecordedPart::Text(text) | RecordedPart::Reasoning(text) => {
                (BlockKind::Plain, count(text) + BLOCK_FRAME_TOKENS)
            }
            RecordedPart::Image { .. } => (BlockKind::Plain, IMAGE_TOKENS),
            RecordedPart::Call(call) => {
                (BlockKind::Call, count(&call.arguments) + count(&call.tool) + 2 * BLOCK_FRAME_TOKENS)
            }
            RecordedPart::Result(result) => {
                (BlockKind::Result, count(&result.text) + result.images * IMAGE_TOKENS + BLOCK_FRAME_TOKENS)
            }
        }
    }

    /// The units of an entry that no earlier request had. Those of an answer share what was billed
    /// for it.
    fn new_units_of(&self, entry: usize, known_units: usize, scale: f64) -> Vec<UnsizedUnit> {
        let units = &self.units_of[&entry];
        let counted: usize = units.iter().map(|unit| self.thread.units[*unit].counted).sum();
        let output = self.outputs.get(&entry);
        let new = units.iter().filter(|unit| **unit >= known_units);
        let fresh = |&unit: &usize| {
            let share = self.thread.units[unit].counted as f64;
            let billed = output.map(|output| *output as f64 * share / counted.max(1) as f64);
            UnsizedUnit { unit, guess: share * scale, billed }
        };
        new.map(fresh).collect()
    }
}
