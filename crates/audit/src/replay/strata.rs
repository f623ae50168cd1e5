//! The log with folds: what the live layout does, on the same arithmetic.

use hardpan_economy::Pause;
use hardpan_economy::cache::Moment;
use hardpan_economy::cache::Request;
use hardpan_economy::folds::{Accounts, Site};
use hardpan_models::CacheKind;
use hardpan_prompt::Lifetime;

use super::Replayed;
use super::log::Log;
use super::meter::Meter;
use super::work::{Step, Thread};

/// The share of the window from which a fold is due whatever it costs.
const NEARLY_FULL: f64 = 0.9;

/// How long before the cache expires a ping is sent, in seconds.
const PING_EARLY: u32 = 10;

/// Where folds may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sites {
    /// After the system prompt only: one account for the whole log.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "what is proved is proved for this one; tests measure it")
    )]
    Whole,
    /// Wherever a cache entry ends: an account per position.
    Frontiers,
}

pub(super) fn run(thread: &Thread, sites: Sites) -> Replayed {
    let mut strata = Strata {
        log: Log::new(thread),
        meter: Meter::default(),
        accounts: Accounts::default(),
        ends: Vec::new(),
        base: None,
        sites,
        gaps: Vec::new(),
        sent: None,
    };
    for (index, step) in thread.steps.iter().enumerate() {
        strata.pause(thread, step.at);
        strata.step(index, step);
    }
    strata.meter.replayed
}

struct Strata<'a> {
    log: Log<'a>,
    meter: Meter,
    accounts: Accounts,
    /// How many elements each cache entry covers that may still be there.
    ends: Vec<usize>,
    /// Where the last fold began.
    base: Option<usize>,
    sites: Sites,
    /// The pauses so far, in seconds.
    gaps: Vec<u32>,
    /// The last step, and what was sent.
    sent: Option<(usize, Request)>,
}

impl Strata<'_> {
    /// Keeps the cache warm until the next request, as long as that is likely to pay. After the last request there are no pings:
    /// recordings do not tell how long the agent stayed open.
    fn pause(&mut self, thread: &Thread, until: Moment) {
        let Some((index, mut request)) = self.sent.take() else { return };
        let step = &thread.steps[index];
        let cache = &step.terms.rules.cache;
        let (CacheKind::Markers, Some(lifetime)) = (cache.kind, cache.lifetime) else { return };
        self.log.end_turn();
        let tokens = request.blocks.iter().map(|block| block.tokens).sum();
        let garbage = self.log.garbage()[0];
        let ratios = (step.terms.folds.read, step.terms.folds.write);
        for pings in 0.. {
            let idle = (pings + 1) * (lifetime - PING_EARLY);
            let at = step.at.plus(i64::from(idle) * 1000);
            let pause = Pause { gaps: &self.gaps, idle, lifetime, tokens, garbage, ratios, pings };
            // A hunch is not enough here: some pause of this session must have ended in time. And a ping that thinks costs more
            // than it saves.
            let has_paid = self.gaps.iter().any(|gap| (idle..idle + lifetime).contains(gap));
            if until <= at || !has_paid || step.thinking.is_some() || !pause.pays() {
                break;
            }
            self.meter.ping(step, &mut request, at);
        }
        self.gaps.extend(u32::try_from(until.since(step.at) / 1000));
    }

    fn step(&mut self, index: usize, step: &Step) {
        let kept = self.log.advance(step);
        self.ends.retain(|end| *end <= kept);
        self.accounts.cut(kept);
        self.base = self.base.filter(|base| *base <= kept);
        let unfolded = self.request(step, self.ends.last().copied());
        let hit = self.meter.plan(step, &unfolded).hit.map_or(0, |hit| hit.block + 1);
        let sites = self.sites(hit);
        let prices = &step.terms.folds;
        let total: usize = unfolded.blocks.iter().map(|block| block.tokens).sum();
        let is_full = total as f64 > NEARLY_FULL * step.terms.window as f64;
        let due = self.accounts.decide(prices, &sites).or_else(|| {
            let most = sites.iter().max_by_key(|site| site.garbage);
            most.copied().filter(|site| is_full && site.garbage > 0)
        });
        let request = match due {
            None => {
                self.accounts.charge(prices, &sites);
                unfolded
            }
            Some(site) => {
                self.log.fold(site.place);
                self.accounts.fold(site.place);
                self.ends.retain(|end| *end <= site.place);
                self.base = Some(site.place);
                self.meter.replayed.folds += 1;
                self.request(step, Some(site.place))
            }
        };
        self.meter.send(step, &request);
        let marked = request.blocks.iter().enumerate().filter(|(_, block)| block.marker.is_some());
        self.ends.extend(marked.map(|(index, _)| index + 1));
        self.ends.sort_unstable();
        self.ends.dedup();
        self.sent = Some((index, request));
    }

    /// The request as the log stands, with breakpoints after the system prompt, where the last fold began, at the last frontier,
    /// and at the end.
    fn request(&self, step: &Step, frontier: Option<usize>) -> Request {
        let mut blocks: Vec<_> = self.log.elements.iter().map(|element| self.log.block(*element)).collect();
        for end in [Some(1), self.base, frontier, Some(blocks.len())].into_iter().flatten() {
            if let Some(block) = end.checked_sub(1).and_then(|last| blocks.get_mut(last)) {
                block.marker = Some(Lifetime::FiveMinutes);
            }
        }
        Meter::request(step, blocks)
    }

    /// Where a fold could begin, given how many elements can be read: at the start, and at each entry up to there.
    fn sites(&self, hit: usize) -> Vec<Site> {
        let garbage = self.log.garbage();
        let sums = self.log.sums();
        let ends = self
            .ends
            .iter()
            .copied()
            .filter(|end| *end <= hit && (self.sites == Sites::Frontiers || *end <= 1));
        let site = |place: usize| Site { place, after: sums[hit] - sums[place], garbage: garbage[place] };
        // The system prompt is never garbage: without an entry after it, all is written again.
        std::iter::once(0).chain(ends).map(site).collect()
    }
}
