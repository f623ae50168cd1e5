//! Entries of a session, as extensions read them.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::{BranchSummaryRole, Content, CustomRole, Message};

/// An entry of a session.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEntry {
    pub id: Arc<str>,
    /// The entry before it; null for the first one.
    pub parent_id: Option<Arc<str>>,
    pub timestamp: Option<String>,
    #[serde(flatten)]
    pub content: EntryContent,
}

/// What an entry holds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum EntryContent {
    #[schemars(title = "MessageEntry")]
    Message { message: Box<Message> },
    /// A message that an extension added.
    #[schemars(title = "CustomMessageEntry")]
    CustomMessage {
        role: CustomRole,
        custom_type: Arc<str>,
        content: Content,
        display: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        details: Option<Value>,
    },
    #[schemars(title = "BranchSummaryEntry")]
    BranchSummary { role: BranchSummaryRole, summary: String },
    /// What an extension stored with `pi.appendEntry`.
    #[schemars(title = "CustomEntry")]
    Custom { custom_type: Arc<str>, data: Value },
    #[schemars(title = "CompactionEntry")]
    Compaction {
        summary: String,
        first_kept_entry_id: Option<Arc<str>>,
        tokens_before: Option<u64>,
        /// What an extension stored with its summary, else the files that were read and changed.
        details: Option<Value>,
    },
    #[schemars(title = "ModelChangeEntry")]
    ModelChange { provider: Arc<str>, model_id: Arc<str> },
    #[schemars(title = "ThinkingLevelChangeEntry")]
    ThinkingLevelChange { thinking_level: Arc<str> },
    /// The session got a name.
    #[schemars(title = "SessionInfoEntry")]
    SessionInfo { name: Arc<str> },
    #[schemars(title = "LabelEntry")]
    Label { target_id: Arc<str>, label: Option<Arc<str>> },
}
