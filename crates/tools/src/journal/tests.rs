use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::file_change::FileChanger;
use crate::test_workspace::{TestWorkspace, workspace};
use crate::write::Write;

struct Bench {
    fixture: TestWorkspace,
    journal: Arc<Journal>,
    write: Write,
}

fn bench(files: &[(&str, &str)]) -> Bench {
    let fixture = workspace(files);
    let journal = Arc::new(Journal::open(fixture.outside().join("journal")).unwrap());
    let changes = FileChanger { journal: Some(journal.clone()), ..FileChanger::default() };
    for (name, text) in files {
        changes.file_views.record_view(&fixture.path(name), Hash::of(text.as_bytes()));
    }
    Bench { write: Write(changes), fixture, journal }
}

impl Bench {
    fn write(&self, path: &str, content: &str) {
        self.fixture.text(&self.write, &json!({"path": path, "content": content}));
    }

    fn undo(&self, turn: u64) -> Vec<(String, UndoOutcome)> {
        let undone = self.journal.undo(turn).unwrap();
        undone
            .into_iter()
            .map(|undone| (self.fixture.scope.display_name(&undone.path), undone.outcome))
            .collect()
    }

    fn content(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.fixture.path(name)).ok()
    }
}

#[test]
fn a_turn_is_taken_back_to_what_was_before_it() {
    let bench = bench(&[("a", "a1"), ("b", "b1")]);
    fs::set_permissions(bench.fixture.path("a"), fs::Permissions::from_mode(0o700)).unwrap();
    bench.journal.begin_turn(1);
    bench.write("a", "a2");
    bench.journal.begin_turn(2);
    bench.write("a", "a3");
    bench.write("a", "a4");
    bench.write("new/deep/c", "c1");
    assert_eq!(bench.journal.last_undoable_turn(), Some(2));
    let changed = bench.journal.changed_files(2);
    assert_eq!(changed, [bench.fixture.path("a"), bench.fixture.path("new/deep/c")]);

    assert_eq!(
        bench.undo(2),
        [("a".to_owned(), UndoOutcome::Restored), ("new/deep/c".to_owned(), UndoOutcome::Removed)]
    );
    assert_eq!(bench.content("a").as_deref(), Some("a2"));
    assert_eq!(bench.fixture.path("a").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!bench.fixture.path("new").exists(), "folders that were made go, too");

    assert_eq!(bench.journal.last_undoable_turn(), Some(1));
    assert!(matches!(bench.journal.undo(2), Err(JournalError::NothingToUndo { turn: 2 })));
    assert_eq!(bench.undo(1), [("a".to_owned(), UndoOutcome::Restored)]);
    assert_eq!(bench.content("a").as_deref(), Some("a1"));
    assert_eq!(bench.journal.last_undoable_turn(), None);
}

#[test]
fn a_file_that_changed_since_is_left_alone_and_named() {
    let bench = bench(&[("a", "a1"), ("b", "b1")]);
    bench.journal.begin_turn(1);
    bench.write("a", "a2");
    bench.write("b", "b2");
    bench.write("new/c", "c1");
    bench.fixture.write("a", "by hand");
    bench.fixture.write("new/d", "by hand");
    fs::remove_file(bench.fixture.path("new/c")).unwrap();
    let undone = bench.undo(1);
    let expected = [
        ("a".to_owned(), UndoOutcome::ChangedSince),
        ("b".to_owned(), UndoOutcome::Restored),
        ("new/c".to_owned(), UndoOutcome::Unchanged),
    ];
    assert_eq!(undone, expected);
    assert_eq!(bench.content("a").as_deref(), Some("by hand"));
    assert_eq!(bench.content("b").as_deref(), Some("b1"));
    assert_eq!(bench.content("new/d").as_deref(), Some("by hand"), "a folder that holds something stays");
}

#[test]
fn a_journal_survives_its_process_and_a_torn_line() {
    let bench = bench(&[("a", "a1")]);
    bench.journal.begin_turn(7);
    bench.write("a", "a2");
    let folder = bench.fixture.outside().join("journal");
    let list = folder.join(LIST);
    let mut torn = fs::read(&list).unwrap();
    torn.extend(b"{\"changed\":{\"turn\":8,\"pa");
    fs::write(&list, torn).unwrap();
    let journal = Journal::open(&folder).unwrap();
    assert_eq!(journal.last_undoable_turn(), Some(7));
    journal.undo(7).unwrap();
    assert_eq!(bench.content("a").as_deref(), Some("a1"));
    assert_eq!(Journal::open(&folder).unwrap().last_undoable_turn(), None);
}

#[test]
fn a_change_that_was_recorded_but_never_made_is_nothing_to_undo() {
    let bench = bench(&[("a", "a1")]);
    let anchored = AnchoredFile::open(&bench.fixture.path("a"), MissingFolders::Fail).unwrap();
    let found = anchored.read().unwrap();
    bench.journal.record(&bench.fixture.path("a"), found.as_ref(), Hash::of(b"a2"), &[]).unwrap();
    assert_eq!(bench.undo(0), [("a".to_owned(), UndoOutcome::Unchanged)]);
}

#[test]
fn without_a_journal_that_can_be_written_nothing_is_changed() {
    let bench = bench(&[("a", "a1")]);
    fs::write(bench.fixture.outside().join("journal"), "in the way").unwrap();
    let told = bench.fixture.failure(&bench.write, &json!({"path": "a", "content": "a2"}));
    assert!(told.starts_with("a was not changed, because the change could not be journalled"), "{told}");
    assert_eq!(bench.content("a").as_deref(), Some("a1"));
}

#[test]
fn only_the_owner_can_read_what_is_kept() {
    let bench = bench(&[("a", "secret")]);
    bench.write("a", "b");
    let folder = bench.fixture.outside().join("journal");
    for entry in fs::read_dir(folder).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o077, 0);
    }
}

#[test]
fn what_an_undo_replaces_is_kept() {
    let bench = bench(&[("a", "a1")]);
    bench.write("a", "a2");
    bench.undo(0);
    let kept = bench.fixture.outside().join("journal").join(Hash::of(b"a2").to_string());
    assert_eq!(fs::read(kept).unwrap(), b"a2");
}

#[test]
fn nothing_is_left_where_nothing_was_changed_and_each_folder_has_its_own_changes() {
    let bench = bench(&[("a", "one")]);
    let (first, second) = (bench.fixture.outside().join("journal"), bench.fixture.outside().join("second"));
    assert!(!first.exists());
    bench.journal.begin_turn(1);
    bench.write("a", "two");
    bench.journal.switch_to(&second).unwrap();
    assert_eq!((bench.journal.last_undoable_turn(), second.exists()), (None, false));
    bench.journal.begin_turn(1);
    bench.write("a", "three");
    assert!(second.exists());
    assert_eq!(bench.undo(1), [("a".to_owned(), UndoOutcome::Restored)]);
    assert_eq!(bench.content("a").as_deref(), Some("two"));
    bench.journal.switch_to(&first).unwrap();
    assert_eq!(bench.undo(1), [("a".to_owned(), UndoOutcome::Restored)]);
    assert_eq!(bench.content("a").as_deref(), Some("one"));
}
