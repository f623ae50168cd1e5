//! The entries of a session as extensions know them.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_agent::Agent;
use hardpan_extensions::HostError;
use hardpan_session::{Entry, Record, Session};
use jiff::fmt::temporal::DateTimePrinter;
use serde_json::{Value, json};

use super::api::{EntryContent, Message, SessionEntry, Usage, to_script};
use super::messages::{message_to_script, usage_to_script};

/// Times as JavaScript writes them.
static TIMES: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// Before the types of entries that are Hardpan's own.
pub const OWN_TYPES: &str = "hardpan.";

/// The branch that the conversation continues, oldest entry first. Empty if nothing is stored yet.
pub async fn branch(agent: &Agent) -> Result<Value, HostError> {
    let Ok((session, leaf)) = agent.stored_session().await else { return Ok(json!([])) };
    let path = session.path_to(leaf.as_deref()).map_err(|error| HostError(error.to_string()))?;
    Ok(to_script(&entries_to_script(&path)))
}

/// Entries that follow each other, oldest first. Those that only Hardpan needs are left out, and what
/// followed one follows the entry before it.
pub fn entries_to_script(path: &[&Entry]) -> Vec<SessionEntry> {
    let usage = usage_of_answers(path.iter().copied());
    let mut parent = path.first().and_then(|entry| entry.parent.clone());
    let mut entries = Vec::new();
    for entry in path {
        let Some(content) = content_with_usage(entry, &usage) else { continue };
        entries.push(entry_to_script(entry, parent.replace(entry.id.clone()), content));
    }
    entries
}

/// What the answers among some entries used, by their ids.
pub fn usage_of_answers<'a>(entries: impl Iterator<Item = &'a Entry>) -> BTreeMap<&'a str, Usage> {
    entries.filter_map(answer_usage).collect()
}

/// What an entry holds, with what an answer used.
pub fn content_with_usage(entry: &Entry, usage: &BTreeMap<&str, Usage>) -> Option<EntryContent> {
    let mut content = entry_content(entry)?;
    if let (Some(usage), EntryContent::Message { message }) = (usage.get(&*entry.id), &mut content)
        && let Message::Assistant(answer) = &mut **message
    {
        answer.usage = Some(*usage);
    }
    Some(content)
}

/// An entry with its content, after the one that extensions see before it.
pub fn entry_to_script(entry: &Entry, parent_id: Option<Arc<str>>, content: EntryContent) -> SessionEntry {
    let timestamp = entry.time.map(|time| TIMES.timestamp_to_string(&time));
    SessionEntry { id: entry.id.clone(), parent_id, timestamp, content }
}

/// The message that a request's record is about, and what its answer used.
fn answer_usage(entry: &Entry) -> Option<(&str, Usage)> {
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

/// What an entry holds; none for what only Hardpan needs.
fn entry_content(entry: &Entry) -> Option<EntryContent> {
    Some(match &entry.record {
        Record::Message(message) => match message_to_script(&entry.with_facts(message)) {
            Message::Custom(custom) => EntryContent::CustomMessage {
                role: custom.role,
                custom_type: custom.message.custom_type,
                content: custom.message.content,
                display: custom.message.display,
                details: custom.message.details,
            },
            Message::BranchSummary(branch) => {
                EntryContent::BranchSummary { role: branch.role, summary: branch.summary }
            }
            message => EntryContent::Message { message: Box::new(message) },
        },
        Record::Custom { custom_type, .. } if custom_type.starts_with(OWN_TYPES) => return None,
        Record::Custom { custom_type, data } => {
            EntryContent::Custom { custom_type: custom_type.clone(), data: data.clone() }
        }
        Record::Compaction { summary, first_kept, tokens_before, details } => EntryContent::Compaction {
            summary: summary.to_string(),
            first_kept_entry_id: first_kept.clone(),
            tokens_before: *tokens_before,
            details: details.as_ref().map(compaction_details),
        },
        Record::ModelChange { provider, model } => {
            EntryContent::ModelChange { provider: provider.clone(), model_id: model.clone() }
        }
        Record::ThinkingChange { level } => {
            EntryContent::ThinkingLevelChange { thinking_level: level.clone() }
        }
        Record::Name { name } => EntryContent::SessionInfo { name: name.clone() },
        Record::Label { target, label } => {
            EntryContent::Label { target_id: target.clone(), label: label.clone() }
        }
        _ => return None,
    })
}

/// What an extension stored with its summary, else the files that were read and changed.
fn compaction_details(details: &Value) -> Value {
    match details.get("extension") {
        Some(own) => own.clone(),
        None => json!({ "readFiles": details["read"], "modifiedFiles": details["changed"] }),
    }
}
