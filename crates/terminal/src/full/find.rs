//! Text within blocks, whatever its case.

use std::ops::Range;

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

/// What is searched for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needle(Vec<char>);

impl Needle {
    pub(super) fn new(text: &str) -> Self {
        Needle(text.chars().map(lower).collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        self.find(text, 0).is_some()
    }

    /// The first place at or behind a byte.
    fn find(&self, text: &str, from: usize) -> Option<Range<usize>> {
        let first = *self.0.first()?;
        let starts = text[from..].char_indices().filter(|(_, c)| lower(*c) == first);
        starts.map(|(at, _)| from + at).find_map(|start| {
            let mut rest = text[start..].chars();
            let is_here = self.0.iter().all(|wanted| rest.next().is_some_and(|c| lower(c) == *wanted));
            is_here.then(|| start..text.len() - rest.as_str().len())
        })
    }

    /// The line with the places where the text is reversed.
    pub(super) fn mark(&self, line: Line<'static>) -> Line<'static> {
        let text = line.to_string();
        let mut marked: Vec<Range<usize>> = Vec::new();
        while let Some(found) = self.find(&text, marked.last().map_or(0, |last| last.end)) {
            marked.push(found);
        }
        if marked.is_empty() {
            return line;
        }
        let mut spans = Vec::new();
        let mut start = 0;
        for span in line.spans {
            let end = start + span.content.len();
            let mut at = start;
            for found in marked.iter().filter(|found| found.start < end && found.end > start) {
                let (from, to) = (found.start.max(start), found.end.min(end));
                let part =
                    |range: Range<usize>| span.content[range.start - start..range.end - start].to_owned();
                if at < from {
                    spans.push(Span::styled(part(at..from), span.style));
                }
                spans.push(Span::styled(part(from..to), span.style.add_modifier(Modifier::REVERSED)));
                at = to;
            }
            if at < end {
                spans.push(Span::styled(span.content[at - start..].to_owned(), span.style));
            }
            start = end;
        }
        Line { spans, ..line }
    }

    /// The rows in which the text begins; it may go on in the next one.
    pub(super) fn rows_in(&self, rows: &[Line<'static>]) -> Vec<usize> {
        let texts: Vec<String> = rows.iter().map(ToString::to_string).collect();
        let begins_in = |row: &usize| {
            let text = &texts[*row];
            if self.is_in(text) {
                return true;
            }
            let Some(next) = texts.get(row + 1).filter(|next| !self.is_in(next)) else { return false };
            // Broken between words, or within one.
            self.is_in(&format!("{} {}", text.trim_end(), next.trim_start()))
                || self.is_in(&format!("{text}{}", next.trim_start()))
        };
        (0..rows.len()).filter(begins_in).collect()
    }
}

/// The lower case of a character, if that is one character.
fn lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_found_and_marked_whatever_its_case_and_its_styles() {
        let line = Line::from(vec![Span::raw("a GRÜ"), Span::raw("sse and grüsse")]);
        let marked = Needle::new("Grüsse").mark(line);
        let parts: Vec<(String, bool)> = marked
            .spans
            .iter()
            .map(|span| (span.content.to_string(), span.style.add_modifier.contains(Modifier::REVERSED)))
            .collect();
        let expected = [("a ", false), ("GRÜ", true), ("sse", true), (" and ", false), ("grüsse", true)];
        assert_eq!(parts, expected.map(|(text, is_marked)| (text.to_owned(), is_marked)));
    }

    #[test]
    fn text_that_is_broken_between_rows_is_found_in_the_first_of_them() {
        let rows = ["one two", "three fo", "ur", "two three"].map(Line::from);
        assert_eq!(Needle::new("two three").rows_in(&rows), [0, 3]);
        assert_eq!(Needle::new("four").rows_in(&rows), [1]);
        assert_eq!(Needle::new("ur").rows_in(&rows), [2]);
    }
}
