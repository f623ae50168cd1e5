use hardpan_agent::events::{BeforeCompactReply, SessionBeforeCompact, SessionCompact};
use hardpan_agent::{AgentError, BranchExit, CompactError, InputOutcome, RunEnd};
use hardpan_context::LayoutName;
use hardpan_prompt::MessageBody;
use hardpan_session::Record;
use hardpan_test_support::{
    SUMMARY_REQUEST_TEXT, TestAgent, TestAgentBuilder, assert_calls_paired, line, long_text,
};
use serde_json::Value;

/// A script that writes `summary` where one is asked for and says little otherwise.
fn summing(summary: &str) -> String {
    format!(
        "turns:\n  - when: {{contains: {SUMMARY_REQUEST_TEXT}}}\n{summary}\n    repeat: always\ndefault: {{text: Fine.}}"
    )
}

const SUMMARY: &str = "    text: \"## Goal\\nShips that sail.\"";

/// Says so much that there is something to summarise.
async fn talk(test_agent: &TestAgent) {
    for about in ["anchor", "bowsprit", "compass", "davit", "ensign"] {
        test_agent.say(&long_text(about, 2000)).await;
    }
}

async fn talking(setup: TestAgentBuilder) -> TestAgent {
    let test_agent = setup.start().await;
    talk(&test_agent).await;
    test_agent
}

/// What a compaction that must not change anything says.
async fn fails(test_agent: &TestAgent) -> String {
    match test_agent.agent.compact(None).await {
        Err(AgentError::Compact(error)) => error.to_string(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_layout_goes_on_from_a_summary() {
    for layout in LayoutName::ALL {
        for model in ["claude-sonnet-5", "gpt-4.1"] {
            let test_agent =
                talking(TestAgent::with_real_tools().layout(layout).model(model).script(summing(SUMMARY)))
                    .await;
            let before = test_agent.agent.messages();
            let compacted = test_agent.agent.compact(Some("mind the anchor".into())).await.unwrap();
            assert_eq!(compacted.summary, "## Goal\nShips that sail.");
            assert!(compacted.messages > 2 && compacted.messages < before.len(), "{compacted:?}");
            let asked = test_agent.last_sent();
            assert!(asked.body.contains("The user asks that the summary attends to this: mind the anchor"));
            let messages = test_agent.agent.messages();
            assert_eq!(line(&messages[0]), "summary: ## Goal\nShips that sail.");
            assert_eq!(messages[1..], before[compacted.messages..], "the recent part stays whole");
            assert_eq!(messages[1].id.0, compacted.first_kept);
            assert!(messages[1].is_user());
            test_agent.assert_copy_sends_the_same().await;
            let body = test_agent.last_sent().body;
            assert!(
                body.contains("Ships that sail") && body.contains("ensign 7") && !body.contains("anchor 7"),
                "{layout}"
            );
            assert_eq!(test_agent.events_of::<SessionCompact>().len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_for_a_summary_reads_the_sessions_prefix_from_the_cache() {
    for model in ["claude-sonnet-5", "gpt-4.1"] {
        let setup = TestAgent::with_real_tools().model(model).script(summing(SUMMARY)).open("hull.rs");
        let test_agent = setup.start().await;
        test_agent.write("hull.rs", &long_text("plank", 1500));
        talk(&test_agent).await;
        test_agent.say("Go on.").await;
        let turn = test_agent.last_sent();
        test_agent.agent.compact(None).await.unwrap();
        let asked = test_agent.last_sent();
        let (turn, asked) = (turn.json(), asked.json());
        for field in ["model", "system", "tools", "max_tokens", "tool_choice", "thinking"] {
            assert_eq!(asked[field], turn[field], "{model}: {field}");
        }
        let last = test_agent.billed("turn").await.pop().unwrap().usage;
        let [summary] = &test_agent.billed("compaction").await[..] else { panic!("one request") };
        let (cached, total) = (last.cached(), summary.usage.prompt());
        assert!(summary.usage.cache_read >= last.cache_read.max(cached), "{model}: {last:?} {summary:?}");
        // What is new in it: the last answer, the request itself, the state of the workspace.
        assert!(total - summary.usage.cache_read < 1500, "{model}: {last:?} {summary:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_a_tool_is_asked_once_more_without_the_prefix() {
    let script = format!(
        "turns:\n  - when: {{contains: {SUMMARY_REQUEST_TEXT}}}\n    tool_calls: [{{name: ls, arguments: {{path: .}}}}]\n  - when: {{contains: {SUMMARY_REQUEST_TEXT}}}\n{SUMMARY}\ndefault: {{text: Fine.}}"
    );
    let test_agent = talking(TestAgent::with_real_tools().script(script)).await;
    test_agent.agent.compact(None).await.unwrap();
    let sent = test_agent.sent_requests();
    let [.., first, second] = &sent[..] else { panic!("two requests") };
    assert!(first.json()["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    assert_eq!(second.json()["tools"], Value::Null);
    assert!(second.body.contains("anchor 7") && second.body.contains(SUMMARY_REQUEST_TEXT));
    assert_eq!(sent.iter().filter(|sent| sent.body.contains(SUMMARY_REQUEST_TEXT)).count(), 2);
    assert_eq!(test_agent.billed("compaction").await.len(), 2, "both are billed");
    assert_eq!(line(&test_agent.agent.messages()[0]), "summary: ## Goal\nShips that sail.");
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_fails_changes_nothing() {
    let call = "    tool_calls: [{name: ls, arguments: {path: .}}]\n    undeclared: true";
    for (answer, why) in [
        ("    text: \"   \"", "it was empty"),
        ("    text: \"## Goal\"\n    stop: length", "it ended with length"),
        ("    text: \"I will not.\"\n    stop: refusal", "it ended with refusal"),
        (call, "the model called a tool instead"),
    ] {
        let test_agent = talking(TestAgent::with_real_tools().script(summing(answer))).await;
        let lines = test_agent.stored().await.entries.len();
        let (before, messages) = (test_agent.copy(), test_agent.agent.messages());
        let sent = test_agent.request_count();
        let said = fails(&test_agent).await;
        assert!(said.contains(why) && said.ends_with("nothing has changed"), "{said}");
        assert_eq!(test_agent.request_count(), sent + 2, "it was asked for twice: {why}");
        assert_eq!(test_agent.agent.messages(), messages);
        let session = test_agent.stored().await;
        let new = &session.entries[lines..];
        assert!(
            new.iter().all(|entry| matches!(entry.record, Record::Request(_) | Record::Custom { .. })),
            "only the bill is stored: {new:?}"
        );
        test_agent.say("And now?").await;
        before.say("And now?").await;
        assert_eq!(test_agent.sent_bodies()[sent + 2], before.last_sent().body, "{why}");
        assert!(test_agent.events_of::<SessionCompact>().is_empty());
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_changes_nothing() {
    let faults = "status=400,after=5,times=2".to_owned();
    let test_agent = talking(TestAgent::with_real_tools().script(summing(SUMMARY)).faults(faults)).await;
    let messages = test_agent.agent.messages();
    assert!(fails(&test_agent).await.ends_with("nothing has changed"));
    assert_eq!(test_agent.agent.messages(), messages);
    assert!(test_agent.billed("compaction").await.is_empty());
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_summary_is_made_of_the_first_and_knows_the_files_of_both() {
    let script = format!(
        "turns:
  - when: {{equals: Look.}}
    tool_calls:
      - {{name: read, arguments: {{path: a.txt}}}}
      - {{name: write, arguments: {{path: made.txt, content: new}}}}
  - when: {{equals: Look again.}}
    tool_calls:
      - {{name: read, arguments: {{path: b.txt}}}}
      - {{name: edit, arguments: {{path: a.txt, old_text: alpha, new_text: omega}}}}
  - {{when: {{contains: {SUMMARY_REQUEST_TEXT}}}, text: The first summary.}}
  - {{when: {{contains: {SUMMARY_REQUEST_TEXT}}}, text: The second summary.}}
default: {{text: Fine.}}"
    );
    let test_agent = TestAgent::with_real_tools().script(script).start().await;
    test_agent.write("a.txt", "alpha\n");
    test_agent.write("b.txt", "beta\n");
    test_agent.say("Look.").await;
    talk(&test_agent).await;
    let first = test_agent.agent.compact(None).await.unwrap();
    assert_eq!(
        first.summary,
        "The first summary.\n\nFiles read so far: a.txt\n\nFiles changed so far: made.txt"
    );
    test_agent.say("Look again.").await;
    talk(&test_agent).await;
    let second = test_agent.agent.compact(None).await.unwrap();
    let asked = test_agent.last_sent().body;
    assert!(asked.contains("The first summary.") && asked.contains(SUMMARY_REQUEST_TEXT));
    assert_eq!(
        second.summary,
        "The second summary.\n\nFiles read so far: b.txt\n\nFiles changed so far: a.txt, made.txt"
    );
    let messages = test_agent.agent.messages();
    let summaries =
        messages.iter().filter(|message| matches!(*message.body, MessageBody::CompactionSummary { .. }));
    assert_eq!(summaries.count(), 1);
    let session = test_agent.stored().await;
    let mut details = session.entries.iter().filter_map(|entry| match &entry.record {
        Record::Compaction { details, .. } => details.clone(),
        _ => None,
    });
    let expected = serde_json::json!({"read": ["b.txt"], "changed": ["a.txt", "made.txt"]});
    assert_eq!(details.next_back(), Some(expected));
    test_agent.assert_copy_sends_the_same().await;
    assert!(!test_agent.last_sent().body.contains("The first summary."));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_is_never_parted_from_its_result() {
    // One prompt and many rounds of tools, of changing sizes: the cut falls among them.
    for rounds in 6..12 {
        let calls: Vec<String> = (0..rounds)
            .map(|n| {
                let two = format!(
                    "[{{name: read, arguments: {{path: r{n}.txt}}}}, {{name: ls, arguments: {{path: .}}}}]"
                );
                format!("  - {{text: Round {n}., tool_calls: {two}}}")
            })
            .collect();
        let script = format!(
            "turns:\n{}\n  - when: {{contains: {SUMMARY_REQUEST_TEXT}}}\n{SUMMARY}\ndefault: {{text: Fine.}}",
            calls.join("\n")
        );
        let test_agent = TestAgent::with_real_tools().script(script).start().await;
        for n in 0..rounds {
            test_agent.write(&format!("r{n}.txt"), &long_text("rope", 700 * (1 + n * rounds % 3)));
        }
        test_agent.say("Work.").await;
        test_agent.agent.compact(None).await.unwrap();
        let messages = test_agent.agent.messages();
        assert!(messages.len() > 2, "something stays");
        assert!(!matches!(*messages[1].body, MessageBody::ToolResult { .. }));
        assert_calls_paired(&messages);
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conversation_before_a_summary_can_be_gone_back_to() {
    let test_agent = talking(TestAgent::with_real_tools().script(summing(SUMMARY))).await;
    let before = test_agent.agent.messages();
    let last = before.last().unwrap().id.clone();
    test_agent.agent.compact(None).await.unwrap();
    test_agent.say("After it.").await;
    let after = test_agent.agent.messages();
    test_agent.agent.go_to_entry(&last.0, BranchExit::WithoutSummary).await.unwrap();
    assert_eq!(test_agent.agent.messages(), before);
    test_agent.say("Before it.").await;
    assert!(test_agent.last_sent().body.contains("anchor 7"));
    test_agent.assert_copy_sends_the_same().await;
    let session = test_agent.stored().await;
    let end = session.branch(Some(&after.last().unwrap().id.0)).unwrap();
    assert_eq!(end.messages, after, "the summary and what came after it are still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_cancels_a_compaction_or_writes_the_summary() {
    for layout in LayoutName::ALL {
        let test_agent = talking(TestAgent::with_real_tools().layout(layout).script(summing(SUMMARY))).await;
        test_agent.agent.events().subscribe::<SessionBeforeCompact, _>("captain", |event, _| async move {
            assert!(event.messages > 0 && event.tokens_before > 8000, "{event:?}");
            Ok(match event.instructions.as_deref() {
                Some("no") => BeforeCompactReply::Cancel { reason: "not on my ship".into() },
                Some("blank") => BeforeCompactReply::summary(" \n"),
                _ => BeforeCompactReply::summary("The captain's log."),
            })
        });
        let (sent, messages) = (test_agent.request_count(), test_agent.agent.messages());
        for (instructions, why) in
            [("no", "not on my ship"), ("blank", "the summary was empty; nothing has changed")]
        {
            match test_agent.agent.compact(Some(instructions.into())).await {
                Err(AgentError::Compact(error)) => assert_eq!(error.to_string(), why),
                other => panic!("{other:?}"),
            }
            assert_eq!(test_agent.agent.messages(), messages);
        }
        assert_eq!(test_agent.agent.compact(None).await.unwrap().summary, "The captain's log.");
        assert_eq!(test_agent.request_count(), sent, "the model was not asked");
        assert_eq!(line(&test_agent.agent.messages()[0]), "summary: The captain's log.");
        test_agent.assert_copy_sends_the_same().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_can_be_stopped() {
    let script = summing("    text: Too late.\n    delay: 10s");
    let test_agent = talking(TestAgent::with_real_tools().script(script)).await;
    let (sent, messages) = (test_agent.request_count(), test_agent.agent.messages());
    let agent = test_agent.agent.clone();
    let compacting = tokio::spawn(async move { agent.compact(None).await });
    test_agent.until(|| test_agent.request_count() > sent).await;
    assert!(matches!(test_agent.agent.compact(None).await, Err(AgentError::Busy)), "one at a time");
    test_agent.agent.abort();
    let stopped = compacting.await.unwrap();
    assert!(matches!(stopped, Err(AgentError::Compact(CompactError::Aborted))), "{stopped:?}");
    assert_eq!(test_agent.agent.messages(), messages);
    test_agent.assert_copy_sends_the_same().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_little_is_not_summarised() {
    let test_agent = TestAgent::with_real_tools().script(summing(SUMMARY)).start().await;
    assert_eq!(
        fails(&test_agent).await,
        "there is too little to summarise yet: continue the conversation first"
    );
    assert_eq!(test_agent.begin("Hello.").await.unwrap(), InputOutcome::Ran(RunEnd::Done));
    assert_eq!(
        fails(&test_agent).await,
        "there is too little to summarise yet: continue the conversation first"
    );
    assert_eq!(test_agent.request_count(), 1);
}
