//! [`best`]: the cheapest schedule of full folds for somebody who knows the future.
//!
//! A full fold rewrites everything after the system prompt without garbage. What comes after it
//! depends on nothing before it, so the cost of a schedule is a sum over pairs of consecutive
//! folds, and dynamic programming finds the best schedule exactly.

use std::rc::Rc;

use super::ThinkingSwitches;
use super::measured::MeasuredThread;
use super::model_pricing::ModelPricing;
use super::threads::{ReplayThread, RequestStep};

/// A request, reduced to what the cost of a schedule depends on.
struct SentRequest {
    pricing: Rc<ModelPricing>,
    total: usize,
    /// The tokens that the request shares with the previous one.
    common: usize,
    system: usize,
    /// The tokens that a full fold would drop.
    garbage: usize,
    /// How much of the previous request's cache can be read.
    warm: WarmPrefix,
    /// Whether the conversation lost something that the previous request had, so that everything is
    /// written again.
    is_cut: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WarmPrefix {
    All,
    System,
    Nothing,
}

/// The cost of the cheapest schedule of full folds, and the steps at which it folds.
pub(super) fn best(thread: &ReplayThread, measured: &MeasuredThread) -> (f64, Vec<usize>) {
    let sent = sent_requests(thread, measured);
    let count = sent.len();
    // For the first k requests: the least cost, and where the last fold is.
    let mut least = vec![f64::INFINITY; count + 1];
    let mut last_fold = vec![0; count + 1];
    least[0] = 0.0;
    for from in 0..count {
        // The first request, and one after a cut, may also be sent without a fold.
        let unfolded = from == 0 || sent[from].is_cut;
        let starts = [Some(sent[from].garbage), Some(0).filter(|_| unfolded)];
        for saved in starts.into_iter().flatten() {
            let mut cost = least[from]
                + if saved == 0 && unfolded {
                    sent[from].cost_if_appended(0)
                } else {
                    sent[from].cost_if_folded()
                };
            for to in from + 1..=count {
                if cost < least[to] {
                    (least[to], last_fold[to]) = (cost, from);
                }
                match sent.get(to) {
                    Some(next) if !next.is_cut => cost += next.cost_if_appended(saved),
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

impl SentRequest {
    /// What the request costs with a full fold.
    fn cost_if_folded(&self) -> f64 {
        let prefix = if self.warm == WarmPrefix::Nothing { 0 } else { self.system };
        self.cost(prefix, self.total.saturating_sub(self.garbage))
    }

    /// What the request costs without a fold, if earlier folds made it `saved` tokens shorter.
    fn cost_if_appended(&self, saved: usize) -> f64 {
        let prefix = match self.warm {
            WarmPrefix::All => self.common.saturating_sub(saved).max(self.system),
            WarmPrefix::System => self.system,
            WarmPrefix::Nothing => 0,
        };
        self.cost(prefix, self.total.saturating_sub(saved))
    }

    fn cost(&self, prefix: usize, total: usize) -> f64 {
        let (rules, prices) = (&self.pricing.rules, &self.pricing.folds);
        let step = rules.cache.step.max(1) as usize;
        let kept = |tokens: usize| if tokens < rules.minimum() { 0 } else { tokens / step * step };
        let read = kept(prefix.min(total));
        let written = kept(total).max(read) - read;
        let plain = total - read - written;
        prices.read * read as f64 + prices.write * written as f64 + plain as f64
    }
}

fn sent_requests(thread: &ReplayThread, measured: &MeasuredThread) -> Vec<SentRequest> {
    let mut before: Option<&RequestStep> = None;
    let steps = thread.steps.iter().zip(&measured.0);
    steps
        .map(|(step, request)| SentRequest {
            pricing: step.pricing.clone(),
            total: request.total,
            common: request.common,
            system: request.fixed,
            garbage: request.total - request.folded,
            warm: before.replace(step).map_or(WarmPrefix::Nothing, |before| warm_prefix(before, step)),
            is_cut: request.is_cut,
        })
        .collect()
}

fn warm_prefix(before: &RequestStep, step: &RequestStep) -> WarmPrefix {
    let lifetime = step.pricing.rules.cache.lifetime.map(|seconds| i64::from(seconds) * 1000);
    let is_alive = lifetime.is_none_or(|lifetime| step.at.since(before.at) < lifetime);
    match () {
        () if !is_alive || step.pricing.model != before.pricing.model => WarmPrefix::Nothing,
        () if step.thinking_switches == ThinkingSwitches::Ignored || step.thinking == before.thinking => {
            WarmPrefix::All
        }
        () => WarmPrefix::System,
    }
}
