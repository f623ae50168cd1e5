//! The format of the catalogue's data files, built-in and user-provided.
//!
//! In a row every field but the id may be absent, so that a user's row changes only what it names.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};

use crate::provider::{
    CacheKind, CachePolicy, ChatSupport, ImplicitEnds, MarkerFormat, MaxTokensField, Provider,
    ProviderProfile, ReasoningField, ToolSchemaStyle,
};
use crate::{LongRequestPrice, Model, Price, Protocol, ReasoningBinding, ThinkingSupport, Vocabulary};

/// Models and providers, merged field by field over those that are known already.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CatalogueFile {
    /// The address of this schema, for editors.
    #[serde(rename = "$schema")]
    _schema: Option<String>,
    /// What the file holds and where it comes from.
    #[serde(rename = "about")]
    _about: Option<String>,
    /// The day the figures were taken: `2026-08-08`.
    pub as_of: Option<String>,
    /// Models: new ones, or fields of known ones.
    pub models: Vec<ModelRow>,
    /// Providers: new ones, or fields of known ones.
    pub providers: Vec<ProviderRow>,
}

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

/// A provider, or an override for some of its models; what is absent here stays as it was.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProviderRow {
    /// The id that models name. A provider needs it; an override has none.
    pub id: Option<String>,
    /// Which models an override is for: `gpt-4 | gpt-4-*`. `*`, `?` and sets such as `[6-9]` are
    /// understood.
    pub models: Option<String>,
    /// The name, for people. New providers: the id.
    pub name: Option<String>,
    /// Another provider to start from: its rows, and its models under this id.
    pub like: Option<String>,
    /// Whether it sells other makers' models. New providers: no.
    pub gateway: Option<bool>,
    /// Whether any model id is usual there, so that one that no file lists is no surprise. New
    /// providers: no.
    pub open_models: Option<bool>,
    /// The ids of its own models: a model that no file lists is taken for one of these. New
    /// providers: none.
    pub model_ids: Option<String>,
    /// What is assumed of a model that no file lists.
    pub unlisted: Option<UnlistedRow>,
    /// Short names, each with the ids it may stand for: the newest of them is meant.
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
    /// The model that is used if nobody names one: an id or an alias.
    pub default_model: Option<String>,
    /// Environment variables that may hold another base URL. New providers: none.
    pub base_url_env: Option<Vec<String>>,
    /// The protocol. New providers: openai.
    pub protocol: Option<Protocol>,
    /// Where requests go, without the protocol's own path (`/messages`, `/chat/completions`,
    /// `/responses`).
    base_url: Option<String>,
    /// Environment variables that may hold the key. New providers: none.
    key_env: Option<Vec<String>>,
    /// How breakpoints are written. New providers: none.
    markers: Option<MarkerFormat>,
    /// The field for the most tokens of an answer. New providers: `max_tokens`.
    max_tokens_field: Option<MaxTokensField>,
    /// What the model takes over Chat Completions. New providers: everything.
    chat_support: Option<ChatSupport>,
    /// Whether `include_reasoning: true` is sent. New providers: no.
    include_reasoning: Option<bool>,
    /// The message field in which reasoning is sent back. New providers: none.
    reasoning_field: Option<ReasoningField>,
    /// Whether `stream_options.include_usage` is sent. New providers: yes.
    stream_usage: Option<bool>,
    /// Whether it compares requests and gives its own reason of a cache loss. New providers: no.
    diagnostics: Option<bool>,
    /// The version of the API that requests to its own address name. New providers: none.
    api_version: Option<String>,
    /// Whether messages may carry an id. New providers: no.
    message_ids: Option<bool>,
    /// Whether messages of the model carry their `phase` (Responses API). New providers: no.
    message_phase: Option<bool>,
    /// Whether an item may change the effort (Responses API). New providers: no.
    configuration_updates: Option<bool>,
    /// Whether user messages may carry `documentContext`. New providers: no.
    document_context: Option<bool>,
    /// The id of the plugin that searches the web. New providers: none.
    web_search_plugin: Option<String>,
    /// How tool schemas are sent. New providers: as declared.
    schemas: Option<ToolSchemaStyle>,
    /// Whether a tool result may hold images. New providers: no.
    tool_result_images: Option<bool>,
    /// Whether the first call of a step needs a signature, as Gemini's do. New providers: no.
    signed_calls: Option<bool>,
    /// A header that carries the session's id. New providers: none.
    session_header: Option<String>,
    /// A field of the request that carries the session's id. New providers: none.
    session_field: Option<String>,
    /// The vocabulary of its models, if public.
    pub vocabulary: Option<Vocabulary>,
    /// How many of its tokens one token of the vocabulary counts for.
    #[serde(default, deserialize_with = "factor")]
    pub token_factor: Option<f64>,
    /// How it caches. New providers: not at all.
    cache: Option<CacheRow>,
    /// Rows for some of its models, applied in order.
    #[serde(default)]
    pub overrides: Vec<ProviderRow>,
}

/// What is assumed of a provider's models that no file lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UnlistedRow {
    /// The window in tokens.
    context: Option<NonZeroU32>,
    /// The most tokens of an answer.
    max_output: Option<NonZeroU32>,
    /// Whether such a model sees images.
    vision: Option<bool>,
    /// Whether it accepts a conversation that ends with an assistant message.
    prefill: Option<bool>,
    /// Whether it takes `temperature` and `top_p`.
    sampling: Option<bool>,
    /// Whether a request may force it to call a tool.
    forced_tool: Option<bool>,
}

/// A provider's caching rules.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CacheRow {
    /// What makes the provider keep a prefix.
    kind: Option<CacheKind>,
    /// The smallest prefix it keeps, in tokens.
    min_tokens: Option<u32>,
    /// Prefixes are kept in whole multiples of so many tokens.
    step: Option<NonZeroU32>,
    /// Tokens of the provider's own text before the prompt, which steps are counted from.
    hidden_tokens: Option<u32>,
    /// Reads are reported in whole multiples of so many tokens.
    report_step: Option<NonZeroU32>,
    /// Where the provider caches by itself, besides marked blocks.
    implicit: Option<ImplicitEnds>,
    /// Seconds that an entry lives after its last use.
    lifetime: Option<u32>,
    /// Seconds of the longer lifetime that a marker may ask for.
    long_lifetime: Option<u32>,
    /// How many blocks a read looks back from a marker.
    look_back: Option<u32>,
    /// The most markers in one request.
    max_markers: Option<u32>,
    /// The price of a read as a share of the input price.
    #[serde(default, deserialize_with = "amount")]
    read_factor: Option<f64>,
    /// The price of a write as a share of the input price.
    #[serde(default, deserialize_with = "amount")]
    write_factor: Option<f64>,
    /// The price of a write for the long lifetime as a share of the input price.
    #[serde(default, deserialize_with = "amount")]
    write_1h_factor: Option<f64>,
}

/// Reads a price or a share. Negative values are rejected, since they would pay the user.
pub(crate) fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    let amount = Option::<f64>::deserialize(deserializer)?;
    match amount {
        Some(amount) if amount < 0.0 => {
            Err(serde::de::Error::custom(format!("invalid value: {amount}, expected 0 or more")))
        }
        amount => Ok(amount),
    }
}

fn factor<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match amount(deserializer)? {
        Some(0.0) => Err(serde::de::Error::custom("invalid value: 0, expected more than 0")),
        factor => Ok(factor),
    }
}

/// Replaces a value by the newer row's, if that has one.
fn update_if_given<T: Clone>(known: &mut Option<T>, newer: &Option<T>) {
    if newer.is_some() {
        known.clone_from(newer);
    }
}

fn set_if_given<T: Clone>(value: &mut T, given: &Option<T>) {
    if let Some(given) = given {
        value.clone_from(given);
    }
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

impl ProviderRow {
    /// The row and its overrides, in the order in which they apply.
    pub(crate) fn layers(&self) -> impl Iterator<Item = ProviderRow> {
        let base = ProviderRow { overrides: Vec::new(), ..self.clone() };
        [base].into_iter().chain(self.overrides.iter().cloned())
    }

    /// A field of this override that only a provider itself may have. `None`: there is none.
    pub(crate) fn provider_only_field(&self) -> Option<&'static str> {
        let fields = [
            ("id", self.id.is_some()),
            ("name", self.name.is_some()),
            ("like", self.like.is_some()),
            ("gateway", self.gateway.is_some()),
            ("open_models", self.open_models.is_some()),
            ("model_ids", self.model_ids.is_some()),
            ("unlisted", self.unlisted.is_some()),
            ("aliases", !self.aliases.is_empty()),
            ("default_model", self.default_model.is_some()),
            ("base_url_env", self.base_url_env.is_some()),
            ("overrides", !self.overrides.is_empty()),
        ];
        fields.into_iter().find_map(|(field, given)| given.then_some(field))
    }

    pub(crate) fn apply_to(&self, profile: &mut ProviderProfile) {
        let ProviderRow {
            id: _,
            models: _,
            name: _,
            like: _,
            gateway: _,
            open_models: _,
            model_ids: _,
            unlisted: _,
            aliases: _,
            default_model: _,
            base_url_env: _,
            vocabulary: _,
            token_factor: _,
            overrides: _,
            protocol,
            base_url,
            key_env,
            markers,
            max_tokens_field,
            chat_support,
            include_reasoning,
            reasoning_field,
            stream_usage,
            diagnostics,
            api_version,
            message_ids,
            message_phase,
            configuration_updates,
            document_context,
            web_search_plugin,
            schemas,
            tool_result_images,
            signed_calls,
            session_header,
            session_field,
            cache,
        } = self;
        set_if_given(&mut profile.protocol, protocol);
        set_if_given(&mut profile.base_url, base_url);
        set_if_given(&mut profile.key_env, key_env);
        set_if_given(&mut profile.markers, markers);
        set_if_given(&mut profile.max_tokens_field, max_tokens_field);
        set_if_given(&mut profile.chat_support, chat_support);
        set_if_given(&mut profile.include_reasoning, include_reasoning);
        set_if_given(&mut profile.reasoning_field, reasoning_field);
        set_if_given(&mut profile.stream_usage, stream_usage);
        set_if_given(&mut profile.diagnostics, diagnostics);
        update_if_given(&mut profile.api_version, api_version);
        set_if_given(&mut profile.message_ids, message_ids);
        set_if_given(&mut profile.message_phase, message_phase);
        set_if_given(&mut profile.configuration_updates, configuration_updates);
        set_if_given(&mut profile.document_context, document_context);
        update_if_given(&mut profile.web_search_plugin, web_search_plugin);
        set_if_given(&mut profile.schemas, schemas);
        set_if_given(&mut profile.tool_result_images, tool_result_images);
        set_if_given(&mut profile.signed_calls, signed_calls);
        update_if_given(&mut profile.session_header, session_header);
        update_if_given(&mut profile.session_field, session_field);
        if let Some(cache) = cache {
            cache.apply_to(&mut profile.cache);
        }
    }
}

impl CacheRow {
    fn apply_to(&self, cache: &mut CachePolicy) {
        let CacheRow {
            kind,
            min_tokens,
            step,
            hidden_tokens,
            report_step,
            implicit,
            lifetime,
            long_lifetime,
            look_back,
            max_markers,
            read_factor,
            write_factor,
            write_1h_factor,
        } = self;
        set_if_given(&mut cache.kind, kind);
        set_if_given(&mut cache.min_tokens, min_tokens);
        set_if_given(&mut cache.step, &step.map(NonZeroU32::get));
        set_if_given(&mut cache.hidden_tokens, hidden_tokens);
        set_if_given(&mut cache.report_step, &report_step.map(NonZeroU32::get));
        update_if_given(&mut cache.implicit, implicit);
        update_if_given(&mut cache.lifetime, lifetime);
        update_if_given(&mut cache.long_lifetime, long_lifetime);
        update_if_given(&mut cache.look_back, look_back);
        set_if_given(&mut cache.max_markers, max_markers);
        update_if_given(&mut cache.read_factor, read_factor);
        update_if_given(&mut cache.write_factor, write_factor);
        update_if_given(&mut cache.write_1h_factor, write_1h_factor);
    }
}
