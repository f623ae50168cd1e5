//! A real terminal that rewraps: tmux. It shows what a pipe gives it, and its history is read back.

use std::fs::{self, File};
use std::io::{self, Write};
use std::process::Command;
use std::time::Duration;

use hardpan_test_support::{Random, Tmux};
use ratatui::text::Line;

use super::super::{
    CursorPlace, Frame, GuardOptions, PageScreen, Rewrap, ScreenSize, SystemRawMode, TerminalGuard,
    restore_on_signals,
};
use super::{assert_nothing_forbidden, frame};

const SHELL_LINES: usize = 60;

const SIZE: ScreenSize = ScreenSize { columns: 80, rows: 24 };

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

/// A page in a real terminal, below lines of the shell, that is told of its size now or later.
struct TmuxPage {
    tmux: Tmux,
    page: PageScreen<Tee>,
    random: Random,
    /// The size that the program knows, and the one that it will be told after so many frames.
    size: ScreenSize,
    coming: Option<(usize, ScreenSize)>,
    now: Duration,
    frames: usize,
    printed: usize,
}

impl TmuxPage {
    fn start(seed: usize, rewrap: Rewrap) -> Option<Self> {
        let tmux = Tmux::start((SIZE.columns, SIZE.rows), |tmux| {
            format!(
                "mkfifo {pipe}; stty raw -echo; i=0; while [ $i -lt {SHELL_LINES} ]; do \
                 printf 'shell%04d\\r\\n' $i; i=$((i+1)); done; exec cat {pipe}",
                pipe = tmux.path("pipe").display()
            )
        })?;
        tmux.expect(&format!("shell{:04}", SHELL_LINES - 1));
        let pipe = File::options().write(true).open(tmux.path("pipe")).unwrap();
        Some(TmuxPage {
            page: PageScreen::new(Tee(pipe, Vec::new()), rewrap),
            tmux,
            random: Random::new(seed.try_into().unwrap()),
            size: SIZE,
            coming: None,
            now: Duration::ZERO,
            frames: 0,
            printed: 0,
        })
    }

    /// Gives the window another size, of which the program learns up to `lag` frames later.
    fn resize(&mut self, lag: usize) {
        let (columns, rows) = (self.random.within(30..=120), self.random.within(16..=40));
        let size = ScreenSize { columns: columns.try_into().unwrap(), rows: rows.try_into().unwrap() };
        self.tmux.resize(size.columns, size.rows);
        let frames = self.coming.map_or_else(|| self.random.within(0..=lag), |(frames, _)| frames);
        self.coming = Some((frames, size));
    }

    /// Shows a view on the alternate screen, and leaves it.
    fn view(&mut self, lag: usize) {
        self.page.erase(self.size, self.now).unwrap();
        let view = format!("view {}.", self.frames);
        write!(self.page.writer(), "\x1b[?1049h{view}").unwrap();
        self.tmux.expect(&view);
        if lag > 0 {
            self.resize(lag);
        }
        self.page.writer().write_all(b"\x1b[?1049l").unwrap();
    }

    /// Draws a frame, with or without lines to print, and waits until it is there.
    fn draw(&mut self) {
        match self.coming.take() {
            Some((0, size)) => {
                self.size = size;
                self.page.note_resize(self.now);
            }
            Some((frames, size)) => self.coming = Some((frames - 1, size)),
            None => {}
        }
        let (width, count) = (self.random.within(0..=200), self.random.within(0..=7).saturating_sub(3));
        let lines: Vec<String> = (self.printed..self.printed + count)
            .map(|line| format!("P{line:04}{}", "y".repeat(width)))
            .collect();
        self.printed += count;
        let live = 1 + self.random.within(0..=13).min(usize::from(self.size.rows) / 2);
        self.page.draw(&frame(&lines, live, self.frames), self.size, self.now).unwrap();
        self.tmux.expect(&format!("status {}.", self.frames));
        self.frames += 1;
    }

    /// How often a line is in the terminal, for each of the shell and of the page.
    fn counts(&self) -> (String, Vec<(String, usize)>) {
        let history = self.tmux.history();
        let shell = (0..SHELL_LINES).map(|line| format!("shell{line:04}"));
        let printed = (0..self.printed).map(|line| format!("P{line:04}"));
        let counts =
            shell.chain(printed).map(|line| (line.clone(), history.matches(&line).count())).collect();
        (history, counts)
    }
}

#[test]
fn tmux_keeps_every_line_of_the_shell_and_of_the_page_through_resizes_and_views() {
    let Some(mut test) = TmuxPage::start(18, Rewrap::Reported) else { return };
    for _ in 0..60 {
        // Long enough that the screen is known to be what its size says.
        test.now += Duration::from_secs(1);
        if test.random.percent(50) {
            test.resize(0);
        }
        if test.random.percent(12) {
            test.view(0);
        }
        test.draw();
    }
    let (history, counts) = test.counts();
    for (line, count) in counts {
        assert_eq!(count, 1, "{line}:\n{history}");
    }
    assert_nothing_forbidden(&test.page.writer().1);
}

/// What happens to a frame between two sizes that the program is not told of.
#[test]
fn rows_that_were_wrapped_and_written_over_are_not_joined_when_the_window_is_widened() {
    let wide = |c: &str| Line::from(c.repeat(70));
    let short = |text: &str| Line::from(text.to_owned());
    let before = vec![short("text"), short("> "), wide("s"), wide("h")];
    for (what, live, row) in [
        ("it grows", vec![short("text"), short("a"), short("b"), short("c"), short("> "), short("end.")], 4),
        ("the cursor goes down", [before.clone(), vec![short("end.")]].concat(), 3),
        ("it shrinks", vec![short("> "), short("end.")], 0),
    ] {
        let Some(mut test) = TmuxPage::start(0, Rewrap::ReportedLate) else { return };
        let print = (0..3).map(|line| short(&format!("P{line:04}"))).collect();
        test.printed = 3;
        let cursor = CursorPlace { row: 1, column: 2 };
        test.page
            .draw(&Frame { print, live: before.clone(), cursor, ..Frame::default() }, SIZE, Duration::ZERO)
            .unwrap();
        test.tmux.expect("hhh");
        test.tmux.resize(43, 24);
        let cursor = CursorPlace { row, column: 2 };
        test.page.draw(&Frame { live, cursor, ..Frame::default() }, SIZE, Duration::ZERO).unwrap();
        test.tmux.expect("end.");
        test.tmux.resize(110, 24);
        test.draw();
        let (history, counts) = test.counts();
        for (line, count) in counts {
            assert_eq!(count, 1, "{line}, {what}:\n{history}");
        }
    }
}

/// tmux has wrapped its lines for another width some frames before the program is told, and may have
/// another one again by then.
#[test]
fn no_line_is_lost_where_tmux_tells_of_a_new_size_some_frames_later() {
    for seed in 0..3 {
        let Some(mut test) = TmuxPage::start(seed, Rewrap::ReportedLate) else { return };
        for _ in 0..60 {
            test.now += Duration::from_millis(if test.random.percent(25) { 2_000 } else { 33 });
            if test.random.percent(33) {
                test.resize(4);
            }
            if test.random.percent(12) {
                test.view(4);
            }
            test.draw();
        }
        let (history, counts) = test.counts();
        for (line, count) in counts {
            assert_eq!(count, 1, "{line}, seed {seed}:\n{history}");
        }
        assert_nothing_forbidden(&test.page.writer().1);
    }
}

/// How a program that holds the terminal ends.
const END: &str = "HARDPAN_TERMINAL_TEST_END";

/// What the tests below run inside tmux, as a program of its own.
#[test]
#[ignore = "a program for the tests below"]
fn program_that_holds_the_terminal() {
    let Ok(end) = std::env::var(END) else { return };
    let mut page = PageScreen::new(io::stdout(), Rewrap::Reported);
    let options =
        GuardOptions { rows_above_cursor: Some(page.rows_above_cursor()), ..GuardOptions::default() };
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
    let cursor = CursorPlace { row: 1, column: 7 };
    let frame = Frame { print: vec![Line::from("printed")], live, cursor, ..Frame::default() };
    page.draw(&frame, SIZE, Duration::ZERO).unwrap();
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
    let tmux = Tmux::start((SIZE.columns, SIZE.rows), |tmux| {
        let path = |name| tmux.path(name).display().to_string();
        format!(
            "stty -g > {}; sh -c 'echo $$ > {}; {END}={end} exec {program} --ignored \
             --exact --nocapture screen::tests::tmux::program_that_holds_the_terminal'; \
             stty -g > {}; echo over; exec sleep 1000",
            path("before"),
            path("pid"),
            path("after"),
            program = program.display()
        )
    })?;
    if let Some(signal) = signal {
        tmux.expect("status");
        let pid = fs::read_to_string(tmux.path("pid")).unwrap();
        assert!(Command::new("kill").args([signal, pid.trim()]).status().unwrap().success());
    }
    tmux.expect("over");
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
