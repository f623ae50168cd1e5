//! What a request to a provider used and cost.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One request to a provider, as it was billed when it was made: a later change of prices or of the model does not
/// change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// What it was for: `turn`, `compaction`, …
    pub purpose: Arc<str>,
    /// The provider.
    pub provider: Arc<str>,
    /// The model.
    pub model: Arc<str>,
    /// The assistant's message that it brought, if it brought one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// What the provider reported.
    pub usage: RequestUsage,
    /// What it cost, by the prices of its time.
    pub dollars: f64,
    /// Tokens of the model per token counted, as known at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// When it was sent.
    pub started: Timestamp,
    /// Milliseconds until the first token came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Milliseconds until it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// The layout of its prompt.
    pub layout: Arc<str>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Tokens of a request, each counted in one place only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestUsage {
    /// Sent at the full price: neither read from the cache nor written to it.
    pub input: u64,
    /// Read from the cache.
    pub cache_read: u64,
    /// Written to the cache for five minutes.
    pub cache_write_5m: u64,
    /// Written to the cache for an hour.
    pub cache_write_1h: u64,
    /// Answered, reasoning included.
    pub output: u64,
    /// Of the answer, reasoning; where the provider tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<u64>,
}
