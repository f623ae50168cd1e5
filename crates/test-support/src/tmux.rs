//! [`Tmux`]: a real terminal that wraps its lines again when its width changes.

use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::Duration;

use crate::prerequisite;

/// How often something is looked for: two minutes. Nothing takes that long unless it never happens.
const MAX_POLLS: usize = 12_000;
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A tmux server of its own with one window, ended when dropped.
#[derive(Debug)]
pub struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// A window of this many columns and rows that runs a line of the shell, which may use the path of
    /// [`Tmux::path`]'s folder. `None` where tmux is not installed; in CI that is a failure.
    pub fn start((columns, rows): (u16, u16), line: impl FnOnce(&Tmux) -> String) -> Option<Self> {
        prerequisite("tmux", "install tmux", Command::new("tmux").arg("-V").output().ok())?;
        let tmux = Tmux { folder: tempfile::tempdir().expect("a folder") };
        let line = line(&tmux);
        let (columns, rows) = (columns.to_string(), rows.to_string());
        tmux.run(&["new-session", "-d", "-x", &columns, "-y", &rows, "sh", "-c", &line]);
        for (option, value) in [("history-limit", "100000"), ("status", "off"), ("remain-on-exit", "on")] {
            tmux.run(&["set-option", "-g", option, value]);
        }
        Some(tmux)
    }

    /// A file in the folder of this terminal.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn try_run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.path("socket")).args(["-f", "/dev/null"]).args(arguments);
        // A tmux that the tests run in is none of their business.
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
        command.output().expect("tmux can be run")
    }

    /// Runs a command of tmux; what it prints.
    pub fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The rows of the screen.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// All lines, also those that have scrolled off, with wrapped ones joined.
    pub fn history(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    /// A value of tmux's, such as `#{cursor_y}`.
    pub fn format(&self, format: &str) -> String {
        self.run(&["display-message", "-p", format]).trim().to_owned()
    }

    /// Presses keys, as tmux names them.
    pub fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    /// Changes the size of the window; its lines are wrapped for it on return. The program in it learns
    /// of that later.
    pub fn resize(&self, columns: u16, rows: u16) {
        self.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        let wanted = format!("{columns}x{rows}");
        self.wait_until(&wanted, || self.format("#{pane_width}x#{pane_height}") == wanted);
    }

    /// Waits until the screen shows a text.
    pub fn expect(&self, text: &str) {
        self.wait_until(text, || self.screen().contains(text));
    }

    /// Waits until something is so.
    pub fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        for _ in 0..MAX_POLLS {
            if is_so() {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        panic!("\"{what}\" never came:\n{}", self.screen());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.try_run(&["kill-server"]);
    }
}
