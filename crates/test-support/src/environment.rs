//! [`TestEnvironment`]: what all agents of a test share.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_agent::expand::{Expansions, Folder, FolderContents, FolderOwner};
use hardpan_agent::{Agent, ClientFactory, ClientFactoryError, Conversation, Setup};
use hardpan_context::{AssembledPrompt, PromptTexts, RenderCache, Target};
use hardpan_economy::cache::Moment;
use hardpan_models::Catalogue;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{TokenFactor, TokenUsage};
use hardpan_providers::{ApiKey, CapabilityCache, Client, Endpoint, HttpTransport, RetryPolicy, Transport};
use hardpan_simulator::{
    BASE_URL, Clock, Engine, InProcessTransport, ManualClock, Server, ServerConfig, serve,
};
use hardpan_tools::{
    Journal, PageReader, Scope, ShellOptions, Tool, ToolOptions, ToolRegistry, WebOptions, changing_tools,
    edit_block_tool, read_only_tools, shell_tool,
};
use jiff::Timestamp;
use tempfile::TempDir;

use crate::builder::{ProviderKind, TestAgentBuilder, TestClock, Toolset};
use crate::traffic::{RecordingTransport, Traffic};
use crate::{LookTool, NoteLog, PaintTool, SlowTool, SlowToolCounts, TestWorkspace, scripted_engine};

/// When a [`TestClock::Manual`] begins: 2026-08-05T12:00:00Z, in milliseconds.
const MANUAL_START: i64 = 1_785_931_200_000;

/// A folder, a provider, and everything that is recorded.
pub(crate) struct TestEnvironment {
    pub builder: TestAgentBuilder,
    provider: Provider,
    pub clock: ManualClock,
    pub traffic: Traffic,
    pub workspace: Arc<TestWorkspace>,
    /// The usage that the provider reported, request by request.
    pub usages: Arc<Mutex<Vec<TokenUsage>>>,
    /// The colours that were asked about.
    pub asked: NoteLog,
    pub slow_calls: Arc<SlowToolCounts>,
    /// Sessions, and the folder `work`.
    base: PathBuf,
    _folder: TempDir,
}

enum Provider {
    Server(Server),
    Engine(Arc<Engine>),
    Transport(Arc<dyn Transport>),
}

/// What an agent is made with, and what the test keeps of it.
pub(crate) struct AgentParts {
    pub agent: Agent,
    pub journal: Option<Arc<Journal>>,
}

impl TestEnvironment {
    pub async fn new(builder: TestAgentBuilder) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let base = folder.path().canonicalize().expect("a real path");
        let work = base.join("work");
        std::fs::create_dir(&work).expect("a folder");
        for (path, content) in &builder.files {
            write_file(&work.join(path), content);
        }
        let engine = || scripted_engine(&builder.script, &builder.faults);
        let provider = match &builder.provider {
            ProviderKind::Http => {
                Provider::Server(serve(ServerConfig::new(engine())).await.expect("a free port"))
            }
            ProviderKind::InProcess => Provider::Engine(Arc::new(engine())),
            ProviderKind::Transport(transport) => Provider::Transport(transport.clone()),
        };
        TestEnvironment {
            provider,
            clock: ManualClock::at(Moment(MANUAL_START)),
            traffic: Traffic::default(),
            workspace: Arc::new(TestWorkspace::new(work, builder.workspace.clone())),
            usages: Arc::default(),
            asked: NoteLog::default(),
            slow_calls: Arc::default(),
            base,
            _folder: folder,
            builder,
        }
    }

    /// The folder that agents work in.
    pub fn work(&self) -> PathBuf {
        self.base.join("work")
    }

    /// Where the session of this name is stored.
    pub fn session_path(&self, name: &str) -> PathBuf {
        self.base.join(format!("{name}.jsonl"))
    }

    /// A name for a session that there is not yet: `fork1`, `fork2` and so on.
    pub fn free_session_name(&self, start: &str) -> String {
        let mut names = (1..).map(|n| format!("{start}{n}"));
        names.find(|name| !self.session_path(name).exists()).expect("a free name")
    }

    /// Forgets everything that the simulated provider has cached.
    pub fn clear_caches(&self) {
        match &self.provider {
            Provider::Server(server) => server.engine().clear_caches(),
            Provider::Engine(engine) => engine.clear_caches(),
            Provider::Transport(_) => panic!("this provider is not the simulator"),
        }
    }

    pub fn agent(&self, conversation: Conversation) -> AgentParts {
        let work = self.work();
        let builder = &self.builder;
        let (tools, shell, journal) = self.tools();
        let mut scope = Scope::new(&work, &work);
        scope.readable.push(self.base.join("outputs"));
        let folders = [("skills", FolderContents::Skills), ("templates", FolderContents::Templates)];
        let folders = folders.map(|(name, contents)| {
            let (path, owner) = (work.join(name), FolderOwner::User);
            Folder { path, contents, owner }
        });
        let setup = Setup {
            texts: Arc::new(PromptTexts::builtin().expect("the texts")),
            context_source: self.workspace.clone(),
            client_factory: Arc::new(self.clients()),
            approval_handler: builder.approvals.handler(&self.asked),
            clock: self.agent_clock(),
            tools: ToolRegistry::built_in(tools),
            edit_block_tool: journal.clone().map(|journal| edit_block_tool(Some(journal))),
            pages: builder.fetches_pages.then(|| Arc::new(self.page_reader())),
            shell,
            scope,
            expansions: Expansions::discover(&hardpan_files::FileGuard::for_folder(&work), &folders, &[]),
            target: self.target(&conversation),
            layout: builder.layout,
            keep: builder.keep,
            cache_lifetime: builder.cache_lifetime,
            thinking: ThinkingSetting::Default,
            secrets: Default::default(),
            settings: builder.settings,
        };
        AgentParts { agent: Agent::new(setup, conversation), journal }
    }

    fn target(&self, conversation: &Conversation) -> Target {
        let builder = &self.builder;
        // A face goes on with the model of the branch.
        let (provider, model) = match &conversation.model {
            Some((provider, model)) => (Some(&**provider), &**model),
            None => (None, &*builder.model),
        };
        let mut target = Target::new(Catalogue::builtin(), provider, model).expect("a model");
        target.model.context = builder.window.unwrap_or(target.model.context);
        target.model.tools |= builder.assumes_tools;
        target.max_tokens = builder.max_tokens.unwrap_or(target.max_tokens);
        if matches!(builder.provider, ProviderKind::InProcess) {
            // The simulator counts as we do.
            target.factor = TokenFactor::new(1.0);
        }
        target
    }

    fn agent_clock(&self) -> Arc<dyn Fn() -> Timestamp + Send + Sync> {
        match self.builder.clock {
            TestClock::Running => Arc::new(now),
            TestClock::Frozen => Arc::new(noon),
            TestClock::Manual => {
                let clock = self.clock.clock();
                Arc::new(move || Timestamp::from_millisecond(clock.now().0).expect("a time"))
            }
        }
    }

    #[allow(clippy::type_complexity, reason = "taken apart at its one call")]
    fn tools(&self) -> (Vec<Arc<dyn Tool>>, Option<Arc<dyn Tool>>, Option<Arc<Journal>>) {
        match self.builder.toolset {
            Toolset::Fakes => {
                let mut tools = read_only_tools();
                tools.push(Arc::new(SlowTool::new(self.slow_calls.clone())));
                tools.push(Arc::new(PaintTool::new()));
                (tools, None, None)
            }
            Toolset::Look => {
                (vec![Arc::new(LookTool::new("look")), Arc::new(LookTool::new("listen"))], None, None)
            }
            Toolset::ReadAndLook => {
                let mut tools = read_only_tools();
                tools.push(Arc::new(LookTool::new("look")));
                (tools, None, None)
            }
            Toolset::Real => {
                let journal = Arc::new(Journal::open(self.base.join("journal")).expect("a journal"));
                let shell = ShellOptions {
                    program: "/bin/bash".into(),
                    outputs: self.base.join("outputs"),
                    temp: self.base.join("temp"),
                    environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap_or_default())],
                    confinement: hardpan_tools::Confinement::None,
                };
                let options = ToolOptions {
                    journal: Some(journal.clone()),
                    shell: shell.clone(),
                    web: WebOptions { private_hosts: vec!["127.0.0.1".into()], ..WebOptions::default() },
                    index: None,
                };
                let tools = read_only_tools().into_iter().chain(changing_tools(options)).collect();
                (tools, Some(shell_tool(shell)), Some(journal))
            }
        }
    }

    fn page_reader(&self) -> PageReader {
        let web = WebOptions { private_hosts: vec!["127.0.0.1".into()], ..WebOptions::default() };
        PageReader::new(&web, Some(self.base.join("pages")))
    }

    fn clients(&self) -> TestClients {
        let (base_url, transport): (String, Arc<dyn Transport>) = match &self.provider {
            Provider::Server(server) => {
                let http = HttpTransport::new(None).expect("a transport");
                (format!("{}/v1", server.url()), Arc::new(http))
            }
            Provider::Engine(engine) => {
                let clock = match self.builder.clock {
                    TestClock::Manual => self.clock.clock(),
                    TestClock::Running | TestClock::Frozen => Clock::system(),
                };
                (BASE_URL.into(), Arc::new(InProcessTransport::new(engine.clone(), clock)))
            }
            Provider::Transport(transport) => ("http://provider.test".into(), transport.clone()),
        };
        let traffic = self.builder.is_recording.then(|| self.traffic.clone());
        TestClients {
            base_url,
            transport: match traffic {
                Some(traffic) => Arc::new(RecordingTransport { inner: transport, traffic }),
                None => transport,
            },
            silence: self.builder.silence,
            usages: self.builder.is_recording.then(|| self.usages.clone()),
        }
    }
}

struct TestClients {
    base_url: String,
    transport: Arc<dyn Transport>,
    silence: Option<Duration>,
    usages: Option<Arc<Mutex<Vec<TokenUsage>>>>,
}

impl ClientFactory for TestClients {
    fn client(&self, _target: &Target, _session: &str) -> Result<Client, ClientFactoryError> {
        let (base_url, key) = (self.base_url.clone(), Some(ApiKey::new("any")));
        let usual = RetryPolicy::default();
        let policy = RetryPolicy {
            first_wait: Duration::from_millis(1),
            silence: self.silence.unwrap_or(usual.silence),
            ..usual
        };
        let endpoint = Endpoint { base_url, key, ..Endpoint::default() };
        Ok(Client::new(self.transport.clone(), endpoint, policy, Arc::new(CapabilityCache::default())))
    }

    fn record_usage(&self, _: &Target, _: &AssembledPrompt, _: &RenderCache, usage: &TokenUsage) {
        if let Some(usages) = &self.usages {
            usages.lock().expect("the usages").push(*usage);
        }
    }
}

/// Writes a file and the folders above it.
pub(crate) fn write_file(path: &Path, content: &str) {
    std::fs::create_dir_all(path.parent().expect("a folder above it")).expect("a folder");
    std::fs::write(path, content).expect("a file");
}

#[allow(clippy::disallowed_methods, reason = "the agent's clock is the machine's")]
fn now() -> Timestamp {
    Timestamp::now()
}

fn noon() -> Timestamp {
    "2026-07-01T12:00:00Z".parse().expect("a time")
}
