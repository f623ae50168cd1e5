//! [`Evidence`]: what the tool calls since the question have found.

use hardpan_prompt::{Block, Call, Content, Prompt, PromptMessage, ToolOutcome, ToolResult};

use super::hits::{self, SourceLine};
use super::source_kind::SourceKind;
use crate::script::texts;

/// A definition of the symbol index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    /// Path of the file that has it.
    pub path: String,
    /// Line number, from 1.
    pub line: usize,
    /// Kind, name and signature, as the index tells them: `struct Budget`.
    pub what: String,
    /// The files that use it, as the index tells them: `src/a.rs, src/b.rs and 3 more`.
    pub users: Option<String>,
}

impl Definition {
    /// `src/a.rs:12`
    pub fn place(&self) -> String {
        format!("{}:{}", self.path, self.line)
    }

    /// The name without kind, parent and signature.
    pub fn name(&self) -> &str {
        let name = self.what.split_whitespace().nth(1).unwrap_or(&self.what);
        let end = name.find(|c: char| !(c.is_alphanumeric() || "_.$".contains(c))).unwrap_or(name.len());
        name[..end].rsplit('.').next().unwrap_or_default()
    }
}

/// What the calls since the question have found.
#[derive(Debug, Default)]
pub struct Evidence {
    /// Rounds of calls so far.
    pub rounds: usize,
    /// The tools that were called.
    pub called: Vec<String>,
    /// What the symbol index has, in its order.
    pub definitions: Vec<Definition>,
    /// The outline of a file or a folder, line by line.
    pub outline: Vec<String>,
    /// Names that resemble the one that was asked for.
    pub nearest_names: Option<String>,
    /// The lines that a search found.
    pub lines: Vec<SourceLine>,
    /// The files that a search by name found.
    pub files: Vec<SourceLine>,
    /// The lines that were read last.
    pub read: Vec<SourceLine>,
}

impl Evidence {
    /// Reads the results of calls in the messages after the question.
    pub fn collect(prompt: &Prompt, after: &[PromptMessage]) -> Self {
        let mut evidence = Evidence {
            rounds: after.iter().filter(|message| message.role == hardpan_prompt::Role::Assistant).count(),
            ..Evidence::default()
        };
        for block in after.iter().flat_map(|message| &message.blocks) {
            if let Content::Result(result) = &*block.content
                && let Some(call) = call_of(prompt, result)
            {
                evidence.called.push(call.name.to_string());
                evidence.add(call, result, block);
            }
        }
        evidence
    }

    /// Puts code before tests and documents, and types and functions before their parts; otherwise the
    /// index's order stays.
    pub fn sort_definitions(&mut self, wants_documents: bool) {
        const PARTS: [&str; 5] = ["field", "variant", "parameter", "property", "heading"];
        self.definitions.sort_by_key(|definition| {
            let kind = definition.what.split_whitespace().next().unwrap_or_default();
            let weight = SourceKind::of(&definition.path).weight(wants_documents);
            (std::cmp::Reverse(weight), PARTS.contains(&kind))
        });
    }

    /// Keeps the definitions of this name. The index also finds names that only contain it: those are
    /// no answer, but may be what was meant.
    pub fn keep_definitions_of(&mut self, name: &str) {
        let similar = self.definitions.iter().map(|it| it.name().to_owned());
        let mut similar: Vec<String> = similar.filter(|it| !it.eq_ignore_ascii_case(name)).collect();
        self.definitions.retain(|it| it.name().eq_ignore_ascii_case(name));
        similar.dedup();
        similar.truncate(3);
        if self.definitions.is_empty() && !similar.is_empty() {
            self.nearest_names = Some(similar.join(", "));
        }
    }

    /// Whether a tool was called.
    pub fn has_called(&self, tool: &str) -> bool {
        self.called.iter().any(|called| called == tool)
    }

    fn add(&mut self, call: &Call, result: &ToolResult, block: &Block) {
        let text = texts(&block.content).concat();
        let arguments = call.arguments.value();
        let argument = |name: &str| arguments[name].as_str().unwrap_or_default();
        let failed = result.outcome == ToolOutcome::Failed;
        match &*call.name {
            "symbols" if failed => self.nearest_names = nearest_names(&text),
            "symbols" => {
                let found = parse_definitions(&text);
                if found.is_empty() {
                    self.outline = text.lines().map(str::to_owned).collect();
                }
                self.definitions.extend(found);
            }
            _ if failed => {}
            "grep" => self.lines.extend(hits::parse_grep_output(&text)),
            "find" => self.files.extend(hits::parse_file_list(&text, ".")),
            "ls" => self.files.extend(hits::parse_file_list(&text, argument("path"))),
            "read" => {
                let first = arguments["offset"].as_u64().unwrap_or(1).max(1) as usize;
                let limit = arguments["limit"].as_u64().map_or(usize::MAX, |limit| limit as usize);
                self.read = hits::parse_read_output(&text, argument("path"), first);
                // What comes after as many lines as were asked for is a word of the tool.
                self.read.truncate(limit);
            }
            _ => {}
        }
    }
}

/// The call that a tool result answers.
fn call_of<'a>(prompt: &'a Prompt, result: &ToolResult) -> Option<&'a Call> {
    prompt.blocks().find_map(|block| match &*block.content {
        Content::Call(call) if call.id == result.call_id => Some(call),
        _ => None,
    })
}

/// The names that the tool offers instead of one that does not exist.
fn nearest_names(text: &str) -> Option<String> {
    let (_, names) = text.split_once("Nearest names: ")?;
    Some(names.split(". ").next().unwrap_or(names).trim_end_matches('.').to_owned())
}

/// Parses the definitions in an answer of the symbol index: `path:12 kind name…`, each with a line
/// about its users below it, or their number at its end.
fn parse_definitions(text: &str) -> Vec<Definition> {
    let mut found: Vec<Definition> = Vec::new();
    for line in text.lines() {
        if let Some((_, users)) = line.split_once("  used in ").filter(|(before, _)| before.is_empty()) {
            found.last_mut().into_iter().for_each(|last| last.users = Some(users.to_owned()));
        } else if let Some((path, number, what)) = split_place(line) {
            let what = what.split(" ←").next().unwrap_or(what).trim().to_owned();
            found.push(Definition { path: path.to_owned(), line: number, what, users: None });
        }
    }
    found
}

/// Splits `path:12 what`.
fn split_place(line: &str) -> Option<(&str, usize, &str)> {
    if line.starts_with(char::is_whitespace) {
        return None;
    }
    line.match_indices(':').find_map(|(at, _)| {
        let (number, what) = line[at + 1..].split_once(' ')?;
        Some((&line[..at], number.parse().ok()?, what))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn definitions_are_read_with_their_users() {
        let text = "src/retry.rs:12 struct RetryPolicy\n  used in src/a.rs, src/b.rs and 3 more\n\
                    my lib/x.py:3 method Client.send(self, x: int) -> None ←4\n[2 more: raise limit]";
        let found = parse_definitions(text);
        assert_eq!(found[0].place(), "src/retry.rs:12");
        assert_eq!(
            (found[0].name(), found[0].users.as_deref()),
            ("RetryPolicy", Some("src/a.rs, src/b.rs and 3 more"))
        );
        assert_eq!((found[1].place(), found[1].name()), ("my lib/x.py:3".to_owned(), "send"));
        assert_eq!(found.len(), 2);
        assert_eq!(parse_definitions("src/a.rs, used by 2 files\n12 struct Budget\n 14 method spend"), []);
        let missing = "No symbol, file or folder is named like \"x\". Nearest names: max, xor. Text in files: use grep.";
        assert_eq!(nearest_names(missing).as_deref(), Some("max, xor"));
    }
}
