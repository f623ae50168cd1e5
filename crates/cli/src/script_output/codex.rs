//! [`CodexFormat`]: the lines of `codex exec --json`.
//!
//! A call of `bash` is a `command_execution`, one of `edit` or `write` a `file_change`, one of an MCP
//! server an `mcp_tool_call`. Hardpan's other tools have no item of their own there: they are
//! `mcp_tool_call`s of the server `hardpan`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::events::{HandlerFailed, NoteKind, RunEnd};
use hardpan_agent::{AgentEvent, Spending};
use hardpan_prompt::{MessageBody, MessagePart, TokenUsage};
use serde_json::{Value, json};

use super::{CallDirectory, ScriptEnd, ScriptFormat, ScriptSession, joined_texts, used_since};
use crate::chat::one_shot::run_failure;

/// The server that Hardpan's own tools are said to be of.
const OWN_SERVER: &str = "hardpan";

/// What has happened so far.
pub struct CodexFormat {
    directory: CallDirectory,
    items: u64,
    used: Spending,
    /// Calls whose result has not come.
    calls: BTreeMap<Arc<str>, OpenCall>,
    /// The item of the todo list, and the list as it was last told.
    todos: Option<(String, Vec<(String, bool)>)>,
    is_turn_open: bool,
    has_failed: bool,
}

struct OpenCall {
    tool: Arc<str>,
    args: Value,
    /// Its item, once it was told.
    item: Option<String>,
}

/// How an item stands.
#[derive(Clone, Copy)]
enum CallState<'a> {
    Running,
    Ended { content: &'a [MessagePart], details: Option<&'a Value>, is_error: bool },
}

impl CallState<'_> {
    fn status(self) -> &'static str {
        match self {
            CallState::Running => "in_progress",
            CallState::Ended { is_error: true, .. } => "failed",
            CallState::Ended { .. } => "completed",
        }
    }
}

impl CodexFormat {
    pub fn new(directory: CallDirectory) -> Self {
        CodexFormat {
            directory,
            items: 0,
            used: Spending::default(),
            calls: BTreeMap::new(),
            todos: None,
            is_turn_open: false,
            has_failed: false,
        }
    }

    fn next_item(&mut self) -> String {
        self.items += 1;
        format!("item_{}", self.items - 1)
    }

    fn completed(&mut self, kind: &str, field: &str, text: &str) -> Value {
        let id = self.next_item();
        json!({"type": "item.completed", "item": {"id": id, "type": kind, field: text}})
    }

    /// An answer: its reasoning, its text, and the calls that it makes.
    fn answer(&mut self, content: &[MessagePart]) -> Vec<Value> {
        let mut lines = Vec::new();
        for part in content {
            match part {
                MessagePart::Reasoning { text, .. } if !text.as_str().trim().is_empty() => {
                    lines.push(self.completed("reasoning", "text", text.as_str()));
                }
                MessagePart::ToolCall(call) => {
                    let (tool, args) = (call.name.clone(), call.arguments.value());
                    self.calls.insert(call.id.clone(), OpenCall { tool, args, item: None });
                }
                _ => {}
            }
        }
        let text = joined_texts(content);
        if !text.trim().is_empty() {
            lines.push(self.completed("agent_message", "text", &text));
        }
        lines
    }

    /// The item of a call, as it stands.
    fn call_item(&self, id: &str, call: &OpenCall, state: CallState<'_>) -> Value {
        let OpenCall { tool, args, .. } = call;
        match &**tool {
            "bash" => {
                let (output, code) = match state {
                    CallState::Running => (String::new(), None),
                    CallState::Ended { content, details, .. } => {
                        (joined_texts(content), details.and_then(|details| details["exit_code"].as_i64()))
                    }
                };
                json!({
                    "id": id,
                    "type": "command_execution",
                    "command": args["command"].as_str().unwrap_or_default(),
                    "aggregated_output": output,
                    "exit_code": code,
                    "status": state.status(),
                })
            }
            "edit" | "write" => {
                let details = match state {
                    CallState::Ended { details, .. } => details,
                    CallState::Running => None,
                };
                let changed = details.and_then(|details| details["path"].as_str());
                let path = changed.or(args["path"].as_str()).unwrap_or_default();
                let is_new = details
                    .and_then(|details| details["diff"].as_str())
                    .is_some_and(|diff| diff.lines().any(|line| line.starts_with("@@ -0,0 ")));
                let kind = if is_new { "add" } else { "update" };
                json!({
                    "id": id,
                    "type": "file_change",
                    "changes": [{"path": path, "kind": kind}],
                    "status": state.status(),
                })
            }
            _ => {
                let own = || (OWN_SERVER.to_owned(), tool.to_string());
                let (server, tool) = self.directory.server_tool(tool, args).unwrap_or_else(own);
                let (result, error) = match state {
                    CallState::Running => (Value::Null, Value::Null),
                    CallState::Ended { content, is_error: true, .. } => {
                        (Value::Null, json!({"message": joined_texts(content)}))
                    }
                    CallState::Ended { content, .. } => {
                        let blocks: Vec<Value> = content.iter().filter_map(content_block).collect();
                        (json!({"content": blocks, "structured_content": null}), Value::Null)
                    }
                };
                json!({
                    "id": id,
                    "type": "mcp_tool_call",
                    "server": server,
                    "tool": tool,
                    "arguments": args,
                    "result": result,
                    "error": error,
                    "status": state.status(),
                })
            }
        }
    }

    fn call_start(&mut self, call_id: &Arc<str>, tool: &Arc<str>, args: &Value) -> Vec<Value> {
        let id = self.next_item();
        let call = OpenCall { tool: tool.clone(), args: args.clone(), item: Some(id.clone()) };
        let item = self.call_item(&id, &call, CallState::Running);
        self.calls.insert(call_id.clone(), call);
        vec![json!({"type": "item.started", "item": item})]
    }

    fn call_end(&mut self, call_id: &Arc<str>, state: CallState<'_>) -> Vec<Value> {
        let Some(mut call) = self.calls.remove(call_id) else { return Vec::new() };
        let id = call.item.take().unwrap_or_else(|| self.next_item());
        let item = self.call_item(&id, &call, state);
        let mut lines = vec![json!({"type": "item.completed", "item": item})];
        lines.extend(self.todo_change());
        lines
    }

    /// The todo list, if it has changed.
    fn todo_change(&mut self) -> Option<Value> {
        let now = self.directory.todos();
        let before = self.todos.take();
        match before {
            Some((id, told)) if told == now => {
                self.todos = Some((id, told));
                None
            }
            None if now.is_empty() => None,
            before => {
                let kind = if before.is_some() { "item.updated" } else { "item.started" };
                let id = before.map(|(id, _)| id).unwrap_or_else(|| self.next_item());
                let line = json!({"type": kind, "item": todo_item(&id, &now)});
                self.todos = Some((id, now));
                Some(line)
            }
        }
    }

    fn end_turn(&mut self, stop: &RunEnd, now: &Spending) -> Vec<Value> {
        let mut lines = Vec::new();
        if let Some((id, items)) = self.todos.take() {
            lines.push(json!({"type": "item.completed", "item": todo_item(&id, &items)}));
        }
        let used = used_since(now, &self.used);
        self.used = *now;
        self.is_turn_open = false;
        lines.push(match run_failure(stop) {
            None => json!({"type": "turn.completed", "usage": usage_json(&used.tokens)}),
            Some(failure) => {
                self.has_failed = true;
                json!({"type": "turn.failed", "error": {"message": failure.message}})
            }
        });
        lines
    }
}

impl ScriptFormat for CodexFormat {
    fn begin(&mut self, session: &ScriptSession) -> Vec<Value> {
        self.used = session.used_before;
        vec![json!({"type": "thread.started", "thread_id": session.session})]
    }

    fn observe(&mut self, event: &AgentEvent, _at: Duration) -> Vec<Value> {
        match event {
            AgentEvent::AgentStart(_) => {
                self.is_turn_open = true;
                vec![json!({"type": "turn.started"})]
            }
            AgentEvent::MessageEnd(ended) => match &*ended.message.body {
                MessageBody::Assistant { content, .. } => self.answer(content),
                // A call that did not run has a result, but no execution.
                MessageBody::ToolResult { call_id, content, is_error, .. } => {
                    self.call_end(call_id, CallState::Ended { content, details: None, is_error: *is_error })
                }
                _ => Vec::new(),
            },
            AgentEvent::ToolExecutionStart(started) => {
                self.call_start(&started.call_id, &started.tool_name, &started.args)
            }
            AgentEvent::ToolExecutionEnd(ended) => {
                let (content, details) = (ended.content.as_slice(), ended.details.as_ref());
                self.call_end(&ended.call_id, CallState::Ended { content, details, is_error: ended.is_error })
            }
            AgentEvent::Note(note) => match &note.kind {
                NoteKind::WebSearch { query } => vec![self.completed("web_search", "query", query)],
                NoteKind::Retry { .. } | NoteKind::BrokenOff | NoteKind::CompactionFailed => {
                    vec![self.completed("error", "message", &note.text)]
                }
                _ => Vec::new(),
            },
            AgentEvent::HandlerFailed(HandlerFailed(fault)) => {
                let text = format!("{} ({}): {}", fault.owner, fault.event, fault.message);
                vec![self.completed("error", "message", &text)]
            }
            AgentEvent::AgentEnd(ended) if self.is_turn_open => {
                self.end_turn(&ended.stop, &ended.token_usage.session)
            }
            _ => Vec::new(),
        }
    }

    fn end(&mut self, end: &ScriptEnd, _at: Duration) -> Vec<Value> {
        let said = end.said.iter().filter(|said| !said.is_empty());
        let said = said.map(|said| self.completed("agent_message", "text", said));
        let mut lines: Vec<Value> = said.collect();
        if let Some(failure) = end.failure.as_ref().filter(|_| !self.has_failed) {
            lines.push(json!({"type": "error", "message": failure}));
        }
        lines
    }
}

/// A part of a result as MCP has it.
fn content_block(part: &MessagePart) -> Option<Value> {
    match part {
        MessagePart::Text { text } => Some(json!({"type": "text", "text": text})),
        MessagePart::Image(image) => {
            Some(json!({"type": "image", "data": image.data, "mimeType": image.media_type.name()}))
        }
        _ => None,
    }
}

fn todo_item(id: &str, items: &[(String, bool)]) -> Value {
    let items: Vec<Value> =
        items.iter().map(|(text, is_done)| json!({"text": text, "completed": is_done})).collect();
    json!({"id": id, "type": "todo_list", "items": items})
}

/// Tokens as Codex counts them: those of the cache are part of the input.
fn usage_json(usage: &TokenUsage) -> Value {
    json!({
        "input_tokens": usage.prompt(),
        "cached_input_tokens": usage.cache_read,
        "cache_write_input_tokens": usage.cache_written(),
        "output_tokens": usage.output,
        "reasoning_output_tokens": usage.reasoning.unwrap_or(0),
    })
}
