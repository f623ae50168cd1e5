//! [`TerminalGuard`]: owns the modes of the terminal, and restores them when it is dropped.

use std::io::{self, Write};
use std::sync::atomic::AtomicU16;
use std::sync::{Arc, Mutex};

use thiserror::Error;

use super::restore::{ModeState, RestoreHandle};
use crate::text::is_unsafe;

/// Bracketed paste, reports of focus, and keys that differ from control characters (the first of
/// kitty's keyboard flags; terminals that do not know it ignore it).
const MODES_ON: &str = "\x1b[?2004h\x1b[?1004h\x1b[>1u";
/// The reverse; also autowrap and the cursor, which a frame may have left off.
pub(super) const MODES_OFF: &str = "\x1b[<u\x1b[?1004l\x1b[?2004l\x1b[?7h\x1b[?25h\x1b[0m";
/// The alternate screen, in which the wheel becomes arrow keys.
const ENTER_ALTERNATE: &str = "\x1b[?1049h\x1b[?1007h";
pub(super) const LEAVE_ALTERNATE: &str = "\x1b[?1007l\x1b[?1049l";
/// Reports of buttons and of the wheel, with numbers in decimal.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
pub(super) const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";
const PUSH_TITLE: &str = "\x1b[22;0t";
pub(super) const POP_TITLE: &str = "\x1b[23;0t";

/// Why a terminal could not be taken.
#[derive(Debug, Error)]
pub enum GuardError {
    /// The terminal's line discipline refused.
    #[error("cannot switch the terminal to raw mode")]
    RawMode(#[source] io::Error),
    /// Nothing could be written.
    #[error("cannot write to the terminal")]
    Write(#[source] io::Error),
}

/// The line discipline: whether keys come one by one and without echo.
pub trait RawMode: Send {
    /// Switches raw mode on.
    fn enable(&mut self) -> io::Result<()>;
    /// Puts the modes back that were there before.
    fn disable(&mut self) -> io::Result<()>;
}

/// The terminal of this process.
#[derive(Debug, Default)]
pub struct SystemRawMode;

impl RawMode for SystemRawMode {
    fn enable(&mut self) -> io::Result<()> {
        crossterm::terminal::enable_raw_mode()
    }

    fn disable(&mut self) -> io::Result<()> {
        crossterm::terminal::disable_raw_mode()
    }
}

/// What a guard also takes care of.
#[derive(Debug, Default)]
pub struct GuardOptions {
    /// From `PageScreen::rows_above_cursor`: a restoration erases the live area.
    pub rows_above_cursor: Option<Arc<AtomicU16>>,
    /// The mouse is ours in the alternate screen, never on the page.
    pub takes_mouse: bool,
}

/// Holds the terminal: raw mode, paste, focus, keyboard flags, title, alternate screen.
pub struct TerminalGuard(RestoreHandle);

impl TerminalGuard {
    /// Takes the terminal.
    pub fn enter(
        raw: impl RawMode + 'static,
        out: impl Write + Send + 'static,
        options: GuardOptions,
    ) -> Result<Self, GuardError> {
        let state = ModeState {
            raw: Box::new(raw),
            out: Box::new(out),
            is_taken: false,
            is_alternate: false,
            has_title: false,
            rows_above_cursor: options.rows_above_cursor,
            takes_mouse: options.takes_mouse,
        };
        let guard = TerminalGuard(RestoreHandle(Arc::new(Mutex::new(state))));
        guard.resume()?;
        Ok(guard)
    }

    /// Restores the terminal from elsewhere: a panic, a signal.
    pub fn handle(&self) -> RestoreHandle {
        self.0.clone()
    }

    /// Whether the terminal is ours: a signal may have restored it.
    pub fn is_taken(&self) -> bool {
        self.0.lock().is_taken
    }

    /// Gives the terminal to somebody else: the shell, an editor.
    pub fn suspend(&self) -> Result<(), GuardError> {
        self.0.restore().map_err(GuardError::Write)
    }

    /// Takes the terminal again.
    pub fn resume(&self) -> Result<(), GuardError> {
        let mut state = self.0.lock();
        if state.is_taken {
            return Ok(());
        }
        state.raw.enable().map_err(GuardError::RawMode)?;
        state.is_taken = true;
        drop(state);
        self.write(MODES_ON)
    }

    /// Switches to the alternate screen, for a view. Erase the live area before.
    pub fn enter_alternate(&self) -> Result<(), GuardError> {
        let mut state = self.0.lock();
        if std::mem::replace(&mut state.is_alternate, true) {
            return Ok(());
        }
        let mouse = if state.takes_mouse { MOUSE_ON } else { "" };
        drop(state);
        self.write(&format!("{ENTER_ALTERNATE}{mouse}"))
    }

    /// Switches back to the page.
    pub fn leave_alternate(&self) -> Result<(), GuardError> {
        let mut state = self.0.lock();
        if !std::mem::replace(&mut state.is_alternate, false) {
            return Ok(());
        }
        let mouse = if state.takes_mouse { MOUSE_OFF } else { "" };
        drop(state);
        self.write(&format!("{mouse}{LEAVE_ALTERNATE}"))
    }

    /// Sets the window's title; what it was before comes back with the restoration.
    pub fn set_title(&self, title: &str) -> Result<(), GuardError> {
        let had_title = std::mem::replace(&mut self.0.lock().has_title, true);
        let safe: String = title.chars().filter(|c| !is_unsafe(*c)).collect();
        let push = if had_title { "" } else { PUSH_TITLE };
        self.write(&format!("{push}\x1b]2;{safe}\x07"))
    }

    /// Gives the window its title back.
    pub fn clear_title(&self) -> Result<(), GuardError> {
        if !std::mem::replace(&mut self.0.lock().has_title, false) {
            return Ok(());
        }
        self.write(POP_TITLE)
    }

    fn write(&self, bytes: &str) -> Result<(), GuardError> {
        let mut state = self.0.lock();
        state.out.write_all(bytes.as_bytes()).and_then(|()| state.out.flush()).map_err(GuardError::Write)
    }
}

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        let _ = self.0.restore();
    }
}
