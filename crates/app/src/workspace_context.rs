//! [`WorkspaceContext`]: what the folder contributes to each request: its instructions, its file
//! list, its symbol map, and the files that the user opened.

use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_agent::{ContextSource, Coupling, ObserveError, ObserveReason, ObserveRequest, session_ledger};
use hardpan_context::{PromptEntry, Snapshot, SymbolsEntry, SystemEntry};
use hardpan_prompt::{Text, Volatility};
use hardpan_tools::Scope;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::gather::{FolderReader, add_refused_file};
use crate::symbol_map::{MapState, default_map_tokens};

/// What a snapshot that contradicts itself is said to come from.
const SOURCE_NAME: &str = "the folder";

/// Observes the folder that the agent works in.
pub struct WorkspaceContext {
    reader: FolderReader,
    /// What the model may read without asking.
    scope: Scope,
    /// Token limit of the map; none for the default share of the window, 0 for no map.
    map_tokens: Option<usize>,
    pinned: Mutex<PinnedContext>,
    /// The instructions as the first request of the conversation saw them.
    system: Mutex<Option<SystemEntry>>,
    /// The map as this run's first request saw it; the outer `None` means no map was drawn yet.
    last_map: Mutex<Option<Option<SymbolsEntry>>>,
}

/// What must stay the same from request to request, also after a resume. Stored in the session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PinnedContext {
    /// The files that the user opened, in order.
    pub files: Vec<PathBuf>,
    /// The aliases and the selection of the symbol map.
    pub map: MapState,
}

impl WorkspaceContext {
    /// What `reader` finds, with the pinned context of an earlier run.
    pub fn new(reader: FolderReader, scope: Scope, map_tokens: Option<usize>, pinned: PinnedContext) -> Self {
        WorkspaceContext {
            reader,
            scope,
            map_tokens,
            pinned: Mutex::new(pinned),
            system: Mutex::default(),
            last_map: Mutex::default(),
        }
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

    /// Switches to another conversation, with its open files, its instructions and its map.
    pub fn switch_to(&self, pinned: PinnedContext) {
        *self.lock_pinned() = pinned;
        *self.lock_system() = None;
        *self.lock_last_map() = None;
    }

    /// A copy of what must be stored for a resume.
    pub fn pinned_context(&self) -> PinnedContext {
        self.lock_pinned().clone()
    }

    /// Updates the symbol index before it is needed, so that the first prompt does not wait.
    pub fn warm_up(&self) {
        if self.map_tokens != Some(0) {
            self.reader.warm_up();
        }
    }

    /// Detects a file of the workspace that has become a link to something that no tool would let
    /// the model read. Returns its display path and the reason. A sandboxed command may have made
    /// such a link without being able to follow it.
    fn refused_link(&self, root: &Path, place: &Path) -> Option<(String, String)> {
        let refused = self.scope.resolve_for_read(&place.to_string_lossy()).err()?;
        place.starts_with(root).then(|| (hardpan_workspace::display_path(root, place), refused.to_string()))
    }

    fn lock_system(&self) -> MutexGuard<'_, Option<SystemEntry>> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_last_map(&self) -> MutexGuard<'_, Option<Option<SymbolsEntry>>> {
        self.last_map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_pinned(&self) -> MutexGuard<'_, PinnedContext> {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ContextSource for WorkspaceContext {
    fn coupling(&self) -> Coupling {
        self.reader.coupling()
    }

    fn day(&self, now: Timestamp) -> String {
        session_ledger::day_of(now, &TimeZone::system())
    }

    fn observe(&self, request: &ObserveRequest) -> Result<Snapshot, ObserveError> {
        let mut file = self.reader.read(request.now);
        let keeps = request.reason != ObserveReason::Preview;
        // Pinned, because every change of the instructions would cost the whole cache.
        let system = self.lock_system().clone();
        file.system = system.unwrap_or(file.system);
        if keeps {
            *self.lock_system() = Some(file.system.clone());
        }
        let mut pinned = self.pinned_context();
        let folder = &self.scope.folder;
        let root = hardpan_workspace::find_project_root(folder);
        for path in &pinned.files {
            // The user may open files anywhere, but a path in the workspace means a file in it.
            let goes_up = path.components().any(|part| part == Component::ParentDir);
            match self.refused_link(&root, &folder.join(path)).filter(|_| !goes_up) {
                Some((shown, reason)) => add_refused_file(&mut file, &shown, &reason),
                None => self.reader.add_file(&mut file, path),
            }
        }
        for (path, changed) in &request.known_files {
            let before = file.files.len();
            match self.refused_link(&root, &root.join(path)) {
                Some((shown, reason)) => add_refused_file(&mut file, &shown, &reason),
                None => self.reader.add_file_below(&mut file, &root, Path::new(path)),
            }
            let volatility = if *changed { Volatility::Active } else { Volatility::Slow };
            file.files[before..].iter_mut().for_each(|file| file.volatility = Some(volatility));
        }
        // An image goes with the prompt that names it, not with every request.
        file.images.clear();
        let last_map = self.lock_last_map().clone();
        if request.reason == ObserveReason::FilesChanged
            && let Some(last_map) = last_map
        {
            file.symbols = last_map;
            return Ok(file.into_snapshot(SOURCE_NAME)?);
        }
        let tokens =
            self.map_tokens.unwrap_or_else(|| default_map_tokens(request.window, request.token_factor));
        file.prompt = Some(PromptEntry::Text(Text::new(request.prompt.as_str())));
        file.symbols = self.reader.map_symbols(&file, tokens, &mut pinned.map);
        file.prompt = None;
        if keeps {
            self.lock_pinned().map = pinned.map;
            *self.lock_last_map() = Some(file.symbols.clone());
        }
        Ok(file.into_snapshot(SOURCE_NAME)?)
    }
}
