//! [`Answer`]: the events of one model response, collected, and which of its tool calls may run.

use std::sync::Arc;

use hardpan_prompt::{
    CacheDiagnosis, DroppedReasoning, Json, MessagePart, ProviderBlock, ProviderBlockKind, ToolCall,
    WebSource,
};
use serde_json::Value;

use crate::{AnswerEvent, ReportedUsage, StopReason, StreamError};

/// A model's answer, as far as it has arrived. Collect [`AnswerEvent`]s into it.
///
/// ```
/// use hardpan_models::Protocol;
/// use hardpan_providers::{Answer, decode_answer_body};
///
/// let body = br#"{"choices":[{"message":{"content":"Hello!"},"finish_reason":"stop"}]}"#;
/// let answer: Answer = decode_answer_body(Protocol::Openai, body).into_iter().collect();
/// assert_eq!(answer.text(), "Hello!");
/// assert!(answer.calls().is_empty());
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The provider's id of the response; empty before the first event, or if it gave none.
    pub id: String,
    /// The model that answered, as the provider calls it.
    pub model: String,
    /// The tokens used; `None` until the provider has reported them.
    pub usage: Option<ReportedUsage>,
    /// The provider's own comparison of the request with the one before it, if it gave one.
    pub diagnosis: Option<CacheDiagnosis>,
    /// The reasoning that the provider took out of the request.
    pub dropped_reasoning: Vec<DroppedReasoning>,
    /// The pages that the answer cites, each once.
    pub sources: Vec<WebSource>,
    searches: u64,
    /// Why the answer ended; `None` while it is still coming or after an error.
    pub stop: Option<StopReason>,
    /// The error that ended the answer, if one did.
    pub error: Option<StreamError>,
    parts: Vec<AnswerPart>,
}

#[derive(Clone, Debug, PartialEq)]
enum AnswerPart {
    /// A text, and its cited pieces, each with where it ends.
    Text {
        text: String,
        cited: Vec<(usize, ProviderBlock)>,
    },
    Reasoning {
        text: String,
        signature: Option<Arc<str>>,
    },
    Redacted(Arc<str>),
    Provider(ProviderBlock),
    Call {
        index: usize,
        id: Arc<str>,
        name: Arc<str>,
        json: String,
        ended: bool,
    },
}

/// A tool call of an answer, and whether it may be run.
#[derive(Clone, Debug, PartialEq)]
pub struct AnswerCall {
    /// The call as it goes into the conversation. Its arguments are empty if they are not a JSON
    /// object.
    pub call: ToolCall,
    /// The arguments exactly as the model wrote them, valid JSON or not.
    pub raw: String,
    /// `Ok` if the call may run, otherwise the reason why not.
    pub runnable: Result<(), CallRejection>,
}

/// Why a call must not run. Its message is sent to the model as the result of the call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallRejection {
    /// The answer is still being streamed.
    #[error("the answer has not ended yet; wait for its end")]
    Unfinished,
    /// The answer ended before the model was done: at the token limit, by a refusal, by a cut.
    #[error(
        "the answer ended early ({0}), so this call was not run; make it again, in smaller steps if it was long"
    )]
    Stopped(StopReason),
    /// The provider reported an error in the middle of the answer.
    #[error("the answer failed ({kind}), so this call was not run; make it again", kind = .0.kind)]
    Failed(StreamError),
    /// The stream ended the answer without ending this call.
    #[error("the call is incomplete, so it was not run; make it again")]
    Incomplete,
    /// The provider never sent a tool name for the call.
    #[error("the call names no tool, so it was not run; make it again with a name")]
    Nameless,
    /// The arguments are not valid JSON; holds the parser's message.
    #[error(
        "the arguments are not valid JSON ({0}), so the call was not run; make it again with one JSON object"
    )]
    Malformed(String),
    /// The arguments are valid JSON but not an object.
    #[error(
        "the arguments are not a JSON object, so the call was not run; make it again with one JSON object"
    )]
    NotAnObject,
}

impl Answer {
    /// Adds the next event of the stream.
    pub fn push(&mut self, event: AnswerEvent) {
        match event {
            AnswerEvent::Start { id, model } => (self.id, self.model) = (id, model),
            AnswerEvent::Text(more) => match self.parts.last_mut() {
                Some(AnswerPart::Text { text, .. }) => text.push_str(&more),
                _ => self.parts.push(AnswerPart::Text { text: more, cited: Vec::new() }),
            },
            AnswerEvent::Reasoning(more) => match self.parts.last_mut() {
                Some(AnswerPart::Reasoning { text, signature: None }) => text.push_str(&more),
                _ => self.parts.push(AnswerPart::Reasoning { text: more, signature: None }),
            },
            AnswerEvent::Signature(seal) => match self.parts.last_mut() {
                Some(AnswerPart::Reasoning { signature: signature @ None, .. }) => {
                    *signature = Some(seal.into());
                }
                _ => self
                    .parts
                    .push(AnswerPart::Reasoning { text: String::new(), signature: Some(seal.into()) }),
            },
            AnswerEvent::RedactedReasoning(data) => self.parts.push(AnswerPart::Redacted(data.into())),
            AnswerEvent::CallStart { index, id, name } => {
                let (id, name) = (id.into(), name.into());
                self.parts.push(AnswerPart::Call { index, id, name, json: String::new(), ended: false });
            }
            AnswerEvent::CallDelta { index, json: more } => {
                if let Some(AnswerPart::Call { json, .. }) = self.call_mut(index) {
                    json.push_str(&more);
                }
            }
            AnswerEvent::CallEnd { index } => {
                if let Some(AnswerPart::Call { ended, .. }) = self.call_mut(index) {
                    *ended = true;
                }
            }
            AnswerEvent::WebSearch { query: _ } => self.searches += 1,
            AnswerEvent::ProviderBlock(block) => match (block.kind, self.parts.last_mut()) {
                (ProviderBlockKind::CitedText { .. }, Some(AnswerPart::Text { text, cited })) => {
                    cited.push((text.len(), block));
                }
                _ => self.parts.push(AnswerPart::Provider(block)),
            },
            AnswerEvent::Sources(sources) => {
                for source in sources {
                    if self.sources.iter().all(|known| known.url != source.url) {
                        self.sources.push(source);
                    }
                }
            }
            AnswerEvent::Usage(usage) => self.usage = Some(usage),
            AnswerEvent::CacheDiagnosis(diagnosis) => self.diagnosis = Some(diagnosis),
            AnswerEvent::DroppedReasoning(dropped) => self.dropped_reasoning = dropped,
            AnswerEvent::SkippedPart { .. } => {}
            AnswerEvent::Stop(reason) => self.stop = Some(reason),
            AnswerEvent::Error(error) => self.error = Some(error),
        }
    }

    /// How many searches of the web the provider bills.
    pub fn billed_searches(&self) -> u64 {
        let reported = self.usage.as_ref().and_then(|usage| usage.searches);
        reported.unwrap_or(self.searches)
    }

    fn call_mut(&mut self, wanted: usize) -> Option<&mut AnswerPart> {
        self.parts
            .iter_mut()
            .rev()
            .find(|part| matches!(part, AnswerPart::Call { index, .. } if *index == wanted))
    }

    /// All text of the answer, joined, without reasoning and calls.
    pub fn text(&self) -> String {
        self.parts
            .iter()
            .map(|part| if let AnswerPart::Text { text, .. } = part { text.as_str() } else { "" })
            .collect()
    }

    /// The parts in the order they came, as they go into the conversation.
    ///
    /// Calls that must not run are included: providers require a result for every call.
    pub fn parts(&self) -> Vec<MessagePart> {
        let mut parts = Vec::new();
        for part in &self.parts {
            let whole = match part {
                AnswerPart::Text { text, cited } => {
                    parts.push(MessagePart::text(text.as_str()));
                    parts.extend(cited.iter().map(|(end, block)| cited_part(block, text.len() - end)));
                    continue;
                }
                AnswerPart::Reasoning { text, signature } => MessagePart::Reasoning {
                    text: text.as_str().into(),
                    signature: signature.clone(),
                    redacted: None,
                },
                AnswerPart::Redacted(data) => MessagePart::Reasoning {
                    text: Default::default(),
                    signature: None,
                    redacted: Some(data.clone()),
                },
                AnswerPart::Provider(block) => MessagePart::ProviderBlock(block.clone()),
                AnswerPart::Call { id, name, json, .. } => {
                    MessagePart::ToolCall(tool_call(id, name, parse_arguments(json).unwrap_or_default()))
                }
            };
            parts.push(whole);
        }
        if !self.sources.is_empty() {
            parts.push(MessagePart::Sources { sources: self.sources.clone() });
        }
        parts
    }

    /// The tool calls in order, each with whether it may run.
    pub fn calls(&self) -> Vec<AnswerCall> {
        self.parts.iter().filter_map(|part| self.call_of_part(part)).collect()
    }

    /// One tool call, by its place among the calls.
    pub fn nth_call(&self, place: usize) -> Option<AnswerCall> {
        let mut calls = self.parts.iter().filter(|part| matches!(part, AnswerPart::Call { .. }));
        calls.nth(place).and_then(|part| self.call_of_part(part))
    }

    /// How many tool calls there are.
    pub fn call_count(&self) -> usize {
        self.parts.iter().filter(|part| matches!(part, AnswerPart::Call { .. })).count()
    }

    fn call_of_part(&self, part: &AnswerPart) -> Option<AnswerCall> {
        let AnswerPart::Call { index: _, id, name, json, ended } = part else { return None };
        let arguments = parse_arguments(json);
        let own = match &arguments {
            _ if !ended => Err(CallRejection::Incomplete),
            _ if name.is_empty() => Err(CallRejection::Nameless),
            Err(why) => Err(why.clone()),
            Ok(_) => Ok(()),
        };
        let call = tool_call(id, name, arguments.unwrap_or_default());
        Some(AnswerCall { call, raw: json.clone(), runnable: self.check_ended_cleanly().and(own) })
    }

    /// `Ok` if the answer as a whole ended in a way that lets its calls run.
    fn check_ended_cleanly(&self) -> Result<(), CallRejection> {
        match (&self.error, &self.stop) {
            (Some(error), _) => Err(CallRejection::Failed(error.clone())),
            (None, None) => Err(CallRejection::Unfinished),
            (None, Some(reason)) if !reason.is_clean() => Err(CallRejection::Stopped(reason.clone())),
            (None, Some(_)) => Ok(()),
        }
    }
}

impl Extend<AnswerEvent> for Answer {
    fn extend<I: IntoIterator<Item = AnswerEvent>>(&mut self, events: I) {
        events.into_iter().for_each(|event| self.push(event));
    }
}

impl FromIterator<AnswerEvent> for Answer {
    fn from_iter<I: IntoIterator<Item = AnswerEvent>>(events: I) -> Self {
        let mut answer = Answer::default();
        answer.extend(events);
        answer
    }
}

/// A cited piece of a text that goes on for `after` bytes.
fn cited_part(block: &ProviderBlock, after: usize) -> MessagePart {
    let mut block = block.clone();
    if let ProviderBlockKind::CitedText { after: left, .. } = &mut block.kind {
        *left = after;
    }
    MessagePart::ProviderBlock(block)
}

fn tool_call(id: &Arc<str>, name: &Arc<str>, arguments: Json) -> ToolCall {
    ToolCall { id: id.clone(), name: name.clone(), arguments, result: None }
}

/// Models often send nothing at all for a tool without parameters: that is an empty object.
fn parse_arguments(json: &str) -> Result<Json, CallRejection> {
    if json.trim().is_empty() {
        return Ok(Json::default());
    }
    match serde_json::from_str(json) {
        Ok(Value::Null) => Ok(Json::default()),
        Ok(value @ Value::Object(_)) => Ok(Json::new(&value)),
        Ok(_) => Err(CallRejection::NotAnObject),
        Err(error) => Err(CallRejection::Malformed(error.to_string())),
    }
}

#[cfg(test)]
mod tests;
