//! [`Parts`]: a line of parts with a separator between them, which gives way where it is narrow.

use ratatui::text::{Line, Span};

use crate::text::{line_width, width};
use crate::theme::{Role, Theme};

/// The parts of a line, in order: `done 0:41 · 4 requests · $0.031`.
#[derive(Clone, Debug)]
pub(super) struct Parts<'a> {
    theme: &'a Theme,
    parts: Vec<Vec<Span<'static>>>,
}

impl<'a> Parts<'a> {
    pub(super) fn new(theme: &'a Theme) -> Self {
        Parts { theme, parts: Vec::new() }
    }

    pub(super) fn push(&mut self, text: impl Into<String>, role: Role) {
        self.parts.push(vec![Span::styled(text.into(), self.theme.style(role))]);
    }

    pub(super) fn push_spans(&mut self, spans: Vec<Span<'static>>) {
        self.parts.push(spans);
    }

    fn separator(&self) -> Span<'static> {
        Span::styled(format!(" {} ", self.theme.glyphs.separator), self.theme.style(Role::Quiet))
    }

    /// All parts in one line, however long.
    pub(super) fn line(self, first: impl Into<Span<'static>>) -> Line<'static> {
        let separator = self.separator();
        let first = first.into();
        let mut spans = if first.content.is_empty() { Vec::new() } else { vec![first] };
        for (index, part) in self.parts.into_iter().enumerate() {
            if index > 0 {
                spans.push(separator.clone());
            }
            spans.extend(part);
        }
        Line::from(spans)
    }

    /// The parts in lines of at most `columns`, broken between parts, each behind `indent` spaces.
    pub(super) fn lines(self, columns: usize, indent: usize) -> Vec<Line<'static>> {
        let separator = self.separator();
        let indent = " ".repeat(indent);
        let mut lines: Vec<Line<'static>> = Vec::new();
        for part in self.parts {
            let needed: usize = part.iter().map(|span| width(&span.content)).sum();
            match lines.last_mut() {
                Some(line) if line_width(line) + width(&separator.content) + needed <= columns => {
                    line.spans.push(separator.clone());
                    line.spans.extend(part);
                }
                _ => {
                    let mut line = Line::from(part);
                    if !indent.is_empty() {
                        line.spans.insert(0, Span::raw(indent.clone()));
                    }
                    lines.push(line);
                }
            }
        }
        lines
    }
}
