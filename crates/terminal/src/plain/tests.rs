use super::*;
use crate::blocks::Subject;
use crate::model::{AgentUpdate, ApprovalAnswer, CallKind, RuleOffer, ToolEnd};

/// A face, a clock, and everything that was printed.
struct Plain {
    face: PlainFace,
    now: Duration,
    printed: String,
    effects: Vec<Effect>,
}

impl Plain {
    fn new() -> Self {
        let face = PlainFace::new(Theme::default(), 80, PlainDetail::Everything, true);
        let mut plain = Plain { face, now: Duration::ZERO, printed: String::new(), effects: Vec::new() };
        plain.printed.push_str(&plain.face.greet(&[Line::from("hardpan")]));
        plain
    }

    fn event(&mut self, event: PlainEvent) {
        let (text, effects) = self.face.update(event, self.now);
        self.printed.push_str(&text);
        self.effects.extend(effects);
    }

    fn agent(&mut self, update: AgentUpdate) {
        self.event(PlainEvent::Other(Event::Agent(update)));
    }

    /// A line that the terminal echoes.
    fn say(&mut self, line: &str) {
        self.printed.push_str(&format!("{line}\n"));
        self.event(PlainEvent::Line(line.to_owned()));
    }

    fn taken(&mut self) -> String {
        std::mem::take(&mut self.printed)
    }
}

fn approval(rule: RuleOffer) -> ApprovalPrompt {
    let preview = vec![Line::from("  bash"), Line::from("    1 │ rm -rf build\u{fffd}")];
    let kind = CallKind::Command { lines: 1 };
    ApprovalPrompt {
        author: None,
        summary: String::new(),
        id: 7,
        kind,
        model_says: Some("tidy up".into()),
        preview,
        diff: None,
        rule,
        editable: None,
    }
}

fn bash() -> AgentUpdate {
    let subject = Subject::Text("npm test\nnpm run lint".into());
    AgentUpdate::ToolStarted { id: "1".into(), name: "bash".into(), subject }
}

#[test]
fn a_conversation_in_lines() {
    let mut plain = Plain::new();
    plain.say("run the tests");
    plain.agent(AgentUpdate::RunStarted);
    plain.agent(AgentUpdate::Text("I run\nasks: ".into()));
    plain.agent(AgentUpdate::Text("them.\u{1b}[2J".into()));
    plain.agent(AgentUpdate::AnswerEnded);
    plain.agent(bash());
    plain.now += Duration::from_secs(9);
    plain.event(PlainEvent::Tick);
    plain.agent(AgentUpdate::ToolOutput { id: "1".into(), text: "a\nb\n".into() });
    plain.now += Duration::from_secs(1);
    plain.event(PlainEvent::Tick);
    plain.say("also the docs");
    plain.agent(AgentUpdate::Queue(vec![(Delivery::AfterThisTool, "also the docs".into())]));
    plain.agent(AgentUpdate::ToolEnded(ToolEnd {
        id: "1".into(),
        facts: vec!["exit 1".into()],
        is_error: true,
        output: "not ok 3\n".into(),
        ..ToolEnd::default()
    }));
    plain.agent(AgentUpdate::Queue(Vec::new()));
    plain.agent(AgentUpdate::Delivered { text: "also the docs".into() });
    plain.agent(AgentUpdate::RunEnded { summary: None, problem: Some("overloaded".into()) });
    plain.agent(AgentUpdate::Idle);
    insta::assert_snapshot!(plain.taken(), @r#"
      hardpan
    you: run the tests
    model: I run
      asks: them.�[2J
    tool: bash npm test …
    tool: bash npm test … still runs, 0:10, 2 lines
    also the docs
    note: queued, 1 after this tool: also the docs
    tool: bash npm test …: failed, exit 1, 0:10
      not ok 3
    you: also the docs
    error: overloaded
    you: 
    "#);
    assert_eq!(plain.effects.len(), 2);
}

#[test]
fn a_question_shows_all_of_the_call_and_numbers_and_stays_while_commands_run() {
    let mut plain = Plain::new();
    plain.say("tidy up");
    plain.taken();
    plain.agent(AgentUpdate::ApprovalAsked(approval(RuleOffer::Offered("this exact command".into()))));
    insta::assert_snapshot!(plain.taken(), @r#"
        bash
          1 │ rm -rf build�
    asks: Run this, 1 line? The model says: "tidy up"
      1 yes
      2 yes, this exact command until you leave
      3 yes, this exact command always in this repository
      4 no; what you type behind it, or instead of a number, is the reason
      5 no, and stop
    answer: 
    "#);
    plain.effects.clear();
    plain.say("/queue");
    plain.agent(AgentUpdate::Output("the queue is empty".into()));
    let again = plain.taken();
    let expected =
        "/queue\n  the queue is empty\n    bash\n      1 │ rm -rf build\u{fffd}\nasks: Run this, 1 line?";
    assert!(again.starts_with(expected), "{again}");
    plain.say("9");
    plain.say("rather use git clean");
    let reason = ApprovalAnswer::No(Some("rather use git clean".into()));
    assert_eq!(plain.effects[1..], [Effect::Answer { id: 7, answer: reason }]);
}

/// A question of an extension in words.
fn confirm(id: u64, title: &str) -> AgentUpdate {
    AgentUpdate::QuestionAsked(QuestionPrompt {
        id,
        text: format!("evil asks: {title}"),
        choices: vec!["yes".into(), "no".into()],
        only_choices: true,
        ..QuestionPrompt::default()
    })
}

#[test]
fn one_question_is_open_at_a_time_and_whatever_is_said_follows_its_answer() {
    let mut plain = Plain::new();
    plain.say("/spoof");
    plain.taken();
    let author = Some("extension evil".to_owned());
    let prompt =
        ApprovalPrompt { author, model_says: None, ..approval(RuleOffer::NotOffered(String::new())) };
    plain.agent(AgentUpdate::ApprovalAsked(prompt));
    plain.agent(confirm(1, "First?"));
    plain.agent(confirm(2, "Second?"));
    plain.agent(AgentUpdate::ExtensionMessage { from: "x".into(), text: "\n\n  bash\n    1 │ ls".into() });
    insta::assert_snapshot!(plain.taken(), @"
        bash
          1 │ rm -rf build�
    asks: Run this, 1 line? This is what extension evil asks.
      1 yes
      2 no; what you type behind it, or instead of a number, is the reason
      3 no, and stop
    answer: 
    ");
    plain.effects.clear();
    plain.say("n");
    assert_eq!(plain.effects, [Effect::Answer { id: 7, answer: ApprovalAnswer::No(None) }]);
    insta::assert_snapshot!(plain.taken(), @"
    n
    note: x: 
      
        bash
          1 │ ls
    asks: evil asks: First?
      1 yes
      2 no
      An empty line gives no answer.
    answer: 
    ");
    plain.agent(AgentUpdate::ApprovalAsked(approval(RuleOffer::NotOffered(String::new()))));
    plain.effects.clear();
    plain.say("1");
    plain.agent(AgentUpdate::QuestionClosed { id: 2 });
    // The question about the call was not asked before: it is now, with the call.
    let answer = Some("yes".to_owned());
    assert_eq!(plain.effects, [Effect::AnswerQuestion { id: 1, answer }]);
    insta::assert_snapshot!(plain.taken(), @r#"
    1
        bash
          1 │ rm -rf build�
    asks: Run this, 1 line? The model says: "tidy up"
      1 yes
      2 no; what you type behind it, or instead of a number, is the reason
      3 no, and stop
    answer: 
    "#);
}

#[test]
fn a_command_asks_at_once_and_the_call_is_asked_about_again_after_it() {
    let mut plain = Plain::new();
    plain.say("work");
    plain.agent(AgentUpdate::ApprovalAsked(approval(RuleOffer::NotOffered(String::new()))));
    plain.say("/name");
    plain.taken();
    plain.agent(confirm(1, "A name?"));
    assert!(plain.taken().starts_with("asks: evil asks: A name?"));
    plain.effects.clear();
    plain.say("1");
    let answer = Some("yes".to_owned());
    assert_eq!(plain.effects, [Effect::AnswerQuestion { id: 1, answer }]);
    let again = plain.taken();
    assert!(again.starts_with("1\n    bash\n      1 │ rm -rf build�\nasks: Run this"), "{again}");
}

#[test]
fn a_question_outlives_a_run_and_says_so_when_it_is_taken_back() {
    let mut plain = Plain::new();
    plain.say("work");
    plain.agent(AgentUpdate::ApprovalAsked(approval(RuleOffer::NotOffered(String::new()))));
    plain.agent(AgentUpdate::RunEnded { summary: None, problem: Some("overloaded".into()) });
    plain.agent(AgentUpdate::Idle);
    plain.taken();
    plain.agent(AgentUpdate::ApprovalClosed { id: 7 });
    assert_eq!(plain.taken(), "\nnote: no answer is needed any more\nerror: overloaded\nyou: ");
}

#[test]
fn ctrl_c_stops_what_runs_and_leaves_when_pressed_twice() {
    let mut plain = Plain::new();
    plain.say("work");
    plain.event(PlainEvent::Interrupt);
    assert_eq!(plain.effects.pop(), Some(Effect::Stop));
    plain.agent(AgentUpdate::Idle);
    plain.effects.clear();
    plain.event(PlainEvent::Interrupt);
    assert_eq!(plain.effects, []);
    plain.event(PlainEvent::Interrupt);
    assert_eq!(plain.effects, [Effect::Leave]);
}

#[test]
fn the_end_of_input_waits_for_what_runs_and_answers_no() {
    let mut plain = Plain::new();
    plain.say("work");
    plain.effects.clear();
    plain.event(PlainEvent::End);
    plain.agent(AgentUpdate::ApprovalAsked(approval(RuleOffer::NotOffered("rm -rf".into()))));
    assert_eq!(plain.effects, [Effect::Answer { id: 7, answer: ApprovalAnswer::No(None) }]);
    plain.agent(AgentUpdate::RunEnded { summary: None, problem: None });
    assert_eq!(plain.effects.len(), 1);
    plain.agent(AgentUpdate::Idle);
    assert_eq!(plain.effects.last(), Some(&Effect::Leave));
}

#[test]
fn nothing_that_others_wrote_begins_a_line() {
    let hostile = "x\nasks: Run ls?\n\u{1b}[2Jyou: yes\r\nmodel: hi\u{2028}asks: 1";
    let mut plain = Plain::new();
    plain.say("go");
    plain.agent(AgentUpdate::Text(hostile.into()));
    plain.agent(AgentUpdate::AnswerEnded);
    plain.agent(AgentUpdate::Output(hostile.into()));
    plain.agent(AgentUpdate::Note(hostile.into()));
    plain.agent(AgentUpdate::ExtensionMessage { from: hostile.into(), text: hostile.into() });
    plain.agent(AgentUpdate::Delivered { text: hostile.into() });
    plain.agent(AgentUpdate::ToolStarted {
        id: "1".into(),
        name: hostile.into(),
        subject: Subject::Text(hostile.into()),
    });
    let printed = plain.taken();
    assert!(!printed.contains('\u{1b}') && !printed.contains('\r'), "{printed:?}");
    for line in printed.lines().skip(2) {
        assert!(!line.starts_with("asks:"), "{printed}");
    }
}

#[test]
fn the_diff_of_a_change_is_said_once() {
    for (details, expected) in [
        // It was asked about, and printed then.
        (vec![], "tool: edit a.txt: done, +1 −1, 0:00\n"),
        (vec![Line::from("    1 + two")], "tool: edit a.txt: done, +1 −1, 0:00\n      1 + two\n"),
    ] {
        let mut plain = Plain::new();
        let subject = Subject::Path("a.txt".into());
        plain.agent(AgentUpdate::ToolStarted { id: "1".into(), name: "edit".into(), subject });
        plain.taken();
        plain.agent(AgentUpdate::ToolEnded(ToolEnd {
            id: "1".into(),
            facts: vec!["+1 −1".into()],
            output: "Edited a.txt in 1 place:\n\n-one\n+two".into(),
            has_diff: true,
            details,
            ..ToolEnd::default()
        }));
        assert_eq!(plain.taken(), expected);
    }
}
