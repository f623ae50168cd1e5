use hardpan_context::knowledge::FileKnowledge;
use hardpan_prompt::MessagePart;
use hardpan_tools::{Confinement, ShellOptions};
use jiff::Timestamp;

use super::*;

struct Setup {
    _folder: tempfile::TempDir,
    scope: Scope,
    registry: Arc<PanelRegistry>,
    tool: ConsoleTool,
    heard: Arc<Mutex<Vec<String>>>,
}

fn setup() -> Setup {
    let folder = tempfile::tempdir().unwrap();
    let options = ShellOptions {
        program: "/bin/bash".into(),
        outputs: folder.path().join("outputs"),
        temp: folder.path().join("temp"),
        environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
        confinement: Confinement::None,
    };
    let registry = Arc::new(PanelRegistry::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let listener_heard = heard.clone();
    let listener = move |_: &str, event: &str| listener_heard.lock().unwrap().push(event.to_owned());
    let tool = ConsoleTool::new(&registry, ConsoleShell::new(options), Arc::new(listener));
    Setup { scope: Scope::new(folder.path(), folder.path()), _folder: folder, registry, tool, heard }
}

impl Setup {
    async fn call(&self, id: &str, arguments: Value) -> String {
        let (arguments, knowledge) = (Json::new(&arguments), FileKnowledge::default());
        let call = ToolInvocation {
            id,
            arguments: &arguments,
            scope: &self.scope,
            knowledge: &knowledge,
            progress: &|_| {},
        };
        let outcome = self.tool.run(call).await;
        let [MessagePart::Text { text }] = &outcome.content[..] else { panic!("{outcome:?}") };
        text.to_string()
    }

    /// What the listener was told, once it is so much: it is told on tasks of their own.
    async fn heard(&self, count: usize) -> Vec<String> {
        for _ in 0..6000 {
            let heard = self.heard.lock().unwrap().clone();
            if heard.len() >= count {
                return heard;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", self.heard.lock().unwrap())
    }

    fn shown(&self, id: &str) -> String {
        self.registry.content(id, Timestamp::UNIX_EPOCH).unwrap().unwrap().as_str().to_owned()
    }
}

#[tokio::test]
async fn a_console_is_started_typed_into_waited_for_and_shown() {
    let setup = setup();
    let line = "echo ready; read a; echo \"got $a\"; exit 2";
    assert_eq!(setup.call("c1", json!({"action": "start", "text": line})).await, "Started as P10.");
    let waited =
        setup.call("c2", json!({"action": "wait", "id": "P10", "text": "ready", "seconds": 60})).await;
    assert!(waited.starts_with("It was printed.\n$ echo ready"), "{waited}");
    assert!(setup.shown("P10").contains("(running)"));
    setup.call("c3", json!({"action": "watch", "id": "P10"})).await;
    assert_eq!(
        setup.call("c4", json!({"action": "send", "id": "p10", "text": "it<Enter>"})).await,
        "Typed into p10."
    );
    let ended = setup.call("c5", json!({"action": "wait", "id": "P10", "seconds": 60})).await;
    assert!(ended.starts_with("The program has ended."), "{ended}");
    assert_eq!(setup.shown("P10"), format!("$ {line}\n(ended with exit code 2)\nready\nit\ngot it\n"));
    assert_eq!(setup.heard(1).await, ["P10 ended with exit code 2"]);
}

#[tokio::test]
async fn a_text_and_an_end_that_nobody_waits_for_are_told_once() {
    let setup = setup();
    let line = "read a; echo \"now $a\"; read b; exit 4";
    setup.call("c1", json!({"action": "start", "text": line})).await;
    setup.call("c2", json!({"action": "watch", "id": "P10", "text": "now it"})).await;
    setup.call("c3", json!({"action": "send", "id": "P10", "text": "it<Enter>"})).await;
    assert_eq!(setup.heard(1).await, ["P10 printed \"now it\""]);
    setup.call("c4", json!({"action": "send", "id": "P10", "text": "<Enter>"})).await;
    assert_eq!(setup.heard(2).await[1], "P10 ended with exit code 4");
    // Whoever stops a program knows that it ends.
    setup.call("c5", json!({"action": "start", "text": "sleep 1000"})).await;
    setup.call("c6", json!({"action": "stop", "id": "P11"})).await;
    setup.call("c7", json!({"action": "start", "text": "exit 5"})).await;
    assert_eq!(setup.heard(3).await[2], "P12 ended with exit code 5");
}

#[tokio::test]
async fn control_c_typed_into_a_console_interrupts_its_program() {
    let setup = setup();
    let line = "trap 'echo interrupted; exit 7' INT; echo ready; while true; do sleep 0.1; done";
    setup.call("c1", json!({"action": "start", "text": line})).await;
    setup.call("c2", json!({"action": "wait", "id": "P10", "text": "ready", "seconds": 60})).await;
    // A shell that is just starting a program can miss a signal. A person would press the keys again.
    let mut ended = String::new();
    for _ in 0..20 {
        setup.call("c3", json!({"action": "send", "id": "P10", "text": "<C-c>"})).await;
        ended = setup.call("c4", json!({"action": "wait", "id": "P10", "seconds": 3})).await;
        if ended.contains("exit code 7") {
            break;
        }
    }
    assert!(ended.contains("interrupted") && ended.contains("exit code 7"), "{ended}");
}

#[tokio::test]
async fn a_closed_console_ends_and_a_resumed_one_shows_what_it_showed_last() {
    let setup = setup();
    let line = "echo ready; exec sleep 1000";
    setup.call("c1", json!({"action": "start", "text": line})).await;
    setup.call("c2", json!({"action": "wait", "id": "P10", "text": "ready", "seconds": 60})).await;
    let saved = setup.registry.save();
    let console = setup.tool.find("P10").unwrap().1;
    setup.registry.close("P10").unwrap();
    assert_eq!(console.wait(None, Duration::from_secs(60)).await, WaitOutcome::Ended);
    assert_eq!(setup.call("c3", json!({"action": "start", "text": "true"})).await, "Started as P11.");

    let resumed = self::setup();
    resumed.registry.restore(saved);
    assert_eq!(resumed.shown("P10"), format!("$ {line}\n(ended with the conversation)\nready\n"));
    let gone = resumed.call("c4", json!({"action": "send", "id": "P10", "text": "x"})).await;
    assert_eq!(gone, "P10 is no console that runs; there is none.");
}

#[tokio::test]
async fn calls_that_make_no_sense_are_answered() {
    let setup = setup();
    assert_eq!(setup.call("c", json!({"action": "start"})).await, "Give the argument `text`.");
    assert_eq!(setup.call("c", json!({"action": "wait"})).await, "Give the argument `id`.");
    assert!(setup.call("c", json!({"action": "fly"})).await.starts_with("The arguments cannot be used"));
    let zero = setup.call("c", json!({"action": "start", "text": "a\u{0}b"})).await;
    assert!(zero.starts_with("The command could not be started"), "{zero}");
    let effects = ["start", "send", "wait", "watch", "stop", "fly"];
    let changes = effects.map(|action| setup.tool.effect(&json!({"action": action})) == Effect::Changes);
    assert_eq!(changes, [true, true, false, false, false, true]);
}
