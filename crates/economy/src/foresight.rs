//! The price of an act before it is done.
//!
//! Another model, another setting, a tool switched on: each loses some of what is cached, and its price is what must be
//! written again beyond what reading it would have cost. Once the cache has expired anyway, or BASE is laid anew anyway, the
//! same act costs nothing.

#[cfg(test)]
mod tests;

use hardpan_models::{CacheKind, Model, Wire};
use hardpan_prompt::Place;
use serde::{Deserialize, Serialize};

use crate::cache::{Invalidation, Moment, Rules, Section};
use crate::ledger::{Prices, Tokens};
use crate::verdict::{Watch, Whence};
use crate::words::{dollars, minutes, number, printable};

/// Something that a person may do to the next request.
#[derive(Clone, Copy, Debug)]
pub enum Act<'a> {
    /// Another model.
    SwitchModel {
        /// The model.
        model: &'a Model,
        /// How its provider is spoken to.
        wire: &'a Wire,
    },
    /// Thinking or effort set otherwise.
    Thinking,
    /// A tool switched on or off, by name.
    ToggleTool(&'a str),
    /// An item opened that has so many tokens.
    Open {
        /// Its size.
        tokens: u64,
    },
    /// An item closed, by key.
    Close(&'a str),
    /// An item pinned, by key.
    Pin(&'a str),
    /// An item (by key) or a message (by id) taken out at once.
    Prune(&'a str),
    /// Another agent's system prompt.
    SwitchAgent,
    /// Nothing, until the cache has expired.
    Wait,
}

/// When an act costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Free {
    /// At once.
    Now,
    /// When the cache expires, at this moment (milliseconds since 1970), if it is not used before.
    AtExpiry(i64),
    /// When BASE is laid anew the next time, which is when the cache expires at the latest.
    AtNextFold,
}

/// What an act would cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Foresight {
    /// Cached tokens that would have to be written again.
    pub tokens_written_again: u64,
    /// What the next request would cost more than without the act.
    pub dollars_now: f64,
    /// When it would cost nothing. `None`: never, or nobody says when the cache expires.
    pub free_at: Option<Free>,
    /// The same in words.
    pub sentence: String,
}

/// What an act would cost at `now`, in the conversation that `watch` follows with this model.
pub fn foresee(watch: &Watch, act: Act<'_>, model: &Model, wire: &Wire, now: Moment) -> Foresight {
    Outlook { watch, model, wire, rules: Rules::of(model, wire), now }.foresee(act)
}

struct Outlook<'a> {
    watch: &'a Watch,
    model: &'a Model,
    wire: &'a Wire,
    rules: Rules,
    now: Moment,
}

/// What an act loses.
struct Loss {
    tokens: u64,
    /// Whether a fold makes it free.
    foldable: bool,
}

impl Outlook<'_> {
    fn foresee(&self, act: Act<'_>) -> Foresight {
        match act {
            Act::Open { tokens } => self.open(tokens),
            Act::SwitchModel { model, wire } => self.switch_model(model, wire),
            act => {
                let Loss { tokens, foldable } = self.loss(act);
                let dollars = self.rewriting(tokens);
                // Waiting is what makes the others free.
                let free_at = self.free_at(tokens, foldable).filter(|_| !matches!(act, Act::Wait));
                self.told(&words(act), tokens, dollars, free_at)
            }
        }
    }

    fn loss(&self, act: Act<'_>) -> Loss {
        let by_section = self.rules.invalidation == Invalidation::BySection;
        let from = |block: usize| self.watch.lost_from(&self.rules, block, self.now);
        let all = |tokens| Loss { tokens, foldable: false };
        match act {
            Act::Open { .. } | Act::SwitchModel { .. } | Act::Pin(_) => all(0), // a pinned item stays where it is
            Act::Wait => all(from(0)),
            Act::SwitchAgent => all(from(self.watch.start_of(Section::System))),
            Act::Thinking if by_section => all(from(self.watch.start_of(Section::Messages))),
            Act::Thinking => all(0),
            Act::ToggleTool(_) if by_section => all(from(0)),
            Act::ToggleTool(name) => {
                let found = self.watch.find(|whence| matches!(whence, Whence::Tool(tool) if **tool == *name));
                all(from(found.map_or_else(|| self.watch.start_of(Section::System), |(block, ..)| block)))
            }
            Act::Close(key) => match self.watch.find(|whence| is_named(whence, key)) {
                // In `strata` it is told in the LOG; the body stays where it is until the next fold.
                Some((_, Place::Base | Place::Log, _)) => all(0),
                found => self.taken_out(found),
            },
            Act::Prune(key) => self.taken_out(self.watch.find(|whence| is_named(whence, key))),
        }
    }

    /// What follows must be written again, but not what is gone.
    fn taken_out(&self, found: Option<(usize, Place, u64)>) -> Loss {
        let Some((block, place, own)) = found else { return Loss { tokens: 0, foldable: false } };
        let tokens = self.watch.lost_from(&self.rules, block, self.now).saturating_sub(own);
        Loss { tokens, foldable: matches!(place, Place::Base | Place::Log) && self.watch.folds() }
    }

    fn open(&self, tokens: u64) -> Foresight {
        // `panels` shows items before the conversation, which then moves; elsewhere a new item comes after what is cached.
        let after = self.watch.end_of(Place::Panel).map(|last| last + 1);
        let moved = after.map_or(0, |block| self.watch.lost_from(&self.rules, block, self.now));
        let prices = self.prices();
        let once = prices.dollars(&Tokens { write: tokens, ..Tokens::default() });
        let each = prices.dollars(&Tokens { read: tokens, ..Tokens::default() });
        let dollars_now = once + self.rewriting(moved);
        let mut foresight = self.told("Opening it now", moved, dollars_now, self.free_at(moved, false));
        let adds = format!("Opening it adds {} tokens", number(tokens));
        let price = if prices.input > 0.0 {
            format!(": {} once, then {} with each request", dollars(once), dollars(each))
        } else {
            String::new()
        };
        let also = if moved > 0 { format!(". {}", foresight.sentence) } else { ".".into() };
        foresight.sentence = format!("{adds}{price}{also}");
        foresight
    }

    fn switch_model(&self, model: &Model, wire: &Wire) -> Foresight {
        let same = model.id == self.model.id && model.provider == self.model.provider;
        let cached = if same { 0 } else { self.watch.lost_from(&self.rules, 0, self.now) };
        // The same text has another number of tokens in another vocabulary.
        let tokens = (cached as f64 * model.token_factor / self.model.token_factor.max(0.01)).round() as u64;
        let there = Prices::of(model, wire, tokens);
        let writes = Rules::of(model, wire).cache.kind != CacheKind::None;
        let price = if writes { there.write } else { there.input };
        let reading = self.prices().dollars(&Tokens { read: cached, ..Tokens::default() });
        let dollars = (tokens as f64 * price / 1e6 - reading).max(0.0);
        self.told(&words(Act::SwitchModel { model, wire }), tokens, dollars, self.free_at(tokens, false))
    }

    /// What it costs to write tokens again, beyond reading them.
    fn rewriting(&self, tokens: u64) -> f64 {
        let prices = self.prices();
        let none = Tokens::default();
        let write = match self.watch.is_long(&self.rules) {
            true => Tokens { write_1h: tokens, ..none },
            false => Tokens { write: tokens, ..none },
        };
        (prices.dollars(&write) - prices.dollars(&Tokens { read: tokens, ..none })).max(0.0)
    }

    fn prices(&self) -> Prices {
        Prices::of(self.model, self.wire, self.watch.cached_tokens())
    }

    fn free_at(&self, tokens: u64, foldable: bool) -> Option<Free> {
        let expiry = || self.watch.expires().map(|moment| Free::AtExpiry(moment.0));
        match (tokens, foldable) {
            (0, _) => Some(Free::Now),
            (_, true) => Some(Free::AtNextFold),
            (_, false) => expiry(),
        }
    }

    fn told(&self, act: &str, tokens: u64, price: f64, free_at: Option<Free>) -> Foresight {
        let act = printable(act);
        let sentence = if tokens == 0 {
            let why = if self.watch.is_warm(self.now) { "" } else { ": nothing is cached" };
            format!("{act} costs nothing{why}.")
        } else {
            let price = if price > 0.0 { format!(" ({})", dollars(price)) } else { String::new() };
            let free = match free_at {
                Some(Free::AtExpiry(at)) => {
                    let left = Moment(at).since(self.now).max(0) as u64;
                    format!("; free once the cache expires, in {}", minutes(left.div_ceil(60_000)))
                }
                Some(Free::AtNextFold) => "; free at the next fold".into(),
                Some(Free::Now) | None => String::new(),
            };
            format!("{act} means writing {} tokens again{price}{free}.", number(tokens))
        };
        Foresight { tokens_written_again: tokens, dollars_now: price, free_at, sentence }
    }
}

fn is_named(whence: &Whence, name: &str) -> bool {
    matches!(whence, Whence::Item(key) | Whence::Message(key) if **key == *name)
}

fn words(act: Act<'_>) -> String {
    match act {
        Act::SwitchModel { model, .. } => format!("Switching to {} now", model.name()),
        Act::Thinking => "Changing how the model thinks now".into(),
        Act::ToggleTool(name) => format!("Switching the tool {name} now"),
        Act::Open { .. } => "Opening it now".into(),
        Act::Close(key) => format!("Closing {key} now"),
        Act::Pin(key) => format!("Pinning {key} now"),
        Act::Prune(key) => format!("Taking out {key} now"),
        Act::SwitchAgent => "Switching the agent now".into(),
        Act::Wait => "Letting the cache expire".into(),
    }
}
