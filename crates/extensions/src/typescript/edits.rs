//! [`Edits`]: changes of a source that keep every line and column.

use std::collections::BTreeMap;
use std::ops::Range;

/// What stands in the place of a range.
#[derive(Clone, Debug)]
enum Change {
    /// Blank space of the same width.
    Blank,
    /// The same, after a semicolon that ends the statement before.
    BlankStatement,
    /// A text without line breaks; the line breaks of the range follow it.
    Text(String),
}

/// Changes, by where they begin.
#[derive(Debug, Default)]
pub struct Edits {
    changes: BTreeMap<usize, (usize, Change)>,
    insertions: BTreeMap<usize, String>,
}

impl Edits {
    /// Leaves out a part of an expression or declaration.
    pub fn blank(&mut self, range: Range<usize>) {
        self.change(range, Change::Blank);
    }

    /// Leaves out a statement. Without a semicolon the statements around it could join.
    pub fn blank_statement(&mut self, range: Range<usize>) {
        self.change(range, Change::BlankStatement);
    }

    /// Puts `text`, which has no line break, in the place of a range.
    pub fn replace(&mut self, range: Range<usize>, text: &str) {
        self.change(range, Change::Text(text.to_owned()));
    }

    /// Adds `text`, which has no line break.
    pub fn insert(&mut self, at: usize, text: &str) {
        self.insertions.entry(at).or_default().push_str(text);
    }

    fn change(&mut self, range: Range<usize>, change: Change) {
        if range.is_empty() {
            return;
        }
        let longer = self.changes.get(&range.start).is_some_and(|(end, _)| *end >= range.end);
        if !longer {
            self.changes.insert(range.start, (range.end, change));
        }
    }

    /// Whether nothing of a range is left.
    pub fn covers(&self, range: &Range<usize>) -> bool {
        let before = self.changes.range(..=range.start).next_back();
        before.is_some_and(|(_, (end, _))| range.start < *end && range.end <= *end)
    }

    /// The source with all changes. A change within another one has no effect.
    pub fn apply(&self, source: &str) -> String {
        let mut text = String::with_capacity(source.len() + 64);
        let mut at = 0;
        for (start, (end, change)) in &self.changes {
            if *start < at {
                continue;
            }
            self.copy(source, at..*start, &mut text);
            let range = &source[*start..*end];
            match change {
                Change::Blank => text.extend(range.chars().map(blank)),
                Change::BlankStatement => {
                    text.push(';');
                    text.extend(range.chars().skip(1).map(blank));
                }
                Change::Text(new) => {
                    text.push_str(new);
                    text.extend(range.chars().filter(|character| *character == '\n'));
                }
            }
            at = *end;
        }
        self.copy(source, at..source.len(), &mut text);
        if let Some(last) = self.insertions.get(&source.len()) {
            text.push_str(last);
        }
        text
    }

    /// Copies a part of the source with what is inserted into it.
    fn copy(&self, source: &str, range: Range<usize>, text: &mut String) {
        let mut at = range.start;
        for (place, new) in self.insertions.range(range.clone()) {
            text.push_str(&source[at..*place]);
            text.push_str(new);
            at = *place;
        }
        text.push_str(&source[at..range.end]);
    }
}

fn blank(character: char) -> char {
    if matches!(character, '\n' | '\r' | '\t') { character } else { ' ' }
}
