//! `read`: a text file, page by page, or an image.

use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use hardpan_prompt::{Hash, Image, Part};
use hardpan_workspace::{ImageFileError, Reason, TextFile, open, read_image, read_text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::limits::{BYTES, counted, cut_end, with_notices};
use crate::nearest::missing;
use crate::scope::open_path;
use crate::texts::declare;
use crate::tool::{Call, Effect, Outcome, Tool};
use crate::{OutOfScope, Scope, blocking};

/// The most lines of one page, where nobody asks for fewer or more.
const LINES: usize = 2000;
/// The most characters of a line.
const LINE_CHARACTERS: usize = 2000;
/// How much of a file is looked at: what is behind is for `grep`.
const WHOLE: usize = 16 * 1024 * 1024;

/// The tool `read`.
pub struct Read;

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| declare("read", include_str!("../texts/read.toml")));

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    #[serde(default)]
    offset: usize,
    limit: Option<usize>,
}

impl Tool for Read {
    fn declaration(&self) -> &hardpan_prompt::Tool {
        &DECLARATION
    }

    fn effect(&self) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        blocking::run(call, |arguments, scope, _| read(&arguments, scope))
    }
}

fn read(arguments: &Arguments, scope: &Scope) -> Result<Outcome, Outcome> {
    let place = scope.to_read(&arguments.path)?;
    let shown = scope.shown(&place);
    let failed = |reason: Reason| match reason {
        Reason::Missing => missing(scope, &arguments.path, &place),
        Reason::Directory => Outcome::failed(format!("{shown} is a folder: list it with ls.")),
        reason => Outcome::failed(format!("{shown} {reason}")),
    };
    let (file, metadata) = open(&place).map_err(failed)?;
    if !scope.bounds().holds_open(&file, &place) {
        return Err(OutOfScope::Outside { path: arguments.path.clone() }.into());
    }
    let path = open_path(&file, &place);
    let details = json!({"path": scope.key(&place)});
    match read_text(&path, WHOLE) {
        Ok(text) => page(&shown, &text, metadata.len(), arguments, details),
        Err(error) => match (error.reason, read_image(&path)) {
            (_, Ok(image)) => Ok(picture(&shown, image, details)),
            (_, Err(ImageFileError::Refused { error, .. })) => {
                Err(Outcome::failed(format!("{shown} cannot be sent: {error}")))
            }
            (_, Err(ImageFileError::Damaged { media_type, .. })) => Err(Outcome::failed(format!(
                "{shown} begins like {} but its size cannot be found: it is damaged or cut off",
                media_type.name()
            ))),
            (reason, _) => Err(failed(reason)),
        },
    }
}

/// The lines that were asked for, as they are in the file, and how to go on.
fn page(
    shown: &str,
    file: &TextFile,
    bytes: u64,
    arguments: &Arguments,
    mut details: Value,
) -> Result<Outcome, Outcome> {
    let lines = file.text.split_inclusive('\n').count();
    let first = arguments.offset.max(1);
    if first > lines && first > 1 {
        return Err(Outcome::failed(if file.cut.is_some() {
            format!(
                "Line {first} of {shown} is beyond its first 16 MiB, where read ends: search it with grep."
            )
        } else {
            format!("{shown} has only {}: offset {first} is past its end.", counted(lines, "line", "lines"))
        }));
    }
    let mut body = String::new();
    let mut next = first;
    let most = arguments.limit.unwrap_or(LINES).max(1);
    for line in file.text.split_inclusive('\n').skip(first - 1).take(most) {
        let line = cut_end(line, LINE_CHARACTERS);
        if !body.is_empty() && body.len() + line.len() > BYTES {
            break;
        }
        body.push_str(&line);
        next += 1;
    }
    let last = next - 1;
    let mut notices = Vec::new();
    if lines == 0 {
        notices.push(format!("{shown} is empty"));
    } else if first > 1 || last < lines || file.cut.is_some() {
        let more = if file.cut.is_some() { "more than " } else { "" };
        notices.push(format!("lines {first}-{last} of {more}{lines}"));
    }
    if last < lines {
        notices.push(format!("go on with offset={next}"));
    } else if file.cut.is_some() {
        notices.push(format!("the file has {bytes} bytes and read ends here: search the rest with grep"));
    }
    details["lines"] = if file.cut.is_some() { Value::Null } else { json!(lines) };
    details["shown"] = json!([first, last]);
    details["bytes"] = json!(bytes);
    // Of a file that is too long to be held, nobody can say what was seen.
    details["hash"] = if file.cut.is_some() { Value::Null } else { json!(Hash::of(file.text.as_bytes())) };
    Ok(Outcome::text(with_notices(body, &notices)).with_details(details))
}

fn picture(shown: &str, image: Image, mut details: Value) -> Outcome {
    let size = match (image.width, image.height) {
        (Some(width), Some(height)) => format!(", {width}x{height} pixels"),
        _ => String::new(),
    };
    details["media_type"] = json!(image.media_type.name());
    details["width"] = json!(image.width);
    details["height"] = json!(image.height);
    let line = Part::text(format!("{shown}: {}{size}", image.media_type.name()));
    Outcome { content: vec![line, Part::Image(image)], details: Some(details), is_error: false }
}

#[cfg(test)]
mod tests;
