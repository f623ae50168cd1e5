//! Settings of requests: how providers are reached, when a request is sent again, web search.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use hardpan_providers::RetryPolicy;
use serde::Deserialize;

/// `web_search`: `true`, `false`, or the most searches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "expected `true`, `false` or a number from 1 on")]
pub enum WebSearchSetting {
    /// With the usual limit, or not at all.
    Switch(bool),
    /// The most searches in an answer, or results of a plugin.
    Most(NonZeroU32),
}

impl WebSearchSetting {
    /// The most searches in an answer; none if the web is not searched.
    pub fn most(self) -> Option<u32> {
        match self {
            WebSearchSetting::Switch(is_on) => is_on.then_some(5),
            WebSearchSetting::Most(most) => Some(most.get()),
        }
    }
}

/// `[providers.ID]`: how to reach a provider.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProviderConfig {
    /// Replaces the built-in address.
    pub base_url: Option<String>,
    /// Proxy URL; replaces the one from the environment.
    pub proxy: Option<String>,
    /// Headers to add to every request.
    pub headers: BTreeMap<String, String>,
    /// Fields to merge into the body of every request.
    pub extras: serde_json::Map<String, serde_json::Value>,
}

/// `[patience]`: how often to retry a request, and how long to wait.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// Attempts in total, the first one included.
    pub tries: Option<u32>,
    /// The longest wait between two tries, in seconds.
    pub longest_wait_seconds: Option<f64>,
    /// How long an answer may be silent before it counts as broken, in seconds.
    pub silence_seconds: Option<f64>,
    /// How long an answer may go on without a word of the model, in seconds.
    pub progress_seconds: Option<f64>,
    /// The longest time for one answer, in seconds.
    pub answer_seconds: Option<f64>,
}

impl RetryConfig {
    /// The retry policy: these values, with defaults for those that are not set.
    pub fn retry_policy(&self) -> RetryPolicy {
        let seconds = |seconds: Option<f64>, default: Duration| {
            let given = seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0);
            given.map_or(default, |seconds| Duration::from_secs_f64(seconds.min(86_400.0)))
        };
        let default = RetryPolicy::default();
        RetryPolicy {
            tries: self.tries.unwrap_or(default.tries).clamp(1, 100),
            longest_wait: seconds(self.longest_wait_seconds, default.longest_wait),
            silence: seconds(self.silence_seconds, default.silence),
            progress: seconds(self.progress_seconds, default.progress),
            longest_answer: seconds(self.answer_seconds, default.longest_answer),
            ..default
        }
    }
}
