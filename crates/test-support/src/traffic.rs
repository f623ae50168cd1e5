//! [`SentRequest`]: every request and its answer, to the byte.

use std::pin::Pin;
use std::sync::{Arc, Mutex};

use futures_util::TryStreamExt;
use hardpan_providers::{HttpRequest, HttpResponse, Transport, TransportError};
use serde_json::Value;

/// A request as it was sent, and what came back.
#[derive(Clone, Debug)]
pub struct SentRequest {
    /// The body, to the byte.
    pub body: String,
    /// The status of the answer; 0 until it has come.
    pub status: u16,
    /// As much of the answer's body as was read, to the byte.
    pub answer: String,
}

impl SentRequest {
    /// The body, parsed.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// The requests of all agents of a test, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic {
    pub sent: Arc<Mutex<Vec<SentRequest>>>,
    /// URL of the next request, if it does not go to the simulator.
    pub elsewhere: Arc<Mutex<Option<String>>>,
}

/// Records what goes through another transport.
pub(crate) struct RecordingTransport {
    pub inner: Arc<dyn Transport>,
    pub traffic: Traffic,
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

impl Transport for RecordingTransport {
    fn send(&self, mut request: HttpRequest) -> Sending<'_> {
        let body = String::from_utf8(request.body.to_vec()).expect("JSON is UTF-8");
        let sent = self.traffic.sent.clone();
        let index = {
            let mut sent = sent.lock().expect("the requests");
            sent.push(SentRequest { body, status: 0, answer: String::new() });
            sent.len() - 1
        };
        if let Some(url) = self.traffic.elsewhere.lock().expect("the address").take() {
            request.url = url;
        }
        Box::pin(async move {
            let mut response = self.inner.send(request).await?;
            sent.lock().expect("the requests")[index].status = response.status;
            response.body = Box::pin(response.body.inspect_ok(move |chunk| {
                let text = String::from_utf8_lossy(chunk);
                sent.lock().expect("the requests")[index].answer.push_str(&text);
            }));
            Ok(response)
        })
    }
}
