//! The tool `find`: files and folders by name.

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use hardpan_workspace::{EntryKind, walk};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Scope;
use crate::blocking::{self, CancelFlag};
use crate::declarations::load_declaration;
use crate::glob::Glob;
use crate::limits::{LimitReached, LimitedLines, pluralize};
use crate::similar_names::require_existing;
use crate::tool::{Effect, Tool, ToolInvocation, ToolOutcome};

/// The most paths in an answer, unless the call sets `limit`.
const DEFAULT_LIMIT: usize = 1000;

/// The tool `find`: lists paths that match a glob, without those that git ignores.
pub struct Find;

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("find", include_str!("../texts/find.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    pattern: String,
    path: Option<String>,
    limit: Option<usize>,
}

impl Tool for Find {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        blocking::run(call, |arguments, scope, cancel| find(&arguments, scope, cancel))
    }
}

fn find(arguments: &Arguments, scope: &Scope, cancel: &CancelFlag) -> Result<ToolOutcome, ToolOutcome> {
    let glob = Glob::new(&arguments.pattern)?;
    let path = arguments.path.as_deref().unwrap_or(".");
    let folder = scope.resolve_for_read(path)?;
    if !require_existing(scope, path, &folder)?.is_dir() {
        return Err(ToolOutcome::failed(format!(
            "{} is a file: name a folder.",
            scope.display_name(&folder)
        )));
    }
    let resolved = scope.resolved();
    let mut lines = LimitedLines::new(arguments.limit.unwrap_or(DEFAULT_LIMIT).max(1));
    let (mut looked_at, mut unreadable, mut full) = (0, 0, None);
    for entry in walk(&resolved.guard, &folder) {
        if cancel.is_set() {
            break;
        }
        let Ok(entry) = entry else {
            unreadable += 1;
            continue;
        };
        if entry.depth == 0 {
            continue;
        }
        looked_at += 1;
        if !entry.path.strip_prefix(&folder).is_ok_and(|path| glob.matches(path)) {
            continue;
        }
        let is_folder = entry.kind == EntryKind::Folder;
        let line = resolved.display_name(&entry.path) + if is_folder { "/" } else { "" };
        if let Err(limit) = lines.push(&line) {
            full = Some(limit);
            break;
        }
    }
    let mut notices = Vec::new();
    match full {
        Some(LimitReached::Lines) => {
            notices.push(format!("the first {}; narrow pattern or path, or raise limit", lines.count));
        }
        Some(LimitReached::Bytes) => {
            notices.push(format!("the first {}, 50 KB; narrow pattern or path", lines.count));
        }
        None if lines.count == 0 => {
            let looked = pluralize(looked_at, "path", "paths");
            notices.push(format!("nothing matches; {looked} looked at, without what git ignores"));
        }
        None => {}
    }
    if unreadable > 0 {
        notices.push(format!("{} could not be read", pluralize(unreadable, "folder", "folders")));
    }
    let details = json!({"paths": lines.count, "cut": full.is_some(), "unreadable": unreadable});
    Ok(ToolOutcome::text(lines.append_notices(&notices)).with_details(details))
}

#[cfg(test)]
mod tests;
