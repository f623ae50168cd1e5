use hardpan_agent::events::ModelSelect;
use hardpan_agent::{Conversation, InputOutcome, RunEnd};
use hardpan_context::{LayoutName, Target};
use hardpan_models::Catalogue;
use hardpan_models::ThinkingSetting;
use hardpan_session::Record;
use hardpan_test_support::{TestAgent, TestClock, line};
use serde_json::json;

const READ: &str = "
turns:
  - text: Let me look.
    tool_calls: [{name: read, arguments: {path: a.txt}}]
  - when: {has_tool_result: read}
    text: It has two lines.
default: {text: Fine.}
";

#[tokio::test(flavor = "multi_thread")]
async fn everything_is_on_the_disk_in_the_order_it_happened() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(READ).start().await;
        test_agent.write("open.md", "# Open\n");
        assert_eq!(test_agent.prompt("How many lines?").await, InputOutcome::Ran(RunEnd::Done));
        test_agent.assert_stored_matches_memory().await;
        let session = test_agent.session();
        let mut requested = Vec::new();
        let mut lines = Vec::new();
        for entry in &session.entries {
            match &entry.record {
                Record::Message(message) => lines.push(line(message)),
                Record::Request(request) => {
                    lines.push("request".into());
                    requested.push(request.message.clone().unwrap());
                    assert_eq!(&*request.layout, layout.as_str());
                    assert_eq!((&*request.provider, &*request.model), ("anthropic", "claude-sonnet-5"));
                }
                Record::Memory { .. } => {}
                // Of an answer that takes longer, on a busy machine, a part is stored before the whole.
                Record::Partial(_) => {}
                // The model and the layout, before anything is answered.
                Record::ModelChange { provider, model } => {
                    lines.push(format!("{provider}/{model}"));
                }
                Record::Custom { custom_type, .. } if custom_type.starts_with("hardpan.") => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(
            lines,
            [
                "user: How many lines?",
                "anthropic/claude-sonnet-5",
                "assistant: Let me look. [read]",
                "request",
                "result: first line\nsecond line\n",
                "assistant: It has two lines.",
                "request",
            ],
            "{layout}"
        );
        let messages = test_agent.agent.messages();
        assert_eq!(requested, [messages[1].id.0.clone(), messages[3].id.0.clone()]);
        // One line of entries, each after the one before it.
        let parents = session.entries.iter().map(|entry| entry.parent.clone());
        let before = [None].into_iter().chain(session.entries.iter().map(|entry| Some(entry.id.clone())));
        assert!(parents.eq(before.take(session.entries.len())), "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opened_again_sends_the_same_bytes() {
    for layout in LayoutName::ALL {
        let test_agent =
            TestAgent::builder().layout(layout).script(READ).clock(TestClock::Frozen).start().await;
        test_agent.write("open.md", &"A line of the first version.\n".repeat(300));
        assert_eq!(test_agent.prompt("How many lines?").await, InputOutcome::Ran(RunEnd::Done));
        // A change while nobody looks; one that the next request has to tell.
        test_agent
            .write("open.md", &format!("A new beginning.\n{}", "A line of the first version.\n".repeat(300)));
        assert_eq!(test_agent.prompt("And now?").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.prompt("And then?").await, InputOutcome::Ran(RunEnd::Done));
        for text in ["Once more", "And again"] {
            test_agent.agent.shutdown().await.unwrap();
            let other = test_agent.copy();
            assert_eq!(other.agent.messages(), test_agent.agent.messages());
            if text == "And again" {
                test_agent.write("open.md", "Nothing is left of it.\n");
            }
            let before = test_agent.sent_bodies().len();
            assert_eq!(other.prompt(text).await, InputOutcome::Ran(RunEnd::Done));
            assert_eq!(test_agent.prompt(text).await, InputOutcome::Ran(RunEnd::Done));
            let [resumed, continued] = &test_agent.sent_bodies()[before..] else { panic!("two requests") };
            assert_eq!(resumed, continued, "{layout}: {text}");
            if layout == LayoutName::Strata && text == "Once more" {
                assert!(resumed.contains("A line of the first version."), "BASE stays as it was laid");
                assert!(resumed.contains("A new beginning."), "the update is still there");
            } else if layout == LayoutName::Strata {
                // So much is outdated now that a fold pays at once.
                assert!(resumed.contains("Nothing is left of it."), "BASE is laid anew");
                assert!(!resumed.contains("A line of the first version."), "{resumed}");
            }
        }
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opened_again_after_an_abort_sends_the_same_bytes() {
    let script = "
turns:
  - text: Two things.
    tool_calls: [{id: c1, name: slow, arguments: {ms: 60000}}, {id: c2, name: paint, arguments: {colour: blue}}]
  - {text: one two three four five six seven eight nine ten}
default: {text: Fine.}
";
    let faults = "stall=900,after=1,times=1";
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder()
            .layout(layout)
            .script(script)
            .faults(faults)
            .clock(TestClock::Frozen)
            .start()
            .await;
        test_agent.write("open.md", "# Open\n");
        let running = test_agent.begin("Work");
        test_agent.until_event("tool_execution_start", 1).await;
        test_agent.agent.abort();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
        let running = test_agent.begin("Talk");
        test_agent.until_on_disk(|session| !session.recovered.is_empty()).await;
        test_agent.agent.abort();
        assert_eq!(running.await.unwrap(), InputOutcome::Ran(RunEnd::Aborted));
        test_agent.agent.shutdown().await.unwrap();
        let other = test_agent.copy();
        let before = test_agent.sent_bodies().len();
        assert_eq!(other.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done));
        let [resumed, continued] = &test_agent.sent_bodies()[before..] else { panic!("two requests") };
        assert_eq!(resumed, continued, "{layout}");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_came_before_a_crash_is_there_afterwards() {
    let script = "
turns:
  - {text: one two three four five six seven eight nine ten}
default: {text: Fine.}
";
    for layout in LayoutName::ALL {
        let test_agent =
            TestAgent::builder().layout(layout).script(script).faults("stall=900,times=1").start().await;
        let running = test_agent.begin("Talk");
        test_agent.until_on_disk(|session| !session.recovered.is_empty()).await;
        let other = test_agent.copy(); // the file as a crash would leave it
        assert!(!running.is_finished());
        let said = other.transcript_lines();
        assert_eq!(said.len(), 2);
        assert!(said[1].starts_with("assistant: one") && said[1].ends_with("(interrupted)"), "{said:?}");
        assert_eq!(other.prompt("Go on").await, InputOutcome::Ran(RunEnd::Done));
        let whole = "assistant: one two three four five six seven eight nine ten"; // a spoiled turn is given again
        assert_eq!(other.transcript_lines()[2..], ["user: Go on", whole], "{layout}");
        test_agent.agent.abort();
        running.await.unwrap();
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_begins_anywhere_and_is_a_session_of_its_own() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder().layout(layout).script(READ).start().await;
        assert_eq!(test_agent.prompt("How many lines?").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(test_agent.prompt("And?").await, InputOutcome::Ran(RunEnd::Done));
        test_agent.assert_stored_matches_memory().await;
        let messages = test_agent.agent.messages();
        for (n, message) in messages.iter().enumerate() {
            let fork = test_agent.fork(Some(&message.id.0));
            assert_eq!(fork.agent.messages(), messages[..=n]);
            assert_eq!(
                fork.prompt("Another way").await,
                InputOutcome::Ran(RunEnd::Done),
                "{layout} from {n}"
            );
            assert_eq!(fork.transcript_lines().last().unwrap(), "assistant: Fine.");
            fork.assert_stored_matches_memory().await;
            let spent = fork.agent.token_usage();
            let fork = fork.resume();
            assert_eq!(fork.agent.token_usage().session, spent.session, "{layout} from {n}");
            assert_eq!(fork.agent.token_usage().requests, spent.requests);
            let from = json!({"session": "s1", "entry": &*message.id.0});
            assert_eq!(fork.session().header.extra["forked_from"], from);
        }
        assert_eq!(test_agent.agent.messages(), messages, "the session itself is as it was");
        test_agent.assert_continues().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_that_was_chosen_is_used_and_remembered() {
    let test_agent = TestAgent::builder().layout(LayoutName::Inline).start().await;
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    let target = Target::new(Catalogue::builtin(), Some("openai"), "gpt-5").unwrap();
    test_agent.agent.select_model(target).await.unwrap();
    test_agent.agent.select_thinking(ThinkingSetting::Budget(2048)).await.unwrap();
    assert_eq!(test_agent.prompt("Hello again").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(
        test_agent.events_of::<ModelSelect>(),
        [ModelSelect { previous: "anthropic/claude-sonnet-5".into(), model: "openai/gpt-5".into() }]
    );
    let models = || -> Vec<String> {
        let model = |body: &String| {
            serde_json::from_str::<serde_json::Value>(body).unwrap()["model"].as_str().unwrap().to_owned()
        };
        test_agent.sent_bodies().iter().map(model).collect()
    };
    assert_eq!(models(), ["claude-sonnet-5", "gpt-5"]);
    test_agent.assert_stored_matches_memory().await;
    let answered: Vec<String> = test_agent
        .session()
        .requests()
        .map(|request| format!("{}/{}", request.provider, request.model))
        .collect();
    assert_eq!(answered, ["anthropic/claude-sonnet-5", "openai/gpt-5"]);
    let other = test_agent.copy();
    assert_eq!(other.agent.target().model.id, "gpt-5");
    assert_eq!(other.prompt("And now?").await, InputOutcome::Ran(RunEnd::Done));
    assert_eq!(models().last().unwrap(), "gpt-5");
    drop(other);
    let conversation = test_agent.fork_session("again", None);
    assert_eq!(conversation.model, Some(("openai".into(), "gpt-5".into())));
    assert_eq!(conversation.thinking.as_deref(), Some("2048"));
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_labels_and_the_state_of_extensions_are_kept_and_never_sent() {
    let test_agent = TestAgent::builder().layout(LayoutName::Inline).start().await;
    test_agent.agent.rename_session("Lines").await.unwrap();
    test_agent.agent.store_extension_state("counter", json!({"n": 1})).await.unwrap();
    test_agent.agent.store_extension_state("counter", json!({"n": 2})).await.unwrap();
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    test_agent.agent.rename_session("Lines and words").await.unwrap();
    let first = test_agent.agent.messages()[0].id.0.clone();
    test_agent.agent.label_entry(&first, Some("the start")).await.unwrap();
    let unknown = test_agent.agent.label_entry("nowhere", Some("x")).await.unwrap_err().to_string();
    assert_eq!(unknown, "there is no entry nowhere in this session");
    assert_eq!(test_agent.session().labels().into_iter().collect::<Vec<_>>(), [(&*first, "the start")]);
    assert_eq!(test_agent.request_lines(), [["user: Hello"]]);
    assert_eq!(test_agent.session().name(), Some("Lines and words"));
    let conversation = test_agent.fork_session("again", None);
    assert_eq!(conversation.custom["counter"], json!({"n": 2}));
    test_agent.assert_continues().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_agents_cannot_write_to_one_session() {
    let test_agent = TestAgent::builder().start().await;
    assert_eq!(test_agent.prompt("Hello").await, InputOutcome::Ran(RunEnd::Done));
    let refused = Conversation::resume(&test_agent.session_path(), None).err().unwrap().to_string();
    assert!(
        refused.contains("s1.jsonl")
            && refused.contains("another process writes to this session")
            && refused.contains("fork"),
        "{refused}"
    );
    assert_eq!(test_agent.prompt("Hello again").await, InputOutcome::Ran(RunEnd::Done));
    test_agent.assert_continues().await;
}
