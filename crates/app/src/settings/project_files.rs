//! [`ProjectFiles`]: the files of a project that change how Hardpan behaves, read once. What is
//! compared with what the user trusted is also what is used: nothing is read a second time.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_prompt::{Hash, HashChain};
use hardpan_workspace::{UnreadableReason, open_regular_file};
use serde::{Deserialize, Serialize};

/// The folders of a project that steer Hardpan, relative to its root.
const FOLDERS: [&str; 2] = [".hardpan", ".agents/skills"];

/// Limits of what can be trusted: more than any project's settings and skills, little enough to be
/// read at every start.
const MAX_FILES: usize = 2_000;
const MAX_BYTES: u64 = 16 << 20;
const MAX_DEPTH: usize = 12;

/// The content of a project's settings, prompts, skills and templates.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProjectFiles {
    /// By path relative to the project's root.
    #[serde(with = "as_text")]
    files: Arc<BTreeMap<PathBuf, Vec<u8>>>,
}

/// Why a project's files cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProjectFilesError {
    /// A file or folder is there but cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        reason: UnreadableReason,
    },
    /// There is more than Hardpan reads at every start.
    #[error("{} holds more than {MAX_FILES} files, {} MiB or {MAX_DEPTH} levels: move what is no setting or skill elsewhere", folder.display(), MAX_BYTES >> 20)]
    TooMuch {
        /// The folder that is too large.
        folder: PathBuf,
    },
}

impl ProjectFiles {
    /// Reads the files of the project at `root`. A link that leads out of the project, a pipe or a
    /// device is left out: Hardpan uses none of them.
    pub fn read(root: &Path) -> Result<Self, ProjectFilesError> {
        let unreadable = |source: io::Error| ProjectFilesError::Unreadable {
            path: root.to_owned(),
            reason: source.into(),
        };
        let real_root = root.canonicalize().map_err(unreadable)?;
        let mut reader = ProjectReader { root, real_root, bytes: 0, files: BTreeMap::new() };
        for folder in FOLDERS {
            reader.add(Path::new(folder), 0).map_err(|fault| match fault {
                Fault::TooMuch => ProjectFilesError::TooMuch { folder: root.join(folder) },
                Fault::Unreadable(path, reason) => ProjectFilesError::Unreadable { path, reason },
            })?;
        }
        Ok(ProjectFiles { files: Arc::new(reader.files) })
    }

    /// Whether the project has no such files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The content of a file, named relative to the root.
    pub fn get(&self, path: &Path) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    /// Every file, by its path relative to the root.
    pub fn files(&self) -> &Arc<BTreeMap<PathBuf, Vec<u8>>> {
        &self.files
    }

    /// Changes with every change of a name or a content.
    pub fn hash(&self) -> Hash {
        let mut chain = HashChain::default();
        for (path, content) in &*self.files {
            chain.add(Hash::of(path.as_os_str().as_encoded_bytes()));
            chain.add(Hash::of(content));
        }
        chain.hash()
    }
}

enum Fault {
    TooMuch,
    Unreadable(PathBuf, UnreadableReason),
}

struct ProjectReader<'a> {
    root: &'a Path,
    real_root: PathBuf,
    bytes: u64,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl ProjectReader<'_> {
    /// Adds a file, or everything below a folder. What does not exist is no fault.
    fn add(&mut self, path: &Path, depth: usize) -> Result<(), Fault> {
        let place = self.root.join(path);
        let Ok(real) = place.canonicalize() else { return Ok(()) };
        if !real.starts_with(&self.real_root) {
            return Ok(());
        }
        // Opened by its real path: a link that takes its place in between leads nowhere else.
        match open_regular_file(&real) {
            Ok((file, _)) => self.add_content(path, &real, file),
            Err(UnreadableReason::Directory) => self.add_folder(path, &real, depth),
            Err(UnreadableReason::Special(_) | UnreadableReason::Missing) => Ok(()),
            Err(reason) => Err(Fault::Unreadable(place, reason)),
        }
    }

    fn add_content(&mut self, path: &Path, real: &Path, file: fs::File) -> Result<(), Fault> {
        let mut content = Vec::new();
        file.take(MAX_BYTES - self.bytes + 1)
            .read_to_end(&mut content)
            .map_err(|error| Fault::Unreadable(real.to_owned(), error.into()))?;
        self.bytes += content.len() as u64;
        if self.bytes > MAX_BYTES || self.files.len() == MAX_FILES {
            return Err(Fault::TooMuch);
        }
        self.files.insert(path.to_owned(), content);
        Ok(())
    }

    fn add_folder(&mut self, path: &Path, real: &Path, depth: usize) -> Result<(), Fault> {
        // Links can lead in circles.
        if depth == MAX_DEPTH {
            return Err(Fault::TooMuch);
        }
        let unreadable = |error: io::Error| Fault::Unreadable(real.to_owned(), error.into());
        for (at, entry) in fs::read_dir(real).map_err(unreadable)?.enumerate() {
            if at == MAX_FILES {
                return Err(Fault::TooMuch);
            }
            let entry = entry.map_err(unreadable)?;
            self.add(&path.join(entry.file_name()), depth + 1)?;
        }
        Ok(())
    }
}

/// Stored as text where it is text, so that a person can read what was trusted.
mod as_text {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(untagged)]
    enum Content {
        Text(String),
        Bytes(Vec<u8>),
    }

    pub fn serialize<S: Serializer>(
        files: &Arc<BTreeMap<PathBuf, Vec<u8>>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let content = |bytes: &[u8]| match std::str::from_utf8(bytes) {
            Ok(text) => Content::Text(text.to_owned()),
            Err(_) => Content::Bytes(bytes.to_owned()),
        };
        // A name that is no UTF-8 is not stored: its file is shown as new when it is compared.
        let named = files.iter().filter_map(|(path, bytes)| Some((path.to_str()?, content(bytes))));
        named.collect::<BTreeMap<&str, Content>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Arc<BTreeMap<PathBuf, Vec<u8>>>, D::Error> {
        let files = BTreeMap::<PathBuf, Content>::deserialize(deserializer)?;
        let bytes = |content| match content {
            Content::Text(text) => text.into_bytes(),
            Content::Bytes(bytes) => bytes,
        };
        Ok(Arc::new(files.into_iter().map(|(path, content)| (path, bytes(content))).collect()))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use tempfile::tempdir;

    use super::*;

    #[test]
    fn every_file_that_steers_hardpan_counts_and_nothing_outside() {
        let place = tempdir().unwrap();
        let (root, outside) = (place.path().join("work"), place.path().join("secret"));
        fs::create_dir_all(root.join(".hardpan/skills/a")).unwrap();
        fs::create_dir_all(root.join(".agents/skills/b")).unwrap();
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(&outside, "secret").unwrap();
        fs::write(root.join("docs/shared.md"), "shared").unwrap();
        fs::write(root.join(".hardpan/config.toml"), "").unwrap();
        fs::write(root.join(".hardpan/skills/a/SKILL.md"), "a").unwrap();
        fs::write(root.join(".agents/skills/b/run.sh"), [0xff]).unwrap();
        symlink("../docs/shared.md", root.join(".hardpan/shared.md")).unwrap();
        symlink(&outside, root.join(".hardpan/models.json")).unwrap();
        symlink("/dev/zero", root.join(".hardpan/zero")).unwrap();
        let read = ProjectFiles::read(&root).unwrap();
        let names: Vec<&str> = read.files().keys().filter_map(|path| path.to_str()).collect();
        let expected = [
            ".agents/skills/b/run.sh",
            ".hardpan/config.toml",
            ".hardpan/shared.md",
            ".hardpan/skills/a/SKILL.md",
        ];
        assert_eq!(names, expected);
        assert_eq!(read.get(Path::new(".hardpan/shared.md")), Some(&b"shared"[..]));
        let stored = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<ProjectFiles>(&stored).unwrap(), read);
        for (path, content) in [(".hardpan/config.toml", "x"), ("docs/shared.md", "y"), (".hardpan/new", "")]
        {
            let before = ProjectFiles::read(&root).unwrap().hash();
            fs::write(root.join(path), content).unwrap();
            assert_ne!(ProjectFiles::read(&root).unwrap().hash(), before, "{path}");
        }
    }

    #[test]
    fn folders_without_end_are_refused() {
        let root = tempdir().unwrap();
        fs::create_dir(root.path().join(".hardpan")).unwrap();
        symlink(".", root.path().join(".hardpan/again")).unwrap();
        assert!(matches!(ProjectFiles::read(root.path()), Err(ProjectFilesError::TooMuch { .. })));
    }
}
