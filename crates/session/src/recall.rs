//! [`StoredContent`]: the exact content of a stored message, found by its id. Requests may show a
//! line in its place; the session keeps the whole.

use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Image, MessageBody, MessagePart, MessageState, ToolCall};
use serde::Serialize;
use serde_json::Value;
use thiserror::Error;

use crate::message_text::{body_texts, role_name};
use crate::record::Record;
use crate::session::{Session, SessionError};

/// How many ids the error for an unknown one names.
const NAMED_IDS: usize = 5;

/// What a message of the conversation says, as it was stored.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StoredContent {
    /// The message's id.
    pub id: Arc<str>,
    /// The message's role, as the session file spells it.
    pub role: &'static str,
    /// For a tool result: the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<Arc<str>>,
    /// The text, byte for byte.
    pub text: String,
    /// For a tool result: the long arguments of its call, which a fold takes out of requests, too.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<StoredArgument>,
    /// The images, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

/// An argument of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StoredArgument {
    /// The argument's name.
    pub name: String,
    /// A string as it is; any other value as JSON.
    pub text: String,
}

/// Why there is no stored content to return.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecallError {
    /// The branch has no such message, or one that the model was never to see.
    #[error("this conversation has no message {id}{}", name_ids(known))]
    Unknown {
        /// The id as given.
        id: String,
        /// Ids of tool results that can be recalled, the nearest ones.
        known: Vec<Arc<str>>,
    },
    /// The session file cannot be read.
    #[error(transparent)]
    Session(#[from] SessionError),
}

fn name_ids(known: &[Arc<str>]) -> String {
    if known.is_empty() { String::new() } else { format!("; it has {}", known.join(", ")) }
}

impl StoredContent {
    /// The content of the message `id` among `messages`, which are in their order.
    pub fn find(messages: &[&AgentMessage], id: &str) -> Result<Self, RecallError> {
        let at = messages.iter().position(|message| &*message.id.0 == id && is_for_model(message));
        let at =
            at.ok_or_else(|| RecallError::Unknown { id: id.to_owned(), known: near_ids(messages, id) })?;
        let body = &messages[at].body;
        let call = match &**body {
            MessageBody::ToolResult { call_id, .. } => {
                messages[..at].iter().rev().find_map(|message| find_call(message, call_id))
            }
            _ => None,
        };
        Ok(StoredContent {
            id: id.into(),
            role: role_name(body),
            tool: tool_name(body),
            text: body_texts(body).join("\n"),
            arguments: call.map(long_arguments).unwrap_or_default(),
            images: images(body),
        })
    }

    /// The text, and after it the long arguments of the call, each below a line with its name.
    pub fn full_text(&self) -> String {
        let mut text = self.text.clone();
        for StoredArgument { name, text: value } in &self.arguments {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[{name} of the call]\n{value}"));
        }
        text
    }
}

impl Session {
    /// The content of a message on the branch that ends at `leaf`, also if a compaction replaced it.
    pub fn stored_content(&self, leaf: Option<&str>, id: &str) -> Result<StoredContent, RecallError> {
        let path = self.path_to(leaf)?;
        let messages: Vec<&AgentMessage> =
            path.iter().filter_map(|entry| as_message(&entry.record)).collect();
        StoredContent::find(&messages, id)
    }
}

fn as_message(record: &Record) -> Option<&AgentMessage> {
    match record {
        Record::Message(message) => Some(message),
        _ => None,
    }
}

/// Whether the model may read the message.
fn is_for_model(message: &AgentMessage) -> bool {
    let is_private = matches!(*message.body, MessageBody::BashExecution { exclude_from_context: true, .. });
    !is_private && message.state != MessageState::Deleted
}

fn find_call<'a>(message: &'a AgentMessage, id: &str) -> Option<&'a ToolCall> {
    let MessageBody::Assistant { content, .. } = &*message.body else { return None };
    content.iter().find_map(|part| match part {
        MessagePart::ToolCall(call) if &*call.id == id => Some(call),
        _ => None,
    })
}

fn tool_name(body: &MessageBody) -> Option<Arc<str>> {
    match body {
        MessageBody::ToolResult { tool_name, .. } => tool_name.clone(),
        _ => None,
    }
}

fn long_arguments(call: &ToolCall) -> Vec<StoredArgument> {
    let text = |value: Value| match value {
        Value::String(text) => text,
        value => value.to_string(),
    };
    call.long_arguments()
        .into_iter()
        .map(|(name, value)| StoredArgument { name, text: text(value) })
        .collect()
}

fn images(body: &MessageBody) -> Vec<Image> {
    let (MessageBody::User { content }
    | MessageBody::ToolResult { content, .. }
    | MessageBody::Custom { content, .. }) = body
    else {
        return Vec::new();
    };
    let image = |part: &MessagePart| match part {
        MessagePart::Image(image) => Some(image.clone()),
        _ => None,
    };
    content.iter().filter_map(image).collect()
}

/// The ids of the tool results nearest to `id` by their numbers, in the order of the conversation;
/// the newest ones if the id has no number.
fn near_ids(messages: &[&AgentMessage], id: &str) -> Vec<Arc<str>> {
    let number = |id: &str| id.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u64>().ok();
    let wanted = number(id).unwrap_or(u64::MAX);
    let results = messages.iter().enumerate().filter(|(_, message)| {
        matches!(*message.body, MessageBody::ToolResult { .. }) && is_for_model(message)
    });
    let mut near: Vec<(u64, usize)> = results
        .map(|(at, message)| (number(&message.id.0).unwrap_or(at as u64).abs_diff(wanted), at))
        .collect();
    near.sort_unstable();
    let mut near: Vec<usize> = near.into_iter().take(NAMED_IDS).map(|(_, at)| at).collect();
    near.sort_unstable();
    near.into_iter().map(|at| messages[at].id.0.clone()).collect()
}

#[cfg(test)]
mod tests;
