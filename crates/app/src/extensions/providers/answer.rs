//! [`ScriptAnswer`]: what a script streams as the answer of a provider, as the server-sent events of
//! Anthropic Messages, which every part behind it knows.

use std::collections::BTreeMap;

use bytes::Bytes;
use hardpan_providers::EXTENSION_ERROR;
use serde::Deserialize;
use serde_json::{Value, json};

/// An event of a script's stream, as `providers.js` hands it on.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ScriptStreamEvent {
    Start {
        usage: Option<Value>,
    },
    TextStart {
        content_index: u64,
    },
    TextDelta {
        content_index: u64,
        delta: String,
    },
    TextEnd {
        content_index: u64,
        content: Option<String>,
    },
    ThinkingStart {},
    ThinkingDelta {
        content_index: u64,
        delta: String,
    },
    ThinkingEnd {
        content_index: u64,
        content: Option<String>,
        signature: Option<String>,
        redacted: Option<bool>,
    },
    ToolcallStart {},
    ToolcallEnd {
        content_index: u64,
        tool_call: Option<Value>,
    },
    Done {
        reason: Option<String>,
        message: Option<Value>,
    },
    Error {
        reason: Option<String>,
        message: Option<Value>,
        error: Option<String>,
    },
    #[serde(other)]
    Other,
}

/// A part of the answer, as far as it was sent on.
#[derive(Default)]
struct Part {
    sent: String,
    is_open: bool,
    is_closed: bool,
}

type KeepId = Box<dyn Fn(&str) -> String + Send>;

/// Turns the events of a script into those of a server.
pub struct ScriptAnswer {
    model: String,
    /// Gives the id under which a call is kept.
    keep_id: KeepId,
    has_begun: bool,
    is_over: bool,
    parts: BTreeMap<u64, Part>,
    lines: String,
}

/// What kind of text a part is.
#[derive(Clone, Copy)]
enum TextKind {
    Text,
    Thinking,
}

impl TextKind {
    fn empty_block(self) -> Value {
        match self {
            TextKind::Text => json!({ "type": "text", "text": "" }),
            TextKind::Thinking => json!({ "type": "thinking", "thinking": "", "signature": "" }),
        }
    }

    fn delta(self, text: &str) -> Value {
        match self {
            TextKind::Text => json!({ "type": "text_delta", "text": text }),
            TextKind::Thinking => json!({ "type": "thinking_delta", "thinking": text }),
        }
    }
}

impl ScriptAnswer {
    pub fn new(model: &str, keep_id: KeepId) -> Self {
        let (has_begun, is_over, parts, lines) = Default::default();
        ScriptAnswer { model: model.to_owned(), keep_id, has_begun, is_over, parts, lines }
    }

    /// Whether the answer has ended: nothing comes after that.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// The bytes that an event leads to; there may be none.
    pub fn read(&mut self, event: Value) -> Bytes {
        // What is no event of this kind says nothing.
        let event = ScriptStreamEvent::deserialize(event).unwrap_or(ScriptStreamEvent::Other);
        if !self.is_over {
            self.apply(event);
        }
        std::mem::take(&mut self.lines).into()
    }

    /// The bytes of an answer that fails.
    pub fn fail(&mut self, message: &str) -> Bytes {
        if !self.is_over {
            self.end_with_error(message);
        }
        std::mem::take(&mut self.lines).into()
    }

    fn apply(&mut self, event: ScriptStreamEvent) {
        use ScriptStreamEvent as Event;
        match event {
            Event::Other => {}
            Event::Start { usage } => self.begin(usage.as_ref()),
            Event::TextStart { content_index } => self.open(content_index, &TextKind::Text.empty_block()),
            Event::ThinkingStart {} => self.begin(None), // its form is known at its end, or with its text
            Event::TextDelta { content_index, delta } => self.append(content_index, TextKind::Text, &delta),
            Event::ThinkingDelta { content_index, delta } => {
                self.append(content_index, TextKind::Thinking, &delta);
            }
            Event::TextEnd { content_index, content } => {
                self.complete(content_index, TextKind::Text, content.as_deref());
            }
            Event::ThinkingEnd { content_index, content, signature, redacted } => {
                let thought =
                    json!({ "thinking": content, "thinkingSignature": signature, "redacted": redacted });
                self.end_thinking(content_index, &thought);
            }
            // Arguments are sent on as a whole: what counts is the call at its end.
            Event::ToolcallStart {} => self.begin(None),
            Event::ToolcallEnd { content_index, tool_call } => {
                if let Some(call) = tool_call {
                    self.add_call(content_index, &call);
                }
            }
            Event::Done { reason, message } => {
                let message = message.unwrap_or_default();
                let reason = message["stopReason"].as_str().map(str::to_owned).or(reason);
                match reason.as_deref() {
                    Some("error" | "aborted") => self.end_with_error(error_of(&message)),
                    reason => self.end(&message, reason.unwrap_or("stop")),
                }
            }
            Event::Error { reason, message, error } => {
                let message = message.unwrap_or_default();
                let said = Some(error_of(&message)).filter(|said| !said.is_empty());
                let said = said.or(error.as_deref()).or(reason.as_deref()).unwrap_or("it failed");
                self.end_with_error(said);
            }
        }
    }

    fn send(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or_default();
        self.lines.push_str(&format!("event: {name}\ndata: {event}\n\n"));
    }

    fn begin(&mut self, usage: Option<&Value>) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let message = json!({
                "type": "message", "role": "assistant", "model": self.model, "content": [],
                "usage": usage.map(usage_of),
            });
            self.send(&json!({ "type": "message_start", "message": message }));
        }
    }

    fn open(&mut self, index: u64, block: &Value) {
        self.begin(None);
        let part = self.parts.entry(index).or_default();
        if !std::mem::replace(&mut part.is_open, true) {
            self.send(&json!({ "type": "content_block_start", "index": index, "content_block": block }));
        }
    }

    fn add_delta(&mut self, index: u64, delta: &Value) {
        self.send(&json!({ "type": "content_block_delta", "index": index, "delta": delta }));
    }

    fn close(&mut self, index: u64) {
        let part = self.parts.entry(index).or_default();
        if part.is_open && !std::mem::replace(&mut part.is_closed, true) {
            self.send(&json!({ "type": "content_block_stop", "index": index }));
        }
    }

    fn is_closed(&self, index: u64) -> bool {
        self.parts.get(&index).is_some_and(|part| part.is_closed)
    }

    fn append(&mut self, index: u64, kind: TextKind, text: &str) {
        if text.is_empty() || self.is_closed(index) {
            return;
        }
        self.open(index, &kind.empty_block());
        self.parts.entry(index).or_default().sent.push_str(text);
        self.add_delta(index, &kind.delta(text));
    }

    /// Sends what is missing of a text, and ends it.
    fn complete(&mut self, index: u64, kind: TextKind, whole: Option<&str>) {
        let sent = self.parts.get(&index).map_or("", |part| &part.sent);
        let rest = whole.and_then(|whole| whole.strip_prefix(sent)).unwrap_or_default().to_owned();
        self.append(index, kind, &rest);
        self.close(index);
    }

    fn end_thinking(&mut self, index: u64, thought: &Value) {
        if self.is_closed(index) {
            return;
        }
        let signature = thought["thinkingSignature"].as_str().unwrap_or_default();
        if thought["redacted"].as_bool() == Some(true) {
            self.open(index, &json!({ "type": "redacted_thinking", "data": signature }));
            return self.close(index);
        }
        let text = thought["thinking"].as_str();
        if !signature.is_empty() || text.is_some_and(|text| !text.is_empty()) {
            self.open(index, &TextKind::Thinking.empty_block());
        }
        let sent = self.parts.get(&index).map_or("", |part| &part.sent);
        let rest = text.and_then(|text| text.strip_prefix(sent)).unwrap_or_default().to_owned();
        self.append(index, TextKind::Thinking, &rest);
        if !signature.is_empty() {
            self.add_delta(index, &json!({ "type": "signature_delta", "signature": signature }));
        }
        self.close(index);
    }

    fn add_call(&mut self, index: u64, call: &Value) {
        if self.is_closed(index) {
            return;
        }
        let id = (self.keep_id)(call["id"].as_str().unwrap_or_default());
        let name = call["name"].as_str().unwrap_or_default();
        self.open(index, &json!({ "type": "tool_use", "id": id, "name": name, "input": {} }));
        let arguments = if call["arguments"].is_null() { json!({}) } else { call["arguments"].clone() };
        self.add_delta(index, &json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }));
        self.close(index);
    }

    /// The end of an answer: what of the message was not streamed comes now.
    fn end(&mut self, message: &Value, reason: &str) {
        self.begin(message.get("usage"));
        let content = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (index, part) in (0..).zip(content) {
            match part["type"].as_str() {
                Some("text") => self.complete(index, TextKind::Text, part["text"].as_str()),
                Some("thinking") => self.end_thinking(index, part),
                Some("toolCall") => self.add_call(index, part),
                _ => {}
            }
        }
        let open: Vec<u64> = self.parts.keys().copied().collect();
        open.into_iter().for_each(|index| self.close(index));
        let stop = match reason {
            "toolUse" => "tool_use",
            "length" => "max_tokens",
            _ => "end_turn",
        };
        let mut last = json!({ "type": "message_delta", "delta": { "stop_reason": stop } });
        if let Some(usage) = message.get("usage").filter(|usage| usage.is_object()) {
            last["usage"] = usage_of(usage);
        }
        self.send(&last);
        self.send(&json!({ "type": "message_stop" }));
        self.is_over = true;
    }

    fn end_with_error(&mut self, message: &str) {
        let error = json!({ "type": error_type(message), "message": message });
        self.send(&json!({ "type": "error", "error": error }));
        self.is_over = true;
    }
}

fn error_of(message: &Value) -> &str {
    message["errorMessage"].as_str().unwrap_or_default()
}

/// No request has so many tokens.
const MAX_TOKENS: f64 = 1e9;

fn usage_of(usage: &Value) -> Value {
    // A number of tokens, however the script came by it; more than any model reads is none.
    let tokens = |name: &str| {
        usage[name]
            .as_f64()
            .filter(|tokens| (0.0..MAX_TOKENS).contains(tokens))
            .map_or(0, |tokens| tokens as u64)
    };
    json!({
        "input_tokens": tokens("input"),
        "output_tokens": tokens("output"),
        "cache_read_input_tokens": tokens("cacheRead"),
        "cache_creation_input_tokens": tokens("cacheWrite"),
    })
}

/// The words by which scripts say that a request may succeed later, with the type of the error.
const TRANSIENT: [(&str, &[&str]); 3] = [
    ("rate_limit_error", &["rate limit", "rate_limit", "too many requests", "429"]),
    ("overloaded_error", &["overloaded", "service unavailable", "503", "529"]),
    (
        "api_error",
        &[
            "500",
            "502",
            "504",
            "server error",
            "internal error",
            "network error",
            "connection error",
            "connection refused",
            "connection reset",
            "socket hang up",
            "fetch failed",
            "timed out",
            "timeout",
        ],
    ),
];

/// What a script's message means for the request: whether it is tried again, or the conversation is cut.
fn error_type(message: &str) -> &'static str {
    let lower = message.to_lowercase();
    if lower.contains("context_length_exceeded") {
        return "context_length_exceeded";
    }
    let means = |words: &&[&str]| words.iter().any(|word| contains_word(&lower, word));
    TRANSIENT.iter().find(|(_, words)| means(words)).map_or(EXTENSION_ERROR, |(kind, _)| kind)
}

/// Whether a text contains these words, and not within others: no status within a longer number.
fn contains_word(text: &str, word: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(at, found)| {
        !is_part(text[..at].chars().next_back()) && !is_part(text[at + found.len()..].chars().next())
    })
}

#[cfg(test)]
mod tests {
    use hardpan_models::Protocol;
    use hardpan_providers::{AnswerEvent, StopReason, StreamDecoder};

    use super::*;

    /// The answer as the client reads it.
    fn read(events: &[Value]) -> Vec<AnswerEvent> {
        let (mut answer, mut decoder) =
            (ScriptAnswer::new("large", Box::new(str::to_owned)), StreamDecoder::new(Protocol::Anthropic));
        let mut read = Vec::new();
        for event in events {
            read.extend(decoder.push(&answer.read(event.clone())));
        }
        read.extend(decoder.finish());
        read
    }

    fn usage() -> Value {
        json!({ "input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 1, "totalTokens": 19 })
    }

    fn text(events: &[AnswerEvent]) -> String {
        let texts = events.iter().filter_map(|event| match event {
            AnswerEvent::Text(text) => Some(text.to_string()),
            _ => None,
        });
        texts.collect()
    }

    #[test]
    fn a_stream_becomes_the_answer_of_a_server() {
        let call = json!({ "id": "call_1|fc_2", "name": "read", "arguments": { "path": "a" } });
        let whole = json!([
            { "type": "thinking", "thinking": "Hm.", "thinkingSignature": "s" },
            { "type": "text", "text": "I read it." },
            { "type": "toolCall", "id": call["id"], "name": "read", "arguments": { "path": "a" } },
        ]);
        let events = read(&[
            json!({ "type": "start", "usage": { "input": 0 } }),
            json!({ "type": "thinking_start", "contentIndex": 0 }),
            json!({ "type": "thinking_delta", "contentIndex": 0, "delta": "Hm" }),
            json!({ "type": "thinking_end", "contentIndex": 0, "content": "Hm.", "signature": "s" }),
            json!({ "type": "text_start", "contentIndex": 1 }),
            json!({ "type": "text_delta", "contentIndex": 1, "delta": "I read" }),
            json!({ "type": "text_end", "contentIndex": 1, "content": "I read it." }),
            json!({ "type": "toolcall_start", "contentIndex": 2, "name": "read" }),
            json!({ "type": "toolcall_end", "contentIndex": 2, "toolCall": call }),
            json!({ "type": "done", "reason": "toolUse", "message": { "content": whole, "usage": usage(), "stopReason": "toolUse" } }),
        ]);
        assert_eq!(text(&events), "I read it.");
        assert!(matches!(events.last(), Some(AnswerEvent::Stop(StopReason::ToolUse))), "{events:?}");
        let tokens = events.iter().rev().find_map(|event| match event {
            AnswerEvent::Usage(usage) => Some(usage.tokens),
            _ => None,
        });
        let tokens = tokens.unwrap();
        assert_eq!((tokens.input, tokens.output, tokens.cache_read, tokens.cache_written()), (10, 5, 3, 1));
        let arguments = events.iter().find_map(|event| match event {
            AnswerEvent::CallDelta { json, .. } => Some(json.as_str()),
            _ => None,
        });
        assert_eq!(arguments, Some(r#"{"path":"a"}"#));
    }

    #[test]
    fn an_answer_that_was_never_streamed_comes_with_its_end() {
        let content = json!([{ "type": "text", "text": "All at once." }]);
        let events =
            read(&[json!({ "type": "done", "message": { "content": content, "stopReason": "stop" } })]);
        assert_eq!(text(&events), "All at once.");
        assert!(matches!(events.last(), Some(AnswerEvent::Stop(StopReason::End))), "{events:?}");
    }

    #[test]
    fn a_stream_without_an_end_was_cut() {
        let events = read(&[json!({ "type": "text_delta", "contentIndex": 0, "delta": "Half" })]);
        assert_eq!(text(&events), "Half");
        assert!(matches!(events.last(), Some(AnswerEvent::Stop(StopReason::Cut))), "{events:?}");
    }

    #[test]
    fn an_error_says_whether_to_try_again() {
        for (message, kind) in [
            ("HTTP 429: slow down", "rate_limit_error"),
            ("the server is overloaded", "overloaded_error"),
            ("fetch failed: connection refused", "api_error"),
            ("context_length_exceeded: too much", "context_length_exceeded"),
            ("No token. Run /login", EXTENSION_ERROR),
            ("model gpt-500x is unknown", EXTENSION_ERROR),
        ] {
            assert_eq!(error_type(message), kind, "{message}");
        }
    }

    proptest::proptest! {
        #[test]
        fn whatever_a_script_sends_ends_in_a_stop_or_an_error(events in proptest::collection::vec(event(), 0..12)) {
            let read = read(&events);
            let ended = matches!(read.last(), Some(AnswerEvent::Stop(_) | AnswerEvent::Error(_)));
            proptest::prop_assert!(ended, "{:?}", read);
        }
    }

    fn event() -> impl proptest::strategy::Strategy<Value = Value> {
        use proptest::prelude::*;
        let kinds = proptest::sample::select(vec![
            "start",
            "text_start",
            "text_delta",
            "text_end",
            "thinking_start",
            "thinking_delta",
            "thinking_end",
            "toolcall_start",
            "toolcall_end",
            "done",
            "error",
            "other",
        ]);
        let values = proptest::sample::select(vec![
            Value::Null,
            json!("text"),
            json!(7),
            json!({ "content": [{ "type": "text", "text": "a" }, { "type": "toolCall" }, 3], "usage": "many" }),
            json!({ "id": 1, "name": null, "arguments": "no object" }),
        ]);
        (kinds, 0..3_u64, values).prop_map(|(kind, index, value)| {
            json!({
                "type": kind, "contentIndex": index, "delta": value, "content": value, "toolCall": value,
                "message": value, "usage": value, "reason": value,
            })
        })
    }
}
