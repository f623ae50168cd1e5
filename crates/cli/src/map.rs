//! `hardpan map` and `hardpan symbols`.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hardpan_app::settings::UserFolders;
use hardpan_app::symbol_map;
use hardpan_models::{did_you_mean, nearest};
use hardpan_prompt::{Text, TokenCounter, Vocabulary};
use hardpan_symbols::{Focus, MapRequest, OverviewRequest, SymbolIndex, TokenBudget};
use hardpan_workspace as workspace;

use crate::command_setup::{StderrNotices, working_folder};
use crate::output::{self, OutputFormat, safe, thousands};

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
        return output::print_json(&index.report(wanted));
    }
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let focus = Focus { files: focus_files, ..Focus::default() };
    let budget = tokens.map(|tokens| TokenBudget { tokens, count_tokens: &count });
    let map = index.map(&MapRequest { scope: &within, focus: Some(&focus), budget, ..MapRequest::default() });
    output::print(map.text())?;
    let left = map.left_out;
    if left.files + left.definitions > 0 {
        note!(
            "left out to fit the token limit: {} definitions, and {} whole files",
            thousands(left.definitions),
            thousands(left.files)
        );
    }
    Ok(())
}

/// Prints the overview of a repository, or of folders in it.
pub fn overview(dir: Option<&Path>, paths: &[String], tokens: Option<usize>) -> Result<()> {
    let (root, here) = root_and_folder(dir)?;
    let index = load_index(&root);
    let mut folders =
        paths.iter().map(|path| index_path(&root, &here, path)).collect::<Result<Vec<String>>>()?;
    if folders.is_empty() {
        folders.push(String::new());
    }
    for folder in &folders {
        output::print(overview_text(&index, folder, tokens))?;
    }
    Ok(())
}

/// The overview of a folder, in about a thousand tokens if no other number is given.
pub fn overview_text(index: &SymbolIndex, folder: &str, tokens: Option<usize>) -> String {
    const DEFAULT_TOKENS: usize = 1000;
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let budget = TokenBudget { tokens: tokens.unwrap_or(DEFAULT_TOKENS), count_tokens: &count };
    index.overview(&OverviewRequest { folder, focus: None, budget, kept: None }).text
}

/// The definitions in a file or folder, by its path in the index, and how many did not fit. None if
/// the index has no file there.
pub fn map_text(index: &SymbolIndex, path: &str, tokens: usize) -> Option<String> {
    if !index.paths().any(|known| is_within(known, path)) {
        return None;
    }
    let counter = TokenCounter::new(Vocabulary::O200k);
    let count = |text: &str| counter.count(&Text::new(text));
    let (scope, budget) = ([path.to_owned()], Some(TokenBudget { tokens, count_tokens: &count }));
    let map = index.map(&MapRequest { scope: &scope, budget, ..MapRequest::default() });
    let left_out = match map.left_out.definitions {
        0 => String::new(),
        more => format!("… and {} more definitions; hardpan map {path} shows all\n", thousands(more)),
    };
    Some(format!("{}{left_out}", map.text()))
}

/// Prints where a symbol is defined and which files use it.
pub fn symbols(dir: Option<&Path>, name: &str, format: OutputFormat) -> Result<()> {
    let (root, _) = root_and_folder(dir)?;
    let index = load_index(&root);
    if format == OutputFormat::Json {
        return output::print_json(&index.find_definitions(name));
    }
    Ok(output::print(symbols_text(&index, name)?)?)
}

/// Where a symbol is defined and which files use it. An error if nothing defines it.
pub fn symbols_text(index: &SymbolIndex, name: &str) -> Result<String> {
    let places = index.find_definitions(name);
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
    Ok(text)
}

/// Loads the index of a repository, and shows the progress.
fn load_index(root: &Path) -> SymbolIndex {
    symbol_map::load_index(root, &UserFolders::from_env(), &StderrNotices)
}

/// The root of the repository, and the folder that paths are relative to.
fn root_and_folder(dir: Option<&Path>) -> Result<(PathBuf, PathBuf)> {
    let here = working_folder(dir)?;
    Ok((workspace::find_project_root(&here), here))
}

/// A path as the index stores it: relative to the root, with forward slashes.
pub fn index_path(root: &Path, here: &Path, path: &str) -> Result<String> {
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
