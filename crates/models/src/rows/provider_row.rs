//! [`ProviderRow`]: what a data file says of a provider.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::provider::{
    CacheKind, CachePolicy, ChatSupport, ImplicitEnds, MarkerFormat, MaxTokensField, ProviderProfile,
    ReasoningField, ToolSchemaStyle,
};
use crate::{Protocol, Vocabulary};

use super::{amount, factor, set_if_given, update_if_given};

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
    /// Dollars for a thousand searches with the server's own search tool. New providers: it has none.
    web_search_price: Option<f64>,
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
    pub(super) context: Option<NonZeroU32>,
    /// The most tokens of an answer.
    pub(super) max_output: Option<NonZeroU32>,
    /// Whether such a model sees images.
    pub(super) vision: Option<bool>,
    /// Whether it accepts a conversation that ends with an assistant message.
    pub(super) prefill: Option<bool>,
    /// Whether it takes `temperature` and `top_p`.
    pub(super) sampling: Option<bool>,
    /// Whether a request may force it to call a tool.
    pub(super) forced_tool: Option<bool>,
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

// The rows are taken apart field by field without `..`, so that a new field cannot be forgotten
// here.

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
            web_search_price,
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
        update_if_given(&mut profile.web_search_price, web_search_price);
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
