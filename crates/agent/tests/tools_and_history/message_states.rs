use hardpan_agent::MessageRange;
use hardpan_agent::events::MessageStateChanged;
use hardpan_context::LayoutName;
use hardpan_prompt::{MessageId, MessageState};
use hardpan_test_support::{TestAgent, line};

const SCRIPT: &str = "
turns:
  - when: {equals: Read.}
    tool_calls: [{name: read, arguments: {path: a.txt}}]
  - when: {equals: Tidy up.}
    tool_calls:
      - {name: messages, arguments: {action: list}}
      - {name: messages, arguments: {action: summarise, id: e1, last_id: FIRST_ANSWER, summary: A number was agreed on.}}
      - {name: messages, arguments: {action: delete, id: nowhere}}
      - {name: messages, arguments: {action: delete, id: CURRENT}}
default: {text: Fine.}
";

fn range<'a>(first: &'a MessageId, last: &'a MessageId) -> MessageRange<'a> {
    MessageRange { first: &first.0, last: Some(&last.0) }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_summarised_deleted_and_restored_and_nothing_is_lost() {
    for layout in LayoutName::ALL {
        let setup = TestAgent::with_real_tools().layout(layout).script(SCRIPT).file("a.txt", "one\ntwo\n");
        let test_agent = setup.start().await;
        test_agent.say("My number is 4711.").await;
        test_agent.say("Read.").await;
        test_agent.say("Later.").await;
        let messages = test_agent.agent.messages();
        let ids: Vec<MessageId> = messages.iter().map(|message| message.id.clone()).collect();
        let agent = &test_agent.agent;
        let summarised = agent.summarise_messages(range(&ids[0], &ids[1]), "A number was told.").await;
        assert_eq!(summarised.expect("stored"), 2);
        // Everything of the exchange with the read, calls and results included.
        assert_eq!(agent.delete_messages(range(&ids[2], &ids[5])).await.expect("stored"), 4);
        test_agent.assert_copy_sends_the_same().await;
        let body = test_agent.last_sent().body;
        assert!(body.contains("A number was told.") && !body.contains("4711"), "{layout}: {body}");
        assert!(!body.contains("Read."), "{layout}");
        // The file tells how it was, and both states are events.
        let stored = test_agent.stored().await;
        assert!(stored.entries.iter().any(|entry| format!("{entry:?}").contains("4711")), "{layout}");
        let events = test_agent.events_of::<MessageStateChanged>();
        assert_eq!(events[1].messages, ids[2..=5]);
        assert_eq!((events[0].state, events[1].state), (MessageState::TlDr, MessageState::Deleted));
        assert_eq!(agent.restore_messages(range(&ids[0], &ids[5])).await.expect("stored"), 6);
        test_agent.assert_copy_sends_the_same().await;
        let body = test_agent.last_sent().body;
        assert!(body.contains("4711") && body.contains("Read.") && !body.contains("A number was told."));
        let unknown = MessageRange { first: "nowhere", last: None };
        assert!(agent.delete_messages(unknown).await.is_err());
        assert!(agent.delete_messages(range(&ids[3], &ids[1])).await.is_err(), "it ends before it begins");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_restored_while_others_store_records() {
    let test_agent = TestAgent::with_real_tools().script(SCRIPT).start().await;
    test_agent.say("My number is 4711.").await;
    let id = test_agent.agent.messages()[0].id.clone();
    let agent = test_agent.agent.clone();
    let storing = tokio::spawn(async move {
        for number in 0..400 {
            agent.store_extension_state("test.record", serde_json::json!(number)).await.expect("stored");
        }
    });
    while !storing.is_finished() {
        test_agent.agent.delete_messages(range(&id, &id)).await.expect("stored");
        test_agent.agent.restore_messages(range(&id, &id)).await.expect("stored");
    }
    storing.await.expect("it ends");
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_makes_room_with_a_tool_that_the_settings_switch_on() {
    for layout in LayoutName::ALL {
        let script = SCRIPT.replace("FIRST_ANSWER", "e1").replace("CURRENT", "e1000");
        let setup = TestAgent::with_real_tools().layout(layout).script(script);
        let test_agent = setup.settings(|settings| settings.message_tool = true).start().await;
        test_agent.say("My number is 4711.").await;
        assert!(test_agent.last_sent().body.contains("\"messages\""), "it is declared");
        test_agent.say("Tidy up.").await;
        let lines: Vec<String> = test_agent.agent.messages().iter().map(line).collect();
        assert!(lines[4].starts_with("result: e1 user: My number is 4711."), "{lines:#?}");
        assert!(lines[5].starts_with("result: 1 of "), "{lines:#?}");
        assert_eq!(lines[6], "failed: Nothing was changed: there is no entry nowhere in this session.");
        assert!(lines[7].starts_with("failed: "), "{lines:#?}");
        test_agent.assert_copy_sends_the_same().await;
        let body = test_agent.last_sent().body;
        assert!(body.contains("A number was agreed on."), "{layout}: {body}");
    }
    let without = TestAgent::with_real_tools().script(SCRIPT).start().await;
    without.say("Hello.").await;
    assert!(!without.last_sent().body.contains("\"name\":\"messages\""), "by default it costs nothing");
}
