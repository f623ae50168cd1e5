//! The sandbox, proved from inside: commands that try what they may not.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hardpan_prompt::{Json, MessagePart};
use hardpan_sandbox::{
    NetworkAccess, ProcessEnd, Sandbox, SandboxLauncher, SandboxPolicy, SandboxSupport, sandbox_support,
};
use hardpan_test_support::prerequisite;
use hardpan_tools::{
    Confinement, ConsoleEnd, ConsoleShell, Scope, ShellOptions, Tool, ToolInvocation, ToolOptions,
    ToolOutcome, WaitOutcome, WebOptions, changing_tools, command_environment, parse_keys,
};
use serde_json::json;
use tempfile::TempDir;

/// A workspace, a folder with keys, a folder that is nobody's business, and the tool `bash`.
struct SandboxedShell {
    folder: TempDir,
    scope: Scope,
    bash: Arc<dyn Tool>,
    console: ConsoleShell,
}

/// How often something is looked for: a minute. Nothing takes that long unless it never happens.
const MAX_POLLS: usize = 12_000;
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// None where the kernel has no Landlock.
fn sandboxed_shell(network: NetworkAccess) -> Option<SandboxedShell> {
    let support = match sandbox_support() {
        SandboxSupport::None(why) => Err(why),
        support => Ok(support),
    };
    let remedy = format!(
        "run on Linux 5.13 or later with `landlock` in /sys/kernel/security/lsm: {}",
        support.as_ref().err().map_or("", String::as_str)
    );
    prerequisite("a kernel with Landlock", &remedy, support.ok())?;
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a real path");
    for name in ["work", "config", "other"] {
        fs::create_dir(root.join(name)).expect("a folder");
    }
    fs::write(root.join("config/keys.toml"), "the key\n").expect("a file");
    fs::write(root.join("other/notes"), "notes\n").expect("a file");
    fs::write(root.join("beside"), "beside\n").expect("a file");
    let sandbox = Sandbox {
        launcher: SandboxLauncher::open(Path::new(env!("CARGO_BIN_EXE_hardpan")), "__sandbox")
            .expect("the program"),
        policy: SandboxPolicy { hidden: vec![root.join("config")], network, ..SandboxPolicy::default() },
    };
    let shell = ShellOptions {
        program: "/bin/bash".into(),
        outputs: root.join("outputs"),
        temp: root.join("temp"),
        environment: command_environment(std::env::vars_os(), &[], &[]),
        confinement: Confinement::Sandbox(sandbox),
    };
    let console = ConsoleShell::new(shell.clone());
    let tools = changing_tools(ToolOptions { journal: None, shell, web: WebOptions::default(), index: None });
    let bash = tools.into_iter().find(|tool| &*tool.declaration().name == "bash").expect("the tool");
    Some(SandboxedShell { scope: Scope::new(root.join("work"), root.join("work")), folder, bash, console })
}

impl SandboxedShell {
    fn run(&self, command: &str) -> (String, ToolOutcome) {
        let arguments = Json::new(&json!({"command": command, "timeout": 60}));
        let call = ToolInvocation {
            id: "1",
            arguments: &arguments,
            scope: &self.scope,
            knowledge: &Default::default(),
            progress: &|_| {},
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let outcome = runtime.block_on(self.bash.run(call));
        let MessagePart::Text { text } = &outcome.content[0] else { panic!("{outcome:?}") };
        (text.to_string(), outcome)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("a real path").join(name)
    }
}

/// None where there is no Python to try things with.
fn python() -> Option<()> {
    let found = std::process::Command::new("python3").arg("--version").output();
    prerequisite("python3", "install python3", found.ok().filter(|output| output.status.success()).map(drop))
}

#[test]
fn a_command_works_in_the_workspace_and_its_own_temporary_folder() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    let script = "echo x > a && mkdir b && mv a b/c && cat b/c && rm -r b && echo y > $TMPDIR/t && cat $TMPDIR/t \
        && cat ../other/notes ../beside && ls .. > /dev/null && echo $((6 * 7)) | tr 4 5 && (sleep 0 & wait)";
    let (text, outcome) = sandboxed_shell.run(script);
    assert_eq!((&*text, outcome.is_error), ("x\ny\nnotes\nbeside\n52\n", false));
}

#[test]
fn writing_outside_is_denied_in_every_way_and_told() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    let notes = sandboxed_shell.path("other/notes");
    for command in [
        "echo x > ../other/new",
        "echo x >> ../other/notes",
        ": > ../other/notes",
        "rm -f ../other/notes",
        "mkdir ../other/folder",
        "mv ../other/notes .",
        "ln -s /etc ../other/link",
        "ln -s ../other link && touch link/new",
        "ln ../other/notes hard && echo x > hard",
        "cp a ../other/a || touch ../other/a",
        "truncate -s 0 ../other/notes",
        "python3 -c \"open('../other/notes', 'r+').write('x')\" || exit 1",
    ] {
        let (text, outcome) = sandboxed_shell.run(command);
        assert!(outcome.is_error, "{command}: {text}");
        assert_eq!(fs::read_to_string(&notes).expect(command), "notes\n", "{command}");
        assert_eq!(fs::read_dir(sandboxed_shell.path("other")).expect("the folder").count(), 1, "{command}");
    }
    let (text, outcome) = sandboxed_shell.run("echo x > ../other/new");
    let told = format!(
        "The sandbox denied writing to {}: commands may write only in the workspace and $TMPDIR.",
        sandboxed_shell.path("other/new").display()
    );
    assert!(text.ends_with(&told), "{text}");
    assert_eq!(outcome.details.expect("details")["denied"], json!([told]));
}

#[test]
fn keys_cannot_be_read_by_any_way_there() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    for command in [
        "cat ../config/keys.toml",
        "ln -s ../config/keys.toml link; cat link",
        "cp -r ../config copy",
        "mv ../config moved; cat moved/keys.toml",
        "ln ../config/keys.toml hard; cat hard",
        "cat /proc/self/cwd/../config/keys.toml",
        "cd ../config && cat < keys.toml",
    ] {
        let (text, outcome) = sandboxed_shell.run(command);
        assert!(outcome.is_error && !text.contains("the key"), "{command}: {text}");
    }
    let (text, _) = sandboxed_shell.run("cat ../config/keys.toml");
    let keys = sandboxed_shell.path("config/keys.toml");
    assert!(
        text.ends_with(&format!("The sandbox denied reading {}: keys are kept there.", keys.display())),
        "{text}"
    );
}

#[test]
fn what_started_the_command_can_neither_be_read_nor_be_killed() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    let this = std::process::id();
    let (text, _) = sandboxed_shell.run(&format!("cat /proc/{this}/environ; echo; cat /proc/{this}/mem"));
    // In a namespace it is not even there.
    assert!(text.contains("denied") || text.contains("No such file"), "{text}");
    assert!(!text.contains("CARGO"), "{text}");
    // Signals can be kept back from Linux 6.12 on; signal 0 only asks.
    let (text, outcome) = sandboxed_shell.run(&format!("kill -0 {this}; kill -0 $$ && echo itself"));
    assert!(text.contains("itself"), "{text}");
    if sandbox_support() == SandboxSupport::Full && kernel() >= (6, 12) {
        let is_refused = text.contains("not permitted") || text.contains("No such process");
        assert!(is_refused, "{text} {outcome:?}");
    }
}

fn kernel() -> (u32, u32) {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|number| number.trim().parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

#[test]
fn there_is_no_network_unless_it_is_allowed() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo connected");
    if let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) {
        let (text, outcome) = sandboxed_shell.run(&connect);
        assert!(outcome.is_error && !text.contains("connected\n"), "{text}");
        assert!(
            text.ends_with("The sandbox denied the network: commands have none unless the user allows it."),
            "{text}"
        );
        let (text, _) = sandboxed_shell.run("exec 3<>/dev/udp/127.0.0.1/53 && echo connected");
        assert!(!text.contains("connected\n"), "{text}");
    }
    if let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::On) {
        let (text, outcome) = sandboxed_shell.run(&connect);
        assert_eq!((&*text, outcome.is_error), ("connected\n", false));
    }
}

#[test]
fn servers_on_this_machine_cannot_be_reached_but_a_programs_own_children_can() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    if python().is_none() {
        return;
    }
    let socket = sandboxed_shell.path("work/server.sock");
    let _listener = UnixListener::bind(&socket).expect("a socket");
    let script = r#"
import socket
a, b = socket.socketpair()
a.send(b"pair"); print(b.recv(9).decode())
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6):
    try:
        s = socket.socket(family); s.connect("server.sock" if family == socket.AF_UNIX else ("localhost", 80)); print("connected")
    except PermissionError as error:
        print(family.name, "refused")
"#;
    fs::write(sandboxed_shell.path("work/try.py"), script).expect("a script");
    let (text, _) = sandboxed_shell.run("python3 try.py");
    assert!(text.starts_with("pair\nAF_UNIX refused\nAF_INET refused\nAF_INET6 refused\n"), "{text}");
}

#[test]
fn even_root_cannot_make_devices() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    let (text, outcome) = sandboxed_shell.run("mknod disk b 8 0");
    assert!(outcome.is_error && !sandboxed_shell.path("work/disk").exists(), "{text}");
}

#[test]
fn a_command_has_no_terminal() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    let (text, _) = sandboxed_shell.run("echo x > /dev/tty && echo written; read -r pid name state parent group session terminal rest < /proc/$$/stat; echo \"[$((group - $$)) $terminal]\"");
    // It leads a group of its own in a session without a terminal.
    assert!(!text.contains("written") && text.contains("[0 0]\n"), "{text}");
}

#[test]
fn what_is_typed_into_a_terminal_cannot_be_read() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    // A terminal that is somebody else's, into which something was typed.
    let script = "import os, sys; m, s = os.openpty(); os.write(m, b'typed\\n'); print(os.ttyname(s), flush=True); sys.stdin.read()";
    let mut command = std::process::Command::new("python3");
    command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let Some(mut other) = python().map(|()| command.spawn().expect("it can be run")) else { return };
    let mut name = String::new();
    BufReader::new(other.stdout.take().expect("it is piped")).read_line(&mut name).expect("its name");
    let (text, outcome) = sandboxed_shell.run(&format!("head -n 1 < {}", name.trim()));
    drop(other.stdin.take());
    other.wait().expect("it ends");
    assert!(outcome.is_error && !text.contains("typed"), "{text}");
}

#[test]
fn a_policy_that_cannot_be_read_runs_nothing() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_hardpan"))
        .args(["__sandbox", "sh", "-c", "echo ran"])
        .stdin(Stdio::null())
        .output()
        .expect("the program");
    assert!(!output.status.success() && output.stdout.is_empty());
    assert!(String::from_utf8_lossy(&output.stderr).contains("invalid sandbox policy"));
}

#[test]
fn aborting_ends_what_runs_in_the_sandbox() {
    let Some(sandboxed_shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    let arguments = Json::new(&json!({"command": "trap '' TERM; echo $$ > pid; sleep 1000 & wait"}));
    let call = ToolInvocation {
        id: "1",
        arguments: &arguments,
        scope: &sandboxed_shell.scope,
        knowledge: &Default::default(),
        progress: &|_| {},
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let pid = sandboxed_shell.path("work/pid");
    runtime.block_on(async {
        let begun = async {
            while !fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')) {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        tokio::select! {
            outcome = sandboxed_shell.bash.run(call) => panic!("{outcome:?}"),
            () = begun => {}
        }
    });
    let root = sandboxed_shell.path("work");
    let works_here =
        |process: &fs::DirEntry| fs::read_link(process.path().join("cwd")).is_ok_and(|folder| folder == root);
    let is_gone = (0..MAX_POLLS).any(|_| {
        std::thread::sleep(POLL_INTERVAL);
        !fs::read_dir("/proc").expect("the processes").flatten().any(|process| works_here(&process))
    });
    assert!(is_gone, "all processes of the command must end");
}

/// Longer than any step takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_console_is_a_terminal_in_the_sandbox_whose_keys_reach_the_program() {
    let Some(shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    // Whoever has the terminal, and is in its foreground, gets the signals of Ctrl-C.
    let line = "cat ../config/keys.toml; echo x > ../other/notes; test -t 0 && test -t 1 && echo terminal; \
        read -r _ _ _ _ group _ terminal foreground _ < /proc/$$/stat; \
        test $terminal != 0 && test $group = $foreground && echo foreground; cat; exit 7";
    let console = shell.console.start(line, &shell.scope).expect("a console");
    for text in ["terminal", "foreground"] {
        let waited = console.wait(Some(text), PATIENCE).await;
        assert_eq!(waited, WaitOutcome::Matched, "{:?}", console.view(20));
    }
    console.send(&parse_keys("typed<Enter><C-d>")).expect("typed");
    assert_eq!(console.wait(None, PATIENCE).await, WaitOutcome::Ended);
    let view = console.view(20);
    assert_eq!(view.end, Some(ConsoleEnd::Process(ProcessEnd::Exit(7))), "{view:?}");
    assert_eq!(view.lines[view.lines.len() - 2..], ["typed", "typed"], "{view:?}");
    assert!(!view.lines.iter().any(|line| line.contains("the key")), "{view:?}");
    assert_eq!(fs::read_to_string(shell.path("other/notes")).expect("the notes"), "notes\n");
}

#[tokio::test]
async fn a_console_that_is_dropped_ends_what_left_its_session() {
    let Some(shell) = sandboxed_shell(NetworkAccess::Off) else { return };
    // Beats as long as it lives, also when nobody reads its output.
    let line =
        "setsid bash -c 'while :; do echo x >> beats; sleep 0.01; done' > /dev/null & echo ready; wait";
    let console = shell.console.start(line, &shell.scope).expect("a console");
    assert_eq!(console.wait(Some("ready"), PATIENCE).await, WaitOutcome::Matched);
    let beats = || fs::metadata(shell.path("work/beats")).map_or(0, |found| found.len());
    let mut polls = (0..MAX_POLLS).map(|_| std::thread::sleep(POLL_INTERVAL));
    assert!(polls.any(|()| beats() > 0), "it never began");
    drop(console);
    // It has ended when it is silent for a second, ten times as long as a beat takes on a busy machine.
    let mut last = (beats(), 0);
    let silent = (0..MAX_POLLS).any(|_| {
        std::thread::sleep(POLL_INTERVAL);
        let now = beats();
        last = if now == last.0 { (now, last.1 + 1) } else { (now, 0) };
        last.1 > 200
    });
    assert!(silent, "it goes on");
}
