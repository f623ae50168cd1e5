//! What the editing keys do to a text.

use super::EditBuffer;
use crate::keymap::Action;

impl EditBuffer {
    /// Does what a key asks, if it is one that moves, cuts or inserts. False if it is not.
    pub fn apply(&mut self, action: Action) -> bool {
        match action {
            Action::Newline => self.insert_char('\n'),
            Action::Left => self.move_left(),
            Action::Right => drop(self.move_right()),
            Action::WordLeft => self.move_word_left(),
            Action::WordRight => self.move_word_right(),
            Action::LineStart => self.move_line_start(),
            Action::LineEnd => self.move_line_end(),
            Action::DeleteBack => self.delete_back(),
            Action::DeleteForward | Action::DeleteOrLeave => self.delete_forward(),
            Action::KillToEnd => self.kill_to_end(),
            Action::KillToStart => self.kill_to_start(),
            Action::KillWordBack => self.kill_word_back(),
            Action::KillWordPartBack => self.kill_word_part_back(),
            Action::KillWordForward => self.kill_word_forward(),
            Action::Yank => self.yank(),
            Action::YankOlder => self.yank_older(),
            Action::Undo => self.undo(),
            Action::ExpandPaste => self.expand_paste(),
            _ => return false,
        }
        true
    }
}
