//! The tool `ls`: the names in one folder.

use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::path::Path;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Scope;
use crate::blocking::{self, CancelFlag};
use crate::declarations::load_declaration;
use crate::limits::{LimitedLines, MAX_ANSWER_BYTES, escape_line_ends, pluralize};
use crate::similar_names::require_existing;
use crate::tool::{Effect, Tool, ToolInvocation, ToolOutcome};

/// The most names in an answer, unless the call sets `limit`.
const DEFAULT_LIMIT: usize = 500;

/// The tool `ls`: lists one folder; folders end in `/`, links show their target.
pub struct Ls;

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("ls", include_str!("../texts/ls.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
    limit: Option<usize>,
}

impl Tool for Ls {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        blocking::run(call, |arguments, scope, cancel| list_folder(&arguments, scope, cancel))
    }
}

fn list_folder(
    arguments: &Arguments,
    scope: &Scope,
    cancel: &CancelFlag,
) -> Result<ToolOutcome, ToolOutcome> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let place = scope.resolve_for_read(path)?;
    let shown = scope.display_name(&place);
    if !require_existing(scope, path, &place)?.is_dir() {
        return Err(ToolOutcome::failed(format!("{shown} is a file: show it with read.")));
    }
    // An answer cannot hold more names than bytes.
    let limit = arguments.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_ANSWER_BYTES);
    let listed = list_names(&place, limit, cancel)
        .map_err(|error| ToolOutcome::failed(format!("{shown} cannot be listed: {error}")))?;
    let mut lines = LimitedLines::new(limit);
    for (_, line) in &listed.first {
        if lines.push(line).is_err() {
            break;
        }
    }
    let mut notices = Vec::new();
    if listed.total == 0 {
        notices.push("an empty folder".to_owned());
    }
    if lines.count < listed.total {
        let hint = "raise limit, or use find with a pattern";
        notices.push(format!("{} of {}; {hint}", lines.count, pluralize(listed.total, "name", "names")));
    }
    let details = json!({"path": scope.workspace_path(&place), "names": listed.total, "shown": lines.count});
    Ok(ToolOutcome::text(lines.append_notices(&notices)).with_details(details))
}

struct FolderListing {
    /// The first names and the lines that show them, sorted by the bytes of the names.
    first: Vec<(OsString, String)>,
    total: usize,
}

/// Reads a folder, keeping no more than `limit` names in memory: it may have millions.
fn list_names(folder: &Path, limit: usize, cancel: &CancelFlag) -> std::io::Result<FolderListing> {
    let mut first: BinaryHeap<(OsString, String)> = BinaryHeap::new();
    let mut total = 0;
    for entry in folder.read_dir()? {
        if cancel.is_set() {
            break;
        }
        let Ok(entry) = entry else { continue }; // it vanished
        total += 1;
        let name = entry.file_name();
        let is_last = first.len() == limit && first.peek().is_some_and(|(last, _)| name > *last);
        if !is_last {
            let line = format_entry(&entry);
            first.push((name, line));
        }
        if first.len() > limit {
            first.pop();
        }
    }
    Ok(FolderListing { first: first.into_sorted_vec(), total })
}

fn format_entry(entry: &DirEntry) -> String {
    let name = entry.file_name();
    let name = escape_line_ends(&name.to_string_lossy()).into_owned();
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => name + "/",
        Ok(kind) if kind.is_symlink() => match entry.path().read_link() {
            Ok(target) => format!("{name} -> {}", escape_line_ends(&target.to_string_lossy())),
            Err(_) => name,
        },
        _ => name,
    }
}

#[cfg(test)]
mod tests;
