//! How the model changes: an [`Event`] in, [`Effect`]s out. Nothing here reads a clock, a file or the
//! terminal, so every state and key can be tried in a test.

mod agent; // what the agent tells
mod keys; // what keys mean in each state
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::editor::{CompletionSources, Editor, Submission};
use crate::input::InputEvent;
use crate::model::{
    ApprovalFocus, BlockKind, DRAFT_TIME, Effect, Event, LONG_RUN, Mode, Model, QUIET_TIME, QuestionFocus,
    TWICE_TIME,
};
use crate::screen::ScreenSize;
use crate::theme::Role;
use crate::transcript::BlockSource;
use ratatui::text::{Line, Span};

impl Model {
    /// Takes an event that happened at `at`, and says what is to be done.
    pub fn update(&mut self, event: Event, at: Duration) -> Vec<Effect> {
        self.now = self.now.max(at);
        let mut effects = Vec::new();
        match event {
            Event::Input(input) => {
                self.take_input(input, at, &mut effects);
                self.draft_since.get_or_insert(self.now);
            }
            Event::Agent(update) => self.take_agent_update(update, &mut effects),
            Event::Tick => {}
            Event::Drawn => self.take_drawn(at),
            Event::Earlier(blocks) => self.replace_transcript(blocks),
            Event::PageHidden(is_hidden) => self.is_page_hidden = is_hidden,
            Event::EditorClosed(text) => self.editor.set_text(text.trim_end_matches('\n')),
            Event::EditText(text) => effects.push(Effect::OpenEditor(text)),
            Event::CallEdited { id, text } => self.answer_with_change(id, text, &mut effects),
            Event::Insert(text) => {
                self.editor.insert_text(&text);
                self.draft_since.get_or_insert(self.now);
            }
            Event::TakenBack(text) => self.take_back(&text),
            Event::ModeSet(mode) => self.set_mode(mode),
            Event::Status(status) => self.status = status,
            Event::BackgroundWork(text) => self.background_work = text,
            Event::Sources(CompletionSources(sources)) => self.editor.set_sources(sources),
            Event::Extensions(area) => self.extensions = area,
            Event::ExtensionKeys(keys) => self.extension_keys = keys,
            Event::SetLine(text) => self.let_extension_type(|editor| editor.set_text(&text)),
            Event::ExtensionInsert(text) => self.let_extension_type(|editor| editor.insert_text(&text)),
            Event::Title(text) => effects.push(Effect::SetTitle(text)),
        }
        self.settle();
        self.fill_page();
        if self.draft_since.is_some_and(|since| self.now >= since + DRAFT_TIME) {
            self.draft_since = None;
            effects.push(Effect::SaveDraft(self.editor.buffer().expanded()));
        }
        effects
    }

    /// Lets an extension change the input line. It never makes a command of the shell, or changes one: Enter would
    /// run it with all the person's rights.
    fn let_extension_type(&mut self, change: impl FnOnce(&mut Editor)) {
        let before = self.editor.buffer().expanded();
        let is_shell = |text: &str| text.trim_start().starts_with('!');
        if is_shell(&before) {
            return;
        }
        change(&mut self.editor);
        if is_shell(&self.editor.buffer().expanded()) {
            self.editor.set_text(&before);
            return;
        }
        self.line_changed_at = Some(self.now);
        self.draft_since.get_or_insert(self.now);
    }

    fn take_input(&mut self, input: InputEvent, at: Duration, effects: &mut Vec<Effect>) {
        match input {
            InputEvent::Key(key) => {
                self.press(key, at, effects);
                self.last_key = Some(at);
            }
            InputEvent::Paste(text) => {
                self.paste(&text, at);
                self.last_key = Some(at);
            }
            InputEvent::Resize(size) => self.set_size(bounded(size)),
            InputEvent::Focus { has_focus } => self.has_focus = has_focus,
            // The page scrolls by itself; views have their own wheel.
            InputEvent::Wheel(_) | InputEvent::Click { .. } => {}
        }
    }

    /// The frame is on the screen: what it asks can be answered from now on.
    fn take_drawn(&mut self, at: Duration) {
        if !self.is_page_hidden {
            self.page.mark_printed();
        }
        if let ApprovalFocus::Active { drawn_at: drawn_at @ None, .. } = &mut self.approval_focus {
            *drawn_at = Some(at);
        }
        if let Some(question) = &mut self.question
            && let QuestionFocus::Active { drawn_at: drawn_at @ None } = &mut question.focus
        {
            *drawn_at = Some(at);
        }
    }

    fn take_back(&mut self, text: &str) {
        let draft = self.editor.buffer().expanded();
        let joined = if draft.is_empty() { text.to_owned() } else { format!("{text}\n{draft}") };
        self.editor.set_text(&joined);
    }

    /// What follows from time and from the rest of the model.
    fn settle(&mut self) {
        if self.hint.as_ref().is_some_and(|(_, since)| self.now >= *since + TWICE_TIME) {
            self.hint = None;
        }
        let is_quiet = self.last_key.is_none_or(|key| self.now >= key + QUIET_TIME);
        if self.approvals.is_empty() {
            self.approval_focus = ApprovalFocus::Waiting;
            if let Some(question) = self.question.as_mut().filter(|_| is_quiet)
                && question.focus == QuestionFocus::Waiting
            {
                question.focus = QuestionFocus::Active { drawn_at: None };
            }
            return;
        }
        if self.approval_focus == ApprovalFocus::Waiting && self.editor.is_empty() && is_quiet {
            self.activate_approval();
        }
    }

    fn activate_approval(&mut self) {
        self.approval_focus = ApprovalFocus::Active { drawn_at: None, marked: None };
    }

    fn set_mode(&mut self, mode: Mode) {
        if self.mode == mode {
            return;
        }
        self.mode = mode;
        let role = if mode == Mode::All { Role::Danger } else { Role::Accent };
        let line = Line::from(vec![
            Span::raw("  mode "),
            Span::styled(mode.name(), self.theme.style(role)),
            Span::styled(format!(" · {}", mode.meaning()), self.theme.style(Role::Quiet)),
        ]);
        self.say(BlockKind::Note, BlockSource::Lines(vec![line]));
    }

    fn show_hint(&mut self, text: String) {
        self.hint = Some((text, self.now));
    }

    /// Prints what the person sent, as the beginning of a block.
    pub(crate) fn print_prompt(&mut self, submission: &Submission) {
        self.say(BlockKind::Text, BlockSource::Prompt(submission.shown.clone()));
    }

    /// Rings if the person may be elsewhere.
    fn notify(&self, text: &str, effects: &mut Vec<Effect>) {
        let is_long = self.run_since.is_some_and(|since| self.now >= since + LONG_RUN);
        if !self.has_focus || is_long {
            effects.push(Effect::Notify(text.to_owned()));
        }
    }
}

fn bounded(size: ScreenSize) -> ScreenSize {
    ScreenSize { columns: size.columns.max(1), rows: size.rows.max(1) }
}
