//! The events that tell something.

use std::sync::{Mutex, PoisonError};

use hardpan_agent::Agent;
use hardpan_agent::events::{
    AgentEnd, AgentSettled, AgentStart, AnswerPart, AnswerPartChange, AnswerPartKind, Dialog, DialogEnd,
    DialogStart, LeaveReason, MessageEnd, MessageStart, ModelSelect, ProviderResponse, SessionCompact,
    SessionCompactFailed, SessionFork, SessionLeave, SessionRenamed, SessionShutdown, SessionStart,
    SessionSwitch, SessionTree, SwitchReason, ThinkingSelect, ToolAnnounced, ToolExecutionEnd,
    ToolExecutionStart, ToolExecutionUpdate, ToolSettled, TurnEnd, TurnStart,
};
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{MessageBody, MessagePart};
use serde_json::{Value, json};

use super::super::api::{self, ContentPart, Message, ScriptEvent};
use super::super::event_order::ToolEventOrder;
use super::super::messages::{
    arguments_to_script, details_to_script, message_to_script, messages_to_script, part_to_script,
    parts_to_script, text_part,
};
use super::super::models::{target_to_script, thinking_level};
use super::Subscriber;
use super::questions::{compaction_reason, switch_kind};

impl Subscriber<'_> {
    /// Subscribes to an event that asks nothing. False if it is none.
    pub(super) fn subscribe_notification(&self) -> bool {
        self.subscribe_session() || self.subscribe_run() || self.subscribe_tool() || self.subscribe_other()
    }

    fn subscribe_session(&self) -> bool {
        match self.name {
            api::SessionStartEvent::NAME => {
                self.tell(|event: &SessionSwitch, _| api::SessionStartEvent {
                    reason: match event.reason {
                        SwitchReason::New => api::StartReason::New,
                        SwitchReason::Resume => api::StartReason::Resume,
                    },
                    previous_session_file: Some(event.from_file.clone()),
                });
                self.tell(|event: &SessionFork, _| api::SessionStartEvent {
                    reason: api::StartReason::Fork,
                    previous_session_file: Some(event.from_file.clone()),
                });
                self.tell(|_: &SessionStart, _| api::SessionStartEvent {
                    reason: api::StartReason::Startup,
                    previous_session_file: None,
                })
            }
            api::SessionShutdownEvent::NAME => {
                self.tell(|event: &SessionLeave, _| api::SessionShutdownEvent {
                    reason: match event.reason {
                        LeaveReason::New => api::ShutdownReason::New,
                        LeaveReason::Resume => api::ShutdownReason::Resume,
                        LeaveReason::Fork => api::ShutdownReason::Fork,
                    },
                    target_session_file: Some(event.target_file.clone()),
                });
                self.tell(|_: &SessionShutdown, _| api::SessionShutdownEvent {
                    reason: api::ShutdownReason::Quit,
                    target_session_file: None,
                })
            }
            // Where sessions are kept is the person's choice; the answer is not asked for.
            api::SessionDirectoryEvent::NAME => {
                let cwd = self.host.cwd();
                self.tell(move |_: &SessionStart, _| api::SessionDirectoryEvent { cwd: cwd.clone() })
            }
            api::SessionSwitchEvent::NAME => self.tell(|event: &SessionSwitch, _| api::SessionSwitchEvent {
                reason: switch_kind(event.reason),
                previous_session_file: event.from_file.clone(),
            }),
            api::SessionForkEvent::NAME => self.tell(|event: &SessionFork, _| api::SessionForkEvent {
                previous_session_file: event.from_file.clone(),
            }),
            api::SessionTreeEvent::NAME => self.tell(tree_payload),
            api::SessionCompactEvent::NAME => self.tell(compact_payload),
            api::SessionCompactFailedEvent::NAME => {
                self.tell(|event: &SessionCompactFailed, _| api::SessionCompactFailedEvent {
                    reason: compaction_reason(event.why).0,
                    error_message: event.error.clone(),
                    aborted: event.is_aborted,
                    will_retry: false,
                    from_extension: event.from_handler,
                })
            }
            api::SessionInfoChangedEvent::NAME => self
                .tell(|event: &SessionRenamed, _| api::SessionInfoChangedEvent { name: event.name.clone() }),
            _ => false,
        }
    }

    fn subscribe_run(&self) -> bool {
        match self.name {
            api::AgentStartEvent::NAME => self.tell(|_: &AgentStart, _| api::AgentStartEvent {}),
            api::AgentEndEvent::NAME => self.tell(|event: &AgentEnd, _| api::AgentEndEvent {
                messages: messages_to_script(&event.messages),
            }),
            api::AgentSettledEvent::NAME => self.tell(|_: &AgentSettled, _| api::AgentSettledEvent {}),
            api::TurnStartEvent::NAME => self.tell(|event: &TurnStart, agent| api::TurnStartEvent {
                turn_index: event.turn.saturating_sub(1),
                timestamp: agent.now().as_millisecond(),
            }),
            api::TurnEndEvent::NAME => self.tell(|event: &TurnEnd, _| {
                let results = messages_to_script(&event.tool_results).into_iter();
                let results = results.filter_map(|message| match message {
                    Message::ToolResult(result) => Some(result),
                    _ => None,
                });
                api::TurnEndEvent {
                    turn_index: event.turn.saturating_sub(1),
                    message: message_to_script(&event.message),
                    tool_results: results.collect(),
                    message_entry_id: event.message.id.0.clone(),
                    tool_result_entry_ids: event
                        .tool_results
                        .iter()
                        .map(|result| result.id.0.clone())
                        .collect(),
                }
            }),
            api::MessageStartEvent::NAME => self.tell(|event: &MessageStart, _| api::MessageStartEvent {
                message: message_to_script(&event.message),
            }),
            api::MessageUpdateEvent::NAME => self.tell(|event, _| part_payload(event)),
            api::MessageEndEvent::NAME => self.tell(|event: &MessageEnd, _| api::MessageEndEvent {
                message: message_to_script(&event.message),
            }),
            _ => false,
        }
    }

    fn subscribe_tool(&self) -> bool {
        let is_around = self.order() == ToolEventOrder::AroundQuestions;
        match self.name {
            api::ToolExecutionStartEvent::NAME if is_around => {
                self.tell(|event: &ToolAnnounced, _| api::ToolExecutionStartEvent {
                    tool_call_id: event.call_id.clone(),
                    tool_name: event.tool_name.clone(),
                    args: arguments_to_script(&event.args),
                })
            }
            api::ToolExecutionStartEvent::NAME => {
                self.tell(|event: &ToolExecutionStart, _| api::ToolExecutionStartEvent {
                    tool_call_id: event.call_id.clone(),
                    tool_name: event.tool_name.clone(),
                    args: arguments_to_script(&event.args),
                })
            }
            api::ToolExecutionUpdateEvent::NAME => {
                self.tell(|event: &ToolExecutionUpdate, _| api::ToolExecutionUpdateEvent {
                    tool_call_id: event.call_id.clone(),
                    tool_name: event.tool_name.clone(),
                    args: arguments_to_script(&event.args),
                    partial_result: api::ToolResult {
                        content: vec![text_part(&event.partial)],
                        details: Some(json!({})),
                    },
                })
            }
            api::ToolExecutionEndEvent::NAME if is_around => {
                self.tell(|event: &ToolSettled, _| api::ToolExecutionEndEvent {
                    tool_call_id: event.call_id.clone(),
                    tool_name: event.tool_name.clone(),
                    result: result_to_script(&event.content, event.details.as_ref()),
                    is_error: event.is_error,
                })
            }
            api::ToolExecutionEndEvent::NAME => {
                self.tell(|event: &ToolExecutionEnd, _| api::ToolExecutionEndEvent {
                    tool_call_id: event.call_id.clone(),
                    tool_name: event.tool_name.clone(),
                    result: result_to_script(&event.content, event.details.as_ref()),
                    is_error: event.is_error,
                })
            }
            _ => false,
        }
    }

    fn subscribe_other(&self) -> bool {
        match self.name {
            api::UiPromptStartEvent::NAME => self.tell(|event: &DialogStart, _| {
                let (kind, title) = match &event.dialog {
                    Dialog::Confirm { title, .. } => (api::PromptKind::Confirm, title),
                    Dialog::Select { title, .. } => (api::PromptKind::Select, title),
                    Dialog::Input { title, .. } => (api::PromptKind::Input, title),
                    Dialog::Editor { title, .. } => (api::PromptKind::Editor, title),
                };
                api::UiPromptStartEvent { kind, title: title.clone() }
            }),
            api::UiPromptEndEvent::NAME => {
                self.tell(|event: &DialogEnd, _| api::UiPromptEndEvent { answered: event.answered })
            }
            api::AfterProviderResponseEvent::NAME => self.tell(|event: &ProviderResponse, _| {
                api::AfterProviderResponseEvent { status: event.status, headers: event.headers.clone() }
            }),
            api::ModelSelectEvent::NAME => {
                let known = Mutex::new(target_to_script(&self.agent.target()));
                self.tell(move |_: &ModelSelect, agent| {
                    let model = target_to_script(&agent.target());
                    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                    let previous_model = std::mem::replace(&mut *known, model.clone());
                    api::ModelSelectEvent { model, previous_model, source: api::SetSource::default() }
                })
            }
            api::ThinkingLevelSelectEvent::NAME => self.tell(|event: &ThinkingSelect, agent| {
                let target = agent.target();
                let level = |text: &str| {
                    let setting = text.parse::<ThinkingSetting>().unwrap_or_default();
                    thinking_level(&target, setting)
                };
                api::ThinkingLevelSelectEvent {
                    level: level(&event.thinking),
                    previous_level: level(&event.previous),
                }
            }),
            _ => false,
        }
    }
}

fn tree_payload(event: &SessionTree, agent: &Agent) -> api::SessionTreeEvent {
    let summary_entry = event.summary.as_ref().and_then(|id| {
        let messages = agent.messages();
        let message = messages.iter().find(|message| message.id == *id)?;
        let MessageBody::BranchSummary { summary } = &*message.body else { return None };
        let kind = api::BranchSummaryType::default();
        Some(api::BranchSummary { kind, id: id.0.clone(), summary: summary.to_string() })
    });
    api::SessionTreeEvent {
        new_leaf_id: event.to.clone(),
        old_leaf_id: event.from.clone(),
        summary_entry,
        from_extension: event.from_handler,
    }
}

fn compact_payload(SessionCompact(result): &SessionCompact, agent: &Agent) -> api::SessionCompactEvent {
    let (reason, will_retry) = compaction_reason(result.why);
    api::SessionCompactEvent {
        compaction_entry: api::Compaction {
            kind: api::CompactionType::default(),
            // The summary stands where the messages were, under the id of its entry.
            id: agent.messages().first().map(|message| message.id.0.clone()),
            summary: result.summary.clone(),
            first_kept_entry_id: result.first_kept.clone(),
            tokens_before: result.tokens_before,
        },
        from_extension: result.from_handler,
        reason,
        will_retry,
    }
}

fn result_to_script(content: &[MessagePart], details: Option<&Value>) -> api::ToolResult {
    api::ToolResult { content: parts_to_script(content), details: details.map(details_to_script) }
}

/// A piece of an answer, with the answer so far.
fn part_payload(event: &AnswerPart) -> api::MessageUpdateEvent {
    use api::AssistantMessageEvent as Update;
    let content_index = event.part;
    let part = || match &*event.message.body {
        MessageBody::Assistant { content, .. } => content.get(content_index).and_then(part_to_script),
        _ => None,
    };
    let text = || match part() {
        Some(ContentPart::Text(part)) => part.text,
        Some(ContentPart::Thinking(part)) => part.thinking,
        _ => String::new(),
    };
    let update = match (event.kind, &event.change) {
        (AnswerPartKind::Text, AnswerPartChange::Start) => Update::TextStart { content_index },
        (AnswerPartKind::Text, AnswerPartChange::Delta(delta)) => {
            Update::TextDelta { content_index, delta: delta.clone() }
        }
        (AnswerPartKind::Text, AnswerPartChange::End) => Update::TextEnd { content_index, content: text() },
        (AnswerPartKind::Reasoning, AnswerPartChange::Start) => Update::ThinkingStart { content_index },
        (AnswerPartKind::Reasoning, AnswerPartChange::Delta(delta)) => {
            Update::ThinkingDelta { content_index, delta: delta.clone() }
        }
        (AnswerPartKind::Reasoning, AnswerPartChange::End) => {
            Update::ThinkingEnd { content_index, content: text() }
        }
        (AnswerPartKind::Call, AnswerPartChange::Start) => Update::ToolcallStart { content_index },
        (AnswerPartKind::Call, AnswerPartChange::Delta(delta)) => {
            Update::ToolcallDelta { content_index, delta: delta.clone() }
        }
        (AnswerPartKind::Call, AnswerPartChange::End) => {
            let tool_call = match part() {
                Some(ContentPart::ToolCall(call)) => call,
                _ => api::ToolCallPart::default(),
            };
            Update::ToolcallEnd { content_index, tool_call }
        }
    };
    let message = message_to_script(&event.message);
    api::MessageUpdateEvent { message, assistant_message_event: update }
}
