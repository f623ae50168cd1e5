//! [`ApplyEditBlock`]: carries out one edit block, with the checks, the journal and the atomic
//! writes of `edit`.

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{FileKnowledge, ObservationKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::EditBlock;
use crate::anchored_file::MissingFolders;
use crate::diff::diff_texts;
use crate::edit::{EDIT_DECLARATION, EditError, decode_text, replace_lines};
use crate::file_change::{FileChanger, MAX_KEPT_DIFF_BYTES, MAX_SHOWN_DIFF_BYTES, PendingChange};
use crate::limits::pluralize;
use crate::similar_names::similar_names;
use crate::tool::{CallSubject, Effect, SubjectKind, Tool, ToolInvocation, ToolOutcome};
use crate::{Journal, Scope};

/// The most line numbers that are listed for lines that occur more than once.
const MAX_LISTED_LINES: usize = 20;

/// The field of an outcome's details that says how a block ended.
const STATUS: &str = "status";

/// How an edit block ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EditBlockStatus {
    /// The lines were replaced.
    Applied,
    /// The file was created.
    Created,
    /// The file has the new lines already; nothing was written.
    AlreadyApplied,
    /// The old lines are not in the file, or there is no such file.
    NotFound,
    /// The old lines are in the file more than once.
    Ambiguous,
    /// The model has not been shown the file.
    NotInContext,
    /// A block for a new file names a file that has content.
    Exists,
    /// The file changed since the model saw it.
    ChangedSince,
    /// The block itself is wrong: no path, no separator, no end.
    Malformed,
    /// A person, a rule or a handler did not allow it, or the run was stopped.
    NotAllowed,
    /// The file cannot be read or written.
    Failed,
}

impl EditBlockStatus {
    /// Whether the file is now as the block wants it.
    pub fn is_success(self) -> bool {
        use EditBlockStatus as Status;
        matches!(self, Status::Applied | Status::Created | Status::AlreadyApplied)
    }

    /// How the block of an outcome ended.
    pub fn of_outcome(outcome: &ToolOutcome) -> Self {
        let status = outcome.details.as_ref().and_then(|details| details.get(STATUS));
        let status = status.and_then(|status| EditBlockStatus::deserialize(status).ok());
        status.unwrap_or(EditBlockStatus::Failed)
    }
}

/// Carries out edit blocks. Approvals and events know it as `edit`; it is never declared to a model.
pub(crate) struct ApplyEditBlock(FileChanger);

/// What carries out the edit blocks of an answer. The arguments of a call are an [`EditBlock`]; the
/// outcome's status is [`EditBlockStatus::of_outcome`].
pub fn edit_block_tool(journal: Option<std::sync::Arc<Journal>>) -> std::sync::Arc<dyn Tool> {
    std::sync::Arc::new(ApplyEditBlock(FileChanger::new(journal)))
}

impl Tool for ApplyEditBlock {
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
        self.0.run_exclusively(call, |changer, block: EditBlock, scope, knowledge| {
            apply_block(changer, &block, scope, knowledge)
        })
    }
}

fn apply_block(
    changer: &FileChanger,
    block: &EditBlock,
    scope: &Scope,
    knowledge: &FileKnowledge,
) -> Result<ToolOutcome, ToolOutcome> {
    use EditBlockStatus as Status;
    let is_new = block.old_text.is_empty();
    let folders = if is_new { MissingFolders::Create } else { MissingFolders::Fail };
    let pending = changer
        .begin_change(scope, knowledge, &block.path, folders)
        .map_err(|outcome| with_status(outcome, Status::Failed))?;
    let shown = &pending.display_name;
    let Some(found) = &pending.found else {
        if !is_new {
            return Err(with_status(missing_file(scope, &pending), Status::NotFound));
        }
        return commit(&pending, "", &block.new_text, Status::Created);
    };
    let former = decode_text(&found.bytes)
        .map_err(|why| with_status(ToolOutcome::failed(format!("{shown} {why}.")), Status::Failed))?;
    if former == block.new_text {
        return Ok(already_applied(&pending, former, 1));
    }
    if !pending.was_seen() && !former.is_empty() {
        let why = format!("{shown} was not changed: you have not been shown it.");
        return Err(with_status(ToolOutcome::failed(why), Status::NotInContext));
    }
    pending.ensure_unchanged_since_seen().map_err(|outcome| with_status(outcome, Status::ChangedSince))?;
    if is_new && !former.is_empty() {
        let why = format!(
            "{shown} was not changed: it exists. Repeat the lines that are to be replaced in the upper part."
        );
        return Err(with_status(ToolOutcome::failed(why), Status::Exists));
    }
    if is_new {
        return commit(&pending, former, &block.new_text, Status::Applied);
    }
    match replace_lines(former, &block.old_text, &block.new_text) {
        Ok(new) => commit(&pending, former, &new, Status::Applied),
        Err(EditError::AlreadyApplied { line }) => Ok(already_applied(&pending, former, line)),
        Err(EditError::NoChange) => Ok(already_applied(&pending, former, 1)),
        Err(error) => {
            let (status, why) = explain(&error);
            let why = format!("{shown} was not changed. {why}");
            Err(with_status(ToolOutcome::failed(why), status))
        }
    }
}

/// The outcome for a file that is not there.
fn missing_file(scope: &Scope, pending: &PendingChange<'_>) -> ToolOutcome {
    let shown = &pending.display_name;
    let (folder, name) = (pending.place.parent(), pending.place.file_name());
    let near = folder.zip(name).map(|(folder, name)| {
        let names = similar_names(&scope.guard(), folder, &name.to_string_lossy());
        names.iter().map(|name| scope.display_name(&folder.join(name))).collect::<Vec<_>>()
    });
    let near = near.unwrap_or_default();
    let help = match &near[..] {
        [] => "A new file has an empty upper part.".to_owned(),
        near => format!("Nearest names: {}", near.join(", ")),
    };
    ToolOutcome::failed(format!("{shown} does not exist. {help}"))
}

fn commit(
    pending: &PendingChange<'_>,
    former: &str,
    new: &str,
    status: EditBlockStatus,
) -> Result<ToolOutcome, ToolOutcome> {
    let hash =
        pending.commit(new.as_bytes()).map_err(|outcome| with_status(outcome, EditBlockStatus::Failed))?;
    let short = diff_texts(former, new, MAX_SHOWN_DIFF_BYTES);
    let details = json!({
        "path": pending.workspace_path,
        "diff": diff_texts(former, new, MAX_KEPT_DIFF_BYTES).diff,
        "first_changed_line": short.first_line,
        "hash": hash,
    });
    let shown = &pending.display_name;
    let (text, observation) = match status {
        EditBlockStatus::Created => {
            let lines = pluralize(new.lines().count(), "line", "lines");
            let whole = pending.observe_whole(ObservationKind::Written, new);
            (format!("{shown} was created ({lines})."), whole)
        }
        _ => {
            let edited = pending.observe(ObservationKind::Edited, new, short.shown);
            (format!("{shown} was changed (from line {}).", short.first_line), edited)
        }
    };
    let outcome = ToolOutcome::text(text).with_details(details).with_observation(observation);
    Ok(with_status(outcome, status))
}

fn already_applied(pending: &PendingChange<'_>, former: &str, line: usize) -> ToolOutcome {
    let text = format!(
        "{} has these lines already (line {line} of {}); nothing was changed.",
        pending.display_name,
        former.lines().count()
    );
    let details = json!({"path": pending.workspace_path});
    with_status(ToolOutcome::text(text).with_details(details), EditBlockStatus::AlreadyApplied)
}

/// The status of a block that fits nowhere, and what would help.
fn explain(error: &EditError) -> (EditBlockStatus, String) {
    match error {
        EditError::Ambiguous { lines } => {
            let named: Vec<_> = lines.iter().take(MAX_LISTED_LINES).map(ToString::to_string).collect();
            let more = if lines.len() > MAX_LISTED_LINES { ", …" } else { "" };
            let (count, named) = (lines.len(), named.join(", "));
            let why = format!(
                "The upper part occurs {count} times (from lines {named}{more}). Add lines around the place you mean."
            );
            (EditBlockStatus::Ambiguous, why)
        }
        EditError::WhitespaceMismatch { line, text } => {
            let why = format!(
                "The upper part differs from the file only in white space. The exact lines, from line {line}:\n\n{text}\n"
            );
            (EditBlockStatus::NotFound, why)
        }
        EditError::NotFound { nearest: Some((line, text)) } => {
            let why = format!(
                "The upper part is not in the file. The nearest place, from line {line}:\n\n{text}\n"
            );
            (EditBlockStatus::NotFound, why)
        }
        EditError::NotFound { nearest: None } => {
            let why = "The upper part is not in the file, nor anything like it.".to_owned();
            (EditBlockStatus::NotFound, why)
        }
        other => (EditBlockStatus::Failed, other.to_string()),
    }
}

fn with_status(mut outcome: ToolOutcome, status: EditBlockStatus) -> ToolOutcome {
    let mut details = outcome.details.take().unwrap_or_else(|| json!({}));
    details[STATUS] = json!(status);
    outcome.with_details(details)
}
