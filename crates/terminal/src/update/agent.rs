//! What the agent tells, as changes of the model and lines of the page.

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::blocks::{CallState, RUNNING_TAIL, RunSummary, ToolCall, reasoning_line};
use crate::editor::{Submission, SubmissionKind};
use crate::model::{
    AgentUpdate, ApprovalAnswer, ApprovalPrompt, BlockKind, Effect, Model, OpenQuestion, Phase, RuleOffer,
    RunningTool, ToolEnd,
};
use crate::text::{escape, wrap_indented};
use crate::theme::Role;

impl Model {
    pub(super) fn take_agent_update(&mut self, update: AgentUpdate, effects: &mut Vec<Effect>) {
        self.has_begun |= !matches!(update, AgentUpdate::Queue(_) | AgentUpdate::Retry { .. });
        match update {
            AgentUpdate::RunStarted => {
                // A person who sent a prompt sees it run before the agent says so.
                if self.phase != Phase::Stopping {
                    self.phase = Phase::Streaming;
                }
                self.run_since.get_or_insert(self.now);
                (self.has_text, self.has_begun) = (false, false);
            }
            AgentUpdate::Delivered { text } => {
                self.finish_answer();
                let shown = text.clone();
                self.print_prompt(&Submission { text, shown, kind: SubmissionKind::Prompt });
            }
            AgentUpdate::Text(text) => self.take_text(&text),
            AgentUpdate::Reasoning(text) => {
                self.resume_streaming();
                self.reasoning_since.get_or_insert(self.now);
                self.reasoning.push_str(&text);
            }
            AgentUpdate::AnswerEnded => self.finish_answer(),
            AgentUpdate::ToolStarted { id, name, subject } => {
                self.finish_answer();
                if self.phase != Phase::Stopping {
                    self.phase = Phase::Tool;
                }
                let (since, output) = (self.now, String::new());
                self.tools.push(RunningTool { id, name, subject, since, output, line_count: 0, task: None });
            }
            AgentUpdate::TaskProgress { id, progress } => {
                let tool = self.tools.iter_mut().find(|tool| tool.id == id);
                tool.into_iter().for_each(|tool| tool.task = Some(progress.clone()));
            }
            AgentUpdate::ToolOutput { id, text } => {
                if let Some(tool) = self.tools.iter_mut().find(|tool| tool.id == id) {
                    tool.line_count = text.lines().count();
                    // Blank lines are not shown: a few more than fit are kept.
                    let skipped = tool.line_count.saturating_sub(4 * RUNNING_TAIL);
                    tool.output = text.lines().skip(skipped).collect::<Vec<_>>().join("\n");
                }
            }
            AgentUpdate::ToolEnded(end) => self.end_tool(&end),
            AgentUpdate::ToolNotRun { name, subject, reason } => {
                let facts = vec![format!("not run: {reason}")];
                self.print_call(&ToolCall { tool: name, subject, facts, state: CallState::Refused }, &[]);
            }
            AgentUpdate::ApprovalAsked(prompt) => self.ask_approval(prompt, effects),
            AgentUpdate::ApprovalClosed { id } => self.close_approval(id),
            AgentUpdate::QuestionAsked(prompt) => {
                self.finish_answer();
                let question = OpenQuestion { prompt, marked: None, answer: Default::default() };
                self.question = Some(question);
                self.notify("asks", effects);
            }
            AgentUpdate::QuestionClosed { id } => {
                if self.question.as_ref().is_some_and(|question| question.prompt.id == id) {
                    self.question = None;
                }
            }
            AgentUpdate::Queue(queue) => self.queue = queue,
            AgentUpdate::Retry { message, wait, attempt, attempts } => {
                if self.phase != Phase::Stopping {
                    self.phase = Phase::Retry { message, until: self.now + wait, attempt, attempts };
                }
            }
            AgentUpdate::Compacting { text } => self.phase = Phase::Compacting { text },
            AgentUpdate::Note(text) => {
                self.finish_answer();
                self.print_marked(BlockKind::Note, "!", Role::Care, &text);
            }
            AgentUpdate::ExtensionMessage { from, text } => {
                self.finish_answer();
                let text = format!("{from}: {text}");
                self.print_marked(BlockKind::Note, self.theme.glyphs.separator, Role::Quiet, &text);
            }
            AgentUpdate::Problem(text) => {
                self.finish_answer();
                self.print_marked(BlockKind::Text, self.theme.glyphs.failed, Role::Danger, &text);
            }
            AgentUpdate::Output(text) => {
                let lines: Vec<Line<'static>> =
                    text.lines().map(|line| Line::from(escape(line).into_owned())).collect();
                self.page.push(BlockKind::Text, lines);
            }
            AgentUpdate::Lines(lines) => self.page.push(BlockKind::Text, lines),
            AgentUpdate::RunEnded { summary, problem } => self.end_run(summary, problem.as_deref(), effects),
            AgentUpdate::Idle => self.rest(),
        }
    }

    fn take_text(&mut self, text: &str) {
        self.resume_streaming();
        self.finish_reasoning();
        if !self.has_text {
            self.page.end_block();
            self.has_text = true;
        }
        let lines = self.answer.push(text);
        self.page.push(BlockKind::Answer, lines);
    }

    fn resume_streaming(&mut self) {
        if self.phase != Phase::Stopping {
            self.phase = Phase::Streaming;
        }
    }

    /// Prints what is left of the answer.
    fn finish_answer(&mut self) {
        self.finish_reasoning();
        let lines = self.answer.finish();
        self.page.push(BlockKind::Answer, lines);
        if std::mem::take(&mut self.has_text) {
            self.page.end_block();
        }
    }

    /// Reasoning leaves one line.
    fn finish_reasoning(&mut self) {
        let Some(since) = self.reasoning_since.take() else { return };
        let characters = std::mem::take(&mut self.reasoning).chars().count();
        // About four characters are a token.
        let line = reasoning_line(self.now - since, Some(characters.div_ceil(4)), &self.theme);
        self.page.push(BlockKind::Note, [line]);
    }

    fn end_tool(&mut self, end: &ToolEnd) {
        let Some(at) = self.tools.iter().position(|tool| tool.id == end.id) else { return };
        let tool = self.tools.remove(at);
        let elapsed = self.now - tool.since;
        let state = match end.is_error {
            true => CallState::Failed { elapsed, output: end.output.clone() },
            false => CallState::Done { elapsed },
        };
        let call = ToolCall { tool: tool.name, subject: tool.subject, facts: end.facts.clone(), state };
        self.print_call(&call, &end.details);
        if self.tools.is_empty() && self.phase == Phase::Tool {
            self.phase = Phase::Streaming;
        }
    }

    fn print_call(&mut self, call: &ToolCall, details: &[Line<'static>]) {
        let mut lines = call.lines(usize::from(self.size.columns), &self.theme);
        lines.extend(details.iter().cloned());
        self.page.push(BlockKind::Tool, lines);
    }

    /// Prints sentences behind a mark.
    fn print_marked(&mut self, kind: BlockKind, mark: &str, role: Role, text: &str) {
        let columns = usize::from(self.size.columns);
        let mut first = Span::styled(format!("{mark} "), self.theme.style(role));
        let mut lines = Vec::new();
        for line in text.lines() {
            let spans = [Span::raw(escape(line).into_owned())];
            lines.extend(wrap_indented(&spans, columns, &first, &Span::raw("  ")));
            first = Span::raw("  ");
        }
        self.page.push(kind, lines);
    }

    fn ask_approval(&mut self, prompt: ApprovalPrompt, effects: &mut Vec<Effect>) {
        self.finish_answer();
        self.approvals.push_back(prompt);
        if self.approvals.len() == 1 {
            self.print_next_approval();
        }
        self.notify("asks", effects);
    }

    /// Prints all of the call that is asked about: the question below it is live.
    pub(super) fn print_next_approval(&mut self) {
        if let Some(prompt) = self.approvals.front() {
            self.page.push(BlockKind::Text, prompt.preview.clone());
        }
    }

    fn close_approval(&mut self, id: u64) {
        let was_first = self.approvals.front().is_some_and(|prompt| prompt.id == id);
        self.approvals.retain(|prompt| prompt.id != id);
        if was_first {
            self.approval_focus = Default::default();
            self.print_next_approval();
        }
    }

    /// The answer stays on the page, below what it is about.
    pub(super) fn print_answer(&mut self, prompt: &ApprovalPrompt, answer: &ApprovalAnswer) {
        let rule = match &prompt.rule {
            RuleOffer::Offered(rule) => rule.as_str(),
            RuleOffer::NotOffered(_) => "",
        };
        let words = match answer {
            ApprovalAnswer::Once => "yes".to_owned(),
            ApprovalAnswer::Session => format!("yes, {rule} until you leave"),
            ApprovalAnswer::Always => format!("yes, {rule} always in this repository"),
            ApprovalAnswer::No(None) => "no".to_owned(),
            ApprovalAnswer::No(Some(reason)) => format!("no: {reason}"),
            ApprovalAnswer::NoAndStop => "no, and stop".to_owned(),
        };
        self.print_you(&words);
    }

    pub(super) fn print_question_answer(&mut self, answer: Option<&str>) {
        self.print_you(answer.unwrap_or("no answer"));
    }

    fn print_you(&mut self, words: &str) {
        let line = Line::from(vec![
            Span::styled("  you: ", self.theme.style(Role::Quiet)),
            Span::raw(escape(&words.lines().collect::<Vec<_>>().join(" ")).into_owned()),
        ]);
        self.page.push(BlockKind::Note, [line]);
    }

    fn end_run(&mut self, summary: Option<RunSummary>, problem: Option<&str>, effects: &mut Vec<Effect>) {
        self.finish_answer();
        let elapsed = self.run_since.map_or(Duration::ZERO, |since| self.now - since);
        if let Some(problem) = problem {
            self.print_marked(BlockKind::Text, self.theme.glyphs.failed, Role::Danger, problem);
        }
        if let Some(summary) = summary {
            let lines = RunSummary { elapsed, ..summary }.lines(usize::from(self.size.columns), &self.theme);
            self.page.push(BlockKind::Text, lines);
        }
        self.notify("done", effects);
        self.rest();
    }

    /// Nothing runs any more.
    fn rest(&mut self) {
        self.finish_answer();
        self.tools.clear();
        self.approvals.clear();
        self.approvals_answered = 0;
        self.phase = Phase::Idle;
        self.run_since = None;
    }
}
