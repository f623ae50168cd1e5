use std::time::Duration;

use hardpan_agent::events::{
    BeforeAgentStart, Context, InputReply, MessageEnd, ToolCall, ToolResult, ToolResultReply,
};
use hardpan_agent::{AgentSettings, Input, Reads, Stop, Taken};
use hardpan_context::LayoutName;
use hardpan_prompt::Body;
use serde_json::json;

use crate::props::{Held, Notes};
use crate::trial::{Given, Trial};

const STOPPED: &str = "failed: The user stopped this call before it ended.";
const NOT_RUN: &str = "failed: The user stopped the agent before this call was run.";

const WORK: &str = "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: slow, arguments: {ms: 60000}}, {id: c2, name: paint, arguments: {colour: blue}}]
default: {text: Fine.}
";

const PAINT: &str = "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}, {id: c2, name: paint, arguments: {colour: green}}]
default: {text: Fine.}
";

/// Stops a run at some moment of it, in every layout and with both protocols: what was received is kept, what was queued is
/// kept and shown, and everything goes on from there: the agent itself, a fork, the session opened again.
///
/// `prepare` is called before it begins, `reached` waits for the moment.
async fn stopped(
    given: fn() -> Given,
    prepare: impl Fn(&Trial, &Held),
    reached: impl AsyncFn(&Trial, &Held),
    said: &[&str],
) {
    let layouts = LayoutName::ALL.into_iter().map(|layout| (layout, "claude-sonnet-5"));
    for (layout, model) in layouts.chain([(LayoutName::Strata, "gpt-5")]) {
        let trial = Trial::new(Given { layout, model, ..given() }).await;
        let held = Held::default();
        prepare(&trial, &held);
        let running = trial.begin("Go");
        reached(&trial, &held).await;
        assert!(!running.is_finished(), "{layout}: it is too late to stop it");
        trial.steer("steered").await;
        trial.follow_up("followed").await;
        trial.agent.abort();
        held.let_go();
        assert_eq!(running.await.expect("an end"), Taken::Ran(Stop::Aborted), "{layout} {model}");
        assert!(!trial.agent.is_busy());
        drop(std::fs::remove_file(trial.file("wait")));
        assert_eq!(trial.said(), said, "{layout} {model}");
        let end = trial.told("agent_end").pop().expect("an end");
        let item = |text: &str| json!([{"text": text, "typed": text}]);
        assert_eq!(end["stop"], json!({"reason": "aborted"}));
        assert_eq!(end["queued"], json!({"steering": item("steered"), "follow_up": item("followed")}));
        assert_eq!(end["messages"].as_array().map(Vec::len), Some(said.len()));
        let answered = usize::from(said.len() > 1);
        assert_eq!(trial.told("turn_end").len(), answered, "a turn that brought an answer has an end");
        trial.agent.events().off("hold");
        trial.is_sound().await;
        let fork = trial.fork(None);
        assert_eq!(fork.agent.messages(), trial.agent.messages());
        assert_eq!(fork.prompt("Go on in the fork").await, Taken::Ran(Stop::Done), "{layout} {model}");
        assert_eq!(trial.prompt("Go on").await, Taken::Ran(Stop::Done), "{layout} {model}");
        assert_eq!(
            trial.said()[said.len()..],
            [
                "user: Go on",
                "assistant: Fine.",
                "user: steered",
                "assistant: Fine.",
                "user: followed",
                "assistant: Fine."
            ]
        );
        trial.goes_on().await;
    }
}

fn nothing(_trial: &Trial, _held: &Held) {}

async fn there(_trial: &Trial, held: &Held) {
    held.reached().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_start_of_the_run_is_prepared() {
    let prepare = |trial: &Trial, held: &Held| {
        let reached = held.reached.clone();
        trial.agent.events().on::<BeforeAgentStart, _>("hold", move |_, _| {
            reached.add("here");
            std::future::pending()
        });
    };
    stopped(Given::default, prepare, there, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_agent_looks_around() {
    let prepare = |trial: &Trial, _: &Held| trial.write("wait", "");
    let reached = async |trial: &Trial, _: &Held| trial.until("message_end", 1).await;
    stopped(Given::default, prepare, reached, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_handler_looks_at_the_context() {
    let prepare = |trial: &Trial, held: &Held| {
        let reached = held.reached.clone();
        trial.agent.events().on::<Context, _>("hold", move |_, _| {
            reached.add("here");
            std::future::pending()
        });
    };
    stopped(Given::default, prepare, there, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_byte_of_the_answer() {
    let prepare = |trial: &Trial, held: &Held| trial.answer_once(&[], &held.reached);
    stopped(Given::default, prepare, there, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_waits_to_try_again() {
    let given = || Given { faults: "status=529,retry-after=50,times=1", ..Given::default() };
    let reached = async |trial: &Trial, _: &Held| trial.until("note", 1).await;
    stopped(given, nothing, reached, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_middle_of_text() {
    let given = || Given { faults: "stall=900,times=1", script: TEXT, ..Given::default() };
    // How much comes before the silence depends on the protocol: whatever came is kept.
    for model in ["claude-sonnet-5", "gpt-5"] {
        for layout in LayoutName::ALL {
            let trial = Trial::new(Given { layout, model, ..given() }).await;
            let running = trial.begin("Go");
            trial.until_heard("one").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            trial.agent.abort();
            assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Aborted));
            let said = trial.said();
            let heard: String = trial
                .told("message_update")
                .iter()
                .map(|event| event["delta"]["text"].as_str().unwrap().to_owned())
                .collect();
            assert!(heard.starts_with("one two") && !heard.ends_with("twelve"), "{heard}");
            assert_eq!(said, ["user: Go".to_owned(), format!("assistant: {heard} (aborted)")]);
            assert_eq!(trial.prompt("Go on").await, Taken::Ran(Stop::Done));
            if model != "gpt-5" {
                assert!(trial.heard()[1].contains(&format!("assistant: {heard}")), "{:?}", trial.heard()[1]);
            }
            trial.goes_on().await;
        }
    }
}

const TEXT: &str = "
turns:
  - {text: one two three four five six seven eight nine ten eleven twelve}
default: {text: Fine.}
";

#[tokio::test(flavor = "multi_thread")]
async fn in_the_middle_of_the_arguments_of_a_call() {
    // The first call is whole, the second is not: neither was run, and both are left out of what is sent.
    let given = || {
        Given {
        script: "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}, {id: c2, name: paint, arguments: {colour: a very long name of a colour indeed}}]
    pace: 25ms
default: {text: Fine.}
",
        ..Given::default()
    }
    };
    let prepare = |trial: &Trial, held: &Held| held.hold(trial, "very");
    stopped(given, prepare, there, &["user: Go", "assistant: Two things. [paint] [paint] (aborted)"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_handler_decides_about_a_call() {
    let prepare = |trial: &Trial, held: &Held| {
        let reached = held.reached.clone();
        trial.agent.events().on::<ToolCall, _>("hold", move |_, _| {
            reached.add("here");
            std::future::pending()
        });
    };
    let given = || Given { script: PAINT, ..Given::default() };
    stopped(given, prepare, there, &["user: Go", "assistant: Two things. [paint] [paint]", STOPPED, NOT_RUN])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_person_is_asked() {
    let given = || {
        Given {
        script: "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: paint, arguments: {colour: beige}}, {id: c2, name: paint, arguments: {colour: blue}}]
default: {text: Fine.}
",
        ..Given::default()
    }
    };
    let reached = async |trial: &Trial, _: &Held| trial.asked().until(1).await;
    stopped(
        given,
        nothing,
        reached,
        &["user: Go", "assistant: Two things. [paint] [paint]", STOPPED, NOT_RUN],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_tool_works() {
    let given = || Given { script: WORK, ..Given::default() };
    let reached = async |trial: &Trial, _: &Held| trial.until("tool_execution_update", 1).await;
    stopped(
        given,
        nothing,
        reached,
        &["user: Go", "assistant: Two things. [slow] [paint]", STOPPED, NOT_RUN],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_tools_work_side_by_side() {
    let given = || Given {
        script: "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: slow, arguments: {ms: 60000}}, {id: c2, name: slow, arguments: {ms: 1}}]
default: {text: Fine.}
",
        settings: AgentSettings { reads: Reads::SideBySide, ..Given::default().settings },
        ..Given::default()
    };
    let reached = async |trial: &Trial, _: &Held| trial.until_slept(1).await;
    // What has ended by then is kept.
    stopped(
        given,
        nothing,
        reached,
        &["user: Go", "assistant: Two things. [slow] [slow]", STOPPED, "result: slept 1"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_two_calls() {
    // Whoever looks at the first result holds it up until the run is stopped.
    let prepare = |trial: &Trial, held: &Held| {
        let held = held.clone();
        trial.agent.events().on::<ToolResult, _>("hold", move |_, _| {
            let held = held.clone();
            async move {
                held.wait().await;
                Ok(ToolResultReply::default())
            }
        });
    };
    let given = || Given { script: PAINT, ..Given::default() };
    stopped(
        given,
        prepare,
        there,
        &["user: Go", "assistant: Two things. [paint] [paint]", "result: painted blue", NOT_RUN],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn right_after_the_answer() {
    let prepare = |trial: &Trial, held: &Held| {
        let held = held.clone();
        trial.agent.events().on::<MessageEnd, _>("hold", move |event, _| {
            let held = held.clone();
            async move {
                if matches!(*event.message.body, Body::Assistant { .. }) {
                    held.wait().await;
                }
                Ok(())
            }
        });
    };
    let given = || Given { script: PAINT, ..Given::default() };
    stopped(given, prepare, there, &["user: Go", "assistant: Two things. [paint] [paint]", NOT_RUN, NOT_RUN])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_handler_looks_at_the_input_nothing_has_begun() {
    let trial = Trial::new(Given::default()).await;
    let notes = Notes::default();
    let reached = notes.clone();
    trial.agent.events().on::<Input, _>("hold", move |_, _| {
        reached.add("here");
        std::future::pending::<Result<InputReply, _>>()
    });
    let running = trial.begin("Go");
    notes.until(1).await;
    trial.agent.abort();
    assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Aborted));
    assert!(trial.said().is_empty() && trial.order().is_empty());
    trial.agent.events().off("hold");
    assert_eq!(trial.prompt("Go").await, Taken::Ran(Stop::Done));
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_of_nothing_stops_nothing() {
    let trial = Trial::new(Given::default()).await;
    trial.agent.abort();
    assert_eq!(trial.prompt("Go").await, Taken::Ran(Stop::Done));
    trial.agent.abort();
    assert_eq!(trial.prompt("Go").await, Taken::Ran(Stop::Done));
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ends_in_the_middle_keeps_what_came() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, script: WORK, ..Given::default() }).await;
        let running = trial.begin("Go");
        trial.until("tool_execution_start", 1).await;
        trial.agent.shutdown().await.unwrap();
        assert_eq!(running.await.unwrap(), Taken::Ran(Stop::Aborted));
        assert_eq!(trial.order().last().unwrap(), "session_shutdown");
        assert_eq!(trial.said(), ["user: Go", "assistant: Two things. [slow] [paint]", STOPPED, NOT_RUN]);
        trial.goes_on().await;
    }
}
