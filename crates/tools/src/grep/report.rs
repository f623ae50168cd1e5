//! [`GrepReport`]: the answer of a search, which takes matches file by file until it is full.

use serde_json::json;

use crate::limits::{LimitReached, LimitedLines, pluralize};
use crate::tool::ToolOutcome;

use super::search::{LineKind, ReportLine, SearchedFile};

/// The matches of the files added so far.
pub(super) struct GrepReport {
    lines: LimitedLines,
    limit: usize,
    matches: usize,
    /// How many files have matches.
    files: usize,
    searched: usize,
    binary: usize,
    unreadable: usize,
    full: Option<LimitReached>,
}

impl GrepReport {
    pub fn new(limit: usize) -> Self {
        GrepReport {
            lines: LimitedLines::new(usize::MAX),
            limit,
            matches: 0,
            files: 0,
            searched: 0,
            binary: 0,
            unreadable: 0,
            full: None,
        }
    }

    /// Whether nothing more can be shown.
    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    /// Adds the result of one file. `path` is shown as it is.
    pub fn add_file(&mut self, path: &str, found: SearchedFile) {
        if self.is_full() {
            return;
        }
        match found {
            SearchedFile::Lines(lines) => {
                self.searched += 1;
                let before = self.matches;
                self.full = self.add_lines(path, &lines).err();
                self.files += usize::from(self.matches > before);
            }
            SearchedFile::Binary => self.binary += 1,
            SearchedFile::Unreadable => self.unreadable += 1,
            SearchedFile::Nothing => {}
        }
    }

    fn add_lines(&mut self, path: &str, lines: &[ReportLine]) -> Result<(), LimitReached> {
        // With context there is a gap between two files, too.
        let has_context = lines.iter().any(|line| line.kind != LineKind::Match);
        let mut waiting: Vec<&ReportLine> = Vec::new();
        let gap = ReportLine { kind: LineKind::Gap, number: 0, text: String::new() };
        if has_context && self.matches > 0 {
            waiting.push(&gap);
        }
        for line in lines {
            match line.kind {
                // Shown only if the match after them is.
                LineKind::Before | LineKind::Gap => waiting.push(line),
                LineKind::After => self.lines.push(&format_line(path, line))?,
                LineKind::Match if self.matches == self.limit => return Err(LimitReached::Lines),
                LineKind::Match => {
                    for line in waiting.drain(..) {
                        self.lines.push(&format_line(path, line))?;
                    }
                    self.lines.push(&format_line(path, line))?;
                    self.matches += 1;
                }
            }
        }
        Ok(())
    }

    /// The answer, with notices about what is missing from it.
    pub fn into_outcome(self) -> ToolOutcome {
        let mut notices = Vec::new();
        let narrow = "narrow pattern, path or glob";
        match self.full {
            Some(LimitReached::Lines) => {
                let matches = pluralize(self.matches, "match", "matches");
                notices.push(format!("the first {matches}; {narrow}, or raise limit"));
            }
            Some(LimitReached::Bytes) => {
                let matches = pluralize(self.matches, "match", "matches");
                notices.push(format!("the first {matches}, 50 KB; {narrow}"));
            }
            None if self.matches == 0 => {
                notices.push(format!("no match in {}", pluralize(self.searched, "file", "files")));
            }
            None => {}
        }
        if self.binary > 0 {
            notices.push(format!("{} skipped", pluralize(self.binary, "binary file", "binary files")));
        }
        if self.unreadable > 0 {
            notices.push(format!("{} could not be searched", pluralize(self.unreadable, "file", "files")));
        }
        let details = json!({
            "matches": self.matches,
            "files": self.files,
            "cut": self.full.is_some(),
            "binary": self.binary,
            "unreadable": self.unreadable,
        });
        ToolOutcome::text(self.lines.append_notices(&notices)).with_details(details)
    }
}

fn format_line(path: &str, line: &ReportLine) -> String {
    let ReportLine { kind, number, text } = line;
    match kind {
        LineKind::Match => format!("{path}:{number}:{text}"),
        LineKind::Before | LineKind::After => format!("{path}-{number}-{text}"),
        LineKind::Gap => "--".to_owned(),
    }
}
