//! The drawings of the page as goldens, at three sizes.

use std::sync::Arc;
use std::time::Duration;

use ratatui::text::Line;

use crate::blocks::{
    CacheState, Cost, Delivery, FileDiff, RunEnd, RunSummary, StatusLine, Subject, Warmth, command_lines,
    warning_lines,
};
use crate::editor::{CommandSource, FileSource, FuzzyList};
use crate::model::{
    AgentUpdate, ApprovalPrompt, BlockKind, CallKind, Event, QuestionPrompt, RuleOffer, ToolEnd,
};
use crate::test_face::TestFace;
use crate::theme::{Glyphs, Palette, Theme};
use crate::transcript::BlockSource;

const SIZES: [(u16, u16); 3] = [(40, 20), (80, 24), (100, 32)];

const BEFORE: &str = "if (lastMatchIndex >= 0) {\n  score += (i - lastMatchIndex - 1) * 2;\n}\n";
const AFTER: &str =
    "if (lastMatchIndex >= 0) {\n  score += Math.min(i - lastMatchIndex - 1, MAX_GAP) * PENALTY;\n}\n";

fn status() -> StatusLine {
    StatusLine {
        model: "sonnet 5.5 high".into(),
        layers: vec![
            (29_700, CacheState::Read),
            (6_500, CacheState::Garbage),
            (3_100, CacheState::Read),
            (6_100, CacheState::Garbage),
            (1_850, CacheState::Written),
            (240, CacheState::Sent),
        ],
        cost: Cost { paid: 0.48, ..Cost::default() },
        next: Some(0.0096),
        warmth: Some(Warmth::Warm(Duration::from_secs(252))),
        ..StatusLine::default()
    }
}

fn path() -> Subject {
    Subject::Path("packages/tui/src/fuzzy.ts".into())
}

fn start(face: &mut TestFace, id: &str, name: &str, subject: Subject) {
    face.agent(AgentUpdate::ToolStarted { id: id.into(), name: name.into(), subject });
}

fn end(face: &mut TestFace, id: &str, facts: &[&str], details: Vec<Line<'static>>) {
    let facts = facts.iter().map(|fact| (*fact).to_owned()).collect();
    let end = ToolEnd { id: id.into(), facts, details, ..ToolEnd::default() };
    face.agent(AgentUpdate::ToolEnded(end));
}

/// A run that has read and edited, up to a running command.
fn working(face: &mut TestFace) {
    face.event(Event::Status(status()));
    face.type_text("cap the gap penalty in fuzzyMatch and run the checks");
    face.press("enter");
    face.agent(AgentUpdate::RunStarted);
    face.agent(AgentUpdate::Text("I look at the matcher and its tests first.".into()));
    start(face, "1", "read", path());
    end(face, "1", &["133 lines"], Vec::new());
    start(face, "2", "read", Subject::Path("packages/tui/test/fuzzy.test.ts".into()));
    end(face, "2", &["88 lines"], Vec::new());
    start(face, "3", "edit", path());
    let diff = FileDiff::new("fuzzy.ts", BEFORE, AFTER);
    let lines = diff.unified(usize::from(face.model.size.columns), &face.model.theme);
    end(face, "3", &["+1 −1", "you: yes"], lines);
    let text = "Capped. Three callers pass no options; nothing changes for them. Now the checks.";
    face.agent(AgentUpdate::Text(text.into()));
    start(face, "4", "bash", Subject::Text("npm run check".into()));
    let output: String = (1..=38).map(|n| format!("ok {n}\n")).collect();
    let output = output + "ok 9 gap: capped\nok 10 gap: unicode\nok 11 list: select\n";
    face.agent(AgentUpdate::ToolOutput { id: "4".into(), text: output });
    face.agent(AgentUpdate::Queue(vec![
        (Delivery::AfterThisTool, "also check the docs".into()),
        (Delivery::AtTheEnd, "then write the commit message".into()),
    ]));
    face.wait(7000);
    face.type_text("and the chan");
}

/// A drawing at each size.
fn drawings(scene: impl Fn(&mut TestFace)) -> String {
    let draw = |(columns, rows): (u16, u16)| {
        let mut face = TestFace::new(columns, rows);
        scene(&mut face);
        format!("══ {columns}×{rows}\n{}\n", face.drawing())
    };
    SIZES.into_iter().map(draw).collect()
}

#[test]
fn start_without_a_key() {
    insta::assert_snapshot!(drawings(|face| {
        let greeting = ["hardpan 0.2 · ~/retry-demo · main, 3 changed · 214 files", "", "No API key found."];
        let greeting = BlockSource::Lines(greeting.map(Line::from).to_vec());
        face.model.say(BlockKind::Greeting, greeting);
        face.event(Event::Status(StatusLine { model: "offline".into(), ..StatusLine::default() }));
    }));
}

#[test]
fn working_with_a_draft_and_a_queue() {
    insta::assert_snapshot!(drawings(working));
}

#[test]
fn streaming_an_answer() {
    insta::assert_snapshot!(drawings(|face| {
        face.event(Event::Status(status()));
        face.type_text("why?");
        face.press("enter");
        face.agent(AgentUpdate::RunStarted);
        face.agent(AgentUpdate::Reasoning("I should look at the matcher first. ".repeat(12)));
        face.wait(12_000);
        face.agent(AgentUpdate::Text(
            "Because of **two** things:\n\n- the gap\n- the penalty\n\nThe first is the ga".into(),
        ));
    }));
}

#[test]
fn reasoning_and_waiting() {
    insta::assert_snapshot!(drawings(|face| {
        face.type_text("why?");
        face.press("enter");
        face.agent(AgentUpdate::RunStarted);
        face.wait(3000);
        face.draw();
        face.agent(AgentUpdate::Reasoning("I should look at the matcher first. ".repeat(12)));
    }));
}

fn edit_approval(face: &TestFace) -> ApprovalPrompt {
    let diff = FileDiff::new("fuzzy.ts", BEFORE, AFTER);
    let head = Line::from("  edit  packages/tui/src/fuzzy.ts · +1 −1");
    let mut preview = vec![head];
    preview.extend(diff.unified(usize::from(face.model.size.columns), &face.model.theme));
    ApprovalPrompt {
        author: None,
        summary: String::new(),
        id: 1,
        kind: CallKind::Edit,
        model_says: Some("cap the gap penalty".into()),
        preview,
        diff: Some(Arc::new(diff)),
        rule: RuleOffer::Offered("edits in packages/tui/**".into()),
        editable: Some("npm run check".into()),
    }
}

fn ask(face: &mut TestFace, prompt: ApprovalPrompt) {
    face.event(Event::Status(status()));
    face.agent(AgentUpdate::RunStarted);
    face.agent(AgentUpdate::ApprovalAsked(prompt));
}

#[test]
fn approval_of_an_edit() {
    insta::assert_snapshot!(drawings(|face| {
        let prompt = edit_approval(face);
        ask(face, prompt);
    }));
}

#[test]
fn approval_that_waits_for_a_draft() {
    insta::assert_snapshot!(drawings(|face| {
        face.type_text("and the chan");
        let prompt = edit_approval(face);
        ask(face, prompt);
    }));
}

#[test]
fn approval_of_a_dangerous_command() {
    insta::assert_snapshot!(drawings(|face| {
        let columns = usize::from(face.model.size.columns);
        let theme = face.model.theme;
        let command = "rm -rf build/ && git push --force origin main";
        let mut preview = vec![Line::from("  bash  in ~/retry-demo · sandbox: writes here only, no network")];
        preview.extend(command_lines(command, columns, &theme));
        let warnings = [
            ("rm -rf build/".to_owned(), "deletes 214 files, 38 MB, not in git".to_owned()),
            (
                "git push --force".to_owned(),
                "rewrites origin/main · network: the sandbox refuses it".to_owned(),
            ),
        ];
        preview.extend(warning_lines(&warnings, columns, &theme));
        let prompt = ApprovalPrompt {
            kind: CallKind::Command { lines: 1 },
            diff: None,
            model_says: Some("Run the checks".into()),
            preview,
            rule: RuleOffer::NotOffered("rm -rf, --force".into()),
            ..edit_approval(face)
        };
        ask(face, prompt);
        face.draw();
        face.press("down");
    }));
}

#[test]
fn approval_of_a_command_longer_than_the_screen() {
    insta::assert_snapshot!(drawings(|face| {
        let columns = usize::from(face.model.size.columns);
        let command: String = (1..=26).map(|n| format!("echo {n}\n")).collect();
        let preview = command_lines(&command, columns, &face.model.theme);
        let prompt = ApprovalPrompt {
            summary: format!("bash {command}"),
            kind: CallKind::Command { lines: 26 },
            diff: None,
            preview,
            rule: RuleOffer::Offered("this exact text".into()),
            ..edit_approval(face)
        };
        ask(face, prompt);
    }));
}

#[test]
fn approval_of_a_call_that_an_extension_makes() {
    insta::assert_snapshot!(drawings(|face| {
        let columns = usize::from(face.model.size.columns);
        let command = "touch EVIL-ran; echo evil";
        let mut preview = vec![Line::from("  extension evil asks"), Line::from("  bash")];
        preview.extend(command_lines(command, columns, &face.model.theme));
        let prompt = ApprovalPrompt {
            author: Some("extension evil".into()),
            summary: format!("bash {command}"),
            kind: CallKind::Command { lines: 1 },
            diff: None,
            model_says: None,
            preview,
            ..edit_approval(face)
        };
        ask(face, prompt);
    }));
}

#[test]
fn the_reason_for_a_no() {
    insta::assert_snapshot!(drawings(|face| {
        let prompt = edit_approval(face);
        ask(face, prompt);
        face.draw();
        face.press("n");
        face.type_text("use the table instead");
    }));
}

#[test]
fn finished() {
    insta::assert_snapshot!(drawings(|face| {
        face.event(Event::Status(status()));
        face.agent(AgentUpdate::RunStarted);
        face.agent(AgentUpdate::Text("The gap penalty is capped at 24; all 12 checks pass.".into()));
        face.wait(41_000);
        let summary = RunSummary {
            end: RunEnd::Done,
            elapsed: Duration::ZERO,
            requests: 4,
            changes: (1, 4, 1),
            cost: Cost { paid: 0.031, ..Cost::default() },
            read: Some((97, 100)),
            paid_again: None,
        };
        face.agent(AgentUpdate::RunEnded { summary: Some(summary), problem: None });
    }));
}

#[test]
fn retry_compaction_stop_and_failure() {
    insta::assert_snapshot!(drawings(|face| {
        face.agent(AgentUpdate::RunStarted);
        let (message, wait) = ("529 overloaded".into(), Duration::from_secs(3));
        face.agent(AgentUpdate::Retry { message, wait, attempt: 2, attempts: 10 });
        let retry = face.drawing();
        face.agent(AgentUpdate::Compacting { text: "41k → about 6k · $0.02".into() });
        let compaction = face.drawing();
        start(face, "1", "bash", Subject::Text("npm run check".into()));
        face.press("esc");
        let stop = face.drawing();
        let problem = Some("The provider refused the key.\nSet another one with /key.".into());
        face.agent(AgentUpdate::RunEnded { summary: None, problem });
        face.printed = [retry, compaction, stop].map(|text| text + "\n").to_vec();
    }));
}

#[test]
fn completion_of_commands_and_files() {
    insta::assert_snapshot!(drawings(|face| {
        let files = ["packages/tui/src/fuzzy.ts", "packages/tui/test/fuzzy.test.ts", "docs/fuzzy.md"];
        face.model.editor.set_sources(vec![
            Arc::new(CommandSource::new(vec![
                ("model".into(), "show the model, or switch to another: /model NAME".into()),
                ("mode".into(), "how much runs without asking".into()),
            ])),
            Arc::new(FileSource::new(Arc::new(FuzzyList::new(files)), Arc::new(|_| "1.9k · $0.004".into()))),
        ]);
        face.type_text("/mo");
        let commands = face.drawing();
        face.press("ctrl-u");
        face.type_text("look at @fuz");
        face.press("down");
        face.printed = vec![commands + "\n"];
    }));
}

#[test]
fn lines_of_the_editor() {
    insta::assert_snapshot!(drawings(|face| {
        face.type_text("one ");
        face.paste(&"x\n".repeat(200));
        face.press("alt-enter");
        face.type_text("a second line that is longer than forty columns, and then some more of it");
        for line in 3..12 {
            face.press("ctrl-j");
            face.type_text(&format!("line {line}"));
        }
        face.press("up");
    }));
}

#[test]
fn a_question_with_choices() {
    insta::assert_snapshot!(drawings(|face| {
        face.agent(AgentUpdate::RunStarted);
        let choices = vec!["the table".into(), "the function".into()];
        face.agent(AgentUpdate::QuestionAsked(QuestionPrompt {
            id: 1,
            text: "Which one do you mean?".into(),
            choices,
            is_secret: false,
            ..QuestionPrompt::default()
        }));
        face.draw();
        face.wait(1);
        face.press("down");
    }));
}

#[test]
fn what_a_question_is_about_is_printed_above_it() {
    let mut face = TestFace::new(80, 24);
    let (id, text) = (1, "# demo\n\n- `src/`: 2 files\nWrite this?".to_owned());
    face.agent(AgentUpdate::QuestionAsked(QuestionPrompt {
        id,
        text,
        choices: Vec::new(),
        is_secret: false,
        ..QuestionPrompt::default()
    }));
    face.draw();
    let drawn = face.drawing();
    assert!(drawn.contains("- `src/`: 2 files\n") && !drawn.contains("^J"), "{drawn}");
    face.press("y");
    face.press("enter");
    let drawn = face.drawing();
    assert!(drawn.contains("- `src/`: 2 files\n") && !drawn.contains("Write this?"), "{drawn}");
}

#[test]
fn a_secret_answer_is_neither_drawn_nor_printed() {
    let mut face = TestFace::new(80, 24);
    let (id, text) = (1, "The key".to_owned());
    let prompt =
        QuestionPrompt { id, text, choices: Vec::new(), is_secret: true, ..QuestionPrompt::default() };
    face.agent(AgentUpdate::QuestionAsked(prompt));
    face.draw();
    "hush".chars().for_each(|c| _ = face.press(&c.to_string()));
    let typed = face.drawing();
    assert!(typed.contains("****") && !typed.contains("hush"), "{typed}");
    let effects = face.press("enter");
    assert_eq!(effects, [crate::model::Effect::AnswerQuestion { id: 1, answer: Some("hush".into()) }]);
    let printed = face.drawing();
    assert!(!printed.contains("hush"), "{printed}");
}

#[test]
fn without_colours_and_in_ascii() {
    let theme = Theme { palette: Palette::None, glyphs: &Glyphs::ASCII };
    let mut face = TestFace::with_theme(80, 24, theme);
    working(&mut face);
    let drawn = face.drawing();
    insta::assert_snapshot!(drawn);
    let bytes = String::from_utf8(face.bytes().to_vec()).unwrap();
    assert!(!bytes.contains("\x1b[0;3") && !bytes.contains(";3"), "no colours");
}

#[test]
fn the_live_area_is_at_most_half_of_the_screen_at_every_size() {
    for columns in [1, 2, 5, 10, 20, 40, 79, 80, 200, 300] {
        for rows in [1, 2, 3, 5, 8, 12, 24, 60] {
            let mut face = TestFace::new(columns, rows);
            working(&mut face);
            face.draw();
            let frame = super::view(&face.model);
            let most = usize::from(rows / 2).clamp(super::FEWEST_LIVE_ROWS, super::MOST_LIVE_ROWS);
            assert!(
                frame.live.len() <= most.min(usize::from(rows)),
                "{columns}×{rows}: {}",
                frame.live.len()
            );
            assert!(frame.cursor.row < frame.live.len());
            let widest = frame.live.iter().map(crate::text::line_width).max().unwrap();
            assert!(widest <= usize::from(columns), "{columns}×{rows}: {widest}");
        }
    }
}

#[test]
fn a_short_markdown_answer_costs_few_bytes() {
    let answer = "# Retries\n\nThe client retries **three** kinds of failures, in `retry.rs`:\n\n".to_owned()
        + &"- overloads, with a wait that the server may name, and that doubles each time\n".repeat(8)
        + "\n```rust\nfn wait(attempt: u32) -> Duration {\n    Duration::from_secs(1 << attempt)\n}\n```\n\n"
        + &"A paragraph of prose that explains what the code does, in plain words. ".repeat(3);
    assert!((1000..1300).contains(&answer.len()), "{}", answer.len());
    let mut face = TestFace::new(80, 24);
    face.type_text("explain");
    face.press("enter");
    face.agent(AgentUpdate::RunStarted);
    face.draw();
    // 200 tokens of four characters a second, drawn 30 times a second.
    let letters: Vec<char> = answer.chars().collect();
    for piece in letters.chunks(200 * 4 / 30) {
        face.agent(AgentUpdate::Text(piece.iter().collect()));
        face.draw();
    }
    face.agent(AgentUpdate::RunEnded { summary: None, problem: None });
    face.draw();
    let written = face.bytes().len();
    assert!(written <= 15_000, "{written} bytes");
    println!("{written} bytes for {}", answer.len());
    let before = written;
    face.draw();
    assert_eq!(face.bytes().len(), before, "idle writes nothing");
}

#[test]
fn what_extensions_show_stands_around_the_line() {
    use crate::model::{Effect, ExtensionArea};
    let mut face = TestFace::new(80, 24);
    let lines = |count: usize| (1..=count).map(|number| format!("row {number}")).collect();
    let area = ExtensionArea {
        statuses: vec!["plan mode".into(), "evil \u{1b}[2J".into()],
        above: lines(10),
        below: vec!["below".into()],
        working: Some("Pondering".into()),
    };
    face.event(Event::Extensions(area));
    face.draw();
    let drawn = face.drawing();
    assert!(drawn.contains("row 5") && !drawn.contains("row 6") && drawn.contains("5 more"), "{drawn}");
    assert!(drawn.contains("plan mode · evil ^[[2J"), "{drawn}");
    let at = |text: &str| drawn.find(text).unwrap_or_else(|| panic!("{text} is missing:\n{drawn}"));
    assert!(at("row 1") < at("below") && at("below") < at("plan mode"));
    face.agent(AgentUpdate::RunStarted);
    face.draw();
    assert!(face.drawing().contains("Pondering"), "{}", face.drawing());
    let key = crate::keymap::KeyPress::parse("f9").unwrap();
    face.event(Event::ExtensionKeys([(key, "f9".to_owned())].into()));
    assert_eq!(face.press("f9"), [Effect::ExtensionKey("f9".into())]);
}

#[test]
fn an_answer_may_begin_with_a_text_and_a_question_may_be_taken_back() {
    let mut face = TestFace::new(80, 24);
    let prompt =
        QuestionPrompt { id: 3, text: "Edit".into(), prefill: "given".into(), ..QuestionPrompt::default() };
    face.agent(AgentUpdate::QuestionAsked(prompt.clone()));
    face.press("!");
    let answer = Some("given!".to_owned());
    assert_eq!(face.press("enter"), [crate::model::Effect::AnswerQuestion { id: 3, answer }]);
    face.agent(AgentUpdate::QuestionAsked(prompt));
    face.agent(AgentUpdate::QuestionClosed { id: 3 });
    face.press("x");
    assert_eq!(face.line(), "x", "keys go to the line again");
}
