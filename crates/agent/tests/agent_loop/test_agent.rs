//! [`TestAgent`]: an agent in a folder of its own, talking to the simulator over HTTP.

use crate::event_log::EventLog;
use hardpan_agent::events::{HandlerFailed, MessageDelta, MessageUpdate};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_agent::expand::{Expansions, Folder, FolderContents, FolderOwner};
use hardpan_agent::{
    Agent, AgentEvent, AgentSettings, Conversation, Delivery, Event, HandlerFault, Input, InputOutcome,
    InputSource, PreparedInput, RunEnd, Setup,
};
use hardpan_context::{LayoutName, PromptTexts, Target};
use hardpan_models::Catalogue;
use hardpan_prompt::Thinking;
use hardpan_session::{Header, Session};
use hardpan_simulator::{Engine, EngineSettings, Faults, Script, Server, ServerConfig, serve};
use hardpan_tools::{Scope, Tool, ToolRegistry};
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::fakes::{
    AnswerGate, CallCounts, ColourApprover, MAX_WAIT, NoteLog, PaintTool, SimulatorClients, SlowTool,
    TestContext, serve_canned_answer,
};
pub use crate::transcript::{line, pixel, request_lines, system};

/// How a [`TestAgent`] is set up.
pub struct TestSetup {
    pub layout: LayoutName,
    /// The simulator's script, YAML.
    pub script: &'static str,
    pub faults: &'static str,
    pub model: &'static str,
    pub settings: AgentSettings,
    /// Files of the folder: path and content.
    pub files: &'static [(&'static str, &'static str)],
    pub clock: Clock,
    /// The most tokens of an answer, where it is to be less than usual.
    pub max_tokens: Option<u32>,
}

/// Whether the agent's clock runs.
#[derive(Clone, Copy, PartialEq)]
pub enum Clock {
    Running,
    Frozen,
}

impl Default for TestSetup {
    fn default() -> Self {
        let settings = AgentSettings { handler_timeout: Duration::from_secs(10), ..AgentSettings::default() };
        TestSetup {
            layout: LayoutName::Strata,
            script: "default: {text: Fine.}",
            faults: "",
            model: "claude-sonnet-5",
            settings,
            files: &[],
            clock: Clock::Running,
            max_tokens: None,
        }
    }
}

/// What several agents of a test share: a folder, a simulator, and the recorded traffic.
struct TestEnvironment {
    setup: TestSetup,
    server: Server,
    folder: tempfile::TempDir,
    sent: Arc<Mutex<Vec<String>>>,
    came: Arc<Mutex<Vec<String>>>,
    /// URL of the next request, if it does not go to the simulator.
    elsewhere: Arc<Mutex<Option<String>>>,
    asked: NoteLog,
    slow: Arc<CallCounts>,
}

/// An agent, its simulator and its folder.
pub struct TestAgent {
    pub agent: Agent,
    /// Every event that was emitted, in order.
    seen: EventLog,
    environment: Arc<TestEnvironment>,
}

impl TestAgent {
    pub async fn new(setup: TestSetup) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [("a.txt", "first line\nsecond line\n")];
        for (path, content) in files.iter().chain(setup.files) {
            write(&folder.path().join(path), content);
        }
        let script = Script::from_yaml("script.yaml", setup.script).expect("a script");
        let faults: Faults = setup.faults.parse().expect("faults");
        let engine =
            Engine::new(EngineSettings { script: Some(script), faults, ..EngineSettings::default() });
        let server = serve(ServerConfig::new(engine)).await.expect("a server");
        let conversation = Conversation::begin(&folder.path().join("s1.jsonl"), header("s1"));
        let (sent, came, elsewhere, asked, slow) = Default::default();
        let environment =
            Arc::new(TestEnvironment { setup, server, folder, sent, came, elsewhere, asked, slow });
        environment.test_agent(conversation.expect("a conversation"))
    }

    /// The same session, opened again by another agent at the same simulator.
    pub fn resume(self) -> Self {
        let TestAgent { agent, environment, .. } = self;
        let (_, path) = agent.session();
        drop(agent);
        environment.test_agent(Conversation::resume(&path, None).expect("the session opens again"))
    }

    /// Another agent with a copy of the session as it is on the disk, at the same simulator.
    pub fn copy(&self) -> Self {
        let copy = self.environment.folder.path().join("copy.jsonl");
        std::fs::copy(self.path(), &copy).expect("a copy");
        self.environment.test_agent(Conversation::resume(&copy, None).expect("the copy opens"))
    }

    /// Another agent that goes on from an entry, in a session of its own.
    pub fn fork(&self, leaf: Option<&str>) -> Self {
        let mut names = (1..).map(|n| format!("fork{n}"));
        let free = names.find(|name| !self.file(&format!("{name}.jsonl")).exists()).expect("a free name");
        self.environment.test_agent(self.fork_session(&free, leaf))
    }

    /// The session up to an entry, as one of its own.
    pub fn fork_session(&self, name: &str, leaf: Option<&str>) -> Conversation {
        let path = self.file(&format!("{name}.jsonl"));
        Conversation::fork(&self.session(), leaf, &path, header(name)).expect("a fork")
    }

    /// A new session in the same folder.
    pub fn begin_session(&self, name: &str) -> Conversation {
        Conversation::begin(&self.file(&format!("{name}.jsonl")), header(name)).expect("a conversation")
    }

    /// Has the next request answered with these events, or with silence if there are none, by
    /// another server than the simulator. The server notes when the request has come.
    pub fn answer_once(&self, events: &[Value], notes: &NoteLog) {
        let url = serve_canned_answer(events, notes.clone());
        *self.environment.elsewhere.lock().expect("the address") = Some(url);
    }

    /// An agent of the same kind with a conversation.
    pub fn with(&self, conversation: Conversation) -> Self {
        self.environment.test_agent(conversation)
    }

    pub fn path(&self) -> PathBuf {
        self.agent.session().1
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.environment.folder.path().join(path)
    }

    pub fn write(&self, path: &str, content: &str) {
        write(&self.file(path), content);
    }

    pub fn session(&self) -> Session {
        Session::open(&self.path()).expect("the session can be read")
    }

    pub async fn prompt(&self, text: &str) -> InputOutcome {
        self.agent.prompt(input(text)).await.expect("the prompt is taken")
    }

    /// Starts a prompt in a task.
    pub fn begin(&self, text: &str) -> JoinHandle<InputOutcome> {
        let (agent, input) = (self.agent.clone(), input(text));
        tokio::spawn(async move { agent.prompt(input).await.expect("the prompt is taken") })
    }

    /// Starts a prompt whose answer is held after its first piece, until the gate is released.
    pub async fn begin_and_hold(&self, text: &str) -> (JoinHandle<InputOutcome>, AnswerGate) {
        let gate = AnswerGate::default();
        gate.hold(self, "");
        let running = self.begin(text);
        gate.reached().await;
        (running, gate)
    }

    pub async fn steer(&self, text: &str) {
        let outcome = self.agent.queue(input(text), Delivery::Steer).await.expect("it is queued");
        assert_eq!(outcome, InputOutcome::Queued(Delivery::Steer));
    }

    pub async fn follow_up(&self, text: &str) {
        let outcome = self.agent.queue(input(text), Delivery::FollowUp).await.expect("it is queued");
        assert_eq!(outcome, InputOutcome::Queued(Delivery::FollowUp));
    }

    /// Waits until an event of this type was emitted for the nth time.
    pub async fn until(&self, name: &str, nth: usize) {
        self.until_seen(|seen| seen.iter().filter(|event| event.name() == name).count() >= nth).await;
    }

    /// Waits until a piece of the streaming answer contains this text, tool name or JSON.
    pub async fn until_heard(&self, piece: &str) {
        let holds = |event: &AgentEvent| {
            event
                .payload::<MessageUpdate>()
                .is_some_and(|update| json!(update.delta).to_string().contains(piece))
        };
        self.until_seen(|seen| seen.iter().any(holds)).await;
    }

    async fn until_seen(&self, enough: impl Fn(&[AgentEvent]) -> bool) {
        let looking = async {
            while !enough(&self.events()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let seen = tokio::time::timeout(MAX_WAIT, looking).await;
        assert!(seen.is_ok(), "it never happened; this did: {:#?}", self.order());
    }

    /// Waits until the session file satisfies the predicate.
    pub async fn until_on_disk(&self, enough: impl Fn(&Session) -> bool) {
        let looking = async {
            while !Session::open(&self.path()).is_ok_and(|session| enough(&session)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(MAX_WAIT, looking).await.expect("it is written");
    }

    /// The types of the events so far, in order, without `message_update` and `cache_verdict`.
    pub fn order(&self) -> Vec<String> {
        let names = self.events().into_iter().map(|event| event.name().to_owned());
        names.filter(|name| name != "message_update" && name != "cache_verdict").collect()
    }

    pub fn events(&self) -> Vec<AgentEvent> {
        self.seen.all()
    }

    /// The events of one type, in order.
    pub fn events_of<E: Event<Reply = ()>>(&self) -> Vec<E> {
        self.seen.of()
    }

    pub fn clear_events(&self) {
        self.seen.clear();
    }

    /// The bodies of all requests to the simulator, to the byte.
    pub fn sent_requests(&self) -> Vec<String> {
        self.environment.sent.lock().expect("the requests").clone()
    }

    /// The simulator's answers, to the byte.
    pub fn responses(&self) -> Vec<String> {
        self.environment.came.lock().expect("the answers").clone()
    }

    /// The conversation that each request held: see [`request_lines`].
    pub fn request_lines(&self) -> Vec<Vec<String>> {
        self.sent_requests().iter().map(|body| request_lines(body)).collect()
    }

    /// How many calls of `slow` ran at the same time, at most.
    pub fn most_parallel_calls(&self) -> usize {
        self.environment.slow.most.load(Ordering::SeqCst)
    }

    /// Waits until this many calls of `slow` have ended.
    pub async fn until_slept(&self, calls: usize) {
        while self.environment.slow.ended.load(Ordering::SeqCst) < calls {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The colours that the approval handler was asked about.
    pub fn asked(&self) -> &NoteLog {
        &self.environment.asked
    }

    /// The conversation, one line per message: `user: text`, `assistant: text [call]`, `result:
    /// text`, `failed: text`.
    pub fn transcript_lines(&self) -> Vec<String> {
        self.agent.messages().iter().map(line).collect()
    }

    /// Asserts that the stored session has the agent's messages.
    pub async fn assert_stored_matches_memory(&self) {
        self.agent.shutdown().await.expect("everything is stored");
        let session = self.session();
        assert!(session.problems.is_empty(), "{:?}", session.problems);
        assert_eq!(session.branch(None).expect("a branch").messages, self.agent.messages());
    }

    /// Asserts that everything is stored, and that both a fork and the resumed session have the
    /// same messages and can continue, which the simulator accepts.
    pub async fn assert_continues(self) -> Self {
        self.assert_stored_matches_memory().await;
        let messages = self.agent.messages();
        let spent = self.agent.token_usage().session;
        let fork = self.fork(None);
        assert_eq!(fork.agent.messages(), messages);
        assert_eq!(fork.agent.token_usage().session, spent);
        assert_eq!(fork.prompt("And in the fork?").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(fork.agent.messages()[..messages.len()], messages);
        fork.assert_stored_matches_memory().await;
        let resumed = self.resume();
        assert_eq!(resumed.agent.messages(), messages);
        assert_eq!(resumed.agent.token_usage().session, spent);
        assert_eq!(resumed.prompt("And now?").await, InputOutcome::Ran(RunEnd::Done));
        assert_eq!(resumed.agent.messages()[..messages.len()], messages);
        resumed.assert_stored_matches_memory().await;
        resumed
    }
}

impl TestEnvironment {
    fn test_agent(self: &Arc<Self>, conversation: Conversation) -> TestAgent {
        let (agent, seen) = self.agent(conversation);
        TestAgent { agent, seen, environment: self.clone() }
    }

    fn agent(&self, conversation: Conversation) -> (Agent, EventLog) {
        let TestSetup { layout, model, settings, clock, max_tokens, .. } = &self.setup;
        let folder = self.folder.path();
        // A face goes on with the model of the branch.
        let chosen = conversation.model.clone();
        let (provider, model) = match &chosen {
            Some((provider, model)) => (Some(&**provider), &**model),
            None => (None, *model),
        };
        let mut target = Target::new(Catalogue::builtin(), provider, model).expect("a model");
        target.max_tokens = max_tokens.unwrap_or(target.max_tokens);
        let folders = [("skills", FolderContents::Skills), ("templates", FolderContents::Templates)];
        let folders = folders.map(|(below, contents)| Folder {
            path: folder.join(below),
            contents,
            owner: FolderOwner::User,
        });
        let mut tools = hardpan_tools::read_only_tools();
        tools.extend([
            Arc::new(SlowTool::new(self.slow.clone())) as Arc<dyn Tool>,
            Arc::new(PaintTool::new()),
        ]);
        let setup = Setup {
            texts: Arc::new(PromptTexts::builtin().expect("the texts")),
            context_source: Arc::new(TestContext { folder: folder.to_owned() }),
            client_factory: Arc::new(SimulatorClients {
                url: format!("{}/v1", self.server.url()),
                sent: self.sent.clone(),
                came: self.came.clone(),
                elsewhere: self.elsewhere.clone(),
            }),
            approval_handler: Arc::new(ColourApprover { asked: self.asked.clone() }),
            clock: Arc::new(if *clock == Clock::Frozen { noon } else { now }),
            tools: ToolRegistry::built_in(tools),
            shell: None,
            scope: Scope::new(folder, folder),
            expansions: Expansions::discover(&folders, &[]),
            target,
            layout: *layout,
            thinking: Thinking::Off,
            settings: *settings,
        };
        let agent = Agent::new(setup, conversation);
        let seen = EventLog::new(&agent);
        (agent, seen)
    }
}

fn write(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder above it")).expect("a folder");
    std::fs::write(path, content).expect("a file");
}

pub fn header(id: &str) -> Header {
    Header { id: id.into(), time: None, cwd: "/project".into(), extra: Default::default() }
}

/// The event of a handler that failed.
pub fn handler_failed(owner: &str, event: &'static str, message: &str) -> HandlerFailed {
    HandlerFailed(HandlerFault { owner: owner.into(), event, message: message.into() })
}

/// An input as it waits in a queue.
pub fn queued_input(text: &str) -> PreparedInput {
    PreparedInput { text: text.into(), typed: text.into(), ..PreparedInput::default() }
}

/// The text of a piece of an answer.
pub fn text_of(delta: &MessageDelta) -> &str {
    match delta {
        MessageDelta::Text { text } => text,
        other => panic!("{other:?}"),
    }
}

pub fn input(text: &str) -> Input {
    Input { text: text.into(), below: None, images: Vec::new(), source: InputSource::Interactive, id: None }
}

#[allow(clippy::disallowed_methods, reason = "the agent's clock is the machine's")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn noon() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().expect("a time")
}
