//! Answers without a script. There is no language model here: the assistant takes the words of the question, searches for
//! them with the read-only tools that the request declares (`grep`, `find`, `read`, `ls`) or, without tools, in the
//! context of the request itself, and reports files, symbols and lines.

mod hits; // lines that match, and how well
mod report; // what is said in the end
mod sections; // the context of a request, line by line
mod words; // what a question asks about

use std::cmp::Reverse;

use hardpan_prompt::{Block, Call, Content, Prompt, Role, Tool, ToolResult};
use serde_json::{Map, Value, json};

use crate::choice::Choice;
use crate::said::{Said, SaidPart};
use crate::script::{called, texts};
use hits::{Found, Line};
use words::{Term, terms};

/// How many words are searched for, each by a call of its own.
const SEARCHES: usize = 3;
/// Rounds of calls before the report: search, then read.
const ROUNDS: usize = 2;
/// The lines read around the best match, and how many of them before it.
const READ: usize = 24;
const READ_BEFORE: usize = 4;

/// The answer to a prompt.
pub fn answer(prompt: &Prompt, choice: &Choice) -> Said {
    let at = question_at(prompt);
    let question = at.map(|at| question(&prompt.turns[at].blocks)).unwrap_or_default();
    let terms = terms(&question);
    let after = at.map_or(&[][..], |at| &prompt.turns[at + 1..]);
    let rounds = after.iter().filter(|turn| turn.role == Role::Assistant).count();
    if choice.is_forced() && rounds == 0 {
        return forced(prompt, choice, &question);
    }
    if terms.is_empty() {
        return Said::text(report::greeting());
    }
    let blocks = || after.iter().flat_map(|turn| &turn.blocks);
    let seen: Vec<Line> = blocks().flat_map(|block| lines_of_result(prompt, block)).collect();
    let found = hits::rank(seen, &terms);
    if rounds < ROUNDS && *choice != Choice::None {
        let calls = if rounds == 0 { searches(prompt, &terms) } else { reads(prompt, &found) };
        if !calls.is_empty() {
            let intro = if rounds == 0 {
                report::searching(&terms[..terms.len().min(SEARCHES)])
            } else {
                report::reading()
            };
            return Said::new([SaidPart::Text(intro)].into_iter().chain(calls).collect());
        }
    }
    if !found.is_empty() {
        let read = blocks().filter_map(|block| read_result(prompt, block)).next_back();
        return Said::text(report::found(&terms, &found, read.as_deref().unwrap_or_default()));
    }
    let found = hits::rank(context(prompt, at), &terms);
    let found = sectioned_first(found);
    Said::text(if found.is_empty() { report::nothing(&terms) } else { report::found(&terms, &found, &[]) })
}

/// The last message that a person wrote: it answers no call, and has text that no layout put there.
fn question_at(prompt: &Prompt) -> Option<usize> {
    let is_question = |blocks: &[Block]| {
        !blocks.iter().any(|block| matches!(*block.content, Content::Result(_)))
            && !question(blocks).is_empty()
    };
    prompt.turns.iter().rposition(|turn| turn.role == Role::User && is_question(&turn.blocks))
}

/// What a person says in a message, without what a layout puts around it.
fn question(blocks: &[Block]) -> String {
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

fn call(name: &str, arguments: &Value) -> SaidPart {
    SaidPart::Call { id: None, name: name.to_owned(), arguments: arguments.to_string() }
}

/// The first round: a search for each of the best words, and files by the name of the best.
fn searches(prompt: &Prompt, terms: &[Term]) -> Vec<SaidPart> {
    let mut calls = Vec::new();
    if let Some(grep) = tool(prompt, "grep") {
        calls.extend(terms.iter().take(SEARCHES).map(|term| call("grep", &pattern(grep, &term.word))));
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

/// The arguments of a search that does not mind upper and lower case, if the tool says how.
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

/// The second round: the lines around the best match; or, where nothing matched, what there is at all.
fn reads(prompt: &Prompt, found: &[Found]) -> Vec<SaidPart> {
    let best = |found: &Found| {
        found
            .hits
            .iter()
            .max_by_key(|hit| (hit.score, Reverse(hit.line.number)))
            .and_then(|hit| hit.line.number)
    };
    match found.first() {
        Some(place) if tool(prompt, "read").is_some() => {
            let offset = best(place).map_or(1, |line| line.saturating_sub(READ_BEFORE).max(1));
            vec![call("read", &json!({"path": place.place, "offset": offset, "limit": READ}))]
        }
        None if tool(prompt, "ls").is_some() => vec![call("ls", &json!({"path": "."}))],
        _ => Vec::new(),
    }
}

/// A call that the request insists on, with arguments that its schema asks for.
fn forced(prompt: &Prompt, choice: &Choice, question: &str) -> Said {
    let named = |tool: &&Tool| match choice {
        Choice::Tool(name) => *tool.name == **name,
        Choice::Any | Choice::Auto | Choice::None => true,
    };
    let Some(tool) = prompt.tools.iter().map(|block| &block.tool).find(named) else {
        return Said::text(report::greeting());
    };
    let schema = tool.parameters.value();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let arguments: Map<String, Value> =
        required.map(|name| (name.to_owned(), sample(&schema["properties"][name], question))).collect();
    Said::new(vec![call(&tool.name, &Value::Object(arguments))])
}

/// A value that fits a schema, made of the question where it is a text.
fn sample(schema: &Value, question: &str) -> Value {
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

/// The call that a result answers.
fn call_of<'a>(prompt: &'a Prompt, result: &ToolResult) -> Option<&'a Call> {
    prompt.blocks().find_map(|block| match &*block.content {
        Content::Call(call) if call.id == result.call_id => Some(call),
        _ => None,
    })
}

/// What one of our calls brought to light.
fn lines_of_result(prompt: &Prompt, block: &Block) -> Vec<Line> {
    let Content::Result(result) = &*block.content else { return Vec::new() };
    let Some(call) = call_of(prompt, result) else { return Vec::new() };
    let text = texts(&block.content).concat();
    match &*call.name {
        "grep" => hits::of_grep(&text),
        "find" => hits::of_list(&text, "."),
        "ls" => hits::of_list(&text, call.arguments.value()["path"].as_str().unwrap_or(".")),
        "read" => read_result(prompt, block).unwrap_or_default(),
        _ => Vec::new(),
    }
}

fn read_result(prompt: &Prompt, block: &Block) -> Option<Vec<Line>> {
    let Content::Result(result) = &*block.content else { return None };
    let call = call_of(prompt, result).filter(|call| &*call.name == "read")?;
    let arguments = call.arguments.value();
    let first = arguments["offset"].as_u64().unwrap_or(1).max(1) as usize;
    Some(hits::of_read(&texts(&block.content).concat(), arguments["path"].as_str()?, first))
}

/// What stands in no section of its own is named so.
const UNNAMED: [&str; 2] = ["the system prompt", "the conversation"];

/// Every line of the request but those of the question and what came after it.
fn context(prompt: &Prompt, question_at: Option<usize>) -> Vec<Line> {
    let system = prompt.system.iter().flat_map(|block| texts(&block.content));
    let mut lines: Vec<Line> = system.flat_map(|text| sections::lines(&text, UNNAMED[0])).collect();
    let end = question_at.unwrap_or(prompt.turns.len());
    for block in prompt.turns[..end].iter().flat_map(|turn| &turn.blocks) {
        for text in texts(&block.content) {
            match &*block.content {
                Content::Result(result) => {
                    let label = called(prompt, result)
                        .map_or_else(|| UNNAMED[1].to_owned(), |name| format!("a result of {name}"));
                    lines.extend(sections::of_result(&text, &label));
                }
                _ => lines.extend(sections::lines(&text, UNNAMED[1])),
            }
        }
    }
    if let Some(turn) = question_at.map(|at| &prompt.turns[at]) {
        // Files may come in the message of the question itself; what is left of it is the question.
        let attached = turn
            .blocks
            .iter()
            .flat_map(|block| texts(&block.content))
            .flat_map(|text| sections::lines(&text, ""));
        lines.extend(attached.filter(|line| !line.place.is_empty()));
    }
    lines
}

/// Files before what has no name: a system prompt speaks of everything.
fn sectioned_first(found: Vec<Found>) -> Vec<Found> {
    let (mut named, unnamed): (Vec<Found>, Vec<Found>) =
        found.into_iter().partition(|found| !UNNAMED.contains(&found.place.as_str()));
    if named.is_empty() {
        named = unnamed;
    }
    named
}

#[cfg(test)]
mod tests;
