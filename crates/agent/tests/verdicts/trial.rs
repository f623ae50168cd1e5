//! An agent, its clock and its provider.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_util::future::BoxFuture;
use hardpan_agent::expand::Expansions;
use hardpan_agent::{
    Agent, AgentSettings, Connect, Conversation, Coupling, Input, InputSource, Look, NobodyToAsk, Setup,
    Stop, Surroundings, Taken,
};
use hardpan_context::{LayoutName, Snapshot, Target, Texts};
use hardpan_economy::cache::Moment;
use hardpan_economy::{Cause, Verdict};
use hardpan_models::Catalogue;
use hardpan_prompt::{Factor, Image, Item, Json, Kind, Thinking, Tool as Declaration, Volatility};
use hardpan_providers::{Client, Endpoint, Key, Learned, Patience, Usage};
use hardpan_session::{Header, Session};
use hardpan_simulator::{BASE_URL, Engine, InProcess, Script, SetClock, Settings};
use hardpan_tools::{Call, Effect, Outcome, Scope, Tool};
use jiff::Timestamp;
use serde_json::{Value, json};

const MINUTE: i64 = 60_000;

/// Noon of a summer's day.
const START: i64 = 1_785_931_200_000;

/// Asked to look it calls a tool.
const TALK: &str = "
turns:
  - when: {equals: Look.}
    tool_calls: [{name: look, arguments: {at: a}}]
    repeat: always
default: {text: Fine.}
";

/// What is around: the test changes it between prompts.
#[derive(Default)]
pub struct World {
    /// Files and symbol entries, by key.
    pub items: Vec<(String, String)>,
    pub fold: bool,
    pub coupling: Coupling,
    /// What the provider reported, request by request.
    pub usages: Vec<Usage>,
}

/// What all agents of a trial share.
struct Stage {
    layout: LayoutName,
    model: String,
    clock: SetClock,
    engine: Arc<Engine>,
    world: Arc<Mutex<World>>,
    other_tools: Arc<AtomicBool>,
    folder: tempfile::TempDir,
}

pub struct Trial {
    pub agent: Agent,
    stage: Arc<Stage>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Trial {
    pub fn new(layout: LayoutName) -> Self {
        Trial::with(layout, "claude-sonnet-5", TALK)
    }

    pub fn with(layout: LayoutName, model: &str, script: &str) -> Self {
        let script = Script::from_yaml("talk.yaml", script).expect("a script");
        let engine = Engine::new(Settings { script: Some(script), ..Settings::default() });
        let stage = Arc::new(Stage {
            layout,
            model: model.to_owned(),
            clock: SetClock::at(Moment(START)),
            engine: Arc::new(engine),
            world: Arc::default(),
            other_tools: Arc::default(),
            folder: tempfile::tempdir().expect("a folder"),
        });
        let path = stage.folder.path().join("s.jsonl");
        Trial::on(stage, Conversation::begin(&path, header("s")).expect("a conversation"))
    }

    /// A trial with two files of some length.
    pub fn with_files(layout: LayoutName) -> Self {
        let trial = Trial::new(layout);
        trial.write("file:a.rs", &text("alpha", 400));
        trial.write("file:b.rs", &text("beta", 400));
        trial
    }

    /// A trial in which nothing changes by itself as long as no time passes: all layouts but the default tell the time in what
    /// is cached.
    pub async fn steady(layout: LayoutName) -> Self {
        let trial = match layout {
            LayoutName::Strata => Trial::with_files(layout),
            // After the panels it tells which messages there are.
            LayoutName::Panels => Trial::new(layout),
            // Files are not cached before they have been seen a few times; the map is.
            LayoutName::Tiers => {
                let trial = Trial::with_files(layout);
                for name in ["x", "y", "z"] {
                    trial.write(&format!("symbols:{name}.rs"), &text(name, 300));
                }
                trial
            }
            // It sets no breakpoints.
            LayoutName::Inline => Trial::with(layout, "gpt-5.2", TALK),
        };
        trial.say(&text("A long story", 300)).await;
        trial
    }

    fn on(stage: Arc<Stage>, conversation: Conversation) -> Self {
        let agent = Agent::new(stage.setup(), conversation);
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let events = seen.clone();
        agent.events().watch(move |event| events.lock().expect("the events").push(event.clone()));
        Trial { agent, stage, seen }
    }

    /// The same session in another process.
    pub async fn resume(self) -> Self {
        let Trial { agent, stage, .. } = self;
        agent.shutdown().await.unwrap();
        let (_, path) = agent.session();
        drop(agent);
        Trial::on(stage, Conversation::resume(&path, None).expect("it opens again"))
    }

    /// A conversation of its own that begins as this one.
    pub async fn fork(&self, leaf: Option<&str>) -> Self {
        let path = self.stage.folder.path().join("fork.jsonl");
        let conversation = Conversation::fork(&self.session().await, leaf, &path, header("fork"));
        Trial::on(self.stage.clone(), conversation.expect("a fork"))
    }

    pub fn world(&self) -> MutexGuard<'_, World> {
        self.stage.world.lock().expect("the world")
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
        self.stage.other_tools.store(true, Ordering::Relaxed);
    }

    pub fn evict(&self) {
        self.stage.engine.evict();
    }

    pub fn wait(&self, minutes: i64) {
        self.stage.clock.advance(minutes * MINUTE);
    }

    pub async fn say(&self, text: &str) {
        self.show(text, Vec::new()).await;
    }

    pub async fn show(&self, text: &str, images: Vec<Image>) {
        let input = Input { text: text.into(), below: None, images, source: InputSource::Interactive };
        let taken = self.agent.prompt(input).await.expect("the prompt is taken");
        assert_eq!(taken, Taken::Ran(Stop::Done), "{text}");
    }

    /// The losses that were told, in order.
    pub fn losses(&self) -> Vec<Verdict> {
        let seen = self.seen.lock().expect("the events");
        let told = seen.iter().filter(|event| event["type"] == "cache_verdict");
        told.map(|event| serde_json::from_value(event["verdict"].clone()).expect("a verdict")).collect()
    }

    /// The only loss so far; what the session and `verdict()` say of it is the same.
    pub async fn the_loss(&self) -> Verdict {
        let losses = self.losses();
        let [loss] = &losses[..] else { panic!("{} losses: {losses:?}", losses.len()) };
        assert!(loss.lost_tokens > 0 && loss.lost_dollars > 0.0, "{loss:?}");
        let session = self.session().await;
        let stored: Vec<Verdict> =
            session.requests().filter_map(|request| hardpan_agent::books::verdict_of(request)).collect();
        assert_eq!(stored, losses);
        loss.clone()
    }

    pub async fn cause(&self) -> Cause {
        self.the_loss().await.cause
    }

    /// The session as it is stored.
    pub async fn session(&self) -> Session {
        // Going nowhere waits until everything is stored.
        let (_, path) = self.agent.session();
        self.agent.shutdown().await.unwrap();
        Session::open(&path).expect("the session can be read")
    }
}

impl Stage {
    fn setup(&self) -> Setup {
        let mut target = Target::new(Catalogue::builtin(), None, &self.model).expect("a model");
        // The simulator counts as we do.
        target.factor = Factor::new(1.0);
        let clock = self.clock.clock();
        Setup {
            texts: Arc::new(Texts::builtin().expect("the texts")),
            surroundings: Arc::new(Around(self.world.clone())),
            connect: Arc::new(Within {
                transport: Arc::new(InProcess::new(self.engine.clone(), self.clock.clock())),
                world: self.world.clone(),
            }),
            approve: Arc::new(NobodyToAsk),
            clock: Arc::new(move || Timestamp::from_millisecond(clock.now().0).expect("a time")),
            tools: vec![Arc::new(Looking::new("look")), Arc::new(Changing::new(self.other_tools.clone()))],
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

/// So many lines that are about a word.
pub fn text(word: &str, lines: usize) -> String {
    (0..lines).map(|line| format!("{word} in line {line}\n")).collect()
}

struct Around(Arc<Mutex<World>>);

impl Surroundings for Around {
    fn observe(&self, look: &Look) -> Snapshot {
        let world = self.0.lock().expect("the world");
        let item = |(at, (key, body)): (usize, &(String, String))| Item {
            key: key.as_str().into(),
            id: format!("P{at}").into(),
            kind: if key.starts_with("file:") { Kind::File } else { Kind::Symbols },
            title: key.as_str().into(),
            body: body.as_str().into(),
            changed_at_ms: 0,
            volatility: Volatility::Lively,
            tier: None,
            n: None,
            said_by: None,
        };
        let mut snapshot = Snapshot::empty(look.now);
        snapshot.working_directory = Some("/project".into());
        snapshot.items = world.items.iter().enumerate().map(item).collect();
        snapshot.fold = world.fold;
        snapshot
    }

    fn coupling(&self) -> Coupling {
        self.0.lock().expect("the world").coupling.clone()
    }
}

struct Within {
    transport: Arc<InProcess>,
    world: Arc<Mutex<World>>,
}

impl Connect for Within {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let endpoint =
            Endpoint { base_url: BASE_URL.into(), key: Some(Key::new("any")), ..Endpoint::default() };
        Ok(Client::new(self.transport.clone(), endpoint, Patience::default(), Arc::new(Learned::default())))
    }

    fn used(
        &self,
        _target: &Target,
        _assembled: &hardpan_context::Assembled,
        _memo: &hardpan_context::Memo,
        usage: &Usage,
    ) {
        self.world.lock().expect("the world").usages.push(usage.clone());
    }
}

/// Looks at whatever it is told to.
struct Looking(Declaration);

impl Looking {
    fn new(name: &str) -> Self {
        Looking(declaration(name, "Looks at something."))
    }
}

impl Tool for Looking {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, _call: Call<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(std::future::ready(Outcome::text("seen")))
    }
}

/// A tool that says something else of itself once it is told to.
struct Changing {
    before: Looking,
    after: Looking,
    changed: Arc<AtomicBool>,
}

impl Changing {
    fn new(changed: Arc<AtomicBool>) -> Self {
        Changing { before: Looking::new("listen"), after: Looking::new("smell"), changed }
    }
}

impl Tool for Changing {
    fn declaration(&self) -> &Declaration {
        if self.changed.load(Ordering::Relaxed) { &self.after.0 } else { &self.before.0 }
    }
    fn effect(&self) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
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
