//! A group of processes that ends with its owner.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid};
use tokio::sync::oneshot;

/// A command and all processes of its group. Dropping it kills them at once, with or without an async runtime.
///
/// The first process is not reaped before: until then its number can belong to no other, so that a signal never
/// reaches a stranger.
pub(super) struct Group {
    leader: Pid,
    ended: oneshot::Receiver<Ended>,
    /// Dropped last: the reaper goes on when it is gone.
    _release: mpsc::Sender<()>,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Exit(i32),
    Signal(i32),
    Unknown,
}

impl Group {
    /// Starts a command that leads a group of its own, or makes itself the leader of one at once.
    pub fn start(mut command: Command) -> io::Result<Group> {
        let (told, ended) = oneshot::channel();
        let (release, released) = mpsc::channel();
        let (hand_over, handed_over) = mpsc::channel::<Child>();
        // The thread comes first: a child without a reaper would stay behind.
        std::thread::Builder::new().name("reaper".to_owned()).spawn(move || {
            let Ok(mut child) = handed_over.recv() else { return };
            let _ = told.send(wait_without_reaping(&child));
            let _: Result<(), _> = released.recv();
            let _ = child.wait();
        })?;
        let child = command.spawn()?;
        let leader = Pid::from_child(&child);
        let _ = hand_over.send(child);
        // The command holds our ends of the pipe; they close with it.
        drop(command);
        Ok(Group { leader, ended, _release: release })
    }

    /// The first process.
    #[cfg(test)]
    pub fn leader(&self) -> Pid {
        self.leader
    }

    /// Waits until the first process has ended.
    pub async fn ended(&mut self) -> Ended {
        (&mut self.ended).await.unwrap_or(Ended::Unknown)
    }

    /// Sends a signal to every process of the group.
    pub fn signal(&self, signal: Signal) {
        let _ = kill_process_group(self.leader, signal);
        // A launcher that has not become a leader yet has no group, and no children either.
        let _ = kill_process(self.leader, signal);
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.signal(Signal::KILL);
    }
}

fn wait_without_reaping(child: &Child) -> Ended {
    loop {
        match waitid(WaitId::Pid(Pid::from_child(child)), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT) {
            Ok(Some(status)) => {
                let exit = status.exit_status().map(Ended::Exit);
                return exit.or(status.terminating_signal().map(Ended::Signal)).unwrap_or(Ended::Unknown);
            }
            Err(Errno::INTR) => {}
            Ok(None) | Err(_) => return Ended::Unknown,
        }
    }
}
