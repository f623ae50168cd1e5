//! Decodes answers of Gemini's `generateContent`, streamed or whole. Each chunk of a stream is a
//! whole `GenerateContentResponse`.

mod web_search; // Searches: parts of the server's own search, and the pages that it found

use hardpan_prompt::TokenUsage;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use self::web_search::{Searches, ServerTool};
use super::{failure, usage};
use crate::stream::json::{self, Str, or_empty};
use crate::stream::{AnswerParser, StreamEnd, StreamProgress};
use crate::usage::UsageFields;
use crate::{AnswerEvent, ReportedUsage, StopReason, StreamError};

/// The maximum number of calls in one answer. Real answers stay far below.
const MAX_CALLS: usize = 1024;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResponseChunk<'a> {
    #[serde(borrow)]
    response_id: Option<Str<'a>>,
    #[serde(borrow)]
    model_version: Option<Str<'a>>,
    #[serde(borrow)]
    candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow)]
    usage_metadata: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_feedback: Option<PromptFeedback<'a>>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PromptFeedback<'a> {
    #[serde(borrow)]
    block_reason: Option<Str<'a>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    index: Option<u64>,
    #[serde(borrow)]
    content: Option<CandidateContent<'a>>,
    #[serde(borrow)]
    finish_reason: Option<Str<'a>>,
    #[serde(borrow)]
    grounding_metadata: Option<&'a RawValue>,
}

#[derive(Debug, Deserialize)]
struct CandidateContent<'a> {
    #[serde(borrow)]
    parts: Option<Vec<&'a RawValue>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<Str<'a>>,
    /// Whether the text is a summary of reasoning.
    thought: Option<bool>,
    #[serde(borrow)]
    thought_signature: Option<Str<'a>>,
    #[serde(borrow)]
    function_call: Option<FunctionCall<'a>>,
    inline_data: Option<IgnoredAny>,
    file_data: Option<IgnoredAny>,
    executable_code: Option<IgnoredAny>,
    code_execution_result: Option<IgnoredAny>,
    tool_call: Option<ServerTool>,
    tool_response: Option<ServerTool>,
}

impl Part<'_> {
    /// The name of a kind of part that cannot be used.
    fn unknown_kind(&self) -> Option<&'static str> {
        let is_other = |tool: &Option<ServerTool>| tool.as_ref().is_some_and(|tool| !tool.is_search());
        let kinds = [
            ("inlineData", self.inline_data.is_some()),
            ("fileData", self.file_data.is_some()),
            ("executableCode", self.executable_code.is_some()),
            ("codeExecutionResult", self.code_execution_result.is_some()),
            ("toolCall", is_other(&self.tool_call)),
            ("toolResponse", is_other(&self.tool_response)),
        ];
        kinds.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
    }
}

#[derive(Debug, Deserialize)]
struct FunctionCall<'a> {
    #[serde(borrow)]
    id: Option<Str<'a>>,
    #[serde(borrow)]
    name: Option<Str<'a>>,
    #[serde(borrow)]
    args: Option<&'a RawValue>,
}

/// Decodes an answer chunk by chunk.
#[derive(Debug, Default)]
pub struct AnswerDecoder {
    /// The answer's id; `None` until it has started.
    id: Option<String>,
    calls: usize,
    /// Whether the model has said anything, be it a thought.
    has_content: bool,
    searches: Searches,
    report: UsageFields,
    last_usage: Option<ReportedUsage>,
    stop: Option<StopReason>,
}

impl AnswerParser for AnswerDecoder {
    fn read(&mut self, data: &str, events: &mut Vec<AnswerEvent>) -> Result<StreamProgress, StreamError> {
        let chunk = serde_json::from_str(data).map_err(|error| StreamError::malformed(error, data))?;
        self.apply_chunk(chunk, events)?;
        Ok(StreamProgress::More)
    }

    /// Reads one response, or the list of chunks that a stream without server-sent events is.
    fn read_body(&mut self, body: &str, events: &mut Vec<AnswerEvent>) -> Result<(), StreamError> {
        let malformed = |error: serde_json::Error| StreamError::malformed(error, body);
        let chunks: Vec<ResponseChunk<'_>> = if body.trim_start().starts_with('[') {
            serde_json::from_str(body).map_err(malformed)?
        } else {
            vec![serde_json::from_str(body).map_err(malformed)?]
        };
        let says_something = |chunk: &ResponseChunk<'_>| {
            let ResponseChunk { candidates, prompt_feedback, error, .. } = chunk;
            candidates.as_ref().is_some_and(|candidates| !candidates.is_empty())
                || prompt_feedback.is_some()
                || error.is_some()
        };
        if !chunks.iter().any(says_something) {
            return Err(StreamError::malformed("no candidates", body));
        }
        chunks.into_iter().try_for_each(|chunk| self.apply_chunk(chunk, events))
    }

    fn finish(&mut self, end: StreamEnd, events: &mut Vec<AnswerEvent>) -> StopReason {
        self.emit_usage(events);
        match (self.stop.take(), end) {
            (Some(StopReason::End), _) if self.calls > 0 => StopReason::ToolUse,
            (Some(stop), _) => stop,
            (None, StreamEnd::Marked) if self.calls > 0 => StopReason::ToolUse,
            (None, StreamEnd::Marked) => StopReason::End,
            (None, StreamEnd::Unmarked) => StopReason::Cut,
        }
    }
}

impl AnswerDecoder {
    fn apply_chunk(
        &mut self,
        chunk: ResponseChunk<'_>,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        let ResponseChunk { response_id, model_version, candidates, usage_metadata, prompt_feedback, error } =
            chunk;
        if let Some(error) = error.filter(json::is_error) {
            return Err(failure::parse_stream_error(error.get()));
        }
        // Requests ask for one candidate; ignore any other.
        let candidate = candidates.into_iter().flatten().find(|it| it.index.unwrap_or(0) == 0);
        let is_blocked = prompt_feedback.is_some_and(|feedback| feedback.block_reason.is_some());
        if self.id.is_none() && (candidate.is_some() || is_blocked || response_id.is_some()) {
            let id: String = response_id.unwrap_or_default().into();
            self.id = Some(id.clone());
            events.push(AnswerEvent::Start { id, model: model_version.unwrap_or_default().into() });
        }
        if let Some(usage) = usage_metadata {
            self.report.merge(usage.get());
            // Every chunk counts anew. The first report says what the prompt costs, the last one,
            // at the end, replaces it.
            if self.last_usage.is_none() {
                self.emit_usage(events);
            }
        }
        if is_blocked {
            self.stop = Some(StopReason::Refusal);
        }
        let Some(Candidate { index: _, content, finish_reason, grounding_metadata }) = candidate else {
            return Ok(());
        };
        for part in content.and_then(|content| content.parts).into_iter().flatten() {
            self.apply_part(part, events)?;
        }
        if let Some(grounding) = grounding_metadata {
            self.searches.apply_grounding(grounding, events);
        }
        match or_empty(&finish_reason) {
            "" => Ok(()),
            word @ ("MALFORMED_FUNCTION_CALL" | "UNEXPECTED_TOOL_CALL") if !self.has_content => {
                Err(StreamError::malformed(word, "the model's call cannot be read"))
            }
            word => {
                self.stop = Some(stop_reason(word));
                Ok(())
            }
        }
    }

    fn apply_part(&mut self, raw: &RawValue, events: &mut Vec<AnswerEvent>) -> Result<(), StreamError> {
        let wrong = |error| StreamError::malformed(error, raw.get());
        let part: Part<'_> = serde_json::from_str(raw.get()).map_err(wrong)?;
        let unknown = part.unknown_kind();
        if unknown.is_none() && (part.tool_call.is_some() || part.tool_response.is_some()) {
            self.has_content = true;
            let whole = serde_json::from_str(raw.get()).map_err(wrong)?;
            self.searches.apply_part(part.tool_call, part.tool_response, &whole, events);
            return Ok(());
        }
        let Part { text, thought, thought_signature, function_call, .. } = part;
        if let Some(part_type) = unknown {
            events.push(AnswerEvent::SkippedPart { part_type: part_type.to_owned() });
        }
        let text = text.filter(|text| !text.is_empty()).map(String::from);
        if thought == Some(true) {
            self.has_content |= text.is_some();
            events.extend(text.map(AnswerEvent::Reasoning));
            self.emit_signature(thought_signature, events);
            return Ok(());
        }
        // The signature comes before its part: that is where the encoder looks for it.
        self.emit_signature(thought_signature, events);
        self.has_content |= text.is_some();
        events.extend(text.map(AnswerEvent::Text));
        function_call.map_or(Ok(()), |call| self.emit_call(call, events))
    }

    fn emit_signature(&mut self, signature: Option<Str<'_>>, events: &mut Vec<AnswerEvent>) {
        if let Some(signature) = signature.filter(|signature| !signature.is_empty()) {
            events.push(AnswerEvent::Signature(signature.into()));
        }
    }

    /// Emits a call, which comes whole.
    fn emit_call(
        &mut self,
        call: FunctionCall<'_>,
        events: &mut Vec<AnswerEvent>,
    ) -> Result<(), StreamError> {
        let FunctionCall { id, name, args } = call;
        let index = self.calls;
        if index == MAX_CALLS {
            return Err(StreamError::malformed("too many function calls", or_empty(&name)));
        }
        self.calls += 1;
        self.has_content = true;
        let id = match (or_empty(&id), self.id.as_deref().unwrap_or_default()) {
            ("", "") => format!("call_{index}"),
            ("", answer) => format!("{answer}_{index}"),
            (id, _) => id.to_owned(),
        };
        events.push(AnswerEvent::CallStart { index, id, name: name.unwrap_or_default().into() });
        let json = args.map_or(String::new(), |args| args.get().to_owned());
        if !json.is_empty() && json != "null" {
            events.push(AnswerEvent::CallDelta { index, json });
        }
        events.push(AnswerEvent::CallEnd { index });
        Ok(())
    }

    /// Emits the usage if it changed.
    fn emit_usage(&mut self, events: &mut Vec<AnswerEvent>) {
        let usage = usage::from_fields(&self.report);
        if usage != ReportedUsage::from(TokenUsage::default()) && self.last_usage.as_ref() != Some(&usage) {
            self.last_usage = Some(usage.clone());
            events.push(AnswerEvent::Usage(usage));
        }
    }
}

/// The meaning of a `finishReason`. `STOP` also ends an answer with calls.
fn stop_reason(word: &str) -> StopReason {
    match word {
        "STOP" => StopReason::End,
        "MAX_TOKENS" => StopReason::Length,
        "SAFETY"
        | "RECITATION"
        | "LANGUAGE"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

#[cfg(test)]
mod tests;
