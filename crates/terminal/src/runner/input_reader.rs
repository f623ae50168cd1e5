//! [`InputReader`]: the thread that reads what is typed, and the one that learns of the terminal's size.

use std::io::{self, PipeWriter, Write};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{Clock, FaceMessage};
use crate::input::{InputEvent, TerminalInput, decode_batch};
use crate::screen::ScreenSize;

/// The thread that reads input, which can be told to leave the terminal alone.
pub(super) struct InputReader {
    state: Arc<(Mutex<ReaderState>, Condvar)>,
    /// Ends the wait of the thread for input.
    wake: PipeWriter,
}

/// What the thread that reads input is told, and what it does.
#[derive(Debug, Default)]
struct ReaderState {
    /// It shall leave the terminal alone.
    is_paused: bool,
    /// It does.
    has_stopped: bool,
}

impl InputReader {
    /// Starts the thread, and another one that reports changes of size.
    pub(super) fn start(messages: Sender<FaceMessage>, clock: Clock) -> io::Result<Self> {
        let (mut woken, wake) = io::pipe()?;
        let reader = InputReader { state: Arc::default(), wake };
        let state = reader.state.clone();
        report_resizes(messages.clone(), clock.clone())?;
        std::thread::Builder::new().name("terminal-input".into()).spawn(move || {
            let mut bytes = TerminalInput::default();
            loop {
                wait_while_paused(&state);
                match bytes.read_batch(&mut woken) {
                    Ok(batch) => {
                        let at = clock();
                        for input in decode_batch(&batch) {
                            if messages.send(FaceMessage::Input(input, at)).is_err() {
                                return;
                            }
                        }
                    }
                    Err(_) => {
                        // Nobody waits for a thread that has ended.
                        lock(&state.0).has_stopped = true;
                        state.1.notify_all();
                        let _ = messages.send(FaceMessage::Quit);
                        return;
                    }
                }
            }
        })?;
        Ok(reader)
    }

    /// Waits until the thread leaves the terminal alone.
    pub(super) fn pause(&mut self) {
        let (state, changed) = &*self.state;
        lock(state).is_paused = true;
        // Fails if the thread has ended; then it leaves the terminal alone.
        let _ = self.wake.write_all(&[0]);
        drop(changed.wait_while(lock(state), |state| !state.has_stopped));
    }

    pub(super) fn resume(&self) {
        let (state, changed) = &*self.state;
        lock(state).is_paused = false;
        changed.notify_all();
    }
}

fn wait_while_paused((state, changed): &(Mutex<ReaderState>, Condvar)) {
    let mut now = lock(state);
    while now.is_paused {
        now.has_stopped = true;
        changed.notify_all();
        now = changed.wait(now).unwrap_or_else(PoisonError::into_inner);
    }
    now.has_stopped = false;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Tells the loop whenever the terminal's size changes.
fn report_resizes(messages: Sender<FaceMessage>, clock: Clock) -> io::Result<()> {
    let mut signals = signal_hook::iterator::Signals::new([signal_hook::consts::SIGWINCH])?;
    std::thread::Builder::new().name("terminal-resize".into()).spawn(move || {
        for _ in signals.forever() {
            let Ok(size) = screen_size() else { continue };
            if messages.send(FaceMessage::Input(InputEvent::Resize(size), clock())).is_err() {
                return;
            }
        }
    })?;
    Ok(())
}

/// The terminal's size. Some pretend to have none: they get the usual one.
pub(super) fn screen_size() -> io::Result<ScreenSize> {
    let (columns, rows) = crossterm::terminal::size()?;
    let or = |number: u16, usual: u16| if number == 0 { usual } else { number };
    Ok(ScreenSize { columns: or(columns, 80), rows: or(rows, 24) })
}
