//! [`Codec`]: everything that belongs to one protocol alone, for clients and for servers.
//!
//! A protocol is one folder of this crate (`anthropic`, `openai_chat`, `gemini`) and one line in [`codec`].
//! Nothing else matches on [`Protocol`].

use std::fmt;
use std::time::Duration;

use hardpan_models::{Model, Protocol, ProviderProfile};
use hardpan_prompt::validate::ValidationRules;
use hardpan_prompt::{Prompt, PromptMessage};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::anthropic::AnthropicMessages;
use crate::decode::{DecodeError, DecodedRequest, RequestKind};
use crate::failure::{self, FailureReport};
use crate::gemini::GeminiGenerateContent;
use crate::openai_chat::OpenaiChat;
use crate::openai_responses::OpenaiResponses;
use crate::stream::AnswerParser;
use crate::{FailureKind, ThinkTags};

/// The codec of a protocol: the one place that knows them all.
pub fn codec(protocol: Protocol) -> &'static dyn Codec {
    match protocol {
        Protocol::Anthropic => &AnthropicMessages,
        Protocol::Openai => &OpenaiChat,
        Protocol::Gemini => &GeminiGenerateContent,
        Protocol::OpenaiResponses => &OpenaiResponses,
    }
}

/// Encodes and decodes one protocol.
///
/// Codecs have no state: what differs between the providers that speak a protocol is in their
/// [`ProviderProfile`].
pub trait Codec: fmt::Debug + Send + Sync {
    /// The path that requests are posted to, below the provider's base URL: `/messages`.
    fn request_path(&self, model: &str) -> String;

    /// The protocol's own request headers, with the API key if there is one. Names are in lower
    /// case.
    fn headers(&self, key: Option<&str>) -> Vec<(&'static str, String)>;

    /// The fields and headers of one request that its prompt does not decide. The fields are none
    /// that [`encode_body`](Self::encode_body) writes.
    fn request_extras(
        &self,
        _prompt: &Prompt,
        _profile: &ProviderProfile,
        _context: &RequestContext<'_>,
    ) -> RequestExtras {
        RequestExtras::default()
    }

    /// Encodes one message of `prompt`; it may become several in the body. Only calls that the
    /// message answers may be looked up in the prompt: the result is reused in later requests.
    fn encode_message(
        &self,
        prompt: &Prompt,
        message: &PromptMessage,
        profile: &ProviderProfile,
    ) -> Vec<Box<RawValue>>;

    /// Encodes a request body into a buffer of `capacity` bytes, which grows if needed. `context` is
    /// for what goes into a field that the prompt decides as well; anything else is an extra.
    fn encode_body(
        &self,
        prompt: &Prompt,
        profile: &ProviderProfile,
        context: &RequestContext<'_>,
        messages: BodyMessages<'_>,
        capacity: usize,
    ) -> Vec<u8>;

    /// The address of each block (tools, system, messages) in the request body, such as
    /// `messages[3].content[1]`, in this order.
    fn block_addresses(&self, prompt: &Prompt, profile: &ProviderProfile) -> Vec<String>;

    /// The field of a request body that lists the conversation's messages.
    fn messages_field(&self) -> &'static str {
        "messages"
    }

    /// The path of the provider's list of models, below its base URL. `page` is what the page
    /// before named as the next one; `None` for the first.
    fn model_list_path(&self, _page: Option<&str>) -> String {
        "/models".to_owned()
    }

    /// Parses a page of the list of models. `None` if it is none.
    fn parse_model_list(&self, body: &Value) -> Option<ModelListPage> {
        let ids = model_ids(body.get("data")?.as_array()?, "id");
        Some(ModelListPage { ids, next_page: None })
    }

    /// The rules by which the provider validates a request for a model.
    fn validation_rules(&self, profile: &ProviderProfile, model: &Model) -> ValidationRules;

    /// Parses a request as a server receives it. `path` is the one that it was posted to, below the
    /// base URL: some protocols name the model there.
    fn decode_request(
        &self,
        kind: RequestKind,
        path: &str,
        body: &[u8],
    ) -> Result<DecodedRequest, DecodeError>;

    /// The records that [`decode_request`](Self::decode_request) knows, with the fields that each may
    /// have; a record may be in several pieces. Empty where a protocol has no such table.
    fn known_fields(&self) -> &'static [(&'static str, &'static [&'static str])] {
        &[]
    }

    /// A parser for one answer. `tags`: where `<think>` tags mark reasoning, for protocols in which
    /// servers use them.
    fn answer_parser(&self, tags: ThinkTags) -> Box<dyn AnswerParser>;

    /// Extracts the error of a response that failed.
    fn parse_error_body(&self, body: &Value) -> FailureReport {
        FailureReport::from_json(body)
    }

    /// Classifies a failure. `status` is the HTTP status; `None` for an error within a stream.
    fn classify_failure(&self, status: Option<u16>, report: &FailureReport) -> FailureKind {
        failure::classify(status, report)
    }

    /// How long to wait before a retry, where the server says it in the error instead of a header.
    fn retry_delay(&self, report: &FailureReport) -> Option<Duration> {
        report.retry_after
    }
}

/// A page of a provider's list of models.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ModelListPage {
    /// The ids, as requests carry them.
    pub ids: Vec<String>,
    /// What names the next page. `None`: this is the last one.
    pub next_page: Option<String>,
}

/// The ids of listed models. Google's servers put a folder before them.
pub(crate) fn model_ids(entries: &[Value], field: &str) -> Vec<String> {
    let ids = entries.iter().filter_map(|entry| entry.get(field)?.as_str());
    ids.map(|id| id.strip_prefix("models/").unwrap_or(id).to_owned()).collect()
}

/// A value as the query of a URL carries it.
pub(crate) fn query_value(value: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let encode =
        |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    value.bytes().map(encode).collect()
}

/// What a request is sent with besides its prompt.
#[derive(Clone, Copy, Debug, Default)]
pub struct RequestContext<'a> {
    /// The provider's id of the answer before this one on the same branch. `None`: there is none.
    pub previous_answer: Option<&'a str>,
    /// Whether the request goes to the provider's own address.
    pub usual_address: bool,
    /// Whether the server has refused fields that only newer servers know.
    pub plain: bool,
    /// Whether the server has refused the fields that say how much to think, and how to show it.
    pub plain_thinking: bool,
}

/// The fields and headers of one request that its prompt does not decide.
#[derive(Clone, Debug, Default)]
pub struct RequestExtras {
    /// Top-level fields of the body.
    pub fields: Vec<(&'static str, Value)>,
    /// Headers, with names in lower case; they replace [`Codec::headers`] of the same name.
    pub headers: Vec<(&'static str, String)>,
}

/// The messages of a request body.
#[derive(Clone, Copy, Debug)]
pub enum BodyMessages<'a> {
    /// Those of the prompt, to be encoded now.
    Fresh,
    /// All results of [`Codec::encode_message`], in order.
    Encoded(&'a [&'a RawValue]),
}

/// Encodes the body of a request, byte for byte as it is sent but for what only the client knows: the
/// answer before, the session, the extra fields of the configuration.
///
/// An [`Encoder`](crate::Encoder) produces the same bytes faster: it reuses the messages of the
/// previous request.
pub fn encode(prompt: &Prompt, profile: &ProviderProfile) -> Vec<u8> {
    const INITIAL_CAPACITY: usize = 128;
    let context = RequestContext::default();
    codec(profile.protocol).encode_body(prompt, profile, &context, BodyMessages::Fresh, INITIAL_CAPACITY)
}

/// See [`Codec::block_addresses`].
pub fn block_addresses(prompt: &Prompt, profile: &ProviderProfile) -> Vec<String> {
    codec(profile.protocol).block_addresses(prompt, profile)
}

/// See [`Codec::validation_rules`].
pub fn validation_rules(profile: &ProviderProfile, model: &Model) -> ValidationRules {
    codec(profile.protocol).validation_rules(profile, model)
}
