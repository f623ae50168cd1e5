//! A place with folders, and callers that run commands there in the sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hardpan_sandbox::{Enforcement, Namespaces, ProcessEnd, ResourceLimits};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

/// Who runs the commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// The user of the tests.
    Current,
    /// An ordinary user, where the tests run as root.
    Nobody,
}

const NOBODY: u32 = 65534;

/// Every user that the tests can be.
pub fn callers() -> Vec<Caller> {
    let is_root = rustix::process::geteuid().is_root();
    if is_root { vec![Caller::Current, Caller::Nobody] } else { vec![Caller::Current] }
}

/// A workspace `work` and a folder `other` beside it, both the caller's.
pub struct Place {
    folder: TempDir,
    caller: Caller,
}

/// What commands may do. They write in `work`.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Policy {
    pub folder: PathBuf,
    pub writable: Vec<PathBuf>,
    pub hidden: Vec<PathBuf>,
    pub enforcement: Enforcement,
    pub namespaces: Namespaces,
    pub network: Value,
    pub limits: ResourceLimits,
    pub commands: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Output {
    pub stdout: String,
    #[allow(dead_code, reason = "printed when a test fails")]
    pub stderr: String,
    pub end: ProcessEnd,
}

/// The program that runs commands in the sandbox, and is its own launcher.
pub fn launcher_path() -> &'static str {
    env!("CARGO_BIN_EXE_sandbox_commands")
}

impl Place {
    pub fn new(caller: Caller) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        copy_program(launcher_path(), folder.path().join("sandbox_commands"));
        let place = Place { folder, caller };
        for name in ["work", "other"] {
            fs::create_dir(place.path(name)).unwrap();
            place.give(name);
        }
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes something the caller's.
    pub fn give(&self, name: &str) {
        if self.caller == Caller::Nobody {
            std::os::unix::fs::chown(self.path(name), Some(NOBODY), Some(NOBODY)).unwrap();
        }
    }

    pub fn open_to_all(&self, name: &str) {
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o777)).unwrap();
    }

    pub fn policy(&self) -> Policy {
        let work = self.path("work");
        Policy { folder: work.clone(), writable: vec![work], ..Policy::default() }
    }

    /// The caller, ready to run commands one after the other.
    pub fn command(&self, policy: &Policy, commands: &[&str]) -> Command {
        let commands = commands.iter().map(|&command| command.to_owned()).collect();
        let request = serde_json::to_string(&Policy { commands, ..policy.clone() }).unwrap();
        let program = self.path("sandbox_commands");
        let mut command = match self.caller {
            Caller::Current => Command::new(program),
            Caller::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]).arg(program);
                command
            }
        };
        command.arg(request).stdin(Stdio::null()).stdout(Stdio::piped()).current_dir("/");
        command
    }

    pub fn run_all(&self, policy: &Policy, commands: &[&str]) -> Vec<Output> {
        let output = self.command(policy, commands).output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let outputs: Vec<Output> = stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(outputs.len(), commands.len(), "{}", String::from_utf8_lossy(&output.stderr));
        outputs
    }

    pub fn run(&self, policy: &Policy, command: &str) -> Output {
        self.run_all(policy, &[command]).remove(0)
    }

    /// Waits until a file is there.
    pub fn wait_for(&self, name: &str) {
        assert!(poll(|| self.path(name).exists()), "{name} must appear");
    }

    /// The processes that work in this place.
    pub fn processes(&self) -> Vec<String> {
        let root = self.path("");
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let here = processes.filter(|process| {
            fs::read_link(process.path().join("cwd")).is_ok_and(|folder| folder.starts_with(&root))
        });
        here.map(|process| fs::read_to_string(process.path().join("cmdline")).unwrap_or_default()).collect()
    }

    /// Waits until no process works in this place.
    pub fn wait_for_the_end(&self) {
        assert!(poll(|| self.processes().is_empty()), "{:?}", self.processes());
    }
}

fn poll(is_done: impl Fn() -> bool) -> bool {
    (0..4000).any(|_| {
        std::thread::sleep(Duration::from_millis(5));
        is_done()
    })
}

/// Copies a program that a test then runs, by another process: a file that this one has open for
/// writing, if only in a child that another thread is starting, cannot be run.
pub fn copy_program(from: impl AsRef<Path>, to: impl AsRef<Path>) {
    let copied = Command::new("cp").arg(from.as_ref()).arg(to.as_ref()).status().unwrap();
    assert!(copied.success());
}
