//! [`ModelRow`]: what a data file says of a model.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::provider::{CacheKind, CachePolicy, Provider};
use crate::{LongRequestPrice, Model, Price, ReasoningBinding, ThinkingSupport, Vocabulary};

use super::{amount, factor, update_if_given};

/// A model; a known one keeps what is absent here.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelRow {
    /// The id that requests carry.
    pub id: String,
    /// The id of its provider.
    pub provider: String,
    /// The window in tokens. New models: 128000.
    context: Option<NonZeroU32>,
    /// The most tokens it can answer with. New models: 8192.
    max_output: Option<NonZeroU32>,
    /// US dollars per million tokens. New models: not known, shown as 0.
    price: Option<PriceRow>,
    /// Prices of longer requests; the list replaces a known one.
    price_above: Option<Vec<LongRequestPrice>>,
    /// The smallest prefix that is cached, in tokens. New models: the provider's.
    cache_min_tokens: Option<u32>,
    /// Whether it sees images. New models: no.
    vision: Option<bool>,
    /// Whether it calls tools. New models: yes.
    tools: Option<bool>,
    /// Whether it can think before it answers. New models: no.
    reasoning: Option<bool>,
    /// Whether its prompts are cached. New models: if a cached read has a price, or no price is
    /// known and the provider caches.
    caching: Option<bool>,
    /// Whether it accepts a conversation that ends with an assistant message. New models: yes.
    prefill: Option<bool>,
    /// Whether it takes `temperature` and `top_p`. New models: yes.
    sampling: Option<bool>,
    /// Whether a request may force it to call a tool. New models: yes.
    forced_tool: Option<bool>,
    /// Whether it takes system messages inside the conversation. New models: no.
    system_messages: Option<bool>,
    /// Whether a system message may change the effort. New models: no.
    message_effort: Option<bool>,
    /// Whether its reasoning is bound to everything before it. New models: no.
    binding: Option<ReasoningBinding>,
    /// The ids of the models that read its reasoning besides itself. New models: all.
    reasoning_readers: Option<Vec<String>>,
    /// What it offers for thinking. New models: nothing is sent.
    thinking: Option<ThinkingSupport>,
    /// The day it is switched off: `2026-05-14`.
    deprecated: Option<String>,
    /// Whether it is no longer sold, so that it is listed only for old sessions. New models: no.
    gone: Option<bool>,
    /// Its vocabulary, if public. New models: the provider's.
    vocabulary: Option<Vocabulary>,
    /// How many of its tokens one token of the vocabulary counts for. New models: the provider's,
    /// else 1.
    #[serde(default, deserialize_with = "factor")]
    token_factor: Option<f64>,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PriceRow {
    /// Input that is neither read from the cache nor written to it.
    #[serde(default, deserialize_with = "amount")]
    input: Option<f64>,
    /// Output, reasoning included.
    #[serde(default, deserialize_with = "amount")]
    output: Option<f64>,
    /// Input read from the cache.
    #[serde(default, deserialize_with = "amount")]
    cache_read: Option<f64>,
    /// Input written to the cache for the usual lifetime.
    #[serde(default, deserialize_with = "amount")]
    cache_write: Option<f64>,
    /// Input written to the cache for an hour.
    #[serde(default, deserialize_with = "amount")]
    cache_write_1h: Option<f64>,
}

// The rows are taken apart field by field without `..`, so that a new field cannot be forgotten
// here.

impl ModelRow {
    pub(crate) fn new(provider: &str, id: &str) -> Self {
        ModelRow { provider: provider.to_owned(), id: id.to_owned(), ..ModelRow::default() }
    }

    /// A model that no file lists, with what its provider assumes of such models.
    pub(crate) fn unlisted(provider: &Provider, id: &str) -> Model {
        let given = provider.unlisted;
        let row = ModelRow {
            context: given.context,
            max_output: given.max_output,
            vision: given.vision,
            prefill: given.prefill,
            sampling: given.sampling,
            forced_tool: given.forced_tool,
            ..ModelRow::new(&provider.id, id)
        };
        Model { listed: provider.open_models, ..row.resolve(provider) }
    }

    /// Overwrites the fields that a newer row for the same model gives.
    pub(crate) fn merge(&mut self, newer: &ModelRow) {
        let ModelRow {
            id: _,
            provider: _,
            context,
            max_output,
            price,
            price_above,
            cache_min_tokens,
            vision,
            tools,
            reasoning,
            caching,
            prefill,
            sampling,
            forced_tool,
            system_messages,
            message_effort,
            binding,
            reasoning_readers,
            thinking,
            deprecated,
            gone,
            vocabulary,
            token_factor,
        } = newer;
        update_if_given(&mut self.context, context);
        update_if_given(&mut self.max_output, max_output);
        update_if_given(&mut self.price_above, price_above);
        update_if_given(&mut self.cache_min_tokens, cache_min_tokens);
        update_if_given(&mut self.vision, vision);
        update_if_given(&mut self.tools, tools);
        update_if_given(&mut self.reasoning, reasoning);
        update_if_given(&mut self.caching, caching);
        update_if_given(&mut self.prefill, prefill);
        update_if_given(&mut self.sampling, sampling);
        update_if_given(&mut self.forced_tool, forced_tool);
        update_if_given(&mut self.system_messages, system_messages);
        update_if_given(&mut self.message_effort, message_effort);
        update_if_given(&mut self.binding, binding);
        update_if_given(&mut self.reasoning_readers, reasoning_readers);
        update_if_given(&mut self.thinking, thinking);
        update_if_given(&mut self.deprecated, deprecated);
        update_if_given(&mut self.gone, gone);
        update_if_given(&mut self.vocabulary, vocabulary);
        update_if_given(&mut self.token_factor, token_factor);
        if let Some(PriceRow { input, output, cache_read, cache_write, cache_write_1h }) = price {
            let price = self.price.get_or_insert_default();
            update_if_given(&mut price.input, input);
            update_if_given(&mut price.output, output);
            update_if_given(&mut price.cache_read, cache_read);
            update_if_given(&mut price.cache_write, cache_write);
            update_if_given(&mut price.cache_write_1h, cache_write_1h);
        }
    }

    /// Builds the model. What no row gives comes from its provider, or from the defaults for new
    /// models.
    pub(crate) fn resolve(&self, provider: &Provider) -> Model {
        let cache = provider.profile_for_id(&self.id).cache;
        let given = self.price.unwrap_or_default();
        let input = given.input.unwrap_or_default();
        let price = Price {
            input,
            output: given.output.unwrap_or_default(),
            cache_read: given.cache_read.or(price_share(given.input, cache.read_factor)),
            cache_write: given.cache_write.or(price_share(given.input, cache.write_factor)),
            cache_write_1h: given.cache_write_1h.or(price_share(given.input, cache.write_1h_factor)),
        };
        let discount = price.cache_read.is_some_and(|read| read > 0.0);
        Model {
            id: self.id.clone(),
            provider: self.provider.clone(),
            context: self.context.map_or(128_000, NonZeroU32::get),
            max_output: self.max_output.map_or(8192, NonZeroU32::get),
            price,
            price_above: long_prices(self.price_above.as_deref().unwrap_or_default(), &cache),
            cache_min_tokens: self.cache_min_tokens,
            vision: self.vision.unwrap_or(false),
            tools: self.tools.unwrap_or(true),
            reasoning: self.reasoning.unwrap_or(false),
            caching: self.caching.unwrap_or(discount || !price.is_known() && cache.kind != CacheKind::None),
            prefill: self.prefill.unwrap_or(true),
            sampling: self.sampling.unwrap_or(true),
            forced_tool: self.forced_tool.unwrap_or(true),
            system_messages: self.system_messages.unwrap_or(false),
            message_effort: self.message_effort.unwrap_or(false),
            binding: self.binding.unwrap_or_default(),
            reasoning_readers: self.reasoning_readers.clone(),
            thinking: self.thinking.clone().unwrap_or_default(),
            deprecated: self.deprecated.clone(),
            gone: self.gone.unwrap_or(false),
            listed: true,
            vocabulary: self.vocabulary.or_else(|| provider.vocabulary_for(&self.id)),
            token_factor: self.token_factor.unwrap_or_else(|| provider.token_factor_for(&self.id)),
        }
    }
}

fn long_prices(rows: &[LongRequestPrice], cache: &CachePolicy) -> Vec<LongRequestPrice> {
    let resolved = rows.iter().map(|row| LongRequestPrice {
        cache_read: row.cache_read.or(price_share(row.input, cache.read_factor)),
        cache_write: row.cache_write.or(price_share(row.input, cache.write_factor)),
        cache_write_1h: row.cache_write_1h.or(price_share(row.input, cache.write_1h_factor)),
        ..*row
    });
    let mut resolved: Vec<LongRequestPrice> = resolved.collect();
    resolved.sort_by_key(|above| above.tokens);
    resolved
}

/// A share of a price, to a millionth of a dollar: 3 × 0.1 is 0.3, not 0.30000000000000004.
fn price_share(price: Option<f64>, factor: Option<f64>) -> Option<f64> {
    Some((price? * factor? * 1e6).round() / 1e6)
}
