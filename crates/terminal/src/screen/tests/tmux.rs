//! A real terminal that rewraps: tmux. It shows what a pipe gives it, and its history is read back.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use ratatui::text::Line;

use super::super::{
    CursorPlace, Frame, GuardOptions, PageScreen, Rewrap, ScreenSize, SystemRawMode, TerminalGuard,
    restore_on_signals,
};
use super::{assert_nothing_forbidden, frame};

const SHELL_LINES: usize = 60;

/// A tmux server of its own with one window, ended when dropped.
struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    /// None where tmux is not installed; in CI that is a failure.
    fn start(size: ScreenSize, script: impl Fn(&Path) -> String) -> Option<Self> {
        if Command::new("tmux").arg("-V").output().is_err() {
            let is_ci = std::env::var("CI").is_ok_and(|value| !matches!(&*value, "" | "0" | "false"));
            assert!(!is_ci, "this test needs tmux, and in CI nothing is skipped");
            let _ = io::stderr().write_all(b"not tested here: tmux is missing\n");
            return None;
        }
        let tmux = Tmux { folder: tempfile::tempdir().unwrap() };
        let (columns, rows) = (size.columns.to_string(), size.rows.to_string());
        let script = script(tmux.folder.path());
        tmux.run(&["new-session", "-d", "-x", &columns, "-y", &rows, "sh", "-c", &script]);
        tmux.run(&["set-option", "-g", "history-limit", "100000"]);
        tmux.run(&["set-option", "-g", "status", "off"]);
        tmux.run(&["set-option", "-g", "remain-on-exit", "on"]);
        Some(tmux)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn try_run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.arg("-S").arg(self.path("socket")).args(["-f", "/dev/null"]).args(arguments);
        // A tmux that the tests run in is none of their business.
        command.env_remove("TMUX").env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color");
        command.output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// All lines, with wrapped ones joined.
    fn history(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    fn format(&self, format: &str) -> String {
        self.run(&["display-message", "-p", format]).trim().to_owned()
    }

    fn resize(&self, size: ScreenSize) {
        self.run(&["resize-window", "-x", &size.columns.to_string(), "-y", &size.rows.to_string()]);
        let wanted = format!("{}x{}", size.columns, size.rows);
        wait_until(&wanted, || self.format("#{pane_width}x#{pane_height}") == wanted);
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.try_run(&["kill-server"]);
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = started_now();
    while !is_so() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited a minute for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that waits for another program needs a deadline")]
fn started_now() -> Instant {
    Instant::now()
}

/// Numbers that look random and are the same in every run.
struct Sequence(u64);

impl Sequence {
    fn below(&mut self, limit: u64) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % limit).unwrap()
    }
}

/// Writes to a pipe, and keeps what was written.
struct Tee(File, Vec<u8>);

impl Write for Tee {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = self.0.write(bytes)?;
        self.1.extend_from_slice(&bytes[..length]);
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[test]
fn tmux_keeps_every_line_of_the_shell_and_of_the_page_through_resizes_and_views() {
    let mut size = ScreenSize { columns: 80, rows: 24 };
    let started = Tmux::start(size, |folder| {
        let pipe = folder.join("pipe");
        format!(
            "mkfifo {pipe}; stty raw -echo; i=0; while [ $i -lt {SHELL_LINES} ]; do \
             printf 'shell%04d\\r\\n' $i; i=$((i+1)); done; exec cat {pipe}",
            pipe = pipe.display()
        )
    });
    let Some(tmux) = started else { return };
    let last = format!("shell{:04}", SHELL_LINES - 1);
    wait_until("the shell", || tmux.screen().contains(&last));
    let pipe = File::options().write(true).open(tmux.path("pipe")).unwrap();
    let mut page = PageScreen::new(Tee(pipe, Vec::new()), Rewrap::Yes);
    let (mut random, mut printed, mut now) = (Sequence(18), 0, Duration::ZERO);
    for number in 0..60 {
        // Long enough that the screen is known to be what its size says.
        now += Duration::from_secs(1);
        if random.below(2) == 0 {
            let (columns, rows) = (30 + random.below(90), 16 + random.below(24));
            size = ScreenSize { columns: columns.try_into().unwrap(), rows: rows.try_into().unwrap() };
            tmux.resize(size);
        }
        if random.below(8) == 0 {
            page.erase(size, now).unwrap();
            page.writer().write_all(b"\x1b[?1049hview\x1b[?1049l").unwrap();
        }
        let width = random.below(200);
        let lines: Vec<String> = (printed..printed + random.below(8))
            .map(|line| format!("P{line:04}{}", "y".repeat(width)))
            .collect();
        printed += lines.len();
        let live = 1 + random.below(14).min(usize::from(size.rows) / 2);
        page.draw(&frame(&lines, live, number), size, now).unwrap();
        let status = format!("status {number}.");
        wait_until(&status, || tmux.screen().contains(&status));
    }
    let history = tmux.history();
    let once = |wanted: &str| history.lines().filter(|line| line.starts_with(wanted)).count() == 1;
    for line in 0..SHELL_LINES {
        assert!(once(&format!("shell{line:04}")), "shell line {line}:\n{history}");
    }
    for line in 0..printed {
        assert!(once(&format!("P{line:04}")), "printed line {line}:\n{history}");
    }
    assert_nothing_forbidden(&page.writer().1);
}

/// How a program that holds the terminal ends.
const END: &str = "HARDPAN_TERMINAL_TEST_END";

/// What the tests below run inside tmux, as a program of its own.
#[test]
#[ignore = "a program for the tests below"]
fn program_that_holds_the_terminal() {
    let Ok(end) = std::env::var(END) else { return };
    let size = ScreenSize { columns: 80, rows: 24 };
    let mut page = PageScreen::new(io::stdout(), Rewrap::Yes);
    let options = GuardOptions { rows_above_cursor: Some(page.rows_above_cursor()) };
    let guard = TerminalGuard::enter(SystemRawMode, io::stdout(), options).unwrap();
    guard.handle().restore_on_panic();
    restore_on_signals(guard.handle(), |signal| {
        signal_hook::low_level::emulate_default_handler(signal).unwrap();
    })
    .unwrap();
    if end.contains("view") {
        guard.enter_alternate().unwrap();
    }
    let live = ["running", "> draft", "status"].map(Line::from).to_vec();
    let frame = Frame { print: vec![Line::from("printed")], live, cursor: CursorPlace { row: 1, column: 7 } };
    page.draw(&frame, size, Duration::ZERO).unwrap();
    // Autowrap and the cursor off, as in the middle of a frame.
    io::stdout().write_all(b"\x1b[?7l\x1b[?25l").unwrap();
    io::stdout().flush().unwrap();
    assert!(!end.contains("panic"), "as asked");
    if end.contains("wait") {
        loop {
            std::thread::sleep(Duration::from_secs(60));
        }
    }
}

/// Runs the program above until it ends as told; returns tmux's screen after that.
fn screen_after(end: &str, signal: Option<&str>) -> Option<String> {
    let program = std::env::current_exe().unwrap();
    let size = ScreenSize { columns: 80, rows: 24 };
    let tmux = Tmux::start(size, |folder| {
        let folder = folder.display();
        format!(
            "stty -g > {folder}/before; sh -c 'echo $$ > {folder}/pid; {END}={end} exec {program} --ignored \
             --exact --nocapture screen::tests::tmux::program_that_holds_the_terminal'; \
             stty -g > {folder}/after; echo over; exec sleep 1000",
            program = program.display()
        )
    })?;
    if let Some(signal) = signal {
        wait_until("the live area", || tmux.screen().contains("status"));
        let pid = fs::read_to_string(tmux.path("pid")).unwrap();
        assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    }
    wait_until("its end", || tmux.screen().contains("over"));
    let modes = |name: &str| fs::read_to_string(tmux.path(name)).unwrap();
    assert_eq!(modes("before"), modes("after"), "stty after {end}");
    assert_eq!(tmux.format("#{alternate_on} #{cursor_flag} #{wrap_flag}"), "0 1 1", "modes after {end}");
    Some(tmux.screen())
}

#[test]
fn after_a_signal_a_panic_or_the_end_the_terminal_is_as_before() {
    for (end, signal) in [
        ("drop", None),
        ("panic", None),
        ("wait", Some("-TERM")),
        ("wait", Some("-HUP")),
        ("wait", Some("-INT")),
        ("view,wait", Some("-TERM")),
    ] {
        let Some(screen) = screen_after(end, signal) else { return };
        assert!(!screen.contains("> draft"), "the live area is gone after {end} {signal:?}:\n{screen}");
    }
}
