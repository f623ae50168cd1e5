//! How a provider is spoken to, and how it caches.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rows::ProviderRow;
use crate::{Model, Vocabulary, glob};

/// The language of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// Anthropic Messages: requests go to `base_url` + `/messages`.
    Anthropic,
    /// OpenAI Chat Completions: requests go to `base_url` + `/chat/completions`.
    #[default]
    Openai,
}

/// How a breakpoint is written, if it is written at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Markers {
    /// No marker is understood, so none is sent.
    #[default]
    None,
    /// `cache_control: {"type": "ephemeral"}`, with a `ttl` for the long lifetime.
    CacheControl,
    /// `prompt_cache_breakpoint: {"mode": "explicit"}`.
    PromptCacheBreakpoint,
}

/// The request's field for the most tokens of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`: OpenAI's reasoning models refuse the older name.
    MaxCompletionTokens,
}

impl MaxTokensField {
    /// The field's name.
    pub fn name(self) -> &'static str {
        match self {
            MaxTokensField::MaxTokens => "max_tokens",
            MaxTokensField::MaxCompletionTokens => "max_completion_tokens",
        }
    }
}

/// The field of an assistant message in which its reasoning goes back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReasoningField {
    /// It does not go back in a field.
    #[default]
    None,
    /// `reasoning_content`.
    ReasoningContent,
    /// `reasoning`.
    Reasoning,
}

impl ReasoningField {
    /// The field's name.
    pub fn name(self) -> Option<&'static str> {
        match self {
            ReasoningField::None => None,
            ReasoningField::ReasoningContent => Some("reasoning_content"),
            ReasoningField::Reasoning => Some("reasoning"),
        }
    }
}

/// The form of tool schemas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Schemas {
    /// As the tool declares them.
    #[default]
    AsDeclared,
    /// Every property required, optional ones nullable, `strict` removed.
    AllRequired,
}

/// What makes a provider keep a prefix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// It caches nothing, or nobody says so.
    #[default]
    None,
    /// An entry ends at each marked block.
    Markers,
    /// Every prompt is cached by its longest known prefix.
    Automatic,
}

/// How a provider caches.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cache {
    /// What makes it keep a prefix.
    pub kind: CacheKind,
    /// The smallest prefix it keeps, in tokens; the model's own, where it has one.
    pub min_tokens: u32,
    /// Prefixes are kept in whole multiples of so many tokens.
    pub step: u32,
    /// How long an entry lives after its last use, in seconds, where that is documented.
    pub lifetime: Option<u32>,
    /// The longer lifetime that a marker may ask for, in seconds.
    pub long_lifetime: Option<u32>,
    /// How many blocks a read looks back from a marker, the marked block being the first. `None`: no limit.
    pub look_back: Option<u32>,
    /// The most markers in one request.
    pub max_markers: u32,
    /// The price of a read as a share of the input price, where the catalogue has no price.
    pub read_factor: Option<f64>,
    /// The price of a write as a share of the input price, where the catalogue has no price.
    pub write_factor: Option<f64>,
    /// The price of a write for the long lifetime, likewise.
    pub write_1h_factor: Option<f64>,
}

impl Default for Cache {
    fn default() -> Self {
        Cache {
            kind: CacheKind::None,
            min_tokens: 0,
            step: 1,
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

/// What a codec must know to speak to a provider about one model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Wire {
    /// The language.
    pub protocol: Protocol,
    /// Where requests go, without the protocol's own path.
    pub base_url: String,
    /// Environment variables that may hold the key, the first one set wins. Empty: no key is needed.
    pub key_env: Vec<String>,
    /// How breakpoints are written.
    pub markers: Markers,
    /// The field for the most tokens of an answer.
    pub max_tokens_field: MaxTokensField,
    /// Whether `include_reasoning: true` is sent.
    pub include_reasoning: bool,
    /// Where reasoning goes back.
    pub reasoning_field: ReasoningField,
    /// Whether `stream_options.include_usage` is sent. Where it is not, usage comes unasked.
    pub stream_usage: bool,
    /// Whether messages may carry an id.
    pub message_ids: bool,
    /// Whether user messages may carry `documentContext`.
    pub document_context: bool,
    /// The id of the plugin that searches the web, if there is one.
    pub web_search_plugin: Option<String>,
    /// The form of tool schemas.
    pub schemas: Schemas,
    /// Whether a tool result may hold images; elsewhere they go into a user message of their own.
    pub tool_result_images: bool,
    /// A header that carries the session's id, so that its requests meet the same cache.
    pub session_header: Option<String>,
    /// A field of the request that does the same.
    pub session_field: Option<String>,
    /// How it caches.
    pub cache: Cache,
}

impl Default for Wire {
    fn default() -> Self {
        Wire {
            protocol: Protocol::default(),
            base_url: String::new(),
            key_env: Vec::new(),
            markers: Markers::default(),
            max_tokens_field: MaxTokensField::default(),
            include_reasoning: false,
            reasoning_field: ReasoningField::default(),
            stream_usage: true,
            message_ids: false,
            document_context: false,
            web_search_plugin: None,
            schemas: Schemas::default(),
            tool_result_images: false,
            session_header: None,
            session_field: None,
            cache: Cache::default(),
        }
    }
}

/// A provider: who it is, and its rows of data.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Its id in the catalogue.
    pub id: String,
    /// Its name, for people.
    pub name: String,
    /// Whether it sells other makers' models: first-party providers come first when only a model is named.
    pub gateway: bool,
    /// Whether it takes model ids that the catalogue does not list, as local servers do.
    pub open_models: bool,
    /// The provider whose models and rows it starts from, if any.
    pub like: Option<String>,
    /// The wire for a model that no override names.
    pub wire: Wire,
    /// Base rows (without a pattern) and overrides (with one), in the order in which they apply.
    pub(crate) layers: Vec<ProviderRow>,
}

impl Provider {
    /// The wire for one model: the row with all overrides for it applied.
    pub fn for_model(&self, model: &Model) -> Wire {
        let mut wire = self.wire_for(&model.id);
        wire.cache.min_tokens = model.cache_min_tokens.unwrap_or(wire.cache.min_tokens);
        wire
    }

    pub(crate) fn wire_for(&self, id: &str) -> Wire {
        let mut wire = Wire::default();
        self.layers_for(id).for_each(|row| row.apply_to(&mut wire));
        wire
    }

    pub(crate) fn vocabulary_for(&self, id: &str) -> Option<Vocabulary> {
        self.layers_for(id).filter_map(|row| row.vocabulary).last()
    }

    pub(crate) fn token_factor_for(&self, id: &str) -> f64 {
        self.layers_for(id).filter_map(|row| row.token_factor).last().unwrap_or(1.0)
    }

    fn layers_for(&self, id: &str) -> impl Iterator<Item = &ProviderRow> {
        self.layers
            .iter()
            .filter(move |row| row.models.as_ref().is_none_or(|models| glob::matches(models, id)))
    }
}
