//! [`TestProvider`]: a simulator over HTTP or within the process, and requests to send to it.

use std::sync::Arc;

use futures_util::StreamExt;
use hardpan_economy::cache::Moment;
use hardpan_models::Protocol;
use hardpan_providers::{
    Answer, AnswerEvent, HttpMethod, HttpRequest, HttpResponse, HttpTransport, StreamDecoder, Transport,
    TransportError, decode_answer_body,
};
use hardpan_simulator::{
    BASE_URL, Engine, EngineSettings, InProcessTransport, ManualClock, Script, Server, ServerConfig, serve,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The protocols whose requests have the same shape, with a list of messages.
pub const MESSAGE_PROTOCOLS: [Protocol; 3] =
    [Protocol::Anthropic, Protocol::Openai, Protocol::OpenaiResponses];

/// A running simulator with its transport and clock.
pub struct TestProvider {
    pub transport: Arc<dyn Transport>,
    pub base_url: String,
    pub clock: ManualClock,
    pub server: Option<Server>,
}

/// A simulator behind HTTP on loopback, and an equal one within the process.
pub async fn both_providers(settings: impl Fn() -> EngineSettings) -> [TestProvider; 2] {
    let clock = ManualClock::at(Moment(1_700_000_000_000));
    let config = ServerConfig { clock: clock.clock(), ..ServerConfig::new(Engine::new(settings())) };
    let server = serve(config).await.unwrap();
    let base_url = format!("{}/v1", server.url());
    let remote = TestProvider {
        transport: Arc::new(HttpTransport::new(None).unwrap()),
        base_url,
        clock,
        server: Some(server),
    };
    [remote, in_process_provider(settings())]
}

pub fn in_process_provider(settings: EngineSettings) -> TestProvider {
    let clock = ManualClock::at(Moment(1_700_000_000_000));
    let transport = InProcessTransport::new(Arc::new(Engine::new(settings)), clock.clock());
    TestProvider { transport: Arc::new(transport), base_url: BASE_URL.to_owned(), clock, server: None }
}

pub fn scripted(yaml: &str) -> EngineSettings {
    EngineSettings {
        script: Some(Script::from_yaml("test.yaml", yaml).unwrap()),
        ..EngineSettings::default()
    }
}

pub fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Anthropic => "/messages",
        Protocol::Openai => "/chat/completions",
        Protocol::Gemini => "/models/gemini-3.5-flash:streamGenerateContent?alt=sse",
        Protocol::OpenaiResponses => "/responses",
    }
}

pub fn headers(protocol: Protocol) -> Vec<(String, String)> {
    let headers = match protocol {
        Protocol::Anthropic => vec![("x-api-key", "secret"), ("anthropic-version", "2023-06-01")],
        Protocol::Openai | Protocol::OpenaiResponses => vec![("authorization", "Bearer secret")],
        Protocol::Gemini => vec![("x-goog-api-key", "secret")],
    };
    headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A small request with a tool, to a model that does not think unless asked; the fields of `more`
/// replace its own.
pub fn body(protocol: Protocol, more: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let mut body = match protocol {
        Protocol::Gemini => json!({
            "contents": [{"role": "user", "parts": [{"text": "Hello!"}]}],
            "generationConfig": {"maxOutputTokens": 1000, "thinkingConfig": {"includeThoughts": true}},
            "tools": [{"functionDeclarations": [{"name": "read", "description": "Reads.", "parametersJsonSchema": schema}]}],
        }),
        Protocol::Anthropic => json!({
            "model": "claude-opus-4-8",
            "max_tokens": 1000,
            "tools": [{"name": "read", "description": "Reads.", "input_schema": schema}],
        }),
        Protocol::Openai => json!({
            "model": "gpt-4o",
            "max_tokens": 1000,
            "tools": [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": schema}}],
        }),
        Protocol::OpenaiResponses => json!({
            "model": "gpt-5.4",
            "max_tokens": 1000,
            "store": false,
            "tools": [{"type": "function", "name": "read", "description": "Reads.", "parameters": schema, "strict": false}],
        }),
    };
    if protocol != Protocol::Gemini {
        body["messages"] = json!([{"role": "user", "content": "Hello!"}]);
    }
    merge_fields(&mut body, more);
    if protocol == Protocol::OpenaiResponses {
        // The same fields under other names.
        for (name, renamed) in [("messages", "input"), ("max_tokens", "max_output_tokens")] {
            let fields = body.as_object_mut().unwrap();
            if let Some(value) = fields.shift_remove(name) {
                fields.insert(renamed.into(), value);
            }
        }
    }
    body
}

/// Sets the fields of `more` in `body`.
pub fn merge_fields(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

/// A response whose body has been read to its end.
pub struct CollectedResponse {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
    /// The error that broke the body off, if any.
    pub broken: Option<TransportError>,
}

impl CollectedResponse {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.bytes)))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn events(&self, protocol: Protocol) -> Vec<AnswerEvent> {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("application/json")) {
            return decode_answer_body(protocol, &self.bytes);
        }
        let mut decoder = StreamDecoder::new(protocol);
        let mut events = decoder.push(&self.bytes);
        events.extend(decoder.finish());
        events
    }

    pub fn answer(&self, protocol: Protocol) -> Answer {
        self.events(protocol).into_iter().collect()
    }
}

impl TestProvider {
    pub async fn open(&self, protocol: Protocol, body: &Value) -> HttpResponse {
        self.open_with(path(protocol), headers(protocol), body.to_string().into_bytes()).await
    }

    pub async fn open_with(&self, path: &str, headers: Vec<(String, String)>, body: Vec<u8>) -> HttpResponse {
        let (method, url) = (HttpMethod::Post, format!("{}{path}", self.base_url));
        let request = HttpRequest { method, url, headers, body: body.into() };
        self.transport.send(request).await.unwrap()
    }

    pub async fn send(&self, protocol: Protocol, body: &Value) -> CollectedResponse {
        collect(self.open(protocol, body).await).await
    }

    pub async fn send_with(
        &self,
        path: &str,
        headers: Vec<(String, String)>,
        body: Vec<u8>,
    ) -> CollectedResponse {
        collect(self.open_with(path, headers, body).await).await
    }

    /// Sends a plain GET request over the socket.
    pub async fn get(&self, path: &str, headers: Vec<(String, String)>) -> (u16, Value) {
        let mut socket = TcpStream::connect(self.server.as_ref().unwrap().address()).await.unwrap();
        let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}\r\n");
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        socket.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }
}

pub async fn collect(response: HttpResponse) -> CollectedResponse {
    let HttpResponse { status, headers, mut body } = response;
    let mut got = CollectedResponse { status, headers, bytes: Vec::new(), broken: None };
    while let Some(piece) = body.next().await {
        match piece {
            Ok(piece) => got.bytes.extend_from_slice(&piece),
            Err(error) => {
                got.broken = Some(error);
                break;
            }
        }
    }
    got
}
