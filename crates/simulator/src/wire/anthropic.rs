//! Anthropic Messages.

use serde_json::{Value, json};

use super::{EventKind, Head, Sent, id, pieces, signature};
use crate::said::{Said, SaidPart, Stop};

pub fn whole(said: &Said, head: &Head) -> Value {
    let block = |(index, part): (usize, &SaidPart)| match part {
        SaidPart::Reasoning(text) => {
            json!({"type": "thinking", "thinking": text, "signature": signature(text)})
        }
        SaidPart::Text(text) => json!({"type": "text", "text": text}),
        SaidPart::Call { id, name, arguments } => {
            // Arguments that were cut are no object; the stop reason tells why there are none.
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": call_id(id.as_deref(), head, index), "name": name, "input": input})
        }
    };
    let content: Vec<Value> = said.parts.iter().enumerate().map(block).collect();
    message(head, &Value::Array(content), Some(&said.stop), head.spoken.output)
}

pub fn stream(said: &Said, head: &Head) -> Vec<Sent> {
    let mut events = Events::default();
    // The first report counts no more of the answer than its first token.
    let first = head.spoken.output.min(1);
    events.frame("message_start", json!({"message": message(head, &json!([]), None, first)}));
    for (index, part) in said.parts.iter().enumerate() {
        events.block(index, part, head);
    }
    let mut usage = usage(head, head.spoken.output);
    if let Some(fields) = usage.as_object_mut() {
        fields.retain(|name, _| name != "cache_creation" && name != "service_tier");
    }
    let stop_sequence = sequence(&said.stop);
    let delta = json!({"stop_reason": said.stop.anthropic(), "stop_sequence": stop_sequence});
    events.frame("message_delta", json!({"delta": delta, "usage": usage}));
    events.push(EventKind::End, "message_stop", json!({}));
    events.0
}

#[derive(Default)]
struct Events(Vec<Sent>);

impl Events {
    fn push(&mut self, kind: EventKind, name: &str, fields: Value) {
        let mut data = json!({"type": name});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        self.0.push(Sent { kind, bytes: format!("event: {name}\ndata: {data}\n\n").into() });
    }

    fn frame(&mut self, name: &str, fields: Value) {
        self.push(EventKind::Frame, name, fields);
    }

    fn delta(&mut self, index: usize, delta: &Value) {
        self.push(EventKind::Delta, "content_block_delta", json!({"index": index, "delta": delta}));
    }

    fn block(&mut self, index: usize, part: &SaidPart, head: &Head) {
        let start = match part {
            SaidPart::Reasoning(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            SaidPart::Text(_) => json!({"type": "text", "text": ""}),
            SaidPart::Call { id, name, .. } => {
                json!({"type": "tool_use", "id": call_id(id.as_deref(), head, index), "name": name, "input": {}})
            }
        };
        self.frame("content_block_start", json!({"index": index, "content_block": start}));
        if index == 0 {
            self.frame("ping", json!({}));
        }
        match part {
            SaidPart::Reasoning(text) => {
                for piece in pieces(text) {
                    self.delta(index, &json!({"type": "thinking_delta", "thinking": piece}));
                }
                let signature = signature(text);
                self.delta(index, &json!({"type": "signature_delta", "signature": signature}));
            }
            SaidPart::Text(text) => {
                for piece in pieces(text) {
                    self.delta(index, &json!({"type": "text_delta", "text": piece}));
                }
            }
            SaidPart::Call { arguments, .. } => {
                self.delta(index, &json!({"type": "input_json_delta", "partial_json": ""}));
                for piece in pieces(arguments).into_iter().filter(|piece| !piece.is_empty()) {
                    self.delta(index, &json!({"type": "input_json_delta", "partial_json": piece}));
                }
            }
        }
        self.frame("content_block_stop", json!({"index": index}));
    }
}

fn message(head: &Head, content: &Value, stop: Option<&Stop>, output: usize) -> Value {
    json!({
        "id": id("msg_", head.number, 0),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": stop.map(Stop::anthropic),
        "stop_sequence": stop.and_then(sequence),
        "usage": usage(head, output),
    })
}

fn usage(head: &Head, output: usize) -> Value {
    let billed = head.billed;
    json!({
        "input_tokens": billed.input,
        "cache_creation_input_tokens": billed.write + billed.write_1h,
        "cache_read_input_tokens": billed.read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": billed.write,
            "ephemeral_1h_input_tokens": billed.write_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}

fn sequence(stop: &Stop) -> Option<&str> {
    match stop {
        Stop::Sequence(sequence) => Some(sequence),
        _ => None,
    }
}

fn call_id(given: Option<&str>, head: &Head, index: usize) -> String {
    given.map_or_else(|| id("toolu_", head.number, index), str::to_owned)
}
