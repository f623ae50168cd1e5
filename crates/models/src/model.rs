//! [`Model`]: the windows, prices and abilities of one model.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ThinkingSupport;
use crate::rows::amount;

/// The most tokens an answer may take unless the user asks for more.
const DEFAULT_MAX_TOKENS: u32 = 32_000;

/// A public vocabulary for counting tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Vocabulary {
    /// `o200k_base`, OpenAI's since GPT-4o.
    #[serde(rename = "o200k_base")]
    O200k,
    /// `cl100k_base`, OpenAI's for GPT-4 and GPT-3.5.
    #[serde(rename = "cl100k_base")]
    Cl100k,
}

/// What tokens cost, in US dollars per million.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Price {
    /// Input that is neither read from the cache nor written to it.
    pub input: f64,
    /// Output tokens, reasoning included.
    pub output: f64,
    /// Input read from the cache. `None`: no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input written to the cache for the usual lifetime. `None`: no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
    /// Input written to the cache for an hour. `None`: no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_1h: Option<f64>,
}

impl Price {
    /// Whether any price is known. All zeros mean "not known": a local server, or a model nobody
    /// has priced.
    pub fn is_known(&self) -> bool {
        self.input > 0.0 || self.output > 0.0
    }

    /// Dollars per million tokens read from the cache; the input price where there is no discount.
    pub fn read(&self) -> f64 {
        self.cache_read.filter(|price| *price > 0.0).unwrap_or(self.input) // the list has 0 where it knows no price
    }

    /// What reading a token from the cache costs, as a share of plain input; 1 where no price is
    /// known.
    pub fn read_share(&self) -> f64 {
        if self.input > 0.0 { self.read() / self.input } else { 1.0 }
    }

    /// Dollars per million tokens written to the cache.
    ///
    /// Never less than input: a 0 in a price list means that writing costs nothing extra.
    pub fn write(&self) -> f64 {
        self.cache_write.unwrap_or(self.input).max(self.input)
    }

    /// Dollars per million tokens written to the cache for an hour.
    pub fn write_1h(&self) -> f64 {
        self.cache_write_1h.unwrap_or_else(|| self.write()).max(self.input)
    }
}

/// Prices for long requests. The prices given replace the usual ones, for all tokens of the
/// request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LongRequestPrice {
    /// These prices apply to requests with more input tokens than this.
    pub tokens: u32,
    /// Input that is neither read from the cache nor written to it.
    #[serde(default, deserialize_with = "amount", skip_serializing_if = "Option::is_none")]
    pub input: Option<f64>,
    /// Output tokens, reasoning included.
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

/// Whether a model's reasoning may go back after something before it has changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningBinding {
    /// It may: the signature covers the reasoning alone.
    #[default]
    None,
    /// Not for accounts made since the rule came.
    NewAccounts,
    /// Not for anybody.
    AllAccounts,
}

impl ReasoningBinding {
    /// Whether some accounts are refused when something before the reasoning has changed.
    pub fn is_bound(self) -> bool {
        self != ReasoningBinding::None
    }
}

/// One model at one provider.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Model {
    /// The id that requests carry.
    pub id: String,
    /// The id of the provider that serves it.
    pub provider: String,
    /// The window in tokens: input and output together.
    pub context: u32,
    /// The most tokens that one answer may have.
    pub max_output: u32,
    /// Prices of a request below every threshold of `price_above`.
    pub price: Price,
    /// Prices of longer requests, sorted by threshold.
    pub price_above: Vec<LongRequestPrice>,
    /// The smallest prefix that the provider caches for this model, in tokens. `None`: the
    /// provider's own minimum applies.
    pub cache_min_tokens: Option<u32>,
    /// Whether it accepts images as input.
    pub vision: bool,
    /// Whether it can call tools.
    pub tools: bool,
    /// Whether it can reason before it answers.
    pub reasoning: bool,
    /// Whether its provider is known to cache its prompts.
    pub caching: bool,
    /// Whether it accepts a conversation that ends with an assistant message; newer models do not.
    pub prefill: bool,
    /// Whether it takes `temperature` and `top_p`.
    pub sampling: bool,
    /// Whether a request may force it to call a tool.
    pub forced_tool: bool,
    /// Whether it takes system messages inside the conversation.
    pub system_messages: bool,
    /// Whether a system message may change the effort, which keeps the cache.
    pub message_effort: bool,
    /// Whether its reasoning is bound to everything before it.
    pub binding: ReasoningBinding,
    /// The ids of the models that read its reasoning besides itself; the others ignore it. `None`:
    /// every model does.
    pub reasoning_readers: Option<Vec<String>>,
    /// What it offers for thinking.
    pub thinking: ThinkingSupport,
    /// The announced date on which it is switched off: `2026-05-14`.
    pub deprecated: Option<String>,
    /// Whether it is no longer sold: known only for the sake of old sessions.
    pub gone: bool,
    /// Whether a data file lists it. If not, its figures are assumptions.
    pub listed: bool,
    /// Its vocabulary. `None`: not public; o200k stands in, scaled by
    /// [`token_factor`](Self::token_factor).
    pub vocabulary: Option<Vocabulary>,
    /// How many of the model's tokens one token of the vocabulary corresponds to.
    pub token_factor: f64,
}

impl Model {
    /// Provider and id in one: `anthropic/claude-sonnet-5`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.provider, self.id)
    }

    /// The most tokens an answer may take: half the window at most, since some lists give a model
    /// an output as large as its window, which would leave no room for a prompt.
    pub fn max_tokens_limit(&self) -> u32 {
        self.max_output.min(self.context / 2)
    }

    /// The most tokens an answer may take unless the user asks for more.
    pub fn default_max_tokens(&self) -> u32 {
        self.max_tokens_limit().min(DEFAULT_MAX_TOKENS)
    }

    /// The tokens left for input when an answer may take `max_tokens`.
    pub fn max_input_tokens(&self, max_tokens: u32) -> u32 {
        self.context.saturating_sub(max_tokens)
    }

    /// The prices of a request with this many input tokens, cached ones included.
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
            LongRequestPrice { tokens: 10, input: Some(7.0), ..LongRequestPrice::default() },
            LongRequestPrice { tokens: 20, cache_read: Some(0.7), ..LongRequestPrice::default() },
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
