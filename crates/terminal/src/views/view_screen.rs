//! [`ViewScreen`]: frames of views as bytes for the alternate screen. Rows that did not change are not
//! written again.

use super::ViewFrame;
use crate::screen::{EncodedRow, ScreenSize};
use crate::text::isolate_rtl;

/// What is on the alternate screen.
#[derive(Clone, Debug, Default)]
pub struct ViewScreen {
    /// The size that the rows were drawn for; none if the screen has to be drawn anew.
    size: Option<ScreenSize>,
    rows: Vec<String>,
    cursor: (usize, usize),
}

impl ViewScreen {
    /// Draws everything the next time.
    pub fn forget(&mut self) {
        *self = ViewScreen::default();
    }

    /// The bytes that bring a frame onto the screen; empty if it is there already.
    pub fn draw(&mut self, frame: &ViewFrame, size: ScreenSize) -> String {
        let (columns, height) = (usize::from(size.columns), usize::from(size.rows));
        let is_new = self.size != Some(size);
        if is_new {
            *self = ViewScreen { size: Some(size), ..ViewScreen::default() };
        }
        let mut out = String::new();
        for row in 0..height {
            let bytes = frame.rows.get(row).map_or_else(String::new, |line| {
                // Nothing is written into the last cell: some terminals scroll then.
                let columns = if row + 1 == height { columns.saturating_sub(1) } else { columns };
                EncodedRow::clipped(&isolate_rtl(line.clone()), columns).bytes
            });
            if !is_new && self.rows.get(row) == Some(&bytes) {
                continue;
            }
            out.push_str(&format!("\x1b[{};1H\x1b[K{bytes}", row + 1));
            if row < self.rows.len() {
                self.rows[row] = bytes;
            } else {
                self.rows.push(bytes);
            }
        }
        let last = (height.saturating_sub(1), 0);
        let cursor = frame.cursor.unwrap_or(last);
        let cursor = (cursor.0.min(last.0), cursor.1.min(columns.saturating_sub(1)));
        if out.is_empty() && cursor == self.cursor {
            return out;
        }
        self.cursor = cursor;
        format!("\x1b[?2026h{out}\x1b[{};{}H\x1b[?2026l", cursor.0 + 1, cursor.1 + 1)
    }
}

#[cfg(test)]
mod tests {
    use ratatui::text::Line;

    use super::*;

    fn frame(rows: &[&str]) -> ViewFrame {
        ViewFrame { rows: rows.iter().map(|row| Line::from((*row).to_owned())).collect(), cursor: None }
    }

    #[test]
    fn the_screen_holds_the_last_frame_and_only_changed_rows_are_written() {
        let mut screen = ViewScreen::default();
        let mut parser = vt100::Parser::new(4.try_into().unwrap(), 10.try_into().unwrap(), 0);
        let size = ScreenSize { columns: 10, rows: 4 };
        let frames: [&[&str]; 4] =
            [&["one", "two", "three", "0123456789ab"], &["one", "2"], &[], &["a\u{1b}[2Jb"]];
        for rows in frames {
            parser.process(screen.draw(&frame(rows), size).as_bytes());
            let shown: Vec<String> = parser.screen().rows(0, 10).collect();
            for (index, row) in shown.iter().enumerate() {
                let expected = rows.get(index).map_or("", |row| row).replace('\u{1b}', "");
                let room = if index == 3 { 9 } else { 10 };
                assert_eq!(*row, expected.chars().take(room).collect::<String>());
            }
        }
        let unchanged = screen.draw(&frame(&["a\u{1b}[2Jb"]), size);
        let changed = screen.draw(&frame(&["a\u{1b}[2Jb", "new"]), size);
        assert_eq!(
            (unchanged.as_str(), changed.contains("[2Jb"), changed.contains("new")),
            ("", false, true)
        );
    }
}
