//! The terminal, which two write to: what is told goes above the line that is being typed.
//!
//! Lines are edited here and not by the terminal itself, which cuts a line at 4,095 bytes without a word, makes three prompts of
//! three pasted lines, and shows what is typed in the middle of what is printed. Only its own editing and its echo are
//! switched off: keys that send signals do so as ever, so that Ctrl-C works whatever happens here.

use std::io::{self, IsTerminal, Read, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use unicode_width::UnicodeWidthChar;

use super::editor::{Editor, Entered, Rows};
use super::keys::{Key, Keys};
use crate::output;

/// From now on the terminal marks what is pasted; and no longer.
const MARK_PASTES: &str = "\x1b[?2004h";
const NO_MARKS: &str = "\x1b[?2004l";

static SCREEN: Mutex<Screen> = Mutex::new(Screen { typing: None, column: 0 });

/// What is on the screen, as far as it matters.
struct Screen {
    /// None where the terminal edits lines itself, or where there is none.
    typing: Option<Typing>,
    /// How many columns of an answer's last line are printed; 0 at the beginning of a line.
    column: usize,
}

struct Typing {
    editor: Editor,
    keys: Keys,
    prompt: Prompt,
    /// How many rows the cursor is below the first row of what is being typed; none where that is not shown.
    drawn: Option<usize>,
    /// How the terminal was.
    before: Termios,
}

/// Whether a line is waited for.
#[derive(PartialEq, Eq)]
enum Prompt {
    Shown,
    /// Until something is typed.
    Hidden,
}

/// The terminal is in our hands until this goes away, for whatever reason.
pub struct Grip(JoinHandle<()>);

/// Takes the terminal into our hands: lines come as they are entered. None where it understands too little.
pub fn hold(lines: UnboundedSender<String>) -> io::Result<Option<Grip>> {
    if is_dumb() {
        return Ok(None);
    }
    let typing = Typing {
        editor: Editor::default(),
        keys: Keys::default(),
        prompt: Prompt::Hidden,
        drawn: None,
        before: tcgetattr(io::stdin())?,
    };
    let held = Grip(tokio::spawn(follow_signals()?));
    typing.begin()?;
    lock().typing = Some(typing);
    std::thread::spawn(move || read(&lines));
    Ok(Some(held))
}

impl Drop for Grip {
    fn drop(&mut self) {
        self.0.abort();
        release();
    }
}

/// Gives the terminal back as it was.
fn release() {
    let mut screen = lock();
    show(&screen.erase());
    if let Some(typing) = screen.typing.take() {
        typing.end();
    }
}

/// What leaves the terminal to others for a while, or for good, without asking the conversation.
fn follow_signals() -> io::Result<impl Future<Output = ()>> {
    let listen = |kind: Signal| signal(SignalKind::from_raw(kind.as_raw()));
    let (mut suspend, mut resume, mut quit) =
        (listen(Signal::TSTP)?, listen(Signal::CONT)?, listen(Signal::QUIT)?);
    Ok(async move {
        loop {
            tokio::select! {
                _ = suspend.recv() => {
                    let mut screen = lock();
                    show(&screen.erase());
                    screen.typing.iter().for_each(Typing::end);
                    drop(screen);
                    let _ = kill_process(getpid(), Signal::STOP);
                }
                // Whoever had it meanwhile may have left it otherwise.
                _ = resume.recv() => {
                    let mut screen = lock();
                    let _ = screen.typing.as_ref().map_or(Ok(()), Typing::begin);
                    show(&screen.draw());
                }
                // What the signal does by itself, but with a terminal that can be used.
                _ = quit.recv() => {
                    release();
                    std::process::exit(131);
                }
            }
        }
    })
}

impl Typing {
    fn begin(&self) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        // The two kinds of line ends are told apart here: a paste may have both.
        modes.input_modes -= InputModes::ICRNL;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
        show(MARK_PASTES);
        Ok(())
    }

    fn end(&self) {
        show(NO_MARKS);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Takes keys, on a thread of its own: reading a terminal cannot be cancelled.
fn read(lines: &UnboundedSender<String>) {
    let mut bytes = [0; 4096];
    loop {
        let length = match io::stdin().lock().read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return,
            Ok(length) => length,
        };
        let entered = lock().press(&bytes[..length]);
        for entered in entered {
            let Entered::Line(line) = entered else { return };
            if lines.send(line).is_err() {
                return;
            }
        }
    }
}

/// Tells something in lines of its own, on standard error. Whoever calls has made it harmless.
pub fn tell(text: &str) {
    let mut screen = lock();
    let before = screen.erase() + if screen.column > 0 { "\n" } else { "" };
    screen.column = 0;
    show(&before);
    // A terminal that has gone away takes no word any more, and that breaks nothing.
    let _ = writeln!(io::stderr(), "{}", text.strip_suffix('\n').unwrap_or(text));
    show(&screen.draw());
}

/// Prints more of an answer, on standard output. Whoever calls has made it harmless.
pub fn answer(text: &str) {
    let mut screen = lock();
    let erased = screen.erase();
    screen.column = text.chars().fold(screen.column, |column, c| match c {
        '\n' => 0,
        // To the next of the places that are 8 columns apart.
        '\t' => column / 8 * 8 + 8,
        c => column + c.width().unwrap_or(0),
    });
    let drawn = screen.draw();
    show(&(erased + text + &drawn));
}

/// The answer's line is over.
pub fn end_line() {
    let is_open = lock().column > 0;
    if is_open {
        answer("\n");
    }
}

/// A line is waited for.
pub fn prompt() {
    let mut screen = lock();
    match &mut screen.typing {
        Some(typing) if typing.prompt == Prompt::Shown => {}
        Some(typing) => {
            typing.prompt = Prompt::Shown;
            let drawn = screen.erase() + &screen.draw();
            show(&drawn);
        }
        None => show("> "),
    }
}

/// What was being typed is given up. Tells whether there was something.
pub fn forget() -> bool {
    let mut screen = lock();
    show(&screen.erase());
    let Some(typing) = &mut screen.typing else { return false };
    let is_something = !typing.editor.is_empty();
    typing.editor.clear();
    typing.keys = Keys::default();
    typing.prompt = Prompt::Hidden;
    is_something
}

impl Screen {
    /// Takes keys. What is entered stays on the screen as a whole.
    fn press(&mut self, bytes: &[u8]) -> Vec<Entered> {
        let mut out = self.erase();
        let (width, _) = size();
        let (mut entered, mut column) = (Vec::new(), self.column);
        if let Some(typing) = &mut self.typing {
            for key in typing.keys.decode(bytes) {
                let is_shown = typing.prompt == Prompt::Shown || !typing.editor.is_empty();
                if key == Key::Enter && is_shown {
                    out += if column > 0 { "\n" } else { "" };
                    out += &(typing.editor.rows(width - 1).rows.join("\n") + "\n");
                    column = 0;
                }
                let Some(what) = typing.editor.press(key) else { continue };
                typing.prompt = Prompt::Hidden;
                entered.push(what);
            }
        }
        self.column = column;
        out += &self.draw();
        show(&out);
        entered
    }

    /// Back to where printing goes on, with nothing behind it.
    fn erase(&mut self) -> String {
        let Some(rows) = self.typing.as_mut().and_then(|typing| typing.drawn.take()) else {
            return String::new();
        };
        let back = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
        // An answer's line that fills its last row goes on in the next one, where this was.
        let on = match self.column % size().0 {
            0 => String::new(),
            column => format!("\x1b[A\x1b[{column}C"),
        };
        format!("{back}\r\x1b[J{on}")
    }

    /// What is being typed, below what is printed.
    fn draw(&mut self) -> String {
        let (width, height) = size();
        let Some(typing) = &mut self.typing else { return String::new() };
        if typing.prompt == Prompt::Hidden && typing.editor.is_empty() {
            return String::new();
        }
        // The last column stays free: what is written there wraps in some terminals, and not in others.
        let Rows { rows, cursor: (row, column) } = typing.editor.rows(width - 1);
        // No more than can be erased again.
        let first = row.saturating_sub(height.saturating_sub(2));
        let shown = &rows[first..rows.len().min(first + height.saturating_sub(1).max(1))];
        let below = first + shown.len() - 1 - row;
        typing.drawn = Some(row - first);
        let mut out = if self.column > 0 { "\n".to_owned() } else { String::new() };
        out += &shown.join("\n");
        if typing.editor.is_at_end() {
            return out;
        }
        out += &if below > 0 { format!("\x1b[{below}A") } else { String::new() };
        out + "\r" + &if column > 0 { format!("\x1b[{column}C") } else { String::new() }
    }
}

/// The columns of the terminal that words are told in; none where they go to a file.
pub fn width() -> Option<usize> {
    io::stderr().is_terminal().then(|| size().0)
}

/// Whether words may be dimmed.
pub fn is_styled() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !is_dumb() && !plain
}

fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Columns and rows.
fn size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    let (width, height) =
        size.map_or((crate::views::width(), 24), |(width, height)| (width.0.into(), height.0.into()));
    (width.max(4), height.max(2))
}

fn show(text: &str) {
    if !text.is_empty() {
        let _ = output::print(text);
    }
}

fn lock() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}
