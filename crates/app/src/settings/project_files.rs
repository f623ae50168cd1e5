//! [`ProjectFiles`]: the files of a project that change how Hardpan behaves, read once. What is
//! compared with what the user trusted is also what is used: nothing is read a second time.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_agent::expand::CLAUDE_COMMANDS_FOLDER;
use hardpan_prompt::{Hash, HashChain};
use hardpan_workspace::{
    CURSOR_RULES_FOLDER, FileGuard, OpenFolder, RegularFile, UnreadableReason, folder_names,
};
use serde::{Deserialize, Serialize};

/// The folders of a project that steer Hardpan, relative to its root.
const FOLDERS: [&str; 7] = [
    ".hardpan",
    ".agents/skills",
    ".claude/skills",
    ".claude/agents",
    CLAUDE_COMMANDS_FOLDER,
    CURSOR_RULES_FOLDER,
    super::FOREIGN_EXTENSIONS,
];

/// What lies below them and steers nothing: memories are texts, as the project's other files are.
const TEXTS: &str = hardpan_panels::MEMORY_FOLDER;

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
    /// Reads the files of the project at `root`. A link that leads out of the project, a pipe, a
    /// device or one of our own files (`hidden`) is left out: Hardpan uses none of them.
    pub fn read(root: &Path, hidden: &[PathBuf]) -> Result<Self, ProjectFilesError> {
        let unreadable = |source: io::Error| ProjectFilesError::Unreadable {
            path: root.to_owned(),
            reason: source.into(),
        };
        let held = Arc::new(OpenFolder::open(root).map_err(unreadable)?);
        let real_root = held.path().to_owned();
        let guard = FileGuard::new(Some(held), &[], hidden);
        let mut reader = ProjectReader { guard, real_root, bytes: 0, files: BTreeMap::new() };
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

struct ProjectReader {
    guard: FileGuard,
    real_root: PathBuf,
    bytes: u64,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

impl ProjectReader {
    /// Adds a file, or everything below a folder. What does not exist is no fault.
    fn add(&mut self, path: &Path, depth: usize) -> Result<(), Fault> {
        if path == Path::new(TEXTS) {
            return Ok(());
        }
        let place = self.real_root.join(path);
        match self.guard.open(&place) {
            Ok(file) => self.add_content(path, &place, file),
            Err(UnreadableReason::Directory) => match self.guard.open_folder(&place) {
                Ok(folder) => self.add_folder(path, &place, &folder, depth),
                Err(UnreadableReason::Private | UnreadableReason::Outside) => Ok(()),
                Err(reason) => Err(Fault::Unreadable(place, reason)),
            },
            Err(
                UnreadableReason::Special(_)
                | UnreadableReason::Missing
                | UnreadableReason::Private
                | UnreadableReason::Outside,
            ) => Ok(()),
            // A loop of links.
            Err(UnreadableReason::Io(_)) if place.canonicalize().is_err() => Ok(()),
            Err(reason) => Err(Fault::Unreadable(place, reason)),
        }
    }

    fn add_content(&mut self, path: &Path, place: &Path, file: RegularFile) -> Result<(), Fault> {
        let content = file.read_all(MAX_BYTES - self.bytes).map_err(|reason| match reason {
            UnreadableReason::TooLarge { .. } => Fault::TooMuch,
            reason => Fault::Unreadable(place.to_owned(), reason),
        })?;
        self.bytes += content.len() as u64;
        if self.files.len() == MAX_FILES {
            return Err(Fault::TooMuch);
        }
        self.files.insert(path.to_owned(), content);
        Ok(())
    }

    fn add_folder(&mut self, path: &Path, place: &Path, folder: &File, depth: usize) -> Result<(), Fault> {
        // Links can lead in circles.
        if depth == MAX_DEPTH {
            return Err(Fault::TooMuch);
        }
        let unreadable = |error: io::Error| Fault::Unreadable(place.to_owned(), error.into());
        for (at, (name, _)) in folder_names(folder).map_err(unreadable)?.enumerate() {
            if at == MAX_FILES {
                return Err(Fault::TooMuch);
            }
            self.add(&path.join(name), depth + 1)?;
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
    use std::fs;
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
        let read = ProjectFiles::read(&root, &[]).unwrap();
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
            let before = ProjectFiles::read(&root, &[]).unwrap().hash();
            fs::write(root.join(path), content).unwrap();
            assert_ne!(ProjectFiles::read(&root, &[]).unwrap().hash(), before, "{path}");
        }
    }

    #[test]
    fn folders_without_end_are_refused() {
        let root = tempdir().unwrap();
        fs::create_dir(root.path().join(".hardpan")).unwrap();
        symlink(".", root.path().join(".hardpan/again")).unwrap();
        assert!(matches!(ProjectFiles::read(root.path(), &[]), Err(ProjectFilesError::TooMuch { .. })));
    }
}
