//! [`FileChanger`]: how `write` and `edit` change a file: checked against what the model has seen,
//! journalled first, atomically, one change at a time.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_prompt::Hash;

use crate::anchored_file::{AnchoredFile, FileChangeError, FileContent, MissingFolders};
use crate::blocking::CancelFlag;
use crate::diff::{DiffExtent, diff_texts};
use crate::similar_names::missing_path;
use crate::{FileViews, Journal, Scope, ToolOutcome};

/// The most bytes of a diff in an answer to the model: some 60 lines.
pub(crate) const MAX_SHOWN_DIFF_BYTES: usize = 4 * 1024;

/// The most bytes of a diff in the details of an answer, which people see.
pub(crate) const MAX_KEPT_DIFF_BYTES: usize = 64 * 1024;

/// What `write` and `edit` share.
#[derive(Clone, Debug, Default)]
pub(crate) struct FileChanger {
    pub file_views: FileViews,
    pub journal: Option<Arc<Journal>>,
    /// Held while a change is made: calls may run in parallel, changes do not.
    pub one_at_a_time: Arc<Mutex<()>>,
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
}

impl FileChanger {
    /// Runs `work` while no other change runs, unless the call was cancelled meanwhile.
    pub fn run_exclusively(
        &self,
        cancel: &CancelFlag,
        work: impl FnOnce() -> Result<ToolOutcome, ToolOutcome>,
    ) -> Result<ToolOutcome, ToolOutcome> {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.is_set() {
            Err(ToolOutcome::failed("The call was given up before anything was changed."))
        } else {
            work()
        }
    }

    /// Checks that a path may be written, and reads what is there.
    pub fn begin_change(
        &self,
        scope: &Scope,
        path: &str,
        folders: MissingFolders,
    ) -> Result<PendingChange<'_>, ToolOutcome> {
        let place = scope.resolve_for_write(path)?;
        let (display_name, workspace_path) = (scope.display_name(&place), scope.workspace_path(&place));
        let opened =
            AnchoredFile::open(&place, folders).and_then(|anchored| Ok((anchored.read()?, anchored)));
        match opened {
            Ok((found, anchored)) => {
                Ok(PendingChange { changer: self, anchored, place, display_name, workspace_path, found })
            }
            Err(FileChangeError::NoFolder) => Err(missing_path(scope, path, &place)),
            Err(error) => Err(ToolOutcome::failed(format!("{display_name} {error}."))),
        }
    }
}

impl PendingChange<'_> {
    /// The hash of what the model has last seen of the file, see [`FileViews::viewed_hash`].
    pub fn viewed_hash(&self) -> Option<Hash> {
        self.changer.file_views.viewed_hash(&self.place)
    }

    /// Fails with a diff if the file changed since the model last saw it. A diff that is shown in
    /// full counts as having seen the new content.
    pub fn ensure_unchanged_since_view(&self) -> Result<(), ToolOutcome> {
        let (Some(view), Some(found)) = (self.changer.file_views.view(&self.place), &self.found) else {
            return Ok(());
        };
        if view.hash == Hash::of(&found.bytes) {
            return Ok(());
        }
        let shown = &self.display_name;
        let texts = view.text.as_deref().zip(std::str::from_utf8(&found.bytes).ok());
        let Some((old, new)) = texts else {
            return Err(ToolOutcome::failed(format!(
                "{shown} has changed since you saw it; nothing was written. Read it again before you change it."
            )));
        };
        let diff_texts = diff_texts(old, new, MAX_SHOWN_DIFF_BYTES);
        let advice = match diff_texts.extent {
            DiffExtent::Whole => {
                self.changer.file_views.record_content(&self.place, &found.bytes);
                "Make your change again if it still fits."
            }
            DiffExtent::Cut => "Read it again before you change it.",
        };
        Err(ToolOutcome::failed(format!(
            "{shown} has changed since you saw it; nothing was written. What changed:\n\n{}\n{advice}",
            diff_texts.diff
        )))
    }

    /// Records the change in the journal, writes the new content durably, and records it as seen.
    /// Returns its hash.
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
        self.changer.file_views.record_content(&self.place, bytes);
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
        let shell =
            ShellOptions { outputs: folder.clone(), temp: folder, environment: Vec::new(), sandbox: None };
        let options = ToolOptions {
            file_views: FileViews::default(),
            journal: None,
            shell,
            web: WebOptions::default(),
        };
        let tools = changing_tools(options);
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.declaration().name).collect();
        assert_eq!(names, ["edit", "write", "bash", "fetch"]);
        let mut bytes = 0;
        for tool in tools {
            assert_eq!(tool.effect(&json!({})), Effect::Changes);
            let declared = tool.declaration();
            assert!(!declared.description.is_empty() && declared.snippet.is_some(), "{declared:?}");
            let schema = declared.parameters.value();
            let properties = schema["properties"].as_object().unwrap();
            assert!(!properties.is_empty(), "{declared:?}");
            assert!(properties.values().all(|property| property["description"] != json!(null)), "{schema}");
            bytes += declared.description.len() + declared.parameters.as_str().len();
        }
        // Every request pays for these bytes: think twice before raising the limit.
        assert!(bytes < 2600, "{bytes}");
    }

    #[test]
    fn changes_at_the_same_time_happen_one_after_the_other() {
        let lines: String = (0..16).map(|line| format!("line {line};\n")).collect();
        let fixture = workspace(&[("a", &lines)]);
        let edit = crate::edit::Edit(FileChanger::default());
        std::thread::scope(|scope| {
            for line in 0..16 {
                let (fixture, edit) = (&fixture, &edit);
                let arguments = json!({"path": "a", "old_text": format!("line {line};"), "new_text": format!("LINE {line};")});
                scope.spawn(move || fixture.text(edit, &arguments));
            }
        });
        assert_eq!(std::fs::read_to_string(fixture.path("a")).unwrap(), lines.to_uppercase());
    }
}
