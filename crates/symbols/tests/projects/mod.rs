//! The golden projects, read into memory.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// File contents by path.
pub type ProjectFiles = BTreeMap<String, Vec<u8>>;

/// The map that a project should have. It is no part of the project.
pub const EXPECTED: &str = "expected.map";

/// Folder of the golden projects.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Adds every file below a folder, under `below` and a slash where that is not empty.
pub fn read(folder: &Path, below: &str, found: &mut ProjectFiles) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let entry = entry.expect("the folder can be read");
        let name = entry.file_name().into_string().expect("names are plain");
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if entry.path().is_dir() {
            read(&entry.path(), &path, found);
        } else if name != EXPECTED {
            found.insert(path, std::fs::read(entry.path()).expect("the file can be read"));
        }
    }
}
