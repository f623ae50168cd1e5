use std::time::Duration;

use hardpan_agent::events::{
    AgentEnd, BeforeAgentStart, ContextEvent, InputReply, MessageEnd, MessageUpdate, ToolCallEvent,
    ToolResultEvent, ToolResultReply, TurnEnd,
};
use hardpan_agent::{Input, InputOutcome, QueuedInputs, ReadCallMode, RunEnd};
use hardpan_context::LayoutName;
use hardpan_prompt::MessageBody;
use hardpan_test_support::{AnswerGate, NoteLog, TestAgent, TestAgentBuilder, queued_input, text_of};

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

/// Stops a run at some moment of it, in every layout and with both protocols: what was received is
/// kept, what was queued is kept and shown, and everything goes on from there: the agent itself, a
/// fork, the session opened again.
///
/// `prepare` is called before it begins, `reached` waits for the moment.
async fn stopped(
    setup: fn() -> TestAgentBuilder,
    prepare: impl Fn(&TestAgent, &AnswerGate),
    reached: impl AsyncFn(&TestAgent, &AnswerGate),
    said: &[&str],
) {
    let layouts = LayoutName::ALL.into_iter().map(|layout| (layout, "claude-sonnet-5"));
    for (layout, model) in layouts.chain([(LayoutName::Strata, "gpt-5")]) {
        let test_agent = setup().layout(layout).model(model).start().await;
        let gate = AnswerGate::default();
        prepare(&test_agent, &gate);
        let running = test_agent.begin("Go");
        reached(&test_agent, &gate).await;
        assert!(!running.is_finished(), "{layout}: it is too late to stop it");
        test_agent.steer("steered").await;
        test_agent.follow_up("followed").await;
        test_agent.agent.abort();
        gate.release();
        assert_eq!(running.await.expect("an end"), InputOutcome::Ran(RunEnd::Aborted), "{layout} {model}");
        assert!(!test_agent.agent.is_busy());
        drop(std::fs::remove_file(test_agent.file("wait")));
        assert_eq!(test_agent.transcript_lines(), said, "{layout} {model}");
        let end = test_agent.events_of::<AgentEnd>().pop().expect("an end");
        assert_eq!(end.stop, RunEnd::Aborted);
        let queued = QueuedInputs {
            steering: vec![queued_input("steered")],
            follow_up: vec![queued_input("followed")],
        };
        assert_eq!(end.queued, queued);
        assert_eq!(end.messages.len(), said.len());
        let answered = usize::from(said.len() > 1);
        assert_eq!(
            test_agent.events_of::<TurnEnd>().len(),
            answered,
            "a turn that brought an answer has an end"
        );
        test_agent.agent.events().unsubscribe("hold");
        test_agent.assert_stored_matches_memory().await;
        let fork = test_agent.fork(None);
        assert_eq!(fork.agent.messages(), test_agent.agent.messages());
        assert_eq!(
            fork.prompt("Go on in the fork").await,
            InputOutcome::Ran(RunEnd::Done),
            "{layout} {model}"
        );
        assert_eq!(test_agent.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done), "{layout} {model}");
        assert_eq!(
            test_agent.transcript_lines()[said.len()..],
            [
                "user: Go on",
                "assistant: Fine.",
                "user: steered",
                "assistant: Fine.",
                "user: followed",
                "assistant: Fine."
            ]
        );
        test_agent.assert_continues().await;
    }
}

fn nothing(_test_agent: &TestAgent, _gate: &AnswerGate) {}

async fn there(_test_agent: &TestAgent, gate: &AnswerGate) {
    gate.reached().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_start_of_the_run_is_prepared() {
    let prepare = |test_agent: &TestAgent, gate: &AnswerGate| {
        let reached = gate.reached.clone();
        test_agent.agent.events().subscribe::<BeforeAgentStart, _>("hold", move |_, _| {
            reached.add("here");
            std::future::pending()
        });
    };
    stopped(TestAgent::builder, prepare, there, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_the_agent_looks_around() {
    let prepare = |test_agent: &TestAgent, _: &AnswerGate| test_agent.write("wait", "");
    let reached =
        async |test_agent: &TestAgent, _: &AnswerGate| test_agent.until_event("message_end", 1).await;
    stopped(TestAgent::builder, prepare, reached, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_handler_looks_at_the_context() {
    let prepare = |test_agent: &TestAgent, gate: &AnswerGate| {
        let reached = gate.reached.clone();
        test_agent.agent.events().subscribe::<ContextEvent, _>("hold", move |_, _| {
            reached.add("here");
            std::future::pending()
        });
    };
    stopped(TestAgent::builder, prepare, there, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn before_the_first_byte_of_the_answer() {
    let prepare = |test_agent: &TestAgent, gate: &AnswerGate| test_agent.answer_once(&[], &gate.reached);
    stopped(TestAgent::builder, prepare, there, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_it_waits_to_try_again() {
    let setup = || TestAgent::builder().faults("status=529,retry-after=50,times=1");
    let reached = async |test_agent: &TestAgent, _: &AnswerGate| test_agent.until_event("note", 1).await;
    stopped(setup, nothing, reached, &["user: Go"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_the_middle_of_text() {
    let setup = || TestAgent::builder().faults("stall=900,times=1").script(TEXT);
    // How much comes before the silence depends on the protocol: whatever came is kept.
    for model in ["claude-sonnet-5", "gpt-4.1"] {
        for layout in LayoutName::ALL {
            let test_agent = setup().layout(layout).model(model).start().await;
            let running = test_agent.begin("Go");
            test_agent.until_heard("one").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
            test_agent.agent.abort();
            assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
            let said = test_agent.transcript_lines();
            let answer: String = test_agent
                .events_of::<MessageUpdate>()
                .iter()
                .map(|update| text_of(&update.delta).to_owned())
                .collect();
            assert!(answer.starts_with("one two") && !answer.ends_with("twelve"), "{answer}");
            assert_eq!(said, ["user: Go".to_owned(), format!("assistant: {answer} (aborted)")]);
            assert_eq!(test_agent.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done));
            if model != "gpt-4.1" {
                assert!(
                    test_agent.request_lines()[1].contains(&format!("assistant: {answer}")),
                    "{:?}",
                    test_agent.request_lines()[1]
                );
            }
            test_agent.assert_continues().await;
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
    // The first call is whole, the second is not: neither was run, and both are left out of what is
    // sent.
    let setup = || {
        TestAgent::builder().script("
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}, {id: c2, name: paint, arguments: {colour: a very long name of a colour indeed}}]
    pace: 25ms
default: {text: Fine.}
")
    };
    let prepare = |test_agent: &TestAgent, gate: &AnswerGate| gate.hold(test_agent, "very");
    stopped(setup, prepare, there, &["user: Go", "assistant: Two things. [paint] [paint] (aborted)"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_handler_decides_about_a_call() {
    let prepare = |test_agent: &TestAgent, gate: &AnswerGate| {
        let reached = gate.reached.clone();
        test_agent.agent.events().subscribe::<ToolCallEvent, _>("hold", move |_, _| {
            reached.add("here");
            std::future::pending()
        });
    };
    let setup = || TestAgent::builder().script(PAINT);
    stopped(setup, prepare, there, &["user: Go", "assistant: Two things. [paint] [paint]", STOPPED, NOT_RUN])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_person_is_asked() {
    let setup = || {
        TestAgent::builder().script("
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: paint, arguments: {colour: beige}}, {id: c2, name: paint, arguments: {colour: blue}}]
default: {text: Fine.}
")
    };
    let reached = async |test_agent: &TestAgent, _: &AnswerGate| test_agent.asked().until(1).await;
    stopped(
        setup,
        nothing,
        reached,
        &["user: Go", "assistant: Two things. [paint] [paint]", STOPPED, NOT_RUN],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_tool_works() {
    let setup = || TestAgent::builder().script(WORK);
    let reached = async |test_agent: &TestAgent, _: &AnswerGate| {
        test_agent.until_event("tool_execution_update", 1).await;
    };
    stopped(
        setup,
        nothing,
        reached,
        &["user: Go", "assistant: Two things. [slow] [paint]", STOPPED, NOT_RUN],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_tools_work_side_by_side() {
    let setup = || {
        TestAgent::builder()
            .script(
                "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: slow, arguments: {ms: 60000}}, {id: c2, name: slow, arguments: {ms: 1}}]
default: {text: Fine.}
",
            )
            .settings(|settings| settings.read_calls = ReadCallMode::Parallel)
    };
    let reached = async |test_agent: &TestAgent, _: &AnswerGate| test_agent.until_slept(1).await;
    // What has ended by then is kept.
    stopped(
        setup,
        nothing,
        reached,
        &["user: Go", "assistant: Two things. [slow] [slow]", STOPPED, "result: slept 1"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn between_two_calls() {
    // Whoever looks at the first result holds it up until the run is stopped.
    let prepare = |test_agent: &TestAgent, gate: &AnswerGate| {
        let gate = gate.clone();
        test_agent.agent.events().subscribe::<ToolResultEvent, _>("hold", move |_, _| {
            let gate = gate.clone();
            async move {
                gate.wait().await;
                Ok(ToolResultReply::default())
            }
        });
    };
    let setup = || TestAgent::builder().script(PAINT);
    stopped(
        setup,
        prepare,
        there,
        &["user: Go", "assistant: Two things. [paint] [paint]", "result: painted blue", NOT_RUN],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn right_after_the_answer() {
    let prepare = |test_agent: &TestAgent, gate: &AnswerGate| {
        let gate = gate.clone();
        test_agent.agent.events().subscribe::<MessageEnd, _>("hold", move |event, _| {
            let gate = gate.clone();
            async move {
                if matches!(*event.message.body, MessageBody::Assistant { .. }) {
                    gate.wait().await;
                }
                Ok(())
            }
        });
    };
    let setup = || TestAgent::builder().script(PAINT);
    stopped(setup, prepare, there, &["user: Go", "assistant: Two things. [paint] [paint]", NOT_RUN, NOT_RUN])
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_handler_looks_at_the_input_nothing_has_begun() {
    let test_agent = TestAgent::builder().start().await;
    let notes = NoteLog::default();
    let reached = notes.clone();
    test_agent.agent.events().subscribe::<Input, _>("hold", move |_, _| {
        reached.add("here");
        std::future::pending::<Result<InputReply, _>>()
    });
    let running = test_agent.begin("Go");
    notes.until(1).await;
    test_agent.agent.abort();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
    assert!(test_agent.transcript_lines().is_empty() && test_agent.order().is_empty());
    test_agent.agent.events().unsubscribe("hold");
    assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_of_nothing_stops_nothing() {
    let test_agent = TestAgent::builder().start().await;
    test_agent.agent.abort();
    assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
    test_agent.agent.abort();
    assert_eq!(test_agent.prompt("Go").await, InputOutcome::Ran(RunEnd::Done));
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_ends_in_the_middle_keeps_what_came() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(WORK).start().await;
        let running = test_agent.begin("Go");
        test_agent.until_event("tool_execution_start", 1).await;
        test_agent.agent.shutdown().await.unwrap();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
        assert_eq!(test_agent.order().last().unwrap(), "session_shutdown");
        assert_eq!(
            test_agent.transcript_lines(),
            ["user: Go", "assistant: Two things. [slow] [paint]", STOPPED, NOT_RUN]
        );
        test_agent.assert_continues().await;
    }
}
