//! [`floor`]: what no arrangement of the recorded work can cost less than.
//!
//! A request of *s* tokens of which *u* are not read from the cache costs at least *r·s + (1 − r)·u*.
//! Whatever the arrangement, *s* is at least what a fold of everything leaves, and *u* at least what
//! no earlier request had. A new token that later requests contain, too, must be paid in full each
//! time, or be written once: the cheaper of both counts.
//!
//! What was really billed is an arrangement as well. Where it paid less for what is new, because
//! another session had cached it or because writes were not billed, so does the floor.

use super::measured::MeasuredThread;
use super::threads::ReplayThread;

/// The least that the requests of a thread can cost, in units of one uncached input token.
pub(super) fn floor(thread: &ReplayThread, measured: &MeasuredThread) -> f64 {
    let mut cost = 0.0;
    for (step, request) in thread.steps.iter().zip(&measured.0) {
        let (read, write) = (step.pricing.folds.read, step.pricing.folds.write);
        let premium: f64 = request
            .fresh
            .iter()
            .map(|block| {
                let times = 1.0 + block.later_requests as f64;
                block.tokens as f64 * (times * (1.0 - read)).min((write - read).max(1.0 - read))
            })
            .sum();
        let live = request.folded.min(step.total);
        let paid = step.pricing.cost(&step.billed) - read * step.total as f64;
        cost += read * live as f64 + premium.min(paid).max(0.0);
    }
    cost
}
