//! [`Tree`] (P5): the files of the project, as far as filters let them through, with descriptions.
//!
//! A description belongs to the content that it was written for: once that changed, it is shown as
//! stale. Without filters and descriptions there is nothing to show: the overview of the repository
//! stands in its place.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_prompt::{Hash, HashChain, Volatility};
use hardpan_tools::Scope;
use hardpan_workspace::{TREE_LIMIT, compile_glob, folder_names, list_files};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshContext, RefreshStrategy, Revision};

/// The largest file whose changes are noticed, in bytes.
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
#[derive(Debug, Default, PartialEq)]
struct Listing {
    paths: Vec<String>,
    stale: BTreeSet<String>,
    truncated: bool,
}

impl TreeState {
    fn is_empty(&self) -> bool {
        *self == TreeState::default()
    }
}

impl Tree {
    /// The tree of the project that `scope` is about.
    pub fn new(scope: Scope) -> Self {
        Tree { scope, state: Mutex::default(), listing: Mutex::default(), revision: Revision::default() }
    }

    /// Lists the files again, if there is anything to show.
    fn read(&self) {
        let state = self.lock_state().clone();
        let found = if state.is_empty() { Listing::default() } else { self.list(&state) };
        let mut listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
        if *listing != found {
            *listing = found;
            drop(listing);
            self.revision.bump();
        }
    }

    fn list(&self, state: &TreeState) -> Listing {
        let tree = list_files(&self.scope.guard(), &self.scope.root, TREE_LIMIT);
        let globs: Vec<_> = state.filters.iter().filter_map(|filter| compile_glob(filter).ok()).collect();
        let is_shown = |path: &String| globs.is_empty() || globs.iter().any(|glob| glob.is_match(path));
        let mut paths: Vec<String> = tree.files.into_iter().filter(is_shown).collect();
        // Folders are listed for their descriptions only.
        paths.extend(state.descriptions.keys().filter(|path| path.ends_with('/')).cloned());
        paths.sort_unstable();
        paths.dedup();
        let described = state.descriptions.iter();
        let stale = described.filter(|(path, description)| description.hash != self.content_hash(path));
        Listing { stale: stale.map(|(path, _)| path.clone()).collect(), paths, truncated: tree.truncated }
    }

    /// What a path holds: the bytes of a file, the names in a folder. `None` if it cannot be read.
    fn content_hash(&self, path: &str) -> Option<Hash> {
        let (guard, place) = (self.scope.guard(), self.scope.root.join(path));
        if !path.ends_with('/') {
            return Some(Hash::of(&guard.open(&place).ok()?.read_all(MAX_DESCRIBED_BYTES).ok()?));
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
        let listing = self.listing.lock().unwrap_or_else(PoisonError::into_inner);
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

    fn refresh(&self, _context: &RefreshContext<'_>) {
        self.read();
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
        let context = RefreshContext { scope: &scope, now: Timestamp::UNIX_EPOCH };
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
        assert!(act("tree_describe", Some("../outside"), Some("x")).is_err());
        assert!(act("tree_filter", None, Some("[")).is_err());
    }
}
