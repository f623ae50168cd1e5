//! Help, from groups of keys.

use ratatui::text::{Line, Span};

use crate::text::{line_width, pad_right, width};
use crate::theme::{Role, Theme};

/// The keys by group: the name of the group, and keys with what they do. Keys that do not fit beside
/// the others go to the next line.
pub fn help_lines(
    groups: &[(String, Vec<(String, String)>)],
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let label = groups.iter().map(|(name, _)| width(name)).max().unwrap_or(0) + 3;
    let mut lines = Vec::new();
    for (name, keys) in groups {
        let head =
            |text: &str| Span::styled(format!(" {}", pad_right(text, label)), theme.style(Role::Quiet));
        let mut line = Line::from(vec![head(name)]);
        let mut is_first = true;
        for (key, what) in keys {
            let needed = width(key) + 1 + width(what);
            if !is_first && line_width(&line) + 3 + needed > columns {
                lines.push(std::mem::replace(&mut line, Line::from(vec![head("")])));
                is_first = true;
            }
            if !is_first {
                line.spans.push(Span::raw("   "));
            }
            is_first = false;
            line.spans.push(Span::styled(key.clone(), theme.style(Role::Accent)));
            line.spans.push(Span::raw(format!(" {what}")));
        }
        lines.push(line);
    }
    lines
}
