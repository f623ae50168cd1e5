//! The log with folds: what the live layout does, on the same arithmetic.

use hardpan_economy::cache::Moment;
use hardpan_economy::cache::Request;
use hardpan_economy::folds::{Accounts, MOST_PINGS, Pauses, Site};
use hardpan_models::CacheKind;
use hardpan_prompt::Lifetime;

use super::Replayed;
use super::log::Log;
use super::meter::Meter;
use super::work::{Step, Thread};

/// The share of the window from which a fold is due whatever it costs.
const NEARLY_FULL: f64 = 0.9;

/// How long before the cache expires a ping is sent, in milliseconds.
const PING_EARLY_MS: i64 = 10_000;

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
        pauses: Pauses::default(),
        since_fold: 0,
        sent: None,
    };
    for (index, step) in thread.steps.iter().enumerate() {
        strata.pause(thread, Some(step.at));
        strata.step(index, step);
    }
    if thread.is_main {
        strata.pause(thread, None); // nobody knows that it is the end
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
    pauses: Pauses,
    /// Requests since the last fold: as many are expected to come as have come.
    since_fold: usize,
    /// The last step, and what was sent.
    sent: Option<(usize, Request)>,
}

impl Strata<'_> {
    /// Keeps the cache warm until the next request, as long as that is likely to pay.
    fn pause(&mut self, thread: &Thread, until: Option<Moment>) {
        let Some((index, mut request)) = self.sent.take() else { return };
        let step = &thread.steps[index];
        let cache = &step.terms.rules.cache;
        let (CacheKind::Markers, Some(lifetime)) = (cache.kind, cache.lifetime) else { return };
        let lifetime = i64::from(lifetime) * 1000 - PING_EARLY_MS;
        let cached = request.blocks.iter().map(|block| block.tokens).sum();
        let garbage = self.log.garbage()[0];
        // A ping cannot be made without an answer that thinks, which would cost more than it saves.
        let can_ping = request.salts.effort.is_none();
        let mut at = step.at.plus(lifetime);
        for pings in 0..MOST_PINGS {
            let is_over = until.is_some_and(|until| until <= at);
            let pays = std::env::var("PING").is_ok()
                && step.terms.folds.ping_pays(
                    cached,
                    garbage,
                    if std::env::var("HZ").is_ok() { 1000000 } else { self.since_fold },
                    self.pauses.chance(pings),
                );
            if is_over || !can_ping || !pays {
                break;
            }
            self.meter.ping(step, &mut request, at);
            at = at.plus(lifetime);
        }
        if let Some(until) = until {
            self.pauses.note(until.since(step.at), lifetime);
        }
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
        if std::env::var("DBGS").is_ok() {
            eprintln!(
                "step {index} total {total} of {} hit {hit} G0 {} price0 {:.0} paid0 {:.0} turn {} due {:?} stubs {}",
                step.total,
                sites[0].garbage,
                prices.fold(&sites[0]),
                self.accounts.paid(1),
                self.log.elements.len() - self.log.settled(),
                due,
                self.log.elements.iter().filter(|e| matches!(e, super::log::Element::Stub { .. })).count()
            );
        }
        let request = match due {
            None => {
                self.accounts.charge(prices, &sites);
                self.since_fold += 1;
                unfolded
            }
            Some(site) => {
                self.log.fold(site.place);
                self.accounts.fold(site.place);
                self.ends.retain(|end| *end <= site.place);
                self.base = Some(site.place);
                self.meter.replayed.folds += 1;
                self.since_fold = 1;
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
