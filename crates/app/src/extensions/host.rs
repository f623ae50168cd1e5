//! [`ExtensionHost`]: what one extension asks for, answered from the conversation.

mod bus; // ExtensionBus: what extensions tell each other
mod calls; // what a script asks for, by name
mod conversation; // what an extension does to the conversation
mod face; // what an extension shows
mod handler_calls; // calls of its handlers and tools
pub(super) mod limits; // how much of what it asks for is kept
mod machine; // what extensions are told of the process and the machine
mod registration; // what an extension registers

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::future::BoxFuture;
use hardpan_agent::events::{FaceChange, HandlerClock};
use hardpan_agent::{Agent, ApprovalHandler, WeakAgent};
use hardpan_context::KnownSecrets;
use hardpan_extensions::{HostError, Script, ScriptFault, ScriptHost};
use hardpan_files::HiddenFiles;
use hardpan_models::{Catalogue, ThinkingSetting};
use hardpan_prompt::Hash;
use hardpan_tools::{Scope, ShellOptions, ToolSource, WebClient};
use jiff::Timestamp;
use serde_json::Value;
use tokio::sync::mpsc;

use super::discovery::OwnFolder;
use super::event_order::ToolEventOrder;
use super::files::DiskUse;
use super::network::OpenBodies;
use super::permissions::{PermissionStore, Permissions, own_files};
use super::providers::{self, ExtensionProviders};
use super::{ExtensionListing, ExtensionOrigin, FoundExtension};
use crate::approval::{Approver, UserPrompter};
use crate::conversation_app::ConversationApp;
use crate::foreign_requests::RequestTimes;
pub use bus::ExtensionBus;
pub(super) use limits::StoredBytes;
use limits::{FaceQueue, MAX_REGISTERED, RateLimit, SentBytes};
use registration::Registered;

/// What all extensions of a conversation share.
pub(crate) struct ExtensionSetting {
    /// The conversation, for what a user could do to it.
    pub app: Weak<ConversationApp>,
    /// The models and providers of the settings.
    pub catalogue: Catalogue,
    pub providers: Arc<ExtensionProviders>,
    /// What no request may contain.
    pub secrets: KnownSecrets,
    /// The folder with the logins at providers of extensions.
    pub logins: Option<PathBuf>,
    /// Flags that the user gave.
    pub flags: BTreeMap<String, Option<String>>,
    /// What is in the input line, as far as the face tells.
    pub editor_text: Arc<Mutex<String>>,
    pub scope: Scope,
    pub prompter: Option<Arc<dyn UserPrompter>>,
    pub approvals: Arc<dyn ApprovalHandler>,
    /// Decides about hosts that an extension reaches.
    pub approver: Arc<Approver>,
    pub web: WebClient,
    pub permissions: PermissionStore,
    /// The folder with the data of extensions.
    pub data: Option<PathBuf>,
    pub shell: ShellOptions,
    pub is_project_trusted: bool,
    /// Names of the face's commands, which extensions cannot take.
    pub reserved_names: Vec<&'static str>,
    /// The extensions that registered a command, by its name.
    pub command_owners: Mutex<BTreeMap<String, Vec<Weak<ExtensionHost>>>>,
    /// How much extensions have stored, also before they were loaded anew.
    pub stored_bytes: Arc<StoredBytes>,
    /// How much of the disk they take, by the same reckoning.
    pub disk_use: Arc<DiskUse>,
    /// One question at a time, whichever extension asks.
    pub dialog: tokio::sync::Mutex<()>,
    pub runtime: tokio::runtime::Handle,
}

/// One extension's side of the conversation.
pub struct ExtensionHost {
    name: Arc<str>,
    origin: ExtensionOrigin,
    root: PathBuf,
    own_folder: OwnFolder,
    /// What its folder for data is called.
    data_name: String,
    /// What is in the hidden folders apart from its own, once a file was judged by that.
    pub(super) hidden_files: HiddenFiles,
    agent: WeakAgent,
    pub(super) permissions: Permissions,
    pub(super) setting: Arc<ExtensionSetting>,
    bus: Arc<ExtensionBus>,
    me: Weak<ExtensionHost>,
    script: Mutex<Weak<Script>>,
    /// What was registered, for lists.
    registered: Mutex<Registered>,
    /// Clocks of the handlers that run now.
    clocks: Mutex<Vec<HandlerClock>>,
    /// Where updates of running tool calls go.
    updates: Mutex<BTreeMap<String, mpsc::Sender<Value>>>,
    /// Where the answers go that it gives in the place of a provider, by their numbers.
    answers: Mutex<BTreeMap<u64, mpsc::UnboundedSender<Value>>>,
    /// The number of the last one.
    last_answer: AtomicU64,
    /// What arrives for its `fetch`.
    pub(super) bodies: OpenBodies,
    warnings: Mutex<Vec<String>>,
    /// What it shows in the face.
    face_queue: Mutex<FaceQueue>,
    /// How many notes it gives.
    note_rate: Mutex<RateLimit>,
    /// How often it has asked lately.
    dialog_rate: Mutex<RateLimit>,
    /// How many faults it has outside of handlers.
    fault_rate: Mutex<RateLimit>,
    /// How many events of other extensions it has not taken yet.
    bus_events: AtomicUsize,
    /// Length of these as JSON.
    bus_bytes: AtomicUsize,
    /// What it has sent to the conversation and for single requests.
    sent: Mutex<SentBytes>,
    /// The thinking level that the extension has asked for and that is not yet stored.
    wanted_thinking: Mutex<Option<ThinkingSetting>>,
    tool_event_order: ToolEventOrder,
    /// When it asked models.
    model_requests: Mutex<RequestTimes>,
    /// Commands of calls that run now, in the place of a built-in tool: the person was asked about them.
    allowed_commands: Arc<Mutex<Vec<String>>>,
    /// What the person has typed for the shell, while a handler is asked about it.
    typed_command: Mutex<Option<String>>,
    /// What the extension sends to the conversation, in its order. The script does not wait for it: its
    /// own handlers may be asked meanwhile.
    outbox: mpsc::UnboundedSender<BoxFuture<'static, ()>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn text<'a>(arguments: &'a Value, name: &str) -> Result<&'a str, HostError> {
    arguments[name].as_str().ok_or_else(|| HostError(format!("{name} must be a string")))
}

fn optional_text(arguments: &Value, name: &str) -> Option<String> {
    arguments[name].as_str().map(str::to_owned)
}

fn failed(error: impl std::fmt::Display) -> HostError {
    HostError(error.to_string())
}

/// What the folder for an extension's data is called: a project's extension does not get that of the user's of
/// the same name, nor one that was named for a single conversation.
fn data_name(extension: &FoundExtension) -> String {
    if extension.origin == ExtensionOrigin::User {
        return extension.name.clone();
    }
    let place = Hash::of(extension.entry.as_os_str().as_encoded_bytes()).to_string();
    let place: String = place.chars().filter(char::is_ascii_alphanumeric).take(16).collect();
    format!("{}-{place}", extension.name)
}

impl ExtensionHost {
    pub fn new(
        name: &str,
        extension: &FoundExtension,
        agent: &Agent,
        setting: &Arc<ExtensionSetting>,
        bus: &Arc<ExtensionBus>,
    ) -> Arc<Self> {
        let entries: Vec<&Path> =
            [&extension.entry].into_iter().chain(&extension.more_entries).map(PathBuf::as_path).collect();
        // One that cannot be read cannot be loaded either, and that is reported.
        let files = own_files(&*extension.sources, &entries);
        let tool_event_order = ToolEventOrder::of_sources(files.iter().map(|(_, text)| &**text));
        let (outbox, mut work) = mpsc::unbounded_channel::<BoxFuture<'static, ()>>();
        setting.runtime.spawn(async move {
            while let Some(work) = work.recv().await {
                work.await;
            }
        });
        Arc::new_cyclic(|me| ExtensionHost {
            outbox,
            name: name.into(),
            origin: extension.origin,
            wanted_thinking: Mutex::default(),
            root: extension.sources.root().to_owned(),
            own_folder: extension.own_folder,
            data_name: data_name(extension),
            hidden_files: HiddenFiles::default(),
            permissions: Permissions::new(
                &extension.name,
                &entries,
                &extension.sources,
                setting.permissions.clone(),
            ),
            agent: agent.downgrade(),
            setting: setting.clone(),
            bus: bus.clone(),
            me: me.clone(),
            script: Mutex::default(),
            registered: Mutex::default(),
            clocks: Mutex::default(),
            updates: Mutex::default(),
            answers: Mutex::default(),
            last_answer: AtomicU64::new(0),
            bodies: OpenBodies::default(),
            warnings: Mutex::default(),
            face_queue: Mutex::default(),
            note_rate: Mutex::default(),
            dialog_rate: Mutex::default(),
            fault_rate: Mutex::default(),
            bus_events: AtomicUsize::new(0),
            bus_bytes: AtomicUsize::new(0),
            sent: Mutex::default(),
            model_requests: Mutex::default(),
            allowed_commands: Arc::default(),
            typed_command: Mutex::default(),
            tool_event_order,
        })
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// In which order it hears of tool calls.
    pub fn tool_event_order(&self) -> ToolEventOrder {
        self.tool_event_order
    }

    /// The folder that holds the extension.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// What of that folder is its own.
    pub fn own_folder(&self) -> OwnFolder {
        self.own_folder
    }

    /// The folder for what the extension stores, which is made when it is first asked for.
    pub fn data_folder(&self) -> Option<PathBuf> {
        let folder = self.setting.data.as_ref()?.join(&self.data_name);
        hardpan_files::create_private_folder(&folder).ok()?;
        folder.canonicalize().ok()
    }

    /// The folder that the conversation works in.
    pub fn cwd(&self) -> String {
        self.setting.scope.folder.to_string_lossy().into_owned()
    }

    fn source(&self) -> ToolSource {
        ToolSource::named(format!("extension:{}", self.name))
    }

    /// Its name, as events and faces carry it.
    pub fn owner(&self) -> &Arc<str> {
        &self.name
    }

    pub fn origin(&self) -> ExtensionOrigin {
        self.origin
    }

    /// Counts a request to a model; false if there were too many in the minute before it.
    pub fn count_model_request(&self, now: Timestamp) -> bool {
        lock(&self.model_requests).count(now)
    }

    pub(super) fn app(&self) -> Result<Arc<ConversationApp>, HostError> {
        self.setting.app.upgrade().ok_or_else(|| HostError("the conversation is over".into()))
    }

    pub fn agent(&self) -> Result<Agent, HostError> {
        self.agent.upgrade().ok_or_else(|| HostError("the conversation is over".into()))
    }

    /// The extension is loaded: its handlers take part from now on.
    pub fn begin(self: &Arc<Self>, script: &Arc<Script>) {
        *lock(&self.script) = Arc::downgrade(script);
        for name in self.permissions.missing_variables() {
            self.warn(format!(
                "it does not see {name} of the environment: `hardpan extensions allow {} --env {name}` allows it",
                self.name
            ));
        }
        let handlers = lock(&self.registered).handlers.clone();
        for (event, handler) in handlers {
            self.subscribe(&event, &handler);
        }
    }

    /// Nothing of the extension stays: it could not be loaded, or is loaded anew.
    pub fn withdraw(&self) {
        lock(&self.bus.listeners).retain(|(_, host)| !host.ptr_eq(&self.me));
        // Without one of its providers, the others are still valid rows.
        let _ = self.setting.providers.remove(&self.name, None, &self.setting.catalogue);
        providers::withdraw_commands(self);
        let Ok(agent) = self.agent() else { return };
        agent.events().unsubscribe(&self.name);
        agent.tools().remove_source(&self.source());
        agent.remove_commands_of(&self.name);
        *lock(&self.registered) = Registered::default();
        lock(&self.face_queue).clear();
        agent.change_face(&self.name, FaceChange::Cleared);
    }

    /// What went wrong while loading, without stopping it.
    pub fn take_warnings(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.warnings))
    }

    /// Tells the person, without a fault of the script: when it is loaded, or at once after that.
    pub fn tell(&self, warning: String) {
        if lock(&self.script).upgrade().is_some() {
            self.fault(ScriptFault::new(warning));
        } else {
            self.warn(warning);
        }
    }

    fn warn(&self, warning: String) {
        tracing::warn!(extension = &*self.name, "{warning}");
        let mut warnings = lock(&self.warnings);
        if warnings.len() < MAX_REGISTERED {
            warnings.push(warning);
        }
    }

    pub fn listing(&self, path: &Path, origin: ExtensionOrigin) -> ExtensionListing {
        let registered = lock(&self.registered);
        ExtensionListing {
            name: self.name.to_string(),
            path: path.to_owned(),
            origin,
            events: registered.events.clone(),
            tools: registered.tools.clone(),
            commands: registered.commands.values().cloned().collect(),
            declared: self.permissions.declared().cloned(),
            granted: self.permissions.granted(),
            flags: registered.flags.keys().cloned().collect(),
            shortcuts: registered.shortcuts.keys().cloned().collect(),
            providers: self.setting.providers.names_of(&self.name),
        }
    }
}
