//! [`ViewLines`]: a view as lines: what stays at the top and at the bottom, and what scrolls between.

use std::ops::Range;

use ratatui::text::Line;

/// The lines of a view.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ViewLines {
    /// Stays at the top.
    pub head: Vec<Line<'static>>,
    /// Scrolls.
    pub rows: Vec<Line<'static>>,
    /// Stays at the bottom.
    pub foot: Vec<Line<'static>>,
    /// The first and one past the last row of what is chosen.
    pub chosen: Option<(usize, usize)>,
}

impl ViewLines {
    /// The view on a screen of this height. What is chosen is visible, and as much around it as fits.
    pub fn fit(&self, height: usize) -> Vec<Line<'static>> {
        let ViewLines { head, rows, .. } = self;
        let foot = self.fitting_foot(height);
        let shown = self.shown_rows(height);
        let mut lines: Vec<_> = head.iter().chain(&rows[shown]).chain(foot).cloned().collect();
        lines.truncate(height);
        lines
    }

    /// The row of `rows` that a row of the screen shows; none for the head and the foot.
    pub fn row_on_screen(&self, height: usize, row: usize) -> Option<usize> {
        let shown = self.shown_rows(height);
        row.checked_sub(self.head.len()).map(|row| shown.start + row).filter(|row| shown.contains(row))
    }

    /// On a very small screen the head and the last line of the foot are enough.
    fn fitting_foot(&self, height: usize) -> &[Line<'static>] {
        let room = height.saturating_sub(self.head.len() + 3).max(1);
        &self.foot[self.foot.len().saturating_sub(room)..]
    }

    fn shown_rows(&self, height: usize) -> Range<usize> {
        let room = height.saturating_sub(self.head.len() + self.fitting_foot(height).len()).max(1);
        let first = match self.chosen {
            Some((_, end)) if end > room => (end - room).min(self.rows.len().saturating_sub(room)),
            _ => 0,
        };
        first..self.rows.len().min(first + room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_is_always_on_the_screen() {
        let line = |text: &str| Line::from(text.to_owned());
        let rows: Vec<_> = (0..50).map(|n| line(&n.to_string())).collect();
        for height in 4..60 {
            for chosen in 0..50 {
                let view = ViewLines {
                    head: vec![line("head")],
                    rows: rows.clone(),
                    foot: vec![line("facts"), line("keys")],
                    chosen: Some((chosen, chosen + 1)),
                };
                let lines = view.fit(height);
                assert!(lines.len() <= height);
                assert!(lines.contains(&rows[chosen]), "{height} {chosen}");
                assert_eq!(lines.last(), Some(&line("keys")));
                for (row, shown) in lines.iter().enumerate() {
                    let expected = view.row_on_screen(height, row).map_or(shown, |row| &rows[row]);
                    assert_eq!(shown, expected, "{height} {chosen} {row}");
                }
            }
        }
    }
}
