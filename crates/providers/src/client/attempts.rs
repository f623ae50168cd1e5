//! [`Attempts`]: the attempts to get one answer, one after the other, as a stream of events.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::Stream;
use futures_util::stream::unfold;
use hardpan_prompt::Prompt;
use tokio::sync::Notify;
use tracing::{Instrument, Span, debug, info, info_span, warn};

use super::answer_stream::EventBatch;
use super::capabilities::Downgrades;
use super::response_reader::ResponseReader;
use super::{AttemptRequest, Client, ClientEvent, ClientNotice, ClientRequest, backoff};
use crate::ProviderError;

/// A request that is under way.
pub(super) struct Attempts<'a> {
    client: &'a Client,
    request: ClientRequest<'a>,
    downgrades: Downgrades,
    /// The prompt of the current attempt: the request's own, or one without tools or images.
    prompt: Cow<'a, Prompt>,
    /// What is sent in place of the encoded prompt.
    body: Option<Bytes>,
    /// The number of the current attempt; the first is 1.
    attempt: u32,
    phase: Phase,
    span: Span,
    /// Ends the wait before an attempt.
    send_now: Arc<Notify>,
}

enum Phase {
    Send,
    Wait(Duration),
    Read(Box<ResponseReader>),
    Over,
}

impl<'a> Attempts<'a> {
    pub fn new(
        client: &'a Client,
        request: ClientRequest<'a>,
        body: Option<Bytes>,
        send_now: Arc<Notify>,
    ) -> Self {
        let downgrades = client.known_downgrades(&request);
        let prompt = Cow::Borrowed(request.prompt);
        let (phase, span) = (Phase::Send, Span::none());
        Attempts { client, request, downgrades, prompt, body, attempt: 1, phase, span, send_now }
    }

    pub fn into_stream(self) -> impl Stream<Item = EventBatch> + Send + 'a {
        unfold(self, |mut attempts| async move {
            let batch = attempts.next_batch().await?;
            Some((batch, attempts))
        })
    }

    async fn next_batch(&mut self) -> Option<EventBatch> {
        loop {
            let outcome = match &mut self.phase {
                Phase::Over => return None,
                Phase::Wait(wait) => {
                    tokio::select! {
                        () = tokio::time::sleep(*wait) => {}
                        () = self.send_now.notified() => {}
                    }
                    self.phase = Phase::Send;
                    continue;
                }
                Phase::Send => self.send_request().await.map(|()| Some(Vec::new())),
                Phase::Read(reader) => reader.next_batch().instrument(self.span.clone()).await,
            };
            match outcome {
                Ok(None) => self.phase = Phase::Over,
                Ok(Some(events)) if events.is_empty() => {}
                Ok(Some(events)) => return Some(Ok(events)),
                Err(error) => {
                    return Some(self.recover(error).map(|notice| vec![ClientEvent::Notice(notice)]));
                }
            }
        }
    }

    /// Sends the prompt, without the features that the model has refused.
    async fn send_request(&mut self) -> Result<(), ProviderError> {
        self.prompt = self.downgrades.apply(&self.request);
        let (provider, model, attempt) = (self.request.provider, &*self.prompt.model, self.attempt);
        self.span = info_span!("request", provider, model, attempt);
        let ClientRequest { profile, previous_answer, .. } = self.request;
        let (downgrades, body) = (self.downgrades, self.body.as_ref());
        let attempt = AttemptRequest { prompt: &self.prompt, profile, previous_answer, downgrades, body };
        let reader = ResponseReader::open(self.client, attempt);
        let reader = reader.instrument(self.span.clone()).await?;
        self.phase = Phase::Read(Box::new(reader));
        Ok(())
    }

    /// Decides how to go on after a failed attempt; returns the error if there is no way.
    fn recover(&mut self, error: ProviderError) -> Result<ClientNotice, ProviderError> {
        let _entered = self.span.enter();
        let error = error.redact_key(self.client.endpoint.key.as_ref().map(|key| key.0.as_str()));
        let model = &self.request.prompt.model;
        if let Some(feature) = self.downgrades.add_for_failure(&error.failure, &self.prompt) {
            let server = self.client.server_name(self.request.provider, self.request.profile);
            self.body = None; // it has what was refused
            self.client.capabilities.record(&server, model, feature, self.request.now_ms);
            info!(%feature, "the model refused a feature; sending the request without it");
            self.phase = Phase::Send;
            return Ok(ClientNotice::Downgrade { model: model.clone(), feature });
        }
        let Some(wait) = self.wait_before_retry(&error) else {
            warn!(failure = ?error.failure, status = error.status, "the request failed");
            self.phase = Phase::Over;
            return Err(error);
        };
        self.attempt += 1;
        self.phase = Phase::Wait(wait);
        debug!(failure = ?error.failure, status = error.status, ?wait, "the request is sent again");
        Ok(ClientNotice::Retry { error, wait, attempt: self.attempt, tries: self.client.retry.tries })
    }

    fn wait_before_retry(&self, error: &ProviderError) -> Option<Duration> {
        let retry = &self.client.retry;
        if !error.failure.is_transient() || self.attempt >= retry.tries {
            return None;
        }
        match error.retry_after {
            Some(wanted) if wanted > retry.longest_wait => None,
            Some(wanted) => Some(wanted),
            None => Some(backoff::delay_before_retry(retry, self.attempt, &self.prompt)),
        }
    }
}
