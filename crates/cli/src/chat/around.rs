//! What is around the agent: the folder, its instructions, its map, and the files that the person named.

use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_agent::{Coupling, Look, Occasion, Surroundings, books};
use hardpan_context::{PromptEntry, Snapshot, SnapshotFile, SymbolsEntry, SystemEntry};
use hardpan_prompt::{Text, Volatility};
use hardpan_tools::{Scope, Seen};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::gather;
use crate::map::{self, Mapped};
use crate::settings::Settings;

/// The folder that the agent works in.
pub struct Around {
    folder: PathBuf,
    /// What the model may read by itself.
    scope: Scope,
    settings: Arc<Settings>,
    skills: Vec<hardpan_context::Skill>,
    seen: Seen,
    /// The most tokens of the map; none for a share of the window.
    map_tokens: Option<usize>,
    kept: Mutex<Kept>,
    /// The instructions as the conversation found them.
    system: Mutex<Option<SystemEntry>>,
    /// The map as the run drew it.
    drawn: Mutex<Option<Option<SymbolsEntry>>>,
}

/// What must stay as it is from request to request, also after a resume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Kept {
    /// The files that the person named, in that order.
    pub files: Vec<PathBuf>,
    /// What the map chose.
    pub map: Mapped,
}

impl Around {
    /// The surroundings of a folder, with what an earlier run kept.
    pub fn new(
        scope: Scope,
        settings: Arc<Settings>,
        skills: Vec<hardpan_context::Skill>,
        map_tokens: Option<usize>,
        seen: Seen,
        kept: Kept,
    ) -> Self {
        Around {
            folder: scope.folder.clone(),
            scope,
            settings,
            skills,
            map_tokens,
            seen,
            kept: Mutex::new(kept),
            system: Mutex::default(),
            drawn: Mutex::default(),
        }
    }

    /// Opens a file: it is in the context from now on.
    pub fn open(&self, path: PathBuf) {
        let mut kept = self.kept();
        if !kept.files.contains(&path) {
            kept.files.push(path);
        }
    }

    /// Closes a file. False if it was not open.
    pub fn close(&self, path: &Path) -> bool {
        let mut kept = self.kept();
        let before = kept.files.len();
        kept.files.retain(|open| open != path);
        kept.files.len() < before
    }

    /// Another conversation: with the files that it had open, its own instructions and its own map.
    pub fn turn_to(&self, kept: Kept) {
        *self.kept() = kept;
        *self.system() = None;
        *self.drawn() = None;
    }

    /// What must be kept for a resume.
    pub fn keep(&self) -> Kept {
        self.kept().clone()
    }

    /// Draws the map before it is needed, so that the first prompt does not wait for it.
    pub fn warm_up(&self) {
        if self.map_tokens != Some(0) {
            map::warm_up(&self.folder);
        }
    }

    /// Whether a file of the workspace has become a link to what no tool would let the model read: what it is called, and why
    /// it is not read. A command may have made it, which could not have followed it itself.
    fn refused(&self, root: &Path, place: &Path) -> Option<(String, String)> {
        let refused = self.scope.to_read(&place.to_string_lossy()).err()?;
        place.starts_with(root).then(|| (hardpan_workspace::display_path(root, place), refused.to_string()))
    }

    fn system(&self) -> MutexGuard<'_, Option<SystemEntry>> {
        self.system.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn drawn(&self) -> MutexGuard<'_, Option<Option<SymbolsEntry>>> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Surroundings for Around {
    fn coupling(&self) -> Coupling {
        map::coupling(&self.folder)
    }

    fn day(&self, now: Timestamp) -> String {
        books::day(now, &TimeZone::system())
    }

    fn observe(&self, look: &Look) -> Snapshot {
        let mut file = gather::from_folder(&self.folder, &self.settings, look.now);
        file.system.skills = self.skills.clone();
        // Instructions stay as the conversation found them: every change would cost the whole cache.
        file.system = self.system().get_or_insert_with(|| file.system.clone()).clone();
        let mut kept = self.keep();
        let root = hardpan_workspace::root_of(&self.folder);
        for path in &kept.files {
            // The person may name files anywhere, but a name in the workspace means what is in it.
            let goes_up = path.components().any(|part| part == Component::ParentDir);
            match self.refused(&root, &self.folder.join(path)).filter(|_| !goes_up) {
                Some((shown, reason)) => gather::add_refused(&mut file, &shown, &reason),
                None => gather::add_file(&mut file, &self.folder, path),
            }
        }
        for (path, changed) in &look.known {
            let before = file.files.len();
            match self.refused(&root, &root.join(path)) {
                Some((shown, reason)) => gather::add_refused(&mut file, &shown, &reason),
                None => gather::add_file(&mut file, &root, Path::new(path)),
            }
            let volatility = if *changed { Volatility::Lively } else { Volatility::Calm };
            file.files[before..].iter_mut().for_each(|file| file.volatility = Some(volatility));
        }
        for file in &file.files {
            // What is shown may be edited and overwritten: the model knows it.
            let place = root.join(&file.path);
            if let Some(content) = &file.content
                && self.seen.hash(&place) != Some(content.hash())
            {
                self.seen.note(&place, content.hash());
            }
        }
        // An image goes with the prompt that names it, not with every request.
        file.images.clear();
        if look.occasion == Occasion::Changed
            && let Some(drawn) = &*self.drawn()
        {
            file.symbols.clone_from(drawn);
            return snapshot_of(file, look.now);
        }
        let tokens = self.map_tokens.unwrap_or_else(|| map::usual_tokens(look.window, look.factor));
        file.prompt = Some(PromptEntry::Text(Text::new(look.prompt.as_str())));
        file.symbols = map::for_prompt(&self.folder, &file, tokens, &mut kept.map);
        file.prompt = None;
        self.kept().map = kept.map;
        *self.drawn() = Some(file.symbols.clone());
        snapshot_of(file, look.now)
    }
}

/// What cannot be understood of a folder is no reason not to talk about it.
fn snapshot_of(file: SnapshotFile, now: Timestamp) -> Snapshot {
    file.into_snapshot("the folder").unwrap_or_else(|_| Snapshot::empty(now))
}
