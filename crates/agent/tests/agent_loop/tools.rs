use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::events::{
    AgentEnd, HandlerFailed, ToolCallEvent, ToolCallReply, ToolExecutionEnd, ToolExecutionStart,
    ToolResultEvent, ToolResultReply,
};
use hardpan_agent::{Conversation, HandlerError, InputOutcome, RunEnd, SessionSwitchKind};
use hardpan_context::{KeepLevel, LayoutName};
use hardpan_prompt::MessagePart;
use hardpan_session::Record;
use hardpan_test_support::{NoteLog, PaintTool, TestAgent, line};
use hardpan_tools::{ToolSource, ToolState};
use serde_json::{Value, json};

const PAINT: &str = "
turns:
  - tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}]
default: {text: Fine.}
";

/// What the model is told of its first call, and whether it ran.
fn first_result(test_agent: &TestAgent) -> (String, bool) {
    (test_agent.transcript_lines()[2].clone(), !test_agent.events_of::<ToolExecutionStart>().is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_blocked_with_a_reason_and_no_later_handler_is_asked() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(PAINT).start().await;
        let notes = NoteLog::default();
        for (owner, reply) in [
            ("a", ToolCallReply::Allow),
            ("b", ToolCallReply::Block { reason: "not today".into() }),
            ("c", ToolCallReply::Allow),
        ] {
            let notes = notes.clone();
            test_agent.agent.events().subscribe::<ToolCallEvent, _>(owner, move |call, _| {
                notes.add(format!("{owner} {} {} {}", call.call_id, call.tool_name, call.input));
                let reply = reply.clone();
                async move { Ok(reply) }
            });
        }
        assert_eq!(test_agent.prompt("Paint").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(notes.all(), [r#"a c1 paint {"colour":"blue"}"#, r#"b c1 paint {"colour":"blue"}"#]);
        assert_eq!(
            test_agent.transcript_lines(),
            ["user: Paint", "assistant: [paint]", "failed: not today", "assistant: Fine."]
        );
        assert!(
            test_agent.events_of::<ToolExecutionStart>().is_empty()
                && test_agent.events_of::<ToolExecutionEnd>().is_empty()
        );
        assert!(test_agent.request_lines()[1].contains(&"failed: not today".into()), "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_fails_breaks_or_takes_too_long_blocks_the_call() {
    for (fault, told) in [
        ("fail", "failed: The call was blocked: guard failed: no idea"),
        ("break", "failed: The call was blocked: guard failed: it broke (panicked)"),
        ("sleep", "failed: The call was blocked: guard failed: it took longer than 2 s"),
    ] {
        let test_agent = TestAgent::builder()
            .script(PAINT)
            .settings(|settings| settings.handler_timeout = Duration::from_secs(2))
            .start()
            .await;
        test_agent.agent.events().subscribe::<ToolCallEvent, _>("guard", move |_, _| async move {
            match fault {
                "fail" => Err(HandlerError::from("no idea")),
                "break" => panic!("a handler that breaks"),
                _ => std::future::pending().await,
            }
        });
        // Another that allows it changes nothing.
        test_agent
            .agent
            .events()
            .subscribe::<ToolCallEvent, _>("other", |_, _| async { Ok(ToolCallReply::Allow) });
        assert_eq!(test_agent.prompt("Paint").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(first_result(&test_agent), (told.into(), false));
        assert_eq!(test_agent.events_of::<HandlerFailed>().len(), 1);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_call_comes_to_it_is_answered() {
    let tools = "read, grep, find, ls, slow, paint, recall";
    let unknown = format!("failed: There is no tool named fly. The tools are: {tools}.");
    let layout_tool = |name: &str| {
        format!(
            "failed: {name} is filled in with every request; what it shows is above, and calling it is never needed."
        )
    };
    let broke = "failed: The tool broke inside; nothing is known of what it did. Check before you go on.";
    for (name, arguments, layout, told, ran) in [
        (
            "paint",
            "{colour: red}",
            LayoutName::Strata,
            "failed: The call was not allowed: not red".into(),
            false,
        ),
        ("paint", "{colour: plaid}", LayoutName::Panels, "failed: plaid is no colour".into(), true),
        ("paint", "{colour: ultraviolet}", LayoutName::Tiers, broke.into(), true),
        ("paint", "{colour: infrared}", LayoutName::Inline, broke.into(), true),
        ("fly", "{}", LayoutName::Strata, unknown, false),
        ("context", "{}", LayoutName::Strata, layout_tool("context"), false),
        ("dynamic_panel", "{}", LayoutName::Panels, layout_tool("dynamic_panel"), false),
    ] {
        let script = format!(
            "turns: [{{undeclared: true, tool_calls: [{{name: {name}, arguments: {arguments}}}]}}]\ndefault: {{text: Fine.}}"
        );
        let test_agent = TestAgent::builder().layout(layout).script(script).start().await;
        test_agent.write("open.md", "# Open\n");
        assert_eq!(test_agent.prompt("Do it").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(first_result(&test_agent), (told, ran), "{name} {arguments}");
        assert_eq!(test_agent.transcript_lines()[3..], ["assistant: Fine."]);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_arguments_were_cut_is_not_run_but_answered() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - tool_calls:
    - {name: paint, arguments: {colour: blue}}
    - {name: paint, arguments: {colour: a long and winding road that leads nowhere at all}}
default: {text: Fine.}
";
        let test_agent = TestAgent::builder().layout(layout).script(script).max_tokens(16).start().await;
        assert_eq!(test_agent.prompt("Paint").await, InputOutcome::Ran(RunEnd::Done));
        let early = "failed: the answer ended early (length), so this call was not run; make it again, in smaller steps if it was long.";
        assert_eq!(
            test_agent.transcript_lines(),
            ["user: Paint", "assistant: [paint] [paint] (length)", early, early, "assistant: Fine."]
        );
        assert!(test_agent.events_of::<ToolExecutionStart>().is_empty());
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_no_json_are_answered_with_what_is_wrong() {
    let test_agent = TestAgent::builder().start().await;
    let events = [
        json!({"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "c1", "name": "paint", "input": {}}}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{\"colour\": blue"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 5}}),
        json!({"type": "message_stop"}),
    ];
    test_agent.answer_once(&events, &NoteLog::default());
    assert_eq!(test_agent.prompt("Paint").await, InputOutcome::Ran(RunEnd::Done));
    let (told, ran) = first_result(&test_agent);
    assert!(told.starts_with("failed: ") && told.contains("JSON") && !ran, "{told}");
    assert_eq!(test_agent.transcript_lines().len(), 4);
    test_agent.assert_continues().await;
}

fn on_result(test_agent: &TestAgent, owner: &'static str, notes: &NoteLog, reply: ToolResultReply) {
    let notes = notes.clone();
    test_agent.agent.events().subscribe::<ToolResultEvent, _>(owner, move |result, _| {
        let ToolResultEvent { call_id, tool_name, input, content, details, is_error } = result;
        let details = details.unwrap_or_default();
        notes.add(format!("{owner}: {call_id} {tool_name} {input} {content:?} {details} {is_error}"));
        let reply = reply.clone();
        async move { Ok(reply) }
    });
}

fn details_on_disk(test_agent: &TestAgent) -> Vec<Value> {
    let session = test_agent.session();
    let results = session.entries.iter().filter(
        |entry| matches!(&entry.record, Record::Message(message) if line(message).contains("ed: ") || line(message).starts_with("result")),
    );
    results.map(|entry| entry.extra.get("details").cloned().unwrap_or_default()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_edited_by_one_handler_after_the_other() {
    for layout in LayoutName::ALL {
        let script = "
turns:
  - tool_calls: [{id: c1, name: slow, arguments: {ms: 1}}]
default: {text: Fine.}
";
        let test_agent = TestAgent::builder().layout(layout).script(script).start().await;
        let notes = NoteLog::default();
        let text = |text: &str| Some(vec![MessagePart::text(text)]);
        on_result(
            &test_agent,
            "a",
            &notes,
            ToolResultReply { content: text("slept well"), ..Default::default() },
        );
        on_result(
            &test_agent,
            "b",
            &notes,
            ToolResultReply { details: Some(json!({"by": "b"})), ..Default::default() },
        );
        on_result(&test_agent, "c", &notes, ToolResultReply { is_error: Some(true), ..Default::default() });
        on_result(&test_agent, "d", &notes, ToolResultReply::default());
        assert_eq!(test_agent.prompt("Sleep").await, InputOutcome::Ran(RunEnd::Done));
        let slept = |owner: &str, text: &str, rest: &str| {
            format!("{owner}: c1 slow {{\"ms\":1}} {:?} {rest}", vec![MessagePart::text(text)])
        };
        assert_eq!(
            notes.all(),
            [
                slept("a", "slept 1", r#"{"ms":1} false"#),
                slept("b", "slept well", r#"{"ms":1} false"#),
                slept("c", "slept well", r#"{"by":"b"} false"#),
                slept("d", "slept well", r#"{"by":"b"} true"#),
            ]
        );
        assert_eq!(test_agent.transcript_lines()[2..], ["failed: slept well", "assistant: Fine."]);
        assert!(test_agent.request_lines()[1].contains(&"failed: slept well".into()), "{layout}");
        // What ran is told as it was; what is stored is what was made of it.
        assert_eq!(test_agent.events_of::<ToolExecutionEnd>()[0].content, [MessagePart::text("slept 1")]);
        assert_eq!(details_on_disk(&test_agent), [json!({"by": "b"})]);
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_blocked_and_unknown_calls_have_results_that_can_be_edited() {
    let script = "
turns:
  - undeclared: true
    tool_calls:
    - {id: c1, name: paint, arguments: {colour: plaid}}
    - {id: c2, name: paint, arguments: {colour: red}}
    - {id: c3, name: fly}
default: {text: Fine.}
";
    let test_agent = TestAgent::builder().script(script).start().await;
    test_agent.agent.events().subscribe::<ToolResultEvent, _>("a", |result, _| async move {
        assert!(result.is_error);
        let content = Some(vec![MessagePart::text(format!("never mind {}", result.call_id))]);
        Ok(ToolResultReply { content, details: Some(json!(1)), is_error: Some(false) })
    });
    assert_eq!(test_agent.prompt("Do it").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(
        test_agent.transcript_lines()[2..],
        ["result: never mind c1", "result: never mind c2", "result: never mind c3", "assistant: Fine."]
    );
    assert_eq!(details_on_disk(&test_agent), [json!(1), json!(1), json!(1)]);
    assert!(test_agent.events_of::<HandlerFailed>().is_empty());
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_failing_call_is_run_three_times_then_warned_about_then_ends_the_run() {
    for (name, arguments, failure, runs) in [
        ("paint", "{colour: plaid}", "failed: plaid is no colour", 3),
        ("paint", "{colour: red}", "failed: The call was not allowed: not red", 0),
        (
            "fly",
            "{}",
            "failed: There is no tool named fly. The tools are: read, grep, find, ls, slow, paint.",
            0,
        ),
    ] {
        let script = format!(
            "turns: [{{undeclared: true, repeat: 5, tool_calls: [{{name: {name}, arguments: {arguments}}}]}}]\ndefault: {{text: Fine.}}"
        );
        for layout in LayoutName::ALL {
            let test_agent =
                TestAgent::builder().layout(layout).keep(KeepLevel::All).script(&script).start().await;
            assert_eq!(
                test_agent.prompt("Do it").await,
                InputOutcome::Ran(RunEnd::Looping { tool: name.into() })
            );
            let call = format!("assistant: [{name}]");
            let warning = "failed: This call has failed 3 times with the same arguments, so it was not run again. Find out why it fails, or do something else.";
            let mut expected = vec!["user: Do it"];
            for told in [failure, failure, failure, warning, warning] {
                expected.extend([call.as_str(), told]);
            }
            assert_eq!(test_agent.transcript_lines(), expected);
            assert_eq!(test_agent.events_of::<ToolExecutionStart>().len(), runs);
            assert_eq!(test_agent.events_of::<AgentEnd>()[0].stop, RunEnd::Looping { tool: name.into() });
            test_agent.assert_continues().await;
        }
    }
}

/// The names in the tools array of each request.
fn declared(test_agent: &TestAgent) -> Vec<Vec<String>> {
    let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
    let names = |body: &String| -> Vec<String> {
        let body: Value = serde_json::from_str(body).expect("JSON");
        body["tools"].as_array().into_iter().flatten().map(name).collect()
    };
    test_agent.sent_bodies().iter().map(names).collect()
}

const PAINT_AGAIN: &str = "
turns:
  - {text: Hello.}
  - undeclared: true
    tool_calls: [{id: c1, name: paint, arguments: {colour: blue}}]
default: {text: Fine.}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_switched_off_stays_declared_and_its_calls_are_refused() {
    let test_agent = TestAgent::builder().keep(KeepLevel::All).script(PAINT_AGAIN).start().await;
    test_agent.prompt("Hello").await;
    assert!(test_agent.agent.switch_tool("paint", ToolState::Off).await.unwrap());
    assert!(!test_agent.agent.switch_tool("paint", ToolState::Off).await.unwrap());
    assert_eq!(
        test_agent.agent.switch_tool("fly", ToolState::Off).await.unwrap_err().to_string(),
        "there is no tool named fly; the tools are read, grep, find, ls, slow, paint"
    );
    test_agent.prompt("Paint").await;
    let all = ["context", "read", "grep", "find", "ls", "slow", "paint"];
    assert_eq!(declared(&test_agent), [&all[..]; 3]);
    let told = "failed: The user switched the tool paint off, so the call was not run. The tools are: read, grep, find, ls, slow.";
    assert_eq!(test_agent.transcript_lines()[4], told);
    assert!(test_agent.events_of::<ToolExecutionStart>().is_empty() && test_agent.asked().all().is_empty());

    // A resumed conversation declares what it declared before, so that its cache is good.
    let test_agent = test_agent.resume();
    assert_eq!(test_agent.agent.tools().switched_off(), ["paint".into()].into());
    test_agent.prompt("Go on").await;
    assert_eq!(declared(&test_agent).last().unwrap(), &all);
    // Who pays for it has another list at once, and again.
    let is_declared =
        |name| test_agent.agent.tools().list().iter().any(|tool| &*tool.name == name && tool.is_declared);
    for (state, expected) in [(ToolState::Off, &all[..6]), (ToolState::On, &all[..])] {
        test_agent.agent.switch_tool("paint", state).await.unwrap();
        test_agent.agent.declare_tools_now().await.unwrap();
        test_agent.prompt("Go on").await;
        assert_eq!(declared(&test_agent).last().unwrap(), expected);
        assert_eq!(is_declared("paint"), state == ToolState::On);
    }
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_of_another_source_come_and_go_where_the_person_pays_for_another_list() {
    let test_agent = TestAgent::builder().keep(KeepLevel::All).script(PAINT_AGAIN).start().await;
    let (own, server) = (ToolSource::built_in(), ToolSource::named("mcp:colours"));
    let tools = test_agent.agent.tools();
    assert!(tools.remove(&own, "paint"));
    test_agent.prompt("Hello").await;
    tools.register(&server, Arc::new(PaintTool::new())).unwrap();
    test_agent.prompt("Paint").await;
    assert_eq!(test_agent.transcript_lines()[4], "result: painted blue");
    test_agent.agent.declare_tools_now().await.unwrap();
    test_agent.prompt("Go on").await;
    tools.remove_source(&server);
    test_agent.prompt("Go on").await;
    let all = ["context", "read", "grep", "find", "ls", "slow", "paint"];
    assert_eq!(declared(&test_agent), [&all[..6], &all[..6], &all[..6], &all, &all]);
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_is_taken_away_while_the_model_answers_is_not_run() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).keep(KeepLevel::All).script(PAINT).start().await;
        let (run, gate) = test_agent.begin_and_hold("Paint").await;
        test_agent.agent.tools().remove(&ToolSource::built_in(), "paint");
        gate.release();
        assert_eq!(run.await.unwrap(), InputOutcome::Ran(RunEnd::Done));
        let told = "failed: There is no tool named paint. The tools are: read, grep, find, ls, slow.";
        assert_eq!(first_result(&test_agent), (told.into(), false), "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_with_calls_goes_on_when_every_tool_is_off() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(PAINT).start().await;
        test_agent.prompt("Paint").await;
        for tool in test_agent.agent.tools().list() {
            test_agent.agent.switch_tool(&tool.name, ToolState::Off).await.unwrap();
        }
        assert_eq!(test_agent.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done), "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_conversation_has_its_own_switches_and_a_new_one_takes_them_as_they_are() {
    let test_agent = TestAgent::builder().start().await;
    test_agent.prompt("Hello").await;
    let old = test_agent.session_path();
    let agent = &test_agent.agent;
    agent.switch_tool("slow", ToolState::Off).await.unwrap();
    let off = || agent.tools().switched_off().into_iter().map(|name| name.to_string()).collect::<Vec<_>>();
    agent.switch_session(test_agent.begin_session("other"), SessionSwitchKind::New).await;
    assert_eq!(off(), ["slow"]);
    agent.switch_tool("paint", ToolState::Off).await.unwrap();
    let back = Conversation::resume(&old, None).unwrap();
    agent.switch_session(back, SessionSwitchKind::New).await;
    assert_eq!(off(), ["slow"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_handler_does_to_its_copy_of_a_call_changes_nothing() {
    let test_agent = TestAgent::builder().script(PAINT).start().await;
    for owner in ["a", "b"] {
        test_agent.agent.events().subscribe::<ToolCallEvent, _>(owner, move |mut call, _| {
            let input = call.input.to_string();
            call.input = json!({"colour": "red"});
            async move {
                assert_eq!(input, r#"{"colour":"blue"}"#);
                Ok(ToolCallReply::Allow)
            }
        });
    }
    assert_eq!(test_agent.prompt("Paint").await, InputOutcome::Ran(RunEnd::Done));
    let started = test_agent.events_of::<ToolExecutionStart>();
    assert_eq!(json!(started[0])["args"], json!({"colour": "blue"}));
    assert!(test_agent.transcript_lines()[2].contains("blue"), "{:?}", test_agent.transcript_lines());
}
