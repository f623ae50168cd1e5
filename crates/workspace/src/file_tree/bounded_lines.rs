//! [`FileTree::lines_within`]: a list of files as lines of bounded length.

use hardpan_prompt::folder_line;

use super::FileTree;

impl FileTree {
    /// The files as lines of at most `bytes` bytes in all. If there are too many, the deepest
    /// folders become one line each, `src/parser/ (12 files)`, then those above them. Also returns
    /// how many files such lines stand for.
    pub fn lines_within(&self, bytes: usize) -> (Vec<String>, usize) {
        match LineSizes::of(&self.files).greatest_depth_within(bytes) {
            None => (self.files.clone(), 0),
            Some(depth) => fold_at(&self.files, depth),
        }
    }
}

/// How long a list would be for each depth at which its folders become one line. Measured in one pass,
/// without a copy: lists have up to 100,000 files, and one more file is no reason to read all of them
/// several times.
#[derive(Default)]
struct LineSizes {
    /// Bytes of the files by the number of folders that they are in.
    files: Vec<usize>,
    /// Bytes of the folders' lines by the number of folders that those are in.
    folders: Vec<usize>,
}

/// A folder of the file that was looked at last.
struct OpenFolder {
    /// Where its name ends in the path of that file, after the slash.
    end: usize,
    files: usize,
}

impl LineSizes {
    /// The files are sorted, so that those of a folder stand together.
    fn of(files: &[String]) -> Self {
        let mut sizes = LineSizes::default();
        let mut open: Vec<OpenFolder> = Vec::new();
        let mut previous = "";
        for path in files {
            while open.last().is_some_and(|folder| !path.starts_with(&previous[..folder.end])) {
                sizes.close(&mut open);
            }
            let start = open.last().map_or(0, |folder| folder.end);
            let slashes = path[start..].bytes().enumerate().filter(|(_, byte)| *byte == b'/');
            open.extend(slashes.map(|(at, _)| OpenFolder { end: start + at + 1, files: 0 }));
            open.iter_mut().last().into_iter().for_each(|folder| folder.files += 1);
            add_at(&mut sizes.files, open.len(), path.len() + 1);
            previous = path;
        }
        while !open.is_empty() {
            sizes.close(&mut open);
        }
        sizes
    }

    /// Ends the deepest folder: its files are some of the one above it, too.
    fn close(&mut self, open: &mut Vec<OpenFolder>) {
        let Some(OpenFolder { end, files }) = open.pop() else { return };
        add_at(&mut self.folders, open.len(), end + folder_line("", files).len() + 1);
        open.iter_mut().last().into_iter().for_each(|above| above.files += files);
    }

    /// The greatest depth at which folders must become lines; `None` if all files have room. 0 if
    /// nothing has.
    fn greatest_depth_within(&self, bytes: usize) -> Option<usize> {
        let mut total: usize = self.files.iter().sum();
        let mut depth = self.files.len().saturating_sub(1);
        if total <= bytes || depth == 0 {
            return None;
        }
        loop {
            // Files below the folders of this depth are in their lines, and so are deeper folders.
            total -= self.files[depth];
            depth -= 1;
            if depth == 0 || total + self.folders[depth] <= bytes {
                return Some(depth);
            }
        }
    }
}

fn add_at(sums: &mut Vec<usize>, at: usize, bytes: usize) {
    if sums.len() <= at {
        sums.resize(at + 1, 0);
    }
    sums[at] += bytes;
}

/// The list with one line for each folder that is in `depth` others, and the number of files in those.
fn fold_at(files: &[String], depth: usize) -> (Vec<String>, usize) {
    let (mut lines, mut hidden) = (Vec::new(), 0);
    let mut rest = files;
    while let Some(path) = rest.first() {
        let Some((end, _)) = path.match_indices('/').nth(depth) else {
            lines.push(path.clone());
            rest = &rest[1..];
            continue;
        };
        let count = rest.partition_point(|file| file.starts_with(&path[..=end]));
        lines.push(folder_line(&path[..=end], count));
        hidden += count;
        rest = &rest[count..];
    }
    lines.sort_unstable();
    (lines, hidden)
}
