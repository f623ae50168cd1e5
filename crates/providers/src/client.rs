//! [`Client`] sends a prompt and reads the answer, with retries, downgrades and an idle timeout.
//!
//! There is no background task: the caller polls [`Client::send`], and dropping that future cancels
//! the request, the wait before a retry, and the stream.

mod backoff; // how long to wait before a retry
mod capabilities; // CapabilityCache: features that models have refused

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use hardpan_models::{Protocol, ProviderProfile};
use hardpan_prompt::{Hash, Prompt};
use serde_json::Value;

pub use self::capabilities::{CapabilityCache, UnsupportedFeature};
use crate::{
    Answer, AnswerEvent, Encoder, FailureKind, HttpRequest, HttpResponse, ProviderError, StopReason,
    StreamDecoder, Transport, decode_answer_body, request_path,
};

/// An API key. It cannot be printed: `Debug` masks it, and there is no `Display`.
#[derive(Clone)]
pub struct ApiKey(String);

impl ApiKey {
    /// Wraps a key, without the white space around it.
    pub fn new(key: &str) -> Self {
        ApiKey(key.trim().to_owned())
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(•••)")
    }
}

/// Where requests go, and the provider-specific fields that go with them.
#[derive(Clone, Debug, Default)]
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
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            tries: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            silence: Duration::from_secs(120),
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
}

/// Everything that [`Client::send`] needs for one request.
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

    /// Sends a request and passes each event to `sink` as it comes.
    ///
    /// A request that fails before the model has said anything is retried if that may help, with a
    /// footnote for the user. An answer that breaks off later is not retried: it ends with
    /// [`StopReason::Cut`] and keeps what came.
    pub async fn send(
        &self,
        request: &ClientRequest<'_>,
        sink: &mut (dyn FnMut(AnswerEvent) + Send),
    ) -> Result<Answer, ProviderError> {
        let mut downgrades =
            self.capabilities.known_downgrades(request.provider, &request.prompt.model, request.now_ms);
        let mut attempt = 1;
        loop {
            let prompt = downgrades.apply(request);
            let error = match self.try_once(&prompt, request.profile, sink).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error.redact_key(self.endpoint.key.as_ref().map(|key| key.0.as_str())),
            };
            if let Some(feature) = downgrades.add_for_failure(&error.failure, &prompt) {
                self.capabilities.record(request.provider, &request.prompt.model, feature, request.now_ms);
                sink(AnswerEvent::Footnote(feature.footnote(&request.prompt.model)));
                continue;
            }
            let wait = self.wait_before_retry(&error, attempt, &prompt).ok_or(error.clone())?;
            attempt += 1;
            sink(AnswerEvent::Footnote(format!(
                "{error}. Trying again in {:.1} s ({attempt} of {})",
                wait.as_secs_f64(),
                self.retry.tries
            )));
            tokio::time::sleep(wait).await;
        }
    }

    fn wait_before_retry(&self, error: &ProviderError, attempt: u32, prompt: &Prompt) -> Option<Duration> {
        if !error.failure.is_transient() || attempt >= self.retry.tries {
            return None;
        }
        match error.retry_after {
            Some(wanted) if wanted > self.retry.longest_wait => None,
            Some(wanted) => Some(wanted),
            None => Some(backoff::delay_before_retry(&self.retry, attempt, prompt)),
        }
    }

    /// Makes one attempt. `Err` means that the model said nothing; otherwise the answer holds what
    /// it said, however it ended.
    async fn try_once(
        &self,
        prompt: &Prompt,
        profile: &ProviderProfile,
        sink: &mut (dyn FnMut(AnswerEvent) + Send),
    ) -> Result<Answer, ProviderError> {
        let request = self.build_request(prompt, profile)?;
        let sent = tokio::time::timeout(self.retry.silence, self.transport.send(request)).await;
        let response =
            sent.map_err(|_| self.stall_error())?.map_err(|error| ProviderError::from_transport(&error))?;
        if !(200..300).contains(&response.status) {
            return Err(self.error_from_response(profile.protocol, response).await);
        }
        let whole = response.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if whole {
            self.read_json_body(profile.protocol, response, sink).await
        } else {
            self.read_stream(profile, response, sink).await
        }
    }

    async fn read_stream(
        &self,
        profile: &ProviderProfile,
        response: HttpResponse,
        sink: &mut (dyn FnMut(AnswerEvent) + Send),
    ) -> Result<Answer, ProviderError> {
        let mut body = response.body;
        let mut decoder = StreamDecoder::new(profile.protocol);
        let mut pending = PendingAnswer {
            protocol: profile.protocol,
            answer: Answer::default(),
            held_back: Vec::new(),
            has_content: false,
        };
        let stream_error = loop {
            let chunk = match tokio::time::timeout(self.retry.silence, body.next()).await {
                Err(_) => break Some(self.stall_error()),
                Ok(None) => break None,
                Ok(Some(Err(error))) => break Some(ProviderError::from_transport(&error)),
                Ok(Some(Ok(chunk))) => chunk,
            };
            for event in decoder.push(&chunk) {
                pending.accept(event, sink)?;
            }
            if decoder.is_over() {
                break None;
            }
        };
        let rest = decoder.finish();
        match stream_error {
            // The model has said nothing yet: the request may be retried.
            Some(error) if !pending.has_content => return Err(error),
            Some(error) => pending.accept(AnswerEvent::Footnote(error.to_string()), sink)?,
            None => {}
        }
        for event in rest {
            pending.accept(event, sink)?;
        }
        pending.finish(sink)
    }

    async fn read_json_body(
        &self,
        protocol: Protocol,
        response: HttpResponse,
        sink: &mut (dyn FnMut(AnswerEvent) + Send),
    ) -> Result<Answer, ProviderError> {
        let body = self.collect_body(response, usize::MAX).await?;
        let mut pending =
            PendingAnswer { protocol, answer: Answer::default(), held_back: Vec::new(), has_content: false };
        for event in decode_answer_body(protocol, &body) {
            pending.accept(event, sink)?;
        }
        pending.finish(sink)
    }

    async fn error_from_response(&self, protocol: Protocol, response: HttpResponse) -> ProviderError {
        /// At most this many bytes of an error body are read.
        const MAX_ERROR_BYTES: usize = 1 << 20;
        let head = HttpResponse {
            status: response.status,
            headers: response.headers.clone(),
            body: Box::pin(futures_util::stream::empty()),
        };
        let body = self.collect_body(response, MAX_ERROR_BYTES).await.unwrap_or_default();
        ProviderError::from_response(protocol, &head, &body)
    }

    async fn collect_body(&self, response: HttpResponse, max_bytes: usize) -> Result<Vec<u8>, ProviderError> {
        let mut body = response.body;
        let mut bytes = Vec::new();
        while bytes.len() < max_bytes {
            match tokio::time::timeout(self.retry.silence, body.next()).await {
                Err(_) => return Err(self.stall_error()),
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(ProviderError::from_transport(&error)),
                Ok(Some(Ok(chunk))) => bytes.extend_from_slice(&chunk),
            }
        }
        Ok(bytes)
    }

    fn stall_error(&self) -> ProviderError {
        let message = format!("no bytes came for {} s", self.retry.silence.as_secs_f64());
        ProviderError::new(FailureKind::Stalled, message)
    }

    /// Builds the HTTP request: URL, headers, body.
    fn build_request(
        &self,
        prompt: &Prompt,
        profile: &ProviderProfile,
    ) -> Result<HttpRequest, ProviderError> {
        let Endpoint { base_url, key, headers: extra_headers, extra_fields, session } = &self.endpoint;
        let url = format!("{}{}", base_url.trim_end_matches('/'), request_path(profile));
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        headers.insert("content-type".into(), "application/json".into());
        headers.insert("user-agent".into(), concat!("hardpan/", env!("CARGO_PKG_VERSION")).into());
        match profile.protocol {
            Protocol::Anthropic => {
                headers.insert("anthropic-version".into(), "2023-06-01".into());
                headers.extend(key.iter().map(|key| ("x-api-key".into(), key.0.clone())));
            }
            Protocol::Openai => {
                headers.extend(key.iter().map(|key| ("authorization".into(), format!("Bearer {}", key.0))));
            }
        }
        if let (Some(name), Some(session)) = (&profile.session_header, session) {
            headers.insert(name.clone(), session.clone());
        }
        headers.extend(extra_headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
        let mut extra_fields = extra_fields.clone();
        if let (Some(field), Some(session)) = (&profile.session_field, session) {
            extra_fields.entry(field.clone()).or_insert_with(|| session.clone().into());
        }
        let body = merge_extra_fields(self.encoder.encode(prompt, profile), extra_fields)?;
        Ok(HttpRequest { url, headers: headers.into_iter().collect(), body })
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

/// An answer that is being read. Until the model has said something, events are held back, so that
/// a retry leaves no trace in the sink.
struct PendingAnswer {
    protocol: Protocol,
    answer: Answer,
    held_back: Vec<AnswerEvent>,
    has_content: bool,
}

impl PendingAnswer {
    fn accept(
        &mut self,
        event: AnswerEvent,
        sink: &mut (dyn FnMut(AnswerEvent) + Send),
    ) -> Result<(), ProviderError> {
        match &event {
            AnswerEvent::Error(error) if !self.has_content => {
                return Err(ProviderError::from_stream_error(self.protocol, error));
            }
            AnswerEvent::Stop(StopReason::Cut) if !self.has_content => {
                return Err(ProviderError::new(
                    FailureKind::Cut,
                    "the answer ended before the model said anything",
                ));
            }
            AnswerEvent::Start { .. } | AnswerEvent::Usage(_) | AnswerEvent::Footnote(_)
                if !self.has_content =>
            {
                self.held_back.push(event);
                return Ok(());
            }
            _ => {}
        }
        self.has_content = true;
        for event in self.held_back.drain(..).chain([event]) {
            self.answer.push(event.clone());
            sink(event);
        }
        Ok(())
    }

    /// Releases the events still held back. An answer without any content, not even a stop, is an
    /// error.
    fn finish(mut self, sink: &mut (dyn FnMut(AnswerEvent) + Send)) -> Result<Answer, ProviderError> {
        for event in self.held_back.drain(..) {
            self.answer.push(event.clone());
            sink(event);
        }
        if !self.has_content {
            return Err(ProviderError::new(FailureKind::Malformed, "the answer was empty"));
        }
        Ok(self.answer)
    }
}

/// A hash of the model and the last message: it differs between requests, but not between runs.
fn request_hash(prompt: &Prompt) -> Hash {
    let model = Hash::of(prompt.model.as_bytes());
    Hash::chain([model].into_iter().chain(
        prompt.messages.last().into_iter().flat_map(|turn| &turn.blocks).map(hardpan_prompt::Block::hash),
    ))
}

#[cfg(test)]
mod tests;
