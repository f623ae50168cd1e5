//! [`PendingResponse`] makes sure that each request gets exactly one response.

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use tokio::sync::oneshot;

use super::error::RpcError;
use super::response::{OutputMessage, Response, ResponseData};
use super::writer::JsonWriter;

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
        self.succeed_with(data.into(), |response| self.out.write_line(response));
    }

    /// Reports success through `write`.
    pub fn succeed_with(&self, data: Option<ResponseData>, write: impl FnOnce(&OutputMessage)) {
        self.respond(Ok(data), write);
    }

    /// Reports failure.
    pub fn fail(&self, error: impl Into<RpcError>) {
        self.respond(Err(error.into()), |response| self.out.write_line(response));
    }

    /// Passes the response to `write`, unless it was sent before.
    fn respond(&self, outcome: Result<Option<ResponseData>, RpcError>, write: impl FnOnce(&OutputMessage)) {
        let header = self.header.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(ResponseHeader { id, command, _sent }) = header else { return };
        let (success, data, error) = match outcome {
            Ok(data) => (true, data, None),
            Err(error) => (false, None, Some(error.to_string())),
        };
        write(&OutputMessage::Response(Box::new(Response { id, command, success, data, error })));
    }
}

impl Drop for PendingResponse {
    fn drop(&mut self) {
        self.fail(RpcError::Crashed);
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
