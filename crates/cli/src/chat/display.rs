//! [`EventPrinter`]: shows the agent's events as text: the answer on standard output, everything
//! else on standard error. Also the status line and the HUD after an answer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_agent::events::{
    HandlerFailed, MessageDelta, MessageEnd, MessageUpdate, QueueUpdate, TaskEnd, TaskStop,
};
use hardpan_agent::{Agent, AgentEvent, CacheWarmth, HandlerFault, QueuedInputs};
use hardpan_app::mcp::shown_call;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart, NotRunReason, ToolCall};
use hardpan_tools::ResultDisplay;
use serde_json::Value;

use super::screen;
use crate::event_reader::EventReader;
use crate::hud::{Hud, wrap::wrap};
use crate::output::{self, OutputError, OutputFormat, cut, dollars, safe, safe_lines, thousands};
use hardpan_app::ConversationApp;

/// Lines shown of a command's output: the last ones, which say how it ended.
const LAST_LINES: usize = 5;

/// Lines shown of each message when a conversation is resumed.
const FEW_LINES: usize = 6;

/// Prints an agent's events.
pub struct EventPrinter {
    reader: EventReader,
    /// The last answer, if it is not printed as it streams.
    last_answer: Option<Arc<Mutex<String>>>,
}

struct PrinterState {
    /// Whether to print the answer as it streams, or only the last answer at the end.
    live: bool,
    last_answer: Arc<Mutex<String>>,
    /// Calls that have not started, as shown to the user, by call id.
    calls: BTreeMap<Arc<str>, String>,
    /// Queued inputs as typed, by the text that goes to the model.
    waiting: BTreeMap<String, String>,
    /// Whether a run is under way. User messages that appear within it were typed earlier.
    runs: bool,
}

impl EventPrinter {
    /// Starts printing the agent's events. With `live`, prints the answer as it streams; otherwise
    /// prints only the last answer, at the end, so that a pipe gets nothing else.
    pub fn start(app: &ConversationApp, live: bool) -> Self {
        let last_answer: Arc<Mutex<String>> = Arc::default();
        let mut state = PrinterState {
            live,
            last_answer: last_answer.clone(),
            calls: BTreeMap::new(),
            waiting: BTreeMap::new(),
            runs: false,
        };
        let reader = EventReader::start(&app.agent, move |event| state.handle_event(event));
        EventPrinter { reader, last_answer: (!live).then_some(last_answer) }
    }

    /// Prints what is left, and the last answer if it was not printed while it streamed. Call it
    /// once the agent is shut down.
    pub async fn finish(self) -> Result<(), OutputError> {
        self.reader.finish().await;
        let Some(last_answer) = self.last_answer else {
            screen::end_answer_line();
            return Ok(());
        };
        let last = std::mem::take(&mut *last_answer.lock().unwrap_or_else(PoisonError::into_inner));
        match last.trim_end() {
            // A run that failed before its first answer prints no empty line.
            "" => Ok(()),
            last => output::print(last.to_owned() + "\n"),
        }
    }
}

impl PrinterState {
    fn handle_event(&mut self, event: AgentEvent) {
        match event {
            AgentEvent::MessageUpdate(MessageUpdate { delta: MessageDelta::Text { text }, .. }) => {
                self.print_text(&text);
            }
            AgentEvent::MessageEnd(MessageEnd { message, .. }) => self.print_message(&message.body),
            AgentEvent::QueueUpdate(QueueUpdate(queued)) => self.update_queue(queued),
            AgentEvent::AgentStart(_) => self.runs = true,
            AgentEvent::AgentEnd(_) => self.runs = false,
            AgentEvent::ToolExecutionStart(started) => {
                self.calls.remove(&started.call_id);
                print_cut(&format!("· {} {}", started.tool_name, arguments_summary(&started.args)));
            }
            AgentEvent::ToolExecutionEnd(ended) if ended.display == ResultDisplay::LastLines => {
                let denied = ended.details.as_ref().and_then(|details| details["denied"].as_array());
                let denied = denied.into_iter().flatten().filter_map(Value::as_str);
                print_command_output(&joined_texts(&ended.content), &denied.collect::<Vec<_>>());
            }
            AgentEvent::ToolExecutionEnd(ended) if ended.is_error => {
                print_note(&format!("  failed: {}", first_line(&joined_texts(&ended.content))));
            }
            AgentEvent::TaskUpdate(update) => {
                print_cut(&format!("  {}: {}", update.agent, update.activity));
            }
            AgentEvent::TaskEnd(end) => print_cut(&format!("  {}: {}", end.agent, task_end_line(&end))),
            AgentEvent::CacheVerdict(verdict) => print_note(&format!("hardpan: {}", verdict.sentence)),
            AgentEvent::Note(note) => print_note(&format!("hardpan: {}", note.attributed_text())),
            AgentEvent::HandlerFailed(HandlerFailed(HandlerFault { owner, event, message, .. })) => {
                print_note(&format!("hardpan: {owner} ({event}): {message}"));
            }
            _ => {}
        }
    }

    fn print_text(&mut self, text: &str) {
        if self.live && !text.is_empty() {
            screen::print_answer(text);
        }
    }

    fn print_message(&mut self, message: &MessageBody) {
        match message {
            MessageBody::Custom { custom_type, content, display: true } => {
                print_wrapped(&safe_lines(&format!("{custom_type}: {}", joined_texts(content))));
            }
            MessageBody::Assistant { content, .. } => {
                *self.last_answer.lock().unwrap_or_else(PoisonError::into_inner) = joined_texts(content);
                let calls = content.iter().filter_map(|part| match part {
                    MessagePart::ToolCall(call) => Some(shown_call(call)),
                    _ => None,
                });
                let label =
                    |call: &ToolCall| format!("{} {}", call.name, call_subject(&call.arguments.value()));
                self.calls =
                    calls.map(|call| (call.id.clone(), label(&call).trim_end().to_owned())).collect();
                screen::end_answer_line();
            }
            // A call that did not start: nothing else would tell the user what became of it.
            MessageBody::ToolResult { call_id, content, not_run, .. } => {
                if let (Some(call), Some(reason)) = (self.calls.remove(call_id), not_run) {
                    print_note(&format!("· {call}: {}", not_run_line(reason, &joined_texts(content))));
                }
            }
            // Shows where the answer to a queued message begins.
            MessageBody::User { content } => {
                let text = joined_texts(content);
                let typed = self.waiting.remove(&text).or(Some(text).filter(|_| self.runs));
                typed.iter().for_each(|typed| screen::print_lines(&safe_lines(&format!("> {typed}"))));
            }
            _ => {}
        }
    }

    /// Remembers what is queued: when it is delivered, its message follows the queue's update.
    fn update_queue(&mut self, QueuedInputs { steering, follow_up }: QueuedInputs) {
        let queued = steering.into_iter().chain(follow_up);
        self.waiting = queued.map(|input| (input.text, input.typed)).collect();
    }
}

/// Why a call was not run, for the user. `answer` is what the model reads about it.
fn not_run_line(reason: &NotRunReason, answer: &str) -> String {
    match reason {
        NotRunReason::Steered => "skipped: you said something else".to_owned(),
        NotRunReason::Blocked { message } | NotRunReason::Denied { message, .. } => {
            format!("not run: {}", first_line(message))
        }
        NotRunReason::Aborted
        | NotRunReason::Stopped
        | NotRunReason::UnknownTool
        | NotRunReason::FilledByLayout
        | NotRunReason::SwitchedOff
        | NotRunReason::InvalidCall
        | NotRunReason::RepeatedFailure
        | NotRunReason::Other => format!("not run: {}", first_line(answer)),
    }
}

/// The concatenated text parts of a message's content.
fn joined_texts(content: &[MessagePart]) -> String {
    let text = |part: &MessagePart| match part {
        MessagePart::Text { text } => Some(text.to_string()),
        _ => None,
    };
    content.iter().filter_map(text).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// Prints a line, cut to the terminal's width.
fn print_cut(line: &str) {
    let line = safe(line);
    screen::print_lines(&screen::width().map_or_else(|| line.clone(), |width| cut(&line, width)));
}

/// Prints a sentence in full, without control characters.
/// Prints a note. Further lines of it are indented, so that none looks like a note of its own.
fn print_note(text: &str) {
    print_wrapped(&indent_further_lines(&safe_lines(text)));
}

fn indent_further_lines(text: &str) -> String {
    text.trim_end().lines().collect::<Vec<_>>().join("\n  ")
}

/// Prints sentences, wrapped between words to the terminal's width.
pub fn print_wrapped(text: &str) {
    screen::print_lines(&screen::width().map_or_else(|| text.to_owned(), |width| wrap(text, width)));
}

/// Prints the last lines of a command's output, dimmed. What the sandbox denied is told in full.
fn print_command_output(output: &str, denied: &[&str]) {
    let output = safe_lines(output.trim_end());
    let all = output.lines().count();
    let width = screen::width();
    let line = |line: &str| {
        let is_whole = denied.contains(&line);
        let line = format!("  {}", line.replace('\t', "    "));
        match width {
            Some(width) if is_whole => wrap(&line, width),
            Some(width) => cut(&line, width),
            None => line,
        }
    };
    let more = all.saturating_sub(LAST_LINES);
    let before = (more > 0).then(|| format!("  … {more} more"));
    let lines: Vec<String> = before.into_iter().chain(output.lines().skip(more).map(line)).collect();
    let lines = lines.join("\n");
    screen::print_dimmed_lines(&lines);
}

/// How a sub-agent ended, and what it cost.
fn task_end_line(end: &TaskEnd) -> String {
    let how = match &end.stop {
        TaskStop::Done => "done",
        TaskStop::Aborted => "aborted",
        TaskStop::Budget { .. } => "stopped at its limit",
        TaskStop::Failed { .. } => "failed",
    };
    let requests = end.used.requests;
    let word = if requests == 1 { "request" } else { "requests" };
    format!("{how}, {requests} {word}, {}", dollars(end.used.dollars))
}

/// The arguments that say what a call is about, the most telling first.
const SUBJECTS: [&str; 4] = ["pattern", "command", "url", "path"];

/// A call's arguments on one line: what it is about, then the others with their names. Lists, objects
/// and texts of several lines are left out.
fn arguments_summary(args: &Value) -> String {
    let Some(args) = args.as_object() else { return String::new() };
    let subject = SUBJECTS.into_iter().find_map(|name| Some((name, args.get(name)?.as_str()?)));
    let is_short = |value: &Value| match value {
        Value::String(text) => !text.contains('\n'),
        Value::Bool(_) | Value::Number(_) => true,
        _ => false,
    };
    let others =
        args.iter().filter(|(name, value)| subject.is_none_or(|(is, _)| is != *name) && is_short(value));
    let word = |(name, value): (&String, &Value)| match value.as_str() {
        Some(text) => format!("{name}={text}"),
        None => format!("{name}={value}"),
    };
    let first =
        subject.map(
            |(_, text)| {
                if text.contains('\n') { format!("{} …", first_line(text)) } else { text.to_owned() }
            },
        );
    first.into_iter().chain(others.map(word)).collect::<Vec<_>>().join(" ")
}

/// What a call is about: its path, command, URL or pattern, else its arguments.
pub fn call_subject(args: &Value) -> String {
    let named =
        ["path", "command", "url", "pattern", "task"].into_iter().find_map(|name| args[name].as_str());
    named.map_or_else(|| arguments_summary(args), |subject| first_line(subject).to_owned())
}

/// The last prompt and its answer, shortened. None before the first prompt.
pub fn last_exchange(messages: &[AgentMessage]) -> Option<String> {
    let words = |parts: &[MessagePart]| -> String {
        let text = |part: &MessagePart| {
            if let MessagePart::Text { text } = part { Some(text.to_string()) } else { None }
        };
        parts.iter().filter_map(text).collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    let last_prompt =
        messages.iter().rposition(|message| matches!(*message.body, MessageBody::User { .. }))?;
    let MessageBody::User { content } = &*messages[last_prompt].body else { return None };
    let question = format!("> {}", first_lines(&words(content)));
    let answers = messages[last_prompt..].iter().rev().filter_map(|message| match &*message.body {
        MessageBody::Assistant { content, .. } => Some(words(content)).filter(|words| !words.is_empty()),
        _ => None,
    });
    let answer = answers.map(|answer| first_lines(&answer)).next();
    Some([question].into_iter().chain(answer).collect::<Vec<_>>().join("\n"))
}

/// The first lines of a text.
fn first_lines(text: &str) -> String {
    // Limits the columns, too, since a paragraph may be one long line.
    let most = FEW_LINES * crate::views::width();
    let mut lines = text.lines();
    let few = cut(&lines.by_ref().take(FEW_LINES).collect::<Vec<_>>().join("\n"), most);
    if lines.next().is_some() { few + "\n…" } else { few }
}

/// When the provider's cache expires, and when Hardpan will refresh it, if it may.
pub fn cache_countdown(warmth: &CacheWarmth, keeps_alive: bool) -> String {
    let clock = |seconds: i64| format!("{}:{:02}", seconds / 60, seconds % 60);
    if warmth.expires_in <= 0 {
        return format!(
            "the cache has expired: the next request writes {} tokens again",
            thousands(warmth.tokens)
        );
    }
    let ping = match warmth.ping_due_in().filter(|_| keeps_alive) {
        Some(seconds) => {
            format!("; Hardpan refreshes it in {}", clock(i64::try_from(seconds).unwrap_or(i64::MAX)))
        }
        None => String::new(),
    };
    format!("the cache of {} tokens expires in {}{ping}", thousands(warmth.tokens), clock(warmth.expires_in))
}

/// The HUD of the last request, as text; none before the first request.
pub fn render_hud(agent: &Agent) -> Option<String> {
    with_hud(agent, |hud| hud.render(crate::views::columns()))
}

/// Prints the HUD: as text on standard error, or as an event on standard output.
pub fn print_hud(agent: &Agent, output: OutputFormat) {
    match output {
        OutputFormat::Text => render_hud(agent).iter().for_each(|hud| screen::print_lines(hud)),
        OutputFormat::Json => {
            let event = with_hud(agent, |hud| serde_json::json!({"type": "hud", "hud": hud.json()}));
            event.iter().for_each(|event| drop(output::print_json_line(event.to_string())));
        }
    }
}

fn with_hud<T>(agent: &Agent, show: impl FnOnce(&Hud<'_>) -> T) -> Option<T> {
    let breakdown = agent.breakdown()?;
    let (usage, target) = (agent.token_usage(), agent.target());
    Some(show(&Hud {
        verdict: agent.last_verdict(),
        breakdown: &breakdown,
        provider: &target.provider,
        max_output: target.max_tokens,
        last: usage.last_request,
        session: usage.session,
        requests: usage.requests,
        tasks: usage.tasks,
        layout_figures: &agent.layout_figures(&breakdown),
    }))
}

#[cfg(test)]
mod tests {
    use hardpan_prompt::DeniedBy;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_was_not_run_says_why_in_one_line() {
        assert_eq!(not_run_line(&NotRunReason::Steered, "Skipped."), "skipped: you said something else");
        let message = "the person said instead: wait\nand see".to_owned();
        let denied = NotRunReason::Denied { by: DeniedBy::Person, message };
        assert_eq!(not_run_line(&denied, "Not allowed."), "not run: the person said instead: wait");
        let blocked = NotRunReason::Blocked { message: "not today".into() };
        assert_eq!(not_run_line(&blocked, "Blocked."), "not run: not today");
        assert_eq!(not_run_line(&NotRunReason::InvalidCall, "It was cut off."), "not run: It was cut off.");
    }

    #[test]
    fn a_call_s_line_names_what_is_not_clear_by_itself() {
        let line = |args: Value| arguments_summary(&args);
        assert_eq!(
            line(json!({"path": "src", "pattern": "render", "literal": true})),
            "render path=src literal=true"
        );
        assert_eq!(line(json!({"path": "a.rs", "offset": 1, "limit": 24})), "a.rs offset=1 limit=24");
        assert_eq!(line(json!({"path": "a.rs", "edits": [{"old_text": "a"}]})), "a.rs");
        assert_eq!(line(json!({"command": "ls\ncd", "timeout": 3})), "ls … timeout=3");
        assert_eq!(line(json!({"path": "a.rs", "content": "a\nb"})), "a.rs");
    }

    #[test]
    fn further_lines_of_a_note_are_indented() {
        assert_eq!(indent_further_lines("a: one\ntwo\n\nthree\n"), "a: one\n  two\n  \n  three");
        assert_eq!(indent_further_lines("one"), "one");
    }

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        assert_eq!(call_subject(&json!({"content": "x", "path": "a.txt"})), "a.txt");
        assert_eq!(call_subject(&json!({"command": "ls\ncd", "timeout": 3})), "ls");
        assert_eq!(call_subject(&json!({"to": "the moon", "by": 3})), "to=the moon by=3");
        assert_eq!(call_subject(&json!("broken")), "");
    }

    #[test]
    fn the_last_exchange_is_what_the_person_said_last_and_the_answer_to_it() {
        let messages = |bodies: Value| -> Vec<AgentMessage> { serde_json::from_value(bodies).unwrap() };
        let all = messages(json!([
            {"id": "1", "role": "user", "content": "Before"},
            {"id": "2", "role": "assistant", "content": "Long ago."},
            {"id": "3", "role": "user", "content": "Why?\nAnd how?"},
            {"id": "4", "role": "assistant", "content": [{"type": "text", "text": "Let me look."}]},
            {"id": "5", "role": "assistant", "content": "1\n2\n3\n4\n5\n6\n7"},
            {"id": "6", "role": "assistant", "content": []},
        ]));
        assert_eq!(last_exchange(&all).unwrap(), "> Why?\nAnd how?\n1\n2\n3\n4\n5\n6\n…");
        assert_eq!(last_exchange(&all[..3]).unwrap(), "> Why?\nAnd how?");
        assert_eq!(last_exchange(&all[3..]), None);
    }
}
