use std::fs;

use hardpan_context::knowledge::{FileObservation, LineRanges};
use hardpan_prompt::Hash;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

fn tool() -> Edit {
    Edit(FileChanger::new(None))
}

fn one(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_text": old, "new_text": new})
}

fn content(fixture: &TestWorkspace, name: &str) -> String {
    fs::read_to_string(fixture.path(name)).unwrap()
}

#[test]
fn a_text_that_occurs_once_is_replaced_and_the_change_shown() {
    let fixture = workspace(&[("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n")]);
    let outcome = fixture.call(&tool(), &one("a.rs", "fn b()", "fn b(x: u8)"));
    let details = outcome.details.unwrap();
    assert_eq!(details["path"], "a.rs");
    assert_eq!(details["first_changed_line"], 2);
    assert_eq!(details["hash"], json!(Hash::of(content(&fixture, "a.rs").as_bytes())));
    assert_eq!(
        outcome.content,
        [hardpan_prompt::MessagePart::text(
            "Edited a.rs in 1 place:\n\n@@ -1,3 +1,3 @@\n fn a() {}\n-fn b() {}\n+fn b(x: u8) {}\n fn c() {}\n"
        )]
    );
    assert_eq!(content(&fixture, "a.rs"), "fn a() {}\nfn b(x: u8) {}\nfn c() {}\n");
}

#[test]
fn every_reason_why_an_edit_cannot_be_made_has_its_own_diagnosis() {
    let text = "fn one() {\n    let total = 1;\n}\n\nfn two() {\n    let total = 1;\n}\nlast line here\n";
    let fixture = workspace(&[("a.rs", text)]);
    let fail = |old: &str, new: &str| {
        let told = fixture.failure(&tool(), &one("a.rs", old, new));
        told.strip_prefix("a.rs was not changed. ").map(str::to_owned).unwrap_or(told)
    };
    assert_eq!(
        fail("let total = 1;", "x"),
        "old_text occurs 2 times (on lines 2, 6). Include more of the lines around the one you mean."
    );
    assert_eq!(
        fail("fn two() {\n  let total = 1;\n}", "x"),
        "old_text differs from the file only in white space. The exact text, from line 5:\n\nfn two() {\n    let total = 1;\n}"
    );
    assert_eq!(
        fail("fn three() {", "fn two() {"),
        "old_text is not there, but new_text already is (line 5): the edit seems to have been made before."
    );
    assert_eq!(
        fail("fn two() {\n    let sum = 1;\n}", "x"),
        "old_text was not found. The nearest place, from line 5:\n\nfn two() {\n    let total = 1;\n}"
    );
    assert_eq!(
        fail("last lines are here", "x"),
        "old_text was not found. The nearest place, from line 8:\n\nlast line here"
    );
    assert_eq!(fail("§§§§", "x"), "old_text was not found, nor anything like it. Read the file again.");
    assert!(fail("", "x").starts_with("old_text is empty."));
    assert_eq!(fail("last", "last"), "old_text and new_text are the same: there is nothing to change.");
    assert_eq!(content(&fixture, "a.rs"), text);
}

#[test]
fn overlapping_occurrences_are_ambiguous_too() {
    let fixture = workspace(&[("a", "aaa\n")]);
    assert!(fixture.failure(&tool(), &one("a", "aa", "b")).contains("occurs 2 times"));
}

#[test]
fn several_edits_are_matched_against_the_original_and_made_together() {
    let fixture = workspace(&[("a", "1\n2\n3\n")]);
    let swap = json!({"path": "a", "edits": [{"old_text": "3", "new_text": "1"}, {"old_text": "1", "new_text": "3"}]});
    assert!(fixture.text(&tool(), &swap).starts_with("Edited a in 2 places:"));
    assert_eq!(content(&fixture, "a"), "3\n2\n1\n");
}

#[test]
fn of_several_edits_all_are_made_or_none() {
    let fixture = workspace(&[("a", "1\n2\n3\n")]);
    let edits = json!({"path": "a", "edits": [{"old_text": "1", "new_text": "x"}, {"old_text": "9", "new_text": "y"}]});
    let told = fixture.failure(&tool(), &edits);
    assert!(
        told.starts_with("a was not changed: edit 2 of 2 cannot be made. old_text was not found"),
        "{told}"
    );
    let edits = json!({"path": "a", "edits": [{"old_text": "1\n2", "new_text": "x"}, {"old_text": "2\n3", "new_text": "y"}]});
    let told = fixture.failure(&tool(), &edits);
    assert!(told.ends_with("It changes text that edit 1 changes, too. Make one edit of the two."), "{told}");
    assert_eq!(content(&fixture, "a"), "1\n2\n3\n");
}

#[test]
fn line_endings_and_the_byte_order_mark_stay() {
    let fixture =
        workspace(&[("crlf", "\u{feff}a\r\nb\r\nc\r\n"), ("mixed", "a\r\nb\nc\n"), ("lf", "a\nb\n")]);
    fixture.text(&tool(), &one("crlf", "a\nb\n", "x\ny\nz\n"));
    assert_eq!(content(&fixture, "crlf"), "\u{feff}x\r\ny\r\nz\r\nc\r\n");
    fixture.text(&tool(), &one("mixed", "b\nc", "b2\nc2"));
    assert_eq!(content(&fixture, "mixed"), "a\r\nb2\nc2\n");
    fixture.text(&tool(), &one("lf", "a\r\nb", "c\r\nd"));
    assert_eq!(content(&fixture, "lf"), "c\nd\n");
}

#[test]
fn what_is_not_utf_8_is_refused_and_left_as_it_is() {
    let fixture = workspace(&[]);
    for (bytes, why) in [
        (&b"caf\xe9\n"[..], "is not UTF-8 (byte 3 is the first wrong one)"),
        (b"\xff\xfea\0", "is UTF-16"),
        (b"a\0b", "is binary (byte 1 is NUL)"),
    ] {
        fixture.write("a", bytes);
        let told = fixture.failure(&tool(), &one("a", "a", "b"));
        assert!(told.starts_with(&format!("a {why}")), "{told}");
        assert_eq!(fs::read(fixture.path("a")).unwrap(), bytes);
    }
}

#[test]
fn a_file_that_changed_since_it_was_seen_is_shown_first() {
    let fixture = workspace(&[("a", "one\ntwo\n")]);
    let tool = tool();
    fixture.read("a");
    fixture.write("a", "one\n2\n");
    let told = fixture.failure(&tool, &one("a", "one", "1"));
    assert!(told.contains("-two\n+2\n"), "{told}");
    fixture.text(&tool, &one("a", "one", "1"));
    assert_eq!(content(&fixture, "a"), "1\n2\n");
}

#[test]
fn an_edit_says_which_lines_it_shows_of_the_new_content() {
    let lines: String = (1..=30).map(|line| format!("line {line}\n")).collect();
    let fixture = workspace(&[("a", &lines)]);
    let edits = json!({"path": "a", "edits": [
        {"old_text": "line 5\n", "new_text": "5\nand more\n"}, {"old_text": "line 29\n", "new_text": ""},
    ]});
    let outcome = fixture.call(&tool(), &edits);
    let new = lines.replace("line 5\n", "5\nand more\n").replace("line 29\n", "");
    let shown = LineRanges::from(vec![(2, 9), (27, 30)]);
    let expected = FileObservation::of_text("a", ObservationKind::Edited, &new, shown);
    assert_eq!(outcome.file_observations, [expected]);
}

#[test]
fn a_missing_file_and_a_half_edit_are_told() {
    let fixture = workspace(&[("main.rs", "")]);
    assert!(fixture.failure(&tool(), &one("man.rs", "a", "b")).contains("Nearest names: main.rs"));
    assert!(fixture.failure(&tool(), &one("no/such/file", "a", "b")).contains("does not exist"));
    let told = fixture.failure(&tool(), &json!({"path": "main.rs", "old_text": "a"}));
    assert_eq!(told, "Give old_text and new_text together; new_text may be empty.");
    assert!(
        fixture.failure(&tool(), &json!({"path": "main.rs"})).starts_with("There is no edit in the call.")
    );
}

proptest! {
    // Against the plainest way to say it, on texts without carriage returns.
    #[test]
    fn one_edit_is_what_replacing_the_only_occurrence_is(text in "[ab\n]{0,12}", old in "[ab\n]{1,3}", new in "[abc\n]{0,3}") {
        let edit = [Replacement { old_text: old.clone(), new_text: new.clone() }];
        let overlapping = (0..text.len()).filter(|&at| text[at..].starts_with(&old)).count();
        match apply_edits(&text, &edit) {
            Ok(result) => prop_assert_eq!(result, text.replacen(&old, &new, 1)),
            Err(_) => prop_assert!(overlapping != 1 || old == new),
        }
    }

    #[test]
    fn what_is_not_edited_stays_byte_for_byte(before in "[a\r\n]{0,8}", after in "[a\r\n]{0,8}") {
        let text = format!("{before}X{after}");
        let edit = [Replacement { old_text: "X".to_owned(), new_text: "Y".to_owned() }];
        prop_assert_eq!(apply_edits(&text, &edit).ok(), Some(format!("{before}Y{after}")));
    }
}
