//! [`CacheMonitor`]: follows a conversation, request by request.

use std::collections::BTreeMap;

use hardpan_models::CacheKind;
use hardpan_prompt::{Region, TokenUsage};
use serde::{Deserialize, Serialize};

use crate::cache::{CacheRules, ImplicitMarker, Moment, Section};
use crate::ledger::{CompletedRequest, Continuity, RequestPurpose};
use crate::verdict::difference::{self, Difference};
use crate::verdict::previous_request::{CachedPrefix, PreviousRequest, TokenEstimate, estimate_part};
use crate::verdict::trace::{LastSpeaker, PieceOrigin, Trace};
use crate::verdict::{Blame, Cause, DifferenceLocation, Verdict};

/// Follows one conversation and tells for each request what it lost from the cache, and why.
///
/// It keeps a trace of the last prompt: a few dozen bytes per block, however long the texts are. It
/// is stored with the session, so that the first request after a resume is still compared with the
/// last one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CacheMonitor {
    pub(super) last: Option<PreviousRequest>,
}

impl CacheMonitor {
    /// Makes a monitor for a conversation that has not begun.
    pub fn new() -> Self {
        CacheMonitor::default()
    }

    /// Records a request and returns the verdict if something was lost. `None`: nothing was.
    pub fn examine_for_loss(&mut self, request: &CompletedRequest<'_>) -> Option<Verdict> {
        Some(self.examine(request)).filter(Verdict::is_loss)
    }

    /// Records a request and returns the verdict on it, loss or not.
    ///
    /// Compactions and pings are compared with the conversation, but do not replace its last
    /// request, since their own ending is not meant to stay. Commit messages are prompts of their
    /// own and are not compared, nor is the work of sub-agents.
    pub fn examine(&mut self, request: &CompletedRequest<'_>) -> Verdict {
        // Only what becomes the last one may take over from it.
        let last = self.last.as_mut().filter(|_| request.purpose == RequestPurpose::Turn);
        let now = Trace::from_request(request, last.map(|past| &mut past.trace));
        let verdict = match &self.last {
            _ if matches!(request.purpose, RequestPurpose::Commit | RequestPurpose::Task) => {
                Verdict::without_loss(Cause::FirstRequest, 0, request.billed().cache_read)
            }
            None => Verdict::without_loss(Cause::FirstRequest, 0, request.billed().cache_read),
            Some(past) => reach_verdict(past, &now, request).reconcile(request.diagnosis),
        };
        match (request.purpose, &mut self.last) {
            (RequestPurpose::Turn, last) => {
                *last = Some(PreviousRequest::from_request(request, now, last.as_ref()));
            }
            (RequestPurpose::Commit | RequestPurpose::Task, _) | (_, None) => {}
            (RequestPurpose::Compaction | RequestPurpose::Ping, Some(past)) => {
                let end = past.entries.last().map_or(0, |entry| entry.0);
                if difference::find_first_difference(&request.rules(), &past.trace, &now, end).is_none() {
                    past.used = past.used.max(request.sent_at.0);
                }
            }
        }
        verdict
    }

    /// When the conversation's cache entries expire unless they are used before. `None`: nothing is
    /// cached, or the lifetime is not documented.
    pub fn expires_at(&self) -> Option<Moment> {
        self.last.as_ref().filter(|past| past.cached_prefix.is_some())?.expires_at()
    }

    /// Tokens that the conversation has in the cache, as long as it lives.
    pub fn cached_tokens(&self) -> u64 {
        self.last
            .as_ref()
            .and_then(|past| past.cached_prefix)
            .map_or(0, |cached_prefix| cached_prefix.estimate.tokens)
    }
}

/// What an action would lose, for [`forecast`](crate::forecast).
impl CacheMonitor {
    /// Cached tokens that would be lost at a moment if everything from a block on changed.
    pub(crate) fn tokens_lost_from(&self, rules: &CacheRules, block: usize, at: Moment) -> u64 {
        let Some(past) = &self.last else { return 0 };
        let Some(cached_prefix) =
            past.cached_prefix.filter(|cached_prefix| past.last_live_entry(at) >= Some(cached_prefix.block))
        else {
            return 0;
        };
        cached_prefix.estimate.tokens.saturating_sub(past.readable_before(rules, block, at).tokens)
    }

    /// Whether anything can still be read at a moment.
    pub(crate) fn is_warm(&self, at: Moment) -> bool {
        let past = self.last.as_ref();
        past.is_some_and(|past| {
            past.cached_prefix
                .is_some_and(|cached_prefix| past.last_live_entry(at) >= Some(cached_prefix.block))
        })
    }

    /// Finds the pieces of the last prompt with a certain origin: their first block, its region,
    /// and their tokens.
    pub(crate) fn find_piece(&self, wanted: impl Fn(&PieceOrigin) -> bool) -> Option<(usize, Region, u64)> {
        let past = self.last.as_ref()?;
        let trace = &past.trace;
        let block = trace.find_block(&wanted)?;
        let pieces = trace.pieces_from(0).iter();
        let own = pieces.filter(|piece| trace.origin_of(**piece).is_some_and(&wanted));
        let counted = own.map(|piece| u64::from(piece.1)).sum();
        Some((block, trace.region(block)?, past.estimate_part(counted).tokens))
    }

    /// Index of the first block of a section, or where it would be.
    pub(crate) fn section_start(&self, section: Section) -> usize {
        self.last.as_ref().map_or(0, |past| past.trace.section_start(section))
    }

    /// Index of the last block that belongs to a region.
    pub(crate) fn region_end(&self, region: Region) -> Option<usize> {
        let trace = &self.last.as_ref()?.trace;
        (0..trace.len()).rev().find(|block| trace.region(*block) == Some(region))
    }

    /// Whether the last prompt was laid out by `strata`, which folds.
    pub(crate) fn uses_folds(&self) -> bool {
        self.last.as_ref().is_some_and(|past| !past.trace.base_hashes().is_empty())
    }

    /// Whether the cached entries were asked to live longer than usual.
    pub(crate) fn has_long_lifetime(&self, rules: &CacheRules) -> bool {
        let usual = rules.cache.lifetime.map(|seconds| i64::from(seconds) * 1000);
        let last = self.last.as_ref().and_then(|past| past.entries.last());
        last.is_some_and(|entry| rules.cache.long_lifetime.is_some() && entry.1 > usual)
    }
}

fn reach_verdict(past: &PreviousRequest, now: &Trace, request: &CompletedRequest<'_>) -> Verdict {
    let rules = request.rules();
    let billed = request.billed();
    let fine = |cause| Verdict::without_loss(cause, billed.cache_read, billed.cache_read);
    if request.reported_usage.is_none() || !request.reports_cache || request.sent_at < Moment(past.began) {
        return fine(Cause::AsExpected); // nothing is known, or nothing could be read yet
    }
    let Some(cached_prefix) = past.cached_prefix else {
        return verdict_without_cached_prefix(&rules, past, request);
    };
    let difference = difference::find_first_difference(&rules, &past.trace, now, cached_prefix.block);
    let expected = match &difference {
        None => cached_prefix.estimate,
        Some(_) => estimate_shared_tokens(&rules, past, &cached_prefix, now, &billed),
    };
    let expected = TokenEstimate { tokens: expected.tokens.min(billed.prompt()), ..expected };
    if expected.tokens <= billed.cache_read + expected.margin {
        return fine(Cause::AsExpected);
    }
    let (cause, at) =
        LossAnalysis { rules, past, cached_prefix, now, request, expected }.find_cause(difference);
    let lost_tokens = expected.tokens - billed.cache_read;
    Verdict {
        expected_read: expected.tokens,
        read: billed.cache_read,
        lost_tokens,
        lost_dollars: excess_dollars(request, lost_tokens),
        blame: assign_blame(&cause, at.as_ref(), now.last_word),
        first_difference: at,
        ..Verdict::without_loss(cause, 0, 0)
    }
}

/// The verdict if the previous request left nothing in the cache: nothing was promised, so nothing is
/// lost, though the provider may have found a marked prefix too small.
fn verdict_without_cached_prefix(
    rules: &CacheRules,
    past: &PreviousRequest,
    request: &CompletedRequest<'_>,
) -> Verdict {
    let read = request.billed().cache_read;
    let minimum = rules.minimum() as u64;
    let tokens = past.too_small.unwrap_or(past.billed.prompt());
    let cause = match rules.cache.kind {
        CacheKind::None => Cause::AsExpected,
        _ if read > 0 => Cause::AsExpected,
        _ if past.too_small.is_some() || tokens < minimum => Cause::BelowMinimum { tokens, minimum },
        CacheKind::Markers if past.trace.markers(rules).is_empty() => Cause::Unmarked,
        CacheKind::Markers | CacheKind::Automatic => Cause::AsExpected,
    };
    Verdict::without_loss(cause, read, read)
}

/// Estimates the tokens of this prompt that the previous one had left in the cache, wherever they
/// are now.
fn estimate_shared_tokens(
    rules: &CacheRules,
    past: &PreviousRequest,
    cached_prefix: &CachedPrefix,
    now: &Trace,
    billed: &TokenUsage,
) -> TokenEstimate {
    let mut known: BTreeMap<u64, u32> = BTreeMap::new();
    for piece in past.trace.pieces_through(cached_prefix.block) {
        *known.entry(piece.0).or_default() += 1;
    }
    let again = now.pieces_from(0).iter().filter(|piece| match known.get_mut(&piece.0) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    });
    let counted = again.map(|piece| u64::from(piece.1)).sum();
    let estimate = estimate_part(billed, now, counted);
    TokenEstimate { margin: estimate.margin + u64::from(rules.cache.step.max(1)), ..estimate }
}

/// Dollars paid for lost tokens beyond reading them. They follow what was read: first what was
/// written for an hour, then what was written for the usual lifetime, then plain input.
fn excess_dollars(request: &CompletedRequest<'_>, lost: u64) -> f64 {
    let (billed, prices) = (request.billed(), request.prices());
    let mut rest = lost;
    let mut take = |available: u64| {
        let taken = rest.min(available);
        rest -= taken;
        taken
    };
    let cache_write_1h = take(billed.cache_write_1h);
    let cache_write_5m = take(billed.cache_write_5m);
    let input = take(billed.input);
    let paid = TokenUsage { cache_write_1h, cache_write_5m, input, ..TokenUsage::default() };
    let read = TokenUsage { cache_read: paid.prompt(), ..TokenUsage::default() };
    (prices.dollars(&paid) - prices.dollars(&read)).max(0.0)
}

/// A request that lost something, and all that is needed to find out why.
struct LossAnalysis<'a> {
    rules: CacheRules,
    past: &'a PreviousRequest,
    cached_prefix: CachedPrefix,
    now: &'a Trace,
    request: &'a CompletedRequest<'a>,
    expected: TokenEstimate,
}

impl LossAnalysis<'_> {
    /// Finds the cause. First, what had expired was lost whatever else changed; then the first
    /// difference, if it explains the loss; then anything else that keeps an entry from being
    /// found.
    fn find_cause(&self, difference: Option<Difference>) -> (Cause, Option<DifferenceLocation>) {
        if let Some(expired) = self.expired() {
            return (expired, None);
        }
        let explained = difference.filter(|difference| self.explains(difference));
        let resumed = self.request.continuity == Continuity::Resumed;
        match explained {
            Some(Difference { cause, at: Some((block, origin)), .. }) => {
                let address = self.request.prompt.address(block);
                let cause = if resumed { Cause::Resumed } else { cause };
                (cause, Some(DifferenceLocation { block, address, origin }))
            }
            Some(Difference { cause, at: None, .. }) => (cause, None),
            None => {
                (self.out_of_reach().unwrap_or(if resumed { Cause::Resumed } else { Cause::Evicted }), None)
            }
        }
    }

    /// Whether the lifetimes alone explain the loss: no more was read than the entries that were
    /// still alive.
    fn expired(&self) -> Option<Cause> {
        let (sent, past) = (self.request.sent_at, self.past);
        let alive = past.last_live_entry(sent);
        if alive >= Some(self.cached_prefix.block) {
            return None;
        }
        let rest = past.readable_before(&self.rules, self.now.len(), sent);
        let idle = sent.since(Moment(past.used)).max(0) as u64;
        let lifetime =
            past.entries.iter().rfind(|entry| alive < Some(entry.0)).and_then(|entry| entry.1)? as u64;
        let longer = self.request.profile.long_lifetime().map(|seconds| u64::from(seconds) * 1000);
        let longer = longer.filter(|longer| *longer > lifetime && *longer > idle);
        let expired = Cause::Expired {
            minutes: idle / 60_000,
            lifetime: lifetime / 60_000,
            avoidable_by: longer.map(|longer| longer / 60_000),
        };
        (self.request.billed().cache_read + rest.margin + self.expected.margin >= rest.tokens)
            .then_some(expired)
    }

    /// Whether a difference explains the greater part of the loss: everything before it should have
    /// been read.
    fn explains(&self, difference: &Difference) -> bool {
        if matches!(difference.cause, Cause::ModelChanged { .. } | Cause::ProviderChanged { .. }) {
            return true;
        }
        let left = self.past.readable_before(&self.rules, difference.from, self.request.sent_at);
        let read = self.request.billed().cache_read;
        let unexplained = left.tokens.saturating_sub(read + left.margin);
        unexplained <= self.expected.tokens.saturating_sub(left.tokens.max(read))
    }

    /// Whether the provider could not reach the entry from any breakpoint.
    fn out_of_reach(&self) -> Option<Cause> {
        if self.rules.cache.kind != CacheKind::Markers {
            return None;
        }
        let markers = self.now.markers(&self.rules);
        let Some((next, _)) = markers.iter().find(|(block, _)| *block >= self.cached_prefix.block) else {
            return Some(Cause::Unmarked);
        };
        let blocks = next - self.cached_prefix.block;
        if matches!(self.rules.implicit, ImplicitMarker::MessageEnds(_)) {
            // Earlier ends are found without a marker, unless the request says that markers alone
            // count.
            return (blocks > 0 && self.now.is_explicit_only()).then_some(Cause::Unmarked);
        }
        let look_back = self.rules.cache.look_back?;
        (blocks >= look_back as usize).then_some(Cause::TooManyNewBlocks { blocks, look_back })
    }
}

fn assign_blame(cause: &Cause, at: Option<&DifferenceLocation>, last_word: LastSpeaker) -> Blame {
    match cause {
        Cause::AsExpected | Cause::FirstRequest => Blame::Nobody,
        Cause::ChangedByExtension { .. } => Blame::Extension,
        Cause::ToolsChanged { .. }
        | Cause::SystemChanged(_)
        | Cause::ItemChanged { .. }
        | Cause::MessageChanged { .. }
        | Cause::LayoutChanged(_)
        | Cause::Folded
        | Cause::Compacted
        | Cause::TooManyNewBlocks { .. }
        | Cause::Unmarked
        | Cause::SaidByProvider { .. }
        | Cause::ImageRemoved => Blame::Us,
        // The model looked at a picture, or a tool answered with one: that is the work.
        Cause::ImageAdded if last_word == LastSpeaker::Tools => Blame::Nobody,
        Cause::ImageAdded
        | Cause::ThinkingChanged
        | Cause::EffortChanged
        | Cause::SettingChanged(_)
        | Cause::ModelChanged { .. }
        | Cause::ProviderChanged { .. } => Blame::Person,
        // Bytes that differ after a resume are ours; another process that finds nothing has met
        // another cache.
        Cause::Resumed if at.is_some() => Blame::Us,
        Cause::Resumed | Cause::BelowMinimum { .. } | Cause::Evicted => Blame::Provider,
        // A tool that took longer than the cache lives is our doing; a person's pause is theirs.
        Cause::Expired { .. } if last_word == LastSpeaker::Tools => Blame::Us,
        Cause::Expired { .. } => Blame::Person,
    }
}
