//! [`ToolSet`]: the agent's tools and what they share: the journal for `/undo` and the sandbox for
//! commands. [`SessionArtifacts`] names the folders that they write to.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hardpan_agent::Agent;
use hardpan_agent::events::{AgentEnd, AgentStart};
use hardpan_sandbox::{Programs, SandboxLauncher};
use hardpan_tools::{
    Confinement, Journal, ShellOptions, Symbols, Tool, ToolOptions, ToolRegistry, WebOptions, changing_tools,
    command_environment, scrub_environment,
};
use hardpan_workspace::LiveIndex;

use crate::actions::TURN_ENTRY;
use crate::approval::CommandRules;
use crate::command_sandbox::{CommandSandbox, without_restrictions};
use crate::notice::{Notice, NoticeSink};
use crate::settings::{SandboxMode, Settings, UserFolders};

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
    pub fn for_session(session: &str, folders: &UserFolders, scratch: Option<&Path>) -> Self {
        let choose = |folder: &Option<PathBuf>| {
            scratch.or(folder.as_deref()).map_or_else(std::env::temp_dir, Path::to_owned)
        };
        let (data, cache) = (choose(&folders.data), choose(&folders.cache));
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
    /// Whether rules may allow commands.
    pub command_rules: CommandRules,
    /// How the commands of the model run.
    pub(crate) commands: ShellOptions,
    /// The folder that long outputs of commands go to.
    pub outputs: PathBuf,
    user_folders: UserFolders,
    /// The folder of a conversation that is not stored.
    scratch: Option<PathBuf>,
    notices: Arc<dyn NoticeSink>,
}

/// How commands are run.
pub struct CommandSetup {
    /// The programs that were found at the start.
    pub programs: Programs,
    /// The program that enters the sandbox.
    pub launcher: Option<SandboxLauncher>,
    /// Whether there is to be a sandbox.
    pub sandbox_mode: SandboxMode,
}

impl ToolSet {
    /// Makes the tools for a session. A conversation that is not stored has a `scratch` folder.
    pub fn new(
        settings: &Settings,
        index: &Arc<LiveIndex>,
        session: &str,
        scratch: Option<&Path>,
        commands: CommandSetup,
        notices: &Arc<dyn NoticeSink>,
    ) -> Self {
        let CommandSetup { programs, launcher, sandbox_mode } = commands;
        let config = &settings.config;
        let SessionArtifacts { journal, outputs, temp } =
            SessionArtifacts::for_session(session, &settings.user_folders, scratch);
        let journal = match Journal::open(journal) {
            Ok(journal) => Some(Arc::new(journal)),
            Err(error) => {
                notices.notice(Notice::UndoUnavailable(error));
                None
            }
        };
        let providers = settings.catalogue.providers();
        let keys: Vec<String> = providers.flat_map(|provider| provider.profile.key_env.clone()).collect();
        let (known, passed) = (settings.all_keys(), &config.pass_environment);
        // What the user could run anywhere is not restricted, but ends with the conversation.
        let own = ShellOptions {
            program: programs.shell,
            outputs: outputs.clone(),
            temp,
            environment: scrub_environment(std::env::vars_os(), &keys, &known, passed),
            confinement: without_restrictions(launcher.clone()),
        };
        let command_sandbox = CommandSandbox::choose(settings, sandbox_mode, launcher, &outputs, &**notices);
        let shell = ShellOptions {
            environment: command_environment(std::env::vars_os(), &known, passed),
            confinement: command_sandbox.confinement,
            ..own.clone()
        };
        let commands = shell.clone();
        let tools = ToolRegistry::built_in(tools(settings, index.clone(), journal.clone(), shell));
        let shell = hardpan_tools::shell_tool(own);
        ToolSet {
            tools,
            shell,
            journal,
            command_rules: command_sandbox.rules,
            commands,
            outputs,
            user_folders: settings.user_folders.clone(),
            scratch: scratch.map(Path::to_owned),
            notices: notices.clone(),
        }
    }

    /// Subscribes to the agent's events, to track which run a change belongs to.
    pub fn follow(&self, agent: &Agent) {
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
        let journal = self.journal.clone();
        agent.events().subscribe::<AgentEnd, _>("hardpan", move |_, agent| {
            let turn = journal.as_ref().map(|journal| journal.turn());
            let has_changes =
                journal.iter().zip(turn).any(|(journal, turn)| !journal.changed_files(turn).is_empty());
            async move {
                if let Some(turn) = turn.filter(|_| has_changes) {
                    // A session that cannot be written reports it with the next message.
                    let _ = agent.store_extension_state(TURN_ENTRY, turn.into()).await;
                }
                Ok(())
            }
        });
    }

    /// Records changes in the journal of another session from now on.
    pub fn switch_to(&self, session: &str) {
        let folders = SessionArtifacts::for_session(session, &self.user_folders, self.scratch.as_deref());
        let Some(journal) = &self.journal else { return };
        if let Err(error) = journal.switch_to(folders.journal) {
            self.notices.notice(Notice::JournalNotSwitched(error));
        }
    }
}

/// What may be fetched from the web.
pub(crate) fn web_options(settings: &Settings) -> WebOptions {
    WebOptions { private_hosts: settings.config.private_hosts.clone(), ..WebOptions::default() }
}

/// Every tool of the agent, read-only ones first.
fn tools(
    settings: &Settings,
    index: Arc<LiveIndex>,
    journal: Option<Arc<Journal>>,
    shell: ShellOptions,
) -> Vec<Arc<dyn Tool>> {
    let (web, watched) = (web_options(settings), Some(index.clone()));
    let options = ToolOptions { journal, shell, web, index: watched };
    let mut tools = hardpan_tools::read_only_tools();
    tools.push(Arc::new(Symbols(index)));
    tools.extend(changing_tools(options));
    tools
}

/// The tools for a request that is only shown. They create nothing on disk, and are never called.
pub(crate) fn shown_tools(settings: &Settings, index: Arc<LiveIndex>) -> ToolRegistry {
    ToolRegistry::built_in(tools(settings, index, None, shown_shell()))
}

/// The shell of tools that are never called.
pub(crate) fn shown_shell() -> ShellOptions {
    let (outputs, temp) = (std::env::temp_dir(), std::env::temp_dir());
    let (program, environment) = ("/bin/sh".into(), Default::default());
    ShellOptions { program, outputs, temp, environment, confinement: Confinement::None }
}
