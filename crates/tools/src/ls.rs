//! The tool `ls`: the names in one folder.

use std::collections::BinaryHeap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use hardpan_workspace::{EntryKind, folder_names};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::blocking::{self, CancelFlag};
use crate::declarations::load_declaration;
use crate::limits::{LimitedLines, MAX_ANSWER_BYTES, escape_line_ends, pluralize};
use crate::similar_names::require_existing;
use crate::tool::{Effect, Tool, ToolInvocation, ToolOutcome};
use crate::{Scope, ScopeError};

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
    let folder = scope.guard().open_folder(&place).map_err(|reason| {
        ScopeError::of_refused(reason, path).map_or_else(
            |reason| {
                let error = std::io::Error::from(reason);
                ToolOutcome::failed(format!("{shown} cannot be listed: {error}"))
            },
            ToolOutcome::from,
        )
    })?;
    let listed = list_names(&folder, limit, cancel)
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
fn list_names(folder: &File, limit: usize, cancel: &CancelFlag) -> std::io::Result<FolderListing> {
    let mut first: BinaryHeap<(OsString, String)> = BinaryHeap::new();
    let mut total = 0;
    for (name, kind) in folder_names(folder)? {
        if cancel.is_set() {
            break;
        }
        total += 1;
        let is_last = first.len() == limit && first.peek().is_some_and(|(last, _)| name > *last);
        if !is_last {
            let line = format_entry(folder, &name, kind);
            first.push((name, line));
        }
        if first.len() > limit {
            first.pop();
        }
    }
    Ok(FolderListing { first: first.into_sorted_vec(), total })
}

fn format_entry(folder: &File, name: &OsStr, kind: EntryKind) -> String {
    let shown = escape_line_ends(&name.to_string_lossy()).into_owned();
    match kind {
        EntryKind::Folder => shown + "/",
        EntryKind::Link => match rustix::fs::readlinkat(folder, name, Vec::new()) {
            Ok(target) => {
                let target = OsStr::from_bytes(target.as_bytes()).to_string_lossy();
                format!("{shown} -> {}", escape_line_ends(&target))
            }
            Err(_) => shown,
        },
        EntryKind::File | EntryKind::Special(_) => shown,
    }
}

#[cfg(test)]
mod tests;
