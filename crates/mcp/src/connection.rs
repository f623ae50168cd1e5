//! [`Connection`]: a server that was started or reached, and has listed its tools.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{ClientRequest, ListToolsRequest, ProtocolVersion, ServerCapabilities, ServerResult};
use rmcp::service::{Peer, RunningService, ServiceError, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;

use crate::client_side::{ClientHost, ClientSide};
use crate::config::{ServerConfig, ServerName, ServerTransport};
use crate::error::ServerError;
use crate::error_output::ErrorOutput;
use crate::failures::{causes, other_answer, request_error, start_error};
use crate::http_client::{BoundedHttpClient, SessionRenewals};
use crate::login::{LoginClient, LoginFile, LoginTokens};
use crate::odd_answers::{ToolPage, read_tool_page};
use crate::page_cursor::PageCursor;
use crate::plain_text::plain_text;
use crate::program::{MAX_LINE, ProgramPlace, ProgramTransport, ServerProgram};
use crate::tool_list::{ServerTool, make_tools};

/// The most tools of one server.
const MAX_TOOLS: usize = 1000;

/// The most bytes of one server's list of tools.
const MAX_LIST_BYTES: usize = 4 << 20;

/// A server that answers.
pub struct Connection {
    pub(crate) name: ServerName,
    pub(crate) service: RunningService<RoleClient, ClientSide>,
    pub(crate) call_time: Duration,
    error_output: ErrorOutput,
    is_http: bool,
    renewals: SessionRenewals,
}

/// The headers of each request, as the transport takes them. Their order means nothing.
#[expect(clippy::disallowed_types, reason = "nothing iterates over it")]
type Headers = std::collections::HashMap<http::HeaderName, http::HeaderValue>;

impl Connection {
    /// Starts or reaches a server and asks for its tools, within the server's limit. The host
    /// is told what changes, and answers what the server asks.
    pub async fn open(
        name: &ServerName,
        config: &ServerConfig,
        place: &ProgramPlace,
        host: Arc<dyn ClientHost>,
    ) -> Result<(Self, Vec<ServerTool>), ServerError> {
        let (error_output, renewals) = (ErrorOutput::default(), SessionRenewals::default());
        let side = ClientSide::new(name.as_str(), root_address(&place.root), host.clone());
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
                    let transport = ProgramTransport::start(&program, place, &error_output)?;
                    serve_client(side, transport).await
                }
                ServerTransport::Http { url, headers, bearer_token_env } => {
                    let settings = http_config(url, headers, bearer_token_env.as_deref(), place)?;
                    let client = BoundedHttpClient::new(http_client()?, MAX_LINE, renewals.clone());
                    match login_tokens(name, config, place, &host)? {
                        Some(tokens) => {
                            let client = LoginClient::new(client, tokens);
                            serve_client(side, StreamableHttpClientTransport::with_client(client, settings))
                                .await
                        }
                        None => {
                            serve_client(side, StreamableHttpClientTransport::with_client(client, settings))
                                .await
                        }
                    }
                }
            };
            let service = match service {
                Ok(service) => service,
                Err(error) => {
                    // It may have ended before what it printed was read.
                    error_output.wait_for_end().await;
                    return Err(start_error(name, &error, &error_output));
                }
            };
            check_version(service.peer())?;
            let call_time = config.call_time;
            let (name, error_output) = (name.clone(), error_output.clone());
            let is_http = matches!(config.transport, ServerTransport::Http { .. });
            let renewals = renewals.clone();
            let connection = Connection { name, service, call_time, error_output, is_http, renewals };
            let tools = connection.list_tools(&connection.name).await?;
            Ok((connection, tools))
        };
        match tokio::time::timeout(config.start_time, opening).await {
            Ok(opened) => opened,
            Err(_) => Err(ServerError::StartTimeout(config.start_time, error_output.explain())),
        }
    }

    /// Whether the server is gone.
    pub fn is_closed(&self) -> bool {
        self.service.is_closed() || self.service.peer().is_transport_closed()
    }

    /// Ends the connection, and the server's processes with it, also for requests that still wait.
    pub(crate) fn end(&self) {
        self.service.cancellation_token().cancel();
    }

    /// Whether the server has forgotten its session since this was last asked, and with it what it was to
    /// tell. The transport begins another one.
    pub fn session_was_renewed(&self) -> bool {
        self.renewals.take()
    }

    /// The server's tools, in the order of their names.
    pub async fn list_tools(&self, name: &ServerName) -> Result<Vec<ServerTool>, ServerError> {
        if !self.offers(|capabilities| capabilities.tools.is_some()) {
            return Ok(Vec::new());
        }
        let (mut listed, mut left_out, mut bytes) = (Vec::new(), Vec::new(), 0);
        let mut cursor = PageCursor::default();
        loop {
            let page = self.list_page(&cursor).await?;
            bytes += serde_json::to_vec(&page.tools).map_or(0, |page| page.len());
            let is_empty = page.tools.is_empty();
            listed.extend(page.tools);
            left_out.extend(page.left_out);
            if listed.len() > MAX_TOOLS {
                return Err(ServerError::TooMuch { max: MAX_TOOLS, what: "tools" });
            }
            if bytes > MAX_LIST_BYTES {
                return Err(ServerError::TooMuch { max: MAX_LIST_BYTES, what: "bytes of tools" });
            }
            if !cursor.advance(name, page.next) || is_empty {
                if !left_out.is_empty() {
                    self.service.service().host().tools_left_out(&left_out);
                }
                return Ok(make_tools(name.as_str(), listed));
            }
        }
    }

    async fn list_page(&self, cursor: &PageCursor) -> Result<ToolPage, ServerError> {
        let request = ListToolsRequest { params: Some(cursor.params()), ..ListToolsRequest::default() };
        let answer = self.service.peer().send_request(ClientRequest::ListToolsRequest(request)).await;
        match answer.map_err(|error| self.call_error(error))? {
            ServerResult::ListToolsResult(page) => {
                Ok(ToolPage { tools: page.tools, left_out: Vec::new(), next: page.next_cursor })
            }
            ServerResult::CustomResult(page) => read_tool_page(&page.0).ok_or_else(other_answer),
            _ => Err(other_answer()),
        }
    }

    /// Whether the server says that it can do something.
    pub(crate) fn offers(&self, what: impl Fn(&ServerCapabilities) -> bool) -> bool {
        self.service.peer().peer_info().is_some_and(|info| what(&info.capabilities))
    }

    pub(crate) fn call_error(&self, error: ServiceError) -> ServerError {
        match request_error(&self.name, error, &self.error_output) {
            // Nothing that runs here has ended.
            ServerError::Ended(None) if self.is_http => ServerError::Broken(format!(
                "an answer ended too early, or had more than {} MB",
                MAX_LINE >> 20
            )),
            error => error,
        }
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

/// The tokens of a login at a server, unless the settings have a token themselves.
fn login_tokens(
    name: &ServerName,
    config: &ServerConfig,
    place: &ProgramPlace,
    host: &Arc<dyn ClientHost>,
) -> Result<Option<Arc<LoginTokens>>, ServerError> {
    let (true, Some(folder)) = (config.can_log_in(), &place.logins) else { return Ok(None) };
    let ServerTransport::Http { url, .. } = &config.transport else { return Ok(None) };
    LoginTokens::open(&LoginFile::new(folder, name, url), host).map_err(ServerError::Login)
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
pub(crate) fn http_client() -> Result<reqwest::Client, ServerError> {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10));
    builder.build().map_err(|error| ServerError::Protocol(causes(&error)))
}
