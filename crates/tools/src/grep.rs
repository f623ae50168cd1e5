//! The tool `grep`: lines that match a pattern, in the files that git does not ignore.

mod report; // GrepReport: the answer, until it is full
mod search; // FileSearcher: the matches of one file

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use hardpan_files::FileGuard;
use hardpan_workspace::{EntryKind, walk};
use rayon::prelude::*;
use serde::Deserialize;
use serde_json::Value;

use crate::Scope;
use crate::blocking::{self, CancelFlag};
use crate::declarations::load_declaration;
use crate::glob::Glob;
use crate::similar_names::require_existing;
use crate::tool::{Effect, Tool, ToolInvocation, ToolOutcome};
use report::GrepReport;
use search::FileSearcher;

/// The most matching lines in an answer, unless the call sets `limit`.
const DEFAULT_LIMIT: usize = 100;
/// The most lines of context on each side of a match: for more there is `read`.
const MAX_CONTEXT: usize = 50;
/// How many files are searched in parallel before their matches are put in order. This bounds the
/// memory that waiting matches take.
const BATCH_SIZE: usize = 256;

/// The tool `grep`: searches a file or a folder for a regular expression or a literal text.
pub struct Grep;

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("grep", include_str!("../texts/grep.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    #[serde(default)]
    ignore_case: bool,
    #[serde(default)]
    literal: bool,
    #[serde(default)]
    context: usize,
    limit: Option<usize>,
}

impl Tool for Grep {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        blocking::run(call, |arguments, scope, cancel| grep(&arguments, scope, cancel))
    }
}

fn grep(arguments: &Arguments, scope: &Scope, cancel: &CancelFlag) -> Result<ToolOutcome, ToolOutcome> {
    let matcher = build_matcher(arguments)?;
    let glob = arguments.glob.as_deref().map(Glob::new).transpose()?;
    let path = arguments.path.as_deref().unwrap_or(".");
    let place = scope.resolve_for_read(path)?;
    let metadata = require_existing(scope, path, &place)?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(ToolOutcome::failed(format!(
            "{} is neither a file nor a folder.",
            scope.display_name(&place)
        )));
    }
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT).max(1);
    let context = arguments.context.min(MAX_CONTEXT);
    let resolved = scope.resolved();
    let search = FileSearcher { matcher, limit, context, guard: &resolved.guard, cancel };
    let mut report = GrepReport::new(limit);
    if metadata.is_file() {
        let found = search.search_file(&mut search.build_searcher(), &place);
        report.add_file(&resolved.display_name(&place), found);
        return Ok(report.into_outcome());
    }
    let mut files = walk_files(&resolved.guard, &place, glob.as_ref());
    while !report.is_full() && !cancel.is_set() {
        let batch: Vec<PathBuf> = files.by_ref().take(BATCH_SIZE).collect();
        if batch.is_empty() {
            break;
        }
        let found: Vec<_> = batch
            .par_iter()
            .map_init(|| search.build_searcher(), |searcher, path| search.search_file(searcher, path))
            .collect();
        for (path, found) in batch.iter().zip(found) {
            report.add_file(&resolved.display_name(path), found);
        }
    }
    Ok(report.into_outcome())
}

/// The regular files below a folder in the order of their paths. Links are skipped: a target inside
/// the workspace is searched at its own path.
fn walk_files(guard: &FileGuard, folder: &Path, glob: Option<&Glob>) -> impl Iterator<Item = PathBuf> {
    walk(guard, folder).filter_map(move |entry| {
        let entry = entry.ok()?;
        let relative = entry.path.strip_prefix(folder).ok()?;
        let is_wanted = entry.kind == EntryKind::File && glob.is_none_or(|glob| glob.matches(relative));
        is_wanted.then_some(entry.path)
    })
}

fn build_matcher(arguments: &Arguments) -> Result<RegexMatcher, ToolOutcome> {
    if arguments.pattern.is_empty() {
        return Err(ToolOutcome::failed(
            "The pattern is empty: every line would match. Say what to look for.",
        ));
    }
    if arguments.pattern.contains('\n') {
        return Err(ToolOutcome::failed(
            "The pattern has more than one line, and lines are searched one by one: search for one of them.",
        ));
    }
    let wrong = |error: &dyn Error| {
        let remedy = "To search for it as plain text, set literal: true.";
        ToolOutcome::failed(format!("The pattern is no regular expression: {error}\n{remedy}"))
    };
    if !arguments.literal {
        // Parsed first as it was given: the builder wraps it in a group, which would shift the position
        // in error messages.
        regex_syntax::ast::parse::Parser::new().parse(&arguments.pattern).map_err(|error| wrong(&error))?;
    }
    RegexMatcherBuilder::new()
        .case_insensitive(arguments.ignore_case)
        .fixed_strings(arguments.literal)
        .crlf(true) // `$` is before a carriage return too
        .build(&arguments.pattern)
        .map_err(|error| wrong(&error))
}

#[cfg(test)]
mod tests;
