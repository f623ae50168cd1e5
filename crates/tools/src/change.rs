//! How a file is changed: known before, journalled, at once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_prompt::Hash;

use crate::anchor::{Anchor, Folders, Found, Trouble};
use crate::blocking::Cancel;
use crate::diff::{Extent, change};
use crate::nearest::missing;
use crate::{Journal, Outcome, Scope, Seen};

/// How many bytes of diff an answer holds: some 60 lines.
pub(crate) const DIFF_SHOWN: usize = 4 * 1024;

/// How many bytes of diff are kept beside an answer, for people.
pub(crate) const DIFF_KEPT: usize = 64 * 1024;

/// What write and edit share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    pub seen: Seen,
    pub journal: Option<Arc<Journal>>,
    /// Calls may run side by side; changes happen one after the other.
    pub one_at_a_time: Arc<Mutex<()>>,
}

/// A file that is about to be changed.
pub(crate) struct Pending<'a> {
    changes: &'a Changes,
    anchor: Anchor,
    /// The real place.
    pub place: PathBuf,
    /// How it is called in answers.
    pub shown: String,
    /// How items and lists call it.
    pub key: String,
    /// What is there.
    pub found: Option<Found>,
}

impl Changes {
    /// Runs `work` while no other change runs, unless nobody waits for it any longer.
    pub fn alone(
        &self,
        cancel: &Cancel,
        work: impl FnOnce() -> Result<Outcome, Outcome>,
    ) -> Result<Outcome, Outcome> {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.is_set() {
            Err(Outcome::failed("The call was given up before anything was changed."))
        } else {
            work()
        }
    }

    /// Looks at what is to be changed.
    pub fn begin(&self, scope: &Scope, path: &str, folders: Folders) -> Result<Pending<'_>, Outcome> {
        let place = scope.to_write(path)?;
        let (shown, key) = (scope.shown(&place), scope.key(&place));
        let looked = Anchor::of(&place, folders).and_then(|anchor| Ok((anchor.find()?, anchor)));
        match looked {
            Ok((found, anchor)) => Ok(Pending { changes: self, anchor, place, shown, key, found }),
            Err(Trouble::NoFolder) => Err(missing(scope, path, &place)),
            Err(trouble) => Err(Outcome::failed(format!("{shown} {trouble}."))),
        }
    }
}

impl Pending<'_> {
    /// The hash of what the model has seen of the file.
    pub fn seen(&self) -> Option<Hash> {
        self.changes.seen.hash(&self.place)
    }

    /// Refuses if the file is not as the model saw it, and shows what changed. What was shown whole is then seen.
    pub fn not_changed_since_seen(&self) -> Result<(), Outcome> {
        let (Some(sight), Some(found)) = (self.changes.seen.sight(&self.place), &self.found) else {
            return Ok(());
        };
        if sight.hash == Hash::of(&found.bytes) {
            return Ok(());
        }
        let shown = &self.shown;
        let texts = sight.text.as_deref().zip(std::str::from_utf8(&found.bytes).ok());
        let Some((old, new)) = texts else {
            return Err(Outcome::failed(format!(
                "{shown} has changed since you saw it; nothing was written. Read it again before you change it."
            )));
        };
        let change = change(old, new, DIFF_SHOWN);
        let advice = match change.extent {
            Extent::Whole => {
                self.changes.seen.note_content(&self.place, &found.bytes);
                "Make your change again if it still fits."
            }
            Extent::Cut => "Read it again before you change it.",
        };
        Err(Outcome::failed(format!(
            "{shown} has changed since you saw it; nothing was written. What changed:\n\n{}\n{advice}",
            change.diff
        )))
    }

    /// Writes the new content: journalled first, durable, and known to the model from now on.
    pub fn commit(&self, bytes: &[u8]) -> Result<Hash, Outcome> {
        let after = Hash::of(bytes);
        if let Some(journal) = &self.changes.journal {
            let recorded = journal.record(&self.place, self.found.as_ref(), after, &self.anchor.made);
            recorded.map_err(|error| {
                Outcome::failed(format!(
                    "{} was not changed, because the change could not be journalled: {error}",
                    self.shown
                ))
            })?;
        }
        self.anchor
            .replace(self.found.as_ref(), bytes)
            .map_err(|trouble| Outcome::failed(format!("{} {trouble}.", self.shown)))?;
        self.changes.seen.note_content(&self.place, bytes);
        Ok(after)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fixture::workspace;
    use crate::{Effect, Options, Shell, Web, changing};

    #[test]
    fn every_tool_that_changes_things_has_its_words() {
        let folder = std::env::temp_dir();
        let shell = Shell { outputs: folder.clone(), temp: folder, environment: Vec::new(), sandbox: None };
        let options = Options { seen: Seen::default(), journal: None, shell, web: Web::default() };
        let tools = changing(options);
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.declaration().name).collect();
        assert_eq!(names, ["edit", "write", "bash", "fetch"]);
        let mut bytes = 0;
        for tool in tools {
            assert_eq!(tool.effect(), Effect::Changes);
            let declared = tool.declaration();
            assert!(!declared.description.is_empty() && declared.snippet.is_some(), "{declared:?}");
            let schema = declared.parameters.value();
            let properties = schema["properties"].as_object().unwrap();
            assert!(!properties.is_empty(), "{declared:?}");
            assert!(properties.values().all(|property| property["description"] != json!(null)), "{schema}");
            bytes += declared.description.len() + declared.parameters.as_str().len();
        }
        // What they cost in every request: a reason to look twice when it grows.
        assert!(bytes < 2600, "{bytes}");
    }

    #[test]
    fn changes_at_the_same_time_happen_one_after_the_other() {
        let lines: String = (0..16).map(|line| format!("line {line};\n")).collect();
        let fixture = workspace(&[("a", &lines)]);
        let edit = crate::edit::Edit(Changes::default());
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
