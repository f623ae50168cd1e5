//! [`TestAgent`]: an agent with all its tools, in a folder of its own, talking to the simulator.

use crate::event_log::EventLog;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::expand::Expansions;
use hardpan_agent::{
    Agent, AgentSettings, ApprovalDecision, ApprovalHandler, ApprovalRequest, ClientFactory, ContextSource,
    Conversation, Event, Input, InputOutcome, InputSource, ObserveRequest, RunEnd, Setup,
};
use hardpan_context::{LayoutName, PromptTexts, Snapshot, Target};
use hardpan_models::Catalogue;
use hardpan_prompt::{AgentMessage, Item, ItemKind, MessageBody, MessagePart, Thinking, Volatility};
use hardpan_providers::{
    ApiKey, CapabilityCache, Client, Endpoint, HttpRequest, HttpResponse, HttpTransport, RetryPolicy,
    Transport, TransportError,
};
use hardpan_session::{Header, RequestRecord, Session};
use hardpan_simulator::{Engine, EngineSettings, Faults, Script, Server, ServerConfig, serve};
use hardpan_tools::{
    FileViews, Journal, Scope, ShellOptions, ToolOptions, ToolRegistry, WebOptions, changing_tools,
    read_only_tools,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinHandle;

/// The longest that anything is waited for. Nothing takes that long unless it never happens.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// A phrase that every request for a summary contains.
pub const SUMMARY_REQUEST_TEXT: &str = "about to leave the context";

/// How a [`TestAgent`] is set up.
#[derive(Clone)]
pub struct TestSetup {
    pub layout: LayoutName,
    pub model: &'static str,
    /// The context window that the agent assumes, in tokens.
    pub window: u32,
    pub script: String,
    pub faults: String,
    pub settings: AgentSettings,
    /// Files that are in the context as items.
    pub open: Vec<&'static str>,
}

impl Default for TestSetup {
    fn default() -> Self {
        TestSetup {
            layout: LayoutName::Strata,
            model: "claude-sonnet-5",
            window: 40_000,
            script: "default: {text: Fine.}".into(),
            faults: String::new(),
            settings: AgentSettings {
                handler_timeout: Duration::from_secs(10),
                compact_at: 0.0,
                ..AgentSettings::default()
            },
            open: Vec::new(),
        }
    }
}

/// An agent, its simulator and its folder. Copies share both.
pub struct TestAgent {
    pub agent: Agent,
    pub journal: Arc<Journal>,
    environment: Arc<TestEnvironment>,
    seen: EventLog,
}

struct TestEnvironment {
    setup: TestSetup,
    server: Server,
    folder: tempfile::TempDir,
    sent: Arc<Mutex<Vec<SentRequest>>>,
}

/// A request as it was sent, and the status of its answer.
#[derive(Clone, Debug, PartialEq)]
pub struct SentRequest {
    pub body: String,
    pub status: u16,
}

impl SentRequest {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

impl TestAgent {
    pub async fn new(setup: TestSetup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::create_dir(folder.path().join("work")).expect("a folder");
        let script = Script::from_yaml("script.yaml", &setup.script).expect("a script");
        let faults: Faults = setup.faults.parse().expect("faults");
        let engine =
            Engine::new(EngineSettings { script: Some(script), faults, ..EngineSettings::default() });
        let server = serve(ServerConfig::new(engine)).await.expect("a server");
        let conversation =
            Conversation::begin(&folder.path().join("s.jsonl"), header()).expect("a conversation");
        let environment = Arc::new(TestEnvironment { setup, server, folder, sent: Arc::default() });
        TestAgent::on(environment, conversation)
    }

    fn on(environment: Arc<TestEnvironment>, conversation: Conversation) -> Self {
        let (agent, journal) = environment.agent(conversation);
        let seen = EventLog::new(&agent);
        TestAgent { agent, journal, environment, seen }
    }

    /// Another agent with a copy of the session as it is on the disk.
    pub fn copy(&self) -> Self {
        let paths = (1..).map(|n| self.environment.folder.path().join(format!("copy{n}.jsonl")));
        let path = paths.into_iter().find(|path| !path.exists()).expect("a free name");
        std::fs::copy(self.agent.session().1, &path).expect("a copy");
        TestAgent::on(self.environment.clone(), Conversation::resume(&path, None).expect("the copy opens"))
    }

    /// A file of the folder that the agent works in.
    pub fn file(&self, name: &str) -> PathBuf {
        self.environment.folder.path().join("work").join(name)
    }

    pub fn write(&self, name: &str, content: &str) {
        std::fs::write(self.file(name), content).expect("a file");
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).expect("the file")
    }

    pub async fn prompt(&self, text: &str) -> RunEnd {
        match self.agent.prompt(input(text)).await.expect("the prompt is taken") {
            InputOutcome::Ran(stop) => stop,
            other => panic!("{other:?}"),
        }
    }

    /// Prompts, and asserts that the run ends normally.
    pub async fn say(&self, text: &str) {
        assert_eq!(self.prompt(text).await, RunEnd::Done);
    }

    /// Starts a prompt in a task.
    pub fn begin(&self, text: &str) -> JoinHandle<InputOutcome> {
        let (agent, input) = (self.agent.clone(), input(text));
        tokio::spawn(async move { agent.prompt(input).await.expect("the prompt is taken") })
    }

    /// Every request so far.
    pub fn sent_requests(&self) -> Vec<SentRequest> {
        self.environment.sent.lock().expect("the requests").clone()
    }

    pub fn last_sent(&self) -> SentRequest {
        self.sent_requests().pop().expect("a request")
    }

    /// The events of one type.
    pub fn events_of<E: Event<Reply = ()>>(&self) -> Vec<E> {
        self.seen.of()
    }

    /// Waits until a condition holds.
    pub async fn until(&self, what: impl Fn() -> bool) {
        let looking = async {
            while !what() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(MAX_WAIT, looking).await.expect("it happens");
    }

    /// The session as it is stored.
    pub async fn stored(&self) -> Session {
        self.agent.shutdown().await.expect("everything is stored");
        let session = Session::open(&self.agent.session().1).expect("the session can be read");
        assert!(session.problems.is_empty(), "{:?}", session.problems);
        session
    }

    /// The billed requests of one purpose, oldest first.
    pub async fn billed(&self, purpose: &str) -> Vec<Arc<RequestRecord>> {
        let session = self.stored().await;
        let branch = session.branch(None).expect("a branch");
        branch.requests.into_iter().filter(|request| &*request.purpose == purpose).collect()
    }

    /// Asserts that the stored session has the agent's messages, that an agent which resumes it
    /// sends the same next request to the byte, and that the simulator accepts it.
    pub async fn assert_continues(&self) {
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

impl TestEnvironment {
    fn agent(&self, conversation: Conversation) -> (Agent, Arc<Journal>) {
        let TestSetup { layout, model, window, settings, open, .. } = &self.setup;
        let base = self.folder.path().canonicalize().expect("a real path");
        let folder = base.join("work");
        let mut target = Target::new(Catalogue::builtin(), None, model).expect("a model");
        target.model.context = *window;
        target.max_tokens = 2000;
        let journal = Arc::new(Journal::open(base.join("journal")).expect("a journal"));
        let shell = ShellOptions {
            outputs: base.join("outputs"),
            temp: base.join("temp"),
            environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
            sandbox: None,
        };
        let options = ToolOptions {
            file_views: FileViews::default(),
            journal: Some(journal.clone()),
            shell: shell.clone(),
            web: WebOptions { private_hosts: vec!["127.0.0.1".into()], ..WebOptions::default() },
        };
        let mut scope = Scope::new(&folder, &folder);
        scope.readable.push(base.join("outputs"));
        let open = open.iter().map(|name| folder.join(name)).collect();
        let setup = Setup {
            texts: Arc::new(PromptTexts::builtin().expect("the texts")),
            context_source: Arc::new(TestContext { open }),
            client_factory: Arc::new(SimulatorClients {
                url: format!("{}/v1", self.server.url()),
                sent: self.sent.clone(),
            }),
            approval_handler: Arc::new(AllowAll),
            clock: Arc::new(noon),
            tools: ToolRegistry::built_in(read_only_tools().into_iter().chain(changing_tools(options))),
            shell: Some(hardpan_tools::shell_tool(shell)),
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

/// A workspace with some open files.
struct TestContext {
    open: Vec<PathBuf>,
}

impl ContextSource for TestContext {
    fn observe(&self, request: &ObserveRequest) -> Snapshot {
        let mut snapshot = Snapshot::empty(request.now);
        for (index, path) in self.open.iter().enumerate() {
            let Ok(body) = std::fs::read_to_string(path) else { continue };
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
            snapshot.items.push(Item {
                key: format!("file:{name}").into(),
                id: format!("P{}", 10 + index).as_str().into(),
                kind: ItemKind::File,
                title: name.as_str().into(),
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

struct AllowAll;

impl ApprovalHandler for AllowAll {
    fn approve<'a>(&'a self, _question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::ready(ApprovalDecision::Allow))
    }
}

struct SimulatorClients {
    url: String,
    sent: Arc<Mutex<Vec<SentRequest>>>,
}

impl ClientFactory for SimulatorClients {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let http = HttpTransport::new(None).map_err(|error| error.to_string())?;
        let endpoint =
            Endpoint { base_url: self.url.clone(), key: Some(ApiKey::new("any")), ..Endpoint::default() };
        let patience = RetryPolicy {
            first_wait: Duration::from_millis(1),
            silence: Duration::from_millis(500),
            ..RetryPolicy::default()
        };
        let transport = Arc::new(RecordingTransport { http, sent: self.sent.clone() });
        Ok(Client::new(transport, endpoint, patience, Arc::new(CapabilityCache::default())))
    }
}

/// Records what is sent, to the byte, and the status of the answer.
struct RecordingTransport {
    http: HttpTransport,
    sent: Arc<Mutex<Vec<SentRequest>>>,
}

type Sending<'a> = Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + 'a>>;

impl Transport for RecordingTransport {
    fn send(&self, request: HttpRequest) -> Sending<'_> {
        Box::pin(async move {
            let body = String::from_utf8(request.body.to_vec()).expect("JSON is UTF-8");
            let index = {
                let mut sent = self.sent.lock().expect("the requests");
                sent.push(SentRequest { body, status: 0 });
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
    Input { text: text.into(), below: None, images: Vec::new(), source: InputSource::Interactive, id: None }
}

fn noon() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().expect("a time")
}

/// About this many tokens of text about a word.
pub fn long(about: &str, tokens: usize) -> String {
    let words: Vec<String> = (0..tokens / 3).map(|n| format!("{about} {n}")).collect();
    words.join("\n")
}

/// One line per message: `user: text`, `assistant: text [call]`, `result: text`, `summary: text`.
pub fn line(message: &AgentMessage) -> String {
    let text = |parts: &[MessagePart]| {
        let word = |part: &MessagePart| match part {
            MessagePart::Text { text } => text.to_string(),
            MessagePart::ToolCall(call) => format!("[{}]", call.name),
            MessagePart::Image(_) => "[image]".into(),
            MessagePart::Reasoning { .. } => "[reasoning]".into(),
        };
        parts.iter().map(word).collect::<Vec<_>>().join(" ")
    };
    match &*message.body {
        MessageBody::User { content } => format!("user: {}", text(content)),
        MessageBody::Custom { content, .. } => format!("custom: {}", text(content)),
        MessageBody::Assistant { content, .. } => format!("assistant: {}", text(content)),
        MessageBody::ToolResult { content, is_error, .. } => {
            format!("{}: {}", if *is_error { "failed" } else { "result" }, text(content))
        }
        MessageBody::BashExecution { command, output, .. } => format!("ran {command}: {output}"),
        MessageBody::CompactionSummary { summary } => format!("summary: {summary}"),
        MessageBody::BranchSummary { summary } => format!("branch: {summary}"),
    }
}

/// Asserts that every call has exactly one result, right after its answer.
pub fn assert_calls_paired(messages: &[AgentMessage]) {
    let mut open: Vec<Arc<str>> = Vec::new();
    for message in messages {
        match &*message.body {
            MessageBody::ToolResult { call_id, .. } => {
                let at = open.iter().position(|id| id == call_id);
                open.remove(at.unwrap_or_else(|| panic!("a result without its call: {message:?}")));
            }
            _ => assert!(open.is_empty(), "{message:?} comes between a call and its result"),
        }
        if let MessageBody::Assistant { content, .. } = &*message.body {
            open.extend(content.iter().filter_map(|part| {
                if let MessagePart::ToolCall(call) = part { Some(call.id.clone()) } else { None }
            }));
        }
    }
    assert!(open.is_empty(), "calls without results: {open:?}");
}
