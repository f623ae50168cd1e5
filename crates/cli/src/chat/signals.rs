//! [`Signals`]: Ctrl-C, SIGTERM and SIGHUP as an async source of [`Interrupt`]s.

use std::io::{self, IsTerminal};

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks the process to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C: stop what runs.
    Stop,
    /// SIGTERM, or the terminal was closed: exit with this code.
    End(u8),
}

impl Interrupt {
    /// The exit code of a process that ends for this: 128 plus the signal's number, as in shells.
    pub fn exit_code(self) -> u8 {
        match self {
            Interrupt::Stop => 130,
            Interrupt::End(code) => code,
        }
    }
}

/// Signal handlers, installed for as long as this lives. A signal that arrives between two calls
/// of [`Signals::next`] is not lost.
pub struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// None unless standard output is a terminal: `nohup` relies on SIGHUP being ignored.
    hangup: Option<Signal>,
}

impl Signals {
    /// Installs the handlers. From now on signals do not end the process, so that the caller can
    /// stop what runs, child processes included, and store what arrived.
    pub fn listen() -> io::Result<Self> {
        let hangup = io::stdout().is_terminal().then(|| signal(SignalKind::hangup())).transpose()?;
        let (interrupt, terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        Ok(Signals { interrupt, terminate, hangup })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Interrupt {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Interrupt::Stop,
            _ = self.terminate.recv() => Interrupt::End(143),
            _ = hangup => Interrupt::End(129),
        }
    }
}
