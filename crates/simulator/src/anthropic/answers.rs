//! Encodes answers of Anthropic Messages.

use hardpan_providers::decode::betas;
use serde_json::{Value, json};

use super::message_id;
use super::render::CompactionKind;
use super::signature::Signer;
use super::thinking::is_shown;
use super::web_search;
use crate::answer::{FinishReason, SimulatedAnswer, SimulatedPart};
use crate::engine::AcceptedRequest;
use crate::found_page::{FoundPage, split_cited};
use crate::wire::{AnswerHead, EventKind, StreamEvent, make_id, split_text};

/// One content block of an answer, in the form that both encodings are made from.
enum AnswerBlock<'a> {
    Thinking {
        text: &'a str,
        signature: String,
    },
    Text(&'a str),
    /// A text with its citation.
    Cited(&'a str, Value),
    /// A search by the server's own tool, or what it found.
    Server(Value),
    Call {
        id: String,
        name: &'a str,
        arguments: &'a str,
    },
    Compaction(Value),
}

/// What an answer consists of.
struct AnswerContent<'a> {
    request: &'a AcceptedRequest,
    head: &'a AnswerHead,
    blocks: Vec<AnswerBlock<'a>>,
    stop: &'static str,
    stop_sequence: Option<&'a str>,
    stop_details: Value,
    /// Whether the whole answer is a summary, which is billed in `iterations` only.
    is_summary: bool,
    /// How often the server's own tool searched.
    searches: u64,
}

impl<'a> AnswerContent<'a> {
    fn new(request: &'a AcceptedRequest, answer: &'a SimulatedAnswer, head: &'a AnswerHead) -> Self {
        let is_shown = is_shown(&request.decoded, &request.model);
        let mut searches = 0;
        let mut signer = Signer::for_answer(&request.decoded.prompt, &request.model.id);
        let parts = answer.parts.iter().enumerate().flat_map(|(index, part)| match part {
            SimulatedPart::Reasoning(text) => {
                let text = if is_shown { text.as_str() } else { "" };
                vec![AnswerBlock::Thinking { text, signature: signer.sign(is_shown.then_some(text)) }]
            }
            SimulatedPart::Search(query) => {
                searches += 1;
                web_search::blocks(query, &make_id("srvtoolu_", head.number, index))
                    .map(AnswerBlock::Server)
                    .into()
            }
            SimulatedPart::Text(text) => match FoundPage::before(&answer.parts[..index]) {
                None => vec![AnswerBlock::Text(text)],
                Some(page) => {
                    let (own, cited) = split_cited(text);
                    let own = (!own.is_empty()).then_some(AnswerBlock::Text(own));
                    let cited = AnswerBlock::Cited(cited, web_search::citation(&page, cited));
                    own.into_iter().chain([cited]).collect()
                }
            },
            SimulatedPart::Call { id, name, arguments } => {
                vec![AnswerBlock::Call { id: call_id(id.as_deref(), head, index), name, arguments }]
            }
        });
        let kind = request.rendered.compaction;
        let is_summary = matches!(kind, Some(CompactionKind::OnDemand | CompactionKind::Pause));
        let mut blocks: Vec<AnswerBlock<'_>> = parts.collect();
        if is_summary {
            blocks.clear();
        }
        blocks.splice(0..0, kind.map(|kind| AnswerBlock::Compaction(compaction_block(kind, head))));
        let stop_details = match answer.stop {
            FinishReason::Refusal => {
                json!({"type": "refusal", "category": null, "explanation": "The simulated model refuses."})
            }
            _ => Value::Null,
        };
        AnswerContent {
            request,
            head,
            blocks,
            stop: if is_summary { "compaction" } else { stop_reason(&answer.stop) },
            stop_sequence: if let FinishReason::Sequence(text) = &answer.stop { Some(text) } else { None },
            stop_details,
            is_summary,
            searches,
        }
    }

    /// The message, with its content or without it at the beginning of a stream.
    fn message(&self, content: &[Value], is_complete: bool) -> Value {
        let fields = &self.request.decoded.anthropic;
        let mut message = json!({
            "id": message_id(self.head.number),
            "type": "message",
            "role": "assistant",
            "model": self.head.model,
            "content": content,
            "stop_reason": is_complete.then_some(self.stop),
            "stop_sequence": if is_complete { self.stop_sequence } else { None },
            "stop_details": if is_complete { self.stop_details.clone() } else { Value::Null },
            "diagnostics": self.head.diagnostics,
            "usage": self.usage(is_complete),
        });
        if fields.has_beta(betas::BINDING) {
            message["input_transformations"] = json!(self.request.rendered.transformations);
        }
        if let Some(edits) = self.context_management().filter(|_| is_complete) {
            message["context_management"] = edits;
        }
        message
    }

    fn context_management(&self) -> Option<Value> {
        let edits = self.request.rendered.applied_edits.as_ref()?;
        Some(json!({"applied_edits": edits}))
    }

    /// The usage. The first report of a stream counts no more of the answer than its first token.
    fn usage(&self, is_complete: bool) -> Value {
        let tokens = self.head.tokens;
        let output = if is_complete { tokens.output } else { tokens.output.min(1) };
        let amounts = |kind: &str| {
            json!({
                "type": kind,
                "input_tokens": tokens.input,
                "output_tokens": output,
                "cache_read_input_tokens": tokens.cache_read,
                "cache_creation_input_tokens": tokens.cache_written(),
            })
        };
        let counts = |count: u64| if self.is_summary { 0 } else { count };
        let mut usage = json!({
            "input_tokens": counts(tokens.input),
            "cache_creation_input_tokens": counts(tokens.cache_written()),
            "cache_read_input_tokens": counts(tokens.cache_read),
            "cache_creation": {
                "ephemeral_5m_input_tokens": counts(tokens.cache_write_5m),
                "ephemeral_1h_input_tokens": counts(tokens.cache_write_1h),
            },
            "output_tokens": counts(output),
            "service_tier": "standard",
            "inference_geo": "global",
        });
        if is_complete && self.searches > 0 {
            usage["server_tool_use"] = json!({"web_search_requests": self.searches});
        }
        if is_complete {
            usage["output_tokens_details"] =
                json!({"thinking_tokens": counts(tokens.reasoning.unwrap_or(0))});
            usage["iterations"] = match self.request.rendered.compaction {
                None => json!([amounts("message")]),
                Some(CompactionKind::Threshold) => json!([amounts("compaction"), amounts("message")]),
                Some(CompactionKind::Pause | CompactionKind::OnDemand) => json!([amounts("compaction")]),
            };
        }
        if let Some(speed) = &self.request.decoded.anthropic.speed {
            usage["speed"] = json!(speed);
        }
        usage
    }
}

/// The block that stands for the conversation so far.
fn compaction_block(kind: CompactionKind, head: &AnswerHead) -> Value {
    let content = "A simulated summary of the conversation so far.";
    let mut block = json!({"type": "compaction", "content": content, "encrypted_content": null});
    if kind == CompactionKind::OnDemand {
        block["signature"] = json!(make_id("cmp_", head.number, 0));
        block["tool_changes"] = json!([]);
    }
    block
}

pub fn answer_body(request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
    let content = AnswerContent::new(request, answer, head);
    let block = |block: &AnswerBlock<'_>| match block {
        AnswerBlock::Thinking { text, signature } => {
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        AnswerBlock::Text(text) => json!({"type": "text", "text": text}),
        AnswerBlock::Cited(text, citation) => {
            json!({"type": "text", "text": text, "citations": [citation]})
        }
        AnswerBlock::Server(block) => block.clone(),
        AnswerBlock::Call { id, name, arguments } => {
            // Arguments that were cut are no object; the stop reason tells why there are none.
            let input = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
            json!({"type": "tool_use", "id": id, "name": name, "input": input})
        }
        AnswerBlock::Compaction(block) => block.clone(),
    };
    let blocks: Vec<Value> = content.blocks.iter().map(block).collect();
    content.message(&blocks, true)
}

pub fn answer_events(
    request: &AcceptedRequest,
    answer: &SimulatedAnswer,
    head: &AnswerHead,
) -> Vec<StreamEvent> {
    let content = AnswerContent::new(request, answer, head);
    let mut events = Events { counts_tokens: counts_thinking(request), ..Events::default() };
    events.frame("message_start", json!({"message": content.message(&[], false)}));
    for (index, block) in content.blocks.iter().enumerate() {
        events.block(index, block);
    }
    let mut usage = content.usage(true);
    if let Some(fields) = usage.as_object_mut() {
        let in_the_first = ["cache_creation", "service_tier", "inference_geo"];
        fields.retain(|name, _| !in_the_first.contains(&name.as_str()));
    }
    let delta = json!({
        "stop_reason": content.stop,
        "stop_sequence": content.stop_sequence,
        "stop_details": content.stop_details,
        "container": null,
    });
    let mut last = json!({"delta": delta, "usage": usage});
    if let Some(edits) = content.context_management() {
        last["context_management"] = edits;
    }
    events.frame("message_delta", last);
    events.push(EventKind::End, "message_stop", json!({}));
    events.list
}

fn counts_thinking(request: &AcceptedRequest) -> bool {
    request.decoded.anthropic.has_beta(&["thinking-token-count-2026-05-13"])
}

#[derive(Default)]
struct Events {
    list: Vec<StreamEvent>,
    /// Whether pieces of thinking tell how many tokens there have been.
    counts_tokens: bool,
}

impl Events {
    fn push(&mut self, kind: EventKind, name: &str, fields: Value) {
        let mut data = json!({"type": name});
        if let (Value::Object(data), Value::Object(fields)) = (&mut data, fields) {
            data.extend(fields);
        }
        self.list.push(StreamEvent { kind, bytes: format!("event: {name}\ndata: {data}\n\n").into() });
    }

    fn frame(&mut self, name: &str, fields: Value) {
        self.push(EventKind::Frame, name, fields);
    }

    fn delta(&mut self, index: usize, delta: &Value) {
        self.push(EventKind::Delta, "content_block_delta", json!({"index": index, "delta": delta}));
    }

    fn texts(&mut self, index: usize, text: &str) {
        for piece in split_text(text) {
            self.delta(index, &json!({"type": "text_delta", "text": piece}));
        }
    }

    fn block(&mut self, index: usize, block: &AnswerBlock<'_>) {
        let start = match block {
            AnswerBlock::Thinking { .. } => json!({"type": "thinking", "thinking": "", "signature": ""}),
            AnswerBlock::Text(_) => json!({"type": "text", "text": ""}),
            AnswerBlock::Cited(..) => json!({"type": "text", "text": "", "citations": []}),
            AnswerBlock::Server(block) => {
                let mut start = block.clone();
                if let Some(input) = start.get_mut("input") {
                    *input = json!({});
                }
                start
            }
            AnswerBlock::Call { id, name, .. } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": {}})
            }
            // A signed summary is whole at once, another comes in one piece.
            AnswerBlock::Compaction(block) if block["signature"].is_string() => block.clone(),
            AnswerBlock::Compaction(_) => json!({"type": "compaction", "content": null}),
        };
        self.frame("content_block_start", json!({"index": index, "content_block": start}));
        if index == 0 {
            self.frame("ping", json!({}));
        }
        match block {
            AnswerBlock::Thinking { text, signature } => {
                let mut bytes = 0;
                for piece in split_text(text).into_iter().filter(|piece| !piece.is_empty()) {
                    bytes += piece.len();
                    let estimate = self.counts_tokens.then_some(bytes / 4);
                    self.delta(
                        index,
                        &json!({"type": "thinking_delta", "thinking": piece, "estimated_tokens": estimate}),
                    );
                }
                self.delta(index, &json!({"type": "signature_delta", "signature": signature}));
            }
            AnswerBlock::Text(text) => self.texts(index, text),
            AnswerBlock::Cited(text, citation) => {
                self.delta(index, &json!({"type": "citations_delta", "citation": citation}));
                self.texts(index, text);
            }
            AnswerBlock::Server(block) => {
                let input = block.get("input").map(Value::to_string).unwrap_or_default();
                for piece in split_text(&input).into_iter().filter(|piece| !piece.is_empty()) {
                    self.delta(index, &json!({"type": "input_json_delta", "partial_json": piece}));
                }
            }
            AnswerBlock::Call { arguments, .. } => {
                self.delta(index, &json!({"type": "input_json_delta", "partial_json": ""}));
                for piece in split_text(arguments).into_iter().filter(|piece| !piece.is_empty()) {
                    self.delta(index, &json!({"type": "input_json_delta", "partial_json": piece}));
                }
            }
            AnswerBlock::Compaction(block) if block["signature"].is_string() => {}
            AnswerBlock::Compaction(block) => {
                let (content, encrypted) = (&block["content"], &block["encrypted_content"]);
                self.delta(
                    index,
                    &json!({"type": "compaction_delta", "content": content, "encrypted_content": encrypted}),
                );
            }
        }
        self.frame("content_block_stop", json!({"index": index}));
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
