//! The table of states and keys, and what must never happen.

use std::time::Duration;

use crate::blocks::{Delivery, Subject};
use crate::editor::SubmissionKind;
use crate::model::{
    AgentUpdate, ApprovalAnswer, ApprovalPrompt, BlockKind, CallKind, Effect, Event, ExtensionArea,
    FaceState, Mode, QuestionPrompt, RuleOffer, ToolEnd, ViewKind,
};
use crate::test_face::TestFace;
use crate::transcript::BlockSource;

fn approval(id: u64) -> ApprovalPrompt {
    ApprovalPrompt {
        author: None,
        summary: String::new(),
        id,
        kind: CallKind::Edit,
        model_says: None,
        preview: vec![format!("diff {id}").into()],
        diff: None,
        rule: RuleOffer::Offered("edits in src/**".into()),
        editable: Some("npm run check".into()),
    }
}

fn tool(id: &str) -> AgentUpdate {
    AgentUpdate::ToolStarted { id: id.into(), name: "bash".into(), subject: Subject::Text("npm test".into()) }
}

/// A face in a state, reached as it is reached in life, and drawn.
fn face_in(state: FaceState) -> TestFace {
    let mut face = TestFace::new(80, 24);
    if state != FaceState::Idle {
        face.type_text("go");
        face.press("enter");
        face.agent(AgentUpdate::RunStarted);
        face.agent(AgentUpdate::Text("Some text".into()));
        face.wait(5000);
    }
    match state {
        FaceState::Idle | FaceState::Streaming => {}
        FaceState::Tool => drop(face.agent(tool("1"))),
        FaceState::ApprovalWaiting => {
            face.agent(AgentUpdate::ApprovalAsked(approval(1)));
            face.draw();
            face.press("tab");
        }
        FaceState::ApprovalActive => drop(face.agent(AgentUpdate::ApprovalAsked(approval(1)))),
        FaceState::ApprovalReason => {
            face.agent(AgentUpdate::ApprovalAsked(approval(1)));
            face.draw();
            face.press("n");
        }
        FaceState::Question => {
            let choices = vec!["red".into(), "blue".into()];
            let prompt = QuestionPrompt {
                id: 7,
                text: "Which?".into(),
                choices,
                is_secret: false,
                ..QuestionPrompt::default()
            };
            face.agent(AgentUpdate::QuestionAsked(prompt));
        }
        FaceState::Compacting => drop(face.agent(AgentUpdate::Compacting { text: "41k".into() })),
        FaceState::Retry => {
            let (message, wait) = ("529".into(), Duration::from_secs(3));
            face.agent(AgentUpdate::Retry { message, wait, attempt: 2, attempts: 10 });
        }
        FaceState::Stopping => drop(face.press("esc")),
    }
    face.draw();
    face.now += Duration::from_millis(5000);
    face.effects.clear();
    assert_eq!(face.model.state(), state);
    face
}

const STATES: [FaceState; 10] = [
    FaceState::Idle,
    FaceState::Streaming,
    FaceState::Tool,
    FaceState::ApprovalWaiting,
    FaceState::ApprovalActive,
    FaceState::ApprovalReason,
    FaceState::Question,
    FaceState::Compacting,
    FaceState::Retry,
    FaceState::Stopping,
];

/// What keys did, in short.
fn effects_of(face: &TestFace) -> String {
    let short = |effect: &Effect| match effect {
        Effect::Send(submission) => Some(format!("send {}", submission.text)),
        Effect::Steer(submission) => Some(format!("steer {}", submission.text)),
        Effect::QueueForEnd(submission) => Some(format!("at the end {}", submission.text)),
        Effect::Stop => Some("stop".into()),
        Effect::Kill => Some("kill".into()),
        Effect::Answer { answer, .. } => Some(format!("{answer:?}")),
        Effect::AnswerQuestion { answer, .. } => Some(format!("answer {answer:?}")),
        Effect::SetMode(mode) => Some(format!("mode {}", mode.name())),
        Effect::Open(view) => Some(format!("open {view:?}")),
        Effect::StopAndTakeBack => Some("stop, prompt back".into()),
        Effect::AppendHistory(_) | Effect::SaveDraft(_) => None,
        other => Some(format!("{other:?}")),
    };
    face.effects.iter().filter_map(short).collect::<Vec<_>>().join(", ")
}

/// What each key does in each state, on an empty line and with a draft.
#[test]
fn every_state_and_key() {
    let mut table = String::new();
    for state in STATES {
        table.push_str(&format!("{state:?}\n"));
        for draft in ["", "hi"] {
            for keys in
                ["enter", "tab", "esc", "esc esc", "ctrl-c", "ctrl-c ctrl-c", "shift-tab", "y", "r", "?"]
            {
                let mut face = face_in(state);
                if !draft.is_empty() {
                    if state == FaceState::ApprovalActive {
                        continue;
                    }
                    face.type_text(draft);
                }
                keys.split(' ').for_each(|key| drop(face.press(key)));
                let (effects, line) = (effects_of(&face), face.line());
                let line = if line.is_empty() { String::new() } else { format!("[{line}]") };
                let shown = [effects, line].join(" ");
                let after = face.model.state();
                let after = if after == state { String::new() } else { format!(" → {after:?}") };
                table.push_str(format!("  {draft:2} {keys:13} {shown}{after}").trim_end());
                table.push('\n');
            }
        }
    }
    insta::assert_snapshot!(table);
}

#[test]
fn a_key_that_was_pressed_before_a_question_was_drawn_never_answers_it() {
    let mut face = face_in(FaceState::Streaming);
    face.agent(AgentUpdate::ApprovalAsked(approval(1)));
    assert_eq!(face.model.state(), FaceState::ApprovalActive);
    // Not on the screen yet.
    face.press("y");
    assert_eq!((effects_of(&face).as_str(), face.line().as_str()), ("", "y"));
    face.draw();
    face.wait(5000);
    assert_eq!(face.model.state(), FaceState::ApprovalWaiting, "a draft is there");
    face.press("backspace");
    face.wait(699);
    assert_eq!(face.model.state(), FaceState::ApprovalWaiting, "a key came just now");
    face.wait(2);
    assert_eq!(face.model.state(), FaceState::ApprovalActive);
    // Read before the frame was on the screen, handled after it.
    let pressed_at = face.now;
    face.now += Duration::from_millis(5);
    face.draw();
    let key = crate::keymap::KeyPress::parse("y").unwrap();
    let late = Event::Input(crate::input::InputEvent::Key(key));
    assert_eq!(face.model.update(late, pressed_at), []);
    assert_eq!(face.line(), "y");
}

fn choice_between_yes_and_no() -> AgentUpdate {
    AgentUpdate::QuestionAsked(QuestionPrompt {
        id: 7,
        text: "gate asks: Run it?".into(),
        choices: vec!["yes".into(), "no".into()],
        only_choices: true,
        ..QuestionPrompt::default()
    })
}

#[test]
fn a_choice_is_taken_with_one_key_and_nothing_else_is_an_answer() {
    for (key, answer) in [("1", "yes"), ("2", "no"), ("y", "yes"), ("n", "no")] {
        let mut face = face_in(FaceState::Streaming);
        face.agent(choice_between_yes_and_no());
        face.draw();
        face.press(key);
        assert_eq!(effects_of(&face), format!("answer Some({answer:?})"), "{key}");
    }
    let mut face = face_in(FaceState::Streaming);
    face.agent(choice_between_yes_and_no());
    face.draw();
    face.type_text("maybe");
    face.press("enter");
    face.press("3");
    assert_eq!((effects_of(&face).as_str(), face.model.state()), ("", FaceState::Question));
    face.press("esc");
    assert_eq!(effects_of(&face), "answer None");
}

#[test]
fn a_question_of_a_run_is_answered_only_by_keys_that_were_pressed_for_it() {
    let mut face = face_in(FaceState::Streaming);
    face.type_text("the ke");
    face.agent(choice_between_yes_and_no());
    face.draw();
    face.type_text("y and");
    assert_eq!((effects_of(&face).as_str(), face.line().as_str()), ("", "the key and"));
    face.wait(701);
    assert_eq!(face.model.state(), FaceState::Question);
    // Not on the screen as a question that has the keys.
    face.press("y");
    assert_eq!((effects_of(&face).as_str(), face.line().as_str()), ("", "the key andy"));
    face.draw();
    face.press("y");
    assert_eq!(effects_of(&face), "answer Some(\"yes\")");
    assert_eq!(face.line(), "the key andy", "the draft is there again");

    // What the person asked for by a command is answered at once.
    let mut face = face_in(FaceState::Idle);
    face.press("x");
    face.agent(choice_between_yes_and_no());
    face.press("2");
    assert_eq!(effects_of(&face), "answer Some(\"no\")");
}

#[test]
fn typing_when_a_question_appears_goes_on_in_the_line() {
    let mut face = face_in(FaceState::Streaming);
    face.type_text("yes pl");
    face.agent(AgentUpdate::ApprovalAsked(approval(1)));
    face.draw();
    face.type_text("ease any");
    assert_eq!((effects_of(&face).as_str(), face.line().as_str()), ("", "yes please any"));
    // Enter steers, and the question still waits.
    face.press("enter");
    assert_eq!((effects_of(&face).as_str(), face.model.approvals.len()), ("steer yes please any", 1));
    face.press("esc");
    face.draw();
    face.press("y");
    assert!(effects_of(&face).ends_with("Once"));
}

#[test]
fn no_stray_key_answers_a_question() {
    let answers = ["y", "s", "a", "1", "2", "3", "esc", "ctrl-c"];
    let keys = ('!'..='~').map(|c| c.to_string()).chain(
        [
            "enter",
            "space",
            "backspace",
            "left",
            "right",
            "home",
            "end",
            "f1",
            "f2",
            "ctrl-d",
            "ctrl-j",
            "ctrl-x",
        ]
        .map(str::to_owned),
    );
    for key in keys.filter(|key| !answers.contains(&key.as_str())) {
        let mut face = face_in(FaceState::ApprovalActive);
        face.press(&key);
        assert!(!effects_of(&face).contains("Once") && face.model.approvals.len() == 1, "{key}");
        assert_eq!(face.line(), "", "{key}");
    }
    let mut face = face_in(FaceState::ApprovalActive);
    face.paste("y\n");
    assert_eq!(effects_of(&face), "");
}

#[test]
fn enter_answers_only_what_an_arrow_has_marked() {
    let mut face = face_in(FaceState::ApprovalActive);
    face.press("enter");
    assert_eq!(effects_of(&face), "");
    face.press("down");
    face.press("down");
    face.press("enter");
    assert_eq!(effects_of(&face), "Session");
}

#[test]
fn what_is_not_offered_cannot_be_answered() {
    let mut face = face_in(FaceState::Streaming);
    let rule = RuleOffer::NotOffered("rm -rf".into());
    let prompt = ApprovalPrompt { rule, editable: None, ..approval(1) };
    face.agent(AgentUpdate::ApprovalAsked(prompt));
    face.draw();
    for key in ["s", "a", "2", "3", "e", "d"] {
        face.press(key);
    }
    assert_eq!(effects_of(&face), "");
    face.press("y");
    assert_eq!(effects_of(&face), "Once");
}

#[test]
fn a_no_takes_its_reason_and_can_be_taken_back() {
    let mut face = face_in(FaceState::ApprovalReason);
    face.type_text("use the table");
    face.press("esc");
    assert_eq!((face.model.state(), effects_of(&face).as_str()), (FaceState::ApprovalActive, ""));
    face.draw();
    face.press("n");
    face.type_text("too wide");
    face.press("enter");
    assert_eq!(effects_of(&face), r#"No(Some("too wide"))"#);
    face.draw();
    assert_eq!(face.printed.last().unwrap(), "  you: no: too wide");
}

#[test]
fn approvals_come_one_at_a_time_and_each_call_is_printed_before_its_question() {
    let mut face = face_in(FaceState::Streaming);
    face.agent(AgentUpdate::ApprovalAsked(approval(1)));
    face.agent(AgentUpdate::ApprovalAsked(approval(2)));
    face.draw();
    assert!(
        face.printed.iter().any(|line| line == "diff 1") && !face.printed.iter().any(|line| line == "diff 2")
    );
    face.press("y");
    face.draw();
    assert!(face.printed.iter().any(|line| line == "diff 2"));
    // The next question was not there when the key was pressed: it needs a quiet moment.
    face.press("y");
    assert_eq!(face.effects.iter().filter(|effect| matches!(effect, Effect::Answer { .. })).count(), 1);
}

#[test]
fn a_question_outlives_a_run_until_it_is_answered_or_taken_back() {
    let mut face = face_in(FaceState::ApprovalActive);
    face.agent(AgentUpdate::RunEnded { summary: None, problem: Some("overloaded".into()) });
    face.agent(AgentUpdate::Idle);
    assert_eq!(face.model.state(), FaceState::ApprovalActive);
    face.press("esc");
    assert_eq!((effects_of(&face).as_str(), face.model.state()), ("NoAndStop", FaceState::Idle));

    let mut face = face_in(FaceState::ApprovalActive);
    face.agent(AgentUpdate::RunEnded { summary: None, problem: Some("overloaded".into()) });
    face.agent(AgentUpdate::ApprovalClosed { id: 1 });
    assert_eq!((effects_of(&face).as_str(), face.model.state()), ("", FaceState::Idle));
    face.draw();
    assert!(face.printed.last().unwrap().contains("overloaded"));
}

const IMITATION: &str = "\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n\n  bash\n    1 │ ls";

/// A question in words below a text that imitates a call.
fn imitating_question(id: u64) -> QuestionPrompt {
    QuestionPrompt { id, text: format!("{IMITATION}\nevil asks: Sure?"), ..QuestionPrompt::default() }
}

#[test]
fn nothing_stands_between_a_question_and_the_call_that_it_is_about() {
    let text = || IMITATION.to_owned();
    let (id, name, subject) = ("1".into(), "bash".to_owned(), Subject::Text(text()));
    let end = ToolEnd { id: "0".into(), is_error: true, output: text(), ..ToolEnd::default() };
    let area = ExtensionArea {
        statuses: vec![text()],
        above: vec![text()],
        below: vec![text()],
        working: Some(text()),
    };
    for event in [
        Event::Agent(AgentUpdate::Note(text())),
        Event::Agent(AgentUpdate::Problem(text())),
        Event::Agent(AgentUpdate::ExtensionMessage { from: "x".into(), text: text() }),
        Event::Agent(AgentUpdate::Text(text())),
        Event::Agent(AgentUpdate::Delivered { text: text() }),
        Event::Agent(AgentUpdate::Reply(text())),
        Event::Agent(AgentUpdate::Output(text())),
        Event::Agent(AgentUpdate::Lines(vec![text().into()])),
        Event::Agent(AgentUpdate::ToolStarted { id, name: name.clone(), subject: subject.clone() }),
        Event::Agent(AgentUpdate::ToolOutput { id: "0".into(), text: text() }),
        Event::Agent(AgentUpdate::ToolEnded(end)),
        Event::Agent(AgentUpdate::ToolNotRun { name, subject, reason: text() }),
        Event::Agent(AgentUpdate::QuestionAsked(imitating_question(9))),
        Event::Agent(AgentUpdate::RunEnded { summary: None, problem: Some(text()) }),
        Event::Extensions(area),
        Event::Earlier(vec![(BlockKind::Text, BlockSource::Output(text()))]),
    ] {
        let mut face = face_in(FaceState::Streaming);
        face.agent(tool("0"));
        face.agent(AgentUpdate::ApprovalAsked(approval(1)));
        face.draw();
        let shown = format!("{event:?}");
        face.event(event);
        // What stands in an open block is printed when the block is over.
        face.agent(AgentUpdate::AnswerEnded);
        let drawing = face.drawing();
        assert_eq!(face.printed.last().map(String::as_str), Some("diff 1"), "{shown}\n{drawing}");
        let live = drawing.split_once("── live").unwrap().1;
        assert!(live.contains("Change this file?") && !live.contains("1 │ ls"), "{shown}\n{live}");
    }
}

#[test]
fn what_was_said_while_a_question_was_open_follows_its_answer() {
    let mut face = face_in(FaceState::ApprovalActive);
    face.agent(AgentUpdate::ApprovalAsked(approval(2)));
    face.agent(AgentUpdate::Text("An answer".into()));
    face.agent(AgentUpdate::Text(" in parts.".into()));
    face.agent(AgentUpdate::Note("a note".into()));
    face.agent(AgentUpdate::QuestionAsked(imitating_question(9)));
    assert!(face.drawing().contains("what was said since is shown after your answer"));
    face.printed.clear();
    face.press("y");
    face.draw();
    let printed = face.printed.join("\n");
    assert_eq!(printed, "\n  you: yes\n\nAn answer in parts.\n\n! a note\n\ndiff 2", "{printed}");
    face.printed.clear();
    face.wait(5000);
    face.draw();
    face.press("y");
    // Now it is the turn of the question in words. The key was not meant for it.
    assert_eq!(face.model.question.as_ref().map(|question| question.prompt.id), Some(9));
    assert_eq!(face.model.state(), FaceState::Streaming);
    face.draw();
    assert_eq!(face.printed.last().unwrap(), "    1 │ ls");
    face.wait(5000);
    assert_eq!(face.model.state(), FaceState::Question);
}

#[test]
fn a_question_in_words_loses_neither_its_turn_nor_what_it_is_about() {
    let mut face = TestFace::new(80, 24);
    let question = |id, subject: &str| QuestionPrompt {
        id,
        text: format!("{subject}\nGo on?"),
        ..QuestionPrompt::default()
    };
    face.agent(AgentUpdate::QuestionAsked(question(1, "first subject")));
    face.agent(AgentUpdate::QuestionAsked(question(2, "second subject")));
    face.agent(AgentUpdate::ApprovalAsked(approval(3)));
    face.draw();
    assert_eq!(face.printed, ["first subject", "", "diff 3"]);
    face.wait(5000);
    face.draw();
    face.press("y");
    face.draw();
    assert_eq!(face.printed.last().unwrap(), "first subject", "it is asked again");
    face.wait(5000);
    face.draw();
    face.press("esc");
    assert_eq!(face.effects.last(), Some(&Effect::AnswerQuestion { id: 1, answer: None }));
    face.draw();
    assert_eq!(face.printed.last().unwrap(), "second subject");
    face.agent(AgentUpdate::QuestionClosed { id: 2 });
    assert_eq!(face.model.state(), FaceState::Idle);
}

#[test]
fn ctrl_c_at_a_question_also_stops_what_asks() {
    for is_running in [true, false] {
        let mut face = if is_running { face_in(FaceState::Streaming) } else { TestFace::new(80, 24) };
        face.effects.clear();
        let prompt = QuestionPrompt { id: 3, text: "Sure?".into(), ..QuestionPrompt::default() };
        face.agent(AgentUpdate::QuestionAsked(prompt));
        face.wait(5000);
        face.draw();
        face.press("ctrl-c");
        assert_eq!(effects_of(&face), "answer None, stop");
        let state = if is_running { FaceState::Stopping } else { FaceState::Idle };
        assert_eq!((face.model.state(), face.model.question.is_none()), (state, true));
    }
}

#[test]
fn the_reply_to_a_command_is_shown_at_once_with_the_call_below_it() {
    let mut face = face_in(FaceState::ApprovalWaiting);
    face.type_text("/nothing");
    face.press("enter");
    face.agent(AgentUpdate::Note("there is no such command".into()));
    face.draw();
    let last = &face.printed[face.printed.len() - 3..];
    assert_eq!(last, ["! there is no such command", "", "diff 1"], "{:?}", face.printed);
    face.agent(AgentUpdate::Note("not asked for".into()));
    face.draw();
    assert_eq!(face.printed.last().unwrap(), "diff 1");
}

#[test]
fn a_stop_before_the_first_word_gives_the_prompt_back() {
    let mut face = TestFace::new(80, 24);
    face.type_text("go on");
    face.press("enter");
    face.agent(AgentUpdate::RunStarted);
    face.press("esc");
    assert_eq!(
        (effects_of(&face).as_str(), face.line().as_str()),
        ("send go on, stop, prompt back", "go on")
    );
}

#[test]
fn the_queue_is_taken_back_with_the_arrow_on_an_empty_line() {
    let mut face = face_in(FaceState::Tool);
    face.agent(AgentUpdate::Queue(vec![(Delivery::AtTheEnd, "later".into())]));
    assert_eq!(face.press("up"), [Effect::TakeBack]);
    face.event(Event::TakenBack("later".into()));
    assert_eq!(face.line(), "later");
}

#[test]
fn commands_are_not_steered_and_modes_change_in_a_ring_without_all() {
    let mut face = face_in(FaceState::Tool);
    face.type_text("/cost");
    face.press("enter");
    let sent = face.effects.iter().any(
        |effect| matches!(effect, Effect::Send(submission) if submission.kind == SubmissionKind::Command),
    );
    assert!(sent);
    for mode in [Mode::Edits, Mode::Plan, Mode::Ask] {
        assert_eq!(face.press("shift-tab"), [Effect::SetMode(mode)]);
    }
    face.event(Event::ModeSet(Mode::All));
    assert_eq!(face.press("shift-tab"), [Effect::SetMode(Mode::Ask)]);
}

#[test]
fn two_keys_in_a_row_open_views() {
    let mut face = face_in(FaceState::Idle);
    assert_eq!(face.press("ctrl-x"), []);
    assert_eq!(face.press("m"), [Effect::Open(ViewKind::Model)]);
    face.press("ctrl-x");
    face.press("q");
    assert_eq!(face.line(), "", "an unknown second key does nothing");
}

#[test]
fn it_rings_only_if_the_person_may_be_elsewhere() {
    let rings = |face: &TestFace| face.effects.iter().any(|effect| matches!(effect, Effect::Notify(_)));
    let end = || AgentUpdate::RunEnded { summary: None, problem: None };
    let mut face = face_in(FaceState::Streaming);
    face.agent(end());
    assert!(!rings(&face));
    let mut face = face_in(FaceState::Streaming);
    face.wait(20_000);
    face.agent(end());
    assert!(rings(&face));
    let mut face = face_in(FaceState::Streaming);
    face.event(Event::Input(crate::input::InputEvent::Focus { has_focus: false }));
    face.agent(AgentUpdate::ApprovalAsked(approval(1)));
    assert!(rings(&face));
}

#[test]
fn an_answer_is_printed_once_however_it_arrives() {
    let answer =
        "# Title\n\nA paragraph with **bold** text.\n\n- one\n- two\n\n```rust\nfn main() {}\n```\n\nEnd.";
    let printed = |pieces: Vec<String>| {
        let mut face = TestFace::new(60, 24);
        face.agent(AgentUpdate::RunStarted);
        for piece in pieces {
            face.agent(AgentUpdate::Text(piece));
            face.draw();
        }
        face.agent(AgentUpdate::AnswerEnded);
        face.draw();
        face.printed
    };
    let whole = printed(vec![answer.to_owned()]);
    assert_eq!(printed(answer.chars().map(String::from).collect()), whole);
    assert_eq!(whole.iter().filter(|line| line.contains("End.")).count(), 1);
}

#[test]
fn a_failed_call_keeps_its_last_lines_and_a_good_one_is_one_line() {
    let mut face = face_in(FaceState::Tool);
    face.printed.clear();
    let output: String = (1..=30).map(|n| format!("line {n}\n")).collect();
    face.agent(AgentUpdate::ToolOutput { id: "1".into(), text: output.clone() });
    let facts = vec!["exit 1".into()];
    face.agent(AgentUpdate::ToolEnded(ToolEnd {
        id: "1".into(),
        facts,
        is_error: true,
        output,
        ..ToolEnd::default()
    }));
    face.agent(tool("2"));
    face.agent(AgentUpdate::ToolEnded(ToolEnd { id: "2".into(), ..ToolEnd::default() }));
    face.draw();
    assert_eq!(face.printed.iter().filter(|line| line.contains("line ")).count(), 10);
    assert_eq!(face.printed.last().unwrap(), "✓ bash  npm test");
}

#[test]
fn a_refused_question_tells_the_page() {
    let mut face = face_in(FaceState::Question);
    face.type_text("2");
    face.press("enter");
    assert_eq!(face.effects.last(), Some(&Effect::AnswerQuestion { id: 7, answer: Some("blue".into()) }));
    let mut face = face_in(FaceState::Question);
    face.press("esc");
    assert_eq!(face.effects.last(), Some(&Effect::AnswerQuestion { id: 7, answer: None }));
}

#[test]
fn answers_are_told_apart() {
    for (key, answer) in [
        ("y", ApprovalAnswer::Once),
        ("1", ApprovalAnswer::Once),
        ("s", ApprovalAnswer::Session),
        ("a", ApprovalAnswer::Always),
        ("esc", ApprovalAnswer::NoAndStop),
        ("ctrl-c", ApprovalAnswer::NoAndStop),
    ] {
        let mut face = face_in(FaceState::ApprovalActive);
        assert_eq!(face.press(key), [Effect::Answer { id: 1, answer }]);
    }
}

#[test]
fn escape_stops_the_work_behind_an_idle_page_unless_a_line_is_there() {
    let mut face = TestFace::new(80, 24);
    face.event(Event::BackgroundWork(Some("indexing 61%".into())));
    face.type_text("a line");
    assert!(!face.press("esc").contains(&Effect::StopBackgroundWork), "it is about the line");
    face.press("esc");
    assert_eq!(face.press("esc"), [Effect::StopBackgroundWork]);
    assert_eq!(face.press("esc"), [Effect::Open(ViewKind::Tree)], "the first press counts");
    face.wait(5000);
    assert_eq!(face.press("esc"), [], "nothing is there to be stopped");
}

#[test]
fn an_extension_makes_no_command_of_the_shell_and_enter_waits_until_its_text_was_read() {
    let sent = |effects: &[Effect]| effects.iter().any(|effect| matches!(effect, Effect::Send(_)));
    let mut face = TestFace::new(80, 24);
    face.type_text("hel");
    face.event(Event::SetLine(" !rm -r x".into()));
    assert_eq!(face.line(), "hel");
    face.press("home");
    face.event(Event::ExtensionInsert("!".into()));
    assert_eq!(face.line(), "hel");
    face.event(Event::SetLine("/deploy now".into()));
    assert_eq!(face.line(), "/deploy now");
    assert!(!sent(&face.press("enter")));
    face.wait(600);
    assert!(sent(&face.press("enter")));
    // A command that the person types is the person's alone.
    face.type_text("!ls ");
    face.event(Event::ExtensionInsert("; rm -r x".into()));
    assert_eq!(face.line(), "!ls ");
}
