//! What a person puts into the context by name, in the live agent and in each layout: images, documents,
//! histories; and where context stands.

use base64::Engine;
use hardpan_agent::CustomMessage;
use hardpan_app::ConversationApp;
use hardpan_app::FaceHooks;
use hardpan_app::context_items::{ContextItemError, DocumentProblem, OpenedItem};
use hardpan_app::options::{OpenOptions, SessionChoice, TargetOptions};
use hardpan_prompt::MessagePart;
use hardpan_test_support::{LookTool, pixel};
use hardpan_tools::ToolSource;
use serde_json::Value;
use std::sync::Arc;

use super::{TestHome, say};

const LAYOUTS: [&str; 4] = ["strata", "panels", "tiers", "inline"];

fn options(home: &TestHome, layout: &str, session: SessionChoice) -> OpenOptions {
    let target = TargetOptions { layout: Some(layout.to_owned()), ..TargetOptions::default() };
    OpenOptions { target, ..home.options(session) }
}

async fn open(home: &TestHome, layout: &str, session: SessionChoice) -> ConversationApp {
    let app = ConversationApp::open(&options(home, layout, session), &FaceHooks::default()).unwrap();
    app.agent.start().await;
    app
}

/// The body of the next request.
async fn next_body(app: &ConversationApp) -> Value {
    let preview = app.preview_request("What is next?").await.unwrap();
    serde_json::from_slice(&preview.http.body).unwrap()
}

/// The roles and texts of messages in order, with `[image]` for images.
fn parts(body: &Value) -> Vec<String> {
    let messages = body["messages"].as_array().unwrap().iter();
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => part["text"].as_str().unwrap().to_owned(),
        Some("image" | "image_url") => "[image]".to_owned(),
        other => format!("[{other:?}]"),
    };
    messages
        .flat_map(|message| match &message["content"] {
            Value::Array(content) => content.iter().map(part).collect::<Vec<_>>(),
            content => vec![content.as_str().unwrap_or_default().to_owned()],
        })
        .collect()
}

fn write_pixel(home: &TestHome, name: &str) {
    let bytes = base64::engine::general_purpose::STANDARD.decode(&*pixel().data).unwrap();
    std::fs::write(home.folder.path().join("work").join(name), bytes).unwrap();
}

/// What a request says, but for the line that has the time.
fn without_clock(parts: Vec<String>) -> Vec<String> {
    parts.into_iter().filter(|part| !part.starts_with("Current date and time")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_is_context_in_inline_and_stays_with_its_prompt_elsewhere() {
    for layout in LAYOUTS {
        let home = TestHome::new();
        write_pixel(&home, "pic.png");
        let app = open(&home, layout, SessionChoice::New).await;
        say(&app, "Look at @pic.png please").await;
        say(&app, "And then?").await;
        let shown = parts(&next_body(&app).await);
        let images: Vec<usize> = (0..shown.len()).filter(|&at| shown[at] == "[image]").collect();
        assert_eq!(images.len(), 1, "{layout}: {shown:#?}");
        let (at, prompt) = (images[0], shown.iter().position(|text| text == "What is next?").unwrap());
        if layout == "inline" {
            assert!(shown[at - 1].contains("pic.png") && at < prompt && at + 3 > prompt, "{shown:#?}");
            assert_eq!(app.open_items(), ["pic.png"]);
            // It comes back with the conversation, and goes when it is closed.
            app.agent.shutdown().await.unwrap();
            drop(app);
            let app = open(&home, layout, SessionChoice::Latest).await;
            assert_eq!(without_clock(parts(&next_body(&app).await)), without_clock(shown));
            assert_eq!(app.close_item("pic.png").await.unwrap(), "pic.png");
            assert!(!parts(&next_body(&app).await).contains(&"[image]".to_owned()));
            assert!(matches!(app.close_item("pic.png").await, Err(ContextItemError::NotOpen(_))));
            assert_eq!(app.open_item("pic.png").unwrap(), OpenedItem::ContextImage);
        } else {
            assert!(shown[at - 1].contains("Look at @pic.png"), "{layout}: {shown:#?}");
            assert_eq!(app.open_item("pic.png").unwrap(), OpenedItem::PromptImage, "{layout}");
            say(&app, "And this?").await;
            let shown = parts(&next_body(&app).await);
            assert_eq!(shown.iter().filter(|text| *text == "[image]").count(), 2, "{layout}: {shown:#?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_goes_with_the_last_prompt_of_inline_where_the_server_takes_it() {
    for layout in LAYOUTS {
        let home = TestHome::new();
        let provider = r#"{
            "providers": [{"id": "own", "base_url": "https://own.example/v1", "document_context": true}],
            "models": [{"provider": "own", "id": "m", "context": 200000}]}"#;
        home.write("user/config/models.json", provider);
        let mut options = options(&home, layout, SessionChoice::New);
        options.target.provider = Some("own".into());
        options.target.model = Some("m".into());
        options.documents = vec!["doc:first".into()];
        let app = ConversationApp::open(&options, &FaceHooks::default()).unwrap();
        app.agent.start().await;
        let problem = (layout != "inline").then_some(DocumentProblem::Layout);
        assert_eq!(app.open_item("doc:second").unwrap(), OpenedItem::Document { problem });
        assert!(matches!(app.open_item("doc:a b"), Err(ContextItemError::DocumentId(_))));
        assert_eq!(app.open_items(), ["doc:first", "doc:second"]);
        let body = next_body(&app).await;
        let attached: Vec<&Value> = body["messages"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|message| message.get("documentContext").is_some())
            .collect();
        if layout == "inline" {
            assert_eq!(attached.len(), 1, "{body:#}");
            assert_eq!(attached[0]["documentContext"]["documentIds"], serde_json::json!(["first", "second"]));
            assert_eq!(attached[0], body["messages"].as_array().unwrap().last().unwrap());
        } else {
            assert_eq!(attached, Vec::<&Value>::new(), "{layout}");
            let preview = app.preview_request("Hi").await.unwrap();
            let left = preview.assembled.prompt.left_out.iter().map(|left| format!("{left:?}"));
            assert_eq!(left.filter(|left| left.contains("document:")).count(), 2, "{layout}");
        }
        assert_eq!(app.close_item("doc:first").await.unwrap(), "doc:first");
        assert_eq!(app.open_items(), ["doc:second"]);
    }
    // A provider that knows none says so.
    let home = TestHome::new();
    let app = open(&home, "inline", SessionChoice::New).await;
    let opened = app.open_item("doc:x").unwrap();
    assert_eq!(opened, OpenedItem::Document { problem: Some(DocumentProblem::Provider) });
}

#[tokio::test(flavor = "multi_thread")]
async fn context_of_inline_stands_before_the_persons_last_message_also_when_others_follow() {
    let home = TestHome::new();
    let app = open(&home, "inline", SessionChoice::New).await;
    say(&app, "First").await;
    app.open_item("notes.txt").unwrap();
    let content = vec![MessagePart::text("From an extension.")];
    app.agent.attach_to_next_prompt(CustomMessage {
        custom_type: "test".into(),
        content,
        display: false,
        details: None,
    });
    let shown = parts(&next_body(&app).await);
    let at = |text: &str| {
        shown.iter().position(|shown| shown.contains(text)).unwrap_or_else(|| panic!("{shown:#?}"))
    };
    let order = [at("First"), at("Remember the milk."), at("What is next?"), at("From an extension.")];
    assert!(order.is_sorted(), "{order:?} {shown:#?}");
    // Whatever else is context (the list of folders) stands there, too.
    assert!(order[1] > at("First") + 1, "{shown:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_without_a_snippet_is_listed_by_its_description() {
    for layout in LAYOUTS {
        let home = TestHome::new();
        home.write("user/config/config.toml", "sandbox = false\npanels = [\"git\"]\n");
        let app = open(&home, layout, SessionChoice::New).await;
        app.agent.tools().register(&ToolSource::named("test"), Arc::new(LookTool::new("look"))).unwrap();
        let body = next_body(&app).await.to_string();
        assert!(body.contains("- git: keep the output of a git command in view"), "{layout}: {body}");
        assert!(body.contains("- look: Looks at something."), "{layout}: {body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_are_frozen_into_a_history_panel_which_can_be_closed_and_restored() {
    for layout in LAYOUTS {
        let home = TestHome::new();
        let app = open(&home, layout, SessionChoice::New).await;
        for text in ["My number is 4711.", "And my colour?", "It is blue."] {
            say(&app, text).await;
        }
        let messages = app.agent.messages();
        let second = messages.iter().find(|message| format!("{message:?}").contains("my colour")).unwrap();
        if layout != "panels" {
            let refused = app.agent.freeze_messages(None).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("the layout {layout} freezes no messages")), "{refused}");
            continue;
        }
        assert!(app.agent.freeze_messages(Some("nowhere")).is_err());
        // Up to the turn before that message.
        app.agent.freeze_messages(Some(&second.id.0)).unwrap();
        say(&app, "Go on.").await;
        assert_eq!(app.agent.histories().len(), 1);
        let body = next_body(&app).await;
        let is_message = |body: &Value| parts(body).contains(&"My number is 4711.".to_owned());
        let whole = body.to_string();
        assert!(!is_message(&body) && whole.contains("[H1]") && whole.contains("4711"), "{whole}");
        assert!(parts(&body).contains(&"It is blue.".to_owned()), "{whole}");
        app.agent.shutdown().await.unwrap();
        drop(app);
        let app = open(&home, layout, SessionChoice::Latest).await;
        let body = next_body(&app).await;
        assert!(!is_message(&body) && body.to_string().contains("[H1]"), "{body}");
        assert_eq!(app.close_item("H1").await.unwrap(), "H1");
        let body = next_body(&app).await.to_string();
        assert!(!body.contains("4711") && !body.contains("[H1]") && body.contains("It is blue."), "{body}");
        // The session keeps everything.
        let kept = app.read_session().unwrap();
        assert!(kept.entries.iter().any(|entry| format!("{entry:?}").contains("4711")));
    }
}
