//! [`PlainFace`]: the conversation as lines, for screen readers, pipes and terminals that can do
//! little. Nothing moves the cursor, speakers are words, choices have numbers, and long work says
//! every ten seconds that it goes on.
//!
//! Whatever others wrote stands behind a speaker or is indented, so that a line that begins with
//! `asks:` is always a question of the program.

mod answers; // what a typed line means as an answer
mod piped; // PipedLines: a list of prompts
mod questions; // what is asked, and what becomes of an answer
mod speech; // how something is said
#[cfg(test)]
mod tests;
mod updates; // what the agent tells

pub use piped::PipedLines;

use std::collections::VecDeque;
use std::time::Duration;

use ratatui::text::Line;

use crate::blocks::Delivery;
use crate::editor::{Submission, SubmissionKind, command_of_word};
use crate::model::{
    AgentUpdate, ApprovalPrompt, Effect, Event, Mode, QuestionPrompt, RunningTool, TWICE_TIME,
};
use crate::text::escape;
use crate::theme::{Palette, Theme};

/// How often work that goes on says so.
const PROGRESS_TIME: Duration = Duration::from_secs(10);

/// Shown where a line is waited for.
const PROMPT: &str = "you: ";

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum PlainEvent {
    /// The person typed a line.
    Line(String),
    /// The person types nothing more.
    End,
    /// Ctrl-C.
    Interrupt,
    /// Something elsewhere.
    Other(Event),
    /// Time has passed.
    Tick,
}

/// What is said of the conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainDetail {
    /// All of it.
    Everything,
    /// Questions, notes and what commands say: the rest is told elsewhere, as JSON.
    QuestionsAndNotes,
}

/// The conversation as lines.
#[derive(Debug)]
pub struct PlainFace {
    theme: Theme,
    columns: usize,
    detail: PlainDetail,
    /// Whether the terminal shows what is typed.
    is_echoed: bool,
    mode: Mode,
    approvals: VecDeque<ApprovalPrompt>,
    /// The question in words that is asked. Whatever else asks meanwhile waits.
    question: Option<QuestionPrompt>,
    /// Questions in words whose turn comes later.
    waiting_questions: VecDeque<QuestionPrompt>,
    /// What others said since something is asked: it would stand between the question and its answer.
    held: Vec<AgentUpdate>,
    tools: Vec<RunningTool>,
    queue: Vec<(Delivery, String)>,
    /// Something was sent, and what became of it is not known yet.
    is_sent: bool,
    /// A failed request waits to be sent again.
    is_retrying: bool,
    /// A command was sent, and has said nothing yet.
    is_command_sent: bool,
    run_since: Option<Duration>,
    /// Whether the model's line is open.
    is_speaking: bool,
    /// Whether the cursor stands behind a prompt.
    has_prompt: bool,
    has_ended: bool,
    interrupt_at: Option<Duration>,
    /// When something was said last.
    said_at: Duration,
    now: Duration,
    out: String,
    effects: Vec<Effect>,
}

impl PlainFace {
    /// A face in which nothing has happened.
    pub fn new(theme: Theme, columns: usize, detail: PlainDetail, is_echoed: bool) -> Self {
        PlainFace {
            theme: Theme { palette: Palette::None, ..theme },
            columns,
            detail,
            is_echoed,
            mode: Mode::Ask,
            approvals: VecDeque::new(),
            question: None,
            waiting_questions: VecDeque::new(),
            held: Vec::new(),
            tools: Vec::new(),
            queue: Vec::new(),
            is_sent: false,
            is_retrying: false,
            is_command_sent: false,
            run_since: None,
            is_speaking: false,
            has_prompt: false,
            has_ended: false,
            interrupt_at: None,
            said_at: Duration::ZERO,
            now: Duration::ZERO,
            out: String::new(),
            effects: Vec::new(),
        }
    }

    /// Says something before the conversation begins.
    pub fn greet(&mut self, lines: &[Line<'static>]) -> String {
        self.say_lines(lines);
        self.show_prompt();
        std::mem::take(&mut self.out)
    }

    /// Takes an event that happened at `at`; returns what is to be printed and to be done.
    pub fn update(&mut self, event: PlainEvent, at: Duration) -> (String, Vec<Effect>) {
        self.now = self.now.max(at);
        match event {
            PlainEvent::Line(line) => self.take_line(&line),
            PlainEvent::End => self.end(),
            PlainEvent::Interrupt => self.interrupt(),
            PlainEvent::Tick => self.tell_progress(),
            PlainEvent::Other(Event::Agent(update)) => self.take_update(update),
            PlainEvent::Other(Event::ModeSet(mode)) => {
                self.set_mode(mode);
                self.ask_again();
            }
            PlainEvent::Other(Event::EditText(text)) => {
                self.say("note", &text);
                self.ask_again();
            }
            PlainEvent::Other(Event::TakenBack(text)) => {
                self.say("note", &format!("taken back: {text}"));
                self.ask_again();
            }
            PlainEvent::Other(_) => {}
        }
        if self.has_ended && !self.is_busy() {
            self.effects.push(Effect::Leave);
        }
        self.show_prompt();
        (std::mem::take(&mut self.out), std::mem::take(&mut self.effects))
    }

    /// When work that goes on has to say so; none while nothing runs.
    pub fn next_tick(&self) -> Option<Duration> {
        (self.run_since.is_some() && !self.is_asked()).then(|| self.said_at + PROGRESS_TIME)
    }

    fn is_asked(&self) -> bool {
        !self.approvals.is_empty() || self.question.is_some()
    }

    fn is_busy(&self) -> bool {
        self.is_sent || self.run_since.is_some()
    }

    fn take_line(&mut self, line: &str) {
        if !self.is_echoed && !line.trim().is_empty() {
            let prompt = if self.has_prompt { "" } else { PROMPT };
            self.out.push_str(&format!("{prompt}{}\n", escape(line)));
        }
        (self.has_prompt, self.interrupt_at) = (false, None);
        let text = line.trim();
        if let Some(question) = self.question.take() {
            let answer = answers::choice_or_text(text, &question.choices);
            self.effects.push(Effect::AnswerQuestion { id: question.id, answer });
            return self.ask_next();
        }
        if text.is_empty() {
            return self.repeat_question();
        }
        let text = command_of_word(text).unwrap_or(text);
        let kind = SubmissionKind::of(text);
        if self.is_retrying && text == "r" {
            return self.effects.push(Effect::RetryNow);
        }
        if kind == SubmissionKind::Prompt && !self.approvals.is_empty() {
            return self.answer_approval(text);
        }
        let is_running = self.is_busy();
        let submission = Submission { text: text.to_owned(), shown: text.to_owned(), kind };
        self.effects.push(match kind {
            SubmissionKind::Prompt if is_running => Effect::Steer(submission),
            SubmissionKind::Prompt => {
                self.run_since = Some(self.now);
                Effect::Send(submission)
            }
            _ => Effect::Send(submission),
        });
        (self.is_sent, self.is_command_sent) = (true, kind != SubmissionKind::Prompt);
        self.said_at = self.now;
    }

    /// Nobody types any more: what runs goes on, and what is asked stays unanswered.
    fn end(&mut self) {
        self.has_ended = true;
        self.refuse_all();
    }

    fn interrupt(&mut self) {
        self.end_prompt();
        if self.is_busy() {
            self.approvals.clear();
            self.waiting_questions.clear();
            self.question = None;
            self.release_held();
            self.say("note", "stopping");
            return self.effects.push(Effect::Stop);
        }
        match self.interrupt_at.take() {
            Some(first) if self.now < first + TWICE_TIME => self.effects.push(Effect::Leave),
            _ => {
                self.interrupt_at = Some(self.now);
                self.say("note", "press Ctrl-C again, or Ctrl-D, to leave");
                self.ask_again();
            }
        }
    }
}
