use std::time::Duration;

use hardpan_agent::events::Context;
use hardpan_agent::{AgentSettings, Conversation, Stop, Taken};
use hardpan_context::LayoutName;
use hardpan_prompt::{AgentMessage, Body, Part};
use hardpan_session::{Entry, Log};
use serde_json::json;

use crate::props::Notes;
use crate::trial::{Clock, Given, Trial, header, line, system};

const READ: &str = "
turns:
  - text: Let me look.
    tool_calls: [{name: read, arguments: {path: a.txt}}]
  - when: {has_tool_result: read}
    text: It has two lines.
default: {text: Fine.}
";

fn user(id: &str, text: &str) -> AgentMessage {
    AgentMessage::new(id, Body::User { content: vec![Part::text(text)] })
}

#[tokio::test(flavor = "multi_thread")]
async fn context_is_asked_before_every_request_and_nothing_of_it_is_stored() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, script: READ, ..Given::default() }).await;
        let notes = Notes::default();
        let seen = notes.clone();
        trial.agent.events().on::<Context, _>("a", move |mut event, _| {
            seen.add(format!("a {}", event.messages.len()));
            event.messages.insert(0, user("x1", "put in by a"));
            async move { Ok(Some(event.messages)) }
        });
        let seen = notes.clone();
        trial.agent.events().on::<Context, _>("b", move |mut event, _| {
            seen.add(format!("b {}", line(&event.messages[0])));
            event.messages.retain(|message| line(message) != "user: Forget me");
            event.messages.insert(1, user("x2", "put in by b"));
            async move { Ok(Some(event.messages)) }
        });
        let seen = notes.clone();
        trial.agent.events().on::<Context, _>("c", move |mut event, _| {
            seen.add(format!("c {}", event.messages.len()));
            event.messages.clear(); // of its own copy
            async { Ok(None) }
        });
        assert_eq!(trial.prompt("Forget me").await, Taken::Ran(Stop::Done));
        assert_eq!(
            notes.all(),
            ["a 1", "b user: put in by a", "c 2", "a 3", "b user: put in by a", "c 4"],
            "{layout}"
        );
        assert_eq!(
            trial.said(),
            [
                "user: Forget me",
                "assistant: Let me look. [read]",
                "result: first line\nsecond line\n",
                "assistant: It has two lines."
            ]
        );
        for mut heard in trial.heard() {
            assert!(!heard.contains(&"user: Forget me".into()), "{heard:?}");
            heard.retain(|line| line.contains("put in"));
            assert_eq!(heard, ["user: put in by a", "user: put in by b"], "{layout}");
        }
        trial.agent.events().off("a");
        trial.agent.events().off("b");
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_a_context_handler_leaves_is_a_request_that_is_accepted() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, script: READ, ..Given::default() }).await;
        assert_eq!(trial.prompt("How many lines?").await, Taken::Ran(Stop::Done));
        // The call without its result, the result without its call, the answer without its question, all backwards.
        for without in 0..5 {
            trial.agent.events().on::<Context, _>("a", move |mut event, _| {
                match without {
                    4 => event.messages.reverse(),
                    index => drop(event.messages.remove(index)),
                }
                async move { Ok(Some(event.messages)) }
            });
            assert_eq!(trial.prompt("And?").await, Taken::Ran(Stop::Done), "{layout} without {without}");
            trial.agent.events().off("a");
        }
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn context_cannot_change_the_system_prompt() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, clock: Clock::Frozen, ..Given::default() }).await;
        assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
        trial.agent.events().on::<Context, _>("a", |_, _| async { Ok(Some(vec![user("x", "Only this")])) });
        assert_eq!(trial.prompt("Hello again").await, Taken::Ran(Stop::Done));
        let sent = trial.sent();
        assert_eq!(system(&sent[0]), system(&sent[1]));
        assert!(trial.heard()[1].contains(&"user: Only this".into()));
        assert!(!trial.heard()[1].contains(&"user: Hello".into()));
        trial.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_handler_that_fails_breaks_or_sleeps_is_reported_and_passed_over() {
    let settings = AgentSettings { handler_limit: Duration::from_secs(2), ..AgentSettings::default() };
    let trial = Trial::new(Given { layout: LayoutName::Inline, settings, ..Given::default() }).await;
    trial.agent.events().on::<Context, _>("failing", |_, _| async { Err("no idea".into()) });
    trial.agent.events().on::<Context, _>("breaking", |_, _| async { panic!("a handler that breaks") });
    trial.agent.events().on::<Context, _>("sleeping", |_, _| std::future::pending());
    assert_eq!(trial.prompt("Hello").await, Taken::Ran(Stop::Done));
    assert_eq!(trial.heard(), [["user: Hello"]]);
    let fault = |owner: &str, what: &str| json!({"type": "handler_failed", "owner": owner, "event": "context", "what": what});
    assert_eq!(
        trial.told("handler_failed"),
        [
            fault("failing", "no idea"),
            fault("breaking", "it broke (panicked)"),
            fault("sleeping", "it took longer than 2 s")
        ]
    );
    trial.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_message_is_converted_by_the_table() {
    for layout in LayoutName::ALL {
        let trial = Trial::new(Given { layout, ..Given::default() }).await;
        let path = trial.file("by-hand.jsonl");
        let log = Log::create(&path, header("by-hand")).unwrap();
        let bash = |command: &str, exit_code, exclude_from_context| Body::BashExecution {
            command: command.into(),
            output: "a.txt\n".into(),
            exit_code,
            exclude_from_context,
        };
        let content = vec![Part::text("from an extension")];
        let bodies = [
            Body::BranchSummary { summary: "It was a dead end.".into() },
            Body::CompactionSummary { summary: "Much was said.".into() },
            Body::User { content: vec![Part::text("Look")] },
            Body::Custom { custom_type: "note".into(), content, display: false },
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
        let trial = trial.with(Conversation::resume(&path, None).unwrap());
        assert_eq!(trial.prompt("Well?").await, Taken::Ran(Stop::Done));
        let ours = [
            "user: The conversation came back from a branch that is summarised here:\n\n<summary>\nIt was a dead end.\n</summary>",
            "user: The conversation before this point was compacted into this summary:\n\n<summary>\nMuch was said.\n</summary>",
            "user: Look",
            "user: from an extension",
            "user: Ran `ls`\n```\na.txt\n```",
            "user: Ran `ls -l`\n```\na.txt\n```\nThe command exited with code 2.",
            "user: Well?",
        ];
        let mut heard = trial.heard().remove(0);
        assert!(!heard.iter().any(|line| line.contains("secret")), "{heard:#?}");
        if layout != LayoutName::Inline {
            heard.retain(|line| ours.contains(&line.as_str()));
        }
        assert_eq!(heard, ours, "{layout}");
        trial.goes_on().await;
    }
}
