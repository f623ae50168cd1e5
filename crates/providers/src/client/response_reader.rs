//! [`ResponseReader`]: sends one request and decodes its response, chunk by chunk.

use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use hardpan_models::Protocol;
use tokio::time::Instant;
use tracing::debug;

use super::{AttemptRequest, Client, ClientEvent, ClientNotice, ResponseHead, RetryPolicy};
use crate::limits::{self, MAX_BODY_BYTES, MAX_ERROR_BYTES, MAX_LIST_BYTES};
use crate::{
    AnswerEvent, ByteStream, FailureKind, HttpRequest, HttpResponse, ProviderError, StopReason,
    StreamDecoder, decode_answer_body,
};

/// How long the body of an error, or a page of a list of models, may take.
const LONGEST_SMALL_BODY: Duration = Duration::from_secs(60);

/// At most this many bytes are decoded at once, so that their events stay few.
const MAX_SLICE: usize = 16 << 10;

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
            return Err(read_error(protocol, response, &client.retry).await);
        }
        let is_whole =
            response.header("content-type").is_some_and(|kind| kind.starts_with("application/json"));
        let mut headers = response.headers;
        headers.retain(|(name, _)| name != "set-cookie");
        let head = ResponseHead { status: response.status, headers };
        Ok(ResponseReader {
            protocol,
            decoder: (!is_whole).then(|| StreamDecoder::new(protocol)),
            body: ResponseBody::new(response.body, &client.retry, client.retry.longest_answer),
            pending: vec![ClientEvent::Accepted(head)],
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
            let body = self.body.read_whole(MAX_BODY_BYTES).await?;
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
                    self.body.note_progress(&event);
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
            AnswerEvent::WebSearch { query } => {
                let query = query.clone();
                self.pending.push(ClientEvent::Notice(ClientNotice::WebSearch { query }));
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
            // A later report replaces an earlier one, so a server cannot pile them up.
            self.pending.retain(|held| !is_replaced(held, &event));
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
        return Err(read_error(protocol, response, &client.retry).await);
    }
    ResponseBody::new(response.body, &client.retry, LONGEST_SMALL_BODY).read_whole(MAX_LIST_BYTES).await
}

/// Whether a held event says nothing any more once `later` has come.
fn is_replaced(held: &ClientEvent, later: &ClientEvent) -> bool {
    let (ClientEvent::Answer(held), ClientEvent::Answer(later)) = (held, later) else { return false };
    matches!(held, AnswerEvent::Usage(_) | AnswerEvent::CacheDiagnosis(_))
        && std::mem::discriminant(held) == std::mem::discriminant(later)
}

/// Reads the body of an error response, as far as it comes, and classifies the error.
async fn read_error(protocol: Protocol, response: HttpResponse, retry: &RetryPolicy) -> ProviderError {
    let HttpResponse { status, headers, body } = response;
    let mut body = ResponseBody::new(body, retry, LONGEST_SMALL_BODY);
    let mut text = Vec::new();
    while text.len() < MAX_ERROR_BYTES
        && let Ok(Some(chunk)) = body.next_chunk().await
    {
        text.extend_from_slice(&chunk);
    }
    let head = HttpResponse { status, headers, body: Box::pin(futures_util::stream::empty()) };
    ProviderError::from_response(protocol, &head, &text)
}

/// The bytes of a response, with limits for the time that they take.
struct ResponseBody {
    bytes: ByteStream,
    /// The rest of a chunk that is longer than [`MAX_SLICE`].
    rest: Bytes,
    silence: Duration,
    progress: Duration,
    longest: Duration,
    opened: Instant,
    /// When the model last said something.
    progress_at: Instant,
}

impl ResponseBody {
    fn new(bytes: ByteStream, retry: &RetryPolicy, longest: Duration) -> Self {
        let RetryPolicy { silence, progress, .. } = *retry;
        let (opened, rest) = (Instant::now(), Bytes::new());
        ResponseBody { bytes, rest, silence, progress, longest, opened, progress_at: opened }
    }

    /// The model said something, if the event is a piece of content.
    fn note_progress(&mut self, event: &AnswerEvent) {
        if limits::is_content(event) {
            self.progress_at = Instant::now();
        }
    }

    /// The next bytes, at most [`MAX_SLICE`] of them. `Err` if they take too long.
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, ProviderError> {
        let now = Instant::now();
        let left = |since: Instant, limit: Duration| limit.saturating_sub(now.duration_since(since));
        let too_late = if left(self.opened, self.longest).is_zero() {
            Some(deadline_error(self.longest))
        } else if left(self.progress_at, self.progress).is_zero() {
            Some(progress_error(self.progress))
        } else {
            None
        };
        if let Some(error) = too_late {
            return Err(error);
        }
        while self.rest.is_empty() {
            let wait =
                self.silence.min(left(self.opened, self.longest)).min(left(self.progress_at, self.progress));
            match tokio::time::timeout(wait, self.bytes.next()).await {
                Err(_) if wait == self.silence => return Err(stall_error(self.silence)),
                Err(_) if wait == left(self.opened, self.longest) => {
                    return Err(deadline_error(self.longest));
                }
                Err(_) => return Err(progress_error(self.progress)),
                Ok(None) => return Ok(None),
                Ok(Some(chunk)) => self.rest = chunk?,
            }
        }
        let length = self.rest.len().min(MAX_SLICE);
        Ok(Some(self.rest.split_to(length)))
    }

    /// All bytes. `Err` if there are more than an answer can have.
    async fn read_whole(&mut self, most: usize) -> Result<Vec<u8>, ProviderError> {
        let mut all = Vec::new();
        while let Some(chunk) = self.next_chunk().await? {
            if all.len() + chunk.len() > most {
                let message = format!("it has more than {most} bytes");
                return Err(ProviderError::new(FailureKind::AnswerTooLong, message));
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

fn stall_error(silence: Duration) -> ProviderError {
    let message = format!("no bytes came for {} s", silence.as_secs_f64());
    ProviderError::new(FailureKind::Stalled, message)
}

fn progress_error(progress: Duration) -> ProviderError {
    let message = format!("the model said nothing for {} s", progress.as_secs_f64());
    ProviderError::new(FailureKind::Stalled, message)
}

fn deadline_error(longest: Duration) -> ProviderError {
    let message = format!("it took longer than {} s", longest.as_secs_f64());
    ProviderError::new(FailureKind::AnswerTooLong, message)
}
