//! [`Client`] sends a prompt and reads the answer, with retries, downgrades and an idle timeout.
//!
//! There is no background task: the caller polls the [`AnswerStream`] that [`Client::send`]
//! returns, and dropping it cancels the request, the wait before a retry, and the response.

mod answer_stream; // AnswerStream: an answer while it comes
mod attempts; // Attempts: sends a request until it is answered
mod backoff; // how long to wait before a retry
mod capabilities; // CapabilityCache: features that models have refused
mod model_list; // the models that the provider itself lists
mod notice; // ClientNotice: what happened besides the answer
mod prepared; // PreparedRequest: what would be sent, to be looked at
mod response_reader; // ResponseReader: decodes the response to one attempt

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hardpan_models::ProviderProfile;
use hardpan_prompt::Prompt;
use serde_json::Value;
use tokio::sync::Notify;

pub use self::answer_stream::{AnswerStream, ClientEvent, ResponseHead};
use self::attempts::Attempts;
use self::capabilities::Downgrades;
pub use self::capabilities::{CapabilityCache, KnownRefusals, UnsupportedFeature};
pub use self::model_list::ModelListError;
pub use self::notice::ClientNotice;
pub use self::prepared::PreparedRequest;
use crate::codec::{RequestContext, codec};
use crate::{Encoder, FailureKind, HttpMethod, HttpRequest, ProviderError, Transport, mask_url};

/// An API key. It cannot be printed: `Debug` masks it, and there is no `Display`.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key, without the white space around it.
    pub fn new(key: &str) -> Self {
        ApiKey(key.trim().to_owned())
    }

    /// The key as the value of the header `authorization`.
    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(•••)")
    }
}

/// Where requests go, and the provider-specific fields that go with them.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// The base URL, such as `https://api.anthropic.com/v1`; the protocol's path is appended.
    pub base_url: String,
    /// `None` for providers that need no key, such as a local server.
    pub key: Option<ApiKey>,
    /// Additional headers; they replace the standard ones of the same name.
    pub headers: Vec<(String, String)>,
    /// Additional top-level fields of the request body; they replace those of the same name.
    pub extra_fields: serde_json::Map<String, Value>,
    /// The conversation's id, sent to providers that route requests of one session to one cache.
    pub session: Option<String>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("Endpoint")
            .field("base_url", &mask_url(&self.base_url))
            .field("key", &self.key)
            .field("headers", &names)
            .field("session", &self.session)
            .finish_non_exhaustive()
    }
}

/// How often and how long to retry, and how long to wait for bytes.
#[derive(Clone, Copy, Debug)]
pub struct RetryPolicy {
    /// The maximum number of attempts, including the first.
    pub tries: u32,
    /// The wait before the second attempt; it doubles with each further one.
    pub first_wait: Duration,
    /// The maximum wait. If the provider asks for more (`retry-after`), the request fails instead.
    pub longest_wait: Duration,
    /// How long to wait for the next bytes before the answer counts as stalled.
    pub silence: Duration,
    /// How long an answer may go on without a word of the model: comments, pings and empty events
    /// do not count. Long, because some models think without showing it.
    pub progress: Duration,
    /// The longest time that one answer may take.
    pub longest_answer: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            tries: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            silence: Duration::from_secs(120),
            progress: Duration::from_secs(15 * 60),
            longest_answer: Duration::from_secs(2 * 3600),
        }
    }
}

/// Rewrites a prompt for models that lack a feature. The caller implements it, because the
/// rewritten prompt contains texts that this crate does not know.
pub trait PromptFallbacks: Send + Sync {
    /// The prompt without tool declarations, calls and results, for a model without tool support.
    fn without_tools(&self, prompt: &Prompt) -> Prompt;
    /// The prompt with texts in place of images, for a model without vision.
    fn without_images(&self, prompt: &Prompt) -> Prompt;
    /// The prompt without what only newer servers know: system messages inside the conversation,
    /// controls of bound reasoning.
    fn without_newer_fields(&self, prompt: &Prompt) -> Prompt;
}

/// Everything that [`Client::send`] needs for one request.
#[derive(Clone, Copy)]
pub struct ClientRequest<'a> {
    /// The prompt in its full form; the client asks `fallbacks` for others if it must.
    pub prompt: &'a Prompt,
    /// The protocol and quirks of the provider, resolved for the prompt's model.
    pub profile: &'a ProviderProfile,
    /// The provider's id in the catalogue, such as `anthropic`; part of the key of the capability
    /// cache.
    pub provider: &'a str,
    /// Makes the prompt without tools or images if the model refuses them.
    pub fallbacks: &'a dyn PromptFallbacks,
    /// The provider's id of the answer before this one on the same branch of the conversation, for
    /// providers that compare requests. `None`: there is none.
    pub previous_answer: Option<&'a str>,
    /// The current time in milliseconds since 1970, to expire what the capability cache knows.
    pub now_ms: i64,
}

/// Sends prompts to one provider and reads the answers.
pub struct Client {
    transport: Arc<dyn Transport>,
    endpoint: Endpoint,
    retry: RetryPolicy,
    capabilities: Arc<CapabilityCache>,
    encoder: Encoder,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client that sends through `transport`. It records features that models refuse in
    /// `capabilities`, so that later requests leave them out from the start.
    pub fn new(
        transport: Arc<dyn Transport>,
        endpoint: Endpoint,
        retry: RetryPolicy,
        capabilities: Arc<CapabilityCache>,
    ) -> Self {
        Client { transport, endpoint, retry, capabilities, encoder: Encoder::default() }
    }

    /// Sends a request. Nothing happens before the stream is polled.
    ///
    /// ```no_run
    /// use hardpan_providers::{Answer, AnswerEvent, Client, ClientEvent, ClientRequest, ProviderError};
    ///
    /// async fn print_answer(client: &Client, request: ClientRequest<'_>) -> Result<Answer, ProviderError> {
    ///     let mut stream = client.send(request);
    ///     while let Some(event) = stream.next_event().await {
    ///         match event? {
    ///             ClientEvent::Answer(AnswerEvent::Text(text)) => print!("{text}"),
    ///             ClientEvent::Answer(_) | ClientEvent::Accepted(_) => {}
    ///             ClientEvent::Notice(notice) => eprintln!("{notice}"),
    ///         }
    ///     }
    ///     Ok(stream.into_answer())
    /// }
    /// ```
    pub fn send<'a>(&'a self, request: ClientRequest<'a>) -> AnswerStream<'a> {
        self.send_as(request, None)
    }

    /// Sends a request with another body than [`Client::prepare`] makes for it. Should the server refuse
    /// something, the request goes on with its own prompt.
    pub fn send_as<'a>(&'a self, request: ClientRequest<'a>, body: Option<Bytes>) -> AnswerStream<'a> {
        let send_now = Arc::new(Notify::new());
        AnswerStream::new(Attempts::new(self, request, body, send_now.clone()).into_stream(), send_now)
    }

    /// Builds the HTTP request: URL, headers, body.
    fn build_request(&self, request: &AttemptRequest<'_>) -> Result<HttpRequest, ProviderError> {
        let AttemptRequest { prompt, profile, previous_answer, downgrades, body } = *request;
        let Endpoint { base_url, extra_fields, session, .. } = &self.endpoint;
        let codec = codec(profile.protocol);
        let context = RequestContext {
            previous_answer,
            usual_address: *base_url == profile.base_url,
            plain: downgrades.without_newer_fields,
            plain_thinking: downgrades.without_thinking_fields,
        };
        let extras = codec.request_extras(prompt, profile, &context);
        let url = self.url(&codec.request_path(&prompt.model));
        let headers = self.headers(profile, extras.headers);
        let mut extra_fields = extra_fields.clone();
        if let (Some(field), Some(session)) = (&profile.session_field, session) {
            extra_fields.entry(field.clone()).or_insert_with(|| session_key(session).into());
        }
        if downgrades.without_streaming {
            extra_fields.insert("stream".into(), false.into());
        }
        let body = match body {
            Some(body) => body.clone(),
            None => {
                let body = self.encoder.encode_in_context(prompt, profile, &context);
                merge_extra_fields(append_fields(body, &extras.fields), extra_fields)?
            }
        };
        Ok(HttpRequest { method: HttpMethod::Post, url, headers, body })
    }

    /// Whose refusals count: the provider's, or those of the server that stands in for it at
    /// another address.
    fn server_name<'a>(&self, provider: &'a str, profile: &ProviderProfile) -> Cow<'a, str> {
        let Endpoint { base_url, .. } = &self.endpoint;
        if *base_url == profile.base_url {
            return Cow::Borrowed(provider);
        }
        let masked = mask_url(base_url);
        let host = masked.split_once("://").map_or(masked.as_str(), |(_, rest)| rest);
        let host = host.split(['/', '?']).next().unwrap_or_default();
        Cow::Owned(format!("{provider}@{host}"))
    }

    /// A path below the base URL.
    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.endpoint.base_url.trim_end_matches('/'))
    }

    /// The headers of a request: the protocol's, those of this request, the session's, and the
    /// user's own, each replacing the ones before.
    fn headers(
        &self,
        profile: &ProviderProfile,
        of_request: Vec<(&'static str, String)>,
    ) -> Vec<(String, String)> {
        let Endpoint { key, headers: extra_headers, session, .. } = &self.endpoint;
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        headers.insert("content-type".into(), "application/json".into());
        headers.insert("user-agent".into(), concat!("hardpan/", env!("CARGO_PKG_VERSION")).into());
        let key = key.as_ref().map(|key| key.0.as_str());
        let own = codec(profile.protocol).headers(key).into_iter().chain(of_request);
        headers.extend(own.map(|(name, value)| (name.to_owned(), value)));
        if let (Some(name), Some(session)) = (&profile.session_header, session) {
            headers.insert(name.clone(), session.clone());
        }
        headers.extend(extra_headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
        headers.into_iter().collect()
    }
}

/// Appends fields that the body does not have yet, without parsing it.
fn append_fields(mut body: Vec<u8>, fields: &[(&'static str, Value)]) -> Vec<u8> {
    if fields.is_empty() || body.pop() != Some(b'}') {
        return body;
    }
    for (name, value) in fields {
        let separator = if body.last() == Some(&b'{') { "" } else { "," };
        body.extend_from_slice(format!("{separator}\"{name}\":{value}").as_bytes());
    }
    body.push(b'}');
    body
}

/// One attempt of a request, as it is sent.
#[derive(Clone, Copy)]
struct AttemptRequest<'a> {
    prompt: &'a Prompt,
    profile: &'a ProviderProfile,
    previous_answer: Option<&'a str>,
    downgrades: Downgrades,
    /// What is sent in place of the encoded prompt.
    body: Option<&'a Bytes>,
}

/// A session's id in at most 64 characters, as OpenAI takes it in `prompt_cache_key`.
fn session_key(session: &str) -> String {
    const LONGEST: usize = 64;
    match session.chars().count() {
        ..=LONGEST => session.to_owned(),
        _ => hardpan_prompt::Hash::of(session.as_bytes()).to_string().chars().take(LONGEST).collect(),
    }
}

/// Sets additional top-level fields of a body. Without any, the body's bytes stay untouched.
fn merge_extra_fields(
    body: Vec<u8>,
    extra_fields: serde_json::Map<String, Value>,
) -> Result<Bytes, ProviderError> {
    if extra_fields.is_empty() {
        return Ok(body.into());
    }
    let wrong = |error: serde_json::Error| ProviderError::new(FailureKind::BadRequest, error.to_string());
    let mut fields: serde_json::Map<String, Value> = serde_json::from_slice(&body).map_err(wrong)?;
    fields.extend(extra_fields);
    Ok(serde_json::to_vec(&fields).map_err(wrong)?.into())
}

#[cfg(test)]
mod tests;
