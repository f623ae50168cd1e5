//! One turn's request and its streamed answer.
//!
//! [`Agent::request_answer`] builds the snapshot, assembles and validates the prompt, streams the
//! answer into a [`PartialAnswer`], and stores the message and its bill.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_context::{
    AssembledPrompt, Breakdown, FoldReason, PromptTexts, RenderCache, Snapshot, Target, assemble,
    without_images, without_newer_fields, without_tools,
};
use hardpan_prompt::validate::validate;
use hardpan_prompt::{AgentMessage, ItemKind, MessageBody, MessageId, Prompt, PromptTokens};
use hardpan_providers::{
    Answer, AnswerCall, AnswerEvent, Client, ClientEvent, ClientRequest, FailureKind, PromptFallbacks,
    ProviderError, StopReason,
};
use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, ModelSelection, lock};
use crate::billing::RequestTimes;
use crate::conversation::Conversation;
use crate::error::{AgentError, BuildError};
use crate::events::{
    BeforeProviderRequest, ContextEvent, MessageDelta, MessageEnd, MessageStart, MessageUpdate, Note, RunEnd,
};
use crate::run::{RunState, unless_aborted};
use crate::session_ledger::CacheBase;
use crate::setup::{ClientFactoryError, ObserveError};
use crate::spending::Spending;
use crate::stored_knowledge::ResultData;

/// How often a streaming answer is stored: a crash loses at most this much of it.
const PARTIAL_SAVE_INTERVAL: Duration = Duration::from_millis(400);

/// A stored answer, and what the run does next.
pub struct TurnOutcome {
    pub message: AgentMessage,
    pub calls: Vec<AnswerCall>,
    /// How the run would end after this answer; `None` if the provider paused the turn and the same
    /// conversation is to be sent again.
    pub stop: Option<RunEnd>,
}

/// The last request as it was sent: for breakdowns, pings and cost forecasts.
pub struct LastRequest {
    pub assembled: AssembledPrompt,
    pub snapshot: Snapshot,
    pub target: Target,
    pub render_cache: Arc<RenderCache>,
    pub spending: Option<Spending>,
    /// The prompt that was sent instead, if the model takes no tools or no images.
    pub fallback: Option<(Prompt, PromptTokens)>,
}

impl LastRequest {
    pub fn breakdown(&self) -> Breakdown {
        Breakdown::new(&self.assembled, &self.snapshot, &self.target, &self.render_cache)
    }

    /// The prompt that was really sent, and its token counts.
    pub fn sent_prompt(&self) -> (&Prompt, &PromptTokens) {
        match &self.fallback {
            Some((prompt, measured)) => (prompt, measured),
            None => (&self.assembled.prompt, &self.assembled.measured),
        }
    }
}

/// Builds the fallback prompts for models without tools or images, and remembers the last one it
/// built: that one was sent.
pub(crate) struct TextFallbacks<'a> {
    texts: &'a PromptTexts,
    sent: Mutex<Option<Prompt>>,
}

impl<'a> TextFallbacks<'a> {
    pub fn new(texts: &'a PromptTexts) -> Self {
        TextFallbacks { texts, sent: Mutex::default() }
    }

    /// Takes the fallback that was sent, with its token counts; `None` if the prompt itself was.
    pub fn take_sent(&self, render_cache: &RenderCache, target: &Target) -> Option<(Prompt, PromptTokens)> {
        let prompt = lock(&self.sent).take()?;
        let measured = render_cache.counter.measure(&prompt).scaled(&target.factor);
        Some((prompt, measured))
    }
}

impl PromptFallbacks for TextFallbacks<'_> {
    fn without_tools(&self, prompt: &Prompt) -> Prompt {
        let form = without_tools(prompt, self.texts);
        *lock(&self.sent) = Some(form.clone());
        form
    }
    fn without_images(&self, prompt: &Prompt) -> Prompt {
        let form = without_images(prompt, self.texts);
        *lock(&self.sent) = Some(form.clone());
        form
    }
    fn without_newer_fields(&self, prompt: &Prompt) -> Prompt {
        let form = without_newer_fields(prompt);
        *lock(&self.sent) = Some(form.clone());
        form
    }
}

/// The message of an answer that is still streaming.
struct PartialAnswer {
    message: AgentMessage,
    /// What arrived since the last partial record was stored.
    unsaved: Answer,
    first_token_at: Timestamp,
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
        let messages = match unless_aborted(token, self.context_messages()).await {
            Ok(messages) => messages,
            Err(stop) => return Ok(Err(stop)),
        };
        let mut snapshot = match self.build_snapshot(run_state, &selection, fresh, messages) {
            Ok(snapshot) => snapshot,
            Err(error) => return Ok(Err(error.into())),
        };
        self.prepare_layout_state(run_state, &selection, &mut snapshot).await;
        let assembled = match self.assemble_request(run_state, &selection, &snapshot) {
            Ok(assembled) => assembled,
            Err(error) => return Ok(Err(error.into())),
        };
        if self.events().has_listeners::<BeforeProviderRequest>() {
            let event = BeforeProviderRequest {
                provider: selection.target.provider.clone(),
                model: selection.target.model.id.clone(),
                layout: selection.layout,
                tokens: assembled.measured.total(),
                prompt: Arc::new(assembled.prompt.clone()),
            };
            self.events().emit(self, event).await;
        }
        let forms = TextFallbacks::new(&self.inner.setup.texts);
        let outcome = self.stream_answer(&client, &selection, &assembled, &forms, token).await;
        let usage = outcome.answer.usage.as_ref().map(|usage| usage.tokens);
        let spending = usage.as_ref().map(|usage| Spending::from_usage(usage, &selection.target));
        let target = selection.target.clone();
        let render_cache = run_state.render_cache.clone();
        if let Some(usage) = &usage {
            self.inner.setup.client_factory.record_usage(&target, &assembled, &run_state.render_cache, usage);
        }
        let fallback = forms.take_sent(&render_cache, &target);
        let last_request =
            Arc::new(LastRequest { assembled, snapshot, target, render_cache, spending, fallback });
        *lock(&self.inner.last_request) = Some(last_request.clone());
        self.finish_turn(outcome, &last_request, &selection).await
    }

    /// The current selection, and a client for it. No lock is held while the client is built, which
    /// may read keys from files.
    pub(crate) fn selection_with_client(&self) -> Result<(ModelSelection, Arc<Client>), ClientFactoryError> {
        let selection = lock(&self.inner.selection).clone();
        if let Some(client) = selection.client.get() {
            let client = client.clone();
            return Ok((selection, client));
        }
        let session = lock(&self.inner.conversation).session.clone();
        let client = self.inner.setup.client_factory.client(&selection.target, &session)?;
        // If another model was selected meanwhile, this stays with the old selection.
        let client = selection.client.get_or_init(|| Arc::new(client)).clone();
        Ok((selection, client))
    }

    /// The conversation as the handlers of the `context` event leave it. Without handlers there is
    /// only one copy.
    async fn context_messages(&self) -> Vec<AgentMessage> {
        let messages = lock(&self.inner.conversation).messages.clone();
        if !self.events().has_handlers::<ContextEvent>() {
            return messages;
        }
        let take = |event: &mut ContextEvent, reply: Option<Vec<AgentMessage>>| {
            event.messages = reply.unwrap_or_else(|| std::mem::take(&mut event.messages));
            ControlFlow::Continue(())
        };
        let (event, faults) = self.events().ask_handlers(self, ContextEvent { messages }, take).await;
        self.events().report_faults(&faults);
        event.messages
    }

    /// Collects everything the next request depends on.
    pub(crate) fn build_snapshot(
        &self,
        run_state: &RunState,
        selection: &ModelSelection,
        fresh: Option<MessageId>,
        messages: Vec<AgentMessage>,
    ) -> Result<Snapshot, ObserveError> {
        let mut snapshot = run_state.observed_snapshot()?.clone();
        snapshot.now = self.now();
        let conversation = lock(&self.inner.conversation);
        for item in snapshot.items.iter_mut().filter(|item| item.kind == ItemKind::File) {
            // The call that read or changed the file already showed this content to the model.
            let known_file = conversation
                .knowledge
                .known_whole(item.name())
                .filter(|known| known.hash == item.body.hash());
            item.shown_by = known_file.and_then(|known| known.message.clone()).or(item.shown_by.take());
        }
        let is_free = self.is_fold_free(&conversation, selection, snapshot.now);
        snapshot.fold = snapshot.fold.or(is_free.then_some(FoldReason::CacheLost));
        snapshot.system.whole = run_state.system_prompt_override.clone();
        snapshot.tools = self.tools().declarations();
        snapshot.thinking = selection.thinking;
        snapshot.messages = messages;
        snapshot.first_unsent = fresh;
        snapshot.layout_state = conversation.memory.current().clone();
        Ok(snapshot)
    }

    /// Whether a fold costs nothing now: the cache is lost anyway (expired, or another model was
    /// selected), and there is garbage to drop.
    fn is_fold_free(&self, conversation: &Conversation, selection: &ModelSelection, now: Timestamp) -> bool {
        let ModelSelection { target, layout, .. } = selection;
        let Some((at, provider, model)) = &conversation.last_request else { return false };
        let other = **provider != *target.provider || **model != *target.model.id;
        let age = now.as_second() - at.as_second();
        let expired = target.profile.cache.lifetime.is_some_and(|lifetime| age >= i64::from(lifetime));
        (other || expired) && layout.layout().garbage_tokens(conversation.memory.current()) > 0
    }

    pub(crate) fn assemble_request(
        &self,
        run_state: &mut RunState,
        selection: &ModelSelection,
        snapshot: &Snapshot,
    ) -> Result<AssembledPrompt, BuildError> {
        let target = &selection.target;
        if target.vocabulary() != run_state.vocabulary {
            run_state.vocabulary = target.vocabulary();
            run_state.render_cache = Arc::new(RenderCache::new(run_state.vocabulary));
        }
        let texts = &self.inner.setup.texts;
        let assembled = assemble(snapshot, selection.layout, target, texts, &run_state.render_cache)?;
        let rules = hardpan_providers::validation_rules(&target.profile, &target.model);
        validate(&assembled.prompt, &rules)?;
        Ok(assembled)
    }

    /// Sends the request and handles its events until the answer ends or the run is aborted.
    async fn stream_answer(
        &self,
        client: &Client,
        selection: &ModelSelection,
        assembled: &AssembledPrompt,
        forms: &TextFallbacks<'_>,
        token: &CancellationToken,
    ) -> StreamOutcome {
        let started = self.now();
        let mut sent = started;
        let previous_answer = self.previous_answer(selection);
        let request = ClientRequest {
            prompt: &assembled.prompt,
            profile: &selection.target.profile,
            provider: &selection.target.provider,
            fallbacks: forms,
            previous_answer: previous_answer.as_deref(),
            now_ms: started.as_millisecond(),
        };
        let mut partial = None;
        let mut stream = client.send(request);
        let mut save = tokio::time::interval(PARTIAL_SAVE_INTERVAL);
        save.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        // Whether to wait for the faces before the next piece; what came is stored meanwhile.
        let mut await_faces = false;
        let end = loop {
            tokio::select! {
                biased;
                () = token.cancelled() => break StreamEnd::Stopped,
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
                    Some(Ok(ClientEvent::Answer(event))) => {
                        let partial = match &mut partial {
                            Some(partial) => partial,
                            None => partial.insert(self.begin_answer(selection, assembled).await),
                        };
                        self.handle_answer_event(partial, &event, stream.answer()).await;
                        await_faces = true;
                    }
                },
                _ = save.tick() => self.store_partial_answer(&mut partial, selection),
            }
        };
        // What had arrived before an abort is kept, but no event is emitted any more.
        StreamOutcome { partial, answer: stream.into_answer(), end, sent }
    }

    /// Begins the message of an answer: the provider accepted the request, so the layout's new
    /// state is committed.
    async fn begin_answer(&self, selection: &ModelSelection, assembled: &AssembledPrompt) -> PartialAnswer {
        let now = self.now();
        let message = {
            let mut conversation = lock(&self.inner.conversation);
            conversation.commit_layout_state(assembled, now);
            conversation.new_message(assistant_body(selection, &Answer::default(), None), now)
        };
        self.events().emit(self, MessageStart { message: message.clone(), input: None }).await;
        PartialAnswer { message, unsaved: Answer::default(), first_token_at: now }
    }

    /// Handles one event of a streaming answer; `answer` has it already.
    async fn handle_answer_event(&self, partial: &mut PartialAnswer, event: &AnswerEvent, answer: &Answer) {
        match event {
            AnswerEvent::Text(_)
            | AnswerEvent::Reasoning(_)
            | AnswerEvent::Signature(_)
            | AnswerEvent::RedactedReasoning(_) => {
                partial.unsaved.push(event.clone());
            }
            _ => {}
        }
        let ended = if let AnswerEvent::CallEnd { index } = event { Some(*index) } else { None };
        // A call is stored once it is complete: half a call can be neither run nor answered.
        if let Some(call) = ended.and_then(|index| answer.calls().into_iter().nth(index)) {
            let (id, name) = (call.call.id.to_string(), call.call.name.to_string());
            let index = partial.unsaved.calls().len();
            partial.unsaved.extend([
                AnswerEvent::CallStart { index, id, name },
                AnswerEvent::CallDelta { index, json: call.raw },
                AnswerEvent::CallEnd { index },
            ]);
        }
        if let Some(delta) = message_delta(event) {
            let id = partial.message.id.clone();
            self.events().emit(self, MessageUpdate { id, delta }).await;
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

    /// Stores the answer and its bill, and decides what comes next.
    async fn finish_turn(
        &self,
        StreamOutcome { partial, answer, end, sent }: StreamOutcome,
        last_request: &LastRequest,
        selection: &ModelSelection,
    ) -> Result<Result<TurnOutcome, RunEnd>, AgentError> {
        let Some(PartialAnswer { message, first_token_at, .. }) = partial else {
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
        let message =
            AgentMessage { body: assistant_body(selection, &answer, Some(&reason)).into(), ..message };
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
        self.events().emit(self, MessageEnd { message: message.clone(), input: None }).await;
        self.emit_cache_loss(Some(&message.id), loss.flatten()).await;
        // The calls of an answer that broke off are not run, and requests leave them out.
        let calls = if is_complete { answer.calls() } else { Vec::new() };
        Ok(Ok(TurnOutcome { message, calls, stop }))
    }
}

/// What was received of an answer, and how receiving ended.
struct StreamOutcome {
    /// `None` if nothing came.
    partial: Option<PartialAnswer>,
    answer: Answer,
    end: StreamEnd,
    /// When the request that was answered was sent: the last attempt, after retries.
    sent: Timestamp,
}

/// How a stream ended.
enum StreamEnd {
    Completed,
    Stopped,
    Failed(ProviderError),
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

fn assistant_body(selection: &ModelSelection, answer: &Answer, reason: Option<&str>) -> MessageBody {
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
