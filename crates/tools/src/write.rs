//! The tool `write`: creates or overwrites a whole file.

use std::borrow::Cow;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{FileKnowledge, ObservationKind};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Scope;
use crate::anchored_file::MissingFolders;
use crate::declarations::load_declaration;
use crate::diff::diff_texts;
use crate::edit::{BYTE_ORDER_MARK, LineEndings, is_utf16};
use crate::file_change::{FileChanger, MAX_KEPT_DIFF_BYTES};
use crate::limits::pluralize;
use crate::tool::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome};

/// The tool `write`. It refuses to overwrite a file that the model has not read, or that changed
/// since.
pub(crate) struct Write(pub FileChanger);

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("write", include_str!("../texts/write.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

impl Tool for Write {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
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
        self.0.run_exclusively(call, |changer, arguments, scope, knowledge| {
            write(changer, &arguments, scope, knowledge)
        })
    }
}

fn write(
    changer: &FileChanger,
    arguments: &Arguments,
    scope: &Scope,
    knowledge: &FileKnowledge,
) -> Result<ToolOutcome, ToolOutcome> {
    let pending = changer.begin_change(scope, knowledge, &arguments.path, MissingFolders::Create)?;
    let (shown, content) = (&pending.display_name, &arguments.content);
    let Some(found) = &pending.found else {
        let hash = pending.commit(content.as_bytes())?;
        let diff = diff_texts("", content, MAX_KEPT_DIFF_BYTES).diff;
        let details = json!({"path": pending.workspace_path, "diff": diff, "hash": hash});
        return Ok(ToolOutcome::text(format!("Created {shown} ({}).", line_count(content)))
            .with_details(details)
            .with_observation(pending.observe_whole(ObservationKind::Written, content)));
    };

    let former = String::from_utf8_lossy(&found.bytes);
    let content = keep_file_format(content, &former);
    if content.as_bytes() == found.bytes {
        return Ok(ToolOutcome::text(format!("{shown} already has this content; nothing was written."))
            .with_observation(pending.observe_whole(ObservationKind::Confirmed, &content)));
    }
    if is_utf16(&found.bytes) {
        return Err(ToolOutcome::failed(format!(
            "{shown} is UTF-16: convert it to UTF-8 first, for example with iconv."
        )));
    }
    pending.ensure_unchanged_since_seen()?;
    // An empty file can be overwritten without loss.
    if !pending.was_seen() && !found.bytes.is_empty() {
        return Err(ToolOutcome::failed(format!(
            "{shown} exists and you have not read it; nothing was written. Read it first, or choose another name."
        )));
    }
    let hash = pending.commit(content.as_bytes())?;
    let diff = diff_texts(&former, &content, MAX_KEPT_DIFF_BYTES).diff;
    let answer = format!("Overwrote {shown} ({}, was {}).", line_count(&content), line_count(&former));
    Ok(ToolOutcome::text(answer)
        .with_details(json!({"path": pending.workspace_path, "diff": diff, "hash": hash}))
        .with_observation(pending.observe_whole(ObservationKind::Written, &content)))
}

/// The new content with the line endings and the byte order mark of the former one.
fn keep_file_format<'a>(content: &'a str, former: &str) -> Cow<'a, str> {
    let mut content = Cow::Borrowed(content);
    if LineEndings::detect(former) == LineEndings::CrLf && LineEndings::detect(&content) == LineEndings::Lf {
        content = Cow::Owned(LineEndings::CrLf.apply_to(&content));
    }
    if former.starts_with(BYTE_ORDER_MARK) && !content.starts_with(BYTE_ORDER_MARK) {
        content.to_mut().insert(0, BYTE_ORDER_MARK);
    }
    content
}

fn line_count(text: &str) -> String {
    pluralize(text.lines().count(), "line", "lines")
}

#[cfg(test)]
mod tests;
