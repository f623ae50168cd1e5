//! [`OpenaiServer`]: a server of OpenAI Chat Completions, like OpenAI's or a compatible one.

mod answers; // encodes answers, whole or as chunks

use bytes::Bytes;
use hardpan_models::{ChatSupport, MaxTokensField, Model, Protocol, ProviderProfile, ReasoningField};
use hardpan_prompt::Effort;
use hardpan_prompt::validate::{ValidationRules, Violation};
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

use crate::answer::SimulatedAnswer;
use crate::engine::{AcceptedRequest, EngineSettings, RateStatus, Request};
use crate::error_reply::ErrorReply;
use crate::openai_tools::check_tools;
use crate::server_codec::{Endpoint, ServerCodec};
use crate::tool_choice::ToolChoice;
use crate::wire::{AnswerHead, StreamEvent};

/// A server of OpenAI Chat Completions.
#[derive(Debug)]
pub struct OpenaiServer;

impl ServerCodec for OpenaiServer {
    fn protocol(&self) -> Protocol {
        Protocol::Openai
    }

    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path {
            "chat/completions" => Some(Endpoint::Answer),
            path => Endpoint::of_models(path),
        }
    }

    /// No header is its own: other servers take a bearer token, too.
    fn has_headers(&self, _request: &Request<'_>) -> bool {
        false
    }

    fn usual_provider<'a>(&self, settings: &'a EngineSettings) -> &'a str {
        &settings.openai_provider
    }

    fn api_key<'a>(&self, request: &Request<'a>) -> Option<&'a str> {
        request.bearer_token()
    }

    fn refuse_key(&self, key: Option<&str>) -> ErrorReply {
        match key {
            None => ErrorReply::new(401, "no API key: send it in a header, `Authorization: Bearer KEY`"),
            // The real server repeats a part of the key; no one needs to learn it from us.
            Some(_) => ErrorReply::new(401, "Incorrect API key provided").with_code("invalid_api_key"),
        }
    }

    fn check_fields(
        &self,
        decoded: &DecodedRequest,
        model: &Model,
        profile: &ProviderProfile,
    ) -> Result<(), ErrorReply> {
        let renamed = model.reasoning && profile.max_tokens_field == MaxTokensField::MaxCompletionTokens;
        if renamed && decoded.max_tokens_field == Some(MaxTokensField::MaxTokens) {
            return Err(ErrorReply::invalid("Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
                .with_code("unsupported_parameter")
                .with_param("max_tokens"));
        }
        check_reasoning_model(decoded, model, profile)?;
        check_tools(&decoded.prompt.tools, "function.parameters")?;
        let is_many = decoded.other.get("n").is_some_and(|n| n.as_str() != "1" && n.as_str() != "null");
        if is_many {
            return Err(ErrorReply::invalid("the simulator gives one answer: n must be 1").with_param("n"));
        }
        Ok(())
    }

    fn adjust_rules(&self, rules: &mut ValidationRules, _decoded: &DecodedRequest, _choice: &ToolChoice) {
        rules.max_breakpoints = None; // only the latest are written
    }

    fn has_reasoning(&self, request: &AcceptedRequest) -> bool {
        request.model.reasoning || request.profile.reasoning_field != ReasoningField::None
    }

    fn refuse_model(&self, name: &str) -> ErrorReply {
        let message = format!("The model `{name}` does not exist or you do not have access to it.");
        ErrorReply::new(404, message).with_code("model_not_found")
    }

    fn refuse_output_limit(&self, asked: u32, most: u32, _model: &Model) -> ErrorReply {
        let message = format!("max_tokens is too large: {asked}. This model gives at most {most} tokens.");
        ErrorReply::invalid(message).with_code("invalid_value").with_param("max_tokens")
    }

    fn refuse_violation(&self, violation: &Violation) -> ErrorReply {
        match violation {
            Violation::TooLarge { .. } => ErrorReply::new(413, violation.to_string()),
            Violation::TooLong { tokens, max } => ErrorReply::invalid(format!(
                "This model's maximum context length is {max} tokens. However, your messages resulted in {tokens} \
                 tokens. Please reduce the length of the messages."
            ))
            .with_code("context_length_exceeded")
            .with_param("messages"),
            _ => ErrorReply::invalid(violation.to_string()).with_param("messages"),
        }
    }

    fn error_body(&self, error: &ErrorReply, _request_id: &str) -> Value {
        let ErrorReply { status, message, code, param, .. } = error;
        let kind = match status {
            403 => "permission_error",
            429 => "requests",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        let code = code.or(if *status == 429 { Some("rate_limit_exceeded") } else { None });
        json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
    }

    fn error_event(&self, body: &Value) -> Bytes {
        format!("data: {body}\n\n").into()
    }

    fn overload_status(&self) -> u16 {
        500
    }

    fn response_headers(&self, request_id: String) -> Vec<(&'static str, String)> {
        vec![("x-request-id", request_id), ("openai-version", "2020-10-01".into())]
    }

    fn rate_headers(&self, status: &RateStatus) -> Vec<(&'static str, String)> {
        let RateStatus { requests, tokens, resets_in_ms, .. } = status;
        let reset = format!("{resets_in_ms}ms");
        vec![
            ("x-ratelimit-limit-requests", requests.limit.to_string()),
            ("x-ratelimit-remaining-requests", requests.left.to_string()),
            ("x-ratelimit-reset-requests", reset.clone()),
            ("x-ratelimit-limit-tokens", tokens.limit.to_string()),
            ("x-ratelimit-remaining-tokens", tokens.left.to_string()),
            ("x-ratelimit-reset-tokens", reset),
        ]
    }

    fn model_entry(&self, model: &Model) -> Value {
        json!({"id": model.id, "object": "model", "created": 0, "owned_by": model.provider})
    }

    fn model_list(&self, entries: Vec<Value>) -> Value {
        json!({"object": "list", "data": entries})
    }

    fn answer_body(&self, request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value {
        answers::answer_body(request, answer, head)
    }

    fn answer_events(
        &self,
        request: &AcceptedRequest,
        answer: &SimulatedAnswer,
        head: &AnswerHead,
    ) -> Vec<StreamEvent> {
        answers::answer_events(request, answer, head)
    }
}

/// What OpenAI's reasoning models refuse over this protocol.
fn check_reasoning_model(
    decoded: &DecodedRequest,
    model: &Model,
    profile: &ProviderProfile,
) -> Result<(), ErrorReply> {
    let is_openai = profile.max_tokens_field == MaxTokensField::MaxCompletionTokens;
    if !model.reasoning || !is_openai {
        return Ok(());
    }
    let refuse = |name: &str| {
        let message = format!("Unsupported parameter: '{name}' is not supported with this model.");
        Err(ErrorReply::invalid(message).with_code("unsupported_parameter").with_param(name))
    };
    let fields = ["logit_bias", "frequency_penalty", "presence_penalty", "prediction", "audio"];
    let is_given = |name: &&str| decoded.other.get(*name).is_some_and(|value| value.as_str() != "null");
    if let Some(name) = fields.iter().find(|name| is_given(name)) {
        return refuse(name);
    }
    if !decoded.stop_sequences.is_empty() {
        return refuse("stop");
    }
    let effort = decoded.prompt.effort.or(model.thinking.default_effort);
    if decoded.prompt.effort == Some(Effort::Max) {
        let message = "Unsupported value: 'reasoning_effort' does not support 'max' with this model.";
        return Err(ErrorReply::invalid(message)
            .with_code("unsupported_value")
            .with_param("reasoning_effort"));
    }
    let has_tools = !decoded.prompt.tools.is_empty();
    let name = &model.id;
    match profile.chat_support {
        ChatSupport::None => {
            let message = "This model is only supported in v1/responses and not in v1/chat/completions.";
            Err(ErrorReply::new(404, message).with_param("model"))
        }
        ChatSupport::NoTools if has_tools => Err(ErrorReply::invalid(format!(
            "Function tools are not supported for {name} in /v1/chat/completions. To use function tools, use /v1/responses."
        ))
        .with_param("tools")),
        ChatSupport::ToolsWithoutReasoning if has_tools && effort != Some(Effort::None) => {
            let message = format!(
                "Function tools with reasoning_effort are not supported for {name} in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'."
            );
            Err(ErrorReply::invalid(message).with_param("reasoning_effort"))
        }
        ChatSupport::Full | ChatSupport::NoTools | ChatSupport::ToolsWithoutReasoning => Ok(()),
    }
}
