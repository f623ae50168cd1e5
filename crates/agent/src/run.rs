//! One run: from a prepared prompt until nothing more happens by itself.
//!
//! A run is a loop of turns. It ends when the model has nothing more to do and both queues are
//! empty, when the user aborts it, or when something fails; [`RunEnd`] says which.

use std::ops::ControlFlow;
use std::sync::Arc;

use hardpan_context::{LayoutInput, RenderCache, Snapshot};
use hardpan_prompt::{AgentMessage, MessageBody, MessageId, Text, Vocabulary};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::agent::{Agent, lock};
use crate::compact::{CompactReason, estimate_tokens};
use crate::error::AgentError;
use crate::events::{
    AgentEnd, AgentStart, BeforeAgentStart, CustomMessage, MessageEnd, MessageStart, Note, NoteKind,
    QueueUpdate, RunEnd, TurnEnd, TurnStart,
};
use crate::extension_changes::{Change, ExtensionChange};
use crate::failure_guard::FailureGuard;
use crate::queue::{Delivery, InputId, PreparedInput};
use crate::run_status::Activity;
use crate::session_ledger::FlushScope;
use crate::setup::{ObserveError, ObserveReason, ObserveRequest};
use crate::stored_knowledge::ResultData;
use crate::tool_calls::ToolCallsEnd;
use crate::turn::TurnOutcome;

/// What runs work with, kept from run to run behind one lock.
pub struct RunState {
    /// Rendered and counted texts, reused from request to request.
    pub render_cache: Arc<RenderCache>,
    pub vocabulary: Vocabulary,
    /// The workspace as last observed; `None` before the first run.
    base_snapshot: Option<Snapshot>,
    /// The system prompt of this run, if a `before_agent_start` handler replaced it.
    pub system_prompt_override: Option<Text>,
    /// Who changed it, and how.
    pub system_changes: Vec<ExtensionChange>,
    pub guard: FailureGuard,
}

impl RunState {
    pub fn new(vocabulary: Vocabulary) -> Self {
        let render_cache = Arc::new(RenderCache::new(vocabulary));
        RunState {
            render_cache,
            vocabulary,
            base_snapshot: None,
            system_prompt_override: None,
            system_changes: Vec::new(),
            guard: FailureGuard::default(),
        }
    }

    /// Takes over what was observed, for the requests that follow.
    pub fn set_observed(&mut self, snapshot: Snapshot) {
        self.base_snapshot = Some(snapshot);
    }

    /// The workspace as last observed.
    pub fn observed_snapshot(&self) -> Result<&Snapshot, ObserveError> {
        self.base_snapshot.as_ref().ok_or(ObserveError::NotObserved)
    }
}

impl From<ObserveError> for RunEnd {
    fn from(error: ObserveError) -> Self {
        RunEnd::Error { message: error.to_string() }
    }
}

/// The messages after `last`. If a compaction removed `last`, all messages except the summary.
fn messages_after(messages: &[AgentMessage], last: Option<&MessageId>) -> Vec<AgentMessage> {
    let at = messages.iter().position(|message| Some(&message.id) == last);
    let rest = messages.iter().skip(at.map_or(0, |at| at + 1));
    rest.filter(|message| !matches!(*message.body, MessageBody::CompactionSummary { .. })).cloned().collect()
}

/// Awaits a future, or returns [`RunEnd::Aborted`] as soon as the run is aborted.
pub(crate) async fn unless_aborted<T>(
    token: &CancellationToken,
    future: impl Future<Output = T>,
) -> Result<T, RunEnd> {
    tokio::select! {
        biased;
        () = token.cancelled() => Err(RunEnd::Aborted),
        value = future => Ok(value),
    }
}

impl Agent {
    /// Runs a prompt to its end, then the inputs that arrived while the end was announced (an
    /// `agent_end` handler may queue one).
    pub(crate) async fn run(
        &self,
        run_state: &mut RunState,
        mut prepared: PreparedInput,
        mut token: CancellationToken,
    ) -> Result<RunEnd, AgentError> {
        loop {
            let span = tracing::info_span!("run", session = %lock(&self.inner.conversation).session);
            // On the heap: a run holds much, and its caller little.
            let ran = Box::pin(self.run_once(run_state, prepared, token)).instrument(span).await;
            let Some(next) = self.begin_next_run(matches!(ran, Ok(RunEnd::Aborted))) else { return ran };
            (prepared, token) = next;
            self.events().emit(self, QueueUpdate(self.queued_inputs())).await;
        }
    }

    /// The input that begins the next run, with the token that stops it; none if no input may. Under the
    /// lock of the queues, so that no input is queued for a run that is over.
    fn begin_next_run(&self, is_aborted: bool) -> Option<(PreparedInput, CancellationToken)> {
        let mut queues = lock(&self.inner.queues);
        if is_aborted || lock(&self.inner.extension_runs).is_stopped() {
            queues.after_abort();
        }
        let Some(next) = queues.next_after_end() else {
            self.inner.gate.set_activity(Activity::Finishing);
            return None;
        };
        Some((next, self.new_abort_token()))
    }

    async fn run_once(
        &self,
        run_state: &mut RunState,
        prepared: PreparedInput,
        token: CancellationToken,
    ) -> Result<RunEnd, AgentError> {
        // Other operations may have installed their own token meanwhile; from here on an abort
        // means this run.
        *lock(&self.inner.abort) = token.clone();
        self.inner.gate.set_activity(Activity::Running);
        let before = lock(&self.inner.conversation).messages.last().map(|message| message.id.clone());
        run_state.guard.reset();
        let result = self.run_turns(run_state, prepared, &token).await;
        let result = self.flush_shell_messages().await.and(result);
        self.inner.gate.set_activity(Activity::Ending);
        let (stop, error) = match result {
            Ok(stop) => (stop, None),
            Err(error) => (RunEnd::Error { message: error.to_string() }, Some(error)),
        };
        tracing::info!(end = ?stop, "run ended");
        lock(&self.inner.conversation).store_run_records(FlushScope::Run, self.now());
        if self.events().has_listeners::<AgentEnd>() {
            let messages = messages_after(&lock(&self.inner.conversation).messages, before.as_ref());
            let (token_usage, queued) = (self.token_usage(), self.queued_inputs());
            self.events().emit(self, AgentEnd { messages, stop: stop.clone(), token_usage, queued }).await;
        }
        error.map_or(Ok(stop), Err)
    }

    async fn run_turns(
        &self,
        run_state: &mut RunState,
        prepared: PreparedInput,
        token: &CancellationToken,
    ) -> Result<RunEnd, AgentError> {
        tracing::trace!(prompt = %prepared.text, "run started");
        // The prompt is stored before anything else, so that it survives whatever comes next.
        let mut fresh = Some(self.add_input(&prepared).await?);
        self.record_thinking();
        drop(self.store_tool_switches());
        if let Some(saved) = self.store_first_choice() {
            saved.await?;
        }
        if let Some(prompt) = &fresh
            && let Err(stop) = self.fetch_pages(&prepared, prompt, token).await?
        {
            return Ok(stop);
        }
        let extension = match self.prepare_run(run_state, &prepared, token).await {
            Ok(messages) => messages,
            Err(stop) => return Ok(stop),
        };
        let next_prompt_messages = std::mem::take(&mut *lock(&self.inner.next_prompt_messages));
        for message in next_prompt_messages.into_iter().chain(extension) {
            let (body, details) = message.into_parts();
            self.add_message(body, details, None).await?;
        }
        self.events().emit(self, AgentStart {}).await;
        // A failed compaction is not retried every turn: each attempt costs money.
        let mut may_compact = true;
        // How often in a row edit blocks could not be applied.
        let mut block_failures = 0;
        for turn in 1..=self.inner.setup.settings.max_turns {
            self.events().emit(self, TurnStart { turn }).await;
            self.wait_for_faces(token).await;
            self.flush_shell_messages().await?;
            // Tools, commands of the user and other programs may have changed something since.
            if turn > 1
                && let Err(stop) =
                    self.observe_for_run(run_state, ObserveReason::NextRequest, &prepared, token).await
            {
                return Ok(stop);
            }
            if may_compact && self.is_nearly_full(run_state) {
                may_compact = self.compact_to_make_room(run_state, CompactReason::NearlyFull, token).await;
            }
            let mut outcome = Box::pin(self.request_answer(run_state, fresh.clone(), token)).await?;
            if let Err(RunEnd::TooLong { .. }) = outcome
                && self.compact_to_make_room(run_state, CompactReason::TooLong, token).await
            {
                outcome = Box::pin(self.request_answer(run_state, fresh.clone(), token)).await?;
            }
            let TurnOutcome { message, calls, blocks, stop } = match outcome {
                Ok(outcome) => outcome,
                Err(stop) => return Ok(stop),
            };
            let edited = self.apply_edit_blocks(&message.id, blocks, token).await?;
            let ToolCallsEnd { results: tool_results, looping, ends_run } =
                Box::pin(self.run_tool_calls(run_state, &calls, token)).await?;
            let mut block_results = None;
            let mut blocks_failed = false;
            if let Some(edited) = &edited {
                block_results = Some(self.tell_block_results(edited).await?);
                blocks_failed = edited.has_failures();
            }
            block_failures = if blocks_failed { block_failures + 1 } else { 0 };
            let none = (calls.is_empty() || ends_run) && !blocks_failed;
            self.events().emit(self, TurnEnd { turn, message, tool_results }).await;
            if let Some(stop @ (RunEnd::Aborted | RunEnd::Error { .. })) = stop {
                return Ok(stop);
            }
            if token.is_cancelled() {
                return Ok(RunEnd::Aborted);
            }
            if let Some(tool) = looping.or_else(|| self.looping_blocks(block_failures)) {
                return Ok(RunEnd::Looping { tool });
            }
            let mut due = self.take_due_inputs(Delivery::Steer);
            if due.is_empty() && none {
                match stop {
                    Some(stop) if stop != RunEnd::Done => return Ok(stop),
                    Some(_) => due = self.take_due_inputs(Delivery::FollowUp),
                    None => continue,
                }
                if due.is_empty() {
                    // If an input arrived in the meantime, the run is not over.
                    if self.end_if_nothing_waits() {
                        return Ok(RunEnd::Done);
                    }
                    due = self.take_due_inputs(Delivery::Steer);
                    if due.is_empty() {
                        due = self.take_due_inputs(Delivery::FollowUp);
                    }
                }
            }
            let delivered = self.deliver_inputs(run_state, due, token).await?;
            if delivered.is_some() {
                block_failures = 0;
            }
            fresh = block_results.or(delivered);
        }
        let max_turns = self.inner.setup.settings.max_turns;
        Ok(RunEnd::Error {
            message: format!("the run reached its limit of {max_turns} turns; say \"go on\" to continue"),
        })
    }

    /// Ends the run unless an input waits; returns whether it ended. Under the lock of the queues, so
    /// that no input is queued for a run that is over.
    fn end_if_nothing_waits(&self) -> bool {
        let queues = lock(&self.inner.queues);
        if queues.is_empty() {
            self.inner.gate.set_activity(Activity::Ending);
        }
        queues.is_empty()
    }

    /// Whether the last request plus the messages added since fill more of the window than the
    /// `compact_at` setting allows.
    fn is_nearly_full(&self, run_state: &RunState) -> bool {
        let share = self.inner.setup.settings.compact_at;
        let last_request = lock(&self.inner.last_request).clone();
        let Some(last_request) = last_request.filter(|_| share > 0.0) else { return false };
        let input = last_request
            .spending
            .map_or(0, |spending| spending.tokens.prompt())
            .max(last_request.assembled.measured.total() as u64);
        let sent = last_request.snapshot.messages.last().map(|message| &message.id);
        let conversation = lock(&self.inner.conversation);
        let at = conversation.messages.iter().rposition(|message| Some(&message.id) == sent);
        let new = at.map_or(&[][..], |at| &conversation.messages[at + 1..]);
        let added: usize = new
            .iter()
            .map(|message| {
                last_request.target.factor.scale(estimate_tokens(message, &run_state.render_cache.counter))
            })
            .sum();
        (input + added as u64) as f64 > share * f64::from(last_request.target.max_input_tokens())
    }

    /// Compacts the conversation and emits a note about the result; returns whether it succeeded.
    /// The run continues either way: what does not fit is left out of the request.
    async fn compact_to_make_room(
        &self,
        run_state: &mut RunState,
        why: CompactReason,
        token: &CancellationToken,
    ) -> bool {
        let compacting = Box::pin(self.compact_now(run_state, None, why, token));
        match compacting.instrument(tracing::info_span!("compaction")).await {
            Ok(compacted) => {
                let messages = compacted.messages;
                let text = format!("{messages} messages were compacted into a summary; /tree goes back");
                self.events().emit(self, Note { text, kind: NoteKind::Compacted { messages } }).await;
                true
            }
            Err(error) => {
                let (text, kind) = (error.to_string(), NoteKind::CompactionFailed);
                self.events().emit(self, Note { text, kind }).await;
                false
            }
        }
    }

    /// Waits while a face reads too slowly, unless the run is aborted.
    pub(crate) async fn wait_for_faces(&self, token: &CancellationToken) {
        let _ = unless_aborted(token, self.events().wait_for_readers()).await;
    }

    /// Adds queued inputs to the conversation. Returns the id of the first one, which the next
    /// request treats as the fresh prompt.
    async fn deliver_inputs(
        &self,
        run_state: &mut RunState,
        due: Vec<PreparedInput>,
        token: &CancellationToken,
    ) -> Result<Option<MessageId>, AgentError> {
        let mut first = None;
        for prepared in &due {
            let id = self.add_input(prepared).await?;
            // An abort is noticed before the next request.
            let _ = self.fetch_pages(prepared, &id, token).await?;
            first = first.or(Some(id));
        }
        if first.is_some() {
            run_state.guard.reset();
            self.events().emit(self, QueueUpdate(self.queued_inputs())).await;
        }
        Ok(first)
    }

    /// Adds what an input became.
    async fn add_input(&self, prepared: &PreparedInput) -> Result<MessageId, AgentError> {
        let (body, details) = prepared.message();
        self.add_message(body, details, prepared.id).await
    }

    /// Adds a message to the conversation; it is acknowledged (`message_end`) once it is stored.
    /// `input` is the id of the input that the message was.
    pub(crate) async fn add_message(
        &self,
        body: MessageBody,
        details: Option<Value>,
        input: Option<InputId>,
    ) -> Result<MessageId, AgentError> {
        let mut message = lock(&self.inner.conversation).new_message(body, self.now());
        message.note(|facts| facts.details = details);
        let id = message.id.clone();
        self.events().emit(self, MessageStart { message: message.clone(), input }).await;
        let saved = lock(&self.inner.conversation).add_message(message.clone(), ResultData::default());
        saved.await?;
        self.events().emit(self, MessageEnd { message, input, response: None }).await;
        Ok(id)
    }

    /// Stores a message with the data of a tool result, then emits `message_end`.
    pub(crate) async fn store_message(
        &self,
        message: AgentMessage,
        data: ResultData,
    ) -> Result<(), AgentError> {
        let saved = lock(&self.inner.conversation).add_message(message.clone(), data);
        saved.await?;
        self.events().emit(self, MessageEnd { message, input: None, response: None }).await;
        Ok(())
    }

    /// Observes the workspace and lets `before_agent_start` handlers add messages or replace the
    /// system prompt. Called once per run.
    async fn prepare_run(
        &self,
        run_state: &mut RunState,
        prepared: &PreparedInput,
        token: &CancellationToken,
    ) -> Result<Vec<CustomMessage>, RunEnd> {
        self.observe_for_run(run_state, ObserveReason::RunStarted, prepared, token).await?;
        Ok(unless_aborted(token, self.ask_before_run(run_state, prepared)).await??)
    }

    /// Lets `before_agent_start` handlers add messages or replace the system prompt.
    pub(crate) async fn ask_before_run(
        &self,
        run_state: &mut RunState,
        prepared: &PreparedInput,
    ) -> Result<Vec<CustomMessage>, ObserveError> {
        run_state.system_prompt_override = None;
        run_state.system_changes.clear();
        if !self.events().has_handlers::<BeforeAgentStart>() {
            return Ok(Vec::new());
        }
        let base = self.system_prompt(run_state)?;
        let event = BeforeAgentStart {
            prompt: prepared.text.clone(),
            images: prepared.images.clone(),
            system_prompt: base.clone(),
        };
        let mut messages = Vec::new();
        let mut changes = Vec::new();
        let asking = self.events().ask_owners(self, event, |event, reply, owner| {
            messages.extend(reply.message);
            if let Some(changed) = reply.system_prompt.filter(|changed| *changed != event.system_prompt) {
                let change = Change::of_system(&event.system_prompt, &changed);
                changes.push(ExtensionChange { extension: owner.clone(), change });
                event.system_prompt = changed;
            }
            ControlFlow::Continue(())
        });
        let (event, faults) = asking.await;
        self.events().report_faults(&faults);
        run_state.system_changes = changes;
        run_state.system_prompt_override =
            (event.system_prompt != base).then(|| Text::new(event.system_prompt));
        Ok(messages)
    }

    /// Observes the workspace, for the requests that follow in this run.
    async fn observe_for_run(
        &self,
        run_state: &mut RunState,
        reason: ObserveReason,
        prepared: &PreparedInput,
        token: &CancellationToken,
    ) -> Result<(), RunEnd> {
        let observed = unless_aborted(token, self.observe_workspace(reason, &prepared.text)).await?;
        run_state.set_observed(observed.map_err(RunEnd::from)?);
        Ok(())
    }

    /// Observes the workspace on a blocking thread.
    pub(crate) async fn observe_workspace(
        &self,
        reason: ObserveReason,
        prompt: &str,
    ) -> Result<Snapshot, ObserveError> {
        let context_source = self.inner.setup.context_source.clone();
        let target = self.target();
        let (window, token_factor) = (target.model.context as usize, target.model.token_factor);
        let (now, prompt, known_files) = (self.now(), prompt.to_owned(), self.known_files());
        let (layout, price) = (self.layout().layout(), target.model.price);
        let request = ObserveRequest {
            now,
            reason,
            prompt,
            window,
            token_factor,
            repository_view: layout.repository_view(),
            bases: layout.base_count(lock(&self.inner.conversation).memory.current()),
            cache_read_share: price.read_share(),
            known_files,
        };
        let observing = tokio::task::spawn_blocking(move || context_source.observe(&request));
        observing.await.unwrap_or(Err(ObserveError::Panicked))
    }

    /// The files whose current content the request must include because the model has seen them, if
    /// the layout keeps such files up to date.
    fn known_files(&self) -> Vec<(String, bool)> {
        if !self.layout().layout().tracks_known_files() {
            return Vec::new();
        }
        let conversation = lock(&self.inner.conversation);
        conversation.knowledge.known_files().map(|(path, known)| (path.to_string(), known.changed)).collect()
    }

    /// Observes the workspace if no run has done so yet.
    pub(crate) async fn ensure_observed(&self, run_state: &mut RunState) -> Result<(), ObserveError> {
        if run_state.base_snapshot.is_none() {
            run_state.base_snapshot = Some(self.observe_workspace(ObserveReason::RunStarted, "").await?);
        }
        Ok(())
    }

    /// The system prompt of the last request, as handlers left it; before the first one, what it would
    /// begin with. Asks no handlers.
    pub async fn current_system_prompt(&self) -> Result<String, ObserveError> {
        let last_request = lock(&self.inner.last_request).clone();
        if let Some(whole) = last_request.as_ref().and_then(|last| last.snapshot.system.whole.clone()) {
            return Ok(whole.to_string());
        }
        let mut run_state = RunState::new(self.target().vocabulary());
        let observed = match last_request {
            Some(last) => last.snapshot.clone(),
            None => self.observe_workspace(ObserveReason::Preview, "").await?,
        };
        run_state.set_observed(observed);
        self.system_prompt(&run_state)
    }

    /// Waits until everything that was added to the conversation is in its file.
    pub async fn flush_session(&self) -> Result<(), AgentError> {
        let flushed = lock(&self.inner.conversation).flush();
        Ok(flushed.await?)
    }

    /// The system prompt before handlers change it.
    fn system_prompt(&self, run_state: &RunState) -> Result<String, ObserveError> {
        let selection = lock(&self.inner.selection).clone();
        let snapshot = self.build_snapshot(run_state, &selection, None, Vec::new())?;
        let texts: &Arc<_> = &self.inner.setup.texts;
        let input = LayoutInput {
            snapshot: &snapshot,
            target: &selection.target,
            texts,
            render_cache: &run_state.render_cache,
        };
        let segments = hardpan_context::system_prompt_segments(&input, selection.layout.layout());
        Ok(segments.iter().map(|segment| segment.text.as_str()).collect())
    }
}
