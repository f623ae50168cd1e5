//! What the model has seen of each file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_prompt::Hash;

use crate::anchor::{Anchor, Folders, SIZE_LIMIT};

/// The longest content that is kept to tell later what changed.
const KEPT_LIMIT: usize = 1024 * 1024;

/// What the model has seen of each file, shared by all tools of a session: clones are the same one.
#[derive(Clone, Debug, Default)]
pub struct Seen(Arc<Mutex<BTreeMap<PathBuf, Sight>>>);

/// A file as it was when the model saw it.
#[derive(Clone, Debug)]
pub(crate) struct Sight {
    /// The hash of the whole content.
    pub hash: Hash,
    /// The content, where it is text of a moderate length.
    pub text: Option<Arc<str>>,
}

/// The hash of the text in a file: without the byte order mark, whatever its encoding.
fn text_hash(place: &Path) -> Option<Hash> {
    let file = hardpan_workspace::read_text(place, SIZE_LIMIT as usize).ok()?;
    file.cut.is_none().then(|| Hash::of(file.text.as_bytes()))
}

impl Seen {
    /// Notes that the model has seen a file, whose content or whose text had this hash (as `read` tells it).
    ///
    /// The content is fetched now, if it is still the same, so that a later change can be shown.
    pub fn note(&self, path: &Path, hash: Hash) {
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let now = Anchor::of(&place, Folders::Need).and_then(|anchor| anchor.find());
        let bytes = now.ok().flatten().map(|found| found.bytes).unwrap_or_default();
        if Hash::of(&bytes) == hash || text_hash(&place) == Some(hash) {
            self.note_content(&place, &bytes);
        } else {
            self.keep(&place, hash, None);
        }
    }

    /// Notes content that the model knows because it wrote it, or was shown it.
    pub(crate) fn note_content(&self, place: &Path, bytes: &[u8]) {
        self.keep(place, Hash::of(bytes), Some(bytes));
    }

    /// The hash of what the model has seen of a file.
    pub fn hash(&self, place: &Path) -> Option<Hash> {
        self.sight(place).map(|sight| sight.hash)
    }

    /// Forgets a file: it was removed, or what was shown is no longer in the conversation.
    pub fn forget(&self, place: &Path) {
        self.lock().remove(place);
    }

    /// Forgets everything: after a compaction, nothing that was seen is known for sure.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    pub(crate) fn sight(&self, place: &Path) -> Option<Sight> {
        self.lock().get(place).cloned()
    }

    fn keep(&self, place: &Path, hash: Hash, bytes: Option<&[u8]>) {
        let text =
            bytes.filter(|bytes| bytes.len() <= KEPT_LIMIT).and_then(|bytes| std::str::from_utf8(bytes).ok());
        self.lock().insert(place.to_owned(), Sight { hash, text: text.map(Arc::from) });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Sight>> {
        // Every change is a single insert or remove: what a panic elsewhere left is whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_the_hash_of_its_bytes_or_of_its_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().canonicalize().unwrap().join("a.txt");
        let bytes = "\u{feff}text\n".as_bytes();
        std::fs::write(&path, bytes).unwrap();
        let seen = Seen::default();
        for hash in [Hash::of(bytes), Hash::of(b"text\n")] {
            seen.note(&path, hash);
            assert_eq!(seen.hash(&path), Some(Hash::of(bytes)));
            seen.forget(&path);
        }
        seen.note(&path, Hash::of(b"older"));
        assert_eq!(seen.hash(&path), Some(Hash::of(b"older")));
        seen.forget_all();
        assert_eq!(seen.hash(&path), None);
    }
}
