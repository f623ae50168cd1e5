//! An agent in a folder of its own, talking to the simulator over HTTP.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_agent::expand::{Expansions, Folder, Holds, Owner};
use hardpan_agent::{
    Agent, AgentSettings, Approval, Approve, Approved, Connect, Conversation, Input, InputSource, Look, Setup,
    Surroundings, Taken,
};
use hardpan_context::{LayoutName, Snapshot, Target, Texts};
use hardpan_models::Catalogue;
use hardpan_prompt::{AgentMessage, Body, Image, Item, Json, Kind, Part, Thinking, Tool as Declaration, Volatility};
use hardpan_providers::{Client, Endpoint, Http, Key, Learned, Patience};
use hardpan_session::{Header, Session};
use hardpan_simulator::{Config, Engine, Faults, Script, Server, Settings, serve};
use hardpan_tools::{Call, Effect, Outcome, Scope, Tool};
use jiff::Timestamp;
use serde_json::{Value, json};

/// How a trial is set up.
pub struct Given {
    pub layout: LayoutName,
    /// The simulator's script, YAML.
    pub script: &'static str,
    pub faults: &'static str,
    pub model: &'static str,
    pub settings: AgentSettings,
}

impl Default for Given {
    fn default() -> Self {
        let settings = AgentSettings { handler_limit: Duration::from_millis(300), ..AgentSettings::default() };
        Given { layout: LayoutName::Strata, script: "default: {text: Fine.}", faults: "", model: "claude-sonnet-5", settings }
    }
}

/// An agent, its simulator and its folder.
pub struct Trial {
    pub agent: Agent,
    pub server: Server,
    pub folder: tempfile::TempDir,
    /// Every event that was told, in order.
    pub seen: Arc<Mutex<Vec<Value>>>,
    given: Given,
}

impl Trial {
    pub async fn new(given: Given) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "first line\nsecond line\n").expect("a file");
        let script = Script::from_yaml("script.yaml", given.script).expect("a script");
        let faults: Faults = given.faults.parse().expect("faults");
        let engine = Engine::new(Settings { script: Some(script), faults, ..Settings::default() });
        let server = serve(Config::new(engine)).await.expect("a server");
        let header = Header { id: "s1".into(), time: None, cwd: "/project".into(), extra: Default::default() };
        let path = folder.path().join("s1.jsonl");
        let conversation = Conversation::begin(&path, header).expect("a conversation");
        let (agent, seen) = agent(&given, &server, folder.path(), conversation);
        Trial { agent, server, folder, seen, given }
    }

    /// The same session, opened again by another agent at the same simulator.
    pub fn resume(self) -> Self {
        let Trial { agent, server, folder, seen, given } = self;
        let (_, path) = agent.session();
        drop(agent);
        drop(seen);
        let conversation = Conversation::resume(&path, None).expect("the session opens again");
        let (agent, seen) = agent_of(&given, &server, folder.path(), conversation);
        Trial { agent, server, folder, seen, given }
    }

    pub fn path(&self) -> PathBuf {
        self.agent.session().1
    }

    pub async fn prompt(&self, text: &str) -> Taken {
        self.agent.prompt(input(text)).await.expect("the prompt is taken")
    }

    /// The types of the events so far, in order.
    pub fn order(&self) -> Vec<String> {
        self.seen().iter().map(|event| event["type"].as_str().expect("a type").to_owned()).collect()
    }

    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().expect("the events").clone()
    }

    /// The conversation, one line per message: `user: text`, `assistant: text [call]`, `result: text`, `failed: text`.
    pub fn said(&self) -> Vec<String> {
        self.agent.messages().iter().map(line).collect()
    }

    /// The stored session says what the agent says, and another request with it is accepted.
    pub async fn is_sound(&self) {
        let session = Session::open(&self.path()).expect("the session can be read");
        assert!(session.problems.is_empty(), "{:?}", session.problems);
        assert_eq!(session.branch(None).expect("a branch").messages, self.agent.messages());
    }
}

pub fn input(text: &str) -> Input {
    Input { text: text.into(), images: Vec::new(), source: InputSource::Interactive }
}

fn agent_of(given: &Given, server: &Server, folder: &Path, conversation: Conversation) -> (Agent, Arc<Mutex<Vec<Value>>>) {
    agent(given, server, folder, conversation)
}

fn agent(given: &Given, server: &Server, folder: &Path, conversation: Conversation) -> (Agent, Arc<Mutex<Vec<Value>>>) {
    let target = Target::new(Catalogue::builtin(), None, given.model).expect("a model");
    let folders = [
        Folder { path: folder.join("skills"), holds: Holds::Skills, owner: Owner::User },
        Folder { path: folder.join("templates"), holds: Holds::Templates, owner: Owner::User },
    ];
    let mut tools = hardpan_tools::read_only();
    tools.extend([Arc::new(Slow::new()) as Arc<dyn Tool>, Arc::new(Paint::new())]);
    let setup = Setup {
        texts: Arc::new(Texts::builtin().expect("the texts")),
        surroundings: Arc::new(Around { folder: folder.to_owned() }),
        connect: Arc::new(Loopback { url: format!("{}/v1", server.url()) }),
        approve: Arc::new(Trusting),
        clock: Arc::new(now),
        tools,
        scope: Scope::new(folder, folder),
        expansions: Expansions::discover(&folders, &[]),
        target,
        layout: given.layout,
        thinking: Thinking::Off,
        settings: given.settings,
    };
    let agent = Agent::new(setup, conversation);
    let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
    let events = seen.clone();
    agent.events().watch(move |event| events.lock().expect("the events").push(event.clone()));
    (agent, seen)
}

#[allow(clippy::disallowed_methods, reason = "the agent's clock is the machine's")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn text_of(parts: &[Part]) -> String {
    let word = |part: &Part| match part {
        Part::Text { text } => text.to_string(),
        Part::ToolCall(call) => format!("[{}]", call.name),
        Part::Image(_) => "[image]".into(),
        Part::Reasoning { .. } => "[reasoning]".into(),
    };
    parts.iter().map(word).collect::<Vec<_>>().join(" ")
}

pub fn line(message: &AgentMessage) -> String {
    match &message.body {
        Body::User { content } => format!("user: {}", text_of(content)),
        Body::Custom { content, .. } => format!("custom: {}", text_of(content)),
        Body::Assistant { content, stop_reason, .. } => {
            let stop = stop_reason.as_deref().filter(|stop| !matches!(*stop, "end" | "tool_use"));
            format!("assistant: {}{}", text_of(content), stop.map_or_else(String::new, |stop| format!(" ({stop})")))
        }
        Body::ToolResult { content, is_error: true, .. } => format!("failed: {}", text_of(content)),
        Body::ToolResult { content, .. } => format!("result: {}", text_of(content)),
        other => format!("{other:?}"),
    }
}

/// A folder with one open file.
struct Around {
    folder: PathBuf,
}

impl Surroundings for Around {
    fn observe(&self, look: &Look) -> Snapshot {
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

struct Loopback {
    url: String,
}

impl Connect for Loopback {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, String> {
        let http = Http::new(None).map_err(|error| error.to_string())?;
        let endpoint =
            Endpoint { base_url: self.url.clone(), key: Some(Key::new("any")), ..Endpoint::default() };
        let patience = Patience { first_wait: Duration::from_millis(1), ..Patience::default() };
        Ok(Client::new(Arc::new(http), endpoint, patience, Arc::new(Learned::default())))
    }
}

/// Says yes to everything but the colour red.
struct Trusting;

impl Approve for Trusting {
    fn approve<'a>(&'a self, question: &'a Approval) -> BoxFuture<'a, Approved> {
        let red = question.args["colour"] == "red";
        Box::pin(async move { if red { Approved::No("not red".into()) } else { Approved::Yes } })
    }
}

/// Takes its time, and says how it goes.
struct Slow(Declaration);

impl Slow {
    fn new() -> Self {
        Slow(declaration("slow", json!({"ms": {"type": "integer"}})))
    }
}

impl Tool for Slow {
    fn declaration(&self) -> &Declaration {
        &self.0
    }
    fn effect(&self) -> Effect {
        Effect::Reads
    }
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome> {
        Box::pin(async move {
            (call.progress)("half");
            let ms = call.arguments.value()["ms"].as_u64().unwrap_or(0);
            tokio::time::sleep(Duration::from_millis(ms)).await;
            Outcome::text(format!("slept {ms}")).with_details(json!({"ms": ms}))
        })
    }
}

/// Changes something, as far as anybody can tell; breaks where it is asked to.
struct Paint(Declaration);

impl Paint {
    fn new() -> Self {
        Paint(declaration("paint", json!({"colour": {"type": "string"}})))
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
        Box::pin(async move {
            let colour = call.arguments.value()["colour"].as_str().unwrap_or_default().to_owned();
            assert!(colour != "ultraviolet", "a tool that breaks");
            if colour == "plaid" { Outcome::failed("plaid is no colour") } else { Outcome::text(format!("painted {colour}")) }
        })
    }
}

fn declaration(name: &str, properties: Value) -> Declaration {
    Declaration {
        name: name.into(),
        description: format!("{name} something").into(),
        parameters: Json::new(&json!({"type": "object", "properties": properties})),
        snippet: None,
        guidelines: Vec::new(),
    }
}

/// An image of one pixel.
#[allow(dead_code, reason = "not every test file sends one")]
pub fn pixel() -> Image {
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    serde_json::from_value(json!({"media_type": "image/png", "data": data, "width": 1, "height": 1})).expect("an image")
}
