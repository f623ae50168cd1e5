//! The tool `symbols`: answers from the symbol index, in a few hundred tokens.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_models::nearest;
use hardpan_symbols::{
    DefinitionReport, FileReport, OverviewRequest, SymbolIndex, SymbolReport, TokenBudget,
};
use hardpan_workspace::{IndexWait, LiveIndex};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Scope;
use crate::blocking;
use crate::declarations::load_declaration;
use crate::limits::{LimitedLines, escape_line_ends, pluralize};
use crate::tool::{Effect, Tool, ToolInvocation, ToolOutcome};

/// The most lines of an answer, unless the call sets `limit`.
const DEFAULT_LIMIT: usize = 40;
/// How long a call waits for an index that is still being built.
const INDEX_WAIT: IndexWait = IndexWait { limit: Duration::from_secs(20), small: 0 };
/// The most files that are named as users of a definition.
const MAX_USERS: usize = 8;
/// Bytes of a line, for the length of a folder's outline.
const LINE_BYTES: usize = 40;

/// The tool `symbols`: definitions, their users, outlines and search by words.
pub struct Symbols(pub Arc<LiveIndex>);

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("symbols", include_str!("../texts/symbols.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    query: String,
    limit: Option<usize>,
}

impl Tool for Symbols {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        let live = self.0.clone();
        blocking::run(call, move |arguments: Arguments, scope, _| {
            let answer =
                |index: &SymbolIndex| Lookup { index, limit: arguments.limit() }.answer(&arguments, scope);
            live.with_current_within(INDEX_WAIT, &mut |_, _| (), answer).unwrap_or_else(|error| {
                Err(ToolOutcome::failed(format!("Not now: {error}. Use grep, or call again later.")))
            })
        })
    }
}

impl Arguments {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(DEFAULT_LIMIT).max(1)
    }
}

struct Lookup<'a> {
    index: &'a SymbolIndex,
    limit: usize,
}

impl Lookup<'_> {
    /// Answers by what the query is: a path, a name, or words.
    fn answer(&self, arguments: &Arguments, scope: &Scope) -> Result<ToolOutcome, ToolOutcome> {
        let query = arguments.query.trim().trim_matches('`');
        if query.is_empty() {
            return Err(ToolOutcome::failed("The query is empty: give a name, a path or words."));
        }
        if let Some(path) = self.known_path(query, scope) {
            let report = self.index.report(|known| known == path);
            return Ok(match report.files.first() {
                Some(file) => self.outline(file),
                None => self.folder(&path),
            });
        }
        let definitions = self.definitions(query);
        if !definitions.is_empty() {
            return Ok(self.show_definitions(&definitions));
        }
        let words: Vec<&str> = query
            .split(|char: char| !(char.is_alphanumeric() || char == '_'))
            .filter(|word| !word.is_empty())
            .collect();
        self.search(query, &words)
    }

    /// The path as the index has it, if the query names a file or folder of the index.
    fn known_path(&self, query: &str, scope: &Scope) -> Option<String> {
        let place = scope.resolve_for_read(query).ok()?;
        let path = scope.workspace_path(&place);
        let path = if path == "." { String::new() } else { path };
        let below = |known: &str| {
            known.strip_prefix(&*path).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        (path.is_empty() || self.index.paths().any(below)).then_some(path)
    }

    /// The definitions of a name, or of `Parent.name`, spelled with any case if there is none else.
    fn definitions(&self, query: &str) -> Vec<DefinitionReport> {
        let mut parts = query.rsplit(['.', ':', '#']).filter(|part| !part.is_empty());
        let name = parts.next().unwrap_or(query).trim_end_matches("()");
        let parent = parts.next();
        let mut found = self.index.find_definitions(name);
        if let Some(parent) = parent {
            found.retain(|one| one.symbol.parent.as_deref() == Some(parent));
        }
        found.sort_by_key(|one| std::cmp::Reverse(one.used_by.len()));
        found
    }

    fn show_definitions(&self, found: &[DefinitionReport]) -> ToolOutcome {
        let mut lines = LimitedLines::new(self.limit);
        let mut shown = 0;
        for one in found {
            let place = format!("{}:{} {}", one.path, one.symbol.line, describe(&one.symbol));
            let told = lines.push(&escape_line_ends(&place));
            if told.is_err() || one.used_by.iter().len() > 0 && lines.push(&users(&one.used_by)).is_err() {
                break;
            }
            shown += 1;
        }
        let more = found.len() - shown;
        let notice = format!(
            "{}: raise limit, or ask for Parent.name",
            pluralize(more, "more definition", "more definitions")
        );
        finish(lines, more, notice)
    }

    /// The definitions of a file; without those inside others, if they are too many.
    fn outline(&self, file: &FileReport) -> ToolOutcome {
        let mut lines = LimitedLines::new(self.limit + 1);
        let used = match file.references {
            0 => String::new(),
            count => format!(", used by {}", pluralize(count as usize, "file", "files")),
        };
        let mut left_out = lines.push(&escape_line_ends(&format!("{}{used}", file.path))).is_err() as usize;
        let is_long = file.symbols.len() > self.limit;
        for symbol in &file.symbols {
            let inner = symbol.parent.is_some();
            let indent = if inner { " " } else { "" };
            let line = format!("{indent}{} {}{}", symbol.line, prefix(symbol), signature(symbol));
            if (is_long && inner) || lines.push(&escape_line_ends(&line)).is_err() {
                left_out += 1;
            }
        }
        if file.symbols.is_empty() {
            return finish(lines, 1, "no definitions: show it with read".into());
        }
        finish(lines, left_out, format!("{left_out} more: raise limit, or ask for a name"))
    }

    /// The subfolders of a folder, and its most important files.
    fn folder(&self, path: &str) -> ToolOutcome {
        let budget = TokenBudget { tokens: self.limit * LINE_BYTES, count_tokens: &str::len };
        let overview =
            self.index.overview(&OverviewRequest { folder: path, focus: None, budget, kept: None });
        let mut lines = LimitedLines::new(usize::MAX);
        let _ = overview.text.lines().try_for_each(|line| lines.push(&escape_line_ends(line)));
        let more = overview.unnamed_files;
        let notice = format!(
            "{}: raise limit, or ask for a subfolder",
            pluralize(more, "file without a line", "files without a line")
        );
        finish(lines, more, notice)
    }

    fn search(&self, query: &str, words: &[&str]) -> Result<ToolOutcome, ToolOutcome> {
        let found = self.index.search(words);
        if found.is_empty() {
            let report = self.index.report(|_| true);
            let names = report.files.iter().flat_map(|file| &file.symbols).map(|symbol| symbol.name.as_str());
            let near = nearest(query, names);
            let near =
                if near.is_empty() { String::new() } else { format!(" Nearest names: {}.", near.join(", ")) };
            let query = escape_line_ends(query);
            return Err(ToolOutcome::failed(format!(
                "No symbol, file or folder is named like \"{query}\".{near} Text in files: use grep."
            )));
        }
        let mut lines = LimitedLines::new(self.limit);
        for one in &found {
            let used = if one.uses > 0 { format!(" ←{}", one.uses) } else { String::new() };
            let line = format!("{}:{} {}{used}", one.path, one.symbol.line, describe(&one.symbol));
            if lines.push(&escape_line_ends(&line)).is_err() {
                break;
            }
        }
        let more = found.len() - lines.count;
        Ok(finish(lines, more, format!("{more} more: raise limit, or add words")))
    }
}

/// Kind, name with its parent, and signature.
fn describe(symbol: &SymbolReport) -> String {
    let parent = symbol.parent.as_ref().map_or_else(String::new, |parent| format!("{parent}."));
    format!("{} {parent}{}", symbol.kind.as_str(), signature(symbol))
}

fn prefix(symbol: &SymbolReport) -> String {
    format!("{} ", symbol.kind.as_str())
}

fn signature(symbol: &SymbolReport) -> String {
    format!("{}{}", symbol.name, symbol.signature)
}

/// The line about the files that use a definition.
fn users(paths: &[String]) -> String {
    let named =
        paths.iter().take(MAX_USERS).map(|path| escape_line_ends(path)).collect::<Vec<_>>().join(", ");
    match paths.len().saturating_sub(MAX_USERS) {
        0 => format!("  used in {named}"),
        more => format!("  used in {named} and {more} more"),
    }
}

/// The answer, with a notice if something is left out.
fn finish(lines: LimitedLines, left_out: usize, notice: String) -> ToolOutcome {
    let notices: Vec<String> = (left_out > 0).then_some(notice).into_iter().collect();
    let details = json!({"lines": lines.count, "left_out": left_out});
    ToolOutcome::text(lines.append_notices(&notices)).with_details(details)
}

#[cfg(test)]
mod tests;
