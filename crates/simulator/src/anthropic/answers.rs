//! Encodes answers of Anthropic Messages.

use serde_json::{Value, json};

use crate::answer::{FinishReason, SimulatedAnswer, SimulatedPart};
use crate::wire::{AnswerHead, EventKind, StreamEvent, make_id, sign_reasoning, split_text};

pub fn answer_body(answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
    let block = |(index, part): (usize, &SimulatedPart)| match part {
        SimulatedPart::Reasoning(text) => {
            json!({"type": "thinking", "thinking": text, "signature": sign_reasoning(text)})
        }
        SimulatedPart::Text(text) => json!({"type": "text", "text": text}),
        SimulatedPart::Call { id, name, arguments } => {
            // Arguments that were cut are no object; the stop reason tells why there are none.
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": call_id(id.as_deref(), head, index), "name": name, "input": input})
        }
    };
    let content: Vec<Value> = answer.parts.iter().enumerate().map(block).collect();
    message(head, &Value::Array(content), Some(&answer.stop), head.tokens.output)
}

pub fn answer_events(answer: &SimulatedAnswer, head: &AnswerHead) -> Vec<StreamEvent> {
    let mut events = Events::default();
    // The first report counts no more of the answer than its first token.
    let first = head.tokens.output.min(1);
    events.frame("message_start", json!({"message": message(head, &json!([]), None, first)}));
    for (index, part) in answer.parts.iter().enumerate() {
        events.block(index, part, head);
    }
    let mut usage = usage(head, head.tokens.output);
    if let Some(fields) = usage.as_object_mut() {
        fields.retain(|name, _| name != "cache_creation" && name != "service_tier");
    }
    let stop_sequence = sequence(&answer.stop);
    let delta = json!({"stop_reason": stop_reason(&answer.stop), "stop_sequence": stop_sequence});
    events.frame("message_delta", json!({"delta": delta, "usage": usage}));
    events.push(EventKind::End, "message_stop", json!({}));
    events.0
}

#[derive(Default)]
struct Events(Vec<StreamEvent>);

impl Events {
    fn push(&mut self, kind: EventKind, name: &str, fields: Value) {
        let mut data = json!({"type": name});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        self.0.push(StreamEvent { kind, bytes: format!("event: {name}\ndata: {data}\n\n").into() });
    }

    fn frame(&mut self, name: &str, fields: Value) {
        self.push(EventKind::Frame, name, fields);
    }

    fn delta(&mut self, index: usize, delta: &Value) {
        self.push(EventKind::Delta, "content_block_delta", json!({"index": index, "delta": delta}));
    }

    fn block(&mut self, index: usize, part: &SimulatedPart, head: &AnswerHead) {
        let start = match part {
            SimulatedPart::Reasoning(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            SimulatedPart::Text(_) => json!({"type": "text", "text": ""}),
            SimulatedPart::Call { id, name, .. } => {
                json!({"type": "tool_use", "id": call_id(id.as_deref(), head, index), "name": name, "input": {}})
            }
        };
        self.frame("content_block_start", json!({"index": index, "content_block": start}));
        if index == 0 {
            self.frame("ping", json!({}));
        }
        match part {
            SimulatedPart::Reasoning(text) => {
                for piece in split_text(text) {
                    self.delta(index, &json!({"type": "thinking_delta", "thinking": piece}));
                }
                let signature = sign_reasoning(text);
                self.delta(index, &json!({"type": "signature_delta", "signature": signature}));
            }
            SimulatedPart::Text(text) => {
                for piece in split_text(text) {
                    self.delta(index, &json!({"type": "text_delta", "text": piece}));
                }
            }
            SimulatedPart::Call { arguments, .. } => {
                self.delta(index, &json!({"type": "input_json_delta", "partial_json": ""}));
                for piece in split_text(arguments).into_iter().filter(|piece| !piece.is_empty()) {
                    self.delta(index, &json!({"type": "input_json_delta", "partial_json": piece}));
                }
            }
        }
        self.frame("content_block_stop", json!({"index": index}));
    }
}

fn message(head: &AnswerHead, content: &Value, stop: Option<&FinishReason>, output: u64) -> Value {
    json!({
        "id": make_id("msg_", head.number, 0),
        "type": "message",
        "role": "assistant",
        "model": head.model,
        "content": content,
        "stop_reason": stop.map(stop_reason),
        "stop_sequence": stop.and_then(sequence),
        "usage": usage(head, output),
    })
}

fn usage(head: &AnswerHead, output: u64) -> Value {
    let tokens = head.tokens;
    json!({
        "input_tokens": tokens.input,
        "cache_creation_input_tokens": tokens.cache_written(),
        "cache_read_input_tokens": tokens.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": tokens.cache_write_5m,
            "ephemeral_1h_input_tokens": tokens.cache_write_1h,
        },
        "output_tokens": output,
        "service_tier": "standard",
    })
}

fn sequence(stop: &FinishReason) -> Option<&str> {
    match stop {
        FinishReason::Sequence(sequence) => Some(sequence),
        _ => None,
    }
}

fn call_id(given: Option<&str>, head: &AnswerHead, index: usize) -> String {
    given.map_or_else(|| make_id("toolu_", head.number, index), str::to_owned)
}

fn stop_reason(stop: &FinishReason) -> &'static str {
    match stop {
        FinishReason::End => "end_turn",
        FinishReason::ToolUse => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Window => "model_context_window_exceeded",
        FinishReason::Sequence(_) => "stop_sequence",
        FinishReason::Refusal => "refusal",
    }
}
