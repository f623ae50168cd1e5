//! [`ClaudeFormat`]: the lines of `claude -p --output-format stream-json --verbose`, and the last of them
//! alone as with `--output-format json`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::events::{MessageEnd, MessageStart, MessageUpdate};
use hardpan_agent::{AgentEvent, Spending};
use hardpan_prompt::{Hash, MessageBody, MessagePart, NotRunReason, TokenUsage};
use serde_json::{Map, Value, json};

use super::answer_pieces::AnswerPieces;
use super::{ScriptEnd, ScriptFormat, ScriptSession, joined_texts, used_since};

/// How much is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// A line per message, then the result.
    Messages,
    /// The same, and a line for each piece of an answer that streams.
    Pieces,
    /// The result alone.
    Result,
}

/// What has happened so far.
pub struct ClaudeFormat {
    detail: Detail,
    session: String,
    used_before: Spending,
    used: Spending,
    by_model: BTreeMap<String, (TokenUsage, f64)>,
    turns: u64,
    /// When the request that is not yet answered was sent.
    request_sent: Option<Duration>,
    waited: Duration,
    answer: String,
    stop_reason: Option<String>,
    /// Names and arguments of calls, by their ids.
    calls: BTreeMap<Arc<str>, (Arc<str>, Value)>,
    denials: Vec<Value>,
    pieces: AnswerPieces,
    lines: u64,
}

impl ClaudeFormat {
    pub fn new(detail: Detail) -> Self {
        ClaudeFormat {
            detail,
            session: String::new(),
            used_before: Spending::default(),
            used: Spending::default(),
            by_model: BTreeMap::new(),
            turns: 0,
            request_sent: None,
            waited: Duration::ZERO,
            answer: String::new(),
            stop_reason: None,
            calls: BTreeMap::new(),
            denials: Vec::new(),
            pieces: AnswerPieces::default(),
            lines: 0,
        }
    }

    /// A line of this type, with the fields that all lines have.
    fn line(&mut self, kind: &str, fields: Value) -> Value {
        self.lines += 1;
        let mut line = Map::new();
        line.insert("type".into(), kind.into());
        if let Value::Object(fields) = fields {
            line.extend(fields);
        }
        line.insert("session_id".into(), self.session.as_str().into());
        line.insert("uuid".into(), line_id(&self.session, self.lines).into());
        line.into()
    }

    /// The lines for what of an answer an event tells before the answer is complete.
    fn piece_lines(&mut self, event: &AgentEvent) -> Vec<Value> {
        let events = match event {
            AgentEvent::MessageStart(MessageStart { message, .. }) => match &*message.body {
                MessageBody::Assistant { model, .. } => {
                    vec![self.pieces.begin(&message.id.to_string(), model.as_deref().unwrap_or_default())]
                }
                _ => Vec::new(),
            },
            AgentEvent::MessageUpdate(MessageUpdate { delta, .. }) => self.pieces.add(delta),
            AgentEvent::MessageEnd(MessageEnd { message, .. }) => match &*message.body {
                MessageBody::Assistant { stop_reason, .. } => {
                    let (usage, _) = message.facts.as_ref().and_then(|facts| facts.usage).unwrap_or_default();
                    self.pieces.end(stop_reason.as_deref().map(wire_reason), &usage_json(&usage))
                }
                _ => Vec::new(),
            },
            _ => Vec::new(),
        };
        let line = |event| self.line("stream_event", json!({"event": event, "parent_tool_use_id": null}));
        events.into_iter().map(line).collect()
    }

    fn message(&mut self, ended: &MessageEnd, at: Duration) -> Option<Value> {
        match &*ended.message.body {
            MessageBody::Assistant { content, model, stop_reason, .. } => {
                if let Some(sent) = self.request_sent.take() {
                    self.waited += at.saturating_sub(sent);
                }
                for part in content {
                    if let MessagePart::ToolCall(call) = part {
                        let known = (call.name.clone(), call.arguments.value());
                        self.calls.insert(call.id.clone(), known);
                    }
                }
                self.answer = joined_texts(content);
                self.stop_reason = stop_reason.as_deref().map(|reason| wire_reason(reason).to_owned());
                let (usage, dollars) =
                    ended.message.facts.as_ref().and_then(|facts| facts.usage).unwrap_or_default();
                let model = model.as_deref().unwrap_or_default();
                let (total, paid) = self.by_model.entry(model.to_owned()).or_default();
                *total += usage;
                *paid += dollars;
                let own = ended.message.id.to_string();
                let id = ended.response.as_ref().map(|response| response.id.to_string());
                let message = json!({
                    "id": id.filter(|id| !id.is_empty()).unwrap_or(own),
                    "type": "message",
                    "role": "assistant",
                    "model": model,
                    "content": content.iter().filter_map(answer_block).collect::<Vec<_>>(),
                    "stop_reason": self.stop_reason,
                    "stop_sequence": null,
                    "usage": usage_json(&usage),
                });
                Some(self.line("assistant", json!({"message": message, "parent_tool_use_id": null})))
            }
            MessageBody::ToolResult { call_id, content, is_error, not_run, .. } => {
                if let Some(NotRunReason::Denied { .. } | NotRunReason::Blocked { .. }) = not_run
                    && let Some((name, input)) = self.calls.get(call_id)
                {
                    self.denials
                        .push(json!({"tool_name": name, "tool_use_id": call_id, "tool_input": input}));
                }
                let result = json!({
                    "tool_use_id": call_id,
                    "type": "tool_result",
                    "content": result_content(content),
                    "is_error": is_error,
                });
                let message = json!({"role": "user", "content": [result]});
                Some(self.line("user", json!({"message": message, "parent_tool_use_id": null})))
            }
            _ => None,
        }
    }
}

impl ScriptFormat for ClaudeFormat {
    fn begin(&mut self, session: &ScriptSession) -> Vec<Value> {
        self.session.clone_from(&session.session);
        self.used_before = session.used_before;
        self.used = session.used_before;
        if self.detail == Detail::Result {
            return Vec::new();
        }
        let servers: Vec<Value> =
            session.servers.iter().map(|name| json!({"name": name, "status": "pending"})).collect();
        let fields = json!({
            "subtype": "init",
            "cwd": session.folder,
            "tools": session.tools,
            "mcp_servers": servers,
            "model": session.model,
            "permissionMode": "default",
            "slash_commands": session.commands,
            "apiKeySource": "none",
            "output_style": "default",
            "hardpan_version": env!("CARGO_PKG_VERSION"),
        });
        vec![self.line("system", fields)]
    }

    fn observe(&mut self, event: &AgentEvent, at: Duration) -> Vec<Value> {
        let pieces = match self.detail {
            Detail::Pieces => self.piece_lines(event),
            Detail::Messages | Detail::Result => Vec::new(),
        };
        let line = match event {
            AgentEvent::TurnStart(_) => {
                self.turns += 1;
                None
            }
            AgentEvent::BeforeProviderRequest(_) => {
                self.request_sent = Some(at);
                None
            }
            AgentEvent::MessageEnd(ended) => self.message(ended, at),
            AgentEvent::AgentEnd(ended) => {
                if let Some(sent) = self.request_sent.take() {
                    self.waited += at.saturating_sub(sent);
                }
                self.used = ended.token_usage.session;
                None
            }
            _ => None,
        };
        let line = line.filter(|_| self.detail != Detail::Result);
        pieces.into_iter().chain(line).collect()
    }

    fn end(&mut self, end: &ScriptEnd, at: Duration) -> Vec<Value> {
        let used = used_since(&self.used, &self.used_before);
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let is_error = end.failure.is_some();
        let answer = end.said.clone().unwrap_or_else(|| self.answer.clone());
        let models: Map<String, Value> = self
            .by_model
            .iter()
            .map(|(model, (usage, dollars))| (model.clone(), model_usage(usage, *dollars)))
            .collect();
        let mut fields = json!({
            "subtype": if is_error { "error_during_execution" } else { "success" },
            "is_error": is_error,
            "duration_ms": milliseconds(at),
            "duration_api_ms": milliseconds(self.waited),
            "num_turns": self.turns,
            "result": end.failure.clone().unwrap_or(answer),
            "stop_reason": self.stop_reason,
            "total_cost_usd": used.dollars,
            "usage": usage_json(&used.tokens),
            "modelUsage": models,
            "permission_denials": self.denials,
        });
        if let Some(failure) = &end.failure {
            fields["errors"] = json!([failure]);
        }
        vec![self.line("result", fields)]
    }
}

/// A part of an answer as Anthropic's API has it.
fn answer_block(part: &MessagePart) -> Option<Value> {
    match part {
        MessagePart::Text { text } => Some(json!({"type": "text", "text": text})),
        MessagePart::Reasoning { redacted: Some(data), .. } => {
            Some(json!({"type": "redacted_thinking", "data": data}))
        }
        MessagePart::Reasoning { text, signature, .. } => {
            let signature = signature.as_deref().unwrap_or_default();
            Some(json!({"type": "thinking", "thinking": text, "signature": signature}))
        }
        MessagePart::ToolCall(call) => {
            let input = call.arguments.value();
            Some(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}))
        }
        MessagePart::Image(_) | MessagePart::ProviderBlock(_) | MessagePart::Sources { .. } => None,
    }
}

/// The content of a result: a text, or a list if there are images.
fn result_content(content: &[MessagePart]) -> Value {
    if !content.iter().any(|part| matches!(part, MessagePart::Image(_))) {
        return joined_texts(content).into();
    }
    let block = |part: &MessagePart| match part {
        MessagePart::Text { text } => Some(json!({"type": "text", "text": text})),
        MessagePart::Image(image) => {
            let source = json!({"type": "base64", "media_type": image.media_type.name(), "data": image.data});
            Some(json!({"type": "image", "source": source}))
        }
        _ => None,
    };
    content.iter().filter_map(block).collect()
}

fn usage_json(usage: &TokenUsage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_written(),
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    })
}

fn model_usage(usage: &TokenUsage, dollars: f64) -> Value {
    json!({
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "cacheReadInputTokens": usage.cache_read,
        "cacheCreationInputTokens": usage.cache_written(),
        "costUSD": dollars,
    })
}

/// Anthropic's word for why an answer ended.
fn wire_reason(word: &str) -> &str {
    match word {
        "end" => "end_turn",
        "length" => "max_tokens",
        "pause" => "pause_turn",
        "window" => "model_context_window_exceeded",
        word => word,
    }
}

/// An id in the form of a UUID (version 8), the same for the same line of the same session.
fn line_id(session: &str, line: u64) -> String {
    let hash = Hash::of(format!("{session}/{line}").as_bytes()).to_string();
    let part = |range: std::ops::Range<usize>| &hash[range];
    format!("{}-{}-8{}-8{}-{}", part(0..8), part(8..12), part(13..16), part(17..20), part(20..32))
}
