//! One turn: its request, its answer, and what the run does next.
//!
//! [`Agent::request_answer`] builds and sends the request, receives the answer, and stores the
//! message and its bill.

use std::sync::Arc;

use hardpan_context::RenderCache;
use hardpan_prompt::{AgentMessage, MessageId, list_sources};
use hardpan_providers::{Answer, AnswerCall, Client, FailureKind, StopReason};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::answer_stream::{PartialAnswer, StreamEnd, StreamOutcome, assistant_body};
use crate::billing::RequestTimes;
use crate::edit_blocks::{AnswerBlocks, StreamedBlocks};
use crate::error::AgentError;
use crate::events::{BeforeProviderRequest, MessageEnd, Note, NoteKind, ResponseIdentity, RunEnd};
use crate::last_request::LastRequest;
use crate::model_selection::ModelSelection;
use crate::request::{HandledContext, PlannedRequest, RequestContent};
use crate::run::{RunState, unless_aborted};
use crate::session_ledger::CacheBase;
use crate::spending::Spending;
use crate::stored_knowledge::ResultData;

/// A stored answer, and what the run does next.
pub(crate) struct TurnOutcome {
    pub message: AgentMessage,
    pub calls: Vec<AnswerCall>,
    pub blocks: AnswerBlocks,
    /// How the run would end after this answer; `None` if the provider paused the turn and the same
    /// conversation is to be sent again.
    pub stop: Option<RunEnd>,
}

impl Agent {
    /// Sends the next request and receives its answer.
    pub(crate) async fn request_answer(
        &self,
        run_state: &mut RunState,
        fresh: Option<MessageId>,
        token: &CancellationToken,
    ) -> Result<Result<TurnOutcome, RunEnd>, AgentError> {
        let (selection, client) = match self.selection_with_client() {
            Ok(found) => found,
            Err(error) => return Ok(Err(RunEnd::Error { message: error.to_string() })),
        };
        let messages = lock(&self.inner.conversation).messages.clone();
        let HandledContext { mut messages, appended, changes: context_changes } =
            match unless_aborted(token, self.context_messages(messages)).await {
                Ok(handled) => handled,
                Err(stop) => return Ok(Err(stop)),
            };
        let planned = loop {
            let (appended, fresh) = (appended.clone(), fresh.clone());
            let content = RequestContent { messages, appended, fresh, fold: None };
            let planned = match self.plan_request(run_state, &selection, content).await {
                Ok(planned) => planned,
                Err(error) => return Ok(Err(error.into())),
            };
            match self.decide_about_secrets(token).await? {
                // The user sends them: planned once more, with them.
                Ok(true) => messages = planned.snapshot.messages,
                Ok(false) => break planned,
                Err(stop) => return Ok(Err(stop)),
            }
        };
        let render_cache = run_state.render_cache.clone();
        if self.events().has_listeners::<BeforeProviderRequest>() {
            let event = self.provider_request_event(&client, &selection, &planned, &render_cache);
            self.events().emit(self, event).await;
        }
        let mut changes = run_state.system_changes.clone();
        changes.extend(context_changes);
        let payload = Box::pin(self.ask_about_payload(&client, &selection, &planned, &render_cache));
        let payload = match unless_aborted(token, payload).await {
            Ok(payload) => payload,
            Err(stop) => return Ok(Err(stop)),
        };
        let forms = self.text_fallbacks(&selection, &planned.snapshot, &render_cache);
        let body = payload.as_ref().map(|payload| payload.body.clone());
        let outcome = self.stream_answer(&client, &selection, &planned, &forms, body, token).await;
        let (replanned, fallback) = (forms.replanned(), forms.take_sent(&render_cache, &selection.target));
        drop(forms);
        // A server that refused something of the payload was sent the prompt instead.
        let payload = payload.filter(|_| fallback.is_none() && replanned.is_none());
        changes.extend(payload.iter().flat_map(|payload| payload.changes.iter().cloned()));
        let fallback = fallback.or_else(|| {
            let prompt = payload.as_ref()?.prompt.clone();
            let measured = render_cache.counter.measure(&prompt).scaled(&selection.target.factor);
            Some((prompt, measured))
        });
        if outcome.partial.is_some() {
            let sent = planned.snapshot.ephemeral.len() - appended.len();
            lock(&self.inner.ephemeral).drain(..sent);
            lock(&self.inner.conversation).billing.note_changes(changes);
        }
        let PlannedRequest { assembled, snapshot, previous_answer, .. } = planned;
        let assembled = replanned.unwrap_or(assembled);
        let usage = outcome.answer.usage.as_ref().map(|usage| usage.tokens);
        let is_simulated = self.inner.setup.client_factory.is_simulated();
        let spending = usage
            .as_ref()
            .map(|usage| Spending::from_usage(usage, &selection.target).simulated_if(is_simulated));
        let target = selection.target.clone();
        if let Some(usage) = &usage {
            self.inner.setup.client_factory.record_usage(&target, &assembled, &render_cache, usage);
        }
        let last_request = Arc::new(LastRequest {
            assembled,
            snapshot,
            target,
            render_cache,
            spending,
            fallback,
            selection: selection.clone(),
            client,
            previous_answer,
            payload: payload.map(|payload| payload.body),
        });
        let before = lock(&self.inner.last_request).replace(last_request.clone());
        *lock(&self.inner.request_before) = before;
        self.finish_turn(outcome, &last_request, &selection).await
    }

    /// The event before a request: it has the prompt in the form that is sent.
    fn provider_request_event(
        &self,
        client: &Client,
        selection: &ModelSelection,
        planned: &PlannedRequest,
        render_cache: &RenderCache,
    ) -> BeforeProviderRequest {
        let forms = self.text_fallbacks(selection, &planned.snapshot, render_cache);
        let request = planned.client_request(selection, &forms, self.now());
        let prompt = client.prompt_to_send(&request).into_owned();
        let fallback = forms.take_sent(render_cache, &selection.target);
        let measured = fallback.as_ref().map_or(&planned.assembled.measured, |(_, measured)| measured);
        BeforeProviderRequest {
            provider: selection.target.provider.clone(),
            model: selection.target.model.id.clone(),
            layout: selection.layout,
            tokens: measured.total(),
            prompt: Arc::new(prompt),
        }
    }

    /// Stores the answer and its bill, and decides what comes next.
    async fn finish_turn(
        &self,
        StreamOutcome { partial, answer, end, sent }: StreamOutcome,
        last_request: &LastRequest,
        selection: &ModelSelection,
    ) -> Result<Result<TurnOutcome, RunEnd>, AgentError> {
        let Some(PartialAnswer { message, first_token_at, blocks, .. }) = partial else {
            return Ok(Err(match end {
                StreamEnd::Stopped => RunEnd::Aborted,
                StreamEnd::Failed(error) if error.failure == FailureKind::ContextTooLong => {
                    RunEnd::TooLong { message: error.to_string() }
                }
                StreamEnd::Failed(error) => RunEnd::Error { message: error.to_string() },
                StreamEnd::Completed => RunEnd::Error {
                    message: "the provider sent an empty answer; send the prompt again".into(),
                },
            }));
        };
        let (reason, stop) = classify_end(&answer, &end);
        let mut message =
            AgentMessage { body: assistant_body(selection, &answer, Some(&reason)).into(), ..message };
        if let Some(RunEnd::Error { message: error }) = &stop {
            message.note(|facts| facts.error = Some(error.as_str().into()));
        }
        let is_complete = !matches!(stop, Some(RunEnd::Aborted | RunEnd::Error { .. }));
        let saved = {
            let mut conversation = lock(&self.inner.conversation);
            conversation.record_items(&last_request.snapshot, &last_request.assembled.prompt);
            conversation.add_message(message.clone(), ResultData::default())
        };
        // A complete answer without a usage report is billed by our own count.
        let loss = (answer.usage.is_some() || is_complete).then(|| {
            let times = RequestTimes { sent, began: first_token_at };
            self.record_bill(
                "turn",
                selection,
                (last_request.sent_prompt(), CacheBase::Conversation),
                Some(&message.id),
                &answer,
                times,
            )
        });
        if is_complete {
            self.record_response(last_request);
        }
        saved.await?;
        // With what it used.
        let billed =
            lock(&self.inner.conversation).messages.last().filter(|last| last.id == message.id).cloned();
        let message = billed.unwrap_or(message);
        let response =
            ResponseIdentity { id: answer.id.as_str().into(), model: answer.model.as_str().into() };
        let ended = MessageEnd { message: message.clone(), input: None, response: Some(response) };
        self.events().emit(self, ended).await;
        if !answer.sources.is_empty() {
            let (text, sources) = (list_sources(&answer.sources), answer.sources.clone());
            self.events().emit(self, Note { text, kind: NoteKind::Sources { sources } }).await;
        }
        self.emit_cache_loss(Some(&message.id), loss.flatten()).await;
        // The calls of an answer that broke off are not run, and requests leave them out.
        let calls = if is_complete { answer.calls() } else { Vec::new() };
        let found = blocks.map(StreamedBlocks::finish).unwrap_or_default();
        let blocks = AnswerBlocks { found, ended_well: stop == Some(RunEnd::Done) };
        Ok(Ok(TurnOutcome { message, calls, blocks, stop }))
    }
}

/// The stop reason to store with an answer, and how the run would end after it.
fn classify_end(answer: &Answer, end: &StreamEnd) -> (String, Option<RunEnd>) {
    if matches!(end, StreamEnd::Stopped) {
        return ("aborted".into(), Some(RunEnd::Aborted));
    }
    if let Some(error) = &answer.error {
        return ("error".into(), Some(RunEnd::Error { message: error.to_string() }));
    }
    if let StreamEnd::Failed(error) = end {
        return ("error".into(), Some(RunEnd::Error { message: error.to_string() }));
    }
    let reason = answer.stop.clone().unwrap_or(StopReason::Cut);
    let stop = match &reason {
        StopReason::End | StopReason::StopSequence | StopReason::ToolUse => Some(RunEnd::Done),
        StopReason::Length => Some(RunEnd::Length),
        StopReason::Window => Some(RunEnd::TooLong {
            message: "the answer filled the model's context window; make room with /compact, then say \"go on\"".into(),
        }),
        StopReason::Refusal => Some(RunEnd::Refused),
        StopReason::Pause => None,
        StopReason::Other(word) => Some(RunEnd::Error { message: format!("the provider ended the answer for an unknown reason, \"{word}\"") }),
        StopReason::Cut => Some(RunEnd::Error {
            message: "the connection broke off in the middle of the answer; what came is kept. Say \"go on\" to continue".into(),
        }),
    };
    (reason.as_str().to_owned(), stop)
}
