//! The tool `read`: a text file, page by page, or an image.

use std::borrow::Cow;
use std::sync::LazyLock;

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{FileObservation, LineRanges, ObservationKind};
use hardpan_prompt::{Image, MessagePart};
use hardpan_workspace::{ImageFileError, TextFile, UnreadableReason, read_open_image, read_open_text};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::declarations::load_declaration;
use crate::limits::{MAX_ANSWER_BYTES, append_notices, pluralize, truncate_line};
use crate::similar_names::missing_path;
use crate::tool::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome};
use crate::{Scope, ScopeError, blocking};

/// The most lines in an answer, unless the call sets `limit`.
pub(crate) const DEFAULT_LINES: usize = 2000;
/// The most characters shown of one line.
const MAX_LINE_CHARACTERS: usize = 2000;
/// How many bytes of a file `read` looks at. What comes after them only `grep` can reach.
pub(crate) const MAX_READ_BYTES: usize = 16 * 1024 * 1024;

/// The tool `read`: shows a text file page by page, or an image.
pub struct Read;

static DECLARATION: LazyLock<hardpan_prompt::Tool> =
    LazyLock::new(|| load_declaration("read", include_str!("../texts/read.toml")));

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

    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        CallSubject::of_argument(CallSubject::File, arguments, "path")
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::File
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        blocking::run(call, |arguments, scope, _| read(&arguments, scope))
    }
}

fn read(arguments: &Arguments, scope: &Scope) -> Result<ToolOutcome, ToolOutcome> {
    let place = scope.resolve_for_read(&arguments.path)?;
    let shown = scope.display_name(&place);
    let failed = |reason: UnreadableReason| match reason {
        UnreadableReason::Missing => missing_path(scope, &arguments.path, &place),
        UnreadableReason::Directory => ToolOutcome::failed(format!("{shown} is a folder: list it with ls.")),
        reason => match ScopeError::of_refused(reason, &arguments.path) {
            Ok(refused) => refused.into(),
            Err(reason) => ToolOutcome::failed(format!("{shown} {}", reason.model_text())),
        },
    };
    let file = scope.guard().open(&place).map_err(failed)?;
    let workspace_path = scope.workspace_path(&place);
    match read_open_text(&file, MAX_READ_BYTES) {
        Ok(text) => text_page(&shown, &text, file.metadata.len(), arguments, &workspace_path),
        Err(reason) => match (reason, read_open_image(&file, &place)) {
            (_, Ok(image)) => Ok(image_outcome(&shown, image, &workspace_path)),
            (_, Err(ImageFileError::Refused { error, .. })) => {
                Err(ToolOutcome::failed(format!("{shown} cannot be sent: {error}")))
            }
            (_, Err(ImageFileError::Damaged { media_type, .. })) => Err(ToolOutcome::failed(format!(
                "{shown} begins like {} but its size cannot be found: it is damaged or cut off",
                media_type.name()
            ))),
            (reason, _) => Err(failed(reason)),
        },
    }
}

/// The requested lines as they are in the file, with a notice that says how to continue.
fn text_page(
    shown: &str,
    file: &TextFile,
    bytes: u64,
    arguments: &Arguments,
    workspace_path: &str,
) -> Result<ToolOutcome, ToolOutcome> {
    let lines = file.text.split_inclusive('\n').count();
    let first = arguments.offset.max(1);
    if first > lines && first > 1 {
        return Err(ToolOutcome::failed(if file.truncation.is_some() {
            format!(
                "Line {first} of {shown} is beyond its first 16 MiB, where read ends: search it with grep."
            )
        } else {
            format!("{shown} has only {}: offset {first} is past its end.", pluralize(lines, "line", "lines"))
        }));
    }
    let mut body = String::new();
    let mut cut_lines = LineRanges::default();
    let mut next = first;
    let most = arguments.limit.unwrap_or(DEFAULT_LINES).max(1);
    for line in file.text.split_inclusive('\n').skip(first - 1).take(most) {
        let line = truncate_line(line, MAX_LINE_CHARACTERS);
        if !body.is_empty() && body.len() + line.len() > MAX_ANSWER_BYTES {
            break;
        }
        if matches!(line, Cow::Owned(_)) {
            cut_lines.add(&LineRanges::span(next as u64, next as u64));
        }
        body.push_str(&line);
        next += 1;
    }
    let last = next - 1;
    let mut notices = Vec::new();
    if lines == 0 {
        notices.push(format!("{shown} is empty"));
    } else if first > 1 || last < lines || file.truncation.is_some() {
        let more = if file.truncation.is_some() { "more than " } else { "" };
        notices.push(format!("lines {first}-{last} of {more}{lines}"));
    }
    if last < lines {
        notices.push(format!("go on with offset={next}"));
    } else if file.truncation.is_some() {
        notices.push(format!("the file has {bytes} bytes and read ends here: search the rest with grep"));
    }
    let mut ranges = LineRanges::span(first as u64, last as u64);
    ranges.remove(&cut_lines);
    // A file that is too long to be read whole has no hash of what the model saw.
    let observation = match file.truncation {
        None => FileObservation::of_text(workspace_path, ObservationKind::Shown, &file.text, ranges),
        Some(_) => FileObservation::of_unknown(workspace_path, ranges),
    };
    let details = json!({
        "path": workspace_path,
        "lines": observation.lines,
        "shown": [first, last],
        "bytes": bytes,
        "hash": observation.hash,
    });
    Ok(ToolOutcome::text(append_notices(body, &notices)).with_details(details).with_observation(observation))
}

fn image_outcome(shown: &str, image: Image, workspace_path: &str) -> ToolOutcome {
    let size = match (image.width, image.height) {
        (Some(width), Some(height)) => format!(", {width}x{height} pixels"),
        _ => String::new(),
    };
    let details = json!({
        "path": workspace_path,
        "media_type": image.media_type.name(),
        "width": image.width,
        "height": image.height,
    });
    let mut outcome = ToolOutcome::text(format!("{shown}: {}{size}", image.media_type.name()))
        .with_details(details)
        .with_observation(FileObservation::of_unknown(workspace_path, LineRanges::default()));
    outcome.content.push(MessagePart::Image(image));
    outcome
}

#[cfg(test)]
mod tests;
