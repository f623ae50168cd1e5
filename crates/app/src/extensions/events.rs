//! The events that extensions can take part in: what their handlers get, and what their replies mean.
//!
//! The names and fields are those of the published API; where it has two generations of an event, both
//! are raised (`agent_end` and `agent_settled`, `session_switch` and `session_start`).

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_agent::events::{
    AgentEnd, AgentSettled, AgentStart, AnswerPart, AnswerPartChange, AnswerPartKind, BeforeAgentStart,
    BeforeAgentStartReply, BeforeCompactReply, BeforeSwitchReply, BeforeTreeReply, ContextEvent, Dialog,
    DialogEnd, DialogStart, Input, InputReply, LeaveReason, MessageEnd, MessageStart, ModelSelect,
    ProviderPayload, ProviderResponse, ResourcesDiscover, ResourcesReply, SessionBeforeCompact,
    SessionBeforeFork, SessionBeforeSwitch, SessionBeforeTree, SessionCompact, SessionFork, SessionLeave,
    SessionShutdown, SessionStart, SessionSwitch, SessionTree, SwitchReason, ToolAnnounced, ToolCallEvent,
    ToolCallReply, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate, ToolResultEvent,
    ToolResultReply, ToolSettled, TurnEnd, TurnStart, UserBash, UserBashReply,
};
use hardpan_agent::{Agent, CompactReason, Event, HandlerError, InputSource};
use hardpan_prompt::{MessageBody, MessageId, MessagePart};
use hardpan_session::Entry;
use hardpan_tools::ToolState;
use serde_json::{Map, Value, json};

use super::entries::entries_to_script;
use super::event_order::ToolEventOrder;
use super::host::ExtensionHost;
use super::messages::{
    arguments_to_script, custom_message, given, image_from_script, image_to_script, lazy_messages,
    message_to_script, messages_from_script, parts_from_script, parts_to_script,
};
use super::models::target_to_script;

/// Subscribes a handler of an extension to an event. False if there is no such event.
pub fn subscribe(agent: &Agent, host: &Arc<ExtensionHost>, event: &str, handler: &str) -> bool {
    let subscriber = Subscriber { agent, host, name: event, handler };
    subscriber.subscribe_question() || subscriber.subscribe_notification()
}

/// Blocks every tool call in the name of an extension that decided about them and has ended.
pub fn block_all_calls(agent: &Agent, extension: &str) {
    let reason =
        format!("the extension {extension} decides about tool calls, and has ended: /reload loads it anew");
    agent.events().subscribe::<ToolCallEvent, _>(extension, move |_, _| {
        let reason = reason.clone();
        async move { Ok(ToolCallReply::Block { reason }) }
    });
}

struct Subscriber<'a> {
    agent: &'a Agent,
    host: &'a Arc<ExtensionHost>,
    name: &'a str,
    handler: &'a str,
}

impl Subscriber<'_> {
    fn order(&self) -> ToolEventOrder {
        self.host.tool_event_order()
    }

    /// Calls the handler with a payload, and makes its result the reply.
    fn on<E: Event>(
        &self,
        payload: impl Fn(&E, &Agent) -> Option<Value> + Send + Sync + 'static,
        reply: impl Fn(&E, Value) -> E::Reply + Send + Sync + 'static,
    ) -> bool
    where
        E::Reply: Default,
    {
        let (host, handler, name): (_, Arc<str>, Arc<str>) =
            (self.host.clone(), self.handler.into(), self.name.into());
        let reply = Arc::new(reply);
        let run = move |event: E, agent: Agent| -> std::pin::Pin<Box<dyn Future<Output = Result<E::Reply, HandlerError>> + Send>> {
            let Some(mut payload) = payload(&event, &agent) else {
                return Box::pin(std::future::ready(Ok(E::Reply::default())));
            };
            payload["type"] = json!(&*name);
            let (host, handler, reply) = (host.clone(), handler.clone(), reply.clone());
            Box::pin(async move {
                let result = host.call_handler(&handler, &payload).await?;
                Ok(match result {
                    Value::Null => E::Reply::default(),
                    result => reply(&event, result),
                })
            })
        };
        self.agent.events().subscribe::<E, _>(self.host.name(), run);
        true
    }

    /// Tells the handler of an event that asks nothing.
    fn tell<E: Event<Reply = ()>>(
        &self,
        payload: impl Fn(&E, &Agent) -> Option<Value> + Send + Sync + 'static,
    ) -> bool {
        self.on::<E>(payload, |_, _| ())
    }

    fn subscribe_question(&self) -> bool {
        match self.name {
            "input" => {
                self.on::<Input>(|event, _| Some(input_payload(event)), |_, reply| input_reply(&reply))
            }
            "before_agent_start" => {
                let cwd = self.host.cwd();
                self.on::<BeforeAgentStart>(
                    move |event, agent| {
                        Some(json!({
                            "prompt": event.prompt,
                            "images": event.images.iter().map(image_to_script).collect::<Value>(),
                            "systemPrompt": event.system_prompt,
                            "systemPromptOptions": prompt_options(agent, &cwd),
                        }))
                    },
                    |_, reply| BeforeAgentStartReply {
                        message: reply["message"].is_object().then(|| custom_message(&reply["message"])),
                        system_prompt: reply["systemPrompt"].as_str().map(str::to_owned),
                    },
                )
            }
            "context" => {
                let owner = self.host.owner().clone();
                self.on::<ContextEvent>(
                    |event, _| Some(json!({ "lazyMessages": lazy_messages(&event.messages) })),
                    move |event, reply| {
                        let returned = reply["messages"].as_array()?;
                        let messages = messages_from_script(returned, &event.messages, &owner);
                        (messages != event.messages).then_some(messages)
                    },
                )
            }
            "tool_call" => self.on::<ToolCallEvent>(
                |event, _| {
                    Some(json!({
                        "toolName": event.tool_name,
                        "toolCallId": event.call_id,
                        "input": arguments_to_script(&event.input),
                    }))
                },
                |_, reply| match reply["block"].as_bool() {
                    Some(true) => ToolCallReply::Block {
                        reason: reply["reason"].as_str().unwrap_or("Tool execution was blocked").to_owned(),
                    },
                    _ => ToolCallReply::Allow,
                },
            ),
            "tool_result" => self.on::<ToolResultEvent>(
                |event, _| {
                    Some(json!({
                        "toolName": event.tool_name,
                        "toolCallId": event.call_id,
                        "input": arguments_to_script(&event.input),
                        "content": parts_to_script(&event.content),
                        "details": event.details,
                        "isError": event.is_error,
                    }))
                },
                |_, reply| ToolResultReply {
                    content: reply.get("content").filter(|content| !content.is_null()).map(parts_from_script),
                    details: reply.get("details").filter(|details| !details.is_null()).cloned(),
                    is_error: reply["isError"].as_bool(),
                },
            ),
            "before_provider_request" => self.on::<ProviderPayload>(
                |event, _| {
                    Some(json!({
                        "payload": *event.payload,
                        "provider": event.provider,
                        "model": event.model,
                        "tokens": event.tokens,
                    }))
                },
                |_, reply| given(&reply["payload"]),
            ),
            "session_before_switch" => self.on::<SessionBeforeSwitch>(
                |event, _| {
                    let mut payload = json!({ "reason": switch_reason(event.reason) });
                    if let Some(file) = &event.target_file {
                        payload["targetSessionFile"] = json!(file);
                    }
                    Some(payload)
                },
                |_, reply| switch_reply(&reply),
            ),
            "session_before_fork" => self.on::<SessionBeforeFork>(
                |event, agent| {
                    let last = || agent.messages().last().map(|message| message.id.0.clone());
                    Some(json!({ "entryId": event.entry.clone().or_else(last), "position": "at" }))
                },
                |_, reply| switch_reply(&reply),
            ),
            "session_before_tree" => self
                .on::<SessionBeforeTree>(|event, _| Some(tree_payload(event)), |_, reply| tree_reply(&reply)),
            "resources_discover" => {
                let root = self.host.root().to_owned();
                self.on::<ResourcesDiscover>(
                    |event, _| Some(json!({ "cwd": event.cwd, "reason": "startup" })),
                    move |_, reply| {
                        let paths = |name: &str| {
                            let paths =
                                reply[name].as_array().into_iter().flatten().filter_map(Value::as_str);
                            paths.map(|path| root.join(path)).collect()
                        };
                        ResourcesReply {
                            skill_paths: paths("skillPaths"),
                            prompt_paths: paths("promptPaths"),
                        }
                    },
                )
            }
            "session_before_compact" => self.on::<SessionBeforeCompact>(
                |event, agent| Some(compact_payload(event, agent)),
                |_, reply| compact_reply(&reply),
            ),
            "user_bash" => {
                let cwd = self.host.cwd();
                self.on::<UserBash>(
                    move |event, _| {
                        Some(json!({
                            "command": event.command,
                            "excludeFromContext": event.exclude_from_context,
                            "cwd": cwd,
                        }))
                    },
                    |_, reply| {
                        // What `operations` did has become a result before it comes here.
                        let result = reply.get("result")?;
                        Some(UserBashReply {
                            output: result["output"].as_str()?.to_owned(),
                            exit_code: result["exitCode"].as_i64().and_then(|code| i32::try_from(code).ok()),
                        })
                    },
                )
            }
            _ => false,
        }
    }

    fn subscribe_notification(&self) -> bool {
        match self.name {
            "session_start" => {
                self.tell::<SessionSwitch>(|event, _| {
                    let reason = switch_reason(event.reason);
                    Some(json!({ "reason": reason, "previousSessionFile": event.from_file }))
                });
                self.tell::<SessionFork>(|event, _| {
                    Some(json!({ "reason": "fork", "previousSessionFile": event.from_file }))
                });
                self.tell::<SessionStart>(|_, _| Some(json!({ "reason": "startup" })))
            }
            "session_shutdown" => {
                self.tell::<SessionLeave>(|event, _| {
                    let reason = match event.reason {
                        LeaveReason::New => "new",
                        LeaveReason::Resume => "resume",
                        LeaveReason::Fork => "fork",
                    };
                    Some(json!({ "reason": reason, "targetSessionFile": event.target_file }))
                });
                self.tell::<SessionShutdown>(|_, _| Some(json!({ "reason": "quit" })))
            }
            // Where sessions are kept is the person's choice; the answer is not asked for.
            "session_directory" => {
                let cwd = self.host.cwd();
                self.tell::<SessionStart>(move |_, _| Some(json!({ "cwd": cwd })))
            }
            "session_switch" => self.tell::<SessionSwitch>(|event, _| {
                let reason = switch_reason(event.reason);
                Some(json!({ "reason": reason, "previousSessionFile": event.from_file }))
            }),
            "session_fork" => {
                self.tell::<SessionFork>(|event, _| Some(json!({ "previousSessionFile": event.from_file })))
            }
            "session_tree" => self.tell::<SessionTree>(|event, agent| {
                let summary = event.summary.as_ref().and_then(|id| {
                    let messages = agent.messages();
                    let message = messages.iter().find(|message| message.id == *id)?;
                    let mut entry = message_to_script(message);
                    entry["type"] = json!("branch_summary");
                    Some(entry)
                });
                Some(json!({
                    "newLeafId": event.to,
                    "oldLeafId": event.from,
                    "summaryEntry": summary,
                    "fromExtension": event.from_handler,
                }))
            }),
            "session_compact" => self.tell::<SessionCompact>(|SessionCompact(result), agent| {
                // The summary stands where the messages were, under the id of its entry.
                let id = agent.messages().first().map(|message| message.id.clone());
                Some(json!({
                    "compactionEntry": {
                        "type": "compaction",
                        "id": id,
                        "summary": result.summary,
                        "firstKeptEntryId": result.first_kept,
                        "tokensBefore": result.tokens_before,
                    },
                    "fromExtension": result.from_handler,
                }))
            }),
            "ui_prompt_start" => self.tell::<DialogStart>(|event, _| {
                let (kind, title) = match &event.dialog {
                    Dialog::Confirm { title, .. } => ("confirm", title),
                    Dialog::Select { title, .. } => ("select", title),
                    Dialog::Input { title, .. } => ("input", title),
                    Dialog::Editor { title, .. } => ("editor", title),
                };
                Some(json!({ "kind": kind, "title": title }))
            }),
            "ui_prompt_end" => self.tell::<DialogEnd>(|event, _| Some(json!({ "answered": event.answered }))),
            "after_provider_response" => self.tell::<ProviderResponse>(|event, _| {
                Some(json!({ "status": event.status, "headers": event.headers }))
            }),
            "agent_start" => self.tell::<AgentStart>(|_, _| Some(json!({}))),
            "agent_end" => self.tell::<AgentEnd>(|event, _| {
                Some(json!({ "messages": event.messages.iter().map(message_to_script).collect::<Value>() }))
            }),
            "agent_settled" => self.tell::<AgentSettled>(|_, _| Some(json!({}))),
            "turn_start" => self.tell::<TurnStart>(|event, agent| {
                let timestamp = agent.now().as_millisecond();
                Some(json!({ "turnIndex": event.turn.saturating_sub(1), "timestamp": timestamp }))
            }),
            "turn_end" => self.tell::<TurnEnd>(|event, _| {
                Some(json!({
                    "turnIndex": event.turn.saturating_sub(1),
                    "message": message_to_script(&event.message),
                    "toolResults": event.tool_results.iter().map(message_to_script).collect::<Value>(),
                }))
            }),
            "message_start" => self.tell::<MessageStart>(|event, _| {
                Some(json!({ "message": message_to_script(&event.message) }))
            }),
            "message_update" => self.tell::<AnswerPart>(|event, _| Some(part_payload(event))),
            "message_end" => self
                .tell::<MessageEnd>(|event, _| Some(json!({ "message": message_to_script(&event.message) }))),
            "tool_execution_start" if self.order() == ToolEventOrder::AroundQuestions => self
                .tell::<ToolAnnounced>(|event, _| {
                    Some(call_payload(&event.call_id, &event.tool_name, &event.args))
                }),
            "tool_execution_start" => self.tell::<ToolExecutionStart>(|event, _| {
                Some(call_payload(&event.call_id, &event.tool_name, &event.args))
            }),
            "tool_execution_update" => self.tell::<ToolExecutionUpdate>(|event, _| {
                let content = json!([{ "type": "text", "text": event.partial }]);
                let mut payload = call_payload(&event.call_id, &event.tool_name, &event.args);
                payload["partialResult"] = json!({ "content": content, "details": {} });
                Some(payload)
            }),
            "tool_execution_end" if self.order() == ToolEventOrder::AroundQuestions => self
                .tell::<ToolSettled>(|event, _| {
                    let result = result_to_script(&event.content, event.details.as_ref());
                    Some(end_payload(&event.call_id, &event.tool_name, &result, event.is_error))
                }),
            "tool_execution_end" => self.tell::<ToolExecutionEnd>(|event, _| {
                let result = result_to_script(&event.content, event.details.as_ref());
                Some(end_payload(&event.call_id, &event.tool_name, &result, event.is_error))
            }),
            "model_select" => {
                let known = Mutex::new(target_to_script(&self.agent.target()));
                self.tell::<ModelSelect>(move |_, agent| {
                    let model = target_to_script(&agent.target());
                    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
                    let previous = std::mem::replace(&mut *known, model.clone());
                    Some(json!({ "model": model, "previousModel": previous, "source": "set" }))
                })
            }
            _ => false,
        }
    }
}

/// What the system prompt is made of, as far as extensions know its parts. A copy: changes do nothing.
fn prompt_options(agent: &Agent, cwd: &str) -> Value {
    let listed = agent.tools().list();
    let active: Vec<_> = listed.iter().filter(|tool| tool.state == ToolState::On).collect();
    let names: Vec<&str> = active.iter().map(|tool| &*tool.name).collect();
    let snippets: Map<String, Value> =
        active.iter().map(|tool| (tool.name.to_string(), json!(tool.summary))).collect();
    let tools = agent.tools().declarations();
    let guidelines: Vec<&str> = tools.iter().flat_map(|tool| &tool.guidelines).map(|line| &**line).collect();
    let skills = agent.expansions().model_listing();
    let skills = skills.iter().map(|skill| json!({ "name": skill.name, "description": skill.description }));
    json!({
        "cwd": cwd,
        "selectedTools": names,
        "toolSnippets": snippets,
        "promptGuidelines": guidelines,
        "skills": skills.collect::<Value>(),
    })
}

fn switch_reason(reason: SwitchReason) -> &'static str {
    match reason {
        SwitchReason::New => "new",
        SwitchReason::Resume => "resume",
    }
}

fn call_payload(call_id: &str, tool_name: &str, args: &Value) -> Value {
    json!({ "toolCallId": call_id, "toolName": tool_name, "args": arguments_to_script(args) })
}

fn end_payload(call_id: &str, tool_name: &str, result: &Value, is_error: bool) -> Value {
    json!({ "toolCallId": call_id, "toolName": tool_name, "result": result, "isError": is_error })
}

fn result_to_script(content: &[MessagePart], details: Option<&Value>) -> Value {
    json!({ "content": parts_to_script(content), "details": details })
}

/// Why a handler that cancels something does not want it; it need not say.
fn cancel_reason(reply: &Value) -> Option<String> {
    (reply["cancel"].as_bool() == Some(true))
        .then(|| reply["reason"].as_str().unwrap_or("an extension cancelled it").to_owned())
}

fn switch_reply(reply: &Value) -> BeforeSwitchReply {
    cancel_reason(reply).map_or(BeforeSwitchReply::Continue, |reason| BeforeSwitchReply::Cancel { reason })
}

fn tree_payload(event: &SessionBeforeTree) -> Value {
    let entries: Vec<&Entry> = event.entries.iter().collect();
    json!({
        "preparation": {
            "targetId": event.target,
            "oldLeafId": event.old_leaf,
            "commonAncestorId": event.common_ancestor,
            "entriesToSummarize": entries_to_script(&entries),
            "userWantsSummary": event.wants_summary,
            "customInstructions": event.instructions,
        },
        "hasSignal": true,
    })
}

fn tree_reply(reply: &Value) -> BeforeTreeReply {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    BeforeTreeReply {
        cancel: cancel_reason(reply),
        summary: text(&reply["summary"]["summary"]),
        instructions: text(&reply["customInstructions"]),
        label: text(&reply["label"]),
    }
}

fn input_payload(event: &Input) -> Value {
    let source = match event.source {
        InputSource::Interactive => "interactive",
        InputSource::Rpc => "rpc",
        InputSource::Extension | InputSource::Agent => "extension",
    };
    let mut payload = json!({ "text": event.text, "source": source });
    if !event.images.is_empty() {
        payload["images"] = event.images.iter().map(image_to_script).collect();
    }
    payload
}

fn input_reply(reply: &Value) -> InputReply {
    match reply["action"].as_str() {
        Some("handled") => InputReply::Handled,
        Some("transform") => match reply["text"].as_str() {
            Some(text) => InputReply::Transform {
                text: text.to_owned(),
                images: reply["images"]
                    .as_array()
                    .map(|images| images.iter().filter_map(image_from_script).collect()),
            },
            None => InputReply::Continue,
        },
        _ => InputReply::Continue,
    }
}

fn compact_payload(event: &SessionBeforeCompact, agent: &Agent) -> Value {
    let entries: Vec<&Entry> = event.entries.iter().collect();
    let previous = event.summarized.iter().find_map(|message| match &*message.body {
        MessageBody::CompactionSummary { summary } => Some(summary.to_string()),
        _ => None,
    });
    let (reason, will_retry) = match event.why {
        CompactReason::Requested => ("manual", false),
        CompactReason::NearlyFull => ("threshold", false),
        CompactReason::TooLong => ("overflow", true),
    };
    let (read, changed) = agent.known_file_lists();
    json!({
        "preparation": {
            "firstKeptEntryId": event.first_kept,
            "messagesToSummarize": event.summarized.iter().map(message_to_script).collect::<Value>(),
            "turnPrefixMessages": [],
            "isSplitTurn": false,
            "tokensBefore": event.tokens_before,
            "previousSummary": previous,
            "fileOps": { "read": read, "written": [], "edited": changed },
            "settings": { "enabled": true },
        },
        "branchEntries": entries_to_script(&entries),
        "customInstructions": event.instructions,
        "reason": reason,
        "willRetry": will_retry,
        // The call's own signal takes this place.
        "hasSignal": true,
    })
}

fn compact_reply(reply: &Value) -> BeforeCompactReply {
    if let Some(reason) = cancel_reason(reply) {
        return BeforeCompactReply::Cancel { reason };
    }
    let compaction = &reply["compaction"];
    match compaction["summary"].as_str() {
        Some(summary) => BeforeCompactReply::Summary {
            text: summary.to_owned(),
            first_kept: compaction["firstKeptEntryId"].as_str().map(MessageId::from),
            details: given(&compaction["details"]),
        },
        None => BeforeCompactReply::Continue,
    }
}

/// A piece of an answer, with the answer so far.
fn part_payload(event: &AnswerPart) -> Value {
    let message = message_to_script(&event.message);
    let kind = match event.kind {
        AnswerPartKind::Text => "text",
        AnswerPartKind::Reasoning => "thinking",
        AnswerPartKind::Call => "toolcall",
    };
    let part = &message["content"][event.part];
    let mut update = match &event.change {
        AnswerPartChange::Start => json!({ "type": format!("{kind}_start") }),
        AnswerPartChange::Delta(text) => json!({ "type": format!("{kind}_delta"), "delta": text }),
        AnswerPartChange::End if event.kind == AnswerPartKind::Call => {
            json!({ "type": "toolcall_end", "toolCall": part })
        }
        AnswerPartChange::End => {
            let text = part.get("text").or(part.get("thinking"));
            json!({ "type": format!("{kind}_end"), "content": text })
        }
    };
    update["contentIndex"] = json!(event.part);
    json!({ "message": message, "assistantMessageEvent": update })
}
