use std::fmt::Write as _;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hardpan_agent::BranchExit;
use hardpan_context::{KeepLevel, LayoutName};
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_test_support::{
    SUMMARY_REQUEST_TEXT, TestAgent, TestAgentBuilder, line, long_text, numbered_lines, pixel,
};

/// The models of the four protocols.
const MODELS: [&str; 4] = ["claude-sonnet-5", "gpt-4.1", "gpt-5.2", "gemini/gemini-3.5-flash"];

/// Reads `a.txt` or `p.png`, writes `b.txt`, and recalls any of the first messages, from `offset` on
/// if asked to go on.
fn script(offset: usize) -> String {
    let mut script = format!(
        "
turns:
  - when: {{contains: Read.}}
    repeat: always
    tool_calls: [{{name: read, arguments: {{path: a.txt}}}}]
  - when: {{contains: Look.}}
    repeat: always
    tool_calls: [{{name: read, arguments: {{path: p.png}}}}]
  - when: {{contains: Write.}}
    repeat: always
    tool_calls: [{{name: write, arguments: {{path: b.txt, content: {:?}}}}}]
  - when: {{contains: {SUMMARY_REQUEST_TEXT}}}
    repeat: always
    text: '## Goal'
",
        numbered_lines("ballast", 3000),
    );
    for id in 1..40 {
        for (how, arguments) in [("", String::new()), (" and go on", format!(", offset: {offset}"))] {
            let _ = write!(
                script,
                "  - when: {{contains: Recall e{id}{how}.}}\n    repeat: always\n    tool_calls: [{{name: recall, arguments: {{id: e{id}{arguments}}}}}]\n"
            );
        }
    }
    script + "default: {text: Fine.}\n"
}

fn builder() -> TestAgentBuilder {
    let content = numbered_lines("anchor", 60) + "\ttab, CR\r\nno line end";
    TestAgent::with_real_tools().script(script(0)).file("a.txt", &content)
}

/// The last tool result.
fn last_result(test_agent: &TestAgent) -> AgentMessage {
    let messages = test_agent.agent.messages();
    let is_result = |message: &&AgentMessage| matches!(*message.body, MessageBody::ToolResult { .. });
    let result = messages.iter().rev().find(is_result).cloned();
    result.unwrap_or_else(|| panic!("{:?}", test_agent.transcript_lines()))
}

fn content(message: &AgentMessage) -> Vec<MessagePart> {
    match &*message.body {
        MessageBody::ToolResult { content, is_error: false, .. } => content.clone(),
        other => panic!("{other:?}"),
    }
}

async fn recalled(test_agent: &TestAgent, id: &str) -> AgentMessage {
    test_agent.say(&format!("Recall {id}.")).await;
    last_result(test_agent)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_fold_took_out_comes_back_byte_for_byte_in_every_protocol() {
    for model in MODELS {
        let test_agent = builder().model(model).start().await;
        test_agent.say("Read.").await;
        let first = last_result(&test_agent);
        test_agent.workspace().open.push("a.txt".into());
        test_agent.say("Hello.").await;
        test_agent.write("a.txt", &numbered_lines("bowsprit", 60));
        test_agent.workspace().fold = true;
        test_agent.say("Hello.").await;
        test_agent.workspace().fold = false;
        let body = test_agent.last_sent().body;
        assert!(
            !body.contains("anchor in line 30") && body.contains("bowsprit in line 30"),
            "{model}: no fold"
        );
        assert!(body.contains(&format!("tokens: recall {}]", first.id)), "{model}: the line names it");
        let back = recalled(&test_agent, &first.id.0).await;
        assert_eq!(content(&back), content(&first), "{model}");
        let sent = test_agent.last_sent();
        assert!(sent.status == 200 && sent.body.contains("anchor in line 30"), "{model}: the model reads it");
        assert!(test_agent.sent_requests().iter().all(|sent| sent.body.contains("recall")), "{model}");

        let resumed = test_agent.restart().await;
        assert_eq!(
            content(&recalled(&resumed, &first.id.0).await),
            content(&first),
            "{model}: after a resume"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_compacted_result_comes_back_and_one_on_another_branch_does_not() {
    let test_agent = builder().start().await;
    test_agent.say("Hello.").await;
    let hello = test_agent.agent.messages()[1].id.0.clone();
    test_agent.say("Read.").await;
    let first = last_result(&test_agent);
    for about in ["anchor", "bowsprit", "compass", "davit", "ensign"] {
        test_agent.say(&long_text(about, 2000)).await;
    }
    test_agent.agent.compact(None).await.unwrap();
    assert!(test_agent.agent.messages().iter().all(|message| message.id != first.id));
    assert_eq!(content(&recalled(&test_agent, &first.id.0).await), content(&first));
    let test_agent = test_agent.restart().await;
    assert_eq!(content(&recalled(&test_agent, &first.id.0).await), content(&first), "after a resume");

    test_agent.agent.go_to_entry(&hello, BranchExit::WithoutSummary).await.unwrap();
    let id = &first.id.0;
    let expected = format!("failed: Nothing was recalled: this conversation has no message {id}.");
    assert_eq!(line(&recalled(&test_agent, id).await), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_long_content_of_a_call_comes_back_page_by_page() {
    let first_page = async |offset| {
        let test_agent = builder().window(200_000).max_tokens(32_000).script(script(offset)).start().await;
        test_agent.say("Write.").await;
        let id = last_result(&test_agent).id.0;
        let page = line(&recalled(&test_agent, &id).await);
        (test_agent, id, page)
    };
    let (_, _, page) = first_page(0).await;
    let (page, notice) = page.rsplit_once('\n').unwrap();
    let offset = notice.rsplit_once("go on with offset=").unwrap().1.trim_end_matches(']');
    let (test_agent, id, _) = first_page(offset.parse().unwrap()).await;
    test_agent.say(&format!("Recall {id} and go on.")).await;
    let rest = line(&last_result(&test_agent));
    let rest = rest.strip_prefix("result: ").unwrap().rsplit_once("\n[bytes ").unwrap().0;
    let written = numbered_lines("ballast", 3000);
    let expected = format!("result: Created b.txt (3000 lines).\n[content of the call]\n{written}");
    assert_eq!(format!("{page}\n{rest}\n"), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_comes_back_as_an_image() {
    let test_agent = builder().start().await;
    let image = BASE64_STANDARD.decode(pixel().data.as_bytes()).unwrap();
    std::fs::write(test_agent.file("p.png"), image).unwrap();
    test_agent.say("Look.").await;
    let first = last_result(&test_agent);
    assert!(matches!(content(&first)[..], [MessagePart::Text { .. }, MessagePart::Image(_)]));
    assert_eq!(content(&recalled(&test_agent, &first.id.0).await), content(&first));
}

#[tokio::test(flavor = "multi_thread")]
async fn recall_is_declared_from_the_first_request_on_where_folds_can_happen() {
    for layout in LayoutName::ALL {
        for keep in KeepLevel::ALL {
            let test_agent = builder().layout(layout).keep(keep).start().await;
            test_agent.say("Hello.").await;
            let tools = test_agent.last_sent().json()["tools"].clone();
            let is_declared = tools.as_array().unwrap().iter().any(|tool| tool["name"] == "recall");
            let expected = layout == LayoutName::Strata && keep != KeepLevel::All;
            assert_eq!(is_declared, expected, "{layout} {keep}");
        }
    }
}
