//! [`AnswerStream`]: an answer while it comes.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use tokio::sync::Notify;

use super::ClientNotice;
use crate::{Answer, AnswerEvent, ProviderError};

/// What [`AnswerStream::next_event`] returns.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent {
    /// The next piece of the answer; it is already part of [`AnswerStream::answer`].
    Answer(AnswerEvent),
    /// Something the user should know: a retry, a downgrade.
    Notice(ClientNotice),
    /// The provider accepted the request. Comes before the first piece of its answer.
    Accepted(ResponseHead),
}

/// The beginning of an HTTP response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The HTTP status code.
    pub status: u16,
    /// Header names, in lower case, and their values. Cookies are left out.
    pub headers: Vec<(String, String)>,
}

/// Events that became ready together: those of one chunk of the response.
pub(super) type EventBatch = Result<Vec<ClientEvent>, ProviderError>;

/// The answer to one request, while it comes. Poll it with [`next_event`](Self::next_event);
/// dropping it cancels the request, the wait before a retry, and the response.
///
/// A request that fails before the model has said anything is retried if that may help, with a
/// notice. An answer that breaks off later is not: it ends with
/// [`StopReason::Cut`](crate::StopReason::Cut) and keeps what came.
pub struct AnswerStream<'a> {
    batches: Pin<Box<dyn Stream<Item = EventBatch> + Send + 'a>>,
    /// Events that have arrived but were not returned yet.
    ready: VecDeque<ClientEvent>,
    answer: Answer,
    send_now: Arc<Notify>,
}

impl<'a> AnswerStream<'a> {
    /// `send_now` ends the wait before an attempt.
    pub(super) fn new(batches: impl Stream<Item = EventBatch> + Send + 'a, send_now: Arc<Notify>) -> Self {
        let (ready, answer) = (VecDeque::new(), Answer::default());
        AnswerStream { batches: Box::pin(batches), ready, answer, send_now }
    }

    /// Sends a failed request again at once, if it waits for that.
    pub fn retry_now(&self) {
        self.send_now.notify_waiters();
    }

    /// Waits for the next event. `None` after the end of the answer, or after an error: then the
    /// model has said nothing.
    ///
    /// Dropping the future loses nothing: the next call goes on where this one stopped.
    pub async fn next_event(&mut self) -> Option<Result<ClientEvent, ProviderError>> {
        while self.ready.is_empty() {
            match self.batches.next().await? {
                Ok(events) => self.ready.extend(events),
                Err(error) => return Some(Err(error)),
            }
        }
        let event = self.ready.pop_front()?;
        if let ClientEvent::Answer(piece) = &event {
            self.answer.push(piece.clone());
        }
        Some(Ok(event))
    }

    /// The answer as far as its events have been returned.
    pub fn answer(&self) -> &Answer {
        &self.answer
    }

    /// Stops here. The answer also has the pieces that had arrived but were not returned yet.
    pub fn into_answer(mut self) -> Answer {
        self.answer.extend(self.ready.drain(..).filter_map(|event| match event {
            ClientEvent::Answer(piece) => Some(piece),
            ClientEvent::Notice(_) | ClientEvent::Accepted(_) => None,
        }));
        self.answer
    }

    /// Waits for the whole answer, without looking at its events.
    pub async fn collect(mut self) -> Result<Answer, ProviderError> {
        while let Some(event) = self.next_event().await {
            event?;
        }
        Ok(self.answer)
    }
}

impl fmt::Debug for AnswerStream<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnswerStream").field("answer", &self.answer).finish_non_exhaustive()
    }
}
