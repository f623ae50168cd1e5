//! [`floor`]: what no arrangement of the recorded work can cost less than.
//!
//! A request of *s* tokens of which *u* are not read from the cache costs at least *r·s + (1 − r)·u*.
//! Whatever the arrangement, *s* is at least what is left after dropping all garbage, and *u* at
//! least what no earlier request had. A new token that later requests contain, too, must be paid in
//! full each time, or be written once: the cheaper of both counts.
//!
//! What was really billed is an arrangement as well. Where it paid less for what is new, because
//! another session had cached it or because writes were not billed, so does the floor.

use std::collections::BTreeSet;

use super::prompt_log::{LogElement, PromptLog};
use super::threads::ReplayThread;
use crate::file_tracker::TouchKind;

/// The least that the requests of a thread can cost, in units of one uncached input token.
pub(super) fn floor(thread: &ReplayThread) -> f64 {
    let live_units = count_live_requests(thread);
    let mut log = PromptLog::new(thread);
    let mut seen = vec![false; thread.units.len()];
    let mut known_files: BTreeSet<usize> = BTreeSet::new();
    let mut cost = 0.0;
    for (index, step) in thread.steps.iter().enumerate() {
        log.advance(step);
        let folded = log.folded();
        let live = folded.total_tokens().min(step.total);
        let is_live = live_flags(&folded, thread.units.len());
        let (read, write) = (step.pricing.folds.read, step.pricing.folds.write);
        let mut premium = 0.0;
        for (&unit, place) in step.added.iter().zip(step.common..) {
            if std::mem::replace(&mut seen[unit], true) {
                continue;
            }
            // What is new in the turn in progress is sent as it is, unless it only shows a file that the
            // request has as an item.
            let shown = log.touch_of(unit).filter(|touch| {
                let touch = &thread.touches[*touch];
                touch.kind == TouchKind::Shown && touch.result == unit
            });
            let tokens = match shown {
                // A file that was known before may be shown as it was.
                Some(touch) if is_live[unit] && !known_files.contains(&thread.touches[touch].file) => {
                    log.size(unit).min(log.body_tokens(touch))
                }
                Some(_) => 0,
                None if is_live[unit] || place >= step.turn => log.size(unit),
                None => 0,
            };
            let times = 1 + live_units.requests_after(unit, index);
            premium += tokens as f64 * (times as f64 * (1.0 - read)).min((write - read).max(1.0 - read));
        }
        known_files.extend(step.new_touches.iter().map(|touch| thread.touches[*touch].file));
        let paid = step.pricing.cost(&step.billed) - read * step.total as f64;
        cost += read * live as f64 + premium.min(paid).max(0.0);
    }
    cost
}

/// For each unit, the requests in which it is live.
struct LiveRequests(Vec<Vec<usize>>);

impl LiveRequests {
    /// In how many requests to the same model after this one a unit is live.
    fn requests_after(&self, unit: usize, index: usize) -> usize {
        let requests = &self.0[unit];
        requests.len() - requests.partition_point(|request| *request <= index)
    }
}

/// Finds for each unit the requests in which it is live, as long as the model is that of the first.
fn count_live_requests(thread: &ReplayThread) -> LiveRequests {
    let mut log = PromptLog::new(thread);
    let mut live: Vec<Vec<usize>> = vec![Vec::new(); thread.units.len()];
    for (index, step) in thread.steps.iter().enumerate() {
        log.advance(step);
        for (unit, _) in
            live_flags(&log.folded(), thread.units.len()).iter().enumerate().filter(|(_, is)| **is)
        {
            let is_same = |first: &usize| thread.steps[*first].pricing.model == step.pricing.model;
            if live[unit].len() < MOST_REQUESTS && live[unit].first().is_none_or(is_same) {
                live[unit].push(index);
            }
        }
    }
    LiveRequests(live)
}

/// How many requests with a unit are counted: at any prices that are known, writing a token is cheaper
/// than sending it so often.
const MOST_REQUESTS: usize = 4;

fn live_flags(log: &PromptLog<'_>, units: usize) -> Vec<bool> {
    let mut flags = vec![false; units];
    for element in &log.elements {
        if let LogElement::Unit { unit, .. } = *element {
            flags[unit] = true;
        }
    }
    flags
}
