use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::file_change::FileChanger;
use crate::test_workspace::{TestWorkspace, workspace};
use crate::write::Write;

struct JournalTest {
    fixture: TestWorkspace,
    journal: Arc<Journal>,
    write: Write,
}

fn journal_test(files: &[(&str, &str)]) -> JournalTest {
    let fixture = workspace(files);
    let journal = Arc::new(Journal::open(fixture.outside().join("journal")).unwrap());
    let changes = FileChanger::new(Some(journal.clone()));
    for (name, _) in files {
        fixture.read(name);
    }
    JournalTest { write: Write(changes), fixture, journal }
}

impl JournalTest {
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
    let journal_test = journal_test(&[("a", "a1"), ("b", "b1")]);
    fs::set_permissions(journal_test.fixture.path("a"), fs::Permissions::from_mode(0o700)).unwrap();
    journal_test.journal.begin_turn(1);
    journal_test.write("a", "a2");
    journal_test.journal.begin_turn(2);
    journal_test.write("a", "a3");
    journal_test.write("a", "a4");
    journal_test.write("new/deep/c", "c1");
    assert_eq!(journal_test.journal.last_undoable_turn(), Some(2));
    let changed = journal_test.journal.changed_files(2);
    assert_eq!(changed, [journal_test.fixture.path("a"), journal_test.fixture.path("new/deep/c")]);

    assert_eq!(
        journal_test.undo(2),
        [("a".to_owned(), UndoOutcome::Restored), ("new/deep/c".to_owned(), UndoOutcome::Removed)]
    );
    assert_eq!(journal_test.content("a").as_deref(), Some("a2"));
    assert_eq!(journal_test.fixture.path("a").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert!(!journal_test.fixture.path("new").exists(), "folders that were made go, too");

    assert_eq!(journal_test.journal.last_undoable_turn(), Some(1));
    assert!(matches!(journal_test.journal.undo(2), Err(JournalError::NothingToUndo { turn: 2 })));
    assert_eq!(journal_test.undo(1), [("a".to_owned(), UndoOutcome::Restored)]);
    assert_eq!(journal_test.content("a").as_deref(), Some("a1"));
    assert_eq!(journal_test.journal.last_undoable_turn(), None);
}

#[test]
fn a_file_that_changed_since_is_left_alone_and_named() {
    let journal_test = journal_test(&[("a", "a1"), ("b", "b1")]);
    journal_test.journal.begin_turn(1);
    journal_test.write("a", "a2");
    journal_test.write("b", "b2");
    journal_test.write("new/c", "c1");
    journal_test.fixture.write("a", "by hand");
    journal_test.fixture.write("new/d", "by hand");
    fs::remove_file(journal_test.fixture.path("new/c")).unwrap();
    let undone = journal_test.undo(1);
    let expected = [
        ("a".to_owned(), UndoOutcome::ChangedSince),
        ("b".to_owned(), UndoOutcome::Restored),
        ("new/c".to_owned(), UndoOutcome::Unchanged),
    ];
    assert_eq!(undone, expected);
    assert_eq!(journal_test.content("a").as_deref(), Some("by hand"));
    assert_eq!(journal_test.content("b").as_deref(), Some("b1"));
    assert_eq!(
        journal_test.content("new/d").as_deref(),
        Some("by hand"),
        "a folder that holds something stays"
    );
}

#[test]
fn a_journal_survives_its_process_and_a_torn_line() {
    let journal_test = journal_test(&[("a", "a1")]);
    journal_test.journal.begin_turn(7);
    journal_test.write("a", "a2");
    let folder = journal_test.fixture.outside().join("journal");
    let list = folder.join(folder::LIST);
    let mut torn = fs::read(&list).unwrap();
    torn.extend(b"{\"changed\":{\"turn\":8,\"pa");
    fs::write(&list, torn).unwrap();
    let journal = Journal::open(&folder).unwrap();
    assert_eq!(journal.last_undoable_turn(), Some(7));
    journal.undo(7).unwrap();
    assert_eq!(journal_test.content("a").as_deref(), Some("a1"));
    assert_eq!(Journal::open(&folder).unwrap().last_undoable_turn(), None);
}

#[test]
fn a_change_that_was_recorded_but_never_made_is_nothing_to_undo() {
    let journal_test = journal_test(&[("a", "a1")]);
    let anchored = AnchoredFile::open(&journal_test.fixture.path("a"), MissingFolders::Fail).unwrap();
    let found = anchored.read().unwrap();
    journal_test
        .journal
        .record(&journal_test.fixture.path("a"), found.as_ref(), Hash::of(b"a2"), &[])
        .unwrap();
    assert_eq!(journal_test.undo(0), [("a".to_owned(), UndoOutcome::Unchanged)]);
}

#[test]
fn without_a_journal_that_can_be_written_nothing_is_changed() {
    let journal_test = journal_test(&[("a", "a1")]);
    fs::write(journal_test.fixture.outside().join("journal"), "in the way").unwrap();
    let told = journal_test.fixture.failure(&journal_test.write, &json!({"path": "a", "content": "a2"}));
    assert!(told.starts_with("a was not changed, because the change could not be journalled"), "{told}");
    assert_eq!(journal_test.content("a").as_deref(), Some("a1"));
}

#[test]
fn only_the_owner_can_read_what_is_kept() {
    let journal_test = journal_test(&[("a", "secret")]);
    journal_test.write("a", "b");
    let folder = journal_test.fixture.outside().join("journal");
    for entry in fs::read_dir(folder).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o077, 0);
    }
}

#[test]
fn what_an_undo_replaces_is_kept() {
    let journal_test = journal_test(&[("a", "a1")]);
    journal_test.write("a", "a2");
    journal_test.undo(0);
    let kept = journal_test.fixture.outside().join("journal").join(Hash::of(b"a2").to_string());
    assert_eq!(fs::read(kept).unwrap(), b"a2");
}

#[test]
fn nothing_is_left_where_nothing_was_changed_and_each_folder_has_its_own_changes() {
    let journal_test = journal_test(&[("a", "one")]);
    let (first, second) =
        (journal_test.fixture.outside().join("journal"), journal_test.fixture.outside().join("second"));
    assert!(!first.exists());
    journal_test.journal.begin_turn(1);
    journal_test.write("a", "two");
    journal_test.journal.switch_to(&second).unwrap();
    assert_eq!((journal_test.journal.last_undoable_turn(), second.exists()), (None, false));
    journal_test.journal.begin_turn(1);
    journal_test.write("a", "three");
    assert!(second.exists());
    assert_eq!(journal_test.undo(1), [("a".to_owned(), UndoOutcome::Restored)]);
    assert_eq!(journal_test.content("a").as_deref(), Some("two"));
    journal_test.journal.switch_to(&first).unwrap();
    assert_eq!(journal_test.undo(1), [("a".to_owned(), UndoOutcome::Restored)]);
    assert_eq!(journal_test.content("a").as_deref(), Some("one"));
}

#[test]
fn a_turn_is_undone_once_even_if_two_ask_for_it_at_once() {
    let journal_test = journal_test(&[("a", "a1")]);
    journal_test.journal.begin_turn(1);
    journal_test.write("a", "a2");
    let journal = &journal_test.journal;
    let undone: Vec<bool> = std::thread::scope(|scope| {
        let asked = [(); 2].map(|()| scope.spawn(|| journal.undo(1).is_ok()));
        asked.into_iter().map(|asked| asked.join().unwrap()).collect()
    });
    assert_eq!(undone.iter().filter(|undone| **undone).count(), 1, "{undone:?}");
    assert_eq!(fs::read_to_string(journal_test.fixture.path("a")).unwrap(), "a1");
    let again = Journal::open(journal_test.fixture.outside().join("journal")).unwrap();
    assert_eq!(again.last_undoable_turn(), None);
}
