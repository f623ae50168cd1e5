//! A [`TelemetryBatch`] in the Protobuf form of OTLP. The numbers are those of the fields in
//! `opentelemetry/proto/trace/v1/trace.proto`, `metrics.proto`, `common.proto` and `resource.proto`.

use crate::metrics::{MetricKind, MetricPoint};
use crate::otlp::{Resource, SCHEMA_URL, SCOPE_NAME, TelemetryBatch};
use crate::span::{Attribute, AttributeValue, Span, SpanStatus, UnixNanos};

/// Values add up from the start of the process.
const CUMULATIVE: u64 = 2;

/// The code of a status that says that a span failed.
const STATUS_ERROR: u64 = 2;

pub(crate) fn encode(batch: &TelemetryBatch<'_>, resource: &Resource) -> Vec<u8> {
    let mut body = Message::default();
    body.message(1, |signal| {
        signal.message(1, |common| {
            for (name, text) in resource {
                common.message(1, |pair| key_value(pair, name, |value| value.text(1, text)));
            }
        });
        signal.message(2, |scoped| {
            scoped.message(1, |scope| {
                scope.text(1, SCOPE_NAME);
                scope.text(2, env!("CARGO_PKG_VERSION"));
            });
            match batch {
                TelemetryBatch::Spans(spans) => {
                    spans.iter().for_each(|span| scoped.message(2, |message| write_span(message, span)));
                }
                TelemetryBatch::Metrics { points, start, now } => {
                    for kind in MetricKind::ALL {
                        let own: Vec<&MetricPoint> =
                            points.iter().filter(|point| point.kind == kind).collect();
                        if !own.is_empty() {
                            scoped.message(2, |message| write_metric(message, kind, &own, *start, *now));
                        }
                    }
                }
            }
            scoped.text(3, SCHEMA_URL);
        });
    });
    body.bytes
}

fn write_span(message: &mut Message, span: &Span) {
    let Span { context, parent, name, kind, start, end, attributes, status } = span;
    message.bytes(1, &context.trace.0.to_be_bytes());
    message.bytes(2, &context.span.0.to_be_bytes());
    if let Some(parent) = parent {
        message.bytes(4, &parent.0.to_be_bytes());
    }
    message.text(5, name);
    message.integer(6, kind.number());
    message.fixed(7, *start);
    message.fixed(8, *end);
    write_attributes(message, 9, attributes);
    if let SpanStatus::Error(text) = status {
        message.message(15, |status| {
            if !text.is_empty() {
                status.text(2, text);
            }
            status.integer(3, STATUS_ERROR);
        });
    }
}

fn write_metric(
    message: &mut Message,
    kind: MetricKind,
    points: &[&MetricPoint],
    start: UnixNanos,
    now: UnixNanos,
) {
    message.text(1, kind.name());
    message.text(2, kind.description());
    message.text(3, kind.unit());
    match kind.bounds() {
        Some(bounds) => message.message(9, |histogram| {
            for MetricPoint { attributes, values, .. } in points {
                histogram.message(1, |point| {
                    write_attributes(point, 9, attributes);
                    point.fixed(2, start);
                    point.fixed(3, now);
                    point.fixed(4, values.count);
                    point.number(5, values.sum);
                    point.packed(6, values.buckets.iter().copied());
                    point.packed(7, bounds.iter().map(|bound| bound.to_bits()));
                    point.number(11, values.min);
                    point.number(12, values.max);
                });
            }
            histogram.integer(2, CUMULATIVE);
        }),
        None => message.message(7, |sum| {
            for MetricPoint { attributes, values, .. } in points {
                sum.message(1, |point| {
                    write_attributes(point, 7, attributes);
                    point.fixed(2, start);
                    point.fixed(3, now);
                    point.number(4, values.sum);
                });
            }
            sum.integer(2, CUMULATIVE);
            sum.integer(3, 1);
        }),
    }
}

fn write_attributes(message: &mut Message, field: u32, attributes: &[Attribute]) {
    for Attribute { name, value } in attributes {
        message.message(field, |pair| {
            key_value(pair, name, |any| match value {
                AttributeValue::Text(text) => any.text(1, text),
                AttributeValue::Integer(number) => any.integer(3, number.cast_unsigned()),
                AttributeValue::Number(number) => any.number(4, *number),
                AttributeValue::Texts(texts) => any.message(5, |list| {
                    texts.iter().for_each(|text| list.message(1, |item| item.text(1, text)));
                }),
            });
        });
    }
}

fn key_value(pair: &mut Message, name: &str, value: impl FnOnce(&mut Message)) {
    pair.text(1, name);
    pair.message(2, value);
}

/// The kinds of fields on the wire.
const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH: u32 = 2;

/// A message that grows field by field.
#[derive(Default)]
struct Message {
    bytes: Vec<u8>,
}

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn key(&mut self, field: u32, kind: u32) {
        self.varint(u64::from(field << 3 | kind));
    }

    fn integer(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    fn fixed(&mut self, field: u32, value: u64) {
        self.key(field, FIXED_64);
        self.bytes.extend(value.to_le_bytes());
    }

    fn number(&mut self, field: u32, value: f64) {
        self.fixed(field, value.to_bits());
    }

    fn bytes(&mut self, field: u32, value: &[u8]) {
        self.key(field, LENGTH);
        self.varint(value.len() as u64);
        self.bytes.extend(value);
    }

    fn text(&mut self, field: u32, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    /// Numbers of 8 bytes each, one after the other.
    fn packed(&mut self, field: u32, values: impl Iterator<Item = u64>) {
        let bytes: Vec<u8> = values.flat_map(u64::to_le_bytes).collect();
        self.bytes(field, &bytes);
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.bytes);
    }
}
