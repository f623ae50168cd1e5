//! A whole file before and after a change, in two columns: for the view.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::{Code, DiffKind, DiffLine, FileDiff};
use crate::text::{hard_wrap, line_width};
use crate::theme::{Role, Theme};

/// Both states of the file beside each other, lines wrapped to their column. Returns the rows, and
/// the index of the first row of each change, to go from one to the next.
pub fn side_by_side(diff: &FileDiff, width: usize, theme: &Theme) -> (Vec<Line<'static>>, Vec<usize>) {
    let digits = diff.before.len().max(diff.after.len()).max(10).to_string().len();
    let column = width.saturating_sub(3) / 2;
    let bar = Span::styled(format!(" {} ", theme.glyphs.bar), theme.style(Role::Quiet));
    let code = diff.highlighted(theme);
    let mut rows = Vec::new();
    let mut changes = Vec::new();
    let mut at = 0;
    while at < diff.lines.len() {
        let (left, right) = block(&diff.lines[at..]);
        let is_change = diff.lines[at].kind != DiffKind::Same;
        if is_change {
            changes.push(rows.len());
        }
        for index in 0..left.len().max(right.len()) {
            let cell = |line: Option<&DiffLine>, number: fn(&DiffLine) -> Option<usize>| match line {
                Some(line) => cell_lines(diff, line, number(line), digits, column, &code, theme),
                None => Vec::new(),
            };
            let (left, right) =
                (cell(left.get(index), |line| line.old), cell(right.get(index), |line| line.new));
            for row in 0..left.len().max(right.len()) {
                let mut line = left.get(row).cloned().unwrap_or_default();
                let pad = column.saturating_sub(line_width(&line));
                line.spans.push(Span::raw(" ".repeat(pad)));
                line.spans.push(bar.clone());
                line.spans.extend(right.get(row).cloned().unwrap_or_default().spans);
                rows.push(line);
            }
        }
        at += if is_change { left.len() + right.len() } else { 1 };
    }
    (rows, changes)
}

/// The lines that stand beside each other: a line on both sides, or what is removed and added in its
/// place.
fn block(lines: &[DiffLine]) -> (&[DiffLine], &[DiffLine]) {
    if lines[0].kind == DiffKind::Same {
        return (&lines[..1], &lines[..1]);
    }
    let count = |lines: &[DiffLine], kind| lines.iter().take_while(|line| line.kind == kind).count();
    let removed = count(lines, DiffKind::Removed);
    let added = count(&lines[removed..], DiffKind::Added);
    (&lines[..removed], &lines[removed..removed + added])
}

fn cell_lines(
    diff: &FileDiff,
    line: &DiffLine,
    index: Option<usize>,
    digits: usize,
    column: usize,
    code: &Code,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let role = line.kind.role();
    let number_style = theme.style(if role == Role::Text { Role::Quiet } else { role });
    let number = index.map_or_else(String::new, |index| (index + 1).to_string());
    let head = format!("{number:>digits$} {} ", line.kind.sign());
    let indent = Span::styled(" ".repeat(head.len()), Style::new());
    let text =
        hard_wrap(&Line::from(diff.spans(line, code, theme)), column.saturating_sub(head.len()).max(1));
    let mut head = Some(Span::styled(head, number_style));
    text.into_iter()
        .map(|mut line| {
            line.spans.insert(0, head.take().unwrap_or_else(|| indent.clone()));
            line
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::golden::drawing;

    #[test]
    fn both_states_stand_beside_each_other() {
        let diff = FileDiff::new(
            "a.rs",
            "fn main() {\n    one();\n    two();\n}\n",
            "fn main() {\n    one(1);\n    two_with_a_long_name();\n    three();\n}\n",
        );
        let (rows, changes) = side_by_side(&diff, 46, &Theme::default());
        insta::assert_snapshot!("side_by_side", drawing(&rows));
        assert_eq!(changes, [1]);
    }
}
