//! A file that the model knows, that the user opened or mentioned, or that is read by convention, is
//! read again before every request. While something swaps it with a link that leads out of the
//! workspace, or to the keys, as fast as it can, nothing of that goes into a request.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hardpan_app::DiscardNotices;
use hardpan_app::gather::FolderReader;
use hardpan_app::mentions::{MentionedFile, PromptSource, resolve_mention};
use hardpan_app::settings::{Settings, UserFolders};
use hardpan_context::SnapshotFile;
use hardpan_sandbox::Programs;
use hardpan_tools::Scope;
use hardpan_workspace::{
    Git, GitConfinement, GitOptions, InstructionKinds, InstructionPlaces, LiveIndex, read_instructions,
};
use jiff::Timestamp;
use rustix::fs::{CWD, RenameFlags};

/// What must never be in a request.
const CANARY: &str = "canary-of-the-keys";

/// A piece of it in base64, as it stands in the picture.
const ENCODED_CANARY: &str = "Y2FuYXJ5LW9m";

const ROUNDS: usize = 1000;

const FILES: [&str; 4] = ["notes.md", "AGENTS.md", "folder/notes.md", "picture.png"];

struct Place {
    _folder: tempfile::TempDir,
    root: PathBuf,
    scope: Scope,
    reader: FolderReader,
}

/// A workspace that holds the config folder, with doubles of its files that lead elsewhere.
fn place() -> Place {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    let root = base.join("home");
    let folders = UserFolders::below(&root.join(".hardpan-user"));
    let config = folders.config.clone().unwrap();
    fs::create_dir_all(&config).unwrap();
    fs::create_dir_all(root.join("folder")).unwrap();
    fs::create_dir_all(base.join("outside")).unwrap();
    let key = format!("anthropic = \"{CANARY}\"\n");
    fs::write(config.join("keys.toml"), &key).unwrap();
    let image =
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x01\x08\x02\0\0\0".as_slice(), key.as_bytes()];
    for name in ["notes.md", "folder-notes"] {
        fs::write(base.join("outside").join(name), &key).unwrap();
    }
    fs::write(base.join("outside/picture.png"), image.concat()).unwrap();
    for name in FILES {
        fs::write(root.join(name), "inside\n").unwrap();
    }
    let link = |target: &str, name: &str| std::os::unix::fs::symlink(target, root.join(name)).unwrap();
    link("../outside/notes.md", "notes.md.other");
    link(".hardpan-user/config/keys.toml", "AGENTS.md.other");
    link("../outside", "folder.other");
    link("../outside/picture.png", "picture.png.other");
    let mut scope = Scope::new(&root, &root);
    scope.hidden = folders.private_files();
    let settings = Arc::new(Settings::load(&root, folders, &DiscardNotices).unwrap());
    let index = LiveIndex::new(scope.guard(), &root, None);
    let git = Git::new(&root, git_options());
    let reader = FolderReader::new(scope.clone(), git, settings, Vec::new(), index, Arc::new(DiscardNotices));
    Place { _folder: folder, root, scope, reader }
}

/// Without a program: git is not asked here.
fn git_options() -> GitOptions {
    GitOptions {
        programs: Programs::find(None, &[]),
        confinement: GitConfinement::None,
        hidden: Vec::new(),
        home: None,
        config_home: None,
        cache: None,
    }
}

/// Does something again and again while a thread swaps the files with their doubles.
fn race(place: &Place, mut round: impl FnMut() -> String) {
    let done = AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                for name in ["notes.md", "AGENTS.md", "folder", "picture.png"] {
                    let (own, other) = (place.root.join(name), place.root.join(format!("{name}.other")));
                    rustix::fs::renameat_with(CWD, &own, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        let mut sent = (0..ROUNDS).map(|_| round());
        let leaked = sent.find(|sent| sent.contains(CANARY) || sent.contains(ENCODED_CANARY));
        done.store(true, Ordering::Relaxed);
        assert_eq!(leaked, None);
    });
}

fn snapshot() -> SnapshotFile {
    SnapshotFile::empty(Timestamp::UNIX_EPOCH)
}

fn text(file: &SnapshotFile) -> String {
    serde_json::to_string(file).unwrap()
}

#[test]
fn files_that_the_model_knows_are_those_of_the_workspace() {
    let place = place();
    race(&place, || {
        let mut file = snapshot();
        FILES.iter().for_each(|name| place.reader.add_known_file(&mut file, Path::new(name)));
        text(&file)
    });
}

#[test]
fn files_that_the_user_opened_are_those_of_the_workspace() {
    let place = place();
    let inside = place.root.join("notes.md");
    race(&place, || {
        let mut file = snapshot();
        FILES.iter().for_each(|name| place.reader.add_named_file(&mut file, Path::new(name)));
        place.reader.add_named_file(&mut file, &inside);
        place.reader.add_named_file(&mut file, Path::new("folder/../notes.md"));
        text(&file)
    });
}

#[test]
fn files_that_a_prompt_mentions_are_those_of_the_workspace() {
    let place = place();
    for source in [PromptSource::Typed, PromptSource::Piped] {
        race(&place, || {
            let found = FILES.map(|name| match resolve_mention(name, &place.scope, source) {
                Ok(MentionedFile::Image { image, .. }) => image.data.to_string(),
                _ => String::new(),
            });
            found.concat()
        });
    }
}

#[test]
fn instructions_are_those_of_the_project() {
    let place = place();
    race(&place, || {
        let folder = place.root.join("folder");
        let places = InstructionPlaces {
            root: &place.root,
            working_directory: &folder,
            user_folder: None,
            home: None,
        };
        format!("{:?}", read_instructions(&place.scope.guard(), &places, InstructionKinds::ALL))
    });
}

#[test]
fn the_file_list_names_what_is_in_the_workspace() {
    let place = place();
    race(&place, || {
        let mut file = snapshot();
        place.reader.add_file_list(&mut file);
        text(&file)
    });
}
