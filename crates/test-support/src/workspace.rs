//! [`TestWorkspace`]: what an agent observes.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use hardpan_agent::{ContextSource, Coupling, ObserveError, ObserveRequest};
use hardpan_context::{FoldReason, Snapshot, SnapshotError};
use hardpan_prompt::{Item, ItemKind, Volatility, WebSearch};

/// A workspace whose contents the test changes between prompts. While its folder contains a file
/// `wait`, observing it blocks.
pub struct TestWorkspace {
    folder: PathBuf,
    contents: Mutex<WorkspaceContents>,
}

/// What a [`TestWorkspace`] shows.
#[derive(Clone, Debug)]
pub struct WorkspaceContents {
    /// Names of files in the folder that are shown as items while they exist.
    pub open: Vec<String>,
    /// Items by key (`file:a.rs`, `symbols:a.rs`) with their bodies. A key that is there twice makes
    /// observing fail.
    pub items: Vec<(String, String)>,
    /// How often items change, as the layouts are told.
    pub volatility: Volatility,
    /// Whether the next request is to fold.
    pub fold: bool,
    /// The setting `edit_blocks`.
    pub edit_blocks: bool,
    /// The most searches of the web in an answer; none if the web is not searched.
    pub web_search: Option<u32>,
    /// How the files refer to each other.
    pub coupling: Coupling,
}

impl WorkspaceContents {
    /// Adds an item, or changes it.
    pub fn set_item(&mut self, key: &str, body: &str) {
        match self.items.iter_mut().find(|(known, _)| known == key) {
            Some((_, known)) => *known = body.to_owned(),
            None => self.items.push((key.to_owned(), body.to_owned())),
        }
    }

    /// Takes an item away.
    pub fn remove_item(&mut self, key: &str) {
        self.items.retain(|(known, _)| known != key);
    }
}

impl Default for WorkspaceContents {
    fn default() -> Self {
        WorkspaceContents {
            open: Vec::new(),
            items: Vec::new(),
            volatility: Volatility::Active,
            fold: false,
            edit_blocks: false,
            web_search: None,
            coupling: Coupling::default(),
        }
    }
}

impl TestWorkspace {
    pub(crate) fn new(folder: PathBuf, contents: WorkspaceContents) -> Self {
        TestWorkspace { folder, contents: Mutex::new(contents) }
    }

    /// What is shown, to be changed.
    pub fn contents(&self) -> MutexGuard<'_, WorkspaceContents> {
        self.contents.lock().expect("the workspace")
    }
}

impl ContextSource for TestWorkspace {
    fn observe(&self, request: &ObserveRequest) -> Result<Snapshot, ObserveError> {
        while self.folder.join("wait").exists() {
            std::thread::sleep(Duration::from_millis(1));
        }
        let contents = self.contents();
        let read = |name: &String| {
            let body = std::fs::read_to_string(self.folder.join(name)).ok()?;
            Some((format!("file:{name}"), name.clone(), body))
        };
        let open = contents.open.iter().filter_map(read);
        let items = contents.items.iter().map(|(key, body)| (key.clone(), key.clone(), body.clone()));
        let item = |(index, (key, title, body)): (usize, (String, String, String))| Item {
            id: format!("P{}", 10 + index).as_str().into(),
            kind: if key.starts_with("symbols:") { ItemKind::Symbols } else { ItemKind::File },
            key: key.as_str().into(),
            title: title.as_str().into(),
            body: body.into(),
            changed_at_ms: 0,
            volatility: contents.volatility,
            tier: None,
            unchanged_responses: None,
            shown_by: None,
        };
        let mut snapshot = Snapshot::empty(request.now);
        snapshot.working_directory = Some("/project".into());
        snapshot.items = open.chain(items).enumerate().map(item).collect();
        let mut keys = BTreeSet::new();
        if let Some(twice) = snapshot.items.iter().find(|item| !keys.insert(item.key.clone())) {
            let (source_name, key) = ("the workspace".to_owned(), twice.key.to_string());
            return Err(SnapshotError::DuplicateKey { source_name, key }.into());
        }
        snapshot.system.edit_blocks = contents.edit_blocks;
        snapshot.web_search = contents.web_search.map(|max_results| WebSearch { max_results });
        snapshot.fold = contents.fold.then_some(FoldReason::Requested);
        Ok(snapshot)
    }

    fn open_file(&self, path: &str) -> bool {
        self.contents().open.push(path.to_owned());
        true
    }

    fn coupling(&self) -> Coupling {
        self.contents().coupling.clone()
    }
}
