//! The tools that change things: what they share, where they leave their traces, and what keeps commands in bounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use hardpan_agent::Agent;
use hardpan_agent::events::{AgentStart, SessionCompact, ToolExecutionEnd};
use hardpan_prompt::Hash;
use hardpan_tools::{
    Journal, Launcher, Network, Options, Sandbox, Scope, Seen, Shell, Support, Tool, Web, changing, scrubbed, support,
};

use crate::settings::{Settings, cache_folder, config_folder, data_folder};

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
    seen: Seen,
    root: PathBuf,
}

impl Hands {
    /// The tools for a session.
    pub fn new(settings: &Settings, session: &str, root: &Path) -> Result<Self> {
        let config = &settings.config;
        let mut notes = Vec::new();
        let data = data_folder().unwrap_or_else(std::env::temp_dir);
        let outputs = data.join("outputs").join(session);
        let journal = match Journal::open(data.join("journal").join(session)) {
            Ok(journal) => Some(Arc::new(journal)),
            Err(error) => {
                notes.push(format!("{error}; /undo is not available"));
                None
            }
        };
        let temp = cache_folder().unwrap_or_else(std::env::temp_dir).join("tmp").join(session);
        let providers = settings.catalogue.providers();
        let keys: Vec<String> = providers.flat_map(|provider| provider.wire.key_env.clone()).collect();
        let environment = scrubbed(std::env::vars_os(), &keys, &config.keep_variables);
        let sandbox = if config.sandbox.unwrap_or(true) { sandbox(settings, &mut notes) } else { None };
        let own = Shell { outputs: outputs.clone(), temp, environment, sandbox: None };
        let web = Web { private_hosts: config.private_hosts.clone(), ..Web::default() };
        let seen = Seen::default();
        let options = Options {
            seen: seen.clone(),
            journal: journal.clone(),
            shell: Shell { sandbox, ..own.clone() },
            web,
        };
        let tools = hardpan_tools::read_only().into_iter().chain(changing(options)).collect();
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
        let seen = self.seen.clone();
        agent.events().on::<SessionCompact, _>("hardpan", move |_, _| {
            let seen = seen.clone();
            async move {
                seen.forget_all();
                Ok(())
            }
        });
    }

    /// Lets the agent read what commands printed.
    pub fn extend(&self, scope: &mut Scope) {
        scope.readable.push(self.outputs.clone());
    }
}

/// What keeps commands in bounds; none where this system has nothing of the kind.
fn sandbox(settings: &Settings, notes: &mut Vec<String>) -> Option<Sandbox> {
    match support() {
        Support::Full => {}
        Support::Partial(missing) => notes.push(format!("the sandbox for commands is not complete: {missing}")),
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
        writable: config.writable.iter().map(PathBuf::from).collect(),
        hidden: config_folder().into_iter().collect(),
        network,
    })
}
