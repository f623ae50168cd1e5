use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

fn parse(answer: &str) -> Vec<Result<EditBlock, MalformedBlock>> {
    let mut parser = EditBlockParser::default();
    let mut found = parser.push(answer);
    found.extend(parser.finish());
    found
}

fn block(path: &str, old_text: &str, new_text: &str) -> Result<EditBlock, MalformedBlock> {
    Ok(EditBlock { path: path.into(), old_text: old_text.into(), new_text: new_text.into() })
}

#[test]
fn blocks_are_found_in_the_text_around_them() {
    let answer = "I rename it.\n\nsrc/clock.py\n<<<<<<< EDIT\ndef now(self):\n======= REPLACE\ndef time(self):\n\
                  >>>>>>> END\n\nAnd a new file:\n\ndocs/new.md\n<<<<<<< EDIT\n======= REPLACE\nHello\n>>>>>>> END";
    let expected = vec![
        block("src/clock.py", "def now(self):\n", "def time(self):\n"),
        block("docs/new.md", "", "Hello\n"),
    ];
    assert_eq!(parse(answer), expected);
}

#[test]
fn markers_and_decoration_that_models_know_from_elsewhere_are_taken() {
    let forms = [
        "src/a.rs\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n",
        "**src/a.rs**\n```rust\n<<<<<<< EDIT\na\n=======\nb\n>>>>>>> REPLACE\n```\n",
        "`src/a.rs`:\n\n<<<<< EDIT\r\na\r\n===== REPLACE\r\nb\r\n>>>>> END\r\n",
        "### src/a.rs\n```\n<<<<<<<< EDIT\na\n======== REPLACE\nb\n>>>>>>>> END",
    ];
    for form in forms {
        assert_eq!(parse(form), vec![block("src/a.rs", "a\n", "b\n")], "{form}");
    }
}

#[test]
fn lines_of_signs_in_a_file_are_text_beside_a_labelled_separator() {
    let answer = "a.md\n<<<<<<< EDIT\nTitle\n=======\n======= REPLACE\nOther\n=======\n>>>>>>> END\n";
    assert_eq!(parse(answer), vec![block("a.md", "Title\n=======\n", "Other\n=======\n")]);
    let bare = "a.md\n<<<<<<< EDIT\nTitle\n=======\n=======\nOther\n>>>>>>> END\n";
    assert_eq!(parse(bare), vec![Err(MalformedBlock::SeveralSeparators { line: 2 })]);
}

#[test]
fn a_block_that_cannot_be_carried_out_says_why_and_where() {
    let cases = [
        ("<<<<<<< EDIT\na\n=======\nb\n>>>>>>> END\n", MalformedBlock::NoPath { line: 1 }),
        ("I change it now.\n<<<<<<< EDIT\na\n=======\nb\n>>>>>>> END\n", MalformedBlock::NoPath { line: 2 }),
        ("a.rs\n<<<<<<< EDIT\na\n>>>>>>> END\n", MalformedBlock::NoSeparator { line: 2 }),
        ("a.rs\n<<<<<<< EDIT\na\n=======\nb\n", MalformedBlock::NoEnd { line: 2 }),
    ];
    for (answer, why) in cases {
        assert_eq!(parse(answer), vec![Err(why)], "{answer}");
    }
}

#[test]
fn a_block_without_an_end_does_not_swallow_the_next() {
    let answer = "a.rs\n<<<<<<< EDIT\na\n=======\nb\n\nb.rs\n<<<<<<< EDIT\nc\n=======\nd\n>>>>>>> END\n";
    assert_eq!(parse(answer), vec![Err(MalformedBlock::NoEnd { line: 2 }), block("b.rs", "c\n", "d\n")]);
}

/// However the stream is cut, the same blocks are found.
#[test]
fn pieces_of_any_size_give_the_same_blocks() {
    let answer = "x\n\na/ä.rs\n```\n<<<<<<< EDIT\nö\r\n=======\nü\n>>>>>>> END\n```\nb.rs\n<<<<<<< EDIT\n=======\n\n>>>>>>> END";
    let whole = parse(answer);
    assert_eq!(whole.len(), 2);
    for size in 1..answer.len() {
        let mut parser = EditBlockParser::default();
        let characters: Vec<char> = answer.chars().collect();
        let mut found: Vec<_> = characters
            .chunks(size)
            .flat_map(|piece| parser.push(&piece.iter().collect::<String>()))
            .collect();
        found.extend(parser.finish());
        assert_eq!(found, whole, "pieces of {size}");
    }
}

#[test]
fn words_before_a_block_are_no_path_unless_they_stand_in_backticks() {
    let body = "<<<<<<< EDIT\n======= REPLACE\na\n>>>>>>> END\n";
    assert_eq!(
        parse(&format!("Here is the new file\n{body}")),
        vec![Err(MalformedBlock::NoPath { line: 2 })]
    );
    assert_eq!(parse(&format!("`my file.txt`\n{body}")), vec![block("my file.txt", "", "a\n")]);
}

/// Applies a block in a workspace, and tells how it ended.
fn apply(fixture: &TestWorkspace, path: &str, old: &str, new: &str) -> (EditBlockStatus, String) {
    let block = EditBlock { path: path.into(), old_text: old.into(), new_text: new.into() };
    let outcome = fixture.call(&*edit_block_tool(None), &serde_json::to_value(&block).unwrap());
    let status = EditBlockStatus::of_outcome(&outcome);
    assert_eq!(status.is_success(), !outcome.is_error, "{outcome:?}");
    (status, outcome.content.iter().map(|part| format!("{part:?}")).collect())
}

#[test]
fn a_block_replaces_whole_lines_that_occur_once() {
    use EditBlockStatus::*;
    let former = "one\n z two\nsame\nsame\ntwo\nend";
    let fixture = workspace(&[("a.txt", former), ("crlf.txt", "one\r\ntwo\r\n")]);
    fixture.call(&crate::Read, &serde_json::json!({"path": "a.txt"}));
    fixture.call(&crate::Read, &serde_json::json!({"path": "crlf.txt"}));
    let cases = [
        ("a.txt", "two\n", "zwei\n", Applied, "one\n z two\nsame\nsame\nzwei\nend"),
        ("a.txt", "two\n", "zwei\n", AlreadyApplied, "one\n z two\nsame\nsame\nzwei\nend"),
        ("a.txt", "same\n", "x\n", Ambiguous, "one\n z two\nsame\nsame\nzwei\nend"),
        ("a.txt", "three\n", "x\n", NotFound, "one\n z two\nsame\nsame\nzwei\nend"),
        ("a.txt", "gone\n", "same\n", NotFound, "one\n z two\nsame\nsame\nzwei\nend"),
        ("a.txt", "end\n", "END\n", Applied, "one\n z two\nsame\nsame\nzwei\nEND"),
        ("a.txt", "one\n", "", Applied, " z two\nsame\nsame\nzwei\nEND"),
        ("a.txt", "", "new\n", Exists, " z two\nsame\nsame\nzwei\nEND"),
        ("crlf.txt", "one\n", "eins\nzwo\n", Applied, "eins\r\nzwo\r\ntwo\r\n"),
        ("new/b.txt", "", "hello\n", Created, "hello\n"),
        ("new/b.txt", "", "hello\n", AlreadyApplied, "hello\n"),
        ("new/b.txt", "hello\n", "bye\n", Applied, "bye\n"),
    ];
    for (path, old, new, status, after) in cases {
        assert_eq!(apply(&fixture, path, old, new).0, status, "{path} {old:?} {new:?}");
        assert_eq!(std::fs::read_to_string(fixture.path(path)).unwrap(), after, "{path} {old:?}");
    }
    let (status, why) = apply(&fixture, "a.txt", "  same\n", "x\n");
    assert_eq!(status, NotFound);
    assert!(why.contains("The upper part"), "{why}");
    let (_, why) = apply(&fixture, "a.txt", "same\n", "x\n");
    assert!(why.contains("2 times (from lines 2, 3)"), "{why}");
}

#[test]
fn a_block_needs_a_file_that_the_model_has_seen_as_it_is() {
    use EditBlockStatus::*;
    let fixture = workspace(&[("a.txt", "one\n"), ("empty.txt", ""), ("binary", "a\0b\n")]);
    assert_eq!(apply(&fixture, "a.txt", "one\n", "two\n").0, NotInContext);
    assert_eq!(apply(&fixture, "missing.txt", "one\n", "two\n").0, NotFound);
    assert_eq!(apply(&fixture, "../out.txt", "", "two\n").0, Failed);
    assert_eq!(apply(&fixture, "binary", "a\n", "two\n").0, Failed);
    assert_eq!(apply(&fixture, "empty.txt", "", "two\n").0, Applied);
    fixture.call(&crate::Read, &serde_json::json!({"path": "a.txt"}));
    fixture.write("a.txt", "other\n");
    assert_eq!(apply(&fixture, "a.txt", "other\n", "two\n").0, ChangedSince);
    assert_eq!(std::fs::read_to_string(fixture.path("a.txt")).unwrap(), "other\n");
    // The refusal showed the change.
    assert_eq!(apply(&fixture, "a.txt", "other\n", "two\n").0, Applied);
}
