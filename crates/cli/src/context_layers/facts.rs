//! What stands below the layers: garbage, the next fold, the last request, the session.

use std::time::Duration;

use hardpan_agent::Spending;
use hardpan_context::FoldOutlook;
use hardpan_economy::Rates;
use hardpan_economy::verdict::Blame;
use hardpan_prompt::{ItemKind, TokenUsage};
use hardpan_terminal::blocks::{
    CacheExpiry, ContextFacts, Cost, Garbage, LastRequest, LastVerdict, NextFold, SessionTotals,
};

use super::ContextSources;
use super::layers::is_garbage;

pub(super) fn facts(sources: &ContextSources<'_>, rates: &Rates) -> ContextFacts {
    let ContextSources { breakdown, usage, verdict, warmth, ledger, .. } = sources;
    let contents = || breakdown.blocks.iter().flat_map(|block| &block.contents);
    let garbage: usize = contents().filter(is_garbage).map(|content| content.tokens).sum();
    let dollars = |units: f64| units * rates.input_dollars(&TokenUsage { input: 1, ..TokenUsage::default() });
    let rent = rates.input_dollars(&TokenUsage { cache_read: garbage as u64, ..TokenUsage::default() });
    let count = |tokens: u64| usize::try_from(tokens).unwrap_or(usize::MAX);
    let session = usage.session;
    let prompt = TokenUsage { input: session.tokens.prompt(), ..TokenUsage::default() };
    let losses = ledger.losses.values();
    let (lost, misses) =
        losses.fold((0.0, 0), |(lost, times), loss| (lost + loss.dollars, times + count(loss.times)));
    ContextFacts {
        garbage: (garbage > 0).then(|| Garbage {
            tokens: garbage,
            copies: contents().filter(is_garbage).count(),
            rent,
            paid: breakdown.next_fold.map_or(0.0, |fold| dollars(fold.rent)),
        }),
        next_fold: breakdown.next_fold.filter(|fold| fold.garbage_tokens > 0).map(|fold| NextFold {
            in_requests: requests_until(fold, rates),
            costs: dollars(fold.price),
            drops: fold.garbage_tokens,
            saves: dollars(fold.saving),
        }),
        expiry: warmth.map(|warmth| CacheExpiry {
            remaining: Duration::from_secs(u64::try_from(warmth.expires_in).unwrap_or(0)),
            cold: breakdown.price.cold,
            warm: breakdown.price.warm,
        }),
        verdict: verdict.as_ref().filter(|verdict| verdict.is_loss()).map(|verdict| LastVerdict {
            request: count(usage.requests),
            tokens: count(verdict.lost_tokens),
            dollars: verdict.lost_dollars,
            cause: verdict.cause.describe(),
            is_avoidable: matches!(verdict.blame, Blame::Us | Blame::Person | Blame::Extension),
        }),
        last: usage.last_request.map(|last| LastRequest {
            input: count(last.tokens.input),
            read: count(last.tokens.cache_read),
            written: count(last.tokens.cache_written()),
            output: count(last.tokens.output),
            cost: cost(&last),
        }),
        session: (usage.requests > 0).then(|| SessionTotals {
            requests: count(usage.requests),
            cost: cost(&session),
            without_cache: session.dollars + session.would_cost - rates.input_dollars(&session.tokens)
                + rates.input_dollars(&prompt),
            read: (count(session.tokens.cache_read), count(session.tokens.prompt())),
            lost: (lost, misses),
        }),
        kinds: ItemKind::ALL
            .iter()
            .map(|kind| (kind.column_name().replace('_', " "), breakdown.breakdown.get(kind.column_name())))
            .filter_map(|(name, tokens)| Some((name, *tokens?)))
            .filter(|(_, tokens)| *tokens > 0)
            .collect(),
    }
}

fn cost(spending: &Spending) -> Cost {
    let simulated = Some(spending.would_cost).filter(|amount| *amount > 0.0);
    Cost { paid: spending.dollars, simulated, is_unknown: false }
}

/// In how many requests the rent for the garbage reaches the price of the fold; `None` if there is none.
pub fn requests_until(fold: FoldOutlook, rates: &Rates) -> Option<usize> {
    let rent = fold.garbage_tokens as f64 * rates.ratios().0;
    let left = (fold.price - fold.rent).max(0.0);
    (rent > 0.0).then(|| (left / rent).ceil().max(1.0) as usize)
}
