//! [`ResponsesServer`]: a server of OpenAI's Responses API.

mod answers; // encodes answers, whole or as events
mod checks; // what depends on the model, and on what was sent before
pub(crate) mod diagnostics; // ComparisonRecords: why a request did not find the cache of an earlier one
mod output; // the items of an answer
mod references; // stored answers and items, put in place of their ids
mod response; // the response object, with the request's effective values
mod seal; // encrypted content

use bytes::Bytes;
use hardpan_economy::cache::Moment;
use hardpan_models::{Model, Protocol, ProviderProfile};
use hardpan_prompt::Hash;
use hardpan_prompt::validate::{ValidationRules, Violation};
use hardpan_providers::decode::DecodedRequest;
use serde_json::{Value, json};

use crate::answer::SimulatedAnswer;
use crate::diagnostics_mode::DiagnosticsMode;
use crate::engine::{AcceptedRequest, EngineSettings, RateStatus, Request, SignatureCheck};
use crate::error_reply::ErrorReply;
use crate::openai_chat::OpenaiServer;
use crate::server_codec::{Endpoint, ServerCodec, StoredPart};
use crate::stored::{ResponseStore, StoredResponse};
use crate::tool_choice::ToolChoice;
use crate::wire::{AnswerHead, StreamEvent};

/// A server of OpenAI's Responses API.
#[derive(Debug)]
pub struct ResponsesServer;

impl ServerCodec for ResponsesServer {
    fn protocol(&self) -> Protocol {
        Protocol::OpenaiResponses
    }

    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        let path = path.strip_prefix("responses")?;
        let mut parts = path.strip_prefix('/').map(|path| path.split('/')).into_iter().flatten();
        let endpoint = match (parts.next(), parts.next()) {
            (None, _) if path.is_empty() => Endpoint::Answer,
            (Some("input_tokens"), None) => Endpoint::Count,
            (Some("compact"), None) => Endpoint::Compact,
            (Some(id), None) => Endpoint::Stored(id.to_owned(), StoredPart::Response),
            (Some(id), Some("input_items")) => Endpoint::Stored(id.to_owned(), StoredPart::InputItems),
            (Some(id), Some("cancel")) => Endpoint::Stored(id.to_owned(), StoredPart::Cancellation),
            _ => return None,
        };
        parts.next().is_none().then_some(endpoint)
    }

    /// No header is its own: other servers take a bearer token, too.
    fn has_headers(&self, _request: &Request<'_>) -> bool {
        false
    }

    fn usual_provider<'a>(&self, settings: &'a EngineSettings) -> &'a str {
        OpenaiServer.usual_provider(settings)
    }

    fn api_key<'a>(&self, request: &Request<'a>) -> Option<&'a str> {
        request.bearer_token()
    }

    fn refuse_key(&self, key: Option<&str>) -> ErrorReply {
        OpenaiServer.refuse_key(key)
    }

    fn check_fields(
        &self,
        decoded: &DecodedRequest,
        model: &Model,
        profile: &ProviderProfile,
    ) -> Result<(), ErrorReply> {
        checks::check_fields(decoded, model, profile)
    }

    fn adjust_rules(&self, rules: &mut ValidationRules, _decoded: &DecodedRequest, _choice: &ToolChoice) {
        rules.max_breakpoints = None; // only the latest are written
    }

    fn check_own_rules(
        &self,
        decoded: &DecodedRequest,
        _model: &Model,
        _choice: &ToolChoice,
        settings: &EngineSettings,
    ) -> Result<(), ErrorReply> {
        match settings.signatures {
            SignatureCheck::Checked => checks::check_seals(decoded),
            SignatureCheck::Unchecked => Ok(()),
        }
    }

    fn resolve_references(
        &self,
        decoded: &DecodedRequest,
        body: &[u8],
        store: &ResponseStore,
        owner: Hash,
        _now: Moment,
    ) -> Result<Option<Vec<u8>>, ErrorReply> {
        references::resolve(decoded, body, store, owner)
    }

    fn check_references(&self, decoded: &DecodedRequest, store: &ResponseStore) -> Result<(), ErrorReply> {
        checks::check_references(decoded, store)
    }

    fn compacts(&self, endpoint: &Endpoint, decoded: &DecodedRequest) -> bool {
        let is_trigger = |item: &Value| item["type"] == "compaction_trigger";
        *endpoint == Endpoint::Compact || decoded.items.last().is_some_and(|item| is_trigger(&item.value()))
    }

    fn has_reasoning(&self, request: &AcceptedRequest) -> bool {
        request.model.reasoning && !checks::is_without_reasoning(&request.decoded, &request.model)
    }

    fn refuse_model(&self, name: &str) -> ErrorReply {
        let message = format!("The requested model '{name}' does not exist.");
        ErrorReply::invalid(message).with_code("model_not_found").with_param("model")
    }

    fn refuse_output_limit(&self, asked: u32, most: u32, _model: &Model) -> ErrorReply {
        let message = format!(
            "Invalid 'max_output_tokens': integer above maximum value. Expected a value <= {most}, but got {asked} instead."
        );
        ErrorReply::invalid(message).with_code("integer_above_max_value").with_param("max_output_tokens")
    }

    fn refuse_violation(&self, violation: &Violation) -> ErrorReply {
        match violation {
            Violation::TooLarge { .. } => ErrorReply::new(413, violation.to_string()),
            Violation::TooLong { .. } => ErrorReply::invalid(
                "Your input exceeds the context window of this model. Please adjust your input and try again.",
            )
            .with_code("context_length_exceeded")
            .with_param("input"),
            _ => ErrorReply::invalid(violation.to_string()).with_param("input"),
        }
    }

    fn error_body(&self, error: &ErrorReply, request_id: &str) -> Value {
        let mut body = OpenaiServer.error_body(error, request_id);
        match (error.status, error.retry_after) {
            (429, Some(seconds)) => {
                let message = format!("{}. Please try again in {seconds}s.", error.message);
                body["error"]["message"] = json!(message);
            }
            (503, _) if error.code.is_none() => body["error"]["code"] = json!("server_is_overloaded"),
            _ => {}
        }
        body
    }

    /// First the error, then the response that failed by it.
    fn error_event(&self, body: &Value) -> Bytes {
        let error = &body["error"];
        let event = json!({"type": "error", "sequence_number": 0, "error": error});
        let response = json!({"object": "response", "status": "failed", "output": [], "error": {
            "code": error["code"].as_str().unwrap_or("server_error"), "message": error["message"],
        }});
        let failed = json!({"type": "response.failed", "sequence_number": 1, "response": response});
        format!("event: error\ndata: {event}\n\nevent: response.failed\ndata: {failed}\n\n").into()
    }

    fn overload_status(&self) -> u16 {
        503
    }

    fn response_headers(&self, request_id: String) -> Vec<(&'static str, String)> {
        OpenaiServer.response_headers(request_id)
    }

    fn rate_headers(&self, status: &RateStatus) -> Vec<(&'static str, String)> {
        OpenaiServer.rate_headers(status)
    }

    fn model_entry(&self, model: &Model) -> Value {
        OpenaiServer.model_entry(model)
    }

    fn model_list(&self, entries: Vec<Value>) -> Value {
        OpenaiServer.model_list(entries)
    }

    fn count_body(&self, request: &AcceptedRequest) -> Value {
        json!({"object": "response.input_tokens", "input_tokens": request.measured.total()})
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

    fn store_answer(
        &self,
        request: &AcceptedRequest,
        answer: &SimulatedAnswer,
        head: &AnswerHead,
        owner: Hash,
        store: &mut ResponseStore,
    ) {
        references::store_answer(request, answers::final_response(request, answer, head), owner, store);
    }

    fn compare_caches(
        &self,
        request: &AcceptedRequest,
        head: &AnswerHead,
        owner: Hash,
        now: Moment,
        store: &mut ResponseStore,
        mode: DiagnosticsMode,
    ) -> Value {
        store.comparisons.compare(request, head, owner, now, mode)
    }

    fn stored_body(&self, stored: &StoredResponse, part: StoredPart) -> Result<Value, ErrorReply> {
        references::stored_body(stored, part)
    }
}
