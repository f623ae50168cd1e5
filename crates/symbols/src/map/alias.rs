//! [`Aliases`]: short names for folders, `@1/retry.rs` for `crates/net/src/retry.rs`.

use std::collections::BTreeMap;

use super::LEGEND;
use crate::index::{File, SymbolIndex};
use crate::resolve::{FileId, split_path};

/// An alias must save at least this many bytes over the whole map, after paying for its legend
/// entry.
const MIN_SAVING_BYTES: i64 = 40;
/// More aliases than this would be hard to follow.
const MAX_ALIASES: usize = 40;
/// Length of `@1/`; aliases with two digits are rare enough to ignore.
const ALIAS_BYTES: i64 = 3;
/// Length of ` @1=` in the legend.
const LEGEND_ENTRY_BYTES: i64 = 4;

/// Folders with aliases: the first is `@1`.
pub(super) struct Aliases {
    folders: Vec<String>,
    /// Number of each folder.
    numbers: BTreeMap<String, usize>,
}

impl Aliases {
    pub(super) fn from_folders(folders: &[String]) -> Self {
        let numbers = folders.iter().enumerate().map(|(at, folder)| (folder.clone(), at + 1)).collect();
        Self { folders: folders.to_vec(), numbers }
    }

    /// Chooses aliases for all paths that a map of these files mentions.
    pub(super) fn choose(index: &SymbolIndex, files: &[(FileId, &File)]) -> Self {
        let mut mentions: BTreeMap<&str, i64> = BTreeMap::new();
        for (_, file) in files {
            *mentions.entry(split_path(&file.path).0).or_default() += 1;
            for path in index.local_imports(file) {
                *mentions.entry(split_path(path).0).or_default() += 1;
            }
        }
        let mut chosen = Folders::from_mentions(&mentions).choose();
        chosen.sort_unstable();
        Self::from_folders(&chosen)
    }

    /// Shortens a path by the alias of the nearest folder that has one.
    pub(super) fn shorten(&self, path: &str) -> String {
        let mut folder = split_path(path).0;
        while !folder.is_empty() {
            if let Some(number) = self.numbers.get(folder) {
                return format!("@{number}/{}", escape_path(&path[folder.len() + 1..]));
            }
            folder = split_path(folder).0;
        }
        // A path that looks like an alias gets a prefix to show that it is none.
        let prefix = if path.starts_with('@') { "./" } else { "" };
        format!("{prefix}{}", escape_path(path))
    }

    pub(super) fn legend(&self) -> String {
        let mut legend = LEGEND.to_string();
        let entries = self
            .folders
            .iter()
            .enumerate()
            .map(|(at, folder)| format!("@{}={}", at + 1, escape_path(folder)));
        let entries: Vec<String> = entries.collect();
        if !entries.is_empty() {
            legend.push_str(&entries.join(" "));
            legend.push('\n');
        }
        legend.push('\n');
        legend
    }

    pub(super) fn folders(&self) -> &[String] {
        &self.folders
    }

    pub(super) fn into_folders(self) -> Vec<String> {
        self.folders
    }
}

/// Escapes control characters, so that a path stays on one line.
fn escape_path(path: &str) -> String {
    if path.chars().any(char::is_control) { path.escape_debug().to_string() } else { path.to_string() }
}

/// The folders of all mentioned paths, as a tree.
struct Folders<'a> {
    /// Parents before children.
    list: Vec<Folder<'a>>,
}

struct Folder<'a> {
    path: &'a str,
    parent: Option<usize>,
    /// How many mentioned paths lie directly in it.
    mentions: i64,
    /// Bytes per path that the nearest alias already saves.
    saved: i64,
}

impl<'a> Folders<'a> {
    fn from_mentions(mentions: &BTreeMap<&'a str, i64>) -> Self {
        let mut places: BTreeMap<&str, usize> = BTreeMap::new();
        let mut list: Vec<Folder<'a>> = Vec::new();
        for (folder, count) in mentions {
            let ends = folder.match_indices('/').map(|(at, _)| at).chain([folder.len()]);
            let mut parent = None;
            for end in ends.filter(|end| *end > 0) {
                let path = &folder[..end];
                let place = *places.entry(path).or_insert_with(|| {
                    list.push(Folder { path, parent, mentions: 0, saved: 0 });
                    list.len() - 1
                });
                parent = Some(place);
            }
            if let Some(place) = parent {
                list[place].mentions += count;
            }
        }
        Self { list }
    }

    /// Greedily picks the folder whose alias saves most.
    fn choose(mut self) -> Vec<String> {
        let mut chosen = Vec::new();
        while chosen.len() < MAX_ALIASES {
            let mut gains = vec![0_i64; self.list.len()];
            for (place, folder) in self.list.iter().enumerate().filter(|(_, folder)| folder.mentions > 0) {
                let mut above = Some(place);
                while let Some(place) = above {
                    gains[place] += folder.mentions * (saving(self.list[place].path) - folder.saved).max(0);
                    above = self.list[place].parent;
                }
            }
            let gain = |place: usize| gains[place] - LEGEND_ENTRY_BYTES - self.list[place].path.len() as i64;
            let best = (0..self.list.len())
                .max_by_key(|place| (gain(*place), std::cmp::Reverse(self.list[*place].path)));
            let Some(best) = best.filter(|place| gain(*place) >= MIN_SAVING_BYTES) else { break };
            chosen.push(self.list[best].path.to_string());
            self.mark_saved(best);
        }
        chosen
    }

    /// Records what the new alias saves for everything below it.
    fn mark_saved(&mut self, best: usize) {
        let saving = saving(self.list[best].path);
        let mut below = vec![false; self.list.len()];
        for place in 0..self.list.len() {
            below[place] = place == best || self.list[place].parent.is_some_and(|parent| below[parent]);
            if below[place] {
                self.list[place].saved = self.list[place].saved.max(saving);
            }
        }
    }
}

/// Bytes that an alias for a folder saves each time.
fn saving(folder: &str) -> i64 {
    folder.len() as i64 + 1 - ALIAS_BYTES
}
