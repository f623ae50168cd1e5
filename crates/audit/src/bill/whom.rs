//! Whom requests went to: prices, and how that provider caches.

use std::sync::Arc;

use hardpan_economy::ledger::Tokens;
use hardpan_economy::{Amounts, Rates};
use hardpan_models::{Catalogue, Markers, Model, Wire};

use crate::BilledRequest;

/// What reading costs, as a share of input, where nobody says: what most providers ask.
const USUAL_READ: f64 = 0.1;
/// OpenAI keeps idle prefixes for minutes, an hour or, with extended retention, up to a day: sooner no loss is certain.
const AUTOMATIC_LIFETIME_MS: i64 = 24 * 3_600_000;
/// Who makes the models of this family, whoever sells them.
const FAMILY: (&str, &str) = ("claude", "anthropic");

/// A model at a provider, as a recording names them.
pub(super) struct Whom {
    pub provider: Option<Arc<str>>,
    pub model: Arc<str>,
    /// What the catalogue knows of it; none where it does not know the model.
    known: Option<Model>,
    wire: Wire,
    pub reports: Reports,
    /// How long a prefix is known to have lived unused, where that was longer than it should.
    pub proven_ms: i64,
}

/// What the provider tells of its cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reports {
    /// What was read and what was written: together, where the cached prefix ends.
    Writes,
    /// Only what was read: all of the prompt can be cached.
    Reads,
    /// Nothing, so that nothing can be said.
    Nothing,
}

/// What input costs, in units of one uncached input token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Tariff {
    pub read: f64,
    pub write: f64,
    pub write_1h: f64,
    /// The dollars that such a unit costs; none where no price is known.
    pub unit: Option<f64>,
}

impl Whom {
    pub fn find(catalogue: &Catalogue, request: &BilledRequest) -> Self {
        let (provider, model) = (request.provider.clone(), request.model.clone());
        let seller = provider.as_deref().filter(|provider| catalogue.provider(provider).is_ok());
        let known = spellings(&model).iter().find_map(|id| {
            let there = seller.and_then(|seller| catalogue.model(Some(seller), id).ok());
            there.or_else(|| catalogue.model(None, id).ok())
        });
        let row = known.as_ref().map(|model| model.provider.as_str()).or(seller);
        let row = row.or_else(|| model.contains(FAMILY.0).then_some(FAMILY.1));
        let row = row.and_then(|row| catalogue.provider(row).ok());
        let wire = row.map_or_else(Wire::default, |row| match &known {
            Some(model) => row.for_model(model),
            None => row.wire.clone(),
        });
        // A seller that nobody knows need not report what the model's maker would.
        let reports = if seller.is_some() && wire.markers == Markers::CacheControl {
            Reports::Writes
        } else {
            Reports::Nothing
        };
        Whom { provider, model, known, wire, reports, proven_ms: 0 }
    }

    pub fn is_of(&self, request: &BilledRequest) -> bool {
        self.model == request.model && self.provider == request.provider
    }

    /// Takes in what a provider reported, of all of its requests before any is judged.
    pub fn learn(&mut self, reported: &[&Tokens]) {
        let any = |amount: fn(&Tokens) -> u64| reported.iter().any(|tokens| amount(tokens) > 0);
        self.reports = match (any(|tokens| tokens.write.max(tokens.write_1h)), any(|tokens| tokens.read)) {
            (true, _) => Reports::Writes,
            (false, true) => Reports::Reads,
            (false, false) => self.reports,
        };
    }

    /// What it costs to send so many tokens.
    pub fn tariff(&self, prompt: u64) -> Tariff {
        let tokens = usize::try_from(prompt).unwrap_or(usize::MAX);
        let cache = self.wire.cache;
        let factors = Tariff {
            read: cache.read_factor.unwrap_or(USUAL_READ),
            write: cache.write_factor.unwrap_or(1.0),
            write_1h: cache.write_1h_factor.or(cache.write_factor).unwrap_or(1.0),
            unit: None,
        };
        let Some(model) = self.known.as_ref().filter(|model| model.price.input > 0.0) else { return factors };
        let rates = Rates::of(model, &self.wire, tokens);
        let million = |amounts| rates.dollars(amounts);
        const M: usize = 1_000_000;
        let input = million(Amounts { input: M, ..Amounts::default() });
        Tariff {
            read: million(Amounts { read: M, ..Amounts::default() }) / input,
            write: million(Amounts { write: M, ..Amounts::default() }) / input,
            write_1h: million(Amounts { write_1h: M, ..Amounts::default() }) / input,
            unit: Some(input / 1e6),
        }
    }

    /// How long what a request wrote lives, in milliseconds, by what it paid for; none where it has no end.
    pub fn lifetime_ms(&self, used: &Tokens) -> Option<i64> {
        let seconds = |seconds: u32| i64::from(seconds) * 1000;
        let cache = self.wire.cache;
        if !self.has_markers() {
            return cache.lifetime.map(|_| AUTOMATIC_LIFETIME_MS);
        }
        let long = cache.long_lifetime.filter(|_| used.write_1h > used.write);
        long.or(cache.lifetime).map(seconds)
    }

    /// The lifetime that is documented for what nobody asked to be kept longer, in milliseconds.
    pub fn usual_lifetime_ms(&self) -> Option<i64> {
        self.wire.cache.lifetime.map(|seconds| i64::from(seconds) * 1000)
    }

    /// A prefix was read after it had not been used for so long.
    pub fn prove(&mut self, idle_ms: i64) {
        self.proven_ms = self.proven_ms.max(idle_ms);
    }

    /// The smallest prefix that is kept, in tokens.
    pub fn minimum(&self) -> u64 {
        u64::from(self.wire.cache.min_tokens.max(1))
    }

    /// How many blocks a read looks back.
    pub fn look_back(&self) -> Option<u32> {
        self.wire.cache.look_back
    }

    /// Prefixes are kept in whole steps of so many tokens.
    pub fn step(&self) -> u64 {
        u64::from(self.wire.cache.step.max(1))
    }

    /// Whether blocks are cached because the agent marks them, and settings are part of the cache's keys.
    pub fn has_markers(&self) -> bool {
        self.wire.markers == Markers::CacheControl
    }

    /// Whether it can think; not known counts as yes.
    pub fn can_think(&self) -> bool {
        self.known.as_ref().is_none_or(|model| model.reasoning)
    }
}

impl Tariff {
    /// What the prompt cost, in units.
    pub fn cost(&self, used: &Tokens) -> f64 {
        let Tokens { input, read, write, write_1h, output: _ } = *used;
        input as f64 + read as f64 * self.read + write as f64 * self.write + write_1h as f64 * self.write_1h
    }

    /// What each token cost that was paid in full by this request.
    pub fn paid(&self, used: &Tokens) -> f64 {
        match *used {
            Tokens { write_1h, write, .. } if write_1h > write => self.write_1h,
            Tokens { write: 0, .. } => 1.0,
            _ => self.write,
        }
    }
}

/// The ids under which a model may be listed: as it is, then without what sellers and agents add.
fn spellings(id: &str) -> Vec<String> {
    let mut names = vec![id.to_owned()];
    let mut add = |name: String| {
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    };
    let plain = id.split('[').next().unwrap_or(id).trim(); // `claude-opus-4-6[1m]`
    add(plain.to_owned());
    let bare = plain.rsplit('/').next().unwrap_or(plain);
    let bare = bare.rsplit_once("anthropic.").map_or(bare, |(_, name)| name); // `us.anthropic.claude-…-v1:0`
    let bare =
        bare.split_once(':').map_or(bare, |(name, _)| name.trim_end_matches("-v1").trim_end_matches("-v2"));
    let bare = bare.split_once('@').map_or(bare, |(name, _)| name); // `claude-…@20250929`
    add(bare.to_owned());
    let undated =
        bare.rsplit_once('-').filter(|(_, day)| day.len() == 8 && day.bytes().all(|b| b.is_ascii_digit()));
    let undated = undated.map_or(bare, |(name, _)| name);
    add(undated.to_owned());
    if undated.starts_with(FAMILY.0) {
        add(undated.replace('.', "-"));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_found_however_it_is_spelled() {
        let named = [
            "claude-sonnet-4-5",
            "claude-sonnet-4-5-20250929",
            "claude-sonnet-4-5-20301231",
            "claude-sonnet-4-5[1m]",
            "anthropic/claude-sonnet-4.5",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
        ];
        for id in named {
            let known =
                spellings(id).iter().find_map(|id| Catalogue::builtin().model(Some("anthropic"), id).ok());
            assert!(known.is_some_and(|model| model.price.input == 3.0), "{id}");
        }
    }

    #[test]
    fn ids_that_say_nothing_are_no_trouble() {
        for id in ["", "/", "[", "-", ":", "@", "anthropic.", "ä-12345678"] {
            assert!(!spellings(id).is_empty());
        }
    }
}
