//! `edit`: texts replaced where they occur exactly once.

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use hardpan_prompt::Json;
use serde::Deserialize;
use serde_json::json;

use crate::anchor::Folders;
use crate::change::{Changes, DIFF_KEPT, DIFF_SHOWN};
use crate::diff::change;
use crate::limits::counted;
use crate::nearest::missing;
use crate::texts::declare;
use crate::tool::{Call, Effect, Outcome, Tool};
use crate::{Scope, blocking};

mod diagnosis; // why an edit cannot be made, and what would help
mod lines; // line endings: texts are matched without regard to them, and keep them

use diagnosis::Diagnosis;
use lines::Document;
pub(crate) use lines::{Endings, MARK};

/// The tool `edit`.
pub(crate) struct Edit(pub Changes);

static DECLARATION: LazyLock<hardpan_prompt::Tool> = LazyLock::new(|| {
    let mut tool = declare("edit", include_str!("../texts/edit.toml"));
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

/// One text in place of another.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replacement {
    old_text: String,
    new_text: String,
}

impl Tool for Edit {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let changes = self.0.clone();
        blocking::run(call, move |arguments, scope, cancel| {
            changes.alone(cancel, || edit(&changes, arguments, scope))
        })
    }
}

fn edit(changes: &Changes, arguments: Arguments, scope: &Scope) -> Result<Outcome, Outcome> {
    let (path, edits) = wanted(arguments)?;
    let pending = changes.begin(scope, &path, Folders::Need)?;
    let shown = &pending.shown;
    let Some(found) = &pending.found else { return Err(missing(scope, &path, &pending.place)) };
    pending.not_changed_since_seen()?;
    let former = text(&found.bytes).map_err(|why| Outcome::failed(format!("{shown} {why}.")))?;
    let new = replaced(former, &edits).map_err(|why| Outcome::failed(refusal(shown, &why, edits.len())))?;

    let hash = pending.commit(new.as_bytes())?;
    let short = change(former, &new, DIFF_SHOWN);
    let details = json!({
        "path": pending.key,
        "diff": change(former, &new, DIFF_KEPT).diff,
        "first_changed_line": short.first_line,
        "hash": hash,
    });
    let count = counted(edits.len(), "place", "places");
    Ok(Outcome::text(format!("Edited {shown} in {count}:\n\n{}", short.diff)).with_details(details))
}

/// The edits that a call asks for, in either of the two forms.
fn wanted(arguments: Arguments) -> Result<(String, Vec<Replacement>), Outcome> {
    let Arguments { path, old_text, new_text, mut edits } = arguments;
    match (old_text, new_text) {
        (Some(old_text), Some(new_text)) => edits.insert(0, Replacement { old_text, new_text }),
        (None, None) => {}
        _ => return Err(Outcome::failed("Give old_text and new_text together; new_text may be empty.")),
    }
    if edits.is_empty() {
        return Err(Outcome::failed(
            "There is no edit in the call. Give old_text and new_text, or a list of edits.",
        ));
    }
    Ok((path, edits))
}

/// Whether the bytes begin with UTF-16's byte order mark.
pub(crate) fn is_utf16(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0xFF, 0xFE]) || bytes.starts_with(&[0xFE, 0xFF])
}

/// What the bytes say, if they are text that can be written back as it was.
fn text(bytes: &[u8]) -> Result<&str, String> {
    if is_utf16(bytes) {
        return Err("is UTF-16: convert it to UTF-8 first, for example with iconv".to_owned());
    }
    if let Some(offset) = bytes.iter().position(|&byte| byte == 0) {
        return Err(format!("is binary (byte {offset} is NUL): only text can be edited"));
    }
    std::str::from_utf8(bytes).map_err(|error| {
        format!(
            "is not UTF-8 (byte {} is the first wrong one): convert it, for example with iconv",
            error.valid_up_to()
        )
    })
}

/// Why edits cannot be made, and which one of them is to blame, from 0.
struct Refused {
    edit: usize,
    diagnosis: Diagnosis,
}

fn refusal(shown: &str, refused: &Refused, edits: usize) -> String {
    let diagnosis = &refused.diagnosis;
    match edits {
        1 => format!("{shown} was not changed. {diagnosis}"),
        _ => format!(
            "{shown} was not changed: edit {} of {edits} cannot be made. {diagnosis}",
            refused.edit + 1
        ),
    }
}

/// The text with all edits made. Every one is matched against the text as it was.
fn replaced(former: &str, edits: &[Replacement]) -> Result<String, Refused> {
    let document = Document::new(former);
    let mut places = Vec::new();
    for (edit, replacement) in edits.iter().enumerate() {
        let old = Document::new(&replacement.old_text).text;
        let new = Document::new(&replacement.new_text).text;
        let start =
            diagnosis::place(&document.text, &old, &new).map_err(|diagnosis| Refused { edit, diagnosis })?;
        places.push((start..start + old.len(), edit, new));
    }
    places.sort_by_key(|(range, edit, _)| (range.start, *edit));
    for pair in places.windows(2) {
        let [(before, one, _), (after, other, _)] = pair else { continue };
        if before.end > after.start {
            let (edit, with) = (*one.max(other), *one.min(other));
            return Err(Refused { edit, diagnosis: Diagnosis::Overlaps { with } });
        }
    }
    let mut result = String::with_capacity(former.len());
    let mut done = 0;
    for (range, _, new) in places {
        let raw = document.raw(range.start)..document.raw(range.end);
        result.push_str(&former[done..raw.start]);
        result.push_str(&document.endings_at(range).applied(&new));
        done = raw.end;
    }
    result.push_str(&former[done..]);
    Ok(result)
}

#[cfg(test)]
mod tests;
