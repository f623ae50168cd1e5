//! [`EventMapper`]: from the agent's events to what the face shows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use hardpan_agent::events::{
    HandlerFailed, MessageDelta, NoteKind, QueueUpdate, TaskStop, TaskUsage, ToolExecutionEnd,
};
use hardpan_agent::{AgentEvent, HandlerFault, InputId, RunEnd, Spending, UsageReport};
use hardpan_app::ConversationApp;
use hardpan_app::mcp::shown_call;
use hardpan_prompt::{MessageBody, MessagePart, NotRunReason};
use hardpan_terminal::blocks::format::counted;
use hardpan_terminal::blocks::{Delivery, PaidAgain, RunEnd as ShownEnd, RunSummary, Subject};
use hardpan_terminal::model::{AgentUpdate, Event, TaskProgress, ToolEnd};
use hardpan_terminal::theme::Theme;
use serde_json::Value;

use super::diff_lines::{diff_lines, line_counts};
use super::extension_face::ExtensionFace;
use super::history_blocks::earlier_blocks;
use super::page_prompter::ShownCalls;
use super::session::PrintedInputs;
use super::status;
use crate::chat::display::call_subject;
use crate::output::dollars;

/// Knows what of the conversation the face has been told.
pub struct EventMapper {
    app: Arc<ConversationApp>,
    theme: Theme,
    /// Calls of the last answer that have not started, with what they are about.
    calls: BTreeMap<Arc<str>, (String, Subject)>,
    /// Queued inputs as typed, by the text that goes to the model.
    waiting: BTreeMap<String, String>,
    before: UsageReport,
    files: BTreeSet<String>,
    added: usize,
    removed: usize,
    paid_again: Option<PaidAgain>,
    shown_calls: ShownCalls,
    printed: PrintedInputs,
    was_stopped: Arc<AtomicBool>,
    /// What sub-agents have used, by the calls that started them.
    task_facts: BTreeMap<Arc<str>, Vec<String>>,
    extensions: ExtensionFace,
}

impl EventMapper {
    pub fn new(
        app: Arc<ConversationApp>,
        theme: Theme,
        shown_calls: ShownCalls,
        printed: PrintedInputs,
        was_stopped: Arc<AtomicBool>,
    ) -> Self {
        let before = app.agent.token_usage();
        EventMapper {
            app,
            theme,
            calls: BTreeMap::new(),
            waiting: BTreeMap::new(),
            before,
            files: BTreeSet::new(),
            added: 0,
            removed: 0,
            paid_again: None,
            shown_calls,
            printed,
            was_stopped,
            task_facts: BTreeMap::new(),
            extensions: ExtensionFace::default(),
        }
    }

    /// What the face is told about an event.
    pub fn map(&mut self, event: AgentEvent) -> Vec<Event> {
        let updates = match event {
            AgentEvent::AgentStart(_) => {
                // The person stopped it before it had begun.
                if self.was_stopped.load(Ordering::Relaxed) {
                    self.app.agent.abort();
                }
                self.before = self.app.agent.token_usage();
                self.files.clear();
                (self.added, self.removed, self.paid_again) = (0, 0, None);
                vec![AgentUpdate::RunStarted]
            }
            AgentEvent::AgentEnd(end) => vec![self.run_ended(&end.stop, &end.token_usage)],
            AgentEvent::MessageUpdate(update) => match update.delta {
                MessageDelta::Text { text } => vec![AgentUpdate::Text(text)],
                MessageDelta::Reasoning { text } => vec![AgentUpdate::Reasoning(text)],
                MessageDelta::Call { .. } | MessageDelta::Arguments { .. } => Vec::new(),
            },
            AgentEvent::MessageEnd(end) => self.message_ended(&end.message.body, end.input),
            AgentEvent::ToolExecutionStart(start) => {
                self.calls.remove(&start.call_id);
                let (name, subject) = (start.tool_name.to_string(), subject(&start.args));
                vec![AgentUpdate::ToolStarted { id: start.call_id, name, subject }]
            }
            AgentEvent::ToolExecutionUpdate(update) => {
                vec![AgentUpdate::ToolOutput { id: update.call_id, text: update.partial }]
            }
            AgentEvent::TaskUpdate(update) => {
                let (id, agent, activity) = (update.call_id, update.agent.to_string(), update.activity);
                let progress = TaskProgress { agent, activity, facts: task_facts(&update.used) };
                vec![AgentUpdate::TaskProgress { id, progress }]
            }
            AgentEvent::TaskEnd(end) => {
                let mut facts = task_facts(&end.used);
                facts.extend(task_problem(&end.stop));
                self.task_facts.insert(end.call_id, facts);
                Vec::new()
            }
            AgentEvent::ToolExecutionEnd(end) => {
                let image = |part: &MessagePart| match part {
                    MessagePart::Image(image) => Some(AgentUpdate::Image(image.clone())),
                    _ => None,
                };
                let ended = AgentUpdate::ToolEnded(self.tool_ended(&end));
                [ended].into_iter().chain(end.content.iter().filter_map(image)).collect()
            }
            AgentEvent::QueueUpdate(QueueUpdate(queued)) => {
                let steering =
                    queued.steering.iter().map(|input| (Delivery::AfterThisTool, input.typed.clone()));
                let later = queued.follow_up.iter().map(|input| (Delivery::AtTheEnd, input.typed.clone()));
                let queue = steering.chain(later).collect();
                let inputs = queued.steering.into_iter().chain(queued.follow_up);
                self.waiting = inputs.map(|input| (input.text, input.typed)).collect();
                vec![AgentUpdate::Queue(queue)]
            }
            AgentEvent::CacheVerdict(verdict) => {
                let lost = &verdict.verdict;
                if lost.is_loss() {
                    let tokens = usize::try_from(lost.lost_tokens).unwrap_or(usize::MAX);
                    let cause = lost.cause.name().replace('_', " ");
                    self.paid_again = Some(PaidAgain { tokens, dollars: lost.lost_dollars, cause });
                }
                Vec::new()
            }
            AgentEvent::Note(note) => match note.kind {
                NoteKind::Retry { attempt, tries, wait_ms } => vec![AgentUpdate::Retry {
                    message: note.text,
                    wait: Duration::from_millis(wait_ms),
                    attempt,
                    attempts: tries,
                }],
                _ => vec![AgentUpdate::Note(note.attributed_text())],
            },
            AgentEvent::HandlerFailed(HandlerFailed(HandlerFault { owner, event, message, .. })) => {
                vec![AgentUpdate::Note(format!("{owner} ({event}): {message}"))]
            }
            AgentEvent::SessionSwitch(_) | AgentEvent::SessionTree(_) => {
                return vec![Event::Earlier(earlier_blocks(&self.app.agent))];
            }
            AgentEvent::FaceChanged(change) => return self.extensions.take(change, &self.app),
            AgentEvent::TurnEnd(_) | AgentEvent::ModelSelect(_) | AgentEvent::ThinkingSelect(_) => {
                return vec![Event::Status(status::status_line(&self.app))];
            }
            _ => Vec::new(),
        };
        updates.into_iter().map(Event::Agent).collect()
    }

    fn message_ended(&mut self, message: &MessageBody, input: Option<InputId>) -> Vec<AgentUpdate> {
        match message {
            MessageBody::Assistant { content, .. } => {
                let call = |part: &MessagePart| match part {
                    MessagePart::ToolCall(call) => {
                        let call = shown_call(call);
                        Some((call.id.clone(), (call.name.to_string(), subject(&call.arguments.value()))))
                    }
                    _ => None,
                };
                self.calls = content.iter().filter_map(call).collect();
                vec![AgentUpdate::AnswerEnded]
            }
            MessageBody::ToolResult { call_id, content, not_run, .. } => {
                match (self.calls.remove(call_id), not_run) {
                    (Some((name, subject)), Some(reason)) => {
                        let reason = not_run_words(reason, &joined_texts(content));
                        vec![AgentUpdate::ToolNotRun { name, subject, reason }]
                    }
                    _ => Vec::new(),
                }
            }
            MessageBody::User { content } => {
                let text = joined_texts(content);
                let typed = self.waiting.remove(&text).unwrap_or(text);
                let mut printed = self.printed.lock().unwrap_or_else(PoisonError::into_inner);
                let is_printed = input.is_some_and(|input| printed.remove(&input));
                (!is_printed).then_some(AgentUpdate::Delivered { text: typed }).into_iter().collect()
            }
            MessageBody::Custom { custom_type, content, display: true } => {
                let (from, text) = (custom_type.to_string(), joined_texts(content));
                vec![AgentUpdate::ExtensionMessage { from, text }]
            }
            _ => Vec::new(),
        }
    }

    fn tool_ended(&mut self, end: &ToolExecutionEnd) -> ToolEnd {
        let details = end.details.as_ref().unwrap_or(&Value::Null);
        let mut facts = Vec::new();
        let mut lines = Vec::new();
        if let Some(diff) = details["diff"].as_str() {
            let (added, removed) = line_counts(diff);
            self.added += added;
            self.removed += removed;
            self.files.extend(details["path"].as_str().map(str::to_owned));
            facts.push(hardpan_terminal::blocks::line_counts(added, removed, &self.theme));
            let was_shown =
                self.shown_calls.lock().unwrap_or_else(PoisonError::into_inner).remove(&end.call_id);
            if !was_shown && !end.is_error {
                lines = diff_lines(diff, &self.theme);
            }
        } else if let Some(count) = details["lines"].as_u64().or_else(|| details["names"].as_u64()) {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            facts.push(counted(count, "line", "lines"));
        }
        facts.extend(self.task_facts.remove(&end.call_id).unwrap_or_default());
        match (details["exit_code"].as_i64(), details["signal"].as_i64()) {
            (Some(0), _) | (None, None) => {}
            (Some(code), _) => facts.push(format!("exit {code}")),
            (None, Some(signal)) => facts.push(format!("signal {signal}")),
        }
        let output = joined_texts(&end.content);
        let (id, has_diff) = (end.call_id.clone(), details["diff"].is_string());
        ToolEnd { id, facts, is_error: end.is_error, details: lines, has_diff, output }
    }

    fn run_ended(&mut self, stop: &RunEnd, usage: &UsageReport) -> AgentUpdate {
        let problem = match stop {
            RunEnd::Done | RunEnd::Aborted => None,
            RunEnd::Length => Some(
                "The answer reached its token limit and was cut off. Raise it with --max-tokens.".to_owned(),
            ),
            RunEnd::Refused => Some("The model refused to answer.".to_owned()),
            RunEnd::Looping { tool } => {
                Some(format!("Stopped: the model kept repeating the same failing {tool} call."))
            }
            RunEnd::TooLong { message } | RunEnd::Error { message } => Some(message.clone()),
        };
        let tokens = usage.session.tokens.saturating_sub(&self.before.session.tokens);
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let summary = RunSummary {
            end: match stop {
                RunEnd::Done => ShownEnd::Done,
                RunEnd::Aborted => ShownEnd::Stopped,
                _ => ShownEnd::Failed,
            },
            elapsed: Duration::ZERO,
            requests: count(usage.requests.saturating_sub(self.before.requests)),
            changes: (self.files.len(), self.added, self.removed),
            cost: status::cost(&Spending {
                dollars: usage.session.dollars - self.before.session.dollars,
                would_cost: usage.session.would_cost - self.before.session.would_cost,
                ..Spending::default()
            }),
            read: Some((count(tokens.cache_read), count(tokens.prompt()))),
            paid_again: self.paid_again.take(),
        };
        AgentUpdate::RunEnded { summary: Some(summary), problem }
    }
}

/// What a sub-agent has used.
fn task_facts(used: &TaskUsage) -> Vec<String> {
    let requests = usize::try_from(used.requests).unwrap_or(usize::MAX);
    vec![counted(requests, "request", "requests"), dollars(used.dollars)]
}

/// Why a sub-agent ended without an answer.
fn task_problem(stop: &TaskStop) -> Option<String> {
    match stop {
        TaskStop::Done => None,
        TaskStop::Aborted => Some("aborted".to_owned()),
        TaskStop::Budget { .. } => Some("stopped at its limit".to_owned()),
        TaskStop::Failed { message } => Some(message.clone()),
    }
}

/// What a call is about: a path, or the text that says most.
pub fn subject(args: &Value) -> Subject {
    match args["path"].as_str() {
        Some(path) if args["pattern"].is_null() => Subject::Path(path.to_owned()),
        _ => match args["command"].as_str() {
            Some(command) => Subject::Text(command.to_owned()),
            None => Subject::Text(call_subject(args)),
        },
    }
}

pub fn not_run_words(reason: &NotRunReason, answer: &str) -> String {
    let text = match reason {
        NotRunReason::Steered => "you said something else",
        NotRunReason::Blocked { message } | NotRunReason::Denied { message, .. } => message,
        _ => answer,
    };
    text.lines().next().unwrap_or_default().to_owned()
}

pub fn joined_texts(content: &[MessagePart]) -> String {
    let text = |part: &MessagePart| match part {
        MessagePart::Text { text } => Some(text.to_string()),
        _ => None,
    };
    content.iter().filter_map(text).collect()
}
