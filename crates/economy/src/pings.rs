//! Whether it pays to keep a cache warm while nobody says anything.
//!
//! A ping is a request that reads the whole prefix and asks for next to nothing, so that its entries live on. It costs a read. It saves,
//! if somebody comes back before they would have expired and before the pinged ones do, the difference between writing the prefix
//! anew and reading it, less what a fold is worth: an expired cache is a free one, so garbage is not worth keeping warm.

/// The most pings in one pause: a pause that outlasts them is a long one.
pub const MOST_PINGS: u32 = 2;

/// How many requests garbage is taken to be sent along with, if a chance to drop it for nothing is let go: a long session. Replays of
/// recorded sessions (docs/economy.md) show that pings which forget this cost more than they save.
const HORIZON: f64 = 1000.0;

/// What decides about a ping.
#[derive(Clone, Copy, Debug)]
pub struct Pause<'a> {
    /// The pauses between requests of this conversation so far, in seconds.
    pub gaps: &'a [u32],
    /// How long nobody has said anything, in seconds, when the entries are about to expire.
    pub idle: u32,
    /// How long an entry lives after its last use, in seconds.
    pub lifetime: u32,
    /// Tokens of the prefix that would have to be written anew.
    pub tokens: usize,
    /// Tokens of garbage among them.
    pub garbage: usize,
    /// What a read and a write cost, in units of plain input.
    pub ratios: (f64, f64),
    /// Pings in this pause so far.
    pub pings: u32,
}

impl Pause<'_> {
    /// How likely it is that somebody comes back within one more lifetime, by the pauses of this conversation that lasted as long
    /// as this one. One pause that nobody has seen counts half for either: a conversation begins without any.
    pub fn chance(&self) -> f64 {
        let longer = self.gaps.iter().filter(|gap| **gap >= self.idle);
        let (mut all, mut back) = (0.0, 0.0);
        for gap in longer {
            all += 1.0;
            back += f64::from(u8::from(*gap <= self.idle.saturating_add(self.lifetime)));
        }
        (back + 0.5) / (all + 1.0)
    }

    /// What a ping costs, and what it saves if somebody comes back, in units of plain input.
    pub fn price_and_saving(&self) -> (f64, f64) {
        let (read, write) = self.ratios;
        let (all, live) = (self.tokens as f64, self.tokens.saturating_sub(self.garbage) as f64);
        let saved = write * live - read * all;
        // What the free fold is worth: the rent of what it drops, but never more than a fold would cost later.
        let fold = (read * self.garbage as f64 * HORIZON).min(saved.max(0.0));
        (read * all, saved - fold)
    }

    /// Whether a ping is expected to save more than it costs.
    pub fn pays(&self) -> bool {
        let (price, saving) = self.price_and_saving();
        self.pings < MOST_PINGS && price > 0.0 && self.chance() * saving > price
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pause(gaps: &[u32]) -> Pause<'_> {
        Pause { gaps, idle: 280, lifetime: 300, tokens: 50_000, garbage: 0, ratios: (0.1, 1.25), pings: 0 }
    }

    #[test]
    fn the_chance_is_that_of_the_pauses_that_lasted_as_long() {
        assert_eq!(pause(&[]).chance(), 0.5);
        assert_eq!(pause(&[5, 20, 100]).chance(), 0.5, "short pauses say nothing about a long one");
        assert_eq!(pause(&[400, 500, 4000]).chance(), 2.5 / 4.0);
    }

    #[test]
    fn a_ping_pays_while_coming_back_is_likely_enough() {
        assert!(pause(&[]).pays());
        assert!(pause(&[300, 4000, 5000]).pays());
        // 0.1 of a read against 1.15 of a write saved: below a chance of 8.7 percent it does not.
        assert!(!pause(&[4000; 6]).pays(), "{}", pause(&[4000; 6]).chance());
    }

    #[test]
    fn garbage_and_the_number_of_pings_speak_against_it() {
        assert!(!Pause { garbage: 45_000, ..pause(&[]) }.pays());
        assert!(!Pause { pings: MOST_PINGS, ..pause(&[]) }.pays());
        assert!(
            !Pause { ratios: (0.0, 1.0), ..pause(&[]) }.pays(),
            "where reading is free nothing expires for us"
        );
        assert!(!Pause { ratios: (0.5, 1.0), ..pause(&[]) }.pays());
    }
}
