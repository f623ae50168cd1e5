//! [`UpdateMapper`]: from the agent's events to the updates that a client shows.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, Cost, Diff, Notice, NoticeSeverity, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionUpdate, TextContent, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields, UsageUpdate,
};
use hardpan_agent::AgentEvent;
use hardpan_agent::events::{
    CacheVerdict, MessageDelta, MessageEnd, MessageUpdate, NoteKind, TaskUpdate, ToolExecutionEnd,
    ToolExecutionStart, ToolExecutionUpdate,
};
use hardpan_app::ConversationApp;
use hardpan_app::mcp::shown_call;
use hardpan_panels::TodoStatus;
use hardpan_prompt::{MessageBody, MessagePart};
use serde_json::Value;

use super::command_outputs::CommandOutputs;
use super::connection::Connection;
use super::tool_calls::{CallView, location, result_content, text_content};

/// What the calls that run make of files, by the id of the call.
pub type CallChanges = Arc<Mutex<BTreeMap<Arc<str>, Diff>>>;

/// Makes updates of the events of one conversation.
pub struct UpdateMapper {
    app: Arc<ConversationApp>,
    changes: CallChanges,
    /// The calls that the client knows and that have not ended.
    open_calls: BTreeMap<Arc<str>, CallProgress>,
    plan: Vec<(String, TodoStatus)>,
    outputs: CommandOutputs,
    /// Whether the client shows notices; otherwise they come as thoughts.
    shows_notices: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallProgress {
    /// Its arguments are still coming.
    Announced,
    Described,
}

impl UpdateMapper {
    pub fn new(app: &Arc<ConversationApp>, changes: &CallChanges, connection: &Connection) -> Self {
        let shows_notices = connection.client().session.is_some_and(|session| session.notices.is_some());
        let outputs = CommandOutputs::new(app, connection);
        let (app, changes) = (app.clone(), changes.clone());
        let plan = app.panels.todos();
        UpdateMapper { app, changes, open_calls: BTreeMap::new(), plan, outputs, shows_notices }
    }

    /// Gives back the terminals of calls that have ended, once the client has been told of the end.
    pub async fn release_terminals(&mut self) {
        self.outputs.release_ended().await;
    }

    /// What a client is told about an event, in order.
    pub async fn updates(&mut self, event: &AgentEvent) -> Vec<SessionUpdate> {
        match event {
            AgentEvent::MessageUpdate(MessageUpdate { delta, .. }) => self.delta(delta).into_iter().collect(),
            AgentEvent::MessageEnd(MessageEnd { message, .. }) => self.message_end(&message.body),
            AgentEvent::ToolExecutionStart(ToolExecutionStart { call_id, tool_name, args }) => {
                let mut updates: Vec<SessionUpdate> =
                    self.describe(call_id, tool_name, args).into_iter().collect();
                let terminal = self.outputs.begin(call_id, tool_name, args).await;
                let content = terminal.map(|terminal| vec![terminal]).or_else(|| self.change(call_id));
                let fields = ToolCallUpdateFields::new().status(ToolCallStatus::InProgress);
                updates.push(call_update(call_id, fields.content(content)));
                updates
            }
            AgentEvent::ToolExecutionUpdate(ToolExecutionUpdate { call_id, partial, .. }) => {
                match self.outputs.show(call_id, partial) {
                    Some(update) => update.into_iter().collect(),
                    None => {
                        let fields = ToolCallUpdateFields::new().content(text_content(partial));
                        vec![call_update(call_id, fields)]
                    }
                }
            }
            AgentEvent::ToolExecutionEnd(end) => self.call_end(end).await,
            AgentEvent::TaskUpdate(TaskUpdate { call_id, agent, activity, .. }) => {
                let text = text_content(&format!("{agent}: {activity}"));
                vec![call_update(call_id, ToolCallUpdateFields::new().content(text))]
            }
            AgentEvent::TurnEnd(_) => self.usage().into_iter().chain(self.plan_change()).collect(),
            AgentEvent::CacheVerdict(CacheVerdict { sentence, .. }) => {
                self.note(sentence, NoticeSeverity::Info).into_iter().collect()
            }
            AgentEvent::Note(note) => {
                let severity = match note.kind {
                    NoteKind::Retry { .. } | NoteKind::BrokenOff | NoteKind::CompactionFailed => {
                        NoticeSeverity::Warning
                    }
                    _ => NoticeSeverity::Info,
                };
                self.note(&note.attributed_text(), severity).into_iter().collect()
            }
            AgentEvent::HandlerFailed(fault) => {
                self.note(&fault.0.message, NoticeSeverity::Warning).into_iter().collect()
            }
            AgentEvent::AgentEnd(_) => {
                // Calls that did not run, and those of sub-agents, have no end here.
                self.changes.lock().unwrap_or_else(PoisonError::into_inner).clear();
                self.outputs.end_all();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn delta(&mut self, delta: &MessageDelta) -> Option<SessionUpdate> {
        match delta {
            MessageDelta::Text { text } => Some(SessionUpdate::AgentMessageChunk(chunk(text))),
            MessageDelta::Reasoning { text } => Some(SessionUpdate::AgentThoughtChunk(chunk(text))),
            MessageDelta::Call { call_id, name, .. } => {
                self.open_calls.insert(call_id.as_str().into(), CallProgress::Announced);
                let view = CallView::new(name, &Value::Null, &self.app.scope);
                let call = ToolCall::new(call_id.clone(), view.title).kind(view.kind).name(name.clone());
                let call = self.outputs.announce(name, call);
                Some(SessionUpdate::ToolCall(call.status(ToolCallStatus::Pending)))
            }
            MessageDelta::Arguments { .. } => None,
        }
    }

    fn message_end(&mut self, message: &MessageBody) -> Vec<SessionUpdate> {
        match message {
            MessageBody::Assistant { content, .. } => {
                let calls = content.iter().filter_map(|part| match part {
                    MessagePart::ToolCall(call) => Some(shown_call(call)),
                    _ => None,
                });
                calls
                    .filter_map(|call| self.describe(&call.id, &call.name, &call.arguments.value()))
                    .collect()
            }
            // A call that did not run has a result, but no execution.
            MessageBody::ToolResult { call_id, content, is_error, .. } => {
                let is_open = self.open_calls.remove(call_id).is_some();
                let update = || call_update(call_id, end_fields(*is_error).content(result_content(content)));
                is_open.then(update).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// Tells what a call is about, unless the client knows.
    fn describe(&mut self, id: &Arc<str>, tool: &str, args: &Value) -> Option<SessionUpdate> {
        let before = self.open_calls.insert(id.clone(), CallProgress::Described);
        let CallView { title, kind, locations } = CallView::new(tool, args, &self.app.scope);
        match before {
            Some(CallProgress::Described) => None,
            Some(CallProgress::Announced) => {
                let fields = ToolCallUpdateFields::new().title(title).kind(kind).locations(locations);
                Some(call_update(id, fields.raw_input(args.clone())))
            }
            None => {
                let call =
                    ToolCall::new(id.clone(), title).kind(kind).locations(locations).name(tool.to_owned());
                let call = self.outputs.announce(tool, call);
                Some(SessionUpdate::ToolCall(call.raw_input(args.clone())))
            }
        }
    }

    fn change(&self, id: &Arc<str>) -> Option<Vec<ToolCallContent>> {
        let changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        changes.get(id).map(|diff| vec![ToolCallContent::Diff(diff.clone())])
    }

    async fn call_end(&mut self, end: &ToolExecutionEnd) -> Vec<SessionUpdate> {
        let ToolExecutionEnd { call_id, content, details, is_error, .. } = end;
        self.open_calls.remove(call_id);
        let change = self.change(call_id).filter(|_| !is_error);
        self.changes.lock().unwrap_or_else(PoisonError::into_inner).remove(call_id);
        let shown = self.outputs.end(end).await;
        let content = match (change, &shown) {
            (Some(change), _) => change,
            (None, Some(shown)) => shown.content.clone(),
            (None, None) => result_content(content),
        };
        let mut fields = end_fields(*is_error).content(content);
        if let Some(details) = details {
            let line = details["first_changed_line"].as_u64().and_then(|line| u32::try_from(line).ok());
            if let (Some(line), Some(path)) = (line, details["path"].as_str()) {
                let root = self.app.scope.root.join(path);
                let found = root.to_str().and_then(|path| location(path, Some(line), &self.app.scope));
                fields = fields.locations(found.map(|found| vec![found]));
            }
            fields = fields.raw_output(details.clone());
        }
        let (mut updates, meta) = shown.map(|shown| (shown.last_output, shown.meta)).unwrap_or_default();
        updates.push(SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(call_id.clone(), fields).meta(meta)));
        updates.extend(self.plan_change());
        updates
    }

    /// How much of the window the last request took, and what the session has cost.
    fn usage(&self) -> Option<SessionUpdate> {
        let agent = &self.app.agent;
        let used = agent.breakdown()?.total_tokens as u64;
        let size = u64::from(agent.target().max_input_tokens());
        let cost = Cost::new(agent.token_usage().session.dollars, "USD");
        Some(SessionUpdate::UsageUpdate(UsageUpdate::new(used, size).cost(cost)))
    }

    /// The todo list, if it has changed.
    fn plan_change(&mut self) -> Option<SessionUpdate> {
        let todos = self.app.panels.todos();
        if todos == self.plan {
            return None;
        }
        self.plan.clone_from(&todos);
        Some(plan(todos))
    }

    /// Something that the person should know.
    pub fn note(&self, text: &str, severity: NoticeSeverity) -> Option<SessionUpdate> {
        if text.trim().is_empty() {
            return None;
        }
        Some(match self.shows_notices {
            true => SessionUpdate::Notice(Notice::new(severity, text)),
            false => SessionUpdate::AgentThoughtChunk(chunk(&format!("{text}\n\n"))),
        })
    }
}

/// A todo list as the protocol has it.
pub fn plan(todos: Vec<(String, TodoStatus)>) -> SessionUpdate {
    let entry = |(text, status): (String, TodoStatus)| {
        let status = match status {
            TodoStatus::Open => PlanEntryStatus::Pending,
            TodoStatus::Active => PlanEntryStatus::InProgress,
            TodoStatus::Done => PlanEntryStatus::Completed,
        };
        PlanEntry::new(text, PlanEntryPriority::Medium, status)
    };
    SessionUpdate::Plan(Plan::new(todos.into_iter().map(entry).collect()))
}

/// A text as a piece of a message.
pub fn chunk(text: &str) -> ContentChunk {
    ContentChunk::new(ContentBlock::Text(TextContent::new(text)))
}

fn call_update(id: &Arc<str>, fields: ToolCallUpdateFields) -> SessionUpdate {
    SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id.clone(), fields))
}

fn end_fields(is_error: bool) -> ToolCallUpdateFields {
    let status = if is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
    ToolCallUpdateFields::new().status(status)
}
