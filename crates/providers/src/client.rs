//! Sending a prompt and reading its answer: retries, downgrades, silence and cancellation.
//!
//! There is no background task: the caller polls [`Client::ask`], and dropping it cancels everything at once.

mod backoff; // how long to wait before another try
mod learned; // what a model has refused, for a while

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use hardpan_models::{Protocol, Wire};
use hardpan_prompt::{Hash, Prompt};
use serde_json::Value;

pub use self::learned::{Learned, Refusal};
use crate::{
    Answer, Decoder, Encoder, Event, Failure, HttpRequest, HttpResponse, ProviderError, StopReason,
    Transport, events_of_body, path,
};

/// A key. It has no form in which it could be printed.
#[derive(Clone)]
pub struct Key(String);

impl Key {
    /// Takes a key; blank space around it is not part of it.
    pub fn new(key: &str) -> Self {
        Key(key.trim().to_owned())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(•••)")
    }
}

/// Where requests go, and what goes with them.
#[derive(Clone, Debug, Default)]
pub struct Endpoint {
    /// Without the protocol's own path.
    pub base_url: String,
    /// The key, where one is needed.
    pub key: Option<Key>,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// Fields merged into the body.
    pub extras: serde_json::Map<String, Value>,
    /// The conversation's id, for servers that keep its requests on one cache.
    pub session: Option<String>,
}

/// How patient to be.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// The most tries, the first one included.
    pub tries: u32,
    /// The wait before the second try; it doubles with each.
    pub first_wait: Duration,
    /// The longest wait. A provider that asks for more is not waited for.
    pub longest_wait: Duration,
    /// How long no bytes may come before the answer counts as stalled.
    pub silence: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Patience {
            tries: 5,
            first_wait: Duration::from_secs(1),
            longest_wait: Duration::from_secs(60),
            silence: Duration::from_secs(120),
        }
    }
}

/// The other forms of a prompt, made by whoever knows the texts.
pub trait Forms: Send + Sync {
    /// The prompt for a model that takes no tools.
    fn without_tools(&self, prompt: &Prompt) -> Prompt;
    /// The prompt for a model that takes no images.
    fn without_images(&self, prompt: &Prompt) -> Prompt;
}

/// A question to a model.
pub struct Question<'a> {
    /// The prompt.
    pub prompt: &'a Prompt,
    /// How the provider is spoken to.
    pub wire: &'a Wire,
    /// The provider's id.
    pub provider: &'a str,
    /// The prompt's other forms.
    pub forms: &'a dyn Forms,
    /// The time, in milliseconds since 1970.
    pub now_ms: i64,
}

/// Sends prompts to one provider.
pub struct Client {
    transport: Arc<dyn Transport>,
    endpoint: Endpoint,
    patience: Patience,
    learned: Arc<Learned>,
    encoder: Encoder,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client")
            .field("endpoint", &self.endpoint)
            .field("patience", &self.patience)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client that sends through `transport`. What models refuse is remembered in `learned`.
    pub fn new(
        transport: Arc<dyn Transport>,
        endpoint: Endpoint,
        patience: Patience,
        learned: Arc<Learned>,
    ) -> Self {
        Client { transport, endpoint, patience, learned, encoder: Encoder::default() }
    }

    /// Asks, and hands over each event as it comes. A request that failed before anything was said is sent again where that
    /// may help, with a footnote; one that broke off afterwards ends with [`StopReason::Cut`], and what came is kept.
    pub async fn ask(
        &self,
        question: &Question<'_>,
        sink: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Answer, ProviderError> {
        let mut form = self.learned.form(question.provider, &question.prompt.model, question.now_ms);
        let mut attempt = 1;
        loop {
            let prompt = form.apply(question);
            let error = match self.try_once(&prompt, question.wire, sink).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error.without_key(self.endpoint.key.as_ref().map(|key| key.0.as_str())),
            };
            if let Some(refusal) = form.downgrade(&error.failure, &prompt) {
                self.learned.learn(question.provider, &question.prompt.model, refusal, question.now_ms);
                sink(Event::Footnote(refusal.footnote(&question.prompt.model)));
                continue;
            }
            let wait = self.wait_before_retry(&error, attempt, &prompt).ok_or(error.clone())?;
            attempt += 1;
            sink(Event::Footnote(format!(
                "{error}. Trying again in {:.1} s ({attempt} of {})",
                wait.as_secs_f64(),
                self.patience.tries
            )));
            tokio::time::sleep(wait).await;
        }
    }

    fn wait_before_retry(&self, error: &ProviderError, attempt: u32, prompt: &Prompt) -> Option<Duration> {
        if !error.failure.is_passing() || attempt >= self.patience.tries {
            return None;
        }
        match error.retry_after {
            Some(wanted) if wanted > self.patience.longest_wait => None,
            Some(wanted) => Some(wanted),
            None => Some(backoff::wait(&self.patience, attempt, prompt)),
        }
    }

    /// One try. An error means that nothing was said; what was said is in the answer, however it ended.
    async fn try_once(
        &self,
        prompt: &Prompt,
        wire: &Wire,
        sink: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Answer, ProviderError> {
        let request = self.request(prompt, wire)?;
        let sent = tokio::time::timeout(self.patience.silence, self.transport.send(request)).await;
        let response =
            sent.map_err(|_| self.stalled())?.map_err(|error| ProviderError::of_transport(&error))?;
        if !(200..300).contains(&response.status) {
            return Err(self.refusal(wire.protocol, response).await);
        }
        let whole = response.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        if whole {
            self.read_whole(wire.protocol, response, sink).await
        } else {
            self.read_stream(wire, response, sink).await
        }
    }

    async fn read_stream(
        &self,
        wire: &Wire,
        response: HttpResponse,
        sink: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Answer, ProviderError> {
        let mut body = response.body;
        let mut decoder = Decoder::new(wire.protocol);
        let mut reading =
            Reading { protocol: wire.protocol, answer: Answer::default(), held: Vec::new(), spoken: false };
        let broke = loop {
            let chunk = match tokio::time::timeout(self.patience.silence, body.next()).await {
                Err(_) => break Some(self.stalled()),
                Ok(None) => break None,
                Ok(Some(Err(error))) => break Some(ProviderError::of_transport(&error)),
                Ok(Some(Ok(chunk))) => chunk,
            };
            for event in decoder.push(&chunk) {
                reading.take(event, sink)?;
            }
            if decoder.is_over() {
                break None;
            }
        };
        let rest = decoder.finish();
        match broke {
            // Nothing was said yet: the whole request may be sent again.
            Some(error) if !reading.spoken => return Err(error),
            Some(error) => reading.take(Event::Footnote(error.to_string()), sink)?,
            None => {}
        }
        for event in rest {
            reading.take(event, sink)?;
        }
        reading.finish(sink)
    }

    async fn read_whole(
        &self,
        protocol: Protocol,
        response: HttpResponse,
        sink: &mut (dyn FnMut(Event) + Send),
    ) -> Result<Answer, ProviderError> {
        let body = self.collect(response, usize::MAX).await?;
        let mut reading = Reading { protocol, answer: Answer::default(), held: Vec::new(), spoken: false };
        for event in events_of_body(protocol, &body) {
            reading.take(event, sink)?;
        }
        reading.finish(sink)
    }

    async fn refusal(&self, protocol: Protocol, response: HttpResponse) -> ProviderError {
        /// More of a refusal than this is not read.
        const MOST: usize = 1 << 20;
        let head = HttpResponse {
            status: response.status,
            headers: response.headers.clone(),
            body: Box::pin(futures_util::stream::empty()),
        };
        let body = self.collect(response, MOST).await.unwrap_or_default();
        ProviderError::of_response(protocol, &head, &body)
    }

    async fn collect(&self, response: HttpResponse, most: usize) -> Result<Vec<u8>, ProviderError> {
        let mut body = response.body;
        let mut bytes = Vec::new();
        while bytes.len() < most {
            match tokio::time::timeout(self.patience.silence, body.next()).await {
                Err(_) => return Err(self.stalled()),
                Ok(None) => break,
                Ok(Some(Err(error))) => return Err(ProviderError::of_transport(&error)),
                Ok(Some(Ok(chunk))) => bytes.extend_from_slice(&chunk),
            }
        }
        Ok(bytes)
    }

    fn stalled(&self) -> ProviderError {
        let message = format!("no bytes came for {} s", self.patience.silence.as_secs_f64());
        ProviderError::new(Failure::Stalled, message)
    }

    /// The request: address, headers, body.
    fn request(&self, prompt: &Prompt, wire: &Wire) -> Result<HttpRequest, ProviderError> {
        let Endpoint { base_url, key, headers: extra_headers, extras, session } = &self.endpoint;
        let url = format!("{}{}", base_url.trim_end_matches('/'), path(wire));
        let mut headers: BTreeMap<String, String> = BTreeMap::new();
        headers.insert("content-type".into(), "application/json".into());
        headers.insert("user-agent".into(), concat!("hardpan/", env!("CARGO_PKG_VERSION")).into());
        match wire.protocol {
            Protocol::Anthropic => {
                headers.insert("anthropic-version".into(), "2023-06-01".into());
                headers.extend(key.iter().map(|key| ("x-api-key".into(), key.0.clone())));
            }
            Protocol::Openai => {
                headers.extend(key.iter().map(|key| ("authorization".into(), format!("Bearer {}", key.0))));
            }
        }
        if let (Some(name), Some(session)) = (&wire.session_header, session) {
            headers.insert(name.clone(), session.clone());
        }
        headers.extend(extra_headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone())));
        let mut extras = extras.clone();
        if let (Some(field), Some(session)) = (&wire.session_field, session) {
            extras.entry(field.clone()).or_insert_with(|| session.clone().into());
        }
        let body = merge(self.encoder.encode(prompt, wire), extras)?;
        Ok(HttpRequest { url, headers: headers.into_iter().collect(), body })
    }
}

/// Lays further fields over a body; where there are none, its bytes are untouched.
fn merge(body: Vec<u8>, extras: serde_json::Map<String, Value>) -> Result<Bytes, ProviderError> {
    if extras.is_empty() {
        return Ok(body.into());
    }
    let wrong = |error: serde_json::Error| ProviderError::new(Failure::BadRequest, error.to_string());
    let mut fields: serde_json::Map<String, Value> = serde_json::from_slice(&body).map_err(wrong)?;
    fields.extend(extras);
    Ok(serde_json::to_vec(&fields).map_err(wrong)?.into())
}

/// An answer that is being read. Until the model has said something, events are held back, so that a request that failed
/// can be sent again without a trace.
struct Reading {
    protocol: Protocol,
    answer: Answer,
    held: Vec<Event>,
    spoken: bool,
}

impl Reading {
    fn take(&mut self, event: Event, sink: &mut (dyn FnMut(Event) + Send)) -> Result<(), ProviderError> {
        match &event {
            Event::Error(error) if !self.spoken => {
                return Err(ProviderError::of_stream(self.protocol, error));
            }
            Event::Stop(StopReason::Cut) if !self.spoken => {
                return Err(ProviderError::new(Failure::Cut, "it ended before anything was said"));
            }
            Event::Start { .. } | Event::Usage(_) | Event::Footnote(_) if !self.spoken => {
                self.held.push(event);
                return Ok(());
            }
            _ => {}
        }
        self.spoken = true;
        for event in self.held.drain(..).chain([event]) {
            self.answer.push(event.clone());
            sink(event);
        }
        Ok(())
    }

    /// Whatever was held back when the answer ended without a word: a stop alone is a word.
    fn finish(mut self, sink: &mut (dyn FnMut(Event) + Send)) -> Result<Answer, ProviderError> {
        for event in self.held.drain(..) {
            self.answer.push(event.clone());
            sink(event);
        }
        if !self.spoken {
            return Err(ProviderError::new(Failure::Garbage, "there was nothing in it"));
        }
        Ok(self.answer)
    }
}

/// The identity of a request, for what must differ between requests but not between runs.
fn identity(prompt: &Prompt) -> Hash {
    let model = Hash::of(prompt.model.as_bytes());
    Hash::chain([model].into_iter().chain(
        prompt.turns.last().into_iter().flat_map(|turn| &turn.blocks).map(hardpan_prompt::Block::hash),
    ))
}

#[cfg(test)]
mod tests;
