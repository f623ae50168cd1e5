//! [`CapabilityCache`] remembers for a day which features a model has refused, so that the next
//! request leaves them out from the start.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use hardpan_prompt::{Prompt, Role};
use schemars::JsonSchema;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::ClientRequest;
use crate::FailureKind;

/// How long a recorded refusal is valid: providers add features to models now and then.
const VALID_FOR_MS: i64 = 24 * 60 * 60 * 1000;

/// A feature that a model has refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnsupportedFeature {
    /// The model refused images in the prompt.
    Images,
    /// The model refused tool declarations.
    Tools,
    /// The server refused fields that only newer servers know.
    NewerFields,
    /// The server refused the fields that say how much to think, and how to show it.
    ThinkingFields,
    /// The server refused to stream its answer.
    Streaming,
}

impl fmt::Display for UnsupportedFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnsupportedFeature::Images => "images",
            UnsupportedFeature::Tools => "tools",
            UnsupportedFeature::NewerFields => "newer request fields",
            UnsupportedFeature::ThinkingFields => "settings of effort and thinking",
            UnsupportedFeature::Streaming => "streaming",
        })
    }
}

/// A model of a provider, or of a server that stands in for it (`provider@host`). Its written form is
/// `provider/model`; ids of providers and names of hosts have no slash.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ModelKey {
    provider: String,
    model: String,
}

impl ModelKey {
    fn new(provider: &str, model: &str) -> Self {
        ModelKey { provider: provider.to_owned(), model: model.to_owned() }
    }
}

impl Serialize for ModelKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}/{}", self.provider, self.model))
    }
}

impl<'de> Deserialize<'de> for ModelKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let (provider, model) =
            name.split_once('/').ok_or_else(|| D::Error::custom("expected `provider/model`"))?;
        Ok(ModelKey::new(provider, model))
    }
}

/// What each model has refused, with the time in milliseconds since 1970 until which that is
/// assumed.
type Refusals = BTreeMap<ModelKey, BTreeMap<UnsupportedFeature, i64>>;

/// Features that models have refused.
#[derive(Debug, Default)]
pub struct CapabilityCache(Mutex<Refusals>);

impl CapabilityCache {
    /// Reads what [`to_json`](Self::to_json) wrote. Anything else gives an empty cache: the
    /// refusals are then found out again.
    pub fn from_json(json: &str) -> Self {
        CapabilityCache(Mutex::new(serde_json::from_str(json).unwrap_or_default()))
    }

    /// The cache as JSON, to be stored between runs.
    pub fn to_json(&self) -> String {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        serde_json::to_string(&*known).unwrap_or_default()
    }

    pub(super) fn record(&self, provider: &str, model: &str, refusal: UnsupportedFeature, now_ms: i64) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(ModelKey::new(provider, model)).or_default().insert(refusal, now_ms + VALID_FOR_MS);
    }

    /// What a model of a provider or server has refused, as far as that still counts.
    pub(super) fn known_refusals(&self, provider: &str, model: &str, now_ms: i64) -> KnownRefusals {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let refusals = known.get(&ModelKey::new(provider, model)).into_iter().flatten();
        let valid = refusals.filter(|(_, until)| **until > now_ms);
        KnownRefusals(valid.map(|(feature, until)| (*feature, *until)).collect())
    }
}

/// What a server has refused before, so that requests leave it out from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownRefusals(BTreeMap<UnsupportedFeature, i64>);

impl KnownRefusals {
    /// Whether nothing was refused.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The features that are left out.
    pub fn features(&self) -> impl Iterator<Item = UnsupportedFeature> {
        self.0.keys().copied()
    }

    /// When the first of them is tried again, in milliseconds since 1970.
    pub fn next_try_ms(&self) -> Option<i64> {
        self.0.values().min().copied()
    }

    pub(super) fn downgrades(&self) -> Downgrades {
        let refused = |feature| self.0.contains_key(&feature);
        Downgrades {
            without_images: refused(UnsupportedFeature::Images),
            without_tools: refused(UnsupportedFeature::Tools),
            without_newer_fields: refused(UnsupportedFeature::NewerFields),
            without_thinking_fields: refused(UnsupportedFeature::ThinkingFields),
            without_streaming: refused(UnsupportedFeature::Streaming),
        }
    }
}

/// The features to leave out of a prompt.
#[derive(Clone, Copy, Debug)]
pub(super) struct Downgrades {
    without_images: bool,
    without_tools: bool,
    pub(super) without_newer_fields: bool,
    pub(super) without_thinking_fields: bool,
    pub(super) without_streaming: bool,
}

impl Downgrades {
    pub(super) fn apply<'a>(&self, request: &ClientRequest<'a>) -> Cow<'a, Prompt> {
        let mut prompt = Cow::Borrowed(request.prompt);
        if self.without_images && prompt.has_images() {
            prompt = Cow::Owned(request.fallbacks.without_images(&prompt));
        }
        if self.without_tools && !prompt.tools.is_empty() {
            prompt = Cow::Owned(request.fallbacks.without_tools(&prompt));
        }
        if self.without_newer_fields && uses_newer_fields(&prompt) {
            prompt = Cow::Owned(request.fallbacks.without_newer_fields(&prompt));
        }
        prompt
    }

    /// Leaves out the feature that the provider refused. `None` if the failure names no feature, or
    /// the prompt does not use it.
    pub(super) fn add_for_failure(
        &mut self,
        failure: &FailureKind,
        prompt: &Prompt,
    ) -> Option<UnsupportedFeature> {
        match failure {
            FailureKind::ImagesRefused if !self.without_images && prompt.has_images() => {
                self.without_images = true;
                Some(UnsupportedFeature::Images)
            }
            FailureKind::ToolsRefused if !self.without_tools && !prompt.tools.is_empty() => {
                self.without_tools = true;
                Some(UnsupportedFeature::Tools)
            }
            FailureKind::ThinkingFieldsRefused if !self.without_thinking_fields => {
                self.without_thinking_fields = true;
                Some(UnsupportedFeature::ThinkingFields)
            }
            // Refused again: it is the effort of a system message, which only newer servers know.
            FailureKind::NewerFieldsRefused | FailureKind::ThinkingFieldsRefused
                if !self.without_newer_fields =>
            {
                self.without_newer_fields = true;
                Some(UnsupportedFeature::NewerFields)
            }
            FailureKind::StreamingRefused if !self.without_streaming => {
                self.without_streaming = true;
                Some(UnsupportedFeature::Streaming)
            }
            _ => None,
        }
    }
}

/// Whether a prompt has something that only newer servers know.
fn uses_newer_fields(prompt: &Prompt) -> bool {
    prompt.drop_stale_reasoning || prompt.messages.iter().any(|message| message.role == Role::System)
}
