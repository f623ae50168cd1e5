//! An agent in a folder of its own, talking to the simulator over HTTP.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_agent::expand::{Expansions, Folder, Holds, Owner};
use hardpan_agent::{Agent, AgentSettings, Conversation, Delivery, Input, InputSource, Setup, Stop, Taken};
use hardpan_context::{LayoutName, Target, Texts};
use hardpan_models::Catalogue;
use hardpan_prompt::Thinking;
use hardpan_session::{Header, Session};
use hardpan_simulator::{Config, Engine, Faults, Script, Server, Settings, serve};
use hardpan_tools::{Scope, Tool};
use jiff::Timestamp;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::props::{Around, Counts, Held, Loopback, Notes, PATIENCE, Paint, Slow, Trusting, canned};
pub use crate::reading::{heard, line, pixel, system};

/// How a trial is set up.
pub struct Given {
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

/// Whether time passes.
#[derive(Clone, Copy, PartialEq)]
pub enum Clock {
    Running,
    Frozen,
}

impl Default for Given {
    fn default() -> Self {
        let settings = AgentSettings { handler_limit: Duration::from_secs(10), ..AgentSettings::default() };
        Given {
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

/// What several agents share: a folder, a simulator, what was sent there.
struct Stage {
    given: Given,
    server: Server,
    folder: tempfile::TempDir,
    sent: Arc<Mutex<Vec<String>>>,
    came: Arc<Mutex<Vec<String>>>,
    /// Where the next request goes, if not to the simulator.
    elsewhere: Arc<Mutex<Option<String>>>,
    asked: Notes,
    slow: Arc<Counts>,
}

/// An agent, its simulator and its folder.
pub struct Trial {
    pub agent: Agent,
    /// Every event that was told, in order.
    seen: Arc<Mutex<Vec<Value>>>,
    stage: Arc<Stage>,
}

impl Trial {
    pub async fn new(given: Given) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [("a.txt", "first line\nsecond line\n")];
        for (path, content) in files.iter().chain(given.files) {
            write(&folder.path().join(path), content);
        }
        let script = Script::from_yaml("script.yaml", given.script).expect("a script");
        let faults: Faults = given.faults.parse().expect("faults");
        let engine = Engine::new(Settings { script: Some(script), faults, ..Settings::default() });
        let server = serve(Config::new(engine)).await.expect("a server");
        let conversation = Conversation::begin(&folder.path().join("s1.jsonl"), header("s1"));
        let (sent, came, elsewhere, asked, slow) = Default::default();
        let stage = Arc::new(Stage { given, server, folder, sent, came, elsewhere, asked, slow });
        stage.trial(conversation.expect("a conversation"))
    }

    /// The same session, opened again by another agent at the same simulator.
    pub fn resume(self) -> Self {
        let Trial { agent, stage, .. } = self;
        let (_, path) = agent.session();
        drop(agent);
        stage.trial(Conversation::resume(&path, None).expect("the session opens again"))
    }

    /// Another agent with a copy of the session as it is on the disk, at the same simulator.
    pub fn copy(&self) -> Self {
        let copy = self.stage.folder.path().join("copy.jsonl");
        std::fs::copy(self.path(), &copy).expect("a copy");
        self.stage.trial(Conversation::resume(&copy, None).expect("the copy opens"))
    }

    /// Another agent that goes on from an entry, in a session of its own.
    pub fn fork(&self, leaf: Option<&str>) -> Self {
        let mut names = (1..).map(|n| format!("fork{n}"));
        let free = names.find(|name| !self.file(&format!("{name}.jsonl")).exists()).expect("a free name");
        self.stage.trial(self.forked(&free, leaf))
    }

    /// The session up to an entry, as one of its own.
    pub fn forked(&self, name: &str, leaf: Option<&str>) -> Conversation {
        let path = self.file(&format!("{name}.jsonl"));
        Conversation::fork(&self.session(), leaf, &path, header(name)).expect("a fork")
    }

    /// A new session in the same folder.
    pub fn begun(&self, name: &str) -> Conversation {
        Conversation::begin(&self.file(&format!("{name}.jsonl")), header(name)).expect("a conversation")
    }

    /// Has the next request answered with these events, or with silence if there are none, by another server than the
    /// simulator. The server notes when the request has come.
    pub fn answer_once(&self, events: &[Value], notes: &Notes) {
        let url = canned(events, notes.clone());
        *self.stage.elsewhere.lock().expect("the address") = Some(url);
    }

    /// An agent of the same kind with a conversation.
    pub fn with(&self, conversation: Conversation) -> Self {
        self.stage.trial(conversation)
    }

    pub fn path(&self) -> PathBuf {
        self.agent.session().1
    }

    pub fn file(&self, path: &str) -> PathBuf {
        self.stage.folder.path().join(path)
    }

    pub fn write(&self, path: &str, content: &str) {
        write(&self.file(path), content);
    }

    pub fn session(&self) -> Session {
        Session::open(&self.path()).expect("the session can be read")
    }

    pub async fn prompt(&self, text: &str) -> Taken {
        self.agent.prompt(input(text)).await.expect("the prompt is taken")
    }

    /// A prompt that somebody else waits for.
    pub fn begin(&self, text: &str) -> JoinHandle<Taken> {
        let (agent, input) = (self.agent.clone(), input(text));
        tokio::spawn(async move { agent.prompt(input).await.expect("the prompt is taken") })
    }

    /// A prompt whose answer is held up after its first piece, until it is let go.
    pub async fn begin_and_hold(&self, text: &str) -> (JoinHandle<Taken>, Held) {
        let held = Held::default();
        held.hold(self, "");
        let running = self.begin(text);
        held.reached().await;
        (running, held)
    }

    pub async fn steer(&self, text: &str) {
        let taken = self.agent.queue(input(text), Delivery::Steer).await.expect("it is queued");
        assert_eq!(taken, Taken::Queued(Delivery::Steer));
    }

    pub async fn follow_up(&self, text: &str) {
        let taken = self.agent.queue(input(text), Delivery::FollowUp).await.expect("it is queued");
        assert_eq!(taken, Taken::Queued(Delivery::FollowUp));
    }

    /// Waits until an event of this type was told for the nth time.
    pub async fn until(&self, name: &str, nth: usize) {
        self.until_seen(|seen| seen.iter().filter(|event| event["type"] == name).count() >= nth).await;
    }

    /// Waits until the answer that is coming has grown by a piece with this text, or name, or JSON in it.
    pub async fn until_heard(&self, piece: &str) {
        let holds =
            |event: &Value| event["type"] == "message_update" && event["delta"].to_string().contains(piece);
        self.until_seen(|seen| seen.iter().any(holds)).await;
    }

    async fn until_seen(&self, enough: impl Fn(&[Value]) -> bool) {
        let looking = async {
            while !enough(&self.seen()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let seen = tokio::time::timeout(PATIENCE, looking).await;
        assert!(seen.is_ok(), "it never happened; this did: {:#?}", self.order());
    }

    /// Waits until the file is like that.
    pub async fn until_on_disk(&self, enough: impl Fn(&Session) -> bool) {
        let looking = async {
            while !Session::open(&self.path()).is_ok_and(|session| enough(&session)) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("it is written");
    }

    /// The types of the events so far, in order, without the pieces of answers and the remarks about caches.
    pub fn order(&self) -> Vec<String> {
        let names = self.seen().into_iter().map(|event| event["type"].as_str().expect("a type").to_owned());
        names.filter(|name| name != "message_update" && name != "cache_verdict").collect()
    }

    pub fn seen(&self) -> Vec<Value> {
        self.seen.lock().expect("the events").clone()
    }

    /// The events of one type, in order.
    pub fn told(&self, name: &str) -> Vec<Value> {
        self.seen().into_iter().filter(|event| event["type"] == name).collect()
    }

    pub fn forget(&self) {
        self.seen.lock().expect("the events").clear();
    }

    /// The bodies of all requests to the simulator, to the byte.
    pub fn sent(&self) -> Vec<String> {
        self.stage.sent.lock().expect("the requests").clone()
    }

    /// What the simulator answered, to the byte.
    pub fn came(&self) -> Vec<String> {
        self.stage.came.lock().expect("the answers").clone()
    }

    /// The conversation that each request held: see [`heard`].
    pub fn heard(&self) -> Vec<Vec<String>> {
        self.sent().iter().map(|body| heard(body)).collect()
    }

    /// How many calls of `slow` ran at once.
    pub fn at_once(&self) -> usize {
        self.stage.slow.most.load(Ordering::SeqCst)
    }

    /// Waits until so many calls of `slow` have come to their end.
    pub async fn until_slept(&self, calls: usize) {
        while self.stage.slow.ended.load(Ordering::SeqCst) < calls {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// The colours that somebody was asked about.
    pub fn asked(&self) -> &Notes {
        &self.stage.asked
    }

    /// The conversation, one line per message: `user: text`, `assistant: text [call]`, `result: text`, `failed: text`.
    pub fn said(&self) -> Vec<String> {
        self.agent.messages().iter().map(line).collect()
    }

    /// The stored session says what the agent says.
    pub async fn is_sound(&self) {
        self.agent.shutdown().await.expect("everything is stored");
        let session = self.session();
        assert!(session.problems.is_empty(), "{:?}", session.problems);
        assert_eq!(session.branch(None).expect("a branch").messages, self.agent.messages());
    }

    /// Whatever happened: it is stored, and a fork and the session opened again have the same messages and go on with
    /// them, which the simulator accepts.
    pub async fn goes_on(self) -> Self {
        self.is_sound().await;
        let messages = self.agent.messages();
        let spent = self.agent.token_usage().session;
        let fork = self.fork(None);
        assert_eq!(fork.agent.messages(), messages);
        assert_eq!(fork.agent.token_usage().session, spent);
        assert_eq!(fork.prompt("And in the fork?").await, Taken::Ran(Stop::Done));
        assert_eq!(fork.agent.messages()[..messages.len()], messages);
        fork.is_sound().await;
        let resumed = self.resume();
        assert_eq!(resumed.agent.messages(), messages);
        assert_eq!(resumed.agent.token_usage().session, spent);
        assert_eq!(resumed.prompt("And now?").await, Taken::Ran(Stop::Done));
        assert_eq!(resumed.agent.messages()[..messages.len()], messages);
        resumed.is_sound().await;
        resumed
    }
}

impl Stage {
    fn trial(self: &Arc<Self>, conversation: Conversation) -> Trial {
        let (agent, seen) = self.agent(conversation);
        Trial { agent, seen, stage: self.clone() }
    }

    fn agent(&self, conversation: Conversation) -> (Agent, Arc<Mutex<Vec<Value>>>) {
        let Given { layout, model, settings, clock, max_tokens, .. } = &self.given;
        let folder = self.folder.path();
        // A face goes on with the model of the branch.
        let chosen = conversation.model.clone();
        let (provider, model) = match &chosen {
            Some((provider, model)) => (Some(&**provider), &**model),
            None => (None, *model),
        };
        let mut target = Target::new(Catalogue::builtin(), provider, model).expect("a model");
        target.max_tokens = max_tokens.unwrap_or(target.max_tokens);
        let folders = [("skills", Holds::Skills), ("templates", Holds::Templates)];
        let folders =
            folders.map(|(below, holds)| Folder { path: folder.join(below), holds, owner: Owner::User });
        let mut tools = hardpan_tools::read_only();
        tools.extend([Arc::new(Slow::new(self.slow.clone())) as Arc<dyn Tool>, Arc::new(Paint::new())]);
        let setup = Setup {
            texts: Arc::new(Texts::builtin().expect("the texts")),
            surroundings: Arc::new(Around { folder: folder.to_owned() }),
            connect: Arc::new(Loopback {
                url: format!("{}/v1", self.server.url()),
                sent: self.sent.clone(),
                came: self.came.clone(),
                elsewhere: self.elsewhere.clone(),
            }),
            approve: Arc::new(Trusting { asked: self.asked.clone() }),
            clock: Arc::new(if *clock == Clock::Frozen { noon } else { now }),
            tools,
            shell: None,
            scope: Scope::new(folder, folder),
            expansions: Expansions::discover(&folders, &[]),
            target,
            layout: *layout,
            thinking: Thinking::Off,
            settings: *settings,
        };
        let agent = Agent::new(setup, conversation);
        let seen: Arc<Mutex<Vec<Value>>> = Arc::default();
        let events = seen.clone();
        agent.events().watch(move |event| events.lock().expect("the events").push(event.clone()));
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

pub fn input(text: &str) -> Input {
    Input { text: text.into(), below: None, images: Vec::new(), source: InputSource::Interactive }
}

#[allow(clippy::disallowed_methods, reason = "the agent's clock is the machine's")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn noon() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().expect("a time")
}
