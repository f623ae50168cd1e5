//! [`best`]: the cheapest schedule of full folds for somebody who knows the future.
//!
//! A full fold rewrites everything after the system prompt without garbage. What comes after it
//! depends on nothing before it, so the cost of a schedule is a sum over pairs of consecutive
//! folds, and dynamic programming finds the best schedule exactly.

use std::rc::Rc;

use super::ThinkingSwitches;
use super::model_pricing::ModelPricing;
use super::prompt_log::PromptLog;
use super::threads::{ReplayThread, RequestStep, SYSTEM};

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
pub(super) fn best(thread: &ReplayThread) -> (f64, Vec<usize>) {
    let sent = sent_requests(thread);
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

fn sent_requests(thread: &ReplayThread) -> Vec<SentRequest> {
    let mut log = PromptLog::new(thread);
    let mut sent: Vec<SentRequest> = Vec::with_capacity(thread.steps.len());
    let mut before: Option<(&RequestStep, usize)> = None;
    for step in &thread.steps {
        log.advance(step);
        let added: usize = step.added.iter().map(|unit| log.size(*unit)).sum();
        let warm = before.map_or(WarmPrefix::Nothing, |(before, _)| warm_prefix(before, step));
        sent.push(SentRequest {
            pricing: step.pricing.clone(),
            total: step.total,
            common: step.total.saturating_sub(added),
            system: log.size(SYSTEM),
            garbage: log.droppable_tokens(),
            warm,
            is_cut: before.is_some_and(|(_, units)| step.common < units),
        });
        before = Some((step, step.common + step.added.len()));
    }
    sent
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
