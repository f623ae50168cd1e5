//! What a hook reads from its standard input: JSON with the fields that hooks of Claude Code know.

use std::borrow::Cow;
use std::path::Path;

use hardpan_agent::Agent;
use hardpan_agent::CompactReason;
use hardpan_agent::events::{SessionBeforeCompact, ToolCallEvent, ToolResultEvent};
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use serde_json::{Map, Value, json};

use crate::settings::HookEvent;

/// What our tools are called in Claude Code, for those that do the same.
const OTHER_NAMES: [(&str, &str); 9] = [
    ("bash", "Bash"),
    ("read", "Read"),
    ("edit", "Edit"),
    ("write", "Write"),
    ("grep", "Grep"),
    ("find", "Glob"),
    ("ls", "LS"),
    ("fetch", "WebFetch"),
    ("task", "Task"),
];

/// The same for arguments.
const OTHER_ARGUMENTS: [(&str, &str); 2] = [("old_text", "old_string"), ("new_text", "new_string")];

/// The name by which hooks know a tool. That of a server's tool (`server__tool`) begins with `mcp__` there.
pub fn hook_tool_name(name: &str) -> Cow<'_, str> {
    match OTHER_NAMES.iter().find(|(own, _)| *own == name) {
        Some((_, other)) => Cow::Borrowed(other),
        None if name.contains("__") => Cow::Owned(format!("mcp__{name}")),
        None => Cow::Borrowed(name),
    }
}

/// What all hooks read.
pub fn common(agent: &Agent, event: HookEvent, folder: &Path) -> Value {
    let (session, file) = agent.session();
    json!({
        "hook_event_name": event.name(),
        "session_id": session,
        "transcript_path": file,
        "cwd": folder,
    })
}

/// What a hook reads about a call.
pub fn of_call(event: &ToolCallEvent, folder: &Path) -> Value {
    call(&event.tool_name, &event.call_id, &event.input, folder)
}

/// What a hook reads about a result.
pub fn of_result(event: &ToolResultEvent, folder: &Path) -> Value {
    let mut payload = call(&event.tool_name, &event.call_id, &event.input, folder);
    payload["tool_response"] = json!({
        "content": text_of(&event.content),
        "is_error": event.is_error,
        "details": event.details,
    });
    payload
}

/// What a hook reads about a compaction.
pub fn of_compaction(event: &SessionBeforeCompact) -> Value {
    let trigger = match event.why {
        CompactReason::Requested => "manual",
        CompactReason::NearlyFull | CompactReason::TooLong => "auto",
    };
    json!({ "trigger": trigger, "custom_instructions": event.instructions.as_deref().unwrap_or_default() })
}

/// The text of the last answer.
pub fn last_answer(messages: &[AgentMessage]) -> String {
    let answers = messages.iter().rev().filter_map(|message| match &*message.body {
        MessageBody::Assistant { content, .. } => Some(text_of(content)),
        _ => None,
    });
    answers.take(1).collect()
}

fn call(name: &str, id: &str, input: &Value, folder: &Path) -> Value {
    json!({
        "tool_name": hook_tool_name(name),
        "hardpan_tool": name,
        "tool_use_id": id,
        "tool_input": arguments(input, folder),
    })
}

/// The arguments under our names, and under those that other hooks look for.
pub fn arguments(input: &Value, folder: &Path) -> Value {
    let Value::Object(fields) = input else { return input.clone() };
    let mut fields = fields.clone();
    if let Some(path) = fields.get("path").and_then(Value::as_str) {
        fields.insert("file_path".into(), json!(folder.join(path)));
    }
    for (own, other) in OTHER_ARGUMENTS {
        if let Some(value) = fields.get(own).cloned() {
            fields.insert(other.into(), value);
        }
    }
    if let Some(Value::Array(edits)) = fields.get_mut("edits") {
        edits.iter_mut().for_each(|edit| *edit = arguments(edit, folder));
    }
    Value::Object(fields)
}

/// The arguments of a call with the changes that a hook made to what it read of them. What the hook left as it
/// was, or left out, stays.
pub fn changed_arguments(input: &Value, updated: &Map<String, Value>, folder: &Path) -> Value {
    let given = arguments(input, folder);
    let mut changed = input.clone();
    for (name, value) in updated.iter().filter(|(name, value)| given.get(name) != Some(value)) {
        let own_name =
            OTHER_ARGUMENTS.iter().find(|(_, other)| other == name).map_or(&**name, |(own, _)| own);
        let own_name = if own_name == "file_path" && given.get("path").is_some() { "path" } else { own_name };
        changed[own_name] = match (name.as_str(), value) {
            ("edits", Value::Array(edits)) => {
                let before = |index: usize| input["edits"].get(index).cloned().unwrap_or_else(|| json!({}));
                let edits = edits.iter().enumerate().map(|(index, edit)| match edit {
                    Value::Object(fields) => changed_arguments(&before(index), fields, folder),
                    other => other.clone(),
                });
                edits.collect()
            }
            _ => value.clone(),
        };
    }
    changed
}

fn text_of(content: &[MessagePart]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.to_string()),
        _ => None,
    });
    texts.collect::<Vec<String>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_the_names_of_both() {
        let input = json!({ "path": "src/a.rs", "edits": [{ "old_text": "a", "new_text": "b" }] });
        let payload = call("edit", "c1", &input, Path::new("/work"));
        let expected = json!({
            "tool_name": "Edit",
            "hardpan_tool": "edit",
            "tool_use_id": "c1",
            "tool_input": {
                "path": "src/a.rs",
                "file_path": "/work/src/a.rs",
                "edits": [{ "old_text": "a", "new_text": "b", "old_string": "a", "new_string": "b" }],
            },
        });
        assert_eq!(payload, expected);
    }

    #[test]
    fn changes_count_under_either_name_and_the_rest_stays() {
        let changed = |input: Value, updated: Value| {
            changed_arguments(&input, updated.as_object().expect("an object"), Path::new("/work"))
        };
        let bash = json!({ "command": "rm -r build", "timeout": 5 });
        assert_eq!(
            changed(bash, json!({ "command": "ls build" })),
            json!({ "command": "ls build", "timeout": 5 })
        );
        let write = json!({ "path": "a.rs", "content": "x" });
        let whole = json!({ "path": "a.rs", "file_path": "/work/b.rs", "content": "x" });
        assert_eq!(changed(write.clone(), whole), json!({ "path": "/work/b.rs", "content": "x" }));
        assert_eq!(
            changed(write, json!({ "path": "c.rs", "file_path": "/work/a.rs" })),
            json!({ "path": "c.rs", "content": "x" })
        );
        let edit = json!({ "path": "a.rs", "edits": [{ "old_text": "a", "new_text": "b" }] });
        let edits = json!({ "edits": [
            { "old_text": "a", "old_string": "a", "new_text": "b", "new_string": "c" },
            { "old_string": "d", "new_string": "e" },
        ] });
        assert_eq!(
            changed(edit, edits),
            json!({ "path": "a.rs", "edits": [
                { "old_text": "a", "new_text": "c" }, { "old_text": "d", "new_text": "e" },
            ] })
        );
    }
}
