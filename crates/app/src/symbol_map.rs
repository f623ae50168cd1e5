//! The symbol index of a folder ([`load_index`]), and what a prompt shows of it: an overview
//! (`overview_for_prompt`) and the map (`symbols_for_prompt`), within a [`RepositoryBudget`].

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use hardpan_agent::Coupling;
use hardpan_context::{PromptEntry, RepositoryView, SnapshotFile, SymbolEntry, SymbolsEntry};
use hardpan_prompt::{Text, TokenCounter, Vocabulary};
use hardpan_symbols::{
    Focus, KeptOverview, MapMemory, MapRequest, OverviewMemory, OverviewRequest, SymbolIndex, TokenBudget,
};
use hardpan_workspace as workspace;
use serde::{Deserialize, Serialize};

use crate::notice::{IndexProgress, NoticeSink};
use crate::settings::UserFolders;

/// Token limit of the overview in a prompt, for a model whose cache reads cost a tenth of input.
/// docs/map.md has the measurements.
const OVERVIEW_TOKENS: f64 = 1000.0;
/// The most that it grows to where reading costs less than that.
const MAX_OVERVIEW_TOKENS: f64 = 2000.0;
/// What an overview may cost per file: a line with the main definitions is about that long, so a
/// small tree is named whole and nothing more.
const TOKENS_PER_FILE: usize = 20;
/// The overview takes at most this part of a window.
const OVERVIEW_WINDOW_SHARE: usize = 40;
/// Requests of a usual session: each reads the overview once.
const USUAL_REQUESTS: f64 = 50.0;
/// What writing a token to the cache costs, in tokens of plain input.
const WRITE_SHARE: f64 = 1.25;

/// Token limit of the map in a prompt; in a small window, one part in [`WINDOW_SHARE`] of it.
const MAX_MAP_TOKENS: usize = 20_000;
const WINDOW_SHARE: usize = 10;

/// From this many files on, indexing reports its progress.
const MANY_FILES: usize = 2000;

/// The default token limit of the map in a prompt, in tokens as we count them.
///
/// The limit itself is in the model's tokens; each token that we count stands for `factor` of
/// those.
fn default_map_tokens(window: usize, factor: f64) -> usize {
    /// Layouts put text around the entries, which takes up to an eighth.
    const ENTRIES: f64 = 7.0 / 8.0;
    ((window / WINDOW_SHARE).min(MAX_MAP_TOKENS) as f64 * ENTRIES / factor) as usize
}

/// How many tokens a prompt may spend on describing the repository, as we count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RepositoryBudget {
    /// For the overview.
    pub overview: usize,
    /// For the map.
    pub map: usize,
}

impl RepositoryBudget {
    /// The budget for a layout's view. `setting` is `map_tokens`: what the map may take, and 0 for
    /// neither map nor overview.
    pub fn new(view: RepositoryView, setting: Option<usize>, model: &ModelFigures) -> Self {
        let map = || default_map_tokens(model.window, model.token_factor);
        match (view, setting) {
            (_, Some(0)) => RepositoryBudget::default(),
            (RepositoryView::Map, setting) => {
                RepositoryBudget { overview: 0, map: setting.unwrap_or_else(map) }
            }
            (RepositoryView::Overview, setting) => {
                RepositoryBudget { overview: overview_tokens(model), map: setting.unwrap_or(0) }
            }
        }
    }
}

/// What a budget depends on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModelFigures {
    /// The context window, in the model's tokens.
    pub window: usize,
    /// The model's tokens per token that we count.
    pub token_factor: f64,
    /// What reading a token from the cache costs, as a share of plain input.
    pub cache_read_share: f64,
}

/// The token limit of the overview: the same price over a usual session on every model, so that
/// cheap reading buys more of it.
fn overview_tokens(model: &ModelFigures) -> usize {
    let price = |read: f64| WRITE_SHARE + USUAL_REQUESTS * read;
    let tokens = OVERVIEW_TOKENS * price(0.1) / price(model.cache_read_share);
    let tokens = tokens.min(MAX_OVERVIEW_TOKENS).min((model.window / OVERVIEW_WINDOW_SHARE) as f64);
    (tokens / model.token_factor) as usize
}

/// Loads what the overview's and the map's tokens are counted with: it is large, and kept from then on.
pub(crate) fn load_vocabulary() {
    TokenCounter::new(Vocabulary::O200k).count(&Text::new("a"));
}

/// What the overview of a conversation keeps from request to request.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OverviewState {
    memory: Option<OverviewMemory>,
    /// The files at the last request; those of an earlier process are not stored.
    #[serde(skip)]
    known_files: BTreeSet<String>,
}

/// The overview for a prompt. None if there are no files, or no room for it.
pub(crate) fn overview_for_prompt(
    index: &SymbolIndex,
    tokens: usize,
    state: &mut OverviewState,
) -> Option<String> {
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count_tokens = |text: &str| counter.count(&Text::new(text));
    let files: BTreeSet<String> = index.paths().map(str::to_owned).collect();
    if state.known_files.is_empty() {
        state.known_files.clone_from(&files);
    }
    let known_files = &state.known_files;
    let kept = state.memory.as_ref().map(|memory| KeptOverview { memory, known_files });
    let tokens = tokens.min(files.len() * TOKENS_PER_FILE);
    let budget = TokenBudget { tokens, count_tokens: &count_tokens };
    let overview = index.overview(&OverviewRequest { folder: "", focus: None, budget, kept });
    *state = OverviewState { memory: Some(overview.memory), known_files: files };
    (!overview.text.is_empty()).then_some(overview.text)
}

/// What the map of a conversation keeps from request to request: path aliases and selection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MapState(Option<MapMemory>);

/// The map for a prompt, ranked by the open files and the words of the prompt. None if there is no
/// code, or no room for it. Keeps what an earlier map of the conversation selected.
pub(crate) fn symbols_for_prompt(
    index: &SymbolIndex,
    file: &SnapshotFile,
    tokens: usize,
    mapped: &mut MapState,
) -> Option<SymbolsEntry> {
    let words = match &file.prompt {
        Some(PromptEntry::Text(text) | PromptEntry::WithId { text, .. }) => text.as_str(),
        None => "",
    };
    let names = words.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| word.len() > 2);
    let focus = Focus {
        files: file.files.iter().map(|entry| entry.path.clone()).collect(),
        names: names.map(str::to_owned).collect(),
    };
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let budget = Some(TokenBudget { tokens, count_tokens: &count });
    let memory = mapped.0.as_ref();
    let map = index.map(&MapRequest { focus: Some(&focus), budget, memory, ..MapRequest::default() });
    mapped.0 = Some(map.memory);
    let entry = |block: &hardpan_symbols::MapBlock| SymbolEntry {
        path: block.path.to_string(),
        content: Text::new(block.text.trim_end()),
        tier: None,
        unchanged_responses: None,
    };
    let entries: Vec<SymbolEntry> = map.blocks.iter().map(entry).collect();
    (!entries.is_empty()).then(|| SymbolsEntry { legend: Some(Text::new(map.legend.trim_end())), entries })
}

/// Which files of a repository belong together, and how much other files refer to each.
pub(crate) fn coupling(index: &SymbolIndex) -> Coupling {
    let owned = |cluster: Vec<&str>| cluster.into_iter().map(str::to_owned).collect();
    let ranks = index.ranks(&Focus::default());
    let references = index.paths().map(str::to_owned).zip(ranks).collect();
    Coupling { clusters: index.clusters().into_iter().map(owned).collect(), references }
}

/// Loads the index of a repository, reusing the cache for unchanged files. A large repository
/// reports its progress.
pub fn load_index(root: &Path, folders: &UserFolders, notices: &dyn NoticeSink) -> SymbolIndex {
    let held = workspace::OpenFolder::open(root).ok().map(Arc::new);
    let guard = workspace::FileGuard::new(held, &[], &folders.private_files());
    let files = workspace::list_files(&guard, root, workspace::TREE_LIMIT).files;
    with_progress(notices, |progress| {
        let mut done = |done| progress(done, files.len());
        workspace::index_codebase(&guard, root, &files, folders.cache.as_deref(), &mut done).index
    })
}

/// Runs `work` with a function that takes how many files are indexed, and of how many. A large
/// repository reports its progress.
pub(crate) fn with_progress<R>(
    notices: &dyn NoticeSink,
    work: impl FnOnce(&mut dyn FnMut(usize, usize)) -> R,
) -> R {
    let mut reported = false;
    let made = work(&mut |done, total| {
        if total >= MANY_FILES {
            reported = true;
            notices.index_progress(IndexProgress::Indexed { done, total });
        }
    });
    if reported {
        notices.index_progress(IndexProgress::Finished);
    }
    made
}
