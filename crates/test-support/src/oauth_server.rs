//! [`OauthServer`]: an MCP server on loopback that asks for a login, and its authorization server. Both are
//! strict: whatever a client does wrong is refused and noted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

use crate::{ReceivedRequest, TestResponse, TestServer};

/// The scope that the server asks for.
const SCOPE: &str = "tickets";

/// What such a server does wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OauthFault {
    /// Nothing.
    #[default]
    None,
    /// The person denies the login.
    Denies,
    /// The metadata of the resource name this address as the resource.
    Resource(String),
    /// The metadata of the authorization server have this field with this value.
    Metadata(&'static str, Value),
    /// The metadata have many bytes.
    LargeMetadata(usize),
    /// The token endpoint redirects there.
    TokenRedirect(String),
    /// The redirect names another issuer.
    ForeignIssuer,
    /// The tool answers with the token that it was called with.
    TellsTokens,
}

/// Such a server. It ends when it is dropped.
pub struct OauthServer {
    server: TestServer,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    fault: OauthFault,
    /// How long tokens last, in seconds.
    expires_in: u64,
    clients: BTreeMap<String, String>,
    codes: BTreeMap<String, Grant>,
    /// The refresh tokens that can be used, each once.
    refresh_tokens: BTreeSet<String>,
    access_tokens: BTreeSet<String>,
    /// All tokens that were ever given out.
    secrets: Vec<String>,
    refreshes: usize,
    violations: Vec<String>,
    count: usize,
}

/// What a code stands for.
struct Grant {
    client: String,
    redirect_uri: String,
    challenge: String,
    resource: String,
}

type Fields = BTreeMap<String, String>;

impl OauthServer {
    /// Starts a server whose tokens last this many seconds.
    pub fn start(expires_in: u64, fault: OauthFault) -> Self {
        let state = Arc::new(Mutex::new(State { fault, expires_in, ..State::default() }));
        let shared = state.clone();
        let server = TestServer::start(move |_, request| lock(&shared).answer(request));
        OauthServer { server, state }
    }

    /// The address of the MCP server.
    pub fn url(&self) -> String {
        self.server.url() + "/mcp"
    }

    /// The authorization server.
    pub fn issuer(&self) -> String {
        self.server.url()
    }

    /// Every request so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.server.received()
    }

    /// What clients did wrong so far.
    pub fn violations(&self) -> Vec<String> {
        lock(&self.state).violations.clone()
    }

    /// All tokens that were ever given out.
    pub fn secrets(&self) -> Vec<String> {
        lock(&self.state).secrets.clone()
    }

    /// How often a token was refreshed.
    pub fn refreshes(&self) -> usize {
        lock(&self.state).refreshes
    }

    /// Whether a login can still be used.
    pub fn has_login(&self) -> bool {
        !lock(&self.state).refresh_tokens.is_empty()
    }

    /// Ends all access tokens, whatever they were said to last.
    pub fn end_access_tokens(&self) {
        lock(&self.state).access_tokens.clear();
    }

    /// Ends all logins.
    pub fn end_logins(&self) {
        let mut state = lock(&self.state);
        state.access_tokens.clear();
        state.refresh_tokens.clear();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    fn answer(&mut self, request: &ReceivedRequest) -> TestResponse {
        let base = format!("http://{}", request.header("host").unwrap_or_default());
        let (path, query) = request.path.split_once('?').unwrap_or((&request.path, ""));
        let query: Fields = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        match (&*request.method, path) {
            ("GET", "/.well-known/oauth-protected-resource/mcp") => self.resource_metadata(&base),
            ("GET", "/.well-known/oauth-authorization-server") => self.server_metadata(&base),
            ("POST", "/register") => self.register(&request.body),
            ("GET", "/authorize") => self.authorize(&base, &query),
            ("POST", "/token") => self.token(&base, &fields(&request.body)),
            ("POST", "/revoke") => {
                let mut form = fields(&request.body);
                // As servers do that are made with the Python SDK of the protocol.
                if !form.contains_key("client_secret") {
                    return TestResponse::json(400, &json!({"error": "invalid_request"}));
                }
                let token = form.remove("token").unwrap_or_default();
                self.refresh_tokens.remove(&token);
                TestResponse::json(200, &json!({}))
            }
            (_, "/mcp") => self.resource(&base, request),
            _ => TestResponse::json(404, &json!({"error": "not here"})),
        }
    }

    fn refuse(&mut self, error: &str, reason: impl Into<String>) -> TestResponse {
        self.violations.push(reason.into());
        TestResponse::json(400, &json!({"error": error}))
    }

    fn new_secret(&mut self, kind: &str) -> String {
        self.count += 1;
        let secret = format!("{kind}-{}-of-the-test", self.count);
        self.secrets.push(secret.clone());
        secret
    }

    fn resource_metadata(&self, base: &str) -> TestResponse {
        let resource = match &self.fault {
            OauthFault::Resource(other) => other.clone(),
            _ => format!("{base}/mcp"),
        };
        let metadata =
            json!({"resource": resource, "authorization_servers": [base], "scopes_supported": [SCOPE]});
        TestResponse::json(200, &metadata)
    }

    fn server_metadata(&self, base: &str) -> TestResponse {
        let mut metadata = json!({
            "issuer": base,
            "authorization_endpoint": format!("{base}/authorize"),
            "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"),
            "revocation_endpoint": format!("{base}/revoke"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": true,
        });
        match &self.fault {
            OauthFault::Metadata(name, value) => metadata[*name] = value.clone(),
            OauthFault::LargeMetadata(bytes) => metadata["padding"] = "x".repeat(*bytes).into(),
            _ => {}
        }
        TestResponse::json(200, &metadata)
    }

    fn register(&mut self, body: &Value) -> TestResponse {
        let redirect_uri = body["redirect_uris"][0].as_str().unwrap_or_default().to_owned();
        if !redirect_uri.starts_with("http://127.0.0.1:") || body["token_endpoint_auth_method"] != "none" {
            return self.refuse("invalid_client_metadata", format!("registered as {body}"));
        }
        self.count += 1;
        let id = format!("client-{}", self.count);
        self.clients.insert(id.clone(), redirect_uri.clone());
        TestResponse::json(201, &json!({"client_id": id, "redirect_uris": [redirect_uri]}))
    }

    /// The page of the person, who agrees at once.
    fn authorize(&mut self, base: &str, query: &Fields) -> TestResponse {
        let get = |name: &str| query.get(name).cloned().unwrap_or_default();
        let (client, redirect_uri) = (get("client_id"), get("redirect_uri"));
        if self.clients.get(&client) != Some(&redirect_uri) {
            return self.refuse("invalid_request", format!("{client} came with {redirect_uri}"));
        }
        let is_right = get("response_type") == "code"
            && get("code_challenge_method") == "S256"
            && get("code_challenge").len() == 43
            && get("state").len() >= 16
            && get("scope") == SCOPE
            && get("resource") == format!("{base}/mcp");
        if !is_right {
            return self.refuse("invalid_request", format!("asked for {query:?}"));
        }
        let mut back = Url::parse(&redirect_uri).expect("it was registered");
        let issuer = if self.fault == OauthFault::ForeignIssuer { "http://127.0.0.1:1" } else { base };
        back.query_pairs_mut().append_pair("state", &get("state")).append_pair("iss", issuer);
        if self.fault == OauthFault::Denies {
            back.query_pairs_mut().append_pair("error", "access_denied");
            back.query_pairs_mut().append_pair("error_description", "not\u{1b}[31m today");
        } else {
            let code = self.new_secret("code");
            back.query_pairs_mut().append_pair("code", &code);
            let (challenge, resource) = (get("code_challenge"), get("resource"));
            self.codes.insert(code, Grant { client, redirect_uri, challenge, resource });
        }
        TestResponse::new(302, "text/html", "").with_header("location", back.as_str())
    }

    fn token(&mut self, base: &str, form: &Fields) -> TestResponse {
        if let OauthFault::TokenRedirect(there) = &self.fault {
            return TestResponse::new(307, "text/html", "").with_header("location", there.clone());
        }
        let get = |name: &str| form.get(name).cloned().unwrap_or_default();
        let client = get("client_id");
        if !self.clients.contains_key(&client) || get("resource") != format!("{base}/mcp") {
            return self.refuse("invalid_request", format!("asked for a token with {:?}", form.keys()));
        }
        match &*get("grant_type") {
            "authorization_code" => {
                let Some(grant) = self.codes.remove(&get("code")) else {
                    return self.refuse("invalid_grant", "the code is not known, or was used");
                };
                let digest = ring::digest::digest(&ring::digest::SHA256, get("code_verifier").as_bytes());
                let is_right = grant.client == client
                    && grant.redirect_uri == get("redirect_uri")
                    && grant.resource == get("resource")
                    && grant.challenge == URL_SAFE_NO_PAD.encode(digest);
                if !is_right {
                    return self.refuse("invalid_grant", "the code is for somebody else");
                }
            }
            "refresh_token" => {
                if !self.refresh_tokens.remove(&get("refresh_token")) {
                    let was_given = self.secrets.contains(&get("refresh_token"));
                    if was_given && !self.refresh_tokens.is_empty() {
                        // Somebody has stolen it, or two processes do not know of each other.
                        self.refresh_tokens.clear();
                        return self.refuse("invalid_grant", "a refresh token was used twice");
                    }
                    return TestResponse::json(400, &json!({"error": "invalid_grant"}));
                }
                self.refreshes += 1;
            }
            other => return self.refuse("unsupported_grant_type", format!("asked for a token by {other}")),
        }
        let (access, refresh) = (self.new_secret("access"), self.new_secret("refresh"));
        self.access_tokens.insert(access.clone());
        self.refresh_tokens.insert(refresh.clone());
        let expires_in = self.expires_in;
        TestResponse::json(
            200,
            &json!({"access_token": access, "token_type": "Bearer", "expires_in": expires_in, "refresh_token": refresh, "scope": SCOPE}),
        )
    }

    /// The MCP server, with one tool.
    fn resource(&self, base: &str, request: &ReceivedRequest) -> TestResponse {
        let token = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        if !token.is_some_and(|token| self.access_tokens.contains(token)) {
            let place = format!("{base}/.well-known/oauth-protected-resource/mcp");
            let challenge = format!("Bearer resource_metadata=\"{place}\", scope=\"{SCOPE}\"");
            return TestResponse::json(401, &json!({})).with_header("www-authenticate", challenge);
        }
        if request.method != "POST" {
            return TestResponse::json(405, &json!({}));
        }
        let id = &request.body["id"];
        if id.is_null() {
            return TestResponse::new(202, "text/plain", "");
        }
        let result = match request.body["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": request.body["params"]["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "tickets", "version": "1"},
            }),
            Some("tools/list") => json!({"tools": [{"name": "count", "inputSchema": {"type": "object"}}]}),
            Some("tools/call") => {
                let told = token.filter(|_| self.fault == OauthFault::TellsTokens).unwrap_or_default();
                let text = format!("three tickets {told}");
                json!({"content": [{"type": "text", "text": text.trim_end()}]})
            }
            _ => {
                let error = json!({"code": -32601, "message": "unknown"});
                return TestResponse::json(200, &json!({"jsonrpc": "2.0", "id": id, "error": error}));
            }
        };
        TestResponse::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
    }
}

fn fields(body: &Value) -> Fields {
    serde_json::from_value(body.clone()).unwrap_or_default()
}
