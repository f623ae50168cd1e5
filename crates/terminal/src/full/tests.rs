//! The full screen over the model, as the loop drives it.

mod odd_content;

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use ratatui::text::Line;

use super::{FullScreen, RowPlace, TranscriptRows};
use crate::blocks::{Subject, sample_context};
use crate::input::InputEvent;
use crate::keymap::KeyPress;
use crate::model::{
    AgentUpdate, ApprovalAnswer, ApprovalPrompt, CallKind, Effect, Event, RuleOffer, ToolEnd,
};
use crate::screen::ScreenSize;
use crate::test_face::TestFace;
use crate::theme::{Glyphs, Theme};
use crate::views::{View, ViewFrame, ViewOutcome};

/// A face whose page may be behind the full screen.
struct FullFace {
    face: TestFace,
    full: Option<FullScreen>,
}

impl FullFace {
    fn new(columns: u16, rows: u16) -> Self {
        FullFace { face: TestFace::new(columns, rows), full: None }
    }

    fn open(&mut self, full: FullScreen) {
        // As the loop does: what waits is printed first.
        self.face.draw();
        self.face.event(Event::PageHidden(true));
        self.full = Some(full);
    }

    fn close(&mut self) {
        self.full = None;
        self.face.event(Event::PageHidden(false));
    }

    fn input(&mut self, input: InputEvent) {
        self.face.now += Duration::from_millis(1);
        let outcome = self.full.as_mut().map(|full| full.take_input(&input, self.face.now, &self.face.model));
        match outcome {
            None | Some(ViewOutcome::Pass) => drop(self.face.event(Event::Input(input))),
            Some(ViewOutcome::Close) => self.close(),
            Some(outcome) => assert_eq!(outcome, ViewOutcome::Stay),
        }
    }

    fn press(&mut self, key: &str) {
        self.input(InputEvent::Key(KeyPress::parse(key).unwrap()));
    }

    fn resize(&mut self, columns: u16, rows: u16) {
        self.input(InputEvent::Resize(ScreenSize { columns, rows }));
    }

    fn draw(&mut self) -> Option<ViewFrame> {
        let Some(full) = &mut self.full else {
            self.face.draw();
            return None;
        };
        let frame = full.draw(&self.face.model);
        self.face.event(Event::Drawn);
        Some(frame)
    }

    /// The rows of the full screen, with `▏` at the start of the cursor's row.
    fn screen(&mut self) -> Vec<String> {
        let frame = self.draw().unwrap();
        assert_eq!(frame.rows.len(), usize::from(self.face.model.size.rows));
        let mut rows: Vec<String> =
            frame.rows.iter().map(|row| row.to_string().trim_end().to_owned()).collect();
        let (row, _) = frame.cursor.unwrap();
        rows[row].insert(0, '▏');
        rows
    }

    fn call(&mut self, id: &str, subject: &str, output: String, details: Vec<Line<'static>>) {
        let (name, subject) = ("bash".to_owned(), Subject::Text(subject.to_owned()));
        self.face.agent(AgentUpdate::ToolStarted { id: id.into(), name, subject });
        let end = ToolEnd { id: id.into(), details, output, ..ToolEnd::default() };
        self.face.agent(AgentUpdate::ToolEnded(end));
    }

    /// What people see of an agent at work.
    fn work(&mut self) {
        self.face.type_text("cap the gap penalty");
        self.face.press("enter");
        self.face.agent(AgentUpdate::RunStarted);
        self.face.agent(AgentUpdate::Reasoning("The matcher adds a penalty for each gap.".into()));
        self.face.wait(12_000);
        self.face.agent(AgentUpdate::Text("I look at the **matcher** and its tests first.\n".into()));
        self.call("1", "cat fuzzy.ts", "line\n".repeat(133), Vec::new());
        self.call(
            "2",
            "sed -i fuzzy.ts",
            String::new(),
            vec![Line::from("    42 - old"), Line::from("    42 + new")],
        );
        let text = "Capped. Three callers pass no options; nothing changes for them. Now the checks.";
        self.face.agent(AgentUpdate::Text(text.into()));
        let (name, subject) = ("bash".into(), Subject::Text("npm run check".into()));
        self.face.agent(AgentUpdate::ToolStarted { id: "3".into(), name, subject });
        self.face.agent(AgentUpdate::ToolOutput { id: "3".into(), text: "ok 10\nok 11\n".into() });
        self.face.wait(7_000);
        self.face.type_text("and the chan");
    }
}

#[test]
fn the_conversation_the_context_beside_it_and_the_live_area_below() {
    let mut out = String::new();
    for (columns, rows, theme) in [
        (40, 20, Theme::default()),
        (80, 24, Theme::default()),
        (100, 32, Theme::default()),
        (160, 50, Theme::default()),
        (100, 32, Theme { glyphs: &Glyphs::ASCII, ..Theme::default() }),
    ] {
        let mut face = FullFace { face: TestFace::with_theme(columns, rows, theme), full: None };
        face.work();
        face.open(FullScreen::new(Some(Box::new(sample_context()))));
        out.push_str(&format!("── {columns}×{rows}\n{}\n", face.screen().join("\n")));
    }
    insta::assert_snapshot!("working", out);
}

/// A conversation of short messages, with its end on the screen.
fn long_conversation(columns: u16, rows: u16) -> FullFace {
    let mut face = FullFace::new(columns, rows);
    for number in 0..200 {
        face.face.agent(AgentUpdate::Note(format!("note {number} and some more words")));
    }
    face.open(FullScreen::new(None));
    face.draw();
    face
}

#[test]
fn a_place_is_kept_when_text_arrives_or_the_size_changes_and_only_the_end_is_followed() {
    let mut face = long_conversation(60, 20);
    face.press("pageup");
    face.press("pageup");
    let first = face.screen()[0].replace('▏', "");
    assert!(first.starts_with("! note 1"), "{first}");
    face.face.agent(AgentUpdate::Text("new\n\nnewer\n".into()));
    assert_eq!(face.screen()[0].replace('▏', ""), first);
    for (columns, rows) in [(24, 20), (120, 40), (24, 12), (60, 20)] {
        face.resize(columns, rows);
        let words: Vec<&str> = first.split_whitespace().take(3).collect();
        let shown = face.screen()[..2].join(" ");
        assert!(shown.contains(&words.join(" ")), "{columns}: {words:?} in {shown}");
    }
    face.press("tab");
    assert!(face.screen().iter().any(|row| row == "newer"));
    face.face.agent(AgentUpdate::Text("\nnewest\n".into()));
    assert!(face.screen().iter().any(|row| row == "newest"));
}

#[test]
fn keys_go_to_the_conversation_after_a_page_up_and_to_the_line_behind_its_end() {
    let mut face = long_conversation(60, 20);
    face.press("j");
    assert_eq!(face.face.line(), "j");
    face.press("pageup");
    face.press("j");
    face.press("x");
    assert_eq!(face.face.line(), "j");
    face.press("g");
    assert!(face.screen()[0].starts_with("▏! note 0 "));
    face.press("G");
    face.press("k");
    assert_eq!(face.face.line(), "jk");
    face.input(InputEvent::Wheel(-3));
    face.press("j");
    assert_eq!(face.face.line(), "jk");
    face.input(InputEvent::Wheel(3));
    face.press("j");
    assert_eq!(face.face.line(), "jkj");
    face.press("pageup");
    (0..300).for_each(|_| face.press("down"));
    face.press("j");
    assert_eq!(face.face.line(), "jkjj");
    face.press("ctrl-t");
    assert!(face.full.is_none());
}

#[test]
fn search_finds_what_is_folded_and_unfolds_it() {
    let mut face = FullFace::new(60, 20);
    let output: String = (0..60).map(|number| format!("row {number}\n")).collect();
    face.call("1", "first", output, Vec::new());
    face.face.agent(AgentUpdate::Note("the end".into()));
    face.open(FullScreen::new(None));
    assert!(!face.screen().join("\n").contains("row 42"));
    for key in ["pageup", "/", "R", "o", "w", "space", "4", "2", "enter"] {
        face.press(key);
    }
    let screen = face.screen();
    assert!(screen.iter().any(|row| row == "▏    row 42"), "{screen:?}");
    // From there on `n` goes round to the same place, and to nowhere else.
    face.press("n");
    assert_eq!(face.screen(), screen);
    for key in ["/", "x", "y", "z", "enter"] {
        face.press(key);
    }
    assert!(face.screen().last().unwrap().contains("\"xyz\" is not here"));
    face.press("space");
    assert!(!face.screen().join("\n").contains("row 42"));
}

#[test]
fn the_last_call_opens_unfolded_and_space_folds_it() {
    let mut face = FullFace::new(60, 20);
    face.call("1", "first", "one\n".into(), Vec::new());
    face.call("2", "second", "two\n".repeat(40), Vec::new());
    face.face.agent(AgentUpdate::Text("Done.".into()));
    face.open(FullScreen::at_last_call(None));
    let screen = face.screen();
    assert_eq!(screen[..3], ["▏✓ bash  second", "  ▾ 40 lines", "    two"]);
    face.press("space");
    let screen = face.screen().join("\n");
    assert!(screen.contains("▏✓ bash  second\n  ▸ 40 lines\n\nDone."), "{screen}");
}

#[test]
fn a_question_is_shown_whole_and_answered_in_the_full_screen() {
    let mut face = FullFace::new(60, 24);
    face.face.agent(AgentUpdate::RunStarted);
    face.open(FullScreen::new(None));
    face.draw();
    face.face.wait(5000);
    let preview = (0..9).map(|number| Line::from(format!("diff {number}"))).collect();
    let rule = RuleOffer::NotOffered(String::new());
    let prompt = ApprovalPrompt {
        author: None,
        summary: String::new(),
        id: 1,
        kind: CallKind::Edit,
        model_says: None,
        preview,
        diff: None,
        rule,
        editable: None,
    };
    face.face.agent(AgentUpdate::ApprovalAsked(prompt));
    let screen = face.screen().join("\n");
    assert!((0..9).all(|number| screen.contains(&format!("diff {number}\n"))), "{screen}");
    assert!(screen.contains("Change this file?"), "{screen}");
    // While keys go to the conversation, none of them answers.
    face.press("pageup");
    face.press("y");
    assert!(face.screen().last().unwrap().contains("! asks, Tab answers"));
    assert!(!face.face.effects.iter().any(|effect| matches!(effect, Effect::Answer { .. })));
    face.press("tab");
    face.draw();
    face.face.now += Duration::from_secs(1);
    face.press("y");
    assert!(face.face.effects.contains(&Effect::Answer { id: 1, answer: ApprovalAnswer::Once }));
    face.close();
    face.draw();
    assert!((0..9).all(|number| face.face.printed.contains(&format!("diff {number}"))));
}

#[test]
fn rows_up_and_down_are_those_of_the_whole_conversation() {
    let mut face = FullFace::new(50, 20);
    face.work();
    face.face.agent(AgentUpdate::RunEnded { summary: None, problem: Some("It broke.".into()) });
    let transcript = &face.face.model.transcript;
    let mut rows = TranscriptRows::new(50, Theme::default());
    rows.update(transcript, 50, &Theme::default());
    let all = rows.rows_from(transcript, RowPlace::default(), 10_000);
    let last = rows.last_place(transcript).unwrap();
    assert_eq!(rows.position(last), (all.len(), all.len()));
    for from in 0..all.len() {
        let place = rows.down(transcript, RowPlace::default(), from).unwrap();
        assert_eq!(rows.position(place).0, from + 1);
        assert_eq!(rows.rows_from(transcript, place, 3), all[from..(from + 3).min(all.len())]);
        for to in 0..=from {
            let above = rows.up(transcript, place, from - to);
            assert_eq!(rows.position(above).0, to + 1);
        }
    }
    assert_eq!(rows.down(transcript, RowPlace::default(), all.len()), None);
}

/// What happens in the property test.
#[derive(Clone, Debug)]
enum Step {
    Text(u8),
    Call,
    Note,
    Output,
    Prompt,
    AnswerEnds,
    Toggle,
    Scroll(bool),
    Resize(u16, u16),
    Draw,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0_u8..7).prop_map(Step::Text),
        1 => Just(Step::Call),
        1 => Just(Step::Note),
        1 => Just(Step::Output),
        1 => Just(Step::Prompt),
        1 => Just(Step::AnswerEnds),
        3 => Just(Step::Toggle),
        1 => any::<bool>().prop_map(Step::Scroll),
        2 => (30_u16..220, 4_u16..60).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        3 => Just(Step::Draw),
    ]
}

/// How often each word with a number in it occurs, in order of the number.
fn marks(lines: &[String]) -> BTreeMap<usize, usize> {
    let mut counts = BTreeMap::new();
    for line in lines {
        for word in line.split(|c: char| !c.is_alphanumeric()) {
            if let Some(number) = word.strip_prefix("mark").and_then(|number| number.parse().ok()) {
                *counts.entry(number).or_insert(0) += 1;
            }
        }
    }
    counts
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn everything_is_printed_once_whatever_is_opened_closed_streamed_and_resized(
        steps in prop::collection::vec(step(), 1..120),
    ) {
        let mut face = FullFace::new(80, 24);
        face.face.agent(AgentUpdate::RunStarted);
        let mut count = 0;
        for step in steps {
            let mark = format!("mark{count}");
            match step {
                Step::Text(kind) => {
                    let text = match kind {
                        0 => format!("{mark} "),
                        1 => format!("{mark}\n\n"),
                        2 => format!("- **{mark}**\n"),
                        3 => format!("\n```\n{mark}\n"),
                        4 => format!("\n\n| a | b |\n|---|---|\n| {mark} | x |\n"),
                        5 => format!("{mark}\r\n> "),
                        _ => format!("\n# {mark}\n{}", "word ".repeat(40)),
                    };
                    face.face.agent(AgentUpdate::Text(text));
                }
                Step::Call => face.call("1", &mark, "out\n".repeat(20), Vec::new()),
                Step::Note => drop(face.face.agent(AgentUpdate::Note(mark))),
                Step::Output => drop(face.face.agent(AgentUpdate::Output(mark))),
                Step::Prompt => drop(face.face.agent(AgentUpdate::Delivered { text: mark })),
                other => {
                    match other {
                        Step::AnswerEnds => drop(face.face.agent(AgentUpdate::AnswerEnded)),
                        Step::Toggle if face.full.is_some() => face.close(),
                        Step::Toggle => face.open(FullScreen::new(None)),
                        Step::Scroll(is_up) => face.press(if is_up { "pageup" } else { "pagedown" }),
                        Step::Resize(columns, rows) => face.resize(columns, rows),
                        _ => drop(face.draw()),
                    }
                    continue;
                }
            }
            count += 1;
        }
        face.face.agent(AgentUpdate::RunEnded { summary: None, problem: None });
        face.close();
        face.draw();
        let expected: BTreeMap<usize, usize> = (0..count).map(|number| (number, 1)).collect();
        prop_assert_eq!(&marks(&face.face.printed), &expected);
        // Wide enough that no word of a line of code is cut.
        let mut rows = TranscriptRows::new(4000, Theme::default());
        let transcript = &face.face.model.transcript;
        rows.update(transcript, 4000, &Theme::default());
        let all = rows.rows_from(transcript, RowPlace::default(), usize::MAX / 4);
        let all: Vec<String> = all.iter().map(ToString::to_string).collect();
        prop_assert_eq!(&marks(&all), &expected);
    }
}

#[test]
fn a_click_unfolds_what_it_hits_and_one_below_the_conversation_goes_back_to_the_line() {
    let mut test = FullFace::new(80, 20);
    let record = |number: usize| {
        AgentUpdate::ToolEnded(ToolEnd {
            id: number.to_string().into(),
            output: format!("out {number}\nmore of {number}"),
            ..ToolEnd::default()
        })
    };
    for number in 0..3 {
        let subject = Subject::Text(format!("command {number}"));
        test.face.agent(AgentUpdate::ToolStarted {
            id: number.to_string().into(),
            name: "bash".into(),
            subject,
        });
        test.face.agent(record(number));
    }
    test.open(FullScreen::new(None));
    let shown =
        |test: &mut FullFace| test.draw().unwrap().rows.iter().map(ToString::to_string).collect::<Vec<_>>();
    let before = shown(&mut test);
    let row = before.iter().position(|row| row.contains("command 1")).unwrap();
    let click = |row: usize| InputEvent::Click { row: row.try_into().unwrap(), column: 4 };
    test.input(click(row));
    let after = shown(&mut test);
    assert!(after.iter().any(|row| row.contains("more of 1")), "{after:?}");
    assert!(!after.iter().any(|row| row.contains("more of 0")), "{after:?}");
    assert!(test.full.as_ref().unwrap().cursor.is_some());
    test.input(click(row));
    assert_eq!(shown(&mut test).iter().filter(|row| row.contains("more of")).count(), 0);
    test.input(click(19));
    assert!(test.full.as_ref().unwrap().cursor.is_none());
}
