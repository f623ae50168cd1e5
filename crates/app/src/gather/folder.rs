//! [`FolderReader`]: reads a folder into a snapshot.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hardpan_agent::expand::{Expansions, Folder};
use hardpan_agent::{Coupling, ObserveReason};
use hardpan_context::{
    FileEntry, ImageEntry, ItemEntry, ProjectFile, Skill, SnapshotFile, SystemEntry, TreeEntry,
    UnavailableEntry, WebSearchEntry, fill_template,
};
use hardpan_prompt::{Hash, Image, ItemKind, Text, UnavailableCode, Volatility};
use hardpan_symbols::SymbolIndex;
use hardpan_tools::{Scope, ScopeError};
use hardpan_workspace as workspace;
use hardpan_workspace::{
    FolderKind, Git, IndexWait, InstructionPlaces, LiveIndex, RegularFile, RuleScope, StatusChanges,
    UnreadableReason, WorkspaceWatch,
};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::folder_watch::FolderWatch;
use super::readings::{FileKey, FileReading, Readings, StatusReading, TreeReading};
use crate::git_panels::GitReader;
use crate::notice::{Notice, NoticeSink};
use crate::prompt_settings::PromptSettings;
use crate::settings::{Settings, UserFolders, WebSearchSetting};
use crate::symbol_map::{self, MapState, OverviewState, RepositoryBudget};

/// What the description of the repository keeps from request to request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepositoryState {
    /// The choice of the overview.
    pub overview: OverviewState,
    /// The choice of the map.
    pub map: MapState,
}

/// Reads a folder for requests: once for a request that is only shown, before every turn for an
/// agent.
pub struct FolderReader {
    scope: Scope,
    git: Arc<Git>,
    settings: Arc<Settings>,
    skills: Vec<Skill>,
    prompt_settings: PromptSettings,
    index: Arc<LiveIndex>,
    notices: Arc<dyn NoticeSink>,
    watch: Arc<FolderWatch>,
    readings: Mutex<Readings>,
    /// Whether a request was made: from the second on, a watch pays.
    has_observed: AtomicBool,
    /// Whether the user was told that not all of the folder is indexed.
    has_told_index: AtomicBool,
}

/// How long a request waits for the symbol index. A small folder is indexed faster than that, unless
/// the machine has other work.
pub(crate) const REQUEST_WAIT: IndexWait = IndexWait { limit: Duration::from_secs(1), small: 500 };
/// How long a conversation waits that has shown the description already: without it, the model would
/// be told that it is gone.
pub(crate) const RESUME_WAIT: IndexWait = IndexWait { limit: Duration::from_secs(20), small: 500 };
/// For requests that are shown and not sent.
pub(crate) const PREVIEW_WAIT: IndexWait = IndexWait { limit: Duration::from_secs(600), small: 500 };
/// How much of a file that the model opened is shown, in bytes: some 80,000 tokens.
pub(crate) const PANEL_FILE_LIMIT: usize = 256 * 1024;
/// How long the end of the program waits for the index to be stored.
const STOP_WAIT: Duration = Duration::from_secs(2);

impl FolderReader {
    /// A reader of the scope's folder, whose snapshots list `skills` in the system prompt. `index`
    /// is the symbol index of its repository.
    pub fn new(
        scope: Scope,
        git: Git,
        settings: Arc<Settings>,
        skills: Vec<Skill>,
        index: Arc<LiveIndex>,
        notices: Arc<dyn NoticeSink>,
    ) -> Self {
        let watch =
            Arc::new(FolderWatch::new(scope.guard(), scope.root.clone(), index.clone(), notices.clone()));
        let git = Arc::new(git);
        FolderReader {
            scope,
            git,
            settings,
            skills,
            prompt_settings: PromptSettings::default(),
            index,
            notices,
            watch,
            readings: Mutex::default(),
            has_observed: AtomicBool::new(false),
            has_told_index: AtomicBool::new(false),
        }
    }

    /// The same, whose snapshots have these settings.
    pub fn with_prompt_settings(self, prompt_settings: PromptSettings) -> Self {
        FolderReader { prompt_settings, ..self }
    }

    /// Forgets what changed since it was read; what did not is not read again. Without a watch all
    /// is read again.
    pub fn refresh(&self, reason: ObserveReason) {
        let mut readings = self.lock_readings();
        match self.watch.running() {
            Some(watch) => {
                let changes = watch.changes_since(&mut readings.position);
                readings.forget(&changes, &self.scope.root);
            }
            None => readings.forget_all(),
        }
        if reason == ObserveReason::RunStarted {
            // A person waits, and not every way of writing a file is reported: memory maps are not.
            readings.files.clear();
        }
        if reason != ObserveReason::Preview && self.has_observed.swap(true, Ordering::Relaxed) {
            FolderWatch::start(&self.watch);
        }
    }

    /// What reads the repository for panels.
    pub(crate) fn git_reader(&self) -> Arc<GitReader> {
        Arc::new(GitReader {
            git: self.git.clone(),
            root: self.scope.root.clone(),
            watch: self.watch.clone(),
        })
    }

    fn lock_readings(&self) -> MutexGuard<'_, Readings> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watch of the folder, if it runs.
    pub(crate) fn running_watch(&self) -> Option<&WorkspaceWatch> {
        self.watch.running().map(|watch| &**watch)
    }

    /// What the folder holds now: instructions and git status, without files. With a system prompt that
    /// is pinned, no instructions are read.
    pub fn read(&self, now: Timestamp, pinned: Option<SystemEntry>) -> SnapshotFile {
        let mut file = snapshot_of_folder(&self.scope, &self.settings, now);
        self.add_git_status(&mut file);
        if pinned.is_none() {
            let skills = self.skills.clone();
            file.system = SystemEntry { skills, ..read_system(&self.scope, &self.settings) };
        }
        self.prompt_settings.apply(&mut file);
        file.system = pinned.unwrap_or(file.system);
        file
    }

    /// Adds a file that the user named relative to the folder, or anywhere: shows text, attaches
    /// an image, and lists anything else with the reason why it is left out. Does nothing if the
    /// file is there already.
    pub fn add_named_file(&self, file: &mut SnapshotFile, path: &Path) {
        let place = self.scope.folder.join(path);
        let guard = self.scope.guard();
        let key = FileKey { place: place.clone(), by_user: true, limit: workspace::TEXT_LIMIT };
        self.add_file(file, key, || guard.open_named_by_user(&place));
    }

    /// Which files may be read.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Adds a file that the model knows, named relative to the root of the workspace. It must be
    /// one that tools may read.
    pub fn add_known_file(&self, file: &mut SnapshotFile, path: &Path) {
        self.add_model_file(file, path, workspace::TEXT_LIMIT);
    }

    /// Adds a file that the model opened as a panel. Of a long one, only the beginning is shown: the model
    /// does not know how long a file is before it opens it.
    pub fn add_panel_file(&self, file: &mut SnapshotFile, path: &Path) {
        self.add_model_file(file, path, PANEL_FILE_LIMIT);
    }

    fn add_model_file(&self, file: &mut SnapshotFile, path: &Path, limit: usize) {
        let place = self.scope.root.join(path);
        let guard = self.scope.guard();
        let key = FileKey { place: place.clone(), by_user: false, limit };
        self.add_file(file, key, || guard.open(&place));
    }

    fn add_file(
        &self,
        file: &mut SnapshotFile,
        key: FileKey,
        open: impl FnOnce() -> Result<RegularFile, UnreadableReason>,
    ) {
        let shown = workspace::display_path(&self.scope.root, &key.place);
        if file.files.iter().any(|entry| entry.path == shown) {
            return;
        }
        let known = self.lock_readings().files.get(&key).cloned();
        let reading = known.unwrap_or_else(|| {
            let is_watched = self.watch.running().is_some_and(|watch| watch.covers(&key.place));
            let reading = read_file(&shown, &key.place, key.limit, open);
            if is_watched {
                self.lock_readings().files.insert(key, reading.clone());
            }
            reading
        });
        reading.add_to(file, &shown);
    }

    /// Adds the list of all files of the repository, and returns its hash.
    pub fn add_file_list(&self, file: &mut SnapshotFile) -> Option<Hash> {
        let known = self.lock_readings().tree.clone();
        let reading = known.unwrap_or_else(|| {
            let tree = match self.watch.running() {
                Some(watch) => watch.file_list(),
                None => Arc::new(workspace::list_files(
                    &self.scope.guard(),
                    &self.scope.root,
                    workspace::TREE_LIMIT,
                )),
            };
            let reading = TreeReading::new(&tree);
            self.lock_readings().tree = Some(reading.clone());
            reading
        });
        reading.add_to(file)
    }

    /// Adds the rules of the project that are about files of the snapshot, and those of `shown`, which
    /// were shown before. Returns the paths of all of them. They are items: what comes in the middle of a
    /// conversation follows what is cached.
    pub fn add_file_rules(&self, file: &mut SnapshotFile, shown: &BTreeSet<String>) -> BTreeSet<String> {
        if !self.settings.config.conventions.has_cursor_rules() {
            return BTreeSet::new();
        }
        let rules = workspace::read_cursor_rules(&self.scope.guard(), &self.scope.root);
        let paths: Vec<String> = file.files.iter().map(|entry| entry.path.clone()).collect();
        let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
        let is_shown = |rule: &workspace::CursorRule| shown.contains(&rule.path) || rule.applies_to(&paths);
        let mut added = BTreeSet::new();
        for rule in rules.into_iter().filter(is_shown) {
            let RuleScope::Files(globs) = rule.scope else { continue };
            let about = globs.join(", ");
            file.items.push(ItemEntry {
                id: format!("instructions:{}", rule.path).into(),
                key: Some(format!("instructions:{}", rule.path).into()),
                kind: ItemKind::Panel,
                header: rule.path.as_str().into(),
                content: Text::new(format!(
                    "Instructions of the project for files like {about}:\n\n{}",
                    rule.body
                )),
                last_refresh_ms: 0,
                tier: None,
                unchanged_responses: None,
                volatility: Some(Volatility::Slow),
                shown_by: None,
            });
            added.insert(rule.path);
        }
        added
    }

    /// When the list of files last changed, as far as the folders tell: the time of the newest.
    pub fn list_changed_ms(&self, tree: &TreeEntry) -> i64 {
        let folders: BTreeSet<&str> =
            tree.files.iter().filter_map(|file| Some(file.rsplit_once('/')?.0)).chain([""]).collect();
        let modified = folders.into_iter().filter_map(|folder| {
            let found = self.scope.root.join(folder).symlink_metadata().ok()?;
            modified_ms(&found)
        });
        modified.max().unwrap_or(0)
    }

    /// Adds what the budget allows to say of the repository: the overview, and the symbol map for
    /// the prompt and the files of the snapshot. False if the index is not ready within the wait: then
    /// nothing is added.
    pub fn describe_repository(
        &self,
        file: &mut SnapshotFile,
        budget: RepositoryBudget,
        state: &mut RepositoryState,
        wait: IndexWait,
    ) -> bool {
        if budget == RepositoryBudget::default() {
            return true;
        }
        self.with_index(wait, |index| {
            if budget.overview > 0 {
                let lines = symbol_map::overview_for_prompt(index, budget.overview, &mut state.overview);
                let phrase = &self.settings.texts.phrases.overview.text;
                file.overview =
                    lines.map(|lines| Text::new(fill_template(phrase, &[("overview", lines.trim_end())])));
            }
            if budget.map > 0 {
                file.symbols = symbol_map::symbols_for_prompt(index, file, budget.map, &mut state.map);
            }
        })
        .is_some()
    }

    /// Which files belong together, and how much other files refer to each; nothing of either if the
    /// index is not ready.
    pub fn coupling(&self) -> Coupling {
        self.with_index(REQUEST_WAIT, symbol_map::coupling).unwrap_or_default()
    }

    /// Updates the symbol index, and loads what tokens are counted with.
    pub fn prepare_description(&self) {
        symbol_map::load_vocabulary();
        // Who asks the index next says so if it is not ready.
        let _ = self.index.with_current_within(IndexWait::at_most(Duration::ZERO), &mut |_, _| (), |_| ());
    }

    /// Ends the building of the index if nobody will use it any more. What is indexed is kept for the
    /// next run.
    pub fn stop_indexing(&self) {
        self.index.stop(STOP_WAIT);
    }

    /// Updates the symbol index, so that what is asked next is fast. `progress` gets the number of files
    /// so far and in all.
    pub fn warm_up(&self, progress: &mut dyn FnMut(usize, usize)) {
        self.index.with_current(progress, |_| ());
    }

    /// What git says about the repository; none without one, or if git fails.
    pub(crate) fn git_status(&self) -> Option<String> {
        self.git.status().ok().flatten()
    }

    /// The instruction files of the folder, and how many skills the model is told of.
    pub(crate) fn instructions(&self) -> (Vec<String>, usize) {
        let files = read_system(&self.scope, &self.settings).project_files;
        (files.iter().map(|file| file.path.to_string()).collect(), self.skills.len())
    }

    /// Passes the index to `use_index` once it is there; nobody is told if it is not.
    pub(crate) fn with_ready_index<R>(
        &self,
        wait: IndexWait,
        use_index: impl FnOnce(&SymbolIndex) -> R,
    ) -> Option<R> {
        self.index.with_current_within(wait, &mut |_, _| (), use_index).ok()
    }

    #[cfg(test)]
    pub(crate) fn index(&self) -> &Arc<LiveIndex> {
        &self.index
    }

    /// Goes on with an index that was stopped.
    pub(crate) fn resume_indexing(&self) {
        self.index.resume();
    }

    /// Adds what git says about the repository, or why it says nothing.
    fn add_git_status(&self, file: &mut SnapshotFile) {
        let (known, changes) = {
            let mut readings = self.lock_readings();
            (readings.status.clone(), std::mem::take(&mut readings.status_changes))
        };
        let reading = match known {
            Some(known) if changes.is_empty() => known,
            known => {
                let reading = self.read_git_status(known, &changes);
                self.lock_readings().status = Some(reading.clone());
                reading
            }
        };
        let status = match reading {
            StatusReading::NoRepository => return,
            StatusReading::Status(status) => status,
            StatusReading::Failed(entry) => return file.unavailable.push(entry),
        };
        file.items.push(ItemEntry {
            id: "git".into(),
            key: Some("git".into()),
            kind: ItemKind::Panel,
            header: "git status".into(),
            content: status,
            last_refresh_ms: file.now.as_millisecond(),
            tier: None,
            unchanged_responses: None,
            volatility: Some(Volatility::Tail),
            shown_by: None,
        });
    }

    fn read_git_status(&self, known: Option<StatusReading>, changes: &StatusChanges) -> StatusReading {
        let status = match known {
            Some(StatusReading::Status(before)) => self.git.status_after(before.as_str(), changes),
            _ => self.git.status(),
        };
        match status {
            Ok(None) => StatusReading::NoRepository,
            Ok(Some(status)) => StatusReading::Status(Text::new(status)),
            Err(error) => {
                StatusReading::Failed(unavailable("git status".into(), &error, UnavailableCode::Refused))
            }
        }
    }

    /// None if the index is not ready; the user is told, once.
    fn with_index<R>(&self, wait: IndexWait, use_index: impl FnOnce(&SymbolIndex) -> R) -> Option<R> {
        let used = symbol_map::with_progress(&*self.notices, |progress| {
            self.index.with_current_within(wait, progress, use_index)
        });
        let notice = match &used {
            Err(not_ready) => Notice::IndexBehind(*not_ready),
            Ok(_) if self.index.is_truncated() => Notice::FolderTooLarge {
                folder: self.scope.root.clone(),
                is_project: FolderKind::of(&self.scope.root) == FolderKind::Project,
            },
            Ok(_) => return used.ok(),
        };
        if !self.has_told_index.swap(true, Ordering::Relaxed) {
            self.notices.notice(notice);
        }
        used.ok()
    }
}

/// The skills and templates of the user, and of the project if it is trusted.
pub(crate) fn discover_expansions(
    scope: &Scope,
    settings: &Settings,
    reserved: &[&'static str],
) -> Expansions {
    let UserFolders { config, home, .. } = &settings.user_folders;
    let trusted = settings.project_files.as_ref();
    let trusted = trusted.map(|project| (&*scope.root, project.files()));
    let foreign = settings.config.conventions.foreign_folders();
    let folders = Folder::defaults(config.as_deref(), home.as_deref(), trusted, foreign);
    Expansions::discover(&scope.guard(), &folders, reserved)
}

/// A snapshot of the folder without instructions and files.
fn snapshot_of_folder(scope: &Scope, settings: &Settings, now: Timestamp) -> SnapshotFile {
    let mut file = SnapshotFile::empty(now);
    file.working_directory = Some(scope.folder.to_string_lossy().into());
    file.detach = settings.config.detach.unwrap_or_default();
    let most = settings.config.web_search.and_then(WebSearchSetting::most);
    file.web_search = most.map(|max_results| WebSearchEntry { max_results });
    file
}

/// The instructions of the folder.
fn read_system(scope: &Scope, settings: &Settings) -> SystemEntry {
    let Scope { folder, root, .. } = scope;
    let UserFolders { config, home, .. } = &settings.user_folders;
    let places = InstructionPlaces {
        root,
        working_directory: folder,
        user_folder: config.as_deref(),
        home: home.as_deref(),
    };
    let kinds = settings.config.conventions.instruction_kinds();
    let instructions = workspace::read_instructions(&scope.guard(), &places, kinds);
    SystemEntry {
        append: settings.config.append_system_prompt.as_deref().map(Text::new),
        edit_blocks: settings.config.edit_blocks.unwrap_or(false),
        project_files: instructions
            .into_iter()
            .map(|(path, content)| ProjectFile { path: path.into(), content: Text::new(content) })
            .collect(),
        ..SystemEntry::default()
    }
}

pub(super) fn unavailable(key: String, reason: &impl ToString, code: UnavailableCode) -> UnavailableEntry {
    UnavailableEntry { key, reason: reason.to_string(), code: Some(code) }
}

/// Adds a file that the user named relative to the scope's folder, or anywhere.
pub(super) fn add_named_file(file: &mut SnapshotFile, scope: &Scope, path: &Path) {
    let place = scope.folder.join(path);
    let shown = workspace::display_path(&scope.root, &place);
    if !file.files.iter().any(|entry| entry.path == shown) {
        let open = || scope.guard().open_named_by_user(&place);
        read_file(&shown, &place, workspace::TEXT_LIMIT, open).add_to(file, &shown);
    }
}

/// Reads a file: shows text, attaches an image, and lists anything else with the reason why it is
/// left out. What is shown comes from the file that `open` has judged, not from whatever has its name
/// a moment later.
fn read_file(
    shown: &str,
    path: &Path,
    limit: usize,
    open: impl FnOnce() -> Result<RegularFile, UnreadableReason>,
) -> FileReading {
    let mut reading = FileReading::default();
    let mut entry = empty_file_entry(shown.to_owned());
    let opened = match open() {
        Ok(opened) => Ok(opened),
        Err(reason) => match ScopeError::of_refused(reason, &path.to_string_lossy()) {
            Ok(refused) => {
                (entry.reason, entry.code) = (Some(refused.to_string()), Some(UnavailableCode::Refused));
                reading.entry = Some(entry);
                reading.is_refused = true;
                return reading;
            }
            Err(reason) => Err(reason),
        },
    };
    let modified = opened.as_ref().ok().and_then(|opened| modified_ms(&opened.metadata)).unwrap_or(0);
    match opened.as_ref().map(|opened| (opened, workspace::read_open_text(opened, limit))) {
        Ok((_, Ok(mut text))) => {
            if let Some(cut) = &text.truncation {
                let reason =
                    format!("cut: the first {} of {} bytes are shown", cut.shown_bytes, cut.total_bytes);
                // Whoever reads the beginning must not take it for the whole.
                text.text.push_str(&format!("\n({reason}; read the rest in parts)\n"));
                let key = format!("file:{} (the rest)", entry.path);
                reading.unavailable = Some(unavailable(key, &reason, UnavailableCode::Truncated));
            }
            (entry.content, entry.last_refresh_ms) = (Some(Text::new(text.text)), modified);
        }
        Ok((opened, Err(unreadable))) => match workspace::read_open_image(opened, path) {
            Ok(image) => {
                reading.image = Some(image_entry(image, Some(&entry.path)));
                return reading;
            }
            Err(workspace::ImageFileError::Refused { error, .. }) => {
                (entry.reason, entry.last_refresh_ms) = (Some(error.to_string()), modified);
            }
            Err(_) => {
                (entry.reason, entry.last_refresh_ms) = (Some(unreadable.model_text()), modified);
            }
        },
        Err(reason) => entry.reason = Some(reason.model_text()),
    }
    reading.entry = Some(entry);
    reading
}

fn empty_file_entry(path: String) -> FileEntry {
    FileEntry {
        path,
        content: None,
        reason: None,
        code: None,
        last_refresh_ms: 0,
        id: None,
        tier: None,
        unchanged_responses: None,
        volatility: None,
        shown_by: None,
    }
}

fn modified_ms(found: &std::fs::Metadata) -> Option<i64> {
    let since = found.modified().ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

pub(super) fn image_entry(image: Image, path: Option<&str>) -> ImageEntry {
    let Image { media_type, data, width, height } = image;
    ImageEntry { path: path.map(Into::into), media_type, data, width, height }
}
