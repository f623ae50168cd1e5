//! The input line with its completions, and the lines that take its place: the search of the history,
//! the reason for a no, the answer to a question.

use ratatui::text::{Line, Span};

use crate::editor::{EditBuffer, EditorRows};
use crate::model::{ApprovalFocus, FaceState, Model};
use crate::screen::CursorPlace;
use crate::text::{escape, pad_right, truncate, width};
use crate::theme::Role;

/// Columns that the names of completions take at most.
const NAME_COLUMNS: usize = 40;

/// Rows, and where the cursor stands in them.
pub(super) struct InputRows {
    pub(super) rows: Vec<Line<'static>>,
    pub(super) cursor: CursorPlace,
}

/// The line that keys go to, in at most `most` rows.
pub(super) fn input_rows(model: &Model, most: usize) -> InputRows {
    let prompt = format!("{} ", model.theme.glyphs.prompt);
    match (model.state(), &model.approval_focus, &model.question) {
        (FaceState::ApprovalReason, ApprovalFocus::Reason { reason }, _) => {
            return buffer_rows(model, &format!("no, because {prompt}"), reason, most);
        }
        (FaceState::Question, _, Some(question)) => {
            if question.prompt.is_secret {
                return buffer_rows(model, &prompt, &masked(&question.answer), most);
            }
            return buffer_rows(model, &prompt, &question.answer, most);
        }
        _ => {}
    }
    if let Some((search, found)) = model.editor.search() {
        let head = format!("history {prompt}{}", escape(&search.query));
        let cursor = CursorPlace { row: 0, column: width(&head) };
        let found = match found {
            Some(found) => format!("   {}", escape(&found.lines().collect::<Vec<_>>().join(" "))),
            None => "   nothing found".to_owned(),
        };
        let found = Span::styled(found, model.theme.style(Role::Quiet));
        return InputRows { rows: vec![Line::from(vec![Span::raw(head), found])], cursor };
    }
    let mut input = rows_of(model, &prompt, &model.editor.rows(), most);
    if let Some((rest, last)) = model.editor.suggestion().zip(input.rows.last_mut()) {
        last.spans.push(Span::styled(escape(rest).into_owned(), model.theme.style(Role::Quiet)));
    }
    input
}

/// As many stars as there are characters, with the cursor at its place.
fn masked(answer: &EditBuffer) -> EditBuffer {
    let stars = |text: &str| "*".repeat(text.chars().count());
    let mut shown = EditBuffer::default();
    shown.set_text(&stars(answer.text()));
    shown.move_to(stars(&answer.text()[..answer.cursor()]).len());
    shown
}

fn buffer_rows(model: &Model, prompt: &str, buffer: &EditBuffer, most: usize) -> InputRows {
    let columns = usize::from(model.size.columns).saturating_sub(width(prompt));
    rows_of(model, prompt, &EditorRows::new(buffer, columns), most)
}

fn rows_of(model: &Model, prompt: &str, rows: &EditorRows, most: usize) -> InputRows {
    let indent = width(prompt);
    // The rows around the cursor, the last ones if all behind it fit.
    let first = (rows.row + 1).saturating_sub(most).max(rows.rows.len().saturating_sub(most).min(rows.row));
    let shown = rows.rows.iter().enumerate().skip(first).take(most);
    let line = |(index, row): (usize, &crate::editor::EditorRow)| {
        let head = match index {
            0 => Span::styled(prompt.to_owned(), model.theme.style(Role::Accent)),
            _ => Span::raw(" ".repeat(indent)),
        };
        Line::from(vec![head, Span::raw(row.text.clone())])
    };
    let cursor = CursorPlace { row: rows.row - first, column: indent + rows.column };
    InputRows { rows: shown.map(line).collect(), cursor }
}

/// The completions, above the line.
pub(super) fn list_rows(model: &Model) -> Vec<Line<'static>> {
    let Some(list) = model.editor.list() else { return Vec::new() };
    let columns = usize::from(model.size.columns);
    let ellipsis = model.theme.glyphs.ellipsis;
    let name = |text: &str| escape(text.trim_end()).into_owned();
    let widest = list.items.iter().map(|item| width(&name(&item.text))).max().unwrap_or(0);
    let widest = widest.min(NAME_COLUMNS).min(columns.saturating_sub(2) / 2 + 4);
    let row = |(index, item): (usize, &crate::editor::Completion)| {
        let is_marked = index == list.marked;
        let mark = if is_marked { format!("{} ", model.theme.glyphs.prompt) } else { "  ".to_owned() };
        let style = if is_marked { model.theme.bold(Role::Accent) } else { model.theme.style(Role::Text) };
        let name = pad_right(&truncate(&name(&item.text), widest, ellipsis), widest);
        let room = columns.saturating_sub(widest + 4);
        let detail = truncate(&escape(&item.detail), room, ellipsis);
        Line::from(vec![
            Span::styled(mark, style),
            Span::styled(name, style),
            Span::styled(format!("  {detail}"), model.theme.style(Role::Quiet)),
        ])
    };
    list.items.iter().enumerate().map(row).collect()
}
