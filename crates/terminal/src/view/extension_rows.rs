//! The rows of extensions: their widgets, and their words below the status line.

use ratatui::text::Line;

use crate::model::Model;
use crate::text::escape;
use crate::theme::Role;

/// Lines of widgets, at most `limit` of them. While something is asked there are none: they could imitate it.
pub(super) fn widget_rows(lines: &[String], limit: usize, model: &Model) -> Vec<Line<'static>> {
    if model.holds_text() {
        return Vec::new();
    }
    let all = lines.iter().flat_map(|line| line.split('\n'));
    let mut rows: Vec<Line<'static>> =
        all.clone().take(limit).map(|line| Line::raw(escape(line).into_owned())).collect();
    let more = all.count().saturating_sub(limit);
    if more > 0 {
        let text = format!("{} {more} more", model.theme.glyphs.ellipsis);
        rows.push(Line::styled(text, model.theme.style(Role::Quiet)));
    }
    rows
}

/// The words of all extensions in one row; none if there are none.
pub(super) fn status_row(model: &Model) -> Option<Line<'static>> {
    if model.holds_text() {
        return None;
    }
    let words: Vec<String> =
        model.extensions.statuses.iter().map(|text| escape(&text.replace('\n', " ")).into_owned()).collect();
    let separator = format!(" {} ", model.theme.glyphs.separator);
    (!words.is_empty()).then(|| Line::styled(words.join(&separator), model.theme.style(Role::Quiet)))
}
