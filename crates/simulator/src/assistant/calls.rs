//! The tool calls that lead to an answer, round by round. Only tools that the request declares are
//! called.

use std::cmp::Reverse;

use hardpan_prompt::{Prompt, Tool};
use serde_json::{Map, Value, json};

use super::evidence::Evidence;
use super::hits::{SourceLine, SourceMatch};
use super::question::{Intent, Question};
use super::search_terms::SearchTerm;
use crate::answer::SimulatedPart;

/// The maximum number of terms to search for, each by a call of its own.
const MAX_SEARCHES: usize = 3;
/// Rounds of calls before the answer.
const MAX_ROUNDS: usize = 3;
/// How many lines to read around the best place; [`READ_BEFORE`] of them before it.
const READ_LINES: usize = 18;
const READ_BEFORE: usize = 6;
/// How many lines to read of a file that is asked about.
const HEAD_LINES: usize = 12;
/// Documents mention everything, and would fill a search before the code comes.
const NO_DOCUMENTS: &str = "!*.{md,rst,txt,lock}";

/// The calls that come next; none if it is time to answer. `found` are the matching lines so far.
pub fn next_calls(
    prompt: &Prompt,
    question: &Question,
    evidence: &Evidence,
    found: &[SourceMatch],
) -> Vec<SimulatedPart> {
    if evidence.rounds >= MAX_ROUNDS {
        return Vec::new();
    }
    let tools = DeclaredTools(prompt);
    let terms = &question.terms;
    match &question.intent {
        Intent::Greeting => Vec::new(),
        Intent::Map => match evidence.rounds {
            0 => tools.symbols(".").or_else(|| tools.list(".")).into_iter().collect(),
            _ => Vec::new(),
        },
        Intent::Contents(path) => contents_calls(&tools, path, question, evidence),
        Intent::Users(name) => match evidence.rounds {
            0 => [tools.symbols(name), tools.grep_word(name)].into_iter().flatten().collect(),
            // Words, and the index knows a name for them.
            _ if evidence.lines.is_empty() => match evidence.definitions.first() {
                Some(definition) => tools.grep_word(definition.name()).into_iter().collect(),
                None if evidence.rounds == 1 => tools.search(question),
                None => Vec::new(),
            },
            _ => Vec::new(),
        },
        Intent::Definition(name) => match evidence.rounds {
            0 => match tools.symbols(name) {
                Some(call) => vec![call],
                None => tools.search(question),
            },
            1 if evidence.definitions.is_empty() && !evidence.has_called("grep") => tools.search(question),
            _ => tools.read_best(evidence, found),
        },
        Intent::Search => match evidence.rounds {
            0 => tools.symbols(&words(terms)).into_iter().chain(tools.search(question)).collect(),
            1 if found.is_empty() && evidence.definitions.is_empty() => tools.search_everywhere(terms),
            _ => Vec::new(),
        },
    }
}

fn contents_calls(
    tools: &DeclaredTools,
    path: &str,
    question: &Question,
    evidence: &Evidence,
) -> Vec<SimulatedPart> {
    let name = path.rsplit('/').next().unwrap_or_default();
    let both =
        |path: &str| [tools.symbols(path), tools.read(path, 1, HEAD_LINES)].into_iter().flatten().collect();
    match (evidence.rounds, best_file(path, &evidence.files)) {
        (0, _) => tools.find(name).map_or_else(|| both(path), |call| vec![call]),
        (1, Some(found)) => both(&found.source),
        (1, None) => tools.search(question),
        _ => Vec::new(),
    }
}

/// The file that a path means: the same one, one whose path ends with it, or the shortest.
pub fn best_file<'a>(path: &str, files: &'a [SourceLine]) -> Option<&'a SourceLine> {
    let path = path.trim_start_matches("./");
    let ends_with = |file: &&SourceLine| file.source.trim_end_matches('/').ends_with(path);
    let same = files.iter().find(|file| file.source.trim_end_matches('/') == path);
    same.or_else(|| files.iter().filter(ends_with).min_by_key(|file| file.source.len()))
}

fn words(terms: &[SearchTerm]) -> String {
    terms.iter().take(MAX_SEARCHES).map(|term| term.word.as_str()).collect::<Vec<_>>().join(" ")
}

pub fn call(name: &str, arguments: &Value) -> SimulatedPart {
    SimulatedPart::Call { id: None, name: name.to_owned(), arguments: arguments.to_string() }
}

/// The tools of a request, each of which may be missing.
struct DeclaredTools<'a>(&'a Prompt);

impl DeclaredTools<'_> {
    fn get(&self, name: &str) -> Option<&Tool> {
        self.0.tools.iter().map(|block| &block.tool).find(|tool| *tool.name == *name)
    }

    fn symbols(&self, query: &str) -> Option<SimulatedPart> {
        self.get("symbols").map(|_| call("symbols", &json!({"query": query})))
    }

    fn list(&self, path: &str) -> Option<SimulatedPart> {
        self.get("ls").map(|_| call("ls", &json!({"path": path})))
    }

    fn find(&self, name: &str) -> Option<SimulatedPart> {
        self.get("find").map(|_| call("find", &json!({"pattern": name})))
    }

    fn read(&self, path: &str, offset: usize, limit: usize) -> Option<SimulatedPart> {
        self.get("read").map(|_| call("read", &json!({"path": path, "offset": offset, "limit": limit})))
    }

    /// Lines with a name as a whole word.
    fn grep_word(&self, name: &str) -> Option<SimulatedPart> {
        let name = name.rsplit(['.', ':', '#']).next().unwrap_or(name);
        let grep = self.get("grep")?;
        let mut arguments = match takes_regex(grep) {
            true => Map::from_iter([("pattern".to_owned(), json!(format!("\\b{}\\b", escape(name))))]),
            false => grep_arguments(grep, name),
        };
        restrict(grep, &mut arguments, None);
        Some(call("grep", &Value::Object(arguments)))
    }

    /// Searches for the best terms, in code unless documents are meant, and for files by name.
    fn search(&self, question: &Question) -> Vec<SimulatedPart> {
        self.grep_terms(&question.terms, (!question.wants_documents).then_some(NO_DOCUMENTS))
    }

    fn search_everywhere(&self, terms: &[SearchTerm]) -> Vec<SimulatedPart> {
        self.grep_terms(terms, None)
    }

    fn grep_terms(&self, terms: &[SearchTerm], glob: Option<&str>) -> Vec<SimulatedPart> {
        let mut calls = Vec::new();
        if let Some(grep) = self.get("grep") {
            calls.extend(terms.iter().take(MAX_SEARCHES).map(|term| {
                let mut arguments = grep_arguments(grep, &term.word);
                restrict(grep, &mut arguments, glob);
                call("grep", &Value::Object(arguments))
            }));
        }
        let name = terms.first().map(|term| term.word.rsplit('/').next().unwrap_or_default());
        calls.extend(name.and_then(|name| self.find(&format!("*{name}*"))));
        if calls.is_empty() {
            calls.extend(self.list("."));
        }
        calls
    }

    /// Reads around the best definition or, without one, the best matching line.
    fn read_best(&self, evidence: &Evidence, found: &[SourceMatch]) -> Vec<SimulatedPart> {
        if evidence.has_called("read") {
            return Vec::new();
        }
        let defined =
            evidence.definitions.first().map(|definition| (definition.path.as_str(), definition.line));
        let place =
            defined.or_else(|| found.first().map(|source| (source.source.as_str(), best_line(source))));
        let read = |(path, line): (&str, usize)| {
            self.read(path, line.saturating_sub(READ_BEFORE).max(1), READ_LINES)
        };
        place.and_then(read).into_iter().collect()
    }
}

fn best_line(found: &SourceMatch) -> usize {
    let best = found.hits.iter().max_by_key(|hit| (hit.score, Reverse(hit.line.number)));
    best.and_then(|hit| hit.line.number).unwrap_or(1)
}

/// Adds what keeps a search short, where the tool has a parameter for it.
fn restrict(grep: &Tool, arguments: &mut Map<String, Value>, glob: Option<&str>) {
    let schema = grep.parameters.value();
    if let Some(glob) = glob.filter(|_| schema["properties"]["glob"]["type"] == "string") {
        arguments.insert("glob".to_owned(), json!(glob));
    }
}

/// Whether the tool says that its pattern is a regular expression.
fn takes_regex(grep: &Tool) -> bool {
    let schema = grep.parameters.value();
    let pattern = schema["properties"]["pattern"]["description"].as_str().unwrap_or_default();
    let says_so = |text: &str| {
        let text = text.to_lowercase();
        text.contains("regular expression") || text.contains("regex")
    };
    says_so(&grep.description) || says_so(pattern)
}

/// The arguments of a search for a word, in any case if the tool supports that.
fn grep_arguments(grep: &Tool, word: &str) -> Map<String, Value> {
    let schema = grep.parameters.value();
    let option = ["ignore_case", "case_insensitive", "ignoreCase"]
        .into_iter()
        .find(|name| schema["properties"][name]["type"] == "boolean");
    let pattern = match (takes_regex(grep), option) {
        (true, None) => format!("(?i){}", escape(word)),
        (true, Some(_)) => escape(word),
        (false, _) => word.to_owned(),
    };
    let mut arguments = Map::from_iter([("pattern".to_owned(), json!(pattern))]);
    arguments.extend(option.map(|option| (option.to_owned(), json!(true))));
    arguments
}

/// A text as a regular expression that matches it.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !"_-/".contains(c) {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::Json;

    use super::*;

    #[test]
    fn case_is_left_aside_where_the_tool_says_how() {
        let mut grep = Tool {
            name: "grep".into(),
            description: "".into(),
            parameters: Json::new(&json!({"type": "object"})),
            snippet: None,
            guidelines: Vec::new(),
        };
        let arguments = |grep: &Tool| Value::Object(grep_arguments(grep, "a.rs"));
        assert_eq!(arguments(&grep), json!({"pattern": "a.rs"}));
        grep.description = "Searches for a regular expression.".into();
        assert_eq!(arguments(&grep), json!({"pattern": "(?i)a\\.rs"}));
        grep.parameters =
            Json::new(&json!({"type": "object", "properties": {"ignore_case": {"type": "boolean"}}}));
        assert_eq!(arguments(&grep), json!({"pattern": "a\\.rs", "ignore_case": true}));
    }
}
