//! [`CodeMap`]: what the code contains, in few tokens; the same tree gives the same bytes.

mod alias;
mod render;
mod selection;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::index::{File, SymbolIndex};
use crate::rank::Focus;
use crate::resolve::FileId;

use alias::Aliases;
use render::MapRenderer;
pub(crate) use render::definition_weight;

/// Explains the letters of the map. The folder aliases follow it.
const LEGEND: &str = include_str!("../../../prompts/legend.txt");

/// What a map should cover.
#[derive(Clone, Copy, Default)]
pub struct MapRequest<'a> {
    /// Files and folders to cover; empty for everything.
    pub scope: &'a [String],
    /// What the conversation is about; it decides which definitions fit into the budget.
    pub focus: Option<&'a Focus>,
    /// How long the map may be; `None` for everything.
    pub budget: Option<TokenBudget<'a>>,
    /// Memory of an earlier map; the new one keeps its aliases and its selection, and adds files
    /// while the budget lasts.
    pub memory: Option<&'a MapMemory>,
    /// An earlier map of the same index: unchanged blocks are copied from it. This saves time and
    /// changes nothing.
    pub previous: Option<&'a CodeMap>,
}

/// A limit for the length of a map.
#[derive(Clone, Copy)]
pub struct TokenBudget<'a> {
    /// Limit in tokens, the legend included.
    pub tokens: usize,
    /// Counts the tokens of a text.
    pub count_tokens: &'a (dyn Fn(&str) -> usize + Sync),
}

/// A compact description of the code, for a model.
#[derive(Clone, Debug, Default)]
pub struct CodeMap {
    /// Explains letters and aliases; the model needs it to read the blocks.
    pub legend: String,
    /// One block per file, sorted by path.
    pub blocks: Vec<MapBlock>,
    /// What did not fit into the budget.
    pub left_out: MapOmissions,
    /// Pass it in with the next request to keep aliases and selection.
    pub memory: MapMemory,
}

/// The lines of the map about one file.
#[derive(Clone, Debug)]
pub struct MapBlock {
    /// Path relative to the root.
    pub path: Arc<str>,
    /// Complete lines, the last newline included.
    pub text: Arc<str>,
    revision: u64,
}

/// How much of the code a map leaves out.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct MapOmissions {
    /// Files without a block.
    pub files: usize,
    /// Definitions without a line, in those files and in others.
    pub definitions: usize,
}

/// State to keep from one map to the next, so that unchanged blocks keep their bytes.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct MapMemory {
    /// Folders with aliases: the first is `@1`.
    pub aliases: Vec<String>,
    /// The selected part of each file, by path. `None` if there was no budget and nothing was
    /// selected.
    pub choice: Option<BTreeMap<String, FileSelection>>,
}

/// Which part of a file is in the map.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum FileSelection {
    /// The whole file, also definitions that are added later.
    Whole,
    /// Only these definitions, with the names of their parents: `RetryPolicy.next_delay`.
    Names(Vec<String>),
}

impl CodeMap {
    /// Joins legend and blocks into one text.
    pub fn text(&self) -> String {
        let mut text = self.legend.clone();
        self.blocks.iter().for_each(|block| text.push_str(&block.text));
        text
    }
}

impl SymbolIndex {
    /// Builds a map.
    ///
    /// ```
    /// use hardpan_symbols::{MapRequest, SymbolIndex};
    ///
    /// let mut index = SymbolIndex::default();
    /// index.update("clock.py", b"class Clock(Base):\n    async def wait(self, seconds=1): ...\n");
    /// let map = index.map(&MapRequest::default());
    /// assert_eq!(&*map.blocks[0].text, "clock.py:\nc Clock(Base)\n  am wait(self, seconds?)\n");
    /// ```
    pub fn map(&self, request: &MapRequest<'_>) -> CodeMap {
        let files: Vec<(FileId, &File)> = self
            .files_by_path()
            .filter(|(_, file)| is_in_scope(request.scope, &file.path) && has_block(file))
            .collect();
        match (request.memory, request.budget) {
            (Some(memory), budget) => {
                let aliases = Aliases::from_folders(&memory.aliases);
                let map = self.render_map(&files, aliases, memory.choice.clone(), request.previous);
                match budget.filter(|_| map.left_out.files > 0) {
                    Some(budget) => selection::add_files(self, &files, map, request.focus, budget),
                    None => map,
                }
            }
            (None, None) => self.render_map(&files, Aliases::choose(self, &files), None, request.previous),
            (None, Some(budget)) => {
                let focus = request.focus.cloned().unwrap_or_default();
                selection::choose_map(self, &files, &focus, budget)
            }
        }
    }

    /// Renders the selected parts.
    fn render_map(
        &self,
        files: &[(FileId, &File)],
        aliases: Aliases,
        choice: Option<BTreeMap<String, FileSelection>>,
        previous: Option<&CodeMap>,
    ) -> CodeMap {
        let renderer = MapRenderer { index: self, aliases: &aliases };
        let same_page =
            |map: &&CodeMap| map.memory.aliases == aliases.folders() && map.memory.choice == choice;
        let known = previous.filter(same_page).map_or(&[][..], |map| &map.blocks);
        let part = |file: &File| match &choice {
            None => Some(&FileSelection::Whole),
            Some(choice) => choice.get(&*file.path),
        };
        let render_block = |(id, file): &(FileId, &File)| {
            let part = part(file)?;
            let earlier =
                known.binary_search_by(|block| (*block.path).cmp(&*file.path)).ok().map(|at| &known[at]);
            if let Some(earlier) = earlier.filter(|block| block.revision == file.revision) {
                return Some(earlier.clone());
            }
            let text = match part {
                FileSelection::Whole => renderer.render_whole(*id, file),
                FileSelection::Names(names) => {
                    renderer.render_rows(*id, file, &render::rows_named(file, names))
                }
            };
            Some(MapBlock { path: (*file.path).into(), text: text.into(), revision: file.revision })
        };
        let blocks: Vec<MapBlock> = files.par_iter().filter_map(render_block).collect();
        let mut left_out = MapOmissions { files: files.len() - blocks.len(), definitions: 0 };
        for (_, file) in files.iter().filter(|(_, file)| !file.is_test) {
            left_out.definitions += match part(file) {
                None => file.rows.len(),
                Some(FileSelection::Whole) => 0,
                Some(FileSelection::Names(names)) => file.rows.len() - render::rows_named(file, names).len(),
            };
        }
        CodeMap {
            legend: aliases.legend(),
            blocks,
            left_out,
            memory: MapMemory { aliases: aliases.into_folders(), choice },
        }
    }
}

/// Whether a file gets a block. The others appear in the file tree only.
fn has_block(file: &File) -> bool {
    let outline = &file.outline;
    outline.skipped.is_some() || !outline.definitions.is_empty() || !outline.imports.is_empty()
}

pub(crate) fn is_in_scope(within: &[String], path: &str) -> bool {
    let below =
        |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    within.is_empty()
        || within
            .iter()
            .any(|folder| matches!(folder.as_str(), "" | ".") || below(folder.trim_end_matches('/')))
}

/// Rounds down to 1, 2, 3, 5, 10, 20, 50, 100, …, so that the shown number changes rarely.
pub(crate) fn round_down(count: u32) -> u32 {
    let mut best = count.min(3);
    let mut ten = 1_u32;
    while let Some(next) = ten.checked_mul(10) {
        for step in [ten.saturating_mul(5), next, next.saturating_mul(2)] {
            if step <= count {
                best = best.max(step);
            }
        }
        ten = next;
    }
    best
}

#[cfg(test)]
mod tests;
