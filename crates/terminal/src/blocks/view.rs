//! [`ViewLines`]: a view as lines: what stays at the top and at the bottom, and what scrolls between.

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
        let ViewLines { head, rows, foot, chosen } = self;
        // On a very small screen the head and the last line of the foot are enough.
        let foot_room = height.saturating_sub(head.len() + 3).max(1);
        let foot = &foot[foot.len().saturating_sub(foot_room)..];
        let room = height.saturating_sub(head.len() + foot.len()).max(1);
        let first = match chosen {
            Some((_, end)) if *end > room => (end - room).min(rows.len().saturating_sub(room)),
            _ => 0,
        };
        let shown = rows.iter().skip(first).take(room);
        let mut lines: Vec<_> = head.iter().chain(shown).chain(foot).cloned().collect();
        lines.truncate(height);
        lines
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
            }
        }
    }
}
