//! [`AnthropicServer`]: a server of Anthropic Messages.

mod answers; // encodes answers, whole or as events
mod binding; // which thinking blocks of a request still count
pub(crate) mod diagnostics; // Fingerprints: why a request missed the cache
mod models; // what the `models` endpoint says
pub(crate) mod render; // RenderedPrompt: what the model sees of a request
pub mod rules; // RULES: what the server refuses, one row per rule
mod settings; // AnthropicSettings: what differs between accounts
mod signature; // Signature: what a thinking block is bound to
mod thinking; // whether the model thinks, how long, and what is shown
pub(crate) mod threads; // Threads: conversations that the server keeps
mod web_search; // the server's own search

use bytes::Bytes;
use hardpan_economy::cache::Moment;
use hardpan_models::{Model, Protocol, ProviderProfile};
use hardpan_prompt::validate::{Acceptance, Location, MAX_BREAKPOINTS, ValidationRules, Violation};
use hardpan_prompt::{Hash, Role, TokenCounter};
use hardpan_providers::decode::{ApiVersion, DecodedRequest, SpecialBlock, betas};
use serde_json::{Value, json};

pub use settings::{
    Account, AdaptiveThinking, AnthropicSettings, BetaPolicy, KnownFields, ThinkingCacheScope,
};

use binding::{ThinkingCheck, check_thinking};
use diagnostics::Fingerprints;
use render::RenderedPrompt;
use rules::{RuleInput, check_rules, ends_with_server_tool};

use crate::answer::SimulatedAnswer;
use crate::engine::{AcceptedRequest, EngineSettings, RateStatus, Request, SignatureCheck};
use crate::error_reply::ErrorReply;
use crate::server_codec::{Endpoint, ServerCodec};
use crate::stored::ResponseStore;
use crate::tool_choice::ToolChoice;
use crate::wire::{AnswerHead, StreamEvent, make_id};

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
        let version = request.header("anthropic-version").ok_or_else(missing)?;
        let unknown =
            || ErrorReply::invalid(format!("anthropic-version: \"{version}\" is not a valid version"));
        parse_version(version).map(drop).ok_or_else(unknown)
    }

    fn read_headers(
        &self,
        request: &Request<'_>,
        decoded: &mut DecodedRequest,
        settings: &EngineSettings,
    ) -> Result<(), ErrorReply> {
        let fields = &mut decoded.anthropic;
        fields.version = request.header("anthropic-version").and_then(parse_version).unwrap_or_default();
        let lines = request.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("anthropic-beta"));
        let names = lines.flat_map(|(_, value)| value.split(',')).map(str::trim);
        fields.betas = names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
        let is_unknown = |name: &&String| !betas::KNOWN.contains(&name.as_str());
        match fields.betas.iter().find(is_unknown) {
            Some(name) if settings.anthropic.betas == BetaPolicy::Known => Err(ErrorReply::invalid(format!(
                "Unexpected value(s) `{name}` for the `anthropic-beta` header"
            ))),
            _ => Ok(()),
        }
    }

    fn check_fields(
        &self,
        decoded: &DecodedRequest,
        model: &Model,
        _profile: &ProviderProfile,
    ) -> Result<(), ErrorReply> {
        let choice = &ToolChoice::from_request(decoded);
        check_rules(&RuleInput { decoded, model, choice })
    }

    fn adjust_rules(&self, rules: &mut ValidationRules, decoded: &DecodedRequest, choice: &ToolChoice) {
        let answers = decoded.stream
            || decoded.prompt.thinking.budget().is_some()
            || decoded.anthropic.output_config.contains_key("format")
            || choice.is_forced();
        if !answers {
            rules.warming = Acceptance::Accepted;
        }
    }

    fn permits(&self, violation: &Violation, decoded: &DecodedRequest) -> bool {
        let special = |at| decoded.anthropic.special_blocks.get(&at);
        match violation {
            // An answer that ends with a tool of the server is sent back as it is.
            Violation::Prefill { at: Location::Message(message) } => ends_with_server_tool(decoded, *message),
            Violation::SystemMessageAfterAnswer { at: Location::Message(message) } => {
                let before = decoded.prompt.messages[..*message].iter();
                let answer = before.clone().rposition(|message| message.role == Role::Assistant);
                answer.is_some_and(|answer| ends_with_server_tool(decoded, answer))
            }
            Violation::FirstNotUser => special((0, 0)) == Some(&SpecialBlock::SignedCompaction),
            _ => false,
        }
    }

    fn check_own_rules(
        &self,
        decoded: &DecodedRequest,
        _model: &Model,
        _choice: &ToolChoice,
        settings: &EngineSettings,
    ) -> Result<(), ErrorReply> {
        if settings.anthropic.fields == KnownFields::Older {
            check_older_fields(decoded)?;
        }
        check_automatic_cache(decoded)
    }

    fn resolve_references(
        &self,
        decoded: &DecodedRequest,
        body: &[u8],
        store: &ResponseStore,
        owner: Hash,
        now: Moment,
    ) -> Result<Option<Vec<u8>>, ErrorReply> {
        store.threads.resolve(decoded, body, owner, now.0.div_euclid(1000))
    }

    fn store_answer(
        &self,
        request: &AcceptedRequest,
        answer: &SimulatedAnswer,
        head: &AnswerHead,
        owner: Hash,
        store: &mut ResponseStore,
    ) {
        if request.decoded.anthropic.conversation.is_some() {
            let content = &answers::answer_body(request, answer, head)["content"];
            store.threads.keep(&request.decoded, message_id(head.number), content, owner, head.created);
        }
    }

    fn render(
        &self,
        decoded: &DecodedRequest,
        model: &Model,
        settings: &EngineSettings,
        counter: &TokenCounter,
    ) -> Result<RenderedPrompt, ErrorReply> {
        let thinking = match settings.signatures {
            SignatureCheck::Checked => {
                check_thinking(decoded, model, &settings.anthropic, &settings.catalogue)?
            }
            SignatureCheck::Unchecked => ThinkingCheck::default(),
        };
        Ok(render::render(decoded, model, thinking, counter))
    }

    fn has_reasoning(&self, request: &AcceptedRequest) -> bool {
        thinking::thinks(&request.decoded, &request.model, &request.choice)
    }

    fn made_up_reasoning(&self, request: &AcceptedRequest, settings: &EngineSettings) -> Option<String> {
        let AcceptedRequest { decoded, model, .. } = request;
        let must = thinking::must_think(decoded, model);
        let does = must || settings.anthropic.adaptive_thinking == AdaptiveThinking::Always;
        (does && self.has_reasoning(request)).then(|| thinking::made_up_thinking(decoded, model))
    }

    fn diagnose(
        &self,
        request: &AcceptedRequest,
        number: u64,
        now: Moment,
        fingerprints: &mut Fingerprints,
        settings: &EngineSettings,
    ) -> Value {
        fingerprints.diagnose(request, &message_id(number), now, settings.diagnostics)
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
            402 => "billing_error",
            403 => "permission_error",
            404 => "not_found_error",
            409 => "conflict_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            504 => "timeout_error",
            529 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        let mut body = json!({"type": kind, "message": error.message});
        if let Some(code) = error.code {
            body["details"] = json!({"error_code": code});
        }
        json!({"type": "error", "error": body, "request_id": request_id})
    }

    fn error_event(&self, body: &Value) -> Bytes {
        format!("event: error\ndata: {body}\n\n").into()
    }

    fn overload_status(&self) -> u16 {
        529
    }

    fn response_headers(&self, request_id: String) -> Vec<(&'static str, String)> {
        vec![
            ("request-id", request_id),
            ("anthropic-organization-id", "simulated".into()),
            ("anthropic-workspace-id", "simulated".into()),
        ]
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
        models::model_entry(model)
    }

    fn model_list(&self, entries: Vec<Value>) -> Value {
        let id = |entry: Option<&Value>| entry.map(|entry| entry["id"].clone());
        let (first, last) = (id(entries.first()), id(entries.last()));
        json!({"data": entries, "has_more": false, "first_id": first, "last_id": last})
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

fn parse_version(header: &str) -> Option<ApiVersion> {
    ApiVersion::ALL.into_iter().find(|version| version.as_str() == header)
}

/// The id of the answer to the request with this number.
fn message_id(number: u64) -> String {
    make_id("msg_", number, 0)
}

/// Refuses what a server of 2025 does not know.
fn check_older_fields(decoded: &DecodedRequest) -> Result<(), ErrorReply> {
    let (prompt, fields) = (&decoded.prompt, &decoded.anthropic);
    let extra = |path: &str| Err(ErrorReply::invalid(format!("{path}: Extra inputs are not permitted")));
    match () {
        () if fields.diagnostics.is_some() => extra("diagnostics"),
        () if prompt.messages.iter().any(|message| message.role == Role::System) => {
            let message = "messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, not \"system\" as an input message role.";
            Err(ErrorReply::invalid(message))
        }
        () if prompt.effort.is_some() || !fields.output_config.is_empty() => extra("output_config"),
        () if fields.mismatch.is_some() => extra("thinking.adaptive.block_binding"),
        () if fields.display.is_some() => extra("thinking.adaptive.display"),
        () => Ok(()),
    }
}

/// `cache_control` on the request marks the last block, which counts towards the limit. It does
/// nothing if that block has the same marker, and must not contradict it.
fn check_automatic_cache(decoded: &DecodedRequest) -> Result<(), ErrorReply> {
    let Some(lifetime) = decoded.automatic_cache else { return Ok(()) };
    let last = decoded.prompt.messages.iter().rev().filter(|message| !message.turn_scoped);
    let last = last.flat_map(|message| message.blocks.iter().rev()).find(|block| block.can_hold_breakpoint());
    match last.and_then(|block| block.breakpoint) {
        Some(marker) if marker == lifetime => Ok(()),
        Some(_) => {
            Err(ErrorReply::invalid("cache_control: the last block already has a marker with another ttl"))
        }
        None => {
            let found = decoded.prompt.breakpoints().len() + 1;
            if found <= MAX_BREAKPOINTS {
                return Ok(());
            }
            let at = Location::Message(0);
            Err(AnthropicServer.refuse_violation(&Violation::TooManyBreakpoints { at, found }))
        }
    }
}
