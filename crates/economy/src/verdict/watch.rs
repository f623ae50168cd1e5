//! A conversation, request by request.

use std::collections::BTreeMap;

use hardpan_models::CacheKind;
use hardpan_prompt::Place;
use serde::{Deserialize, Serialize};

use crate::cache::{Moment, Rules, Section};
use crate::ledger::{Answered, Purpose, Start, Tokens};
use crate::verdict::difference::{self, Difference};
use crate::verdict::past::{About, Past, Promise, part};
use crate::verdict::trace::{LastWord, Trace, Whence};
use crate::verdict::{Blame, Cause, Spot, Verdict};

/// Follows one conversation, and says of each request what it lost and why.
///
/// It keeps a trace of the last prompt: a few dozen bytes per block, whatever the conversation's length in bytes. It can be
/// written with the session, so that the first request after a resume is still held against the last one before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Watch {
    pub(super) last: Option<Past>,
}

impl Watch {
    /// A conversation that has not begun.
    pub fn new() -> Self {
        Watch::default()
    }

    /// The verdict on a request that lost something; takes it in as the last one. `None`: nothing was lost.
    pub fn judge(&mut self, answered: &Answered<'_>) -> Option<Verdict> {
        Some(self.examine(answered)).filter(Verdict::is_loss)
    }

    /// What is to be said about a request, loss or not; takes it in as the last one.
    ///
    /// A compaction or a ping is held against the conversation, but the next turn is still held against the last one: their
    /// own ending is not meant to stay. Commit messages are a prompt of their own.
    pub fn examine(&mut self, answered: &Answered<'_>) -> Verdict {
        // Only what becomes the last one may take over from it.
        let last = self.last.as_mut().filter(|_| answered.purpose == Purpose::Turn);
        let now = Trace::of(answered, last.map(|past| &mut past.trace));
        let verdict = match &self.last {
            _ if answered.purpose == Purpose::Commit => {
                Verdict::fine(Cause::FirstRequest, 0, answered.billed().read)
            }
            None => Verdict::fine(Cause::FirstRequest, 0, answered.billed().read),
            Some(past) => verdict(past, &now, answered),
        };
        match (answered.purpose, &mut self.last) {
            (Purpose::Turn, last) => *last = Some(Past::of(answered, now, last.as_ref())),
            (Purpose::Commit, _) | (_, None) => {}
            (Purpose::Compaction | Purpose::Ping, Some(past)) => {
                let end = past.entries.last().map_or(0, |entry| entry.0);
                if difference::first(&answered.rules(), &past.trace, &now, end).is_none() {
                    past.used = past.used.max(answered.sent.0);
                }
            }
        }
        verdict
    }

    /// When what the conversation has in the cache expires, unless it is used before. `None`: nothing is cached, or
    /// nobody says how long it lives.
    pub fn expires(&self) -> Option<Moment> {
        self.last.as_ref().filter(|past| past.promise.is_some())?.expires()
    }

    /// How many tokens the conversation has in the cache, as long as it lives.
    pub fn cached_tokens(&self) -> u64 {
        self.last.as_ref().and_then(|past| past.promise).map_or(0, |promise| promise.about.tokens)
    }
}

/// What an act would lose, for [`foresight`](crate::foresight).
impl Watch {
    /// The tokens in the cache that would be lost at a moment, were everything from a block on another.
    pub(crate) fn lost_from(&self, rules: &Rules, block: usize, at: Moment) -> u64 {
        let Some(past) = &self.last else { return 0 };
        let Some(promise) = past.promise.filter(|promise| past.alive(at) >= Some(promise.block)) else {
            return 0;
        };
        promise.about.tokens.saturating_sub(past.survives(rules, block, at).tokens)
    }

    /// Whether anything can still be read at a moment.
    pub(crate) fn is_warm(&self, at: Moment) -> bool {
        let past = self.last.as_ref();
        past.is_some_and(|past| past.promise.is_some_and(|promise| past.alive(at) >= Some(promise.block)))
    }

    /// Where something stands in the last prompt: its first block, the region, its tokens.
    pub(crate) fn find(&self, wanted: impl Fn(&Whence) -> bool) -> Option<(usize, Place, u64)> {
        let past = self.last.as_ref()?;
        let trace = &past.trace;
        let block = trace.block_of(&wanted)?;
        let pieces = trace.pieces_from(0).iter();
        let own = pieces.filter(|piece| trace.whence(**piece).is_some_and(&wanted));
        let counted = own.map(|piece| u64::from(piece.1)).sum();
        Some((block, trace.place(block)?, past.part(counted).tokens))
    }

    /// The first block of a section, or where it would be.
    pub(crate) fn start_of(&self, section: Section) -> usize {
        self.last.as_ref().map_or(0, |past| past.trace.start_of(section))
    }

    /// The last block that stands in a region.
    pub(crate) fn end_of(&self, place: Place) -> Option<usize> {
        let trace = &self.last.as_ref()?.trace;
        (0..trace.len()).rev().find(|block| trace.place(*block) == Some(place))
    }

    /// Whether the last prompt was one of `strata`, which folds.
    pub(crate) fn folds(&self) -> bool {
        self.last.as_ref().is_some_and(|past| !past.trace.base().is_empty())
    }

    /// Whether what is cached was asked to live longer than usual.
    pub(crate) fn is_long(&self, rules: &Rules) -> bool {
        let usual = rules.cache.lifetime.map(|seconds| i64::from(seconds) * 1000);
        let last = self.last.as_ref().and_then(|past| past.entries.last());
        last.is_some_and(|entry| rules.cache.long_lifetime.is_some() && entry.1 > usual)
    }
}

fn verdict(past: &Past, now: &Trace, answered: &Answered<'_>) -> Verdict {
    let rules = answered.rules();
    let billed = answered.billed();
    let fine = |cause| Verdict::fine(cause, billed.read, billed.read);
    if answered.used.is_none() || answered.sent < Moment(past.began) {
        return fine(Cause::AsExpected); // nothing is known, or nothing could be read yet
    }
    let Some(promise) = past.promise else { return without_promise(&rules, past, now, answered) };
    let difference = difference::first(&rules, &past.trace, now, promise.block);
    let expected = match &difference {
        None => promise.about,
        Some(_) => in_both(&rules, past, &promise, now, &billed),
    };
    let expected = About { tokens: expected.tokens.min(billed.prompt()), ..expected };
    if expected.tokens <= billed.read + expected.off {
        return fine(Cause::AsExpected);
    }
    let (cause, at) = Case { rules, past, promise, now, answered, expected }.cause(difference);
    let lost_tokens = expected.tokens - billed.read;
    Verdict {
        expected_read: expected.tokens,
        read: billed.read,
        lost_tokens,
        lost_dollars: excess(answered, lost_tokens),
        ours: blame(&cause, at.as_ref(), now.last_word),
        cause,
        first_difference: at,
    }
}

/// Nothing was left in the cache. Where a breakpoint asked for it and the provider found the prefix too small, the same
/// tokens were paid again; without one, nobody had promised anything.
fn without_promise(rules: &Rules, past: &Past, now: &Trace, answered: &Answered<'_>) -> Verdict {
    let billed = answered.billed();
    let minimum = rules.minimum() as u64;
    let unchanged = |end| difference::first(rules, &past.trace, now, end).is_none();
    match (past.too_small, past.entries.last()) {
        (Some(tokens), Some(entry)) if unchanged(entry.0) && tokens > billed.read => {
            let lost_tokens = (tokens - billed.read).min(billed.prompt() - billed.read);
            Verdict {
                expected_read: billed.read + lost_tokens,
                lost_tokens,
                lost_dollars: excess(answered, lost_tokens),
                ours: Blame::Provider,
                ..Verdict::fine(Cause::BelowMinimum { tokens, minimum }, 0, billed.read)
            }
        }
        _ => {
            let tokens = past.billed.prompt();
            let cause = match rules.cache.kind {
                CacheKind::None => Cause::AsExpected,
                _ if billed.read > 0 => Cause::AsExpected,
                _ if tokens < minimum => Cause::BelowMinimum { tokens, minimum },
                CacheKind::Markers if past.trace.markers(rules).is_empty() => Cause::Unmarked,
                CacheKind::Markers | CacheKind::Automatic => Cause::AsExpected,
            };
            Verdict::fine(cause, billed.read, billed.read)
        }
    }
}

/// The tokens of a prompt that the one before had promised, wherever they stand now.
fn in_both(rules: &Rules, past: &Past, promise: &Promise, now: &Trace, billed: &Tokens) -> About {
    let mut known: BTreeMap<u64, u32> = BTreeMap::new();
    for piece in past.trace.pieces_through(promise.block) {
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
    let about = part(billed, now, counted);
    About { off: about.off + u64::from(rules.cache.step.max(1)), ..about }
}

/// What was paid for lost tokens beyond reading them. They follow what was read: first what was written for an hour, then
/// what was written for the usual lifetime, then plain input.
fn excess(answered: &Answered<'_>, lost: u64) -> f64 {
    let (billed, prices) = (answered.billed(), answered.prices());
    let mut rest = lost;
    let mut take = |available: u64| {
        let taken = rest.min(available);
        rest -= taken;
        taken
    };
    let write_1h = take(billed.write_1h);
    let write = take(billed.write);
    let paid = Tokens { write_1h, write, input: take(billed.input), ..Tokens::default() };
    let read = Tokens { read: paid.prompt(), ..Tokens::default() };
    (prices.dollars(&paid) - prices.dollars(&read)).max(0.0)
}

/// A request that lost something.
struct Case<'a> {
    rules: Rules,
    past: &'a Past,
    promise: Promise,
    now: &'a Trace,
    answered: &'a Answered<'a>,
    expected: About,
}

impl Case<'_> {
    /// In order: what had expired was lost whatever else changed; then what differs, as far as that explains the loss; then
    /// what else keeps an entry from being found.
    fn cause(&self, difference: Option<Difference>) -> (Cause, Option<Spot>) {
        if let Some(expired) = self.expired() {
            return (expired, None);
        }
        let explained = difference.filter(|difference| self.explains(difference));
        let resumed = self.answered.start == Start::Resumed;
        match explained {
            Some(Difference { cause, at: Some((block, origin)), .. }) => {
                let address = self.answered.prompt.address(block);
                let cause = if resumed { Cause::Resumed } else { cause };
                (cause, Some(Spot { block, address, origin }))
            }
            Some(Difference { cause, at: None, .. }) => (cause, None),
            None => {
                (self.out_of_reach().unwrap_or(if resumed { Cause::Resumed } else { Cause::Evicted }), None)
            }
        }
    }

    /// Whether the lifetimes alone explain what was read: no more than the entries that still lived.
    fn expired(&self) -> Option<Cause> {
        let (sent, past) = (self.answered.sent, self.past);
        let alive = past.alive(sent);
        if alive >= Some(self.promise.block) {
            return None;
        }
        let rest = past.survives(&self.rules, self.now.len(), sent);
        let idle = sent.since(Moment(past.used)).max(0) as u64;
        let lifetime =
            past.entries.iter().rfind(|entry| alive < Some(entry.0)).and_then(|entry| entry.1)? as u64;
        let expired = Cause::Expired { minutes: idle / 60_000, lifetime: lifetime / 60_000 };
        (self.answered.billed().read + rest.off + self.expected.off >= rest.tokens).then_some(expired)
    }

    /// Whether a difference explains the greater part of the loss: up to where it loses, all should have been read.
    fn explains(&self, difference: &Difference) -> bool {
        if matches!(difference.cause, Cause::ModelChanged { .. } | Cause::ProviderChanged { .. }) {
            return true;
        }
        let left = self.past.survives(&self.rules, difference.from, self.answered.sent);
        let read = self.answered.billed().read;
        let unexplained = left.tokens.saturating_sub(read + left.off);
        unexplained <= self.expected.tokens.saturating_sub(left.tokens.max(read))
    }

    /// Whether the provider could not find the entry from any breakpoint.
    fn out_of_reach(&self) -> Option<Cause> {
        if self.rules.cache.kind != CacheKind::Markers {
            return None;
        }
        let markers = self.now.markers(&self.rules);
        let Some((next, _)) = markers.iter().find(|(block, _)| *block >= self.promise.block) else {
            return Some(Cause::Unmarked);
        };
        let blocks = next - self.promise.block;
        let look_back = self.rules.cache.look_back?;
        (blocks >= look_back as usize).then_some(Cause::TooManyNewBlocks { blocks, look_back })
    }
}

fn blame(cause: &Cause, at: Option<&Spot>, last_word: LastWord) -> Blame {
    match cause {
        Cause::AsExpected | Cause::FirstRequest => Blame::Nobody,
        Cause::ToolsChanged { .. }
        | Cause::SystemChanged(_)
        | Cause::ItemChanged { .. }
        | Cause::MessageChanged { .. }
        | Cause::LayoutChanged(_)
        | Cause::Folded
        | Cause::Compacted
        | Cause::TooManyNewBlocks { .. }
        | Cause::Unmarked
        | Cause::ImageRemoved => Blame::Us,
        Cause::ImageAdded
        | Cause::ThinkingChanged
        | Cause::EffortChanged
        | Cause::SettingChanged(_)
        | Cause::ModelChanged { .. }
        | Cause::ProviderChanged { .. } => Blame::Person,
        // Bytes that differ after a resume are ours; another process that finds nothing has met another cache.
        Cause::Resumed if at.is_some() => Blame::Us,
        Cause::Resumed | Cause::BelowMinimum { .. } | Cause::Evicted => Blame::Provider,
        // A tool that took longer than the cache lives is our doing; a person's pause is theirs.
        Cause::Expired { .. } if last_word == LastWord::Tools => Blame::Us,
        Cause::Expired { .. } => Blame::Person,
    }
}
