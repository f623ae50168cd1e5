//! [`Extensions`]: the TypeScript extensions of a conversation. They take part in the agent's events,
//! bring tools and commands, and ask the user through the face.
//!
//! Each runs in an engine of its own ([`hardpan_extensions::Script`]). A handler that an extension
//! subscribes becomes one handler of the agent's [`Events`](hardpan_agent::Events): order, chaining,
//! copies and time limits are those of any other handler.

mod api; // what goes to extensions and comes back, as types
mod discovery; // where extensions are looked for
mod entries; // entries of the session as extensions know them
mod event_order; // ToolEventOrder: in which order an extension hears of a tool call
mod events; // which events there are, and what goes to handlers and comes back
mod exec; // programs that an extension starts
mod files; // the files that an extension may use
mod host; // ExtensionHost: what an extension asks for
mod messages; // messages as extensions know them
mod model_calls; // what an extension asks a model
mod models; // models as extensions know them
mod network; // fetch of extensions
mod permissions; // what an extension may do, as declared and as allowed
mod providers; // the providers that extensions bring
mod questions; // what an extension asks the user
mod reload; // loading extensions anew, and noticing that their files changed
mod sessions; // other sessions, forks, the tree
mod tool; // ExtensionTool: a tool that an extension brings
pub mod typings; // the files of a new extension

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use hardpan_agent::{Agent, ArgumentChoice};
use hardpan_context::KnownSecrets;
use hardpan_extensions::{CallKind, Script, ScriptLimits};
use hardpan_tools::WebClient;
use serde::Serialize;

pub(crate) use discovery::check_named;
pub use discovery::{ExtensionOrigin, FoundExtension, find_extensions};
use files::DiskUse;
pub(crate) use host::ExtensionSetting;
use host::{ExtensionBus, ExtensionHost, StoredBytes};
pub use permissions::{DeclaredPermissions, ExtensionGrant, PermissionError, PermissionStore};
pub(crate) use providers::ExtensionProviders;

use crate::conversation_app::ConversationApp;
use crate::notice::Notice;
use crate::options::OpenOptions;
use crate::tool_set::web_options;

/// The event whose handlers decide about tool calls.
const GUARD_EVENT: &str = "tool_call";

/// How long an extension may take until it is loaded: no conversation waits for one that never is.
const LOAD_TIME: Duration = Duration::from_secs(60);

/// The extensions of a conversation.
pub struct Extensions {
    /// Where extensions are looked for, and the flags that they get.
    options: OpenOptions,
    root: PathBuf,
    /// Those that were loaded, in their order.
    loaded: Mutex<Vec<LoadedExtension>>,
    pub(crate) providers: Arc<ExtensionProviders>,
    /// What no request may contain.
    secrets: KnownSecrets,
    editor_text: Arc<Mutex<String>>,
    /// How much they have stored in each session.
    stored_bytes: Arc<StoredBytes>,
    /// How much of the disk they take, by the same reckoning.
    disk_use: Arc<DiskUse>,
    /// Where extensions were loaded; empty if none was found.
    runtime: OnceLock<tokio::runtime::Handle>,
    /// Whether there were extensions to load, whose files are then watched.
    has_found: AtomicBool,
    /// How many reloads were asked for.
    reload_requests: AtomicU64,
    /// Whether the person asked for one of them.
    is_reload_wanted: AtomicBool,
    /// Extensions that decide about tool calls and are not there, by their main file. Only the person's own reload
    /// forgets them: nothing that happens to a file does.
    missing_guards: Mutex<BTreeMap<PathBuf, String>>,
    /// One reload at a time; up to which request they have been carried out.
    reloading: tokio::sync::Mutex<u64>,
}

struct LoadedExtension {
    host: Arc<ExtensionHost>,
    path: PathBuf,
    origin: ExtensionOrigin,
    script: Arc<Script>,
}

/// A loaded extension, as faces list it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExtensionListing {
    /// Its name: that of its file or folder.
    pub name: String,
    /// Its main file.
    pub path: PathBuf,
    /// Where it was found.
    pub origin: ExtensionOrigin,
    /// The events that it takes part in.
    pub events: Vec<String>,
    /// The tools that it brings.
    pub tools: Vec<String>,
    /// The commands that it brings.
    pub commands: Vec<String>,
    /// What it declares that it does; nothing else is ever allowed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub declared: Option<DeclaredPermissions>,
    /// What the person allowed it.
    pub granted: ExtensionGrant,
    /// The flags that `--extension-flag` can give it.
    pub flags: Vec<String>,
    /// The keys that it takes.
    pub shortcuts: Vec<String>,
    /// The providers that it brings.
    pub providers: Vec<String>,
}

/// A key that an extension takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionShortcut {
    /// The key, as the extension wrote it: `ctrl+shift+p`.
    pub key: String,
    /// What it does; may be empty.
    pub description: String,
    /// Name of the extension.
    pub extension: String,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Extensions {
    pub(crate) fn new(
        options: OpenOptions,
        root: PathBuf,
        providers: Arc<ExtensionProviders>,
        secrets: KnownSecrets,
    ) -> Self {
        Extensions {
            options,
            root,
            loaded: Mutex::default(),
            providers,
            secrets,
            editor_text: Arc::default(),
            stored_bytes: Arc::default(),
            disk_use: Arc::default(),
            runtime: OnceLock::new(),
            has_found: AtomicBool::new(false),
            reload_requests: AtomicU64::new(0),
            is_reload_wanted: AtomicBool::new(false),
            missing_guards: Mutex::default(),
            reloading: tokio::sync::Mutex::default(),
        }
    }

    /// Loads extensions, one after the other. One that cannot be loaded is told of and left out.
    pub(crate) async fn load(&self, app: &Arc<ConversationApp>, found: Vec<FoundExtension>) {
        self.runtime.get_or_init(tokio::runtime::Handle::current);
        if !found.is_empty() {
            self.has_found.store(true, Ordering::Relaxed);
            let setting = self.setting(app);
            let bus = Arc::new(ExtensionBus::default());
            for extension in found {
                self.load_one(app, &setting, &bus, extension).await;
            }
        }
        for name in self.options.extension_flags.keys() {
            if !lock(&self.loaded).iter().any(|extension| extension.host.has_flag(name)) {
                app.notice(Notice::UnknownExtensionFlag { name: name.clone() });
            }
        }
    }

    fn setting(&self, app: &Arc<ConversationApp>) -> Arc<ExtensionSetting> {
        Arc::new(ExtensionSetting {
            app: Arc::downgrade(app),
            catalogue: app.settings.catalogue.clone(),
            providers: self.providers.clone(),
            secrets: self.secrets.clone(),
            logins: app.settings.user_folders.extension_logins(),
            flags: self.options.extension_flags.clone(),
            editor_text: self.editor_text.clone(),
            stored_bytes: self.stored_bytes.clone(),
            disk_use: self.disk_use.clone(),
            scope: app.scope.clone(),
            prompter: app.prompter.clone(),
            approvals: app.approvals.clone(),
            shell: app.tool_set.commands.clone(),
            approver: app.approvals.clone(),
            web: WebClient::new(&web_options(&app.settings)),
            permissions: PermissionStore::new(&app.settings.user_folders),
            data: app.settings.user_folders.data.as_ref().map(|data| data.join("extensions")),
            is_project_trusted: app.settings.project_files.is_some(),
            reserved_names: app.reserved_names.clone(),
            command_owners: Mutex::default(),
            dialog: tokio::sync::Mutex::default(),
            runtime: tokio::runtime::Handle::current(),
        })
    }

    async fn load_one(
        &self,
        app: &Arc<ConversationApp>,
        setting: &Arc<ExtensionSetting>,
        bus: &Arc<ExtensionBus>,
        extension: FoundExtension,
    ) {
        let name = self.free_name(&app.agent, &extension.name);
        let host = ExtensionHost::new(&name, &extension, &app.agent, setting, bus);
        let entry = extension.entry.clone();
        let mut loses_guard = false;
        let loading = load_entries(&extension, &host, &mut loses_guard);
        let (loaded, failed) = match tokio::time::timeout(LOAD_TIME, loading).await {
            Ok(loaded) => loaded,
            Err(_) => {
                let error = format!("it did not finish loading within {} s", LOAD_TIME.as_secs());
                loses_guard |= host.guards() > 0;
                (None, vec![(entry.clone(), error)])
            }
        };
        let misses_guard =
            loses_guard || failed.iter().any(|(path, _)| extension.may_mention(path, GUARD_EVENT));
        for (path, error) in failed {
            app.notice(Notice::ExtensionNotLoaded { path, error });
        }
        match loaded {
            Some(script) => {
                let script = Arc::new(script);
                host.begin(&script);
                providers::take_up_logins(&host).await;
                let origin = extension.origin;
                let loaded = LoadedExtension { host: host.clone(), path: entry.clone(), origin, script };
                lock(&self.loaded).push(loaded);
            }
            None => host.withdraw(),
        }
        if misses_guard {
            let reason = format!(
                "the extension {name}, which decides about tool calls, could not be loaded: repair or remove it, then /reload"
            );
            events::block_all_calls(&app.agent, reason);
            lock(&self.missing_guards).insert(entry, name);
        }
        for warning in host.take_warnings() {
            app.notice(Notice::ExtensionWarning { extension: host.name().to_owned(), warning });
        }
    }

    /// A name that no other handlers go by: what an extension leaves behind is found by its name.
    fn free_name(&self, agent: &Agent, name: &str) -> String {
        let is_taken = |name: &str| {
            agent.events().has_owner(name) || lock(&self.loaded).iter().any(|other| other.host.name() == name)
        };
        let numbered = (2_u32..).map(|number| format!("{name} ({number})"));
        std::iter::once(name.to_owned()).chain(numbered).find(|name| !is_taken(name)).unwrap_or_default()
    }

    /// The loaded extensions, in the order in which their handlers are asked.
    pub fn list(&self) -> Vec<ExtensionListing> {
        let loaded = lock(&self.loaded);
        loaded.iter().map(|extension| extension.host.listing(&extension.path, extension.origin)).collect()
    }

    fn hosts(&self) -> Vec<Arc<ExtensionHost>> {
        lock(&self.loaded).iter().map(|extension| extension.host.clone()).collect()
    }

    /// The keys that extensions take. Of two that want the same key, the later one gets it.
    pub fn shortcuts(&self) -> Vec<ExtensionShortcut> {
        let mut by_key = BTreeMap::new();
        for host in self.hosts() {
            for (key, description) in host.shortcuts() {
                let extension = host.name().to_owned();
                by_key.insert(key.clone(), ExtensionShortcut { key, description, extension });
            }
        }
        by_key.into_values().collect()
    }

    /// Does what a shortcut is for. The extension's faults are reported as those of its handlers.
    pub async fn press(&self, key: &str) {
        let host = self.hosts().into_iter().rev().find(|host| host.shortcuts().contains_key(key));
        if let Some(host) = host {
            host.press(key).await;
        }
    }

    /// What the command of an extension says about its arguments, given what was typed of them. Waits no
    /// longer than `limit`; may be called on any thread.
    pub fn complete(&self, agent: &Agent, name: &str, typed: &str, limit: Duration) -> Vec<ArgumentChoice> {
        let command = agent.commands().remove(name).filter(|command| command.owner.is_some());
        let (Some(command), Some(runtime)) = (command, self.runtime.get()) else { return Vec::new() };
        let (sender, found) = std::sync::mpsc::channel();
        let typed = typed.to_owned();
        runtime.spawn(async move {
            // Whoever asked may have gone on.
            let _ = sender.send(command.choices(&typed).await);
        });
        found.recv_timeout(limit).unwrap_or_default()
    }

    /// Tells extensions what is in the input line.
    pub fn set_editor_text(&self, text: &str) {
        text.clone_into(&mut lock(&self.editor_text));
    }
}

/// Loads the main files of an extension into one engine. `loses_guard` becomes true where one fails that had begun
/// to decide about tool calls. One that fails costs no others: its path and its error come
/// back with the script, which is none if all of them fail.
async fn load_entries(
    extension: &FoundExtension,
    host: &Arc<ExtensionHost>,
    loses_guard: &mut bool,
) -> (Option<Script>, Vec<(PathBuf, String)>) {
    if let Some(problem) = &extension.problem {
        return (None, vec![(extension.entry.clone(), problem.clone())]);
    }
    let mut loaded: Option<Script> = None;
    let mut failed = Vec::new();
    for entry in [&extension.entry].into_iter().chain(&extension.more_entries) {
        let guards = host.guards();
        let outcome = match &loaded {
            Some(script) => {
                script.call(CallKind::Load, &entry.to_string_lossy(), "null".into()).await.map(|_| ())
            }
            None => {
                let (sources, limits) = (extension.sources.clone(), ScriptLimits::default());
                let script = Script::load(entry.clone(), sources, host.clone(), limits).await;
                script.map(|script| loaded = Some(script))
            }
        };
        if let Err(error) = outcome {
            *loses_guard |= host.guards() > guards;
            if loaded.is_none() {
                // The next one gets an engine of its own.
                host.withdraw();
            }
            failed.push((entry.clone(), error.to_string()));
        }
    }
    (loaded, failed)
}

/// Folders of a package that say nothing about what it is.
const PLAIN_FOLDERS: [&str; 5] = ["build", "dist", "lib", "out", "src"];

/// The name of an extension: that of its file, or of the folder of an `index.ts`.
fn extension_name(entry: &Path) -> String {
    let stem = entry.file_stem().unwrap_or_default();
    let is_plain = |folder: &&Path| PLAIN_FOLDERS.iter().any(|plain| folder.ends_with(plain));
    let folder = entry.ancestors().skip(1).find(|folder| !is_plain(folder)).and_then(Path::file_name);
    let name = if stem == "index" { folder.unwrap_or(stem) } else { stem };
    name.to_string_lossy().into_owned()
}
