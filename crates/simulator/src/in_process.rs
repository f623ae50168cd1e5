//! The simulator as a transport: no socket, the same answers.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::StreamExt;
use hardpan_providers::{HttpRequest, HttpResponse, Transport, TransportError};
use tokio_util::sync::CancellationToken;

use crate::clock::Clock;
use crate::engine::{Engine, Request};
use crate::play::play;

/// The host that requests go to.
pub const HOST: &str = "simulator";

/// The base URL that requests within the process go to.
pub const BASE_URL: &str = "http://simulator/v1";

/// A provider within the process.
///
/// ```
/// use std::sync::Arc;
/// use hardpan_providers::{HttpRequest, Transport};
/// use hardpan_simulator::{BASE_URL, Clock, Engine, InProcess, Settings};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let provider = InProcess::new(Arc::new(Engine::new(Settings::default())), Clock::system());
/// let body = r#"{"model":"claude-sonnet-5","max_tokens":100,"messages":[{"role":"user","content":"Hello!"}]}"#;
/// let headers = [("x-api-key", "any"), ("anthropic-version", "2023-06-01")];
/// let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
/// let request = HttpRequest { url: format!("{BASE_URL}/messages"), headers, body: body.into() };
/// assert_eq!(provider.send(request).await.unwrap().status, 200);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct InProcess {
    engine: Arc<Engine>,
    clock: Clock,
}

impl InProcess {
    /// Answers with `engine`, by `clock`.
    pub fn new(engine: Arc<Engine>, clock: Clock) -> Self {
        InProcess { engine, clock }
    }

    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, TransportError> {
        let HttpRequest { url, headers, body } = request;
        let path = path_of(&url)?;
        let sent = Request { method: "POST", path, headers: &headers, body: &body };
        let mut reply = self.engine.answer(&sent, self.clock.now());
        if !reply.delay.is_zero() {
            tokio::time::sleep(reply.delay).await;
        }
        self.engine.begin(&mut reply, self.clock.now());
        let broken =
            |error: crate::Broken| TransportError::Broken { host: HOST.into(), reason: error.to_string() };
        let body = play(reply.body, CancellationToken::new()).map(move |piece| piece.map_err(broken));
        let headers = reply.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Ok(HttpResponse { status: reply.status, headers, body: Box::pin(body) })
    }
}

impl Transport for InProcess {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        Box::pin(self.answer(request))
    }
}

/// The path of an address on this host.
fn path_of(url: &str) -> Result<&str, TransportError> {
    let (_, rest) = url
        .split_once("://")
        .ok_or_else(|| TransportError::Invalid { reason: format!("{url} is no address") })?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if host != HOST {
        let reason = format!("the simulator within the process answers only for {BASE_URL}");
        return Err(TransportError::Unreachable { host: host.to_owned(), reason });
    }
    Ok(path)
}
