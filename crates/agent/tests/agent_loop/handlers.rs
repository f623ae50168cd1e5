use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hardpan_agent::events::{
    AgentEnd, AgentStart, ContextEvent, HandlerFailed, MessageEnd, MessageStart, MessageUpdate, TurnStart,
};
use hardpan_agent::{Delivery, InputOutcome, RunEnd};
use hardpan_test_support::{NoteLog, TestAgent, handler_failed, input};

/// An agent whose handlers have little time.
async fn impatient() -> TestAgent {
    TestAgent::builder()
        .settings(|settings| settings.handler_timeout = Duration::from_millis(150))
        .start()
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_are_called_in_the_order_of_their_registration() {
    let test_agent = TestAgent::builder().start().await;
    let notes = NoteLog::default();
    for owner in ["c", "a", "b", "a"] {
        let notes = notes.clone();
        test_agent.agent.events().subscribe::<AgentStart, _>(owner, move |_, _| {
            let notes = notes.clone();
            async move {
                // The slower ones are waited for.
                tokio::time::sleep(Duration::from_millis(if owner == "c" { 20 } else { 1 })).await;
                notes.add(owner);
                Ok(())
            }
        });
    }
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(notes.all(), ["c", "a", "b", "a"]);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_takes_all_of_its_handlers_away() {
    let test_agent = TestAgent::builder().start().await;
    let notes = NoteLog::default();
    for owner in ["a", "b"] {
        let told = notes.clone();
        test_agent.agent.events().subscribe::<AgentStart, _>(owner, move |_, _| {
            told.add(format!("{owner} start"));
            async { Ok(()) }
        });
        let told = notes.clone();
        test_agent.agent.events().subscribe::<AgentEnd, _>(owner, move |_, _| {
            told.add(format!("{owner} end"));
            async { Ok(()) }
        });
    }
    test_agent.agent.events().unsubscribe("a");
    test_agent.agent.events().unsubscribe("nobody");
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(notes.all(), ["b start", "b end"]);
    // Also from within one of them, for those that come after.
    test_agent.agent.events().subscribe::<TurnStart, _>("c", |_, agent| async move {
        agent.events().unsubscribe("b");
        Ok(())
    });
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(notes.all(), ["b start", "b end", "b start"]);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_does_not_stop_the_loop() {
    let test_agent = impatient().await;
    let (release, gate) = (Arc::new(AtomicBool::new(false)), NoteLog::default());
    let (stay, reached) = (release.clone(), gate.clone());
    test_agent.agent.events().subscribe::<AgentStart, _>("rude", move |_, _| {
        let (stay, reached) = (stay.clone(), reached.clone());
        async move {
            reached.add("held");
            while !stay.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
    });
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(gate.all(), ["held"], "it is blocked still, and the run is over");
    assert_eq!(test_agent.transcript_lines(), ["user: Hello", "assistant: Fine."]);
    assert_eq!(
        test_agent.events_of::<HandlerFailed>(),
        [handler_failed("rude", "agent_start", "it took longer than 0.15 s")]
    );
    test_agent.agent.events().unsubscribe("rude");
    release.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(20)).await; // its copy of the agent goes with it
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_took_too_long_three_times_is_not_called_any_more() {
    let test_agent = impatient().await;
    let notes = NoteLog::default();
    let called = notes.clone();
    test_agent.agent.events().subscribe::<ContextEvent, _>("slow", move |_, _| {
        called.add("called");
        std::future::pending()
    });
    for _ in 0..5 {
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    }
    assert_eq!(notes.all().len(), 3);
    let what: Vec<String> = test_agent
        .events_of::<HandlerFailed>()
        .iter()
        .map(|HandlerFailed(fault)| fault.message.clone())
        .collect();
    let late = "it took longer than 0.15 s";
    // Told once, however often it would have been called.
    assert_eq!(what, [late, late, late, "not called any more: it took too long 3 times"]);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_of_everything_may_break_and_nothing_is_lost() {
    let script = "
turns:
  - {text: Well., tool_calls: [{name: slow, arguments: {ms: 1}}]}
default: {text: Fine.}
";
    let test_agent = TestAgent::builder().script(script).start().await;
    let events = test_agent.agent.events();
    events.subscribe::<AgentStart, _>("broken", |_, _| async { panic!("at the start") });
    events.subscribe::<TurnStart, _>("broken", |_, _| async { panic!("at a turn") });
    events.subscribe::<MessageStart, _>("broken", |_, _| async { panic!("at a message") });
    events.subscribe::<MessageUpdate, _>("broken", |_, _| async { Err("at a piece".into()) });
    events.subscribe::<MessageEnd, _>("broken", |event, _| {
        assert!(event.message.id.0.is_empty(), "before it begins, at the end of {}", event.message.id);
        async { Ok(()) }
    });
    events.subscribe::<AgentEnd, _>("broken", |_, _| async { panic!("at the end") });
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(
        test_agent.transcript_lines(),
        ["user: Hello", "assistant: Well. [slow]", "result: slept 1", "assistant: Fine."]
    );
    let failed = test_agent.events_of::<HandlerFailed>();
    assert!(failed.iter().all(|HandlerFailed(fault)| &*fault.owner == "broken"));
    let count = |event: &str| failed.iter().filter(|HandlerFailed(fault)| fault.event == event).count();
    assert_eq!(
        ["agent_start", "turn_start", "message_start", "message_end", "agent_end"].map(count),
        [1, 2, 4, 4, 1]
    );
    assert_eq!(count("message_update"), test_agent.events_of::<MessageUpdate>().len());
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_may_speak_to_the_agent_it_is_called_by() {
    let test_agent = TestAgent::builder().start().await;
    let notes = NoteLog::default();
    let seen = notes.clone();
    test_agent.agent.events().subscribe::<MessageEnd, _>("talker", move |_, agent| {
        let seen = seen.clone();
        async move {
            seen.add(format!("{} {}", agent.is_busy(), agent.messages().len()));
            Ok(())
        }
    });
    let asked = Arc::new(AtomicBool::new(false));
    test_agent.agent.events().subscribe::<TurnStart, _>("talker", move |_, agent| {
        let first = !asked.swap(true, Ordering::SeqCst);
        async move {
            if first {
                agent.queue(input("One more thing"), Delivery::FollowUp).await?;
            }
            Ok(())
        }
    });
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(
        test_agent.transcript_lines(),
        ["user: Hello", "assistant: Fine.", "user: One more thing", "assistant: Fine."]
    );
    assert_eq!(notes.all(), ["true 1", "true 2", "true 3", "true 4"], "a message is there when it is told");
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_says_at_the_end_of_a_run_begins_another() {
    for (stop, expected) in [
        (RunEnd::Done, &["user: Hello", "assistant: Fine.", "user: One more thing", "assistant: Fine."][..]),
        (RunEnd::Aborted, &["user: Hello"]),
    ] {
        let test_agent = TestAgent::builder().start().await;
        let said = Arc::new(AtomicBool::new(false));
        test_agent.agent.events().subscribe::<AgentEnd, _>("talker", move |_, agent| {
            let first = !said.swap(true, Ordering::SeqCst);
            async move {
                if first {
                    let outcome = agent.queue(input("One more thing"), Delivery::FollowUp).await?;
                    assert_eq!(outcome, InputOutcome::Queued(Delivery::FollowUp));
                }
                Ok(())
            }
        });
        if stop == RunEnd::Aborted {
            test_agent.agent.events().subscribe::<AgentStart, _>("stopper", |_, agent| async move {
                agent.abort();
                Ok(())
            });
        }
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(stop.clone()));
        assert_eq!(test_agent.transcript_lines(), expected);
        assert!(test_agent.events_of::<HandlerFailed>().is_empty(), "nobody waits for anybody");
        // After an abort nothing goes on by itself: it waits, and is shown.
        assert_eq!(test_agent.agent.queued_inputs().follow_up.len(), usize::from(stop == RunEnd::Aborted));
        assert_eq!(test_agent.events_of::<AgentEnd>().len(), if stop == RunEnd::Done { 2 } else { 1 });
        test_agent.assert_continues().await;
    }
}
