//! The line that is being typed: its text, where the cursor is, and what was typed before.

use unicode_width::UnicodeWidthStr;

use super::keys::Key;
use crate::output::safe;

/// What stands before the text.
const PROMPT: &str = "> ";

/// What typing led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entered {
    Line(String),
    /// Nothing more is typed.
    End,
}

/// A text with a cursor.
#[derive(Debug, Default)]
pub struct Editor {
    text: String,
    /// Where the cursor is, in bytes.
    at: usize,
    /// What was entered, oldest first.
    history: Vec<String>,
    /// How many lines ago what is shown was entered; 0 is what is being typed.
    ago: usize,
    /// What was being typed when an earlier line was fetched.
    draft: String,
}

/// The text in rows, as it is shown.
#[derive(Debug, PartialEq, Eq)]
pub struct Rows {
    pub rows: Vec<String>,
    /// The row and the column of the cursor.
    pub cursor: (usize, usize),
}

impl Editor {
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether the cursor is behind the text.
    pub fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    /// What was being typed is given up.
    pub fn clear(&mut self) {
        (self.text, self.at, self.ago) = (String::new(), 0, 0);
    }

    pub fn press(&mut self, key: Key) -> Option<Entered> {
        match key {
            Key::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            Key::Newline => self.insert("\n"),
            Key::Paste(text) => self.insert(&text),
            Key::Backspace => self.cut(self.left(), self.at),
            Key::Delete => self.cut(self.at, self.right()),
            Key::Left => self.at = self.left(),
            Key::Right => self.at = self.right(),
            Key::Home => self.at = 0,
            Key::End => self.at = self.text.len(),
            Key::CutLine => self.cut(0, self.at),
            Key::CutRest => self.cut(self.at, self.text.len()),
            Key::CutWord => {
                let word = self.text[..self.at].trim_end().rfind(char::is_whitespace);
                let after = |at: usize| at + self.text[at..].chars().next().map_or(0, char::len_utf8);
                self.cut(word.map_or(0, after), self.at);
            }
            Key::Up => self.fetch(self.ago + 1),
            Key::Down => self.fetch(self.ago.saturating_sub(1)),
            Key::Eof => return self.is_empty().then_some(Entered::End),
            Key::Enter => {
                let line = std::mem::take(&mut self.text);
                self.clear();
                if !line.trim().is_empty() && self.history.last() != Some(&line) {
                    self.history.push(line.clone());
                }
                return Some(Entered::Line(line));
            }
        }
        None
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.at, text);
        self.at += text.len();
    }

    fn cut(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }

    fn left(&self) -> usize {
        self.text[..self.at].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn right(&self) -> usize {
        self.text[self.at..].chars().next().map_or(self.at, |c| self.at + c.len_utf8())
    }

    /// Shows what was entered so many lines ago.
    fn fetch(&mut self, ago: usize) {
        if ago == self.ago || ago > self.history.len() {
            return;
        }
        if self.ago == 0 {
            self.draft = std::mem::take(&mut self.text);
        }
        self.ago = ago;
        let line = self.history.len().checked_sub(ago).and_then(|at| self.history.get(at));
        self.text = line.cloned().unwrap_or_else(|| std::mem::take(&mut self.draft));
        self.at = self.text.len();
    }

    /// The text in rows of so many columns. What is typed or pasted steers the terminal as little as any other text.
    pub fn rows(&self, width: usize) -> Rows {
        let mut rows = vec![PROMPT.to_owned()];
        let (mut column, mut cursor) = (PROMPT.len(), None);
        for (at, c) in self.text.char_indices() {
            cursor = cursor.or((at >= self.at).then_some((rows.len() - 1, column)));
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
        Rows { rows, cursor }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(editor: &mut Editor, text: &str) -> Vec<Entered> {
        let key = |c| if c == '\n' { Key::Enter } else { Key::Char(c) };
        text.chars().filter_map(|c| editor.press(key(c))).collect()
    }

    fn press(editor: &mut Editor, keys: &[Key]) -> String {
        keys.iter().for_each(|key| drop(editor.press(key.clone())));
        editor.text.clone()
    }

    #[test]
    fn a_line_is_edited_by_characters_and_words() {
        let mut editor = Editor::default();
        typed(&mut editor, "one zwö 😀");
        assert_eq!(press(&mut editor, &[Key::Backspace, Key::Backspace, Key::Backspace]), "one zw");
        assert_eq!(press(&mut editor, &[Key::CutWord]), "one ");
        assert_eq!(press(&mut editor, &[Key::Left, Key::Left, Key::Char('é'), Key::Delete]), "oné ");
        assert_eq!(press(&mut editor, &[Key::CutRest, Key::Left, Key::CutLine]), "é");
        assert_eq!(press(&mut editor, &[Key::Eof, Key::End, Key::CutWord, Key::CutWord, Key::Backspace]), "");
        assert_eq!(editor.press(Key::Eof), Some(Entered::End));
    }

    #[test]
    fn a_paste_is_one_text_and_earlier_lines_can_be_fetched() {
        let mut editor = Editor::default();
        typed(&mut editor, "see: ");
        assert_eq!(editor.press(Key::Paste("a\nb\n".into())), None);
        assert_eq!(typed(&mut editor, "ok\n"), [Entered::Line("see: a\nb\nok".into())]);
        assert_eq!(typed(&mut editor, "two\ntwo\n\n").len(), 3);
        typed(&mut editor, "draft");
        assert_eq!(press(&mut editor, &[Key::Up]), "two");
        assert_eq!(press(&mut editor, &[Key::Up, Key::Up, Key::Up]), "see: a\nb\nok");
        assert_eq!(press(&mut editor, &[Key::Down]), "two");
        assert_eq!(press(&mut editor, &[Key::Down, Key::Down]), "draft");
    }

    #[test]
    fn rows_are_as_wide_as_they_may_be_and_steer_nothing() {
        let mut editor = Editor::default();
        editor.press(Key::Paste("ab\x1b[2J\n\tcdéf世界".into()));
        let Rows { rows, cursor } = editor.rows(8);
        assert_eq!(rows, ["> ab\u{fffd}[2J", "    cdéf", "世界"]);
        assert_eq!(cursor, (2, 4));
        press(&mut editor, &[Key::Home, Key::Right]);
        assert_eq!(editor.rows(8).cursor, (0, 3));
    }
}
