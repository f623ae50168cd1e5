//! [`LineEditor`]: the line that the user types, with its cursor and its history.

use unicode_width::UnicodeWidthStr;

use super::keys::Key;
use crate::output::safe;

/// Shown before the text.
const PROMPT: &str = "> ";

/// The result of a key press that ends a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EditorOutcome {
    Line(String),
    /// Ctrl-D on an empty line.
    End,
}

/// A text with a cursor, and the lines entered before.
#[derive(Debug, Default)]
pub struct LineEditor {
    text: String,
    /// Byte offset into `text`.
    cursor: usize,
    /// Lines entered before, oldest first.
    history: Vec<String>,
    /// How many lines back the shown text is; 0 is the draft.
    history_offset: usize,
    /// The unfinished line, while an earlier one is shown.
    draft: String,
}

/// The text broken into the rows of the screen.
#[derive(Debug, PartialEq, Eq)]
pub struct EditorRows {
    pub rows: Vec<String>,
    /// Row and column of the cursor.
    pub cursor: (usize, usize),
}

impl LineEditor {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether the cursor is at the end of the text.
    pub fn is_at_end(&self) -> bool {
        self.cursor == self.text.len()
    }

    /// Discards the unfinished line.
    pub fn clear(&mut self) {
        (self.text, self.cursor, self.history_offset) = (String::new(), 0, 0);
    }

    pub fn press(&mut self, key: Key) -> Option<EditorOutcome> {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Newline => self.insert("\n"),
            Key::Paste(text) => self.insert(&text),
            Key::Backspace => self.cut(self.left(), self.cursor),
            Key::Delete => self.cut(self.cursor, self.right()),
            Key::Left => self.cursor = self.left(),
            Key::Right => self.cursor = self.right(),
            Key::Home => self.cursor = 0,
            Key::End => self.cursor = self.text.len(),
            Key::CutLine => self.cut(0, self.cursor),
            Key::CutRest => self.cut(self.cursor, self.text.len()),
            Key::CutWord => {
                let word = self.text[..self.cursor].trim_end().rfind(char::is_whitespace);
                let after = |at: usize| at + self.text[at..].chars().next().map_or(0, char::len_utf8);
                self.cut(word.map_or(0, after), self.cursor);
            }
            Key::Up => self.recall_history(self.history_offset + 1),
            Key::Down => self.recall_history(self.history_offset.saturating_sub(1)),
            Key::Eof => return self.is_empty().then_some(EditorOutcome::End),
            Key::Enter => {
                let line = std::mem::take(&mut self.text);
                self.clear();
                if !line.trim().is_empty() && self.history.last() != Some(&line) {
                    self.history.push(line.clone());
                }
                return Some(EditorOutcome::Line(line));
            }
        }
        None
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn cut(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.cursor = from;
    }

    fn left(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |c| self.cursor + c.len_utf8())
    }

    /// Shows the line entered `history_offset` lines ago; 0 restores the draft.
    fn recall_history(&mut self, history_offset: usize) {
        if history_offset == self.history_offset || history_offset > self.history.len() {
            return;
        }
        if self.history_offset == 0 {
            self.draft = std::mem::take(&mut self.text);
        }
        self.history_offset = history_offset;
        let line = self.history.len().checked_sub(history_offset).and_then(|at| self.history.get(at));
        self.text = line.cloned().unwrap_or_else(|| std::mem::take(&mut self.draft));
        self.cursor = self.text.len();
    }

    /// The text in rows of at most `width` columns, without control characters: pasted text must
    /// not steer the terminal either.
    pub fn rows(&self, width: usize) -> EditorRows {
        let mut rows = vec![PROMPT.to_owned()];
        let (mut column, mut cursor) = (PROMPT.len(), None);
        for (at, c) in self.text.char_indices() {
            cursor = cursor.or((at >= self.cursor).then_some((rows.len() - 1, column)));
            let shown = match c {
                '\n' => String::new(),
                '\t' => "    ".to_owned(),
                c => safe(c.encode_utf8(&mut [0; 4])),
            };
            if c == '\n' || column + shown.width() > width {
                rows.push(String::new());
                column = 0;
            }
            column += shown.width();
            rows.iter_mut().last().into_iter().for_each(|row| row.push_str(&shown));
        }
        let cursor = cursor.unwrap_or((rows.len() - 1, column));
        EditorRows { rows, cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &mut LineEditor, text: &str) -> Vec<EditorOutcome> {
        let key = |c| if c == '\n' { Key::Enter } else { Key::Char(c) };
        text.chars().filter_map(|c| editor.press(key(c))).collect()
    }

    fn press(editor: &mut LineEditor, keys: &[Key]) -> String {
        keys.iter().for_each(|key| drop(editor.press(key.clone())));
        editor.text.clone()
    }

    #[test]
    fn a_line_is_edited_by_characters_and_words() {
        let mut editor = LineEditor::default();
        typed(&mut editor, "one zwö 😀");
        assert_eq!(press(&mut editor, &[Key::Backspace, Key::Backspace, Key::Backspace]), "one zw");
        assert_eq!(press(&mut editor, &[Key::CutWord]), "one ");
        assert_eq!(press(&mut editor, &[Key::Left, Key::Left, Key::Char('é'), Key::Delete]), "oné ");
        assert_eq!(press(&mut editor, &[Key::CutRest, Key::Left, Key::CutLine]), "é");
        assert_eq!(press(&mut editor, &[Key::Eof, Key::End, Key::CutWord, Key::CutWord, Key::Backspace]), "");
        assert_eq!(editor.press(Key::Eof), Some(EditorOutcome::End));
    }

    #[test]
    fn a_paste_is_one_text_and_earlier_lines_can_be_fetched() {
        let mut editor = LineEditor::default();
        typed(&mut editor, "see: ");
        assert_eq!(editor.press(Key::Paste("a\nb\n".into())), None);
        assert_eq!(typed(&mut editor, "ok\n"), [EditorOutcome::Line("see: a\nb\nok".into())]);
        assert_eq!(typed(&mut editor, "two\ntwo\n\n").len(), 3);
        typed(&mut editor, "draft");
        assert_eq!(press(&mut editor, &[Key::Up]), "two");
        assert_eq!(press(&mut editor, &[Key::Up, Key::Up, Key::Up]), "see: a\nb\nok");
        assert_eq!(press(&mut editor, &[Key::Down]), "two");
        assert_eq!(press(&mut editor, &[Key::Down, Key::Down]), "draft");
    }

    #[test]
    fn rows_are_as_wide_as_they_may_be_and_steer_nothing() {
        let mut editor = LineEditor::default();
        editor.press(Key::Paste("ab\x1b[2J\n\tcdéf世界".into()));
        let EditorRows { rows, cursor } = editor.rows(8);
        assert_eq!(rows, ["> ab\u{fffd}[2J", "    cdéf", "世界"]);
        assert_eq!(cursor, (2, 4));
        press(&mut editor, &[Key::Home, Key::Right]);
        assert_eq!(editor.rows(8).cursor, (0, 3));
    }
}
