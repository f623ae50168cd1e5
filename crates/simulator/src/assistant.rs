//! Answers without a script and without a language model: the assistant understands a few kinds of
//! questions ([`question`]), looks them up with the tools that the request declares, and reports places
//! as `path:line`.
//!
//! It knows only what the request holds. It uses `symbols`, `grep`, `find`, `read` and `ls`; without
//! tools, it searches the files in the request. It never quotes the system prompt.

mod calls; // the tool calls that lead to an answer
mod evidence; // Evidence: what the calls have found
mod hits; // finds and ranks matching lines
mod question; // Question: what is asked for
mod report; // the texts of the assistant's answers
mod search_terms; // extracts search terms from a question
mod sections; // splits the context of a request into lines with their source
mod source_kind; // SourceKind: code, tests, data, documents

use hardpan_prompt::{Block, Content, Prompt, Role, Tool};
use serde_json::{Map, Value, json};

use crate::answer::SimulatedAnswer;
use crate::script::texts;
use crate::tool_choice::ToolChoice;
use calls::call;
use evidence::Evidence;
use hits::{SourceLine, SourceMatch};
use question::{Intent, Question};

/// Answers a prompt: with tool calls at first, with a report at last.
pub fn answer(prompt: &Prompt, choice: &ToolChoice) -> SimulatedAnswer {
    let questions = questions(prompt);
    let (at, text) = match questions.first() {
        Some((at, text)) => (Some(*at), text.as_str()),
        None => (None, ""),
    };
    let after = at.map_or(&[][..], |at| &prompt.messages[at + 1..]);
    let mut evidence = Evidence::collect(prompt, after);
    if choice.is_forced() && evidence.rounds == 0 {
        return forced_call(prompt, choice, text);
    }
    let earlier: Vec<String> = questions.iter().skip(1).map(|(_, text)| text.clone()).collect();
    let question = Question::read(text, &earlier);
    if question.intent == Intent::Greeting {
        return SimulatedAnswer::text(report::greeting());
    }
    evidence.sort_definitions(question.wants_documents);
    if let Some(name) = question.asked_name() {
        evidence.keep_definitions_of(name);
    }
    let seen = evidence.lines.iter().chain(&evidence.files).cloned().collect();
    let mut found = hits::rank(seen, &question.terms, question.wants_documents);
    if *choice != ToolChoice::None {
        let calls = calls::next_calls(prompt, &question, &evidence, &found);
        if !calls.is_empty() {
            return SimulatedAnswer::new(calls);
        }
    }
    if found.is_empty() && evidence.called.is_empty() {
        found = hits::rank(context_lines(prompt, at), &question.terms, question.wants_documents);
    }
    let mut text = report(&question, &evidence, &found);
    if question.wants_change {
        text = format!("{}\n\n{text}", report::cannot_change());
    }
    if earlier.is_empty() {
        text = format!("{text}\n\n{}", report::signature());
    }
    SimulatedAnswer::text(text)
}

/// The answer to a question, from what was found.
fn report(question: &Question, evidence: &Evidence, found: &[SourceMatch]) -> String {
    let special = match &question.intent {
        Intent::Map => report::map(evidence),
        Intent::Users(name) => report::users(name, evidence),
        Intent::Contents(path) => {
            let file = calls::best_file(path, &evidence.files).map_or(path.as_str(), |file| &file.source);
            report::contents(file, evidence)
        }
        Intent::Definition(_) if !evidence.definitions.is_empty() => {
            Some(report::definitions(&evidence.definitions, &evidence.read))
        }
        Intent::Definition(_) | Intent::Search | Intent::Greeting => None,
    };
    special.unwrap_or_else(|| match found.is_empty() && evidence.definitions.is_empty() {
        true => report::nothing_found(question, evidence),
        false => report::matches(question, found, evidence),
    })
}

/// The messages that the user wrote, the newest first, each with its index: they have no tool result,
/// and text that no layout has put there.
fn questions(prompt: &Prompt) -> Vec<(usize, String)> {
    let is_result = |block: &Block| matches!(*block.content, Content::Result(_));
    let written = prompt.messages.iter().enumerate().rev().filter(|(_, message)| message.role == Role::User);
    let written = written.filter(|(_, message)| !message.blocks.iter().any(is_result));
    let mut questions: Vec<(usize, String)> = Vec::new();
    for (at, message) in written {
        let text = question_text(&message.blocks, questions.is_empty());
        if !text.is_empty() {
            questions.push((at, text));
        }
    }
    questions
}

/// How texts begin that layouts put around the user's.
const CONTEXT_STARTS: [&str; 13] = [
    "=== ",
    "[file:",
    "[symbols:",
    "# Repository",
    "# Working Files",
    "# Reference Files",
    "# File Tree",
    "# URL Context",
    "Context from ",
    "Current date and time:",
    "Directory structure",
    "System instructions (repeated",
    "The context follows;",
];

/// The user's text in a message, without the context that a layout puts around it. In the last message,
/// a layout may have put it below a file, as its last line.
fn question_text(blocks: &[Block], is_last: bool) -> String {
    let own = blocks.iter().flat_map(|block| texts(&block.content)).filter_map(|text| {
        let text = text.split("[state of the workspace]").next().unwrap_or_default().trim().to_owned();
        let text = match text.starts_with("Context from ") && is_last {
            true => text.lines().last().unwrap_or_default().to_owned(),
            false => text,
        };
        let is_context = CONTEXT_STARTS.iter().any(|start| text.starts_with(start));
        (!text.is_empty() && !is_context).then_some(text)
    });
    own.collect::<Vec<_>>().join("\n")
}

/// A call that `tool_choice` demands, with the arguments that its schema requires.
fn forced_call(prompt: &Prompt, choice: &ToolChoice, question: &str) -> SimulatedAnswer {
    let named = |tool: &&Tool| match choice {
        ToolChoice::Tool(name) => *tool.name == **name,
        ToolChoice::Any | ToolChoice::Auto | ToolChoice::None => true,
    };
    let Some(tool) = prompt.tools.iter().map(|block| &block.tool).find(named) else {
        return SimulatedAnswer::text(report::greeting());
    };
    let schema = tool.parameters.value();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let arguments: Map<String, Value> =
        required.map(|name| (name.to_owned(), sample_value(&schema["properties"][name], question))).collect();
    SimulatedAnswer::new(vec![call(&tool.name, &Value::Object(arguments))])
}

/// A value that fits a schema; for strings, the question.
fn sample_value(schema: &Value, question: &str) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!(question),
    }
}

/// The lines of the files in a request. Text outside of them is the system prompt or the conversation,
/// which the person knows.
fn context_lines(prompt: &Prompt, question_at: Option<usize>) -> Vec<SourceLine> {
    let system = prompt.system.iter().flat_map(|block| texts(&block.content));
    let end = question_at.map_or(prompt.messages.len(), |at| at + 1);
    let said = prompt.messages[..end].iter().filter(|message| message.role == Role::User);
    let said = said.flat_map(|message| &message.blocks).flat_map(|block| texts(&block.content));
    let lines = system.chain(said).flat_map(|text| sections::lines_with_source(&text, ""));
    lines.filter(|line| hits::is_path(&line.source)).collect()
}

#[cfg(test)]
mod tests;
