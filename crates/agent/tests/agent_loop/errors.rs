use hardpan_agent::events::{AgentEnd, MessageUpdate, Note, NoteKind, ToolExecutionStart, TurnEnd};
use hardpan_agent::{InputOutcome, RunEnd};
use hardpan_context::LayoutName;
use hardpan_test_support::{NoteLog, TestAgent, text_of};
use serde_json::json;

const TEXT: &str = "
turns:
  - {text: one two three four five six seven eight nine ten eleven twelve}
default: {text: Fine.}
";

fn error(test_agent: &TestAgent, outcome: InputOutcome) -> String {
    let InputOutcome::Ran(RunEnd::Error { message }) = outcome else { panic!("{outcome:?}") };
    assert_eq!(
        test_agent.events_of::<AgentEnd>().last().expect("an end").stop,
        RunEnd::Error { message: message.clone() }
    );
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_too_busy_is_asked_again_with_a_note() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).faults("status=529,times=2").start().await;
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.transcript_lines(), ["user: Hello", "assistant: Fine."]);
        let notes = test_agent.events_of::<Note>();
        assert_eq!(notes.len(), 2);
        assert!(notes[0].text.contains("529") && notes[0].text.contains("(2 of 5)"), "{notes:?}");
        assert!(matches!(notes[0].kind, NoteKind::Retry { attempt: 2, tries: 5, .. }), "{notes:?}");
        assert!(matches!(notes[1].kind, NoteKind::Retry { attempt: 3, tries: 5, .. }), "{notes:?}");
        let sent = test_agent.sent_bodies();
        assert_eq!(sent.len(), 3);
        assert!(sent.iter().all(|body| *body == sent[0]), "what is sent again is the same");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_that_does_not_pass_ends_the_run_and_keeps_the_prompt() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).faults("status=401,times=1").start().await;
        let outcome = test_agent.prompt("Hello").await;
        let message = error(&test_agent, outcome);
        assert!(
            message.contains("401") && message.contains("`hardpan providers` names its variable"),
            "{message}"
        );
        assert_eq!(test_agent.sent_bodies().len(), 1);
        assert_eq!(test_agent.transcript_lines(), ["user: Hello"]);
        assert_eq!(
            test_agent.order(),
            [
                "message_start",
                "message_end",
                "agent_start",
                "turn_start",
                "before_provider_request",
                "agent_end"
            ],
            "nothing was said, so there is no message and no end of the turn"
        );
        assert_eq!(test_agent.prompt("Hello?").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.transcript_lines()[1..], ["user: Hello?", "assistant: Fine."]);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_cut_is_kept_and_gone_on_from() {
    for layout in LayoutName::ALL {
        for fault in ["cut=900,times=1", "stall=900,for=10ms,times=1"] {
            let test_agent = TestAgent::builder().layout(layout).faults(fault).script(TEXT).start().await;
            let outcome = test_agent.prompt("Talk").await;
            let message = error(&test_agent, outcome);
            assert!(message.contains("broke off"), "{message}");
            let updates = test_agent.events_of::<MessageUpdate>();
            let answer: String = updates.iter().map(|update| text_of(&update.delta)).collect();
            assert!(answer.starts_with("one two") && !answer.contains("twelve"), "{answer}");
            assert_eq!(
                test_agent.transcript_lines(),
                ["user: Talk".to_owned(), format!("assistant: {answer} (cut)")],
                "{fault}"
            );
            assert_eq!(test_agent.events_of::<TurnEnd>().len(), 1);
            assert_eq!(test_agent.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done));
            assert!(
                test_agent.request_lines().last().unwrap().contains(&format!("assistant: {answer}")),
                "{layout}"
            );
            test_agent.assert_continues().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_in_the_middle_of_an_answer_keeps_what_came() {
    for layout in LayoutName::ALL {
        let test_agent =
            TestAgent::builder().layout(layout).faults("error=900,times=1").script(TEXT).start().await;
        let outcome = test_agent.prompt("Talk").await;
        let message = error(&test_agent, outcome);
        assert!(message.contains("overloaded"), "{message}");
        let said = test_agent.transcript_lines();
        assert!(said[1].starts_with("assistant: one two") && said[1].ends_with(" (error)"), "{said:?}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_is_cut_in_the_middle_of_a_call_leaves_a_valid_conversation() {
    let script = "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}, {id: c2, name: paint, arguments: {colour: a very long name of a colour}}]
default: {text: Fine.}
";
    for layout in LayoutName::ALL {
        // Wherever it is cut: before, within and after each of the calls.
        for at in (700..2700).step_by(250) {
            let faults = format!("cut={at},times=1");
            let test_agent = TestAgent::builder().layout(layout).faults(faults).script(script).start().await;
            let outcome = test_agent.prompt("Paint").await;
            if matches!(outcome, InputOutcome::Ran(RunEnd::Done)) {
                assert!(
                    test_agent.transcript_lines().last().unwrap() == "assistant: Fine.",
                    "{at}: it came whole, or was sent again"
                );
            } else {
                error(&test_agent, outcome);
                assert!(test_agent.events_of::<ToolExecutionStart>().is_empty());
            }
            assert_eq!(
                test_agent.prompt("Go on").await,
                InputOutcome::Ran(RunEnd::Done),
                "{layout} cut at {at}"
            );
            test_agent.assert_stored_matches_memory().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_answer_is_an_answer() {
    let test_agent = TestAgent::builder().start().await;
    let usage = json!({"input_tokens": 5, "output_tokens": 1});
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": usage});
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    test_agent.answer_once(&events, &NoteLog::default());
    // The model had nothing to say. What follows must still be accepted.
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.transcript_lines(), ["user: Hello", "assistant: "]);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_is_too_long_or_refused_says_so() {
    for (stop, reason) in [("length", RunEnd::Length), ("refusal", RunEnd::Refused)] {
        let script = format!("turns: [{{text: Well, stop: {stop}}}]\ndefault: {{text: Fine.}}");
        for layout in LayoutName::ALL {
            let test_agent = TestAgent::builder().layout(layout).script(&script).start().await;
            assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(reason.clone()));
            assert_eq!(
                test_agent.transcript_lines(),
                ["user: Hello".to_owned(), format!("assistant: Well ({stop})")]
            );
            test_agent.assert_continues().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_waits_stays_after_an_error() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - {text: one two three four five six seven eight}
default: {text: Fine.}
";
        let test_agent =
            TestAgent::builder().layout(layout).script(script).faults("cut=1100,times=1").start().await;
        let (running, gate) = test_agent.begin_and_hold("Talk").await;
        test_agent.steer("steered").await;
        test_agent.follow_up("followed").await;
        gate.release();
        error(&test_agent, running.await.unwrap());
        let waiting = test_agent.agent.queued_inputs();
        assert_eq!((waiting.steering.len(), waiting.follow_up.len()), (1, 1));
        assert_eq!(test_agent.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done));
        let mut said = test_agent.transcript_lines();
        said.retain(|line| line.starts_with("user"));
        assert_eq!(said, ["user: Talk", "user: Go on", "user: steered", "user: followed"]);
        assert!(test_agent.agent.queued_inputs().is_empty());
        test_agent.assert_continues().await;
    }
}

/// What the agent says about a workspace that has the item `file:new.txt` twice.
const CONTRADICTION: &str = "cannot show the workspace to the model: the workspace: two items have the key `file:new.txt`; keys must be unique";

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_sent_about_a_workspace_that_contradicts_itself() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).start().await;
        let twice = ("file:new.txt".to_owned(), "new".to_owned());
        test_agent.workspace().items = vec![twice.clone(), twice];
        let outcome = test_agent.prompt("Hello").await;
        assert_eq!(error(&test_agent, outcome), CONTRADICTION);
        assert_eq!(test_agent.sent_bodies().len(), 0);
        assert_eq!(test_agent.transcript_lines(), ["user: Hello"]);
        test_agent.workspace().items.pop();
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_ends_after_the_turn_in_which_its_workspace_began_to_contradict_itself() {
    let script = "
turns:
  - text: Writing.
    tool_calls: [{name: write, arguments: {path: new.txt, content: new}}]
default: {text: Fine.}
";
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::with_real_tools().layout(layout).script(script).start().await;
        test_agent.set_item("file:new.txt", "new");
        test_agent.workspace().open.push("new.txt".into());
        let outcome = test_agent.prompt("Write it").await;
        assert_eq!(error(&test_agent, outcome), CONTRADICTION);
        assert_eq!(test_agent.sent_bodies().len(), 1);
        assert_eq!(test_agent.events_of::<TurnEnd>().len(), 1);
        assert_eq!(
            test_agent.transcript_lines(),
            ["user: Write it", "assistant: Writing. [write]", "result: Created new.txt (1 line)."]
        );
        test_agent.remove_item("file:new.txt");
        test_agent.assert_continues().await;
    }
}
