use std::time::Duration;

use hardpan_agent::events::{ContextEvent, HandlerFailed};
use hardpan_agent::{Conversation, CustomMessage, InputOutcome, RunEnd};
use hardpan_context::LayoutName;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_session::{Entry, SessionLog};
use hardpan_test_support::{NoteLog, TestAgent, TestClock, handler_failed, header, line, system_prompt};

const READ: &str = "
turns:
  - text: Let me look.
    tool_calls: [{name: read, arguments: {path: a.txt}}]
  - when: {has_tool_result: read}
    text: It has two lines.
default: {text: Fine.}
";

fn user(id: &str, text: &str) -> AgentMessage {
    AgentMessage::new(id, MessageBody::User { content: vec![MessagePart::text(text)] })
}

#[tokio::test(flavor = "multi_thread")]
async fn context_is_asked_before_every_request_and_nothing_of_it_is_stored() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(READ).start().await;
        let notes = NoteLog::default();
        let seen = notes.clone();
        test_agent.agent.events().subscribe::<ContextEvent, _>("a", move |mut event, _| {
            seen.add(format!("a {}", event.messages.len()));
            event.messages.insert(0, user("x1", "put in by a"));
            async move { Ok(Some(event.messages)) }
        });
        let seen = notes.clone();
        test_agent.agent.events().subscribe::<ContextEvent, _>("b", move |mut event, _| {
            seen.add(format!("b {}", line(&event.messages[0])));
            event.messages.retain(|message| line(message) != "user: Forget me");
            event.messages.insert(1, user("x2", "put in by b"));
            async move { Ok(Some(event.messages)) }
        });
        let seen = notes.clone();
        test_agent.agent.events().subscribe::<ContextEvent, _>("c", move |mut event, _| {
            seen.add(format!("c {}", event.messages.len()));
            event.messages.clear(); // of its own copy
            async { Ok(None) }
        });
        assert_eq!(test_agent.prompt("Forget me").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            notes.all(),
            ["a 1", "b user: put in by a", "c 2", "a 3", "b user: put in by a", "c 4"],
            "{layout}"
        );
        assert_eq!(
            test_agent.transcript_lines(),
            [
                "user: Forget me",
                "assistant: Let me look. [read]",
                "result: first line\nsecond line\n",
                "assistant: It has two lines."
            ]
        );
        for mut request_lines in test_agent.request_lines() {
            assert!(!request_lines.contains(&"user: Forget me".into()), "{request_lines:?}");
            request_lines.retain(|line| line.contains("put in"));
            assert_eq!(request_lines, ["user: put in by a", "user: put in by b"], "{layout}");
        }
        test_agent.agent.events().unsubscribe("a");
        test_agent.agent.events().unsubscribe("b");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_context_handler_leaves_is_a_request_that_is_accepted() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(READ).start().await;
        assert_eq!(test_agent.prompt("How many lines?").await, InputOutcome::Ran(RunEnd::Done));
        // The call without its result, the result without its call, the answer without its
        // question, all backwards.
        for without in 0..5 {
            test_agent.agent.events().subscribe::<ContextEvent, _>("a", move |mut event, _| {
                match without {
                    4 => event.messages.reverse(),
                    index => drop(event.messages.remove(index)),
                }
                async move { Ok(Some(event.messages)) }
            });
            assert_eq!(
                test_agent.prompt("And?").await,
                InputOutcome::Ran(RunEnd::Done),
                "{layout} without {without}"
            );
            test_agent.agent.events().unsubscribe("a");
        }
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn context_cannot_change_the_system_prompt() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).clock(TestClock::Frozen).start().await;
        assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
        test_agent
            .agent
            .events()
            .subscribe::<ContextEvent, _>("a", |_, _| async { Ok(Some(vec![user("x", "Only this")])) });
        assert_eq!(test_agent.prompt("Hello again").await, InputOutcome::Ran(RunEnd::Done));
        let sent = test_agent.sent_bodies();
        assert_eq!(system_prompt(&sent[0]), system_prompt(&sent[1]));
        assert!(test_agent.request_lines()[1].contains(&"user: Only this".into()));
        assert!(!test_agent.request_lines()[1].contains(&"user: Hello".into()));
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_handler_that_fails_breaks_or_sleeps_is_reported_and_passed_over() {
    let test_agent = TestAgent::builder()
        .layout(LayoutName::Inline)
        .settings(|settings| settings.handler_timeout = Duration::from_secs(2))
        .start()
        .await;
    test_agent.agent.events().subscribe::<ContextEvent, _>("failing", |_, _| async { Err("no idea".into()) });
    test_agent
        .agent
        .events()
        .subscribe::<ContextEvent, _>("breaking", |_, _| async { panic!("a handler that breaks") });
    test_agent.agent.events().subscribe::<ContextEvent, _>("sleeping", |_, _| std::future::pending());
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(test_agent.request_lines(), [["user: Hello"]]);
    let fault = |owner: &str, what: &str| handler_failed(owner, "context", what);
    assert_eq!(
        test_agent.events_of::<HandlerFailed>(),
        [
            fault("failing", "no idea"),
            fault("breaking", "it broke (panicked)"),
            fault("sleeping", "it took longer than 2 s")
        ]
    );
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_message_is_converted_by_the_table() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).start().await;
        let path = test_agent.file("by-hand.jsonl");
        let log = SessionLog::create(&path, header("by-hand")).unwrap();
        let bash = |command: &str, exit_code, exclude_from_context| MessageBody::BashExecution {
            command: command.into(),
            output: "a.txt\n".into(),
            exit_code,
            exclude_from_context,
        };
        let content = vec![MessagePart::text("from an extension")];
        let bodies = [
            MessageBody::BranchSummary { summary: "It was a dead end.".into() },
            MessageBody::CompactionSummary { summary: "Much was said.".into() },
            MessageBody::User { content: vec![MessagePart::text("Look")] },
            MessageBody::Custom { custom_type: "note".into(), content, display: false },
            bash("ls", Some(0), false),
            bash("ls -l", Some(2), false),
            bash("secret", Some(0), true),
        ];
        let mut parent: Option<String> = None;
        for (n, body) in bodies.into_iter().enumerate() {
            let id = format!("m{n}");
            log.append(Entry::message(parent.as_deref(), AgentMessage::new(&*id, body))).wait().unwrap();
            parent = Some(id);
        }
        drop(log);
        let test_agent = test_agent.with_conversation(Conversation::resume(&path, None).unwrap());
        // Handlers see all of them, as they are before that.
        let notes = NoteLog::default();
        let seen = notes.clone();
        test_agent.agent.events().subscribe::<ContextEvent, _>("kinds", move |event, _| {
            let roles = event.messages.iter().map(|message| serde_json::json!(message)["role"].clone());
            seen.add(
                roles.map(|role| role.as_str().unwrap_or_default().to_owned()).collect::<Vec<_>>().join(" "),
            );
            async { Ok(None) }
        });
        assert_eq!(test_agent.prompt("Well?").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(
            notes.all(),
            [
                "branch_summary compaction_summary user custom bash_execution bash_execution bash_execution user"
            ]
        );
        test_agent.agent.events().unsubscribe("kinds");
        let ours = [
            "user: The conversation came back from a branch that is summarised here:\n\n<summary>\nIt was a dead end.\n</summary>",
            "user: The conversation before this point was compacted into this summary:\n\n<summary>\nMuch was said.\n</summary>",
            "user: Look",
            "user: from an extension",
            "user: Ran `ls`\n```\na.txt\n```",
            "user: Ran `ls -l`\n```\na.txt\n```\nThe command exited with code 2.",
            "user: Well?",
        ];
        let mut request_lines = test_agent.request_lines().remove(0);
        assert!(!request_lines.iter().any(|line| line.contains("secret")), "{request_lines:#?}");
        if layout != LayoutName::Inline {
            request_lines.retain(|line| ours.contains(&line.as_str()));
        }
        assert_eq!(request_lines, ours, "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn inline_shows_context_right_before_the_words_of_the_person() {
    let setup = TestAgent::builder().layout(LayoutName::Inline).file("open.md", "What is known.\n");
    let test_agent = setup.start().await;
    let custom_type = "test".into();
    let content = vec![MessagePart::text("A hint of an extension.")];
    test_agent.agent.attach_to_next_prompt(CustomMessage {
        custom_type,
        content,
        display: true,
        details: None,
    });
    test_agent.say("Hello").await;
    let lines = test_agent.request_lines().remove(0);
    let at = |text: &str| lines.iter().position(|line| line.contains(text)).expect("it is sent");
    let order = [at("What is known."), at("Hello"), at("A hint of an extension.")];
    assert_eq!(order, [order[0], order[0] + 1, order[0] + 2], "{lines:#?}");
}
