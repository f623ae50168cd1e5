//! `write`: a whole file.

use std::borrow::Cow;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::json;

use crate::anchor::Folders;
use crate::change::{Changes, DIFF_KEPT};
use crate::diff::change;
use crate::edit::{Endings, MARK, is_utf16};
use crate::limits::counted;
use crate::texts::declare;
use crate::tool::{Call, Effect, Outcome, Tool};
use crate::{Scope, blocking};

/// The tool `write`.
pub(crate) struct Write(pub Changes);

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| declare("write", include_str!("../texts/write.toml")));

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

    fn effect(&self) -> Effect {
        Effect::Changes
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let changes = self.0.clone();
        blocking::run(call, move |arguments, scope, cancel| {
            changes.alone(cancel, || write(&changes, &arguments, scope))
        })
    }
}

fn write(changes: &Changes, arguments: &Arguments, scope: &Scope) -> Result<Outcome, Outcome> {
    let pending = changes.begin(scope, &arguments.path, Folders::Make)?;
    let (shown, content) = (&pending.shown, &arguments.content);
    let Some(found) = &pending.found else {
        let hash = pending.commit(content.as_bytes())?;
        let diff = change("", content, DIFF_KEPT).diff;
        let details = json!({"path": pending.key, "diff": diff, "hash": hash});
        return Ok(Outcome::text(format!("Created {shown} ({}).", lines(content))).with_details(details));
    };

    let former = String::from_utf8_lossy(&found.bytes);
    let content = fitted(content, &former);
    if content.as_bytes() == found.bytes {
        changes.seen.note_content(&pending.place, &found.bytes);
        return Ok(Outcome::text(format!("{shown} already has this content; nothing was written.")));
    }
    if is_utf16(&found.bytes) {
        return Err(Outcome::failed(format!(
            "{shown} is UTF-16: convert it to UTF-8 first, for example with iconv."
        )));
    }
    pending.not_changed_since_seen()?;
    // What is empty can be overwritten without loss.
    if pending.seen().is_none() && !found.bytes.is_empty() {
        return Err(Outcome::failed(format!(
            "{shown} exists and you have not read it; nothing was written. Read it first, or choose another name."
        )));
    }
    let hash = pending.commit(content.as_bytes())?;
    let diff = change(&former, &content, DIFF_KEPT).diff;
    let answer = format!("Overwrote {shown} ({}, was {}).", lines(&content), lines(&former));
    Ok(Outcome::text(answer).with_details(json!({"path": pending.key, "diff": diff, "hash": hash})))
}

/// The content with the line endings and the byte order mark of what it replaces.
fn fitted<'a>(content: &'a str, former: &str) -> Cow<'a, str> {
    let mut content = Cow::Borrowed(content);
    if Endings::of(former) == Endings::CrLf && Endings::of(&content) == Endings::Lf {
        content = Cow::Owned(Endings::CrLf.applied(&content));
    }
    if former.starts_with(MARK) && !content.starts_with(MARK) {
        content.to_mut().insert(0, MARK);
    }
    content
}

fn lines(text: &str) -> String {
    counted(text.lines().count(), "line", "lines")
}

#[cfg(test)]
mod tests;
