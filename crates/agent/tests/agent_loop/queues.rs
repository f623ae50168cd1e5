use std::time::Duration;

use hardpan_agent::events::{AgentEnd, AgentStart, QueueUpdate, ToolExecutionStart, TurnEnd, TurnStart};
use hardpan_agent::{Delivery, InputOutcome, QueueMode, QueuedInputs, ReadCallMode, RunEnd};
use hardpan_context::LayoutName;
use hardpan_test_support::{TestAgent, input, queued_input};

const SKIPPED: &str = "failed: Skipped due to queued user message";

const TALK: &str = "
turns:
  - {text: one two three four five six seven eight}
default: {text: Fine.}
";

const CALLS: &str = "
turns:
  - text: Three things.
    tool_calls:
    - {id: c1, name: slow, arguments: {ms: 100}}
    - {id: c2, name: slow, arguments: {ms: 2}}
    - {id: c3, name: paint, arguments: {colour: blue}}
default: {text: Fine.}
";

#[tokio::test(flavor = "multi_thread")]
async fn steering_in_the_middle_skips_the_calls_that_have_not_begun() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(CALLS).start().await;
        let running = test_agent.begin("Work");
        test_agent.until_event("tool_execution_start", 1).await;
        test_agent.steer("Stop that").await;
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            test_agent.transcript_lines(),
            [
                "user: Work",
                "assistant: Three things. [slow] [slow] [paint]",
                "result: slept 100",
                SKIPPED,
                SKIPPED,
                "user: Stop that",
                "assistant: Fine.",
            ]
        );
        assert_eq!(test_agent.events_of::<ToolExecutionStart>().len(), 1);
        let turn = test_agent.events_of::<TurnEnd>().remove(0);
        assert_eq!(turn.tool_results.len(), 3);
        let mut request_lines = test_agent.request_lines().remove(1);
        request_lines.retain(|line| {
            line.starts_with("failed") || line.starts_with("result: slept") || line == "user: Stop that"
        });
        assert_eq!(request_lines, ["result: slept 100", SKIPPED, SKIPPED, "user: Stop that"], "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_that_run_side_by_side_end_before_steering_skips_the_rest() {
    let test_agent = TestAgent::builder()
        .script(CALLS)
        .settings(|settings| settings.read_calls = ReadCallMode::Parallel)
        .start()
        .await;
    let running = test_agent.begin("Work");
    test_agent.until_event("tool_execution_start", 2).await;
    test_agent.steer("Stop that").await;
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(
        test_agent.transcript_lines()[2..],
        ["result: slept 100", "result: slept 2", SKIPPED, "user: Stop that", "assistant: Fine."]
    );
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_while_text_streams_comes_right_after_the_answer() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(TALK).start().await;
        let (running, gate) = test_agent.begin_and_hold("Talk").await;
        test_agent.steer("Shorter").await;
        gate.release();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            test_agent.transcript_lines(),
            [
                "user: Talk",
                "assistant: one two three four five six seven eight",
                "user: Shorter",
                "assistant: Fine.",
            ]
        );
        assert_eq!(test_agent.events_of::<AgentStart>().len(), 1, "it is the same run");
        assert_eq!(test_agent.events_of::<TurnStart>().len(), 2);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn steering_while_an_answer_with_calls_streams_lets_the_first_call_run() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - text: Let me do one two three four things.
    tool_calls: [{name: paint, arguments: {colour: blue}}, {name: paint, arguments: {colour: green}}]
default: {text: Fine.}
";
        let test_agent = TestAgent::builder().layout(layout).script(script).start().await;
        let (running, gate) = test_agent.begin_and_hold("Work").await;
        test_agent.steer("Stop").await;
        gate.release();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            test_agent.transcript_lines()[2..],
            ["result: painted blue", SKIPPED, "user: Stop", "assistant: Fine."]
        );
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_queue_is_delivered_one_at_a_time_or_all_at_once() {
    use QueueMode::{All, OneAtATime};
    let one_by_one =
        ["user: a", "assistant: Fine.", "user: b", "assistant: Fine.", "user: c", "assistant: Fine."];
    let all = ["user: a", "user: b", "user: c", "assistant: Fine."];
    for layout in LayoutName::ALL {
        for delivery in [Delivery::Steer, Delivery::FollowUp] {
            for (mode, expected, turns) in [(OneAtATime, &one_by_one[..], 4), (All, &all[..], 2)] {
                // The other queue's mode must not matter.
                let other = if mode == All { OneAtATime } else { All };
                let (steering, follow_up) = match delivery {
                    Delivery::Steer => (mode, other),
                    Delivery::FollowUp => (other, mode),
                };
                let test_agent = TestAgent::builder()
                    .layout(layout)
                    .script(TALK)
                    .settings(|settings| (settings.steering, settings.follow_up) = (steering, follow_up))
                    .start()
                    .await;
                let (running, gate) = test_agent.begin_and_hold("Talk").await;
                for text in ["a", "b", "c"] {
                    let outcome = test_agent.agent.queue(input(text), delivery).await.unwrap();
                    assert_eq!(outcome, InputOutcome::Queued(delivery));
                }
                gate.release();
                assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
                assert_eq!(test_agent.transcript_lines()[2..], *expected, "{layout} {delivery:?} {mode:?}");
                assert_eq!(
                    (test_agent.sent_bodies().len(), test_agent.events_of::<TurnEnd>().len()),
                    (turns, turns)
                );
                assert!(test_agent.agent.queued_inputs().is_empty());
                test_agent.assert_continues().await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn follow_ups_wait_until_there_are_no_more_calls_and_steering_goes_first() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - tool_calls: [{name: slow, arguments: {ms: 80}}]
  - tool_calls: [{name: slow, arguments: {ms: 81}}]
default: {text: Fine.}
";
        let test_agent = TestAgent::builder().layout(layout).script(script).start().await;
        let running = test_agent.begin("Work");
        test_agent.until_event("tool_execution_start", 1).await;
        test_agent.follow_up("then this").await;
        test_agent.follow_up("then that").await;
        test_agent.until_event("tool_execution_start", 2).await;
        test_agent.steer("first me").await;
        test_agent.steer("then me").await;
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            test_agent.transcript_lines()[1..],
            [
                "assistant: [slow]",
                "result: slept 80",
                "assistant: [slow]",
                "result: slept 81",
                "user: first me",
                "assistant: Fine.",
                "user: then me",
                "assistant: Fine.",
                "user: then this",
                "assistant: Fine.",
                "user: then that",
                "assistant: Fine.",
            ],
            "{layout}"
        );
        assert_eq!(
            (test_agent.events_of::<AgentStart>().len(), test_agent.events_of::<AgentEnd>().len()),
            (1, 1)
        );
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_is_told_and_can_be_taken_out() {
    let test_agent = TestAgent::builder().script(TALK).start().await;
    let (running, gate) = test_agent.begin_and_hold("Talk").await;
    test_agent.steer("a").await;
    test_agent.follow_up("b").await;
    let waiting = test_agent.agent.clear_queue().await;
    let queued = QueuedInputs { steering: vec![queued_input("a")], follow_up: vec![queued_input("b")] };
    assert_eq!(waiting, queued);
    assert!(test_agent.agent.queued_inputs().is_empty());
    test_agent.follow_up("c").await;
    gate.release();
    assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.transcript_lines()[2..], ["user: c", "assistant: Fine."]);
    let update = |steering: &[&str], follow_up: &[&str]| {
        let items = |texts: &[&str]| texts.iter().map(|text| queued_input(text)).collect::<Vec<_>>();
        QueueUpdate(QueuedInputs { steering: items(steering), follow_up: items(follow_up) })
    };
    assert_eq!(
        test_agent.events_of::<QueueUpdate>(),
        [
            update(&["a"], &[]),
            update(&["a"], &["b"]),
            update(&[], &[]),
            update(&[], &["c"]),
            update(&[], &[])
        ]
    );
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_queued_for_an_idle_agent_begins_a_run() {
    let test_agent = TestAgent::builder().start().await;
    for delivery in [Delivery::Steer, Delivery::FollowUp] {
        let outcome = test_agent.agent.queue(input("Hello"), delivery).await.unwrap();
        assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done));
    }
    assert_eq!(
        test_agent.transcript_lines(),
        ["user: Hello", "assistant: Fine.", "user: Hello", "assistant: Fine."]
    );
    assert_eq!(test_agent.agent.queued_inputs(), QueuedInputs::default());
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_whenever_it_is_queued() {
    let test_agent = TestAgent::builder().start().await;
    // A run takes some milliseconds: each message comes at another moment of it, or after it.
    for n in 0..40_u64 {
        let running = test_agent.begin(&format!("prompt {n}"));
        test_agent.until_event("message_start", 1).await;
        tokio::time::sleep(Duration::from_micros(n * 250)).await;
        let delivery = if n % 2 == 0 { Delivery::Steer } else { Delivery::FollowUp };
        test_agent.agent.queue(input(&format!("queued {n}")), delivery).await.unwrap();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        while test_agent.agent.is_busy() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        test_agent.clear_events();
    }
    let mut said = test_agent.transcript_lines();
    said.retain(|line| line.starts_with("user"));
    let expected: Vec<String> =
        (0..40).flat_map(|n| [format!("user: prompt {n}"), format!("user: queued {n}")]).collect();
    assert_eq!(said, expected);
    assert!(test_agent.agent.queued_inputs().is_empty());
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_after_a_stop_begins_the_next_run_and_what_was_queued_goes_with_it() {
    // The stopped run takes some time to end: each message comes at another moment of that, or after it.
    for n in 0..40_u64 {
        let test_agent = TestAgent::builder().script(CALLS).start().await;
        let running = test_agent.begin("Work");
        test_agent.until_event("tool_execution_start", 1).await;
        test_agent.steer("before the stop").await;
        test_agent.agent.abort();
        tokio::time::sleep(Duration::from_micros(n * 25)).await;
        let delivery = if n % 2 == 0 { Delivery::Steer } else { Delivery::FollowUp };
        test_agent.agent.queue(input("after the stop"), delivery).await.unwrap();
        running.await.unwrap();
        while test_agent.agent.is_busy() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert!(test_agent.agent.queued_inputs().is_empty(), "{n}");
        let mut said = test_agent.transcript_lines();
        assert_eq!(said.pop().unwrap(), "assistant: Fine.", "{n}");
        said.retain(|line| line.starts_with("user"));
        assert_eq!(said, ["user: Work", "user: after the stop", "user: before the stop"], "{n}");
        let shown = test_agent.events_of::<QueueUpdate>().pop().unwrap();
        assert_eq!(shown.0, QueuedInputs::default(), "{n}");
        test_agent.assert_continues().await;
    }
}
