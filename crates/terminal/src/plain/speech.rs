//! How something is said: behind a speaker, indented below one, or as it comes.

use ratatui::text::Line;

use super::{PROMPT, PlainDetail, PlainFace};
use crate::text::{escape, safe_lines};

/// Before every line that continues what a speaker says.
const INDENT: &str = "  ";

/// Shown where an answer is waited for.
const ANSWER_PROMPT: &str = "answer: ";

impl PlainFace {
    /// Says something behind a speaker, unless it is told elsewhere.
    pub(super) fn say_detail(&mut self, speaker: &str, text: &str) {
        if self.detail == PlainDetail::Everything {
            self.say(speaker, text);
        }
    }

    /// Says something behind a speaker; further lines are indented.
    pub(super) fn say(&mut self, speaker: &str, text: &str) {
        self.end_answer();
        let text = safe_lines(text.trim_end());
        let text = format!("{speaker}: {}\n", text.replace('\n', &format!("\n{INDENT}")));
        self.push(&text);
    }

    pub(super) fn say_indented(&mut self, text: &str) {
        self.end_answer();
        for line in text.trim_end().lines() {
            let line = format!("{INDENT}{}", escape(line));
            self.push(&format!("{}\n", line.trim_end()));
        }
    }

    pub(super) fn say_lines(&mut self, lines: &[Line<'static>]) {
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        self.say_indented(&text.join("\n"));
    }

    /// More of the answer, as it comes.
    pub(super) fn say_answer(&mut self, text: &str) {
        if self.detail != PlainDetail::Everything || text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_speaking, true) {
            self.push("model: ");
        }
        let text = safe_lines(text).replace('\n', &format!("\n{INDENT}"));
        self.push(&text);
    }

    pub(super) fn end_answer(&mut self) {
        if std::mem::take(&mut self.is_speaking) {
            self.push("\n");
        }
    }

    pub(super) fn end_prompt(&mut self) {
        if std::mem::take(&mut self.has_prompt) {
            self.out.push('\n');
        }
    }

    fn push(&mut self, text: &str) {
        self.end_prompt();
        self.is_command_sent = false;
        self.out.push_str(text);
        self.said_at = self.now;
    }

    /// Shows where to type, if a line is waited for.
    pub(super) fn show_prompt(&mut self) {
        let is_asked = self.is_asked();
        if self.has_prompt || self.has_ended || self.is_command_sent || (self.is_busy() && !is_asked) {
            return;
        }
        self.end_answer();
        self.out.push_str(if is_asked { ANSWER_PROMPT } else { PROMPT });
        self.has_prompt = true;
    }
}
