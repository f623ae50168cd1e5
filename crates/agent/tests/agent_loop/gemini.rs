use hardpan_context::{LayoutName, Target};
use hardpan_models::Catalogue;
use hardpan_test_support::TestAgent;
use serde_json::{Value, json};

const SCRIPT: &str = "
turns:
  - reasoning: I look at both of them.
    text: Let me look.
    tool_calls:
      - {name: slow, arguments: {ms: 1}}
      - {name: slow, arguments: {ms: 2}}
  - reasoning: One look more.
    tool_calls: [{name: slow, arguments: {ms: 3}}]
  - {reasoning: That is all., text: It is blue.}
default: {text: Fine.}
";
const SKIP: &str = "skip_thought_signature_validator";

/// The calls of the script, in order, each with whether it is signed and whether the check is
/// skipped. A layout may make calls of its own.
fn calls(body: &Value) -> Vec<(u64, bool, bool)> {
    let contents = body["contents"].as_array().expect("messages").iter();
    let parts = contents.flat_map(|content| content["parts"].as_array().expect("parts"));
    let call = |part: &Value| {
        let ms = part["functionCall"]["args"]["ms"].as_u64()?;
        Some((ms, part.get("thoughtSignature").is_some(), part["thoughtSignature"] == SKIP))
    };
    parts.filter_map(call).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn signatures_go_back_with_the_first_call_of_every_step() {
    for layout in LayoutName::ALL {
        let test_agent = TestAgent::builder()
            .layout(layout)
            .model("gemini/gemini-3.5-flash")
            .script(SCRIPT)
            .simulator_in_process()
            .start()
            .await;
        test_agent.say("Which colour?").await;
        let transcript = test_agent.transcript_lines();
        assert_eq!(
            transcript.last().map(String::as_str),
            Some("assistant: [reasoning] It is blue. [reasoning]"),
            "{transcript:?}"
        );
        assert!(test_agent.sent_requests().iter().all(|sent| sent.status == 200), "{layout}");
        let body = test_agent.last_sent().json();
        assert_eq!(calls(&body), [(1, true, false), (2, false, false), (3, true, false)], "{layout}");
        assert!(!test_agent.last_sent().body.contains("I look at both"), "summaries do not go back");
        assert_eq!(body["generationConfig"]["thinkingConfig"]["includeThoughts"], true);

        // The last answer's signature comes back with an empty text at its end.
        test_agent.say("Really?").await;
        let body = test_agent.last_sent().json();
        let said = |content: &&Value| {
            content["parts"].as_array().is_some_and(|parts| parts[0]["text"] == "It is blue.")
        };
        let answer = body["contents"].as_array().expect("messages").iter().find(said).expect("the answer");
        assert_eq!(answer["parts"][1]["text"], "", "{answer}");
        assert!(answer["parts"][1]["thoughtSignature"].is_string(), "{answer}");
        assert_eq!(test_agent.last_sent().status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_another_model_are_sent_without_their_proof() {
    let test_agent = TestAgent::builder().script(SCRIPT).simulator_in_process().start().await;
    test_agent.say("Which colour?").await;
    for model in ["gemini-3.5-flash", "gemini-3.6-flash"] {
        let target = Target::new(Catalogue::builtin(), Some("gemini"), model).expect("a model");
        test_agent.agent.select_model(target).await.expect("it is selected");
        test_agent.say("And now?").await;
        let sent = test_agent.last_sent();
        assert_eq!(sent.status, 200, "{}", sent.answer);
        let skipped: Vec<bool> =
            calls(&sent.json()).into_iter().map(|(_, _, is_skipped)| is_skipped).collect();
        assert_eq!(skipped, [true, false, true], "{model}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_conversation_goes_on_after_it_was_resumed() {
    let test_agent = TestAgent::builder()
        .model("gemini/gemini-3.5-flash")
        .script(SCRIPT)
        .simulator_in_process()
        .start()
        .await;
    test_agent.say("Which colour?").await;
    let before = calls(&test_agent.last_sent().json());
    let resumed = test_agent.resume();
    resumed.say("And now?").await;
    let sent = resumed.last_sent();
    assert_eq!((sent.status, calls(&sent.json())), (200, before), "{}", json!(sent.answer));
}
