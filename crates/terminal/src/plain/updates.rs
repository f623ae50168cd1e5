//! What the agent tells, as lines.

use std::time::Duration;

use super::{PlainDetail, PlainFace};
use crate::blocks::format::{age, clock, counted};
use crate::blocks::{Delivery, RunSummary, Subject};
use crate::model::{AgentUpdate, Mode, RunningTool, TaskProgress, ToolEnd};
use crate::transcript::BlockSource;

impl PlainFace {
    /// Tells what happens; while something is asked, after the answer. What a command of the person replies is
    /// told at once, and the question is asked again below it.
    pub(super) fn take_update(&mut self, update: AgentUpdate) {
        if !self.is_asked() {
            return self.tell(update);
        }
        let is_reply = match update {
            AgentUpdate::Output(_) | AgentUpdate::Reply(_) => true,
            AgentUpdate::Note(_) | AgentUpdate::Problem(_) | AgentUpdate::Queue(_) => self.is_command_sent,
            _ => false,
        };
        let is_silent = match update {
            AgentUpdate::ApprovalAsked(_)
            | AgentUpdate::ApprovalClosed { .. }
            | AgentUpdate::QuestionAsked(_)
            | AgentUpdate::QuestionClosed { .. } => true,
            // In its turn after the end of the run that is told later.
            AgentUpdate::Idle => self.held.is_empty(),
            _ => false,
        };
        if !is_reply && !is_silent {
            return self.held.push(update);
        }
        let is_idle = update == AgentUpdate::Idle;
        self.tell(update);
        if is_reply {
            self.ask_again();
        } else if is_idle {
            self.repeat_question();
        }
    }

    /// Tells what was said since something is asked.
    pub(super) fn release_held(&mut self) {
        let held = std::mem::take(&mut self.held);
        held.into_iter().for_each(|update| self.tell(update));
    }

    fn tell(&mut self, update: AgentUpdate) {
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
            AgentUpdate::ApprovalClosed { id } => self.close_approval(id),
            AgentUpdate::QuestionAsked(prompt) => self.ask_question(prompt),
            AgentUpdate::QuestionClosed { id } => self.close_question(id),
            AgentUpdate::Queue(queue) => self.tell_queue(queue),
            AgentUpdate::Retry { message, wait, attempt, attempts } => {
                self.is_retrying = true;
                let when = format!("sent again in {}, {attempt} of {attempts}; r sends it now", age(wait));
                self.say("note", &format!("{message}: {when}"));
            }
            AgentUpdate::Compacting { text } => self.say("note", &format!("compacting {text}")),
            AgentUpdate::Note(text) => self.say("note", &text),
            AgentUpdate::ExtensionMessage { from, text } => self.say("note", &format!("{from}: {text}")),
            AgentUpdate::Problem(text) => self.say("error", &text),
            AgentUpdate::Output(text) | AgentUpdate::Reply(text) => self.say_indented(&text),
            AgentUpdate::Image(image) => {
                let lines = BlockSource::Image(image).lines(self.columns, &self.theme);
                self.say_lines(&lines);
            }
            AgentUpdate::Lines(lines) => self.say_lines(&lines),
            AgentUpdate::RunEnded { summary, problem } => self.end_run(summary, problem.as_deref()),
            AgentUpdate::Idle => {
                (self.is_sent, self.is_command_sent, self.run_since) = (false, false, None);
                self.tools.clear();
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
            let output: Vec<&str> =
                if end.has_diff && !end.is_error { Vec::new() } else { end.output.lines().collect() };
            let skipped = output.len().saturating_sub(crate::blocks::FAILED_TAIL);
            self.say_indented(&output[skipped..].join("\n"));
            self.say_lines(&end.details);
        }
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

    pub(super) fn set_mode(&mut self, mode: Mode) {
        self.mode = mode;
        self.say("note", &format!("mode {}: {}", mode.name(), mode.meaning()));
    }

    pub(super) fn tell_progress(&mut self) {
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
