//! [`TelemetryBatch`]: what goes into one request to a collector, and its [`Encoding`].

use crate::metrics::MetricPoint;
use crate::span::{Span, UnixNanos};

/// The name under which everything here is sent.
pub(crate) const SCOPE_NAME: &str = "hardpan";

/// The version of the conventions that names of attributes follow.
pub(crate) const SCHEMA_URL: &str = "https://opentelemetry.io/schemas/1.40.0";

/// How a request's body is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// `http/protobuf`, which every collector takes.
    #[default]
    Protobuf,
    /// `http/json`.
    Json,
}

impl Encoding {
    /// The content type of a body.
    pub fn content_type(self) -> &'static str {
        match self {
            Encoding::Protobuf => "application/x-protobuf",
            Encoding::Json => "application/json",
        }
    }
}

/// What all telemetry of this process has in common, by names of attributes.
pub type Resource = Vec<(String, String)>;

/// What is sent at once.
pub(crate) enum TelemetryBatch<'a> {
    /// Finished spans.
    Spans(&'a [Span]),
    /// All measurements since `start`.
    Metrics { points: &'a [MetricPoint], start: UnixNanos, now: UnixNanos },
}

impl TelemetryBatch<'_> {
    /// The body of the request.
    pub fn encode(&self, resource: &Resource, encoding: Encoding) -> Vec<u8> {
        match encoding {
            Encoding::Json => crate::otlp_json::encode(self, resource).to_string().into_bytes(),
            Encoding::Protobuf => crate::otlp_protobuf::encode(self, resource),
        }
    }
}
