//! [`Child`]: one sub-agent at work, from its task to the result that the model reads.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::events::{AgentEvent, TaskEnd, TaskPrefix, TaskStart, TaskStop, TaskUpdate, TaskUsage};
use hardpan_agent::expand::AgentDefinition;
use hardpan_agent::session_ledger::TaskRequest;
use hardpan_agent::{Agent, AgentError, Input, InputOutcome, InputSource, RunEnd};
use hardpan_context::{TaskPhrases, fill_template};
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_tools::{CallSubject, ToolOutcome};
use serde_json::json;

use super::budget::{BudgetGuard, StopReason, TaskLimits, total_usage};
use super::{Subagents, TaskOrder, instructions};

/// The longest answer that is given back, in bytes.
const MAX_ANSWER_BYTES: usize = 50_000;

/// The most lines of progress that are shown at once.
const MAX_PROGRESS_LINES: usize = 20;

/// How long a sub-agent that is stopped may take to store what it has.
const STOP_PATIENCE: Duration = Duration::from_secs(10);

/// A sub-agent that is ready to work.
pub(super) struct Child {
    agent: Agent,
    parent: Agent,
    call_id: Arc<str>,
    name: Arc<str>,
    task: String,
    prefix: TaskPrefix,
    input: Input,
    guard: BudgetGuard,
    path: PathBuf,
    /// How many messages its conversation began with.
    messages_before: usize,
}

/// The input that gives a sub-agent its task.
pub(super) fn task_input(
    phrases: &TaskPhrases,
    definition: Option<&AgentDefinition>,
    prefix: TaskPrefix,
    order: TaskOrder<'_>,
) -> Input {
    let text = match prefix {
        TaskPrefix::Own => fill_template(&phrases.prompt, &[("task", order.task)]),
        TaskPrefix::Shared | TaskPrefix::Fork => {
            let instructions = instructions(phrases, definition);
            let values = [("name", order.agent), ("instructions", &*instructions), ("task", order.task)];
            fill_template(&phrases.prompt_on_prefix, &values)
        }
    };
    Input { text, below: None, images: Vec::new(), source: InputSource::Agent, id: None }
}

impl Child {
    pub fn new(
        agent: Agent,
        parent: &Agent,
        order: TaskOrder<'_>,
        prefix: TaskPrefix,
        input: Input,
        limits: TaskLimits,
        path: PathBuf,
    ) -> Self {
        let guard = BudgetGuard { limits, before: total_usage(&agent), stop: StopReason::default() };
        guard.follow(&agent);
        let messages_before = agent.messages().len();
        let child = Child {
            agent,
            parent: parent.clone(),
            call_id: order.call_id.into(),
            name: order.agent.into(),
            task: order.task.to_owned(),
            prefix,
            input,
            guard,
            path,
            messages_before,
        };
        child.forward_bills();
        child
    }

    /// Adds each request to the bill of the agent that started it, as soon as it is paid.
    fn forward_bills(&self) {
        let (parent, name) = (self.parent.downgrade(), self.name.clone());
        let session = self.agent.session().0;
        self.agent.on_bill(move |request| {
            if let Some(parent) = parent.upgrade() {
                parent.record_task_request(&TaskRequest { agent: &name, session: &session, request });
            }
        });
    }

    fn used(&self) -> TaskUsage {
        BudgetGuard::used(&self.guard.before, &self.agent)
    }

    /// Works to the end, and returns what the model reads about it. Dropping the future ends the work.
    pub async fn run(self, subagents: &Subagents, progress: &(dyn Fn(&str) + Send + Sync)) -> ToolOutcome {
        let session = self.agent.session().0;
        let started = TaskStart {
            call_id: self.call_id.clone(),
            agent: self.name.clone(),
            session: session.clone(),
            model: self.agent.target().model.name(),
            prefix: self.prefix,
            task: self.task.clone(),
        };
        self.parent.announce(started).await;
        let mut end = EndAnnouncement { child: &self, stop: None };
        let ran = self.work(subagents, progress).await;
        let stop = self.classify(ran);
        end.stop = Some(stop.clone());
        // What is not stored by now is said again by nobody.
        let _ = self.agent.shutdown().await;
        self.parent.announce(self.end_event(stop.clone())).await;
        self.outcome(subagents, &stop)
    }

    /// Runs the task, shows what happens, and looks after the time.
    async fn work(
        &self,
        subagents: &Subagents,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Option<Result<InputOutcome, AgentError>> {
        let mut events = self.agent.events().unbounded_stream();
        let running = self.agent.prompt(self.input.clone());
        tokio::pin!(running);
        let time = self.guard.watch_time(&self.agent, &subagents.questions);
        tokio::pin!(time);
        let mut lines: Vec<String> = Vec::new();
        loop {
            // A stopped agent ends by itself; one that does not is given up.
            let patience = tokio::time::sleep(STOP_PATIENCE);
            tokio::select! {
                biased;
                ran = &mut running => return Some(ran),
                Some(event) = events.recv() => {
                    let Some(activity) = self.activity(&event) else { continue };
                    lines.push(activity.clone());
                    progress(&lines[lines.len().saturating_sub(MAX_PROGRESS_LINES)..].join("\n"));
                    let (call_id, agent, used) = (self.call_id.clone(), self.name.clone(), self.used());
                    self.parent.announce(TaskUpdate { call_id, agent, activity, used }).await;
                }
                () = &mut time => {}
                () = patience, if self.guard.stop.get().is_some() => return None,
            }
        }
    }

    /// What an event says about the work, in a line.
    fn activity(&self, event: &AgentEvent) -> Option<String> {
        let AgentEvent::ToolExecutionStart(started) = event else { return None };
        let tool = self.agent.tools().describe(&started.tool_name);
        let subject = tool.map_or(CallSubject::Other, |tool| tool.subject(&started.args));
        let about = match subject {
            CallSubject::Command(text) | CallSubject::File(text) | CallSubject::Url(text) => text,
            CallSubject::ServerTool(_) | CallSubject::Other => {
                let first =
                    started.args.as_object().and_then(|args| args.values().find_map(|arg| arg.as_str()));
                first.unwrap_or_default().to_owned()
            }
        };
        let line: String = about.lines().next().unwrap_or_default().chars().take(120).collect();
        Some(format!("{} {line}", started.tool_name).trim_end().to_owned())
    }

    fn classify(&self, ran: Option<Result<InputOutcome, AgentError>>) -> TaskStop {
        if let Some(stop) = self.guard.stop.get() {
            return stop;
        }
        let failed = |message: String| TaskStop::Failed { message };
        match ran {
            Some(Ok(InputOutcome::Ran(RunEnd::Done))) => TaskStop::Done,
            Some(Ok(InputOutcome::Ran(RunEnd::Aborted))) | None => TaskStop::Aborted,
            Some(Ok(InputOutcome::Ran(end))) => failed(describe_end(&end)),
            Some(Ok(_)) => failed("it was not given the task".into()),
            Some(Err(error)) => failed(error.to_string()),
        }
    }

    fn end_event(&self, stop: TaskStop) -> TaskEnd {
        TaskEnd {
            call_id: self.call_id.clone(),
            agent: self.name.clone(),
            session: self.agent.session().0,
            stop,
            used: self.used(),
        }
    }

    /// The last text of the sub-agent; none if it has said nothing.
    fn answer(&self) -> Option<String> {
        let messages = self.agent.messages();
        let own = messages.get(self.messages_before..).unwrap_or_default();
        own.iter().rev().find_map(|message| {
            let MessageBody::Assistant { content, .. } = &*message.body else { return None };
            let texts = content.iter().filter_map(|part| match part {
                MessagePart::Text { text } => Some(text.as_str()),
                _ => None,
            });
            let text = texts.collect::<Vec<_>>().join("\n");
            (!text.trim().is_empty()).then_some(text)
        })
    }

    fn outcome(&self, subagents: &Subagents, stop: &TaskStop) -> ToolOutcome {
        let phrases = &subagents.settings.texts.phrases.task;
        let why = match stop {
            TaskStop::Done => None,
            TaskStop::Aborted => Some("it was aborted".to_owned()),
            TaskStop::Budget { limit } => Some(self.guard.limits.describe(*limit)),
            TaskStop::Failed { message } => Some(message.clone()),
        };
        let answer = self.answer().map(|answer| shorten(phrases, answer));
        let details = json!({
            "agent": self.name,
            "session": self.agent.session().0,
            "path": self.path,
            "model": self.agent.target().model.name(),
            "prefix": self.prefix,
            "stop": stop,
            "used": self.used(),
        });
        let outcome = match (why, answer) {
            (None, Some(answer)) => ToolOutcome::text(answer),
            (Some(why), Some(answer)) => {
                let stopped = fill_template(&phrases.stopped, &[("why", &why)]);
                ToolOutcome::failed(format!("{stopped}\n{answer}"))
            }
            (why, None) => {
                let why = why.unwrap_or_else(|| "it ended without a word".into());
                ToolOutcome::failed(fill_template(&phrases.no_answer, &[("why", &why)]))
            }
        };
        outcome.with_details(details)
    }
}

/// Tells faces of a sub-agent whose call was dropped: nobody waits for it any more.
struct EndAnnouncement<'a> {
    child: &'a Child,
    stop: Option<TaskStop>,
}

impl Drop for EndAnnouncement<'_> {
    fn drop(&mut self) {
        if self.stop.is_some() {
            return;
        }
        self.child.agent.abort();
        let (parent, event) = (self.child.parent.clone(), self.child.end_event(TaskStop::Aborted));
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(async move { parent.announce(event).await }));
        }
    }
}

/// A text of at most [`MAX_ANSWER_BYTES`]: its beginning and its end.
fn shorten(phrases: &TaskPhrases, text: String) -> String {
    if text.len() <= MAX_ANSWER_BYTES {
        return text;
    }
    let head = text.floor_char_boundary(MAX_ANSWER_BYTES / 2);
    let tail = text.ceil_char_boundary(text.len() - MAX_ANSWER_BYTES / 2);
    let cut = fill_template(&phrases.cut, &[("bytes", &(tail - head).to_string())]);
    format!("{}\n{cut}\n{}", &text[..head], &text[tail..])
}

/// Why a run did not end well.
fn describe_end(end: &RunEnd) -> String {
    match end {
        RunEnd::Done => "it is done".into(),
        RunEnd::Aborted => "it was aborted".into(),
        RunEnd::Length => "its answer reached the token limit".into(),
        RunEnd::Refused => "the model refused to answer".into(),
        RunEnd::Looping { tool } => format!("it kept repeating a failing call of {tool}"),
        RunEnd::TooLong { message } | RunEnd::Error { message } => message.clone(),
    }
}
