use hardpan_agent::events::{BeforeAgentStart, BeforeAgentStartReply, HandlerFailed};
use hardpan_agent::{CustomMessage, HandlerError, Input, InputOutcome, RunEnd};
use hardpan_context::LayoutName;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_test_support::{NoteLog, TestAgent, TestClock, handler_failed, input, pixel, system_prompt};

const READ: &str = "
turns:
  - text: Let me look.
    tool_calls: [{name: slow, arguments: {ms: 60}}]
  - when: {has_tool_result: slow}
    text: It has two lines.
default: {text: Fine.}
";

fn custom(text: &str, display: bool) -> CustomMessage {
    CustomMessage {
        custom_type: "note".into(),
        content: vec![MessagePart::text(text)],
        display,
        details: None,
    }
}

/// Registers a handler of the start of a run.
fn on_start(
    test_agent: &TestAgent,
    owner: &'static str,
    handler: impl Fn(BeforeAgentStart) -> Result<BeforeAgentStartReply, HandlerError> + Send + Sync + 'static,
) {
    test_agent.agent.events().subscribe::<BeforeAgentStart, _>(owner, move |event, _agent| {
        let reply = handler(event);
        async move { reply }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn before_agent_start_is_raised_once_per_run_with_tools_and_follow_ups() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(READ).start().await;
        let notes = NoteLog::default();
        let seen = notes.clone();
        on_start(&test_agent, "a", move |event| {
            seen.add(event.prompt);
            Ok(BeforeAgentStartReply::default())
        });
        let running = test_agent.begin("How many lines?");
        test_agent.until_event("tool_execution_start", 1).await;
        test_agent.steer("Hurry").await;
        test_agent.follow_up("Thanks").await;
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.sent_bodies().len(), 3);
        assert_eq!(notes.all(), ["How many lines?"]);
        assert_eq!(test_agent.prompt("Again").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(notes.all(), ["How many lines?", "Again"]);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_come_in_the_order_person_next_prompt_handlers() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).start().await;
        let message = |text, display| BeforeAgentStartReply {
            message: Some(custom(text, display)),
            system_prompt: None,
        };
        on_start(&test_agent, "a", move |_| Ok(message("from a", true)));
        on_start(&test_agent, "nothing", |_| Ok(BeforeAgentStartReply::default()));
        on_start(&test_agent, "b", move |_| Ok(message("from b", false)));
        test_agent.agent.attach_to_next_prompt(custom("kept 1", true));
        test_agent.agent.attach_to_next_prompt(custom("kept 2", false));
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            test_agent.transcript_lines(),
            [
                "user: Hello",
                "custom: kept 1",
                "custom: kept 2",
                "custom: from a",
                "custom: from b",
                "assistant: Fine."
            ]
        );
        let displayed: Vec<bool> = test_agent
            .agent
            .messages()
            .iter()
            .filter_map(|message| match &*message.body {
                MessageBody::Custom { custom_type, display, .. } if &**custom_type == "note" => {
                    Some(*display)
                }
                _ => None,
            })
            .collect();
        assert_eq!(displayed, [true, false, true, false]);
        let mut request_lines = test_agent.request_lines().remove(0);
        let ours = ["user: Hello", "user: kept 1", "user: kept 2", "user: from a", "user: from b"];
        request_lines.retain(|line| ours.contains(&line.as_str()));
        assert_eq!(request_lines, ours, "{layout}: what is not displayed is sent all the same");
        assert_eq!(
            test_agent.order(),
            [
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "message_start",
                "message_end",
                "agent_start",
                "turn_start",
                "before_provider_request",
                "message_start",
                "message_end",
                "turn_end",
                "agent_end",
            ]
        );
        test_agent.agent.events().unsubscribe("a");
        test_agent.agent.events().unsubscribe("b");
        assert_eq!(test_agent.prompt("Bye").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            test_agent.transcript_lines()[6..],
            ["user: Bye", "assistant: Fine."],
            "what was kept goes with one prompt only"
        );
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_system_prompt_is_changed_by_one_after_the_other_and_for_one_run_only() {
    for layout in LayoutName::ALL {
        let test_agent =
            TestAgent::builder().layout(layout).script(READ).clock(TestClock::Frozen).start().await;
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
        let [plain] = &test_agent.sent_bodies()[..1] else { panic!("one request") };
        let plain = system_prompt(plain);
        let notes = NoteLog::default();
        for owner in ["a", "b"] {
            let notes = notes.clone();
            on_start(&test_agent, owner, move |event| {
                notes.add(event.system_prompt.clone());
                let changed =
                    (event.prompt == "Change").then(|| format!("{}\n{owner} was here.", event.system_prompt));
                Ok(BeforeAgentStartReply { message: None, system_prompt: changed })
            });
        }
        assert_eq!(test_agent.prompt("Change").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.prompt("Do not").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.agent.messages().len(), 2 + 2 + 2 + 2, "{:?}", test_agent.transcript_lines());
        let seen: Vec<String> = test_agent.sent_bodies().iter().map(|body| system_prompt(body)).collect();
        let changed = format!("{plain}\na was here.\nb was here.");
        assert_eq!(seen, [plain.clone(), plain.clone(), changed, plain.clone()], "{layout}");
        let base = plain.clone();
        assert_eq!(notes.all(), [base.clone(), format!("{base}\na was here."), base.clone(), base]);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_system_prompt_holds_for_every_turn_of_its_run() {
    for layout in LayoutName::ALL {
        let test_agent =
            TestAgent::builder().layout(layout).script(READ).clock(TestClock::Frozen).start().await;
        on_start(&test_agent, "a", |_| {
            Ok(BeforeAgentStartReply { message: None, system_prompt: Some("Be brief.".into()) })
        });
        let running = test_agent.begin("How many lines?");
        test_agent.until_event("tool_execution_start", 1).await;
        test_agent.follow_up("Thanks").await;
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        let systems: Vec<String> = test_agent.sent_bodies().iter().map(|body| system_prompt(body)).collect();
        assert_eq!(systems, ["Be brief."; 3], "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_fails_at_the_start_is_reported_and_passed_over() {
    let test_agent = TestAgent::builder().start().await;
    on_start(&test_agent, "broken", |_| Err("no idea".into()));
    on_start(&test_agent, "panicking", |event| panic!("about {}", event.prompt));
    on_start(&test_agent, "whole", |_| {
        Ok(BeforeAgentStartReply { message: Some(custom("here", true)), system_prompt: None })
    });
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.transcript_lines(), ["user: Hello", "custom: here", "assistant: Fine."]);
    let fault = |owner: &str, what: &str| handler_failed(owner, "before_agent_start", what);
    assert_eq!(
        test_agent.events_of::<HandlerFailed>(),
        [fault("broken", "no idea"), fault("panicking", "it broke (panicked)")]
    );
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_handler_sees_the_expanded_prompt() {
    let files: &[(&str, &str)] = &[("templates/fix.md", "Fix $1.")];
    let test_agent = TestAgent::builder().files(files).start().await;
    let notes = NoteLog::default();
    let seen = notes.clone();
    on_start(&test_agent, "a", move |event| {
        seen.add(format!("{} {}", event.prompt, event.images.len()));
        Ok(BeforeAgentStartReply::default())
    });
    assert_eq!(test_agent.prompt("/fix it").await, InputOutcome::Ran(RunEnd::Done));
    let with_image = Input { images: vec![pixel()], ..input("/fix this") };
    assert_eq!(test_agent.agent.prompt(with_image).await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(notes.all(), ["Fix it. 0", "Fix this. 1"]);
    test_agent.assert_continues().await;
}
