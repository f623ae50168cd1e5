//! [`ResponseReader`]: sends one request and decodes its response, chunk by chunk.

use futures_util::StreamExt;
use hardpan_models::Protocol;
use std::time::Duration;
use tracing::debug;

use super::{AttemptRequest, Client, ClientEvent, ClientNotice};
use crate::{
    AnswerEvent, ByteStream, FailureKind, HttpRequest, HttpResponse, ProviderError, StopReason,
    StreamDecoder, decode_answer_body,
};

/// At most this many bytes of an error body are read.
const MAX_ERROR_BYTES: usize = 1 << 20;

/// The response to one attempt. Until the model has said something, events are held back, so that a
/// retry leaves no trace.
pub(super) struct ResponseReader {
    protocol: Protocol,
    body: ResponseBody,
    /// `None` for a response that is not streamed.
    decoder: Option<StreamDecoder>,
    pending: Vec<ClientEvent>,
    has_content: bool,
    is_over: bool,
}

impl ResponseReader {
    /// Sends the request and waits for the response's status. `Err` also for a response with an
    /// error status.
    pub async fn open(client: &Client, attempt: AttemptRequest<'_>) -> Result<Self, ProviderError> {
        let request = client.build_request(&attempt)?;
        debug!(bytes = request.body.len(), "sending");
        let silence = client.retry.silence;
        let sent = tokio::time::timeout(silence, client.transport.send(request)).await;
        let response = sent.map_err(|_| stall_error(silence))?.map_err(ProviderError::from)?;
        debug!(status = response.status, "answered");
        let protocol = attempt.profile.protocol;
        if !(200..300).contains(&response.status) {
            return Err(read_error(protocol, response, silence).await);
        }
        let is_whole =
            response.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        Ok(ResponseReader {
            protocol,
            decoder: (!is_whole).then(|| StreamDecoder::new(protocol)),
            body: ResponseBody { bytes: response.body, silence },
            pending: Vec::new(),
            has_content: false,
            is_over: false,
        })
    }

    /// Reads the next chunk and returns its events, of which there may be none. `None` after the
    /// end. `Err` means that the model said nothing.
    pub async fn next_batch(&mut self) -> Result<Option<Vec<ClientEvent>>, ProviderError> {
        if self.is_over {
            return Ok(None);
        }
        let mut batch = Vec::new();
        let Some(decoder) = &mut self.decoder else {
            let body = self.body.read_all(usize::MAX).await?;
            for event in decode_answer_body(self.protocol, &body) {
                self.accept(event, &mut batch)?;
            }
            return self.finish(batch).map(Some);
        };
        let broke = match self.body.next_chunk().await {
            Ok(Some(chunk)) => {
                let events = decoder.push(&chunk);
                let is_over = decoder.is_over();
                for event in events {
                    self.accept(event, &mut batch)?;
                }
                return if is_over { self.finish(batch).map(Some) } else { Ok(Some(batch)) };
            }
            Ok(None) => None,
            Err(error) => Some(error),
        };
        let rest = decoder.finish();
        match broke {
            // The model has said nothing yet: the request may be retried.
            Some(error) if !self.has_content => return Err(error),
            Some(error) => batch.push(ClientEvent::Notice(ClientNotice::BrokenOff { error })),
            None => {}
        }
        for event in rest {
            self.accept(event, &mut batch)?;
        }
        self.finish(batch).map(Some)
    }

    /// Adds an event to the batch, or holds it back.
    fn accept(&mut self, event: AnswerEvent, batch: &mut Vec<ClientEvent>) -> Result<(), ProviderError> {
        let waits = match &event {
            AnswerEvent::Error(error) if !self.has_content => {
                return Err(ProviderError::from_stream_error(self.protocol, error.clone()));
            }
            AnswerEvent::Stop(StopReason::Cut) if !self.has_content => {
                let message = "the answer ended before the model said anything";
                return Err(ProviderError::new(FailureKind::Cut, message));
            }
            AnswerEvent::Start { .. }
            | AnswerEvent::Usage(_)
            | AnswerEvent::CacheDiagnosis(_)
            | AnswerEvent::DroppedReasoning(_)
            | AnswerEvent::SkippedPart { .. } => !self.has_content,
            _ => false,
        };
        match &event {
            AnswerEvent::Usage(usage) => debug!(tokens = ?usage.tokens, "usage"),
            AnswerEvent::DroppedReasoning(dropped) => {
                let dropped = dropped.clone();
                self.pending.push(ClientEvent::Notice(ClientNotice::DroppedReasoning { dropped }));
            }
            _ => {}
        }
        let event = match event {
            AnswerEvent::SkippedPart { part_type } => {
                ClientEvent::Notice(ClientNotice::SkippedPart { part_type })
            }
            event => ClientEvent::Answer(event),
        };
        if waits {
            self.pending.push(event);
            return Ok(());
        }
        self.has_content = true;
        batch.append(&mut self.pending);
        batch.push(event);
        Ok(())
    }

    /// Ends the answer. One without any content, not even a stop, is an error.
    fn finish(&mut self, batch: Vec<ClientEvent>) -> Result<Vec<ClientEvent>, ProviderError> {
        self.is_over = true;
        if !self.has_content {
            return Err(ProviderError::new(FailureKind::Malformed, "the answer was empty"));
        }
        Ok(batch)
    }
}

/// Sends a request and reads the whole body of its response.
pub(super) async fn read_whole(
    client: &Client,
    protocol: Protocol,
    request: HttpRequest,
) -> Result<Vec<u8>, ProviderError> {
    let silence = client.retry.silence;
    let sent = tokio::time::timeout(silence, client.transport.send(request)).await;
    let response = sent.map_err(|_| stall_error(silence))?.map_err(ProviderError::from)?;
    if !(200..300).contains(&response.status) {
        return Err(read_error(protocol, response, silence).await);
    }
    ResponseBody { bytes: response.body, silence }.read_all(usize::MAX).await
}

/// Reads the body of an error response, as far as it comes, and classifies the error.
async fn read_error(protocol: Protocol, response: HttpResponse, silence: Duration) -> ProviderError {
    let HttpResponse { status, headers, body } = response;
    let mut body = ResponseBody { bytes: body, silence };
    let text = body.read_all(MAX_ERROR_BYTES).await.unwrap_or_default();
    let head = HttpResponse { status, headers, body: Box::pin(futures_util::stream::empty()) };
    ProviderError::from_response(protocol, &head, &text)
}

/// The bytes of a response, with a limit for silence between them.
struct ResponseBody {
    bytes: ByteStream,
    silence: Duration,
}

impl ResponseBody {
    async fn next_chunk(&mut self) -> Result<Option<bytes::Bytes>, ProviderError> {
        match tokio::time::timeout(self.silence, self.bytes.next()).await {
            Err(_) => Err(stall_error(self.silence)),
            Ok(None) => Ok(None),
            Ok(Some(chunk)) => Ok(Some(chunk?)),
        }
    }

    async fn read_all(&mut self, most: usize) -> Result<Vec<u8>, ProviderError> {
        let mut all = Vec::new();
        while all.len() < most
            && let Some(chunk) = self.next_chunk().await?
        {
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

fn stall_error(silence: Duration) -> ProviderError {
    let message = format!("no bytes came for {} s", silence.as_secs_f64());
    ProviderError::new(FailureKind::Stalled, message)
}
