//! While something swaps files and folders of the workspace with links that lead out of it, as fast
//! as it can, no tool shows or changes what is outside.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hardpan_workspace::LiveIndex;
use rustix::fs::{CWD, RenameFlags};
use serde_json::{Value, json};

use crate::edit::Edit;
use crate::file_change::FileChanger;
use crate::test_workspace::{TestWorkspace, workspace};
use crate::write::Write;
use crate::{Find, Grep, Ls, Read, Symbols, Tool};

/// What is outside says this, in contents and in names.
const CANARY: &str = "canary_outside";

const ROUNDS: usize = 1000;

/// A workspace in which `file.py` and `folder` each have a double that leads out.
fn project() -> TestWorkspace {
    let project = workspace(&[
        ("file.py", "def inside(): ...\n"),
        ("folder/inner.py", "def inner(): ...\n"),
        ("folder/deep/x.py", "def deep(): ...\n"),
    ]);
    let outside = project.outside().join("elsewhere");
    fs::create_dir_all(outside.join("deep")).unwrap();
    for name in ["secret.py", "inner.py", "deep/x.py", &format!("{CANARY}.py")] {
        fs::write(outside.join(name), format!("def {CANARY}(): ...\n")).unwrap();
    }
    project.link("file.py.link", "../elsewhere/secret.py");
    project.link("folder.link", "../elsewhere");
    project
}

/// Calls a tool again and again while a thread swaps what is inside with what leads out.
fn race(project: &TestWorkspace, tool: &dyn Tool, calls: &[Value]) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (done, root) = (&done, &project.scope.root);
        scope.spawn(move || {
            let swap = |name: &str| {
                let (own, link) = (root.join(name), root.join(format!("{name}.link")));
                // A tool may have replaced one of them a moment ago.
                let _ = rustix::fs::renameat_with(CWD, &own, CWD, &link, RenameFlags::EXCHANGE);
            };
            while !done.load(Ordering::Relaxed) {
                swap("file.py");
                swap("folder");
            }
        });
        let end = EndOnDrop(done);
        for _ in 0..ROUNDS {
            for arguments in calls {
                let outcome = format!("{:?}", project.call(tool, arguments));
                assert!(!outcome.contains(CANARY), "{arguments}: {outcome}");
            }
        }
        drop(end);
    });
    let outside = project.outside().join("elsewhere");
    assert_eq!(names(&outside).len(), 4, "{:?}", names(&outside));
    for name in ["secret.py", "inner.py", "deep/x.py"] {
        let text = fs::read_to_string(outside.join(name)).unwrap();
        assert_eq!(text, format!("def {CANARY}(): ...\n"), "{name}");
    }
}

/// Ends the swapping also when an assertion fails.
struct EndOnDrop<'a>(&'a AtomicBool);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn read_shows_nothing_from_outside() {
    let paths = ["file.py", "folder/inner.py", "folder/deep/x.py", "folder/missing.py"];
    race(&project(), &Read, &paths.map(|path| json!({ "path": path })));
}

#[test]
fn grep_shows_nothing_from_outside() {
    let of = |path: &str| json!({"pattern": "canary_[o]", "path": path});
    race(&project(), &Grep, &[of("."), of("file.py"), of("folder")]);
}

#[test]
fn find_and_ls_name_nothing_from_outside() {
    let project = project();
    race(&project, &Find, &[json!({"pattern": "*.py"}), json!({"pattern": "*", "path": "folder"})]);
    race(&project, &Ls, &[json!({"path": "folder"}), json!({"path": "folder/deep"}), json!({})]);
}

#[test]
fn symbols_of_outside_are_not_indexed() {
    let project = project();
    let index = LiveIndex::new(project.scope.guard(), &project.scope.root, None);
    let symbols = Symbols(index);
    race(&project, &symbols, &[json!({"query": "file.py"}), json!({"query": "folder"})]);
}

#[test]
fn write_and_edit_change_nothing_outside() {
    let project = project();
    let paths = ["file.py", "folder/inner.py", "folder/new.py", "folder/deep/x.py"];
    let writes = paths.map(|path| json!({"path": path, "content": "def written(): ...\n"}));
    race(&project, &Write(FileChanger::new(None)), &writes);
    let edits = paths.map(|path| json!({"path": path, "old_text": "def", "new_text": "def"}));
    race(&project, &Edit(FileChanger::new(None)), &edits);
}
