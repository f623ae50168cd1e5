//! An agent with all its tools, in a folder of its own, talking to the simulator.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::expand::Expansions;
use hardpan_agent::{
    Agent, AgentSettings, Approval, Approve, Approved, Connect, Conversation, Input, InputSource, Look,
    Setup, Stop, Surroundings, Taken,
};
use hardpan_context::{LayoutName, Snapshot, Target, Texts};
use hardpan_models::Catalogue;
use hardpan_prompt::{AgentMessage, Body, Item, Kind, Part, Thinking, Volatility};
use hardpan_providers::{
    Client, Endpoint, Http, HttpRequest, HttpResponse, Key, Learned, Patience, Transport, TransportError,
};
use hardpan_session::{Header, RequestRecord, Session};
use hardpan_simulator::{Config, Engine, Faults, Script, Server, Settings, serve};
use hardpan_tools::{Journal, Options, Scope, Seen, Shell, Web, changing};
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinHandle;

/// The longest that anything is waited for. Nothing takes that long unless it never happens.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// What every request for a summary says.
pub const ASKED: &str = "about to leave the context";

/// How an agent is set up.
#[derive(Clone)]
pub struct Given {
    pub layout: LayoutName,
    pub model: &'static str,
    /// The window that the agent believes in.
    pub window: u32,
    pub script: String,
    pub faults: String,
    pub settings: AgentSettings,
    /// The files that are part of the context.
    pub open: Vec<&'static str>,
}

impl Default for Given {
    fn default() -> Self {
        Given {
            layout: LayoutName::Strata,
            model: "claude-sonnet-5",
            window: 40_000,
            script: "default: {text: Fine.}".into(),
            faults: String::new(),
            settings: AgentSettings {
                handler_limit: Duration::from_secs(10),
                compact_at: 0.0,
                ..AgentSettings::default()
            },
            open: Vec::new(),
        }
    }
}

/// An agent, its simulator and its folder. Copies of it share both.
pub struct Stage {
    pub agent: Agent,
    pub journal: Arc<Journal>,
    shared: Arc<Shared>,
    told: Arc<Mutex<Vec<Value>>>,
}

struct Shared {
    given: Given,
    server: Server,
    folder: tempfile::TempDir,
    sent: Arc<Mutex<Vec<Sent>>>,
}

/// A request as it was sent, and the status of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    pub body: String,
    pub status: u16,
}

impl Sent {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

impl Stage {
    pub async fn new(given: Given) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a folder");
        let script = Script::from_yaml("script.yaml", &given.script).expect("a script");
        let faults: Faults = given.faults.parse().expect("faults");
        let engine = Engine::new(Settings { script: Some(script), faults, ..Settings::default() });
        let server = serve(Config::new(engine)).await.expect("a server");
        let conversation =
            Conversation::begin(&folder.path().join("s.jsonl"), header()).expect("a conversation");
        let shared = Arc::new(Shared { given, server, folder, sent: Arc::default() });
        Stage::on(shared, conversation)
    }

    fn on(shared: Arc<Shared>, conversation: Conversation) -> Self {
        let told: Arc<Mutex<Vec<Value>>> = Arc::default();
        let (agent, journal) = shared.agent(conversation);
        let events = told.clone();
        agent.events().watch(move |event| events.lock().expect("the events").push(event.clone()));
        Stage { agent, journal, shared, told }
    }

    /// Another agent with a copy of the session as it is on the disk.
    pub fn copy(&self) -> Self {
        let paths = (1..).map(|n| self.shared.folder.path().join(format!("copy{n}.jsonl")));
        let path = paths.into_iter().find(|path| !path.exists()).expect("a free name");
        std::fs::copy(self.agent.session().1, &path).expect("a copy");
        Stage::on(self.shared.clone(), Conversation::resume(&path, None).expect("the copy opens"))
    }

    /// A file of the folder that the agent works in.
    pub fn file(&self, name: &str) -> PathBuf {
        self.shared.folder.path().join("work").join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.file(name), content).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("the file")
    }

    pub async fn prompt(&self, text: &str) -> Stop {
        match self.agent.prompt(input(text)).await.expect("the prompt is taken") {
            Taken::Ran(stop) => stop,
            other => panic!("{other:?}"),
        }
    }

    /// A prompt that is answered to its end.
    pub async fn say(&self, text: &str) {
        assert_eq!(self.prompt(text).await, Stop::Done);
    }

    /// A prompt that somebody else waits for.
    pub fn begin(&self, text: &str) -> JoinHandle<Taken> {
        let (agent, input) = (self.agent.clone(), input(text));
        tokio::spawn(async move { agent.prompt(input).await.expect("the prompt is taken") })
    }

    /// Every request so far.
    pub fn sent(&self) -> Vec<Sent> {
        self.shared.sent.lock().expect("the requests").clone()
    }

    pub fn last_sent(&self) -> Sent {
        self.sent().pop().expect("a request")
    }

    /// The events of one type.
    pub fn told(&self, name: &str) -> Vec<Value> {
        let told = self.told.lock().expect("the events");
        told.iter().filter(|event| event["type"] == name).cloned().collect()
    }

    /// Waits until something is so.
    pub async fn until(&self, what: impl Fn() -> bool) {
        let looking = async {
            while !what() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("it happens");
    }

    /// The session as it is stored.
    pub async fn stored(&self) -> Session {
        self.agent.shutdown().await.expect("everything is stored");
        let session = Session::open(&self.agent.session().1).expect("the session can be read");
        assert!(session.problems.is_empty(), "{:?}", session.problems);
        session
    }

    /// What was billed for one purpose, oldest first.
    pub async fn billed(&self, purpose: &str) -> Vec<Arc<RequestRecord>> {
        let session = self.stored().await;
        let branch = session.branch(None).expect("a branch");
        branch.requests.into_iter().filter(|request| &*request.purpose == purpose).collect()
    }

    /// The stored session says what the agent says, an agent that opens it makes the same next request to the byte, and the
    /// simulator accepts it.
    pub async fn goes_on(&self) {
        let session = self.stored().await;
        assert_eq!(session.branch(None).expect("a branch").messages, self.agent.messages());
        let copy = self.copy();
        assert_eq!(copy.agent.messages(), self.agent.messages());
        self.say("And now?").await;
        let here = self.last_sent();
        copy.say("And now?").await;
        assert_eq!(copy.last_sent(), here);
        assert_eq!(here.status, 200);
    }
}

impl Shared {
    fn agent(&self, conversation: Conversation) -> (Agent, Arc<Journal>) {
        let Given { layout, model, window, settings, open, .. } = &self.given;
        let base = self.folder.path().canonicalize().expect("a real path");
        let folder = base.join("work");
        let mut target = Target::new(Catalogue::builtin(), None, model).expect("a model");
        target.model.context = *window;
        target.max_tokens = 2000;
        let journal = Arc::new(Journal::open(base.join("journal")).expect("a journal"));
        let shell = Shell {
            outputs: base.join("outputs"),
            temp: base.join("temp"),
            environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
            sandbox: None,
        };
        let options = Options {
            seen: Seen::default(),
            journal: Some(journal.clone()),
            shell: shell.clone(),
            web: Web { private_hosts: vec!["127.0.0.1".into()], ..Web::default() },
        };
        let mut scope = Scope::new(&folder, &folder);
        scope.readable.push(base.join("outputs"));
        let open = open.iter().map(|name| folder.join(name)).collect();
        let setup = Setup {
            texts: Arc::new(Texts::builtin().expect("the texts")),
            surroundings: Arc::new(Around { open }),
            connect: Arc::new(Loopback { url: format!("{}/v1", self.server.url()), sent: self.sent.clone() }),
            approve: Arc::new(Yes),
            clock: Arc::new(noon),
            tools: hardpan_tools::read_only().into_iter().chain(changing(options)).collect(),
            shell: Some(hardpan_tools::shell(shell)),
            scope,
            expansions: Expansions::default(),
            target,
            layout: *layout,
            thinking: Thinking::Off,
            settings: *settings,
        };
        (Agent::new(setup, conversation), journal)
    }
}

/// Some open files.
struct Around {
    open: Vec<PathBuf>,
}

impl Surroundings for Around {
    fn observe(&self, look: &Look) -> Snapshot {
        let mut snapshot = Snapshot::empty(look.now);
        for (index, path) in self.open.iter().enumerate() {
            let Ok(body) = std::fs::read_to_string(path) else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            snapshot.items.push(Item {
                key: format!("file:{name}").into(),
                id: format!("P{}", 10 + index).as_str().into(),
                kind: Kind::File,
                title: name.as_str().into(),
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

struct Yes;

impl Approve for Yes {
    fn approve<'a>(&'a self, _question: &'a Approval) -> BoxFuture<'a, Approved> {
        Box::pin(std::future::ready(Approved::Yes))
    }
}

struct Loopback {
    url: String,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Connect for Loopback {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let http = Http::new(None).map_err(|error| error.to_string())?;
        let endpoint =
            Endpoint { base_url: self.url.clone(), key: Some(Key::new("any")), ..Endpoint::default() };
        let patience = Patience {
            first_wait: Duration::from_millis(1),
            silence: Duration::from_millis(500),
            ..Patience::default()
        };
        let transport = Arc::new(Overheard { http, sent: self.sent.clone() });
        Ok(Client::new(transport, endpoint, patience, Arc::new(Learned::default())))
    }
}

/// Writes down what is sent, to the byte, and how it was answered.
struct Overheard {
    http: Http,
    sent: Arc<Mutex<Vec<Sent>>>,
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

impl Transport for Overheard {
    fn send(&self, request: HttpRequest) -> Sending<'_> {
        Box::pin(async move {
            let body = String::from_utf8(request.body.to_vec()).expect("JSON is UTF-8");
            let index = {
                let mut sent = self.sent.lock().expect("the requests");
                sent.push(Sent { body, status: 0 });
                sent.len() - 1
            };
            let response = self.http.send(request).await?;
            self.sent.lock().expect("the requests")[index].status = response.status;
            Ok(response)
        })
    }
}

pub fn header() -> Header {
    Header { id: "s".into(), time: None, cwd: "/project".into(), extra: Default::default() }
}

pub fn input(text: &str) -> Input {
    Input { text: text.into(), below: None, images: Vec::new(), source: InputSource::Interactive }
}

fn noon() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().expect("a time")
}

/// About so many tokens of text about something.
pub fn long(about: &str, tokens: usize) -> String {
    let words: Vec<String> = (0..tokens / 3).map(|n| format!("{about} {n}")).collect();
    words.join("\n")
}

/// One line per message: `user: text`, `assistant: text [call]`, `result: text`, `summary: text`.
pub fn line(message: &AgentMessage) -> String {
    let text = |parts: &[Part]| {
        let word = |part: &Part| match part {
            Part::Text { text } => text.to_string(),
            Part::ToolCall(call) => format!("[{}]", call.name),
            Part::Image(_) => "[image]".into(),
            Part::Reasoning { .. } => "[reasoning]".into(),
        };
        parts.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    match &*message.body {
        Body::User { content } => format!("user: {}", text(content)),
        Body::Custom { content, .. } => format!("custom: {}", text(content)),
        Body::Assistant { content, .. } => format!("assistant: {}", text(content)),
        Body::ToolResult { content, is_error, .. } => {
            format!("{}: {}", if *is_error { "failed" } else { "result" }, text(content))
        }
        Body::BashExecution { command, output, .. } => format!("ran {command}: {output}"),
        Body::CompactionSummary { summary } => format!("summary: {summary}"),
        Body::BranchSummary { summary } => format!("branch: {summary}"),
    }
}

/// Every call has its one result, right after the answer that makes it.
pub fn is_paired(messages: &[AgentMessage]) {
    let mut open: Vec<Arc<str>> = Vec::new();
    for message in messages {
        match &*message.body {
            Body::ToolResult { call_id, .. } => {
                let at = open.iter().position(|id| id == call_id);
                open.remove(at.unwrap_or_else(|| panic!("a result without its call: {message:?}")));
            }
            _ => assert!(open.is_empty(), "{message:?} comes between a call and its result"),
        }
        if let Body::Assistant { content, .. } = &*message.body {
            open.extend(content.iter().filter_map(|part| {
                if let Part::ToolCall(call) = part { Some(call.id.clone()) } else { None }
            }));
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}
