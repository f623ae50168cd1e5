//! [`ScriptHost`]: what a script asks for.

use futures_util::future::BoxFuture;
use serde_json::Value;
use thiserror::Error;

use super::fault::ScriptFault;

/// The program around a script. Names and arguments are those of the engine's `api.js`.
pub trait ScriptHost: Send + Sync + 'static {
    /// Does something that may take long. It runs in a task of its own, and its time does not count.
    fn call(&self, name: &str, arguments: Value) -> BoxFuture<'static, Result<Value, HostError>>;

    /// Does something at once, on the script's thread.
    fn call_now(&self, name: &str, arguments: Value) -> Result<Value, HostError>;

    /// Takes a line that the script wrote to its console.
    fn log(&self, level: LogLevel, text: &str);

    /// Takes a fault that no call returns: a promise that nobody waits for, a timer.
    fn fault(&self, fault: ScriptFault);
}

/// Why the host did not do what a script asked for; the script gets it as an `Error`.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct HostError(pub String);

/// How important a line of the console is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// `console.debug`
    Debug,
    /// `console.log`, `console.info`
    Info,
    /// `console.warn`
    Warn,
    /// `console.error`
    Error,
}
