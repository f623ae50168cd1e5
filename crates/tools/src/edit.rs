//! The tool `edit`: replaces texts that occur exactly once in a file.

use std::str::Utf8Error;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{FileKnowledge, ObservationKind};
use hardpan_prompt::Json;
use serde::Deserialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::Scope;
use crate::anchored_file::MissingFolders;
use crate::declarations::load_declaration;
use crate::diff::diff_texts;
use crate::file_change::{FileChanger, MAX_KEPT_DIFF_BYTES, MAX_SHOWN_DIFF_BYTES};
use crate::limits::pluralize;
use crate::similar_names::missing_path;
use crate::tool::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome};

mod line_endings; // LineEndings: edits match regardless of them, and keep them
mod locate; // EditError: why an edit cannot be made, and what would help

use line_endings::NormalizedText;
pub(crate) use line_endings::{BYTE_ORDER_MARK, LineEndings};
pub(crate) use locate::EditError;

/// The tool `edit`. All edits of a call are made, or none.
pub(crate) struct Edit(pub FileChanger);

/// What models read about `edit`; approvals and events know edit blocks by its name, too.
pub(crate) static EDIT_DECLARATION: LazyLock<hardpan_prompt::Tool> = LazyLock::new(|| {
    let mut tool = load_declaration("edit", include_str!("../texts/edit.toml"));
    let mut schema = tool.parameters.value();
    let text = json!({"type": "string"});
    schema["properties"]["edits"]["items"] = json!({
        "type": "object",
        "properties": {"old_text": text, "new_text": text},
        "required": ["old_text", "new_text"],
    });
    tool.parameters = Json::new(&schema);
    tool
});

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    old_text: Option<String>,
    new_text: Option<String>,
    #[serde(default)]
    edits: Vec<Replacement>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    old_text: String,
    new_text: String,
}

impl Tool for Edit {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &EDIT_DECLARATION
    }

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Changes
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        CallSubject::of_argument(CallSubject::File, arguments, "path")
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::File
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        self.0.run_exclusively(call, edit)
    }
}

fn edit(
    changer: &FileChanger,
    arguments: Arguments,
    scope: &Scope,
    knowledge: &FileKnowledge,
) -> Result<ToolOutcome, ToolOutcome> {
    let (path, edits) = requested_edits(arguments)?;
    let pending = changer.begin_change(scope, knowledge, &path, MissingFolders::Fail)?;
    let shown = &pending.display_name;
    let Some(found) = &pending.found else { return Err(missing_path(scope, &path, &pending.place)) };
    pending.ensure_unchanged_since_seen()?;
    let former = decode_text(&found.bytes).map_err(|why| ToolOutcome::failed(format!("{shown} {why}.")))?;
    let new = apply_edits(former, &edits)
        .map_err(|why| ToolOutcome::failed(rejection_message(shown, &why, edits.len())))?;

    let hash = pending.commit(new.as_bytes())?;
    let short = diff_texts(former, &new, MAX_SHOWN_DIFF_BYTES);
    let details = json!({
        "path": pending.workspace_path,
        "diff": diff_texts(former, &new, MAX_KEPT_DIFF_BYTES).diff,
        "first_changed_line": short.first_line,
        "hash": hash,
    });
    let count = pluralize(edits.len(), "place", "places");
    let observation = pending.observe(ObservationKind::Edited, &new, short.shown);
    Ok(ToolOutcome::text(format!("Edited {shown} in {count}:\n\n{}", short.diff))
        .with_details(details)
        .with_observation(observation))
}

/// The path and the edits of a call, which come as `old_text` and `new_text`, as a list, or both.
fn requested_edits(arguments: Arguments) -> Result<(String, Vec<Replacement>), ToolOutcome> {
    let Arguments { path, old_text, new_text, mut edits } = arguments;
    match (old_text, new_text) {
        (Some(old_text), Some(new_text)) => edits.insert(0, Replacement { old_text, new_text }),
        (None, None) => {}
        _ => return Err(ToolOutcome::failed("Give old_text and new_text together; new_text may be empty.")),
    }
    if edits.is_empty() {
        return Err(ToolOutcome::failed(
            "There is no edit in the call. Give old_text and new_text, or a list of edits.",
        ));
    }
    Ok((path, edits))
}

/// Whether the bytes begin with UTF-16's byte order mark.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF])
}

/// The content as text. Fails if it is not UTF-8 without NUL bytes, because it could not be written
/// back unchanged.
pub(crate) fn decode_text(bytes: &[u8]) -> Result<&str, NotEditable> {
    if is_utf16(bytes) {
        return Err(NotEditable::Utf16);
    }
    if let Some(offset) = memchr::memchr(0, bytes) {
        return Err(NotEditable::Binary { offset });
    }
    std::str::from_utf8(bytes).map_err(NotEditable::NotUtf8)
}

/// Why a file cannot be edited. The model reads the text after the file's name.
#[derive(Debug, Error)]
pub(crate) enum NotEditable {
    #[error("is UTF-16: convert it to UTF-8 first, for example with iconv")]
    Utf16,
    #[error("is binary (byte {offset} is NUL): only text can be edited")]
    Binary { offset: usize },
    #[error("is not UTF-8 (byte {} is the first wrong one): convert it, for example with iconv", .0.valid_up_to())]
    NotUtf8(#[source] Utf8Error),
}

/// The edit (by its index, from 0) because of which a call changes nothing.
struct RejectedEdit {
    edit: usize,
    error: EditError,
}

fn rejection_message(shown: &str, rejected: &RejectedEdit, edits: usize) -> String {
    let error = &rejected.error;
    match edits {
        1 => format!("{shown} was not changed. {error}"),
        _ => {
            format!("{shown} was not changed: edit {} of {edits} cannot be made. {error}", rejected.edit + 1)
        }
    }
}

/// The text with all edits made. Every edit is matched against the text as it was before the call.
fn apply_edits(former: &str, edits: &[Replacement]) -> Result<String, RejectedEdit> {
    let document = NormalizedText::new(former);
    let mut places = Vec::new();
    for (edit, replacement) in edits.iter().enumerate() {
        let old = NormalizedText::new(&replacement.old_text).text;
        let new = NormalizedText::new(&replacement.new_text).text;
        let start =
            locate::locate_text(&document.text, &old, &new).map_err(|error| RejectedEdit { edit, error })?;
        places.push((start..start + old.len(), edit, new));
    }
    places.sort_by_key(|(range, edit, _)| (range.start, *edit));
    for pair in places.windows(2) {
        let [(before, one, _), (after, other, _)] = pair else { continue };
        if before.end > after.start {
            let (edit, with) = (*one.max(other), *one.min(other));
            return Err(RejectedEdit { edit, error: EditError::OverlappingEdits { with } });
        }
    }
    let mut result = String::with_capacity(former.len());
    let mut done = 0;
    for (range, _, new) in places {
        let raw = document.raw_offset(range.start)..document.raw_offset(range.end);
        result.push_str(&former[done..raw.start]);
        result.push_str(&document.endings_at(range).apply_to(&new));
        done = raw.end;
    }
    result.push_str(&former[done..]);
    Ok(result)
}

/// The text with whole lines replaced, which must be in it exactly once. The last line of a text need
/// not end with a line feed.
pub(crate) fn replace_lines(former: &str, old: &str, new: &str) -> Result<String, EditError> {
    let document = NormalizedText::new(former);
    let mut old = NormalizedText::new(old).text;
    let mut new = NormalizedText::new(new).text;
    let is_open_end = !document.text.ends_with('\n')
        && old.strip_suffix('\n').is_some_and(|lines| document.text.ends_with(lines));
    if is_open_end && !document.text.contains(&old) {
        old.pop();
        new.truncate(new.strip_suffix('\n').map_or(new.len(), str::len));
    }
    let start = locate::locate_lines(&document.text, &old, &new)?;
    let range = start..start + old.len();
    let raw = document.raw_offset(range.start)..document.raw_offset(range.end);
    let new = document.endings_at(range).apply_to(&new);
    Ok([&former[..raw.start], &new, &former[raw.end..]].concat())
}

#[cfg(test)]
mod tests;
