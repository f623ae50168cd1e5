//! What nobody can do better: the best schedule of full folds, and the floor.

use super::log::{Log, Scope};
use super::work::Thread;

pub(super) fn floor(thread: &Thread) -> f64 {
    let mut log = Log::new(thread);
    let mut cost = 0.0;
    for step in &thread.steps {
        log.advance(step);
        let garbage = log.garbage(Scope::All)[0];
        let live = step.total.saturating_sub(garbage + step.new);
        cost += step.terms.folds.read * live as f64 + step.terms.folds.write * step.new as f64;
    }
    cost
}

pub(super) fn best(_thread: &Thread) -> (f64, Vec<usize>) {
    (0.0, Vec::new())
}
