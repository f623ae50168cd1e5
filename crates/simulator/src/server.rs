//! [`serve`]: the simulator as an HTTP server on loopback.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body as HttpBody;
use axum::extract::{Request as HttpRequest, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use axum::serve::ListenerExt;
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use hardpan_prompt::validate::MAX_REQUEST_BYTES;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::body_stream::{sleep_unless_cancelled, stream_body};
use crate::clock::Clock;
use crate::engine::{Engine, Request};
use crate::reply::{Body, Reply};
use crate::request_log::RequestLog;

/// How many bytes of an oversized request are read and dropped, so that its sender gets to read the
/// error.
const MAX_DRAINED_BYTES: usize = 4 * MAX_REQUEST_BYTES;

/// Bodies of more bytes are handled on a blocking thread, because counting their tokens would delay
/// other streams.
const LARGE_BODY_BYTES: usize = 64 << 10;

/// The address that the server listens on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// 127.0.0.1 with this port; 0 picks a free one.
    Loopback(u16),
    /// Any other address. Everyone who can reach it can use the simulator, which holds no secrets.
    At(SocketAddr),
}

/// The configuration of a [`Server`].
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The address to listen on.
    pub listen: Listen,
    /// The engine that answers the requests.
    pub engine: Arc<Engine>,
    /// The time source of requests and cache lifetimes.
    pub clock: Clock,
    /// Where every request is written down.
    pub log: Option<RequestLog>,
}

impl ServerConfig {
    /// Listens on a free port of 127.0.0.1, with the system clock.
    pub fn new(engine: Engine) -> Self {
        ServerConfig {
            listen: Listen::Loopback(0),
            engine: Arc::new(engine),
            clock: Clock::system(),
            log: None,
        }
    }
}

/// Why a server could not start, or stopped.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address is not available.
    #[error("{address} cannot be listened on: {error}; choose another port, or 0 for any that is free")]
    Bind {
        /// The address to listen on.
        address: SocketAddr,
        /// The operating system's error.
        #[source]
        error: io::Error,
    },
    /// The server stopped by itself.
    #[error("the server stopped: {0}")]
    Stopped(#[source] io::Error),
}

/// A running server. Dropping it leaves it running; [`stop`](Self::stop) ends it.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    engine: Arc<Engine>,
    closing: CancellationToken,
    cutting: CancellationToken,
    task: JoinHandle<io::Result<()>>,
}

/// Starts a server. Call it within a tokio runtime, which then runs the server.
///
/// ```
/// use std::time::Duration;
/// use hardpan_simulator::{Engine, EngineSettings, ServerConfig, serve};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let server = serve(ServerConfig::new(Engine::new(EngineSettings::default()))).await?;
/// println!("listening on {}", server.url());
/// server.stop(Duration::from_secs(1)).await
/// # }).unwrap();
/// ```
pub async fn serve(config: ServerConfig) -> Result<Server, ServeError> {
    let ServerConfig { listen, engine, clock, log } = config;
    let address = match listen {
        Listen::Loopback(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        Listen::At(address) => address,
    };
    let failed = |error| ServeError::Bind { address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (closing, cutting) = (CancellationToken::new(), CancellationToken::new());
    let shared = Arc::new(ServerState { engine: engine.clone(), clock, log, cutting: cutting.clone() });
    let router = Router::new().fallback(handle).with_state(shared);
    // Send small chunks at once. If the option cannot be set, they only leave a little later.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let running = axum::serve(listener, router).with_graceful_shutdown(closing.clone().cancelled_owned());
    let task = tokio::spawn(async move { running.await });
    Ok(Server { address, engine, closing, cutting, task })
}

impl Server {
    /// The socket address, with the actual port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL without a path: `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The engine, to inspect it or to clear its caches.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Accepts no more connections, lets running answers finish for `grace`, then cuts them.
    pub async fn stop(self, grace: Duration) -> Result<(), ServeError> {
        let Server { closing, cutting, mut task, .. } = self;
        closing.cancel();
        let ended = match tokio::time::timeout(grace, &mut task).await {
            Ok(ended) => ended,
            Err(_) => {
                cutting.cancel();
                // Answers are cut, but a request that is still coming in could come for ever.
                match tokio::time::timeout(Duration::from_secs(1), &mut task).await {
                    Ok(ended) => ended,
                    Err(_) => {
                        task.abort();
                        return Ok(());
                    }
                }
            }
        };
        server_result(ended)
    }

    /// Runs until the server fails, for commands that end with their process.
    pub async fn run(self) -> Result<(), ServeError> {
        server_result(self.task.await)
    }
}

fn server_result(ended: Result<io::Result<()>, tokio::task::JoinError>) -> Result<(), ServeError> {
    // A task that panicked or was cancelled is an `io::Error`, too.
    ended.unwrap_or_else(|error| Err(error.into())).map_err(ServeError::Stopped)
}

#[derive(Debug)]
struct ServerState {
    engine: Arc<Engine>,
    clock: Clock,
    log: Option<RequestLog>,
    cutting: CancellationToken,
}

async fn handle(State(shared): State<Arc<ServerState>>, request: HttpRequest) -> Response {
    let now = shared.clock.now();
    let (head, body) = request.into_parts();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let headers: Vec<(String, String)> = headers.collect();
    let Ok(body) = read(body).await else { return Response::default() }; // the sender has gone
    let is_large = body.len() > LARGE_BODY_BYTES;
    let engine = shared.engine.clone();
    let log = shared.log.clone();
    let answer = move || {
        let path = head.uri.path_and_query().map_or(head.uri.path(), |it| it.as_str());
        let method = head.method.as_str();
        let request = Request { method, path, headers: &headers, body: &body };
        let reply = engine.answer(&request, now);
        match log.map_or(Ok(()), |log| log.record(&request, &reply, now.0)) {
            Ok(()) => Some(reply),
            Err(_) => None, // a log with a gap is worse than an error
        }
    };
    let reply = if is_large { tokio::task::spawn_blocking(answer).await } else { Ok(answer()) };
    let Ok(Some(mut reply)) = reply else {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return response;
    };
    sleep_unless_cancelled(reply.delay, &shared.cutting).await;
    shared.engine.commit_cache(&mut reply, shared.clock.now());
    respond(reply, shared.cutting.clone())
}

fn respond(reply: Reply, cutting: CancellationToken) -> Response {
    let mut response = Response::new(match reply.body {
        Body::Whole(bytes) => HttpBody::from(bytes),
        body => HttpBody::from_stream(stream_body(body, cutting)),
    });
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// Reads the body; of an oversized one, enough to reject it.
async fn read(body: HttpBody) -> Result<Bytes, axum::Error> {
    let mut pieces = body.into_data_stream();
    let (mut bytes, mut size) = (BytesMut::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        size += piece.len();
        if bytes.len() <= MAX_REQUEST_BYTES {
            bytes.extend_from_slice(&piece);
        }
        if size > MAX_DRAINED_BYTES {
            break;
        }
    }
    Ok(bytes.freeze())
}
