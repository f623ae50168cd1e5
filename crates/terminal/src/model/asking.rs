//! What is asked, and what is shown only after the answer. Nothing that others say stands between a question
//! and what it is about: it could imitate something else that is asked about.

use super::{BlockKind, Model};
use crate::transcript::BlockSource;

/// Something that was said while a question was open.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum HeldText {
    Block(BlockKind, BlockSource),
    /// A part of the answer.
    Answer(String),
    AnswerEnd,
}

impl Model {
    /// Adds a block to the conversation; while something is asked about that was printed, after the answer.
    pub fn say(&mut self, kind: BlockKind, source: BlockSource) {
        match self.holds_text() {
            true => self.held.push(HeldText::Block(kind, source)),
            false => self.say_now(kind, source),
        }
    }

    /// Adds a block to the conversation, also while something is asked.
    pub(crate) fn say_now(&mut self, kind: BlockKind, source: BlockSource) {
        self.transcript.push(kind, source);
        self.fill_page();
    }

    /// Adds to the answer.
    pub(crate) fn say_answer(&mut self, text: &str) {
        if !self.holds_text() {
            self.transcript.push_answer(text);
            return self.fill_page();
        }
        match self.held.last_mut() {
            Some(HeldText::Answer(held)) => held.push_str(text),
            _ => self.held.push(HeldText::Answer(text.to_owned())),
        }
    }

    /// The answer is complete.
    pub(crate) fn end_answer(&mut self) {
        if self.holds_text() {
            let is_open = matches!(self.held.last(), Some(HeldText::Answer(_)));
            self.held.extend(is_open.then_some(HeldText::AnswerEnd));
        } else if self.transcript.finish_answer() {
            self.fill_page();
        }
    }

    /// Whether what is said waits until what is asked is answered.
    pub(crate) fn holds_text(&self) -> bool {
        let has_subject = self.question.as_ref().is_some_and(|question| question.subject.is_some());
        !self.approvals.is_empty() || has_subject
    }

    /// Whether something waits to be shown.
    pub(crate) fn has_held_text(&self) -> bool {
        !self.held.is_empty()
    }

    /// Shows what was said since something is asked.
    pub(crate) fn release_held(&mut self) {
        for text in std::mem::take(&mut self.held) {
            match text {
                HeldText::Block(kind, source) => self.transcript.push(kind, source),
                HeldText::Answer(text) => self.transcript.push_answer(&text),
                HeldText::AnswerEnd => _ = self.transcript.finish_answer(),
            }
            self.fill_page();
        }
    }

    /// Prints all of what is asked about: the question below it is live.
    pub(crate) fn print_what_is_asked(&mut self) {
        if let Some(prompt) = self.approvals.front() {
            let preview = BlockSource::Lines(prompt.preview.clone());
            return self.say_now(BlockKind::Text, preview);
        }
        let subject = self.question.as_ref().and_then(|question| question.subject.clone());
        if let Some(subject) = subject {
            self.say_now(BlockKind::Text, BlockSource::Output(subject));
        }
    }
}
