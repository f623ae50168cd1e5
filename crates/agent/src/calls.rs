//! Answering the calls of an answer: each one gets exactly one result, whatever happens.

use std::ops::ControlFlow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use futures_util::future::join_all;
use hardpan_context::fill;
use hardpan_prompt::{AgentMessage, Body};
use hardpan_providers::AnswerCall;
use hardpan_tools::{Call, Effect, Outcome, Tool};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, AgentError, lock};
use crate::events::{
    MessageStart, ToolCall, ToolCallReply, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate,
    ToolResult,
};
use crate::guard::{Advice, MOST_FAILURES};
use crate::run::{Bench, unless_stopped};
use crate::setup::{Approval, Approved, Reads, needs_approval};

/// What is decided about a call before it runs.
enum Decision {
    Run(Arc<dyn Tool>),
    /// It does not run; this is its answer.
    Answer(Outcome),
}

impl Agent {
    /// Answers every call, in order. Returns the results, and the tool that the run is to be ended for.
    pub(crate) async fn answer_calls(
        &self,
        bench: &mut Bench,
        calls: &[AnswerCall],
        token: &CancellationToken,
    ) -> Result<(Vec<AgentMessage>, Option<Arc<str>>), AgentError> {
        let mut results = Vec::new();
        let mut looping = None;
        let mut rest = calls;
        while !rest.is_empty() {
            let phrases = &self.inner.setup.texts.phrases.agent;
            let skip = if token.is_cancelled() {
                Some(&phrases.not_started)
            } else if lock(&self.inner.queues).has_steering() && rest.len() < calls.len() {
                Some(&phrases.skipped)
            } else {
                None
            };
            if let Some(phrase) = skip {
                for call in rest {
                    results.push(self.answer(call, Outcome::failed(phrase.as_str())).await?);
                }
                break;
            }
            let (group, after) = rest.split_at(self.group(rest));
            rest = after;
            let outcomes = self.run_group(bench, group, token, &mut looping).await;
            for (call, (outcome, counts)) in group.iter().zip(outcomes) {
                if counts {
                    bench.guard.note(&call.call.name, &call.raw, outcome.is_error);
                }
                let outcome = self.revise(call, outcome).await;
                let result = self.answer(call, outcome).await?;
                results.push(result);
            }
        }
        Ok((results, looping))
    }

    /// How many of the next calls run side by side.
    fn group(&self, calls: &[AnswerCall]) -> usize {
        if self.inner.setup.settings.reads == Reads::OneByOne {
            return 1;
        }
        let reads = |call: &&AnswerCall| {
            call.runnable.is_ok()
                && self.tool(&call.call.name).is_some_and(|tool| tool.effect() == Effect::Reads)
        };
        calls.iter().take_while(reads).count().max(1)
    }

    /// Whether one of the calls may have changed what is around.
    pub(crate) fn may_have_changed(&self, calls: &[AnswerCall]) -> bool {
        let changes = |call: &AnswerCall| {
            self.tool(&call.call.name).is_some_and(|tool| tool.effect() == Effect::Changes)
        };
        calls.iter().any(changes)
    }

    fn tool(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.inner.setup.tools.iter().find(|tool| &*tool.declaration().name == name)
    }

    /// Decides about each call in order, runs those that may, and tells how each ended, in order again. The flag says
    /// whether the guard counts it.
    async fn run_group(
        &self,
        bench: &Bench,
        group: &[AnswerCall],
        token: &CancellationToken,
        looping: &mut Option<Arc<str>>,
    ) -> Vec<(Outcome, bool)> {
        let mut decisions = Vec::with_capacity(group.len());
        for call in group {
            let advice = bench.guard.advice(&call.call.name, &call.raw);
            if advice != Advice::Run {
                let count = MOST_FAILURES.to_string();
                let text = fill(&self.inner.setup.texts.phrases.agent.looping, &[("count", &count)]);
                *looping = looping.take().or((advice == Advice::Stop).then(|| call.call.name.clone()));
                decisions.push((Decision::Answer(Outcome::failed(text)), true));
                continue;
            }
            // A call that is refused again and again is as endless as one that fails; one that was stopped says nothing.
            let (decision, counts) = match unless_stopped(token, self.decide(call)).await {
                Ok(decision) => (decision, true),
                Err(_) => (Decision::Answer(self.stopped()), false),
            };
            if let Decision::Run(_) = decision {
                let (call_id, tool_name) = (call.call.id.clone(), call.call.name.clone());
                let args = call.call.arguments.value();
                self.events().tell(self, ToolExecutionStart { call_id, tool_name, args }).await;
            }
            decisions.push((decision, counts));
        }
        let running = group.iter().zip(decisions).map(|(call, (decision, counts))| async move {
            match decision {
                Decision::Answer(outcome) => (outcome, counts, false),
                Decision::Run(tool) => (self.execute(&*tool, call, token).await, counts, true),
            }
        });
        let mut outcomes = Vec::with_capacity(group.len());
        for (call, (outcome, counts, executed)) in group.iter().zip(join_all(running).await) {
            if executed {
                let event = ToolExecutionEnd {
                    call_id: call.call.id.clone(),
                    tool_name: call.call.name.clone(),
                    content: outcome.content.clone(),
                    details: outcome.details.clone(),
                    is_error: outcome.is_error,
                };
                self.events().tell(self, event).await;
            }
            outcomes.push((outcome, counts));
        }
        outcomes
    }

    fn stopped(&self) -> Outcome {
        Outcome::failed(self.inner.setup.texts.phrases.agent.aborted.as_str())
    }

    /// Whether a call runs: it must be whole, its tool known, no handler against it, and approved where it changes things.
    async fn decide(&self, call: &AnswerCall) -> Decision {
        let phrases = &self.inner.setup.texts.phrases.agent;
        let name = &call.call.name;
        if let Err(why) = &call.runnable {
            return Decision::Answer(Outcome::failed(format!("{why}.")));
        }
        let Some(tool) = self.tool(name) else {
            return Decision::Answer(Outcome::failed(self.unknown(name)));
        };
        let event = ToolCall {
            call_id: call.call.id.clone(),
            tool_name: name.clone(),
            input: call.call.arguments.value(),
        };
        let mut blocked: Option<String> = None;
        let (event, faults) = self
            .events()
            .ask(self, event, |_, reply| match reply {
                ToolCallReply::Allow => ControlFlow::Continue(()),
                ToolCallReply::Block { reason } => {
                    blocked = Some(reason);
                    ControlFlow::Break(())
                }
            })
            .await;
        self.events().report(&faults);
        // A handler that fails might have blocked it: that counts as a no.
        let fault = faults.first().map(|fault| format!("{} failed: {}", fault.owner, fault.what));
        if let Some(reason) = blocked.or(fault) {
            return Decision::Answer(Outcome::failed(fill(&phrases.blocked, &[("reason", &reason)])));
        }
        if needs_approval(&**tool) {
            let ToolCall { call_id, tool_name, input: args } = event;
            let question = Approval { call_id, tool_name, args };
            if let Approved::No(reason) = self.inner.setup.approve.approve(&question).await {
                return Decision::Answer(Outcome::failed(fill(&phrases.denied, &[("reason", &reason)])));
            }
        }
        Decision::Run(tool.clone())
    }

    /// A tool that is not ours: the layout's own, or made up by the model.
    fn unknown(&self, name: &str) -> String {
        let phrases = &self.inner.setup.texts.phrases.agent;
        if matches!(name, "context" | "dynamic_panel") {
            return fill(&phrases.layout_tool, &[("name", name)]);
        }
        let names: Vec<&str> = self.inner.setup.tools.iter().map(|tool| &*tool.declaration().name).collect();
        fill(&phrases.unknown_tool, &[("name", name), ("tools", &names.join(", "))])
    }

    /// Runs a tool, and passes on what it shows meanwhile.
    async fn execute(&self, tool: &dyn Tool, call: &AnswerCall, token: &CancellationToken) -> Outcome {
        let (sender, mut updates) = mpsc::unbounded_channel::<String>();
        let progress = move |text: &str| drop(sender.send(text.to_owned()));
        let scope = &self.inner.setup.scope;
        let given = Call { id: &call.call.id, arguments: &call.call.arguments, scope, progress: &progress };
        // Within the future, so that a tool that breaks at its first line is caught, too.
        let running = AssertUnwindSafe(async { tool.run(given).await }).catch_unwind();
        tokio::pin!(running);
        loop {
            tokio::select! {
                biased;
                () = token.cancelled() => return self.stopped(),
                outcome = &mut running => {
                    let broke = || Outcome::failed(self.inner.setup.texts.phrases.agent.tool_broke.as_str());
                    return outcome.unwrap_or_else(|_| broke());
                }
                Some(partial) = updates.recv() => {
                    let (call_id, tool_name) = (call.call.id.clone(), call.call.name.clone());
                    self.events().tell(self, ToolExecutionUpdate { call_id, tool_name, partial }).await;
                }
            }
        }
    }

    /// Lets handlers change a result, a failed one too. Each sees what those before it made of it.
    async fn revise(&self, call: &AnswerCall, outcome: Outcome) -> Outcome {
        if !self.events().has::<ToolResult>() {
            return outcome;
        }
        let event = ToolResult {
            call_id: call.call.id.clone(),
            tool_name: call.call.name.clone(),
            input: call.call.arguments.value(),
            content: outcome.content,
            details: outcome.details,
            is_error: outcome.is_error,
        };
        let (event, faults) = self
            .events()
            .ask(self, event, |event, reply| {
                event.content = reply.content.unwrap_or_else(|| std::mem::take(&mut event.content));
                event.details = reply.details.or_else(|| event.details.take());
                event.is_error = reply.is_error.unwrap_or(event.is_error);
                ControlFlow::Continue(())
            })
            .await;
        self.events().report(&faults);
        Outcome { content: event.content, details: event.details, is_error: event.is_error }
    }

    /// Stores a call's result.
    async fn answer(&self, call: &AnswerCall, outcome: Outcome) -> Result<AgentMessage, AgentError> {
        let Outcome { content, details, is_error } = outcome;
        let body = Body::ToolResult {
            call_id: call.call.id.clone(),
            tool_name: Some(call.call.name.clone()),
            content,
            is_error,
        };
        let message = lock(&self.inner.conversation).message(body, self.now());
        self.events().tell(self, MessageStart { message: message.clone() }).await;
        self.store(message.clone(), details.filter(|details| *details != Value::Null)).await?;
        Ok(message)
    }
}
