//! The tools that change things: what they share, where they leave their traces, and what keeps commands in bounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use hardpan_agent::events::{
    AgentStart, SessionCompact, SessionFork, SessionSwitch, SessionTree, ToolExecutionEnd,
};
use hardpan_agent::{Agent, Event};
use hardpan_prompt::Hash;
use hardpan_tools::{
    Journal, JournalError, Launcher, Network, Options, Sandbox, Scope, Seen, Shell, Support, Tool, Web,
    changing, scrubbed, support,
};

use crate::settings::{Settings, at_home, cache_folder, config_folder, data_folder};

/// Where a session leaves what is not said in it.
pub struct Traces {
    /// What its tools did to files.
    pub journal: PathBuf,
    /// What its commands printed.
    pub outputs: PathBuf,
    /// Its commands' own temporary files.
    pub temp: PathBuf,
}

impl Traces {
    /// The folders of a session: below `scratch`, or with those of the others.
    pub fn of(session: &str, scratch: Option<&Path>) -> Self {
        let scratch = scratch.map(Path::to_owned);
        let data = scratch.clone().or_else(data_folder).unwrap_or_else(std::env::temp_dir);
        let cache = scratch.or_else(cache_folder).unwrap_or_else(std::env::temp_dir);
        // The id is what a file says: it must not lead elsewhere.
        let session: String =
            session.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
        let session = if session.is_empty() { "_".to_owned() } else { session };
        Traces {
            journal: data.join("journal").join(&session),
            outputs: data.join("outputs").join(&session),
            temp: cache.join("tmp").join(&session),
        }
    }

    /// Removes them. What is not there need not be removed.
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

/// The tools of a conversation, and what they share.
pub struct Hands {
    pub tools: Vec<Arc<dyn Tool>>,
    /// What runs the person's own commands: without a sandbox, since they could run them anywhere.
    pub shell: Arc<dyn Tool>,
    pub journal: Option<Arc<Journal>>,
    /// Where long outputs are kept, so that they can be read.
    pub outputs: PathBuf,
    /// What the person should know.
    pub notes: Vec<String>,
    /// What the model has seen of each file.
    pub seen: Seen,
    root: PathBuf,
}

impl Hands {
    /// The tools for a session. What a conversation that leaves nothing behind needs is kept in `scratch`.
    pub fn new(settings: &Settings, session: &str, root: &Path, scratch: Option<&Path>) -> Result<Self> {
        let config = &settings.config;
        let mut notes = Vec::new();
        let Traces { journal, outputs, temp } = Traces::of(session, scratch);
        let journal = match Journal::open(journal) {
            Ok(journal) => Some(Arc::new(journal)),
            Err(error) => {
                notes.push(format!("{error}; /undo is not available"));
                None
            }
        };
        let providers = settings.catalogue.providers();
        let keys: Vec<String> = providers.flat_map(|provider| provider.wire.key_env.clone()).collect();
        let environment = scrubbed(std::env::vars_os(), &keys, &config.keep_variables);
        let sandbox = if config.sandbox.unwrap_or(true) { sandbox(settings, &mut notes) } else { None };
        let own = Shell { outputs: outputs.clone(), temp, environment, sandbox: None };
        let seen = Seen::default();
        let tools = tools(settings, seen.clone(), journal.clone(), Shell { sandbox, ..own.clone() });
        let shell = hardpan_tools::shell(own);
        Ok(Hands { tools, shell, journal, outputs, notes, seen, root: root.to_owned() })
    }

    /// Follows what the agent does: what a model has seen of a file, and which run a change belongs to.
    pub fn follow(&self, agent: &Agent) {
        let (seen, root) = (self.seen.clone(), self.root.clone());
        agent.events().on::<ToolExecutionEnd, _>("hardpan", move |end, _| {
            let (seen, root) = (seen.clone(), root.clone());
            async move {
                let details = end.details.filter(|_| &*end.tool_name == "read").unwrap_or_default();
                let hash = serde_json::from_value::<Hash>(details["hash"].clone());
                if let (Some(path), Ok(hash)) = (details["path"].as_str(), hash) {
                    seen.note(&root.join(path), hash);
                }
                Ok(())
            }
        });
        let journal = self.journal.clone();
        agent.events().on::<AgentStart, _>("hardpan", move |_, _| {
            let journal = journal.clone();
            async move {
                journal.iter().for_each(|journal| journal.begin(journal.last_turn().unwrap_or(0) + 1));
                Ok(())
            }
        });
        self.forget_after::<SessionCompact>(agent);
        self.forget_after::<SessionTree>(agent);
        self.forget_after::<SessionSwitch>(agent);
        self.forget_after::<SessionFork>(agent);
    }

    /// What was shown may no longer be in the conversation.
    fn forget_after<E: Event<Reply = ()>>(&self, agent: &Agent) {
        let seen = self.seen.clone();
        agent.events().on::<E, _>("hardpan", move |_, _| {
            let seen = seen.clone();
            async move {
                seen.forget_all();
                Ok(())
            }
        });
    }

    /// What is changed from now on belongs to another session.
    pub fn turn_to(&self, session: &str, scratch: Option<&Path>) -> Result<(), JournalError> {
        let folder = Traces::of(session, scratch).journal;
        self.journal.as_ref().map_or(Ok(()), |journal| journal.turn_to(folder))
    }

    /// Lets the agent read what commands printed.
    pub fn extend(&self, scope: &mut Scope) {
        scope.readable.push(self.outputs.clone());
    }
}

/// All tools of the agent.
fn tools(settings: &Settings, seen: Seen, journal: Option<Arc<Journal>>, shell: Shell) -> Vec<Arc<dyn Tool>> {
    let web = Web { private_hosts: settings.config.private_hosts.clone(), ..Web::default() };
    let options = Options { seen, journal, shell, web };
    hardpan_tools::read_only().into_iter().chain(changing(options)).collect()
}

/// The tools as a request declares them, for one that is only shown: nothing is made on the disk for them.
pub fn declared(settings: &Settings) -> Vec<hardpan_prompt::Tool> {
    let (outputs, temp) = (std::env::temp_dir(), std::env::temp_dir());
    let shell = Shell { outputs, temp, environment: Default::default(), sandbox: None };
    tools(settings, Seen::default(), None, shell).iter().map(|tool| tool.declaration().clone()).collect()
}

/// What keeps commands in bounds; none where this system has nothing of the kind.
fn sandbox(settings: &Settings, notes: &mut Vec<String>) -> Option<Sandbox> {
    match support() {
        Support::Full => {}
        Support::Partial(missing) => {
            notes.push(format!("the sandbox for commands is not complete: {missing}"));
        }
        Support::None(why) => {
            notes.push(format!("commands run without a sandbox: {why}"));
            return None;
        }
    }
    let program = match std::env::current_exe() {
        Ok(program) => program,
        Err(error) => {
            notes.push(format!("commands run without a sandbox: hardpan cannot be found ({error})"));
            return None;
        }
    };
    let config = &settings.config;
    let network = if config.network.unwrap_or(false) { Network::On } else { Network::Off };
    Some(Sandbox {
        launcher: Launcher { program, arguments: vec!["__sandbox".into()] },
        writable: config.writable.iter().map(|folder| at_home(folder)).collect(),
        hidden: config_folder().into_iter().collect(),
        network,
    })
}
