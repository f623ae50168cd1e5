//! From flags to an agent.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use hardpan_agent::expand::{Expansions, Folder};
use hardpan_agent::{Agent, AgentSettings, Connect, Conversation, Reads, Setup, Switch};
use hardpan_context::{Assembled, Memo, Target};
use hardpan_prompt::{Factor, Image, Thinking};
use hardpan_providers::{Client, Learned, Usage};
use hardpan_session::{Header, Session, Store};
use hardpan_tools::Scope;
use hardpan_workspace as workspace;
use jiff::Timestamp;

use super::approve::{Approver, Ask, Asking};
use super::around::{Around, Kept};
use super::attach::{Mentioned, Source};
use super::commands;
use super::hands::Hands;
use crate::args::Chat;
use crate::gather;
use crate::output::{safe, safe_lines};
use crate::route::{Route, learn_factor};
use crate::run::load_settings;
use crate::settings::{Settings, at_home, data_folder, own_files};
use crate::state::State;

/// The name under which the session keeps what is open and what the map chose.
const KEPT: &str = "hardpan.around";

/// A conversation that can begin.
pub struct Opened {
    pub agent: Agent,
    pub around: Arc<Around>,
    pub settings: Arc<Settings>,
    pub folder: PathBuf,
    /// What may be read.
    pub scope: Scope,
    pub store: Store,
    pub hands: Hands,
    connection: Arc<Connection>,
    stored: Mutex<Kept>,
    /// Images that go with the first prompt.
    images: Mutex<Vec<Image>>,
    /// Keeps the folder of a conversation that leaves nothing behind.
    scratch: Option<Scratch>,
}

impl Opened {
    /// The agent that the flags ask for.
    pub fn new(flags: &Chat, person: Option<Arc<dyn Ask>>) -> Result<Self> {
        let whom = &flags.whom;
        let folder = gather::folder(whom.dir.as_deref())?;
        let root = workspace::root_of(&folder);
        let settings = Arc::new(load_settings(whom.dir.as_deref())?);
        let (store, scratch) = store(flags)?;
        let conversation = conversation(flags, &store, &folder)?;
        for problem in &conversation.problems {
            let told = format!("{}: {problem}", conversation.path().display());
            eprintln!("hardpan: {}", safe(&told));
        }
        let kept = restored(&conversation);
        let config = settings.folder.as_deref();
        let folders = Folder::usual(config, settings.trusted.then_some(&*root));
        let expansions = Expansions::discover(&folders, &commands::names());
        for problem in &expansions.problems {
            eprintln!("hardpan: {}", safe(&problem.to_string()));
        }
        let state = State::load();
        let model = gather::still_known(&settings, conversation.model.as_ref());
        let mut target = gather::target(whom, &settings, model)?;
        gather::use_learned(&mut target, &state);
        let map_tokens = if whom.no_map { Some(0) } else { settings.config.map_tokens };
        let connection = Arc::new(Connection {
            settings: settings.clone(),
            learned: Arc::new(state.refusals()),
            factor: Mutex::default(),
            simulated: AtomicBool::new(false),
            teaches: AtomicBool::new(false),
            said: Mutex::default(),
        });
        let mut scope = Scope::new(&root, &folder);
        scope.readable = settings.config.readable.iter().map(|folder| at_home(folder)).collect();
        scope.readable.extend(config.map(|config| config.join("skills")));
        scope.hidden = config.map(own_files).unwrap_or_default();
        let hands =
            Hands::new(&settings, &conversation.session, &root, scratch.as_ref().map(|scratch| &*scratch.0))?;
        hands.notes.iter().for_each(|note| eprintln!("hardpan: {note}"));
        hands.extend(&mut scope);
        let around = Arc::new(Around::new(
            scope.clone(),
            settings.clone(),
            expansions.listing(),
            map_tokens,
            hands.seen.clone(),
            kept.clone(),
        ));
        let asking = if flags.yes { Asking::Never } else { Asking::Normal };
        let approver = Approver::new(&settings, scope.clone(), asking, person)?;
        let tools: Vec<&str> = hands.tools.iter().map(|tool| &*tool.declaration().name).collect();
        for rule in approver.idle(&tools) {
            let known = tools.join(", ");
            eprintln!("hardpan: the rule {} has no effect: there are the tools {known}", safe(&rule));
        }
        let setup = Setup {
            texts: Arc::new(settings.texts.clone()),
            surroundings: around.clone(),
            connect: connection.clone(),
            approve: Arc::new(approver),
            clock: Arc::new(now),
            tools: hands.tools.clone(),
            shell: Some(hands.shell.clone()),
            scope: scope.clone(),
            expansions,
            layout: gather::layout(whom, &settings, conversation.layout.as_deref())?,
            thinking: thinking(flags, &conversation)?,
            settings: AgentSettings {
                steering: settings.config.steering.unwrap_or_default(),
                follow_up: settings.config.follow_up.unwrap_or_default(),
                reads: if settings.config.parallel_reads.unwrap_or(false) {
                    Reads::SideBySide
                } else {
                    Reads::OneByOne
                },
                compact_at: settings.config.compact_at.unwrap_or(AgentSettings::default().compact_at),
                ..AgentSettings::default()
            },
            target,
        };
        let agent = Agent::new(setup, conversation);
        hands.follow(&agent);
        let images =
            whom.image.iter().map(|path| workspace::read_image(path)).collect::<Result<Vec<_>, _>>()?;
        let stored = Mutex::new(kept);
        Ok(Opened {
            agent,
            around,
            settings,
            folder,
            scope,
            store,
            connection,
            stored,
            images: Mutex::new(images),
            hands,
            scratch,
        })
    }

    /// Whether the simulator answers: its cache costs nothing, and need not be kept warm.
    pub fn is_simulated(&self) -> bool {
        self.connection.simulated.load(Ordering::Relaxed)
    }

    /// Opens the files that a prompt names, says which it cannot, and returns its images. A command names none.
    pub fn attach(&self, prompt: &str, source: Source) -> Vec<Image> {
        if commands::called(&self.agent, prompt).is_some() {
            return Vec::new();
        }
        let mut images = std::mem::take(&mut *self.images.lock().unwrap_or_else(PoisonError::into_inner));
        let mentioned = Mentioned::by(prompt, &self.scope, source);
        mentioned.tell();
        mentioned.files.into_iter().for_each(|path| self.around.open(path));
        images.extend(mentioned.images);
        images
    }

    /// Turns to another conversation, once the agent is idle: to the files that it had open, and to its journal. A fork has
    /// what the conversation before it has open.
    pub async fn turn_to(&self, conversation: Conversation, how: Switch) {
        let (kept, session) = (restored(&conversation), conversation.session.clone());
        let is_fork = matches!(how, Switch::Fork { .. });
        self.agent.switch(conversation, how).await;
        if !is_fork {
            self.around.turn_to(kept.clone());
        }
        *self.stored.lock().unwrap_or_else(PoisonError::into_inner) = kept;
        if let Err(error) = self.hands.turn_to(&session, self.scratch.as_ref().map(|scratch| &*scratch.0)) {
            eprintln!("hardpan: {}", safe_lines(&error.to_string()));
        }
    }

    /// Keeps what is open and what was learned, after a run.
    pub async fn keep(&self) {
        let kept = self.around.keep();
        let changed = {
            let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = *stored != kept;
            *stored = kept.clone();
            changed
        };
        if changed && let Ok(data) = serde_json::to_value(kept) {
            // That it cannot be kept is said by the next thing that must be.
            let _ = self.agent.keep(KEPT, data).await;
        }
        self.connection.keep();
    }
}

/// What an earlier run of the conversation kept.
pub fn restored(conversation: &Conversation) -> Kept {
    let kept = conversation.custom.get(KEPT).cloned();
    kept.and_then(|kept| serde_json::from_value(kept).ok()).unwrap_or_default()
}

#[allow(clippy::disallowed_methods, reason = "this is the edge where the clock enters")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// Where the conversation is kept: with the others, or nowhere.
fn store(flags: &Chat) -> Result<(Store, Option<Scratch>)> {
    if flags.no_session {
        let scratch = Scratch::new()?;
        return Ok((Store::new(&scratch.0), Some(scratch)));
    }
    let folder = data_folder()
        .context("there is no folder for sessions: set HOME or HARDPAN_DATA_DIR, or use --no-session")?;
    Ok((Store::new(folder.join("sessions")), None))
}

/// The conversation that the flags ask for: a new one, the last one, one by name, or a fork.
fn conversation(flags: &Chat, store: &Store, folder: &Path) -> Result<Conversation> {
    let at = flags.at.as_deref();
    if at.is_some() && flags.resume.is_none() && flags.fork.is_none() {
        bail!("--at needs a conversation: name it with --resume or --fork");
    }
    if let Some(name) = &flags.fork {
        let summary = store.find(Some(folder), name)?;
        let session = Session::open(&summary.path)?;
        return fork(store, folder, &session, at);
    }
    let path = match (&flags.resume, flags.last) {
        (Some(name), _) => {
            let summary = store.find(Some(folder), name)?;
            if Path::new(&*summary.cwd) != folder {
                let (began, here) = (safe(&summary.cwd), folder.display());
                eprintln!("hardpan: this conversation began in {began}; it goes on here, in {here}");
            }
            Some(summary.path)
        }
        (None, true) => {
            let newest = store.list(Some(folder)).into_iter().next();
            Some(newest.context("there is no conversation to go on with here: `hardpan sessions --all` lists those of other folders")?.path)
        }
        (None, false) => None,
    };
    match path {
        Some(path) => Conversation::resume(&path, at).map_err(anyhow::Error::msg),
        None => begin(store, folder),
    }
}

/// A new conversation.
pub fn begin(store: &Store, folder: &Path) -> Result<Conversation> {
    let header = header(folder);
    Ok(Conversation::begin(&path_for(store, folder, &header), header)?)
}

/// A conversation that begins as a branch of another.
pub fn fork(store: &Store, folder: &Path, session: &Session, at: Option<&str>) -> Result<Conversation> {
    let header = header(folder);
    Conversation::fork(session, at, &path_for(store, folder, &header), header).map_err(anyhow::Error::msg)
}

fn path_for(store: &Store, folder: &Path, header: &Header) -> PathBuf {
    store.new_path(folder, header.time.unwrap_or(Timestamp::UNIX_EPOCH), &header.id)
}

/// A name that no other session has: from the time, to the nanosecond, and the process.
fn header(folder: &Path) -> Header {
    let time = now();
    let source = format!("{}/{}/{}", time.as_nanosecond(), std::process::id(), folder.display());
    let id = hardpan_prompt::Hash::of(source.as_bytes()).to_string();
    Header {
        id: id[..12].into(),
        time: Some(time),
        cwd: folder.to_string_lossy().into(),
        extra: Default::default(),
    }
}

/// How much the model thinks: the flag, else what the conversation last chose.
fn thinking(flags: &Chat, conversation: &Conversation) -> Result<Thinking> {
    match (flags.whom.thinking, &conversation.thinking) {
        (Some(tokens), _) => Ok(Thinking::Budget(tokens)),
        (None, Some(level)) => Ok(level.parse().map_or(Thinking::Off, Thinking::Budget)),
        (None, None) => Ok(Thinking::Off),
    }
}

/// How models are reached from the command line, and what is learned on the way.
struct Connection {
    settings: Arc<Settings>,
    learned: Arc<Learned>,
    /// What the last bill said, and of which model.
    factor: Mutex<Option<(String, Factor)>>,
    /// Whether the simulator answers.
    simulated: AtomicBool,
    /// Whether bills tell how the provider counts.
    teaches: AtomicBool,
    /// What was said about the route, so that it is said once.
    said: Mutex<Option<String>>,
}

impl Connection {
    fn keep(&self) {
        let factor = self.factor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        State::load().keep(&self.learned, factor);
    }
}

impl Connect for Connection {
    fn client(&self, target: &Target, session: &str) -> Result<Client, String> {
        let route =
            Route::choose(target, &self.settings, Some(session)).map_err(|error| format!("{error:#}"))?;
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if route.note != *said {
            route.note.iter().for_each(|note| eprintln!("hardpan: {note}"));
            said.clone_from(&route.note);
        }
        self.simulated.store(route.simulated, Ordering::Relaxed);
        self.teaches.store(route.teaches, Ordering::Relaxed);
        let patience = self.settings.config.patience.patience();
        Ok(Client::new(route.transport, route.endpoint, patience, self.learned.clone()))
    }

    fn used(&self, target: &Target, assembled: &Assembled, memo: &Memo, usage: &Usage) {
        if self.teaches.load(Ordering::Relaxed) {
            let factor = learn_factor(target, assembled, memo, usage);
            let factor = factor.map(|factor| (target.model.name(), factor));
            *self.factor.lock().unwrap_or_else(PoisonError::into_inner) = factor;
        }
    }
}

/// A folder that goes away with the conversation.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("hardpan-{}-{}", std::process::id(), now().as_nanosecond()));
        std::fs::create_dir_all(&folder).with_context(|| format!("{} cannot be made", folder.display()))?;
        Ok(Scratch(folder))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
