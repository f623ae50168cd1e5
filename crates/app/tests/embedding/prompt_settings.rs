//! Prompt types, custom prompts, agent mode and the maps: as settings and as flags, in dry runs and in the
//! bodies of live requests.

use std::path::Path;
use std::sync::Arc;

use hardpan_app::options::{OpenOptions, RequestOptions, SessionChoice, TargetOptions};
use hardpan_app::request::assemble;
use hardpan_app::settings::Settings;
use hardpan_app::{ConversationApp, DiscardNotices, FaceHooks, NoticeSink};
use hardpan_context::{AgentMode, PromptType};
use serde_json::Value;

use super::TestHome;
use super::subagents::{TaskHome, prompt};

const SAY_FINE: &str = "default: {text: Fine.}";
const AGENT_TEXT: &str = include_str!("../../../../prompts/agent.md");

fn target(layout: &str, prompt: TargetOptions) -> TargetOptions {
    TargetOptions { layout: Some(layout.into()), ..prompt }
}

/// The body of a dry run.
async fn shown_body(home: &TestHome, target: TargetOptions) -> Value {
    let work = home.folder.path().join("work");
    let notices: Arc<dyn NoticeSink> = Arc::new(DiscardNotices);
    let settings = Arc::new(Settings::load(&work, home.user_folders(), &*notices).unwrap());
    let options = RequestOptions { prompt: Some("Hi".into()), target, ..RequestOptions::new(work) };
    let shown = assemble(&options, &settings, &notices).await.unwrap();
    serde_json::from_slice(shown.body()).unwrap()
}

/// The body of the first request that the server has seen.
async fn live_body(home: &TaskHome, target: TargetOptions) -> Value {
    let options = OpenOptions { target, ..home.options(SessionChoice::New) };
    let app = ConversationApp::open(&options, &FaceHooks::default()).unwrap();
    prompt(&app, "Hi").await;
    home.sent().last().unwrap().body.clone()
}

fn system_text(body: &Value) -> String {
    let blocks = body["system"].as_array().unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap()).collect()
}

fn begins_with_agent_text(body: &Value) -> bool {
    system_text(body).starts_with(AGENT_TEXT.trim_end())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prompt_type_and_a_custom_prompt_are_settings_and_flags() {
    let home = TaskHome::new(SAY_FINE, "").await;
    home.home.write("user/config/mine.md", "You answer in rhymes.\n");
    let path = home.home.folder.path().join("user/config/mine.md");
    let flags = |prompt_type, prompt_path: Option<&Path>| TargetOptions {
        prompt_type,
        prompt_path: prompt_path.map(Path::to_owned),
        ..TargetOptions::default()
    };
    // A path by itself means the prompt that it names; the agent's text stands before it.
    for (prompt_type, is_custom) in
        [(None, true), (Some(PromptType::Custom), true), (Some(PromptType::Agent), false)]
    {
        let target = target("inline", flags(prompt_type, Some(&path)));
        let (shown, live) = (shown_body(&home.home, target.clone()).await, live_body(&home, target).await);
        assert_eq!(system_text(&shown), system_text(&live), "{prompt_type:?}");
        assert!(begins_with_agent_text(&live), "{prompt_type:?}");
        assert_eq!(system_text(&live).contains("You answer in rhymes."), is_custom, "{prompt_type:?}");
    }
    let general = live_body(&home, target("inline", flags(None, None))).await;
    // The same from the settings, which a flag overrides.
    let config = home.home.folder.path().join("user/config/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let named = format!("prompt_path = {:?}\nagent_mode = \"off\"\n{text}", path.display().to_string());
    std::fs::write(&config, named).unwrap();
    let settled = live_body(&home, target("inline", TargetOptions::default())).await;
    assert!(system_text(&settled).starts_with("You answer in rhymes."), "{}", system_text(&settled));
    assert_eq!(settled["tools"], Value::Null);
    let on = TargetOptions { agent_mode: Some(AgentMode::On), ..flags(Some(PromptType::General), None) };
    let overridden = live_body(&home, target("inline", on)).await;
    assert_eq!(overridden["tools"], general["tools"]);
    assert_eq!(system_text(&overridden), system_text(&general));
}

#[tokio::test(flavor = "multi_thread")]
async fn without_agent_mode_no_tool_is_declared_and_none_runs() {
    let script = "
turns: [{undeclared: true, tool_calls: [{name: read, arguments: {path: notes.txt}}]}]
default: {text: Fine.}
";
    for layout in ["strata", "panels", "tiers", "inline"] {
        let home = TaskHome::new(script, "").await;
        let off = TargetOptions { agent_mode: Some(AgentMode::Off), ..TargetOptions::default() };
        let options = OpenOptions { target: target(layout, off), ..home.options(SessionChoice::New) };
        let app = ConversationApp::open(&options, &FaceHooks::default()).unwrap();
        prompt(&app, "Hi").await;
        let told = super::subagents::results(&app);
        assert!(told[0].0.starts_with("There is no tool named read."), "{layout}: {told:?}");
        let names = |body: &Value| -> Vec<String> {
            let tools = body["tools"].as_array().into_iter().flatten();
            tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
        };
        // Two layouts have a tool of their own, which shows context and is never called.
        let own = names(&home.sent()[0].body);
        assert!(!own.contains(&"read".to_owned()) && own.len() <= 1, "{layout}: {own:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_maps_can_be_left_out() {
    let home = TaskHome::new(SAY_FINE, "").await;
    home.home.write("work/src/deep/place.rs", "pub fn found_here() {}\n");
    let config = home.home.folder.path().join("user/config/config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    for (layout, word) in [("tiers", "place.rs"), ("inline", "deep")] {
        for is_sent in [true, false] {
            let maps = format!("use_repo_map = {is_sent}\ndirectory_map = {is_sent}\n");
            std::fs::write(&config, format!("{maps}{}", text.replace("map_tokens = 0\n", ""))).unwrap();
            let target = target(layout, TargetOptions::default());
            let (shown, live) =
                (shown_body(&home.home, target.clone()).await, live_body(&home, target).await);
            assert_eq!(shown["messages"].to_string().contains(word), is_sent, "{layout}");
            assert_eq!(live["messages"].to_string().contains(word), is_sent, "{layout}");
        }
    }
}
