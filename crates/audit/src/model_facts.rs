//! [`ModelFacts`]: what the catalogue knows about a model of a recording, and its prices.

use hardpan_economy::Rates;
use hardpan_models::{Catalogue, Model, ProviderProfile};
use hardpan_prompt::TokenUsage;

/// The price of reading a cached token, relative to input, where the catalogue has none: that of
/// most providers.
const DEFAULT_READ_FACTOR: f64 = 0.1;

/// What the catalogue knows about a model at a provider, however a recording spells them.
#[derive(Clone, Debug)]
pub(crate) struct ModelFacts {
    /// `None` where the catalogue neither has the model nor knows whose it is.
    pub entry: Option<Model>,
    pub profile: ProviderProfile,
    /// Whether the catalogue has the provider that the recording names.
    pub is_provider_known: bool,
}

/// Prices of input tokens, in units of one uncached input token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct InputPrices {
    pub read: f64,
    pub write: f64,
    pub write_1h: f64,
    /// The dollars that one unit costs. `None` where no price is known.
    pub dollars_per_unit: Option<f64>,
}

impl ModelFacts {
    pub fn look_up(catalogue: &Catalogue, provider: Option<&str>, model: &str) -> Self {
        let seller = provider.filter(|provider| catalogue.provider(provider).is_ok());
        let ids = spellings(model);
        let find = |seller: Option<&str>, is_wanted: fn(&Model) -> bool| {
            ids.iter().find_map(|id| catalogue.model(seller, id).ok().filter(is_wanted))
        };
        let is_listed: fn(&Model) -> bool = |model| model.listed;
        // At its seller, then at anybody's, then as an unlisted model of its maker or its seller.
        let entry = seller
            .and_then(|seller| find(Some(seller), is_listed))
            .or_else(|| find(None, is_listed))
            .or_else(|| find(None, |_| true))
            .or_else(|| find(Some(seller?), |_| true));
        let row = entry.as_ref().and_then(|model| catalogue.provider(&model.provider).ok());
        let profile =
            row.zip(entry.as_ref()).map(|(row, model)| row.profile_for_model(model)).unwrap_or_default();
        ModelFacts { entry, profile, is_provider_known: seller.is_some() }
    }

    /// The prices for a prompt of so many tokens: some models cost more above a size.
    pub fn prices_for(&self, prompt: u64) -> InputPrices {
        let cache = self.profile.cache;
        let factors = InputPrices {
            read: cache.read_factor.unwrap_or(DEFAULT_READ_FACTOR),
            write: cache.write_factor.unwrap_or(1.0),
            write_1h: cache.write_1h_factor.or(cache.write_factor).unwrap_or(1.0),
            dollars_per_unit: None,
        };
        let Some(model) = self.priced_entry() else { return factors };
        let rates = Rates::for_model(model, &self.profile, prompt);
        let million = |usage: TokenUsage| rates.input_dollars(&usage);
        const M: u64 = 1_000_000;
        let input = million(TokenUsage { input: M, ..TokenUsage::default() });
        InputPrices {
            read: million(TokenUsage { cache_read: M, ..TokenUsage::default() }) / input,
            write: million(TokenUsage { cache_write_5m: M, ..TokenUsage::default() }) / input,
            write_1h: million(TokenUsage { cache_write_1h: M, ..TokenUsage::default() }) / input,
            dollars_per_unit: Some(input / 1e6),
        }
    }

    /// What an answer costs, in dollars. `None` where no price is known.
    pub fn answer_dollars(&self, usage: &TokenUsage) -> Option<f64> {
        let price = self.priced_entry()?.prices_at(usage.prompt()).output;
        Some(usage.output as f64 * price / 1e6)
    }

    /// The model, if the catalogue has a price for it.
    fn priced_entry(&self) -> Option<&Model> {
        self.entry.as_ref().filter(|model| model.price.input > 0.0)
    }
}

impl InputPrices {
    /// What a prompt cost, in units.
    pub fn cost(&self, used: &TokenUsage) -> f64 {
        let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, output: _, reasoning: _ } = *used;
        input as f64
            + cache_read as f64 * self.read
            + cache_write_5m as f64 * self.write
            + cache_write_1h as f64 * self.write_1h
    }

    /// What each token cost that this request did not read from the cache, in units.
    pub fn price_of_unread(&self, used: &TokenUsage) -> f64 {
        match *used {
            TokenUsage { cache_write_1h: write_1h, cache_write_5m: write, .. } if write_1h > write => {
                self.write_1h
            }
            TokenUsage { cache_write_5m: 0, .. } => 1.0,
            _ => self.write,
        }
    }
}

/// The ids under which the catalogue may list a model: as it is, then without what sellers and
/// agents add.
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
    add(undated.replace('.', "-")); // `claude-sonnet-4.5`
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
            let facts = ModelFacts::look_up(Catalogue::builtin(), Some("anthropic"), id);
            assert!(facts.entry.is_some_and(|model| model.listed && model.price.input == 3.0), "{id}");
        }
    }

    #[test]
    fn an_unlisted_model_has_the_rules_of_its_maker_and_no_price() {
        let facts = ModelFacts::look_up(Catalogue::builtin(), Some("a-proxy"), "claude-thing-9");
        let prices = facts.prices_for(1000);
        assert_eq!((prices.read, prices.write, prices.write_1h), (0.1, 1.25, 2.0));
        assert_eq!(prices.dollars_per_unit, None);
        assert_eq!(facts.answer_dollars(&TokenUsage { output: 9, ..TokenUsage::default() }), None);
        let nobodys = ModelFacts::look_up(Catalogue::builtin(), None, "no-such-family");
        assert!(nobodys.entry.is_none() && nobodys.prices_for(1000).dollars_per_unit.is_none());
    }

    #[test]
    fn ids_that_say_nothing_are_no_trouble() {
        for id in ["", "/", "[", "-", ":", "@", "anthropic.", "ä-12345678"] {
            assert!(!spellings(id).is_empty());
        }
    }
}
