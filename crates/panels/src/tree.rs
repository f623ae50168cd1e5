//! [`Tree`] (P5): the files of the project, as far as filters let them through, with descriptions.
//!
//! A description belongs to the content that it was written for: once that changed, it is shown as
//! stale. Without filters and descriptions there is nothing to show: the overview of the repository
//! stands in its place. Where the folder is watched, only what changed is looked at.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_prompt::{Hash, HashChain, Volatility};
use hardpan_tools::Scope;
use hardpan_workspace::{
    Changes, FileTree, TREE_LIMIT, WatchPosition, WorkspaceWatch, compile_glob, folder_names, list_files,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshContext, RefreshStrategy, Revision};

/// The largest file whose content is compared, in bytes; of others, size and time are.
const MAX_DESCRIBED_BYTES: u64 = 4 << 20;
/// How many names of a folder are looked at.
const MAX_NAMES: usize = 10_000;
/// How many paths can be described.
const MAX_DESCRIPTIONS: usize = 200;
/// The longest description, in characters.
const MAX_TEXT: usize = 200;
/// How many filters there can be.
const MAX_FILTERS: usize = 20;

/// The tree of the project's files.
pub struct Tree {
    scope: Scope,
    state: Mutex<TreeState>,
    listing: Mutex<Listing>,
    /// Up to where the listing knows the changes of the watch.
    position: Mutex<WatchPosition>,
    revision: Revision,
}

/// What the model said about the tree.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct TreeState {
    filters: Vec<String>,
    descriptions: BTreeMap<String, Description>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Description {
    text: String,
    /// The content that it describes; `None` if that could not be read.
    hash: Option<Hash>,
}

/// What was last found.
#[derive(Clone, Debug, Default, PartialEq)]
struct Listing {
    paths: Vec<String>,
    stale: BTreeSet<String>,
    truncated: bool,
}

impl TreeState {
    fn is_empty(&self) -> bool {
        *self == TreeState::default()
    }

    /// Whether a path passes the filters.
    fn filter(&self) -> impl Fn(&str) -> bool + use<> {
        let globs: Vec<_> = self.filters.iter().filter_map(|filter| compile_glob(filter).ok()).collect();
        move |path| globs.is_empty() || globs.iter().any(|glob| glob.is_match(path))
    }
}

impl Tree {
    /// The tree of the project that `scope` is about.
    pub fn new(scope: Scope) -> Self {
        let (state, listing, position, revision) = Default::default();
        Tree { scope, state, listing, position, revision }
    }

    /// Lists the files again, if there is anything to show.
    fn read(&self) {
        let listed = || Arc::new(list_files(&self.scope.guard(), &self.scope.root, TREE_LIMIT));
        let state = self.lock_state().clone();
        let found = if state.is_empty() { Listing::default() } else { self.list(&state, &listed()) };
        // The next refresh lists once more, and knows from then on what changes.
        *self.lock_position() = WatchPosition::default();
        self.set_listing(found);
    }

    /// Looks at what changed.
    fn read_changes(&self, watch: &WorkspaceWatch) {
        let state = self.lock_state().clone();
        if state.is_empty() {
            // Whoever shows something first lists all files.
            *self.lock_position() = WatchPosition::default();
            return self.set_listing(Listing::default());
        }
        let changes = watch.changes_since(&mut self.lock_position());
        let has_unwatched = state.descriptions.keys().any(|path| !self.is_covered(path, watch));
        if changes.is_empty() && !has_unwatched {
            return;
        }
        let tree = watch.file_list();
        let found = if changes.everything {
            self.list(&state, &tree)
        } else {
            self.update_listing(&state, &tree, &changes, watch)
        };
        self.set_listing(found);
    }

    /// Whether changes of a path are noticed.
    fn is_covered(&self, path: &str, watch: &WorkspaceWatch) -> bool {
        let place = self.scope.root.join(path);
        watch.covers(&if path.ends_with('/') { place.join("any") } else { place })
    }

    fn set_listing(&self, found: Listing) {
        let mut listing = self.lock_listing();
        if *listing != found {
            *listing = found;
            drop(listing);
            self.revision.bump();
        }
    }

    fn list(&self, state: &TreeState, tree: &FileTree) -> Listing {
        let is_shown = state.filter();
        let mut paths: Vec<String> = tree.files.iter().filter(|path| is_shown(path)).cloned().collect();
        // Folders are listed for their descriptions only.
        paths.extend(state.descriptions.keys().filter(|path| path.ends_with('/')).cloned());
        paths.sort_unstable();
        paths.dedup();
        let described = state.descriptions.iter();
        let stale = described.filter(|(path, description)| description.hash != self.content_hash(path));
        Listing { stale: stale.map(|(path, _)| path.clone()).collect(), paths, truncated: tree.truncated }
    }

    /// The listing with what changed since.
    fn update_listing(
        &self,
        state: &TreeState,
        tree: &FileTree,
        changes: &Changes,
        watch: &WorkspaceWatch,
    ) -> Listing {
        let mut listing = self.lock_listing().clone();
        let is_shown = state.filter();
        for path in changes.files.iter().filter(|_| changes.list) {
            match (listing.paths.binary_search(path), tree.has_file(path) && is_shown(path)) {
                (Ok(at), false) => drop(listing.paths.remove(at)),
                (Err(at), true) => listing.paths.insert(at, path.clone()),
                _ => {}
            }
        }
        for (path, description) in &state.descriptions {
            let is_folder = path.ends_with('/');
            let below = || changes.files.range(path.clone()..).next();
            let may_differ = !self.is_covered(path, watch)
                || changes.files.contains(path)
                // A folder in it that came or went is not named.
                || is_folder && (changes.list || below().is_some_and(|file| file.starts_with(path)));
            if may_differ && description.hash == self.content_hash(path) {
                listing.stale.remove(path);
            } else if may_differ {
                listing.stale.insert(path.clone());
            }
        }
        listing
    }

    /// What a path holds: the bytes of a file, the names in a folder. `None` if it cannot be read.
    fn content_hash(&self, path: &str) -> Option<Hash> {
        let (guard, place) = (self.scope.guard(), self.scope.root.join(path));
        if !path.ends_with('/') {
            let file = guard.open(&place).ok()?;
            if file.metadata.len() > MAX_DESCRIBED_BYTES {
                let signature = (file.metadata.len(), file.metadata.modified().ok());
                return Some(Hash::of(format!("{signature:?}").as_bytes()));
            }
            return Some(Hash::of(&file.read_all(MAX_DESCRIBED_BYTES).ok()?));
        }
        let folder = guard.open_folder(&place).ok()?;
        let names = folder_names(&folder).into_iter().flatten().take(MAX_NAMES);
        let mut names: Vec<_> = names.map(|(name, _)| name).collect();
        names.sort_unstable();
        let mut chain = HashChain::default();
        names.iter().for_each(|name| chain.add_text(&name.to_string_lossy()));
        Some(chain.hash())
    }

    fn filter(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let filters: Vec<String> =
            call.text.unwrap_or_default().split_whitespace().take(MAX_FILTERS).map(str::to_owned).collect();
        for filter in &filters {
            compile_glob(filter).map_err(ActionError::failed)?;
        }
        let said = if filters.is_empty() { "no filter".to_owned() } else { filters.join(" ") };
        self.lock_state().filters = filters;
        Ok(format!("the tree shows {said}"))
    }

    fn describe(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let path = call.target()?.trim_start_matches("./").to_owned();
        let Some(text) = call.text.map(str::trim).filter(|text| !text.is_empty()) else {
            self.lock_state().descriptions.remove(&path);
            return Ok(format!("{path} has no description"));
        };
        let hash = self.content_hash(&path);
        if hash.is_none() {
            return Err(ActionError::NotFound {
                what: "file or folder (write folders as src/)",
                name: path,
                known: Vec::new(),
            });
        }
        let mut state = self.lock_state();
        if state.descriptions.len() >= MAX_DESCRIPTIONS && !state.descriptions.contains_key(&path) {
            let limit = format!("{MAX_DESCRIPTIONS} descriptions");
            return Err(ActionError::Full { what: "the tree", limit });
        }
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = line.chars().take(MAX_TEXT).collect();
        let said = format!("described {path}");
        state.descriptions.insert(path, Description { text, hash });
        Ok(said)
    }

    fn lock_listing(&self) -> MutexGuard<'_, Listing> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_position(&self) -> MutexGuard<'_, WatchPosition> {
        self.position.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_state(&self) -> MutexGuard<'_, TreeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Panel for Tree {
    fn key(&self) -> &str {
        "tree"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P5")
    }

    fn title(&self) -> String {
        "Tree".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Watched
    }

    fn volatility(&self) -> Volatility {
        Volatility::Slow
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        let state = self.lock_state();
        if state.is_empty() {
            return None;
        }
        let listing = self.lock_listing();
        let mut lines = Vec::with_capacity(listing.paths.len() + 2);
        if !state.filters.is_empty() {
            lines.push(format!("filter: {}", state.filters.join(" ")));
        }
        for path in &listing.paths {
            lines.push(match state.descriptions.get(path) {
                Some(Description { text, .. }) if listing.stale.contains(path) => {
                    format!("{path}  # {text} (stale: it changed since)")
                }
                Some(Description { text, .. }) => format!("{path}  # {text}"),
                None => path.clone(),
            });
        }
        if listing.truncated {
            lines.push(format!("only the first {TREE_LIMIT} files were looked at"));
        }
        Some(lines.join("\n"))
    }

    fn refresh(&self, context: &RefreshContext<'_>) {
        match context.watch {
            Some(watch) => self.read_changes(watch),
            None => self.read(),
        }
    }

    fn actions(&self) -> &'static [PanelAction] {
        const {
            &[
                PanelAction::new("tree_filter", "text: globs; none shows all"),
                PanelAction::new("tree_describe", "target: path (folders as src/), text"),
            ]
        }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let done = match call.action {
            "tree_filter" => self.filter(call)?,
            "tree_describe" => self.describe(call)?,
            _ => return Err(ActionError::UnknownAction { action: call.action.to_owned() }),
        };
        self.read();
        self.revision.bump();
        Ok(done)
    }

    fn save(&self) -> Option<Value> {
        let state = self.lock_state();
        (!state.is_empty()).then(|| serde_json::to_value(&*state).unwrap_or_default())
    }

    fn restore(&self, state: Option<&Value>) {
        let state = state.and_then(|state| TreeState::deserialize(state).ok()).unwrap_or_default();
        *self.lock_state() = state;
        self.read();
        self.revision.bump();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::Timestamp;

    use super::*;

    #[test]
    fn filters_and_descriptions_that_go_stale() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a.rs"), "fn a() {}").unwrap();
        fs::write(root.join("src/b.rs"), "fn b() {}").unwrap();
        fs::write(root.join("notes.txt"), "notes").unwrap();
        let scope = Scope::new(&root, &root);
        let tree = Tree::new(scope.clone());
        let act = |action, target, text| {
            let call = ActionCall { target, text, ..ActionCall::new(action, Timestamp::UNIX_EPOCH) };
            tree.act(&call).map_err(|error| error.to_string())
        };
        assert_eq!(tree.render(), None);
        act("tree_filter", None, Some("**/*.rs")).unwrap();
        act("tree_describe", Some("src/a.rs"), Some("the first\nletter")).unwrap();
        act("tree_describe", Some("src/"), Some("the letters")).unwrap();
        assert_eq!(
            tree.render().unwrap(),
            "filter: **/*.rs\nsrc/  # the letters\nsrc/a.rs  # the first letter\nsrc/b.rs"
        );
        let context = RefreshContext::new(&scope, Timestamp::UNIX_EPOCH);
        let revision = tree.revision();
        tree.refresh(&context);
        assert_eq!(tree.revision(), revision);
        fs::write(root.join("src/a.rs"), "fn changed() {}").unwrap();
        fs::write(root.join("src/c.rs"), "fn c() {}").unwrap();
        tree.refresh(&context);
        let shown = tree.render().unwrap();
        assert!(shown.contains("src/a.rs  # the first letter (stale: it changed since)"), "{shown}");
        assert!(shown.contains("src/  # the letters (stale: it changed since)"), "{shown}");
        assert!(shown.ends_with("src/c.rs"), "{shown}");
        let resumed = Tree::new(scope.clone());
        resumed.restore(tree.save().as_ref());
        assert_eq!(resumed.render(), tree.render());
        act("tree_describe", Some("src/a.rs"), Some("changed")).unwrap();
        assert!(tree.render().unwrap().contains("src/a.rs  # changed\n"));
        assert!(act("tree_describe", Some("src/none.rs"), Some("x")).is_err());
        // Large and binary files can be described, pipes cannot; none of them is read for long.
        fs::File::create(root.join("large.bin")).unwrap().set_len(50 << 20).unwrap();
        act("tree_describe", Some("large.bin"), Some("data")).unwrap();
        tree.refresh(&context);
        assert!(tree.lock_listing().stale.iter().all(|path| path != "large.bin"));
        fs::OpenOptions::new().write(true).open(root.join("large.bin")).unwrap().set_len(51 << 20).unwrap();
        tree.refresh(&context);
        assert!(tree.lock_listing().stale.contains("large.bin"));
        assert!(std::process::Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
        assert!(act("tree_describe", Some("pipe"), Some("x")).is_err());
        assert!(act("tree_describe", Some("../outside"), Some("x")).is_err());
        assert!(act("tree_filter", None, Some("[")).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_watched_tree_shows_what_one_that_looks_shows_and_lists_nothing_without_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir_all(root.join("src/deep")).unwrap();
        fs::create_dir_all(root.join("target")).unwrap();
        fs::write(root.join(".gitignore"), "target/\n").unwrap();
        fs::write(root.join("src/a.rs"), "fn a() {}").unwrap();
        fs::write(root.join("target/out"), "1").unwrap();
        let scope = Scope::new(&root, &root);
        let watch = WorkspaceWatch::start(scope.guard(), &root).unwrap();
        let (watched, looking) = (Tree::new(scope.clone()), Tree::new(scope.clone()));
        let now = Timestamp::UNIX_EPOCH;
        let calls = [
            ("tree_filter", None, "**/*.rs *.txt"),
            ("tree_describe", Some("src/a.rs"), "the first"),
            ("tree_describe", Some("src/"), "sources"),
            ("tree_describe", Some("target/out"), "made"),
        ];
        for (action, target, text) in calls {
            let call = ActionCall { target, text: Some(text), ..ActionCall::new(action, now) };
            watched.act(&call).unwrap();
            looking.act(&call).unwrap();
        }
        let check = || {
            watched.refresh(&RefreshContext { watch: Some(&watch), ..RefreshContext::new(&scope, now) });
            looking.refresh(&RefreshContext::new(&scope, now));
            assert_eq!(watched.render(), looking.render());
            let revision = watched.revision();
            watched.refresh(&RefreshContext { watch: Some(&watch), ..RefreshContext::new(&scope, now) });
            assert_eq!(watched.revision(), revision);
        };
        check();
        fs::write(root.join("new.txt"), "1").unwrap();
        check();
        fs::write(root.join("src/a.rs"), "fn b() {}").unwrap();
        check();
        assert!(watched.render().unwrap().contains("(stale"));
        fs::write(root.join("src/a.rs"), "fn a() {}").unwrap();
        fs::write(root.join("target/out"), "2").unwrap();
        check();
        fs::rename(root.join("src"), root.join("lib")).unwrap();
        check();
        fs::create_dir(root.join("src")).unwrap();
        fs::write(root.join("src/a.rs"), "fn a() {}").unwrap();
        fs::create_dir(root.join("src/deep")).unwrap();
        check();
        assert!(!watched.render().unwrap().contains("src/a.rs  # the first (stale"));
        fs::remove_dir(root.join("src/deep")).unwrap();
        fs::remove_file(root.join("new.txt")).unwrap();
        check();
    }
}
