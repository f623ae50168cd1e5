//! What an agent does, as spans and metrics of OpenTelemetry.
//!
//! The principal type is [`Telemetry`]: it follows agents and their sub-agents by their events, and
//! sends what it learns to a collector over OTLP/HTTP. [`AgentTracer`] is the mapping alone: it takes
//! [`AgentEvent`](hardpan_agent::AgentEvent)s with their times and returns [`Span`]s and
//! measurements, named by the semantic conventions for generative AI. It reads no clock and sends
//! nothing.
//!
//! Texts of the conversation (prompts, answers, arguments, results) are left out unless
//! [`ContentCapture::On`] asks for them.
//!
//! Nothing here delays an agent: finished spans wait in a queue with a limit, a task of its own sends
//! them, and a collector that does not answer costs a bounded time at the end.

mod exporter; // Exporter: the queue, and the task that sends it
mod metrics; // MetricStore: counters and histograms
mod otlp; // TelemetryBatch: what goes into one request
mod otlp_json; // the batch as JSON
mod otlp_protobuf; // the batch as Protobuf
mod settings; // TelemetrySettings: from variables and config.toml
mod span; // Span, Attribute, SpanContext
mod telemetry; // Telemetry: follows agents
mod tracer; // AgentTracer: from events to spans and measurements

pub use exporter::ExportError;
pub use metrics::{Histogram, MetricKind, MetricPoint, MetricStore};
pub use otlp::{Encoding, Resource};
pub use settings::{
    ContentCapture, SignalEndpoint, TelemetryOptions, TelemetrySettings, TelemetrySettingsError,
};
pub use span::{
    Attribute, AttributeValue, Span, SpanContext, SpanId, SpanKind, SpanStatus, TraceId, UnixNanos,
};
pub use telemetry::{SubagentPlace, Telemetry, TelemetryHost};
pub use tracer::{AgentTracer, TracerOutput};
