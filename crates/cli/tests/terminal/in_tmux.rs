//! The binary in a real terminal that rewraps, tmux: whatever is opened, closed and resized while an
//! answer streams, no line of the shell and of the answer is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use hardpan_test_support::prerequisite;

use super::test_cli::TestCli;

const COLUMNS: u64 = 160;
const SHELL_LINES: usize = 40;
const ANSWER_LINES: usize = 240;
/// Keys and resizes while it streams.
const STEPS: usize = 40;

/// How often something is looked for: two minutes.
const MAX_POLLS: usize = 2_400;
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A tmux server of its own with one window, ended when dropped.
struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// Runs a line of the shell. None where tmux is not installed.
    fn start(line: &str) -> Option<Self> {
        prerequisite("tmux", "install tmux", Command::new("tmux").arg("-V").output().ok())?;
        let tmux = Tmux { folder: tempfile::tempdir().expect("a folder") };
        tmux.run(&["new-session", "-d", "-x", &COLUMNS.to_string(), "-y", "24", "sh", "-c", line]);
        for (option, value) in [("history-limit", "100000"), ("status", "off"), ("remain-on-exit", "on")] {
            tmux.run(&["set-option", "-g", option, value]);
        }
        Some(tmux)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn try_run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.path("socket")).args(["-f", "/dev/null"]).args(arguments);
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
        command.output().expect("tmux can be run")
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// All lines, with wrapped ones joined.
    fn history(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    fn press(&self, keys: &[&str]) {
        self.run(&[&["send-keys"], keys].concat());
    }

    fn expect(&self, text: &str) {
        for _ in 0..MAX_POLLS {
            if self.screen().contains(text) {
                return;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        panic!("\"{text}\" never came:\n{}", self.screen());
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.try_run(&["kill-server"]);
    }
}

/// The line that runs the binary in the test's surroundings, after lines of the shell.
fn shell_line(cli: &TestCli, args: &[&str]) -> String {
    let command = cli.command(args);
    let quoted = |text: &std::ffi::OsStr| format!("'{}'", text.to_string_lossy());
    let mut words = vec!["env -i TERM=xterm-256color LC_ALL=C.UTF-8".to_owned()];
    for (name, value) in command.get_envs().filter_map(|(name, value)| Some((name, value?))) {
        words.push(format!("{}={}", name.to_string_lossy(), quoted(value)));
    }
    words.extend([command.get_program()].into_iter().chain(command.get_args()).map(quoted));
    let folder: &Path = &cli.sandbox.work();
    format!(
        "cd '{}'; i=0; while [ $i -lt {SHELL_LINES} ]; do printf 'shell%04d\\n' $i; i=$((i+1)); done; {}; \
         echo over; exec sleep 1000",
        folder.display(),
        words.join(" ")
    )
}

/// Markdown of every kind, with a mark in each line.
fn answer() -> String {
    (0..ANSWER_LINES)
        .map(|number| match number % 12 {
            0 => format!("\n## mark{number:04}\n"),
            1 => format!("\n- mark{number:04} **bold** `code`\n"),
            2 => format!("  - nested mark{number:04}\n"),
            3 => format!("\n```rust\nfn mark{number:04}() {{}} // {}\n", "long ".repeat(30)),
            4 => format!("\tlet mark{number:04} = 1;\r\n```\n"),
            5 => format!("\n| a | b |\n|---|---|\n| mark{number:04} | {} |\n", "wide ".repeat(20)),
            6 => format!("\n> mark{number:04} שלום עולם\n"),
            7 => format!("\nmark{number:04} 👩\u{200d}💻 🇩🇪 ❤\u{fe0f} 世界 {}\n", "word ".repeat(25)),
            8 => format!("\nmark{number:04} \u{1b}[2J\u{1b}]0;title\u{7}\u{202e}\n"),
            _ => format!("mark{number:04} and some more words of a paragraph\n"),
        })
        .collect()
}

/// Numbers that look random and are the same in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

#[test]
fn no_line_is_lost_whatever_is_opened_and_resized_while_it_streams() {
    let text = serde_json::to_string(&answer()).expect("a string");
    let script = format!(
        "turns:\n  - {{when: {{contains: Tell}}, repeat: always, pace: 8ms, text: {text}}}\ndefault: {{text: Nothing.}}\n"
    );
    let cli = TestCli::with_script("", &script);
    let Some(tmux) = Tmux::start(&shell_line(&cli, &[])) else { return };
    let recording = tmux.path("bytes");
    tmux.expect("help");
    tmux.run(&["pipe-pane", "-o", &format!("cat > '{}'", recording.display())]);
    tmux.press(&["Tell me", "Enter"]);
    tmux.expect("mark0001");
    let mut random = Sequence(18);
    let (mut is_full, mut columns) = (false, COLUMNS);
    for _ in 0..STEPS {
        match random.below(4) {
            0 => {
                tmux.press(&["C-t"]);
                is_full = !is_full;
            }
            1 => tmux.press(&["PPage"]),
            2 => drop(tmux.run(&["resize-window", "-y", &(12 + random.below(40)).to_string()])),
            // Only narrower: tmux joins wrapped rows again when it is widened, and tells the program up
            // to a quarter of a second later. Too late for whoever draws in between.
            _ => {
                columns = (columns - random.below(16)).max(40);
                tmux.run(&["resize-window", "-x", &columns.to_string()]);
            }
        }
        // Not a wait for something: moments to come between.
        std::thread::sleep(Duration::from_millis(20 + random.below(200)));
    }
    if is_full {
        // From the conversation to the line, if keys go there; then back to the page.
        tmux.press(&["C-t"]);
    }
    tmux.expect("done ");
    tmux.run(&["resize-window", "-x", "100", "-y", "30"]);
    tmux.press(&["C-d"]);
    tmux.expect("over");
    let history = tmux.history();
    let count = |wanted: &str| history.matches(wanted).count();
    for number in 0..SHELL_LINES {
        assert_eq!(count(&format!("shell{number:04}")), 1, "shell line {number}:\n{history}");
    }
    // A row of the live area that tmux has wrapped may stay behind, and repeat a line that was unfinished.
    let mut left_behind = 0;
    for number in 0..ANSWER_LINES {
        let times = count(&format!("mark{number:04}"));
        assert!(times > 0, "line {number} of the answer is lost:\n{history}");
        left_behind += times - 1;
    }
    assert!(left_behind <= STEPS, "{left_behind} lines twice:\n{history}");
    let bytes = fs::read(&recording).expect("a recording");
    let bytes = String::from_utf8_lossy(&bytes);
    for forbidden in ["\u{1b}[2J", "\u{1b}[3J", "\u{1b}[6n", "\u{1b}[?1000h", "\u{1b}]0;title", "\u{202e}"] {
        assert!(!bytes.contains(forbidden), "{forbidden:?}");
    }
}
