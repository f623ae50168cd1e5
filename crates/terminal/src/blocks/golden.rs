//! What tests of blocks share: lines as text.

use ratatui::style::Style;
use ratatui::text::Line;

/// The lines as text, without white space at their ends.
pub(crate) fn drawing(lines: &[Line<'_>]) -> String {
    lines.iter().map(|line| line.to_string().trim_end().to_owned() + "\n").collect()
}

/// The parts with everything that a style sets.
pub(crate) fn marked(lines: &[Line<'_>], style: Style) -> Vec<String> {
    let has_style = |other: Style| {
        (style.bg.is_none() || other.bg == style.bg)
            && (style.fg.is_none() || other.fg == style.fg)
            && other.add_modifier.contains(style.add_modifier)
    };
    let spans = lines.iter().flat_map(|line| &line.spans);
    spans.filter(|span| has_style(span.style)).map(|span| span.content.to_string()).collect()
}
