//! [`FileViews`]: what the model has seen of each file, so that `write` and `edit` notice changes
//! that it does not know of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_prompt::Hash;

use crate::anchored_file::{AnchoredFile, MissingFolders, SIZE_LIMIT};

/// The longest content that is kept, so that a later change can be shown as a diff.
const MAX_KEPT_BYTES: usize = 1024 * 1024;

/// What the model has last seen of each file, by absolute path. Clones share the same data, so that
/// all tools of a session agree.
#[derive(Clone, Debug, Default)]
pub struct FileViews(Arc<Mutex<BTreeMap<PathBuf, FileView>>>);

/// A file as it was when the model saw it.
#[derive(Clone, Debug)]
pub(crate) struct FileView {
    /// Hash of the file's whole content, its byte order mark included.
    pub hash: Hash,
    /// The content. `None` where it is not UTF-8 or longer than [`MAX_KEPT_BYTES`].
    pub text: Option<Arc<str>>,
}

/// The hash of a file's text as `read` decodes it: without the byte order mark, in UTF-8.
fn text_hash(place: &Path) -> Option<Hash> {
    let file = hardpan_workspace::read_text(place, SIZE_LIMIT as usize).ok()?;
    file.truncation.is_none().then(|| Hash::of(file.text.as_bytes()))
}

impl FileViews {
    /// Records that the model has seen a file whose content, or whose decoded text, had this hash
    /// (as in the details of `read`).
    ///
    /// If the file is still the same, its content is kept as well, so that a later change can be
    /// shown as a diff.
    pub fn record_view(&self, path: &Path, hash: Hash) {
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let now = AnchoredFile::open(&place, MissingFolders::Fail).and_then(|anchored| anchored.read());
        let bytes = now.ok().flatten().map(|found| found.bytes).unwrap_or_default();
        if Hash::of(&bytes) == hash || text_hash(&place) == Some(hash) {
            self.record_content(&place, &bytes);
        } else {
            self.insert_view(&place, hash, None);
        }
    }

    /// Records a content that the model knows because it wrote it or was shown it.
    pub(crate) fn record_content(&self, place: &Path, bytes: &[u8]) {
        self.insert_view(place, Hash::of(bytes), Some(bytes));
    }

    /// The hash of what the model has last seen of a file. `None` if it has not seen the file.
    pub fn viewed_hash(&self, place: &Path) -> Option<Hash> {
        self.view(place).map(|view| view.hash)
    }

    /// Forgets a file, because it was removed or what was shown of it is no longer in the
    /// conversation.
    pub fn forget(&self, place: &Path) {
        self.lock().remove(place);
    }

    /// Forgets all files, because after a compaction it is no longer sure what the model still
    /// knows.
    pub fn forget_all(&self) {
        self.lock().clear();
    }

    pub(crate) fn view(&self, place: &Path) -> Option<FileView> {
        self.lock().get(place).cloned()
    }

    fn insert_view(&self, place: &Path, hash: Hash, bytes: Option<&[u8]>) {
        let text = bytes
            .filter(|bytes| bytes.len() <= MAX_KEPT_BYTES)
            .and_then(|bytes| std::str::from_utf8(bytes).ok());
        self.lock().insert(place.to_owned(), FileView { hash, text: text.map(Arc::from) });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, FileView>> {
        // Every change is a single insert or remove, so the map is consistent after a panic.
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
        let file_views = FileViews::default();
        for hash in [Hash::of(bytes), Hash::of(b"text\n")] {
            file_views.record_view(&path, hash);
            assert_eq!(file_views.viewed_hash(&path), Some(Hash::of(bytes)));
            file_views.forget(&path);
        }
        file_views.record_view(&path, Hash::of(b"older"));
        assert_eq!(file_views.viewed_hash(&path), Some(Hash::of(b"older")));
        file_views.forget_all();
        assert_eq!(file_views.viewed_hash(&path), None);
    }
}
