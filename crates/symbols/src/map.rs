//! The map: what the code contains, in few tokens, and the same bytes for the same tree.

mod alias;
mod choose;
mod render;

use std::collections::BTreeMap;
use std::sync::Arc;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::index::{File, Index};
use crate::rank::Focus;
use crate::resolve::FileId;

use alias::Aliases;
use render::Page;

/// What the letters mean. The folders' short names follow it.
const LEGEND: &str = include_str!("../../../prompts/legend.txt");

/// What a map is wanted of.
#[derive(Clone, Copy, Default)]
pub struct MapRequest<'a> {
    /// Files and folders; empty for everything.
    pub within: &'a [String],
    /// What the conversation is about; it decides what a budget is spent on.
    pub focus: Option<&'a Focus>,
    /// How long the map may be; without it everything is in.
    pub budget: Option<Budget<'a>>,
    /// The memory of an earlier map, whose short names and choice this one keeps.
    pub memory: Option<&'a MapMemory>,
    /// An earlier map of the same index: blocks about which nothing changed are taken from it. It saves time and changes
    /// nothing.
    pub previous: Option<&'a Map>,
}

/// How long a map may be.
#[derive(Clone, Copy)]
pub struct Budget<'a> {
    /// In tokens, the legend included.
    pub tokens: usize,
    /// How many tokens a text has.
    pub count: &'a (dyn Fn(&str) -> usize + Sync),
}

/// A map.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// Letters and short names; every block needs it.
    pub legend: String,
    /// One per file, sorted by path.
    pub blocks: Vec<Block>,
    /// What the budget had no room for.
    pub left_out: LeftOut,
    /// To pass in with the next request, so that it keeps short names and choice.
    pub memory: MapMemory,
}

/// What the map says about one file.
#[derive(Clone, Debug)]
pub struct Block {
    /// The file.
    pub path: Arc<str>,
    /// Lines, each with its end.
    pub text: Arc<str>,
    revision: u64,
}

/// What a map does not say.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct LeftOut {
    /// Files that would have a block.
    pub files: usize,
    /// Definitions, in those files and in others.
    pub definitions: usize,
}

/// What a map must keep from one request to the next.
#[derive(Clone, Debug, Default, Serialize, Deserialize, PartialEq, Eq)]
pub struct MapMemory {
    /// The folders that have short names: `@1` is the first.
    pub aliases: Vec<String>,
    /// What was chosen of each file: its definitions by their names, or everything. Without a budget, nothing was chosen.
    pub choice: Option<BTreeMap<String, Part>>,
}

/// How much of a file is in the map.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    /// Everything, also what comes later.
    Whole,
    /// These definitions, each with the names of what holds it: `RetryPolicy.next_delay`.
    Names(Vec<String>),
}

impl Map {
    /// Legend and blocks as one text.
    pub fn text(&self) -> String {
        let mut text = self.legend.clone();
        self.blocks.iter().for_each(|block| text.push_str(&block.text));
        text
    }
}

impl Index {
    /// The map of what is wanted.
    ///
    /// ```
    /// use hardpan_symbols::{Index, MapRequest};
    ///
    /// let mut index = Index::default();
    /// index.update("clock.py", b"class Clock(Base):\n    async def wait(self, seconds=1): ...\n");
    /// let map = index.map(&MapRequest::default());
    /// assert_eq!(&*map.blocks[0].text, "clock.py:\nc Clock(Base)\n  am wait(self, seconds?)\n");
    /// ```
    pub fn map(&self, request: &MapRequest<'_>) -> Map {
        let files: Vec<(FileId, &File)> = self
            .in_order()
            .filter(|(_, file)| is_within(request.within, &file.path) && has_block(file))
            .collect();
        match (request.memory, request.budget) {
            (Some(memory), _) => {
                self.draw(&files, Aliases::known(&memory.aliases), memory.choice.clone(), request.previous)
            }
            (None, None) => self.draw(&files, Aliases::choose(self, &files), None, request.previous),
            (None, Some(budget)) => {
                let focus = request.focus.cloned().unwrap_or_default();
                choose::choose(self, &files, &focus, budget)
            }
        }
    }

    /// Draws what was chosen.
    fn draw(
        &self,
        files: &[(FileId, &File)],
        aliases: Aliases,
        choice: Option<BTreeMap<String, Part>>,
        previous: Option<&Map>,
    ) -> Map {
        let page = Page { index: self, aliases: &aliases };
        let same_page = |map: &&Map| map.memory.aliases == aliases.folders() && map.memory.choice == choice;
        let known = previous.filter(same_page).map_or(&[][..], |map| &map.blocks);
        let part = |file: &File| match &choice {
            None => Some(&Part::Whole),
            Some(choice) => choice.get(&*file.path),
        };
        let draw = |(id, file): &(FileId, &File)| {
            let part = part(file)?;
            let earlier =
                known.binary_search_by(|block| (*block.path).cmp(&*file.path)).ok().map(|at| &known[at]);
            if let Some(earlier) = earlier.filter(|block| block.revision == file.revision) {
                return Some(earlier.clone());
            }
            let text = match part {
                Part::Whole => page.whole(*id, file),
                Part::Names(names) => page.part(*id, file, &render::named(file, names)),
            };
            Some(Block { path: (*file.path).into(), text: text.into(), revision: file.revision })
        };
        let blocks: Vec<Block> = files.par_iter().filter_map(draw).collect();
        let mut left_out = LeftOut { files: files.len() - blocks.len(), definitions: 0 };
        for (_, file) in files.iter().filter(|(_, file)| !file.is_test) {
            left_out.definitions += match part(file) {
                None => file.rows.len(),
                Some(Part::Whole) => 0,
                Some(Part::Names(names)) => file.rows.len() - render::named(file, names).len(),
            };
        }
        Map {
            legend: aliases.legend(),
            blocks,
            left_out,
            memory: MapMemory { aliases: aliases.into_folders(), choice },
        }
    }
}

/// Whether the map has anything to say about a file. The others are in the tree of files.
fn has_block(file: &File) -> bool {
    let outline = &file.outline;
    outline.skipped.is_some() || !outline.definitions.is_empty() || !outline.imports.is_empty()
}

fn is_within(within: &[String], path: &str) -> bool {
    let below =
        |folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    within.is_empty()
        || within
            .iter()
            .any(|folder| matches!(folder.as_str(), "" | ".") || below(folder.trim_end_matches('/')))
}

/// A number that changes rarely: rounded down to 1, 2, 3, 5, 10, 20, 50, 100, …
fn rounded(count: u32) -> u32 {
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
