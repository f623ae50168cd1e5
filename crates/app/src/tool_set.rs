//! [`ToolSet`]: the agent's tools and what they share: the journal for `/undo`, what the model has
//! seen of each file, and the sandbox for commands. [`SessionArtifacts`] names the folders that
//! they write to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use hardpan_agent::events::{
    AgentStart, SessionCompact, SessionFork, SessionSwitch, SessionTree, ToolExecutionEnd,
};
use hardpan_agent::{Agent, Event};
use hardpan_prompt::Hash;
use hardpan_tools::{
    FileViews, Journal, JournalError, NetworkAccess, Sandbox, SandboxLauncher, SandboxSupport, Scope,
    ShellOptions, Tool, ToolOptions, ToolRegistry, WebOptions, changing_tools, sandbox_support,
    scrub_environment,
};

use crate::settings::{Settings, cache_folder, config_folder, data_folder, expand_home};

/// The folders of a session beside its session file.
pub struct SessionArtifacts {
    /// Former contents of changed files, for `/undo`.
    pub journal: PathBuf,
    /// Long outputs of commands, which the model can read.
    pub outputs: PathBuf,
    /// `TMPDIR` of the commands.
    pub temp: PathBuf,
}

impl SessionArtifacts {
    /// The folders of a session, below `scratch` if given, else below the user's data and cache
    /// folders.
    pub fn for_session(session: &str, scratch: Option<&Path>) -> Self {
        let scratch = scratch.map(Path::to_owned);
        let data = scratch.clone().or_else(data_folder).unwrap_or_else(std::env::temp_dir);
        let cache = scratch.or_else(cache_folder).unwrap_or_else(std::env::temp_dir);
        // The id comes from a file and must not lead to another folder.
        let session: String =
            session.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let session = if session.is_empty() { "_".to_owned() } else { session };
        SessionArtifacts {
            journal: data.join("journal").join(&session),
            outputs: data.join("outputs").join(&session),
            temp: cache.join("tmp").join(&session),
        }
    }

    /// Removes the folders. Missing ones are not an error.
    pub fn remove(&self) -> std::io::Result<()> {
        for folder in [&self.journal, &self.outputs, &self.temp] {
            match std::fs::remove_dir_all(folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }
}

/// The tools of a conversation and their shared state.
pub struct ToolSet {
    /// What the model may call, read-only tools first.
    pub tools: ToolRegistry,
    /// Runs the user's own commands (`!ls`), without a sandbox.
    pub shell: Arc<dyn Tool>,
    /// Former contents of changed files, for `/undo`; none if it cannot be written.
    pub journal: Option<Arc<Journal>>,
    /// The folder that long outputs of commands go to.
    pub outputs: PathBuf,
    /// Messages for the user, such as that there is no sandbox.
    pub notes: Vec<String>,
    /// What the model has seen of each file.
    pub file_views: FileViews,
    root: PathBuf,
}

impl ToolSet {
    /// Makes the tools for a session. With `--no-session`, `scratch` is the folder to use.
    pub fn new(settings: &Settings, session: &str, root: &Path, scratch: Option<&Path>) -> Result<Self> {
        let config = &settings.config;
        let mut notes = Vec::new();
        let SessionArtifacts { journal, outputs, temp } = SessionArtifacts::for_session(session, scratch);
        let journal = match Journal::open(journal) {
            Ok(journal) => Some(Arc::new(journal)),
            Err(error) => {
                notes.push(format!("{error}; /undo is not available"));
                None
            }
        };
        let providers = settings.catalogue.providers();
        let keys: Vec<String> = providers.flat_map(|provider| provider.profile.key_env.clone()).collect();
        let environment = scrub_environment(std::env::vars_os(), &keys, &config.keep_variables);
        let sandbox = if config.sandbox.unwrap_or(true) { sandbox(settings, &mut notes) } else { None };
        let own = ShellOptions { outputs: outputs.clone(), temp, environment, sandbox: None };
        let file_views = FileViews::default();
        let shell = ShellOptions { sandbox, ..own.clone() };
        let tools = ToolRegistry::built_in(tools(settings, file_views.clone(), journal.clone(), shell));
        let shell = hardpan_tools::shell_tool(own);
        Ok(ToolSet { tools, shell, journal, outputs, notes, file_views, root: root.to_owned() })
    }

    /// Subscribes to the agent's events, to track which files the model has read and which run a
    /// change belongs to.
    pub fn follow(&self, agent: &Agent) {
        let (file_views, root) = (self.file_views.clone(), self.root.clone());
        agent.events().subscribe::<ToolExecutionEnd, _>("hardpan", move |end, _| {
            let (file_views, root) = (file_views.clone(), root.clone());
            async move {
                let details = end.details.filter(|_| &*end.tool_name == "read").unwrap_or_default();
                let hash = serde_json::from_value::<Hash>(details["hash"].clone());
                if let (Some(path), Ok(hash)) = (details["path"].as_str(), hash) {
                    file_views.record_view(&root.join(path), hash);
                }
                Ok(())
            }
        });
        let journal = self.journal.clone();
        agent.events().subscribe::<AgentStart, _>("hardpan", move |_, _| {
            let journal = journal.clone();
            async move {
                journal
                    .iter()
                    .for_each(|journal| journal.begin_turn(journal.last_undoable_turn().unwrap_or(0) + 1));
                Ok(())
            }
        });
        self.forget_after::<SessionCompact>(agent);
        self.forget_after::<SessionTree>(agent);
        self.forget_after::<SessionSwitch>(agent);
        self.forget_after::<SessionFork>(agent);
    }

    /// Forgets which files the model has read after an event that may drop them from the
    /// conversation.
    fn forget_after<E: Event<Reply = ()>>(&self, agent: &Agent) {
        let file_views = self.file_views.clone();
        agent.events().subscribe::<E, _>("hardpan", move |_, _| {
            let file_views = file_views.clone();
            async move {
                file_views.forget_all();
                Ok(())
            }
        });
    }

    /// Records changes in the journal of another session from now on.
    pub fn switch_to(&self, session: &str, scratch: Option<&Path>) -> Result<(), JournalError> {
        let folder = SessionArtifacts::for_session(session, scratch).journal;
        self.journal.as_ref().map_or(Ok(()), |journal| journal.switch_to(folder))
    }

    /// Lets the agent read the stored outputs of commands.
    pub fn allow_reading_outputs(&self, scope: &mut Scope) {
        scope.readable.push(self.outputs.clone());
    }
}

/// Every tool of the agent, read-only ones first.
fn tools(
    settings: &Settings,
    file_views: FileViews,
    journal: Option<Arc<Journal>>,
    shell: ShellOptions,
) -> Vec<Arc<dyn Tool>> {
    let web = WebOptions { private_hosts: settings.config.private_hosts.clone(), ..WebOptions::default() };
    let options = ToolOptions { file_views, journal, shell, web };
    hardpan_tools::read_only_tools().into_iter().chain(changing_tools(options)).collect()
}

/// The tools as a request declares them. For requests that are only shown: creates nothing on disk.
pub fn declared_tools(settings: &Settings) -> Vec<hardpan_prompt::Tool> {
    let (outputs, temp) = (std::env::temp_dir(), std::env::temp_dir());
    let shell = ShellOptions { outputs, temp, environment: Default::default(), sandbox: None };
    tools(settings, FileViews::default(), None, shell).iter().map(|tool| tool.declaration().clone()).collect()
}

/// The sandbox for commands; none if this system has no support, which adds a note.
fn sandbox(settings: &Settings, notes: &mut Vec<String>) -> Option<Sandbox> {
    match sandbox_support() {
        SandboxSupport::Full => {}
        SandboxSupport::Partial(missing) => {
            notes.push(format!("the sandbox for commands is incomplete: {missing}"));
        }
        SandboxSupport::None(why) => {
            notes.push(format!("commands run without a sandbox: {why}"));
            return None;
        }
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            notes.push(format!("commands run without a sandbox: cannot find the hardpan program ({error})"));
            return None;
        }
    };
    let config = &settings.config;
    let network = if config.network.unwrap_or(false) { NetworkAccess::On } else { NetworkAccess::Off };
    Some(Sandbox {
        launcher: SandboxLauncher { program, arguments: vec!["__sandbox".into()] },
        writable: config.writable.iter().map(|folder| expand_home(folder)).collect(),
        hidden: config_folder().into_iter().collect(),
        network,
    })
}
