//! [`Editor`]: the input line, with history, completion and stash. Keys go in as [`Action`]s; nothing
//! here reads or writes.

mod buffer; // EditBuffer: text, cursor, undo, cuts
mod completion; // CompletionList, and the sources it is filled from
mod edit_keys; // what the editing keys do to a text
mod fuzzy; // FuzzyList: the best matches in many names
mod history; // History: earlier prompts
mod rows; // EditorRows: the text as rows of the screen
#[cfg(test)]
mod tests;

use std::sync::Arc;

pub use crate::blocks::format::short_count;
pub use buffer::{EditBuffer, Paste, is_element};
pub use completion::{
    CommandSource, Completion, CompletionKind, CompletionList, CompletionQuery, CompletionSource,
    CompletionSources, DescribeFile, FileSource, LIST_ROWS, query_at,
};
pub use fuzzy::FuzzyList;
pub use history::{History, HistorySearch};
pub use rows::{EditorRow, EditorRows};

use crate::keymap::Action;

/// What a person has sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submission {
    /// The whole text, pastes in full.
    pub text: String,
    /// The text as the page shows it, pastes as their labels.
    pub shown: String,
    /// What it is.
    pub kind: SubmissionKind,
}

/// What a line is, by its first character. Several pasted lines are always a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubmissionKind {
    /// Something for the model.
    Prompt,
    /// `/name …`.
    Command,
    /// `!command`: the model sees the output.
    Shell,
    /// `!!command`: only the person sees it.
    PrivateShell,
}

impl SubmissionKind {
    /// What a typed line is.
    pub fn of(text: &str) -> Self {
        match text.as_bytes() {
            [b'/', ..] => SubmissionKind::Command,
            [b'!', b'!', ..] => SubmissionKind::PrivateShell,
            [b'!', ..] => SubmissionKind::Shell,
            _ => SubmissionKind::Prompt,
        }
    }
}

/// The command that a line means which is no prompt for a model: who types `exit` wants to leave, as in a shell.
pub(crate) fn command_of_word(line: &str) -> Option<&'static str> {
    matches!(line.trim(), "exit" | "quit").then_some("/quit")
}

/// What an action did to the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditOutcome {
    /// It was for the line, and done.
    Done,
    /// The line has nothing to do with it.
    NotHere,
}

/// Counts the tokens of a paste, for its label.
pub type TokenCounter = fn(&str) -> usize;

/// The input line.
#[derive(Clone)]
pub struct Editor {
    buffer: EditBuffer,
    history: History,
    /// Index of the history entry that the line shows, and the draft that was there before.
    recalled: Option<(usize, EditBuffer)>,
    search: Option<HistorySearch>,
    sources: Vec<Arc<dyn CompletionSource>>,
    list: Option<CompletionList>,
    /// Where the word begins whose list was closed.
    closed_at: Option<usize>,
    stash: Option<EditBuffer>,
    /// Column that vertical motion keeps to.
    goal_column: Option<usize>,
    columns: usize,
    count_tokens: TokenCounter,
}

impl std::fmt::Debug for Editor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Editor")
            .field("text", &self.buffer.shown())
            .field("list", &self.list)
            .finish_non_exhaustive()
    }
}

impl Editor {
    /// An empty line with an earlier history.
    pub fn new(history: History, count_tokens: TokenCounter) -> Self {
        Editor {
            buffer: EditBuffer::default(),
            history,
            recalled: None,
            search: None,
            sources: Vec::new(),
            list: None,
            closed_at: None,
            stash: None,
            goal_column: None,
            columns: 78,
            count_tokens,
        }
    }

    /// Replaces the sources of completions.
    pub fn set_sources(&mut self, sources: Vec<Arc<dyn CompletionSource>>) {
        self.sources = sources;
    }

    /// Sets the columns that the text may take.
    pub fn set_columns(&mut self, columns: usize) {
        self.columns = columns;
    }

    /// The text and its cursor.
    pub fn buffer(&self) -> &EditBuffer {
        &self.buffer
    }

    /// Whether nothing is written.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The open list of completions.
    pub fn list(&self) -> Option<&CompletionList> {
        self.list.as_ref()
    }

    /// The open search of the history, and what it has found.
    pub fn search(&self) -> Option<(&HistorySearch, Option<&str>)> {
        self.search.as_ref().map(|search| (search, search.prompt(&self.history)))
    }

    /// Whether something was put away with the stash key.
    pub fn has_stash(&self) -> bool {
        self.stash.is_some()
    }

    /// The rows of the text.
    pub fn rows(&self) -> EditorRows {
        EditorRows::new(&self.buffer, self.columns)
    }

    /// The rest of an earlier prompt that begins like the line, shown quietly behind the cursor.
    pub fn suggestion(&self) -> Option<&str> {
        let is_at_end = self.buffer.cursor() == self.buffer.text().len();
        if !is_at_end || self.list.is_some() || self.recalled.is_some() {
            return None;
        }
        self.history.suggestion(self.buffer.text())
    }

    /// Types a character.
    pub fn insert_char(&mut self, c: char) {
        if let Some(search) = &mut self.search {
            let query = format!("{}{c}", search.query);
            search.set_query(&self.history, query);
            return;
        }
        self.buffer.insert_char(c);
        self.changed();
    }

    /// Inserts a text at the cursor.
    pub fn insert_text(&mut self, text: &str) {
        self.buffer.insert(text);
        self.changed();
    }

    /// Pastes text.
    pub fn paste(&mut self, text: &str) {
        if let Some(search) = &mut self.search {
            let query = format!("{}{}", search.query, text.lines().next().unwrap_or_default());
            search.set_query(&self.history, query);
            return;
        }
        self.buffer.insert_paste(text, self.count_tokens);
        self.changed();
    }

    /// Puts a text into the line: a draft, what came back from the editor or from the queue.
    pub fn set_text(&mut self, text: &str) {
        self.buffer.set_text(text);
        self.changed();
    }

    /// Empties the line; Ctrl-Y brings it back.
    pub fn clear(&mut self) {
        self.buffer.clear();
        self.changed();
    }

    /// Takes what is written, to send it. None if there is nothing but space. The line for the
    /// history file is returned as well.
    pub fn submit(&mut self) -> Option<(Submission, Option<String>)> {
        let text = self.buffer.expanded();
        if text.trim().is_empty() {
            return None;
        }
        let is_pasted = self.buffer.begins_with_paste();
        let submission = match command_of_word(&text).filter(|_| !is_pasted) {
            Some(command) => {
                let (text, shown) = (command.to_owned(), command.to_owned());
                Submission { text, shown, kind: SubmissionKind::Command }
            }
            None => {
                let kind = if is_pasted { SubmissionKind::Prompt } else { SubmissionKind::of(&text) };
                Submission { shown: self.buffer.shown(), text, kind }
            }
        };
        let line = self.history.add(&submission.text);
        self.buffer.reset();
        self.recalled = None;
        self.changed();
        Some((submission, line))
    }

    /// If the text before the cursor ends with a backslash, replaces it with a line end.
    pub fn continue_line(&mut self) -> bool {
        let cursor = self.buffer.cursor();
        if !self.buffer.text()[..cursor].ends_with('\\') {
            return false;
        }
        self.buffer.replace(cursor - 1..cursor, "\n");
        self.changed();
        true
    }

    /// Does what a key asks, if that concerns the line.
    pub fn apply(&mut self, action: Action) -> EditOutcome {
        if !matches!(action, Action::Up | Action::Down) {
            self.goal_column = None;
        }
        match action {
            Action::Right => return self.move_right(),
            Action::LastWord => {
                if let Some(word) = self.history.last_word() {
                    self.buffer.insert(word);
                }
            }
            Action::Up => return self.move_up(),
            Action::Down => return self.move_down(),
            Action::Stash => self.swap_stash(),
            Action::SearchHistory => {
                let mut search = HistorySearch::default();
                search.set_query(&self.history, self.buffer.shown());
                self.search = Some(search);
                self.list = None;
                return EditOutcome::Done;
            }
            action if self.buffer.apply(action) => {}
            _ => return self.apply_to_lists(action),
        }
        self.changed();
        EditOutcome::Done
    }

    fn apply_to_lists(&mut self, action: Action) -> EditOutcome {
        match (action, &mut self.list, &mut self.search) {
            (Action::NextCompletion, Some(list), _) => list.mark(1),
            (Action::PreviousCompletion, Some(list), _) => list.mark(-1),
            (Action::AcceptCompletion, Some(list), _) => {
                let (query, item) = (list.query.clone(), list.items[list.marked].clone());
                self.buffer.replace(query.range, &item.text);
                self.changed();
            }
            (Action::CloseList, Some(list), _) => {
                self.closed_at = Some(list.query.range.start);
                self.list = None;
            }
            (Action::SearchOlder, _, Some(search)) => search.older(&self.history),
            (Action::SearchNewer, _, Some(search)) => search.newer(&self.history),
            (Action::SearchDelete, _, Some(search)) => {
                let mut query = search.query.clone();
                query.pop();
                search.set_query(&self.history, query);
            }
            (Action::SearchAccept, _, Some(search)) => {
                let found = search.prompt(&self.history).map(str::to_owned);
                self.search = None;
                if let Some(found) = found {
                    self.set_text(&found);
                    self.list = None;
                }
            }
            (Action::SearchCancel, _, Some(_)) => self.search = None,
            _ => return EditOutcome::NotHere,
        }
        EditOutcome::Done
    }

    fn move_right(&mut self) -> EditOutcome {
        let suggestion = self.suggestion().map(str::to_owned);
        if !self.buffer.move_right()
            && let Some(rest) = suggestion
        {
            self.buffer.insert(&rest);
        }
        self.changed();
        EditOutcome::Done
    }

    fn move_up(&mut self) -> EditOutcome {
        let rows = self.rows();
        if rows.row > 0 {
            self.move_to_row(&rows, rows.row - 1);
            return EditOutcome::Done;
        }
        let before = self.recalled.as_ref().map_or(self.history.entries().len(), |(index, _)| *index);
        let Some(index) = before.checked_sub(1) else { return EditOutcome::NotHere };
        let draft = self.recalled.take().map_or_else(|| self.buffer.clone(), |(_, draft)| draft);
        self.recall(index, draft);
        EditOutcome::Done
    }

    fn move_down(&mut self) -> EditOutcome {
        let rows = self.rows();
        if rows.row + 1 < rows.rows.len() {
            self.move_to_row(&rows, rows.row + 1);
            return EditOutcome::Done;
        }
        let Some((index, draft)) = self.recalled.take() else { return EditOutcome::NotHere };
        if index + 1 < self.history.entries().len() {
            self.recall(index + 1, draft);
        } else {
            self.buffer = draft;
        }
        EditOutcome::Done
    }

    fn recall(&mut self, index: usize, draft: EditBuffer) {
        let entry = self.history.entries()[index].clone();
        self.buffer.set_text(&entry);
        self.list = None;
        self.recalled = Some((index, draft));
    }

    fn move_to_row(&mut self, rows: &EditorRows, row: usize) {
        let column = *self.goal_column.get_or_insert(rows.column);
        self.buffer.move_to(rows.offset_at(&self.buffer, row, column));
    }

    fn swap_stash(&mut self) {
        if self.buffer.is_empty() {
            if let Some(stashed) = self.stash.take() {
                self.buffer = stashed;
            }
        } else {
            self.stash = Some(std::mem::take(&mut self.buffer));
        }
    }

    /// Looks anew for completions, after the text or the cursor changed.
    fn changed(&mut self) {
        if self.buffer.is_empty() {
            self.recalled = None;
        }
        let query =
            query_at(self.buffer.text(), self.buffer.cursor()).filter(|_| !self.buffer.begins_with_paste());
        if query.as_ref().map(|query| query.range.start) != self.closed_at {
            self.closed_at = None;
        }
        let before = self.list.take();
        let Some(query) = query.filter(|query| self.closed_at != Some(query.range.start)) else { return };
        let items: Vec<Completion> = self
            .sources
            .iter()
            .flat_map(|source| source.complete(&query, LIST_ROWS))
            .take(LIST_ROWS)
            .collect();
        let is_complete =
            matches!(&items[..], [only] if only.text.trim_end() == &self.buffer.text()[query.range.clone()]);
        if items.is_empty() || (is_complete && query.kind != CompletionKind::Command) {
            return;
        }
        let marked = before.filter(|before| before.query == query).map_or(0, |before| before.marked);
        let marked = marked.min(items.len() - 1);
        self.list = Some(CompletionList { query, items, marked });
    }
}
