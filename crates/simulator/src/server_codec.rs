//! [`ServerCodec`]: what a server does differently in each protocol. It is the counterpart of
//! [`hardpan_providers::Codec`], which parses the requests.
//!
//! A protocol is one folder of this crate and one line in [`server_codec`].

use std::fmt;

use bytes::Bytes;
use hardpan_economy::cache::Moment;
use hardpan_models::{Model, Protocol, ProviderProfile};
use hardpan_prompt::TokenCounter;
use hardpan_prompt::validate::{ValidationRules, Violation};
use hardpan_providers::decode::DecodedRequest;
use serde_json::Value;

use crate::answer::SimulatedAnswer;
use crate::anthropic::AnthropicServer;
use crate::anthropic::diagnostics::Fingerprints;
use crate::anthropic::render::RenderedPrompt;
use crate::engine::{AcceptedRequest, EngineSettings, RateStatus, Request};
use crate::error_reply::ErrorReply;
use crate::gemini::GeminiServer;
use crate::openai_chat::OpenaiServer;
use crate::tool_choice::ToolChoice;
use crate::wire::{AnswerHead, StreamEvent};

/// The server of a protocol: the one place that knows them all.
pub fn server_codec(protocol: Protocol) -> &'static dyn ServerCodec {
    match protocol {
        Protocol::Anthropic => &AnthropicServer,
        Protocol::Openai => &OpenaiServer,
        Protocol::Gemini => &GeminiServer,
    }
}

/// The server that a request is for: by its path, or by its headers for paths that several
/// protocols have. A request that says nothing gets the server of the default protocol.
pub fn server_for_request(request: &Request<'_>) -> &'static dyn ServerCodec {
    let servers = || Protocol::ALL.iter().map(|protocol| server_codec(*protocol));
    let mut by_path = servers().filter(|server| server.endpoint(request.endpoint_path()).is_some());
    match (by_path.next(), by_path.next()) {
        (Some(only), None) => only,
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
            Endpoint::Answer | Endpoint::Count => &["POST"],
            Endpoint::Models(_) => &["GET"],
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
