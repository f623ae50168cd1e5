//! Blocks in the full screen, where a part of them can be folded away: the output of a call,
//! reasoning, long output of commands.

use ratatui::text::{Line, Span};

use super::{BlockSource, CallRecord};
use crate::blocks::format::counted;
use crate::blocks::{CallState, output_lines};
use crate::text::{PROSE_WIDTH, escape, wrap_indented};
use crate::theme::{Role, Theme};

/// Lines that stay of a long output when it is folded: its end, where the result is.
pub const FOLDED_TAIL: usize = 10;

/// Output of more lines is folded at first.
const LONG_OUTPUT: usize = 40;

impl CallRecord {
    /// The output, which a failed call keeps with its state.
    fn whole_output(&self) -> &str {
        match &self.call.state {
            CallState::Failed { output, .. } if self.output.is_empty() => output,
            _ => &self.output,
        }
    }

    /// What is shown below the call when it is unfolded: the diff, or else the output.
    fn body(&self, theme: &Theme) -> Vec<Line<'static>> {
        match self.details.is_empty() {
            true => output_lines(self.whole_output(), theme),
            false => self.details.clone(),
        }
    }

    fn body_lines(&self) -> usize {
        match self.details.len() {
            0 => self.whole_output().trim_end().lines().count(),
            lines => lines,
        }
    }
}

impl BlockSource {
    /// Whether a part of it can be folded away.
    pub fn can_fold(&self) -> bool {
        match self {
            BlockSource::Reasoning { text, .. } => !text.trim().is_empty(),
            BlockSource::Call(record) => record.body_lines() > 0,
            BlockSource::Output(text) | BlockSource::Reply(text) => {
                text.lines().nth(FOLDED_TAIL + 1).is_some()
            }
            BlockSource::Lines(lines) => lines.len() > FOLDED_TAIL + 1,
            BlockSource::Prompt(_)
            | BlockSource::Answer(_)
            | BlockSource::Marked { .. }
            | BlockSource::Image(_)
            | BlockSource::Summary(_) => false,
        }
    }

    /// Whether it is folded until the person unfolds it. What is asked about never is.
    pub fn is_folded_at_first(&self) -> bool {
        match self {
            BlockSource::Reasoning { .. } | BlockSource::Call(_) => true,
            BlockSource::Output(text) | BlockSource::Reply(text) => text.lines().nth(LONG_OUTPUT).is_some(),
            _ => false,
        }
    }

    /// Bytes and lines that are shown in the full screen, about: for estimates of its height.
    pub fn size(&self, is_unfolded: bool) -> (usize, usize) {
        let of_text = |text: &str| (text.len(), 1 + text.bytes().filter(|byte| *byte == b'\n').count());
        match self {
            BlockSource::Reasoning { .. } | BlockSource::Call(_) if !is_unfolded => (0, 2),
            BlockSource::Output(_) | BlockSource::Reply(_) if !is_unfolded => (0, FOLDED_TAIL + 1),
            BlockSource::Prompt(text)
            | BlockSource::Answer(text)
            | BlockSource::Reasoning { text, .. }
            | BlockSource::Marked { text, .. }
            | BlockSource::Output(text)
            | BlockSource::Reply(text) => of_text(text),
            BlockSource::Call(record) => (record.whole_output().len(), 2 + record.body_lines()),
            BlockSource::Lines(lines) => (0, lines.len()),
            BlockSource::Image(_) | BlockSource::Summary(_) => (0, 1),
        }
    }

    /// The lines for the full screen.
    pub fn full_lines(&self, columns: usize, theme: &Theme, is_unfolded: bool) -> Vec<Line<'static>> {
        let mut lines = match self {
            BlockSource::Call(record) => {
                // The diff is part of what is folded.
                let mut lines = record.call.lines(columns, theme);
                if is_unfolded {
                    lines.truncate(1);
                }
                lines
            }
            _ => self.lines(columns, theme),
        };
        if !self.can_fold() {
            return lines;
        }
        match self {
            BlockSource::Reasoning { text, .. } => {
                let mark = format!("{} ", mark(is_unfolded, theme));
                if let Some(first) = lines.first_mut().and_then(|line| line.spans.first_mut()) {
                    *first = Span::styled(mark, theme.style(Role::Quiet));
                }
                if is_unfolded {
                    lines.extend(reasoning_lines(text, columns, theme));
                }
            }
            BlockSource::Call(record) => {
                let hidden = record.body_lines();
                lines.insert(1, fold_line(hidden, is_unfolded, "  ", theme));
                if is_unfolded {
                    lines.extend(record.body(theme));
                }
            }
            BlockSource::Output(_) | BlockSource::Reply(_) | BlockSource::Lines(_) => {
                let count = lines.len();
                if !is_unfolded {
                    lines.drain(..count.saturating_sub(FOLDED_TAIL));
                    lines.insert(0, fold_line(count - lines.len(), false, "", theme));
                }
            }
            _ => {}
        }
        lines
    }
}

fn mark(is_unfolded: bool, theme: &Theme) -> &'static str {
    if is_unfolded { theme.glyphs.unfolded } else { theme.glyphs.folded }
}

/// The line that stands for what is folded: `▸ 133 lines`.
fn fold_line(lines: usize, is_unfolded: bool, indent: &str, theme: &Theme) -> Line<'static> {
    let text = format!("{indent}{} {}", mark(is_unfolded, theme), counted(lines, "line", "lines"));
    Line::styled(text, theme.style(Role::Quiet))
}

fn reasoning_lines(text: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let columns = columns.min(PROSE_WIDTH);
    let indent = Span::raw("  ");
    let wrapped = |line: &str| {
        let spans = [Span::styled(escape(line).into_owned(), theme.style(Role::Quiet))];
        wrap_indented(&spans, columns, &indent, &indent)
    };
    text.trim().lines().flat_map(wrapped).collect()
}
