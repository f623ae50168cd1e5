//! [`Omission`]: something that the snapshot holds and the prompt does not, and why.
//!
//! Programs decide by [`OmissionReason`] and its [`code`](OmissionReason::code); its `Display` is
//! the sentence for people.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::{ImageError, MessageId};

/// Something that is left out of the prompt, and why. As JSON it has a `key`, the `reason` as a
/// sentence, and a stable `code`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Omission {
    /// What is left out.
    pub key: OmissionKey,
    /// Why it is left out.
    pub reason: OmissionReason,
}

impl Omission {
    /// An item that is left out, by its key.
    pub fn of_item(key: impl Into<Arc<str>>, reason: OmissionReason) -> Self {
        Omission { key: OmissionKey::Item(key.into()), reason }
    }

    /// A message that is left out, whole or in part.
    pub fn of_message(id: &MessageId, reason: OmissionReason) -> Self {
        Omission { key: OmissionKey::Message(id.clone()), reason }
    }

    /// An image or document that is left out.
    pub fn of_attachment(name: impl Into<String>, reason: OmissionReason) -> Self {
        Omission { key: OmissionKey::Attachment(name.into()), reason }
    }

    /// Whether it is a message for which the window has no room.
    pub fn is_message_without_room(&self) -> bool {
        matches!((&self.key, &self.reason), (OmissionKey::Message(_), OmissionReason::NoRoom))
    }
}

impl JsonSchema for Omission {
    fn schema_name() -> Cow<'static, str> {
        "Omission".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Something that is left out of the prompt, and why.",
            "type": "object",
            "properties": {
                "key": {"type": "string", "description": "What is left out: an item's key, or `message:ID`."},
                "reason": {"type": "string", "description": "Why, as a sentence."},
                "code": {"type": "string", "description": "The reason's code, which stays the same."},
            },
            "required": ["key", "reason", "code"],
        })
    }
}

impl Serialize for Omission {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Omission", 3)?;
        fields.serialize_field("key", &self.key.to_string())?;
        fields.serialize_field("reason", &self.reason.to_string())?;
        fields.serialize_field("code", self.reason.code())?;
        fields.end()
    }
}

/// What is left out of a prompt. `Display` gives the name that breakdowns show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OmissionKey {
    /// An item, by its key: `file:src/a.rs`.
    Item(Arc<str>),
    /// A message of the conversation: `message:ID`.
    Message(MessageId),
    /// A tool call of the conversation: `call:ID`.
    Call(Arc<str>),
    /// An image or a document: `image:logo.png`, `document:doc-1`.
    Attachment(String),
    /// Something the request could use, such as `thinking` or `web_search`.
    Feature(&'static str),
}

impl fmt::Display for OmissionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OmissionKey::Item(key) => f.write_str(key),
            OmissionKey::Message(id) => write!(f, "message:{id}"),
            OmissionKey::Call(id) => write!(f, "call:{id}"),
            OmissionKey::Attachment(name) => f.write_str(name),
            OmissionKey::Feature(name) => f.write_str(name),
        }
    }
}

/// Why something is not in the snapshot at all, for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum UnavailableCode {
    /// It could not be read: missing, binary, forbidden.
    Unreadable,
    /// It must not be read: it leads out of the workspace.
    Refused,
    /// It is too long, and only its beginning is there.
    Truncated,
    /// A list is too long to name it.
    NotListed,
    /// Anything else.
    #[default]
    Unavailable,
}

impl UnavailableCode {
    /// The code as JSON spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            UnavailableCode::Unreadable => "unreadable",
            UnavailableCode::Refused => "refused",
            UnavailableCode::Truncated => "truncated",
            UnavailableCode::NotListed => "not_listed",
            UnavailableCode::Unavailable => "unavailable",
        }
    }
}

/// Why something is left out of a prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OmissionReason {
    /// The model's window has no room for it.
    NoRoom,
    /// Whoever made the snapshot could not provide it.
    Unavailable {
        /// The kind of obstacle.
        code: UnavailableCode,
        /// The obstacle, as a phrase.
        detail: String,
    },
    /// An item that stands for the conversation, which is sent as messages.
    ConversationItem,
    /// It has no content.
    Empty,
    /// A symbol entry whose file is shown whole.
    FileOpen,
    /// A symbol entry or legend, in a layout without a symbol map.
    NoSymbolMap,
    /// A panel, in a layout without panels.
    NoPanels,
    /// A second tree or legend, in a layout that takes one.
    OneOfItsKind,
    /// A page beyond the most that the layout takes.
    TooManyPages {
        /// How many pages the layout takes.
        limit: usize,
    },
    /// The tree, while the directory map is switched off.
    DirectoryMapOff,
    /// The symbol map or the tree, while the repository map is switched off.
    RepoMapOff,
    /// An item, in a layout that does not send the context again when the agent continues.
    Continuation,
    /// An item of TAIL that is as it was when this turn sent it.
    TailUnchanged,
    /// A shell command that the user kept from the model.
    HiddenCommand,
    /// A tool call whose result is not known.
    CallWithoutResult,
    /// A tool result whose call is not sent, or has another result already.
    ResultWithoutCall,
    /// Reasoning that only another model would accept.
    ForeignReasoning,
    /// A web search that only the model that made it can take back, or one without its result.
    ForeignSearch,
    /// Something before the reasoning has changed, and the model takes it back only after exactly
    /// what it came after.
    StaleReasoning,
    /// It has not been used for long, and can be recalled.
    PagedOut,
    /// Reasoning at the end of a message, which no provider accepts.
    ReasoningAtEnd,
    /// An image that no provider takes.
    ImageRefused(ImageError),
    /// One of the oldest images, where there are too many.
    TooManyImages {
        /// How many images are left out.
        excess: usize,
        /// How many images one request takes.
        limit: usize,
    },
    /// An image that goes with a prompt, in a request without one.
    ImageWithoutPrompt,
    /// A document, at a provider that takes no document ids.
    NoDocumentIds,
    /// A document that no message of this request can carry.
    NoMessageForDocument,
    /// Web search, at a provider that has no plugin for it.
    NoSearchPlugin,
    /// Thinking, within a tool round that began without it.
    RoundBeganWithoutThinking,
}

impl OmissionReason {
    /// A stable name of the reason, for programs.
    pub fn code(&self) -> &'static str {
        match self {
            OmissionReason::NoRoom => "no_room",
            OmissionReason::Unavailable { code, .. } => code.as_str(),
            OmissionReason::ConversationItem => "conversation_item",
            OmissionReason::Empty => "empty",
            OmissionReason::FileOpen => "file_open",
            OmissionReason::NoSymbolMap => "no_symbol_map",
            OmissionReason::NoPanels => "no_panels",
            OmissionReason::OneOfItsKind => "one_of_its_kind",
            OmissionReason::TooManyPages { .. } => "too_many_pages",
            OmissionReason::DirectoryMapOff => "directory_map_off",
            OmissionReason::RepoMapOff => "repo_map_off",
            OmissionReason::Continuation => "continuation",
            OmissionReason::TailUnchanged => "tail_unchanged",
            OmissionReason::HiddenCommand => "hidden_command",
            OmissionReason::CallWithoutResult => "call_without_result",
            OmissionReason::ResultWithoutCall => "result_without_call",
            OmissionReason::ForeignReasoning => "foreign_reasoning",
            OmissionReason::ForeignSearch => "foreign_search",
            OmissionReason::StaleReasoning => "stale_reasoning",
            OmissionReason::PagedOut => "paged_out",
            OmissionReason::ReasoningAtEnd => "reasoning_at_end",
            OmissionReason::ImageRefused(_) => "image_refused",
            OmissionReason::TooManyImages { .. } => "too_many_images",
            OmissionReason::ImageWithoutPrompt => "image_without_prompt",
            OmissionReason::NoDocumentIds => "no_document_ids",
            OmissionReason::NoMessageForDocument => "no_message_for_document",
            OmissionReason::NoSearchPlugin => "no_search_plugin",
            OmissionReason::RoundBeganWithoutThinking => "round_began_without_thinking",
        }
    }
}

impl fmt::Display for OmissionReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            OmissionReason::NoRoom => "no room: the window is full",
            OmissionReason::Unavailable { detail, .. } => detail,
            OmissionReason::ConversationItem => "the conversation is sent as messages",
            OmissionReason::Empty => "it is empty",
            OmissionReason::FileOpen => "the file itself is open",
            OmissionReason::NoSymbolMap => "this layout has no symbol map",
            OmissionReason::NoPanels => "this layout has no place for panels",
            OmissionReason::OneOfItsKind => "this layout takes only one of its kind",
            OmissionReason::TooManyPages { limit } => {
                return write!(f, "this layout takes at most {limit} pages");
            }
            OmissionReason::DirectoryMapOff => "the directory map is switched off",
            OmissionReason::RepoMapOff => "the repository map is switched off (use_repo_map)",
            OmissionReason::Continuation => "a continuation does not send the context again",
            OmissionReason::TailUnchanged => "unchanged since it was sent in this turn",
            OmissionReason::HiddenCommand => "run with `!!`: kept from the model",
            OmissionReason::CallWithoutResult => "no result of this call is known",
            OmissionReason::ResultWithoutCall => "it answers no call that is sent",
            OmissionReason::PagedOut => "not used for long; the model can recall it",
            OmissionReason::StaleReasoning => {
                "something before its reasoning has changed, so the model would refuse it; the rest is sent"
            }
            OmissionReason::ForeignReasoning => {
                "its reasoning is unsigned or was made by another model; the rest is sent"
            }
            OmissionReason::ForeignSearch => {
                "its web search is incomplete, was made by another model, or searching is off; its text is sent"
            }
            OmissionReason::ReasoningAtEnd => {
                "its last reasoning led to nothing that can be sent; the rest is sent"
            }
            OmissionReason::ImageRefused(error) => {
                return write!(f, "one of its images is not sent: {error}");
            }
            OmissionReason::TooManyImages { excess, limit } => {
                return write!(f, "one of the {excess} oldest images: a request takes at most {limit}");
            }
            OmissionReason::ImageWithoutPrompt => "images go with a prompt, and there is none",
            OmissionReason::NoDocumentIds => "this provider takes no document ids",
            OmissionReason::NoMessageForDocument => "no message of this request can carry it",
            OmissionReason::NoSearchPlugin => {
                "this provider has none, or Hardpan does not know how to ask for it"
            }
            OmissionReason::RoundBeganWithoutThinking => {
                "the round in progress was begun without it; it is on again with the next prompt"
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_omission_is_written_with_its_sentence_and_its_code() {
        let omissions = [
            Omission::of_message(&"m1".into(), OmissionReason::NoRoom),
            Omission::of_item("url:x", OmissionReason::TooManyPages { limit: 3 }),
            Omission::of_item(
                "file:a",
                OmissionReason::Unavailable {
                    code: UnavailableCode::Refused,
                    detail: "leads out of the workspace".into(),
                },
            ),
        ];
        let expected = json!([
            {"key": "message:m1", "reason": "no room: the window is full", "code": "no_room"},
            {"key": "url:x", "reason": "this layout takes at most 3 pages", "code": "too_many_pages"},
            {"key": "file:a", "reason": "leads out of the workspace", "code": "refused"},
        ]);
        assert_eq!(serde_json::to_value(&omissions).unwrap(), expected);
        assert_eq!(omissions.map(|omission| omission.is_message_without_room()), [true, false, false]);
    }

    #[test]
    fn an_unavailable_code_is_spelled_alike_in_snapshots_and_in_breakdowns() {
        use UnavailableCode::{NotListed, Refused, Truncated, Unavailable, Unreadable};
        for code in [Unreadable, Refused, Truncated, NotListed, Unavailable] {
            assert_eq!(serde_json::to_value(code).unwrap(), code.as_str());
        }
    }
}
