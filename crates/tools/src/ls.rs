//! `ls`: the names in one folder.

use std::collections::BinaryHeap;
use std::ffi::OsString;
use std::fs::DirEntry;
use std::path::Path;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::Scope;
use crate::blocking::{self, Cancel};
use crate::limits::{BYTES, Lines, counted, one_line};
use crate::nearest::existing;
use crate::texts::declare;
use crate::tool::{Call, Effect, Outcome, Tool};

/// The most names, where nobody asks for fewer or more.
const LIMIT: usize = 500;

/// The tool `ls`.
pub struct Ls;

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| declare("ls", include_str!("../texts/ls.toml")));

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

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        blocking::run(call, |arguments, scope, cancel| list(&arguments, scope, cancel))
    }
}

fn list(arguments: &Arguments, scope: &Scope, cancel: &Cancel) -> Result<Outcome, Outcome> {
    let path = arguments.path.as_deref().unwrap_or(".");
    let place = scope.to_read(path)?;
    let shown = scope.shown(&place);
    if !existing(scope, path, &place)?.is_dir() {
        return Err(Outcome::failed(format!("{shown} is a file: show it with read.")));
    }
    // No answer holds more names than bytes.
    let limit = arguments.limit.unwrap_or(LIMIT).clamp(1, BYTES);
    let listed = names(&place, limit, cancel)
        .map_err(|error| Outcome::failed(format!("{shown} cannot be listed: {error}")))?;
    let mut lines = Lines::new(limit);
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
        notices.push(format!("{} of {}; {hint}", lines.count, counted(listed.total, "name", "names")));
    }
    let details = json!({"path": scope.key(&place), "names": listed.total, "shown": lines.count});
    Ok(Outcome::text(lines.with_notices(&notices)).with_details(details))
}

struct Names {
    /// Those that come first, with their lines, sorted by the bytes of their names.
    first: Vec<(OsString, String)>,
    total: usize,
}

/// Reads a folder, holding no more names than are to be shown: it may have millions.
fn names(folder: &Path, limit: usize, cancel: &Cancel) -> std::io::Result<Names> {
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
            let line = line_of(&entry);
            first.push((name, line));
        }
        if first.len() > limit {
            first.pop();
        }
    }
    Ok(Names { first: first.into_sorted_vec(), total })
}

fn line_of(entry: &DirEntry) -> String {
    let name = entry.file_name();
    let name = one_line(&name.to_string_lossy()).into_owned();
    match entry.file_type() {
        Ok(kind) if kind.is_dir() => name + "/",
        Ok(kind) if kind.is_symlink() => match entry.path().read_link() {
            Ok(target) => format!("{name} -> {}", one_line(&target.to_string_lossy())),
            Err(_) => name,
        },
        _ => name,
    }
}

#[cfg(test)]
mod tests;
