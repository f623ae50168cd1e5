//! `grep`: lines that match, over the files that git would not ignore.

mod report; // the answer: matches in the order of their paths, until it is full
mod search; // one file

use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use hardpan_workspace::walk;
use rayon::prelude::*;
use serde::Deserialize;

use crate::Scope;
use crate::blocking::{self, Cancel};
use crate::glob::Glob;
use crate::nearest::existing;
use crate::texts::declare;
use crate::tool::{Call, Effect, Outcome, Tool};
use report::Report;
use search::Search;

/// The most matching lines, where nobody asks for fewer or more.
const LIMIT: usize = 100;
/// The most lines of context on each side: more is what `read` is for.
const CONTEXT: usize = 50;
/// Files that are searched side by side before their matches are put in order: bounds what is held.
const BATCH: usize = 256;

/// The tool `grep`.
pub struct Grep;

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| declare("grep", include_str!("../texts/grep.toml")));

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

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        blocking::run(call, |arguments, scope, cancel| grep(&arguments, scope, cancel))
    }
}

fn grep(arguments: &Arguments, scope: &Scope, cancel: &Cancel) -> Result<Outcome, Outcome> {
    let matcher = matcher(arguments)?;
    let glob = arguments.glob.as_deref().map(Glob::new).transpose()?;
    let path = arguments.path.as_deref().unwrap_or(".");
    let place = scope.to_read(path)?;
    let metadata = existing(scope, path, &place)?;
    if !metadata.is_dir() && !metadata.is_file() {
        return Err(Outcome::failed(format!("{} is neither a file nor a folder.", scope.shown(&place))));
    }
    let limit = arguments.limit.unwrap_or(LIMIT).max(1);
    let context = arguments.context.min(CONTEXT);
    let bounds = scope.bounds();
    let search = Search { matcher, limit, context, bounds: &bounds, cancel };
    let mut report = Report::new(limit);
    if metadata.is_file() {
        let found = search.file(&mut search.searcher(), &place);
        report.add(&bounds.shown(&place), found);
        return Ok(report.outcome());
    }
    let mut files = files(&place, glob.as_ref());
    while !report.is_full() && !cancel.is_set() {
        let batch: Vec<PathBuf> = files.by_ref().take(BATCH).collect();
        if batch.is_empty() {
            break;
        }
        let found: Vec<_> = batch
            .par_iter()
            .map_init(|| search.searcher(), |searcher, path| search.file(searcher, path))
            .collect();
        for (path, found) in batch.iter().zip(found) {
            report.add(&bounds.shown(path), found);
        }
    }
    Ok(report.outcome())
}

/// The regular files of a folder in the order of their paths. Links are left out: what they lead to is searched where it is.
fn files(folder: &Path, glob: Option<&Glob>) -> impl Iterator<Item = PathBuf> {
    walk(folder).filter_map(move |entry| {
        let entry = entry.ok()?;
        let relative = entry.path().strip_prefix(folder).ok()?;
        let is_wanted = entry.file_type()?.is_file() && glob.is_none_or(|glob| glob.matches(relative));
        is_wanted.then(|| entry.into_path())
    })
}

fn matcher(arguments: &Arguments) -> Result<RegexMatcher, Outcome> {
    if arguments.pattern.is_empty() {
        return Err(Outcome::failed("The pattern is empty: every line would match. Say what to look for."));
    }
    if arguments.pattern.contains('\n') {
        return Err(Outcome::failed(
            "The pattern has more than one line, and lines are searched one by one: search for one of them.",
        ));
    }
    let wrong = |error: &dyn Error| {
        let remedy = "To search for it as plain text, set literal: true.";
        Outcome::failed(format!("The pattern is no regular expression: {error}\n{remedy}"))
    };
    if !arguments.literal {
        // Parsed as it was given, so that the place of a mistake is told right: the builder puts it in a group.
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
