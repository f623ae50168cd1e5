//! [`GeminiServer`]: a server of Gemini's own protocol.

mod answers; // encodes answers, whole or as chunks
mod cached_contents; // CachedContents: prefixes that clients store
mod signatures; // thought signatures: made, and checked

use bytes::Bytes;
use hardpan_models::{Model, Protocol, ProviderProfile};
use hardpan_prompt::Thinking;
use hardpan_prompt::validate::Violation;
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

pub use self::cached_contents::CachedContents;
use crate::answer::SimulatedAnswer;
use crate::engine::{AcceptedRequest, EngineSettings, RateStatus, Request, SignatureCheck};
use crate::error_reply::ErrorReply;
use crate::server_codec::{Endpoint, ServerCodec};
use crate::tool_choice::ToolChoice;
use crate::wire::{AnswerHead, StreamEvent};

/// A server of Gemini's own protocol.
#[derive(Debug)]
pub struct GeminiServer;

impl ServerCodec for GeminiServer {
    fn protocol(&self) -> Protocol {
        Protocol::Gemini
    }

    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        // Vertex AI has project and location before the model.
        let path = path.split_once("publishers/google/").map_or(path, |(_, rest)| rest);
        if let Some(rest) = path.strip_prefix("cachedContents") {
            return match rest {
                "" => Some(Endpoint::CachedContents(None)),
                rest => Some(Endpoint::CachedContents(Some(rest.strip_prefix('/')?.to_owned()))),
            };
        }
        match path.strip_prefix("models/").and_then(|model| model.split_once(':')) {
            Some((_, "generateContent" | "streamGenerateContent")) => Some(Endpoint::Answer),
            Some((_, "countTokens")) => Some(Endpoint::Count),
            Some(_) => None,
            None => Endpoint::of_models(path),
        }
    }

    /// The version is in the path only for clients of this protocol.
    fn has_headers(&self, request: &Request<'_>) -> bool {
        let headers = ["x-goog-api-key", "x-goog-api-client"];
        headers.iter().any(|name| request.header(name).is_some())
            || request.path.starts_with("/v1beta")
            || request.query_value("key").is_some()
    }

    fn usual_provider<'a>(&self, _settings: &'a EngineSettings) -> &'a str {
        "gemini"
    }

    fn api_key<'a>(&self, request: &Request<'a>) -> Option<&'a str> {
        let key = request.header("x-goog-api-key").or_else(|| request.query_value("key"));
        key.or_else(|| request.bearer_token())
    }

    fn refuse_key(&self, key: Option<&str>) -> ErrorReply {
        match key {
            None => ErrorReply::new(
                403,
                "Method doesn't allow unregistered callers (callers without established identity). Please use API \
                 Key or other form of API consumer identity to call this API.",
            ),
            Some(_) => ErrorReply::invalid("API key not valid. Please pass a valid API key.")
                .with_code("API_KEY_INVALID"),
        }
    }

    fn check_fields(
        &self,
        decoded: &DecodedRequest,
        model: &Model,
        _profile: &ProviderProfile,
    ) -> Result<(), ErrorReply> {
        let prompt = &decoded.prompt;
        let has_flag = decoded.other.contains_key("includeServerSideToolInvocations");
        if !decoded.server_tools.is_empty() && !prompt.tools.is_empty() && !has_flag {
            let message = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools \
                           with Function calling.";
            return Err(ErrorReply::invalid(message));
        }
        if !model.listed {
            return Ok(()); // nobody knows what it takes
        }
        let efforts = &model.thinking.efforts;
        if prompt.effort.is_some_and(|effort| !efforts.is_empty() && !efforts.contains(&effort)) {
            let message =
                "Thinking level is not supported for this model. Please retry with other thinking level.";
            return Err(ErrorReply::invalid(message));
        }
        if prompt.effort.is_some() && efforts.is_empty() {
            return Err(ErrorReply::invalid("Thinking level is not supported for this model."));
        }
        let is_never_off = model.thinking.off == hardpan_models::ThinkingOff::Never;
        if prompt.thinking == Thinking::Disabled && is_never_off {
            return Err(ErrorReply::invalid("Budget 0 is invalid. This model only works in thinking mode."));
        }
        Ok(())
    }

    fn check_own_rules(
        &self,
        decoded: &DecodedRequest,
        model: &Model,
        _choice: &ToolChoice,
        settings: &EngineSettings,
    ) -> Result<(), ErrorReply> {
        let Ok(provider) = settings.catalogue.provider(&model.provider) else { return Ok(()) };
        match settings.signatures {
            SignatureCheck::Checked => {
                signatures::check(&decoded.prompt, provider.profile_for_model(model).signed_calls)
            }
            SignatureCheck::Unchecked => Ok(()),
        }
    }

    fn has_reasoning(&self, request: &AcceptedRequest) -> bool {
        request.model.reasoning && request.decoded.prompt.thinking != Thinking::Disabled
    }

    fn refuse_model(&self, name: &str) -> ErrorReply {
        let message = format!(
            "models/{name} is not found for API version v1beta, or is not supported for generateContent. Call \
             ListModels to see the list of available models and their supported methods."
        );
        ErrorReply::new(404, message)
    }

    fn refuse_output_limit(&self, asked: u32, most: u32, _model: &Model) -> ErrorReply {
        ErrorReply::invalid(format!(
            "Unable to submit request because it has a maxOutputTokens value of {asked} but the supported range is \
             from 1 (inclusive) to {} (exclusive). Update the value and try again.",
            u64::from(most) + 1
        ))
    }

    fn refuse_violation(&self, violation: &Violation) -> ErrorReply {
        match violation {
            Violation::TooLong { tokens, max } => ErrorReply::invalid(format!(
                "The input token count ({tokens}) exceeds the maximum number of tokens allowed ({max})."
            )),
            violation => ErrorReply::invalid(violation.to_string()),
        }
    }

    fn error_body(&self, error: &ErrorReply, _request_id: &str) -> Value {
        let ErrorReply { status, message, code, retry_after, .. } = error;
        let mut body = json!({"code": status, "message": message, "status": status_word(*status)});
        let mut details = Vec::new();
        if *status == 429 {
            let quota = "GenerateContentRequestsPerMinutePerProjectPerModel";
            details.push(json!({"@type": type_url("QuotaFailure"), "violations": [{"quotaId": quota}]}));
        }
        details.extend(
            retry_after
                .map(|seconds| json!({"@type": type_url("RetryInfo"), "retryDelay": format!("{seconds}s")})),
        );
        details.extend(code.map(
            |reason| json!({"@type": type_url("ErrorInfo"), "reason": reason, "domain": "googleapis.com"}),
        ));
        if !details.is_empty() {
            body["details"] = json!(details);
        }
        json!({"error": body})
    }

    fn wrap_error(&self, request: &Request<'_>, body: Value) -> Value {
        let is_list = request.endpoint_path().ends_with(":streamGenerateContent")
            && request.query_value("alt") != Some("sse");
        if is_list { json!([body]) } else { body }
    }

    fn error_event(&self, body: &Value) -> Bytes {
        format!("data: {body}\r\n\r\n").into()
    }

    fn overload_status(&self) -> u16 {
        503
    }

    fn response_headers(&self, _request_id: String) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn rate_headers(&self, _status: &RateStatus) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn model_entry(&self, model: &Model) -> Value {
        json!({
            "name": format!("models/{}", model.id),
            "version": "001",
            "displayName": model.id,
            "inputTokenLimit": model.context,
            "outputTokenLimit": model.max_output,
            "supportedGenerationMethods": ["generateContent", "countTokens", "createCachedContent"],
            "thinking": model.reasoning,
        })
    }

    fn model_list(&self, entries: Vec<Value>) -> Value {
        json!({"models": entries})
    }

    fn count_body(&self, request: &AcceptedRequest) -> Value {
        let total = request.measured.total();
        let mut body = json!({
            "totalTokens": total,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": total}],
        });
        if let Some(cached) = request.cached_tokens {
            body["cachedContentTokenCount"] = json!(cached);
        }
        body
    }

    fn stream_content_type(&self, request: &AcceptedRequest) -> &'static str {
        if request.decoded.json_array { "application/json; charset=UTF-8" } else { "text/event-stream" }
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

/// The status word of an error.
fn status_word(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 | 405 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

fn type_url(name: &str) -> String {
    format!("type.googleapis.com/google.rpc.{name}")
}
