//! How a file is changed: known before, journalled, at once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_prompt::Hash;

use crate::blocking::Cancel;
use crate::anchor::{Anchor, Folders, Found, Trouble};
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
    pub fn alone(&self, cancel: &Cancel, work: impl FnOnce() -> Result<Outcome, Outcome>) -> Result<Outcome, Outcome> {
        let _alone = self.one_at_a_time.lock().unwrap_or_else(PoisonError::into_inner);
        if cancel.is_set() { Err(Outcome::failed("The call was given up before anything was changed.")) } else { work() }
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
                Outcome::failed(format!("{} was not changed, because the change could not be journalled: {error}", self.shown))
            })?;
        }
        self.anchor
            .replace(self.found.as_ref(), bytes)
            .map_err(|trouble| Outcome::failed(format!("{} {trouble}.", self.shown)))?;
        self.changes.seen.note_content(&self.place, bytes);
        Ok(after)
    }
}
