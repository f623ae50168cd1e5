//! Files that the model opens as panels, whatever they are.

use std::fs;

use hardpan_app::ConversationApp;
use hardpan_app::options::SessionChoice;

use super::panels::{PanelHome, prompt, results};
use super::{TestHome, say};

const OPEN: &str = r#"
turns:
  - when: {contains: Open them}
    tool_calls:
      - {name: panel, arguments: {action: open, target: large.log}}
      - {name: panel, arguments: {action: open, target: data.bin}}
      - {name: panel, arguments: {action: open, target: late.bin}}
      - {name: panel, arguments: {action: open, target: pipe}}
      - {name: panel, arguments: {action: open, target: small.txt}}
default: {text: I see.}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn of_a_large_file_the_beginning_is_shown_with_a_note_and_what_is_no_text_is_refused() {
    let home = PanelHome::new(OPEN, "layout = \"panels\"\n").await;
    let work = home.home.folder.path().join("work");
    let line = "a line of a log, which goes on and on\n";
    fs::write(work.join("large.log"), line.repeat((50 << 20) / line.len())).unwrap();
    fs::write(work.join("data.bin"), [0_u8, 159, 146, 150].repeat(1000)).unwrap();
    // Text at first, for longer than any prefix that is looked at.
    fs::write(work.join("late.bin"), [line.repeat(10_000).as_bytes(), &[0; 1000]].concat()).unwrap();
    fs::write(work.join("small.txt"), "a small text\n").unwrap();
    assert!(std::process::Command::new("mkfifo").arg(work.join("pipe")).status().unwrap().success());
    let app = home.open(SessionChoice::New).await;
    prompt(&app, "Open them").await;
    let results = results(&app);
    assert!(results[0].starts_with("Opened 'large.log' as P10"), "{results:?}");
    assert!(results[1].contains("binary"), "{results:?}");
    assert!(results[3].contains("pipe"), "{results:?}");
    assert!(results[4].starts_with("Opened 'small.txt'"), "{results:?}");

    let preview = app.preview_request("Next").await.unwrap();
    assert!(preview.http.body.len() < 1 << 20, "{}", preview.http.body.len());
    let file = |path: &str| {
        let key = format!("file:{path}");
        preview.snapshot.items.iter().find(|item| *item.key == *key).map(|item| item.body.to_string())
    };
    let large = file("large.log").unwrap();
    assert!(large.len() < 300_000, "{}", large.len());
    let note = large.trim_end().rsplit_once('\n').unwrap().1;
    assert!(note.starts_with("(cut: the first 2621"), "{note}");
    assert!(note.ends_with("bytes are shown; read the rest in parts)"), "{note}");
    assert_eq!(file("small.txt").as_deref(), Some("a small text\n"));
    assert_eq!(file("data.bin"), None);

    // One that was a text when it was opened, and is none now, says so; the others are as they were.
    fs::write(work.join("small.txt"), [0_u8; 100]).unwrap();
    fs::write(work.join("large.log"), "short now\n").unwrap();
    let items = app.preview_request("Next").await.unwrap().snapshot.items;
    let shown: Vec<_> = items.iter().filter(|item| item.key.starts_with("file:")).collect();
    assert!(shown.iter().any(|item| item.body.to_string() == "short now\n"), "{shown:?}");
    app.agent.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_overview_has_the_time_of_its_last_change_also_after_a_restart() {
    let home = TestHome::new();
    home.write("user/config/config.toml", "sandbox = false\nlayout = \"panels\"\n");
    home.write("work/src/clock.py", "def now(): ...\n");
    let time = async |app: &ConversationApp| {
        let items = app.preview_request("Next").await.unwrap().snapshot.items;
        items.iter().find(|item| *item.key == *"overview").unwrap().changed_at_ms
    };
    let app = home.open(SessionChoice::New).await;
    let begun = app.agent.now().as_millisecond();
    say(&app, "Hello").await;
    let first = time(&app).await;
    assert!(first >= begun, "{first}");
    // Another function of a file that is listed with another one is no line of the overview.
    home.write("work/src/clock.py", "def now(): return 1\n");
    say(&app, "Go on").await;
    assert_eq!(time(&app).await, first);
    app.agent.shutdown().await.unwrap();
    drop(app);
    let app = home.open(SessionChoice::Latest).await;
    assert_eq!(time(&app).await, first);
    home.write("work/src/radio.py", "from clock import now\ndef play(): now()\n");
    say(&app, "Go on").await;
    assert!(time(&app).await > first);
    app.agent.shutdown().await.unwrap();
}
