//! What a face asks for: [`OpenOptions`] for a conversation, [`RequestOptions`] for a request that
//! is only shown, or sent by itself. Both name a model with [`TargetOptions`].

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use hardpan_context::{AgentMode, KeepLevel, LifetimeSetting, PromptType};
use hardpan_mcp::ServerConfigs;
use hardpan_models::ThinkingSetting;
use hardpan_sandbox::SandboxLauncher;
use jiff::Timestamp;

use crate::approval::ApprovalMode;
use crate::mentions::PromptSource;
pub use crate::session_origin::{ForeignSession, ForeignSessions};
use crate::settings::{SandboxMode, UserFolders};

/// The model and the layout to use. What is not given comes from the environment, the
/// conversation, the settings or the defaults, in this order.
#[derive(Clone, Debug, Default)]
pub struct TargetOptions {
    /// Provider id, as the catalogue has it.
    pub provider: Option<String>,
    /// Model, as the catalogue has it.
    pub model: Option<String>,
    /// Token limit of an answer.
    pub max_tokens: Option<u32>,
    /// How much the model thinks.
    pub thinking: Option<ThinkingSetting>,
    /// `strata`, `panels`, `tiers` or `inline`.
    pub layout: Option<String>,
    /// Name of the agent.
    pub agent: Option<String>,
    /// Whether the model may call tools.
    pub agent_mode: Option<AgentMode>,
    /// `inline`: the system prompt to start from.
    pub prompt_type: Option<PromptType>,
    /// `inline`: the file of the prompt `custom`, relative to the folder that the process works in.
    pub prompt_path: Option<PathBuf>,
    /// How much of the conversation requests keep.
    pub keep: Option<KeepLevel>,
    /// For how long the provider is asked to keep what requests cache.
    pub cache_lifetime: Option<LifetimeSetting>,
}

/// A conversation to open.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// The folder to work in.
    pub folder: PathBuf,
    /// Where the user's settings, sessions and caches are.
    pub user_folders: UserFolders,
    /// Which conversation.
    pub session: SessionChoice,
    /// Whether a conversation from elsewhere may be continued.
    pub foreign_sessions: ForeignSessions,
    /// Whether it is stored.
    pub storage: SessionStorage,
    /// What happens to tool calls that no rule decides.
    pub approval: ApprovalMode,
    /// The model and the layout.
    pub target: TargetOptions,
    /// Who answers.
    pub access: ProviderAccess,
    /// Image files that go with the first prompt.
    pub images: Vec<PathBuf>,
    /// Ids of documents of the server that are attached, with or without `doc:`.
    pub documents: Vec<String>,
    /// Whether requests contain the map of the folder's symbols.
    pub symbol_map: bool,
    /// Whether commands run in a sandbox; replaces the setting.
    pub sandbox: Option<SandboxMode>,
    /// The program that enters the sandbox before it runs a command; without one, there is none.
    pub sandbox_launcher: Option<SandboxLauncher>,
    /// Whether the agent goes on by itself while work remains; replaces the setting.
    pub auto_continue: Option<bool>,
    /// Names of the face's commands, which skills and templates cannot use.
    pub reserved_names: Vec<&'static str>,
    /// How long an event handler may take, without the time that a person takes to answer it; none for
    /// the default of [`AgentSettings`](hardpan_agent::AgentSettings).
    pub handler_timeout: Option<Duration>,
    /// Files or folders of extensions that are loaded before all others.
    pub extensions: Vec<PathBuf>,
    /// Flags for extensions, by name without dashes; none for one that was given without a value.
    pub extension_flags: BTreeMap<String, Option<String>>,
    /// Whether the extensions of the project and of the user are loaded.
    pub discover_extensions: bool,
    /// MCP servers besides those of the settings, which keep their names.
    pub mcp_servers: ServerConfigs,
}

impl OpenOptions {
    /// A new conversation in a folder, which the user is asked about, with the user's own folders.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        OpenOptions {
            folder: folder.into(),
            user_folders: UserFolders::from_env(),
            session: SessionChoice::default(),
            foreign_sessions: ForeignSessions::default(),
            storage: SessionStorage::default(),
            approval: ApprovalMode::default(),
            target: TargetOptions::default(),
            access: ProviderAccess::default(),
            images: Vec::new(),
            documents: Vec::new(),
            symbol_map: true,
            sandbox: None,
            sandbox_launcher: None,
            auto_continue: None,
            reserved_names: Vec::new(),
            handler_timeout: None,
            extensions: Vec::new(),
            extension_flags: BTreeMap::new(),
            discover_extensions: true,
            mcp_servers: ServerConfigs::new(),
        }
    }
}

/// Which conversation to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SessionChoice {
    /// A new one.
    #[default]
    New,
    /// The folder's last one.
    Latest,
    /// An earlier one.
    Resume {
        /// Its id, name or file.
        session: String,
        /// The entry to go back to; none for the last one.
        at: Option<String>,
    },
    /// A new one with a copy of another's messages.
    Fork {
        /// The other's id, name or file.
        session: String,
        /// The entry to copy up to; none for the last one.
        at: Option<String>,
    },
}

/// Who answers the requests of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProviderAccess {
    /// The provider, if there is a key for it or it needs none; else the built-in simulator.
    #[default]
    ByKey,
    /// Always the built-in simulator: for tests, and to try things for free.
    Simulator,
}

/// Whether a conversation outlives its process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionStorage {
    /// It is stored with the user's other conversations.
    #[default]
    Stored,
    /// It lives in a temporary folder, which is removed with the app.
    Temporary,
}

/// A request to show, or to send by itself.
#[derive(Clone, Debug)]
pub struct RequestOptions {
    /// The folder that the request is about.
    pub folder: PathBuf,
    /// What the user asks.
    pub prompt: Option<String>,
    /// Who wrote the prompt.
    pub prompt_source: PromptSource,
    /// Files to open, relative to the folder: text, or images that go with the prompt.
    pub files: Vec<PathBuf>,
    /// Image files to attach to the prompt.
    pub images: Vec<PathBuf>,
    /// A snapshot file to use instead of the folder.
    pub snapshot: Option<PathBuf>,
    /// The conversation that the request goes on with. Its file stays as it is.
    pub session: SessionChoice,
    /// Whether a request of a conversation from elsewhere may be sent.
    pub foreign_sessions: ForeignSessions,
    /// The model and the layout.
    pub target: TargetOptions,
    /// The time to put into the request; none for the current time.
    pub now: Option<Timestamp>,
    /// In the strata layout: fold.
    pub fold: bool,
    /// Whether to declare the agent's tools and list its skills.
    pub tools: bool,
    /// Whether to include the map of the folder's symbols.
    pub symbol_map: bool,
    /// What the request is for.
    pub purpose: RequestPurpose,
    /// Names of the face's commands, which skills and templates cannot use.
    pub reserved_names: Vec<&'static str>,
}

/// What a request is built for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RequestPurpose {
    /// To be shown. A new conversation has no id yet: zeros stand for it, so that the same request
    /// is always shown in the same way.
    #[default]
    Show,
    /// To be sent, as a conversation of its own.
    Send,
}

impl RequestOptions {
    /// The first request of an agent in a folder, without a prompt.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        RequestOptions {
            folder: folder.into(),
            prompt: None,
            prompt_source: PromptSource::Typed,
            files: Vec::new(),
            images: Vec::new(),
            snapshot: None,
            session: SessionChoice::New,
            foreign_sessions: ForeignSessions::default(),
            target: TargetOptions::default(),
            now: None,
            fold: false,
            tools: true,
            symbol_map: true,
            purpose: RequestPurpose::Show,
            reserved_names: Vec::new(),
        }
    }
}
