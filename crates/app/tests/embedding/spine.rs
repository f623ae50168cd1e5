//! What the spine is told in a conversation, from where it really comes, and how it wakes the agent.

use std::path::Path;
use std::time::Duration;

use hardpan_agent::RunEnd;
use hardpan_app::ConversationApp;
use hardpan_app::options::SessionChoice;
use hardpan_panels::Panel;
use jiff::SignedDuration;
use serde_json::{Value, json};

use super::panels::{PanelHome, prompt, results, speakers};

/// Polls until something holds. Far longer than it takes: a machine may have other work.
async fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..6000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what} has not happened");
}

/// The notifications: what kind, what text, and whether they are processed.
fn notifications(app: &ConversationApp) -> Vec<(String, String, bool)> {
    let saved = app.panels.spine().unwrap().save().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let all = saved["notifications"].as_array().cloned().unwrap_or_default();
    all.iter()
        .map(|one| (text(&one["kind"]), text(&one["text"]), one["processed"].as_bool().unwrap()))
        .collect()
}

fn of_kind(app: &ConversationApp, kind: &str) -> Vec<(String, bool)> {
    let all = notifications(app).into_iter().filter(|(found, ..)| found == kind);
    all.map(|(_, text, processed)| (text, processed)).collect()
}

/// Lets a timer be due soon: the shortest that the model can set is a minute.
fn set_timer(app: &ConversationApp, milliseconds: i64) {
    let due = app.agent.now() + SignedDuration::from_millis(milliseconds);
    app.panels.spine().unwrap().restore(Some(&json!({"timers": [{"due": due, "text": "look at it"}]})));
}

const OPEN_AND_EDIT: &str = r#"
turns:
  - when: {contains: Open it}
    tool_calls:
      - {name: panel, arguments: {action: todo_add, text: "first\nsecond"}}
      - {name: panel, arguments: {action: open, target: src/lib.rs}}
  - text: It is open.
  - when: {contains: Change it yourself}
    tool_calls: [{name: bash, arguments: {command: "echo '// by the agent' >> src/lib.rs"}}]
default: {text: I see.}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn messages_files_todos_and_a_resume_are_told() {
    let home = PanelHome::new(OPEN_AND_EDIT, "layout = \"panels\"\n").await;
    let work = home.home.folder.path().join("work");
    let app = home.open(SessionChoice::New).await;
    assert_eq!(prompt(&app, "Open it").await, RunEnd::Done);
    assert_eq!(of_kind(&app, "user_message"), [("in the conversation".to_owned(), true)]);
    assert_eq!(of_kind(&app, "todo_left"), [("2 todos are not done".to_owned(), false)]);
    assert_eq!(of_kind(&app, "file_changed"), []);

    // The same bytes again are no change, and what the agent does is none of somebody else.
    std::fs::write(work.join("src/lib.rs"), "pub fn library() {}\n").unwrap();
    assert_eq!(prompt(&app, "Go on").await, RunEnd::Done);
    assert_eq!(prompt(&app, "Change it yourself").await, RunEnd::Done);
    assert!(std::fs::read_to_string(work.join("src/lib.rs")).unwrap().contains("by the agent"));
    assert_eq!(prompt(&app, "Go on").await, RunEnd::Done);
    assert_eq!(of_kind(&app, "file_changed"), []);

    std::fs::write(work.join("src/lib.rs"), "pub fn other() {}\n").unwrap();
    assert_eq!(prompt(&app, "Go on").await, RunEnd::Done);
    // The request showed it, and was answered.
    assert_eq!(of_kind(&app, "file_changed"), [("src/lib.rs".to_owned(), true)]);
    app.agent.shutdown().await.unwrap();
    drop(app);

    let home = PanelHome::new(OPEN_AND_EDIT, "[spine]\nauto_continue = true\nturns = 1\n").await;
    let app = home.open(SessionChoice::New).await;
    prompt(&app, "Hello").await;
    app.agent.shutdown().await.unwrap();
    drop(app);
    let app = home.open(SessionChoice::Latest).await;
    assert_eq!(of_kind(&app, "reload"), [("the conversation was resumed".to_owned(), false)]);
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_changed_while_nobody_ran_is_told_after_a_restart_and_only_then() {
    let home = PanelHome::new(OPEN_AND_EDIT, "layout = \"panels\"\n").await;
    let file = home.home.folder.path().join("work/src/lib.rs");
    let app = home.open(SessionChoice::New).await;
    prompt(&app, "Open it").await;
    let body = |app: &ConversationApp| {
        let items = app.panels.registry.open_files();
        assert_eq!(items.iter().map(|path| &**path).collect::<Vec<_>>(), ["src/lib.rs"]);
    };
    body(&app);
    app.agent.shutdown().await.unwrap();
    drop(app);

    // Restarted with nothing changed: the same bytes again, and nothing is told.
    std::fs::write(&file, "pub fn library() {}\n").unwrap();
    let app = home.open(SessionChoice::Latest).await;
    body(&app);
    prompt(&app, "Go on").await;
    assert_eq!(of_kind(&app, "file_changed"), []);
    app.agent.shutdown().await.unwrap();
    drop(app);

    std::fs::write(&file, "pub fn changed_meanwhile() {}\n").unwrap();
    let app = home.open(SessionChoice::Latest).await;
    let preview = app.preview_request("What is next?").await.unwrap();
    let text = String::from_utf8(preview.http.body.to_vec()).unwrap();
    assert!(text.contains("pub fn changed_meanwhile()") && !text.contains("pub fn library()"), "{text}");
    prompt(&app, "Go on").await;
    assert_eq!(of_kind(&app, "file_changed"), [("src/lib.rs".to_owned(), true)]);
    prompt(&app, "Go on").await;
    assert_eq!(of_kind(&app, "file_changed").len(), 1);
    app.agent.shutdown().await.unwrap();
}

const CONSOLES: &str = r#"
turns:
  - when: {contains: Start them}
    tool_calls:
      - {name: console, arguments: {action: start, text: "until [ -e go ]; do sleep 0.05; done; echo it is time; sleep 1000"}}
      - {name: console, arguments: {action: watch, id: P10, text: it is time}}
      - {name: console, arguments: {action: start, text: "until [ -e end ]; do sleep 0.05; done; exit 3"}}
  - text: They run.
default: {text: I see.}
"#;

fn touch(path: &Path) {
    std::fs::write(path, "").unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_that_prints_or_ends_wakes_an_idle_agent() {
    let config = "panels = [\"console\", \"todo\", \"spine\"]\n[spine]\nauto_continue = true\n";
    let home = PanelHome::new(CONSOLES, config).await;
    let work = home.home.folder.path().join("work");
    let app = home.open(SessionChoice::New).await;
    assert_eq!(prompt(&app, "Start them").await, RunEnd::Done);
    assert!(results(&app)[0].starts_with("Started as P10"), "{:?}", results(&app));
    let first = speakers(&app);
    assert!(!first.contains(&"spine"));

    touch(&work.join("go"));
    wait_until("the agent wakes", || speakers(&app).len() == first.len() + 2).await;
    assert_eq!(speakers(&app)[first.len()..], ["spine", "model"]);
    app.agent.wait_until_idle().await;
    assert_eq!(of_kind(&app, "console"), [("P10 printed \"it is time\"".to_owned(), true)]);

    touch(&work.join("end"));
    wait_until("the agent wakes again", || speakers(&app).len() == first.len() + 4).await;
    app.agent.wait_until_idle().await;
    assert_eq!(of_kind(&app, "console")[1], ("P11 ended with exit code 3".to_owned(), true));
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timer_wakes_an_idle_agent_unless_that_is_off_or_was_stopped() {
    let home = PanelHome::new("default: {text: I see.}\n", "[spine]\nauto_continue = true\n").await;
    let app = home.open(SessionChoice::New).await;
    prompt(&app, "Hello").await;
    assert_eq!(speakers(&app), ["user", "model"]);
    set_timer(&app, 200);
    wait_until("the agent wakes", || speakers(&app).len() == 4).await;
    assert_eq!(speakers(&app), ["user", "model", "spine", "model"]);
    app.agent.wait_until_idle().await;
    assert_eq!(of_kind(&app, "timer"), [("look at it".to_owned(), true)]);

    // Esc while it rests: the timer is due, and nothing happens until the person speaks.
    app.agent.abort();
    set_timer(&app, 0);
    wait_until("the timer is due", || of_kind(&app, "timer") == [("look at it".to_owned(), false)]).await;
    assert!(!app.agent.is_busy());
    assert_eq!(speakers(&app).len(), 4);
    prompt(&app, "What is it?").await;
    assert_eq!(speakers(&app)[4..6], ["user", "model"]);
    assert_eq!(of_kind(&app, "timer"), [("look at it".to_owned(), true)]);
    app.agent.shutdown().await.unwrap();

    let home = PanelHome::new("default: {text: I see.}\n", "panels = [\"spine\"]\n").await;
    let app = home.open(SessionChoice::New).await;
    set_timer(&app, 0);
    prompt(&app, "Hello").await;
    // The request showed it; nothing was said by itself.
    assert_eq!(of_kind(&app, "timer"), [("look at it".to_owned(), true)]);
    assert_eq!(speakers(&app), ["user", "model"]);
    app.agent.shutdown().await.unwrap();
}
