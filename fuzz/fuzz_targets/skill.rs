#![no_main]

use std::sync::LazyLock;

use hardpan_agent::expand::{Expansions, Folder, FolderContents, FolderOwner};
use hardpan_files::FileGuard;

static FOLDER: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    // In memory, where there is such a place: a disk would take most of the time.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    std::fs::create_dir(folder.path().join("skills")).expect("a folder");
    std::fs::create_dir(folder.path().join("templates")).expect("a folder");
    folder
});

// Whatever the file of a skill or a template holds: it is one, or a problem is told.
libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let folder =
        |name: &str, contents| Folder { path: FOLDER.path().join(name), contents, owner: FolderOwner::User };
    let folders = [folder("skills", FolderContents::Skills), folder("templates", FolderContents::Templates)];
    for folder in &folders {
        std::fs::write(folder.path.join("a.md"), input).expect("the file can be written");
    }
    let found = Expansions::discover(&FileGuard::default(), &folders, &[]);
    assert_eq!(found.skills.len() + found.templates.len() + found.problems.len(), 2);
    for skill in &found.skills {
        assert!(found.expand(&format!("/skill:{} 'a b' $1", skill.name)).used.is_some());
    }
    found.expand("/a 'one two' three $@ ${@:2}");
});
