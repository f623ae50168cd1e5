//! [`RestoreHandle`]: puts a terminal's modes back, from whichever thread has to.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::guard::RawMode;

/// What a guard has switched on.
pub(super) struct ModeState {
    pub(super) raw: Box<dyn RawMode>,
    pub(super) out: Box<dyn Write + Send>,
    /// Whether the terminal is ours: false before the guard, after it, and while suspended.
    pub(super) is_taken: bool,
    pub(super) is_alternate: bool,
    pub(super) has_title: bool,
    /// Rows that the live area begins above the cursor.
    pub(super) rows_above_cursor: Option<Arc<AtomicU16>>,
    /// The mouse is ours in the alternate screen.
    pub(super) takes_mouse: bool,
}

impl ModeState {
    /// Puts everything back. Does nothing the second time.
    pub(super) fn restore(&mut self) -> io::Result<()> {
        if !self.is_taken {
            return Ok(());
        }
        self.is_taken = false;
        let mut bytes = "\x1b[?2026l".to_owned();
        if std::mem::take(&mut self.is_alternate) {
            bytes.push_str(if self.takes_mouse { super::guard::MOUSE_OFF } else { "" });
            bytes.push_str(super::guard::LEAVE_ALTERNATE);
        }
        if let Some(rows) = &self.rows_above_cursor {
            match rows.swap(0, Ordering::Relaxed) {
                0 => {}
                rows => drop(write!(bytes, "\x1b[{rows}A")),
            }
            bytes.push_str("\r\x1b[J");
        }
        bytes.push_str(super::guard::MODES_OFF);
        if std::mem::take(&mut self.has_title) {
            bytes.push_str(super::guard::POP_TITLE);
        }
        // Both are tried, whatever becomes of the other.
        let written = self.out.write_all(bytes.as_bytes()).and_then(|()| self.out.flush());
        self.raw.disable().and(written)
    }
}

/// Restores the terminal of a guard that may live on another thread.
#[derive(Clone)]
pub struct RestoreHandle(pub(super) Arc<Mutex<ModeState>>);

impl RestoreHandle {
    pub(super) fn lock(&self) -> MutexGuard<'_, ModeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts everything back; harmless if that has happened.
    pub fn restore(&self) -> io::Result<()> {
        self.lock().restore()
    }

    /// Makes a panic restore the terminal before it is reported.
    pub fn restore_on_panic(&self) {
        let state: Weak<Mutex<ModeState>> = Arc::downgrade(&self.0);
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if let Some(state) = state.upgrade() {
                let _ = RestoreHandle(state).restore();
            }
            report(info);
        }));
    }
}

/// Restores the terminal on SIGTERM, SIGHUP, SIGINT and SIGQUIT, then calls `then` with the signal's
/// number. Listens on a thread of its own for as long as the program runs.
#[cfg(unix)]
pub fn restore_on_signals(handle: RestoreHandle, then: impl Fn(i32) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGHUP, SIGINT, SIGQUIT])?;
    std::thread::Builder::new().name("terminal-signals".into()).spawn(move || {
        for signal in signals.forever() {
            let _ = handle.restore();
            then(signal);
        }
    })?;
    Ok(())
}
