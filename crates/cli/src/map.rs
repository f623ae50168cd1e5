//! `hardpan map`, `hardpan symbols`, and the symbol map in a prompt ([`symbols_for_prompt`]).

use std::io::IsTerminal;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hardpan_agent::Coupling;
use hardpan_context::{PromptEntry, SnapshotFile, SymbolEntry, SymbolsEntry};
use hardpan_models::{did_you_mean, nearest};
use hardpan_prompt::{Text, TokenCounter, Vocabulary};
use hardpan_symbols::{Focus, MapMemory, MapRequest, SymbolIndex, TokenBudget};
use hardpan_workspace as workspace;
use serde::{Deserialize, Serialize};

use crate::inputs;
use crate::output::{self, safe, thousands};
use crate::settings::cache_folder;

/// Token limit of the map in a prompt; in a small window, one part in [`WINDOW_SHARE`] of it.
const MAX_MAP_TOKENS: usize = 20_000;
const WINDOW_SHARE: usize = 10;

/// From this many files on, indexing shows its progress.
const MANY_FILES: usize = 2000;

/// How to print a map or a list of symbols.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    Text,
    Json,
}

/// Prints the map of a folder.
pub fn map(
    dir: Option<&Path>,
    paths: &[String],
    tokens: Option<usize>,
    focus: &[String],
    format: OutputFormat,
) -> Result<()> {
    let (root, here) = root_and_folder(dir)?;
    // The process ends after this, and freeing millions of small objects would take a while.
    let index = ManuallyDrop::new(load_index(&root));
    let within = paths.iter().map(|path| index_path(&root, &here, path)).collect::<Result<Vec<String>>>()?;
    let focus_files =
        focus.iter().map(|path| index_path(&root, &here, path)).collect::<Result<Vec<String>>>()?;
    if let Some(missing) = within.iter().find(|path| !index.paths().any(|known| is_within(known, path))) {
        bail!("{}: contains no file of the map; the map leaves out ignored files", safe(missing));
    }
    if format == OutputFormat::Json {
        let wanted = |path: &str| within.is_empty() || within.iter().any(|folder| is_within(path, folder));
        return Ok(output::print(serde_json::to_string_pretty(&index.report(wanted))? + "\n")?);
    }
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let focus = Focus { files: focus_files, ..Focus::default() };
    let budget = tokens.map(|tokens| TokenBudget { tokens, count_tokens: &count });
    let map = index.map(&MapRequest { scope: &within, focus: Some(&focus), budget, ..MapRequest::default() });
    output::print(map.text())?;
    let left = map.left_out;
    if left.files + left.definitions > 0 {
        eprintln!(
            "left out to fit the token limit: {} definitions, and {} whole files",
            thousands(left.definitions),
            thousands(left.files)
        );
    }
    Ok(())
}

/// Prints where a symbol is defined and which files use it.
pub fn symbols(dir: Option<&Path>, name: &str, format: OutputFormat) -> Result<()> {
    let (root, _) = root_and_folder(dir)?;
    let index = load_index(&root);
    let places = index.find_definitions(name);
    if format == OutputFormat::Json {
        return Ok(output::print(serde_json::to_string_pretty(&places)? + "\n")?);
    }
    if places.is_empty() {
        let report = index.report(|_| true);
        let known = report.files.iter().flat_map(|file| &file.symbols).map(|symbol| symbol.name.as_str());
        bail!("found no definition of \"{}\"{}", safe(name), did_you_mean(&nearest(name, known)));
    }
    let mut text = String::new();
    for place in places {
        let symbol = &place.symbol;
        let parent = symbol.parent.as_ref().map_or_else(String::new, |parent| format!("{parent}."));
        let shown = format!("{}:{}: {parent}{}{}", place.path, symbol.line, symbol.name, symbol.signature);
        text.push_str(&format!("{}\n", safe(&shown)));
        place.used_by.iter().for_each(|path| text.push_str(&format!("  used in {}\n", safe(path))));
    }
    Ok(output::print(text)?)
}

/// The default token limit of the map in a prompt, in tokens as we count them.
///
/// The limit itself is in the model's tokens; each token that we count stands for `factor` of
/// those.
pub fn default_map_tokens(window: usize, factor: f64) -> usize {
    /// Layouts put text around the entries, which takes up to an eighth.
    const ENTRIES: f64 = 7.0 / 8.0;
    ((window / WINDOW_SHARE).min(MAX_MAP_TOKENS) as f64 * ENTRIES / factor) as usize
}

/// Updates the index on disk, so that the next map is fast.
pub fn warm_up(folder: &Path) {
    let root = workspace::find_project_root(folder);
    let files = workspace::list_files(&root, workspace::TREE_LIMIT).files;
    workspace::index_codebase(&root, &files, cache_folder().as_deref(), &mut |_| {});
}

/// What the map of a conversation keeps from request to request: path aliases and selection.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MapState(Option<MapMemory>);

/// The map for a prompt, ranked by the open files and the words of the prompt. None if there is no
/// code, or no room for it. Keeps what an earlier map of the conversation selected.
pub fn symbols_for_prompt(
    folder: &Path,
    file: &SnapshotFile,
    tokens: usize,
    mapped: &mut MapState,
) -> Option<SymbolsEntry> {
    if tokens == 0 {
        return None;
    }
    let index = load_index(&workspace::find_project_root(folder));
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
pub fn coupling(folder: &Path) -> Coupling {
    let index = load_index(&workspace::find_project_root(folder));
    let owned = |cluster: Vec<&str>| cluster.into_iter().map(str::to_owned).collect();
    let ranks = index.ranks(&Focus::default());
    let references = index.paths().map(str::to_owned).zip(ranks).collect();
    Coupling { clusters: index.clusters().into_iter().map(owned).collect(), references }
}

/// Loads the index of a repository, reusing the cache for unchanged files.
fn load_index(root: &Path) -> SymbolIndex {
    let files = workspace::list_files(root, workspace::TREE_LIMIT).files;
    let total = files.len();
    let shows_progress = total >= MANY_FILES && std::io::stderr().is_terminal();
    let mut progress = |done: usize| {
        if shows_progress {
            eprint!("\rindexing {} of {} files", thousands(done), thousands(total));
        }
    };
    let codebase = workspace::index_codebase(root, &files, cache_folder().as_deref(), &mut progress);
    if shows_progress {
        eprint!("\r\x1b[K");
    }
    codebase.index
}

/// The root of the repository, and the folder that paths are relative to.
fn root_and_folder(dir: Option<&Path>) -> Result<(PathBuf, PathBuf)> {
    let here = inputs::working_folder(dir)?;
    Ok((workspace::find_project_root(&here), here))
}

/// A path as the index stores it: relative to the root, with forward slashes.
fn index_path(root: &Path, here: &Path, path: &str) -> Result<String> {
    let full = here.join(path);
    let full = full.canonicalize().with_context(|| format!("cannot find {}", safe(path)))?;
    if full == root {
        return Ok(String::new());
    }
    let inside = full.strip_prefix(root).ok().and_then(Path::to_str);
    inside
        .map(|path| path.replace('\\', "/"))
        .with_context(|| format!("{} is outside of {}", safe(path), root.display()))
}

fn is_within(path: &str, folder: &str) -> bool {
    folder.is_empty()
        || path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
