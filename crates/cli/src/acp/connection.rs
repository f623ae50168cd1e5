//! [`Connection`]: everything that goes to the client, one JSON-RPC message per line, and the requests
//! that wait for its answer.
//!
//! A thread of its own writes. While a client does not read, whoever has something to say waits; nothing
//! else does.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol_schema::v1::{ClientCapabilities, Error};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::output;

/// How many lines wait for the client before those who write them wait.
const MAX_BACKLOG: usize = 256;

/// The client's answer to a request.
pub type Answer = Result<Value, Error>;

/// The connection to the client.
#[derive(Clone)]
pub struct Connection(Arc<Inner>);

struct Inner {
    lines: mpsc::Sender<String>,
    client_gone: Arc<Notify>,
    last_id: AtomicU64,
    /// None once no more answers will come.
    waiting: Mutex<Option<BTreeMap<u64, oneshot::Sender<Answer>>>>,
    client: Mutex<ClientCapabilities>,
}

impl Connection {
    /// Starts to write. The receiver resolves when the last line is written.
    pub fn start() -> (Self, oneshot::Receiver<()>) {
        let (lines, mut received) = mpsc::channel::<String>(MAX_BACKLOG);
        let (done, written) = oneshot::channel();
        let client_gone = Arc::new(Notify::new());
        let gone = client_gone.clone();
        std::thread::spawn(move || {
            while let Some(line) = received.blocking_recv() {
                if output::print_json_line(line).is_err() {
                    gone.notify_one();
                }
            }
            // Nobody may be waiting any more.
            let _ = done.send(());
        });
        let inner = Inner {
            lines,
            client_gone,
            last_id: AtomicU64::new(0),
            waiting: Mutex::new(Some(BTreeMap::new())),
            client: Mutex::default(),
        };
        (Connection(Arc::new(inner)), written)
    }

    /// Writes a message, once there is room for it.
    pub async fn write(&self, message: &impl Serialize) {
        // Cannot fail: all our types have string keys.
        let Ok(line) = serde_json::to_string(message) else { return };
        // Fails once the thread has ended; nobody reads any more then.
        let _ = self.0.lines.send(line).await;
    }

    /// Answers a request.
    pub async fn respond(&self, id: &Value, answer: Answer) {
        self.write(&response(id, answer)).await;
    }

    /// A request to the client, as a message to be written, and what waits for its answer. None once no
    /// more answers will come.
    pub fn request(&self, method: &str, params: &Value) -> Option<(Value, PendingAnswer)> {
        let id = self.next_number();
        let (sender, receiver) = oneshot::channel();
        self.waiting().as_mut()?.insert(id, sender);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        Some((message, PendingAnswer { connection: self.clone(), id, receiver }))
    }

    /// A number that was not given before.
    pub fn next_number(&self) -> u64 {
        self.0.last_id.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Delivers the client's answer. False if nobody waits for it: the run was stopped, or it never was
    /// asked.
    pub fn deliver(&self, id: &Value, answer: Answer) -> bool {
        let sender = id.as_u64().and_then(|id| self.waiting().as_mut()?.remove(&id));
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }

    /// No more answers will come.
    pub fn close(&self) {
        self.waiting().take();
    }

    /// Waits until a write fails, which means that the client is gone.
    pub async fn wait_for_client_gone(&self) {
        self.0.client_gone.notified().await;
    }

    /// What the client can do, as it said at the start.
    pub fn client(&self) -> ClientCapabilities {
        self.0.client.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_client(&self, client: ClientCapabilities) {
        *self.0.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    fn waiting(&self) -> MutexGuard<'_, Option<BTreeMap<u64, oneshot::Sender<Answer>>>> {
        self.0.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The message that answers a request.
pub fn response(id: &Value, answer: Answer) -> Value {
    match answer {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(error) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
    }
}

/// A request that waits for the client's answer. Dropping it gives the request up.
pub struct PendingAnswer {
    connection: Connection,
    id: u64,
    receiver: oneshot::Receiver<Answer>,
}

impl PendingAnswer {
    /// None if no answer comes any more.
    pub async fn wait(mut self) -> Option<Answer> {
        (&mut self.receiver).await.ok()
    }
}

impl Drop for PendingAnswer {
    fn drop(&mut self) {
        if let Some(waiting) = self.connection.waiting().as_mut() {
            waiting.remove(&self.id);
        }
    }
}
