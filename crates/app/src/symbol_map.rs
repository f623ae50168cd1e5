//! The symbol index of a folder ([`load_index`]), and its map in a prompt (`symbols_for_prompt`).

use std::path::Path;

use hardpan_agent::Coupling;
use hardpan_context::{PromptEntry, SnapshotFile, SymbolEntry, SymbolsEntry};
use hardpan_prompt::{Text, TokenCounter, Vocabulary};
use hardpan_symbols::{Focus, MapMemory, MapRequest, SymbolIndex, TokenBudget};
use hardpan_workspace as workspace;
use serde::{Deserialize, Serialize};

use crate::notice::{IndexProgress, NoticeSink};

/// Token limit of the map in a prompt; in a small window, one part in [`WINDOW_SHARE`] of it.
const MAX_MAP_TOKENS: usize = 20_000;
const WINDOW_SHARE: usize = 10;

/// From this many files on, indexing reports its progress.
const MANY_FILES: usize = 2000;

/// The default token limit of the map in a prompt, in tokens as we count them.
///
/// The limit itself is in the model's tokens; each token that we count stands for `factor` of
/// those.
pub fn default_map_tokens(window: usize, factor: f64) -> usize {
    /// Layouts put text around the entries, which takes up to an eighth.
    const ENTRIES: f64 = 7.0 / 8.0;
    ((window / WINDOW_SHARE).min(MAX_MAP_TOKENS) as f64 * ENTRIES / factor) as usize
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
pub fn load_index(root: &Path, cache: Option<&Path>, notices: &dyn NoticeSink) -> SymbolIndex {
    let files = workspace::list_files(root, workspace::TREE_LIMIT).files;
    let total = files.len();
    let mut progress = |done: usize| {
        if total >= MANY_FILES {
            notices.index_progress(IndexProgress::Indexed { done, total });
        }
    };
    let codebase = workspace::index_codebase(root, &files, cache, &mut progress);
    if total >= MANY_FILES {
        notices.index_progress(IndexProgress::Finished);
    }
    codebase.index
}
