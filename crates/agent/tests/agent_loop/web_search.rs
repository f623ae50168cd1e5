use hardpan_agent::events::{Note, NoteKind};
use hardpan_context::{LayoutName, Target};
use hardpan_economy::ledger::Account;
use hardpan_models::Catalogue;
use hardpan_prompt::{MessageBody, MessagePart, WebSource};
use hardpan_test_support::TestAgent;
use serde_json::{Value, json};

const SCRIPT: &str = "
turns:
  - {web_search: rust news, text: Here it is.}
default: {text: Fine.}
";
const MODELS: [&str; 3] = ["claude-sonnet-5", "gpt-5.2", "gemini/gemini-3.5-flash"];

async fn agent(model: &str, layout: LayoutName, most: Option<u32>) -> TestAgent {
    let test_agent =
        TestAgent::builder().layout(layout).model(model).script(SCRIPT).simulator_in_process().start().await;
    test_agent.workspace().web_search = most;
    test_agent.say("What is new?").await;
    test_agent.say("And then?").await;
    test_agent
}

fn notes<T>(test_agent: &TestAgent, wanted: impl Fn(NoteKind) -> Option<T>) -> Vec<T> {
    test_agent.events_of::<Note>().into_iter().filter_map(|note| wanted(note.kind)).collect()
}

fn searches(test_agent: &TestAgent) -> Vec<String> {
    notes(test_agent, |kind| if let NoteKind::WebSearch { query } = kind { Some(query) } else { None })
}

/// The blocks of the search as the session has them.
fn stored_blocks(test_agent: &TestAgent) -> Vec<Value> {
    let messages = test_agent.agent.messages();
    let parts = messages.iter().flat_map(|message| match &*message.body {
        MessageBody::Assistant { content, .. } => content.clone(),
        _ => Vec::new(),
    });
    let blocks = parts.filter_map(|part| match part {
        MessagePart::ProviderBlock(block) => Some(block.json.value()),
        _ => None,
    });
    blocks.collect()
}

/// How often a value stands in another one, at any depth.
fn count(value: &Value, wanted: &Value) -> usize {
    let inner = match value {
        Value::Array(values) => values.iter().map(|value| count(value, wanted)).sum(),
        Value::Object(fields) => fields.values().map(|value| count(value, wanted)).sum(),
        _ => 0,
    };
    inner + usize::from(value == wanted)
}

fn bodies(test_agent: &TestAgent) -> Vec<Value> {
    test_agent.sent_bodies().iter().map(|body| serde_json::from_str(body).expect("JSON")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_told_billed_and_goes_back_as_it_was() {
    let declarations = [
        json!({"type": "web_search_20250305", "name": "web_search", "max_uses": 3}),
        json!({"type": "web_search"}),
        json!({"googleSearch": {}}),
    ];
    let fees = [0.01, 0.01, 0.014];
    for (number, model) in MODELS.into_iter().enumerate() {
        for layout in LayoutName::ALL {
            let test_agent = agent(model, layout, Some(3)).await;
            assert_eq!(searches(&test_agent), ["rust news"], "{model}, {layout}");
            let mut blocks = stored_blocks(&test_agent);
            assert!(!blocks.is_empty(), "{model}, {layout}");
            if number == 1 {
                // The Responses API gets no ids.
                blocks.iter_mut().for_each(|block| drop(block.as_object_mut().unwrap().shift_remove("id")));
            }
            let bodies = bodies(&test_agent);
            for (place, body) in bodies.iter().enumerate() {
                assert_eq!(count(&body["tools"], &declarations[number]), 1, "{model}, {layout}: {body}");
                for block in &blocks {
                    assert_eq!(count(body, block), place, "{model}, {layout}, {block}: {body}");
                }
            }
            let ledger = test_agent.agent.ledger();
            let fee = ledger.by_key[&Account::web_search()].dollars;
            assert!((fee - fees[number]).abs() < 1e-9, "{model}: {fee}");
            let rows: f64 = ledger.by_key.values().map(|totals| totals.dollars).sum();
            assert!((rows - ledger.total.dollars).abs() < 1e-9, "{model}: it adds up");
            let total = ledger.total.dollars;
            let resumed = test_agent.resume();
            assert!((resumed.agent.ledger().total.dollars - total).abs() < 1e-9, "{model}, {layout}");
            resumed.say("And now?").await;
            assert_eq!(count(&resumed.last_sent().json(), &blocks[0]), 1, "{model}, {layout}");
        }
    }
}

fn target(model: &str) -> Target {
    let (provider, model) = model.split_once('/').map_or((None, model), |(name, model)| (Some(name), model));
    Target::new(Catalogue::builtin(), provider, model).expect("a model")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_that_an_answer_cites_are_told_and_stored() {
    for model in MODELS {
        let test_agent = agent(model, LayoutName::Strata, Some(3)).await;
        let told = notes(&test_agent, |kind| match kind {
            NoteKind::Sources { sources } => Some(sources),
            _ => None,
        });
        let [sources] = &told[..] else { panic!("{model}: {told:?}") };
        let [WebSource { title, url }] = &sources[..] else { panic!("{model}: {sources:?}") };
        assert!(
            title == "About rust news" && url.starts_with("https://example.com/"),
            "{model}: {sources:?}"
        );
        let stored = std::fs::read_to_string(test_agent.session_path()).unwrap();
        assert!(stored.contains(&format!(r#""sources":[{{"title":"{title}","url":"{url}"}}]"#)), "{stored}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_gets_the_text_and_no_blocks() {
    for (number, model) in MODELS.into_iter().enumerate() {
        for other in MODELS.into_iter().filter(|other| *other != model) {
            let test_agent = agent(model, LayoutName::Strata, Some(3)).await;
            test_agent.agent.select_model(target(other)).await.unwrap();
            test_agent.say("And you?").await;
            let last = bodies(&test_agent).pop().unwrap();
            for block in stored_blocks(&test_agent) {
                assert_eq!(count(&last, &block), 0, "{model} to {other}: {last}");
            }
            assert!(last.to_string().contains("Here it is."), "{model} to {other}: {last}");
            // Back again, the first model gets what it wrote.
            test_agent.agent.select_model(target(model)).await.unwrap();
            test_agent.say("And again?").await;
            let last = bodies(&test_agent).pop().unwrap();
            let mut first = stored_blocks(&test_agent).remove(0);
            if number == 1 {
                first.as_object_mut().unwrap().shift_remove("id");
            }
            assert_eq!(count(&last, &first), 1, "{model} after {other}: {last}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_setting_or_the_search_nothing_is_asked_for() {
    let test_agent = agent("claude-sonnet-5", LayoutName::Strata, None).await;
    assert!(!test_agent.sent_bodies()[0].contains("web_search"));
    assert_eq!(searches(&test_agent), Vec::<String>::new());
    let test_agent = agent("gemini/gemini-2.5-flash", LayoutName::Strata, Some(3)).await;
    assert!(!test_agent.sent_bodies()[0].contains("googleSearch"));
    // Searches of before are left out once searching is off.
    let test_agent = agent("claude-sonnet-5", LayoutName::Strata, Some(3)).await;
    test_agent.workspace().web_search = None;
    test_agent.say("And now?").await;
    let last = test_agent.sent_bodies().pop().unwrap();
    assert!(!last.contains("web_search") && last.contains("Here it is."), "{last}");
}
