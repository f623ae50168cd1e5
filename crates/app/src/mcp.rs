//! [`McpServers`]: the servers of the Model Context Protocol that bring tools to a conversation.
//!
//! Servers start when the conversation does, behind everything else. Their lists of tools are remembered, so
//! that a conversation begins with the same tools although a server is still starting. What requests
//! declare stays as it is until a fold, whatever servers list later: see [`ToolRegistry`].

mod found_servers; // FoundServer: a server that the user has set up for another agent
mod server_tool; // McpTool: a tool whose calls a server carries out

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::join_all;
use hardpan_agent::Agent;
use hardpan_agent::events::{AgentStart, SessionStart};
use hardpan_files::{create_private_folder, read_small_text, write_private_file};
use hardpan_mcp::{
    Connection, ProgramConfinement, ProgramPlace, ServerConfig, ServerConfigs, ServerError, ServerName,
    ServerTool,
};
use hardpan_sandbox::{FileHandle, SandboxLauncher};
use hardpan_tools::{Confinement, Tool, ToolRegistry, ToolSource};

use crate::command_sandbox::without_restrictions;
use crate::notice::{Notice, NoticeSink};
use crate::tool_set::ToolSet;
use server_tool::McpTool;

pub use found_servers::{FoundServer, UnusableServer, find_servers};

/// How long the first request waits for servers whose tools are not remembered.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// How long a server's word that its list changed is kept, in case more follow.
const LIST_PAUSE: Duration = Duration::from_millis(300);

/// The largest remembered list, in bytes.
const MAX_REMEMBERED: u64 = 16 << 20;

/// The servers of a conversation.
pub struct McpServers {
    servers: Vec<Arc<McpServer>>,
    has_begun: Arc<AtomicBool>,
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
    /// Its tools, or why it cannot be used.
    pub tools: Result<Vec<ServerTool>, ServerError>,
}

/// One server of a conversation.
pub(crate) struct McpServer {
    name: ServerName,
    config: ServerConfig,
    place: ProgramPlace,
    registry: ToolRegistry,
    notices: Arc<dyn NoticeSink>,
    /// Where its list is remembered.
    remembered: Option<PathBuf>,
    connection: tokio::sync::Mutex<Option<Arc<Connection>>>,
    /// What it listed last, or is remembered to have.
    tools: Mutex<Option<Vec<ServerTool>>>,
    /// Whether a change of its list is being looked at.
    is_listing: AtomicBool,
    /// Whether requests have been made, so that changes wait.
    has_begun: Arc<AtomicBool>,
}

impl McpServers {
    /// These servers. Registers the tools that they are remembered to have, in the user's `cache`; none is
    /// started.
    pub(crate) fn new(
        configs: &ServerConfigs,
        cache: Option<&Path>,
        root: &Path,
        tool_set: &ToolSet,
        launcher: Option<SandboxLauncher>,
        notices: &Arc<dyn NoticeSink>,
    ) -> Self {
        let place = ProgramPlace {
            root: root.to_owned(),
            environment: std::env::vars_os().collect(),
            plain: confinement(&without_restrictions(launcher), None),
            sandboxed: confinement(&tool_set.commands.confinement, Some(root)),
        };
        let folder = cache.map(|cache| cache.join("mcp"));
        let has_begun = Arc::new(AtomicBool::new(false));
        let server = |(name, config): (&ServerName, &ServerConfig)| {
            let file = |folder: &PathBuf| folder.join(format!("{name}-{}.json", config.identity()));
            let server = Arc::new(McpServer {
                name: name.clone(),
                config: config.clone(),
                place: place.clone(),
                registry: tool_set.tools.clone(),
                notices: notices.clone(),
                remembered: folder.as_ref().map(file),
                connection: tokio::sync::Mutex::default(),
                tools: Mutex::default(),
                is_listing: AtomicBool::new(false),
                has_begun: has_begun.clone(),
            });
            if let Some(tools) = server.read_remembered().filter(|_| config.enabled) {
                server.register(&tools);
                *server.listed() = Some(tools);
            }
            server
        };
        let servers = configs.iter().map(server).collect();
        McpServers { servers, has_begun }
    }

    fn enabled(&self) -> impl Iterator<Item = &Arc<McpServer>> {
        self.servers.iter().filter(|server| server.config.enabled)
    }

    /// Starts the servers when the agent starts, and lets the first request wait for those of which
    /// nothing is known, but not for long.
    pub(crate) fn follow(self: &Arc<Self>, agent: &Agent) {
        if self.enabled().next().is_none() {
            return;
        }
        let servers = Arc::downgrade(self);
        agent.events().subscribe::<SessionStart, _>("hardpan", move |_, _| {
            for server in servers.upgrade().iter().flat_map(|servers| servers.enabled()) {
                let server = server.clone();
                tokio::spawn(async move { server.start().await });
            }
            async { Ok(()) }
        });
        let servers = Arc::downgrade(self);
        agent.events().subscribe::<AgentStart, _>("hardpan", move |_, _| {
            let servers = servers.upgrade();
            async move {
                let Some(servers) = servers else { return Ok(()) };
                let unknown: Vec<Arc<McpServer>> =
                    servers.enabled().filter(|server| server.listed().is_none()).cloned().collect();
                if !servers.has_begun.load(Ordering::Relaxed) && !unknown.is_empty() {
                    let starting = join_all(unknown.iter().map(|server| server.connection.lock()));
                    // A server that is late brings its tools at the next fold.
                    let _ = tokio::time::timeout(FIRST_WAIT, starting).await;
                }
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
                true => server.connect().await.map(|_| server.listed().clone().unwrap_or_default()),
            };
            let (name, place) = (server.name.clone(), server.config.place());
            ServerReport { name, place, enabled: server.config.enabled, tools }
        }))
        .await
    }
}

impl McpServer {
    fn listed(&self) -> std::sync::MutexGuard<'_, Option<Vec<ServerTool>>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner)
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
    }

    /// The connection to the server, which is started if it does not run.
    async fn connect(self: &Arc<Self>) -> Result<Arc<Connection>, ServerError> {
        let mut held = self.connection.lock().await;
        if let Some(connection) = held.as_ref().filter(|connection| !connection.is_closed()) {
            return Ok(connection.clone());
        }
        // The former one ends first.
        *held = None;
        let server = Arc::downgrade(self);
        let runtime = tokio::runtime::Handle::current();
        let tools_changed = Arc::new(move || Self::note_change(&server, &runtime));
        let (connection, tools) =
            Connection::open(&self.name, &self.config, &self.place, tools_changed).await?;
        self.take_list(&tools);
        let connection = Arc::new(connection);
        *held = Some(connection.clone());
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

    /// Takes a list of tools. Requests of a conversation that has begun declare it from the next fold on.
    fn take_list(self: &Arc<Self>, tools: &[ServerTool]) {
        let before = self.listed().replace(tools.to_vec());
        if before.as_deref() == Some(tools) {
            return;
        }
        self.remember(tools);
        self.register(tools);
        if self.has_begun.load(Ordering::Relaxed) {
            let (before, now) = (before.unwrap_or_default(), tools);
            let changed = now.iter().filter(|tool| !before.contains(tool)).count();
            let is_gone = |tool: &&ServerTool| !now.iter().any(|other| other.name == tool.name);
            let removed = before.iter().filter(is_gone).count();
            let server = self.name.to_string();
            self.notices.notice(Notice::McpToolsChanged { server, changed, removed });
        }
    }

    fn register(self: &Arc<Self>, tools: &[ServerTool]) {
        let source = ToolSource::named(format!("mcp:{}", self.name));
        let tools =
            tools.iter().map(|tool| -> Arc<dyn Tool> { Arc::new(McpTool::new(self, tool)) }).collect();
        for taken in self.registry.replace_source(&source, tools) {
            let error = format!("{taken}; this tool of it is left out");
            self.notices.notice(Notice::McpServerFailed { server: self.name.to_string(), error });
        }
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
