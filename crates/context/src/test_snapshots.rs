//! Small snapshots for unit tests, and assembled prompts as lines that are easy to compare.

use hardpan_models::Catalogue;
use hardpan_prompt::{Content, Prompt, ResultPart, Role, Segment, ToolChangeAction, Vocabulary};
use serde_json::{Value, json};

use crate::{
    AssembledPrompt, LayoutName, LayoutState, PromptTexts, RenderCache, Snapshot, SnapshotFile, Target,
    assemble,
};

/// A snapshot from JSON; `version` and `now` are filled in.
pub fn snapshot(mut json: Value) -> Snapshot {
    json["version"] = json!(1);
    if json["now"].is_null() {
        json["now"] = json!("2026-02-19T14:00:00Z");
    }
    SnapshotFile::parse("test", &json.to_string()).unwrap().into_snapshot("test").unwrap()
}

/// The same, with the layout state that an earlier request left.
pub fn snapshot_with_state(layout_state: &LayoutState, json: Value) -> Snapshot {
    Snapshot { layout_state: layout_state.clone(), ..snapshot(json) }
}

/// Assembles for a current Claude model.
pub fn assemble_for_claude(snapshot: &Snapshot, layout: LayoutName) -> AssembledPrompt {
    assemble_for(snapshot, layout, "claude-sonnet-5")
}

/// Assembles for a given model.
pub fn assemble_for(snapshot: &Snapshot, layout: LayoutName, model: &str) -> AssembledPrompt {
    let target = Target::new(Catalogue::builtin(), None, model).unwrap();
    let texts = PromptTexts::builtin().unwrap();
    assemble(snapshot, layout, &target, &texts, &RenderCache::new(Vocabulary::O200k)).unwrap()
}

/// One line per block: who speaks and what is said, `◆` for a breakpoint.
pub fn lines(prompt: &Prompt) -> Vec<String> {
    let text =
        |segments: &[Segment]| segments.iter().map(|segment| segment.text.as_str()).collect::<String>();
    let mut lines = Vec::new();
    for message in &prompt.messages {
        let role = match message.role {
            Role::User => "user",
            Role::Assistant => "model",
            Role::System => "system",
        };
        for block in &message.blocks {
            let content = match &*block.content {
                Content::Text(segments) => text(segments),
                Content::Image(..) => "[image]".to_owned(),
                Content::Reasoning(reasoning) => format!("[thinks {}]", reasoning.text),
                Content::Provider(block) => format!("[provider {}]", block.json.as_str()),
                Content::ToolChange(change) => match &change.action {
                    ToolChangeAction::Define(tool) => format!("[adds {}]", tool.name),
                    ToolChangeAction::Restore(name) => format!("[restores {name}]"),
                    ToolChangeAction::Remove(name) => format!("[removes {name}]"),
                },
                Content::Call(call) => format!("[{} {}{}]", call.id, call.name, call.arguments.as_str()),
                Content::Result(result) => {
                    let parts = result.parts.iter().map(|part| match part {
                        ResultPart::Text(segments) => text(segments),
                        ResultPart::Image(_) => "[image]".to_owned(),
                    });
                    format!(
                        "[{} answers {:?}: {}]",
                        result.call_id,
                        result.outcome,
                        parts.collect::<String>()
                    )
                }
            };
            let mark = if block.breakpoint.is_some() { " ◆" } else { "" };
            lines.push(format!("{role}: {content}{mark}"));
        }
    }
    lines
}

/// What was left out, as `key: reason`.
pub fn left_out(prompt: &Prompt) -> Vec<String> {
    prompt.left_out.iter().map(|entry| format!("{}: {}", entry.key, entry.reason)).collect()
}

/// An assistant message that calls tools: `(id, name)`.
pub fn calls(id: &str, calls: &[(&str, &str)]) -> Value {
    let parts: Vec<Value> = calls
        .iter()
        .map(|(id, name)| json!({"type": "tool_call", "id": id, "name": name, "arguments": {}}))
        .collect();
    json!({"id": id, "role": "assistant", "content": parts})
}

/// A tool result message.
pub fn result(id: &str, call: &str, content: &str) -> Value {
    json!({"id": id, "role": "tool_result", "call_id": call, "content": content})
}

/// A user message with one text.
pub fn user(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "user", "content": content})
}

/// An assistant message with one text.
pub fn model(id: &str, content: &str) -> Value {
    json!({"id": id, "role": "assistant", "content": content})
}

/// A declared tool without parameters.
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}})
}
