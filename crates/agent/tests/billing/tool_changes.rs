//! Tools that are switched off and on in the middle of a conversation, over HTTP.

use std::sync::Arc;

use hardpan_agent::events::Note;
use hardpan_context::LayoutName;
use hardpan_economy::{Cause, PlannedAction};
use hardpan_test_support::{LookTool, TestAgent, Toolset, numbered_lines};
use hardpan_tools::{ToolSource, ToolState};
use serde_json::{Value, json};

use crate::cache_lifetimes::units;

async fn agent(model: &str, layout: LayoutName) -> TestAgent {
    let builder = TestAgent::builder().tools(Toolset::Look).item("file:a.rs", &numbered_lines("alpha", 400));
    let test_agent = builder.layout(layout).model(model).start().await;
    test_agent.say("Look.").await;
    test_agent
}

/// The last body: its tools, and the contents of its system messages that last.
fn last_body(test_agent: &TestAgent) -> (Value, Vec<Value>) {
    let body = test_agent.last_sent().json();
    let messages = body["messages"].as_array().unwrap().iter();
    let lasting = messages.filter(|message| message["role"] == "system" && message["clear_at"].is_null());
    (body["tools"].clone(), lasting.map(|message| message["content"].clone()).collect())
}

#[tokio::test]
async fn a_tool_that_goes_and_comes_back_loses_nothing() {
    for model in ["claude-opus-4-8", "claude-opus-5-5", "claude-haiku-5-5"] {
        let test_agent = agent(model, LayoutName::Strata).await;
        let (tools, changes) = last_body(&test_agent);
        assert_eq!(changes, Vec::<Value>::new());
        let forecast = test_agent.agent.forecast_cost(PlannedAction::ToggleTool("listen")).unwrap();
        assert_eq!(forecast.sentence, "Switching the tool listen now costs nothing.");
        let removal = json!([{"type": "tool_removal", "tool": {"type": "tool_reference", "name": "listen"}}]);
        let addition =
            json!([{"type": "tool_addition", "tool": {"type": "tool_reference", "name": "listen"}}]);
        let mut expected = Vec::new();
        for (state, change) in [(ToolState::Off, removal), (ToolState::On, addition)] {
            test_agent.agent.switch_tool("listen", state).await.unwrap();
            test_agent.say("Go on.").await;
            expected.push(change);
            assert_eq!(last_body(&test_agent), (tools.clone(), expected.clone()), "{model}");
        }
        // It stays said, in a resumed conversation, too.
        let test_agent = test_agent.resume();
        test_agent.say("And now?").await;
        assert_eq!(last_body(&test_agent), (tools, expected), "{model}");
        assert_eq!(test_agent.losses(), [], "{model}");
        assert_eq!(test_agent.events_of::<Note>(), [], "{model}: no reasoning was dropped");
    }
}

#[tokio::test]
async fn a_new_tool_is_defined_at_the_end() {
    let test_agent = agent("claude-opus-5-5", LayoutName::Strata).await;
    let (tools, _) = last_body(&test_agent);
    test_agent.change_tools();
    test_agent.say("Go on.").await;
    let (declared, changes) = last_body(&test_agent);
    assert_eq!(declared, tools);
    let [removal, addition] = &changes[0].as_array().unwrap()[..] else { panic!("{changes:?}") };
    assert_eq!(removal["tool"]["name"], "listen");
    assert_eq!(addition["tool"]["definition"]["name"], "smell");
    assert_eq!(test_agent.losses(), []);
}

/// Models and layouts that do not tell of tools by messages, with three protocols.
fn waiting_cases() -> impl Iterator<Item = (&'static str, LayoutName)> {
    let models = ["claude-sonnet-5", "gpt-5.2", "gemini/gemini-3.5-flash"];
    models.into_iter().flat_map(|model| LayoutName::ALL.map(|layout| (model, layout)))
}

fn is_lost_by_tools(test_agent: &TestAgent) -> bool {
    test_agent.losses().iter().any(|loss| matches!(loss.cause, Cause::ToolsChanged { .. }))
}

/// The bytes of the tools in each body that was sent.
fn tools_as_sent(test_agent: &TestAgent) -> Vec<String> {
    let tools = |body: &String| {
        let body: Value = serde_json::from_str(body).unwrap();
        body["tools"].to_string()
    };
    test_agent.sent_bodies().iter().map(tools).collect()
}

#[tokio::test]
async fn the_list_of_tools_stays_until_the_cache_is_lost_and_calls_are_refused() {
    for (model, layout) in waiting_cases() {
        let script = "
turns:
  - {text: Hello.}
  - {tool_calls: [{id: c1, name: listen}]}
default: {text: Fine.}
";
        let builder = TestAgent::in_process().tools(Toolset::Look).script(script);
        let builder = builder.item("file:a.rs", &numbered_lines("alpha", 400));
        let test_agent = builder.layout(layout).model(model).start().await;
        test_agent.say("Look.").await;
        test_agent.agent.switch_tool("listen", ToolState::Off).await.unwrap();
        test_agent.say("Listen.").await;
        let refused =
            "failed: The user switched the tool listen off, so the call was not run. The tools are: look";
        assert!(
            test_agent.transcript_lines()[4].starts_with(refused),
            "{model}, {layout}: {:?}",
            test_agent.transcript_lines()
        );
        // A new tool waits as well, also in a resumed conversation.
        let add_smell = |test_agent: &TestAgent| {
            let smell = Arc::new(LookTool::new("smell"));
            test_agent.agent.tools().register(&ToolSource::built_in(), smell).unwrap();
        };
        add_smell(&test_agent);
        test_agent.say("Smell.").await;
        let test_agent = test_agent.resume();
        add_smell(&test_agent);
        test_agent.say("Go on.").await;
        let sent = tools_as_sent(&test_agent);
        assert!(sent.iter().all(|tools| *tools == sent[0]), "{model}, {layout}: {sent:?}");
        assert!(sent[0].contains("listen") && !sent[0].contains("smell"));
        assert!(!is_lost_by_tools(&test_agent), "{model}, {layout}: {:?}", test_agent.losses());
        // Once nothing can be read, the tools are declared as they are.
        test_agent.pass_minutes(25 * 60);
        test_agent.say("Good morning.").await;
        let last = tools_as_sent(&test_agent).pop().unwrap();
        assert!(!last.contains("listen") && last.contains("smell"), "{model}, {layout}: {last}");
    }
}

#[tokio::test]
async fn another_list_at_once_is_foreseen_and_costs_more_than_waiting() {
    // In `inline` so short a conversation is not cached at all.
    for layout in [LayoutName::Strata, LayoutName::Panels, LayoutName::Tiers] {
        let mut prices = Vec::new();
        for is_now in [false, true] {
            let test_agent = agent("claude-sonnet-5", layout).await;
            let forecast = test_agent.agent.forecast_cost(PlannedAction::ToggleTool("listen")).unwrap();
            assert!(forecast.tokens_written_again > 0, "{layout}");
            let is_foldable = forecast.sentence.ends_with("free at the next fold.");
            assert_eq!(is_foldable, layout == LayoutName::Strata, "{}", forecast.sentence);
            test_agent.agent.switch_tool("listen", ToolState::Off).await.unwrap();
            if is_now {
                test_agent.agent.declare_tools_now().await.unwrap();
            }
            test_agent.say("Go on.").await;
            prices.push(units(&test_agent.usages()[1..]));
            assert_eq!(is_lost_by_tools(&test_agent), is_now, "{layout}: {:?}", test_agent.losses());
        }
        assert!(prices[1] > 2.0 * prices[0], "{layout}: {prices:?}");
    }
}

#[tokio::test]
async fn a_fold_declares_the_tools_as_they_are() {
    for model in ["claude-sonnet-5", "claude-opus-5-5"] {
        let test_agent = agent(model, LayoutName::Strata).await;
        test_agent.agent.switch_tool("listen", ToolState::Off).await.unwrap();
        test_agent.say("Go on.").await;
        assert!(tools_as_sent(&test_agent)[1].contains("listen"));
        test_agent.workspace().fold = true;
        test_agent.say("Go on.").await;
        test_agent.workspace().fold = false;
        test_agent.say("Go on.").await;
        let sent = tools_as_sent(&test_agent);
        assert!(!sent[2].contains("listen") && sent[3] == sent[2], "{model}: {sent:?}");
        assert_eq!(last_body(&test_agent).1, Vec::<Value>::new(), "{model}: nothing is left to tell");
    }
}
