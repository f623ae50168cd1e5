//! Fakes around a test agent: a workspace, a provider, tools, an approval handler.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use hardpan_agent::events::MessageUpdate;
use hardpan_agent::{
    ApprovalDecision, ApprovalHandler, ApprovalRequest, ClientFactory, ContextSource, ObserveRequest,
};
use hardpan_context::{Snapshot, Target};
use hardpan_prompt::{DeniedBy, Item, ItemKind, Json, Tool as Declaration, Volatility};
use hardpan_providers::{
    ApiKey, CapabilityCache, Client, Endpoint, HttpRequest, HttpResponse, HttpTransport, RetryPolicy,
    Transport, TransportError,
};
use hardpan_tools::{Effect, Tool, ToolInvocation, ToolOutcome};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::test_agent::TestAgent;

/// The longest that anything is waited for. Nothing takes that long unless it never happens.
pub const MAX_WAIT: Duration = Duration::from_secs(30);

/// A workspace with one open file. While it contains a file `wait`, observing it blocks.
pub struct TestContext {
    pub folder: PathBuf,
}

impl ContextSource for TestContext {
    fn observe(&self, request: &ObserveRequest) -> Snapshot {
        while self.folder.join("wait").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut snapshot = Snapshot::empty(request.now);
        snapshot.working_directory = Some("/project".into());
        if let Ok(body) = std::fs::read_to_string(self.folder.join("open.md")) {
            snapshot.items.push(Item {
                key: "file:open.md".into(),
                id: "P10".into(),
                kind: ItemKind::File,
                title: "open.md".into(),
                body: body.into(),
                changed_at_ms: 0,
                volatility: Volatility::Active,
                tier: None,
                unchanged_responses: None,
                shown_by: None,
            });
        }
        snapshot
    }
}

/// Clients of the simulator that record the traffic, to the byte.
pub struct SimulatorClients {
    pub url: String,
    pub sent: Arc<Mutex<Vec<String>>>,
    /// The answers, one text per request.
    pub came: Arc<Mutex<Vec<String>>>,
    /// URL of the next request, if it does not go to the simulator.
    pub elsewhere: Arc<Mutex<Option<String>>>,
}

impl ClientFactory for SimulatorClients {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let http = HttpTransport::new(None).map_err(|error| error.to_string())?;
        let endpoint =
            Endpoint { base_url: self.url.clone(), key: Some(ApiKey::new("any")), ..Endpoint::default() };
        let patience = RetryPolicy { first_wait: Duration::from_millis(1), ..RetryPolicy::default() };
        let SimulatorClients { sent, came, elsewhere, .. } = self;
        let transport =
            RecordingTransport { http, sent: sent.clone(), came: came.clone(), elsewhere: elsewhere.clone() };
        Ok(Client::new(Arc::new(transport), endpoint, patience, Arc::new(CapabilityCache::default())))
    }
}

struct RecordingTransport {
    http: HttpTransport,
    sent: Arc<Mutex<Vec<String>>>,
    came: Arc<Mutex<Vec<String>>>,
    elsewhere: Arc<Mutex<Option<String>>>,
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

impl Transport for RecordingTransport {
    fn send(&self, mut request: HttpRequest) -> Sending<'_> {
        let body = String::from_utf8(request.body.to_vec()).expect("JSON is UTF-8");
        self.sent.lock().expect("the requests").push(body);
        if let Some(url) = self.elsewhere.lock().expect("the address").take() {
            request.url = url;
        }
        Box::pin(async move {
            let mut response = self.http.send(request).await?;
            let came = self.came.clone();
            let number = {
                let mut came = came.lock().expect("the answers");
                came.push(String::new());
                came.len() - 1
            };
            response.body = Box::pin(response.body.inspect_ok(move |chunk| {
                came.lock().expect("the answers")[number].push_str(&String::from_utf8_lossy(chunk));
            }));
            Ok(response)
        })
    }
}

/// Starts a server that takes one request, notes that it arrived, and answers it with these events
/// of an Anthropic stream: for answers that the well-behaved simulator never gives. Without events
/// it stays silent.
pub fn serve_canned_answer(events: &[Value], notes: NoteLog) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a port that does not block");
    let url = format!("http://{}/v1/messages", listener.local_addr().expect("its address"));
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"));
    let body: String = events.iter().map(event).collect();
    tokio::spawn(async move {
        let listener = TcpListener::from_std(listener).expect("a port");
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let (mut request, mut whole) = (Vec::new(), usize::MAX);
        while request.len() < whole {
            stream.read_buf(&mut request).await.expect("a request");
            let text = String::from_utf8_lossy(&request).to_lowercase();
            if let Some((head, _)) = text.split_once("\r\n\r\n") {
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
                whole = head.len()
                    + 4
                    + length.and_then(|length| length.parse::<usize>().ok()).expect("a length");
            }
        }
        notes.add("a request");
        if body.is_empty() {
            std::future::pending::<()>().await;
        }
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all((head + &body).as_bytes()).await.expect("an answer");
    });
    url
}

/// Allows every colour but red, and never decides about beige.
pub struct ColourApprover {
    pub asked: NoteLog,
}

impl ApprovalHandler for ColourApprover {
    fn approve<'a>(&'a self, question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.asked.add(question.args["colour"].as_str().unwrap_or_default());
        Box::pin(async move {
            match question.args["colour"].as_str() {
                Some("red") => ApprovalDecision::Deny { by: DeniedBy::Person, reason: "not red".into() },
                Some("beige") => std::future::pending().await,
                _ => ApprovalDecision::Allow,
            }
        })
    }
}

/// A tool that sleeps and reports progress.
pub struct SlowTool {
    declaration: Declaration,
    counts: Arc<CallCounts>,
}

/// Counts over all calls of `slow`.
#[derive(Default)]
pub struct CallCounts {
    running: AtomicUsize,
    /// How many ran at the same time, at most.
    pub most: AtomicUsize,
    /// How many have ended.
    pub ended: AtomicUsize,
}

impl SlowTool {
    pub fn new(counts: Arc<CallCounts>) -> Self {
        SlowTool { declaration: declaration("slow", &json!({"ms": {"type": "integer"}})), counts }
    }
}

impl Tool for SlowTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let CallCounts { running, most, ended } = &*self.counts;
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            (call.progress)("half");
            let ms = call.arguments.value()["ms"].as_u64().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            ended.fetch_add(1, Ordering::SeqCst);
            ToolOutcome::text(format!("slept {ms}")).with_details(json!({"ms": ms}))
        })
    }
}

/// A tool that counts as changing something; some colours make it panic.
pub struct PaintTool(Declaration);

impl PaintTool {
    pub fn new() -> Self {
        PaintTool(declaration("paint", &json!({"colour": {"type": "string"}})))
    }
}

impl Tool for PaintTool {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Changes
    }
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        let colour = call.arguments.value()["colour"].as_str().unwrap_or_default().to_owned();
        assert!(colour != "infrared", "a tool that breaks before it begins");
        Box::pin(async move {
            assert!(colour != "ultraviolet", "a tool that breaks");
            if colour == "plaid" {
                ToolOutcome::failed("plaid is no colour")
            } else {
                ToolOutcome::text(format!("painted {colour}"))
            }
        })
    }
}

fn declaration(name: &str, properties: &Value) -> Declaration {
    Declaration {
        name: name.into(),
        description: format!("{name} something").into(),
        parameters: Json::new(&json!({"type": "object", "properties": properties})),
        snippet: None,
        guidelines: Vec::new(),
    }
}

/// A shared log that handlers write to and tests wait for.
#[derive(Clone, Default)]
pub struct NoteLog(Arc<Mutex<Vec<String>>>);

impl NoteLog {
    pub fn add(&self, note: impl Into<String>) {
        self.0.lock().expect("the notes").push(note.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().expect("the notes").clone()
    }

    /// Waits until the log has this many notes.
    pub async fn until(&self, count: usize) {
        let looking = async {
            while self.all().len() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(MAX_WAIT, looking).await.expect("enough notes");
    }
}

/// Holds a streaming answer until the test releases it.
#[derive(Clone, Default)]
pub struct AnswerGate {
    pub reached: NoteLog,
    release: NoteLog,
}

impl AnswerGate {
    /// Holds answers at a piece that contains this text.
    pub fn hold(&self, test_agent: &TestAgent, piece: &'static str) {
        let gate = self.clone();
        test_agent.agent.events().subscribe::<MessageUpdate, _>("hold", move |event, _| {
            let gate = gate.clone();
            async move {
                if json!(event.delta).to_string().contains(piece) {
                    gate.wait().await;
                }
                Ok(())
            }
        });
    }

    /// Notes that the gate is reached, and waits until it is released.
    pub async fn wait(&self) {
        self.reached.add("here");
        self.release.until(1).await;
    }

    pub async fn reached(&self) {
        self.reached.until(1).await;
    }

    pub fn release(&self) {
        self.release.add("now");
    }
}
