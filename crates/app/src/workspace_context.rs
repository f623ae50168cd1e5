//! [`WorkspaceContext`]: what the folder contributes to each request: its instructions, its file
//! list, its symbol map, and the files that the user opened.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_agent::expand::AgentDefinition;
use hardpan_agent::{ContextSource, Coupling, ObserveError, ObserveReason, ObserveRequest, session_ledger};
use hardpan_context::{
    FoldDescriptionEntry, LayoutName, PromptEntry, RepositoryView, Snapshot, SnapshotFile, SymbolsEntry,
    SystemEntry,
};
use hardpan_panels::{ActionError, OpenFiles, PanelRegistry, RefreshContext};
use hardpan_prompt::{ItemKind, Text, Volatility};
use hardpan_tools::Scope;
use hardpan_workspace::{UnreadableReason, display_path, read_open_image, read_open_text};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::gather::{
    ContentTimes, FolderReader, PANEL_FILE_LIMIT, PREVIEW_WAIT, REQUEST_WAIT, RESUME_WAIT, RepositoryState,
};
use crate::mentions::{MentionedFile, PromptSource, resolve_mention};
use crate::symbol_map::{MapState, ModelFigures, OverviewState, RepositoryBudget};

/// What a snapshot that contradicts itself is said to come from.
const SOURCE_NAME: &str = "the folder";

/// Observes the folder that the agent works in.
pub struct WorkspaceContext {
    reader: FolderReader,
    /// `map_tokens` of the settings: the token limit of the map, 0 for neither map nor overview.
    map_tokens: Option<usize>,
    pinned: Mutex<PinnedContext>,
    /// The instructions as the first request of the conversation saw them.
    system: Mutex<Option<SystemEntry>>,
    /// The text of the agent, if it is not the default one.
    agent_text: Mutex<Option<Text>>,
    /// The repository as this run's first request saw it.
    last_description: Mutex<Option<RepositoryDescription>>,
    panels: Arc<PanelRegistry>,
    /// Whether requests show the ids of open files, which must stay then.
    shows_ids: bool,
    /// Whether open images and documents are a part of every request.
    shows_images: bool,
    /// Whether requests tell when the overview last changed.
    dates_overview: bool,
}

/// What a request shows of the repository unasked.
#[derive(Clone, Debug)]
struct RepositoryDescription {
    view: RepositoryView,
    overview: Option<Text>,
    symbols: Option<SymbolsEntry>,
    /// The same, chosen anew.
    at_fold: Option<FoldDescriptionEntry>,
}

fn is_same_map(a: &Option<SymbolsEntry>, b: &Option<SymbolsEntry>) -> bool {
    let texts = |map: &Option<SymbolsEntry>| -> Vec<Text> {
        let Some(SymbolsEntry { legend, entries }) = map else { return Vec::new() };
        legend.iter().chain(entries.iter().map(|entry| &entry.content)).cloned().collect()
    };
    texts(a) == texts(b)
}

/// What must stay the same from request to request, also after a resume. Stored in the session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PinnedContext {
    /// The files that the user opened, in order.
    pub files: Vec<PathBuf>,
    /// Ids of the documents that the user attached, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub documents: Vec<Arc<str>>,
    /// Files that the model has seen and that requests leave out, because the user excluded them.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub excluded: BTreeSet<String>,
    /// Paths of the rules for files that requests show, because such a file was in the conversation.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub file_rules: BTreeSet<String>,
    /// Name of the agent, if it is not the default one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The aliases and the selection of the symbol map.
    pub map: MapState,
    /// What the overview names.
    pub overview: OverviewState,
    /// How often the layout had laid BASE anew when these were chosen.
    pub bases: Option<u32>,
    /// What a fold shows: the choice made anew. None if that is no different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_fold: Option<RepositoryState>,
    /// When the contents of the tree, of git's status and of files last changed.
    pub times: ContentTimes,
}

impl WorkspaceContext {
    /// What `reader` finds and `panels` show, with the pinned context of an earlier run.
    pub fn new(
        reader: FolderReader,
        map_tokens: Option<usize>,
        pinned: PinnedContext,
        panels: Arc<PanelRegistry>,
        layout: LayoutName,
    ) -> Self {
        let dates_overview = layout.layout().is_about_panels();
        let shows_ids = !panels.is_empty() || dates_overview;
        WorkspaceContext {
            reader,
            map_tokens,
            pinned: Mutex::new(pinned),
            system: Mutex::default(),
            agent_text: Mutex::default(),
            last_description: Mutex::default(),
            panels,
            shows_ids,
            shows_images: layout.layout().shows_context_images(),
            dates_overview,
        }
    }

    /// Works as this agent from the next request on; none is the default one.
    pub fn select_agent(&self, agent: Option<&AgentDefinition>) {
        self.lock_pinned().agent = agent.map(|agent| agent.name.clone());
        *self.lock_agent_text() = agent.map(|agent| Text::new(agent.text.as_str()));
    }

    /// Puts a file into the context from the next request on.
    pub fn open(&self, path: PathBuf) {
        let mut pinned = self.lock_pinned();
        if !pinned.files.contains(&path) {
            pinned.files.push(path);
        }
    }

    /// Takes a file out of the context. False if it was not open.
    pub fn close(&self, path: &Path) -> bool {
        let mut pinned = self.lock_pinned();
        let before = pinned.files.len();
        pinned.files.retain(|open| open != path);
        pinned.files.len() < before
    }

    /// Leaves a file out that the model has seen, by its path from the root. False if it was left out.
    pub fn exclude(&self, path: &str) -> bool {
        self.lock_pinned().excluded.insert(path.to_owned())
    }

    /// Shows an excluded file again. False if it was not excluded.
    pub fn include(&self, path: &str) -> bool {
        self.lock_pinned().excluded.remove(path)
    }

    /// Whether the layout shows open images with every request. In others they go with a prompt.
    pub fn shows_images(&self) -> bool {
        self.shows_images
    }

    /// Attaches a document that the server has, from the next request on.
    pub fn open_document(&self, id: &str) {
        let mut pinned = self.lock_pinned();
        if !pinned.documents.iter().any(|known| **known == *id) {
            pinned.documents.push(id.into());
        }
    }

    /// Takes a document out of the context. False if it was not there.
    pub fn close_document(&self, id: &str) -> bool {
        let mut pinned = self.lock_pinned();
        let before = pinned.documents.len();
        pinned.documents.retain(|known| **known != *id);
        pinned.documents.len() < before
    }

    /// Switches to another conversation, with its open files, its instructions and its map.
    pub fn switch_to(&self, pinned: PinnedContext) {
        *self.lock_pinned() = pinned;
        *self.lock_system() = None;
        *self.lock_last_description() = None;
    }

    /// Whether changes of the folder are reported. A watch starts with the second request.
    pub fn is_watched(&self) -> bool {
        self.reader.running_watch().is_some()
    }

    /// A copy of what must be stored for a resume.
    pub fn pinned_context(&self) -> PinnedContext {
        self.lock_pinned().clone()
    }

    /// Ends what goes on behind a conversation that is over. What is indexed is kept for the next one.
    pub fn stop_indexing(&self) {
        self.reader.stop_indexing();
    }

    /// Goes on with the index after [`stop_indexing`](Self::stop_indexing).
    pub fn resume_indexing(&self, progress: &mut dyn FnMut(usize, usize)) {
        self.reader.resume_indexing();
        self.warm_up(progress);
    }

    /// Whether requests describe the repository, for which an index is needed.
    pub(crate) fn shows_repository(&self) -> bool {
        self.map_tokens != Some(0)
    }

    pub(crate) fn reader(&self) -> &FolderReader {
        &self.reader
    }

    /// Updates the symbol index before it is needed, so that the first prompt does not wait. `progress`
    /// gets the number of files so far and in all.
    pub fn warm_up(&self, progress: &mut dyn FnMut(usize, usize)) {
        if self.shows_repository() {
            self.reader.warm_up(progress);
        }
    }

    /// What a sub-agent with this text sees: the instructions of the project, and the files that it has
    /// read itself. Nothing of it is remembered.
    pub(crate) fn observe_for_task(
        &self,
        request: &ObserveRequest,
        agent_text: Option<Text>,
    ) -> Result<Snapshot, ObserveError> {
        self.reader.refresh(request.reason);
        let mut file = self.reader.read(request.now, self.lock_system().clone());
        file.system.agent = agent_text;
        // In place of whatever prompt the conversation has.
        (file.system.prompt_type, file.system.custom) = Default::default();
        for (path, changed) in &request.known_files {
            let before = file.files.len();
            self.reader.add_known_file(&mut file, Path::new(path));
            let volatility = if *changed { Volatility::Active } else { Volatility::Slow };
            file.files[before..].iter_mut().for_each(|file| file.volatility = Some(volatility));
        }
        file.images.clear();
        let mut times = self.pinned_context().times;
        times.apply(&mut file, None, |tree| self.reader.list_changed_ms(tree));
        Ok(file.into_snapshot(SOURCE_NAME)?)
    }

    /// Adds the overview and the map, as the layout wants them, and keeps them for the requests of
    /// this run.
    fn describe_repository(&self, file: &mut SnapshotFile, request: &ObserveRequest) {
        let view = request.repository_view;
        let figures = ModelFigures {
            window: request.window,
            token_factor: request.token_factor,
            cache_read_share: request.cache_read_share,
        };
        let budget = RepositoryBudget::new(view, self.map_tokens, &figures);
        let pinned = self.pinned_context();
        let mut state = RepositoryState { overview: pinned.overview, map: pinned.map };
        if request.bases > pinned.bases {
            // The fold has shown the repository as it was chosen then: that is kept from now on.
            state = pinned.at_fold.unwrap_or(state);
        }
        let mut fresh_state = None;
        file.prompt = Some(PromptEntry::Text(Text::new(request.prompt.as_str())));
        let wait = match request.reason {
            ObserveReason::Preview => PREVIEW_WAIT,
            _ if state != RepositoryState::default() => RESUME_WAIT,
            _ => REQUEST_WAIT,
        };
        let is_described = self.reader.describe_repository(file, budget, &mut state, wait);
        if let Some(bases) = request.bases.filter(|_| is_described) {
            let mut fresh = SnapshotFile { prompt: file.prompt.clone(), ..SnapshotFile::empty(file.now) };
            fresh.files.clone_from(&file.files);
            let mut chosen = RepositoryState::default();
            self.reader.describe_repository(&mut fresh, budget, &mut chosen, wait);
            let SnapshotFile { overview, symbols, .. } = fresh;
            if overview != file.overview || !is_same_map(&symbols, &file.symbols) {
                file.at_fold = Some(FoldDescriptionEntry { bases, overview, symbols });
            }
            fresh_state = Some(chosen);
        }
        file.prompt = None;
        if request.reason == ObserveReason::Preview {
            return;
        }
        let mut pinned = self.lock_pinned();
        pinned.at_fold = fresh_state.filter(|fresh| *fresh != state);
        (pinned.overview, pinned.map, pinned.bases) = (state.overview, state.map, request.bases);
        *self.lock_last_description() = Some(RepositoryDescription {
            view,
            overview: file.overview.clone(),
            symbols: file.symbols.clone(),
            at_fold: file.at_fold.clone(),
        });
    }

    fn lock_system(&self) -> MutexGuard<'_, Option<SystemEntry>> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_agent_text(&self) -> MutexGuard<'_, Option<Text>> {
        self.agent_text.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_last_description(&self) -> MutexGuard<'_, Option<RepositoryDescription>> {
        self.last_description.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_pinned(&self) -> MutexGuard<'_, PinnedContext> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContextSource for WorkspaceContext {
    fn coupling(&self) -> Coupling {
        self.reader.coupling()
    }

    fn open_file(&self, path: &str) -> bool {
        // The model named it: it must be one that tools may read.
        let found = resolve_mention(path, self.reader.scope(), PromptSource::Piped);
        let Ok(MentionedFile::Text { path, .. }) = found else { return false };
        self.open(path);
        true
    }

    fn day(&self, now: Timestamp) -> String {
        session_ledger::day_of(now, &TimeZone::system())
    }

    fn add_panels(&self, snapshot: &mut Snapshot) {
        let panels = self.panels.items(snapshot.now);
        // A panel stands in the place of what the layouts show by themselves under its id.
        for item in snapshot.items.iter_mut().filter(|item| item.kind == ItemKind::Tree) {
            if panels.iter().any(|panel| panel.id == item.id) {
                item.id = item.key.clone();
            }
        }
        snapshot.items.extend(panels);
    }

    fn observe(&self, request: &ObserveRequest) -> Result<Snapshot, ObserveError> {
        self.reader.refresh(request.reason);
        // Pinned, because every change of the instructions would cost the whole cache.
        let system = self.lock_system().clone();
        let mut file = std::thread::scope(|scope| {
            // What describes the repository takes as long as git takes to answer: both at once.
            if request.reason == ObserveReason::RunStarted && self.map_tokens != Some(0) {
                scope.spawn(|| self.reader.prepare_description());
            }
            self.reader.read(request.now, system)
        });
        let keeps = request.reason != ObserveReason::Preview;
        file.system.agent = self.lock_agent_text().clone();
        if keeps {
            *self.lock_system() = Some(file.system.clone());
        }
        let watch = self.reader.running_watch();
        let refresh = RefreshContext { watch, ..RefreshContext::new(self.reader.scope(), request.now) };
        self.panels.refresh(&refresh);
        let pinned = self.pinned_context();
        for path in &pinned.files {
            self.reader.add_named_file(&mut file, path);
        }
        for path in self.panels.open_files() {
            self.reader.add_panel_file(&mut file, Path::new(&*path));
        }
        for entry in file.files.iter_mut().filter(|_| self.shows_ids) {
            entry.id = Some(self.panels.assign_id(&format!("file:{}", entry.path)));
        }
        let is_shown = |(path, _): &&(String, bool)| !pinned.excluded.contains(path);
        for (path, changed) in request.known_files.iter().filter(is_shown) {
            let before = file.files.len();
            self.reader.add_known_file(&mut file, Path::new(path));
            let volatility = if *changed { Volatility::Active } else { Volatility::Slow };
            file.files[before..].iter_mut().for_each(|file| file.volatility = Some(volatility));
        }
        let file_rules = self.reader.add_file_rules(&mut file, &pinned.file_rules);
        if !self.shows_images {
            // An image goes with the prompt that names it, not with every request.
            file.images.clear();
        }
        file.documents.clone_from(&pinned.documents);
        let list_hash = (request.repository_view == RepositoryView::Map)
            .then(|| self.reader.add_file_list(&mut file))
            .flatten();
        let mut times = pinned.times;
        times.apply(&mut file, list_hash, |tree| self.reader.list_changed_ms(tree));
        let last = self.lock_last_description().clone();
        match last.filter(|last| {
            request.reason == ObserveReason::NextRequest && last.view == request.repository_view
        }) {
            Some(last) => {
                (file.overview, file.symbols, file.at_fold) = (last.overview, last.symbols, last.at_fold);
            }
            None => self.describe_repository(&mut file, request),
        }
        let mut snapshot = file.into_snapshot(SOURCE_NAME)?;
        if self.dates_overview {
            times.date_overview(&mut snapshot);
        }
        if keeps {
            let mut pinned = self.lock_pinned();
            (pinned.times, pinned.file_rules) = (times, file_rules);
        }
        Ok(snapshot)
    }
}

impl OpenFiles for WorkspaceContext {
    fn open(&self, path: &str, scope: &Scope) -> Result<(String, Arc<str>), ActionError> {
        let place = scope.resolve_for_read(path).map_err(ActionError::failed)?;
        // Read from the descriptor, as every later request does.
        let refused = |reason: UnreadableReason| ActionError::failed(reason.for_path(&place));
        let opened = scope.guard().open(&place).map_err(refused)?;
        if let Err(reason) = read_open_text(&opened, PANEL_FILE_LIMIT) {
            let is_shown_image = self.shows_images && read_open_image(&opened, &place).is_ok();
            if !is_shown_image {
                return Err(refused(reason));
            }
        }
        let shown = display_path(&scope.root, &place);
        let id = self.panels.open_file(&shown);
        Ok((shown, id))
    }

    fn close(&self, path: &str, scope: &Scope) -> bool {
        let shown = |path: &Path| display_path(&scope.root, &scope.folder.join(path));
        let named = shown(Path::new(path));
        let user_files = self.pinned_context().files;
        let mut closed = self.panels.close_file(path) | self.panels.close_file(&named);
        for open in user_files.iter().filter(|open| [path, &named].contains(&&*shown(open))) {
            closed |= WorkspaceContext::close(self, open);
        }
        closed
    }
}
