//! [`RequestRecord`]: what one request to a provider used and cost.

use std::sync::Arc;

use hardpan_prompt::{Hash, TokenUsage};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// One request to a provider, with its cost at the prices of its time: a later change of prices
/// does not change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestRecord {
    /// What the request was for: `turn`, `compaction`, …
    pub purpose: Arc<str>,
    /// Name of the provider, as in the catalogue.
    pub provider: Arc<str>,
    /// Id of the model at that provider.
    pub model: Arc<str>,
    /// Id of the assistant message it produced; `None` if it failed or was not a turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Arc<str>>,
    /// The provider's own id of the answer, where it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Arc<str>>,
    /// Identifies everything that the answer came after, for models whose reasoning is bound to
    /// that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<Hash>,
    /// Tokens as the provider reported them.
    pub usage: TokenUsage,
    /// What was paid, in US dollars.
    pub dollars: f64,
    /// What it would have cost, in US dollars, if a simulator answered and nothing was paid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub would_cost: Option<f64>,
    /// Tokens of the model per token of our counter, as estimated at the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub factor: Option<f64>,
    /// Time at which it was sent.
    pub started: Timestamp,
    /// Milliseconds from sending to the first token; `None` if none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    /// Milliseconds from sending to the end of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ms: Option<u64>,
    /// Name of the prompt layout: `strata`, `panels`, `tiers` or `inline`.
    pub layout: Arc<str>,
    /// Fields this version does not know; they are written back unchanged.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}
