//! What the person and the system ask for from outside: Ctrl-C, and to end.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// To stop what runs: Ctrl-C.
    Stop,
    /// To end: the terminal was closed, or somebody wants the process gone. With the exit code that says so.
    End(u8),
}

impl Asked {
    /// The exit code of a process that ends for this: 128 and the signal's number, as with shells.
    pub fn code(self) -> u8 {
        match self {
            Asked::Stop => 130,
            Asked::End(code) => code,
        }
    }
}

/// Listens from its making to its end: what is asked while nobody looks is seen by the next who does.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// Only where there is a terminal to lose: `nohup` counts on our not listening.
    hangup: Option<Signal>,
}

impl Signals {
    /// From now on, signals end nothing by themselves: what runs is stopped and kept first, with the processes it started.
    pub fn listen() -> io::Result<Self> {
        let hangup = io::stdout().is_terminal().then(|| signal(SignalKind::hangup())).transpose()?;
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Signals { interrupt, terminate, hangup })
    }

    /// Waits for the next one.
    pub async fn next(&mut self) -> Asked {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Asked::Stop,
            _ = self.terminate.recv() => Asked::End(143),
            _ = hangup => Asked::End(129),
        }
    }
}
