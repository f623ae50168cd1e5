use std::time::Duration;

use hardpan_agent::events::{AgentEnd, AgentStart, SessionShutdown, SessionSwitch};
use hardpan_agent::{Agent, AgentError, Delivery, Event, InputOutcome, RunEnd, RunStatus, SessionSwitchKind};
use hardpan_test_support::{NoteLog, TestAgent, input};

/// Notes what the agent is doing when it emits this event.
fn note_activity<E: Event<Reply = ()>>(test_agent: &TestAgent, notes: &NoteLog) {
    let notes = notes.clone();
    test_agent.agent.events().subscribe::<E, _>("observer", move |_, agent: Agent| {
        let status = agent.status();
        notes.add(format!("{}: {:?}, working: {}", E::NAME, status.activity, status.is_working()));
        async { Ok(()) }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_says_what_the_agent_is_doing() {
    let test_agent = TestAgent::builder().start().await;
    let (agent, notes) = (&test_agent.agent, NoteLog::default());
    note_activity::<AgentStart>(&test_agent, &notes);
    note_activity::<AgentEnd>(&test_agent, &notes);
    note_activity::<SessionSwitch>(&test_agent, &notes);
    note_activity::<SessionShutdown>(&test_agent, &notes);
    assert_eq!(agent.status(), RunStatus::default());
    test_agent.prompt("Hello").await;
    agent.switch_session(test_agent.begin_session("other"), SessionSwitchKind::New).await;
    agent.shutdown().await.unwrap();
    assert_eq!(
        notes.all(),
        [
            "agent_start: Running, working: true",
            "agent_end: Ending, working: false",
            "session_switch: SwitchingSession, working: true",
            "session_shutdown: ShuttingDown, working: true",
        ]
    );
    assert_eq!(agent.status(), RunStatus::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_accepted_makes_the_agent_busy_until_its_run_begins() {
    let test_agent = TestAgent::builder().start().await;
    let agent = &test_agent.agent;
    let claim = agent.claim_work();
    assert_eq!(agent.status(), RunStatus { accepted: 1, ..RunStatus::default() });
    assert!(agent.status().is_working() && !agent.is_busy());
    let mut watched = agent.watch_status();
    let outcome = agent.queue_claimed(input("Hello"), Delivery::Steer, claim).await.unwrap();
    assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done));
    assert!(watched.has_changed().unwrap());
    assert_eq!(*watched.borrow_and_update(), RunStatus::default());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_nobody_waits_for_any_more_leaves_the_agent_idle() {
    let test_agent = TestAgent::builder().start().await;
    let (running, gate) = test_agent.begin_and_hold("Hello").await;
    assert!(matches!(test_agent.agent.compact(None).await, Err(AgentError::Busy)));
    running.abort();
    test_agent.agent.wait_until_idle().await;
    gate.release();
    // The next input is not queued for a run that is gone.
    let next = test_agent.agent.queue(input("Again"), Delivery::FollowUp);
    let outcome = tokio::time::timeout(Duration::from_secs(30), next).await.expect("it runs").unwrap();
    assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done));
}
