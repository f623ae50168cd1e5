//! [`PromptLog`]: the prompt of a thread as a log, and what of it is garbage.

use hardpan_economy::cache::{BlockKind, CacheBlock, Section};
use hardpan_prompt::Hash;

use super::threads::{ReplayThread, RequestStep, SYSTEM};
use crate::file_tracker::FileTouch;

/// The size of the stub that replaces a call and its result once a newer body has been sent, in
/// tokens.
pub(crate) const STUB_TOKENS: usize = 25;
/// The size of a stub right after another one, in tokens: they share a line, and only a name is
/// added.
pub(crate) const NEXT_STUB_TOKENS: usize = 8;

/// The size of the heading of a file's body after a fold, in tokens.
const HEADING_TOKENS: usize = 10;

/// One block of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogElement {
    /// A unit of the conversation, at its position in the request.
    Unit { unit: usize, place: usize },
    /// The stub that replaces a touch.
    Stub { touch: usize, place: usize, run: StubRun },
    /// The body of a file as it was after a touch.
    Body { touch: usize },
}

/// Whether a stub begins a line or continues the one before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StubRun {
    First,
    Next,
}

/// The prompt of a thread, which [`advance`](Self::advance) takes from one request to the next.
#[derive(Clone, Debug)]
pub(crate) struct PromptLog<'a> {
    thread: &'a ReplayThread,
    pub elements: Vec<LogElement>,
    /// The units of the current request; `sizes` has the current size of every unit of the thread.
    path: Vec<usize>,
    sizes: Vec<usize>,
    /// For each touch of the thread, whether the current request contains it.
    known: Vec<bool>,
    /// For each unit the touch that it is the call or the result of.
    touch_of: Vec<Option<usize>>,
    /// The current generation of each file.
    generations: Vec<u32>,
    /// The position in `path` where the turn in progress begins.
    turn: usize,
}

impl<'a> PromptLog<'a> {
    pub fn new(thread: &'a ReplayThread) -> Self {
        PromptLog {
            thread,
            elements: Vec::new(),
            path: Vec::new(),
            sizes: vec![0; thread.units.len()],
            known: vec![false; thread.touches.len()],
            touch_of: vec![None; thread.units.len()],
            generations: Vec::new(),
            turn: 0,
        }
    }

    /// Advances to the next request. Returns how many elements stay unchanged.
    pub fn advance(&mut self, step: &RequestStep) -> usize {
        for &(unit, size) in &step.sized {
            self.sizes[unit] = size;
        }
        let mut kept = self.elements.len();
        if step.common < self.path.len() {
            self.path.truncate(step.common);
            kept = self.cut();
        }
        let from = self.path.len();
        self.path.extend(&step.added);
        let new = step.added.iter().zip(from..).map(|(&unit, place)| LogElement::Unit { unit, place });
        self.elements.extend(new);
        self.note_touches(step);
        self.turn = step.turn;
        kept
    }

    /// Cuts the elements at the first one that is no longer in the conversation, and appends the
    /// units that are then missing. Returns how many elements stay unchanged.
    fn cut(&mut self) -> usize {
        let end = self.path.len();
        let place_of = |unit: usize| self.path.iter().position(|on_path| *on_path == unit);
        let is_gone = |element: &LogElement| match *element {
            LogElement::Unit { place, .. } => place >= end,
            // A stub or body is gone if its touch is.
            LogElement::Stub { touch, .. } | LogElement::Body { touch } => {
                place_of(self.thread.touches[touch].result).is_none()
            }
        };
        let kept = self.elements.iter().position(is_gone).unwrap_or(self.elements.len());
        self.elements.truncate(kept);
        let mut covered = vec![false; end];
        for element in &self.elements {
            match *element {
                LogElement::Unit { place, .. } => covered[place] = true,
                LogElement::Stub { touch, place, .. } => {
                    covered[place] = true;
                    let result = place_of(self.thread.touches[touch].result);
                    result.into_iter().for_each(|place| covered[place] = true);
                }
                LogElement::Body { .. } => {}
            }
        }
        let again = self.path.iter().zip(covered).enumerate().filter(|(_, (_, covered))| !covered);
        self.elements.extend(again.map(|(place, (&unit, _))| LogElement::Unit { unit, place }));
        kept
    }

    fn note_touches(&mut self, step: &RequestStep) {
        if step.is_cut {
            self.touch_of.fill(None);
            self.generations.clear();
            self.known.fill(false);
        }
        for &touch in &step.new_touches {
            let FileTouch { file, call, result, generation, .. } = self.thread.touches[touch];
            self.known[touch] = true;
            self.touch_of[call] = Some(touch);
            self.touch_of[result] = Some(touch);
            if self.generations.len() <= file {
                self.generations.resize(file + 1, 0);
            }
            self.generations[file] = self.generations[file].max(generation);
        }
    }

    /// The current size of a unit, in tokens.
    pub fn size(&self, unit: usize) -> usize {
        self.sizes[unit]
    }

    pub fn tokens(&self, element: LogElement) -> usize {
        match element {
            LogElement::Unit { unit, .. } => self.sizes[unit],
            LogElement::Stub { run: StubRun::First, .. } => STUB_TOKENS,
            LogElement::Stub { run: StubRun::Next, .. } => NEXT_STUB_TOKENS,
            LogElement::Body { touch } => self.body_tokens(touch),
        }
    }

    /// The size of a file's body after a touch, in billed tokens.
    pub fn body_tokens(&self, touch: usize) -> usize {
        let FileTouch { body, carrier, .. } = self.thread.touches[touch];
        let counted = self.thread.units[carrier].counted.max(1);
        let scale = (self.sizes[carrier] as f64 / counted as f64).clamp(0.5, 2.5);
        (body as f64 * scale).round() as usize + HEADING_TOKENS
    }

    /// The tokens before each element, and as last value the total.
    pub fn cumulative_tokens(&self) -> Vec<usize> {
        let mut sum = 0;
        let mut sums = vec![0];
        sums.extend(self.elements.iter().map(|element| {
            sum += self.tokens(*element);
            sum
        }));
        sums
    }

    /// Ends the turn in progress, so that folds may reach everything.
    pub fn end_turn(&mut self) {
        self.turn = self.path.len();
    }

    /// How many elements come before the turn in progress.
    pub fn settled_count(&self) -> usize {
        let is_turn =
            |element: &LogElement| matches!(*element, LogElement::Unit { place, .. } if place >= self.turn);
        self.elements.iter().position(is_turn).unwrap_or(self.elements.len())
    }

    /// For each element, and the end, how many tokens a fold that begins there would drop at least.
    /// Folds leave out the turn in progress.
    pub fn garbage_from_each(&self) -> Vec<usize> {
        let mut sweep = GarbageSweep::new(self);
        let mut garbage = vec![0; self.elements.len() + 1];
        for index in (0..self.settled_count()).rev() {
            sweep.add(self.elements[index]);
            garbage[index] = sweep.garbage;
        }
        garbage
    }

    /// How many tokens a full fold would drop.
    pub fn droppable_tokens(&self) -> usize {
        let mut folded = self.clone();
        folded.fold(0);
        self.total_tokens().saturating_sub(folded.total_tokens())
    }

    /// The prompt without any garbage, not even in the turn in progress.
    pub fn folded(&self) -> Self {
        let mut folded = self.clone();
        folded.end_turn();
        folded.fold(0);
        folded
    }

    /// The touch that a unit of the current request is the call or the result of.
    pub fn touch_of(&self, unit: usize) -> Option<usize> {
        self.touch_of[unit]
    }

    /// The tokens of the whole prompt.
    pub fn total_tokens(&self) -> usize {
        self.elements.iter().map(|element| self.tokens(*element)).sum()
    }

    /// Drops the garbage from an element on: puts the current bodies of files there, and stubs in
    /// place of older copies.
    pub fn fold(&mut self, from: usize) {
        let end = self.settled_count();
        if from >= end {
            return;
        }
        let mut sweep = GarbageSweep::new(self);
        for index in (from..end).rev() {
            sweep.add(self.elements[index]);
        }
        let dropped = sweep.dropped();
        let mut bodies: Vec<usize> = sweep.bodies();
        // The least volatile first: the files that were touched longest ago.
        bodies.sort_unstable();
        let mut folded: Vec<LogElement> = self.elements[..from].to_vec();
        let mut rest: Vec<LogElement> = Vec::new();
        for &element in &self.elements[from..end] {
            match element {
                LogElement::Unit { unit, place } => match self.touch_of[unit].filter(|touch| dropped[*touch])
                {
                    None => rest.push(element),
                    Some(touch) if self.thread.touches[touch].call == unit => {
                        rest.push(LogElement::Stub { touch, place, run: StubRun::First });
                    }
                    Some(_) => {}
                },
                LogElement::Stub { .. } => rest.push(element),
                LogElement::Body { touch } => {
                    if self.known[touch] && !sweep.keeps_body(touch) {
                        continue;
                    }
                    rest.push(element);
                }
            }
        }
        folded.extend(bodies.into_iter().map(|touch| LogElement::Body { touch }));
        folded.extend(join_stub_runs(rest));
        folded.extend(&self.elements[end..]);
        self.elements = folded;
    }

    /// An element as a block of the cache model.
    pub fn block(&self, element: LogElement) -> CacheBlock {
        let tokens = self.tokens(element);
        let (name, number) = match element {
            LogElement::Unit { unit, .. } => (0_u8, unit),
            LogElement::Stub { touch, run: StubRun::First, .. } => (1, touch),
            LogElement::Stub { touch, run: StubRun::Next, .. } => (3, touch),
            LogElement::Body { touch } => (2, touch),
        };
        let mut bytes = [name; 9];
        bytes[1..].copy_from_slice(&(number as u64).to_le_bytes());
        let is_system = matches!(element, LogElement::Unit { unit: SYSTEM, .. });
        let section = if is_system { Section::System } else { Section::Messages };
        let kind = match element {
            LogElement::Unit { unit, .. } => self.thread.units[unit].kind,
            LogElement::Stub { .. } | LogElement::Body { .. } => BlockKind::Plain,
        };
        CacheBlock { kind, ..CacheBlock::new(section, Hash::of(&bytes), tokens) }
    }
}

/// Joins neighbouring stubs into one line.
fn join_stub_runs(elements: Vec<LogElement>) -> impl Iterator<Item = LogElement> {
    let mut is_next = false;
    elements.into_iter().map(move |element| match element {
        LogElement::Stub { touch, place, .. } => {
            let run = if is_next { StubRun::Next } else { StubRun::First };
            is_next = true;
            LogElement::Stub { touch, place, run }
        }
        element => {
            is_next = false;
            element
        }
    })
}

/// Finds the garbage among elements that are added from the last to the first.
struct GarbageSweep<'a, 'b> {
    log: &'b PromptLog<'a>,
    /// For each touch, whether its result was added.
    passed: Vec<bool>,
    /// For each touch, whether both its call and its result were added.
    within: Vec<bool>,
    files: Vec<FileGarbage>,
    garbage: usize,
}

/// The touches of a file's current generation.
#[derive(Clone, Default)]
struct FileGarbage {
    /// Their tokens; `stubs` are the tokens of the stubs that would stay.
    sum: usize,
    stubs: usize,
    /// How many touches there are.
    count: usize,
    /// The touch whose body would replace them.
    last: Option<usize>,
    saved: usize,
}

impl<'a, 'b> GarbageSweep<'a, 'b> {
    fn new(log: &'b PromptLog<'a>) -> Self {
        let known = log.known.len();
        let files = vec![FileGarbage::default(); log.generations.len()];
        GarbageSweep { log, passed: vec![false; known], within: vec![false; known], files, garbage: 0 }
    }

    fn add(&mut self, element: LogElement) {
        match element {
            LogElement::Stub { .. } => {}
            LogElement::Body { touch } if !self.log.known[touch] => {}
            LogElement::Body { touch } => {
                let tokens = self.log.body_tokens(touch);
                if self.is_superseded(touch) {
                    self.garbage += tokens;
                } else {
                    self.add_to_generation(touch, tokens, 0);
                }
            }
            LogElement::Unit { unit, .. } => {
                let Some(touch) = self.log.touch_of[unit] else { return };
                if self.log.thread.touches[touch].call != unit {
                    self.passed[touch] = true;
                    return;
                }
                if !self.passed[touch] {
                    return; // its result belongs to the turn in progress
                }
                self.within[touch] = true;
                let FileTouch { call, result, .. } = self.log.thread.touches[touch];
                let tokens = self.log.sizes[call] + self.log.sizes[result];
                if self.is_superseded(touch) {
                    self.garbage += tokens.saturating_sub(STUB_TOKENS);
                } else {
                    self.add_to_generation(touch, tokens, STUB_TOKENS);
                }
            }
        }
    }

    /// Whether the file has a newer generation.
    fn is_superseded(&self, touch: usize) -> bool {
        let FileTouch { file, generation, .. } = self.log.thread.touches[touch];
        generation < self.log.generations[file]
    }

    fn add_to_generation(&mut self, touch: usize, tokens: usize, stub: usize) {
        let log = self.log;
        let file = &mut self.files[log.thread.touches[touch].file];
        file.last = Some(file.last.map_or(touch, |last| last.max(touch)));
        file.sum += tokens;
        file.stubs += stub;
        file.count += 1;
        let body = file.last.map_or(0, |last| log.body_tokens(last));
        // A single touch is the body itself, not garbage.
        let saved = if file.count > 1 { file.sum.saturating_sub(file.stubs + body) } else { 0 };
        self.garbage = self.garbage + saved - file.saved;
        file.saved = saved;
    }

    /// For each touch, whether a fold would replace it by a stub.
    fn dropped(&self) -> Vec<bool> {
        let is_worth = |touch: usize| {
            let FileTouch { file, call, result, .. } = self.log.thread.touches[touch];
            let tokens = self.log.sizes[call] + self.log.sizes[result];
            if self.is_superseded(touch) { tokens > STUB_TOKENS } else { self.files[file].saved > 0 }
        };
        self.within.iter().enumerate().map(|(touch, within)| *within && is_worth(touch)).collect()
    }

    /// The touches whose bodies a fold would write.
    fn bodies(&self) -> Vec<usize> {
        let folded = self.files.iter().filter(|file| file.saved > 0);
        folded.filter_map(|file| file.last).collect()
    }

    /// Whether the body of an earlier fold stays where it is.
    fn keeps_body(&self, touch: usize) -> bool {
        !self.is_superseded(touch) && self.files[self.log.thread.touches[touch].file].saved == 0
    }
}
