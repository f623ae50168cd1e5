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
    act("5").unwrap();
    assert_eq!(spine.after_run(&run(&[]), at(299)), SpineDecision::Rest);
    let resumed = Spine::new(SpineLimits { auto_continue: true, ..SpineLimits::default() });
    resumed.restore(spine.save().as_ref());
    assert_eq!(resumed.render(), spine.render());
    let said = message(resumed.after_run(&run(&[]), at(300)));
    assert!(said.contains("- timer: look at the build"), "{said}");
}
