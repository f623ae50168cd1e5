//! Standard output, line by line, and the one response that each request gets.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use super::response::{Data, Line, Response};
use crate::output;

/// Standard output: only whole lines, one JSON object each.
#[derive(Clone, Default)]
pub struct Out {
    gone: Arc<Notify>,
}

impl Out {
    /// Writes a line. The reader may take its time: whoever has something to say waits for it.
    pub fn line(&self, value: &impl Serialize) {
        // What is written here has no keys that are no text, and no way to fail.
        let Ok(json) = serde_json::to_string(value) else { return };
        if output::print(json + "\n").is_err() {
            self.gone.notify_one();
        }
    }

    /// Waits until the reader has gone away.
    pub async fn gone(&self) {
        self.gone.notified().await;
    }
}

/// The response to one request: sent once, whatever happens.
pub struct Reply {
    out: Out,
    asked: Mutex<Option<Asked>>,
}

struct Asked {
    id: Value,
    command: Option<String>,
    /// Dropped once the response is written.
    _settled: oneshot::Sender<()>,
}

impl Reply {
    /// A response that is still to come, and what tells when it was written.
    pub fn new(out: &Out, id: Value, command: Option<String>) -> (Self, Settled) {
        let (sender, receiver) = oneshot::channel();
        let asked = Mutex::new(Some(Asked { id, command, _settled: sender }));
        (Reply { out: out.clone(), asked }, Settled(Some(receiver)))
    }

    /// It was done.
    pub fn done(&self, data: impl Into<Option<Data>>) {
        self.send(|| Ok(data.into()));
    }

    /// It was not done.
    pub fn failed(&self, error: &(impl ToString + ?Sized)) {
        self.send(|| Err(error.to_string()));
    }

    fn send(&self, outcome: impl FnOnce() -> Result<Option<Data>, String>) {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Asked { id, command, _settled }) = asked else { return };
        let (success, data, error) = match outcome() {
            Ok(data) => (true, data, None),
            Err(error) => (false, None, Some(error)),
        };
        self.out.line(&Line::Response(Response { id, command, success, data, error }));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.failed("the command broke; this is a fault of hardpan: please report it");
    }
}

/// Tells when a request has its response.
#[derive(Default)]
pub struct Settled(Option<oneshot::Receiver<()>>);

impl Settled {
    /// Waits for it.
    pub async fn wait(self) {
        if let Some(receiver) = self.0 {
            // Nothing is ever sent: the other end is dropped.
            let _ = receiver.await;
        }
    }
}
