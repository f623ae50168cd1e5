//! [`SamplingRequest`]: what a server asks a model for.

#![expect(deprecated, reason = "servers of today ask for samples")]

use hardpan_prompt::{Image, MessagePart};
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, Role, SamplingMessage, SamplingMessageContentBlock,
};
use thiserror::Error;

use crate::results::read_image;

/// The most bytes of text in one request.
const MAX_TEXT: usize = 200 * 1024;

/// The most messages in one request.
const MAX_MESSAGES: usize = 100;

/// What a server asks a model for.
#[derive(Clone, Debug, PartialEq)]
pub struct SamplingRequest {
    /// What the model is told first.
    pub system: Option<String>,
    /// The messages: whether the model said it, and what.
    pub messages: Vec<(bool, Vec<MessagePart>)>,
    /// The most tokens of the answer.
    pub max_tokens: u32,
    /// Whether the server would rather have a small model.
    pub prefers_small: bool,
}

/// What a model answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SamplingAnswer {
    /// The text of the answer.
    pub text: String,
    /// The model's name.
    pub model: String,
    /// Whether the answer is cut off.
    pub is_cut: bool,
}

/// A request that no model gets.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SamplingError {
    /// It has nothing to answer.
    #[error("a request for a sample needs a message, and the last one must be the user's")]
    NoMessage,
    /// It is too long.
    #[error("a request for a sample has at most {MAX_MESSAGES} messages and {} KB of text", MAX_TEXT / 1024)]
    TooLong,
    /// It has a part that is not supported.
    #[error("{0} cannot be part of a request for a sample here")]
    Unsupported(&'static str),
}

/// Why a server does not get an answer of a model. The text is for the server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SamplingRefusal {
    /// The person, a rule or the lack of a person.
    #[error("the request was rejected: {0}")]
    Rejected(String),
    /// It asked too often.
    #[error("at most {0} requests per minute are passed on to a model")]
    TooMany(usize),
    /// The model did not answer.
    #[error("the model did not answer: {0}")]
    Failed(String),
}

impl SamplingRequest {
    pub(crate) fn new(params: CreateMessageRequestParams) -> Result<Self, SamplingError> {
        if params.tools.is_some_and(|tools| !tools.is_empty()) {
            return Err(SamplingError::Unsupported("a tool"));
        }
        if params.messages.len() > MAX_MESSAGES {
            return Err(SamplingError::TooLong);
        }
        let mut bytes = params.system_prompt.as_deref().map_or(0, str::len);
        let mut messages: Vec<(bool, Vec<MessagePart>)> = Vec::new();
        for message in params.messages {
            let is_models = message.role == Role::Assistant;
            let parts: Vec<MessagePart> =
                message.content.into_vec().into_iter().map(message_part).collect::<Result<_, _>>()?;
            bytes += parts.iter().map(text_length).sum::<usize>();
            match messages.last_mut() {
                Some((last, before)) if *last == is_models => before.extend(parts),
                _ => messages.push((is_models, parts)),
            }
        }
        if bytes > MAX_TEXT {
            return Err(SamplingError::TooLong);
        }
        if messages.last().is_none_or(|(is_models, parts)| *is_models || parts.is_empty()) {
            return Err(SamplingError::NoMessage);
        }
        let preferences = params.model_preferences.unwrap_or_default();
        let hints = preferences.hints.unwrap_or_default();
        let small = ["haiku", "mini", "nano", "flash", "small", "lite"];
        let names_small = hints.iter().filter_map(|hint| hint.name.as_deref()).any(|name| {
            let name = name.to_lowercase();
            small.iter().any(|word| name.contains(word))
        });
        let thrift = preferences.cost_priority.unwrap_or(0.0).max(preferences.speed_priority.unwrap_or(0.0));
        let is_thrifty = thrift > preferences.intelligence_priority.unwrap_or(0.5);
        Ok(SamplingRequest {
            system: params.system_prompt.filter(|text| !text.trim().is_empty()),
            messages,
            max_tokens: params.max_tokens,
            prefers_small: names_small || is_thrifty,
        })
    }

    /// The beginning of what is asked, for a person.
    pub fn beginning(&self, max: usize) -> String {
        let mut text = String::new();
        let system = self.system.iter().map(|system| format!("(system) {system}"));
        let said = self.messages.iter().flat_map(|(_, parts)| parts).map(|part| match part {
            MessagePart::Text { text } => text.to_string(),
            _ => "(an image)".to_owned(),
        });
        for part in system.chain(said) {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str(&part);
            if text.len() > max {
                break;
            }
        }
        crate::plain_text::plain_text(&text, max)
    }
}

impl SamplingAnswer {
    pub(crate) fn into_result(self) -> CreateMessageResult {
        let reason = match self.is_cut {
            true => CreateMessageResult::STOP_REASON_END_MAX_TOKEN,
            false => CreateMessageResult::STOP_REASON_END_TURN,
        };
        let message = SamplingMessage::new(Role::Assistant, SamplingMessageContentBlock::text(self.text));
        CreateMessageResult::new(message, self.model).with_stop_reason(reason)
    }
}

fn text_length(part: &MessagePart) -> usize {
    match part {
        MessagePart::Text { text } => text.len(),
        _ => 0,
    }
}

fn message_part(block: SamplingMessageContentBlock) -> Result<MessagePart, SamplingError> {
    match block {
        SamplingMessageContentBlock::Text(text) => Ok(MessagePart::text(text.text)),
        SamplingMessageContentBlock::Image(image) => {
            let image: Option<Image> = read_image(&image.mime_type, &image.data);
            image.map(MessagePart::Image).ok_or(SamplingError::Unsupported("an image of this kind"))
        }
        SamplingMessageContentBlock::Audio(_) => Err(SamplingError::Unsupported("a sound")),
        _ => Err(SamplingError::Unsupported("a call of a tool")),
    }
}
