//! [`ConversationApp`]: the agent with everything that the command line puts around it. The interactive
//! session, `hardpan -p` and `hardpan rpc` all start from it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use hardpan_agent::expand::{Expansions, Folder};
use hardpan_agent::{
    Agent, AgentSettings, ClientFactory, Conversation, ReadCallMode, SessionSwitchKind, Setup,
};
use hardpan_context::{AssembledPrompt, RenderCache, Target};
use hardpan_prompt::{Image, Thinking, TokenFactor, TokenUsage};
use hardpan_providers::{CapabilityCache, Client};
use hardpan_session::{Header, Session, SessionStore};
use hardpan_tools::Scope;
use hardpan_workspace as workspace;
use jiff::Timestamp;

use crate::approval::{ApprovalMode, Approver, UserPrompter};
use crate::gather;
use crate::learned_state::LearnedState;
use crate::mentions::{Mentions, PromptSource};
use crate::options::OpenOptions;
use crate::provider_route::{ProviderRoute, learn_token_factor};
use crate::request::load_settings;
use crate::settings::{Settings, data_folder, expand_home, private_files};
use crate::text::{error_text, safe, safe_lines};
use crate::tool_set::ToolSet;
use crate::workspace_context::{PinnedContext, WorkspaceContext};

/// The session entry that stores the [`PinnedContext`]. Sessions on disk have this name.
const PINNED_ENTRY: &str = "hardpan.around";

/// An agent that is ready to run, with its folder, its settings, its tools and its session store.
pub struct ConversationApp {
    /// Takes prompts, runs turns, and sends events.
    pub agent: Agent,
    /// What the folder contributes to each request; opens and closes files.
    pub context: Arc<WorkspaceContext>,
    /// The settings of the user and of the folder's project.
    pub settings: Arc<Settings>,
    /// The folder that the conversation works in, canonical.
    pub folder: PathBuf,
    /// The files that the agent may read and write.
    pub scope: Scope,
    /// Where this conversation and the others of the user are stored.
    pub store: SessionStore,
    /// The tools, and their journal for undoing changes.
    pub tool_set: ToolSet,
    connection: Arc<ProviderConnection>,
    stored_pinned: Mutex<PinnedContext>,
    /// Images from `--image`, which go with the first prompt.
    images: Mutex<Vec<Image>>,
    /// With `--no-session`: the temporary folder of this conversation.
    scratch: Option<ScratchFolder>,
}

impl ConversationApp {
    /// Builds the agent that the options ask for. `person` answers approval questions; with none,
    /// only rules allow changes.
    pub fn new(options: &OpenOptions, person: Option<Arc<dyn UserPrompter>>) -> Result<Self> {
        let target_options = &options.target;
        let folder = gather::working_folder(target_options.dir.as_deref())?;
        let root = workspace::find_project_root(&folder);
        let settings = Arc::new(load_settings(target_options.dir.as_deref())?);
        let (store, scratch) = store(options)?;
        let conversation = conversation(options, &store, &folder)?;
        for problem in &conversation.problems {
            let warning = format!("{}: {problem}", conversation.path().display());
            eprintln!("hardpan: {}", safe(&warning));
        }
        let pinned = restore_pinned(&conversation);
        let config = settings.folder.as_deref();
        let folders = Folder::defaults(config, settings.trusted.then_some(&*root));
        let expansions = Expansions::discover(&folders, &options.reserved_names);
        for problem in &expansions.problems {
            eprintln!("hardpan: {}", safe(&problem.to_string()));
        }
        let state = LearnedState::load();
        let model = gather::known_session_model(&settings, conversation.model.as_ref());
        let mut target = gather::resolve_target(target_options, &settings, model)?;
        gather::apply_learned_factor(&mut target, &state);
        let map_tokens = if target_options.no_map { Some(0) } else { settings.config.map_tokens };
        let connection = Arc::new(ProviderConnection {
            settings: settings.clone(),
            learned: Arc::new(state.refusals()),
            factor: Mutex::default(),
            simulated: AtomicBool::new(false),
            reports_true_usage: AtomicBool::new(false),
            last_notice: Mutex::default(),
        });
        let mut scope = Scope::new(&root, &folder);
        scope.readable = settings.config.readable.iter().map(|folder| expand_home(folder)).collect();
        scope.readable.extend(config.map(|config| config.join("skills")));
        scope.hidden = config.map(private_files).unwrap_or_default();
        let tool_set = ToolSet::new(
            &settings,
            &conversation.session,
            &root,
            scratch.as_ref().map(|scratch| &*scratch.0),
        )?;
        tool_set.notes.iter().for_each(|note| eprintln!("hardpan: {note}"));
        tool_set.allow_reading_outputs(&mut scope);
        let context = Arc::new(WorkspaceContext::new(
            scope.clone(),
            settings.clone(),
            expansions.model_listing(),
            map_tokens,
            tool_set.file_views.clone(),
            pinned.clone(),
        ));
        let approval_mode = if options.yes { ApprovalMode::AllowAll } else { ApprovalMode::AskUser };
        let approver =
            Approver::new(&settings, scope.clone(), tool_set.tools.clone(), approval_mode, person)?;
        for rule in approver.rules_for_unknown_tools() {
            let known: Vec<_> = tool_set.tools.list().into_iter().map(|tool| tool.name).collect();
            let known = known.join(", ");
            eprintln!("hardpan: the rule {} has no effect: the tools are {known}", safe(&rule));
        }
        let setup = Setup {
            texts: Arc::new(settings.texts.clone()),
            context_source: context.clone(),
            client_factory: connection.clone(),
            approval_handler: Arc::new(approver),
            clock: Arc::new(now),
            tools: tool_set.tools.clone(),
            shell: Some(tool_set.shell.clone()),
            scope: scope.clone(),
            expansions,
            layout: gather::resolve_layout(target_options, &settings, conversation.layout.as_deref())?,
            thinking: thinking(options, &conversation)?,
            settings: AgentSettings {
                steering: settings.config.steering.unwrap_or_default(),
                follow_up: settings.config.follow_up.unwrap_or_default(),
                read_calls: if settings.config.parallel_reads.unwrap_or(false) {
                    ReadCallMode::Parallel
                } else {
                    ReadCallMode::Sequential
                },
                compact_at: settings.config.compact_at.unwrap_or(AgentSettings::default().compact_at),
                ..AgentSettings::default()
            },
            target,
        };
        let agent = Agent::new(setup, conversation);
        tool_set.follow(&agent);
        let images = target_options
            .image
            .iter()
            .map(|path| workspace::read_image(path))
            .collect::<Result<Vec<_>, _>>()?;
        let stored_pinned = Mutex::new(pinned);
        Ok(ConversationApp {
            agent,
            context,
            settings,
            folder,
            scope,
            store,
            connection,
            stored_pinned,
            images: Mutex::new(images),
            tool_set,
            scratch,
        })
    }

    /// Whether the simulator answers. Its cache costs nothing and need not be kept warm.
    pub fn is_simulated(&self) -> bool {
        self.connection.simulated.load(Ordering::Relaxed)
    }

    /// Opens the files that a prompt mentions with `@`, prints a note about those it cannot, and
    /// returns its images. A slash command mentions none.
    pub fn attach_mentions(&self, prompt: &str, source: PromptSource) -> Vec<Image> {
        if is_command(&self.agent, prompt) {
            return Vec::new();
        }
        let mut images = std::mem::take(&mut *self.images.lock().unwrap_or_else(PoisonError::into_inner));
        let mentioned = Mentions::find(prompt, &self.scope, source);
        mentioned.notes.iter().for_each(|note| eprintln!("{}", safe(note)));
        mentioned.files.into_iter().for_each(|path| self.context.open(path));
        images.extend(mentioned.images);
        images
    }

    /// Switches to another conversation once the agent is idle, with that conversation's open files
    /// and journal. A fork keeps the files that are open now.
    pub async fn switch_conversation(&self, conversation: Conversation, how: SessionSwitchKind) {
        let (pinned, session) = (restore_pinned(&conversation), conversation.session.clone());
        let is_fork = matches!(how, SessionSwitchKind::Fork { .. });
        self.agent.switch_session(conversation, how).await;
        if !is_fork {
            self.context.switch_to(pinned.clone());
        }
        *self.stored_pinned.lock().unwrap_or_else(PoisonError::into_inner) = pinned;
        if let Err(error) =
            self.tool_set.switch_to(&session, self.scratch.as_ref().map(|scratch| &*scratch.0))
        {
            eprintln!("hardpan: {}", safe_lines(&error.to_string()));
        }
    }

    /// Stores the open files and what was learned; called after each run.
    pub async fn save_state(&self) {
        let pinned = self.context.pinned_context();
        let changed = {
            let mut stored_pinned = self.stored_pinned.lock().unwrap_or_else(PoisonError::into_inner);
            let changed = *stored_pinned != pinned;
            *stored_pinned = pinned.clone();
            changed
        };
        if changed && let Ok(data) = serde_json::to_value(pinned) {
            // A session that cannot be written reports it with the next message.
            let _ = self.agent.store_extension_state(PINNED_ENTRY, data).await;
        }
        self.connection.save_learned();
    }
}

/// Whether a text calls one of the agent's slash commands.
pub fn is_command(agent: &Agent, text: &str) -> bool {
    let name = text.strip_prefix('/').map(|rest| rest.split(char::is_whitespace).next().unwrap_or_default());
    name.is_some_and(|name| agent.commands().contains_key(name))
}

/// The pinned context that an earlier run of the conversation stored; empty if there is none.
pub fn restore_pinned(conversation: &Conversation) -> PinnedContext {
    let pinned = conversation.custom.get(PINNED_ENTRY).cloned();
    pinned.and_then(|pinned| serde_json::from_value(pinned).ok()).unwrap_or_default()
}

/// The current time.
#[allow(clippy::disallowed_methods, reason = "this is the edge where the clock enters")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// The store for the conversation: the user's sessions, or a temporary one with `--no-session`.
fn store(options: &OpenOptions) -> Result<(SessionStore, Option<ScratchFolder>)> {
    if options.no_session {
        let scratch = ScratchFolder::new()?;
        return Ok((SessionStore::new(&scratch.0), Some(scratch)));
    }
    let folder = data_folder()
        .context("no folder to store sessions in: set HOME or HARDPAN_DATA_DIR, or use --no-session")?;
    Ok((SessionStore::new(folder.join("sessions")), None))
}

/// The conversation that the options ask for: a new one, the last one, one by name, or a fork.
fn conversation(options: &OpenOptions, store: &SessionStore, folder: &Path) -> Result<Conversation> {
    let at = options.at.as_deref();
    if at.is_some() && options.resume.is_none() && options.fork.is_none() {
        bail!("--at needs a conversation: name one with --resume or --fork");
    }
    if let Some(name) = &options.fork {
        let summary = store.find(Some(folder), name)?;
        let session = Session::open(&summary.path)?;
        return fork_conversation(store, folder, &session, at);
    }
    let path = match (&options.resume, options.last) {
        (Some(name), _) => {
            let summary = store.find(Some(folder), name)?;
            if Path::new(&*summary.cwd) != folder {
                let (began, here) = (safe(&summary.cwd), folder.display());
                eprintln!("hardpan: this conversation began in {began} and continues here, in {here}");
            }
            Some(summary.path)
        }
        (None, true) => {
            let newest = store.list(Some(folder)).into_iter().next();
            Some(newest.context("this folder has no conversation to continue; `hardpan sessions --all` lists those of other folders")?.path)
        }
        (None, false) => None,
    };
    match path {
        Some(path) => Conversation::resume(&path, at).map_err(anyhow::Error::msg),
        None => begin_conversation(store, folder),
    }
}

/// Begins a new conversation.
pub fn begin_conversation(store: &SessionStore, folder: &Path) -> Result<Conversation> {
    let header = header(folder);
    Ok(Conversation::begin(&path_for(store, folder, &header), header)?)
}

/// Begins a conversation with a copy of another's messages, up to the entry `at` or the last one.
pub fn fork_conversation(
    store: &SessionStore,
    folder: &Path,
    session: &Session,
    at: Option<&str>,
) -> Result<Conversation> {
    let header = header(folder);
    Conversation::fork(session, at, &path_for(store, folder, &header), header).map_err(anyhow::Error::msg)
}

fn path_for(store: &SessionStore, folder: &Path, header: &Header) -> PathBuf {
    store.new_path(folder, header.time.unwrap_or(Timestamp::UNIX_EPOCH), &header.id)
}

/// The header of a new session. Its id is a hash of the time in nanoseconds, the process id and the
/// folder, so no two sessions share one.
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

/// The thinking budget: the flag, else what the conversation last used.
fn thinking(options: &OpenOptions, conversation: &Conversation) -> Result<Thinking> {
    match (options.target.thinking, &conversation.thinking) {
        (Some(tokens), _) => Ok(Thinking::Budget(tokens)),
        (None, Some(level)) => Ok(level.parse().map_or(Thinking::Off, Thinking::Budget)),
        (None, None) => Ok(Thinking::Off),
    }
}

/// Makes clients for the agent, and collects what their answers teach.
struct ProviderConnection {
    settings: Arc<Settings>,
    learned: Arc<CapabilityCache>,
    /// The model of the last bill, and its corrected token factor.
    factor: Mutex<Option<(String, TokenFactor)>>,
    simulated: AtomicBool,
    /// See [`ProviderRoute::reports_true_usage`].
    reports_true_usage: AtomicBool,
    /// The last notice about the route, so that the same one is printed once only.
    last_notice: Mutex<Option<String>>,
}

impl ProviderConnection {
    fn save_learned(&self) {
        let factor = self.factor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        LearnedState::load().save(&self.learned, factor);
    }
}

impl ClientFactory for ProviderConnection {
    fn client(&self, target: &Target, session: &str) -> Result<Client, String> {
        let route = ProviderRoute::choose(target, &self.settings, Some(session))
            .map_err(|error| error_text(error.as_ref()))?;
        let mut last_notice = self.last_notice.lock().unwrap_or_else(PoisonError::into_inner);
        if route.notice != *last_notice {
            route.notice.iter().for_each(|note| eprintln!("hardpan: {note}"));
            last_notice.clone_from(&route.notice);
        }
        self.simulated.store(route.simulated, Ordering::Relaxed);
        self.reports_true_usage.store(route.reports_true_usage, Ordering::Relaxed);
        let retry_policy = self.settings.config.retry.retry_policy();
        Ok(Client::new(route.transport, route.endpoint, retry_policy, self.learned.clone()))
    }

    fn record_usage(
        &self,
        target: &Target,
        assembled: &AssembledPrompt,
        render_cache: &RenderCache,
        usage: &TokenUsage,
    ) {
        if self.reports_true_usage.load(Ordering::Relaxed) {
            let factor = learn_token_factor(target, assembled, render_cache, usage);
            let factor = factor.map(|factor| (target.model.name(), factor));
            *self.factor.lock().unwrap_or_else(PoisonError::into_inner) = factor;
        }
    }
}

/// A temporary folder that is removed on drop.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("hardpan-{}-{}", std::process::id(), now().as_nanosecond()));
        std::fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(ScratchFolder(folder))
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
