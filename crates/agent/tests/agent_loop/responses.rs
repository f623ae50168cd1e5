//! The loop over OpenAI's Responses API: reasoning and parallel calls go back as they came.

use hardpan_context::{LayoutName, Target};
use hardpan_models::Catalogue;
use hardpan_test_support::TestAgent;
use serde_json::Value;

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
default: {reasoning: Again., text: Fine.}
";
const MODELS: [&str; 3] = ["openai/gpt-6.1-sol", "openai/gpt-5.5", "openai/gpt-5.6-luna"];

fn responses_agent(model: &str, layout: LayoutName) -> hardpan_test_support::TestAgentBuilder {
    TestAgent::builder().layout(layout).model(model).script(SCRIPT).simulator_in_process()
}

/// The items of the conversation's own calls, results and reasoning, by type. A layout may make calls
/// of its own.
fn items(body: &Value) -> Vec<String> {
    let input = body["input"].as_array().expect("items");
    let own = |item: &&Value| {
        let is_layouts = |field: &str| item[field].as_str().is_some_and(|id| id.starts_with("context_"));
        !is_layouts("call_id")
    };
    let name = |item: &Value| match item["type"].as_str() {
        Some("function_call") => Some(format!("call {}", item["arguments"].as_str()?)),
        Some("function_call_output") => Some("output".to_owned()),
        Some("reasoning") => {
            assert!(item["encrypted_content"].is_string(), "{item}");
            Some("reasoning".to_owned())
        }
        _ => None,
    };
    input.iter().filter(own).filter_map(name).filter(|name| !name.contains("panel")).collect()
}

/// The items without their breakpoints.
fn without_breakpoints(body: &Value) -> Vec<Value> {
    let mut items = body["input"].as_array().expect("items").clone();
    for item in &mut items {
        for field in ["content", "output"] {
            for part in item[field].as_array_mut().into_iter().flatten() {
                part.as_object_mut().expect("a part").remove("prompt_cache_breakpoint");
            }
        }
    }
    items
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_and_parallel_calls_go_back_in_order() {
    for model in MODELS {
        let test_agent = responses_agent(model, LayoutName::Strata).start().await;
        test_agent.say("Which colour?").await;
        assert!(test_agent.sent_requests().iter().all(|sent| sent.status == 200), "{model}");
        let body = test_agent.last_sent().json();
        let expected = [
            "reasoning",
            r#"call {"ms":1}"#,
            r#"call {"ms":2}"#,
            "output",
            "output",
            "reasoning",
            r#"call {"ms":3}"#,
            "output",
        ];
        assert_eq!(items(&body), expected, "{model}");
        assert_eq!(body["store"], false);
        assert_eq!(body["reasoning"]["effort"], "medium", "{model}");
        // What was sent stays as it was, but for the breakpoints, so that the cache is read.
        test_agent.say("Really?").await;
        let next = test_agent.last_sent().json();
        let (before, after) = (without_breakpoints(&body), without_breakpoints(&next));
        let same = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
        let differ = (before.get(same), after.get(same));
        assert!(
            same + 1 >= before.len(),
            "{model}: {same} of {} items are the same; {differ:?}",
            before.len()
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_layout_is_accepted() {
    for layout in LayoutName::ALL {
        let test_agent = responses_agent("openai/gpt-6-sol", layout).start().await;
        test_agent.say("Which colour?").await;
        test_agent.say("Really?").await;
        for sent in test_agent.sent_requests() {
            assert_eq!(sent.status, 200, "{layout}: {}", sent.answer);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn reasoning_of_another_model_stays_at_home_and_comes_back_with_it() {
    let test_agent = responses_agent("openai/gpt-6-sol", LayoutName::Strata).start().await;
    test_agent.say("Which colour?").await;
    let select = async |provider: &str, model: &str| {
        let target = Target::new(Catalogue::builtin(), Some(provider), model).expect("a model");
        test_agent.agent.select_model(target).await.expect("it is selected");
        test_agent.say("And now?").await;
        let sent = test_agent.last_sent();
        assert_eq!(sent.status, 200, "{}", sent.answer);
        sent.json()
    };
    let other = select("openai", "gpt-6.1-sol").await;
    assert!(!items(&other).contains(&"reasoning".to_owned()), "another model's reasoning is not sent");
    let claude = select("anthropic", "claude-sonnet-5-5").await;
    assert!(claude["messages"].is_array());
    let back = select("openai", "gpt-6-sol").await;
    assert_eq!(items(&back).iter().filter(|item| *item == "reasoning").count(), 3, "its own comes back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_opened_again_goes_on() {
    let test_agent = responses_agent("openai/gpt-5.6-luna", LayoutName::Strata).start().await;
    test_agent.say("Which colour?").await;
    let before = items(&test_agent.last_sent().json());
    let resumed = test_agent.resume();
    resumed.say("And now?").await;
    let sent = resumed.last_sent();
    assert_eq!(sent.status, 200, "{}", sent.answer);
    assert_eq!(items(&sent.json())[..before.len()], before[..]);
}
