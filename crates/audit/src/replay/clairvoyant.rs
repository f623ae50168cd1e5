//! What nobody can do better: the best schedule of full folds, and the floor.
//!
//! A full fold lays everything after the system prompt anew, without garbage. What comes after it depends on nothing before it, so a
//! schedule's cost is a sum over pairs of consecutive folds, and a dynamic program finds the best one exactly.

use std::rc::Rc;

use super::Settings;
use super::log::Log;
use super::terms::Terms;
use super::work::{SYSTEM, Step, Thread};

/// What would have been paid if only what is true had been read, and everything written once.
pub(super) fn floor(thread: &Thread) -> f64 {
    let mut log = Log::new(thread);
    let mut cost = 0.0;
    for step in &thread.steps {
        log.advance(step);
        let live = step.total.saturating_sub(log.droppable() + step.new);
        cost += step.terms.folds.read * live as f64 + step.terms.folds.write * step.new as f64;
    }
    cost
}

/// A request, as far as the price of a schedule depends on it.
struct Sent {
    terms: Rc<Terms>,
    total: usize,
    /// The tokens of what the request before had, too.
    common: usize,
    system: usize,
    /// What a full fold would drop.
    garbage: usize,
    /// Whether the cache of the request before can be read: all of it, or only the system prompt.
    warm: Warm,
    /// Whether something that the request before had is gone: all must be laid anew.
    is_cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Warm {
    All,
    System,
    Nothing,
}

/// The least that a schedule of full folds costs, and the steps at which it folds.
pub(super) fn best(thread: &Thread) -> (f64, Vec<usize>) {
    let sent = sent(thread);
    let count = sent.len();
    // For the first k requests: the least cost, and where the last fold before is.
    let mut least = vec![f64::INFINITY; count + 1];
    let mut last_fold = vec![0; count + 1];
    least[0] = 0.0;
    for from in 0..count {
        // Without a fold nothing is dropped: that is how it begins, and how it can go on where all is laid anew.
        let unfolded = from == 0 || sent[from].is_cut;
        let starts = [Some(sent[from].garbage), Some(0).filter(|_| unfolded)];
        for saved in starts.into_iter().flatten() {
            let mut cost = least[from]
                + if saved == 0 && unfolded { sent[from].appended(0) } else { sent[from].folded() };
            for to in from + 1..=count {
                if cost < least[to] {
                    (least[to], last_fold[to]) = (cost, from);
                }
                match sent.get(to) {
                    Some(next) if !next.is_cut => cost += next.appended(saved),
                    _ => break,
                }
            }
        }
    }
    let mut folds = Vec::new();
    let mut at = count;
    while at > 0 {
        at = last_fold[at];
        folds.push(at);
    }
    folds.reverse();
    (if count == 0 { 0.0 } else { least[count] }, folds)
}

impl Sent {
    /// What it costs if everything after the system prompt is laid anew.
    fn folded(&self) -> f64 {
        let prefix = if self.warm == Warm::Nothing { 0 } else { self.system };
        self.cost(prefix, self.total.saturating_sub(self.garbage))
    }

    /// What it costs if it follows the request before, `saved` tokens shorter than it was.
    fn appended(&self, saved: usize) -> f64 {
        let prefix = match self.warm {
            Warm::All => self.common.saturating_sub(saved).max(self.system),
            Warm::System => self.system,
            Warm::Nothing => 0,
        };
        self.cost(prefix, self.total.saturating_sub(saved))
    }

    fn cost(&self, prefix: usize, total: usize) -> f64 {
        let (rules, prices) = (&self.terms.rules, &self.terms.folds);
        let step = rules.cache.step.max(1) as usize;
        let kept = |tokens: usize| if tokens < rules.minimum() { 0 } else { tokens / step * step };
        let read = kept(prefix.min(total));
        let written = kept(total).max(read) - read;
        let plain = total - read - written;
        prices.read * read as f64 + prices.write * written as f64 + plain as f64
    }
}

fn sent(thread: &Thread) -> Vec<Sent> {
    let mut log = Log::new(thread);
    let mut sent: Vec<Sent> = Vec::with_capacity(thread.steps.len());
    let mut before: Option<(&Step, usize)> = None;
    for step in &thread.steps {
        log.advance(step);
        let added: usize = step.added.iter().map(|unit| log.size(*unit)).sum();
        let warm = before.map_or(Warm::Nothing, |(before, _)| warmth(before, step));
        sent.push(Sent {
            terms: step.terms.clone(),
            total: step.total,
            common: step.total.saturating_sub(added),
            system: log.size(SYSTEM),
            garbage: log.droppable(),
            warm,
            is_cut: before.is_some_and(|(_, units)| step.common < units),
        });
        before = Some((step, step.common + step.added.len()));
    }
    sent
}

fn warmth(before: &Step, step: &Step) -> Warm {
    let lifetime = step.terms.rules.cache.lifetime.map(|seconds| i64::from(seconds) * 1000);
    let is_alive = lifetime.is_none_or(|lifetime| step.at.since(before.at) < lifetime);
    match () {
        () if !is_alive || step.terms.model != before.terms.model => Warm::Nothing,
        () if step.settings == Settings::Steady || step.thinking == before.thinking => Warm::All,
        () => Warm::System,
    }
}
