//! One round of the tracker: what a response confirms, and what moves because of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use hardpan_prompt::Tier;

use super::{Change, Reason, Room, Shown, Tracked, Tracker};

/// The tiers that must hold enough for a cache entry, most stable first. L0 has the system prompt to fill it.
const FILLED: [Tier; 3] = [Tier::L1, Tier::L2, Tier::L3];

fn above(tier: Tier) -> Option<Tier> {
    Tier::ALL.into_iter().rev().find(|other| *other < tier)
}

fn below(tier: Tier) -> Option<Tier> {
    Tier::ALL.into_iter().find(|other| *other > tier)
}

/// The N with which a tier begins.
pub(super) fn entry(tier: Tier) -> u32 {
    tier.threshold().unwrap_or(0)
}

/// The N that a tier counts up to, which is the one that the tier above begins with.
pub(super) fn ceiling(tier: Tier) -> u32 {
    entry(above(tier).unwrap_or(tier))
}

/// The tracker's state while it is being worked.
pub(super) struct Round {
    members: Vec<Member>,
    gone: Vec<Change>,
    /// Tiers that are written anew anyway: something left them, or was moved into them.
    broken: BTreeSet<Tier>,
    target: usize,
}

struct Member {
    tracked: Tracked,
    from: Option<Tier>,
    reason: Reason,
    /// Whether N has had its turn in this round.
    counted: bool,
}

impl Round {
    /// A round in which nothing has happened yet.
    pub fn begin(entries: Vec<Tracked>, target: usize) -> Self {
        let member = |tracked: Tracked| Member {
            from: Some(tracked.tier).filter(|_| !tracked.aside),
            tracked,
            reason: Reason::New,
            counted: false,
        };
        let members = entries.into_iter().map(member).collect();
        Round { members, gone: Vec::new(), broken: BTreeSet::new(), target }
    }

    /// A round after a response to a request that showed all this.
    pub fn observe(before: &Tracker, shown: &[Shown], target: usize) -> Self {
        let mut round = Round::begin(Vec::new(), target);
        let mut known: BTreeMap<&str, &Tracked> =
            before.entries.iter().map(|tracked| (&*tracked.key, tracked)).collect();
        for shown in shown {
            let member = match known.remove(&*shown.key) {
                Some(tracked) => round.shown_again(tracked, shown),
                None => Member::new(shown),
            };
            round.members.push(member);
        }
        let open: BTreeSet<&str> = shown.iter().filter_map(|shown| shown.key.strip_prefix("file:")).collect();
        let is_open =
            |symbol: &Tracked| symbol.key.strip_prefix("symbol:").is_some_and(|path| open.contains(path));
        for tracked in known.into_values() {
            round.not_shown(tracked, if is_open(tracked) { Reason::FileOpened } else { Reason::Gone });
        }
        // Stable: the exchanges keep the order they were shown in.
        round.members.sort_by(|a, b| match (a.tracked.is_exchange(), b.tracked.is_exchange()) {
            (false, false) => a.tracked.key.cmp(&b.tracked.key),
            (a, b) => a.cmp(&b),
        });
        round.keep_order();
        round
    }

    fn shown_again(&mut self, before: &Tracked, shown: &Shown) -> Member {
        let mut tracked =
            Tracked { hash: Some(shown.hash), tokens: shown.tokens, aside: false, ..before.clone() };
        let (mut from, mut reason, mut counted) = (Some(before.tier), Reason::New, true);
        if before.hash.is_some_and(|hash| hash != shown.hash) {
            self.broken.insert(before.tier);
            (tracked.tier, tracked.n, reason) = (Tier::Active, 0, Reason::Changed);
        } else if before.aside {
            (from, reason) = (None, Reason::FileClosed);
        } else if before.hash.is_some() {
            counted = before.tier == Tier::Active;
            tracked.n = (tracked.n + u32::from(counted)).min(ceiling(tracked.tier));
        }
        Member { tracked, from, reason, counted }
    }

    /// An open file's symbol entry steps aside; everything else leaves.
    fn not_shown(&mut self, before: &Tracked, reason: Reason) {
        let from = Some(before.tier).filter(|_| !before.aside);
        self.broken.extend(from);
        if reason == Reason::FileOpened {
            let tracked = Tracked { aside: true, ..before.clone() };
            self.members.push(Member { tracked, from, reason, counted: true });
        } else if from.is_some() {
            self.gone.push(Change { key: before.key.clone(), from, to: None, reason });
        }
    }

    /// An exchange is never shown before an older one: where that one fell, those after it fall as far.
    fn keep_order(&mut self) {
        let mut least = Tier::L0;
        for index in 0..self.members.len() {
            let tracked = &self.members[index].tracked;
            if !tracked.is_exchange() {
                continue;
            }
            if tracked.tier < least {
                self.shift(index, least, Reason::OlderFell);
            }
            least = self.members[index].tracked.tier;
        }
    }

    /// Works the tiers from L3 up until nothing moves; then a tier under the target gives its entries down, and so on.
    pub fn settle(&mut self) {
        loop {
            while self.pass() {}
            if !self.give() {
                return;
            }
        }
    }

    fn pass(&mut self) -> bool {
        let mut moved = self.fill(Tier::L3, Tier::Active);
        for (lower, upper) in [(Tier::L3, Tier::L2), (Tier::L2, Tier::L1), (Tier::L1, Tier::L0)] {
            for index in self.beyond(lower) {
                let Member { tracked, counted, .. } = &mut self.members[index];
                tracked.n = (tracked.n + u32::from(!*counted)).min(ceiling(lower));
                *counted = true;
            }
            moved |= self.fill(upper, lower);
        }
        moved
    }

    /// Lifts what has earned it from `lower` into `upper`, if that is broken or empty, and worth a cache entry after.
    fn fill(&mut self, upper: Tier, lower: Tier) -> bool {
        let room = match (self.broken.contains(&upper), self.held(upper).is_empty()) {
            (true, _) => Room::Broken,
            (false, true) => Room::Empty,
            (false, false) => return false,
        };
        let free = if lower == Tier::Active { self.held(lower) } else { self.beyond(lower) };
        let mut risers: Vec<usize> =
            free.into_iter().filter(|index| self.members[*index].tracked.n >= ceiling(lower)).collect();
        self.hold_back_exchanges(&mut risers, upper, room);
        let tokens = self.tokens(&self.held(upper)) + self.tokens(&risers);
        if risers.is_empty() || (FILLED.contains(&upper) && tokens < self.target) {
            return false;
        }
        for index in risers {
            let n = self.members[index].tracked.n;
            self.shift(index, upper, Reason::Stable { n, room });
        }
        true
    }

    /// The conversation keeps its order; and it moves to L3 only when L3 is written anew for something else.
    fn hold_back_exchanges(&self, risers: &mut Vec<usize>, upper: Tier, room: Room) {
        let is_exchange = |index: usize| self.members[index].tracked.is_exchange();
        let alone = risers.iter().all(|index| is_exchange(*index));
        let wanted = upper != Tier::L3 || room == Room::Broken || !alone;
        let exchanges = (0..self.members.len()).filter(|index| is_exchange(*index));
        let held_back =
            exchanges.into_iter().find(|at| self.members[*at].tracked.tier > upper && !risers.contains(at));
        risers.retain(|index| {
            !is_exchange(*index) || (wanted && held_back.is_none_or(|held_back| *index < held_back))
        });
    }

    /// The first tier from L1 down that holds something, but less than the target, gives it to the tier below.
    pub fn give(&mut self) -> bool {
        for tier in FILLED {
            let (held, target) = (self.held(tier), self.target);
            let tokens = self.tokens(&held);
            if let Some(lower) = below(tier).filter(|_| !held.is_empty() && tokens < target) {
                for index in held {
                    self.shift(index, lower, Reason::UnderTarget { tokens, target });
                }
                return true;
            }
        }
        false
    }

    fn shift(&mut self, index: usize, to: Tier, reason: Reason) {
        let member = &mut self.members[index];
        self.broken.extend([member.tracked.tier, to]);
        member.tracked.tier = to;
        member.tracked.n = member.tracked.n.min(ceiling(to));
        member.reason = reason;
    }

    /// The members that stand in a tier.
    fn held(&self, tier: Tier) -> Vec<usize> {
        let is_held = |index: &usize| {
            let tracked = &self.members[*index].tracked;
            tracked.tier == tier && !tracked.aside
        };
        (0..self.members.len()).filter(is_held).collect()
    }

    /// What a tier can do without. Taken by rising N, its members hold it up until they reach the target; of equals, the
    /// one that comes later holds, so that the older exchange rises first.
    fn beyond(&self, tier: Tier) -> Vec<usize> {
        let mut held = self.held(tier);
        held.sort_by_key(|index| (self.members[*index].tracked.n, Reverse(*index)));
        let mut tokens = 0;
        held.retain(|index| {
            let is_beyond = tokens >= self.target;
            tokens += self.members[*index].tracked.tokens;
            is_beyond
        });
        held
    }

    fn tokens(&self, members: &[usize]) -> usize {
        members.iter().map(|index| self.members[*index].tracked.tokens).sum()
    }

    /// The state after the round, and what moved in it: those that left first.
    pub fn finish(self) -> (Tracker, Vec<Change>) {
        let mut changes = self.gone;
        for Member { tracked, from, reason, .. } in &self.members {
            let to = Some(tracked.tier).filter(|_| !tracked.aside);
            if *from != to {
                changes.push(Change { key: tracked.key.clone(), from: *from, to, reason: *reason });
            }
        }
        (Tracker { entries: self.members.into_iter().map(|member| member.tracked).collect() }, changes)
    }
}

impl Member {
    /// What nobody tracked begins where it was shown.
    fn new(shown: &Shown) -> Self {
        let Shown { key, hash, tokens, tier } = shown.clone();
        let tracked = Tracked { key, tier, n: entry(tier), hash: Some(hash), tokens, aside: false };
        Member { tracked, from: None, reason: Reason::New, counted: true }
    }
}
