//! A [`TelemetryBatch`] in the JSON form of OTLP: ids in hexadecimal, 64-bit numbers as strings.

use serde_json::{Value, json};

use crate::metrics::{MetricKind, MetricPoint};
use crate::otlp::{Resource, SCHEMA_URL, SCOPE_NAME, TelemetryBatch};
use crate::span::{Attribute, AttributeValue, Span, SpanStatus, UnixNanos};

/// Values add up from the start of the process.
const CUMULATIVE: u64 = 2;

pub(crate) fn encode(batch: &TelemetryBatch<'_>, resource: &Resource) -> Value {
    let common: Vec<Value> =
        resource.iter().map(|(name, text)| json!({"key": name, "value": {"stringValue": text}})).collect();
    let resource = json!({"attributes": common});
    let scope = json!({"name": SCOPE_NAME, "version": env!("CARGO_PKG_VERSION")});
    match batch {
        TelemetryBatch::Spans(spans) => {
            let spans: Vec<Value> = spans.iter().map(span).collect();
            let scopes = json!([{"scope": scope, "spans": spans, "schemaUrl": SCHEMA_URL}]);
            json!({"resourceSpans": [{"resource": resource, "scopeSpans": scopes}]})
        }
        TelemetryBatch::Metrics { points, start, now } => {
            let metrics: Vec<Value> =
                MetricKind::ALL.iter().filter_map(|kind| metric(*kind, points, *start, *now)).collect();
            let scopes = json!([{"scope": scope, "metrics": metrics, "schemaUrl": SCHEMA_URL}]);
            json!({"resourceMetrics": [{"resource": resource, "scopeMetrics": scopes}]})
        }
    }
}

fn span(span: &Span) -> Value {
    let Span { context, parent, name, kind, start, end, attributes: facts, status } = span;
    let mut value = json!({
        "traceId": format!("{:032x}", context.trace.0),
        "spanId": format!("{:016x}", context.span.0),
        "name": name,
        "kind": kind.number(),
        "startTimeUnixNano": start.to_string(),
        "endTimeUnixNano": end.to_string(),
        "attributes": attributes(facts),
    });
    if let Some(parent) = parent {
        value["parentSpanId"] = format!("{:016x}", parent.0).into();
    }
    match status {
        SpanStatus::Unset => {}
        SpanStatus::Error(text) if text.is_empty() => value["status"] = json!({"code": 2}),
        SpanStatus::Error(text) => value["status"] = json!({"code": 2, "message": text}),
    }
    value
}

fn attributes(attributes: &[Attribute]) -> Value {
    let attribute = |Attribute { name, value }: &Attribute| {
        let value = match value {
            AttributeValue::Text(text) => json!({"stringValue": text}),
            AttributeValue::Integer(number) => json!({"intValue": number.to_string()}),
            AttributeValue::Number(number) => json!({"doubleValue": number}),
            AttributeValue::Texts(texts) => {
                let texts: Vec<Value> = texts.iter().map(|text| json!({"stringValue": text})).collect();
                json!({"arrayValue": {"values": texts}})
            }
        };
        json!({"key": name, "value": value})
    };
    attributes.iter().map(attribute).collect()
}

fn metric(kind: MetricKind, points: &[MetricPoint], start: UnixNanos, now: UnixNanos) -> Option<Value> {
    let own = points.iter().filter(|point| point.kind == kind);
    let (start, now) = (start.to_string(), now.to_string());
    let points: Vec<Value> = own
        .map(|point| {
            let values = &point.values;
            let mut value = json!({
                "attributes": attributes(&point.attributes),
                "startTimeUnixNano": start,
                "timeUnixNano": now,
            });
            match kind.bounds() {
                None => value["asDouble"] = values.sum.into(),
                Some(bounds) => {
                    let buckets: Vec<String> = values.buckets.iter().map(u64::to_string).collect();
                    value["count"] = values.count.to_string().into();
                    value["sum"] = values.sum.into();
                    value["min"] = values.min.into();
                    value["max"] = values.max.into();
                    value["bucketCounts"] = buckets.into();
                    value["explicitBounds"] = bounds.into();
                }
            }
            value
        })
        .collect();
    if points.is_empty() {
        return None;
    }
    let mut metric = json!({"name": kind.name(), "description": kind.description(), "unit": kind.unit()});
    match kind.bounds() {
        Some(_) => {
            metric["histogram"] = json!({"aggregationTemporality": CUMULATIVE, "dataPoints": points});
        }
        None => {
            metric["sum"] =
                json!({"aggregationTemporality": CUMULATIVE, "isMonotonic": true, "dataPoints": points});
        }
    }
    Some(metric)
}
