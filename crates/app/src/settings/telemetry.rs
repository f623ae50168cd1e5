//! [`TelemetryConfig`]: where OpenTelemetry data goes.

use serde::Deserialize;

/// `[telemetry]`: whether and where spans and metrics are sent. OpenTelemetry's own variables go before
/// these. A project cannot set them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TelemetryConfig {
    /// False switches telemetry off, whatever the variables say.
    pub enabled: Option<bool>,
    /// The collector's address, such as `http://localhost:4318`.
    pub endpoint: Option<String>,
    /// Whether prompts, answers, arguments and results are sent as well. Default: false.
    pub capture_content: Option<bool>,
}

impl TelemetryConfig {
    /// Whether somebody wants something sent.
    pub fn is_wanted(&self) -> bool {
        self.enabled != Some(false) && (self.enabled.is_some() || self.endpoint.is_some())
    }
}
