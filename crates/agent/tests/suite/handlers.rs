use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hardpan_agent::events::{
    AgentEnd, AgentStart, Context, MessageEnd, MessageStart, MessageUpdate, TurnStart,
};
use hardpan_agent::{AgentSettings, Delivery, Stop, Taken};
use serde_json::json;

use crate::props::Notes;
use crate::trial::{Given, Trial, input};

fn quick() -> AgentSettings {
    AgentSettings { handler_limit: Duration::from_millis(150), ..AgentSettings::default() }
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_are_called_in_the_order_of_their_registration() {
    let trial = Trial::new(Given::default()).await;
    let notes = Notes::default();
    for owner in ["c", "a", "b", "a"] {
        let notes = notes.clone();
        trial.agent.events().on::<AgentStart, _>(owner, move |_, _| {
            let notes = notes.clone();
            async move {
                // The slower ones are waited for.
                tokio::time::sleep(Duration::from_millis(if owner == "c" { 20 } else { 1 })).await;
                notes.add(owner);
                Ok(())
            }
        });
    }
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(notes.all(), ["c", "a", "b", "a"]);
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_takes_all_of_its_handlers_away() {
    let trial = Trial::new(Given::default()).await;
    let notes = Notes::default();
    for owner in ["a", "b"] {
        let told = notes.clone();
        trial.agent.events().on::<AgentStart, _>(owner, move |_, _| {
            told.add(format!("{owner} start"));
            async { Ok(()) }
        });
        let told = notes.clone();
        trial.agent.events().on::<AgentEnd, _>(owner, move |_, _| {
            told.add(format!("{owner} end"));
            async { Ok(()) }
        });
    }
    trial.agent.events().off("a");
    trial.agent.events().off("nobody");
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(notes.all(), ["b start", "b end"]);
    // Also from within one of them, for those that come after.
    trial.agent.events().on::<TurnStart, _>("c", |_, agent| async move {
        agent.events().off("b");
        Ok(())
    });
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(notes.all(), ["b start", "b end", "b start"]);
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_does_not_stop_the_loop() {
    let trial = Trial::new(Given { settings: quick(), ..Given::default() }).await;
    let (let_go, held) = (Arc::new(AtomicBool::new(false)), Notes::default());
    let (stay, reached) = (let_go.clone(), held.clone());
    trial.agent.events().on::<AgentStart, _>("rude", move |_, _| {
        let (stay, reached) = (stay.clone(), reached.clone());
        async move {
            reached.add("held");
            while !stay.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        }
    });
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(held.all(), ["held"], "it is blocked still, and the run is over");
    assert_eq!(trial.said(), ["user: Hello", "assistant: Fine."]);
    assert_eq!(
        trial.told("handler_failed"),
        [
            json!({"type": "handler_failed", "owner": "rude", "event": "agent_start", "what": "it took longer than 0.15 s"})
        ]
    );
    trial.agent.events().off("rude");
    let_go.store(true, Ordering::SeqCst);
    tokio::time::sleep(Duration::from_millis(20)).await; // its copy of the agent goes with it
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_took_too_long_three_times_is_not_called_any_more() {
    let trial = Trial::new(Given { settings: quick(), ..Given::default() }).await;
    let notes = Notes::default();
    let called = notes.clone();
    trial.agent.events().on::<Context, _>("slow", move |_, _| {
        called.add("called");
        std::future::pending()
    });
    for _ in 0..5 {
        assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    }
    assert_eq!(notes.all().len(), 3);
    let what: Vec<String> =
        trial.told("handler_failed").iter().map(|fault| fault["what"].as_str().unwrap().to_owned()).collect();
    let (late, silenced) = ("it took longer than 0.15 s", "not called: it took too long 3 times");
    assert_eq!(what[..3], [late, late, late]);
    assert!(what[3..].iter().all(|what| what == silenced), "{what:?}");
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn handlers_of_everything_may_break_and_nothing_is_lost() {
    let script = "
turns:
  - {text: Well., tool_calls: [{name: slow, arguments: {ms: 1}}]}
default: {text: Fine.}
";
    let trial = Trial::new(Given { script, ..Given::default() }).await;
    let events = trial.agent.events();
    events.on::<AgentStart, _>("broken", |_, _| async { panic!("at the start") });
    events.on::<TurnStart, _>("broken", |_, _| async { panic!("at a turn") });
    events.on::<MessageStart, _>("broken", |_, _| async { panic!("at a message") });
    events.on::<MessageUpdate, _>("broken", |_, _| async { Err("at a piece".into()) });
    events.on::<MessageEnd, _>("broken", |event, _| {
        assert!(event.message.id.0.is_empty(), "before it begins, at the end of {}", event.message.id);
        async { Ok(()) }
    });
    events.on::<AgentEnd, _>("broken", |_, _| async { panic!("at the end") });
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(
        trial.said(),
        ["user: Hello", "assistant: Well. [slow]", "result: slept 1", "assistant: Fine."]
    );
    let failed = trial.told("handler_failed");
    assert!(failed.iter().all(|fault| fault["owner"] == "broken"));
    let count = |event: &str| failed.iter().filter(|fault| fault["event"] == event).count();
    assert_eq!(
        ["agent_start", "turn_start", "message_start", "message_end", "agent_end"].map(count),
        [1, 2, 4, 4, 1]
    );
    assert_eq!(count("message_update"), trial.told("message_update").len());
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_may_speak_to_the_agent_it_is_called_by() {
    let trial = Trial::new(Given::default()).await;
    let notes = Notes::default();
    let seen = notes.clone();
    trial.agent.events().on::<MessageEnd, _>("talker", move |_, agent| {
        let seen = seen.clone();
        async move {
            seen.add(format!("{} {}", agent.is_busy(), agent.messages().len()));
            Ok(())
        }
    });
    let asked = Arc::new(AtomicBool::new(false));
    trial.agent.events().on::<TurnStart, _>("talker", move |_, agent| {
        let first = !asked.swap(true, Ordering::SeqCst);
        async move {
            if first {
                agent.queue(input("One more thing"), Delivery::FollowUp).await?;
            }
            Ok(())
        }
    });
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(trial.said(), ["user: Hello", "assistant: Fine.", "user: One more thing", "assistant: Fine."]);
    assert_eq!(notes.all(), ["true 1", "true 2", "true 3", "true 4"], "a message is there when it is told");
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_says_at_the_end_of_a_run_begins_another() {
    for (stop, expected) in [
        (Stop::Done, &["user: Hello", "assistant: Fine.", "user: One more thing", "assistant: Fine."][..]),
        (Stop::Aborted, &["user: Hello"]),
    ] {
        let trial = Trial::new(Given::default()).await;
        let said = Arc::new(AtomicBool::new(false));
        trial.agent.events().on::<AgentEnd, _>("talker", move |_, agent| {
            let first = !said.swap(true, Ordering::SeqCst);
            async move {
                if first {
                    let taken = agent.queue(input("One more thing"), Delivery::FollowUp).await?;
                    assert_eq!(taken, Taken::Queued(Delivery::FollowUp));
                }
                Ok(())
            }
        });
        if stop == Stop::Aborted {
            trial.agent.events().on::<AgentStart, _>("stopper", |_, agent| async move {
                agent.abort();
                Ok(())
            });
        }
        assert_eq!(trial.prompt("Hello").await, Taken::Ran(stop.clone()));
        assert_eq!(trial.said(), expected);
        assert!(trial.told("handler_failed").is_empty(), "nobody waits for anybody");
        // After an abort nothing goes on by itself: it waits, and is shown.
        assert_eq!(trial.agent.waiting().follow_up.len(), usize::from(stop == Stop::Aborted));
        assert_eq!(trial.told("agent_end").len(), if stop == Stop::Done { 2 } else { 1 });
        trial.goes_on().await;
    }
}
