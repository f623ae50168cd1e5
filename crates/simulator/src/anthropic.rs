//! [`AnthropicServer`]: a server of Anthropic Messages.

mod answers; // encodes answers, whole or as events

use bytes::Bytes;
use hardpan_models::{Model, Protocol};
use hardpan_prompt::validate::{Acceptance, Location, MAX_BREAKPOINTS, ValidationRules, Violation};
use hardpan_prompt::{Content, Prompt, Reasoning};
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

use crate::answer::SimulatedAnswer;
use crate::engine::{AcceptedRequest, EngineSettings, RateStatus, Request, SignatureCheck};
use crate::error_reply::ErrorReply;
use crate::server_codec::{Endpoint, ServerCodec};
use crate::tool_choice::ToolChoice;
use crate::wire::{AnswerHead, StreamEvent, sign_reasoning};

/// A server of Anthropic Messages.
#[derive(Debug)]
pub struct AnthropicServer;

impl ServerCodec for AnthropicServer {
    fn protocol(&self) -> Protocol {
        Protocol::Anthropic
    }

    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path {
            "messages" => Some(Endpoint::Answer),
            "messages/count_tokens" => Some(Endpoint::Count),
            path => Endpoint::of_models(path),
        }
    }

    fn has_headers(&self, request: &Request<'_>) -> bool {
        request.header("anthropic-version").is_some() || request.header("x-api-key").is_some()
    }

    fn usual_provider<'a>(&self, _settings: &'a EngineSettings) -> &'a str {
        "anthropic"
    }

    fn api_key<'a>(&self, request: &Request<'a>) -> Option<&'a str> {
        request.header("x-api-key").or_else(|| request.bearer_token())
    }

    fn refuse_key(&self, key: Option<&str>) -> ErrorReply {
        let message = if key.is_some() { "invalid x-api-key" } else { "x-api-key header is required" };
        ErrorReply::new(401, message)
    }

    fn check_headers(&self, request: &Request<'_>) -> Result<(), ErrorReply> {
        let missing = || ErrorReply::invalid("anthropic-version: header is required");
        request.header("anthropic-version").map(drop).ok_or_else(missing)
    }

    fn adjust_rules(&self, rules: &mut ValidationRules, decoded: &DecodedRequest, choice: &ToolChoice) {
        if !decoded.stream && !has_thinking(decoded) && !choice.is_forced() {
            rules.warming = Acceptance::Accepted;
        }
    }

    fn check_own_rules(
        &self,
        decoded: &DecodedRequest,
        model: &Model,
        choice: &ToolChoice,
        settings: &EngineSettings,
    ) -> Result<(), ErrorReply> {
        let prompt = &decoded.prompt;
        let found = prompt.breakpoints().len() + usize::from(decoded.automatic_cache.is_some());
        if found > MAX_BREAKPOINTS {
            let at = Location::Message(0);
            return Err(self.refuse_violation(&Violation::TooManyBreakpoints { at, found }));
        }
        if choice.is_forced() && has_thinking(decoded) {
            return Err(ErrorReply::invalid(
                "thinking may not be on when tool_choice forces the use of a tool",
            ));
        }
        if has_thinking(decoded) && !model.reasoning {
            return Err(ErrorReply::invalid(format!("thinking: {} cannot think", model.id)));
        }
        match settings.signatures {
            SignatureCheck::Checked => check_signatures(prompt),
            SignatureCheck::Unchecked => Ok(()),
        }
    }

    fn has_reasoning(&self, request: &AcceptedRequest) -> bool {
        has_thinking(&request.decoded)
    }

    fn refuse_model(&self, name: &str) -> ErrorReply {
        ErrorReply::new(404, format!("model: {name}"))
    }

    fn refuse_output_limit(&self, asked: u32, most: u32, model: &Model) -> ErrorReply {
        ErrorReply::invalid(format!(
            "max_tokens: {asked} > {most}, which is the maximum allowed number of output tokens for {}",
            model.id
        ))
    }

    fn refuse_violation(&self, violation: &Violation) -> ErrorReply {
        let status = if matches!(violation, Violation::TooLarge { .. }) { 413 } else { 400 };
        ErrorReply::new(status, violation.to_string())
    }

    fn error_body(&self, error: &ErrorReply, request_id: &str) -> Value {
        let kind = match error.status {
            401 => "authentication_error",
            403 => "permission_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        let message = &error.message;
        json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id})
    }

    fn error_event(&self, body: &Value) -> Bytes {
        format!("event: error\ndata: {body}\n\n").into()
    }

    fn overload_status(&self) -> u16 {
        529
    }

    fn response_headers(&self, request_id: String) -> Vec<(&'static str, String)> {
        vec![("request-id", request_id), ("anthropic-organization-id", "simulated".into())]
    }

    fn rate_headers(&self, status: &RateStatus) -> Vec<(&'static str, String)> {
        let RateStatus { requests, input_tokens, output_tokens, tokens, resets_at, resets_in_ms: _ } = status;
        let reset = jiff::Timestamp::from_second(resets_at.0.div_euclid(1000))
            .map_or_else(|_| String::new(), |time| time.to_string());
        vec![
            ("anthropic-ratelimit-requests-limit", requests.limit.to_string()),
            ("anthropic-ratelimit-requests-remaining", requests.left.to_string()),
            ("anthropic-ratelimit-requests-reset", reset.clone()),
            ("anthropic-ratelimit-tokens-limit", tokens.limit.to_string()),
            ("anthropic-ratelimit-tokens-remaining", tokens.left.to_string()),
            ("anthropic-ratelimit-tokens-reset", reset.clone()),
            ("anthropic-ratelimit-input-tokens-limit", input_tokens.limit.to_string()),
            ("anthropic-ratelimit-input-tokens-remaining", input_tokens.left.to_string()),
            ("anthropic-ratelimit-input-tokens-reset", reset.clone()),
            ("anthropic-ratelimit-output-tokens-limit", output_tokens.limit.to_string()),
            ("anthropic-ratelimit-output-tokens-remaining", output_tokens.left.to_string()),
            ("anthropic-ratelimit-output-tokens-reset", reset),
        ]
    }

    fn model_entry(&self, model: &Model) -> Value {
        json!({"type": "model", "id": model.id, "display_name": model.id, "created_at": "1970-01-01T00:00:00Z"})
    }

    fn model_list(&self, entries: Vec<Value>) -> Value {
        let id = |entry: Option<&Value>| entry.map(|entry| entry["id"].clone());
        let (first, last) = (id(entries.first()), id(entries.last()));
        json!({"data": entries, "has_more": false, "first_id": first, "last_id": last})
    }

    fn answer_body(&self, _request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
        answers::answer_body(answer, head)
    }

    fn answer_events(
        &self,
        _request: &AcceptedRequest,
        answer: &SimulatedAnswer,
        head: &AnswerHead,
    ) -> Vec<StreamEvent> {
        answers::answer_events(answer, head)
    }
}

/// Whether the request enables thinking.
fn has_thinking(decoded: &DecodedRequest) -> bool {
    decoded.prompt.thinking.is_on()
}

/// Checks that reasoning is unchanged, byte for byte, since the simulator signed it.
fn check_signatures(prompt: &Prompt) -> Result<(), ErrorReply> {
    for (index, message) in prompt.messages.iter().enumerate() {
        for (block_index, block) in message.blocks.iter().enumerate() {
            let Content::Reasoning(Reasoning { text, signature: Some(given), redacted: None, .. }) =
                &*block.content
            else {
                continue;
            };
            if **given != *sign_reasoning(text) {
                return Err(ErrorReply::invalid(format!(
                    "messages.{index}.content.{block_index}: Invalid `signature` in `thinking` block"
                )));
            }
        }
    }
    Ok(())
}
