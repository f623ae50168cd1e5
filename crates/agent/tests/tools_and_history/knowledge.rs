use hardpan_agent::BranchExit;
use hardpan_agent::events::{ToolResultEvent, ToolResultReply};
use hardpan_context::LayoutName;
use hardpan_prompt::MessagePart;
use hardpan_test_support::{SUMMARY_REQUEST_TEXT, TestAgent, TestAgentBuilder, line, long_text};

/// Reads a part, or overwrites the file; writes a summary where one is asked for.
fn script() -> String {
    format!(
        "
turns:
  - when: {{equals: Read.}}
    repeat: always
    tool_calls: [{{name: read, arguments: {{path: a.txt, limit: 1}}}}]
  - when: {{equals: Show.}}
    repeat: always
    tool_calls: [{{name: bash, arguments: {{command: cat a.txt}}}}]
  - when: {{equals: Write.}}
    repeat: always
    tool_calls: [{{name: write, arguments: {{path: a.txt, content: mine}}}}]
  - when: {{contains: {SUMMARY_REQUEST_TEXT}}}
    repeat: always
    text: '## Goal'
default: {{text: Fine.}}
"
    )
}

fn with_file() -> TestAgentBuilder {
    TestAgent::with_real_tools().script(script()).file(
        "a.txt", "one
two
",
    )
}

/// The result of the last call.
fn last_result(test_agent: &TestAgent) -> String {
    let messages = test_agent.agent.messages();
    line(&messages[messages.len() - 2])
}

const UNREAD: &str = "failed: a.txt exists and you have not read it; nothing was written. Read it first, or choose another name.";
const OVERWRITTEN: &str = "result: Overwrote a.txt (1 line, was 2 lines).";

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_overwritten_once_the_model_has_seen_it_also_after_a_resume() {
    let test_agent = with_file().start().await;
    test_agent.say("Write.").await;
    assert_eq!(last_result(&test_agent), UNREAD);
    test_agent.say("Read.").await;
    let resumed = test_agent.copy();
    resumed.say("Write.").await;
    assert_eq!(last_result(&resumed), OVERWRITTEN);
    // The agent that goes on has not seen what the other one wrote.
    test_agent.say("Write.").await;
    assert_eq!(last_result(&test_agent), "result: a.txt already has this content; nothing was written.");
    test_agent.write("a.txt", "one\n2\n");
    test_agent.say("Write.").await;
    assert!(last_result(&test_agent).contains("-mine\n\\ No newline at end of file\n+one\n+2\n"));
    test_agent.say("Write.").await;
    assert_eq!(last_result(&test_agent), OVERWRITTEN, "the difference was shown");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_command_showed_is_seen_also_after_a_resume() {
    let test_agent = with_file().start().await;
    test_agent.say("Show.").await;
    assert_eq!(last_result(&test_agent), "result: one\ntwo\n");
    let resumed = test_agent.restart().await;
    resumed.say("Write.").await;
    assert_eq!(last_result(&resumed), OVERWRITTEN);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_file_is_seen_with_the_request_that_shows_it() {
    for layout in LayoutName::ALL {
        let test_agent = with_file().layout(layout).open("a.txt").start().await;
        test_agent.say("Write.").await;
        assert_eq!(last_result(&test_agent), OVERWRITTEN, "{layout}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_left_the_conversation_is_not_seen_any_more() {
    for leave in ["compact", "go back"] {
        let test_agent = with_file().start().await;
        test_agent.say("Hello.").await;
        let hello = test_agent.agent.messages()[1].id.0.clone();
        test_agent.say("Read.").await;
        if leave == "compact" {
            for about in ["anchor", "bowsprit", "compass", "davit", "ensign"] {
                test_agent.say(&long_text(about, 2000)).await;
            }
            test_agent.agent.compact(None).await.unwrap();
        } else {
            test_agent.agent.go_to_entry(&hello, BranchExit::WithoutSummary).await.unwrap();
        }
        test_agent.say("Write.").await;
        assert_eq!(last_result(&test_agent), UNREAD, "{leave}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_handler_hid_from_the_model_is_not_seen() {
    let test_agent = with_file().start().await;
    test_agent.agent.events().subscribe::<ToolResultEvent, _>("censor", |result, _| async move {
        let content = (&*result.tool_name == "read").then(|| vec![MessagePart::text("***")]);
        Ok(ToolResultReply { content, ..Default::default() })
    });
    test_agent.say("Read.").await;
    test_agent.say("Write.").await;
    assert_eq!(last_result(&test_agent), UNREAD);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_lists_the_files_that_were_really_read_and_changed() {
    let test_agent = with_file().start().await;
    test_agent.say("Write.").await;
    for about in ["anchor", "bowsprit", "compass", "davit", "ensign"] {
        test_agent.say(&long_text(about, 2000)).await;
    }
    assert_eq!(test_agent.agent.compact(None).await.unwrap().summary, "## Goal", "the write was refused");
    test_agent.say("Read.").await;
    for about in ["anchor", "bowsprit", "compass", "davit", "ensign"] {
        test_agent.say(&long_text(about, 2000)).await;
    }
    let summary = test_agent.agent.compact(None).await.unwrap().summary;
    assert_eq!(summary, "## Goal\n\nFiles read so far: a.txt");
}
