//! What an extension's command does to sessions, as a user would: new ones, others, forks, the tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_agent::{Agent, AgentError, BranchExit};
use hardpan_extensions::HostError;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_session::{Entry, Record, Session};
use serde_json::{Value, json};

use super::api::to_script;
use super::entries;
use crate::actions::ActionError;
use crate::conversation_app::ConversationApp;

fn failed(error: impl std::fmt::Display) -> HostError {
    HostError(error.to_string())
}

/// What a change of sessions came to: an extension that was asked may have cancelled it.
fn changed(result: Result<(), ActionError>, editor_text: Option<&str>) -> Result<Value, HostError> {
    match result {
        Ok(()) => Ok(json!({ "cancelled": false, "editorText": editor_text })),
        Err(ActionError::Agent(AgentError::Cancelled { .. })) => Ok(json!({ "cancelled": true })),
        Err(error) => Err(failed(error)),
    }
}

/// `ctx.newSession()`.
pub async fn start_new(app: &ConversationApp) -> Result<Value, HostError> {
    changed(app.start_new().await, None)
}

/// `ctx.switchSession(path)`: a session by its file, id or name, with its own model and thinking level.
pub async fn switch(app: &ConversationApp, arguments: &Value) -> Result<Value, HostError> {
    let wanted = arguments["path"].as_str().unwrap_or_default();
    let found = app.store.find(Some(&app.folder), wanted).map_err(failed)?;
    let switched = match app.resume(&found).await {
        Ok(resumed) => app.restore_choices(&resumed).await,
        Err(error) => Err(error),
    };
    changed(switched, None)
}

/// `ctx.fork(entry, {position})`: before the entry, as a user goes back to what they said, or at it.
pub async fn fork(app: &ConversationApp, arguments: &Value) -> Result<Value, HostError> {
    let entry = arguments["entry"].as_str().unwrap_or_default();
    let session = app.read_session().map_err(failed)?;
    let (target, text) = match arguments["position"].as_str() {
        Some("at") => (Some(entry.to_owned()), None),
        _ => target_of(&session, entry)?,
    };
    let forked = match target {
        Some(target) => app.fork(Some(&target)).await,
        None => app.start_new().await,
    };
    changed(forked, text.as_deref())
}

/// `ctx.navigateTree(entry, {summarize, label})`: a message of the user leads to what stood before it,
/// and its text back to the line.
pub async fn navigate(app: &ConversationApp, arguments: &Value) -> Result<Value, HostError> {
    let entry = arguments["entry"].as_str().unwrap_or_default();
    let options = &arguments["options"];
    let exit = match options["summarize"].as_bool() {
        Some(true) => BranchExit::WithSummary,
        _ => BranchExit::WithoutSummary,
    };
    let session = app.read_session().map_err(failed)?;
    let (target, text) = target_of(&session, entry)?;
    let target = target.ok_or_else(|| HostError(format!("nothing stands before the entry {entry}")))?;
    let gone = app.agent.go_to_entry(&target, exit).await;
    if let (Ok(_), Some(label)) = (&gone, options["label"].as_str()) {
        app.agent.label_entry(&target, Some(label)).await.map_err(failed)?;
    }
    changed(gone.map(|_| ()).map_err(ActionError::from), text.as_deref())
}

/// Where the conversation goes on for an entry: for a message of the user, the entry before it, and
/// the message's text.
fn target_of(session: &Session, entry: &str) -> Result<(Option<String>, Option<String>), HostError> {
    let found: &Entry = session
        .entries
        .iter()
        .find(|known| &*known.id == entry)
        .ok_or_else(|| HostError(format!("there is no entry {entry} in this session")))?;
    Ok(match &found.record {
        Record::Message(message) => match &*message.body {
            MessageBody::User { content } => {
                let texts = content.iter().filter_map(|part| match part {
                    MessagePart::Text { text } => Some(text.to_string()),
                    _ => None,
                });
                (found.parent.as_deref().map(str::to_owned), Some(texts.collect::<Vec<_>>().join("\n")))
            }
            _ => (Some(entry.to_owned()), None),
        },
        _ => (Some(entry.to_owned()), None),
    })
}

/// All entries of the session, those of other branches included, in the order of the file.
pub async fn all_entries(agent: &Agent) -> Value {
    let Ok((session, _)) = agent.stored_session().await else { return json!([]) };
    // The nearest entry at or above each one that extensions see.
    let mut shown: BTreeMap<&str, Option<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    let usage = entries::usage_of_answers(session.entries.iter());
    for entry in &session.entries {
        let parent = entry.parent.as_deref().and_then(|parent| shown.get(parent).copied().flatten());
        let Some(content) = entries::content_with_usage(entry, &usage) else {
            shown.insert(&entry.id, parent);
            continue;
        };
        shown.insert(&entry.id, Some(&entry.id));
        found.push(entries::entry_to_script(entry, parent.map(Arc::from), content));
    }
    to_script(&found)
}
