//! [`FolderReader`]: reads a folder into a snapshot.

use std::path::Path;
use std::sync::Arc;

use hardpan_agent::Coupling;
use hardpan_agent::expand::{Expansions, Folder};
use hardpan_context::{
    FileEntry, ImageEntry, ItemEntry, ProjectFile, Skill, SnapshotFile, SystemEntry, TreeEntry,
    UnavailableEntry, fill_template,
};
use hardpan_prompt::{Image, ItemKind, Text, UnavailableCode, Volatility};
use hardpan_symbols::SymbolIndex;
use hardpan_tools::{Scope, ScopeError};
use hardpan_workspace as workspace;
use hardpan_workspace::{Git, LiveIndex, RegularFile, UnreadableReason};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::notice::NoticeSink;
use crate::settings::Settings;
use crate::symbol_map::{self, MapState, OverviewState, RepositoryBudget};

/// The longest file list in a prompt, in bytes: about 20,000 tokens, as much as the symbol map may
/// take.
const TREE_BYTES: usize = 80_000;

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
    git: Git,
    settings: Arc<Settings>,
    skills: Vec<Skill>,
    index: Arc<LiveIndex>,
    notices: Arc<dyn NoticeSink>,
}

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
        FolderReader { scope, git, settings, skills, index, notices }
    }

    /// What the folder holds now: instructions and git status, without files.
    pub fn read(&self, now: Timestamp) -> SnapshotFile {
        let mut file = snapshot_of_folder(&self.scope, &self.settings, now);
        self.add_git_status(&mut file);
        file.system.skills.clone_from(&self.skills);
        file
    }

    /// Adds a file that the user named relative to the folder, or anywhere: shows text, attaches
    /// an image, and lists anything else with the reason why it is left out. Does nothing if the
    /// file is there already.
    pub fn add_named_file(&self, file: &mut SnapshotFile, path: &Path) {
        add_named_file(file, &self.scope, path);
    }

    /// Which files may be read.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Adds a file that the model knows, named relative to the root of the workspace. It must be
    /// one that tools may read.
    pub fn add_known_file(&self, file: &mut SnapshotFile, path: &Path) {
        let place = self.scope.root.join(path);
        let guard = self.scope.guard();
        add_file(file, &self.scope.root, &place, || guard.open(&place));
    }

    /// Adds the list of all files of the repository.
    pub fn add_file_list(&self, file: &mut SnapshotFile) {
        add_file_list(file, &self.scope);
    }

    /// Adds what the budget allows to say of the repository: the overview, and the symbol map for
    /// the prompt and the files of the snapshot.
    pub fn describe_repository(
        &self,
        file: &mut SnapshotFile,
        budget: RepositoryBudget,
        state: &mut RepositoryState,
    ) {
        if budget == RepositoryBudget::default() {
            return;
        }
        self.with_index(|index| {
            if budget.overview > 0 {
                let lines = symbol_map::overview_for_prompt(index, budget.overview, &mut state.overview);
                let phrase = &self.settings.texts.phrases.overview.text;
                file.overview =
                    lines.map(|lines| Text::new(fill_template(phrase, &[("overview", lines.trim_end())])));
            }
            if budget.map > 0 {
                file.symbols = symbol_map::symbols_for_prompt(index, file, budget.map, &mut state.map);
            }
        });
    }

    /// Which files belong together, and how much other files refer to each.
    pub fn coupling(&self) -> Coupling {
        self.with_index(symbol_map::coupling)
    }

    /// Updates the symbol index without showing progress, so that what is asked next is fast.
    pub fn warm_up(&self) {
        self.index.with_current(&mut |_, _| (), |_| ());
    }

    /// Adds what git says about the repository, or why it says nothing.
    fn add_git_status(&self, file: &mut SnapshotFile) {
        let status = match self.git.status() {
            Ok(None) => return,
            Ok(Some(status)) => status,
            Err(error) => {
                file.unavailable.push(unavailable("git status".into(), &error, UnavailableCode::Refused));
                return;
            }
        };
        file.items.push(ItemEntry {
            id: "git".into(),
            key: Some("git".into()),
            kind: ItemKind::Panel,
            header: "git status".into(),
            content: Text::new(status),
            last_refresh_ms: file.now.as_millisecond(),
            tier: None,
            unchanged_responses: None,
            volatility: Some(Volatility::Tail),
            shown_by: None,
        });
    }

    fn with_index<R>(&self, use_index: impl FnOnce(&SymbolIndex) -> R) -> R {
        symbol_map::with_progress(&*self.notices, |progress| self.index.with_current(progress, use_index))
    }
}

/// The skills and templates of the user, and of the project if it is trusted.
pub(crate) fn discover_expansions(
    scope: &Scope,
    settings: &Settings,
    reserved: &[&'static str],
) -> Expansions {
    let config = settings.user_folders.config.as_deref();
    let trusted = settings.project_files.as_ref();
    let trusted = trusted.map(|project| (&*scope.root, project.files()));
    let folders = Folder::defaults(config, trusted);
    Expansions::discover(&scope.guard(), &folders, reserved)
}

/// A snapshot of what the folder holds: its instructions, without files.
fn snapshot_of_folder(scope: &Scope, settings: &Settings, now: Timestamp) -> SnapshotFile {
    let Scope { folder, root, .. } = scope;
    let mut file = SnapshotFile::empty(now);
    file.working_directory = Some(folder.to_string_lossy().into());
    let instructions =
        workspace::read_instructions(&scope.guard(), root, folder, settings.user_folders.config.as_deref());
    file.system = SystemEntry {
        append: settings.config.append_system_prompt.as_deref().map(Text::new),
        edit_blocks: settings.config.edit_blocks.unwrap_or(false),
        project_files: instructions
            .into_iter()
            .map(|(path, content)| ProjectFile { path: path.into(), content: Text::new(content) })
            .collect(),
        ..SystemEntry::default()
    };
    file
}

/// Adds the list of all files.
fn add_file_list(file: &mut SnapshotFile, scope: &Scope) {
    let tree = workspace::list_files(&scope.guard(), &scope.root, workspace::TREE_LIMIT);
    let skipped = tree.skipped.iter();
    file.unavailable.extend(skipped.map(|skipped| {
        unavailable(format!("file:{}", skipped.path), &skipped.reason, UnavailableCode::Unreadable)
    }));
    if tree.truncated {
        let reason = format!("only the first {} files are listed", workspace::TREE_LIMIT);
        file.unavailable.push(unavailable("tree (the rest)".into(), &reason, UnavailableCode::NotListed));
    }
    let (files, hidden) = tree.lines_within(TREE_BYTES);
    if hidden > 0 {
        let reason = format!("{hidden} files are shown only as their folders: the list would be too long");
        file.unavailable.push(unavailable("tree (the rest)".into(), &reason, UnavailableCode::NotListed));
    }
    if !files.is_empty() {
        file.tree = Some(TreeEntry { files, last_refresh_ms: 0 });
    }
}

fn unavailable(key: String, reason: &impl ToString, code: UnavailableCode) -> UnavailableEntry {
    UnavailableEntry { key, reason: reason.to_string(), code: Some(code) }
}

/// Adds a file that the user named relative to the scope's folder, or anywhere.
pub(super) fn add_named_file(file: &mut SnapshotFile, scope: &Scope, path: &Path) {
    let place = scope.folder.join(path);
    let guard = scope.guard();
    add_file(file, &scope.root, &place, || guard.open_named_by_user(&place));
}

/// Adds a file: shows text, attaches an image, and lists anything else with the reason why it is
/// left out. Does nothing if the file is there already. What is shown comes from the file that
/// `open` has judged, not from whatever has its name a moment later.
fn add_file(
    file: &mut SnapshotFile,
    root: &Path,
    path: &Path,
    open: impl FnOnce() -> Result<RegularFile, UnreadableReason>,
) {
    let shown = workspace::display_path(root, path);
    if file.files.iter().any(|entry| entry.path == shown) {
        return;
    }
    let opened = match open() {
        Ok(opened) => Ok(opened),
        Err(reason) => match ScopeError::of_refused(reason, &path.to_string_lossy()) {
            Ok(refused) => return add_refused_file(file, &shown, &refused.to_string()),
            Err(reason) => Err(reason),
        },
    };
    // Named on purpose, so it no longer matters why the walk skipped it.
    file.unavailable.retain(|entry| entry.key != format!("file:{shown}"));
    let mut entry = empty_file_entry(shown);
    match opened.as_ref().map(|opened| (opened, workspace::read_open_text(opened, workspace::TEXT_LIMIT))) {
        Ok((opened, Ok(text))) => {
            if let Some(cut) = &text.truncation {
                let reason =
                    format!("cut: the first {} of {} bytes are shown", cut.shown_bytes, cut.total_bytes);
                let key = format!("file:{} (the rest)", entry.path);
                file.unavailable.push(unavailable(key, &reason, UnavailableCode::Truncated));
            }
            (entry.content, entry.last_refresh_ms) = (Some(Text::new(text.text)), modified_ms(opened));
        }
        Ok((opened, Err(unreadable))) => match workspace::read_open_image(opened, path) {
            Ok(image) => {
                file.images.push(image_entry(image, Some(&entry.path)));
                return;
            }
            Err(workspace::ImageFileError::Refused { error, .. }) => {
                (entry.reason, entry.last_refresh_ms) = (Some(error.to_string()), modified_ms(opened));
            }
            Err(_) => {
                (entry.reason, entry.last_refresh_ms) = (Some(unreadable.model_text()), modified_ms(opened));
            }
        },
        Err(reason) => entry.reason = Some(reason.model_text()),
    }
    file.files.push(entry);
}

/// Lists a file that must not be read, with the reason.
fn add_refused_file(file: &mut SnapshotFile, path: &str, reason: &str) {
    if !file.files.iter().any(|entry| entry.path == path) {
        file.files.push(FileEntry {
            reason: Some(reason.to_owned()),
            code: Some(UnavailableCode::Refused),
            ..empty_file_entry(path.to_owned())
        });
    }
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

fn modified_ms(file: &RegularFile) -> i64 {
    let modified = file.metadata.modified().ok();
    let since = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
    since.and_then(|since| i64::try_from(since.as_millis()).ok()).unwrap_or(0)
}

pub(super) fn image_entry(image: Image, path: Option<&str>) -> ImageEntry {
    let Image { media_type, data, width, height } = image;
    ImageEntry { path: path.map(Into::into), media_type, data, width, height }
}
