//! Whether it pays to keep a cache warm during a pause. The principal type is [`IdlePause`].
//!
//! A ping is a request that reads the whole prefix and asks for next to nothing, so that its cache
//! entries live on. It costs one read. If the person comes back after the entries would have
//! expired and before the refreshed ones do, it saves the difference between writing the prefix
//! again and reading it, less what a fold is worth: once the cache has expired a fold is free, so
//! garbage is not worth keeping warm.

/// The most pings in one pause; a pause that outlasts them is a long one.
pub const MAX_PINGS: u32 = 2;

/// For how many more requests garbage is assumed to be sent if a free chance to drop it is missed:
/// a long session. Replays of recorded sessions (docs/economy.md) show that pings which ignore this
/// cost more than they save.
const HORIZON: f64 = 1000.0;

/// A pause in a conversation, and everything that decides whether to send a ping.
#[derive(Clone, Copy, Debug)]
pub struct IdlePause<'a> {
    /// The pauses between this conversation's requests so far, in seconds.
    pub gaps: &'a [u32],
    /// Seconds since the last request, at the moment the entries are about to expire.
    pub idle: u32,
    /// Seconds that an entry lives after its last use.
    pub lifetime: u32,
    /// Tokens that would have to be written again.
    pub tokens: usize,
    /// Tokens before them whose entries live on without a ping.
    pub kept: usize,
    /// How many of these tokens are garbage.
    pub garbage: usize,
    /// The prices of a read and of a write, in units of plain input.
    pub ratios: (f64, f64),
    /// Pings sent in this pause so far.
    pub pings: u32,
}

/// What it saves to read a part of a prompt that would else have to be written again, less what the
/// free fold of its loss is worth: the rent of the garbage that it drops, but never more than a fold
/// would cost later. `ratios` are the prices of a read and of a write.
pub(crate) fn saving_of_live_cache((read, write): (f64, f64), tokens: usize, garbage: usize) -> f64 {
    let (all, live) = (tokens as f64, tokens.saturating_sub(garbage) as f64);
    let saved = write * live - read * all;
    let fold = (read * garbage as f64 * HORIZON).min(saved.max(0.0));
    saved - fold
}

impl IdlePause<'_> {
    /// The probability that the person comes back within one more lifetime, estimated from the
    /// pauses of this conversation that lasted as long as this one. One imaginary pause counts half
    /// for either outcome, since a conversation begins without any.
    pub fn return_chance(&self) -> f64 {
        let longer = self.gaps.iter().filter(|gap| **gap >= self.idle);
        let (mut all, mut back) = (0.0, 0.0);
        for gap in longer {
            all += 1.0;
            back += f64::from(u8::from(*gap <= self.idle.saturating_add(self.lifetime)));
        }
        (back + 0.5) / (all + 1.0)
    }

    /// What a ping costs, and what it saves if the person comes back, in units of plain input.
    pub fn price_and_saving(&self) -> (f64, f64) {
        let read_whole = self.ratios.0 * (self.tokens + self.kept) as f64;
        (read_whole, saving_of_live_cache(self.ratios, self.tokens, self.garbage))
    }

    /// Whether a ping is expected to save more than it costs.
    pub fn ping_pays(&self) -> bool {
        let (price, saving) = self.price_and_saving();
        self.pings < MAX_PINGS && price > 0.0 && self.return_chance() * saving > price
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(gaps: &[u32]) -> IdlePause<'_> {
        IdlePause {
            gaps,
            idle: 280,
            lifetime: 300,
            tokens: 50_000,
            kept: 0,
            garbage: 0,
            ratios: (0.1, 1.25),
            pings: 0,
        }
    }

    #[test]
    fn the_chance_is_that_of_the_pauses_that_lasted_as_long() {
        assert_eq!(pause(&[]).return_chance(), 0.5);
        assert_eq!(pause(&[5, 20, 100]).return_chance(), 0.5, "short pauses say nothing about a long one");
        assert_eq!(pause(&[400, 500, 4000]).return_chance(), 2.5 / 4.0);
    }

    #[test]
    fn a_ping_pays_while_coming_back_is_likely_enough() {
        assert!(pause(&[]).ping_pays());
        assert!(pause(&[300, 4000, 5000]).ping_pays());
        // 0.1 of a read against 1.15 of a write saved: below a chance of 8.7 percent it does not.
        assert!(!pause(&[4000; 6]).ping_pays(), "{}", pause(&[4000; 6]).return_chance());
    }

    #[test]
    fn garbage_and_the_number_of_pings_speak_against_it() {
        assert!(!IdlePause { garbage: 45_000, ..pause(&[]) }.ping_pays());
        assert!(!IdlePause { pings: MAX_PINGS, ..pause(&[]) }.ping_pays());
        assert!(
            !IdlePause { ratios: (0.0, 1.0), ..pause(&[]) }.ping_pays(),
            "where reading is free nothing expires for us"
        );
        assert!(!IdlePause { ratios: (0.5, 1.0), ..pause(&[]) }.ping_pays());
    }
}
