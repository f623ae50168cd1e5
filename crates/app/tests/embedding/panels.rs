//! Panels in a conversation: the model uses all of them, in each layout, and a restart in the middle
//! changes no byte of the next request.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use hardpan_agent::events::ToolExecutionEnd;
use hardpan_agent::{ConversationError, Input, InputOutcome, InputSource, RunEnd};
use hardpan_app::ConversationApp;
use hardpan_app::FaceHooks;
use hardpan_app::OpenError;
use hardpan_app::approval::ApprovalMode;
use hardpan_app::options::{OpenOptions, ProviderAccess, SessionChoice};
use hardpan_panels::{ActionCall, NotificationKind};
use hardpan_prompt::{ItemKind, MessageBody, MessagePart};
use hardpan_session::LogErrorCause;
use hardpan_simulator::{Server, ServerConfig, serve};
use hardpan_test_support::scripted_engine;
use jiff::Timestamp;

use super::TestHome;

const ALL_PANELS: &str = r#"panels = ["todo", "library", "statistics", "tools", "tree", "memories", "spine", "logs", "scratchpad"]"#;

/// One answer that uses every panel, and later ones that change some.
const SCRIPT: &str = r#"
turns:
  - when: {contains: Use everything}
    text: I plan it.
    tool_calls:
      - {name: panel, arguments: {action: todo_add, text: "read the notes\nwrite the report"}}
      - {name: panel, arguments: {action: open, target: src/main.rs}}
      - {name: panel, arguments: {action: open, target: src/lib.rs}}
      - {name: panel, arguments: {action: close, target: P10}}
      - {name: panel, arguments: {action: skill_load, target: sort}}
      - {name: panel, arguments: {action: tool_off, target: fetch}}
      - {name: panel, arguments: {action: tree_describe, target: src/lib.rs, text: the library}}
      - {name: panel, arguments: {action: memory_write, target: build, text: Build with make.}}
      - {name: panel, arguments: {action: memory_write, target: key, text: "sk-ant-api03-a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5a1B2c3D4e5"}}
      - {name: panel, arguments: {action: timer, target: "60", text: look at the build}}
      - {name: panel, arguments: {action: log, text: planned}}
      - {name: panel, arguments: {action: scratch_write, target: facts, text: it is small}}
      - {name: fetch, arguments: {url: "http://127.0.0.1:1/"}}
  - when: {contains: Finish it}
    text: I finish it.
    tool_calls: [{name: panel, arguments: {action: todo_update, target: "1,2", text: done}}]
default: {text: That is all.}
"#;

pub struct PanelHome {
    pub home: TestHome,
    _server: Server,
}

impl PanelHome {
    pub async fn new(script: &str, config: &str) -> Self {
        let server = serve(ServerConfig::new(scripted_engine(script, ""))).await.unwrap();
        let home = TestHome::new();
        let provider = format!("[providers.anthropic]\nbase_url = \"{}/v1\"\n", server.url());
        let always = "model = \"claude-sonnet-5\"\nsandbox = false\nmap_tokens = 0\n";
        home.write("user/config/config.toml", &format!("{always}{config}\n{provider}"));
        home.write("user/config/keys.toml", "anthropic = \"a-key-of-the-test\"\n");
        let keys = home.folder.path().join("user/config/keys.toml");
        std::fs::set_permissions(keys, std::fs::Permissions::from_mode(0o600)).unwrap();
        home.write(
            "user/config/skills/sort/SKILL.md",
            "---\nname: sort\ndescription: How to sort\n---\nSort stably.\n",
        );
        home.write("work/src/main.rs", "fn main() {}\n");
        home.write("work/src/lib.rs", "pub fn library() {}\n");
        PanelHome { home, _server: server }
    }

    pub async fn open(&self, session: SessionChoice) -> ConversationApp {
        let options = OpenOptions {
            access: ProviderAccess::ByKey,
            approval: ApprovalMode::AllowAll,
            ..self.home.options(session)
        };
        // A program that another test starts holds the lock of a session until it runs.
        let is_locked = |error: &OpenError| match error {
            OpenError::Log(error) | OpenError::Conversation(ConversationError::Log(error)) => {
                matches!(error.cause, LogErrorCause::Busy)
            }
            _ => false,
        };
        let mut opened = ConversationApp::open(&options, &FaceHooks::default());
        for _ in 0..1000 {
            if !opened.as_ref().is_err_and(is_locked) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            opened = ConversationApp::open(&options, &FaceHooks::default());
        }
        let app = opened.unwrap();
        app.agent.start().await;
        app
    }
}

pub async fn prompt(app: &ConversationApp, text: &str) -> RunEnd {
    let (text, images) = (text.to_owned(), Vec::new());
    let input = Input { text, below: None, images, source: InputSource::Interactive, id: None };
    let outcome = app.agent.prompt(input).await.unwrap();
    app.save_state().await;
    match outcome {
        InputOutcome::Ran(end) => end,
        other => panic!("{other:?}"),
    }
}

/// The texts of the tool results, in order.
pub fn results(app: &ConversationApp) -> Vec<String> {
    let messages = app.agent.messages();
    let result = |body: &MessageBody| match body {
        MessageBody::ToolResult { content, .. } => match &content[..] {
            [MessagePart::Text { text }] => Some(text.to_string()),
            other => panic!("{other:?}"),
        },
        _ => None,
    };
    messages.iter().filter_map(|message| result(&message.body)).collect()
}

/// The body of the next request, with every time from `since` on as one word: the clock goes on.
async fn next_body(app: &ConversationApp, since: Timestamp) -> String {
    let preview = app.preview_request("What is next?").await.unwrap();
    let body = String::from_utf8(preview.http.body.to_vec()).unwrap();
    let mut stable = String::new();
    let mut rest = body.as_str();
    while let Some(at) = rest.find("20") {
        let time: Option<Timestamp> = rest.get(at..at + 20).and_then(|time| time.parse().ok());
        let length = if time.is_some() { 20 } else { 2 };
        stable.push_str(&rest[..at]);
        match time {
            Some(time) if time.as_second() >= since.as_second() => stable.push_str("NOW"),
            _ => stable.push_str(&rest[at..at + length]),
        }
        rest = &rest[at + length..];
    }
    stable + rest
}

#[tokio::test(flavor = "multi_thread")]
async fn every_layout_shows_all_panels_and_a_restart_changes_no_byte() {
    for layout in ["strata", "panels", "tiers", "inline"] {
        let home = PanelHome::new(SCRIPT, &format!("layout = \"{layout}\"\n{ALL_PANELS}")).await;
        let app = home.open(SessionChoice::New).await;
        assert_eq!(prompt(&app, "Use everything").await, RunEnd::Done, "{layout}");
        let results = results(&app);
        let said: Vec<&str> = results.iter().map(|text| text.lines().next().unwrap()).collect();
        assert_eq!(
            said[..8],
            [
                "added 1: read the notes, 2: write the report",
                "Opened 'src/main.rs' as P10",
                "Opened 'src/lib.rs' as P11",
                "Closed 'src/main.rs'",
                "Loaded the skill sort as P12",
                "fetch is off",
                "described src/lib.rs",
                "remembered in .hardpan/memories/build.md",
            ],
            "{layout}"
        );
        assert!(said[8].contains("looks like a secret"), "{layout}: {}", said[8]);
        assert!(said[12].starts_with("You switched the tool fetch off"), "{layout}: {}", said[12]);

        let since = app.agent.now();
        let before = next_body(&app, since).await;
        for text in [
            "1 [ ] read the notes",
            "- sort: How to sort",
            "Sort stably.",
            "requests: 2",
            "off, by you: fetch",
            "src/lib.rs  # the library",
            "Build with make.",
            "look at the build",
            "planned",
            "it is small",
            "pub fn library",
        ] {
            assert!(before.contains(text), "{layout}: {text}\n{before}");
        }
        // What was declared stays declared.
        assert!(before.contains("\"name\":\"fetch\""), "{layout}");
        app.agent.shutdown().await.unwrap();
        drop(app);

        let app = home.open(SessionChoice::Latest).await;
        assert_eq!(next_body(&app, since).await, before, "{layout}");

        assert_eq!(prompt(&app, "Finish it").await, RunEnd::Done, "{layout}");
        let body = next_body(&app, since).await;
        assert!(body.contains("2 [x] write the report"), "{layout}: {body}");
        app.agent.shutdown().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panel_keeps_its_time_until_its_content_changes() {
    let home = PanelHome::new(SCRIPT, &format!("layout = \"panels\"\n{ALL_PANELS}")).await;
    let app = home.open(SessionChoice::New).await;
    prompt(&app, "Use everything").await;
    let time_of = async |app: &ConversationApp, key: &str| {
        let items = app.preview_request("Next").await.unwrap().snapshot.items;
        let item = items.into_iter().find(|item| &*item.key == key).unwrap();
        assert_eq!(item.kind, ItemKind::Panel);
        item.changed_at_ms
    };
    let planned = time_of(&app, "panel:todo").await;
    assert!(planned > 0);
    prompt(&app, "Say something").await;
    assert_eq!(time_of(&app, "panel:todo").await, planned);
    let memory = time_of(&app, "panel:memories").await;
    home.home.write("work/.hardpan/memories/build.md", "Build with make.\n");
    prompt(&app, "Say something else").await;
    assert_eq!(time_of(&app, "panel:memories").await, memory);
    home.home.write("work/.hardpan/memories/build.md", "Build with ninja.\n");
    prompt(&app, "Say something new").await;
    assert!(time_of(&app, "panel:memories").await > memory);
    assert_eq!(time_of(&app, "panel:todo").await, planned);
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_setting_other_layouts_have_neither_panels_nor_their_tool() {
    let home = PanelHome::new(SCRIPT, "").await;
    let app = home.open(SessionChoice::New).await;
    let body = next_body(&app, app.agent.now()).await;
    assert!(!body.contains("\"name\":\"panel\""), "{body}");
    assert!(app.panels.registry.is_empty());
    app.agent.shutdown().await.unwrap();
}

const WORK_SCRIPT: &str = r#"
turns:
  - when: {contains: Plan two}
    tool_calls: [{name: panel, arguments: {action: todo_add, text: "first\nsecond"}}]
  - text: The plan stands.
  - when: {contains: Work remains}
    tool_calls: [{name: panel, arguments: {action: todo_update, target: "1", text: done}}]
  - text: The first is done.
  - when: {contains: Work remains}
    tool_calls: [{name: panel, arguments: {action: todo_update, target: "2", text: done}}]
default: {text: All is done.}
"#;

/// Who said what, one word per message; what the agent said by itself is `spine`.
pub fn speakers(app: &ConversationApp) -> Vec<&'static str> {
    let messages = app.agent.messages();
    let speaker = |body: &MessageBody| match body {
        MessageBody::User { content } => match &content[..] {
            [MessagePart::Text { text }] if text.starts_with("[automatic") => "spine",
            _ => "user",
        },
        MessageBody::Assistant { .. } => "model",
        MessageBody::ToolResult { .. } => "tool",
        _ => "other",
    };
    messages.iter().map(|message| speaker(&message.body)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_goes_on_while_todos_are_left() {
    let home = PanelHome::new(WORK_SCRIPT, "[spine]\nauto_continue = true\n").await;
    let app = home.open(SessionChoice::New).await;
    assert_eq!(prompt(&app, "Plan two").await, RunEnd::Done);
    let first = ["user", "model", "tool", "model"];
    let again = ["spine", "model", "tool", "model"];
    assert_eq!(speakers(&app), [first, again, again].concat());
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_abort_stops_it_until_the_person_speaks() {
    let home = PanelHome::new(WORK_SCRIPT, "[spine]\nauto_continue = true\n").await;
    let app = home.open(SessionChoice::New).await;
    app.agent.events().subscribe::<ToolExecutionEnd, _>("test", |_, agent| async move {
        agent.abort();
        Ok(())
    });
    assert_eq!(prompt(&app, "Plan two").await, RunEnd::Aborted);
    assert_eq!(speakers(&app), ["user", "model", "tool"]);
    app.agent.events().unsubscribe("test");
    // What the tool did is kept: the todos are there, and the agent goes on with them.
    assert_eq!(prompt(&app, "Go on").await, RunEnd::Done);
    assert_eq!(speakers(&app)[3..6], ["user", "model", "spine"]);
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn guard_rails_and_the_setting_stop_it() {
    let idle = "turns:\n  - when: {contains: Plan two}\n    tool_calls: [{name: panel, arguments: {action: todo_add, text: first}}]\ndefault: {text: I wait.}\n";
    let cases =
        [("auto_continue = true\nturns = 3", 1), ("auto_continue = true", 2), ("auto_continue = false", 0)];
    for (config, continuations) in cases {
        let config = format!("panels = [\"todo\", \"spine\", \"logs\"]\n[spine]\n{config}\n");
        let home = PanelHome::new(idle, &config).await;
        let app = home.open(SessionChoice::New).await;
        assert_eq!(prompt(&app, "Plan two").await, RunEnd::Done);
        let count = speakers(&app).into_iter().filter(|speaker| *speaker == "spine").count();
        assert_eq!(count, continuations, "{config}");
        app.agent.shutdown().await.unwrap();
    }
}

/// A program that waits for a key, and the log of a repository.
const LIVE_SCRIPT: &str = r#"
turns:
  - when: {contains: Start it}
    text: I start it.
    tool_calls:
      - {name: console, arguments: {action: start, text: "echo ready; read line; echo got $line"}}
      - {name: console, arguments: {action: wait, id: P10, text: ready, seconds: 60}}
      - {name: git, arguments: {command: log --oneline}}
      - {name: git, arguments: {command: git push}}
  - when: {contains: Go on}
    text: I go on.
    tool_calls:
      - {name: console, arguments: {action: send, id: P10, text: "it<Enter>"}}
      - {name: console, arguments: {action: wait, id: P10, seconds: 60}}
default: {text: That is all.}
"#;

fn git(folder: &std::path::Path, arguments: &[&str]) {
    let mut command = std::process::Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let output =
        command.args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn consoles_and_git_results_are_panels_that_follow_what_happens() {
    for layout in ["strata", "panels", "tiers"] {
        let config = format!("layout = \"{layout}\"\npanels = [\"console\", \"git\"]");
        let home = PanelHome::new(LIVE_SCRIPT, &config).await;
        let work = home.home.folder.path().join("work");
        git(&work, &["init", "-q"]);
        git(&work, &["commit", "-q", "--allow-empty", "-m", "the first commit"]);
        let app = home.open(SessionChoice::New).await;
        assert_eq!(prompt(&app, "Start it").await, RunEnd::Done, "{layout}");
        let said = results(&app);
        assert_eq!(said[0], "Started as P10.");
        assert!(said[1].starts_with("It was printed."), "{layout}: {}", said[1]);
        assert_eq!(said[2], "Opened 'git log --oneline' as P11");
        assert!(said[3].contains("is not known to only read"), "{layout}: {}", said[3]);
        let since = app.agent.now();
        let before = next_body(&app, since).await;
        assert!(before.contains("(running)") && before.contains("the first commit"), "{layout}: {before}");

        git(&work, &["commit", "-q", "--allow-empty", "-m", "the second commit"]);
        assert_eq!(prompt(&app, "Go on").await, RunEnd::Done, "{layout}");
        let before = next_body(&app, since).await;
        for text in ["got it", "(ended with exit code 0)", "the second commit"] {
            assert!(before.contains(text), "{layout}: {text}\n{before}");
        }
        app.agent.shutdown().await.unwrap();
        drop(app);
        let app = home.open(SessionChoice::Latest).await;
        assert_eq!(next_body(&app, since).await, before, "{layout}");
        app.agent.shutdown().await.unwrap();
    }
}

/// One of each kind of panel that can be there, with something to show.
const OPEN_SCRIPT: &str = r#"
turns:
  - when: {contains: Open everything}
    text: I open it.
    tool_calls:
      - {name: panel, arguments: {action: todo_add, text: read the notes}}
      - {name: panel, arguments: {action: open, target: src/lib.rs}}
      - {name: panel, arguments: {action: skill_load, target: sort}}
      - {name: panel, arguments: {action: tool_off, target: fetch}}
      - {name: panel, arguments: {action: tree_filter, text: "**/*.rs"}}
      - {name: panel, arguments: {action: memory_write, target: build, text: Build with make.}}
      - {name: panel, arguments: {action: timer, target: "1440", text: look at the build}}
      - {name: panel, arguments: {action: log, text: planned}}
      - {name: panel, arguments: {action: scratch_write, target: facts, text: it is small}}
      - {name: console, arguments: {action: start, text: "echo ready; while read line; do echo got $line; done"}}
      - {name: console, arguments: {action: wait, id: P12, text: ready, seconds: 60}}
      - {name: git, arguments: {command: log --oneline}}
  - when: {contains: Type into it}
    repeat: always
    tool_calls:
      - {name: console, arguments: {action: send, id: P12, text: "more<Enter>"}}
      - {name: console, arguments: {action: wait, id: P12, text: got more, seconds: 60}}
default: {text: That is all.}
"#;

/// Key, content and time of the last change of all that is shown as a panel, as the real gathering
/// finds it.
async fn shown(app: &ConversationApp) -> BTreeMap<String, (String, i64)> {
    let items = app.preview_request("Next").await.unwrap().snapshot.items;
    let shown =
        items.into_iter().filter(|item| item.key.starts_with("panel:") || item.kind == ItemKind::File);
    shown.map(|item| (item.key.to_string(), (item.body.to_string(), item.changed_at_ms))).collect()
}

/// The key of a panel; of a console, which is named by the call that started it, what comes before that.
fn without_call_id(key: &str) -> &str {
    key.split_once("toolu").map_or(key, |(kind, _)| kind)
}

/// Waits until this panel has changed. Nothing else has, and of all panels only this one was rendered.
async fn only_this_changed(
    app: &ConversationApp,
    before: &BTreeMap<String, (String, i64)>,
    renderings: u64,
    key: &str,
) -> BTreeMap<String, (String, i64)> {
    let mut now = shown(app).await;
    for _ in 0..1_200 {
        if now[key].0 != before[key].0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        now = shown(app).await;
    }
    assert_ne!(now[key].0, before[key].0, "{key} did not change");
    assert!(now[key].1 > before[key].1, "{key}: {} {}", now[key].1, before[key].1);
    for (other, content) in before.iter().filter(|(other, _)| *other != key) {
        assert_eq!(&now[other], content, "{other} changed with {key}");
    }
    let expected = renderings + u64::from(key.starts_with("panel:"));
    assert_eq!(app.panels.registry.renderings(), expected, "{key}");
    now
}

#[tokio::test(flavor = "multi_thread")]
async fn each_panel_follows_what_it_shows_and_no_other_is_rendered() {
    let home = PanelHome::new(OPEN_SCRIPT, "layout = \"panels\"").await;
    let work = home.home.folder.path().join("work");
    git(&work, &["init", "-q"]);
    git(&work, &["commit", "-q", "--allow-empty", "-m", "the first commit"]);
    let app = home.open(SessionChoice::New).await;
    assert_eq!(prompt(&app, "Open everything").await, RunEnd::Done);
    let mut before = shown(&app).await;
    let keys: Vec<&str> = before.keys().map(|key| without_call_id(key)).collect();
    assert_eq!(
        keys,
        [
            "file:src/lib.rs",
            "panel:console:",
            "panel:git:git log --oneline",
            "panel:library",
            "panel:logs",
            "panel:memories",
            "panel:scratchpad",
            "panel:skill:sort",
            "panel:spine",
            "panel:statistics",
            "panel:todo",
            "panel:tools",
            "panel:tree",
        ]
    );

    // Nothing happens, and what happens does not change a byte.
    let registry = &app.panels.registry;
    let renderings = registry.renderings();
    assert_eq!(shown(&app).await, before);
    home.home.write("work/src/lib.rs", "pub fn library() {}\n");
    home.home.write("work/.hardpan/memories/build.md", "Build with make.\n");
    home.home.write("work/notes.txt", "Remember the bread.\n");
    git(&work, &["add", "src"]);
    assert_eq!(shown(&app).await, before);
    assert_eq!(registry.renderings(), renderings);

    let act = |action, target, text| {
        let call = ActionCall { target, text, ..ActionCall::new(action, app.agent.now()) };
        registry.act(&call).unwrap();
    };
    type Change<'a> = (&'a str, Box<dyn Fn() + 'a>);
    let changes: Vec<Change<'_>> = vec![
        ("panel:todo", Box::new(|| act("todo_update", Some("1"), Some("done")))),
        ("panel:tools", Box::new(|| act("tool_on", Some("fetch"), None))),
        ("panel:logs", Box::new(|| act("log", None, Some("changed")))),
        ("panel:scratchpad", Box::new(|| act("scratch_write", Some("facts"), Some("it is large")))),
        ("panel:memories", Box::new(|| home.home.write("work/.hardpan/memories/more.md", "Use ninja.\n"))),
        ("panel:tree", Box::new(|| home.home.write("work/src/new.rs", "fn new() {}\n"))),
        (
            "panel:git:git log --oneline",
            Box::new(|| git(&work, &["commit", "-q", "--allow-empty", "-m", "the second commit"])),
        ),
        (
            "panel:spine",
            Box::new(|| {
                let spine = app.panels.spine().unwrap();
                spine.notify(NotificationKind::Console, "it ended", app.agent.now());
            }),
        ),
        // The last, because a preview keeps no time: it leaves nothing behind.
        ("file:src/lib.rs", Box::new(|| home.home.write("work/src/lib.rs", "pub fn changed() {}\n"))),
    ];
    for (key, change) in changes {
        let renderings = registry.renderings();
        change();
        before = only_this_changed(&app, &before, renderings, key).await;
    }

    // A run changes what it is about: the program that prints, and the figures of the session.
    assert_eq!(prompt(&app, "Type into it").await, RunEnd::Done);
    let after = shown(&app).await;
    let panels = before.iter().filter(|(key, _)| key.starts_with("panel:"));
    let changed = panels.filter(|(key, content)| after[*key] != **content);
    let changed: Vec<&str> = changed.map(|(key, _)| without_call_id(key)).collect();
    assert_eq!(changed, ["panel:console:", "panel:spine", "panel:statistics"]);
    // The time of a file is kept from the request on that showed it.
    assert_eq!(shown(&app).await, after);
    app.agent.shutdown().await.unwrap();
}
