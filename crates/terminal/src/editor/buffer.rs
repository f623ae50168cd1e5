//! [`EditBuffer`]: the text that a person writes, with the motions, cuts and undo of readline.
//!
//! A large paste is one element: in the text it is a single character of a private plane, which
//! motions and deletions treat like any other, and which stands for its content when it is sent.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::blocks::format::short_count;

/// A paste is an element from this many lines on.
const ELEMENT_LINES: usize = 8;
/// A paste is an element from this many characters on.
const ELEMENT_CHARACTERS: usize = 1000;
/// The first of the characters that stand for pastes: the private plane 15.
const FIRST_ELEMENT: u32 = 0xF_0000;
/// One past the last of them.
const ELEMENTS_END: u32 = 0xF_FFFE;
/// States that undo can go back to.
const UNDO_LIMIT: usize = 500;
/// Cut texts that are kept.
const KILL_LIMIT: usize = 60;

/// A text that was pasted and stands in the line as one element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paste {
    /// The text, with `\n` as line ends.
    pub text: String,
    /// What the line shows of it, in brackets.
    pub label: String,
}

/// What a change was, to group those that undo and yank treat as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LastEdit {
    Typed,
    Cut,
    Yanked { start: usize, kill: usize },
    Other,
}

/// Which way a cut went: a second one in the same direction extends the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CutSide {
    Before,
    After,
}

/// Text, cursor, and what is needed to take a change back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditBuffer {
    text: String,
    /// Byte offset, at the boundary of a cluster.
    cursor: usize,
    pastes: Vec<Paste>,
    undo: Vec<(String, usize)>,
    kills: Vec<String>,
    last_edit: LastEdit,
    /// Whether the text begins with several pasted lines: they are never a command.
    begins_with_paste: bool,
}

impl Default for EditBuffer {
    fn default() -> Self {
        EditBuffer {
            text: String::new(),
            cursor: 0,
            pastes: Vec::new(),
            undo: Vec::new(),
            kills: Vec::new(),
            last_edit: LastEdit::Other,
            begins_with_paste: false,
        }
    }
}

impl EditBuffer {
    /// The text, with a private character for each pasted element.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The cursor's byte offset in the text.
    pub fn cursor(&self) -> usize {
        self.cursor
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Whether the text begins with what was pasted in several lines.
    pub fn begins_with_paste(&self) -> bool {
        self.begins_with_paste || self.text.chars().next().is_some_and(is_element)
    }

    /// The paste that a character stands for.
    pub fn paste(&self, c: char) -> Option<&Paste> {
        let number = u32::from(c).checked_sub(FIRST_ELEMENT)?;
        self.pastes.get(usize::try_from(number).ok()?)
    }

    /// The text with every paste in full.
    pub fn expanded(&self) -> String {
        self.replaced(|paste| paste.text.clone())
    }

    /// The text with every paste's label.
    pub fn shown(&self) -> String {
        self.replaced(|paste| format!("[{}]", paste.label))
    }

    fn replaced(&self, with: impl Fn(&Paste) -> String) -> String {
        let mut out = String::with_capacity(self.text.len());
        for c in self.text.chars() {
            match self.paste(c) {
                Some(paste) => out.push_str(&with(paste)),
                None => out.push(c),
            }
        }
        out
    }

    /// Types a character.
    pub fn insert_char(&mut self, c: char) {
        let continues = self.last_edit == LastEdit::Typed && !c.is_whitespace();
        self.save(continues);
        self.begins_with_paste &= self.cursor > 0;
        self.insert_raw(plain(c).encode_utf8(&mut [0; 4]));
        self.last_edit = LastEdit::Typed;
    }

    /// Inserts text as if typed, all at once.
    pub fn insert(&mut self, text: &str) {
        self.save(false);
        self.insert_raw(&text.chars().map(plain).collect::<String>());
        self.last_edit = LastEdit::Other;
    }

    /// Pastes text: as it is if it is short, else as one element. Pasting an element again, right
    /// behind it, shows its text instead.
    pub fn insert_paste(&mut self, text: &str, count_tokens: impl Fn(&str) -> usize) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let lines = text.trim_end_matches('\n').split('\n').count();
        if self.cursor == 0 && lines > 1 {
            self.begins_with_paste = true;
        }
        if lines < ELEMENT_LINES && text.chars().take(ELEMENT_CHARACTERS).count() < ELEMENT_CHARACTERS {
            return self.insert(&text);
        }
        if self.paste_before_cursor().is_some_and(|paste| paste.text == text) {
            return self.expand_paste();
        }
        self.save(false);
        let number = self.pastes.len() + 1;
        let lines = if lines == 1 { "1 line".to_owned() } else { format!("{lines} lines") };
        let label = format!("paste {number} · {lines} · {} tokens", short_count(count_tokens(&text)));
        let next = u32::try_from(self.pastes.len()).ok().map(|number| FIRST_ELEMENT + number);
        let element = next.filter(|code| *code < ELEMENTS_END).and_then(char::from_u32);
        let Some(element) = element else { return self.insert(&text) };
        self.pastes.push(Paste { text, label });
        self.insert_raw(element.encode_utf8(&mut [0; 4]));
        self.last_edit = LastEdit::Other;
    }

    fn paste_before_cursor(&self) -> Option<&Paste> {
        self.text[..self.cursor].chars().next_back().and_then(|c| self.paste(c))
    }

    /// Replaces the paste before the cursor, or else the one behind it, with its text.
    pub fn expand_paste(&mut self) {
        let after = self.text[self.cursor..].chars().next().filter(|c| self.paste(*c).is_some());
        if self.paste_before_cursor().is_none() && after.is_some() {
            self.move_right();
        }
        let Some(text) = self.paste_before_cursor().map(|paste| paste.text.clone()) else { return };
        self.save(false);
        let start = self.cursor - self.text[..self.cursor].chars().next_back().map_or(0, char::len_utf8);
        self.text.replace_range(start..self.cursor, "");
        self.cursor = start;
        self.insert_raw(&text.chars().map(plain).collect::<String>());
        self.last_edit = LastEdit::Other;
    }

    /// Replaces a part of the text, for a completion; the cursor stands behind it.
    pub fn replace(&mut self, range: Range<usize>, with: &str) {
        self.save(false);
        self.cursor = range.start + with.len();
        self.text.replace_range(range, with);
        self.last_edit = LastEdit::Other;
    }

    /// Replaces all of the text; undo brings the old one back.
    pub fn set_text(&mut self, text: &str) {
        self.save(false);
        self.text = text.chars().map(plain).collect();
        self.cursor = self.text.len();
        self.begins_with_paste = false;
        self.last_edit = LastEdit::Other;
    }

    /// Empties the line; Ctrl-Y and undo bring it back.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.cut(0..self.text.len(), CutSide::Before);
            self.last_edit = LastEdit::Other;
        }
        self.begins_with_paste = false;
    }

    /// Empties the line after it was sent: nothing of it can be undone.
    pub fn reset(&mut self) {
        let kills = std::mem::take(&mut self.kills);
        *self = EditBuffer { kills, ..EditBuffer::default() };
    }

    /// Takes the last change back.
    pub fn undo(&mut self) {
        if let Some((text, cursor)) = self.undo.pop() {
            (self.text, self.cursor) = (text, cursor);
        }
        self.last_edit = LastEdit::Other;
    }

    /// Moves one cluster back.
    pub fn move_left(&mut self) {
        self.move_to(self.previous_boundary());
    }

    /// Moves one cluster on. False at the end.
    pub fn move_right(&mut self) -> bool {
        let is_at_end = self.cursor == self.text.len();
        self.move_to(self.next_boundary());
        !is_at_end
    }

    /// Moves to the start of the word before the cursor.
    pub fn move_word_left(&mut self) {
        self.move_to(self.word_start(is_word));
    }

    /// Moves to the end of the next word.
    pub fn move_word_right(&mut self) {
        self.move_to(self.word_end());
    }

    /// Moves to the start of the line of text that the cursor is in.
    pub fn move_line_start(&mut self) {
        self.move_to(self.line_start());
    }

    /// Moves to the end of that line.
    pub fn move_line_end(&mut self) {
        self.move_to(self.line_end());
    }

    /// Moves to a byte offset, or to the boundary before it.
    pub fn move_to(&mut self, offset: usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        self.cursor = offset;
        self.last_edit = LastEdit::Other;
    }

    /// Deletes the cluster before the cursor.
    pub fn delete_back(&mut self) {
        self.delete(self.previous_boundary()..self.cursor);
    }

    /// Deletes the cluster behind the cursor.
    pub fn delete_forward(&mut self) {
        self.delete(self.cursor..self.next_boundary());
    }

    /// Cuts up to the end of the line, or the line end itself.
    pub fn kill_to_end(&mut self) {
        let end = self.line_end();
        let end = if end == self.cursor { self.next_boundary() } else { end };
        self.cut(self.cursor..end, CutSide::After);
    }

    /// Cuts from the start of the line, or the line end before it.
    pub fn kill_to_start(&mut self) {
        let start = self.line_start();
        let start = if start == self.cursor { self.previous_boundary() } else { start };
        self.cut(start..self.cursor, CutSide::Before);
    }

    /// Cuts back to the last space.
    pub fn kill_word_back(&mut self) {
        self.cut(self.word_start(|c| !c.is_whitespace())..self.cursor, CutSide::Before);
    }

    /// Cuts the letters and digits before the cursor.
    pub fn kill_word_part_back(&mut self) {
        self.cut(self.word_start(is_word)..self.cursor, CutSide::Before);
    }

    /// Cuts up to the end of the next word.
    pub fn kill_word_forward(&mut self) {
        self.cut(self.cursor..self.word_end(), CutSide::After);
    }

    /// Inserts what was cut last.
    pub fn yank(&mut self) {
        if let Some(kill) = self.kills.len().checked_sub(1) {
            self.save(false);
            self.yank_at(self.cursor, kill);
        }
    }

    /// After a yank: inserts what was cut before that instead.
    pub fn yank_older(&mut self) {
        let LastEdit::Yanked { start, kill } = self.last_edit else { return };
        self.text.replace_range(start..self.cursor, "");
        self.yank_at(start, kill.checked_sub(1).unwrap_or(self.kills.len() - 1));
    }

    fn yank_at(&mut self, start: usize, kill: usize) {
        let text = self.kills[kill].clone();
        self.cursor = start;
        self.insert_raw(&text);
        self.last_edit = LastEdit::Yanked { start, kill };
    }

    fn insert_raw(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn delete(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        self.save(false);
        self.cursor = range.start;
        self.text.replace_range(range, "");
        self.begins_with_paste &= !self.text.is_empty();
        self.last_edit = LastEdit::Other;
    }

    fn cut(&mut self, range: Range<usize>, side: CutSide) {
        if range.is_empty() {
            return;
        }
        let cut = self.text[range.clone()].to_owned();
        let continues = self.last_edit == LastEdit::Cut;
        self.delete(range);
        match self.kills.last_mut().filter(|_| continues) {
            Some(last) if side == CutSide::Before => last.insert_str(0, &cut),
            Some(last) => last.push_str(&cut),
            None => self.kills.push(cut),
        }
        let excess = self.kills.len().saturating_sub(KILL_LIMIT);
        self.kills.drain(..excess);
        self.last_edit = LastEdit::Cut;
    }

    /// Remembers the state before a change, unless the change continues the one before.
    fn save(&mut self, continues: bool) {
        if continues {
            return;
        }
        self.undo.push((self.text.clone(), self.cursor));
        let excess = self.undo.len().saturating_sub(UNDO_LIMIT);
        self.undo.drain(..excess);
    }

    fn previous_boundary(&self) -> usize {
        let cluster = self.text[..self.cursor].graphemes(true).next_back();
        self.cursor - cluster.map_or(0, str::len)
    }

    fn next_boundary(&self) -> usize {
        let cluster = self.text[self.cursor..].graphemes(true).next();
        self.cursor + cluster.map_or(0, str::len)
    }

    fn line_start(&self) -> usize {
        self.text[..self.cursor].rfind('\n').map_or(0, |at| at + 1)
    }

    fn line_end(&self) -> usize {
        self.text[self.cursor..].find('\n').map_or(self.text.len(), |at| self.cursor + at)
    }

    fn word_start(&self, is_part: fn(char) -> bool) -> usize {
        let before = self.text[..self.cursor].trim_end_matches(|c: char| !is_part(c));
        before.trim_end_matches(is_part).len()
    }

    fn word_end(&self) -> usize {
        let after = self.text[self.cursor..].trim_start_matches(|c| !is_word(c));
        self.text.len() - after.trim_start_matches(is_word).len()
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || is_element(c)
}

/// Whether a character stands for a paste.
pub fn is_element(c: char) -> bool {
    (FIRST_ELEMENT..ELEMENTS_END).contains(&u32::from(c))
}

/// A character as text: those that stand for pastes cannot be typed.
fn plain(c: char) -> char {
    if is_element(c) { '\u{fffd}' } else { c }
}
