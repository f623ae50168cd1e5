//! [`ProcessGroup`]: a command with all its descendants, which end when it is dropped.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use serde::{Deserialize, Serialize};

use crate::ProgramEvent;

/// A command and all processes of its group. Dropping it kills them at once, with or without an
/// async runtime.
///
/// The first process is reaped only after that: until then its number cannot be reused, so a signal
/// never reaches an unrelated process.
pub(crate) struct ProcessGroup {
    leader: Pid,
    /// The reaper thread waits for this sender to be dropped. Must be the last field.
    _release: mpsc::Sender<()>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessEnd {
    /// It exited with this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
    /// It was stopped, or nobody saw how it ended.
    Unknown,
}

impl ProcessGroup {
    /// Starts a command that leads a process group of its own.
    pub fn start(
        mut command: Command,
        mut on_event: impl FnMut(ProgramEvent) + Send + 'static,
    ) -> io::Result<ProcessGroup> {
        let (release, released) = mpsc::channel();
        let (hand_over, handed_over) = mpsc::channel::<Child>();
        // Start the thread first: a child without a reaper would become a zombie.
        std::thread::Builder::new().name("reaper".to_owned()).spawn(move || {
            let Ok(mut child) = handed_over.recv() else { return };
            on_event(ProgramEvent::Ended(wait_without_reaping(&child)));
            let _: Result<(), _> = released.recv();
            let _ = child.wait();
            on_event(ProgramEvent::Gone);
        })?;
        let child = command.spawn()?;
        let leader = Pid::from_child(&child);
        let _ = hand_over.send(child);
        // Closes our copies of the pipe's write end, which the command holds.
        drop(command);
        Ok(ProcessGroup { leader, _release: release })
    }

    /// The process id of the program itself.
    #[cfg(test)]
    pub fn leader(&self) -> Pid {
        self.leader
    }

    /// Asks every process of the group to end by itself.
    pub fn request_end(&self) {
        let _ = kill_process_group(self.leader, Signal::TERM);
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        let _ = kill_process_group(self.leader, Signal::KILL);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_ends_when_it_is_dropped() {
        use std::os::unix::process::CommandExt;
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & sleep 1000"]).process_group(0);
        let (sender, events) = mpsc::channel();
        let group = ProcessGroup::start(command, move |event| sender.send(event).unwrap()).unwrap();
        let leader = group.leader();
        drop(group);
        assert_eq!(events.recv(), Ok(ProgramEvent::Ended(ProcessEnd::Signal(9))));
        assert_eq!(events.recv(), Ok(ProgramEvent::Gone));
        assert!(rustix::process::test_kill_process(leader).is_err());
    }
}
