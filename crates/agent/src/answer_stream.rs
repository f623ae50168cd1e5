//! Receiving an answer: its events go to faces and, piece by piece, into the session, so that
//! neither an abort nor a crash loses what has arrived.

use std::ops::ControlFlow;
use std::time::Duration;

use bytes::Bytes;
use hardpan_prompt::{AgentMessage, MessageBody};
use hardpan_providers::{Answer, AnswerEvent, Client, ClientEvent, ProviderError, ResponseHead};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::edit_blocks::StreamedBlocks;
use crate::events::{
    AnswerPart, AnswerPartChange, AnswerPartKind, MessageDelta, MessageStart, MessageUpdate, Note,
    ProviderResponse,
};
use crate::last_request::TextFallbacks;
use crate::model_selection::ModelSelection;
use crate::request::PlannedRequest;

/// How often a streaming answer is stored: a crash loses at most this much of it.
const PARTIAL_SAVE_INTERVAL: Duration = Duration::from_millis(400);

/// The message of an answer that is still streaming.
pub(crate) struct PartialAnswer {
    pub message: AgentMessage,
    /// What arrived since the last partial record was stored.
    unsaved: Answer,
    pub first_token_at: Timestamp,
    /// The edit blocks that have come, if the model may write any.
    pub blocks: Option<StreamedBlocks>,
    /// The part that grows now, where a handler follows them.
    open_part: Option<(AnswerPartKind, usize)>,
}

/// What was received of an answer, and how receiving ended.
pub(crate) struct StreamOutcome {
    /// `None` if nothing came.
    pub partial: Option<PartialAnswer>,
    pub answer: Answer,
    pub end: StreamEnd,
    /// When the request that was answered was sent: the last attempt, after retries.
    pub sent: Timestamp,
}

/// How a stream ended.
pub(crate) enum StreamEnd {
    Completed,
    Stopped,
    Failed(ProviderError),
}

impl Agent {
    /// Sends the request and handles its events until the answer ends or the run is aborted.
    pub(crate) async fn stream_answer(
        &self,
        client: &Client,
        selection: &ModelSelection,
        planned: &PlannedRequest,
        forms: &TextFallbacks<'_>,
        body: Option<Bytes>,
        token: &CancellationToken,
    ) -> StreamOutcome {
        let mut sent = self.now();
        let mut partial = None;
        let mut stream = client.send_as(planned.client_request(selection, forms, sent), body);
        let mut save = tokio::time::interval(PARTIAL_SAVE_INTERVAL);
        save.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Whether to wait for the faces before the next piece; what came is stored meanwhile.
        let mut await_faces = false;
        let end = loop {
            tokio::select! {
                biased;
                () = token.cancelled() => break StreamEnd::Stopped,
                () = self.inner.retry_now.notified() => stream.retry_now(),
                () = self.events().wait_for_readers(), if await_faces => await_faces = false,
                event = stream.next_event(), if !await_faces => match event {
                    None => break StreamEnd::Completed,
                    Some(Err(error)) => break StreamEnd::Failed(error),
                    Some(Ok(ClientEvent::Notice(notice))) => {
                        if notice.restarts_request() {
                            sent = self.now(); // what was sent before was not answered
                        }
                        self.events().emit(self, Note::from(&notice)).await;
                        await_faces = true;
                    }
                    Some(Ok(ClientEvent::Accepted(head))) => self.tell_accepted(head).await,
                    Some(Ok(ClientEvent::Answer(event))) => {
                        let partial = match &mut partial {
                            Some(partial) => partial,
                            None => {
                                let begun = self.begin_answer(selection, planned, forms).await;
                                partial.insert(begun)
                            }
                        };
                        self.handle_answer_event(partial, &event, stream.answer()).await;
                        self.tell_part(partial, Some(&event), selection, stream.answer()).await;
                        await_faces = true;
                    }
                },
                _ = save.tick() => self.store_partial_answer(&mut partial, selection),
            }
        };
        if let (Some(partial), StreamEnd::Completed) = (&mut partial, &end) {
            self.tell_part(partial, None, selection, stream.answer()).await;
        }
        // What had arrived before an abort is kept, but no event is emitted any more.
        StreamOutcome { partial, answer: stream.into_answer(), end, sent }
    }

    /// Tells handlers that the provider accepted the request.
    async fn tell_accepted(&self, head: ResponseHead) {
        if self.events().has_handlers::<ProviderResponse>() {
            let headers = head.headers.into_iter().collect();
            let event = ProviderResponse { status: head.status, headers };
            let asking = self.events().ask_handlers(self, event, |_, ()| ControlFlow::Continue(()));
            let (_, faults) = asking.await;
            self.events().report_faults(&faults);
        }
    }

    /// Begins the message of an answer: the provider accepted the request, so the layout's new
    /// state is committed.
    async fn begin_answer(
        &self,
        selection: &ModelSelection,
        planned: &PlannedRequest,
        forms: &TextFallbacks<'_>,
    ) -> PartialAnswer {
        let now = self.now();
        let message = {
            let mut conversation = lock(&self.inner.conversation);
            match forms.replanned() {
                Some(assembled) => conversation.commit_layout_state(&assembled, now),
                None => conversation.commit_layout_state(&planned.assembled, now),
            }
            conversation.new_message(assistant_body(selection, &Answer::default(), None), now)
        };
        self.note_declared_tools();
        self.note_listed_skills(&planned.snapshot);
        self.events().emit(self, MessageStart { message: message.clone(), input: None }).await;
        let writes_blocks = planned.snapshot.system.edit_blocks || forms.replanned().is_some();
        let may_write = writes_blocks && self.inner.setup.edit_block_tool.is_some();
        let blocks = may_write.then(StreamedBlocks::default);
        PartialAnswer { message, unsaved: Answer::default(), first_token_at: now, blocks, open_part: None }
    }

    /// Handles one event of a streaming answer; `answer` has it already.
    async fn handle_answer_event(&self, partial: &mut PartialAnswer, event: &AnswerEvent, answer: &Answer) {
        match event {
            AnswerEvent::Text(_)
            | AnswerEvent::Reasoning(_)
            | AnswerEvent::Signature(_)
            | AnswerEvent::RedactedReasoning(_)
            | AnswerEvent::ProviderBlock(_)
            | AnswerEvent::Sources(_) => {
                partial.unsaved.push(event.clone());
            }
            _ => {}
        }
        let ended = if let AnswerEvent::CallEnd { index } = event { Some(*index) } else { None };
        // A call is stored once it is complete: half a call can be neither run nor answered.
        if let Some(call) = ended.and_then(|index| answer.nth_call(index)) {
            let (id, name) = (call.call.id.to_string(), call.call.name.to_string());
            let index = partial.unsaved.call_count();
            partial.unsaved.extend([
                AnswerEvent::CallStart { index, id, name },
                AnswerEvent::CallDelta { index, json: call.raw },
                AnswerEvent::CallEnd { index },
            ]);
        }
        let id = partial.message.id.clone();
        if let Some(delta) = message_delta(event) {
            self.events().emit(self, MessageUpdate { id: id.clone(), delta }).await;
        }
        if let (AnswerEvent::Text(text), Some(blocks)) = (event, &mut partial.blocks) {
            let complete = blocks.push(text);
            self.announce_blocks(&id, complete).await;
        }
    }

    /// Tells the handlers what an event did to the parts of the answer: `None` ends the last one.
    /// Faces have the pieces already.
    async fn tell_part(
        &self,
        partial: &mut PartialAnswer,
        event: Option<&AnswerEvent>,
        selection: &ModelSelection,
        answer: &Answer,
    ) {
        if !self.events().has_handlers::<AnswerPart>() {
            return;
        }
        let (kind, delta) = match event {
            Some(AnswerEvent::Text(text)) => (Some(AnswerPartKind::Text), Some(text)),
            Some(AnswerEvent::Reasoning(text)) => (Some(AnswerPartKind::Reasoning), Some(text)),
            Some(AnswerEvent::CallStart { .. }) => (Some(AnswerPartKind::Call), None),
            Some(AnswerEvent::CallDelta { json, .. }) => (Some(AnswerPartKind::Call), Some(json)),
            Some(AnswerEvent::CallEnd { .. }) | None => (None, None),
            Some(_) => return,
        };
        let body = assistant_body(selection, answer, None);
        let last = match &body {
            MessageBody::Assistant { content, .. } => content.len().saturating_sub(1),
            _ => 0,
        };
        let message = AgentMessage { body: body.into(), ..partial.message.clone() };
        let next = kind.map(|kind| (kind, last));
        let mut changes = Vec::new();
        if partial.open_part != next {
            changes.extend(partial.open_part.map(|part| (part, AnswerPartChange::End)));
            changes.extend(next.map(|part| (part, AnswerPartChange::Start)));
        }
        changes.extend(next.zip(delta).map(|(part, delta)| (part, AnswerPartChange::Delta(delta.clone()))));
        partial.open_part = next;
        for ((kind, part), change) in changes {
            self.events()
                .tell_handlers(self, AnswerPart { message: message.clone(), part, kind, change })
                .await;
        }
    }

    fn store_partial_answer(&self, partial: &mut Option<PartialAnswer>, selection: &ModelSelection) {
        let Some(partial) = partial else { return };
        let parts = std::mem::take(&mut partial.unsaved).parts();
        if !parts.is_empty() {
            let maker = (selection.target.provider.as_str(), selection.target.model.id.as_str());
            let now = self.now();
            lock(&self.inner.conversation).store_partial(&partial.message.id, parts, maker, now);
        }
    }
}

/// The body of an answer's message, whole or not; `reason` says how it ended.
pub(crate) fn assistant_body(
    selection: &ModelSelection,
    answer: &Answer,
    reason: Option<&str>,
) -> MessageBody {
    MessageBody::Assistant {
        content: answer.parts(),
        provider: Some(selection.target.provider.as_str().into()),
        model: Some(selection.target.model.id.as_str().into()),
        stop_reason: reason.map(Into::into),
    }
}

fn message_delta(event: &AnswerEvent) -> Option<MessageDelta> {
    Some(match event {
        AnswerEvent::Text(text) => MessageDelta::Text { text: text.clone() },
        AnswerEvent::Reasoning(text) => MessageDelta::Reasoning { text: text.clone() },
        AnswerEvent::CallStart { index, id, name } => {
            MessageDelta::Call { index: *index, call_id: id.clone(), name: name.clone() }
        }
        AnswerEvent::CallDelta { index, json } => {
            MessageDelta::Arguments { index: *index, json: json.clone() }
        }
        _ => return None,
    })
}
