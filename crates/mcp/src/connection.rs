//! [`Connection`]: a server that was started or reached, and has listed its tools.

#![expect(deprecated, reason = "servers of today ask for roots and send messages for the log")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientConfig, ClientRequest,
    ErrorData, Implementation, JsonObject, ListRootsResult, LoggingMessageNotificationParam,
    PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion, RequestId, Root,
    ServerResult,
};
use rmcp::service::{
    ClientInitializeError, NotificationContext, Peer, PeerRequestOptions, RequestContext, RunningService,
    ServiceError, serve_client,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, RoleClient};

use crate::config::{ServerConfig, ServerName, ServerTransport};
use crate::error::ServerError;
use crate::program::{LastWords, MAX_LINE, ProgramPlace, ProgramTransport, ServerProgram};
use crate::results::{CallAnswer, make_answer};
use crate::tool_list::{ServerTool, make_tools, plain_text};

/// The most tools of one server.
const MAX_TOOLS: usize = 1000;

/// The most bytes of one server's list of tools.
const MAX_LIST_BYTES: usize = 4 << 20;

/// How many times the limit of a call it may take in all, however much progress it reports.
const MAX_EXTENSIONS: u32 = 30;

/// Receives what a server reports while a call runs.
type ProgressSender = tokio::sync::mpsc::Sender<String>;

/// A server that answers.
pub struct Connection {
    service: RunningService<RoleClient, ClientSide>,
    call_time: Duration,
    last_words: LastWords,
}

/// Who is told of the progress of each call. Nothing iterates over it, and the protocol's tokens have no order.
#[expect(clippy::disallowed_types, reason = "nothing iterates over it")]
type ProgressReports = std::collections::HashMap<ProgressToken, ProgressSender>;

/// The headers of each request, as the transport takes them. Their order means nothing.
#[expect(clippy::disallowed_types, reason = "nothing iterates over it")]
type Headers = std::collections::HashMap<http::HeaderName, http::HeaderValue>;

/// Our side of a connection: what the server may ask, and what it tells.
#[derive(Clone)]
struct ClientSide {
    server: Arc<str>,
    root_address: Option<Arc<str>>,
    progress: Arc<Mutex<ProgressReports>>,
    tools_changed: Arc<dyn Fn() + Send + Sync>,
}

impl Connection {
    /// Starts or reaches a server and asks for its tools, within the server's limit. `tools_changed` is
    /// called when the server says that its list is another one.
    pub async fn open(
        name: &ServerName,
        config: &ServerConfig,
        place: &ProgramPlace,
        tools_changed: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<(Self, Vec<ServerTool>), ServerError> {
        let last_words = LastWords::default();
        let side = ClientSide {
            server: name.as_str().into(),
            root_address: root_address(&place.root),
            progress: Arc::default(),
            tools_changed,
        };
        let opening = async {
            let service = match &config.transport {
                ServerTransport::Program { command, args, env, pass_environment, cwd } => {
                    let program = ServerProgram {
                        server: name.as_str(),
                        command,
                        args,
                        env,
                        pass_environment,
                        cwd: cwd.as_deref(),
                        sandbox: config.sandbox,
                    };
                    let transport = ProgramTransport::start(&program, place, &last_words)?;
                    serve_client(side, transport).await
                }
                ServerTransport::Http { url, headers, bearer_token_env } => {
                    let config = http_config(url, headers, bearer_token_env.as_deref(), place)?;
                    let client = http_client()?;
                    let transport = StreamableHttpClientTransport::with_client(client, config);
                    serve_client(side, transport).await
                }
            };
            let service = service.map_err(|error| start_error(&error, &last_words))?;
            check_version(service.peer())?;
            let call_time = config.call_time;
            let connection = Connection { service, call_time, last_words: last_words.clone() };
            let tools = connection.list_tools(name).await?;
            Ok((connection, tools))
        };
        match tokio::time::timeout(config.start_time, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(ServerError::StartTimeout(config.start_time, last_words.get())),
        }
    }

    /// Whether the server is gone.
    pub fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// The server's tools, in the order of their names.
    pub async fn list_tools(&self, name: &ServerName) -> Result<Vec<ServerTool>, ServerError> {
        let offers_tools =
            self.service.peer().peer_info().is_some_and(|info| info.capabilities.tools.is_some());
        if !offers_tools {
            return Ok(Vec::new());
        }
        let (mut listed, mut cursor, mut bytes) = (Vec::new(), None, 0);
        loop {
            let params = PaginatedRequestParams::default().with_cursor(cursor.take());
            let page = self.service.peer().list_tools(Some(params)).await;
            let page = page.map_err(|error| self.call_error(error))?;
            bytes += serde_json::to_vec(&page.tools).map_or(0, |page| page.len());
            let is_empty = page.tools.is_empty();
            listed.extend(page.tools);
            if listed.len() > MAX_TOOLS {
                return Err(ServerError::TooMuch { max: MAX_TOOLS, what: "tools" });
            }
            if bytes > MAX_LIST_BYTES {
                return Err(ServerError::TooMuch { max: MAX_LIST_BYTES, what: "bytes of tools" });
            }
            cursor = page.next_cursor;
            if cursor.is_none() || is_empty {
                return Ok(make_tools(name.as_str(), listed));
            }
        }
    }

    /// Calls a tool by the server's name for it. Dropping the future tells the server that the call is
    /// cancelled.
    pub async fn call(
        &self,
        tool: &str,
        arguments: JsonObject,
        progress: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<CallAnswer, ServerError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::with_timeout(self.call_time)
            .reset_timeout_on_progress()
            .with_max_total_timeout(self.call_time * MAX_EXTENSIONS);
        let peer = self.service.peer();
        let handle = peer.send_cancellable_request(request, options).await;
        let handle = handle.map_err(|error| self.call_error(error))?;
        let (sender, mut reports) = tokio::sync::mpsc::channel(16);
        let side = self.service.service();
        let token = handle.progress_token.clone();
        side.reports().insert(token.clone(), sender);
        let mut cancellation =
            Cancellation { peer: peer.clone(), id: Some(handle.id.clone()), side: side.clone(), token };
        let answer = handle.await_response();
        tokio::pin!(answer);
        let answer = loop {
            tokio::select! {
                answer = &mut answer => break answer,
                Some(report) = reports.recv() => progress(&report),
            }
        };
        cancellation.id = None;
        match answer.map_err(|error| self.call_error(error))? {
            ServerResult::CallToolResult(result) => Ok(make_answer(result)),
            _ => Err(ServerError::Protocol("it answered a call with something else".into())),
        }
    }

    fn call_error(&self, error: ServiceError) -> ServerError {
        match error {
            ServiceError::McpError(error) => ServerError::Answer(plain_text(&error.message, 2000)),
            ServiceError::Timeout { timeout } => ServerError::CallTimeout(timeout),
            ServiceError::TransportClosed | ServiceError::TransportSend(_) => {
                ServerError::Ended(self.last_words.get())
            }
            other => ServerError::Protocol(plain_text(&other.to_string(), 500)),
        }
    }
}

/// Tells the server that a call is no longer wanted, unless it was answered.
struct Cancellation {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
    side: ClientSide,
    token: ProgressToken,
}

impl Drop for Cancellation {
    fn drop(&mut self) {
        self.side.reports().remove(&self.token);
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let peer = self.peer.clone();
        runtime.spawn(async move {
            let params = CancelledNotificationParam::new(Some(id), Some("the user stopped it".into()));
            // A server that is gone need not be told.
            let _ = peer.notify_cancelled(params).await;
        });
    }
}

impl ClientSide {
    fn reports(&self) -> std::sync::MutexGuard<'_, ProgressReports> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientHandler for ClientSide {
    fn get_info(&self) -> ClientConfig {
        let capabilities = serde_json::from_value(serde_json::json!({"roots": {}})).unwrap_or_default();
        let us = Implementation::new("hardpan", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us).with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        let roots = self.root_address.iter().map(|address| Root::new(address.to_string()));
        Ok(ListRootsResult::new(roots.collect()))
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let sender = self.reports().get(&report.progress_token).cloned();
        let of = report.total.map(|total| format!(" of {total}")).unwrap_or_default();
        let message = report.message.map(|message| format!(": {}", plain_text(&message, 500)));
        let text = format!("{}{of}{}", report.progress, message.unwrap_or_default());
        if let Some(sender) = sender {
            // Reports that nobody has read yet are newer than none.
            let _ = sender.try_send(text);
        }
    }

    async fn on_logging_message(
        &self,
        message: LoggingMessageNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let data = plain_text(&message.data.to_string(), 2000);
        tracing::info!(server = %self.server, level = ?message.level, data = %data.escape_debug(), "log");
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        (self.tools_changed)();
    }
}

fn check_version(peer: &Peer<RoleClient>) -> Result<(), ServerError> {
    let version = peer.peer_info().map(|info| info.protocol_version.clone());
    match version {
        Some(version) if !ProtocolVersion::KNOWN_VERSIONS.contains(&version) => {
            Err(ServerError::UnknownVersion(plain_text(&version.to_string(), 40)))
        }
        _ => Ok(()),
    }
}

fn start_error(error: &ClientInitializeError, last_words: &LastWords) -> ServerError {
    match error {
        error if error.is_authorization_required() => ServerError::LoginRequired,
        ClientInitializeError::ConnectionClosed(_) => ServerError::Ended(last_words.get()),
        ClientInitializeError::TransportError { .. } if last_words.get().is_some() => {
            ServerError::Ended(last_words.get())
        }
        ClientInitializeError::JsonRpcError(error) => ServerError::Answer(plain_text(&error.message, 500)),
        other => ServerError::Protocol(plain_text(&causes(other), 500)),
    }
}

/// An error with what caused it.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}

fn root_address(root: &Path) -> Option<Arc<str>> {
    url::Url::from_directory_path(root).ok().map(|url| url.as_str().trim_end_matches('/').into())
}

fn http_config(
    url: &str,
    headers: &BTreeMap<String, String>,
    token: Option<&str>,
    place: &ProgramPlace,
) -> Result<StreamableHttpClientTransportConfig, ServerError> {
    let mut sent = Headers::new();
    for (name, value) in headers {
        let invalid = || ServerError::InvalidHeader(name.clone());
        let header: http::HeaderName = name.parse().map_err(|_| invalid())?;
        let mut value: http::HeaderValue = value.parse().map_err(|_| invalid())?;
        value.set_sensitive(true);
        sent.insert(header, value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(sent)
        .max_sse_event_size(MAX_LINE)
        .reinit_on_expired_session(true);
    let Some(variable) = token else { return Ok(config) };
    let token = place.environment.get(std::ffi::OsStr::new(variable)).and_then(|token| token.to_str());
    let token = token.ok_or_else(|| ServerError::NoToken(variable.to_owned()))?;
    Ok(config.auth_header(token))
}

/// A client that follows no redirect: a token goes only where the settings say.
fn http_client() -> Result<reqwest::Client, ServerError> {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10));
    builder.build().map_err(|error| ServerError::Protocol(causes(&error)))
}
