//! Loading extensions anew: on request, or because their files changed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, SystemTime};

use hardpan_agent::events::{Dialog, DialogAnswer, DiscoveryReason, FaceChange};

use super::api::{SessionShutdownEvent, SessionStartEvent, ShutdownReason, StartReason};
use super::discovery::{PROJECT_FOLDERS, USER_FOLDER};
use super::events::MISSING_GUARD;
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

    fn add_folder(&mut self, folder: &Path, depth: usize) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let is_script = path.extension().is_some_and(|it| it == "ts" || it == "js" || it == "json");
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
                Some(parent) if !named.is_dir() => folders.insert(parent.to_owned(), FolderDepth::Files),
                _ => folders.insert(named.clone(), FolderDepth::Whole),
            };
        }
        if self.options.discover_extensions {
            let project = PROJECT_FOLDERS.iter().map(|folder| self.root.join(folder));
            let user = self.options.user_folders.config.as_ref().map(|config| config.join(USER_FOLDER));
            folders.extend(project.chain(user).map(|folder| (folder, FolderDepth::Whole)));
        }
        folders
    }

    /// See [`ConversationApp::reload_extensions`].
    pub(crate) async fn reload(&self, app: &Arc<ConversationApp>) {
        let request = self.reload_requests.fetch_add(1, Ordering::SeqCst) + 1;
        let mut answered = self.reloading.lock().await;
        // One that began after this was asked for has done it.
        if *answered >= request {
            return;
        }
        *answered = self.reload_requests.load(Ordering::SeqCst);
        self.ask_about_changes(app).await;
        // No call may pass while a guard is away.
        let pause = app.agent.pause_runs().await;
        let before = std::mem::take(&mut *lock(&self.loaded));
        for extension in &before {
            let (reason, target_session_file) = (ShutdownReason::Reload, None);
            extension.host.raise(SessionShutdownEvent { reason, target_session_file }, LEAVE_TIME).await;
        }
        for LoadedExtension { host, script, .. } in before {
            host.withdraw();
            if !script.close(CLOSE_TIME).await {
                let extension = host.name().to_owned();
                let warning = "its old instance computes without end and cannot be stopped: it is not used any more, and costs time until Hardpan ends";
                app.notice(Notice::ExtensionWarning { extension, warning: warning.into() });
            }
        }
        app.agent.events().unsubscribe(MISSING_GUARD);
        let project =
            trusted_files(&self.root, &self.options.user_folders, &*app.notices).unwrap_or_default();
        let found = find_extensions(&self.options, &self.root, project.extension_files(), &*app.notices);
        self.load(app, found).await;
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
    loop {
        tokio::time::sleep(WATCH_TIME).await;
        let Some(now) = file_states(&app).await else { return };
        if now == known {
            continue;
        }
        // A file that is being written is not loaded in halves.
        tokio::time::sleep(WATCH_TIME / 4).await;
        let Some(settled) = file_states(&app).await else { return };
        if settled != now {
            continue;
        }
        known = settled;
        let Some(app) = app.upgrade() else { return };
        app.reload_extensions().await;
    }
}

async fn file_states(app: &Weak<ConversationApp>) -> Option<FileStates> {
    let folders = app.upgrade()?.extensions.watched_folders();
    tokio::task::spawn_blocking(move || FileStates::read(&folders)).await.ok()
}
