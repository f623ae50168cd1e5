//! Encodes answers of OpenAI Chat Completions.

use hardpan_models::MarkerFormat;
use serde_json::{Map, Value, json};

use crate::answer::{FinishReason, SimulatedAnswer, SimulatedPart};
use crate::engine::AcceptedRequest;
use crate::wire::{AnswerHead, EventKind, StreamEvent, make_id, split_text};

pub fn answer_body(request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
    let mut message = Map::new();
    message.insert("role".into(), json!("assistant"));
    let text: String = texts(answer).collect();
    message.insert("content".into(), if text.is_empty() { Value::Null } else { json!(text) });
    message.insert("refusal".into(), Value::Null);
    let reasoning: String = reasonings(answer).collect();
    if let Some(field) = request.profile.reasoning_field.name().filter(|_| !reasoning.is_empty()) {
        message.insert(field.into(), json!(reasoning));
    }
    let calls: Vec<Value> = calls(answer, head).map(|call| call.json(call.arguments)).collect();
    if !calls.is_empty() {
        message.insert("tool_calls".into(), json!(calls));
    }
    let finish = finish_reason(&answer.stop);
    let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
    let mut body = envelope(head, "chat.completion", &json!([choice]));
    body.insert("usage".into(), usage(request, head));
    Value::Object(body)
}

pub fn answer_events(
    request: &AcceptedRequest,
    answer: &SimulatedAnswer,
    head: &AnswerHead,
) -> Vec<StreamEvent> {
    let is_asked = request.decoded.include_usage || !request.profile.stream_usage;
    let chunk = if is_asked { UsageChunk::Sent } else { UsageChunk::Omitted };
    let mut events = Events { head, chunk, sent: Vec::new() };
    events.delta(EventKind::Frame, &json!({"role": "assistant", "content": "", "refusal": null}));
    let mut call_count = 0;
    for (index, part) in answer.parts.iter().enumerate() {
        match part {
            SimulatedPart::Reasoning(text) => {
                let Some(field) = request.profile.reasoning_field.name() else { continue };
                split_text(text)
                    .into_iter()
                    .for_each(|piece| events.delta(EventKind::Delta, &json!({field: piece})));
            }
            SimulatedPart::Search(_) => {}
            SimulatedPart::Text(text) => {
                split_text(text)
                    .into_iter()
                    .for_each(|piece| events.delta(EventKind::Delta, &json!({"content": piece})));
            }
            SimulatedPart::Call { .. } => {
                let Some(call) = CallPart::from_part(part, index, head) else { continue };
                let mut begin = call.json("");
                begin["index"] = json!(call_count);
                events.delta(EventKind::Frame, &json!({"tool_calls": [begin]}));
                for piece in split_text(call.arguments).into_iter().filter(|piece| !piece.is_empty()) {
                    let more = json!({"index": call_count, "function": {"arguments": piece}});
                    events.delta(EventKind::Delta, &json!({"tool_calls": [more]}));
                }
                call_count += 1;
            }
        }
    }
    events.choice(EventKind::Frame, &json!({}), Some(finish_reason(&answer.stop)));
    if chunk == UsageChunk::Sent {
        events.push(EventKind::Frame, &json!([]), usage(request, head));
    }
    events.sent.push(StreamEvent { kind: EventKind::End, bytes: "data: [DONE]\n\n".into() });
    events.sent
}

struct Events<'a> {
    head: &'a AnswerHead,
    chunk: UsageChunk,
    sent: Vec<StreamEvent>,
}

impl Events<'_> {
    fn delta(&mut self, kind: EventKind, delta: &Value) {
        self.choice(kind, delta, None);
    }

    fn choice(&mut self, kind: EventKind, delta: &Value, finish: Option<&str>) {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish});
        self.push(kind, &json!([choice]), Value::Null);
    }

    fn push(&mut self, kind: EventKind, choices: &Value, usage: Value) {
        let mut body = envelope(self.head, "chat.completion.chunk", choices);
        if self.chunk == UsageChunk::Sent {
            body.insert("usage".into(), usage); // null on every chunk but the last, where it was asked for
        }
        self.sent.push(StreamEvent { kind, bytes: format!("data: {}\n\n", Value::Object(body)).into() });
    }
}

fn envelope(head: &AnswerHead, object: &str, choices: &Value) -> Map<String, Value> {
    let body = json!({
        "id": make_id("chatcmpl-", head.number, 0),
        "object": object,
        "created": head.created,
        "model": head.model,
        "system_fingerprint": "fp_simulated",
        "choices": choices,
    });
    if let Value::Object(body) = body { body } else { Map::new() }
}

fn usage(request: &AcceptedRequest, head: &AnswerHead) -> Value {
    let format = UsageFormat::of(request);
    let tokens = head.tokens;
    let prompt = tokens.prompt();
    let mut details = json!({"cached_tokens": tokens.cache_read, "audio_tokens": 0});
    if format == UsageFormat::ReadsAndWrites {
        details["cache_write_tokens"] = json!(tokens.cache_written());
    }
    let mut usage = json!({
        "prompt_tokens": prompt,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.total(),
        "prompt_tokens_details": details,
        "completion_tokens_details": {"reasoning_tokens": tokens.reasoning.unwrap_or_default(), "audio_tokens": 0},
    });
    if format == UsageFormat::HitsAndMisses {
        usage["prompt_cache_hit_tokens"] = json!(tokens.cache_read);
        usage["prompt_cache_miss_tokens"] = json!(prompt - tokens.cache_read);
    }
    usage
}

struct CallPart<'a> {
    id: String,
    name: &'a str,
    arguments: &'a str,
}

impl<'a> CallPart<'a> {
    fn from_part(part: &'a SimulatedPart, index: usize, head: &AnswerHead) -> Option<Self> {
        let SimulatedPart::Call { id: given, name, arguments } = part else { return None };
        let id = given.clone().unwrap_or_else(|| make_id("call_", head.number, index));
        Some(CallPart { id, name, arguments })
    }

    fn json(&self, arguments: &str) -> Value {
        json!({"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}})
    }
}

fn calls<'a>(answer: &'a SimulatedAnswer, head: &'a AnswerHead) -> impl Iterator<Item = CallPart<'a>> {
    answer.parts.iter().enumerate().filter_map(move |(index, part)| CallPart::from_part(part, index, head))
}

fn texts(answer: &SimulatedAnswer) -> impl Iterator<Item = &str> {
    answer
        .parts
        .iter()
        .filter_map(|part| if let SimulatedPart::Text(text) = part { Some(text.as_str()) } else { None })
}

fn reasonings(answer: &SimulatedAnswer) -> impl Iterator<Item = &str> {
    answer
        .parts
        .iter()
        .filter_map(|part| if let SimulatedPart::Reasoning(text) = part { Some(text.as_str()) } else { None })
}

fn finish_reason(stop: &FinishReason) -> &'static str {
    match stop {
        FinishReason::End | FinishReason::Sequence(_) => "stop",
        FinishReason::ToolUse => "tool_calls",
        FinishReason::Length | FinishReason::Window => "length",
        FinishReason::Refusal => "content_filter",
    }
}

/// How a server reports cached tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageFormat {
    /// Cache reads, in `prompt_tokens_details.cached_tokens`.
    Reads,
    /// Like `Reads`, and cache writes in `cache_write_tokens`.
    ReadsAndWrites,
    /// Like `Reads`, and DeepSeek's `prompt_cache_hit_tokens` and `prompt_cache_miss_tokens`.
    HitsAndMisses,
}

impl UsageFormat {
    fn of(request: &AcceptedRequest) -> Self {
        match (request.profile.markers, request.model.provider.as_str()) {
            (MarkerFormat::PromptCacheBreakpoint | MarkerFormat::CacheControl, _) => {
                UsageFormat::ReadsAndWrites
            }
            (MarkerFormat::None, "deepseek") => UsageFormat::HitsAndMisses,
            (MarkerFormat::None, _) => UsageFormat::Reads,
        }
    }
}

/// Whether a stream ends with a usage chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UsageChunk {
    /// The request asked for usage, or the server always sends it.
    Sent,
    /// The request did not ask for usage.
    Omitted,
}
