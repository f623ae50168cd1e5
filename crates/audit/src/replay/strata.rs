//! The layout `strata`: the log with folds, decided by the same arithmetic as in the live layout.

use hardpan_economy::IdlePause;
use hardpan_economy::cache::CacheRequest;
use hardpan_economy::cache::Moment;
use hardpan_economy::folds::{FoldSite, RentAccounts};
use hardpan_models::CacheKind;
use hardpan_prompt::CacheLifetime;

use super::ReplayCost;
use super::billed_cache::BilledCache;
use super::prompt_log::PromptLog;
use super::threads::{ReplayThread, RequestStep};

/// The share of the context window above which a fold is due whatever it costs.
const FULL_WINDOW_SHARE: f64 = 0.9;

/// How many seconds before the cache expires a ping is sent.
const PING_LEAD_SECONDS: u32 = 10;

/// Where folds may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FoldSites {
    /// Only after the system prompt: one account of rent for the whole log.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "what is proved is proved for this one; tests measure it")
    )]
    Whole,
    /// Wherever a cache entry ends: one account of rent per position.
    Frontiers,
}

pub(super) fn run(thread: &ReplayThread, sites: FoldSites) -> ReplayCost {
    let mut strata = StrataReplay {
        log: PromptLog::new(thread),
        billed_cache: BilledCache::default(),
        accounts: RentAccounts::default(),
        ends: Vec::new(),
        base: None,
        sites,
        gaps: Vec::new(),
        sent: None,
    };
    for (index, step) in thread.steps.iter().enumerate() {
        strata.keep_warm(thread, step.at);
        strata.send_request(index, step);
    }
    strata.billed_cache.cost
}

struct StrataReplay<'a> {
    log: PromptLog<'a>,
    billed_cache: BilledCache,
    accounts: RentAccounts,
    /// For each cache entry that may still exist, how many elements it covers.
    ends: Vec<usize>,
    /// The element at which the last fold began.
    base: Option<usize>,
    sites: FoldSites,
    /// The pauses between requests so far, in seconds.
    gaps: Vec<u32>,
    /// The index of the last step, and its request.
    sent: Option<(usize, CacheRequest)>,
}

impl StrataReplay<'_> {
    /// Sends pings until the next request, as long as they are likely to pay. There are none after
    /// the last request: recordings do not tell how long the agent stayed open.
    fn keep_warm(&mut self, thread: &ReplayThread, until: Moment) {
        let Some((index, mut request)) = self.sent.take() else { return };
        let step = &thread.steps[index];
        let cache = &step.pricing.rules.cache;
        let (CacheKind::Markers, Some(lifetime)) = (cache.kind, cache.lifetime) else { return };
        self.log.end_turn();
        let tokens = request.blocks.iter().map(|block| block.tokens).sum();
        let garbage = self.log.garbage_from_each()[0];
        let ratios = (step.pricing.folds.read, step.pricing.folds.write);
        for pings in 0.. {
            let idle = (pings + 1) * (lifetime - PING_LEAD_SECONDS);
            let at = step.at.plus(i64::from(idle) * 1000);
            let pause = IdlePause { gaps: &self.gaps, idle, lifetime, tokens, garbage, ratios, pings };
            // Some earlier pause of this session must have ended in time for a ping to pay. And a ping of a
            // thinking model costs more
            // than it saves.
            let has_paid = self.gaps.iter().any(|gap| (idle..idle + lifetime).contains(gap));
            if until <= at || !has_paid || step.thinking.is_some() || !pause.ping_pays() {
                break;
            }
            self.billed_cache.ping(step, &mut request, at);
        }
        self.gaps.extend(u32::try_from(until.since(step.at) / 1000));
    }

    fn send_request(&mut self, index: usize, step: &RequestStep) {
        let kept = self.log.advance(step);
        self.ends.retain(|end| *end <= kept);
        self.accounts.truncate_after(kept);
        self.base = self.base.filter(|base| *base <= kept);
        let unfolded = self.build_request(step, self.ends.last().copied());
        let hit = self.billed_cache.plan(step, &unfolded).hit.map_or(0, |hit| hit.block + 1);
        let sites = self.fold_sites(hit);
        let prices = &step.pricing.folds;
        let total: usize = unfolded.blocks.iter().map(|block| block.tokens).sum();
        let is_full = total as f64 > FULL_WINDOW_SHARE * step.pricing.window as f64;
        let due = self.accounts.choose_fold(prices, &sites).or_else(|| {
            let most = sites.iter().max_by_key(|site| site.garbage);
            most.copied().filter(|site| is_full && site.garbage > 0)
        });
        let request = match due {
            None => {
                self.accounts.charge_rent(prices, &sites);
                unfolded
            }
            Some(site) => {
                self.log.fold(site.position);
                self.accounts.record_fold(site.position);
                self.ends.retain(|end| *end <= site.position);
                self.base = Some(site.position);
                self.billed_cache.cost.folds += 1;
                self.build_request(step, Some(site.position))
            }
        };
        self.billed_cache.send(step, &request);
        let marked = request.blocks.iter().enumerate().filter(|(_, block)| block.marker.is_some());
        self.ends.extend(marked.map(|(index, _)| index + 1));
        self.ends.sort_unstable();
        self.ends.dedup();
        self.sent = Some((index, request));
    }

    /// The request for the current log, with breakpoints after the system prompt, where the last
    /// fold began, at the last frontier and at the end.
    fn build_request(&self, step: &RequestStep, frontier: Option<usize>) -> CacheRequest {
        let mut blocks: Vec<_> = self.log.elements.iter().map(|element| self.log.block(*element)).collect();
        for end in [Some(1), self.base, frontier, Some(blocks.len())].into_iter().flatten() {
            if let Some(block) = end.checked_sub(1).and_then(|last| blocks.get_mut(last)) {
                block.marker = Some(CacheLifetime::FiveMinutes);
            }
        }
        BilledCache::build_request(step, blocks)
    }

    /// Where a fold could begin: at the start, and at the end of each cache entry within the first
    /// `hit` elements, which can be read.
    fn fold_sites(&self, hit: usize) -> Vec<FoldSite> {
        let garbage = self.log.garbage_from_each();
        let sums = self.log.cumulative_tokens();
        let ends = self
            .ends
            .iter()
            .copied()
            .filter(|end| *end <= hit && (self.sites == FoldSites::Frontiers || *end <= 1));
        let site = |place: usize| FoldSite {
            position: place,
            tokens_after: sums[hit] - sums[place],
            garbage: garbage[place],
        };
        // Position 0: without a cache entry after the system prompt, everything is written again.
        std::iter::once(0).chain(ends).map(site).collect()
    }
}
