//! A session that uses every panel, in every layout, and is restarted in the middle: the process that
//! resumes it sends the bytes that the one before would have sent.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use hardpan_session::SessionStore;
use serde_json::{Value, json};

use super::support::{LAYOUTS, Sandbox};
use super::{KEY, RecordingSimulator, assert_same, clock, without_present_time};

/// A cell of the scratchpad that takes two pages, and what the second begins with.
const LONG_CELL_LINES: usize = 1_200;

const SETTINGS: &str = r#"
sandbox = false
map_tokens = 0
model = "claude-sonnet-5"
panels = ["todo", "library", "statistics", "tools", "tree", "memories", "spine", "logs", "scratchpad", "console", "git"]

[detach]
chunk_messages = 2
chunk_tokens = 0
keep_messages = 4
keep_tokens = 0
"#;

/// The first answer uses every panel, a later one changes them all.
fn script() -> String {
    let cell: String = (0..LONG_CELL_LINES).map(|line| format!("fact {line} of many\\n")).collect();
    r#"
turns:
  - when: {contains: Use everything}
    text: I plan it.
    tool_calls:
      - {name: panel, arguments: {action: todo_add, text: "read the notes\nwrite the report"}}
      - {name: panel, arguments: {action: open, target: src/main.rs}}
      - {name: panel, arguments: {action: open, target: src/lib.rs}}
      - {name: panel, arguments: {action: close, target: src/main.rs}}
      - {name: panel, arguments: {action: skill_load, target: sort}}
      - {name: panel, arguments: {action: tool_off, target: fetch}}
      - {name: panel, arguments: {action: tree_filter, text: "**/*.rs"}}
      - {name: panel, arguments: {action: tree_describe, target: src/lib.rs, text: the library}}
      - {name: panel, arguments: {action: memory_write, target: build, text: Build with make.}}
      - {name: panel, arguments: {action: timer, target: "1440", text: look at the build}}
      - {name: panel, arguments: {action: log, text: planned}}
      - {name: panel, arguments: {action: scratch_write, target: facts, text: "CELL"}}
      - {name: panel, arguments: {action: page, target: P9, text: "2"}}
      - {name: console, arguments: {action: start, text: "echo ready; read line; echo got $line"}}
      - {name: git, arguments: {command: log --oneline}}
  - when: {contains: The program waits}
    text: I answer it.
    tool_calls:
      - {name: console, arguments: {action: send, id: P14, text: "it<Enter>"}}
      - {name: console, arguments: {action: wait, id: P14, seconds: 60}}
  - when: {contains: Change everything}
    repeat: always
    text: I change it.
    tool_calls:
      - {name: panel, arguments: {action: todo_update, target: "1", text: done}}
      - {name: panel, arguments: {action: open, target: src/main.rs}}
      - {name: panel, arguments: {action: tool_on, target: fetch}}
      - {name: panel, arguments: {action: memory_write, target: build, text: Build with ninja.}}
      - {name: panel, arguments: {action: log, text: changed}}
      - {name: panel, arguments: {action: scratch_write, target: more, text: it is small}}
      - {name: panel, arguments: {action: hide, target: P4}}
      - {name: git, arguments: {command: status --short}}
default: {text: That is all.}
"#
    .replace("CELL", &cell)
}

/// `hardpan rpc`, driven line by line.
pub struct RpcProcess {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl RpcProcess {
    pub fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut command = sandbox.command(&[&["rpc", "--yes"], args].concat());
        command.env("ANTHROPIC_API_KEY", KEY);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the binary can be run");
        let (input, output) = (child.stdin.take(), child.stdout.take());
        RpcProcess {
            child,
            input: input.expect("it is piped"),
            output: BufReader::new(output.expect("it is piped")),
        }
    }

    fn send(&mut self, request: &Value) {
        writeln!(self.input, "{request}").and_then(|()| self.input.flush()).expect("the process reads");
    }

    /// The next line of this type.
    fn until(&mut self, kind: &str) -> Value {
        let mut line = String::new();
        loop {
            line.clear();
            let length = self.output.read_line(&mut line).expect("the process writes");
            assert!(length > 0, "the process ended before {kind}");
            let value: Value = serde_json::from_str(&line).expect("JSON");
            if value["type"] == kind {
                return value;
            }
        }
    }

    /// Says something, and waits until all of the run is stored.
    pub fn prompt(&mut self, message: &str) {
        self.send(&json!({"type": "prompt", "message": message}));
        let end = self.until("agent_end");
        assert_eq!(end["stop"]["reason"], "done", "{message}: {end}");
        // A switch waits for what runs store after their end, before it finds that there is none.
        self.send(&json!({"type": "switch_session", "session": "none", "id": "stored"}));
        while self.until("response")["id"] != "stored" {}
    }
}

impl Drop for RpcProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn run(program: &str, args: &[&str], folder: &Path) {
    let mut command = Command::new(program);
    command.args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{who}_NAME"), "a").env(format!("GIT_{who}_EMAIL"), "a@b");
        command.env(format!("GIT_{who}_DATE"), "2026-02-19T14:00:00Z");
    }
    let output = command.output().expect("it can be run");
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The results of the calls in the only session.
fn results(sandbox: &Sandbox) -> Vec<String> {
    let folder = sandbox.work().with_file_name("home").join(".local/share/hardpan/sessions");
    let path = SessionStore::new(folder).list(None).remove(0).path;
    let messages = hardpan_session::Session::open(&path).expect("a session").branch(None).expect("a branch");
    let text = |body: &hardpan_prompt::MessageBody| match body {
        hardpan_prompt::MessageBody::ToolResult { content, .. } => match &content[..] {
            [hardpan_prompt::MessagePart::Text { text }] => Some(text.to_string()),
            other => panic!("{other:?}"),
        },
        _ => None,
    };
    messages.messages.iter().filter_map(|message| text(&message.body)).collect()
}

/// What somebody else does to the folder.
fn change_folder(sandbox: &Sandbox) {
    // Not a file that the model opened: a process that runs tells it who changed one, besides.
    sandbox.write("work/notes.md", "Remember the bread.\n");
    sandbox.write("work/src/main.rs", "fn main() {\n    library();\n}\n");
    sandbox.write("work/src/new.rs", "pub fn new() {}\n");
    run("git", &["commit", "-qam", "the second commit"], &sandbox.work());
}

/// A repository with some files, a skill, and all panels in any layout.
pub fn panel_project(simulator: &RecordingSimulator) -> Sandbox {
    let sandbox = Sandbox::new();
    let address = format!("[providers.anthropic]\nbase_url = \"{}/v1\"\n", simulator.url);
    sandbox.write("config/config.toml", format!("{SETTINGS}\n{address}"));
    let skill = "---\nname: sort\ndescription: How to sort\n---\nSort stably.\n";
    sandbox.write("config/skills/sort/SKILL.md", skill);
    sandbox.write("work/src/main.rs", "fn main() {}\n");
    sandbox.write("work/src/lib.rs", "pub fn library() {}\n");
    sandbox.write("work/notes.md", "Remember the milk.\n");
    let work = sandbox.work();
    run("git", &["init", "-q"], &work);
    run("git", &["add", "src"], &work);
    run("git", &["commit", "-qm", "the first commit"], &work);
    sandbox
}

fn compare_restart(layout: &str) {
    let provider = Sandbox::new();
    let simulator = RecordingSimulator::start(&provider, &script());
    let sandbox = panel_project(&simulator);
    let work = sandbox.work();
    let mut process = RpcProcess::start(&sandbox, &["--layout", layout]);
    process.prompt("Use everything, and @notes.md");
    let said = results(&sandbox);
    let first: Vec<&str> = said.iter().map(|text| text.lines().next().unwrap_or_default()).collect();
    assert_eq!(
        first,
        [
            "added 1: read the notes, 2: write the report",
            "Opened 'src/main.rs' as P11",
            "Opened 'src/lib.rs' as P12",
            "Closed 'src/main.rs'",
            "Loaded the skill sort as P13",
            "fetch is off",
            "the tree shows **/*.rs",
            "described src/lib.rs",
            "remembered in .hardpan/memories/build.md",
            "you are reminded after 1440 minutes",
            "logged",
            "wrote facts",
            "page 2 of 2",
            "Started as P14.",
            "Opened 'git log --oneline' as P15",
        ],
        "{layout}"
    );
    process.prompt("The program waits.");
    for prompt in ["One.", "Two.", "Three."] {
        process.prompt(prompt);
    }

    // The process goes on. Copies of what it has stored are taken up by other processes.
    let folder = sandbox.work().parent().expect("a folder").to_owned();
    let copy = |name: &str| {
        let copy = folder.with_extension(name);
        run("cp", &["-a", &folder.display().to_string(), &copy.display().to_string()], &work);
        copy
    };
    let from = clock();
    let first_of = |process: &mut RpcProcess, prompt: &str| {
        let before = simulator.bodies().len();
        process.prompt(prompt);
        simulator.bodies().swap_remove(before)
    };
    let quiet = copy("quiet");
    let unbroken_quiet = first_of(&mut process, "What is next?");
    let changed = copy("changed");
    change_folder(&sandbox);
    let unbroken_changed = first_of(&mut process, "Change everything.");
    drop(process);

    let resume = |copy: &Path, changes: bool, prompt: &str| {
        std::fs::remove_dir_all(&folder).expect("the folder");
        std::fs::rename(copy, &folder).expect("the copy");
        if changes {
            change_folder(&sandbox);
        }
        let mut process = RpcProcess::start(&sandbox, &["--continue"]);
        let body = first_of(&mut process, prompt);
        (process, body)
    };
    let (_, resumed_quiet) = resume(&quiet, false, "What is next?");
    let (mut process, resumed_changed) = resume(&changed, true, "Change everything.");
    let to = clock();
    let same = |what: &str, unbroken: &str, resumed: &str| {
        let [unbroken, resumed] = [unbroken, resumed].map(|body| without_present_time(body, from, to));
        assert_same(&format!("{layout}, {what}"), &unbroken, &resumed);
    };
    same("nothing changed", &unbroken_quiet, &resumed_quiet);
    same("the folder changed", &unbroken_changed, &resumed_changed);
    let last = first_of(&mut process, "And now?");
    for text in [
        "1 [ ] read the notes",
        "- sort: How to sort",
        "Sort stably.",
        "requests: ",
        "off, by you: fetch",
        "src/lib.rs  # the library",
        "Build with make.",
        "look at the build",
        " planned",
        "fact 1100 of many",
        "pub fn library",
        "Remember the milk.",
        "got it",
        "(ended with exit code 0)",
        "the first commit",
    ] {
        assert!(resumed_quiet.contains(text), "{layout}: {text}\n{resumed_quiet}");
    }
    for text in ["Remember the bread.", "the second commit", "src/new.rs"] {
        assert!(resumed_changed.contains(text), "{layout}: {text}\n{resumed_changed}");
    }
    for text in ["1 [x] read the notes", "fn main()", "Build with ninja.", " changed", "it is small"] {
        assert!(last.contains(text), "{layout}: {text}\n{last}");
    }
    // Only this layout freezes old conversation.
    assert_eq!(last.contains("\"panel_H2\""), layout == "panels", "{layout}: {last}");
}

#[test]
fn a_session_with_every_panel_sends_the_same_bytes_after_a_restart_in_every_layout() {
    std::thread::scope(|scope| {
        for layout in LAYOUTS {
            scope.spawn(move || compare_restart(layout));
        }
    });
}
