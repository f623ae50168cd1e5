//! Encodes answers of Gemini's `generateContent`.

use bytes::Bytes;
use serde_json::{Value, json};

use super::signatures::{search_name, sign};
use crate::answer::{FinishReason, SimulatedAnswer, SimulatedPart};
use crate::engine::AcceptedRequest;
use crate::found_page::FoundPage;
use crate::server_codec::ServerCodec;
use crate::wire::{AnswerHead, EventKind, StreamEvent, make_id, split_text};

pub fn answer_body(request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
    let mut parts = Vec::new();
    let mut signer = Signer::new(request, answer, head);
    for (index, part) in answer.parts.iter().enumerate() {
        match part {
            SimulatedPart::Reasoning(text) if request.decoded.include_thoughts => {
                parts.push(json!({"text": text, "thought": true}));
            }
            SimulatedPart::Reasoning(_) => {}
            SimulatedPart::Search(query) => parts.extend(signer.search_parts(query, index)),
            SimulatedPart::Text(text) => parts.push(signer.sign_text(json!({"text": text}))),
            SimulatedPart::Call { .. } => parts.extend(signer.call_part(part, index)),
        }
    }
    match (signer.final_signature(), parts.last_mut()) {
        (Some(signature), Some(last)) => last["thoughtSignature"] = json!(signature),
        (Some(signature), None) => parts.push(json!({"text": "", "thoughtSignature": signature})),
        (None, _) => {}
    }
    let finish = Some(finish_reason(&answer.stop));
    let body = response(head, &parts, finish, &usage(request, head, head.tokens.output));
    with_grounding(body, answer)
}

pub fn answer_events(
    request: &AcceptedRequest,
    answer: &SimulatedAnswer,
    head: &AnswerHead,
) -> Vec<StreamEvent> {
    let mut chunks: Vec<Vec<Value>> = Vec::new();
    let mut signer = Signer::new(request, answer, head);
    let mut after_call = false;
    for (index, part) in answer.parts.iter().enumerate() {
        let is_call = matches!(part, SimulatedPart::Call { .. });
        match part {
            SimulatedPart::Reasoning(text) if request.decoded.include_thoughts => {
                let thought = |piece: &str| vec![json!({"text": piece, "thought": true})];
                chunks.extend(split_text(text).into_iter().map(thought));
            }
            SimulatedPart::Reasoning(_) => {}
            SimulatedPart::Search(query) => {
                chunks.extend(signer.search_parts(query, index).into_iter().map(|part| vec![part]));
            }
            SimulatedPart::Text(text) => {
                let pieces = split_text(text).into_iter();
                chunks.extend(pieces.map(|piece| vec![signer.sign_text(json!({"text": piece}))]));
            }
            SimulatedPart::Call { .. } => {
                let call = signer.call_part(part, index);
                // Parallel calls come in one chunk.
                match chunks.last_mut().filter(|_| after_call) {
                    Some(calls) => calls.extend(call),
                    None => chunks.extend(call.map(|call| vec![call])),
                }
            }
        }
        after_call = is_call;
    }
    let mut last = json!({"text": ""});
    if let Some(signature) = signer.final_signature() {
        last["thoughtSignature"] = json!(signature);
    }
    let count = chunks.len() as u64 + 1;
    let mut sent: Vec<(EventKind, Value)> = Vec::with_capacity(chunks.len() + 1);
    for (number, parts) in (1..).zip(&chunks) {
        // Usage comes with every chunk and counts what was sent so far.
        let usage = usage(request, head, head.tokens.output * number / count);
        sent.push((EventKind::Delta, response(head, parts, None, &usage)));
    }
    let finish = Some(finish_reason(&answer.stop));
    let usage = usage(request, head, head.tokens.output);
    let last = with_grounding(response(head, &[last], finish, &usage), answer);
    sent.push((EventKind::Frame, last));
    encode_events(sent, request.decoded.json_array)
}

/// The chunks as server-sent events, or as one JSON array. There is no end marker.
fn encode_events(chunks: Vec<(EventKind, Value)>, is_array: bool) -> Vec<StreamEvent> {
    let last = chunks.len().saturating_sub(1);
    let event = |(index, (kind, chunk)): (usize, (EventKind, Value))| {
        let bytes: Bytes = if is_array {
            let (begin, end) = (if index == 0 { "[" } else { ",\r\n" }, if index == last { "]" } else { "" });
            format!("{begin}{chunk}{end}").into()
        } else {
            format!("data: {chunk}\r\n\r\n").into()
        };
        // Neither a byte nor an event of an array can be sent twice.
        StreamEvent { kind: if is_array { EventKind::Delta } else { kind }, bytes }
    };
    chunks.into_iter().enumerate().map(event).collect()
}

fn response(head: &AnswerHead, parts: &[Value], finish: Option<&str>, usage: &Value) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    if let Some(finish) = finish {
        candidate["finishReason"] = json!(finish);
    }
    json!({
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": head.model,
        "responseId": make_id("", head.number, 0),
    })
}

/// The response with the pages that its searches found.
fn with_grounding(mut response: Value, answer: &SimulatedAnswer) -> Value {
    let queries = answer.parts.iter().filter_map(|part| match part {
        SimulatedPart::Search(query) => Some(query.as_str()),
        _ => None,
    });
    let queries: Vec<&str> = queries.collect();
    if !queries.is_empty() {
        let pages = queries.iter().map(|query| FoundPage::new(query));
        let chunks: Vec<Value> =
            pages.map(|page| json!({"web": {"uri": page.url, "title": page.title}})).collect();
        response["candidates"][0]["groundingMetadata"] =
            json!({"webSearchQueries": queries, "groundingChunks": chunks});
    }
    response
}

/// The usage after `output` tokens of the answer, thoughts first.
fn usage(request: &AcceptedRequest, head: &AnswerHead, output: u64) -> Value {
    let tokens = head.tokens;
    let prompt = tokens.prompt();
    let thoughts = tokens.reasoning.unwrap_or_default().min(output);
    let candidates = output - thoughts;
    let mut usage = json!({
        "promptTokenCount": prompt,
        "totalTokenCount": prompt + output,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": prompt}],
    });
    let counts = [
        ("cachedContentTokenCount", tokens.cache_read),
        ("candidatesTokenCount", candidates),
        ("thoughtsTokenCount", thoughts),
    ];
    for (name, count) in counts.into_iter().filter(|(_, count)| *count > 0) {
        usage[name] = json!(count);
    }
    if request.cached_tokens.is_some() {
        usage["cacheTokensDetails"] = json!([{"modality": "TEXT", "tokenCount": tokens.cache_read}]);
    }
    usage
}

/// Which part of an answer carries the signature.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SignedPart {
    None,
    /// The first call of the step (from Gemini 3 on).
    FirstCall,
    /// The first part, whatever it is (Gemini 2.5, in steps with calls).
    First,
    /// The last part; in a stream an empty text (from Gemini 3 on, in steps without calls).
    Last,
}

/// Puts the signature on the part of an answer that carries it.
struct Signer<'a> {
    request: &'a AcceptedRequest,
    head: &'a AnswerHead,
    signed: SignedPart,
}

impl<'a> Signer<'a> {
    fn new(request: &'a AcceptedRequest, answer: &SimulatedAnswer, head: &'a AnswerHead) -> Self {
        let has_calls = answer.parts.iter().any(|part| matches!(part, SimulatedPart::Call { .. }));
        let signed = match (request.profile.signed_calls, has_calls) {
            _ if !super::GeminiServer.has_reasoning(request) => SignedPart::None,
            (true, true) => SignedPart::FirstCall,
            (true, false) => SignedPart::Last,
            (false, true) => SignedPart::First,
            (false, false) => SignedPart::None,
        };
        Signer { request, head, signed }
    }

    fn signature(&self, function: &str) -> Value {
        json!(sign(&self.head.model, function, self.head.number))
    }

    /// A search and its result, each signed.
    fn search_parts(&self, query: &str, index: usize) -> [Value; 2] {
        let id = make_id("", self.head.number, index + 1);
        let signature = self.signature(&search_name(&id));
        let shown = FoundPage::new(query).title;
        [
            json!({
                "toolCall": {"toolType": "GOOGLE_SEARCH_WEB", "id": id, "args": {"queries": [query]}},
                "thoughtSignature": signature,
            }),
            json!({
                "toolResponse": {
                    "toolType": "GOOGLE_SEARCH_WEB", "id": id, "response": {"search_suggestions": shown},
                },
                "thoughtSignature": signature,
            }),
        ]
    }

    fn sign_text(&mut self, mut part: Value) -> Value {
        if self.signed == SignedPart::First {
            part["thoughtSignature"] = self.signature("");
            self.signed = SignedPart::None;
        }
        part
    }

    /// A call. Arguments that were cut are no object, and the call is not sent, as a server that
    /// sends calls whole does.
    fn call_part(&mut self, part: &SimulatedPart, index: usize) -> Option<Value> {
        let SimulatedPart::Call { id, name, arguments } = part else { return None };
        let args: Value = serde_json::from_str(arguments).ok()?;
        let mut call = json!({"name": name, "args": args});
        let made = self.request.profile.signed_calls.then(|| make_id("", self.head.number, index + 1));
        if let Some(id) = id.clone().or(made) {
            call["id"] = json!(id);
        }
        let mut part = json!({"functionCall": call});
        if matches!(self.signed, SignedPart::First | SignedPart::FirstCall) {
            part["thoughtSignature"] = self.signature(name);
            self.signed = SignedPart::None;
        }
        Some(part)
    }

    fn final_signature(&self) -> Option<String> {
        (self.signed == SignedPart::Last).then(|| sign(&self.head.model, "", self.head.number))
    }
}

fn finish_reason(stop: &FinishReason) -> &'static str {
    match stop {
        FinishReason::End | FinishReason::ToolUse | FinishReason::Sequence(_) => "STOP",
        FinishReason::Length | FinishReason::Window => "MAX_TOKENS",
        FinishReason::Refusal => "SAFETY",
    }
}
