//! The answer of a search: matches in the order in which files are added, until it is full.

use serde_json::json;

use crate::limits::{Full, Lines, counted};
use crate::tool::Outcome;

use super::search::{Found, Kind, Line};

/// The matches so far.
pub(super) struct Report {
    lines: Lines,
    limit: usize,
    matches: usize,
    /// Files with matches.
    files: usize,
    searched: usize,
    binary: usize,
    unreadable: usize,
    full: Option<Full>,
}

impl Report {
    pub fn new(limit: usize) -> Self {
        Report {
            lines: Lines::new(usize::MAX),
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

    /// Adds what was found in a file.
    pub fn add(&mut self, path: &str, found: Found) {
        if self.is_full() {
            return;
        }
        match found {
            Found::Lines(lines) => {
                self.searched += 1;
                let before = self.matches;
                self.full = self.add_lines(path, &lines).err();
                self.files += usize::from(self.matches > before);
            }
            Found::Binary => self.binary += 1,
            Found::Unreadable => self.unreadable += 1,
            Found::Nothing => {}
        }
    }

    fn add_lines(&mut self, path: &str, lines: &[Line]) -> Result<(), Full> {
        // A gap between two files, too, where there is context.
        let has_context = lines.iter().any(|line| line.kind != Kind::Match);
        let mut waiting: Vec<&Line> = Vec::new();
        let gap = Line { kind: Kind::Gap, number: 0, text: String::new() };
        if has_context && self.matches > 0 {
            waiting.push(&gap);
        }
        for line in lines {
            match line.kind {
                // These are shown only if the match that they lead to is.
                Kind::Before | Kind::Gap => waiting.push(line),
                Kind::After => self.lines.push(&shown(path, line))?,
                Kind::Match if self.matches == self.limit => return Err(Full::Lines),
                Kind::Match => {
                    for line in waiting.drain(..) {
                        self.lines.push(&shown(path, line))?;
                    }
                    self.lines.push(&shown(path, line))?;
                    self.matches += 1;
                }
            }
        }
        Ok(())
    }

    /// The answer, with what should be known of it.
    pub fn outcome(self) -> Outcome {
        let mut notices = Vec::new();
        let narrow = "narrow pattern, path or glob";
        match self.full {
            Some(Full::Lines) => {
                let matches = counted(self.matches, "match", "matches");
                notices.push(format!("the first {matches}; {narrow}, or raise limit"));
            }
            Some(Full::Bytes) => {
                let matches = counted(self.matches, "match", "matches");
                notices.push(format!("the first {matches}, 50 KB; {narrow}"));
            }
            None if self.matches == 0 => {
                notices.push(format!("no match in {}", counted(self.searched, "file", "files")));
            }
            None => {}
        }
        if self.binary > 0 {
            notices.push(format!("{} skipped", counted(self.binary, "binary file", "binary files")));
        }
        if self.unreadable > 0 {
            notices.push(format!("{} could not be searched", counted(self.unreadable, "file", "files")));
        }
        let details = json!({
            "matches": self.matches,
            "files": self.files,
            "cut": self.full.is_some(),
            "binary": self.binary,
            "unreadable": self.unreadable,
        });
        Outcome::text(self.lines.with_notices(&notices)).with_details(details)
    }
}

fn shown(path: &str, line: &Line) -> String {
    let Line { kind, number, text } = line;
    match kind {
        Kind::Match => format!("{path}:{number}:{text}"),
        Kind::Before | Kind::After => format!("{path}-{number}-{text}"),
        Kind::Gap => "--".to_owned(),
    }
}
