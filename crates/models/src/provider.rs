//! How to talk to a provider, and how it caches.
//!
//! The principal types are [`Provider`], an entry of the catalogue, and [`ProviderProfile`],
//! everything a codec needs to encode a request for one of its models.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rows::{ProviderRow, UnlistedRow};
use crate::{Model, Protocol, Vocabulary, glob};

/// How cache breakpoints are written into a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MarkerFormat {
    /// The provider understands no markers, so none is sent.
    #[default]
    None,
    /// `cache_control: {"type": "ephemeral"}`, with a `ttl` for the long lifetime (Anthropic).
    CacheControl,
    /// `prompt_cache_breakpoint: {"mode": "explicit"}` (OpenAI from GPT-5.6 on).
    PromptCacheBreakpoint,
}

impl MarkerFormat {
    /// The fields of a block that may hold a marker, in all formats.
    pub const FIELDS: [&'static str; 2] = ["cache_control", "prompt_cache_breakpoint"];
}

/// The request field that limits the tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`, which most servers understand.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: OpenAI's reasoning models refuse the older name.
    MaxCompletionTokens,
}

impl MaxTokensField {
    /// The field's name in the request body.
    pub fn name(self) -> &'static str {
        match self {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// The field of an assistant message in which reasoning is sent back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningField {
    /// Reasoning is not sent back in a field.
    #[default]
    None,
    /// `reasoning_content`, as DeepSeek and others name it.
    ReasoningContent,
    /// `reasoning`, as OpenRouter names it.
    Reasoning,
}

impl ReasoningField {
    /// The field's name in the message. `None`: reasoning is not sent back.
    pub fn name(self) -> Option<&'static str> {
        match self {
            ReasoningField::None => None,
            ReasoningField::ReasoningContent => Some("reasoning_content"),
            ReasoningField::Reasoning => Some("reasoning"),
        }
    }
}

/// What a provider with several protocols takes over Chat Completions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChatSupport {
    /// Everything.
    #[default]
    Full,
    /// Tools only without reasoning.
    ToolsWithoutReasoning,
    /// No tools.
    NoTools,
    /// Nothing: the model has other protocols only.
    None,
}

/// How the schemas of declared tools are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolSchemaStyle {
    /// Exactly as the tool declares them.
    #[default]
    AsDeclared,
    /// With every property required, optional ones nullable, and `strict` removed.
    AllRequired,
}

/// What makes a provider keep a prefix of the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// The provider caches nothing, or does not document that it does.
    #[default]
    None,
    /// Each marked block ends a cache entry.
    Markers,
    /// Every prompt is cached, and the longest known prefix is read.
    Automatic,
}

/// A provider's documented caching rules.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CachePolicy {
    /// What makes the provider keep a prefix.
    pub kind: CacheKind,
    /// The smallest prefix it keeps, in tokens. A model may have a minimum of its own.
    pub min_tokens: u32,
    /// Prefixes are kept in whole multiples of this many tokens.
    pub step: u32,
    /// Tokens of the provider's own text before the prompt, which steps are counted from.
    pub hidden_tokens: u32,
    /// Reads are reported in whole multiples of this many tokens.
    pub report_step: u32,
    /// Where the provider caches by itself, besides marked blocks. `None`: nowhere.
    pub implicit: Option<ImplicitEnds>,
    /// Seconds that an entry lives after its last use. `None`: not documented.
    pub lifetime: Option<u32>,
    /// Seconds of the longer lifetime that a marker may ask for. `None`: there is only one
    /// lifetime.
    pub long_lifetime: Option<u32>,
    /// How many blocks a read looks back from a marker, the marked block being the first. `None`:
    /// no limit.
    pub look_back: Option<u32>,
    /// The most markers that one request may carry.
    pub max_markers: u32,
    /// The price of a read as a share of the input price, where the catalogue has no price.
    pub read_factor: Option<f64>,
    /// The price of a write as a share of the input price, where the catalogue has no price.
    pub write_factor: Option<f64>,
    /// The price of a write for the long lifetime as a share of the input price, where the
    /// catalogue has no price.
    pub write_1h_factor: Option<f64>,
}

/// The ends of messages at which a provider caches by itself: a message of the user, and the last of
/// a run of tool results. It writes at the latest of them, and reads at earlier ones, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImplicitEnds {
    /// How many ends before the latest a read tries.
    pub earlier: u32,
    /// Whether the end of the system prompt is read and written, too. OpenAI's documents do not
    /// decide it; most measurements say yes.
    pub system: bool,
}

impl CachePolicy {
    /// The part of a prefix of so many tokens that an automatic cache keeps, as it is reported; 0
    /// below the minimum.
    pub fn prefix_in_steps(&self, tokens: usize) -> usize {
        let [step, hidden, report] =
            [self.step.max(1), self.hidden_tokens, self.report_step.max(1)].map(|tokens| tokens as usize);
        let kept = ((tokens + hidden) / step * step).saturating_sub(hidden) / report * report;
        Some(kept).filter(|kept| *kept >= self.min_tokens.max(1) as usize).unwrap_or(0)
    }
}

impl Default for CachePolicy {
    fn default() -> Self {
        CachePolicy {
            kind: CacheKind::None,
            min_tokens: 0,
            step: 1,
            hidden_tokens: 0,
            report_step: 1,
            implicit: None,
            lifetime: None,
            long_lifetime: None,
            look_back: None,
            max_markers: 0,
            read_factor: None,
            write_factor: None,
            write_1h_factor: None,
        }
    }
}

/// Everything a codec needs to know about a provider to encode requests for one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ProviderProfile {
    /// The protocol that the endpoint speaks.
    pub protocol: Protocol,
    /// Where requests go, without the protocol's own path.
    pub base_url: String,
    /// Environment variables that may hold the API key; the first one that is set wins. Empty: no
    /// key is needed.
    pub key_env: Vec<String>,
    /// How cache breakpoints are written.
    pub markers: MarkerFormat,
    /// The request field that limits the tokens of an answer.
    pub max_tokens_field: MaxTokensField,
    /// What the model takes over Chat Completions, where that is not all.
    pub chat_support: ChatSupport,
    /// Whether `include_reasoning: true` is sent.
    pub include_reasoning: bool,
    /// The message field in which reasoning is sent back.
    pub reasoning_field: ReasoningField,
    /// Whether `stream_options.include_usage` is sent. Where it is not, the server reports usage
    /// anyway.
    pub stream_usage: bool,
    /// Whether it compares requests and gives its own reason of a cache loss.
    pub diagnostics: bool,
    /// The version of the API that requests to its own address name, where the protocol has one.
    pub api_version: Option<String>,
    /// Whether messages may carry an id.
    pub message_ids: bool,
    /// Whether a message of the model says if it is said on the way (`commentary`) or in the end
    /// (`final_answer`): the field `phase` of the Responses API.
    pub message_phase: bool,
    /// Whether an item of the conversation may change the effort: `configuration_update` of the
    /// Responses API.
    pub configuration_updates: bool,
    /// Whether user messages may carry `documentContext`.
    pub document_context: bool,
    /// The id of the provider's web search plugin. `None`: it has none.
    pub web_search_plugin: Option<String>,
    /// Dollars for a thousand searches with the provider's own search tool. `None`: it has none.
    pub web_search_price: Option<f64>,
    /// How the schemas of declared tools are sent.
    pub schemas: ToolSchemaStyle,
    /// Whether a tool result may contain images. If not, they go into a user message of their own.
    pub tool_result_images: bool,
    /// Whether the first call of a step needs a signature (Gemini from 3 on).
    pub signed_calls: bool,
    /// A header that carries the session's id, so that its requests reach the same cache.
    pub session_header: Option<String>,
    /// A request field that carries the session's id, for the same purpose.
    pub session_field: Option<String>,
    /// How the provider caches, the model's own minimum included.
    pub cache: CachePolicy,
}

impl Default for ProviderProfile {
    fn default() -> Self {
        ProviderProfile {
            protocol: Protocol::default(),
            base_url: String::new(),
            key_env: Vec::new(),
            markers: MarkerFormat::default(),
            max_tokens_field: MaxTokensField::default(),
            chat_support: ChatSupport::default(),
            include_reasoning: false,
            reasoning_field: ReasoningField::default(),
            stream_usage: true,
            diagnostics: false,
            api_version: None,
            message_ids: false,
            message_phase: false,
            configuration_updates: false,
            document_context: false,
            web_search_plugin: None,
            web_search_price: None,
            schemas: ToolSchemaStyle::default(),
            tool_result_images: false,
            signed_calls: false,
            session_header: None,
            session_field: None,
            cache: CachePolicy::default(),
        }
    }
}

/// A provider of the catalogue: its identity, and the rows that its profiles are made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// The id that models and settings refer to: `anthropic`.
    pub id: String,
    /// The name that people read: `Anthropic`.
    pub name: String,
    /// Whether it resells the models of others. First-party providers win when only a model is
    /// named.
    pub gateway: bool,
    /// Whether any model id is usual there, as with local servers.
    pub open_models: bool,
    /// Pattern of the ids of its own models.
    pub(crate) model_ids: Option<String>,
    /// What is assumed of a model that no file lists.
    pub(crate) unlisted: UnlistedRow,
    /// Short names, each with a pattern of the ids it may stand for.
    pub aliases: BTreeMap<String, String>,
    /// The model that is used if nobody names one: an id or an alias.
    pub default_model: Option<String>,
    /// Environment variables that may hold another base URL, the first that is set wins.
    pub base_url_env: Vec<String>,
    /// The provider whose models and rows it starts from. `None`: it stands on its own.
    pub like: Option<String>,
    /// The profile for a model that no override matches.
    pub profile: ProviderProfile,
    /// Base rows (without a pattern) and overrides (with one), in the order in which they apply.
    pub(crate) layers: Vec<ProviderRow>,
}

impl ProviderProfile {
    /// Seconds of the longer lifetime that a request can ask for. `None`: there is only one, or the
    /// provider's markers name none.
    pub fn long_lifetime(&self) -> Option<u32> {
        self.cache.long_lifetime.filter(|_| self.markers == MarkerFormat::CacheControl)
    }

    /// A base URL that a person gave, with the version that this provider's usual URL ends with if
    /// it lacks one: `http://127.0.0.1:8080` becomes `http://127.0.0.1:8080/v1`. Where clients of
    /// the protocol take a base URL as it is, a path stays as it was given.
    pub fn complete_base_url(&self, given: &str) -> String {
        let given = given.trim().trim_end_matches('/');
        let version = url_path(&self.base_url).rsplit('/').next().filter(|last| is_version(last));
        let path = url_path(given);
        let has_version = path.rsplit('/').next().is_some_and(is_version);
        let takes_version = path.is_empty() || self.protocol.traits().version_after_base_url;
        match version {
            Some(version) if !has_version && takes_version => format!("{given}/{version}"),
            _ => given.to_owned(),
        }
    }
}

/// The path of a URL without the slash at its end: empty, or beginning with a slash.
fn url_path(url: &str) -> &str {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = after_scheme.find('/').map_or("", |slash| &after_scheme[slash..]);
    path.trim_end_matches('/')
}

/// Whether a segment of a path is a version: `v1`, `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl Provider {
    /// The profile for one model: the base rows with all matching overrides applied.
    pub fn profile_for_model(&self, model: &Model) -> ProviderProfile {
        let mut profile = self.profile_for_id(&model.id);
        profile.cache.min_tokens = model.cache_min_tokens.unwrap_or(profile.cache.min_tokens);
        profile
    }

    pub(crate) fn profile_for_id(&self, id: &str) -> ProviderProfile {
        let mut profile = ProviderProfile::default();
        self.layers_for(id).for_each(|row| row.apply_to(&mut profile));
        profile
    }

    /// Whether it speaks a protocol, for all its models or for some.
    pub fn speaks(&self, protocol: Protocol) -> bool {
        self.profile.protocol == protocol || self.layers.iter().any(|row| row.protocol == Some(protocol))
    }

    pub(crate) fn vocabulary_for(&self, id: &str) -> Option<Vocabulary> {
        self.layers_for(id).filter_map(|row| row.vocabulary).last()
    }

    pub(crate) fn token_factor_for(&self, id: &str) -> f64 {
        self.layers_for(id).filter_map(|row| row.token_factor).last().unwrap_or(1.0)
    }

    /// Whether an id looks like one of this provider's own models.
    pub(crate) fn has_model_id(&self, id: &str) -> bool {
        self.model_ids.as_ref().is_some_and(|pattern| glob::matches(pattern, id))
    }

    fn layers_for(&self, id: &str) -> impl Iterator<Item = &ProviderRow> {
        self.layers
            .iter()
            .filter(move |row| row.models.as_ref().is_none_or(|models| glob::matches(models, id)))
    }
}
