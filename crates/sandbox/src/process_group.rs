//! [`ProcessGroup`]: a command with all its descendants, which end when it is dropped.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};

/// A command and all processes of its group. Dropping it kills them at once, with or without an
/// async runtime.
///
/// The first process is reaped only after that: until then its number cannot be reused, so a signal
/// never reaches an unrelated process.
pub struct ProcessGroup {
    leader: Pid,
    /// The reaper thread waits for this sender to be dropped. Must be the last field.
    _release: mpsc::Sender<()>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessEnd {
    /// It exited with this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
    /// It was stopped, or nobody saw how it ended.
    Unknown,
}

impl ProcessGroup {
    /// Starts a command that leads a process group of its own, or, as the sandbox launcher does,
    /// makes itself the leader of one right away. `on_end` is called when the command itself has
    /// ended; its descendants may still run.
    pub(crate) fn start(
        mut command: Command,
        on_end: impl FnOnce(ProcessEnd) + Send + 'static,
    ) -> io::Result<ProcessGroup> {
        let (release, released) = mpsc::channel();
        let (hand_over, handed_over) = mpsc::channel::<Child>();
        // Start the thread first: a child without a reaper would become a zombie.
        std::thread::Builder::new().name("reaper".to_owned()).spawn(move || {
            let Ok(mut child) = handed_over.recv() else { return };
            on_end(wait_without_reaping(&child));
            let _: Result<(), _> = released.recv();
            let _ = child.wait();
        })?;
        let child = command.spawn()?;
        let leader = Pid::from_child(&child);
        let _ = hand_over.send(child);
        // Closes our copies of the pipe's write end, which the command holds.
        drop(command);
        Ok(ProcessGroup { leader, _release: release })
    }

    /// The process id of the program itself.
    pub fn leader(&self) -> Pid {
        self.leader
    }

    /// Sends a signal to every process of the group.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
        // A launcher that is not a group leader yet has no group, but no children either.
        let _ = kill_process(self.leader, signal);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn wait_without_reaping(child: &Child) -> ProcessEnd {
    loop {
        match waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let exit = status.exit_status().map(ProcessEnd::Exit);
                return exit
                    .or(status.terminating_signal().map(ProcessEnd::Signal))
                    .unwrap_or(ProcessEnd::Unknown);
            }
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return ProcessEnd::Unknown,
        }
    }
}
