//! [`history_updates`]: an earlier conversation, as the updates that would have shown it.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    ContentBlock, ContentChunk, ImageContent, SessionUpdate, ToolCall, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use hardpan_app::ConversationApp;
use hardpan_app::mcp::shown_call;
use hardpan_prompt::{MessageBody, MessagePart};

use super::tool_calls::{CallView, result_content, text_content};
use super::updates::chunk;
use crate::page_chat::history_blocks::stored_branch;

/// Everything that was said on the current branch, also what a compaction has replaced for the model.
pub fn history_updates(app: &ConversationApp) -> Vec<SessionUpdate> {
    stored_branch(&app.agent).iter().flat_map(|message| message_updates(&message.body, app)).collect()
}

fn message_updates(message: &MessageBody, app: &ConversationApp) -> Vec<SessionUpdate> {
    let said = |text: &str| vec![SessionUpdate::AgentMessageChunk(chunk(text))];
    match message {
        MessageBody::User { content } => {
            let blocks = content.iter().filter_map(|part| match part {
                MessagePart::Text { text } => Some(chunk(text.as_str())),
                MessagePart::Image(image) => {
                    let image = ImageContent::new(&*image.data, image.media_type.name());
                    Some(ContentChunk::new(ContentBlock::Image(image)))
                }
                _ => None,
            });
            blocks.map(SessionUpdate::UserMessageChunk).collect()
        }
        MessageBody::Assistant { content, .. } => {
            content.iter().filter_map(|part| part_update(part, app)).collect()
        }
        MessageBody::ToolResult { call_id, content, is_error, .. } => {
            let status = if *is_error { ToolCallStatus::Failed } else { ToolCallStatus::Completed };
            let fields = ToolCallUpdateFields::new().status(status).content(result_content(content));
            vec![SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(Arc::clone(call_id), fields))]
        }
        MessageBody::BashExecution { command, output, .. } => said(&format!("! {command}\n\n{output}")),
        MessageBody::BranchSummary { summary } => said(summary),
        MessageBody::Custom { content, display: true, .. } => {
            content.iter().filter_map(|part| part_update(part, app)).collect()
        }
        MessageBody::Custom { .. } | MessageBody::CompactionSummary { .. } => Vec::new(),
    }
}

fn part_update(part: &MessagePart, app: &ConversationApp) -> Option<SessionUpdate> {
    match part {
        MessagePart::Text { text } => Some(SessionUpdate::AgentMessageChunk(chunk(text.as_str()))),
        MessagePart::Reasoning { text, .. } if !text.as_str().trim().is_empty() => {
            Some(SessionUpdate::AgentThoughtChunk(chunk(text.as_str())))
        }
        MessagePart::ToolCall(call) => {
            let call = shown_call(call);
            let args = call.arguments.value();
            let CallView { title, kind, locations } = CallView::new(&call.name, &args, &app.scope);
            let view = ToolCall::new(Arc::clone(&call.id), title).kind(kind).locations(locations);
            Some(SessionUpdate::ToolCall(view.raw_input(args).content(text_content(""))))
        }
        _ => None,
    }
}
