//! [`TestAgent`]: an agent with a clock that the test moves, and an in-process simulator.

use crate::event_log::EventLog;
use hardpan_agent::events::CacheVerdict;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::BoxFuture;
use hardpan_agent::expand::Expansions;
use hardpan_agent::{
    Agent, AgentSettings, ClientFactory, ContextSource, Conversation, Coupling, DenyAll, Input, InputOutcome,
    InputSource, ObserveRequest, RunEnd, Setup,
};
use hardpan_context::{LayoutName, PromptTexts, Snapshot, Target};
use hardpan_economy::cache::Moment;
use hardpan_economy::{Cause, Verdict};
use hardpan_models::Catalogue;
use hardpan_prompt::{
    Image, Item, ItemKind, Json, Thinking, TokenFactor, TokenUsage, Tool as Declaration, Volatility,
};
use hardpan_providers::{ApiKey, CapabilityCache, Client, Endpoint, RetryPolicy};
use hardpan_session::{Header, Session};
use hardpan_simulator::{BASE_URL, Engine, EngineSettings, InProcessTransport, ManualClock, Script};
use hardpan_tools::{Effect, Scope, Tool, ToolInvocation, ToolOutcome, ToolRegistry};
use jiff::Timestamp;
use serde_json::{Value, json};

const MINUTE: i64 = 60_000;

/// 2026-08-05T12:00:00Z, in milliseconds.
const START: i64 = 1_785_931_200_000;

/// The simulator's script: asked to look, it calls a tool.
const TALK: &str = "
turns:
  - when: {equals: Look.}
    tool_calls: [{name: look, arguments: {at: a}}]
    repeat: always
default: {text: Fine.}
";

/// The workspace, which tests change between prompts.
#[derive(Default)]
pub struct TestWorld {
    /// Files and symbol entries: key and body.
    pub items: Vec<(String, String)>,
    pub fold: bool,
    pub coupling: Coupling,
    /// The usage that the provider reported, request by request.
    pub usages: Vec<TokenUsage>,
}

/// What all agents of a test share.
struct TestEnvironment {
    layout: LayoutName,
    model: String,
    clock: ManualClock,
    engine: Arc<Engine>,
    world: Arc<Mutex<TestWorld>>,
    other_tools: Arc<AtomicBool>,
    folder: tempfile::TempDir,
}

pub struct TestAgent {
    pub agent: Agent,
    environment: Arc<TestEnvironment>,
    seen: EventLog,
}

impl TestAgent {
    pub fn new(layout: LayoutName) -> Self {
        TestAgent::with(layout, "claude-sonnet-5", TALK)
    }

    pub fn with(layout: LayoutName, model: &str, script: &str) -> Self {
        let script = Script::from_yaml("talk.yaml", script).expect("a script");
        let engine = Engine::new(EngineSettings { script: Some(script), ..EngineSettings::default() });
        let environment = Arc::new(TestEnvironment {
            layout,
            model: model.to_owned(),
            clock: ManualClock::at(Moment(START)),
            engine: Arc::new(engine),
            world: Arc::default(),
            other_tools: Arc::default(),
            folder: tempfile::tempdir().expect("a folder"),
        });
        let path = environment.folder.path().join("s.jsonl");
        TestAgent::on(environment, Conversation::begin(&path, header("s")).expect("a conversation"))
    }

    /// A test agent with two long files.
    pub fn with_files(layout: LayoutName) -> Self {
        let test_agent = TestAgent::new(layout);
        test_agent.write("file:a.rs", &text("alpha", 400));
        test_agent.write("file:b.rs", &text("beta", 400));
        test_agent
    }

    /// A test agent in which nothing changes by itself as long as no time passes: all layouts but
    /// the default put the time in the cached part.
    pub async fn steady(layout: LayoutName) -> Self {
        let test_agent = match layout {
            LayoutName::Strata => TestAgent::with_files(layout),
            // After the panels it tells which messages there are.
            LayoutName::Panels => TestAgent::new(layout),
            // Files are not cached before they have been seen a few times; the map is.
            LayoutName::Tiers => {
                let test_agent = TestAgent::with_files(layout);
                for name in ["x", "y", "z"] {
                    test_agent.write(&format!("symbols:{name}.rs"), &text(name, 300));
                }
                test_agent
            }
            // It sets no breakpoints.
            LayoutName::Inline => TestAgent::with(layout, "gpt-5.2", TALK),
        };
        test_agent.say(&text("A long story", 300)).await;
        test_agent
    }

    fn on(environment: Arc<TestEnvironment>, conversation: Conversation) -> Self {
        let agent = Agent::new(environment.setup(), conversation);
        let seen = EventLog::new(&agent);
        TestAgent { agent, environment, seen }
    }

    /// The same session, as another process would resume it.
    pub async fn resume(self) -> Self {
        let TestAgent { agent, environment, .. } = self;
        agent.shutdown().await.unwrap();
        let (_, path) = agent.session();
        drop(agent);
        TestAgent::on(environment, Conversation::resume(&path, None).expect("it opens again"))
    }

    /// A session of its own that starts with a copy of this one.
    pub async fn fork(&self, leaf: Option<&str>) -> Self {
        let path = self.environment.folder.path().join("fork.jsonl");
        let conversation = Conversation::fork(&self.session().await, leaf, &path, header("fork"));
        TestAgent::on(self.environment.clone(), conversation.expect("a fork"))
    }

    pub fn world(&self) -> MutexGuard<'_, TestWorld> {
        self.environment.world.lock().expect("the world")
    }

    /// Opens an item, or changes it.
    pub fn write(&self, key: &str, body: &str) {
        let mut world = self.world();
        match world.items.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = body.to_owned(),
            None => world.items.push((key.to_owned(), body.to_owned())),
        }
    }

    pub fn close(&self, key: &str) {
        self.world().items.retain(|(known, _)| known != key);
    }

    /// From now on there is one tool more.
    pub fn change_tools(&self) {
        self.environment.other_tools.store(true, Ordering::Relaxed);
    }

    pub fn clear_caches(&self) {
        self.environment.engine.clear_caches();
    }

    pub fn wait(&self, minutes: i64) {
        self.environment.clock.advance(minutes * MINUTE);
    }

    pub async fn say(&self, text: &str) {
        self.show(text, Vec::new()).await;
    }

    pub async fn show(&self, text: &str, images: Vec<Image>) {
        let input =
            Input { text: text.into(), below: None, images, source: InputSource::Interactive, id: None };
        let outcome = self.agent.prompt(input).await.expect("the prompt is taken");
        assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done), "{text}");
    }

    /// The cache losses that were emitted, in order.
    pub fn losses(&self) -> Vec<Verdict> {
        self.seen.of::<CacheVerdict>().into_iter().map(|event| event.verdict).collect()
    }

    /// The only loss so far, which is also stored in the session.
    pub async fn the_loss(&self) -> Verdict {
        let losses = self.losses();
        let [loss] = &losses[..] else { panic!("{} losses: {losses:?}", losses.len()) };
        assert!(loss.lost_tokens > 0 && loss.lost_dollars > 0.0, "{loss:?}");
        let session = self.session().await;
        let stored: Vec<Verdict> = session
            .requests()
            .filter_map(|request| hardpan_agent::session_ledger::verdict_of(request))
            .collect();
        assert_eq!(stored, losses);
        loss.clone()
    }

    pub async fn cause(&self) -> Cause {
        self.the_loss().await.cause
    }

    /// The session as it is stored.
    pub async fn session(&self) -> Session {
        // Shutting down waits until everything is stored.
        let (_, path) = self.agent.session();
        self.agent.shutdown().await.unwrap();
        Session::open(&path).expect("the session can be read")
    }
}

impl TestEnvironment {
    fn setup(&self) -> Setup {
        let mut target = Target::new(Catalogue::builtin(), None, &self.model).expect("a model");
        // The simulator counts as we do.
        target.factor = TokenFactor::new(1.0);
        let clock = self.clock.clock();
        Setup {
            texts: Arc::new(PromptTexts::builtin().expect("the texts")),
            context_source: Arc::new(TestContext(self.world.clone())),
            client_factory: Arc::new(SimulatorClients {
                transport: Arc::new(InProcessTransport::new(self.engine.clone(), self.clock.clock())),
                world: self.world.clone(),
            }),
            approval_handler: Arc::new(DenyAll),
            clock: Arc::new(move || Timestamp::from_millisecond(clock.now().0).expect("a time")),
            tools: ToolRegistry::built_in([
                Arc::new(LookTool::new("look")) as Arc<dyn Tool>,
                Arc::new(ChangingTool::new(self.other_tools.clone())),
            ]),
            shell: None,
            scope: Scope::new(self.folder.path(), self.folder.path()),
            expansions: Expansions::default(),
            target,
            layout: self.layout,
            thinking: Thinking::Off,
            settings: AgentSettings::default(),
        }
    }
}

fn header(id: &str) -> Header {
    Header { id: id.into(), time: None, cwd: "/project".into(), extra: Default::default() }
}

/// This many lines about a word.
pub fn text(word: &str, lines: usize) -> String {
    (0..lines).map(|line| format!("{word} in line {line}\n")).collect()
}

struct TestContext(Arc<Mutex<TestWorld>>);

impl ContextSource for TestContext {
    fn observe(&self, request: &ObserveRequest) -> Snapshot {
        let world = self.0.lock().expect("the world");
        let item = |(at, (key, body)): (usize, &(String, String))| Item {
            key: key.as_str().into(),
            id: format!("P{at}").into(),
            kind: if key.starts_with("file:") { ItemKind::File } else { ItemKind::Symbols },
            title: key.as_str().into(),
            body: body.as_str().into(),
            changed_at_ms: 0,
            volatility: Volatility::Active,
            tier: None,
            unchanged_responses: None,
            shown_by: None,
        };
        let mut snapshot = Snapshot::empty(request.now);
        snapshot.working_directory = Some("/project".into());
        snapshot.items = world.items.iter().enumerate().map(item).collect();
        snapshot.fold = world.fold;
        snapshot
    }

    fn coupling(&self) -> Coupling {
        self.0.lock().expect("the world").coupling.clone()
    }
}

struct SimulatorClients {
    transport: Arc<InProcessTransport>,
    world: Arc<Mutex<TestWorld>>,
}

impl ClientFactory for SimulatorClients {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let endpoint =
            Endpoint { base_url: BASE_URL.into(), key: Some(ApiKey::new("any")), ..Endpoint::default() };
        Ok(Client::new(
            self.transport.clone(),
            endpoint,
            RetryPolicy::default(),
            Arc::new(CapabilityCache::default()),
        ))
    }

    fn record_usage(
        &self,
        _target: &Target,
        _assembled: &hardpan_context::AssembledPrompt,
        _memo: &hardpan_context::RenderCache,
        usage: &TokenUsage,
    ) {
        self.world.lock().expect("the world").usages.push(*usage);
    }
}

/// A read-only tool.
struct LookTool(Declaration);

impl LookTool {
    fn new(name: &str) -> Self {
        LookTool(declaration(name, "Looks at something."))
    }
}

impl Tool for LookTool {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, _call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::text("seen")))
    }
}

/// A tool whose declaration changes when the flag is set.
struct ChangingTool {
    before: LookTool,
    after: LookTool,
    changed: Arc<AtomicBool>,
}

impl ChangingTool {
    fn new(changed: Arc<AtomicBool>) -> Self {
        ChangingTool { before: LookTool::new("listen"), after: LookTool::new("smell"), changed }
    }
}

impl Tool for ChangingTool {
    fn declaration(&self) -> &Declaration {
        if self.changed.load(Ordering::Relaxed) { &self.after.0 } else { &self.before.0 }
    }
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        self.before.run(call)
    }
}

fn declaration(name: &str, description: &str) -> Declaration {
    Declaration {
        name: name.into(),
        description: description.into(),
        parameters: Json::new(&json!({"type": "object", "properties": {"at": {"type": "string"}}})),
        snippet: None,
        guidelines: Vec::new(),
    }
}

/// An image of one pixel.
pub fn pixel() -> Image {
    let data =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    serde_json::from_value(json!({"media_type": "image/png", "data": data, "width": 1, "height": 1}))
        .expect("an image")
}
