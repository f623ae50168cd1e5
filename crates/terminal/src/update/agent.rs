//! What the agent tells, as changes of the model and lines of the page.

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::blocks::{CallState, RUNNING_TAIL, RunSummary, ToolCall};
use crate::editor::{EditBuffer, Submission, SubmissionKind};
use crate::model::{
    AgentUpdate, ApprovalAnswer, ApprovalPrompt, BlockKind, Effect, Model, OpenQuestion, Phase,
    QuestionFocus, QuestionPrompt, RuleOffer, RunningTool, ToolEnd,
};
use crate::text::escape;
use crate::theme::Role;
use crate::transcript::{BlockSource, CallRecord};

/// Bytes that are kept of a line of a running tool's output.
const MAX_LIVE_LINE: usize = 8 * 1024;

/// Reasoning that took less time and has fewer characters than these is not worth a line.
const SHORT_THOUGHT: Duration = Duration::from_secs(1);
const SHORT_REASONING: usize = 400;

impl Model {
    pub(super) fn take_agent_update(&mut self, update: AgentUpdate, effects: &mut Vec<Effect>) {
        let is_reply = self.is_reply(&update);
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
                    let tail = text.lines().skip(skipped).map(line_end);
                    tool.output = tail.collect::<Vec<_>>().join("\n");
                }
            }
            AgentUpdate::ToolEnded(end) => self.end_tool(&end),
            AgentUpdate::ToolNotRun { name, subject, reason } => {
                let facts = vec![format!("not run: {reason}")];
                let call = ToolCall { tool: name, subject, facts, state: CallState::Refused };
                self.say_call(CallRecord { call, details: Vec::new(), output: String::new() });
            }
            AgentUpdate::ApprovalAsked(prompt) => self.ask_approval(prompt, effects),
            AgentUpdate::ApprovalClosed { id } => self.close_approval(id),
            AgentUpdate::QuestionAsked(prompt) => {
                if self.approvals.is_empty() && self.question.is_none() {
                    // What the person asked for by a command is answered at once, and a run's own questions
                    // only by keys that were pressed for them.
                    let is_expected = !self.is_running() || prompt.choices.is_empty();
                    let drawn_at = Some(Duration::ZERO);
                    let focus =
                        if is_expected { QuestionFocus::Active { drawn_at } } else { QuestionFocus::Waiting };
                    self.open_question(prompt, focus);
                } else {
                    self.waiting_questions.push_back(prompt);
                }
                self.notify("asks", effects);
            }
            AgentUpdate::QuestionClosed { id } => self.drop_question(id),
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
                self.say(BlockKind::Text, BlockSource::Output(text));
            }
            AgentUpdate::Reply(text) => self.say(BlockKind::Text, BlockSource::Reply(text)),
            AgentUpdate::Image(image) => self.say(BlockKind::Note, BlockSource::Image(image)),
            AgentUpdate::Lines(lines) => self.say(BlockKind::Text, BlockSource::Lines(lines)),
            AgentUpdate::RunEnded { summary, problem } => self.end_run(summary, problem.as_deref(), effects),
            AgentUpdate::Idle => self.rest(),
        }
        if is_reply {
            self.expects_reply = false;
            self.release_held();
            self.print_what_is_asked();
        }
    }

    /// Whether the person waits for this while something is asked: a command's answer is shown at once, with
    /// what is asked about below it again.
    fn is_reply(&self, update: &AgentUpdate) -> bool {
        self.holds_text()
            && match update {
                AgentUpdate::Reply(_) | AgentUpdate::Output(_) => true,
                AgentUpdate::Note(_) | AgentUpdate::Problem(_) => self.expects_reply,
                _ => false,
            }
    }

    fn take_text(&mut self, text: &str) {
        self.resume_streaming();
        self.finish_reasoning();
        self.has_text = true;
        self.say_answer(text);
    }

    fn resume_streaming(&mut self) {
        if self.phase != Phase::Stopping {
            self.phase = Phase::Streaming;
        }
    }

    /// Prints what is left of the answer.
    fn finish_answer(&mut self) {
        self.finish_reasoning();
        self.has_text = false;
        self.end_answer();
    }

    /// Reasoning leaves one line; a moment of it, of which nothing can be read, leaves none.
    fn finish_reasoning(&mut self) {
        let Some(since) = self.reasoning_since.take() else { return };
        let (text, elapsed) = (std::mem::take(&mut self.reasoning), self.now - since);
        if elapsed >= SHORT_THOUGHT || text.chars().count() > SHORT_REASONING {
            self.say(BlockKind::Note, BlockSource::Reasoning { text, elapsed: Some(elapsed) });
        }
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
        let output = if end.is_error { String::new() } else { end.output.clone() };
        self.say_call(CallRecord { call, details: end.details.clone(), output });
        if self.tools.is_empty() && self.phase == Phase::Tool {
            self.phase = Phase::Streaming;
        }
    }

    fn say_call(&mut self, record: CallRecord) {
        self.say(BlockKind::Tool, BlockSource::Call(Box::new(record)));
    }

    /// Prints sentences behind a mark.
    fn print_marked(&mut self, kind: BlockKind, mark: &'static str, role: Role, text: &str) {
        self.say(kind, BlockSource::Marked { mark, role, text: text.to_owned() });
    }

    fn ask_approval(&mut self, prompt: ApprovalPrompt, effects: &mut Vec<Effect>) {
        self.finish_answer();
        self.approvals.push_back(prompt);
        if self.approvals.len() == 1 {
            self.print_what_is_asked();
        }
        self.notify("asks", effects);
    }

    fn open_question(&mut self, mut prompt: QuestionPrompt, focus: QuestionFocus) {
        self.finish_answer();
        // What is asked about is printed whole; the last line is the question.
        let parts =
            prompt.text.rsplit_once('\n').map(|(subject, last)| (subject.to_owned(), last.to_owned()));
        let subject = parts.map(|(subject, last)| {
            prompt.text = last;
            subject
        });
        let mut answer = EditBuffer::default();
        answer.insert(&prompt.prefill);
        self.question = Some(OpenQuestion { prompt, subject, focus, marked: None, answer });
        self.print_what_is_asked();
    }

    /// Nobody waits for the answer of a question any more.
    fn drop_question(&mut self, id: u64) {
        self.waiting_questions.retain(|prompt| prompt.id != id);
        if self.question.take_if(|question| question.prompt.id == id).is_some() && self.approvals.is_empty() {
            self.ask_next();
        }
    }

    /// A question is over: shows what was said meanwhile, and the next question below what it is about.
    pub(super) fn ask_next(&mut self) {
        self.expects_reply = false;
        self.release_held();
        if !self.approvals.is_empty() {
            return self.print_what_is_asked();
        }
        self.approvals_answered = 0;
        // The last key was meant for what was asked before.
        if let Some(question) = &mut self.question {
            question.focus = QuestionFocus::Waiting;
            self.print_what_is_asked();
        } else if let Some(prompt) = self.waiting_questions.pop_front() {
            self.open_question(prompt, QuestionFocus::Waiting);
        }
    }

    fn close_approval(&mut self, id: u64) {
        let was_first = self.approvals.front().is_some_and(|prompt| prompt.id == id);
        self.approvals.retain(|prompt| prompt.id != id);
        if was_first {
            self.approval_focus = Default::default();
            self.ask_next();
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
            ApprovalAnswer::Changed(_) => "yes, as changed in the editor".to_owned(),
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
        self.say_now(BlockKind::Note, BlockSource::Lines(vec![line]));
    }

    fn end_run(&mut self, summary: Option<RunSummary>, problem: Option<&str>, effects: &mut Vec<Effect>) {
        self.finish_answer();
        let elapsed = self.run_since.map_or(Duration::ZERO, |since| self.now - since);
        if let Some(problem) = problem {
            self.print_marked(BlockKind::Text, self.theme.glyphs.failed, Role::Danger, problem);
        }
        if let Some(summary) = summary {
            self.say(BlockKind::Text, BlockSource::Summary(RunSummary { elapsed, ..summary }));
        }
        self.notify("done", effects);
        self.rest();
    }

    /// Nothing runs any more. Questions stay: whoever asks one outside of a run still waits for its answer, and
    /// takes it back otherwise.
    fn rest(&mut self) {
        self.finish_answer();
        self.tools.clear();
        self.phase = Phase::Idle;
        self.run_since = None;
    }
}

/// The end of a line that is longer than any screen: of progress that overwrites itself, the last.
fn line_end(line: &str) -> &str {
    &line[line.ceil_char_boundary(line.len().saturating_sub(MAX_LIVE_LINE))..]
}
