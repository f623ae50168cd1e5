//! The binary and the commands of its model, end to end: what they are given, what they are kept from,
//! and what happens where the system has no sandbox.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Command, Stdio};

use hardpan_sandbox::{SandboxSupport, sandbox_support};
use hardpan_test_support::{SimulatorServer, prerequisite};
use serde_json::{Value, json};
use support::Sandbox;

/// A folder, a home and a provider whose model runs the given commands, one after the other.
struct CommandRun {
    sandbox: Sandbox,
    _server: SimulatorServer,
}

impl CommandRun {
    fn new(config: &str, commands: &[&str]) -> Self {
        let mut turns = String::new();
        for command in commands {
            let arguments = json!({"command": command, "timeout": 60});
            turns += &format!("  - {{tool_calls: [{{name: bash, arguments: {arguments}}}]}}\n");
        }
        let server = SimulatorServer::start(&format!("turns:\n{turns}default: {{text: Done.}}\n"));
        let sandbox = Sandbox::new();
        let provider = format!("[providers.anthropic]\nbase_url = \"{}/v1\"\n", server.url());
        sandbox.write("config/config.toml", format!("map_tokens = 0\n{config}\n{provider}"));
        CommandRun { sandbox, _server: server }
    }

    fn root(&self) -> std::path::PathBuf {
        self.sandbox.work().parent().unwrap().canonicalize().unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.sandbox.command(&[&["-p", "Go", "--output", "json"], args].concat());
        self.set_folders(&mut command);
        command
    }

    fn set_folders(&self, command: &mut Command) {
        command.env("ANTHROPIC_API_KEY", "the-key-of-the-test").stdin(Stdio::null());
        command.env("HARDPAN_DATA_DIR", self.root().join("data"));
        command.env("HARDPAN_STATE_DIR", self.root().join("state"));
        command.env("HARDPAN_CACHE_DIR", self.root().join("cache"));
    }

    /// Runs the binary and returns what the model was answered, and what was said on stderr.
    fn results(&self, mut command: Command) -> (Vec<String>, String) {
        let output = command.output().expect("the binary can be run");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let events = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let results = events.filter(|event| event["type"] == "tool_execution_end");
        let text = |event: Value| event.to_string();
        (results.map(text).collect(), stderr)
    }
}

fn landlock() -> Option<()> {
    let there = (sandbox_support() == SandboxSupport::Full).then_some(());
    prerequisite("a kernel with Landlock", "run on Linux 6.2 or later with `landlock` enabled", there)
}

#[test]
fn a_launcher_that_a_command_replaced_does_not_run_the_next_one() {
    if landlock().is_none() {
        return;
    }
    let replace = "printf '#!/bin/sh\\ntouch ../escaped\\n' > other && chmod +x other && mv other hardpan && echo replaced";
    let run = CommandRun::new("", &[replace, "touch ../outside; echo second"]);
    let copy = run.sandbox.work().join("hardpan");
    copy_program(env!("CARGO_BIN_EXE_hardpan"), &copy);
    let mut command = Command::new(&copy);
    command.args(["-p", "Go", "--output", "json", "--yes"]).current_dir(run.sandbox.work()).env_clear();
    command.env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", run.root().join("home"));
    command.env("HARDPAN_CONFIG_DIR", run.sandbox.config());
    run.set_folders(&mut command);
    let (results, stderr) = run.results(command);
    assert_eq!(results.len(), 2, "{stderr}");
    assert!(results[0].contains("replaced") && results[1].contains("second"), "{results:?}");
    assert!(!run.root().join("escaped").exists() && !run.root().join("outside").exists());
    assert!(fs::read_to_string(&copy).unwrap().starts_with("#!/bin/sh"), "it was replaced");
}

#[test]
fn commands_get_the_usual_variables_and_those_that_are_named() {
    let run = CommandRun::new("pass_environment = [\"NAMED\", \"MINE_*\"]", &["env | sort"]);
    let mut command = run.command(&["--yes"]);
    command.env("LC_ALL", "C").env("CARGO_HOME", "/cargo").env("ORDINARY", "ordinary-value");
    command.env("NAMED", "named-value").env("MINE_X", "mine-value").env("DOCKER_HOST", "docker-value");
    // A key in a variable that would be passed.
    command.env("LANG", "x-the-key-of-the-test-y").env("SSH_AUTH_SOCK", "/agent");
    let (results, stderr) = run.results(command);
    for passed in ["LC_ALL=C", "CARGO_HOME=/cargo", "NAMED=named-value", "MINE_X=mine-value", "TMPDIR="] {
        assert!(results[0].contains(passed), "{passed}: {results:?} {stderr}");
    }
    for kept in ["ordinary-value", "docker-value", "the-key-of-the-test", "SSH_AUTH_SOCK", "LD_PRELOAD"] {
        assert!(!results[0].contains(kept), "{kept}: {results:?}");
    }
}

#[test]
fn secrets_of_the_home_folder_and_other_conversations_are_hidden() {
    if landlock().is_none() {
        return;
    }
    let secrets = [
        "home/.ssh/id_ed25519",
        "home/.aws/credentials",
        "home/.gnupg/key",
        "home/.netrc",
        "home/.config/gh/hosts.yml",
        "home/.docker/config.json",
        "home/.kube/config",
        "home/.npmrc",
        "home/.pypirc",
        "home/.git-credentials",
        "home/.cargo/credentials.toml",
        "home/.mozilla/firefox/cookies",
        "data/sessions/other/session.jsonl",
        "data/outputs/other/output-1.txt",
        "config/keys.toml",
    ];
    let tries: Vec<String> = secrets.iter().map(|path| format!("cat ../{path}")).collect();
    let script = format!("{}; cat ../home/.bashrc; cat ../home/.config/app/settings", tries.join("; "));
    let long = "seq 1 9000";
    let read_long = "head -n 2 ../data/outputs/*/output-1.txt";
    let run = CommandRun::new("readable = [\"~/.kube\"]", &[&script, long, read_long]);
    for path in secrets {
        run.sandbox.write(path, format!("secret of {path}\n"));
    }
    run.sandbox.write("home/.bashrc", "open-bashrc\n");
    run.sandbox.write("home/.config/app/settings", "open-settings\n");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(run.root().join("config/keys.toml"), fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(run.root().join("config/keys.toml"), "openai = \"secret of config\"\n").unwrap();
    let (results, stderr) = run.results(run.command(&["--yes"]));
    assert!(
        results[0].contains("open-bashrc") && results[0].contains("open-settings"),
        "{results:?} {stderr}"
    );
    for path in secrets {
        let is_shown = results[0].contains(&format!("secret of {path}"));
        // What `readable` names is not hidden.
        assert_eq!(is_shown, path == "home/.kube/config", "{path}: {results:?}");
    }
    assert!(!results[0].contains("secret of config"), "{results:?}");
    // Its own long output can be read.
    assert!(results[2].contains("1\\n2\\n"), "{:?}", results[2]);
}

#[test]
fn a_network_does_not_open_the_sockets_of_this_machine() {
    let script = "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.connect('../bus'); print('con' + 'nected')\"";
    let run = CommandRun::new("network = true", &[script]);
    let listener = UnixListener::bind(run.root().join("bus")).unwrap();
    listener.set_nonblocking(true).unwrap();
    let (results, stderr) = run.results(run.command(&["--yes"]));
    assert!(
        results[0].contains("not permitted") && !results[0].contains("connected"),
        "{results:?} {stderr}"
    );
    assert!(listener.accept().is_err());
}

/// Runs a command in a world without Landlock: its system calls do not exist there.
fn without_landlock(command: &Command, root: &Path) -> Command {
    const CREATE_RULESET: u32 = 444;
    const ENOSYS: u32 = 38;
    without_system_call(command, root, CREATE_RULESET, ENOSYS)
}

/// Runs a command in a world where users may not make namespaces.
fn without_namespaces(command: &Command, root: &Path) -> Command {
    const UNSHARE: u32 = if cfg!(target_arch = "x86_64") { 272 } else { 97 };
    const EPERM: u32 = 1;
    without_system_call(command, root, UNSHARE, EPERM)
}

/// Runs a command in a world where a system call fails.
fn without_system_call(command: &Command, root: &Path, number: u32, error: u32) -> Command {
    let script = r#"
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
number, error = int(sys.argv[1]), int(sys.argv[2])
# Load the number; that one fails, all else is allowed.
code = [(0x20, 0, 0, 0), (0x15, 0, 1, number), (0x06, 0, 0, 0x00050000 | error), (0x06, 0, 0, 0x7fff0000)]
program = b"".join(struct.pack("HBBI", *line) for line in code)
buffer = ctypes.create_string_buffer(program)
class Filter(ctypes.Structure): _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, ctypes.byref(Filter(len(code), ctypes.addressof(buffer)))) == 0
os.execv(sys.argv[3], sys.argv[3:])
"#;
    let path = root.join("without_system_call.py");
    fs::write(&path, script).unwrap();
    let mut wrapped = Command::new("python3");
    wrapped.arg(path).args([number.to_string(), error.to_string()]);
    wrapped.arg(command.get_program()).args(command.get_args()).env_clear().stdin(Stdio::null());
    wrapped.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    wrapped.current_dir(command.get_current_dir().unwrap());
    wrapped
}

#[test]
fn without_landlock_rules_allow_no_commands_and_required_runs_none() {
    let connect = "echo ran; python3 -c \"import socket; socket.socket()\"";
    let rules = "allow = [\"bash\", \"bash(echo)\"]";
    let run = CommandRun::new(rules, &["echo ran"]);
    let (results, stderr) = run.results(without_landlock(&run.command(&[]), &run.root()));
    assert!(results.iter().all(|result| !result.contains("ran\\n")), "{results:?}");
    assert!(stderr.contains("commands run without a sandbox, so you are asked"), "{stderr}");
    // With a sandbox, the rules do allow it.
    let run = CommandRun::new(rules, &["echo ran"]);
    let (results, _) = run.results(run.command(&[]));
    assert!(landlock().is_none() || results[0].contains("ran\\n"), "{results:?}");
    // Whoever says yes to everything gets it, still without a network.
    let run = CommandRun::new("", &[connect]);
    let (results, stderr) = run.results(without_landlock(&run.command(&["--yes"]), &run.root()));
    assert!(results[0].contains("ran\\n") && results[0].contains("not permitted"), "{results:?} {stderr}");
    for (config, flags) in
        [("sandbox = \"required\"", &["--yes"][..]), ("", &["--yes", "--sandbox", "required"])]
    {
        let run = CommandRun::new(config, &["echo ran"]);
        let (results, stderr) = run.results(without_landlock(&run.command(flags), &run.root()));
        assert!(results[0].contains("Commands do not run") && !results[0].contains("ran\\n"), "{results:?}");
        assert!(stderr.contains("commands do not run: the settings require a sandbox"), "{stderr}");
    }
}

#[test]
fn without_namespaces_commands_are_restricted_and_end_all_the_same() {
    if landlock().is_none() {
        return;
    }
    let script =
        "touch ../outside; setsid sleep 1000 & (setsid nohup sleep 1000 >/dev/null 2>&1 &); echo ran";
    let run = CommandRun::new("", &[script, "touch inside ../outside; echo second"]);
    let (results, stderr) = run.results(without_namespaces(&run.command(&["--yes"]), &run.root()));
    assert!(results[0].contains("ran") && results[1].contains("second"), "{results:?} {stderr}");
    assert!(run.sandbox.work().join("inside").exists() && !run.root().join("outside").exists());
    let works_here = |process: fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|folder| folder.starts_with(run.root()))
    };
    assert!(!fs::read_dir("/proc").unwrap().flatten().any(works_here), "no process is left");
    let run = CommandRun::new("network = [\"crates.io\"]", &["echo ran"]);
    let (results, _) = run.results(without_namespaces(&run.command(&["--yes"]), &run.root()));
    assert!(results[0].contains("needs namespaces") && !results[0].contains("ran\\n"), "{results:?}");
}

/// Runs a command as an ordinary user. None if the tests run as one anyway.
fn as_nobody(run: &CommandRun, command: &Command) -> Option<Command> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    if !is_root {
        return None;
    }
    let root = run.root();
    let binary = root.join("hardpan");
    copy_program(env!("CARGO_BIN_EXE_hardpan"), &binary);
    assert!(Command::new("chown").args(["-R", "65534:65534"]).arg(&root).status().unwrap().success());
    let mut other = Command::new("setpriv");
    other.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(binary);
    other.args(command.get_args()).env_clear().stdin(Stdio::null());
    other.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    other.current_dir(command.get_current_dir().unwrap());
    Some(other)
}

#[test]
fn an_ordinary_user_has_the_same_sandbox() {
    if landlock().is_none() {
        return;
    }
    let script = "cat ../config/keys.toml ../home/.ssh/id; touch ../outside inside; chmod 777 ../home; setsid sleep 1000 & (setsid nohup sleep 1000 >/dev/null 2>&1 &); python3 -c 'import socket; socket.socket(socket.AF_UNIX)'; echo $$ ran";
    let run = CommandRun::new("network = true", &[script]);
    run.sandbox.write("home/.ssh/id", "the-secret\n");
    let keys = run.sandbox.write("config/keys.toml", "openai = \"the-secret\"\n");
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(keys, fs::Permissions::from_mode(0o600)).unwrap();
    let Some(command) = as_nobody(&run, &run.command(&["--yes"])) else { return };
    let mode = |path: &str| fs::metadata(run.root().join(path)).unwrap().permissions().mode() & 0o777;
    let before = mode("home");
    let (results, stderr) = run.results(command);
    // The second process of a namespace of its own.
    assert!(results[0].contains("2 ran") && !results[0].contains("the-secret"), "{results:?} {stderr}");
    assert!(results[0].contains("PermissionError"), "{results:?}");
    assert!(run.root().join("work/inside").exists() && !run.root().join("outside").exists());
    assert_eq!(mode("home"), before);
    let works_here = |process: fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|folder| folder.starts_with(run.root()))
    };
    assert!(!fs::read_dir("/proc").unwrap().flatten().any(works_here), "no process is left");
}

#[test]
fn a_project_can_make_the_sandbox_stricter_but_not_looser() {
    for (user, project, runs) in [
        ("required", "off", false),
        ("required", "on", false),
        ("on", "required", false),
        ("off", "on", true),
    ] {
        let run = CommandRun::new(&format!("sandbox = \"{user}\""), &["echo ran"]);
        run.sandbox.write(
            "work/.hardpan/config.toml",
            format!("sandbox = \"{project}\"\nnetwork = [\"a.example\"]\n"),
        );
        assert_eq!(run.sandbox.run(&["trust"]).code, Some(0));
        let (results, stderr) = run.results(without_landlock(&run.command(&["--yes"]), &run.root()));
        assert_eq!(results[0].contains("ran\\n"), runs, "{user}, {project}: {results:?} {stderr}");
    }
}

#[test]
fn an_agent_that_holds_keys_dumps_no_core() {
    let run = CommandRun::new("", &["sleep 1000"]);
    let mut command = run.command(&["--yes"]);
    let mut agent = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let limits = format!("/proc/{}/limits", agent.id());
    let is_set = (0..12_000).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(5));
        let limits = fs::read_to_string(&limits).unwrap_or_default();
        let core = limits.lines().find(|line| line.starts_with("Max core file size"));
        core.is_some_and(|line| line.split_whitespace().nth(4) == Some("0"))
    });
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(is_set);
}

/// Copies a program that a test then runs, by another process: a file that this one has open for
/// writing, if only in a child that another thread is starting, cannot be run.
fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to.as_ref()).status().unwrap();
    assert!(copied.success());
}
