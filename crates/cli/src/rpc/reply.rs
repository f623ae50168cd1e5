//! [`JsonWriter`] writes JSON lines to standard output; [`PendingResponse`] makes sure that each
//! request gets exactly one response.

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use super::response::{OutputMessage, Response, ResponseData};
use crate::output;

/// Writes one JSON object per line to standard output.
#[derive(Clone, Default)]
pub struct JsonWriter {
    reader_gone: Arc<Notify>,
}

impl JsonWriter {
    /// Writes a line. Blocks while the reader is slow.
    pub fn write_line(&self, value: &impl Serialize) {
        // Cannot fail: all our types have string keys.
        let Ok(json) = serde_json::to_string(value) else { return };
        if output::print(json + "\n").is_err() {
            self.reader_gone.notify_one();
        }
    }

    /// Waits until a write fails, which means that the client is gone.
    pub async fn wait_for_reader_gone(&self) {
        self.reader_gone.notified().await;
    }
}

/// The response to one request. Sent once; dropping it without sending reports a crash.
pub struct PendingResponse {
    out: JsonWriter,
    header: Mutex<Option<ResponseHeader>>,
}

struct ResponseHeader {
    id: Value,
    command: Option<String>,
    /// Dropped once the response is written.
    _sent: oneshot::Sender<()>,
}

impl PendingResponse {
    /// A response for the request with this id, and a handle that resolves once it is written.
    pub fn new(out: &JsonWriter, id: Value, command: Option<String>) -> (Self, ResponseSent) {
        let (sender, receiver) = oneshot::channel();
        let header = Mutex::new(Some(ResponseHeader { id, command, _sent: sender }));
        (PendingResponse { out: out.clone(), header }, ResponseSent(Some(receiver)))
    }

    /// Reports success.
    pub fn succeed(&self, data: impl Into<Option<ResponseData>>) {
        self.send(|| Ok(data.into()));
    }

    /// Reports failure.
    pub fn fail(&self, error: &(impl ToString + ?Sized)) {
        self.send(|| Err(error.to_string()));
    }

    fn send(&self, outcome: impl FnOnce() -> Result<Option<ResponseData>, String>) {
        let header = self.header.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ResponseHeader { id, command, _sent }) = header else { return };
        let (success, data, error) = match outcome() {
            Ok(data) => (true, data, None),
            Err(error) => (false, None, Some(error)),
        };
        self.out.write_line(&OutputMessage::Response(Response { id, command, success, data, error }));
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.fail("the command crashed. This is a bug in hardpan: please report it");
    }
}

/// Resolves when a request has its response; the default resolves at once.
#[derive(Default)]
pub struct ResponseSent(Option<oneshot::Receiver<()>>);

impl ResponseSent {
    pub async fn wait(self) {
        if let Some(receiver) = self.0 {
            // Resolves because the sender is dropped; nothing is ever sent.
            let _ = receiver.await;
        }
    }
}
