//! The JSON of the events and items of an answer.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::StreamError;
use crate::stream::StreamProgress;
use crate::stream::json::{self, Str, or_empty};

/// One event. All types share one struct, because a tagged enum would parse each event twice. Rare
/// fields are boxed, because a large struct would be moved for every word of text.
#[derive(Debug, Deserialize)]
pub struct EventPayload<'a> {
    #[serde(default)]
    pub r#type: EventType,
    #[serde(default)]
    pub output_index: u64,
    #[serde(default)]
    pub content_index: u64,
    #[serde(default)]
    pub summary_index: u64,
    #[serde(borrow)]
    pub item_id: Option<Str<'a>>,
    #[serde(borrow)]
    pub delta: Option<Str<'a>>,
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Str<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Str<'a>>,
    #[serde(borrow)]
    pub item: Option<&'a RawValue>,
    #[serde(borrow)]
    pub response: Option<Box<Response<'a>>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum EventType {
    #[serde(rename = "response.created")]
    Created,
    #[serde(rename = "response.in_progress")]
    InProgress,
    #[serde(rename = "response.output_item.added")]
    ItemAdded,
    #[serde(rename = "response.output_item.done")]
    ItemDone,
    #[serde(rename = "response.output_text.delta")]
    OutputTextDelta,
    #[serde(rename = "response.output_text.done")]
    OutputTextDone,
    #[serde(rename = "response.refusal.delta")]
    RefusalDelta,
    #[serde(rename = "response.refusal.done")]
    RefusalDone,
    #[serde(rename = "response.reasoning_summary_text.delta")]
    SummaryDelta,
    #[serde(rename = "response.reasoning_summary_text.done")]
    SummaryDone,
    #[serde(rename = "response.reasoning_text.delta")]
    ReasoningDelta,
    #[serde(rename = "response.reasoning_text.done")]
    ReasoningDone,
    #[serde(rename = "response.function_call_arguments.delta")]
    ArgumentsDelta,
    #[serde(rename = "response.function_call_arguments.done")]
    ArgumentsDone,
    #[serde(rename = "response.completed")]
    Completed,
    #[serde(rename = "response.incomplete")]
    Incomplete,
    #[serde(rename = "response.failed")]
    Failed,
    #[serde(rename = "error")]
    Error,
    /// Events that say nothing new, and types that did not exist when this was written.
    #[default]
    #[serde(other)]
    Other,
}

/// An item of the output.
#[derive(Debug)]
pub struct Item<'a> {
    pub kind: ItemKind,
    pub id: Option<Str<'a>>,
    pub fields: ItemFields<'a>,
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Message,
    Reasoning,
    FunctionCall,
    /// A search of the web, or a look at a page that it found.
    WebSearch(Box<serde_json::Value>),
    /// A type that Hardpan does not know, by its name.
    Other(String),
}

/// The fields of all known items.
#[derive(Debug, Default, Deserialize)]
pub struct ItemFields<'a> {
    #[serde(borrow)]
    pub call_id: Option<Str<'a>>,
    #[serde(borrow)]
    pub name: Option<Str<'a>>,
    #[serde(borrow)]
    pub arguments: Option<Str<'a>>,
    #[serde(borrow)]
    pub content: Option<Vec<Part<'a>>>,
    #[serde(borrow)]
    pub summary: Option<Vec<Part<'a>>>,
    #[serde(borrow)]
    pub encrypted_content: Option<Str<'a>>,
}

/// A part of a message, or a piece of reasoning.
#[derive(Debug, Deserialize)]
pub struct Part<'a> {
    #[serde(borrow)]
    pub text: Option<Str<'a>>,
    #[serde(borrow)]
    pub refusal: Option<Str<'a>>,
    #[serde(borrow)]
    pub annotations: Option<Vec<Annotation<'a>>>,
}

/// A note to a text; only citations of pages have an address.
#[derive(Debug, Deserialize)]
pub struct Annotation<'a> {
    #[serde(borrow)]
    pub url: Option<Str<'a>>,
    #[serde(borrow)]
    pub title: Option<Str<'a>>,
}

impl<'a> Item<'a> {
    /// Parses an item. Of unknown types only the name is read: their fields may have any shape.
    pub fn parse(raw: &'a RawValue) -> Result<Self, StreamError> {
        #[derive(Deserialize)]
        struct Head<'a> {
            #[serde(borrow)]
            r#type: Option<Str<'a>>,
            #[serde(borrow)]
            id: Option<Str<'a>>,
        }
        let wrong = |error| StreamError::malformed(error, raw.get());
        let Head { r#type, id } = serde_json::from_str(raw.get()).map_err(wrong)?;
        let kind = match or_empty(&r#type) {
            "message" => ItemKind::Message,
            "reasoning" => ItemKind::Reasoning,
            "function_call" => ItemKind::FunctionCall,
            "web_search_call" => {
                let item = serde_json::from_str(raw.get()).map_err(wrong)?;
                return Ok(Item {
                    kind: ItemKind::WebSearch(Box::new(item)),
                    id,
                    fields: ItemFields::default(),
                });
            }
            other => {
                return Ok(Item {
                    kind: ItemKind::Other(other.to_owned()),
                    id,
                    fields: ItemFields::default(),
                });
            }
        };
        Ok(Item { kind, id, fields: serde_json::from_str(raw.get()).map_err(wrong)? })
    }
}

/// A response: complete in a body and at the end of a stream, without output at its beginning.
#[derive(Debug, Deserialize)]
pub struct Response<'a> {
    #[serde(borrow)]
    pub id: Option<Str<'a>>,
    #[serde(borrow)]
    pub model: Option<Str<'a>>,
    #[serde(borrow)]
    pub status: Option<Str<'a>>,
    #[serde(borrow)]
    pub output: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    pub usage: Option<&'a RawValue>,
    #[serde(borrow)]
    pub error: Option<&'a RawValue>,
    #[serde(borrow)]
    pub incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(borrow)]
    pub prompt_cache_diagnostics: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
pub struct IncompleteDetails<'a> {
    #[serde(borrow)]
    pub reason: Option<Str<'a>>,
}

/// Handles an event that does not parse. Only known types must: future types may have other shapes,
/// and are skipped.
pub fn skip_or_reject(data: &str, error: &serde_json::Error) -> Result<StreamProgress, StreamError> {
    #[derive(Deserialize)]
    struct OnlyType {
        #[serde(default)]
        r#type: EventType,
    }
    match serde_json::from_str::<OnlyType>(data) {
        Ok(OnlyType { r#type: EventType::Other }) => Ok(StreamProgress::More),
        Ok(OnlyType { r#type: EventType::Error }) => Err(json::parse_error(data)),
        _ => Err(StreamError::malformed(error, data)),
    }
}
