//! Answers without a script and without a language model: the assistant searches for the words of
//! the question and reports files, symbols and lines.
//!
//! It uses the read-only tools that the request declares (`grep`, `find`, `read`, `ls`) or, without
//! tools, the context of the request itself.

mod hits; // finds and ranks matching lines
mod report; // the texts of the assistant's answers
mod search_terms;
mod sections; // splits the context of a request into lines with their source // extracts search terms from a question

use std::cmp::Reverse;

use hardpan_prompt::{Block, Call, Content, Prompt, Role, Tool, ToolResult};
use serde_json::{Map, Value, json};

use crate::answer::{SimulatedAnswer, SimulatedPart};
use crate::script::{called_tool, texts};
use crate::tool_choice::ToolChoice;
use hits::{SourceLine, SourceMatch};
use search_terms::{SearchTerm, terms};

/// The maximum number of terms to search for, each by a call of its own.
const MAX_SEARCHES: usize = 3;
/// Rounds of tool calls before the report: search, then read.
const CALL_ROUNDS: usize = 2;
/// How many lines to read around the best match; [`READ_BEFORE`] of them before it.
const READ_LINES: usize = 24;
const READ_BEFORE: usize = 4;

/// Answers a prompt: with tool calls at first, with a report at last.
pub fn answer(prompt: &Prompt, choice: &ToolChoice) -> SimulatedAnswer {
    let at = question_at(prompt);
    let question = at.map(|at| question_text(&prompt.messages[at].blocks)).unwrap_or_default();
    let terms = terms(&question);
    let after = at.map_or(&[][..], |at| &prompt.messages[at + 1..]);
    let rounds = after.iter().filter(|turn| turn.role == Role::Assistant).count();
    if choice.is_forced() && rounds == 0 {
        return forced_call(prompt, choice, &question);
    }
    if terms.is_empty() {
        return SimulatedAnswer::text(report::greeting());
    }
    let blocks = || after.iter().flat_map(|turn| &turn.blocks);
    let seen: Vec<SourceLine> = blocks().flat_map(|block| lines_of_result(prompt, block)).collect();
    let found = hits::rank(seen, &terms);
    if rounds < CALL_ROUNDS && *choice != ToolChoice::None {
        let calls = if rounds == 0 { search_calls(prompt, &terms) } else { read_calls(prompt, &found) };
        if !calls.is_empty() {
            let intro = if rounds == 0 {
                report::announce_search(&terms[..terms.len().min(MAX_SEARCHES)])
            } else {
                report::announce_read()
            };
            return SimulatedAnswer::new([SimulatedPart::Text(intro)].into_iter().chain(calls).collect());
        }
    }
    if !found.is_empty() {
        let read = blocks().filter_map(|block| read_result(prompt, block)).next_back();
        return SimulatedAnswer::text(report::report_matches(
            &terms,
            &found,
            read.as_deref().unwrap_or_default(),
        ));
    }
    let found = hits::rank(context_lines(prompt, at), &terms);
    let found = prefer_files(found);
    SimulatedAnswer::text(if found.is_empty() {
        report::report_no_match(&terms)
    } else {
        report::report_matches(&terms, &found, &[])
    })
}

/// The index of the last message that the user wrote: it has no tool result, and text that no
/// layout has put there.
fn question_at(prompt: &Prompt) -> Option<usize> {
    let is_question = |blocks: &[Block]| {
        !blocks.iter().any(|block| matches!(*block.content, Content::Result(_)))
            && !question_text(blocks).is_empty()
    };
    prompt.messages.iter().rposition(|turn| turn.role == Role::User && is_question(&turn.blocks))
}

/// The user's text in a message, without the context that a layout puts around it.
fn question_text(blocks: &[Block]) -> String {
    let own = blocks.iter().flat_map(|block| texts(&block.content)).filter_map(|text| {
        let text = text.split("[state of the workspace]").next().unwrap_or_default().trim().to_owned();
        let text = if text.starts_with("Context from ") {
            text.lines().last().unwrap_or_default().to_owned()
        } else {
            text
        };
        let is_context = [
            "=== ",
            "[file:",
            "[symbols:",
            "# Repository",
            "# Working Files",
            "# Reference Files",
            "# File Tree",
            "# URL Context",
        ];
        Some(text).filter(|text| !text.is_empty() && !is_context.iter().any(|start| text.starts_with(start)))
    });
    own.collect::<Vec<_>>().join("\n")
}

fn tool<'a>(prompt: &'a Prompt, name: &str) -> Option<&'a Tool> {
    prompt.tools.iter().map(|block| &block.tool).find(|tool| *tool.name == *name)
}

fn call(name: &str, arguments: &Value) -> SimulatedPart {
    SimulatedPart::Call { id: None, name: name.to_owned(), arguments: arguments.to_string() }
}

/// The first round: a search for each of the best terms, and for files with the best term in their
/// name.
fn search_calls(prompt: &Prompt, terms: &[SearchTerm]) -> Vec<SimulatedPart> {
    let mut calls = Vec::new();
    if let Some(grep) = tool(prompt, "grep") {
        calls.extend(terms.iter().take(MAX_SEARCHES).map(|term| call("grep", &pattern(grep, &term.word))));
    }
    if let (Some(_), Some(term)) = (tool(prompt, "find"), terms.first()) {
        calls.push(call(
            "find",
            &json!({"pattern": format!("*{}*", term.word.rsplit('/').next().unwrap_or_default())}),
        ));
    }
    if calls.is_empty() && tool(prompt, "ls").is_some() {
        calls.push(call("ls", &json!({"path": "."})));
    }
    calls
}

/// The arguments of a search, case-insensitive if the tool supports that.
fn pattern(grep: &Tool, word: &str) -> Value {
    let schema = grep.parameters.value();
    let mut arguments = Map::new();
    let says_regex =
        [&*grep.description, schema["properties"]["pattern"]["description"].as_str().unwrap_or_default()]
            .iter()
            .any(|text| {
                text.to_lowercase().contains("regular expression") || text.to_lowercase().contains("regex")
            });
    let option = ["ignore_case", "case_insensitive", "ignoreCase"]
        .into_iter()
        .find(|name| schema["properties"][name]["type"] == "boolean");
    let pattern = match option {
        None if says_regex => format!("(?i){}", word.replace('.', "\\.")),
        _ => word.to_owned(),
    };
    arguments.insert("pattern".into(), json!(pattern));
    arguments.extend(option.map(|option| (option.to_owned(), json!(true))));
    Value::Object(arguments)
}

/// The second round: reads the lines around the best match or, if nothing matched, lists the
/// folder.
fn read_calls(prompt: &Prompt, found: &[SourceMatch]) -> Vec<SimulatedPart> {
    let best = |found: &SourceMatch| {
        found
            .hits
            .iter()
            .max_by_key(|hit| (hit.score, Reverse(hit.line.number)))
            .and_then(|hit| hit.line.number)
    };
    match found.first() {
        Some(source) if tool(prompt, "read").is_some() => {
            let offset = best(source).map_or(1, |line| line.saturating_sub(READ_BEFORE).max(1));
            vec![call("read", &json!({"path": source.source, "offset": offset, "limit": READ_LINES}))]
        }
        None if tool(prompt, "ls").is_some() => vec![call("ls", &json!({"path": "."}))],
        _ => Vec::new(),
    }
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

/// The call that a tool result answers.
fn call_of<'a>(prompt: &'a Prompt, result: &ToolResult) -> Option<&'a Call> {
    prompt.blocks().find_map(|block| match &*block.content {
        Content::Call(call) if call.id == result.call_id => Some(call),
        _ => None,
    })
}

/// The lines in the result of one of the assistant's calls.
fn lines_of_result(prompt: &Prompt, block: &Block) -> Vec<SourceLine> {
    let Content::Result(result) = &*block.content else { return Vec::new() };
    let Some(call) = call_of(prompt, result) else { return Vec::new() };
    let text = texts(&block.content).concat();
    match &*call.name {
        "grep" => hits::parse_grep_output(&text),
        "find" => hits::parse_file_list(&text, "."),
        "ls" => hits::parse_file_list(&text, call.arguments.value()["path"].as_str().unwrap_or(".")),
        "read" => read_result(prompt, block).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn read_result(prompt: &Prompt, block: &Block) -> Option<Vec<SourceLine>> {
    let Content::Result(result) = &*block.content else { return None };
    let call = call_of(prompt, result).filter(|call| &*call.name == "read")?;
    let arguments = call.arguments.value();
    let first = arguments["offset"].as_u64().unwrap_or(1).max(1) as usize;
    Some(hits::parse_read_output(&texts(&block.content).concat(), arguments["path"].as_str()?, first))
}

/// Names for text outside of all sections.
const SYSTEM_PROMPT: &str = "the system prompt";
const CONVERSATION: &str = "the conversation";

/// All lines of the request before the question, and the files attached to it.
fn context_lines(prompt: &Prompt, question_at: Option<usize>) -> Vec<SourceLine> {
    let system = prompt.system.iter().flat_map(|block| texts(&block.content));
    let mut lines: Vec<SourceLine> =
        system.flat_map(|text| sections::lines_with_source(&text, SYSTEM_PROMPT)).collect();
    let end = question_at.unwrap_or(prompt.messages.len());
    for block in prompt.messages[..end].iter().flat_map(|turn| &turn.blocks) {
        for text in texts(&block.content) {
            match &*block.content {
                Content::Result(result) => {
                    let label = called_tool(prompt, result)
                        .map_or_else(|| CONVERSATION.to_owned(), |name| format!("a result of {name}"));
                    lines.extend(sections::lines_of_tool_result(&text, &label));
                }
                _ => lines.extend(sections::lines_with_source(&text, CONVERSATION)),
            }
        }
    }
    if let Some(turn) = question_at.map(|at| &prompt.messages[at]) {
        // A layout may put files into the message of the question; the rest of it is the question.
        let attached = turn
            .blocks
            .iter()
            .flat_map(|block| texts(&block.content))
            .flat_map(|text| sections::lines_with_source(&text, ""));
        lines.extend(attached.filter(|line| !line.source.is_empty()));
    }
    lines
}

/// Prefers files over text outside of sections: a system prompt mentions everything.
fn prefer_files(found: Vec<SourceMatch>) -> Vec<SourceMatch> {
    let (mut named, unnamed): (Vec<SourceMatch>, Vec<SourceMatch>) =
        found.into_iter().partition(|found| ![SYSTEM_PROMPT, CONVERSATION].contains(&found.source.as_str()));
    if named.is_empty() {
        named = unnamed;
    }
    named
}

#[cfg(test)]
mod tests;
