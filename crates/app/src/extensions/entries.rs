//! The entries of a session as extensions know them.

use std::collections::BTreeMap;

use hardpan_agent::Agent;
use hardpan_extensions::HostError;
use hardpan_session::{Entry, Record, Session};
use serde_json::{Value, json};

use super::messages::{message_to_script, usage_to_script};

/// Before the types of entries that are Hardpan's own.
pub const OWN_TYPES: &str = "hardpan.";

/// The branch that the conversation continues, oldest entry first. Empty if nothing is stored yet.
pub async fn branch(agent: &Agent) -> Result<Value, HostError> {
    let Ok((session, leaf)) = agent.stored_session().await else { return Ok(json!([])) };
    let path = session.path_to(leaf.as_deref()).map_err(|error| HostError(error.to_string()))?;
    Ok(entries_to_script(&path))
}

/// Entries that follow each other, oldest first. Those that only Hardpan needs are left out, and what
/// followed one follows the entry before it.
pub fn entries_to_script(path: &[&Entry]) -> Value {
    let usage: BTreeMap<&str, Value> = path.iter().filter_map(|entry| answer_usage(entry)).collect();
    let mut parent: Option<&str> = path.first().and_then(|entry| entry.parent.as_deref());
    let mut entries = Vec::new();
    for entry in path {
        let Some(mut fields) = entry_to_script(entry) else { continue };
        if let Some(usage) = usage.get(&*entry.id) {
            fields["message"]["usage"] = usage.clone();
        }
        fields["id"] = json!(entry.id);
        fields["parentId"] = json!(parent.replace(&entry.id));
        fields["timestamp"] = json!(entry.time.map(|time| time.to_string()));
        entries.push(fields);
    }
    Value::Array(entries)
}

/// The message that a request's record is about, and what its answer used.
fn answer_usage(entry: &Entry) -> Option<(&str, Value)> {
    let Record::Request(request) = &entry.record else { return None };
    Some((request.message.as_deref()?, usage_to_script(&request.usage, request.dollars)))
}

/// Id, file and name of the session.
pub async fn session_info(agent: &Agent) -> Value {
    let (id, file) = agent.session();
    let stored: Option<Session> = agent.stored_session().await.ok().map(|(session, _)| session);
    let name = stored.as_ref().and_then(Session::name);
    json!({ "id": id, "file": file, "folder": file.parent(), "name": name })
}

/// An entry without its place in the session; none for what only Hardpan needs.
pub fn entry_to_script(entry: &Entry) -> Option<Value> {
    Some(match &entry.record {
        Record::Message(message) => {
            let message = message_to_script(&entry.with_facts(message));
            match message["role"].as_str() {
                Some("custom") => with_type(message, "custom_message"),
                Some("branchSummary") => with_type(message, "branch_summary"),
                _ => json!({ "type": "message", "message": message }),
            }
        }
        Record::Custom { custom_type, .. } if custom_type.starts_with(OWN_TYPES) => return None,
        Record::Custom { custom_type, data } => {
            json!({ "type": "custom", "customType": custom_type, "data": data })
        }
        Record::Compaction { summary, first_kept, tokens_before, details } => {
            let details = details.as_ref().map(compaction_details);
            json!({
                "type": "compaction",
                "summary": &**summary,
                "firstKeptEntryId": first_kept,
                "tokensBefore": tokens_before,
                "details": details,
            })
        }
        Record::ModelChange { provider, model } => {
            json!({ "type": "model_change", "provider": provider, "modelId": model })
        }
        Record::ThinkingChange { level } => {
            json!({ "type": "thinking_level_change", "thinkingLevel": level })
        }
        Record::Name { name } => json!({ "type": "session_info", "name": name }),
        Record::Label { target, label } => json!({ "type": "label", "targetId": target, "label": label }),
        _ => return None,
    })
}

fn with_type(mut message: Value, entry_type: &str) -> Value {
    message["type"] = json!(entry_type);
    message
}

/// What an extension stored with its summary, else the files that were read and changed.
fn compaction_details(details: &Value) -> Value {
    match details.get("extension") {
        Some(own) => own.clone(),
        None => json!({ "readFiles": details["read"], "modifiedFiles": details["changed"] }),
    }
}
