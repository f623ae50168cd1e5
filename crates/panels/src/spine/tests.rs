use proptest::prelude::*;

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn spine(limits: SpineLimits) -> Spine {
    let spine = Spine::new(SpineLimits { auto_continue: true, ..limits });
    spine.user_message(at(0));
    spine.before_request(at(0));
    spine
}

fn run(todos: &[&str]) -> RunSummary {
    RunSummary {
        answered: true,
        turns: 1,
        calls: 1,
        output_tokens: 10,
        dollars: 0.01,
        todos: todos.iter().map(|todo| (*todo).to_owned()).collect(),
        ..RunSummary::default()
    }
}

fn message(decision: SpineDecision) -> String {
    match decision {
        SpineDecision::Continue { message, .. } => message,
        other => panic!("{other:?}"),
    }
}

#[test]
fn work_that_remains_is_gone_on_with() {
    let spine = spine(SpineLimits::default());
    assert_eq!(spine.after_run(&run(&[]), at(1)), SpineDecision::Rest);
    let said = message(spine.after_run(&run(&["1: write a test"]), at(1)));
    assert!(said.contains("- todo 1: write a test"), "{said}");
    assert!(said.starts_with("[automatic"), "{said}");
}

#[test]
fn it_rests_when_it_is_off_aborted_unanswered_or_the_person_speaks() {
    let off = Spine::new(SpineLimits::default());
    assert_eq!(off.after_run(&run(&["1: a"]), at(1)), SpineDecision::Rest);
    let on = spine(SpineLimits::default());
    let unanswered = RunSummary { answered: false, failed: true, ..run(&["1: a"]) };
    assert_eq!(on.after_run(&unanswered, at(1)), SpineDecision::Rest);
    assert_eq!(on.after_run(&RunSummary { inputs_wait: true, ..run(&["1: a"]) }, at(1)), SpineDecision::Rest);
    assert_eq!(on.after_run(&RunSummary { aborted: true, ..run(&["1: a"]) }, at(1)), SpineDecision::Rest);
    // An abort holds until the person says something.
    assert_eq!(on.after_run(&run(&["1: a"]), at(2)), SpineDecision::Rest);
    on.user_message(at(3));
    message(on.after_run(&run(&["1: a"]), at(4)));
}

#[test]
fn each_guard_rail_stops_it() {
    let limits = SpineLimits::default();
    let cases = [
        (SpineLimits { turns: 2, ..limits }, GuardRail::Turns),
        (SpineLimits { output_tokens: 20, ..limits }, GuardRail::OutputTokens),
        (SpineLimits { dollars: 0.02, ..limits }, GuardRail::Cost),
    ];
    for (limits, rail) in cases {
        let spine = spine(limits);
        message(spine.after_run(&run(&["1: a"]), at(1)));
        assert_eq!(spine.after_run(&run(&["1: a"]), at(2)), SpineDecision::Stop(rail));
        spine.user_message(at(3));
        message(spine.after_run(&run(&["1: a"]), at(4)));
    }
    let timed = spine(SpineLimits { minutes: 1, ..limits });
    message(timed.after_run(&run(&["1: a"]), at(59)));
    assert_eq!(timed.after_run(&run(&["1: a"]), at(60)), SpineDecision::Stop(GuardRail::Minutes));
    message(timed.after_run(&run(&["1: a"]), at(-100)));
}

#[test]
fn failures_wait_longer_each_time_and_then_stop() {
    let spine = spine(SpineLimits { errors: 3, ..SpineLimits::default() });
    let failed = RunSummary { failed: true, ..run(&["1: a"]) };
    let waits: Vec<Duration> = (1..=2)
        .map(|second| match spine.after_run(&failed, at(second)) {
            SpineDecision::Continue { wait, .. } => wait,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(waits, [Duration::from_secs(1), Duration::from_secs(2)]);
    assert_eq!(spine.after_run(&failed, at(3)), SpineDecision::Stop(GuardRail::Errors));
}

#[test]
fn going_on_without_any_call_and_with_the_same_work_ends() {
    let spine = spine(SpineLimits::default());
    let idle = RunSummary { calls: 0, ..run(&["1: a"]) };
    message(spine.after_run(&idle, at(1)));
    message(spine.after_run(&idle, at(2)));
    assert_eq!(spine.after_run(&idle, at(3)), SpineDecision::Stop(GuardRail::NoProgress));
}

#[test]
fn a_notification_is_processed_once_an_answered_request_showed_it() {
    let spine = spine(SpineLimits::default());
    let line = spine.render().unwrap();
    assert!(line.starts_with("You are continued while work remains, up to 50 turns"), "{line}");
    spine.notify(NotificationKind::Console, "P12 ended with exit code 0", at(1));
    spine.notify(NotificationKind::Console, "P12 ended with exit code 0", at(1));
    spine.notify(NotificationKind::FileChanged, "src/a.rs", at(1));
    assert!(
        spine.render().unwrap().ends_with("2 console: P12 ended with exit code 0\n3 file changed: src/a.rs")
    );
    // No request has shown it: a reason to go on, which the message tells.
    let said = message(spine.after_run(&run(&[]), at(2)));
    assert!(said.contains("- console: P12 ended with exit code 0") && !said.contains("src/a.rs"), "{said}");
    spine.before_request(at(3));
    assert_eq!(spine.after_run(&RunSummary { answered: false, ..run(&[]) }, at(4)), SpineDecision::Rest);
    assert!(spine.render().unwrap().contains("P12"));
    assert_eq!(spine.after_run(&run(&[]), at(5)), SpineDecision::Rest);
    assert!(!spine.render().unwrap().contains("P12"));
}

#[test]
fn a_timer_rings_when_it_is_due_also_after_a_resume() {
    let spine = spine(SpineLimits::default());
    let act = |minutes| {
        let call = ActionCall {
            target: Some(minutes),
            text: Some("look at the build"),
            ..ActionCall::new("timer", at(0))
        };
        spine.act(&call)
    };
    for minutes in ["0", "-3", "soon", "1441"] {
        assert!(act(minutes).is_err(), "{minutes}");
    }
    assert_eq!(act("5").unwrap(), "you are reminded after 5 minutes");
    assert_eq!(spine.after_run(&run(&[]), at(299)), SpineDecision::Rest);
    let resumed = Spine::new(SpineLimits { auto_continue: true, ..SpineLimits::default() });
    resumed.restore(spine.save().as_ref());
    assert_eq!(resumed.render(), spine.render());
    let said = message(resumed.after_run(&run(&[]), at(300)));
    assert!(said.contains("- timer: look at the build"), "{said}");
}

#[test]
fn news_wake_an_idle_agent_once_and_todos_do_not() {
    let spine = spine(SpineLimits::default());
    assert_eq!(spine.after_run(&run(&[]), at(1)), SpineDecision::Rest);
    assert_eq!(spine.when_idle(at(2)), SpineDecision::Rest);
    spine.notify(NotificationKind::FileChanged, "a.rs", at(3));
    assert_eq!(spine.when_idle(at(3)), SpineDecision::Rest);
    spine.notify(NotificationKind::Console, "P10 ended with exit code 0", at(3));
    assert!(message(spine.when_idle(at(3))).contains("- console: P10 ended with exit code 0"));
    // Until that is answered, nothing else is said.
    spine.notify(NotificationKind::Console, "P11 ended with exit code 0", at(4));
    assert_eq!(spine.when_idle(at(4)), SpineDecision::Rest);
    spine.before_request(at(5));
    assert_eq!(spine.after_run(&run(&[]), at(6)), SpineDecision::Rest);
    let off = Spine::new(SpineLimits::default());
    off.notify(NotificationKind::Console, "P10 ended", at(1));
    assert_eq!(off.when_idle(at(1)), SpineDecision::Rest);
}

#[test]
fn a_guard_rail_is_told_once_and_an_abort_holds_while_idle() {
    let spine = spine(SpineLimits { minutes: 1, ..SpineLimits::default() });
    spine.after_run(&run(&[]), at(1));
    spine.notify(NotificationKind::Timer, "look", at(100));
    assert_eq!(spine.when_idle(at(100)), SpineDecision::Stop(GuardRail::Minutes));
    assert_eq!(spine.when_idle(at(101)), SpineDecision::Rest);
    spine.user_message(at(200));
    spine.after_run(&RunSummary { aborted: true, answered: false, ..run(&[]) }, at(201));
    spine.notify(NotificationKind::Timer, "look again", at(202));
    assert_eq!(spine.when_idle(at(202)), SpineDecision::Rest);
}

#[test]
fn todos_that_are_left_are_told_until_they_are_done() {
    let spine = Spine::new(SpineLimits::default());
    spine.user_message(at(0));
    spine.before_request(at(0));
    spine.after_run(&run(&["1: a", "2: b"]), at(1));
    assert!(spine.render().unwrap().contains("todo left: 2 todos are not done"));
    spine.before_request(at(2));
    spine.after_run(&run(&["2: b"]), at(3));
    assert!(spine.render().unwrap().contains("todo left: 1 todo is not done"));
    spine.after_run(&run(&[]), at(4));
    assert_eq!(spine.render(), None);
}

/// Something that happens to a spine.
#[derive(Clone, Debug)]
enum Event {
    User,
    Notify(NotificationKind),
    Timer,
    Idle,
    Run(RunSummary),
}

fn event() -> impl Strategy<Value = Event> {
    let kinds = prop::sample::select(vec![
        NotificationKind::Console,
        NotificationKind::Timer,
        NotificationKind::FileChanged,
    ]);
    let flags =
        (any::<bool>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.1), 0..3_usize, 0..2_u32);
    let ended = flags.prop_map(|(answered, failed, inputs_wait, aborted, todos, calls)| {
        let todos: Vec<String> = (0..todos).map(|number| format!("{number}: a")).collect();
        let todos: Vec<&str> = todos.iter().map(String::as_str).collect();
        Event::Run(RunSummary { answered, failed, inputs_wait, aborted, calls, ..run(&todos) })
    });
    prop_oneof![
        1 => Just(Event::User),
        3 => kinds.prop_map(Event::Notify),
        1 => Just(Event::Timer),
        4 => Just(Event::Idle),
        4 => ended,
    ]
}

proptest! {
    #[test]
    fn whatever_happens_no_two_messages_of_its_own_stand_without_an_answer(
        events in prop::collection::vec((event(), -100_i64..1000), 0..60),
    ) {
        let limits = SpineLimits { auto_continue: true, turns: 5, ..SpineLimits::default() };
        let spine = Spine::new(limits);
        let (mut unanswered, mut is_stopped, mut said, mut turns) = (false, false, 0, 0);
        for (event, second) in events {
            // The clock jumps as it likes.
            let now = at(second);
            let decision = match event {
                Event::User => {
                    spine.user_message(now);
                    (unanswered, is_stopped, said, turns) = (false, false, 0, 0);
                    SpineDecision::Rest
                }
                Event::Notify(kind) => {
                    spine.notify(kind, &format!("{second}"), now);
                    SpineDecision::Rest
                }
                Event::Timer => {
                    let (target, text) = (Some("5"), Some("look"));
                    spine.act(&ActionCall { target, text, ..ActionCall::new("timer", now) }).ok();
                    SpineDecision::Rest
                }
                Event::Idle => spine.when_idle(now),
                Event::Run(summary) => {
                    spine.before_request(now);
                    unanswered &= !summary.answered;
                    is_stopped |= summary.aborted;
                    turns += summary.turns;
                    let decision = spine.after_run(&summary, now);
                    let goes_on = matches!(decision, SpineDecision::Continue { .. });
                    prop_assert!(summary.answered || !goes_on, "it goes on without an answer");
                    prop_assert!(!summary.inputs_wait || decision == SpineDecision::Rest);
                    decision
                }
            };
            if let SpineDecision::Continue { .. } = decision {
                prop_assert!(!unanswered, "a second message without an answer");
                prop_assert!(!is_stopped, "an abort stops everything");
                prop_assert!(turns < limits.turns, "{turns} turns");
                unanswered = true;
                said += 1;
            }
            prop_assert!(said <= limits.turns + 1);
        }
    }
}

#[test]
fn one_minute_is_no_plural() {
    let call = ActionCall { target: Some("1"), text: Some("look"), ..ActionCall::new("timer", at(0)) };
    assert_eq!(spine(SpineLimits::default()).act(&call).unwrap(), "you are reminded after 1 minute");
}
