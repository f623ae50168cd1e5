//! The simulator as a server on loopback.

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

use crate::clock::Clock;
use crate::engine::{Engine, Request};
use crate::play::{pause, play};
use crate::reply::{Body, Reply};

/// How much of a request that is too large is read and dropped, so that its sender gets to read the refusal.
const DRAINED: usize = 4 * MAX_REQUEST_BYTES;

/// A body of more bytes is counted on a thread of its own, so that the streams of others go on.
const LARGE: usize = 64 << 10;

/// Where the server listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// On 127.0.0.1, at this port; 0 takes one that is free.
    Loopback(u16),
    /// Elsewhere. Whoever reaches this address can use the simulator: it has no secrets and does no work but its own.
    At(SocketAddr),
}

/// How a server runs.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: Listen,
    /// What it answers with.
    pub engine: Arc<Engine>,
    /// What time it is.
    pub clock: Clock,
}

impl Config {
    /// On a free port of 127.0.0.1, by the machine's clock.
    pub fn new(engine: Engine) -> Self {
        Config { listen: Listen::Loopback(0), engine: Arc::new(engine), clock: Clock::system() }
    }
}

/// Why there is no server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("{address} cannot be listened on: {error}; choose another port, or 0 for any that is free")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The server stopped by itself.
    #[error("the server stopped: {0}")]
    Stopped(String),
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

/// Starts a server. It must be called within a tokio runtime, in which the server then runs.
///
/// ```
/// use std::time::Duration;
/// use hardpan_simulator::{Config, Engine, Settings, serve};
///
/// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
/// let server = serve(Config::new(Engine::new(Settings::default()))).await?;
/// println!("listening on {}", server.url());
/// server.stop(Duration::from_secs(1)).await
/// # }).unwrap();
/// ```
pub async fn serve(config: Config) -> Result<Server, ServeError> {
    let Config { listen, engine, clock } = config;
    let address = match listen {
        Listen::Loopback(port) => SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        Listen::At(address) => address,
    };
    let failed = |error| ServeError::Bind { address, error };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let (closing, cutting) = (CancellationToken::new(), CancellationToken::new());
    let shared = Arc::new(Shared { engine: engine.clone(), clock, cutting: cutting.clone() });
    let router = Router::new().fallback(handle).with_state(shared);
    // Small pieces leave at once, as a stream's should. Where that cannot be set, they leave a little later.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let running = axum::serve(listener, router).with_graceful_shutdown(closing.clone().cancelled_owned());
    let task = tokio::spawn(async move { running.await });
    Ok(Server { address, engine, closing, cutting, task })
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where it listens, as an address for people and clients: `http://127.0.0.1:8080`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it answers with.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Takes no more connections, lets answers finish for so long, and then cuts them.
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
        finished(ended)
    }

    /// Runs until it fails: for a command that ends with its process.
    pub async fn run(self) -> Result<(), ServeError> {
        finished(self.task.await)
    }
}

fn finished(ended: Result<io::Result<()>, tokio::task::JoinError>) -> Result<(), ServeError> {
    let ended = ended.map_err(|error| ServeError::Stopped(error.to_string()))?;
    ended.map_err(|error| ServeError::Stopped(error.to_string()))
}

#[derive(Debug)]
struct Shared {
    engine: Arc<Engine>,
    clock: Clock,
    cutting: CancellationToken,
}

async fn handle(State(shared): State<Arc<Shared>>, request: HttpRequest) -> Response {
    let now = shared.clock.now();
    let (head, body) = request.into_parts();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let headers: Vec<(String, String)> = headers.collect();
    let Ok(body) = read(body).await else { return Response::default() }; // the sender has gone
    let is_large = body.len() > LARGE;
    let engine = shared.engine.clone();
    let answer = move || {
        let (method, path) = (head.method.as_str(), head.uri.path());
        engine.answer(&Request { method, path, headers: &headers, body: &body }, now)
    };
    let reply = if is_large { tokio::task::spawn_blocking(answer).await } else { Ok(answer()) };
    let Ok(mut reply) = reply else {
        let mut response = Response::default();
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        return response;
    };
    pause(reply.delay, &shared.cutting).await;
    shared.engine.begin(&mut reply, shared.clock.now());
    respond(reply, shared.cutting.clone())
}

fn respond(reply: Reply, cutting: CancellationToken) -> Response {
    let mut response = Response::new(match reply.body {
        Body::Whole(bytes) => HttpBody::from(bytes),
        body => HttpBody::from_stream(play(body, cutting)),
    });
    *response.status_mut() = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in reply.headers {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(HeaderName::from_static(name), value);
        }
    }
    response
}

/// The body, or as much of it as shows that it is too large.
async fn read(body: HttpBody) -> Result<Bytes, axum::Error> {
    let mut pieces = body.into_data_stream();
    let (mut kept, mut size) = (BytesMut::new(), 0);
    while let Some(piece) = pieces.next().await {
        let piece = piece?;
        size += piece.len();
        if kept.len() <= MAX_REQUEST_BYTES {
            kept.extend_from_slice(&piece);
        }
        if size > DRAINED {
            break;
        }
    }
    Ok(kept.freeze())
}
