//! Short names for folders: `@1/retry.rs` for `crates/net/src/retry.rs`.

use std::collections::BTreeMap;

use super::LEGEND;
use crate::index::{File, Index};
use crate::resolve::{FileId, split};

/// A short name must save at least this many bytes over the whole map, its line in the legend paid.
const WORTH: i64 = 40;
/// More short names than this nobody remembers.
const MOST: usize = 40;
/// `@1/` in place of the folder. Two digits are rare enough.
const SHORT: i64 = 3;
/// ` @1=` in the legend.
const ENTRY: i64 = 4;

/// Folders with short names: the first is `@1`.
pub(super) struct Aliases {
    folders: Vec<String>,
    /// By folder.
    numbers: BTreeMap<String, usize>,
}

impl Aliases {
    pub(super) fn known(folders: &[String]) -> Self {
        let numbers = folders.iter().enumerate().map(|(at, folder)| (folder.clone(), at + 1)).collect();
        Self { folders: folders.to_vec(), numbers }
    }

    /// Chooses over all paths that a map of these files mentions.
    pub(super) fn choose(index: &Index, files: &[(FileId, &File)]) -> Self {
        let mut mentions: BTreeMap<&str, i64> = BTreeMap::new();
        for (_, file) in files {
            *mentions.entry(split(&file.path).0).or_default() += 1;
            for path in index.local_imports(file) {
                *mentions.entry(split(path).0).or_default() += 1;
            }
        }
        let mut chosen = Folders::of(&mentions).choose();
        chosen.sort_unstable();
        Self::known(&chosen)
    }

    /// A path with the short name of its nearest folder that has one.
    pub(super) fn shorten(&self, path: &str) -> String {
        let mut folder = split(path).0;
        while !folder.is_empty() {
            if let Some(number) = self.numbers.get(folder) {
                return format!("@{number}/{}", visible(&path[folder.len() + 1..]));
            }
            folder = split(folder).0;
        }
        // A name that begins like a short one says that it is none.
        let prefix = if path.starts_with('@') { "./" } else { "" };
        format!("{prefix}{}", visible(path))
    }

    pub(super) fn legend(&self) -> String {
        let mut legend = LEGEND.to_string();
        let entries =
            self.folders.iter().enumerate().map(|(at, folder)| format!("@{}={}", at + 1, visible(folder)));
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

/// A path on one line, whatever it holds.
fn visible(path: &str) -> String {
    if path.chars().any(char::is_control) { path.escape_debug().to_string() } else { path.to_string() }
}

/// The folders of all mentioned paths as a tree.
struct Folders<'a> {
    /// Parents before children.
    list: Vec<Folder<'a>>,
}

struct Folder<'a> {
    path: &'a str,
    parent: Option<usize>,
    /// Paths directly in it.
    mentions: i64,
    /// Bytes that its nearest short name saves for each of them already.
    saved: i64,
}

impl<'a> Folders<'a> {
    fn of(mentions: &BTreeMap<&'a str, i64>) -> Self {
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

    /// Takes what saves most, again and again.
    fn choose(mut self) -> Vec<String> {
        let mut chosen = Vec::new();
        while chosen.len() < MOST {
            let mut gains = vec![0_i64; self.list.len()];
            for (place, folder) in self.list.iter().enumerate().filter(|(_, folder)| folder.mentions > 0) {
                let mut above = Some(place);
                while let Some(place) = above {
                    gains[place] += folder.mentions * (saving(self.list[place].path) - folder.saved).max(0);
                    above = self.list[place].parent;
                }
            }
            let gain = |place: usize| gains[place] - ENTRY - self.list[place].path.len() as i64;
            let best = (0..self.list.len())
                .max_by_key(|place| (gain(*place), std::cmp::Reverse(self.list[*place].path)));
            let Some(best) = best.filter(|place| gain(*place) >= WORTH) else { break };
            chosen.push(self.list[best].path.to_string());
            self.cover(best);
        }
        chosen
    }

    /// Notes what the new short name saves for everything below it.
    fn cover(&mut self, best: usize) {
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

/// What a short name for a folder saves each time.
fn saving(folder: &str) -> i64 {
    folder.len() as i64 + 1 - SHORT
}
