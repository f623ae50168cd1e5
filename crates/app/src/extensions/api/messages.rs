//! Messages and their parts, as extensions read and write them.

use std::sync::Arc;

use hardpan_prompt::MediaType;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::{lenient, lenient_default};

literals! {
    TextType = "text",
    ImageType = "image",
    ThinkingType = "thinking",
    ToolCallType = "toolCall",
    UserRole = "user",
    AssistantRole = "assistant",
    ToolResultRole = "toolResult",
    CustomRole = "custom",
    BashExecutionRole = "bashExecution",
    CompactionSummaryRole = "compactionSummary",
    BranchSummaryRole = "branchSummary",
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TextPart {
    #[serde(rename = "type")]
    pub kind: TextType,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImagePart {
    #[serde(rename = "type")]
    pub kind: ImageType,
    /// The image in base64.
    pub data: Arc<str>,
    #[schemars(with = "String")]
    pub mime_type: MediaType,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingPart {
    #[serde(rename = "type")]
    pub kind: ThinkingType,
    pub thinking: String,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub thinking_signature: Option<Arc<str>>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCallPart {
    #[serde(rename = "type")]
    pub kind: ToolCallType,
    pub id: Arc<str>,
    pub name: Arc<str>,
    #[serde(default)]
    #[schemars(with = "Map<String, Value>", !default)]
    pub arguments: Value,
}

/// A part of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum ContentPart {
    Text(TextPart),
    Image(ImagePart),
    Thinking(ThinkingPart),
    ToolCall(ToolCallPart),
}

/// A text, or a list of parts.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum Content {
    Text(String),
    Parts(Vec<ContentPart>),
}

impl Default for Content {
    fn default() -> Self {
        Content::Parts(Vec::new())
    }
}

impl<'de> Deserialize<'de> for Content {
    /// Parts of unknown form are left out.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::String(text) => Content::Text(text),
            Value::Array(parts) => {
                let known = parts.into_iter().filter_map(|part| ContentPart::deserialize(part).ok());
                Content::Parts(known.collect())
            }
            _ => Content::default(),
        })
    }
}

/// Parts, of which a script may give a single text.
fn parts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ContentPart>, D::Error> {
    Ok(match Content::deserialize(deserializer)? {
        Content::Text(text) => vec![ContentPart::Text(TextPart { text, ..TextPart::default() })],
        Content::Parts(parts) => parts,
    })
}

/// What an answer used, in tokens and dollars.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    pub input: u64,
    pub output: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    pub total_tokens: u64,
    pub cost: UsageCost,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct UsageCost {
    #[serde(serialize_with = "serialize_number")]
    #[schemars(with = "f64")]
    pub total: f64,
}

/// Writes a number as JavaScript does: without a fraction if it has none. The text of a message that no
/// handler changed is then the same again.
fn serialize_number<S: Serializer>(value: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    let whole = *value as i64;
    if whole as f64 == *value { serializer.serialize_i64(whole) } else { serializer.serialize_f64(*value) }
}

// What every message has besides. Not documented: a type that has it would get its words.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageMark {
    /// Given by Hardpan. A message that keeps it takes the place of the one that had it.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// Milliseconds since 1970.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
}

/// Written by the person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UserMessage {
    pub role: UserRole,
    #[serde(default)]
    #[schemars(!default)]
    pub content: Content,
    #[serde(flatten)]
    pub mark: MessageMark,
}

/// An answer of the model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AssistantMessage {
    pub role: AssistantRole,
    #[serde(default, deserialize_with = "parts")]
    #[schemars(!default)]
    pub content: Vec<ContentPart>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub provider: Option<Arc<str>>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// `stop`, `toolUse`, `length`, or the provider's own word.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Arc<str>>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub error_message: Option<String>,
    #[serde(flatten)]
    pub mark: MessageMark,
}

/// The result of a tool call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResultMessage {
    pub role: ToolResultRole,
    pub tool_call_id: Arc<str>,
    /// Empty where it is not known.
    #[serde(default, deserialize_with = "lenient_default")]
    #[schemars(!default)]
    pub tool_name: Arc<str>,
    #[serde(default, deserialize_with = "parts")]
    #[schemars(!default)]
    pub content: Vec<ContentPart>,
    /// What the tool stored besides; never sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    #[serde(default, deserialize_with = "lenient_default")]
    #[schemars(!default)]
    pub is_error: bool,
    #[serde(flatten)]
    pub mark: MessageMark,
}

/// A message that an extension added.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomMessage {
    pub role: CustomRole,
    #[serde(flatten)]
    pub message: NewMessage,
    #[serde(flatten)]
    pub mark: MessageMark,
}

/// A message that an extension wants to add.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NewMessage {
    /// The extension's own word for this kind of message.
    #[serde(default = "usual_type", deserialize_with = "lenient_type")]
    #[schemars(!default)]
    pub custom_type: Arc<str>,
    #[serde(default)]
    #[schemars(!default)]
    pub content: Content,
    /// Whether the person sees it; the model always does.
    #[serde(default = "yes", deserialize_with = "lenient_display")]
    #[schemars(!default)]
    pub display: bool,
    /// What the extension keeps with it; never sent to the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Default for NewMessage {
    fn default() -> Self {
        let (custom_type, content) = (usual_type(), Content::default());
        NewMessage { custom_type, content, display: true, details: None }
    }
}

fn usual_type() -> Arc<str> {
    "extension".into()
}

fn lenient_type<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    Ok(lenient(deserializer)?.unwrap_or_else(usual_type))
}

fn yes() -> bool {
    true
}

fn lenient_display<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    Ok(lenient(deserializer)?.unwrap_or(true))
}

/// A command that the person ran with `!` or `!!`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashExecutionMessage {
    pub role: BashExecutionRole,
    pub command: Arc<str>,
    #[serde(default, deserialize_with = "lenient_default")]
    #[schemars(!default)]
    pub output: String,
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, deserialize_with = "lenient_default")]
    #[schemars(!default)]
    pub exclude_from_context: bool,
    #[serde(flatten)]
    pub mark: MessageMark,
}

/// What stands in the place of messages that were compacted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionSummaryMessage {
    pub role: CompactionSummaryRole,
    pub summary: String,
    #[serde(flatten)]
    pub mark: MessageMark,
}

/// What a branch that was left was about.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BranchSummaryMessage {
    pub role: BranchSummaryRole,
    pub summary: String,
    #[serde(flatten)]
    pub mark: MessageMark,
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Message {
    User(UserMessage),
    Assistant(AssistantMessage),
    ToolResult(ToolResultMessage),
    Custom(CustomMessage),
    BashExecution(BashExecutionMessage),
    CompactionSummary(CompactionSummaryMessage),
    BranchSummary(BranchSummaryMessage),
}

impl Message {
    /// Its id and time.
    pub fn mark(&mut self) -> &mut MessageMark {
        match self {
            Message::User(message) => &mut message.mark,
            Message::Assistant(message) => &mut message.mark,
            Message::ToolResult(message) => &mut message.mark,
            Message::Custom(message) => &mut message.mark,
            Message::BashExecution(message) => &mut message.mark,
            Message::CompactionSummary(message) => &mut message.mark,
            Message::BranchSummary(message) => &mut message.mark,
        }
    }

    /// The message without what is never sent to a model.
    pub fn without_facts(mut self) -> Self {
        *self.mark() = MessageMark::default();
        match &mut self {
            Message::Assistant(message) => (message.usage, message.error_message) = (None, None),
            Message::ToolResult(message) => message.details = None,
            Message::Custom(message) => message.message.details = None,
            _ => {}
        }
        self
    }
}
