//! Loading extensions anew: on request, or because their files changed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use hardpan_agent::Activity;
use hardpan_agent::events::{Dialog, DialogAnswer, DiscoveryReason, FaceChange};

use super::api::{SessionShutdownEvent, SessionStartEvent, ShutdownReason, StartReason};
use super::discovery::{PROJECT_FOLDERS, USER_FOLDER};
use super::events::{self, MISSING_GUARD};
use super::{Extensions, LoadedExtension, find_extensions, lock};
use crate::conversation_app::ConversationApp;
use crate::notice::Notice;
use crate::settings::{TrustReview, TrustState, trusted_files};

/// How often the files are looked at.
const WATCH_TIME: Duration = Duration::from_secs(1);

/// How long a handler of `session_shutdown` may take when extensions are loaded anew.
const LEAVE_TIME: Duration = Duration::from_secs(5);

/// How long a handler of `session_start` may take then.
const START_TIME: Duration = Duration::from_secs(30);

/// How long the end of an old instance is waited for.
const CLOSE_TIME: Duration = Duration::from_secs(2);

/// Limits of what is looked at.
const MAX_FILES: usize = 2_000;
const MAX_DEPTH: usize = 6;

/// The longest diff that a person is asked about, in lines.
const MAX_DIFF_LINES: usize = 60;

/// How much of a folder is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FolderDepth {
    /// The files in it: an extension was named by its file, and may import those beside it.
    Files,
    /// What lies below it, too.
    Whole,
}

/// The files of extensions as they were: size, and time of the last change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileStates(BTreeMap<PathBuf, (u64, Option<SystemTime>)>);

impl FileStates {
    /// Looks at every file below these folders that a script could be made of.
    fn read(folders: &BTreeMap<PathBuf, FolderDepth>) -> Self {
        let mut states = FileStates::default();
        for (folder, depth) in folders {
            states.add_folder(folder, if *depth == FolderDepth::Whole { MAX_DEPTH } else { 0 });
        }
        states
    }

    /// The files that are not in both as they are.
    fn differences(&self, other: &FileStates) -> Vec<PathBuf> {
        let paths: BTreeSet<&PathBuf> = self.0.keys().chain(other.0.keys()).collect();
        paths.into_iter().filter(|path| self.0.get(*path) != other.0.get(*path)).cloned().collect()
    }

    fn add_folder(&mut self, folder: &Path, depth: usize) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            // Other JSON is data, which extensions write.
            let is_script = path.extension().is_some_and(|it| it == "ts" || it == "js")
                || entry.file_name() == "package.json";
            if self.0.len() >= MAX_FILES {
                return;
            }
            // What a link to a file leads to counts, not the link.
            if is_script && let Ok(found) = std::fs::metadata(&path) {
                self.0.insert(path, (found.len(), found.modified().ok()));
            } else if depth > 0
                && entry.file_type().is_ok_and(|kind| kind.is_dir())
                && entry.file_name() != "node_modules"
            {
                self.add_folder(&path, depth - 1);
            }
        }
    }
}

impl Extensions {
    /// The folders where a changed file is a reason to load anew.
    fn watched_folders(&self) -> BTreeMap<PathBuf, FolderDepth> {
        let mut folders = BTreeMap::new();
        for named in &self.options.extensions {
            match named.parent() {
                _ if named.is_dir() => folders.insert(named.clone(), FolderDepth::Whole),
                // A name without a folder.
                Some(parent) if parent.as_os_str().is_empty() => {
                    folders.insert(".".into(), FolderDepth::Files)
                }
                Some(parent) => folders.insert(parent.to_owned(), FolderDepth::Files),
                None => None,
            };
        }
        if self.options.discover_extensions {
            let project = PROJECT_FOLDERS.iter().map(|folder| self.root.join(folder));
            let user = self.options.user_folders.config.as_ref().map(|config| config.join(USER_FOLDER));
            folders.extend(project.chain(user).map(|folder| (folder, FolderDepth::Whole)));
        }
        folders
    }

    /// The next reload is what the person wants: it forgets guards that are missing.
    pub(crate) fn want_reload(&self) {
        self.is_reload_wanted.store(true, Ordering::SeqCst);
    }

    /// See [`ConversationApp::reload_extensions`]. Also because files have changed, or an extension wants it.
    pub(crate) async fn reload(&self, app: &Arc<ConversationApp>) {
        let request = self.reload_requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut answered = self.reloading.lock().await;
        // One that began after this was asked for has done it.
        if *answered >= request {
            return;
        }
        *answered = self.reload_requests.load(Ordering::SeqCst);
        let is_wanted = self.is_reload_wanted.swap(false, Ordering::SeqCst);
        self.ask_about_changes(app).await;
        // No call may pass while a guard is away.
        let pause = app.agent.pause_runs().await;
        let before = std::mem::take(&mut *lock(&self.loaded));
        for extension in &before {
            let (reason, target_session_file) = (ShutdownReason::Reload, None);
            extension.host.raise(SessionShutdownEvent { reason, target_session_file }, LEAVE_TIME).await;
        }
        let mut guards = BTreeMap::new();
        for LoadedExtension { host, script, path, .. } in before {
            if host.guards() > 0 {
                guards.insert(path, host.name().to_owned());
            }
            host.withdraw();
            if !script.close(CLOSE_TIME).await {
                let extension = host.name().to_owned();
                let warning = "its old instance computes without end and cannot be stopped: it is not used any more, and costs time until Hardpan ends";
                app.notice(Notice::ExtensionWarning { extension, warning: warning.into() });
            }
        }
        app.agent.events().unsubscribe(MISSING_GUARD);
        // What the person has loaded anew is what they want.
        let known =
            if is_wanted { BTreeMap::new() } else { std::mem::take(&mut *lock(&self.missing_guards)) };
        lock(&self.missing_guards).clear();
        let project =
            trusted_files(&self.root, &self.options.user_folders, &*app.notices).unwrap_or_default();
        let found = find_extensions(&self.options, &self.root, project.extension_files(), &*app.notices);
        self.load(app, found).await;
        if !is_wanted {
            self.block_without(app, known, &guards);
        }
        // Only what was waited for at the start can be missing.
        let _ = app.take_awaited_target(None);
        drop(pause);
        app.agent.change_face(&"hardpan".into(), FaceChange::Reloaded);
        for host in self.hosts() {
            let (reason, previous_session_file) = (StartReason::Reload, None);
            host.raise(SessionStartEvent { reason, previous_session_file }, START_TIME).await;
        }
        app.agent.discover_resources(DiscoveryReason::Reload).await;
    }

    /// Blocks calls in the names of guards that were there before, or were missing already, and are gone now: whoever
    /// removes a file decides nothing.
    fn block_without(
        &self,
        app: &ConversationApp,
        mut gone: BTreeMap<PathBuf, String>,
        guards: &BTreeMap<PathBuf, String>,
    ) {
        let is_new = |path: &PathBuf| guards.contains_key(path);
        gone.extend(guards.clone());
        gone.retain(|path, _| !lock(&self.loaded).iter().any(|extension| extension.path == *path));
        let mut missing = lock(&self.missing_guards);
        gone.retain(|path, _| !missing.contains_key(path));
        for (path, extension) in gone {
            let warning = "it decides about tool calls, and its file is gone: no call runs until it is back, or until you go on without it with /reload";
            events::block_all_calls(&app.agent, format!("the extension {extension} is missing: {warning}"));
            if is_new(&path) {
                app.notice(Notice::ExtensionWarning {
                    extension: extension.clone(),
                    warning: warning.into(),
                });
            }
            missing.insert(path, extension);
        }
    }

    /// Whether changed files may be loaded. Files in the workspace that were named on the command line may have been
    /// changed by the model, if it was at work: the person decides about these.
    async fn may_load_changes(&self, app: &ConversationApp, changed: &[PathBuf], has_worked: bool) -> bool {
        let is_named = |path: &&PathBuf| {
            let folders = self
                .options
                .extensions
                .iter()
                .filter_map(|named| Some((named.canonicalize().ok()?, named.is_dir())));
            let mut folders =
                folders.filter_map(
                    |(real, is_dir)| if is_dir { Some(real) } else { real.parent().map(Path::to_owned) },
                );
            let real = path.canonicalize().unwrap_or_else(|_| (*path).clone());
            real.starts_with(&app.scope.root) && folders.any(|folder| real.starts_with(folder))
        };
        let Some(path) = changed.iter().filter(|_| has_worked).find(is_named) else { return true };
        let path = path.display();
        let Some(prompter) = app.prompter() else {
            let (extension, warning) =
                (path.to_string(), "it has changed while the agent worked: /reload loads it".into());
            app.notice(Notice::ExtensionWarning { extension, warning });
            return false;
        };
        let title = format!("{path} has changed while the agent worked. Load the extension as it is now?");
        let dialog = Dialog::Confirm { title, message: None };
        prompter.ask_dialog("hardpan", &dialog).await == Some(DialogAnswer::Confirmed(true))
    }

    /// Asks about a trusted project whose files have changed. Without a person to ask, and after a no,
    /// its extensions stay as they were trusted.
    async fn ask_about_changes(&self, app: &ConversationApp) {
        let folders = &self.options.user_folders;
        let Some(prompter) = app.prompter() else { return };
        let Ok(review) = TrustReview::read(&self.root, folders) else { return };
        if !matches!(review.state, TrustState::Changed { .. }) {
            return;
        }
        let diff = review.diff();
        let mut message = diff.lines().take(MAX_DIFF_LINES).collect::<Vec<_>>().join("\n");
        if diff.lines().count() > MAX_DIFF_LINES {
            message.push_str("\n…\n`hardpan trust` shows all of it");
        }
        let title = "This folder's own settings or extensions have changed. Use them as they are now?".into();
        let dialog = Dialog::Confirm { title, message: Some(message) };
        if prompter.ask_dialog("hardpan", &dialog).await == Some(DialogAnswer::Confirmed(true)) {
            // What was shown is what is trusted: a file that changed since then is asked about again.
            let _ = review.accept(folders);
        }
    }
}

impl ConversationApp {
    /// Loads extensions anew whenever their files change and the agent is idle, until the conversation
    /// is over. For faces that stay open. A conversation that found none does not look for any.
    pub fn watch_extensions(self: &Arc<Self>) {
        if !self.extensions.has_found.load(Ordering::Relaxed) {
            return;
        }
        let app = Arc::downgrade(self);
        drop(tokio::spawn(follow_files(app)));
    }
}

async fn follow_files(app: Weak<ConversationApp>) {
    let Some(mut known) = file_states(&app).await else { return };
    let mut work = WorkMarks::default();
    loop {
        tokio::time::sleep(WATCH_TIME).await;
        let Some(now) = file_states(&app).await else { return };
        let Some(has_worked) = app.upgrade().map(|app| work.has_worked(&app)) else { return };
        if now == known {
            continue;
        }
        // A file that is being written is not loaded in halves.
        tokio::time::sleep(WATCH_TIME / 4).await;
        let Some(settled) = file_states(&app).await else { return };
        if settled != now {
            continue;
        }
        let changed = known.differences(&settled);
        known = settled;
        let Some(app) = app.upgrade() else { return };
        if app.extensions.may_load_changes(&app, &changed, has_worked).await {
            app.extensions.reload(&app).await;
        }
    }
}

/// Whether the agent has worked since it was last asked.
#[derive(Default)]
struct WorkMarks {
    messages: usize,
    was_working: bool,
}

impl WorkMarks {
    fn has_worked(&mut self, app: &ConversationApp) -> bool {
        let messages = app.agent.messages().len();
        let is_working = app.agent.status().activity != Activity::Idle;
        let before = std::mem::replace(self, WorkMarks { messages, was_working: is_working });
        is_working || before.was_working || before.messages != messages
    }
}

async fn file_states(app: &Weak<ConversationApp>) -> Option<FileStates> {
    let folders = app.upgrade()?.extensions.watched_folders();
    tokio::task::spawn_blocking(move || FileStates::read(&folders)).await.ok()
}
