//! Running the tool calls of an answer. Every call gets exactly one result, whatever happens.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use hardpan_context::{AgentMode, fill_template};
use hardpan_prompt::{AgentMessage, Json, MessageBody, MessagePart, NotRunReason};
use hardpan_providers::AnswerCall;
use hardpan_tools::{Effect, ResultDisplay, SubjectKind, Tool, ToolInvocation, ToolOutcome, ToolUnavailable};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::agent::{Agent, lock};
use crate::error::AgentError;
use crate::events::{
    HandlerClock, MessageStart, ToolAnnounced, ToolCallEvent, ToolCallReply, ToolExecutionEnd,
    ToolExecutionStart, ToolExecutionUpdate, ToolResultEvent, ToolSettled,
};
use crate::failure_guard::{GuardAdvice, MAX_FAILURES};
use crate::run::{RunState, unless_aborted};
use crate::setup::{ApprovalDecision, ApprovalRequest, ReadCallMode};
use crate::stored_knowledge::ResultData;

/// What happens to a call, decided before it runs.
enum CallDecision {
    Run(Arc<dyn Tool>),
    RunChanged(Arc<dyn Tool>, ChangedCall),
    DoNotRun(NotRun),
}

/// A call with arguments that the person, or a handler, changed.
struct ChangedCall {
    call: AnswerCall,
    /// What the person changed, for the model.
    note: Option<String>,
}

impl ChangedCall {
    fn new(call: &AnswerCall, args: &Value, note: Option<String>) -> Self {
        let mut call = call.clone();
        call.call.arguments = Json::new(args);
        ChangedCall { call, note }
    }

    /// The outcome, with the note below it.
    fn noted(&self, mut outcome: CallOutcome) -> CallOutcome {
        outcome.outcome.content.extend(self.note.as_deref().map(MessagePart::text));
        outcome
    }
}

/// Why a handler keeps a call from running.
struct CallVeto {
    reason: String,
    /// Whether the handler failed.
    is_fault: bool,
    /// Whether the model need not read the result.
    ends_run: bool,
}

/// What the handlers say about a call.
struct HandlerDecision {
    /// The call, with the arguments that they want.
    event: ToolCallEvent,
    veto: Option<CallVeto>,
    /// Why a person is to be asked, whatever rules say.
    reason_to_ask: Option<Arc<str>>,
}

/// Why a tool did not run or not to its end, and what the model reads about it.
struct NotRun {
    reason: NotRunReason,
    text: String,
    /// Whether the model need not read it.
    ends_run: bool,
}

impl NotRun {
    fn new(reason: NotRunReason, text: impl Into<String>) -> Self {
        NotRun { reason, text: text.into(), ends_run: false }
    }
}

/// What came of the calls of an answer.
#[derive(Default)]
pub(crate) struct ToolCallsEnd {
    /// One for each call, in order.
    pub results: Vec<AgentMessage>,
    /// The tool that keeps failing, if the run must end because of it.
    pub looping: Option<Arc<str>>,
    /// Whether every result says that the model need not read it.
    pub ends_run: bool,
}

/// The result of a call, before it is stored.
pub(crate) struct CallOutcome {
    pub outcome: ToolOutcome,
    pub not_run: Option<NotRunReason>,
}

impl From<NotRun> for CallOutcome {
    fn from(NotRun { reason, text, ends_run }: NotRun) -> Self {
        let outcome = ToolOutcome { ends_run, ..ToolOutcome::failed(text) };
        CallOutcome { outcome, not_run: Some(reason) }
    }
}

/// A call whose tool runs. It can be stopped alone until this is dropped.
struct RunningCall<'a> {
    agent: &'a Agent,
    id: &'a Arc<str>,
    token: CancellationToken,
}

impl<'a> RunningCall<'a> {
    /// `run` stops it together with the run.
    fn begin(agent: &'a Agent, id: &'a Arc<str>, run: &CancellationToken) -> Self {
        let token = run.child_token();
        lock(&agent.inner.running_calls).insert(id.clone(), token.clone());
        RunningCall { agent, id, token }
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        lock(&self.agent.inner.running_calls).remove(self.id);
    }
}

impl From<ToolOutcome> for CallOutcome {
    fn from(outcome: ToolOutcome) -> Self {
        CallOutcome { outcome, not_run: None }
    }
}

impl Agent {
    /// Gives every call a result, in order.
    pub(crate) async fn run_tool_calls(
        &self,
        run_state: &mut RunState,
        calls: &[AnswerCall],
        token: &CancellationToken,
    ) -> Result<ToolCallsEnd, AgentError> {
        if !calls.is_empty() {
            lock(&self.inner.extension_runs).note_calls();
        }
        let ToolCallsEnd { mut results, mut looping, .. } = ToolCallsEnd::default();
        let mut ends_run = !calls.is_empty();
        let resolved: Vec<AnswerCall> = calls.iter().map(|call| self.resolve_inner_call(call)).collect();
        let mut rest = resolved.as_slice();
        while !rest.is_empty() {
            self.wait_for_faces(token).await;
            let phrases = &self.inner.setup.texts.phrases.agent;
            let skip = if token.is_cancelled() {
                Some((NotRunReason::Aborted, &phrases.not_started))
            } else if lock(&self.inner.queues).has_steering() && rest.len() < calls.len() {
                Some((NotRunReason::Steered, &phrases.skipped))
            } else {
                None
            };
            if let Some((reason, phrase)) = skip {
                for _ in rest {
                    let skipped = NotRun::new(reason.clone(), phrase.as_str());
                    let call = &calls[results.len()];
                    results.push(self.store_result(call, skipped.into()).await?);
                }
                ends_run = false;
                break;
            }
            let (group, after) = rest.split_at(self.parallel_group_len(rest));
            rest = after;
            let outcomes = self.run_group(run_state, group, token, &mut looping).await;
            for (call, (outcome, counts)) in group.iter().zip(outcomes) {
                if counts {
                    let failed = outcome.outcome.is_error;
                    run_state.guard.record_outcome(&call.call.name, &call.raw, failed);
                    if !failed && self.changes_file(call) {
                        // The same command may fail for another reason now: tests after an edit.
                        run_state.guard.reset();
                    }
                }
                let outcome = self.revise_result(call, outcome).await;
                self.announce_settled(call, &outcome).await;
                ends_run &=
                    outcome.outcome.ends_run && (outcome.not_run.is_some() || !outcome.outcome.is_error);
                let result = self.store_result(&calls[results.len()], outcome).await?;
                results.push(result);
            }
        }
        Ok(ToolCallsEnd { results, looping, ends_run })
    }

    /// The call that a call stands for, if its tool says so and both tools may be used; else the call
    /// itself. It keeps its id.
    fn resolve_inner_call(&self, call: &AnswerCall) -> AnswerCall {
        let tool = self.tools().find(&call.call.name).ok().filter(|_| call.runnable.is_ok());
        let inner = tool.and_then(|tool| tool.inner_call(&call.call.arguments.value()));
        let is_known = |name: &str| {
            !matches!(self.tools().find(name), Err(ToolUnavailable::Unknown | ToolUnavailable::Removed))
        };
        match inner.filter(|inner| is_known(&inner.name)) {
            None => call.clone(),
            Some(inner) => {
                let mut resolved = call.clone();
                resolved.raw = inner.arguments.to_string();
                resolved.call.arguments = Json::new(&inner.arguments);
                resolved.call.name = inner.name;
                resolved
            }
        }
    }

    /// How many of the next calls run in parallel.
    fn parallel_group_len(&self, calls: &[AnswerCall]) -> usize {
        let is_parallel = |call: &&AnswerCall| {
            call.runnable.is_ok()
                && self.tools().describe(&call.call.name).is_some_and(|tool| tool.runs_in_parallel())
        };
        let parallel = calls.iter().take_while(is_parallel).count();
        if parallel > 0 {
            return parallel;
        }
        if self.inner.setup.settings.read_calls == ReadCallMode::Sequential {
            return 1;
        }
        let reads = |call: &&AnswerCall| call.runnable.is_ok() && self.effect_of(call) == Some(Effect::Reads);
        calls.iter().take_while(reads).count().max(1)
    }

    /// Whether a call that succeeds has changed a file. Commands do not count: most of them only look.
    fn changes_file(&self, call: &AnswerCall) -> bool {
        let tool = self.tools().describe(&call.call.name);
        let is_about_file = tool.is_some_and(|tool| tool.subject_kind() == SubjectKind::File);
        is_about_file && self.effect_of(call) == Some(Effect::Changes)
    }

    /// What a call may do; `None` if it has no tool.
    fn effect_of(&self, call: &AnswerCall) -> Option<Effect> {
        let tool = self.tools().describe(&call.call.name)?;
        Some(tool.effect(&call.call.arguments.value()))
    }

    /// Decides about each call in order, runs the permitted ones, and emits how each ended, in
    /// order again. The flag says whether the failure guard counts the outcome.
    async fn run_group(
        &self,
        run_state: &RunState,
        group: &[AnswerCall],
        token: &CancellationToken,
        looping: &mut Option<Arc<str>>,
    ) -> Vec<(CallOutcome, bool)> {
        let mut decisions = Vec::with_capacity(group.len());
        for call in group {
            self.announce_call(call).await;
            let advice = run_state.guard.advice(&call.call.name, &call.raw);
            if advice != GuardAdvice::Run {
                let count = MAX_FAILURES.to_string();
                let text = fill_template(&self.inner.setup.texts.phrases.agent.looping, &[("count", &count)]);
                *looping = looping.take().or((advice == GuardAdvice::EndRun).then(|| call.call.name.clone()));
                let refused = NotRun::new(NotRunReason::RepeatedFailure, text);
                decisions.push((CallDecision::DoNotRun(refused), true));
                continue;
            }
            // Repeated refusals count like repeated failures; an aborted call does not count.
            let (decision, counts) = match unless_aborted(token, self.decide_call(call)).await {
                Ok(decision) => (decision, true),
                Err(_) => (CallDecision::DoNotRun(self.aborted_call(NotRunReason::Aborted)), false),
            };
            match &decision {
                CallDecision::Run(_) => self.announce_start(call).await,
                CallDecision::RunChanged(_, changed) => self.announce_start(&changed.call).await,
                CallDecision::DoNotRun(_) => {}
            }
            decisions.push((decision, counts));
        }
        let running = group.iter().zip(decisions).map(|(call, (decision, counts))| async move {
            match decision {
                CallDecision::DoNotRun(not_run) => (not_run.into(), counts, None),
                CallDecision::Run(tool) => {
                    let span = tracing::info_span!("tool_call", tool = %call.call.name, id = %call.call.id);
                    let outcome = self.execute_tool(&*tool, call, token).instrument(span).await;
                    (outcome, counts, Some(tool.result_display()))
                }
                CallDecision::RunChanged(tool, changed) => {
                    let span = tracing::info_span!("tool_call", tool = %call.call.name, id = %call.call.id);
                    let outcome = self.execute_tool(&*tool, &changed.call, token).instrument(span).await;
                    (changed.noted(outcome), counts, Some(tool.result_display()))
                }
            }
        });
        let mut outcomes = Vec::with_capacity(group.len());
        for (call, (result, counts, display)) in group.iter().zip(join_all(running).await) {
            if let Some(display) = display {
                self.announce_end(call, &result, display).await;
            }
            outcomes.push((result, counts));
        }
        outcomes
    }

    fn aborted_call(&self, reason: NotRunReason) -> NotRun {
        NotRun::new(reason, self.inner.setup.texts.phrases.agent.aborted.as_str())
    }

    /// Decides whether a call runs: it must be complete, its tool known, no handler may block it,
    /// and it must be approved if the tool changes things.
    async fn decide_call(&self, call: &AnswerCall) -> CallDecision {
        let name = &call.call.name;
        if let Err(why) = &call.runnable {
            return CallDecision::DoNotRun(NotRun::new(NotRunReason::InvalidCall, format!("{why}.")));
        }
        if self.is_without_tools() {
            let unknown = self.unavailable_tool(name, ToolUnavailable::Unknown);
            return CallDecision::DoNotRun(unknown);
        }
        let tool = match self.tools().find(name) {
            Ok(tool) => tool,
            Err(why) => return CallDecision::DoNotRun(self.unavailable_tool(name, why)),
        };
        self.decide_about_tool(tool, call).await
    }

    /// Decides whether a call of this tool runs: no handler may block it, and it must be approved if
    /// the tool changes things.
    async fn decide_about_tool(&self, tool: Arc<dyn Tool>, call: &AnswerCall) -> CallDecision {
        let phrases = &self.inner.setup.texts.phrases.agent;
        let event = ToolCallEvent {
            call_id: call.call.id.clone(),
            tool_name: call.call.name.clone(),
            input: call.call.arguments.value(),
        };
        let HandlerDecision { event, veto, reason_to_ask } = self.ask_call_handlers(event).await;
        if let Some(CallVeto { reason: message, is_fault, ends_run }) = veto {
            // A handler's reason is the result itself.
            let text = if is_fault {
                fill_template(&phrases.blocked, &[("reason", &message)])
            } else {
                message.clone()
            };
            let blocked = NotRun::new(NotRunReason::Blocked { message }, text);
            return CallDecision::DoNotRun(NotRun { ends_run, ..blocked });
        }
        let ToolCallEvent { call_id, tool_name, input: args } = event;
        let changed = (args != call.call.arguments.value()).then(|| ChangedCall::new(call, &args, None));
        if tool.effect(&args) == Effect::Changes || reason_to_ask.is_some() {
            let question = ApprovalRequest {
                call_id,
                tool_name,
                subject: tool.subject(&args),
                args,
                claim: tool.claim(),
                agent: None,
                handler_reason: reason_to_ask,
            };
            match self.inner.setup.approval_handler.approve(&question).await {
                ApprovalDecision::Allow => {}
                ApprovalDecision::AllowChanged { args, note } => {
                    return CallDecision::RunChanged(tool, ChangedCall::new(call, &args, Some(note)));
                }
                ApprovalDecision::Deny { by, reason: message } => {
                    let text = fill_template(&phrases.denied, &[("reason", &message)]);
                    return CallDecision::DoNotRun(NotRun::new(NotRunReason::Denied { by, message }, text));
                }
            }
        }
        match changed {
            Some(changed) => CallDecision::RunChanged(tool, changed),
            None => CallDecision::Run(tool),
        }
    }

    /// Asks the handlers about a call. One that failed might have wanted to block the call, so its
    /// failure blocks it.
    async fn ask_call_handlers(&self, event: ToolCallEvent) -> HandlerDecision {
        let (mut veto, mut reason_to_ask) = (None, None);
        let (event, faults) = self
            .events()
            .ask_handlers(self, event, |event, reply| match reply {
                ToolCallReply::Allow => ControlFlow::Continue(()),
                ToolCallReply::Change { input } => {
                    event.input = input;
                    ControlFlow::Continue(())
                }
                ToolCallReply::Ask { reason, input } => {
                    event.input = input.unwrap_or_else(|| event.input.take());
                    reason_to_ask.get_or_insert(reason);
                    ControlFlow::Continue(())
                }
                ToolCallReply::Block { reason } => {
                    veto = Some(CallVeto { reason, is_fault: false, ends_run: false });
                    ControlFlow::Break(())
                }
                ToolCallReply::BlockAndEnd { reason } => {
                    veto = Some(CallVeto { reason, is_fault: false, ends_run: true });
                    ControlFlow::Break(())
                }
            })
            .await;
        self.events().report_faults(&faults);
        let fault = faults.first().map(|fault| CallVeto {
            reason: format!("{} failed: {}", fault.owner, fault.message),
            is_fault: true,
            ends_run: false,
        });
        HandlerDecision { event, veto: veto.or(fault), reason_to_ask: reason_to_ask.map(Arc::from) }
    }

    /// Asks this agent's handlers about the calls of another one, which works for it: what guards this
    /// agent guards its sub-agents.
    pub fn guard_calls_of(&self, child: &Agent) {
        let guard = self.downgrade();
        child.events().subscribe::<ToolCallEvent, _>("parent", move |event, _| {
            let guard = guard.clone();
            async move {
                let Some(parent) = guard.upgrade() else {
                    return Ok(ToolCallReply::Block { reason: "the conversation has ended".into() });
                };
                // The handlers have limits of their own.
                let _pause = HandlerClock::current().map(|clock| clock.pause());
                let given = event.input.clone();
                let HandlerDecision { event, veto, reason_to_ask } = parent.ask_call_handlers(event).await;
                let changed = (event.input != given).then_some(event.input);
                Ok(match (veto, reason_to_ask, changed) {
                    (Some(veto), ..) if veto.ends_run => ToolCallReply::BlockAndEnd { reason: veto.reason },
                    (Some(veto), ..) => ToolCallReply::Block { reason: veto.reason },
                    (None, Some(reason), input) => ToolCallReply::Ask { reason: reason.to_string(), input },
                    (None, None, Some(input)) => ToolCallReply::Change { input },
                    (None, None, None) => ToolCallReply::Allow,
                })
            }
        });
    }

    /// Runs a tool that need not be among the declared ones, with the decisions and events of any
    /// other call. Nothing is stored.
    pub(crate) async fn run_given_tool(
        &self,
        tool: &Arc<dyn Tool>,
        call: &AnswerCall,
        token: &CancellationToken,
    ) -> CallOutcome {
        let name = &call.call.name;
        if let Err(why @ ToolUnavailable::SwitchedOff) = self.tools().find(name) {
            return self.unavailable_tool(name, why).into();
        }
        self.announce_call(call).await;
        let deciding = self.decide_about_tool(tool.clone(), call);
        let (tool, changed) = match unless_aborted(token, deciding).await {
            Ok(CallDecision::Run(tool)) => (tool, None),
            Ok(CallDecision::RunChanged(tool, changed)) => (tool, Some(changed)),
            Ok(CallDecision::DoNotRun(not_run)) => {
                let outcome = not_run.into();
                self.announce_settled(call, &outcome).await;
                return outcome;
            }
            Err(_) => return self.aborted_call(NotRunReason::Aborted).into(),
        };
        let call = changed.as_ref().map_or(call, |changed| &changed.call);
        self.announce_start(call).await;
        let outcome = self.execute_tool(&*tool, call, token).await;
        let outcome = match &changed {
            Some(changed) => changed.noted(outcome),
            None => outcome,
        };
        self.announce_end(call, &outcome, tool.result_display()).await;
        let outcome = self.revise_result(call, outcome).await;
        self.announce_settled(call, &outcome).await;
        outcome
    }

    /// Tells the handlers that expect a call's beginning before the questions about it.
    async fn announce_call(&self, call: &AnswerCall) {
        if self.events().has_handlers::<ToolAnnounced>() {
            let (call_id, tool_name) = (call.call.id.clone(), call.call.name.clone());
            self.events()
                .tell_handlers(self, ToolAnnounced { call_id, tool_name, args: call.call.arguments.value() })
                .await;
        }
    }

    /// Tells the handlers that expect a call's end after everything was asked about it.
    async fn announce_settled(&self, call: &AnswerCall, CallOutcome { outcome, .. }: &CallOutcome) {
        if self.events().has_handlers::<ToolSettled>() {
            let event = ToolSettled {
                call_id: call.call.id.clone(),
                tool_name: call.call.name.clone(),
                content: outcome.content.clone(),
                details: outcome.details.clone(),
                is_error: outcome.is_error,
            };
            self.events().tell_handlers(self, event).await;
        }
    }

    async fn announce_start(&self, call: &AnswerCall) {
        let (call_id, tool_name) = (call.call.id.clone(), call.call.name.clone());
        let args = call.call.arguments.value();
        self.events().emit(self, ToolExecutionStart { call_id, tool_name, args }).await;
    }

    async fn announce_end(&self, call: &AnswerCall, result: &CallOutcome, display: ResultDisplay) {
        let CallOutcome { outcome, not_run: _ } = result;
        let event = ToolExecutionEnd {
            call_id: call.call.id.clone(),
            tool_name: call.call.name.clone(),
            content: outcome.content.clone(),
            details: outcome.details.clone(),
            is_error: outcome.is_error,
            display,
        };
        self.events().emit(self, event).await;
    }

    /// Whether the last request offered no tools, because agent mode is off.
    fn is_without_tools(&self) -> bool {
        let last_request = lock(&self.inner.last_request);
        last_request.as_ref().is_some_and(|last| last.snapshot.agent_mode == AgentMode::Off)
    }

    /// The result of a call that finds no tool to run.
    fn unavailable_tool(&self, name: &str, why: ToolUnavailable) -> NotRun {
        let phrases = &self.inner.setup.texts.phrases.agent;
        let (reason, phrase) = match why {
            ToolUnavailable::FilledByLayout => (NotRunReason::FilledByLayout, &phrases.layout_tool),
            ToolUnavailable::SwitchedOff => (NotRunReason::SwitchedOff, &phrases.tool_off),
            ToolUnavailable::Suspended => (NotRunReason::SwitchedOff, &phrases.tool_suspended),
            ToolUnavailable::Unknown | ToolUnavailable::Removed => {
                (NotRunReason::UnknownTool, &phrases.unknown_tool)
            }
        };
        let offered = if self.is_without_tools() { Vec::new() } else { self.tools().declarations() };
        let names: Vec<Arc<str>> = offered.into_iter().map(|tool| tool.name).collect();
        NotRun::new(reason, fill_template(phrase, &[("name", name), ("tools", &names.join(", "))]))
    }

    /// Stops a tool call that runs: the model is told, and the run goes on. False if no such call runs.
    pub fn stop_tool_call(&self, call_id: &str) -> bool {
        let running = lock(&self.inner.running_calls);
        let call = running.get(call_id);
        call.inspect(|token| token.cancel()).is_some()
    }

    /// Runs a tool, and emits its progress meanwhile.
    async fn execute_tool(
        &self,
        tool: &dyn Tool,
        call: &AnswerCall,
        token: &CancellationToken,
    ) -> CallOutcome {
        let (sender, mut updates) = mpsc::unbounded_channel::<String>();
        let progress = move |text: &str| drop(sender.send(text.to_owned()));
        let knowledge = lock(&self.inner.conversation).knowledge.clone();
        let given = ToolInvocation {
            id: &call.call.id,
            arguments: &call.call.arguments,
            scope: &self.inner.setup.scope,
            knowledge: &knowledge,
            progress: &progress,
        };
        let running_call = RunningCall::begin(self, &call.call.id, token);
        // Called within the future, so that a panic in the tool's first line is caught too.
        let args = Arc::new(call.call.arguments.value());
        let running = AssertUnwindSafe(async { tool.run(given).await }).catch_unwind();
        tokio::pin!(running);
        tracing::trace!(arguments = %call.raw, "tool call started");
        let result: CallOutcome = loop {
            tokio::select! {
                biased;
                () = running_call.token.cancelled() => {
                    break self.aborted_call(NotRunReason::Stopped).into();
                }
                outcome = &mut running => {
                    let broke = || ToolOutcome::failed(self.inner.setup.texts.phrases.agent.tool_broke.as_str());
                    break outcome.unwrap_or_else(|_| broke()).into();
                }
                Some(partial) = updates.recv() => {
                    let (call_id, tool_name) = (call.call.id.clone(), call.call.name.clone());
                    let args = args.clone();
                    self.events().emit(self, ToolExecutionUpdate { call_id, tool_name, partial, args }).await;
                    self.wait_for_faces(token).await;
                }
            }
        };
        tracing::debug!(is_error = result.outcome.is_error, "tool call ended");
        tracing::trace!(content = ?result.outcome.content, "tool result");
        result
    }

    /// Lets handlers change a result, including a failed one. Each sees the changes of those before
    /// it.
    async fn revise_result(&self, call: &AnswerCall, result: CallOutcome) -> CallOutcome {
        if !self.events().has_handlers::<ToolResultEvent>() {
            return result;
        }
        let CallOutcome { outcome, not_run } = result;
        let event = ToolResultEvent {
            call_id: call.call.id.clone(),
            tool_name: call.call.name.clone(),
            input: call.call.arguments.value(),
            content: outcome.content,
            details: outcome.details,
            is_error: outcome.is_error,
        };
        let (mut file_observations, ends_run) = (outcome.file_observations, outcome.ends_run);
        let (event, faults) = self
            .events()
            .ask_handlers(self, event, |event, reply| {
                if reply.content.is_some() {
                    // What the tool shows is not what the model reads.
                    file_observations.retain(|observation| !observation.kind.is_in_result());
                }
                event.content = reply.content.unwrap_or_else(|| std::mem::take(&mut event.content));
                event.details = reply.details.or_else(|| event.details.take());
                event.is_error = reply.is_error.unwrap_or(event.is_error);
                ControlFlow::Continue(())
            })
            .await;
        self.events().report_faults(&faults);
        let ToolResultEvent { content, details, is_error, .. } = event;
        let outcome = ToolOutcome { content, details, is_error, file_observations, ends_run };
        CallOutcome { outcome, not_run }
    }

    /// Stores a call's result as a message.
    async fn store_result(&self, call: &AnswerCall, result: CallOutcome) -> Result<AgentMessage, AgentError> {
        let CallOutcome { outcome, not_run } = result;
        let ToolOutcome { content, details, is_error, file_observations, ends_run: _ } = outcome;
        let body = MessageBody::ToolResult {
            call_id: call.call.id.clone(),
            tool_name: Some(call.call.name.clone()),
            content,
            is_error,
            not_run,
        };
        let mut message = lock(&self.inner.conversation).new_message(body, self.now());
        message.note(|facts| facts.details = details.filter(|details| *details != Value::Null));
        self.events().emit(self, MessageStart { message: message.clone(), input: None }).await;
        self.store_message(message.clone(), ResultData { file_observations }).await?;
        Ok(message)
    }
}
