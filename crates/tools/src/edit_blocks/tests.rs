use super::*;

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
