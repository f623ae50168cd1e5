//! The prompt as a log: what is sent, in order, and what of it is garbage.

use hardpan_economy::cache::{BlockKind, CacheBlock, Section};
use hardpan_prompt::Hash;

use super::work::{SYSTEM, Step, Thread};
use crate::files::Touch;

/// What stands for a call and its result once a newer body has been given, in tokens.
pub(crate) const STUB: usize = 25;
/// The same for one that follows another: neighbours share a line, and only a name is added.
pub(crate) const NEXT_STUB: usize = 8;

/// The name and the frame of a body that was laid by a fold, in tokens.
const HEADING: usize = 10;

/// One block of the prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// A unit of the conversation, at a place of the request's path.
    Unit { unit: usize, place: usize },
    /// What is left of a touch.
    Stub { touch: usize, place: usize, run: Run },
    /// A file's body as it was after a touch.
    Body { touch: usize },
}

/// Whether a stub begins a line or goes on with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Run {
    First,
    Next,
}

/// The prompt of a thread, request after request.
#[derive(Clone, Debug)]
pub(crate) struct Log<'a> {
    thread: &'a Thread,
    pub elements: Vec<Element>,
    /// Units of the path, and their sizes now.
    path: Vec<usize>,
    sizes: Vec<usize>,
    /// For each touch of the thread, whether it holds on this path.
    known: Vec<bool>,
    /// The touch of a call's or a result's unit.
    touch_of: Vec<Option<usize>>,
    /// The generation of each file.
    generations: Vec<u32>,
    /// The first place of the turn in progress.
    turn: usize,
}

impl<'a> Log<'a> {
    pub fn new(thread: &'a Thread) -> Self {
        Log {
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

    /// Takes in the next request. Returns how many elements are as they were.
    pub fn advance(&mut self, step: &Step) -> usize {
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
        let new = step.added.iter().zip(from..).map(|(&unit, place)| Element::Unit { unit, place });
        self.elements.extend(new);
        self.learn(step);
        self.turn = step.turn;
        kept
    }

    /// Cuts the elements where they tell of something that is not on the path any more, and lays the rest of the path anew.
    fn cut(&mut self) -> usize {
        let end = self.path.len();
        let place_of = |unit: usize| self.path.iter().position(|on_path| *on_path == unit);
        let is_gone = |element: &Element| match *element {
            Element::Unit { place, .. } => place >= end,
            // With the touches that are known now, a stub or body is not worth keeping track of.
            Element::Stub { touch, .. } | Element::Body { touch } => {
                place_of(self.thread.touches[touch].result).is_none()
            }
        };
        let kept = self.elements.iter().position(is_gone).unwrap_or(self.elements.len());
        self.elements.truncate(kept);
        let mut covered = vec![false; end];
        for element in &self.elements {
            match *element {
                Element::Unit { place, .. } => covered[place] = true,
                Element::Stub { touch, place, .. } => {
                    covered[place] = true;
                    let result = place_of(self.thread.touches[touch].result);
                    result.into_iter().for_each(|place| covered[place] = true);
                }
                Element::Body { .. } => {}
            }
        }
        let again = self.path.iter().zip(covered).enumerate().filter(|(_, (_, covered))| !covered);
        self.elements.extend(again.map(|(place, (&unit, _))| Element::Unit { unit, place }));
        kept
    }

    fn learn(&mut self, step: &Step) {
        if step.forgets {
            self.touch_of.fill(None);
            self.generations.clear();
            self.known.fill(false);
        }
        for &touch in &step.tells {
            let Touch { file, call, result, generation, .. } = self.thread.touches[touch];
            self.known[touch] = true;
            self.touch_of[call] = Some(touch);
            self.touch_of[result] = Some(touch);
            if self.generations.len() <= file {
                self.generations.resize(file + 1, 0);
            }
            self.generations[file] = self.generations[file].max(generation);
        }
    }

    /// The tokens of a unit now.
    pub fn size(&self, unit: usize) -> usize {
        self.sizes[unit]
    }

    pub fn tokens(&self, element: Element) -> usize {
        match element {
            Element::Unit { unit, .. } => self.sizes[unit],
            Element::Stub { run: Run::First, .. } => STUB,
            Element::Stub { run: Run::Next, .. } => NEXT_STUB,
            Element::Body { touch } => self.body(touch),
        }
    }

    /// The body after a touch, in billed tokens.
    pub fn body(&self, touch: usize) -> usize {
        let Touch { body, carrier, .. } = self.thread.touches[touch];
        let counted = self.thread.units[carrier].counted.max(1);
        let scale = (self.sizes[carrier] as f64 / counted as f64).clamp(0.5, 2.5);
        (body as f64 * scale).round() as usize + HEADING
    }

    /// The tokens before each element, and of all.
    pub fn sums(&self) -> Vec<usize> {
        let mut sum = 0;
        let mut sums = vec![0];
        sums.extend(self.elements.iter().map(|element| {
            sum += self.tokens(*element);
            sum
        }));
        sums
    }

    /// Ends the turn in progress.
    pub fn end_turn(&mut self) {
        self.turn = self.path.len();
    }

    /// How many elements there are before the turn in progress.
    pub fn settled(&self) -> usize {
        let is_turn =
            |element: &Element| matches!(*element, Element::Unit { place, .. } if place >= self.turn);
        self.elements.iter().position(is_turn).unwrap_or(self.elements.len())
    }

    /// For each element, and the end: how many tokens a fold that begins there would drop, at least. The turn in progress is not
    /// touched.
    pub fn garbage(&self) -> Vec<usize> {
        let mut sweep = Sweep::new(self);
        let mut garbage = vec![0; self.elements.len() + 1];
        for index in (0..self.settled()).rev() {
            sweep.add(self.elements[index]);
            garbage[index] = sweep.garbage;
        }
        garbage
    }

    /// How many tokens a fold of everything would drop.
    pub fn droppable(&self) -> usize {
        let mut folded = self.clone();
        folded.fold(0);
        self.total().saturating_sub(folded.total())
    }

    /// All tokens.
    pub fn total(&self) -> usize {
        self.elements.iter().map(|element| self.tokens(*element)).sum()
    }

    /// Drops the garbage from an element on: current bodies stand there, stubs where they were told.
    pub fn fold(&mut self, from: usize) {
        let end = self.settled();
        if from >= end {
            return;
        }
        let mut sweep = Sweep::new(self);
        for index in (from..end).rev() {
            sweep.add(self.elements[index]);
        }
        let dropped = sweep.dropped();
        let mut bodies: Vec<usize> = sweep.bodies();
        // The least volatile first: what was touched longest ago.
        bodies.sort_unstable();
        let mut folded: Vec<Element> = self.elements[..from].to_vec();
        let mut rest: Vec<Element> = Vec::new();
        for &element in &self.elements[from..end] {
            match element {
                Element::Unit { unit, place } => match self.touch_of[unit].filter(|touch| dropped[*touch]) {
                    None => rest.push(element),
                    Some(touch) if self.thread.touches[touch].call == unit => {
                        rest.push(Element::Stub { touch, place, run: Run::First });
                    }
                    Some(_) => {}
                },
                Element::Stub { .. } => rest.push(element),
                Element::Body { touch } => {
                    if self.known[touch] && !sweep.keeps_body(touch) {
                        continue;
                    }
                    rest.push(element);
                }
            }
        }
        folded.extend(bodies.into_iter().map(|touch| Element::Body { touch }));
        folded.extend(in_runs(rest));
        folded.extend(&self.elements[end..]);
        self.elements = folded;
    }

    /// The block of an element, as a cache sees it.
    pub fn block(&self, element: Element) -> CacheBlock {
        let tokens = self.tokens(element);
        let (name, number) = match element {
            Element::Unit { unit, .. } => (0_u8, unit),
            Element::Stub { touch, run: Run::First, .. } => (1, touch),
            Element::Stub { touch, run: Run::Next, .. } => (3, touch),
            Element::Body { touch } => (2, touch),
        };
        let mut bytes = [name; 9];
        bytes[1..].copy_from_slice(&(number as u64).to_le_bytes());
        let is_system = matches!(element, Element::Unit { unit: SYSTEM, .. });
        let section = if is_system { Section::System } else { Section::Messages };
        let kind = match element {
            Element::Unit { unit, .. } => self.thread.units[unit].kind,
            Element::Stub { .. } | Element::Body { .. } => BlockKind::Plain,
        };
        CacheBlock { kind, ..CacheBlock::new(section, Hash::of(&bytes), tokens) }
    }
}

/// The elements with neighbouring stubs in one line.
fn in_runs(elements: Vec<Element>) -> impl Iterator<Item = Element> {
    let mut is_next = false;
    elements.into_iter().map(move |element| match element {
        Element::Stub { touch, place, .. } => {
            let run = if is_next { Run::Next } else { Run::First };
            is_next = true;
            Element::Stub { touch, place, run }
        }
        element => {
            is_next = false;
            element
        }
    })
}

/// What is garbage among some elements, taken from the last to the first.
struct Sweep<'a, 'b> {
    log: &'b Log<'a>,
    /// For each known touch, whether its result was passed.
    passed: Vec<bool>,
    /// For each known touch, whether it is among the elements.
    within: Vec<bool>,
    files: Vec<OneFile>,
    garbage: usize,
}

/// The touches of a file's last generation.
#[derive(Clone, Default)]
struct OneFile {
    /// Their tokens, and those of what would stay.
    sum: usize,
    stubs: usize,
    /// How many they are.
    count: usize,
    /// The touch whose body would stand for them.
    last: Option<usize>,
    saved: usize,
}

impl<'a, 'b> Sweep<'a, 'b> {
    fn new(log: &'b Log<'a>) -> Self {
        let known = log.known.len();
        let files = vec![OneFile::default(); log.generations.len()];
        Sweep { log, passed: vec![false; known], within: vec![false; known], files, garbage: 0 }
    }

    fn add(&mut self, element: Element) {
        match element {
            Element::Stub { .. } => {}
            Element::Body { touch } if !self.log.known[touch] => {}
            Element::Body { touch } => {
                let tokens = self.log.body(touch);
                if self.is_superseded(touch) {
                    self.garbage += tokens;
                } else {
                    self.join(touch, tokens, 0);
                }
            }
            Element::Unit { unit, .. } => {
                let Some(touch) = self.log.touch_of[unit] else { return };
                if self.log.thread.touches[touch].call != unit {
                    self.passed[touch] = true;
                    return;
                }
                if !self.passed[touch] {
                    return; // its result belongs to the turn in progress
                }
                self.within[touch] = true;
                let Touch { call, result, .. } = self.log.thread.touches[touch];
                let tokens = self.log.sizes[call] + self.log.sizes[result];
                if self.is_superseded(touch) {
                    self.garbage += tokens.saturating_sub(STUB);
                } else {
                    self.join(touch, tokens, STUB);
                }
            }
        }
    }

    /// Whether a newer body than any of its generation has been given.
    fn is_superseded(&self, touch: usize) -> bool {
        let Touch { file, generation, .. } = self.log.thread.touches[touch];
        generation < self.log.generations[file]
    }

    fn join(&mut self, touch: usize, tokens: usize, stub: usize) {
        let log = self.log;
        let file = &mut self.files[log.thread.touches[touch].file];
        file.last = Some(file.last.map_or(touch, |last| last.max(touch)));
        file.sum += tokens;
        file.stubs += stub;
        file.count += 1;
        let body = file.last.map_or(0, |last| log.body(last));
        // One alone is the body itself, and no garbage.
        let saved = if file.count > 1 { file.sum.saturating_sub(file.stubs + body) } else { 0 };
        self.garbage = self.garbage + saved - file.saved;
        file.saved = saved;
    }

    /// Which touches a fold leaves only stubs of.
    fn dropped(&self) -> Vec<bool> {
        let is_worth = |touch: usize| {
            let Touch { file, call, result, .. } = self.log.thread.touches[touch];
            let tokens = self.log.sizes[call] + self.log.sizes[result];
            if self.is_superseded(touch) { tokens > STUB } else { self.files[file].saved > 0 }
        };
        self.within.iter().enumerate().map(|(touch, within)| *within && is_worth(touch)).collect()
    }

    /// The touches whose bodies a fold lays.
    fn bodies(&self) -> Vec<usize> {
        let folded = self.files.iter().filter(|file| file.saved > 0);
        folded.filter_map(|file| file.last).collect()
    }

    /// Whether a body that stands here stays where it is.
    fn keeps_body(&self, touch: usize) -> bool {
        !self.is_superseded(touch) && self.files[self.log.thread.touches[touch].file].saved == 0
    }
}
