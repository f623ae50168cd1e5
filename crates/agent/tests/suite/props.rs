//! What stands around an agent on trial: a folder, a provider, tools, somebody to ask.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::BoxFuture;
use hardpan_agent::events::MessageUpdate;
use hardpan_agent::{Approval, Approve, Approved, Connect, Look, Surroundings};
use hardpan_context::{Snapshot, Target};
use hardpan_prompt::{Item, Json, Kind, Tool as Declaration, Volatility};
use hardpan_providers::{
    Client, Endpoint, Http, HttpRequest, HttpResponse, Key, Learned, Patience, Transport, TransportError,
};
use hardpan_tools::{Call, Effect, Outcome, Tool};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::trial::Trial;

/// The longest that anything is waited for. Nothing takes that long unless it never happens.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// A folder with one open file. While it holds a file `wait`, looking at it does not end.
pub struct Around {
    pub folder: PathBuf,
}

impl Surroundings for Around {
    fn observe(&self, look: &Look) -> Snapshot {
        while self.folder.join("wait").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let mut snapshot = Snapshot::empty(look.now);
        snapshot.working_directory = Some("/project".into());
        if let Ok(body) = std::fs::read_to_string(self.folder.join("open.md")) {
            snapshot.items.push(Item {
                key: "file:open.md".into(),
                id: "P10".into(),
                kind: Kind::File,
                title: "open.md".into(),
                body: body.into(),
                changed_at_ms: 0,
                volatility: Volatility::Lively,
                tier: None,
                n: None,
                said_by: None,
            });
        }
        snapshot
    }
}

/// The simulator's address. What is sent there is kept, to the byte.
pub struct Loopback {
    pub url: String,
    pub sent: Arc<Mutex<Vec<String>>>,
    /// What came back, one text per request.
    pub came: Arc<Mutex<Vec<String>>>,
    /// Where the next request goes, if not there.
    pub elsewhere: Arc<Mutex<Option<String>>>,
}

impl Connect for Loopback {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let http = Http::new(None).map_err(|error| error.to_string())?;
        let endpoint =
            Endpoint { base_url: self.url.clone(), key: Some(Key::new("any")), ..Endpoint::default() };
        let patience = Patience { first_wait: Duration::from_millis(1), ..Patience::default() };
        let Loopback { sent, came, elsewhere, .. } = self;
        let transport =
            Overheard { http, sent: sent.clone(), came: came.clone(), elsewhere: elsewhere.clone() };
        Ok(Client::new(Arc::new(transport), endpoint, patience, Arc::new(Learned::default())))
    }
}

struct Overheard {
    http: Http,
    sent: Arc<Mutex<Vec<String>>>,
    came: Arc<Mutex<Vec<String>>>,
    elsewhere: Arc<Mutex<Option<String>>>,
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

impl Transport for Overheard {
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

/// A server that takes one request, notes that it has come, and answers it with these events of an Anthropic stream,
/// whatever it was: for answers that the simulator, which is well-behaved, never gives. Without events it says nothing.
pub fn canned(events: &[Value], notes: Notes) -> String {
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

/// Says yes to everything but the colour red, and never makes up its mind about beige.
pub struct Trusting {
    pub asked: Notes,
}

impl Approve for Trusting {
    fn approve<'a>(&'a self, question: &'a Approval) -> BoxFuture<'a, Approved> {
        self.asked.add(question.args["colour"].as_str().unwrap_or_default());
        Box::pin(async move {
            match question.args["colour"].as_str() {
                Some("red") => Approved::No("not red".into()),
                Some("beige") => std::future::pending().await,
                _ => Approved::Yes,
            }
        })
    }
}

/// Takes its time, and says how it goes.
pub struct Slow {
    declaration: Declaration,
    counts: Arc<Counts>,
}

/// What is known of all calls of `slow`.
#[derive(Default)]
pub struct Counts {
    running: AtomicUsize,
    /// How many of them ran at once.
    pub most: AtomicUsize,
    /// How many came to their end.
    pub ended: AtomicUsize,
}

impl Slow {
    pub fn new(counts: Arc<Counts>) -> Self {
        Slow { declaration: declaration("slow", &json!({"ms": {"type": "integer"}})), counts }
    }
}

impl Tool for Slow {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }
    fn effect(&self) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            let Counts { running, most, ended } = &*self.counts;
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            (call.progress)("half");
            let ms = call.arguments.value()["ms"].as_u64().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            running.fetch_sub(1, Ordering::SeqCst);
            ended.fetch_add(1, Ordering::SeqCst);
            Outcome::text(format!("slept {ms}")).with_details(json!({"ms": ms}))
        })
    }
}

/// Changes something, as far as anybody can tell; breaks where it is asked to.
pub struct Paint(Declaration);

impl Paint {
    pub fn new() -> Self {
        Paint(declaration("paint", &json!({"colour": {"type": "string"}})))
    }
}

impl Tool for Paint {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self) -> Effect {
        Effect::Changes
    }
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        let colour = call.arguments.value()["colour"].as_str().unwrap_or_default().to_owned();
        assert!(colour != "infrared", "a tool that breaks before it begins");
        Box::pin(async move {
            assert!(colour != "ultraviolet", "a tool that breaks");
            if colour == "plaid" {
                Outcome::failed("plaid is no colour")
            } else {
                Outcome::text(format!("painted {colour}"))
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

/// What handlers write down.
#[derive(Clone, Default)]
pub struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
    pub fn add(&self, note: impl Into<String>) {
        self.0.lock().expect("the notes").push(note.into());
    }

    pub fn all(&self) -> Vec<String> {
        self.0.lock().expect("the notes").clone()
    }

    /// Waits until there are so many.
    pub async fn until(&self, count: usize) {
        let looking = async {
            while self.all().len() < count {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("enough notes");
    }
}

/// An answer that is held up.
#[derive(Clone, Default)]
pub struct Held {
    pub reached: Notes,
    let_go: Notes,
}

impl Held {
    /// Holds up answers at a piece with this in it.
    pub fn hold(&self, trial: &Trial, piece: &'static str) {
        let held = self.clone();
        trial.agent.events().on::<MessageUpdate, _>("hold", move |event, _| {
            let held = held.clone();
            async move {
                if json!(event.delta).to_string().contains(piece) {
                    held.wait().await;
                }
                Ok(())
            }
        });
    }

    /// Says that it is reached, and waits until it is let go.
    pub async fn wait(&self) {
        self.reached.add("here");
        self.let_go.until(1).await;
    }

    pub async fn reached(&self) {
        self.reached.until(1).await;
    }

    pub fn let_go(&self) {
        self.let_go.add("now");
    }
}
