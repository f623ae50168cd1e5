use hardpan_agent::RunEnd;
use hardpan_agent::events::{AgentEnd, Note, NoteKind, SessionCompact};
use hardpan_context::{KeepLevel, LayoutName};
use hardpan_prompt::MessageBody;
use hardpan_test_support::{
    SUMMARY_REQUEST_TEXT, TestAgent, TestAgentBuilder, assert_calls_paired, line, long_text,
};

/// A script that reads a file in each of so many rounds, and sums up where it is asked to.
fn reading(rounds: usize, summary: &str) -> String {
    let calls: Vec<String> = (0..rounds)
        .map(|n| format!("  - when: {{has_tool_result: read}}\n    text: Round {n}.\n    tool_calls: [{{name: read, arguments: {{path: r.txt}}}}]"))
        .collect();
    format!(
        "turns:
  - when: {{contains: {SUMMARY_REQUEST_TEXT}}}
{summary}
    repeat: always
  - when: {{contains: Work.}}
    tool_calls: [{{name: read, arguments: {{path: r.txt}}}}]
{}
default: {{text: Done.}}",
        calls.join("\n")
    )
}

const SUMMARY: &str = "    text: What was done.";

#[tokio::test(flavor = "multi_thread")]
async fn a_window_that_is_nearly_full_makes_room_in_the_middle_of_a_run() {
    for layout in LayoutName::ALL {
        for model in ["claude-sonnet-5", "gpt-4.1"] {
            let script = reading(12, SUMMARY);
            let setup = TestAgent::with_real_tools()
                .layout(layout)
                .model(model)
                .window(26_000)
                .script(script)
                // What is read again must stay, or the window never fills.
                .keep(KeepLevel::All)
                .settings(|settings| settings.compact_at = 0.6);
            let test_agent = setup.start().await;
            test_agent.write("r.txt", &long_text("rope", 2000));
            test_agent.say("Work.").await;
            let compactions = test_agent.events_of::<SessionCompact>();
            assert!(
                !compactions.is_empty() && compactions.len() < 7,
                "{layout} {model}: {}",
                compactions.len()
            );
            assert!(test_agent.sent_requests().iter().all(|sent| sent.status == 200), "{layout} {model}");
            let messages = test_agent.agent.messages();
            assert!(line(&messages[0]).starts_with("summary: What was done."));
            assert_eq!(messages.last().map(line).as_deref(), Some("assistant: Done."));
            assert_calls_paired(&messages);
            // What the end of a run tells is the run's own, and there is no summary in it.
            let ended = test_agent.events_of::<AgentEnd>().pop().unwrap();
            let told = ended.messages;
            assert!(!told.is_empty() && !told.iter().any(|message| line(message).contains("What was done.")));
            test_agent.assert_copy_sends_the_same().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_tool_has_just_printed_counts_before_it_is_sent() {
    // Half of the window comes with one result: waiting for the next request would be too late.
    let setup = TestAgent::with_real_tools().model("gpt-4.1").window(14_000).script(reading(0, SUMMARY));
    let test_agent = setup.settings(|settings| settings.compact_at = 0.8).start().await;
    test_agent.write("r.txt", &long_text("rope", 4500));
    for about in ["anchor", "bowsprit"] {
        test_agent.say(&long_text(about, 1500)).await;
    }
    test_agent.say("Work.").await;
    assert_eq!(test_agent.events_of::<SessionCompact>().len(), 1);
    let sent = test_agent.last_sent().body;
    assert!(sent.contains("What was done.") && sent.contains("rope 1400"), "the result is there, whole");
    assert_calls_paired(&test_agent.agent.messages());
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_that_fails_is_not_tried_with_every_turn() {
    let script = reading(4, "    text: \"\\n\"");
    let test_agent = TestAgent::with_real_tools()
        .window(34_000)
        .script(script)
        .settings(|settings| settings.compact_at = 0.3)
        .start()
        .await;
    test_agent.write("r.txt", &long_text("rope", 2000));
    test_agent.say("Work.").await;
    assert_eq!(
        test_agent.sent_requests().iter().filter(|sent| sent.body.contains(SUMMARY_REQUEST_TEXT)).count(),
        2
    );
    let text = "not compacted: the summary failed (it was empty); nothing has changed".into();
    assert_eq!(test_agent.events_of::<Note>(), [Note { text, kind: NoteKind::CompactionFailed }]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_that_was_just_compacted_is_not_nearly_full() {
    let setup = TestAgent::with_real_tools().model("gpt-4.1").window(22_000).script(reading(0, SUMMARY));
    let test_agent = setup.settings(|settings| settings.compact_at = 0.4).start().await;
    for about in ["anchor", "bowsprit"] {
        test_agent.say(&long_text(about, 2000)).await;
    }
    let told = test_agent.events_of::<SessionCompact>().len();
    test_agent.agent.compact(None).await.unwrap();
    test_agent.say(&long_text("compass", 1500)).await;
    assert_eq!(test_agent.events_of::<SessionCompact>().len(), told + 1, "the person's own, and no other");
}

/// gpt-4 takes 8,192 tokens; the agent believes in more.
fn believing(window: u32, script: String) -> TestAgentBuilder {
    TestAgent::with_real_tools().model("gpt-4").window(window).script(script)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_too_long_is_compacted_and_sent_once_more() {
    for layout in LayoutName::ALL {
        let test_agent = believing(16_000, reading(0, SUMMARY)).layout(layout).start().await;
        test_agent.write("r.txt", &long_text("rope", 900));
        let mut stop = RunEnd::Done;
        for about in ["anchor", "bowsprit", "compass", "davit", "ensign", "flag"] {
            stop = test_agent.run(&long_text(about, 900)).await;
            if !test_agent.events_of::<SessionCompact>().is_empty() {
                break;
            }
        }
        assert_eq!(stop, RunEnd::Done, "{layout}");
        assert_eq!(test_agent.events_of::<SessionCompact>().len(), 1, "{layout}");
        let sent = test_agent.sent_requests();
        let refused: Vec<usize> = (0..sent.len()).filter(|at| sent[*at].status == 400).collect();
        assert!(!refused.is_empty(), "the window was full");
        assert_eq!(sent.last().map(|sent| sent.status), Some(200));
        assert!(sent.last().is_some_and(|sent| sent.body.contains("What was done.")));
        let messages = test_agent.agent.messages();
        assert!(matches!(*messages[0].body, MessageBody::CompactionSummary { .. }));
        assert_eq!(messages.last().map(line).as_deref(), Some("assistant: Done."));
        // The agent goes on where it was, and so does one that opens the session.
        test_agent.say("Work.").await;
        assert_calls_paired(&test_agent.agent.messages());
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_of_many_tools_that_is_too_long_is_summed_up_in_a_shorter_form() {
    let setup = believing(16_000, reading(9, SUMMARY)).keep(KeepLevel::All);
    let test_agent = setup.start().await;
    test_agent.write("r.txt", &long_text("rope", 700));
    test_agent.say("Work.").await;
    let sent = test_agent.sent_requests();
    let asked: Vec<_> = sent.iter().filter(|sent| sent.body.contains(SUMMARY_REQUEST_TEXT)).collect();
    assert!(asked.last().is_some_and(|asked| asked.status == 200 && asked.body.contains("Round 2.")));
    assert!(!test_agent.events_of::<SessionCompact>().is_empty());
    assert_calls_paired(&test_agent.agent.messages());
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_still_too_long_ends_the_run() {
    let test_agent = believing(60_000, reading(0, SUMMARY)).start().await;
    for about in ["anchor", "bowsprit"] {
        test_agent.say(&long_text(about, 900)).await;
    }
    let messages = test_agent.agent.messages().len();
    let RunEnd::TooLong { message } = test_agent.run(&long_text("chain", 9000)).await else {
        panic!("it fits")
    };
    assert!(message.contains("8192"), "{message}");
    // Refused, compacted or not, sent once more at most.
    let refused = test_agent
        .sent_requests()
        .iter()
        .filter(|sent| sent.status == 400 && !sent.body.contains(SUMMARY_REQUEST_TEXT))
        .count();
    assert!((1..=2).contains(&refused), "{refused}");
    assert!(test_agent.agent.messages().len() <= messages + 1, "what was asked is kept");
    assert!(test_agent.agent.messages().iter().any(|message| line(message).contains("chain 7")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_that_does_not_fit_is_never_left_out_of_its_own_request() {
    for layout in LayoutName::ALL {
        let script = "default: {text: Done.}".to_owned();
        let test_agent =
            TestAgent::with_real_tools().layout(layout).window(14_000).script(script).start().await;
        test_agent.say("Hello.").await;
        let before = test_agent.request_count();
        let stop = test_agent.run(&long_text("anchor", 20_000)).await;
        assert!(
            matches!(&stop, RunEnd::TooLong { message } if message.contains("too long")),
            "{layout}: {stop:?}"
        );
        let asked = test_agent
            .sent_requests()
            .into_iter()
            .skip(before)
            .filter(|sent| !sent.body.contains(SUMMARY_REQUEST_TEXT));
        assert_eq!(asked.count(), 0, "{layout}: nothing was asked without the person's words");
        // It is in the conversation, and can be left by going back.
        assert!(line(test_agent.agent.messages().last().unwrap()).starts_with("user: anchor"), "{layout}");
    }
}
