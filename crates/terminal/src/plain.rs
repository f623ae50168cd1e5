//! [`PlainFace`]: the conversation as lines, for screen readers, pipes and terminals that can do
//! little. Nothing moves the cursor, speakers are words, choices have numbers, and long work says
//! every ten seconds that it goes on.
//!
//! Whatever others wrote stands behind a speaker or is indented, so that a line that begins with
//! `asks:` is always a question of the program.

mod answers; // what a typed line means as an answer
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use ratatui::text::Line;

use crate::blocks::format::{age, clock, counted};
use crate::blocks::{Delivery, RunSummary, Subject};
use crate::editor::{Submission, SubmissionKind};
use crate::model::{
    AgentUpdate, ApprovalAnswer, ApprovalPrompt, CallKind, Effect, Event, Mode, QuestionPrompt, RuleOffer,
    RunningTool, TWICE_TIME, TaskProgress, ToolEnd,
};
use crate::text::{escape, safe_lines};
use crate::theme::{Palette, Theme};

/// How often work that goes on says so.
const PROGRESS_TIME: Duration = Duration::from_secs(10);

/// Before every line that continues what a speaker says.
const INDENT: &str = "  ";

/// Shown where a line is waited for.
const PROMPT: &str = "you: ";
/// Shown where an answer is waited for.
const ANSWER_PROMPT: &str = "answer: ";

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
    question: Option<QuestionPrompt>,
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
            PlainEvent::Other(Event::ModeSet(mode)) => self.set_mode(mode),
            PlainEvent::Other(Event::EditText(text)) => self.say("note", &text),
            PlainEvent::Other(Event::TakenBack(text)) => self.say("note", &format!("taken back: {text}")),
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
        let is_asked = !self.approvals.is_empty() || self.question.is_some();
        (self.run_since.is_some() && !is_asked).then(|| self.said_at + PROGRESS_TIME)
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
            return;
        }
        if text.is_empty() {
            return self.repeat_question();
        }
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

    fn answer_approval(&mut self, text: &str) {
        let Some(prompt) = self.approvals.front() else { return };
        let Some(answer) = answers::approval_answer(text, &answers::offered(prompt)) else {
            self.say("note", "answer with one of the numbers");
            return self.repeat_question();
        };
        let id = prompt.id;
        self.approvals.pop_front();
        self.effects.push(Effect::Answer { id, answer });
        self.said_at = self.now;
        self.ask_next();
    }

    /// Nobody types any more: what runs goes on, and what is asked stays unanswered.
    fn end(&mut self) {
        self.has_ended = true;
        self.refuse_all();
    }

    fn refuse_all(&mut self) {
        let refused = self.approvals.drain(..);
        self.effects
            .extend(refused.map(|prompt| Effect::Answer { id: prompt.id, answer: ApprovalAnswer::No(None) }));
        let unanswered = self.question.take();
        self.effects.extend(unanswered.map(|prompt| Effect::AnswerQuestion { id: prompt.id, answer: None }));
    }

    fn interrupt(&mut self) {
        self.end_prompt();
        if self.is_busy() {
            (self.approvals, self.question) = (VecDeque::new(), None);
            self.say("note", "stopping");
            return self.effects.push(Effect::Stop);
        }
        match self.interrupt_at.take() {
            Some(first) if self.now < first + TWICE_TIME => self.effects.push(Effect::Leave),
            _ => {
                self.interrupt_at = Some(self.now);
                self.say("note", "press Ctrl-C again, or Ctrl-D, to leave");
            }
        }
    }

    fn take_update(&mut self, update: AgentUpdate) {
        self.is_retrying = false;
        match update {
            AgentUpdate::RunStarted => _ = self.run_since.get_or_insert(self.now),
            AgentUpdate::Delivered { text } => self.say("you", &text),
            AgentUpdate::Text(text) => self.say_answer(&text),
            AgentUpdate::Reasoning(_) => {}
            AgentUpdate::AnswerEnded => self.end_answer(),
            AgentUpdate::ToolStarted { id, name, subject } => self.start_tool(id, name, subject),
            AgentUpdate::ToolOutput { id, text } => {
                let tool = self.tools.iter_mut().find(|tool| tool.id == id);
                tool.into_iter().for_each(|tool| tool.line_count = text.lines().count());
            }
            AgentUpdate::TaskProgress { id, progress } => {
                let tool = self.tools.iter_mut().find(|tool| tool.id == id);
                tool.into_iter().for_each(|tool| tool.task = Some(progress.clone()));
            }
            AgentUpdate::ToolEnded(end) => self.end_tool(&end),
            AgentUpdate::ToolNotRun { name, subject, reason } => {
                self.say_detail("tool", &format!("{name} {}: not run: {reason}", subject_text(&subject)));
            }
            AgentUpdate::ApprovalAsked(prompt) => self.ask_approval(prompt),
            AgentUpdate::ApprovalClosed { id } => self.approvals.retain(|prompt| prompt.id != id),
            AgentUpdate::QuestionAsked(prompt) => self.ask(prompt),
            AgentUpdate::QuestionClosed { id } => {
                self.question = self.question.take().filter(|prompt| prompt.id != id);
            }
            AgentUpdate::Queue(queue) => self.tell_queue(queue),
            AgentUpdate::Retry { message, wait, attempt, attempts } => {
                self.is_retrying = true;
                let when = format!("sent again in {}, {attempt} of {attempts}; r sends it now", age(wait));
                self.say("note", &format!("{message}: {when}"));
            }
            AgentUpdate::Compacting { text } => self.say("note", &format!("compacting {text}")),
            AgentUpdate::Note(text) => self.say_and_ask_again("note", &text),
            AgentUpdate::ExtensionMessage { from, text } => self.say("note", &format!("{from}: {text}")),
            AgentUpdate::Problem(text) => self.say_and_ask_again("error", &text),
            AgentUpdate::Output(text) => {
                self.say_indented(&text);
                self.repeat_question();
            }
            AgentUpdate::Lines(lines) => self.say_lines(&lines),
            AgentUpdate::RunEnded { summary, problem } => self.end_run(summary, problem.as_deref()),
            AgentUpdate::Idle => {
                (self.is_sent, self.is_command_sent, self.run_since) = (false, false, None);
                self.tools.clear();
                self.repeat_question();
            }
        }
    }

    fn start_tool(&mut self, id: std::sync::Arc<str>, name: String, subject: Subject) {
        self.run_since.get_or_insert(self.now);
        self.say_detail("tool", &format!("{name} {}", subject_text(&subject)));
        let (since, output) = (self.now, String::new());
        self.tools.push(RunningTool { id, name, subject, since, output, line_count: 0, task: None });
    }

    fn end_tool(&mut self, end: &ToolEnd) {
        let Some(at) = self.tools.iter().position(|tool| tool.id == end.id) else { return };
        let tool = self.tools.remove(at);
        let mut facts = end.facts.clone();
        facts.push(clock(self.now.saturating_sub(tool.since)));
        let word = if end.is_error { "failed" } else { "done" };
        let facts = facts.join(", ");
        self.say_detail("tool", &format!("{} {}: {word}, {facts}", tool.name, subject_text(&tool.subject)));
        if self.detail == PlainDetail::Everything {
            let output: Vec<&str> = end.output.lines().collect();
            let skipped = output.len().saturating_sub(crate::blocks::FAILED_TAIL);
            self.say_indented(&output[skipped..].join("\n"));
            self.say_lines(&end.details);
        }
    }

    fn ask_approval(&mut self, prompt: ApprovalPrompt) {
        self.approvals.push_back(prompt);
        if self.has_ended {
            self.refuse_all();
        } else if self.approvals.len() == 1 {
            self.ask_next();
        }
    }

    /// Prints all of the call that is next, and asks about it.
    fn ask_next(&mut self) {
        if let Some(prompt) = self.approvals.front() {
            let preview = prompt.preview.clone();
            self.say_lines(&preview);
            self.repeat_question();
        }
    }

    fn repeat_question(&mut self) {
        if let Some(prompt) = self.question.clone() {
            return self.ask(prompt);
        }
        let Some(prompt) = self.approvals.front() else { return };
        let question = match &prompt.kind {
            CallKind::Edit => "Change this file?".to_owned(),
            CallKind::Command { lines } => format!("Run this, {}?", counted(*lines, "line", "lines")),
            CallKind::Other { tool } => format!("Run {tool}?"),
        };
        let says = prompt.model_says.as_ref().map(|words| format!(" The model says: \"{}\"", words.trim()));
        let mut text = question + &says.unwrap_or_default();
        if let RuleOffer::NotOffered(why) = &prompt.rule
            && !why.is_empty()
        {
            text += &format!("\nNo rule is offered: {why}");
        }
        for (index, choice) in answers::offered(prompt).iter().enumerate() {
            text += &format!("\n{} {}", index + 1, choice.words);
        }
        self.say("asks", &text);
    }

    fn ask(&mut self, prompt: QuestionPrompt) {
        let mut text = prompt.text.clone();
        for (index, choice) in prompt.choices.iter().enumerate() {
            text += &format!("\n{} {choice}", index + 1);
        }
        if self.has_ended {
            return self.effects.push(Effect::AnswerQuestion { id: prompt.id, answer: None });
        }
        self.say("asks", &format!("{text}\nAn empty line gives no answer."));
        self.question = Some(prompt);
    }

    fn tell_queue(&mut self, queue: Vec<(Delivery, String)>) {
        for (index, (delivery, text)) in queue.iter().enumerate().skip(self.queue.len()) {
            let when = delivery.words();
            self.say("note", &format!("queued, {} {when}: {}", index + 1, first_line(text)));
        }
        self.queue = queue;
    }

    fn end_run(&mut self, summary: Option<RunSummary>, problem: Option<&str>) {
        self.end_answer();
        let elapsed = self.run_since.take().map_or(Duration::ZERO, |since| self.now.saturating_sub(since));
        self.tools.clear();
        self.approvals.clear();
        if let Some(problem) = problem {
            self.say("error", problem);
        }
        if let Some(summary) = summary.filter(|_| self.detail == PlainDetail::Everything) {
            let lines = RunSummary { elapsed, ..summary }.lines(self.columns, &self.theme);
            let text: Vec<String> = lines.iter().map(|line| line.to_string().trim().to_owned()).collect();
            self.say("note", &text.join("\n"));
        }
        if !self.queue.is_empty() {
            let count = self.queue.len();
            self.say("note", &format!("{count} queued, sent with the next prompt; /unqueue drops them"));
        }
    }

    fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.say("note", &format!("mode {}: {}", mode.name(), mode.meaning()));
    }

    fn tell_progress(&mut self) {
        if self.next_tick().is_none_or(|due| self.now < due) {
            return;
        }
        let lines: Vec<String> = self.tools.iter().map(|tool| self.tool_progress(tool)).collect();
        let since = self.run_since.unwrap_or(self.now);
        let waiting = format!("still working, {}", clock(self.now.saturating_sub(since)));
        match lines.is_empty() {
            true => self.say("model", &waiting),
            false => lines.iter().for_each(|line| self.say("tool", line)),
        }
        self.said_at = self.now;
    }

    fn tool_progress(&self, tool: &RunningTool) -> String {
        let time = clock(self.now.saturating_sub(tool.since));
        match &tool.task {
            Some(TaskProgress { agent, activity, facts }) => {
                format!("{agent}: {activity}, {}, {time}", facts.join(", "))
            }
            None => {
                let lines = counted(tool.line_count, "line", "lines");
                format!("{} {} still runs, {time}, {lines}", tool.name, subject_text(&tool.subject))
            }
        }
    }

    /// Says something, and repeats the question that it stands below.
    fn say_and_ask_again(&mut self, speaker: &str, text: &str) {
        self.say(speaker, text);
        self.repeat_question();
    }

    /// Says something behind a speaker, unless it is told elsewhere.
    fn say_detail(&mut self, speaker: &str, text: &str) {
        if self.detail == PlainDetail::Everything {
            self.say(speaker, text);
        }
    }

    /// Says something behind a speaker; further lines are indented.
    fn say(&mut self, speaker: &str, text: &str) {
        self.end_answer();
        let text = safe_lines(text.trim_end());
        let text = format!("{speaker}: {}\n", text.replace('\n', &format!("\n{INDENT}")));
        self.push(&text);
    }

    fn say_indented(&mut self, text: &str) {
        self.end_answer();
        for line in text.trim_end().lines() {
            let line = format!("{INDENT}{}", escape(line));
            self.push(&format!("{}\n", line.trim_end()));
        }
    }

    fn say_lines(&mut self, lines: &[Line<'static>]) {
        let text: Vec<String> = lines.iter().map(ToString::to_string).collect();
        self.say_indented(&text.join("\n"));
    }

    /// More of the answer, as it comes.
    fn say_answer(&mut self, text: &str) {
        if self.detail != PlainDetail::Everything || text.is_empty() {
            return;
        }
        if !std::mem::replace(&mut self.is_speaking, true) {
            self.push("model: ");
        }
        let text = safe_lines(text).replace('\n', &format!("\n{INDENT}"));
        self.push(&text);
    }

    fn end_answer(&mut self) {
        if std::mem::take(&mut self.is_speaking) {
            self.push("\n");
        }
    }

    fn end_prompt(&mut self) {
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
    fn show_prompt(&mut self) {
        let is_asked = !self.approvals.is_empty() || self.question.is_some();
        if self.has_prompt || self.has_ended || self.is_command_sent || (self.is_busy() && !is_asked) {
            return;
        }
        self.end_answer();
        self.out.push_str(if is_asked { ANSWER_PROMPT } else { PROMPT });
        self.has_prompt = true;
    }
}

/// What a call is about, on one line.
fn subject_text(subject: &Subject) -> String {
    match subject {
        Subject::Path(text) | Subject::Text(text) => first_line(text),
    }
}

fn first_line(text: &str) -> String {
    let mut lines = text.trim().lines();
    let first = lines.next().unwrap_or_default();
    if lines.next().is_some() { format!("{first} …") } else { first.to_owned() }
}
