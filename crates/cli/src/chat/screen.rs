//! The terminal, which the agent and the user share: output scrolls above the line that the user
//! types. [`enter_raw_mode`] takes the terminal, and its [`RawModeGuard`] gives it back.
//!
//! We edit lines ourselves because the terminal's own line editing cuts a line at 4,095 bytes
//! without notice, turns three pasted lines into three prompts, and mixes typed text into printed
//! text. Only line editing and echo are switched off. Keys still send signals, so Ctrl-C works
//! whatever happens here.

use std::io::{self, IsTerminal, Read};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Signal, getpid, kill_process};
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::JoinHandle;
use unicode_width::UnicodeWidthChar;

use super::editor::{EditorOutcome, EditorRows, LineEditor};
use super::keys::{Key, KeyDecoder};
use crate::output;

/// Makes the terminal mark pasted text with sequences that [`KeyDecoder`] knows.
const ENABLE_BRACKETED_PASTE: &str = "\x1b[?2004h";
const DISABLE_BRACKETED_PASTE: &str = "\x1b[?2004l";

static SCREEN: Mutex<Screen> = Mutex::new(Screen { typing: None, column: 0 });

/// What this module knows about the screen.
struct Screen {
    /// None where the terminal edits lines itself, or where there is no terminal.
    typing: Option<EditingState>,
    /// Columns printed of the answer's last line; 0 at the start of a line.
    column: usize,
}

struct EditingState {
    editor: LineEditor,
    keys: KeyDecoder,
    prompt: PromptVisibility,
    /// How many rows the cursor is below the first row of the input line; none while the line is
    /// not on the screen.
    drawn: Option<usize>,
    /// The terminal's modes before we changed them.
    before: Termios,
}

/// Whether the `>` prompt is shown although nothing is typed.
#[derive(PartialEq, Eq)]
enum PromptVisibility {
    Shown,
    /// Shown only once the user types something.
    Hidden,
}

/// Restores the terminal when dropped, on panics too.
pub struct RawModeGuard(JoinHandle<()>);

/// Starts editing lines ourselves and sends each entered line to `lines`. None if the terminal does
/// not understand cursor movement (`TERM=dumb`).
pub fn enter_raw_mode(lines: UnboundedSender<String>) -> io::Result<Option<RawModeGuard>> {
    if is_dumb() {
        return Ok(None);
    }
    let typing = EditingState {
        editor: LineEditor::default(),
        keys: KeyDecoder::default(),
        prompt: PromptVisibility::Hidden,
        drawn: None,
        before: tcgetattr(io::stdin())?,
    };
    let held = RawModeGuard(tokio::spawn(handle_job_signals()?));
    typing.enable()?;
    lock().typing = Some(typing);
    std::thread::spawn(move || read_keys(&lines));
    Ok(Some(held))
}

impl Drop for RawModeGuard {
    fn drop(&mut self) {
        self.0.abort();
        restore_terminal();
    }
}

/// Puts the terminal back into the modes that it had.
fn restore_terminal() {
    let mut screen = lock();
    write_stdout(&screen.erase());
    if let Some(typing) = screen.typing.take() {
        typing.disable();
    }
}

/// Handles Ctrl-Z, `fg` and Ctrl-\, which hand the terminal to others for a while or for good.
fn handle_job_signals() -> io::Result<impl Future<Output = ()>> {
    let listen = |kind: Signal| signal(SignalKind::from_raw(kind.as_raw()));
    let (mut suspend, mut resume, mut quit) =
        (listen(Signal::TSTP)?, listen(Signal::CONT)?, listen(Signal::QUIT)?);
    Ok(async move {
        loop {
            tokio::select! {
                _ = suspend.recv() => {
                    let mut screen = lock();
                    write_stdout(&screen.erase());
                    screen.typing.iter().for_each(EditingState::disable);
                    drop(screen);
                    let _ = kill_process(getpid(), Signal::STOP);
                }
                // Other programs may have changed its modes in the meantime.
                _ = resume.recv() => {
                    let mut screen = lock();
                    let _ = screen.typing.as_ref().map_or(Ok(()), EditingState::enable);
                    write_stdout(&screen.draw());
                }
                // The signal's default action, but with a terminal that stays usable.
                _ = quit.recv() => {
                    restore_terminal();
                    std::process::exit(131);
                }
            }
        }
    })
}

impl EditingState {
    fn enable(&self) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::IEXTEN;
        // Keeps \r and \n apart: a paste may contain both.
        modes.input_modes -= InputModes::ICRNL;
        modes.special_codes[SpecialCodeIndex::VMIN] = 1;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(io::stdin(), OptionalActions::Now, &modes)?;
        write_stdout(ENABLE_BRACKETED_PASTE);
        Ok(())
    }

    fn disable(&self) {
        write_stdout(DISABLE_BRACKETED_PASTE);
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Reads keys until the end of input. Runs on its own thread: reading a terminal cannot be
/// cancelled.
fn read_keys(lines: &UnboundedSender<String>) {
    let mut bytes = [0; 4096];
    loop {
        let length = match io::stdin().lock().read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(0) | Err(_) => return,
            Ok(length) => length,
        };
        let entered = lock().press(&bytes[..length]);
        for entered in entered {
            let EditorOutcome::Line(line) = entered else { return };
            if lines.send(line).is_err() {
                return;
            }
        }
    }
}

/// Prints whole lines on standard error, above the input line. Control characters are made harmless.
pub fn print_lines(text: &str) {
    print_controls(&output::safe_lines(text));
}

/// The same, dimmed where the terminal can.
pub fn print_dimmed_lines(text: &str) {
    let text = output::safe_lines(text);
    print_controls(&if is_styled() { format!("\x1b[2m{text}\x1b[0m") } else { text });
}

/// Prints a question on standard error: lines that nobody else can print, because they begin with
/// [`output::FRAME`].
pub fn print_question(text: &str) {
    print_controls(text);
}

fn print_controls(text: &str) {
    let mut screen = lock();
    let before = screen.erase() + if screen.column > 0 { "\n" } else { "" };
    screen.column = 0;
    write_stdout(&before);
    output::write_controls(&format!("{}\n", text.strip_suffix('\n').unwrap_or(text)));
    write_stdout(&screen.draw());
}

/// Prints more of an answer on standard output. Control characters are made harmless.
pub fn print_answer(text: &str) {
    let text = &output::safe_lines(text);
    let mut screen = lock();
    let erased = screen.erase();
    screen.column = text.chars().fold(screen.column, |column, c| match c {
        '\n' => 0,
        // To the next tab stop.
        '\t' => column / 8 * 8 + 8,
        c => column + c.width().unwrap_or(0),
    });
    let drawn = screen.draw();
    write_stdout(&(erased + text + &drawn));
}

/// Ends the answer's line, if one is open.
pub fn end_answer_line() {
    let is_open = lock().column > 0;
    if is_open {
        print_answer("\n");
    }
}

/// Shows the prompt: the conversation waits for a line.
pub fn show_prompt() {
    let mut screen = lock();
    match &mut screen.typing {
        Some(typing) if typing.prompt == PromptVisibility::Shown => {}
        Some(typing) => {
            typing.prompt = PromptVisibility::Shown;
            let drawn = screen.erase() + &screen.draw();
            write_stdout(&drawn);
        }
        None => write_stdout("> "),
    }
}

/// Discards the unfinished line. Returns whether there was one.
pub fn discard_input() -> bool {
    let mut screen = lock();
    write_stdout(&screen.erase());
    let Some(typing) = &mut screen.typing else { return false };
    let is_something = !typing.editor.is_empty();
    typing.editor.clear();
    typing.keys = KeyDecoder::default();
    typing.prompt = PromptVisibility::Hidden;
    is_something
}

impl Screen {
    /// Handles keys, and returns the lines that they complete. Completed lines stay on the screen.
    fn press(&mut self, bytes: &[u8]) -> Vec<EditorOutcome> {
        let mut out = self.erase();
        let (width, _) = screen_size();
        let (mut entered, mut column) = (Vec::new(), self.column);
        if let Some(typing) = &mut self.typing {
            for key in typing.keys.decode(bytes) {
                let is_shown = typing.prompt == PromptVisibility::Shown || !typing.editor.is_empty();
                if key == Key::Enter && is_shown {
                    out += if column > 0 { "\n" } else { "" };
                    out += &(typing.editor.rows(width - 1).rows.join("\n") + "\n");
                    column = 0;
                }
                let Some(what) = typing.editor.press(key) else { continue };
                typing.prompt = PromptVisibility::Hidden;
                entered.push(what);
            }
        }
        self.column = column;
        out += &self.draw();
        write_stdout(&out);
        entered
    }

    /// The sequence that erases the input line and moves back to where printing continues.
    fn erase(&mut self) -> String {
        let Some(rows) = self.typing.as_mut().and_then(|typing| typing.drawn.take()) else {
            return String::new();
        };
        let back = if rows > 0 { format!("\x1b[{rows}A") } else { String::new() };
        // An answer's line that fills its last row continues in the row of the input line.
        let on = match self.column % screen_size().0 {
            0 => String::new(),
            column => format!("\x1b[A\x1b[{column}C"),
        };
        format!("{back}\r\x1b[J{on}")
    }

    /// The sequence that draws the input line below the printed text.
    fn draw(&mut self) -> String {
        let (width, height) = screen_size();
        let Some(typing) = &mut self.typing else { return String::new() };
        if typing.prompt == PromptVisibility::Hidden && typing.editor.is_empty() {
            return String::new();
        }
        // The last column stays free: some terminals wrap after it, others do not.
        let EditorRows { rows, cursor: (row, column) } = typing.editor.rows(width - 1);
        // Draws no more rows than we can erase again.
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

/// The width of standard error in columns; none if it is not a terminal.
pub fn width() -> Option<usize> {
    io::stderr().is_terminal().then(|| screen_size().0)
}

/// Whether standard error shows dimmed text (and `NO_COLOR` is not set).
pub fn is_styled() -> bool {
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    io::stderr().is_terminal() && !is_dumb() && !plain
}

/// Whether the terminal understands no cursor movement.
pub fn is_dumb() -> bool {
    std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb")
}

/// Columns and rows of the terminal.
pub fn screen_size() -> (usize, usize) {
    let size = terminal_size::terminal_size();
    let (width, height) = size.map_or((100, 24), |(width, height)| (width.0.into(), height.0.into()));
    (width.max(4), height.max(2))
}

fn write_stdout(text: &str) {
    if !text.is_empty() {
        let _ = output::print_controls(text);
    }
}

/// Held while printing, unlike other locks: what is on the screen must be what the state says.
fn lock() -> MutexGuard<'static, Screen> {
    SCREEN.lock().unwrap_or_else(PoisonError::into_inner)
}
