//! [`InProcessTransport`]: the simulator as a transport, without a socket, with the same answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use hardpan_providers::{HttpRequest, HttpResponse, Transport, TransportError};
use tokio_util::sync::CancellationToken;

use crate::body_stream::stream_body;
use crate::clock::Clock;
use crate::engine::{Engine, Request};

/// The host name in [`BASE_URL`], the only one that the transport answers for.
pub const HOST: &str = "simulator";

/// The base URL for requests to a simulator within the process.
pub const BASE_URL: &str = "http://simulator/v1";

/// A simulated provider within the process.
///
/// ```
/// use std::sync::Arc;
/// use hardpan_providers::{HttpMethod, HttpRequest, Transport};
/// use hardpan_simulator::{BASE_URL, Clock, Engine, EngineSettings, InProcessTransport};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let engine = Arc::new(Engine::new(EngineSettings::default()));
/// let provider = InProcessTransport::new(engine, Clock::system());
/// let body = r#"{"model":"claude-sonnet-5","max_tokens":100,"messages":[{"role":"user","content":"Hello!"}]}"#;
/// let headers = [("x-api-key", "any"), ("anthropic-version", "2023-06-01")];
/// let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
/// let url = format!("{BASE_URL}/messages");
/// let request = HttpRequest { method: HttpMethod::Post, url, headers, body: body.into() };
/// assert_eq!(provider.send(request).await.unwrap().status, 200);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct InProcessTransport {
    engine: Arc<Engine>,
    clock: Clock,
}

impl InProcessTransport {
    /// A transport that answers with `engine` at the time of `clock`.
    pub fn new(engine: Arc<Engine>, clock: Clock) -> Self {
        InProcessTransport { engine, clock }
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let HttpRequest { method, url, headers, body } = request;
        let path = path_of(&url)?;
        let sent = Request { method: method.name(), path, headers: &headers, body: &body };
        let mut reply = self.engine.answer(&sent, self.clock.now());
        if !reply.delay.is_zero() {
            tokio::time::sleep(reply.delay).await;
        }
        self.engine.commit_cache(&mut reply, self.clock.now());
        let broken = |error: crate::ConnectionCut| TransportError::Broken {
            host: HOST.into(),
            reason: error.to_string(),
        };
        let body = stream_body(reply.body, CancellationToken::new()).map(move |piece| piece.map_err(broken));
        let headers = reply.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(HttpResponse { status: reply.status, headers, body: Box::pin(body) })
    }
}

impl Transport for InProcessTransport {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        Box::pin(self.answer(request))
    }
}

/// The path of a URL on this host.
fn path_of(url: &str) -> Result<&str, TransportError> {
    let (_, rest) = url
        .split_once("://")
        .ok_or_else(|| TransportError::Invalid { reason: format!("{url} is not a URL") })?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if host != HOST {
        let reason = format!("the simulator within the process answers only for {BASE_URL}");
        return Err(TransportError::Unreachable { host: host.to_owned(), reason });
    }
    Ok(path)
}
