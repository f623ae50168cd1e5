//! [`FileChanger`]: how `write` and `edit` change a file: checked against what the model has seen,
//! journalled first, atomically, one change at a time.

use std::path::PathBuf;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{FileKnowledge, FileObservation, LineRanges, ObservationKind, SeenContent};
use hardpan_prompt::Hash;
use hardpan_workspace::decode_text;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::anchored_file::{AnchoredFile, FileChangeError, FileContent, MissingFolders};
use crate::blocking::{self, CancelFlag};
use crate::diff::{DiffExtent, diff_texts};
use crate::edit::BYTE_ORDER_MARK;
use crate::similar_names::missing_path;
use crate::tool::ToolInvocation;
use crate::{Journal, Scope, ToolOutcome};

/// The most bytes of a diff in an answer to the model: some 60 lines.
pub(crate) const MAX_SHOWN_DIFF_BYTES: usize = 4 * 1024;

/// The most bytes of a diff in the details of an answer, which people see.
pub(crate) const MAX_KEPT_DIFF_BYTES: usize = 64 * 1024;

/// What `write` and `edit` share.
#[derive(Clone, Debug)]
pub(crate) struct FileChanger {
    journal: Option<Arc<Journal>>,
    /// The permit to change a file: calls may run in parallel, changes do not.
    permit: Arc<Semaphore>,
}

/// A file that is about to be changed, as it is now.
pub(crate) struct PendingChange<'a> {
    changer: &'a FileChanger,
    anchored: AnchoredFile,
    /// Absolute path, links resolved.
    pub place: PathBuf,
    /// The name used in answers, see [`Scope::display_name`].
    pub display_name: String,
    /// Path relative to the workspace root, see [`Scope::workspace_path`].
    pub workspace_path: String,
    /// The current content. `None` where there is no file.
    pub found: Option<FileContent>,
    /// What the model has seen last of the file.
    seen: Option<SeenContent>,
}

impl FileChanger {
    pub fn new(journal: Option<Arc<Journal>>) -> Self {
        FileChanger { journal, permit: Arc::new(Semaphore::new(1)) }
    }

    /// Runs `work` on a thread that may block, while no other change runs, unless the call was
    /// cancelled meanwhile.
    pub fn run_exclusively<'a, A, W>(&self, call: ToolInvocation<'a>, work: W) -> BoxFuture<'a, ToolOutcome>
    where
        A: DeserializeOwned + Send + 'static,
        W: FnOnce(&FileChanger, A, &Scope, &FileKnowledge) -> Result<ToolOutcome, ToolOutcome>
            + Send
            + 'static,
    {
        let changer = self.clone();
        Box::pin(async move {
            // The semaphore is never closed.
            let permit = changer.permit.clone().acquire_owned().await.ok();
            let knowledge = call.knowledge.clone();
            let change = move |arguments: A, scope: &Scope, cancel: &CancelFlag| {
                let _permit = permit;
                if cancel.is_set() {
                    return Err(ToolOutcome::failed("The call was given up before anything was changed."));
                }
                work(&changer, arguments, scope, &knowledge)
            };
            blocking::run(call, change).await
        })
    }

    /// Checks that a path may be written, and reads what is there.
    pub fn begin_change(
        &self,
        scope: &Scope,
        knowledge: &FileKnowledge,
        path: &str,
        folders: MissingFolders,
    ) -> Result<PendingChange<'_>, ToolOutcome> {
        let place = scope.resolve_for_write(path)?;
        let (display_name, workspace_path) = (scope.display_name(&place), scope.workspace_path(&place));
        let guard = scope.guard();
        let anchored = match guard.root_folder() {
            Some(root) => AnchoredFile::open_below(root, &place, folders),
            None => AnchoredFile::open(&place, folders),
        };
        let opened = anchored.and_then(|anchored| Ok((anchored.read_guarded(&guard, &place)?, anchored)));
        match opened {
            Ok((found, anchored)) => {
                // The context may show the file by the name of a link.
                let named = scope.named_path(path);
                let seen =
                    knowledge.last_seen(&workspace_path).or_else(|| knowledge.last_seen(&named)).cloned();
                Ok(PendingChange {
                    changer: self,
                    anchored,
                    place,
                    display_name,
                    workspace_path,
                    found,
                    seen,
                })
            }
            Err(FileChangeError::NoFolder) => Err(missing_path(scope, path, &place)),
            Err(error) => Err(ToolOutcome::failed(format!("{display_name} {error}."))),
        }
    }
}

impl PendingChange<'_> {
    /// Whether the model has seen the file, as it is now or as it was.
    pub fn was_seen(&self) -> bool {
        self.seen.is_some()
    }

    /// Fails with a diff if the file changed since the model last saw it. A diff that is shown in
    /// full counts as having seen the new content.
    pub fn ensure_unchanged_since_seen(&self) -> Result<(), ToolOutcome> {
        let (Some(seen), Some(found)) = (&self.seen, &self.found) else { return Ok(()) };
        let now = decode_text(&found.bytes).ok();
        if seen.hash == now.as_ref().map_or_else(|| Hash::of(&found.bytes), |now| Hash::of(now.as_bytes())) {
            return Ok(());
        }
        let shown = &self.display_name;
        let Some((old, new)) = seen.text.as_deref().zip(now.as_deref()) else {
            return Err(ToolOutcome::failed(format!(
                "{shown} has changed since you saw it; nothing was written. Read it again before you change it."
            )));
        };
        let change = diff_texts(old, new, MAX_SHOWN_DIFF_BYTES);
        let failed = |advice: &str| {
            ToolOutcome::failed(format!(
                "{shown} has changed since you saw it; nothing was written. What changed:\n\n{}\n{advice}",
                change.diff
            ))
        };
        Err(match change.extent {
            DiffExtent::Whole => {
                failed("Make your change again if it still fits.").with_observation(FileObservation::of_text(
                    &self.workspace_path,
                    ObservationKind::Diffed,
                    new,
                    change.shown.clone(),
                ))
            }
            DiffExtent::Cut => failed("Read it again before you change it."),
        })
    }

    /// What a call tells the model that contains the whole content of the file.
    pub fn observe_whole(&self, kind: ObservationKind, content: &str) -> FileObservation {
        self.observe(kind, content, LineRanges::span(1, u64::MAX))
    }

    /// What a call tells the model about the file, which has this content now.
    pub fn observe(&self, kind: ObservationKind, content: &str, shown: LineRanges) -> FileObservation {
        let text = content.strip_prefix(BYTE_ORDER_MARK).unwrap_or(content);
        FileObservation::of_text(&self.workspace_path, kind, text, shown)
    }

    /// Records the change in the journal and writes the new content durably. Returns its hash.
    pub fn commit(&self, bytes: &[u8]) -> Result<Hash, ToolOutcome> {
        let after = Hash::of(bytes);
        if let Some(journal) = &self.changer.journal {
            let recorded =
                journal.record(&self.place, self.found.as_ref(), after, &self.anchored.created_folders);
            recorded.map_err(|error| {
                ToolOutcome::failed(format!(
                    "{} was not changed, because the change could not be journalled: {error}",
                    self.display_name
                ))
            })?;
        }
        self.anchored
            .replace(self.found.as_ref(), bytes)
            .map_err(|error| ToolOutcome::failed(format!("{} {error}.", self.display_name)))?;
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_workspace::workspace;
    use crate::{Effect, ShellOptions, ToolOptions, WebOptions, changing_tools};

    #[test]
    fn every_tool_that_changes_things_has_its_words() {
        let folder = std::env::temp_dir();
        let shell = ShellOptions {
            program: "/bin/bash".into(),
            outputs: folder.clone(),
            temp: folder,
            environment: Vec::new(),
            confinement: crate::Confinement::None,
        };
        let options = ToolOptions { journal: None, shell, web: WebOptions::default(), index: None };
        let tools = changing_tools(options);
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.declaration().name).collect();
        assert_eq!(names, ["edit", "write", "bash", "fetch"]);
        let mut bytes = 0;
        for tool in tools {
            assert_eq!(tool.effect(&json!({})), Effect::Changes);
            let declared = tool.declaration();
            assert!(!declared.description.is_empty(), "{declared:?}");
            let schema = declared.parameters.value();
            assert!(!schema["properties"].as_object().unwrap().is_empty(), "{declared:?}");
            bytes += declared.description.len() + declared.parameters.as_str().len();
        }
        // Every request pays for these bytes: think twice before raising the limit.
        assert!(bytes < 1900, "{bytes}");
    }

    #[test]
    fn changes_at_the_same_time_happen_one_after_the_other() {
        let lines: String = (0..16).map(|line| format!("line {line};\n")).collect();
        let fixture = workspace(&[("a", &lines)]);
        let edit = crate::edit::Edit(FileChanger::new(None));
        // All know what the model knew before the first of them, however late their threads begin.
        let knowledge = fixture.knowledge();
        std::thread::scope(|scope| {
            for line in 0..16 {
                let (fixture, edit, knowledge) = (&fixture, &edit, &knowledge);
                let arguments = json!({"path": "a", "old_text": format!("line {line};"), "new_text": format!("LINE {line};")});
                scope.spawn(move || {
                    let outcome = fixture.call_with(edit, &arguments, knowledge);
                    assert!(!outcome.is_error, "{outcome:?}");
                });
            }
        });
        assert_eq!(std::fs::read_to_string(fixture.path("a")).unwrap(), lines.to_uppercase());
    }
}
