//! The two ways to reach a simulator, and requests to send there.

use std::sync::Arc;

use futures_util::StreamExt;
use hardpan_economy::cache::Moment;
use hardpan_models::Protocol;
use hardpan_providers::{
    Answer, Decoder, Event, Http, HttpRequest, HttpResponse, Transport, TransportError, events_of_body,
};
use hardpan_simulator::{BASE_URL, Config, Engine, InProcess, Script, Server, SetClock, Settings, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

pub const BOTH: [Protocol; 2] = [Protocol::Anthropic, Protocol::Openai];

/// A simulator that can be reached.
pub struct Place {
    pub transport: Arc<dyn Transport>,
    pub base_url: String,
    pub clock: SetClock,
    pub server: Option<Server>,
}

/// A server on loopback, and the same within the process.
pub async fn places(settings: impl Fn() -> Settings) -> [Place; 2] {
    let clock = SetClock::at(Moment(1_700_000_000_000));
    let config = Config { clock: clock.clock(), ..Config::new(Engine::new(settings())) };
    let server = serve(config).await.unwrap();
    let base_url = format!("{}/v1", server.url());
    let remote =
        Place { transport: Arc::new(Http::new(None).unwrap()), base_url, clock, server: Some(server) };
    [remote, local(settings())]
}

pub fn local(settings: Settings) -> Place {
    let clock = SetClock::at(Moment(1_700_000_000_000));
    let transport = InProcess::new(Arc::new(Engine::new(settings)), clock.clock());
    Place { transport: Arc::new(transport), base_url: BASE_URL.to_owned(), clock, server: None }
}

pub fn scripted(yaml: &str) -> Settings {
    Settings { script: Some(Script::from_yaml("test.yaml", yaml).unwrap()), ..Settings::default() }
}

pub fn path(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::Anthropic => "/messages",
        Protocol::Openai => "/chat/completions",
    }
}

pub fn headers(protocol: Protocol) -> Vec<(String, String)> {
    let headers = match protocol {
        Protocol::Anthropic => vec![("x-api-key", "secret"), ("anthropic-version", "2023-06-01")],
        Protocol::Openai => vec![("authorization", "Bearer secret")],
    };
    headers.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// A small request, with a tool; `more` is laid over it.
pub fn body(protocol: Protocol, more: Value) -> Value {
    let schema = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
    let mut body = match protocol {
        Protocol::Anthropic => json!({
            "model": "claude-sonnet-5",
            "max_tokens": 1000,
            "tools": [{"name": "read", "description": "Reads.", "input_schema": schema}],
        }),
        Protocol::Openai => json!({
            "model": "gpt-4o",
            "max_tokens": 1000,
            "tools": [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": schema}}],
        }),
    };
    body["messages"] = json!([{"role": "user", "content": "Hello!"}]);
    lay(&mut body, more);
    body
}

/// Lays the fields of one object over another.
pub fn lay(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

/// What came, whole.
pub struct Got {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub bytes: Vec<u8>,
    /// How the body broke off, if it did.
    pub broken: Option<TransportError>,
}

impl Got {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&self.bytes)))
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn events(&self, protocol: Protocol) -> Vec<Event> {
        if self.header("content-type") == Some("application/json") {
            return events_of_body(protocol, &self.bytes);
        }
        let mut decoder = Decoder::new(protocol);
        let mut events = decoder.push(&self.bytes);
        events.extend(decoder.finish());
        events
    }

    pub fn answer(&self, protocol: Protocol) -> Answer {
        self.events(protocol).into_iter().collect()
    }
}

impl Place {
    pub async fn open(&self, protocol: Protocol, body: &Value) -> HttpResponse {
        self.open_with(path(protocol), headers(protocol), body.to_string().into_bytes()).await
    }

    pub async fn open_with(&self, path: &str, headers: Vec<(String, String)>, body: Vec<u8>) -> HttpResponse {
        let request = HttpRequest { url: format!("{}{path}", self.base_url), headers, body: body.into() };
        self.transport.send(request).await.unwrap()
    }

    pub async fn ask(&self, protocol: Protocol, body: &Value) -> Got {
        collect(self.open(protocol, body).await).await
    }

    pub async fn ask_with(&self, path: &str, headers: Vec<(String, String)>, body: Vec<u8>) -> Got {
        collect(self.open_with(path, headers, body).await).await
    }

    /// A plain GET over the socket.
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

pub async fn collect(response: HttpResponse) -> Got {
    let HttpResponse { status, headers, mut body } = response;
    let mut got = Got { status, headers, bytes: Vec::new(), broken: None };
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
