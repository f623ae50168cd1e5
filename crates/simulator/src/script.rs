//! [`Script`]: answers from a YAML file, each with its conditions. See `docs/simulator.md`.

use std::time::Duration;

use hardpan_prompt::{Block, Content, Prompt, ResultPart, Role, Segment, ToolResult};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::answer::{FinishReason, SimulatedAnswer, SimulatedPart};
use crate::error_reply::ErrorReply;
use crate::faults::{DurationText, Faults};

/// Why a script cannot be used.
#[derive(Debug, Error)]
pub enum ScriptError {
    /// It is no YAML, or has fields that scripts do not have.
    #[error("{file}: {error}")]
    Yaml {
        /// The file name, as the caller gave it.
        file: String,
        /// What is wrong, with the line number.
        #[source]
        error: Box<serde_saphyr::Error>,
    },
    /// It could answer nothing.
    #[error("{file}: there is no turn; write `turns:` with at least one, or a `default:`")]
    Empty {
        /// The file name, as the caller gave it.
        file: String,
    },
}

/// Scripted answers, turn by turn.
///
/// A request takes the first turn that is not used up and whose conditions hold, otherwise the
/// default turn.
///
/// ```
/// use hardpan_simulator::Script;
///
/// let yaml = "
/// turns:
///   - text: Let me look.
///     tool_calls: [{name: read, arguments: {path: src/main.rs}}]
///   - when: {has_tool_result: read}
///     text: It is empty.
/// default: {text: I have nothing to add.}
/// ";
/// assert_eq!(Script::from_yaml("script.yaml", yaml)?.len(), 2);
/// let error = Script::from_yaml("script.yaml", "turns:\n  - txt: hello\n").unwrap_err();
/// assert!(error.to_string().contains("line 2"), "{error}");
/// # Ok::<(), hardpan_simulator::ScriptError>(())
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Script {
    turns: Vec<ScriptTurn>,
    default: Option<ScriptTurn>,
    /// Faults to inject while the script runs.
    pub faults: Faults,
}

/// How far a script has been played.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScriptProgress {
    answered: u64,
    used: Vec<u64>,
}

/// The fields of a written turn.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct TurnFields {
    when: Conditions,
    reasoning: Option<String>,
    web_search: Option<String>,
    text: Option<String>,
    tool_calls: Vec<CallFields>,
    stop: Option<FinishWord>,
    delay: DurationText,
    pace: DurationText,
    repeat: Repeat,
    undeclared: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Conditions {
    contains: Option<String>,
    equals: Option<String>,
    has_tool_result: Option<String>,
    has_tool: Option<String>,
    turn: Option<u64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallFields {
    name: String,
    #[serde(default)]
    arguments: Map<String, Value>,
    #[serde(default)]
    id: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FinishWord {
    End,
    ToolUse,
    Length,
    Refusal,
}

/// How often a turn may be used.
#[derive(Clone, Copy, Debug)]
struct Repeat(u64);

impl Default for Repeat {
    fn default() -> Self {
        Repeat(1)
    }
}

impl<'de> Deserialize<'de> for Repeat {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) if word == "always" => Ok(Repeat(u64::MAX)),
            Value::Number(number) if number.as_u64().is_some_and(|count| count > 0) => {
                Ok(Repeat(number.as_u64().unwrap_or(1)))
            }
            other => {
                Err(D::Error::custom(format!("repeat: {other} is neither a count from 1 on nor `always`")))
            }
        }
    }
}

#[derive(Clone, Debug)]
struct ScriptTurn {
    when: Conditions,
    repeat: u64,
    /// Whether its calls may name tools that the request does not declare.
    undeclared: bool,
    answer: SimulatedAnswer,
}

impl<'de> Deserialize<'de> for ScriptTurn {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TurnFields {
            when,
            reasoning,
            web_search,
            text,
            tool_calls,
            stop,
            delay,
            pace,
            repeat,
            undeclared,
        } = TurnFields::deserialize(deserializer)?;
        let parts = reasoning.map(SimulatedPart::Reasoning).into_iter();
        let parts = parts.chain(web_search.map(SimulatedPart::Search)).chain(text.map(SimulatedPart::Text));
        let calls = tool_calls.into_iter().map(|call| SimulatedPart::Call {
            id: call.id,
            name: call.name,
            arguments: Value::Object(call.arguments).to_string(),
        });
        let parts: Vec<SimulatedPart> = parts.chain(calls).collect();
        if parts.is_empty() {
            return Err(D::Error::custom("a turn says nothing; give it text, reasoning or tool_calls"));
        }
        let mut answer = SimulatedAnswer { delay: delay.0, pace: pace.0, ..SimulatedAnswer::new(parts) };
        if let Some(stop) = stop {
            answer.stop = stop.stop();
        }
        Ok(ScriptTurn { when, repeat: repeat.0, undeclared, answer })
    }
}

impl FinishWord {
    fn stop(self) -> FinishReason {
        match self {
            FinishWord::End => FinishReason::End,
            FinishWord::ToolUse => FinishReason::ToolUse,
            FinishWord::Length => FinishReason::Length,
            FinishWord::Refusal => FinishReason::Refusal,
        }
    }
}

impl Script {
    /// Parses a script. Errors name `file`.
    pub fn from_yaml(file: &str, yaml: &str) -> Result<Self, ScriptError> {
        let wrong = |error| ScriptError::Yaml { file: file.to_owned(), error: Box::new(error) };
        let script: Script = serde_saphyr::from_str(yaml).map_err(wrong)?;
        if script.turns.is_empty() && script.default.is_none() {
            return Err(ScriptError::Empty { file: file.to_owned() });
        }
        Ok(script)
    }

    /// The number of turns, without the default.
    pub fn len(&self) -> usize {
        self.turns.len()
    }

    /// Whether the script has only a default turn.
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Sets the delay between chunks for every turn that has none of its own.
    pub fn with_pace(mut self, pace: Duration) -> Self {
        let turns = self.turns.iter_mut().chain(self.default.as_mut());
        turns.filter(|turn| turn.answer.pace.is_zero()).for_each(|turn| turn.answer.pace = pace);
        self
    }

    /// The answer to a prompt. It counts as used, unless a fault breaks it: the client then sends
    /// the request again. `is_declared` tells whether the request declares a tool.
    pub(crate) fn answer(
        &self,
        prompt: &Prompt,
        is_declared: &dyn Fn(&str) -> bool,
        progress: &mut ScriptProgress,
        spoiled: bool,
    ) -> Result<SimulatedAnswer, ErrorReply> {
        progress.used.resize(self.turns.len(), 0);
        let number = progress.answered + 1;
        let free = |(index, turn): &(usize, &ScriptTurn)| progress.used[*index] < turn.repeat;
        let mut turns = self.turns.iter().enumerate().filter(free);
        let found = turns
            .find(|(_, turn)| turn.when.are_met(prompt, is_declared, number))
            .map(|(index, turn)| (Some(index), turn));
        let (index, turn) = found.or(self.default.as_ref().map(|turn| (None, turn))).ok_or_else(|| {
            let words = "the script has no turn left for this request: add a turn, or a `default:`";
            ErrorReply::new(500, words)
        })?;
        if let Some(name) = turn.undeclared_call(is_declared) {
            let turn = index.map_or("the default turn".to_owned(), |index| format!("turn {}", index + 1));
            return Err(ErrorReply::new(
                500,
                format!(
                    "{turn} of the script calls the tool `{name}`, which the request does not declare; \
                     `undeclared: true` in the turn allows it"
                ),
            ));
        }
        if !spoiled {
            progress.answered += 1;
            index.into_iter().for_each(|index| progress.used[index] += 1);
        }
        Ok(turn.answer.clone())
    }
}

impl ScriptTurn {
    /// The first call of a tool that the request does not declare, unless the turn allows it.
    fn undeclared_call(&self, is_declared: &dyn Fn(&str) -> bool) -> Option<&str> {
        let mut calls = self.answer.parts.iter().filter_map(|part| match part {
            SimulatedPart::Call { name, .. } => Some(name.as_str()),
            SimulatedPart::Reasoning(_) | SimulatedPart::Search(_) | SimulatedPart::Text(_) => None,
        });
        calls.find(|name| !self.undeclared && !is_declared(name))
    }
}

impl Conditions {
    fn are_met(&self, prompt: &Prompt, is_declared: &dyn Fn(&str) -> bool, number: u64) -> bool {
        let Conditions { contains, equals, has_tool_result, has_tool, turn } = self;
        let any = |test: &dyn Fn(&str) -> bool| last_texts(prompt).iter().any(|text| test(text));
        contains.as_ref().is_none_or(|part| any(&|text| text.contains(part.as_str())))
            && equals.as_ref().is_none_or(|whole| any(&|text| text.trim() == whole.trim()))
            && has_tool_result.as_ref().is_none_or(|name| has_tool_result_of(prompt, name))
            && has_tool.as_ref().is_none_or(|name| is_declared(name))
            && turn.is_none_or(|wanted| wanted == number)
    }
}

/// The blocks after the last assistant message.
pub(crate) fn last_blocks(prompt: &Prompt) -> impl Iterator<Item = &Block> {
    let from =
        prompt.messages.iter().rposition(|turn| turn.role == Role::Assistant).map_or(0, |last| last + 1);
    prompt.messages[from..].iter().flat_map(|turn| &turn.blocks)
}

/// The texts of those blocks, including tool results, each by itself.
fn last_texts(prompt: &Prompt) -> Vec<String> {
    last_blocks(prompt).flat_map(|block| texts(&block.content)).collect()
}

/// The texts of a block; none for images, reasoning, calls and changes of tools.
pub(crate) fn texts(content: &Content) -> Vec<String> {
    let join =
        |segments: &[Segment]| segments.iter().map(|segment| segment.text.as_str()).collect::<String>();
    match content {
        Content::Text(segments) => vec![join(segments)],
        Content::Result(result) => {
            let part = |part: &ResultPart| {
                if let ResultPart::Text(segments) = part { Some(join(segments)) } else { None }
            };
            result.parts.iter().filter_map(part).collect()
        }
        Content::Image(..)
        | Content::Reasoning(_)
        | Content::Call(_)
        | Content::ToolChange(_)
        | Content::Provider(_) => Vec::new(),
    }
}

/// Whether the last blocks contain a result of this tool.
fn has_tool_result_of(prompt: &Prompt, tool: &str) -> bool {
    let results = last_blocks(prompt).filter_map(|block| match &*block.content {
        Content::Result(result) => Some(result),
        _ => None,
    });
    results.into_iter().any(|result| called_tool(prompt, result) == Some(tool))
}

/// The name of the tool whose call a result answers.
pub(crate) fn called_tool<'a>(prompt: &'a Prompt, result: &ToolResult) -> Option<&'a str> {
    prompt.blocks().find_map(|block| match &*block.content {
        Content::Call(call) if call.id == result.call_id => Some(&*call.name),
        _ => None,
    })
}

#[cfg(test)]
mod tests;
