//! [`Script`]: one extension in its own engine, on its own thread.
//!
//! The thread is idle until a job arrives: a call, the end of something that the script asked its host
//! for, or a timer. It runs the job and everything that follows from it at once: one slice. A slice
//! that takes longer than the limits allow is stopped; the script can be called again afterwards.
//!
//! One engine for each extension, rather than one for all: a limit of memory is then a limit of one
//! extension, a fault has one author, a reload drops everything, and no extension can reach into the
//! objects of another.

mod compression; // what node:zlib is made of
mod fault; // ScriptError, ScriptFault: what goes wrong, and where
mod host; // ScriptHost: what a script asks for
mod json_size; // how many values JSON has
mod md5; // the digest MD5, for keys of caches
mod native; // the functions that the engine's own JavaScript is given
mod thread; // the thread: jobs, slices, timers

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::sync::oneshot;

pub use fault::{ScriptError, ScriptFault};
pub use host::{HostError, LogLevel, ScriptHost};

use crate::modules::ModuleSources;
pub(crate) use thread::clock;
use thread::{Job, ScriptThread};

/// What a script may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScriptLimits {
    /// Bytes of all its values.
    pub memory: usize,
    /// Bytes of its calls in calls.
    pub stack: usize,
    /// How long a slice may take.
    pub slice: Duration,
    /// Bytes of one result, as JSON.
    pub result: usize,
}

impl Default for ScriptLimits {
    fn default() -> Self {
        ScriptLimits { memory: 128 << 20, stack: 1 << 20, slice: Duration::from_secs(2), result: 32 << 20 }
    }
}

/// What of a script is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallKind {
    /// Its module and the function that it exports.
    Load,
    /// A handler of an event, by its number.
    Handler,
    /// A command, by its name.
    Command,
    /// A tool, by its name.
    Tool,
    /// What completes the arguments of a command, by its name.
    Complete,
    /// A shortcut, by its key.
    Shortcut,
    /// A listener of the bus that extensions share, by the channel.
    Bus,
    /// A provider that it registered, by its name; the payload says what is asked of it.
    Provider,
}

impl CallKind {
    /// As `api.js` knows it.
    fn name(self) -> &'static str {
        match self {
            CallKind::Load => "load",
            CallKind::Handler => "handler",
            CallKind::Command => "command",
            CallKind::Tool => "tool",
            CallKind::Complete => "complete",
            CallKind::Shortcut => "shortcut",
            CallKind::Bus => "bus",
            CallKind::Provider => "provider",
        }
    }
}

/// A running extension. Dropping it stops whatever it does and frees its engine.
pub struct Script {
    jobs: mpsc::Sender<Job>,
    stop: Arc<AtomicBool>,
    last_call: AtomicU64,
    /// Closes when the thread has ended.
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl Script {
    /// Starts the engine and loads the module at `entry`, a file of `sources`. Must be called in a
    /// tokio runtime, where what the script asks its host for is done.
    pub async fn load(
        entry: PathBuf,
        sources: Arc<dyn ModuleSources>,
        host: Arc<dyn ScriptHost>,
        limits: ScriptLimits,
    ) -> Result<Self, ScriptError> {
        let (jobs, received) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (alive, ended) = oneshot::channel();
        let thread = ScriptThread {
            entry: entry.clone(),
            sources,
            host,
            limits,
            jobs: jobs.clone(),
            stop: stop.clone(),
            runtime: tokio::runtime::Handle::current(),
        };
        let name = entry.file_stem().map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
        std::thread::Builder::new()
            .name(format!("extension {name}"))
            // The engine's own limit, with room for the functions of the host.
            .stack_size(limits.stack + (1 << 20))
            .spawn(move || {
                thread.run(&received);
                drop(alive);
            })
            .map_err(ScriptError::Thread)?;
        let script = Script { jobs, stop, last_call: AtomicU64::new(0), ended: Mutex::new(Some(ended)) };
        script.call(CallKind::Load, &entry.to_string_lossy(), "null".into()).await?;
        Ok(script)
    }

    /// Calls a part of the script and waits for what it returns; `null` for nothing. `payload` is
    /// JSON. If the future is dropped, the script's abort signal for this call fires.
    pub async fn call(&self, kind: CallKind, key: &str, payload: String) -> Result<Value, ScriptError> {
        let id = self.last_call.fetch_add(1, Ordering::Relaxed) + 1;
        let (reply, answer) = oneshot::channel();
        let job = Job::Call { id, kind, key: key.to_owned(), payload, reply };
        self.jobs.send(job).map_err(|_| ScriptError::Stopped)?;
        let abandon = AbandonOnDrop { id, jobs: &self.jobs };
        let outcome = answer.await.unwrap_or(Err(ScriptError::Stopped));
        std::mem::forget(abandon);
        outcome
    }

    /// Stops the script, also for those who wait for its answers, and waits until its engine is gone, but no
    /// longer than `limit`. False if its thread goes on: one that is inside a function of the engine cannot
    /// be stopped, and nothing of it is used any more.
    pub async fn close(&self, limit: Duration) -> bool {
        self.stop();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        match ended {
            // An error is what is waited for: the other side is dropped with the thread.
            Some(ended) => tokio::time::timeout(limit, ended).await.is_ok(),
            None => true,
        }
    }

    fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        // A thread that has ended needs no job to end.
        let _ = self.jobs.send(Job::Stop);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Tells the script that nobody waits for a call any more.
struct AbandonOnDrop<'a> {
    id: u64,
    jobs: &'a mpsc::Sender<Job>,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        // A script that has stopped needs no signal.
        let _ = self.jobs.send(Job::Abandon { id: self.id });
    }
}

#[cfg(test)]
mod tests;
