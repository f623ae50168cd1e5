//! [`McpServers`]: the servers of the Model Context Protocol that bring tools to a conversation.
//!
//! Servers start when the conversation does, behind everything else. Their lists of tools are remembered, so
//! that a conversation begins with the same tools although a server is still starting. What requests
//! declare stays as it is until a fold, whatever servers list later: see [`ToolRegistry`].

mod client_host; // ServerHost: what a server tells and asks
mod conversation_link; // ConversationLink: the conversation and the person that servers act for
mod deferred_tools; // ToolFinder: finds and calls tools that no request declares
mod found_servers; // FoundServers: the servers that the user has set up for other agents
mod jsonc; // parse_jsonc: JSON with comments
mod loading_plan; // LoadingPlan: which tools requests declare, and what that costs
mod login; // login_file: where the login at a server is kept
mod parts; // ServerParts: what a server brings besides tools
mod placeholders; // Placeholders: what stands for `${NAME}` in the files of other agents
mod prompts; // prompts of servers as slash commands
mod questions; // questions of servers to the person
mod resources; // resources of servers as pages
mod sampling; // requests of servers to a model
mod server_tool; // McpTool: a tool whose calls a server carries out
mod tool_search; // which tools a query means

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use hardpan_agent::events::{AgentStart, SessionStart};
use hardpan_agent::{Agent, Conversation};
use hardpan_context::Target;
use hardpan_files::{create_private_folder, read_small_text, write_private_file};
use hardpan_mcp::{
    Connection, Login, ProgramConfinement, ProgramPlace, ServerConfig, ServerConfigs, ServerError,
    ServerName, ServerPrompt, ServerResource, ServerTool, ToolLoadingSetting,
};
use hardpan_sandbox::{FileHandle, SandboxLauncher};
use hardpan_tools::{Confinement, Tool, ToolRegistry, ToolSource};
use tokio::sync::watch;

use crate::approval::Approver;
use crate::command_sandbox::without_restrictions;
use crate::notice::{Notice, NoticeSink};
use crate::tool_set::ToolSet;
use client_host::ServerHost;
use deferred_tools::ToolFinder;
use loading_plan::{ListedServer, StoredLoading};
use parts::ServerParts;
use server_tool::McpTool;

pub(crate) use conversation_link::ConversationLink;
pub(crate) use deferred_tools::finder_source;
pub use deferred_tools::shown_call;
pub use found_servers::{FoundServer, FoundServers, UnusableServer, find_servers};
pub use loading_plan::{LoadingPlan, declaration_tokens};
pub use login::login_file;
pub use resources::{AttachedResource, ResourceError};

/// How long the first request waits for servers whose tools are not remembered.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// How long a server's word that its list changed is kept, in case more follow.
const LIST_PAUSE: Duration = Duration::from_millis(300);

/// How often a conversation says of a server that its tools are others. One that changes them all the time
/// must not fill the screen.
const MAX_CHANGE_NOTICES: usize = 3;

/// The largest remembered list, in bytes.
const MAX_REMEMBERED: u64 = 16 << 20;

/// The servers of a conversation.
pub struct McpServers {
    servers: Vec<Arc<McpServer>>,
    link: Arc<ConversationLink>,
    has_begun: Arc<AtomicBool>,
    finder: Arc<ToolFinder>,
    /// How the tools are loaded where a server's own settings do not say it.
    loading: ToolLoadingSetting,
    /// How many requests a conversation is expected to have.
    requests: u32,
    /// Whether it is decided how the tools of this conversation are loaded.
    is_decided: AtomicBool,
}

/// What the servers of a conversation have in common.
pub(crate) struct McpSetup<'a> {
    /// The servers.
    pub configs: &'a ServerConfigs,
    /// How the tools are loaded where a server's own settings do not say it.
    pub loading: ToolLoadingSetting,
    /// How many requests a conversation is expected to have.
    pub requests: u32,
    /// The user's cache folder.
    pub cache: Option<&'a Path>,
    /// Where their tools are registered.
    pub registry: &'a ToolRegistry,
    /// Where programs run.
    pub place: ProgramPlace,
}

/// A server and what it brings.
#[derive(Debug)]
pub struct ServerReport {
    /// Its name.
    pub name: ServerName,
    /// Where it runs, in one line.
    pub place: String,
    /// Whether conversations use it.
    pub enabled: bool,
    /// The login at it, if there is one.
    pub login: Option<Login>,
    /// Its tools, or why it cannot be used.
    pub tools: Result<Vec<ServerTool>, ServerError>,
    /// Its prompts.
    pub prompts: Vec<ServerPrompt>,
    /// What it has to read.
    pub resources: Vec<ServerResource>,
}

/// How far the first start of a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FirstStart {
    NotBegun,
    UnderWay,
    Over,
}

/// One server of a conversation.
pub(crate) struct McpServer {
    name: ServerName,
    config: ServerConfig,
    place: ProgramPlace,
    registry: ToolRegistry,
    finder: Arc<ToolFinder>,
    notices: Arc<dyn NoticeSink>,
    /// Where its list is remembered.
    remembered: Option<PathBuf>,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// What it listed last, or is remembered to have.
    tools: Mutex<Option<Vec<ServerTool>>>,
    /// Whether its first start is under way, which the first request waits for.
    start: watch::Sender<FirstStart>,
    /// Whether a change of its list is being looked at.
    is_listing: AtomicBool,
    /// How often it was said that its tools are others.
    change_notices: AtomicUsize,
    /// Whether requests have been made, so that changes wait.
    has_begun: Arc<AtomicBool>,
    link: Arc<ConversationLink>,
    parts: ServerParts,
}

impl McpServers {
    /// These servers. Registers the tools that they are remembered to have, in the user's cache; none is
    /// started.
    pub(crate) fn new(setup: McpSetup<'_>, notices: &Arc<dyn NoticeSink>, link: ConversationLink) -> Self {
        let link = Arc::new(link);
        let McpSetup { configs, loading, requests, cache, registry, place } = setup;
        let finder = Arc::new(ToolFinder::new(registry.clone()));
        let folder = cache.map(|cache| cache.join("mcp"));
        let has_begun = Arc::new(AtomicBool::new(false));
        let server = |(name, config): (&ServerName, &ServerConfig)| {
            let file = |folder: &PathBuf| folder.join(format!("{name}-{}.json", config.identity()));
            let server = Arc::new(McpServer {
                name: name.clone(),
                config: config.clone(),
                place: place.clone(),
                registry: registry.clone(),
                finder: finder.clone(),
                notices: notices.clone(),
                remembered: folder.as_ref().map(file),
                connection: tokio::sync::Mutex::default(),
                tools: Mutex::default(),
                start: watch::Sender::new(FirstStart::NotBegun),
                is_listing: AtomicBool::new(false),
                change_notices: AtomicUsize::new(0),
                has_begun: has_begun.clone(),
                link: link.clone(),
                parts: ServerParts::default(),
            });
            if let Some(file) = server.prompts_file() {
                server.parts.read_remembered(&file);
            }
            if let Some(tools) = server.read_remembered().filter(|_| config.enabled) {
                server.register(&tools);
                *server.listed() = Some(tools);
            }
            server
        };
        let servers: Vec<Arc<McpServer>> = configs.iter().map(server).collect();
        finder.connect(&servers);
        let is_decided = AtomicBool::new(false);
        McpServers { servers, link, has_begun, finder, loading, requests, is_decided }
    }

    /// Takes up a conversation: one that has begun loads tools as it did; a new one as the plan says, which
    /// is made again when it begins.
    pub(crate) fn take_up(&self, conversation: &Conversation, target: &Target) {
        let stored = StoredLoading::of(conversation);
        self.is_decided.store(stored.is_some(), Ordering::Relaxed);
        let names = self.enabled().map(|server| &server.name);
        let chosen = match stored {
            Some(stored) => stored.on_demand(names),
            None => self.plan(target).on_demand,
        };
        self.finder.choose(chosen);
    }

    /// How the tools of a new conversation with this model would be loaded, by the lists that are known.
    pub fn plan(&self, target: &Target) -> LoadingPlan {
        let listed = |server: &Arc<McpServer>| ListedServer {
            name: server.name.clone(),
            setting: server.config.tools.unwrap_or(self.loading),
            tools: server.listed().clone(),
        };
        let servers: Vec<ListedServer> = self.enabled().map(listed).collect();
        LoadingPlan::new(&servers, self.other_tools(), target, self.requests)
    }

    /// How many tools requests declare that no server brings.
    fn other_tools(&self) -> usize {
        let Some(server) = self.servers.first() else { return 0 };
        let sources = self.servers.iter().map(|server| server_source(&server.name));
        let sources: Vec<ToolSource> = sources.chain([finder_source()]).collect();
        server.registry.list().iter().filter(|tool| !sources.contains(&tool.source)).count()
    }

    /// Decides how the tools of a new conversation are loaded, and stores that.
    async fn decide_loading(&self, agent: &Agent) {
        if self.is_decided.swap(true, Ordering::Relaxed) {
            return;
        }
        let plan = self.plan(&agent.target());
        if let (Some(server), Some(max), false) =
            (self.servers.first(), plan.max_tools, plan.beyond_limit.is_empty())
        {
            let servers = plan.beyond_limit.iter().map(ToString::to_string).collect();
            server.notices.notice(Notice::McpToolsBeyondLimit { servers, max });
        }
        let chosen: BTreeSet<ServerName> = plan.on_demand;
        self.finder.choose(chosen.clone());
        let stored = StoredLoading::new(self.enabled().map(|server| &server.name), &chosen);
        if !stored.is_at_once()
            && let Ok(data) = serde_json::to_value(stored)
        {
            // A session that cannot be written reports it with the next message.
            let _ = agent.store_extension_state(StoredLoading::ENTRY, data).await;
        }
    }

    fn enabled(&self) -> impl Iterator<Item = &Arc<McpServer>> {
        self.servers.iter().filter(|server| server.config.enabled)
    }

    /// Starts the servers when the agent starts, and lets the first request wait for those of which
    /// nothing is known, but not for long.
    pub(crate) fn follow(self: &Arc<Self>, agent: &Agent, approver: &Arc<Approver>) {
        if self.enabled().next().is_none() {
            return;
        }
        self.link.connect(agent, approver);
        for server in self.enabled() {
            prompts::register_commands(server, &server.parts.prompts().unwrap_or_default());
        }
        self.follow_resources(agent);
        let servers = Arc::downgrade(self);
        agent.events().subscribe::<SessionStart, _>("hardpan", move |_, _| {
            for server in servers.upgrade().iter().flat_map(|servers| servers.enabled()) {
                let server = server.clone();
                // Told before the task runs: a request may come first.
                server.start.send_replace(FirstStart::UnderWay);
                tokio::spawn(async move { server.start().await });
            }
            async { Ok(()) }
        });
        let servers = Arc::downgrade(self);
        agent.events().subscribe::<AgentStart, _>("hardpan", move |_, agent| {
            let servers = servers.upgrade();
            async move {
                let Some(servers) = servers else { return Ok(()) };
                let unknown: Vec<Arc<McpServer>> =
                    servers.enabled().filter(|server| server.listed().is_none()).cloned().collect();
                if !servers.has_begun.load(Ordering::Relaxed) && !unknown.is_empty() {
                    let starting = join_all(unknown.iter().map(|server| server.wait_for_start()));
                    // A server that is late brings its tools at the next fold.
                    let _ = tokio::time::timeout(FIRST_WAIT, starting).await;
                }
                servers.decide_loading(&agent).await;
                servers.has_begun.store(true, Ordering::Relaxed);
                Ok(())
            }
        });
    }

    /// Starts all servers that are not disabled, and says what each brings.
    pub async fn report(&self) -> Vec<ServerReport> {
        join_all(self.servers.iter().map(|server| async {
            let tools = match server.config.enabled {
                false => Ok(Vec::new()),
                true => match server.connect().await {
                    Ok(connection) => {
                        server.learn_parts(&connection).await;
                        Ok(server.listed().clone().unwrap_or_default())
                    }
                    Err(error) => Err(error),
                },
            };
            let (name, place) = (server.name.clone(), server.config.place());
            let prompts = server.parts.prompts().filter(|_| tools.is_ok()).unwrap_or_default();
            let resources = server.parts.resources().listed;
            let (login, enabled) = (server.login(), server.config.enabled);
            ServerReport { name, place, enabled, login, tools, prompts, resources }
        }))
        .await
    }
}

impl McpServer {
    fn listed(&self) -> std::sync::MutexGuard<'_, Option<Vec<ServerTool>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The login at it; one that cannot be read is told when the server is used.
    fn login(&self) -> Option<Login> {
        login_file(&self.name, &self.config, self.place.logins.as_deref())?.read().ok().flatten()
    }

    fn read_remembered(&self) -> Option<Vec<ServerTool>> {
        let text = read_small_text(self.remembered.as_ref()?, MAX_REMEMBERED).ok()?;
        serde_json::from_str(&text).ok()
    }

    fn remember(&self, tools: &[ServerTool]) {
        let (Some(file), Ok(json)) = (&self.remembered, serde_json::to_vec(tools)) else { return };
        // A list that is not remembered is asked for again.
        let _ = file.parent().map_or(Ok(()), create_private_folder);
        let _ = write_private_file(file, &json);
    }

    /// Starts the server, and says so if it cannot be used.
    async fn start(self: Arc<Self>) {
        if let Err(error) = self.connect().await {
            let (server, error) = (self.name.to_string(), error.to_string());
            self.notices.notice(Notice::McpServerFailed { server, error });
        }
        self.start.send_replace(FirstStart::Over);
    }

    /// Waits until it was started, or could not be, if a start is under way.
    async fn wait_for_start(&self) {
        // Cannot fail: the sender is held by this value.
        let _ = self.start.subscribe().wait_for(|start| *start != FirstStart::UnderWay).await;
    }

    /// The connection to the server, which is started if it does not run.
    async fn connect(self: &Arc<Self>) -> Result<Arc<Connection>, ServerError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        // The former one ends first.
        *held = None;
        self.parts.note_start();
        let host =
            Arc::new(ServerHost { server: Arc::downgrade(self), runtime: tokio::runtime::Handle::current() });
        let (connection, tools) = Connection::open(&self.name, &self.config, &self.place, host).await?;
        self.take_list(&tools);
        let connection = Arc::new(connection);
        *held = Some(connection.clone());
        let (server, opened) = (self.clone(), Arc::downgrade(&connection));
        tokio::spawn(async move {
            if let Some(connection) = opened.upgrade() {
                server.learn_parts(&connection).await;
            }
        });
        Ok(connection)
    }

    /// Asks for the list again, once for many words that it changed.
    fn note_change(server: &Weak<Self>, runtime: &tokio::runtime::Handle) {
        let Some(server) = server.upgrade() else { return };
        if server.is_listing.swap(true, Ordering::Relaxed) {
            return;
        }
        runtime.spawn(async move {
            tokio::time::sleep(LIST_PAUSE).await;
            server.is_listing.store(false, Ordering::Relaxed);
            let connection = server.connection.lock().await.clone();
            let Some(connection) = connection else { return };
            let listing = connection.list_tools(&server.name);
            if let Ok(Ok(tools)) = tokio::time::timeout(server.config.start_time, listing).await {
                server.take_list(&tools);
            }
        });
    }

    /// Takes a list of tools. Requests of a conversation that has begun declare it from the next fold on;
    /// until then, some models are told which tools are new and which are gone.
    fn take_list(self: &Arc<Self>, tools: &[ServerTool]) {
        let before = self.listed().replace(tools.to_vec());
        if before.as_deref() == Some(tools) {
            return;
        }
        self.remember(tools);
        self.register(tools);
        // What searches find waits for nothing.
        if self.has_begun.load(Ordering::Relaxed) && !self.finder.has(&self.name) {
            let (before, now) = (before.unwrap_or_default(), tools);
            let changed = now.iter().filter(|tool| !before.contains(tool)).count();
            let is_gone = |tool: &&ServerTool| !now.iter().any(|other| other.name == tool.name);
            let removed = before.iter().filter(is_gone).count();
            let server = self.name.to_string();
            if self.change_notices.fetch_add(1, Ordering::Relaxed) < MAX_CHANGE_NOTICES {
                let is_told = self.link.agent().is_some_and(|agent| agent.tool_changes_are_free());
                self.notices.notice(Notice::McpToolsChanged { server, changed, removed, is_told });
            }
        }
    }

    fn register(self: &Arc<Self>, tools: &[ServerTool]) {
        let source = server_source(&self.name);
        let tools =
            tools.iter().map(|tool| -> Arc<dyn Tool> { Arc::new(McpTool::new(self, tool)) }).collect();
        for taken in self.registry.replace_source(&source, tools) {
            let error = format!("{taken}; this tool of it is left out");
            self.notices.notice(Notice::McpServerFailed { server: self.name.to_string(), error });
        }
        if self.finder.has(&self.name) {
            self.finder.refresh();
        }
    }
}

/// Who brings the tools of a server.
fn server_source(name: &ServerName) -> ToolSource {
    ToolSource::named(format!("mcp:{name}"))
}

/// Where the programs of servers run.
pub(crate) fn program_place(
    root: &Path,
    logins: Option<PathBuf>,
    tool_set: &ToolSet,
    launcher: Option<SandboxLauncher>,
) -> ProgramPlace {
    ProgramPlace {
        root: root.to_owned(),
        logins,
        environment: std::env::vars_os().collect(),
        plain: confinement(&without_restrictions(launcher), None),
        sandboxed: confinement(&tool_set.commands.confinement, Some(root)),
    }
}

/// Where programs would run that are never started.
pub(crate) fn shown_place(root: &Path) -> ProgramPlace {
    let refused = || ProgramConfinement::Refused("requests are only shown".into());
    ProgramPlace {
        root: root.to_owned(),
        logins: None,
        environment: Default::default(),
        plain: refused(),
        sandboxed: refused(),
    }
}

fn confinement(confinement: &Confinement, writable: Option<&Path>) -> ProgramConfinement {
    match confinement {
        Confinement::None => ProgramConfinement::None,
        Confinement::Refused(reason) => ProgramConfinement::Refused(reason.clone()),
        Confinement::Sandbox(sandbox) => {
            let handles = writable.map(FileHandle::open).transpose();
            match handles {
                Ok(handles) => ProgramConfinement::Sandbox(
                    sandbox.launcher.clone(),
                    sandbox.policy.clone().with_writable(handles),
                ),
                Err(error) => ProgramConfinement::Refused(error.to_string()),
            }
        }
    }
}
