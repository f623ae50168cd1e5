//! [`TestAgentBuilder`]: what a [`TestAgent`] is made of.

use std::sync::Arc;
use std::time::Duration;

use hardpan_agent::AgentSettings;
use hardpan_context::{KeepLevel, LayoutName, LifetimeSetting};
use hardpan_prompt::Volatility;
use hardpan_providers::Transport;

use crate::environment::TestEnvironment;
use crate::{TestAgent, TestApprovals, WorkspaceContents};

/// Settings of a [`TestAgent`]; [`start`](TestAgentBuilder::start) makes it.
#[derive(Clone)]
#[must_use]
pub struct TestAgentBuilder {
    pub(crate) layout: LayoutName,
    pub(crate) keep: KeepLevel,
    pub(crate) cache_lifetime: LifetimeSetting,
    pub(crate) model: String,
    pub(crate) assumes_tools: bool,
    pub(crate) fetches_pages: bool,
    pub(crate) window: Option<u32>,
    pub(crate) max_tokens: Option<u32>,
    pub(crate) script: String,
    pub(crate) faults: String,
    pub(crate) provider: ProviderKind,
    pub(crate) is_recording: bool,
    pub(crate) silence: Option<Duration>,
    pub(crate) clock: TestClock,
    pub(crate) settings: AgentSettings,
    pub(crate) toolset: Toolset,
    pub(crate) approvals: TestApprovals,
    pub(crate) files: Vec<(String, String)>,
    pub(crate) workspace: WorkspaceContents,
}

/// How the agent reaches its provider.
#[derive(Clone)]
pub(crate) enum ProviderKind {
    /// The simulator over HTTP.
    Http,
    /// The simulator in this process, which is billed and caches by the test's clock and counts as
    /// the agent does.
    InProcess,
    /// Something else that answers.
    Transport(Arc<dyn Transport>),
}

/// The agent's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestClock {
    /// The machine's.
    Running,
    /// It is always noon.
    Frozen,
    /// The test moves it: [`TestAgent::pass_minutes`].
    Manual,
}

/// The agent's tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Toolset {
    /// The tools that read, `slow` and `paint`.
    Fakes,
    /// The tools that the binary has, with a journal, and the user's shell.
    Real,
    /// `look` and `listen`, which do nothing.
    Look,
    /// The tools that read, and `look`.
    ReadAndLook,
}

impl TestAgentBuilder {
    /// The loop itself: the simulator over HTTP, fake tools, `a.txt` in the folder, `open.md` shown
    /// if it is there.
    pub(crate) fn for_loop() -> Self {
        let handler_timeout = Duration::from_secs(10);
        TestAgentBuilder {
            layout: LayoutName::Strata,
            keep: KeepLevel::default(),
            cache_lifetime: LifetimeSetting::default(),
            model: "claude-sonnet-5".into(),
            assumes_tools: false,
            fetches_pages: false,
            window: None,
            max_tokens: None,
            script: "default: {text: Fine.}".into(),
            faults: String::new(),
            provider: ProviderKind::Http,
            is_recording: true,
            silence: None,
            clock: TestClock::Running,
            settings: AgentSettings { handler_timeout, ..AgentSettings::default() },
            toolset: Toolset::Fakes,
            approvals: TestApprovals::Colours,
            files: vec![("a.txt".into(), "first line\nsecond line\n".into())],
            workspace: WorkspaceContents { open: vec!["open.md".into()], ..WorkspaceContents::default() },
        }
    }

    /// Everything that changes files: the binary's tools, all allowed, an empty folder, a small
    /// window that is never compacted by itself, a frozen clock.
    pub(crate) fn for_real_tools() -> Self {
        let builder = TestAgentBuilder::for_loop();
        TestAgentBuilder {
            window: Some(40_000),
            max_tokens: Some(2000),
            clock: TestClock::Frozen,
            settings: AgentSettings { compact_at: 0.0, ..builder.settings },
            toolset: Toolset::Real,
            approvals: TestApprovals::AllowAll,
            files: Vec::new(),
            workspace: WorkspaceContents::default(),
            ..builder
        }
    }

    /// What costs money and time: the simulator in this process, and a clock that the test moves.
    /// Asked to look, the model calls `look`.
    pub(crate) fn for_billing() -> Self {
        let script = "
turns:
  - when: {equals: Look.}
    tool_calls: [{name: look, arguments: {at: a}}]
    repeat: always
default: {text: Fine.}
";
        TestAgentBuilder {
            script: script.into(),
            provider: ProviderKind::InProcess,
            clock: TestClock::Manual,
            settings: AgentSettings::default(),
            toolset: Toolset::Look,
            approvals: TestApprovals::DenyAll,
            files: Vec::new(),
            workspace: WorkspaceContents::default(),
            ..TestAgentBuilder::for_loop()
        }
    }

    /// Makes the agent and its surroundings, with an empty conversation.
    pub async fn start(self) -> TestAgent {
        TestAgent::begin_in(Arc::new(TestEnvironment::new(self).await))
    }

    /// The layout of prompts.
    pub fn layout(self, layout: LayoutName) -> Self {
        TestAgentBuilder { layout, ..self }
    }

    /// For how long the provider is asked to keep what requests cache.
    pub fn cache_lifetime(self, cache_lifetime: LifetimeSetting) -> Self {
        TestAgentBuilder { cache_lifetime, ..self }
    }

    /// How much of the conversation a fold may take out.
    pub fn keep(self, keep: KeepLevel) -> Self {
        TestAgentBuilder { keep, ..self }
    }

    /// The model, by its name in the catalogue.
    pub fn model(self, model: &str) -> Self {
        TestAgentBuilder { model: model.to_owned(), ..self }
    }

    /// The agent takes it that the model takes tools, whatever the catalogue says.
    pub fn assume_tools(self) -> Self {
        TestAgentBuilder { assumes_tools: true, ..self }
    }

    /// Has the pages fetched that prompts name, from this machine.
    pub fn pages(self) -> Self {
        TestAgentBuilder { fetches_pages: true, ..self }
    }

    /// The setting `edit_blocks`.
    pub fn edit_blocks(mut self) -> Self {
        self.workspace.edit_blocks = true;
        self
    }

    /// The context window that the agent assumes, in tokens, in place of the model's.
    pub fn window(self, tokens: u32) -> Self {
        TestAgentBuilder { window: Some(tokens), ..self }
    }

    /// The most tokens of an answer.
    pub fn max_tokens(self, tokens: u32) -> Self {
        TestAgentBuilder { max_tokens: Some(tokens), ..self }
    }

    /// What the simulator answers, in YAML (`docs/simulator.md`).
    pub fn script(self, script: impl AsRef<str>) -> Self {
        TestAgentBuilder { script: script.as_ref().to_owned(), ..self }
    }

    /// What goes wrong at the simulator, such as `status=529,times=1`.
    pub fn faults(self, faults: impl AsRef<str>) -> Self {
        TestAgentBuilder { faults: faults.as_ref().to_owned(), ..self }
    }

    /// How long the client waits for more of an answer. The usual time unless a test is about that: on a
    /// busy machine a short one is over before an honest answer begins.
    pub fn silence(self, silence: Duration) -> Self {
        TestAgentBuilder { silence: Some(silence), ..self }
    }

    /// Has the simulator in this process, and a clock that the test moves.
    pub fn simulator_in_process(self) -> Self {
        TestAgentBuilder { provider: ProviderKind::InProcess, clock: TestClock::Manual, ..self }
    }

    /// Answers through this transport in place of the simulator.
    pub fn transport(self, transport: Arc<dyn Transport>) -> Self {
        TestAgentBuilder { provider: ProviderKind::Transport(transport), ..self }
    }

    /// Keeps neither requests nor events: for benchmarks.
    pub fn without_recording(self) -> Self {
        TestAgentBuilder { is_recording: false, ..self }
    }

    /// The agent's clock.
    pub fn clock(self, clock: TestClock) -> Self {
        TestAgentBuilder { clock, ..self }
    }

    /// Changes the agent's settings.
    pub fn settings(mut self, change: impl FnOnce(&mut AgentSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// The agent's tools.
    pub fn tools(self, toolset: Toolset) -> Self {
        TestAgentBuilder { toolset, ..self }
    }

    /// Who decides whether a call may run.
    pub fn approvals(self, approvals: TestApprovals) -> Self {
        TestAgentBuilder { approvals, ..self }
    }

    /// A file of the folder that the agent works in.
    pub fn file(mut self, path: &str, content: &str) -> Self {
        self.files.push((path.to_owned(), content.to_owned()));
        self
    }

    /// Several files of that folder: path and content.
    pub fn files(mut self, files: &[(&str, &str)]) -> Self {
        self.files.extend(files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())));
        self
    }

    /// A file of the folder that is shown as an item while it exists.
    pub fn open(mut self, name: &str) -> Self {
        self.workspace.open.push(name.to_owned());
        self
    }

    /// An item that is shown (`file:a.rs`, `symbols:a.rs`) with its body.
    pub fn item(mut self, key: &str, body: &str) -> Self {
        self.workspace.set_item(key, body);
        self
    }

    /// How often items change, as the layouts are told.
    pub fn volatility(mut self, volatility: Volatility) -> Self {
        self.workspace.volatility = volatility;
        self
    }
}
