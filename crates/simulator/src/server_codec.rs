//! [`ServerCodec`]: what a server does differently in each protocol. It is the counterpart of
//! [`hardpan_providers::Codec`], which parses the requests.
//!
//! A protocol is one folder of this crate and one line in [`server_codec`].

use std::fmt;

use bytes::Bytes;
use hardpan_economy::cache::Moment;
use hardpan_models::{Model, Protocol, ProviderProfile};
use hardpan_prompt::validate::{ValidationRules, Violation};
use hardpan_prompt::{Hash, TokenCounter};
use hardpan_providers::decode::DecodedRequest;
use serde_json::Value;

use crate::answer::SimulatedAnswer;
use crate::anthropic::AnthropicServer;
use crate::anthropic::diagnostics::Fingerprints;
use crate::anthropic::render::RenderedPrompt;
use crate::diagnostics_mode::DiagnosticsMode;
use crate::engine::{AcceptedRequest, EngineSettings, RateStatus, Request};
use crate::error_reply::ErrorReply;
use crate::gemini::GeminiServer;
use crate::openai_chat::OpenaiServer;
use crate::openai_responses::ResponsesServer;
use crate::stored::{ResponseStore, StoredResponse};
use crate::tool_choice::ToolChoice;
use crate::wire::{AnswerHead, StreamEvent};

/// The server of a protocol: the one place that knows them all.
pub fn server_codec(protocol: Protocol) -> &'static dyn ServerCodec {
    match protocol {
        Protocol::Anthropic => &AnthropicServer,
        Protocol::Openai => &OpenaiServer,
        Protocol::Gemini => &GeminiServer,
        Protocol::OpenaiResponses => &ResponsesServer,
    }
}

/// The server that a request is for: by its path, or by its headers for paths that several
/// protocols have. A request that says nothing gets the server of the default protocol.
pub fn server_for_request(request: &Request<'_>) -> &'static dyn ServerCodec {
    let servers = || Protocol::ALL.iter().map(|protocol| server_codec(*protocol));
    let endpoint = |server: &&'static dyn ServerCodec| server.endpoint(request.endpoint_path());
    // `models/NAME:generateContent` could be a model whose name has a colon, but nothing is posted
    // there.
    let takes = |server: &&'static dyn ServerCodec| {
        endpoint(server).is_some_and(|endpoint| endpoint.methods().contains(&request.method))
    };
    let by_path: Vec<&dyn ServerCodec> = servers().filter(|server| endpoint(server).is_some()).collect();
    let by_method: Vec<&dyn ServerCodec> = servers().filter(takes).collect();
    match (&by_path[..], &by_method[..]) {
        ([only], _) | (_, [only]) => *only,
        _ => servers()
            .find(|server| server.has_headers(request))
            .unwrap_or_else(|| server_codec(Protocol::default())),
    }
}

/// What a path addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Endpoint {
    /// An answer of the model.
    Answer,
    /// The number of a request's tokens.
    Count,
    /// All models, or the one with this id.
    Models(Option<String>),
    /// All stored contents, or the one with this id (Gemini).
    CachedContents(Option<String>),
    /// A shorter form of a conversation.
    Compact,
    /// A stored answer, by its id.
    Stored(String, StoredPart),
}

/// What is asked of a stored answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredPart {
    /// The answer itself, or its deletion.
    Response,
    /// The items of its request.
    InputItems,
    /// That it ends.
    Cancellation,
}

impl Endpoint {
    /// The endpoint `models`, which all protocols have.
    pub fn of_models(path: &str) -> Option<Self> {
        match path.strip_prefix("models")? {
            "" => Some(Endpoint::Models(None)),
            rest => Some(Endpoint::Models(Some(rest.strip_prefix('/')?.to_owned()))),
        }
    }

    /// The HTTP methods that it takes.
    pub fn methods(&self) -> &'static [&'static str] {
        match self {
            Endpoint::Answer | Endpoint::Count | Endpoint::Compact => &["POST"],
            Endpoint::Stored(_, StoredPart::Cancellation) => &["POST"],
            Endpoint::Models(_) | Endpoint::Stored(_, StoredPart::InputItems) => &["GET"],
            Endpoint::Stored(_, StoredPart::Response) => &["GET", "DELETE"],
            Endpoint::CachedContents(None) => &["GET", "POST"],
            Endpoint::CachedContents(Some(_)) => &["GET", "PATCH", "DELETE"],
        }
    }
}

/// The server's side of a protocol.
pub trait ServerCodec: fmt::Debug + Sync {
    /// The protocol that it serves.
    fn protocol(&self) -> Protocol;

    /// What a path addresses, which has neither `/v1/` nor `/v1beta/` nor a query. `None` if it is not a path of
    /// this protocol.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;

    /// Whether the request has headers that only clients of this protocol send.
    fn has_headers(&self, request: &Request<'_>) -> bool;

    /// The provider whose models are meant by names that name no provider.
    fn usual_provider<'a>(&self, settings: &'a EngineSettings) -> &'a str;

    /// The request's API key.
    fn api_key<'a>(&self, request: &Request<'a>) -> Option<&'a str>;

    /// The error for a key that is missing or not accepted.
    fn refuse_key(&self, key: Option<&str>) -> ErrorReply;

    /// Checks headers other than the key.
    fn check_headers(&self, _request: &Request<'_>) -> Result<(), ErrorReply> {
        Ok(())
    }

    /// Adds to a decoded request what its headers say.
    fn read_headers(
        &self,
        _request: &Request<'_>,
        _decoded: &mut DecodedRequest,
        _settings: &EngineSettings,
    ) -> Result<(), ErrorReply> {
        Ok(())
    }

    /// Checks fields whose rules depend on the model.
    fn check_fields(
        &self,
        _decoded: &DecodedRequest,
        _model: &Model,
        _profile: &ProviderProfile,
    ) -> Result<(), ErrorReply> {
        Ok(())
    }

    /// Changes the validator's rules for this request.
    fn adjust_rules(&self, _rules: &mut ValidationRules, _decoded: &DecodedRequest, _choice: &ToolChoice) {}

    /// Whether the server lets a violation of the validator's rules pass.
    fn permits(&self, _violation: &Violation, _decoded: &DecodedRequest) -> bool {
        false
    }

    /// What the model sees of a request that passed its checks.
    fn render(
        &self,
        decoded: &DecodedRequest,
        _model: &Model,
        _settings: &EngineSettings,
        _counter: &TokenCounter,
    ) -> Result<RenderedPrompt, ErrorReply> {
        Ok(RenderedPrompt { prompt: decoded.prompt.clone(), ..RenderedPrompt::default() })
    }

    /// Checks what only this server checks, after the rules that all have.
    fn check_own_rules(
        &self,
        _decoded: &DecodedRequest,
        _model: &Model,
        _choice: &ToolChoice,
        _settings: &EngineSettings,
    ) -> Result<(), ErrorReply> {
        Ok(())
    }

    /// The body with everything in it that it refers to. `None`: it refers to nothing.
    fn resolve_references(
        &self,
        _decoded: &DecodedRequest,
        _body: &[u8],
        _store: &ResponseStore,
        _owner: Hash,
        _now: Moment,
    ) -> Result<Option<Vec<u8>>, ErrorReply> {
        Ok(None)
    }

    /// Checks items against what was sent before.
    fn check_references(&self, _decoded: &DecodedRequest, _store: &ResponseStore) -> Result<(), ErrorReply> {
        Ok(())
    }

    /// Whether the request asks for a shorter form of its conversation, not for an answer.
    fn compacts(&self, _endpoint: &Endpoint, _decoded: &DecodedRequest) -> bool {
        false
    }

    /// Whether the answer includes reasoning.
    fn has_reasoning(&self, request: &AcceptedRequest) -> bool;

    /// Reasoning for an answer whose script has none, if the model reasons before every answer.
    fn made_up_reasoning(&self, _request: &AcceptedRequest, _settings: &EngineSettings) -> Option<String> {
        None
    }

    /// Why the request missed the cache, where it asks; `null` where there is nothing to say.
    fn diagnose(
        &self,
        _request: &AcceptedRequest,
        _number: u64,
        _now: Moment,
        _fingerprints: &mut Fingerprints,
        _settings: &EngineSettings,
    ) -> Value {
        Value::Null
    }

    /// The error for a model that does not exist.
    fn refuse_model(&self, name: &str) -> ErrorReply;

    /// The error for a limit of `asked` answer tokens, where the model gives at most `most`.
    fn refuse_output_limit(&self, asked: u32, most: u32, model: &Model) -> ErrorReply;

    /// The error for a violated rule of the validator.
    fn refuse_violation(&self, violation: &Violation) -> ErrorReply;

    /// The JSON body of an error.
    fn error_body(&self, error: &ErrorReply, request_id: &str) -> Value;

    /// An error body as the response to this request has it.
    fn wrap_error(&self, _request: &Request<'_>, body: Value) -> Value {
        body
    }

    /// An error in the middle of a stream.
    fn error_event(&self, body: &Value) -> Bytes;

    /// The HTTP status of an overloaded server.
    fn overload_status(&self) -> u16;

    /// Headers of every response.
    fn response_headers(&self, request_id: String) -> Vec<(&'static str, String)>;

    /// The headers that report rate limits.
    fn rate_headers(&self, status: &RateStatus) -> Vec<(&'static str, String)>;

    /// One model in a listing. The catalogue does not know creation dates: they are 1970.
    fn model_entry(&self, model: &Model) -> Value;

    /// The listing of all models.
    fn model_list(&self, entries: Vec<Value>) -> Value;

    /// The answer to a request for its number of tokens.
    fn count_body(&self, request: &AcceptedRequest) -> Value {
        serde_json::json!({"input_tokens": request.measured.total()})
    }

    /// The content type of a streamed answer.
    fn stream_content_type(&self, _request: &AcceptedRequest) -> &'static str {
        "text/event-stream; charset=utf-8"
    }

    /// Keeps what later requests may refer to.
    fn store_answer(
        &self,
        _request: &AcceptedRequest,
        _answer: &SimulatedAnswer,
        _head: &AnswerHead,
        _owner: Hash,
        _store: &mut ResponseStore,
    ) {
    }

    /// Why the request did not reuse the cache of one that it names; `null` where it names none.
    fn compare_caches(
        &self,
        _request: &AcceptedRequest,
        head: &AnswerHead,
        _owner: Hash,
        _now: Moment,
        _store: &mut ResponseStore,
        _mode: DiagnosticsMode,
    ) -> Value {
        head.diagnostics.clone()
    }

    /// What a request for a stored answer gets.
    fn stored_body(&self, _stored: &StoredResponse, _part: StoredPart) -> Result<Value, ErrorReply> {
        Err(ErrorReply::new(404, "this server stores nothing"))
    }

    /// An answer that is not streamed.
    fn answer_body(&self, request: &AcceptedRequest, answer: &SimulatedAnswer, head: &AnswerHead) -> Value;

    /// A streamed answer.
    fn answer_events(
        &self,
        request: &AcceptedRequest,
        answer: &SimulatedAnswer,
        head: &AnswerHead,
    ) -> Vec<StreamEvent>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_of_gemini_is_told_from_a_model_whose_name_has_a_colon() {
        let server = |method, path| {
            let request = Request { method, path, headers: &[], body: b"" };
            server_for_request(&request).protocol()
        };
        let path = "/v1/models/gemini-3.8-flash:streamGenerateContent";
        assert_eq!(server("POST", path), Protocol::Gemini, "although no header names the protocol");
        assert_eq!(server("GET", "/v1/models/qwen3:8b"), Protocol::default());
        assert_eq!(server("POST", "/v1/messages"), Protocol::Anthropic);
    }
}
