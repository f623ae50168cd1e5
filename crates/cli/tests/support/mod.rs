//! The real binary, run where nothing but the test has a say: no settings, no variables, a folder of its own.

#![allow(dead_code, reason = "every test file uses some of it")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hardpan_test_support::{SimulatorServer, prerequisite};
use serde_json::Value;
use tempfile::TempDir;

/// Every layout, the default first.
pub const LAYOUTS: [&str; 4] = ["strata", "panels", "tiers", "inline"];

/// A home, a config folder and a folder to work in, all empty, gone after the test.
pub struct Sandbox {
    folder: TempDir,
}

/// What a run of the binary left behind.
#[derive(Debug)]
pub struct CommandOutput {
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a folder for the test");
        for name in ["home", "config", "work"] {
            fs::create_dir(folder.path().join(name)).expect("a folder for the test");
        }
        Sandbox { folder }
    }

    /// The config folder.
    pub fn config(&self) -> PathBuf {
        self.folder.path().join("config")
    }

    /// The folder that commands run in.
    pub fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    /// Writes a file below the sandbox, such as `work/src/a.rs`, and returns its path.
    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().expect("it is below the sandbox")).expect("a folder for the file");
        fs::write(&path, content).expect("the file can be written");
        path
    }

    /// Lets the binary use a server as if it were the provider's own: what it answers is paid for.
    pub fn use_provider(&self, server: &SimulatorServer) {
        use std::os::unix::fs::PermissionsExt;
        let provider = format!("[providers.anthropic]\nbase_url = \"{}/v1\"\n", server.url());
        self.write("config/config.toml", provider);
        let keys = self.write("config/keys.toml", "anthropic = \"the-key-of-the-test\"\n");
        fs::set_permissions(keys, fs::Permissions::from_mode(0o600))
            .expect("the file can be closed to others");
    }

    /// The binary, ready to run.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hardpan"));
        command.args(args).current_dir(self.work()).env_clear();
        command.env("HOME", self.folder.path().join("home"));
        command.env("HARDPAN_CONFIG_DIR", self.config());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("COLUMNS", "100");
        command
    }

    /// Runs it.
    pub fn run(&self, args: &[&str]) -> CommandOutput {
        self.run_with_input(args, b"")
    }

    /// Runs it with something to read on standard input.
    pub fn run_with_input(&self, args: &[&str], input: &[u8]) -> CommandOutput {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary can be run");
        // A program that does not read its input may be gone already.
        let _ = child.stdin.take().expect("it is piped").write_all(input);
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8(output.stderr).expect("words are UTF-8");
        CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
    }

    /// Runs what must succeed without a word, and returns what it printed.
    pub fn bytes(&self, args: &[&str]) -> Vec<u8> {
        let ran = self.run(args);
        assert_eq!((ran.code, &*ran.stderr), (Some(0), ""), "{args:?}");
        ran.stdout
    }

    /// The same, as text.
    pub fn text(&self, args: &[&str]) -> String {
        String::from_utf8(self.bytes(args)).expect("text is UTF-8")
    }

    /// The same, as JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        serde_json::from_slice(&self.bytes(args)).expect("it is JSON")
    }

    /// The words of a run that must fail with exit code 1 and nothing on standard output.
    pub fn failure(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!((ran.code, &*ran.stdout), (Some(1), &b""[..]), "{args:?}: {}", ran.stderr);
        ran.stderr
    }
}

/// The program that makes a terminal: `script` of util-linux. None where there is none.
pub fn script_program() -> Option<()> {
    let found = Command::new("script").arg("--version").output();
    let found = found.ok().filter(|output| output.status.success());
    prerequisite("`script` to make a terminal with", "install util-linux (Debian: bsdutils)", found.map(drop))
}

/// The snapshot of this name in `tests/snapshots`.
pub fn snapshot(name: &str) -> String {
    tests().join("snapshots").join(format!("{name}.json")).display().to_string()
}

/// The folder `tests`.
pub fn tests() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"))
}

/// The texts of a message's content, whatever its form: a string, text blocks, tool results.
pub fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str().or(part["content"].as_str())).collect()
        }
        content => content.as_str().into_iter().collect(),
    }
}
