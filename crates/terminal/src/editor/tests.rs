use proptest::prelude::*;

use super::*;

fn count_tokens(text: &str) -> usize {
    text.len() / 4
}

fn editor() -> Editor {
    Editor::new(History::default(), count_tokens)
}

fn typed(text: &str) -> Editor {
    let mut editor = editor();
    text.chars().for_each(|c| editor.insert_char(c));
    editor
}

/// The text with `|` at the cursor.
fn state(editor: &Editor) -> String {
    let (text, cursor) = (editor.buffer().text(), editor.buffer().cursor());
    format!("{}|{}", &text[..cursor], &text[cursor..])
}

fn after(editor: &mut Editor, actions: &[Action]) -> String {
    for action in actions {
        editor.apply(*action);
    }
    state(editor)
}

#[test]
fn motions_and_cuts_are_those_of_readline() {
    use Action::*;
    let mut line = typed("cargo test --lib src/a.rs");
    assert_eq!(after(&mut line, &[WordLeft]), "cargo test --lib src/a.|rs");
    assert_eq!(after(&mut line, &[LineStart, WordRight]), "cargo| test --lib src/a.rs");
    assert_eq!(after(&mut line, &[KillWordForward]), "cargo| --lib src/a.rs");
    assert_eq!(after(&mut line, &[LineEnd, KillWordBack]), "cargo --lib |");
    assert_eq!(after(&mut line, &[KillWordPartBack]), "cargo --|");
    assert_eq!(after(&mut line, &[KillToStart]), "|");
    // Cuts in a row are one.
    assert_eq!(after(&mut line, &[Yank]), "cargo --lib src/a.rs|");
    assert_eq!(after(&mut line, &[YankOlder]), " test|");
    assert_eq!(after(&mut line, &[LineStart, KillToEnd, Undo]), "| test");
}

#[test]
fn undo_takes_back_words_and_a_cleared_line_can_be_yanked() {
    let mut line = typed("one two");
    assert_eq!(after(&mut line, &[Action::Undo]), "one|");
    assert_eq!(after(&mut line, &[Action::Undo]), "|");
    let mut line = typed("draft");
    line.clear();
    assert_eq!(state(&line), "|");
    assert_eq!(after(&mut line, &[Action::Yank]), "draft|");
}

#[test]
fn clusters_are_moved_over_and_deleted_whole() {
    let mut line = typed("a👩‍💻e\u{301}");
    assert_eq!(after(&mut line, &[Action::DeleteBack]), "a👩‍💻|");
    assert_eq!(after(&mut line, &[Action::DeleteBack]), "a|");
}

#[test]
fn a_large_paste_is_one_element_that_is_sent_in_full() {
    let pasted: String = (0..200).map(|n| format!("line {n}\r\n")).collect();
    let mut line = typed("see ");
    line.paste(&pasted);
    line.insert_char('!');
    assert_eq!(line.buffer().shown(), "see [paste 1 · 200 lines · 422 tokens]!");
    assert_eq!(line.buffer().expanded(), format!("see {}!", pasted.replace("\r\n", "\n")));
    let rows = line.rows();
    assert_eq!(
        (rows.rows.len(), rows.row, rows.column),
        (1, 0, "see [paste 1 · 200 lines · 422 tokens]!".chars().count())
    );
    after(&mut line, &[Action::DeleteBack, Action::DeleteBack]);
    assert_eq!(state(&line), "see |");
    after(&mut line, &[Action::Undo, Action::ExpandPaste]);
    assert_eq!(line.buffer().text(), format!("see {}", pasted.replace("\r\n", "\n")));
}

#[test]
fn pasting_an_element_again_shows_its_text() {
    let pasted = "x\n".repeat(9);
    let mut line = editor();
    line.paste(&pasted);
    line.paste(&pasted);
    assert_eq!(line.buffer().text(), pasted);
}

#[test]
fn several_pasted_lines_are_never_a_command_and_a_typed_slash_is() {
    let kind = |mut line: Editor| line.submit().unwrap().0.kind;
    let pasted = |text: &str| {
        let mut line = editor();
        line.paste(text);
        line
    };
    assert_eq!(kind(pasted("!rm -rf /\nls")), SubmissionKind::Prompt);
    assert_eq!(kind(pasted(&"/clear\n".repeat(20))), SubmissionKind::Prompt);
    assert_eq!(kind(pasted("/model opus")), SubmissionKind::Command);
    assert_eq!(kind(typed("/model opus")), SubmissionKind::Command);
    assert_eq!(kind(typed("!ls")), SubmissionKind::Shell);
    assert_eq!(kind(typed("!!ls")), SubmissionKind::PrivateShell);
    assert_eq!(kind(typed("why?")), SubmissionKind::Prompt);
    let mut line = pasted("a\nb");
    line.clear();
    "/cost".chars().for_each(|c| line.insert_char(c));
    assert_eq!(kind(line), SubmissionKind::Command);
}

#[test]
fn a_sent_line_is_in_the_history_and_the_draft_survives_looking_there() {
    let mut line = typed("first");
    let (submission, saved) = line.submit().unwrap();
    assert_eq!((submission.text.as_str(), saved.as_deref()), ("first", Some("first\n")));
    "second".chars().for_each(|c| line.insert_char(c));
    line.submit();
    "dra".chars().for_each(|c| line.insert_char(c));
    assert_eq!(after(&mut line, &[Action::Up]), "second|");
    assert_eq!(after(&mut line, &[Action::Up]), "first|");
    assert_eq!(line.apply(Action::Up), EditOutcome::NotHere);
    assert_eq!(after(&mut line, &[Action::Down, Action::Down]), "dra|");
    assert_eq!(line.apply(Action::Down), EditOutcome::NotHere);
}

#[test]
fn arrows_move_in_the_text_before_they_reach_the_history() {
    let mut line = typed("sent");
    line.submit();
    line.set_columns(20);
    "long first line\nab\nthird line".chars().for_each(|c| line.insert_char(c));
    assert_eq!(after(&mut line, &[Action::Up]), "long first line\nab|\nthird line");
    // The column is kept over the short line.
    assert_eq!(after(&mut line, &[Action::Up]), "long first| line\nab\nthird line");
    assert_eq!(after(&mut line, &[Action::Up]), "sent|");
}

#[test]
fn rows_wrap_between_clusters_and_the_cursor_has_a_place() {
    let mut line = typed("漢字漢字漢");
    line.set_columns(6);
    let rows = line.rows();
    let texts: Vec<&str> = rows.rows.iter().map(|row| row.text.as_str()).collect();
    assert_eq!((texts, rows.row, rows.column), (vec!["漢字", "漢字", "漢"], 2, 2));
    let mut line = typed("a\x1bb\u{202e}");
    line.set_columns(40);
    assert_eq!(line.rows().rows[0].text, "a^[b‹U+202E›");
}

#[test]
fn the_history_is_searched_and_taken_into_the_line() {
    let mut line = Editor::new(History::parse("run tests\nfix docs\n"), count_tokens);
    line.apply(Action::SearchHistory);
    "te".chars().for_each(|c| line.insert_char(c));
    assert_eq!(line.search().unwrap().1, Some("run tests"));
    line.apply(Action::SearchAccept);
    assert_eq!(state(&line), "run tests|");
    line.apply(Action::SearchHistory);
    line.apply(Action::SearchCancel);
    assert_eq!((state(&line).as_str(), line.search().is_none()), ("run tests|", true));
}

#[test]
fn a_suggestion_is_taken_with_the_arrow_at_the_end() {
    let mut line = Editor::new(History::parse("run the tests\n"), count_tokens);
    "run".chars().for_each(|c| line.insert_char(c));
    assert_eq!(line.suggestion(), Some(" the tests"));
    assert_eq!(after(&mut line, &[Action::Left]), "ru|n");
    assert_eq!(line.suggestion(), None);
    assert_eq!(after(&mut line, &[Action::Right, Action::Right]), "run the tests|");
}

#[test]
fn a_list_opens_as_one_types_and_stays_closed_for_the_word() {
    let mut line = editor();
    let files = Arc::new(FuzzyList::new(["src/fuzzy.rs", "src/main.rs", "src/"]));
    line.set_sources(vec![
        Arc::new(CommandSource::new(vec![("model".into(), "choose the model".into())])),
        Arc::new(FileSource::new(files, Arc::new(|path| format!("{} bytes", path.len())))),
    ]);
    "see @fuz".chars().for_each(|c| line.insert_char(c));
    let list = line.list().unwrap();
    assert_eq!((list.items[0].text.as_str(), list.items[0].detail.as_str()), ("@src/fuzzy.rs ", "12 bytes"));
    assert_eq!(after(&mut line, &[Action::AcceptCompletion]), "see @src/fuzzy.rs |");
    assert!(line.list().is_none());
    "@ma".chars().for_each(|c| line.insert_char(c));
    line.apply(Action::CloseList);
    line.insert_char('i');
    assert!(line.list().is_none());
    " @m".chars().for_each(|c| line.insert_char(c));
    assert!(line.list().is_some());
}

#[test]
fn the_stash_comes_back_on_an_empty_line() {
    let mut line = typed("long thought");
    assert_eq!((after(&mut line, &[Action::Stash]).as_str(), line.has_stash()), ("|", true));
    "quick".chars().for_each(|c| line.insert_char(c));
    line.submit();
    assert_eq!((after(&mut line, &[Action::Stash]).as_str(), line.has_stash()), ("long thought|", false));
}

#[test]
fn a_backslash_before_enter_continues_the_line() {
    let mut line = typed("a\\");
    assert!(line.continue_line());
    assert_eq!(state(&line), "a\n|");
    assert!(!line.continue_line());
}

#[test]
fn a_word_that_means_leaving_is_the_command_for_it_and_no_prompt() {
    for (text, sent) in
        [("exit", "/quit"), (" quit ", "/quit"), ("exit the loop", "exit the loop"), ("Exit?", "Exit?")]
    {
        let (submission, _) = typed(text).submit().unwrap();
        assert_eq!(submission.text, sent);
        assert_eq!(submission.kind, SubmissionKind::of(sent));
    }
    let mut line = typed("");
    line.paste("exit");
    assert_eq!(line.submit().unwrap().0.text, "/quit", "a short paste is as typed");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn whatever_is_pressed_the_cursor_is_between_clusters_and_undo_reaches_the_start(
        steps in prop::collection::vec((0..Action::ALL.len(), any::<char>(), 0..4usize), 0..60),
    ) {
        let mut line = Editor::new(History::parse("one\ntwo lines\\nhere\n"), count_tokens);
        for (action, c, what) in steps {
            match what {
                0 => line.insert_char(c),
                1 => line.paste(&format!("{c}\n").repeat(action)),
                _ => drop(line.apply(Action::ALL[action])),
            }
            let (text, cursor) = (line.buffer().text(), line.buffer().cursor());
            prop_assert!(text.is_char_boundary(cursor));
            let rows = line.rows();
            prop_assert!(rows.row < rows.rows.len() && rows.column < 78);
        }
    }
}
