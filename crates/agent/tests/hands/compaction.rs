use hardpan_agent::events::{BeforeCompactReply, SessionBeforeCompact};
use hardpan_agent::{AgentError, Leave, Stop, Taken};
use hardpan_context::LayoutName;
use hardpan_prompt::Body;
use hardpan_session::Record;
use serde_json::Value;

use crate::stage::{ASKED, Given, Stage, is_paired, line, long};

/// A script that writes `summary` where one is asked for and says little otherwise.
fn summing(summary: &str) -> String {
    format!(
        "turns:\n  - when: {{contains: {ASKED}}}\n{summary}\n    repeat: always\ndefault: {{text: Fine.}}"
    )
}

const SUMMARY: &str = "    text: \"## Goal\\nShips that sail.\"";

/// Says so much that there is something to summarise.
async fn talk(stage: &Stage) {
    for about in ["anchor", "bowsprit", "compass", "davit", "ensign"] {
        stage.say(&long(about, 2000)).await;
    }
}

async fn talking(given: Given) -> Stage {
    let stage = Stage::new(given).await;
    talk(&stage).await;
    stage
}

/// What a compaction that must not change anything says.
async fn fails(stage: &Stage) -> String {
    match stage.agent.compact(None).await {
        Err(AgentError::Compact { reason }) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_layout_goes_on_from_a_summary() {
    for layout in LayoutName::ALL {
        for model in ["claude-sonnet-5", "gpt-4.1"] {
            let stage = talking(Given { layout, model, script: summing(SUMMARY), ..Given::default() }).await;
            let before = stage.agent.messages();
            let compacted = stage.agent.compact(Some("mind the anchor".into())).await.unwrap();
            assert_eq!(compacted.summary, "## Goal\nShips that sail.");
            assert!(compacted.messages > 2 && compacted.messages < before.len(), "{compacted:?}");
            let asked = stage.last_sent();
            assert!(asked.body.contains("The user asks that the summary attends to this: mind the anchor"));
            let messages = stage.agent.messages();
            assert_eq!(line(&messages[0]), "summary: ## Goal\nShips that sail.");
            assert_eq!(messages[1..], before[compacted.messages..], "the recent part stays whole");
            assert_eq!(messages[1].id.0, compacted.first_kept);
            assert!(messages[1].is_user());
            stage.goes_on().await;
            let body = stage.last_sent().body;
            assert!(
                body.contains("Ships that sail") && body.contains("ensign 7") && !body.contains("anchor 7"),
                "{layout}"
            );
            assert_eq!(stage.told("session_compact").len(), 1);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_for_a_summary_reads_the_sessions_prefix_from_the_cache() {
    for model in ["claude-sonnet-5", "gpt-4.1"] {
        let given = Given { model, script: summing(SUMMARY), open: vec!["hull.rs"], ..Given::default() };
        let stage = Stage::new(given).await;
        stage.write("hull.rs", &long("plank", 1500));
        talk(&stage).await;
        stage.say("Go on.").await;
        let turn = stage.last_sent();
        stage.agent.compact(None).await.unwrap();
        let asked = stage.last_sent();
        let (turn, asked) = (turn.json(), asked.json());
        for field in ["model", "system", "tools", "max_tokens", "tool_choice", "thinking"] {
            assert_eq!(asked[field], turn[field], "{model}: {field}");
        }
        let last = stage.billed("turn").await.pop().unwrap().usage;
        let [summary] = &stage.billed("compaction").await[..] else { panic!("one request") };
        let (cached, total) =
            (last.cache_read + last.cache_write_5m + last.cache_write_1h, summary.usage.prompt_total());
        assert!(summary.usage.cache_read >= last.cache_read.max(cached), "{model}: {last:?} {summary:?}");
        // What is new in it: the last answer, the request itself, the state of the workspace.
        assert!(total - summary.usage.cache_read < 1500, "{model}: {last:?} {summary:?}");
    }
}

trait Total {
    fn prompt_total(&self) -> u64;
}

impl Total for hardpan_session::RequestUsage {
    fn prompt_total(&self) -> u64 {
        self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_calls_a_tool_is_asked_once_more_without_the_prefix() {
    let script = format!(
        "turns:\n  - when: {{contains: {ASKED}}}\n    tool_calls: [{{name: ls, arguments: {{path: .}}}}]\n  - when: {{contains: {ASKED}}}\n{SUMMARY}\ndefault: {{text: Fine.}}"
    );
    let stage = talking(Given { script, ..Given::default() }).await;
    stage.agent.compact(None).await.unwrap();
    let sent = stage.sent();
    let [.., first, second] = &sent[..] else { panic!("two requests") };
    assert!(first.json()["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    assert_eq!(second.json()["tools"], Value::Null);
    assert!(second.body.contains("anchor 7") && second.body.contains(ASKED));
    assert_eq!(sent.iter().filter(|sent| sent.body.contains(ASKED)).count(), 2);
    assert_eq!(stage.billed("compaction").await.len(), 2, "both are billed");
    assert_eq!(line(&stage.agent.messages()[0]), "summary: ## Goal\nShips that sail.");
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_summary_that_fails_changes_nothing() {
    let call = "    tool_calls: [{name: ls, arguments: {path: .}}]";
    for (answer, why) in [
        ("    text: \"   \"", "it was empty"),
        ("    text: \"## Goal\"\n    stop: length", "it ended with length"),
        ("    text: \"I will not.\"\n    stop: refusal", "it ended with refusal"),
        (call, "the model called a tool instead"),
    ] {
        let stage = talking(Given { script: summing(answer), ..Given::default() }).await;
        let lines = stage.stored().await.entries.len();
        let (before, messages) = (stage.copy(), stage.agent.messages());
        let sent = stage.sent().len();
        let said = fails(&stage).await;
        assert!(said.contains(why) && said.ends_with("nothing has changed"), "{said}");
        assert_eq!(stage.sent().len(), sent + 2, "it was asked for twice: {why}");
        assert_eq!(stage.agent.messages(), messages);
        let session = stage.stored().await;
        let new = &session.entries[lines..];
        assert!(
            new.iter().all(|entry| matches!(entry.record, Record::Request(_) | Record::Custom { .. })),
            "only the bill is stored: {new:?}"
        );
        stage.say("And now?").await;
        before.say("And now?").await;
        assert_eq!(stage.sent()[sent + 2], before.last_sent(), "{why}");
        assert!(stage.told("session_compact").is_empty());
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_refuses_changes_nothing() {
    let faults = "status=400,after=5,times=2".to_owned();
    let stage = talking(Given { script: summing(SUMMARY), faults, ..Given::default() }).await;
    let messages = stage.agent.messages();
    assert!(fails(&stage).await.ends_with("nothing has changed"));
    assert_eq!(stage.agent.messages(), messages);
    assert!(stage.billed("compaction").await.is_empty());
    stage.goes_on().await;
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
  - {{when: {{contains: {ASKED}}}, text: The first summary.}}
  - {{when: {{contains: {ASKED}}}, text: The second summary.}}
default: {{text: Fine.}}"
    );
    let stage = Stage::new(Given { script, ..Given::default() }).await;
    stage.write("a.txt", "alpha\n");
    stage.write("b.txt", "beta\n");
    stage.say("Look.").await;
    talk(&stage).await;
    let first = stage.agent.compact(None).await.unwrap();
    assert_eq!(
        first.summary,
        "The first summary.\n\nFiles read so far: a.txt\n\nFiles changed so far: made.txt"
    );
    stage.say("Look again.").await;
    talk(&stage).await;
    let second = stage.agent.compact(None).await.unwrap();
    let asked = stage.last_sent().body;
    assert!(asked.contains("The first summary.") && asked.contains(ASKED));
    assert_eq!(
        second.summary,
        "The second summary.\n\nFiles read so far: b.txt\n\nFiles changed so far: a.txt, made.txt"
    );
    let messages = stage.agent.messages();
    let summaries = messages.iter().filter(|message| matches!(*message.body, Body::CompactionSummary { .. }));
    assert_eq!(summaries.count(), 1);
    let session = stage.stored().await;
    let mut details = session.entries.iter().filter_map(|entry| match &entry.record {
        Record::Compaction { details, .. } => details.clone(),
        _ => None,
    });
    let expected = serde_json::json!({"read": ["b.txt"], "changed": ["a.txt", "made.txt"]});
    assert_eq!(details.next_back(), Some(expected));
    stage.goes_on().await;
    assert!(!stage.last_sent().body.contains("The first summary."));
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
            "turns:\n{}\n  - when: {{contains: {ASKED}}}\n{SUMMARY}\ndefault: {{text: Fine.}}",
            calls.join("\n")
        );
        let stage = Stage::new(Given { script, ..Given::default() }).await;
        for n in 0..rounds {
            stage.write(&format!("r{n}.txt"), &long("rope", 700 * (1 + n * rounds % 3)));
        }
        stage.say("Work.").await;
        stage.agent.compact(None).await.unwrap();
        let messages = stage.agent.messages();
        assert!(messages.len() > 2, "something stays");
        assert!(!matches!(*messages[1].body, Body::ToolResult { .. }));
        is_paired(&messages);
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_conversation_before_a_summary_can_be_gone_back_to() {
    let stage = talking(Given { script: summing(SUMMARY), ..Given::default() }).await;
    let before = stage.agent.messages();
    let last = before.last().unwrap().id.clone();
    stage.agent.compact(None).await.unwrap();
    stage.say("After it.").await;
    let after = stage.agent.messages();
    stage.agent.go_to(&last.0, Leave::Silently).await.unwrap();
    assert_eq!(stage.agent.messages(), before);
    stage.say("Before it.").await;
    assert!(stage.last_sent().body.contains("anchor 7"));
    stage.goes_on().await;
    let session = stage.stored().await;
    let end = session.branch(Some(&after.last().unwrap().id.0)).unwrap();
    assert_eq!(end.messages, after, "the summary and what came after it are still there");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_extension_cancels_a_compaction_or_writes_the_summary() {
    for layout in LayoutName::ALL {
        let stage = talking(Given { layout, script: summing(SUMMARY), ..Given::default() }).await;
        stage.agent.events().on::<SessionBeforeCompact, _>("captain", |event, _| async move {
            assert!(event.messages > 0 && event.tokens_before > 8000, "{event:?}");
            Ok(match event.instructions.as_deref() {
                Some("no") => BeforeCompactReply::Cancel { reason: "not on my ship".into() },
                Some("blank") => BeforeCompactReply::Summary { text: " \n".into() },
                _ => BeforeCompactReply::Summary { text: "The captain's log.".into() },
            })
        });
        let (sent, messages) = (stage.sent().len(), stage.agent.messages());
        for (instructions, why) in
            [("no", "not on my ship"), ("blank", "the summary was empty; nothing has changed")]
        {
            match stage.agent.compact(Some(instructions.into())).await {
                Err(AgentError::Compact { reason }) => assert_eq!(reason, why),
                other => panic!("{other:?}"),
            }
            assert_eq!(stage.agent.messages(), messages);
        }
        assert_eq!(stage.agent.compact(None).await.unwrap().summary, "The captain's log.");
        assert_eq!(stage.sent().len(), sent, "the model was not asked");
        assert_eq!(line(&stage.agent.messages()[0]), "summary: The captain's log.");
        stage.goes_on().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_can_be_stopped() {
    let script = summing("    text: Too late.\n    delay: 10s");
    let stage = talking(Given { script, ..Given::default() }).await;
    let (sent, messages) = (stage.sent().len(), stage.agent.messages());
    let agent = stage.agent.clone();
    let compacting = tokio::spawn(async move { agent.compact(None).await });
    stage.until(|| stage.sent().len() > sent).await;
    assert!(matches!(stage.agent.compact(None).await, Err(AgentError::Busy)), "one at a time");
    stage.agent.abort();
    let stopped = compacting.await.unwrap();
    assert!(
        matches!(stopped, Err(AgentError::Compact { reason }) if reason == "it was stopped; nothing has changed")
    );
    assert_eq!(stage.agent.messages(), messages);
    stage.goes_on().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn too_little_is_not_summarised() {
    let stage = Stage::new(Given { script: summing(SUMMARY), ..Given::default() }).await;
    assert_eq!(fails(&stage).await, "there is too little to summarise yet");
    assert_eq!(stage.begin("Hello.").await.unwrap(), Taken::Ran(Stop::Done));
    assert_eq!(fails(&stage).await, "there is too little to summarise yet");
    assert_eq!(stage.sent().len(), 1);
}
