//! An answer, put together from its events.

use std::sync::Arc;

use hardpan_prompt::{Json, Part, ToolCall};
use serde_json::Value;

use crate::{Event, StopReason, StreamError, Usage};

/// What a model answered, as far as it has come.
///
/// ```
/// use hardpan_models::Protocol;
/// use hardpan_providers::{Answer, events_of_body};
///
/// let body = br#"{"choices":[{"message":{"content":"Hello!"},"finish_reason":"stop"}]}"#;
/// let answer: Answer = events_of_body(Protocol::Openai, body).into_iter().collect();
/// assert_eq!(answer.text(), "Hello!");
/// assert!(answer.calls().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The provider's id for it.
    pub id: String,
    /// The model that answered, as the provider calls it.
    pub model: String,
    /// What was used, where the provider has said so.
    pub usage: Option<Usage>,
    /// Why it ended, once it has.
    pub stop: Option<StopReason>,
    /// What went wrong, if something did.
    pub error: Option<StreamError>,
    /// What a person should know about how it was got.
    pub footnotes: Vec<String>,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Text(String),
    Reasoning { text: String, signature: Option<Arc<str>> },
    Redacted(Arc<str>),
    Call { index: usize, id: Arc<str>, name: Arc<str>, json: String, ended: bool },
}

/// A tool call of an answer, and whether it may be run.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerCall {
    /// The call. Its arguments are empty where they could not be read.
    pub call: ToolCall,
    /// The arguments as they came.
    pub raw: String,
    /// Whether it may be run, and if not, why.
    pub runnable: Result<(), WhyNot>,
}

/// Why a call must not be run. The message is fit to answer the model's call with.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WhyNot {
    /// The answer has not ended yet.
    #[error("the answer has not ended yet; wait for its end")]
    Unfinished,
    /// The answer ended for another reason than that the model was done.
    #[error(
        "the answer ended early ({0}), so this call was not run; make it again, in smaller steps if it was long"
    )]
    Stopped(StopReason),
    /// The answer failed.
    #[error("the answer failed ({kind}), so this call was not run; make it again", kind = .0.kind)]
    Failed(StreamError),
    /// The call itself has no end.
    #[error("the call is incomplete, so it was not run; make it again")]
    Incomplete,
    /// The call names no tool.
    #[error("the call names no tool, so it was not run; make it again with a name")]
    Nameless,
    /// The arguments are no JSON.
    #[error(
        "the arguments are not valid JSON ({0}), so the call was not run; make it again with one JSON object"
    )]
    Malformed(String),
    /// The arguments are JSON, but no object.
    #[error(
        "the arguments are not a JSON object, so the call was not run; make it again with one JSON object"
    )]
    NotAnObject,
}

impl Answer {
    /// Takes the next event.
    pub fn push(&mut self, event: Event) {
        match event {
            Event::Start { id, model } => (self.id, self.model) = (id, model),
            Event::Text(more) => match self.pieces.last_mut() {
                Some(Piece::Text(text)) => text.push_str(&more),
                _ => self.pieces.push(Piece::Text(more)),
            },
            Event::Reasoning(more) => match self.pieces.last_mut() {
                Some(Piece::Reasoning { text, signature: None }) => text.push_str(&more),
                _ => self.pieces.push(Piece::Reasoning { text: more, signature: None }),
            },
            Event::Signature(seal) => match self.pieces.last_mut() {
                Some(Piece::Reasoning { signature: signature @ None, .. }) => *signature = Some(seal.into()),
                _ => self.pieces.push(Piece::Reasoning { text: String::new(), signature: Some(seal.into()) }),
            },
            Event::RedactedReasoning(data) => self.pieces.push(Piece::Redacted(data.into())),
            Event::CallStart { index, id, name } => {
                let (id, name) = (id.into(), name.into());
                self.pieces.push(Piece::Call { index, id, name, json: String::new(), ended: false });
            }
            Event::CallDelta { index, json: more } => {
                if let Some(Piece::Call { json, .. }) = self.call(index) {
                    json.push_str(&more);
                }
            }
            Event::CallEnd { index } => {
                if let Some(Piece::Call { ended, .. }) = self.call(index) {
                    *ended = true;
                }
            }
            Event::Usage(usage) => self.usage = Some(usage),
            Event::Footnote(note) => self.footnotes.push(note),
            Event::Stop(reason) => self.stop = Some(reason),
            Event::Error(error) => self.error = Some(error),
        }
    }

    fn call(&mut self, wanted: usize) -> Option<&mut Piece> {
        self.pieces
            .iter_mut()
            .rev()
            .find(|piece| matches!(piece, Piece::Call { index, .. } if *index == wanted))
    }

    /// All text, without reasoning.
    pub fn text(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| if let Piece::Text(text) = piece { text.as_str() } else { "" })
            .collect()
    }

    /// The parts in the order they came, as they go into the conversation.
    ///
    /// Every call is among them, also one that must not be run: it has to be answered for all the same.
    pub fn parts(&self) -> Vec<Part> {
        let part = |piece: &Piece| match piece {
            Piece::Text(text) => Part::text(text.as_str()),
            Piece::Reasoning { text, signature } => {
                Part::Reasoning { text: text.as_str().into(), signature: signature.clone(), redacted: None }
            }
            Piece::Redacted(data) => {
                Part::Reasoning { text: Default::default(), signature: None, redacted: Some(data.clone()) }
            }
            Piece::Call { id, name, json, .. } => {
                Part::ToolCall(tool_call(id, name, arguments(json).unwrap_or_default()))
            }
        };
        self.pieces.iter().map(part).collect()
    }

    /// The calls in order, each with the verdict whether it may be run.
    pub fn calls(&self) -> Vec<AnswerCall> {
        let call = |piece: &Piece| {
            let Piece::Call { index: _, id, name, json, ended } = piece else { return None };
            let arguments = arguments(json);
            let own = match &arguments {
                _ if !ended => Err(WhyNot::Incomplete),
                _ if name.is_empty() => Err(WhyNot::Nameless),
                Err(why) => Err(why.clone()),
                Ok(_) => Ok(()),
            };
            let call = tool_call(id, name, arguments.unwrap_or_default());
            Some(AnswerCall { call, raw: json.clone(), runnable: self.ended_well().and(own) })
        };
        self.pieces.iter().filter_map(call).collect()
    }

    /// Whether the answer ended such that its calls may be run.
    fn ended_well(&self) -> Result<(), WhyNot> {
        match (&self.error, &self.stop) {
            (Some(error), _) => Err(WhyNot::Failed(error.clone())),
            (None, None) => Err(WhyNot::Unfinished),
            (None, Some(reason)) if !reason.is_clean() => Err(WhyNot::Stopped(reason.clone())),
            (None, Some(_)) => Ok(()),
        }
    }
}

impl Extend<Event> for Answer {
    fn extend<I: IntoIterator<Item = Event>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

impl FromIterator<Event> for Answer {
    fn from_iter<I: IntoIterator<Item = Event>>(events: I) -> Self {
        let mut answer = Answer::default();
        answer.extend(events);
        answer
    }
}

fn tool_call(id: &Arc<str>, name: &Arc<str>, arguments: Json) -> ToolCall {
    ToolCall { id: id.clone(), name: name.clone(), arguments, result: None }
}

/// A tool without parameters is often called with nothing at all.
fn arguments(json: &str) -> Result<Json, WhyNot> {
    if json.trim().is_empty() {
        return Ok(Json::default());
    }
    match serde_json::from_str(json) {
        Ok(Value::Null) => Ok(Json::default()),
        Ok(value @ Value::Object(_)) => Ok(Json::new(&value)),
        Ok(_) => Err(WhyNot::NotAnObject),
        Err(error) => Err(WhyNot::Malformed(error.to_string())),
    }
}

#[cfg(test)]
mod tests;
