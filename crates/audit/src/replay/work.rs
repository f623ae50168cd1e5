//! The recorded work: every request as units of the conversation, with sizes that add up to what was billed.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use hardpan_economy::cache::{BlockKind, Moment};
use hardpan_models::Catalogue;
use hardpan_prompt::{Counter, Text, Vocabulary};

use super::Settings;
use super::sizes::{Fresh, fit, fit_first};
use super::terms::{AllTerms, Terms};
use crate::files::{Files, Touch};
use crate::import::{Piece, Recording, Said, Speaker};

/// What one image is taken for, in counted tokens: about a megapixel.
const IMAGE: usize = 1200;
/// What a block costs beside its text, in counted tokens.
const FRAME: usize = 8;

/// One block of the conversation, or what was sent without being recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    pub kind: BlockKind,
    /// Whether a person's message begins here.
    pub begins_exchange: bool,
    /// Counted tokens.
    pub counted: usize,
}

/// The system prompt and the tools are always the first unit.
pub(crate) const SYSTEM: usize = 0;

/// One conversation: the main one, or a sub-agent's.
#[derive(Debug, Default)]
pub(crate) struct Thread {
    pub units: Vec<Unit>,
    pub steps: Vec<Step>,
    /// All that told about files.
    pub touches: Vec<Touch>,
}

/// One request, told by what differs from the one before it.
#[derive(Debug)]
pub(crate) struct Step {
    pub at: Moment,
    pub ended: Moment,
    pub terms: Rc<Terms>,
    /// How far the model was to think; none if not at all.
    pub thinking: Option<Arc<str>>,
    pub settings: Settings,
    /// How many units it has in common with the request before, from the first on.
    pub common: usize,
    /// The units after these.
    pub added: Vec<usize>,
    /// Units whose size is set here, for the first time or anew.
    pub sized: Vec<(usize, usize)>,
    /// The tokens of units that no request had before.
    pub new: usize,
    /// Where in the request the turn in progress begins.
    pub turn: usize,
    /// Whether what was known of files before does not hold any more: the conversation was cut.
    pub forgets: bool,
    /// What it tells about files: touches of the thread.
    pub tells: Vec<usize>,
    /// All its tokens.
    pub total: usize,
}

/// The threads of a recording. Requests of models nobody knows are left out.
pub(crate) fn work(recording: &Recording, catalogue: &Catalogue, settings: Settings) -> Vec<Thread> {
    let counter = Counter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let mut terms = AllTerms::new(catalogue, recording.agent);
    let mut threads: BTreeMap<usize, Builder<'_>> = BTreeMap::new();
    for (index, request) in recording.requests.iter().enumerate() {
        let Some(terms) = terms.of(request) else { continue };
        // A request with a prompt of its own is a conversation of its own.
        let (thread, context) = match request.apart {
            true => (recording.entries.len() + index, Vec::new()),
            false => (request.thread, recording.context(request.leaf)),
        };
        let builder = threads.entry(thread).or_insert_with(|| Builder::new(recording, &count));
        let outputs = &mut builder.outputs;
        let total = request.usage.prompt() as usize;
        let step = Step {
            at: request.started,
            ended: request.ended,
            terms,
            thinking: request.thinking.clone().filter(|level| !matches!(&**level, "off" | "none")),
            settings,
            common: 0,
            added: Vec::new(),
            sized: Vec::new(),
            new: 0,
            turn: 0,
            forgets: false,
            tells: Vec::new(),
            total,
        };
        if let Some(answer) = request.answer {
            outputs.insert(answer, request.usage.output as usize);
        }
        builder.request(&context, step);
    }
    threads.into_values().map(|builder| builder.thread).collect()
}

struct Builder<'a> {
    recording: &'a Recording,
    count: &'a dyn Fn(&str) -> usize,
    thread: Thread,
    /// The units of each entry.
    units_of: BTreeMap<usize, Vec<usize>>,
    /// The output billed for each answer.
    outputs: BTreeMap<usize, usize>,
    sizes: Vec<usize>,
    path: Vec<usize>,
    files: Files<'a>,
    /// Calls on the path without a result yet: their unit, by id.
    calls: BTreeMap<Arc<str>, (usize, usize, usize)>,
    /// How many of the files' touches have been told.
    told: usize,
    /// The number of each touch in the thread.
    numbers: BTreeMap<(usize, usize, usize, u32, usize), usize>,
}

impl<'a> Builder<'a> {
    fn new(recording: &'a Recording, count: &'a dyn Fn(&str) -> usize) -> Self {
        let system = Unit { kind: BlockKind::Plain, begins_exchange: false, counted: 0 };
        Builder {
            recording,
            count,
            thread: Thread { units: vec![system], ..Thread::default() },
            units_of: BTreeMap::new(),
            outputs: BTreeMap::new(),
            sizes: vec![0],
            path: vec![],
            files: Files::new(recording.cwd.as_deref(), count),
            calls: BTreeMap::new(),
            told: 0,
            numbers: BTreeMap::new(),
        }
    }

    fn request(&mut self, context: &[usize], mut step: Step) {
        let known_units = self.thread.units.len();
        for &entry in context {
            self.add_entry(entry);
        }
        let first = self.thread.steps.is_empty();
        let scale = step.terms.factor;
        let fresh: Vec<Fresh> =
            context.iter().flat_map(|entry| self.fresh(*entry, known_units, scale)).collect();
        let units = context.iter().flat_map(|entry| &self.units_of[entry]).copied();
        let known: Vec<usize> = units.filter(|unit| *unit < known_units).collect();
        let known_total = known.iter().map(|unit| self.sizes[*unit]).sum::<usize>() + self.sizes[SYSTEM];
        let fitted = if first { fit_first(step.total, &fresh) } else { fit(step.total, known_total, &fresh) };
        if first {
            step.sized.push((SYSTEM, fitted.system));
            self.sizes[SYSTEM] = fitted.system;
        }
        for (unit, size) in fitted.sizes {
            self.sizes[unit] = size;
            step.sized.push((unit, size));
        }
        if fitted.unrecorded > 0 {
            let unit = Unit { kind: BlockKind::Plain, begins_exchange: false, counted: fitted.unrecorded };
            let unrecorded = self.push(unit, fitted.unrecorded);
            step.sized.push((unrecorded, fitted.unrecorded));
            if let Some(units) = context.last().and_then(|entry| self.units_of.get_mut(entry)) {
                units.push(unrecorded);
            }
        }
        step.new = step.sized.iter().map(|(_, size)| *size).sum();
        self.shrink(&known, fitted.excess, &mut step);
        self.follow(context, &mut step);
        self.thread.steps.push(step);
    }

    /// Takes tokens that were billed before and are no longer from the newest units: what was dropped is not recorded.
    fn shrink(&mut self, known: &[usize], mut excess: usize, step: &mut Step) {
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

    /// Finds what the request has in common with the one before, and what it tells about files.
    fn follow(&mut self, context: &[usize], step: &mut Step) {
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
        self.tell(context, if is_cut { 0 } else { common });
        step.common = common;
        step.added = path[common..].to_vec();
        step.turn = turn;
        step.forgets = is_cut;
        step.tells = self.files.touches[self.told..]
            .iter()
            .map(|touch| {
                // The same beginning tells the same again.
                let Touch { file, call, result, generation, body, carrier: _, told: _ } = *touch;
                *self.numbers.entry((file, call, result, generation, body)).or_insert_with(|| {
                    self.thread.touches.push(*touch);
                    self.thread.touches.len() - 1
                })
            })
            .collect();
        self.told = self.files.touches.len();
        self.path = path;
    }

    /// Takes in the calls and results from a place of the path on.
    fn tell(&mut self, context: &[usize], from: usize) {
        let recording = self.recording;
        let mut place = 1;
        for entry in context {
            let Said::Message { pieces, .. } = &recording.entries[*entry].said else {
                place += self.units_of[entry].len();
                continue;
            };
            for (index, &unit) in self.units_of[entry].iter().enumerate() {
                place += 1;
                match pieces.get(index) {
                    _ if place <= from => {}
                    Some(Piece::Call(call)) => _ = self.calls.insert(call.id.clone(), (*entry, index, unit)),
                    Some(Piece::Result(result)) => {
                        let Some((entry, index, call_unit)) = self.calls.remove(&result.call) else {
                            continue;
                        };
                        let Said::Message { pieces, .. } = &recording.entries[entry].said else { continue };
                        if let Piece::Call(call) = &pieces[index] {
                            self.files.observe(call_unit, call, unit, result);
                        }
                    }
                    Some(Piece::Text(_) | Piece::Reasoning(_) | Piece::Image { .. }) | None => {}
                }
            }
        }
    }

    fn push(&mut self, unit: Unit, size: usize) -> usize {
        self.thread.units.push(unit);
        self.sizes.push(size);
        self.thread.units.len() - 1
    }

    fn add_entry(&mut self, entry: usize) {
        if self.units_of.contains_key(&entry) {
            return;
        }
        let recording = self.recording;
        let units = match &recording.entries[entry].said {
            Said::Compaction { summary, .. } => {
                let counted = (self.count)(summary) + FRAME;
                vec![self.push(Unit { kind: BlockKind::Plain, begins_exchange: true, counted }, 0)]
            }
            Said::Message { speaker, pieces } => {
                let mut begins_exchange = *speaker == Speaker::User;
                let unit = |piece| {
                    let (kind, counted) = self.measured(piece);
                    let unit = Unit { kind, begins_exchange, counted };
                    begins_exchange = false;
                    unit
                };
                let units: Vec<Unit> = pieces.iter().map(unit).collect();
                units.into_iter().map(|unit| self.push(unit, 0)).collect()
            }
        };
        self.units_of.insert(entry, units);
    }

    fn measured(&self, piece: &Piece) -> (BlockKind, usize) {
        let count = self.count;
        match piece {
            Piece::Text(text) | Piece::Reasoning(text) => (BlockKind::Plain, count(text) + FRAME),
            Piece::Image { .. } => (BlockKind::Plain, IMAGE),
            Piece::Call(call) => (BlockKind::Call, count(&call.arguments) + count(&call.tool) + 2 * FRAME),
            Piece::Result(result) => (BlockKind::Result, count(&result.text) + result.images * IMAGE + FRAME),
        }
    }

    /// The units of an entry that no request had before; an answer's have what was billed for it.
    fn fresh(&self, entry: usize, known_units: usize, scale: f64) -> Vec<Fresh> {
        let units = &self.units_of[&entry];
        let counted: usize = units.iter().map(|unit| self.thread.units[*unit].counted).sum();
        let output = self.outputs.get(&entry);
        let new = units.iter().filter(|unit| **unit >= known_units);
        let fresh = |&unit: &usize| {
            let share = self.thread.units[unit].counted as f64;
            let billed = output.map(|output| *output as f64 * share / counted.max(1) as f64);
            Fresh { unit, guess: share * scale, billed }
        };
        new.map(fresh).collect()
    }
}
