//! One model: its windows, prices and abilities.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rows::amount;

/// The most tokens an answer may take unless the user asks for more.
const DEFAULT_MAX_TOKENS: u32 = 32_000;

/// A public vocabulary, for counting tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Vocabulary {
    /// OpenAI's from GPT-4o on.
    #[serde(rename = "o200k_base")]
    O200k,
    /// OpenAI's for GPT-4 and GPT-3.5.
    #[serde(rename = "cl100k_base")]
    Cl100k,
}

/// What tokens cost, in US dollars per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Price {
    /// Input that is neither read from the cache nor written to it.
    pub input: f64,
    /// Output, reasoning included.
    pub output: f64,
    /// Input read from the cache, where a price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to the cache for the usual lifetime, where a price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Input written to the cache for an hour, where a price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
}

impl Price {
    /// Whether any price is known. All zeros mean "not known": a local server, or a model nobody has priced.
    pub fn is_known(&self) -> bool {
        self.input > 0.0 || self.output > 0.0
    }

    /// What a million tokens read from the cache cost: as much as input where there is no discount.
    pub fn read(&self) -> f64 {
        self.cache_read.filter(|price| *price > 0.0).unwrap_or(self.input) // the list has 0 where it knows no price
    }

    /// What a million tokens written to the cache cost.
    ///
    /// Never less than input: a price list's 0 says that writing costs nothing on top.
    pub fn write(&self) -> f64 {
        self.cache_write.unwrap_or(self.input).max(self.input)
    }

    /// What a million tokens written to the cache for an hour cost.
    pub fn write_1h(&self) -> f64 {
        self.cache_write_1h.unwrap_or_else(|| self.write()).max(self.input)
    }
}

/// The prices of a long request: those given replace the usual ones, for all of its tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PriceAbove {
    /// The prices hold for requests of more input tokens than this.
    pub tokens: u32,
    /// Input that is neither read from the cache nor written to it.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub input: Option<f64>,
    /// Output, reasoning included.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub output: Option<f64>,
    /// Input read from the cache.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to the cache for the usual lifetime.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Input written to the cache for an hour.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
}

/// One model at one provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// The id that goes on the wire.
    pub id: String,
    /// The id of its provider.
    pub provider: String,
    /// The window in tokens: input and output together.
    pub context: u32,
    /// The most tokens it can answer with.
    pub max_output: u32,
    /// What it costs.
    pub price: Price,
    /// What longer requests cost, by rising threshold.
    pub price_above: Vec<PriceAbove>,
    /// The smallest prefix that its provider caches, in tokens, where the model has one of its own.
    pub cache_min_tokens: Option<u32>,
    /// Whether it sees images.
    pub vision: bool,
    /// Whether it calls tools.
    pub tools: bool,
    /// Whether it can think before it answers.
    pub reasoning: bool,
    /// Whether its provider is known to cache its prompts.
    pub caching: bool,
    /// Whether it accepts a conversation that ends with an assistant message; newer models refuse it.
    pub prefill: bool,
    /// The day it is switched off, if one was announced: `2026-05-14`.
    pub deprecated: Option<String>,
    /// Its vocabulary. `None`: not public; o200k stands in, scaled by [`token_factor`](Self::token_factor).
    pub vocabulary: Option<Vocabulary>,
    /// How many of its tokens one token of the vocabulary counts for.
    pub token_factor: f64,
}

impl Model {
    /// Provider and id in one: `anthropic/claude-sonnet-5`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// The most tokens an answer may take: half the window at most, since some lists give a model an output as
    /// large as its window, which would leave no room for a prompt.
    pub fn max_tokens_limit(&self) -> u32 {
        self.max_output.min(self.context / 2)
    }

    /// The tokens an answer may take unless the user says otherwise.
    pub fn default_max_tokens(&self) -> u32 {
        self.max_tokens_limit().min(DEFAULT_MAX_TOKENS)
    }

    /// The room for input when an answer may take `max_tokens`.
    pub fn max_input_tokens(&self, max_tokens: u32) -> u32 {
        self.context.saturating_sub(max_tokens)
    }

    /// The prices of a request of so many input tokens, cached ones included.
    pub fn prices_at(&self, input_tokens: u64) -> Price {
        let mut price = self.price;
        for above in self.price_above.iter().filter(|above| input_tokens > u64::from(above.tokens)) {
            price.input = above.input.unwrap_or(price.input);
            price.output = above.output.unwrap_or(price.output);
            price.cache_read = above.cache_read.or(price.cache_read);
            price.cache_write = above.cache_write.or(price.cache_write);
            price.cache_write_1h = above.cache_write_1h.or(price.cache_write_1h);
        }
        price
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;

    fn model(name: &str) -> Model {
        Catalogue::builtin().model(None, name).unwrap()
    }

    #[test]
    fn long_requests_cost_more_from_the_first_token_above_the_threshold() {
        let model = model("openai/gpt-5.5");
        assert_eq!(model.prices_at(272_000), model.price);
        let long = Price { input: 10.0, output: 45.0, cache_read: Some(1.0), ..Price::default() };
        assert_eq!(model.prices_at(272_001), long);
    }

    #[test]
    fn prices_without_a_long_form_stay() {
        let mut model = model("openai/gpt-5.5");
        model.price_above = vec![
            PriceAbove { tokens: 10, input: Some(7.0), ..PriceAbove::default() },
            PriceAbove { tokens: 20, cache_read: Some(0.7), ..PriceAbove::default() },
        ];
        assert_eq!(model.prices_at(20), Price { input: 7.0, ..model.price });
        assert_eq!(model.prices_at(21), Price { input: 7.0, cache_read: Some(0.7), ..model.price });
    }

    #[test]
    fn the_default_answer_leaves_room_for_a_prompt() {
        assert_eq!(model("anthropic/claude-sonnet-5").default_max_tokens(), 32_000);
        assert_eq!(model("openai/gpt-4").default_max_tokens(), 4096);
        let grok = model("xai/grok-2-vision"); // output as large as the window
        assert_eq!((grok.context, grok.max_output), (32_768, 32_768));
        assert_eq!(grok.default_max_tokens(), 16_384);
        assert_eq!(grok.max_input_tokens(16_384), 16_384);
        assert_eq!(grok.max_input_tokens(40_000), 0);
    }

    #[test]
    fn a_missing_cache_price_is_the_input_price() {
        let plain = Price { input: 2.0, output: 4.0, ..Price::default() };
        assert_eq!((plain.read(), plain.write(), plain.write_1h()), (2.0, 2.0, 2.0));
        let free_writes = Price { cache_read: Some(0.5), cache_write: Some(0.0), ..plain };
        assert_eq!((free_writes.read(), free_writes.write()), (0.5, 2.0));
        let marked = Price { cache_write: Some(2.5), cache_write_1h: Some(4.0), ..plain };
        assert_eq!((marked.write(), marked.write_1h()), (2.5, 4.0));
        assert!(plain.is_known() && !Price::default().is_known());
    }
}
