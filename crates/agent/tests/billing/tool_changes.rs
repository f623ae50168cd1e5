//! Tools that are switched off and on in the middle of a conversation, over HTTP.

use hardpan_agent::events::Note;
use hardpan_context::LayoutName;
use hardpan_economy::{Cause, PlannedAction};
use hardpan_test_support::{TestAgent, Toolset, numbered_lines};
use hardpan_tools::ToolState;
use serde_json::{Value, json};

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

#[tokio::test]
async fn where_the_model_takes_no_changes_the_list_changes_and_that_is_foreseen() {
    let cases = [("claude-sonnet-5", LayoutName::Strata), ("claude-opus-5-5", LayoutName::Panels)];
    for (model, layout) in cases {
        let test_agent = agent(model, layout).await;
        let forecast = test_agent.agent.forecast_cost(PlannedAction::ToggleTool("listen")).unwrap();
        assert!(forecast.tokens_written_again > 0, "{model}, {layout}");
        test_agent.agent.switch_tool("listen", ToolState::Off).await.unwrap();
        test_agent.say("Go on.").await;
        let cause = test_agent.the_loss().await.cause;
        assert!(matches!(cause, Cause::ToolsChanged { .. }), "{model}, {layout}: {cause:?}");
    }
}
