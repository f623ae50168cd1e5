//! [`EventPrinter`]: shows the agent's events as text: the answer on standard output, everything
//! else on standard error. Also the status line and the HUD after an answer.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_agent::{Agent, CacheWarmth, Spending};
use hardpan_context::Phrases;
use hardpan_economy::Verdict;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use serde_json::Value;

use super::screen;
use crate::args::OutputFormat;
use crate::hud::{Hud, wrap::wrap};
use crate::output::{self, OutputError, cut, dollars, safe, safe_lines, thousands};
use hardpan_app::ConversationApp;

/// Lines shown of a command's output: the last ones, which say how it ended.
const LAST_LINES: usize = 5;

/// Lines shown of each message when a conversation is resumed.
const FEW_LINES: usize = 6;

/// Prints an agent's events.
#[derive(Clone)]
pub struct EventPrinter(Arc<Mutex<PrinterState>>);

struct PrinterState {
    /// Whether to print the answer as it streams, or only the last answer at the end.
    live: bool,
    last: String,
    /// Calls that have not started, as shown to the user, by call id.
    calls: BTreeMap<String, String>,
    phrases: Phrases,
    /// Queued inputs as typed, by the text that goes to the model.
    waiting: BTreeMap<String, String>,
    /// Whether a run is under way. User messages that appear within it were typed earlier.
    runs: bool,
}

impl EventPrinter {
    /// Starts printing the agent's events. With `live`, prints the answer as it streams; otherwise
    /// prints only the last answer, at the end, so that a pipe gets nothing else.
    pub fn attach(app: &ConversationApp, live: bool) -> Self {
        let text = EventPrinter(Arc::new(Mutex::new(PrinterState {
            live,
            last: String::new(),
            calls: BTreeMap::new(),
            phrases: app.settings.texts.phrases.clone(),
            waiting: BTreeMap::new(),
            runs: false,
        })));
        app.agent.events().add_observer({
            let text = text.clone();
            move |event| text.lock().handle_event(event)
        });
        text
    }

    /// Prints the last answer, if it was not printed while it streamed.
    pub fn finish(&self) -> Result<(), OutputError> {
        let state = self.lock();
        if state.live {
            screen::end_answer_line();
            return Ok(());
        }
        match state.last.trim_end() {
            // A run that failed before its first answer prints no empty line.
            "" => Ok(()),
            last => output::print(last.to_owned() + "\n"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PrinterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PrinterState {
    fn handle_event(&mut self, event: &Value) {
        let word = |name: &str| event[name].as_str().unwrap_or_default();
        match word("type") {
            "message_update" if event["delta"]["kind"] == "text" => {
                self.print_text(event["delta"]["text"].as_str().unwrap_or_default());
            }
            "message_end" => self.print_message(&event["message"]),
            "queue_update" => self.update_queue(event),
            "agent_start" => self.runs = true,
            "agent_end" => self.runs = false,
            "tool_execution_start" => {
                self.calls.remove(word("call_id"));
                print_cut(&format!("· {} {}", word("tool_name"), arguments_summary(&event["args"])));
            }
            "tool_execution_end" if word("display") == "last_lines" => {
                print_command_output(&joined_texts(&event["content"]));
            }
            "tool_execution_end" if event["is_error"] == true => {
                print_note(&format!("  failed: {}", first_line(&joined_texts(&event["content"]))));
            }
            "cache_verdict" => print_note(&format!("hardpan: {}", word("sentence"))),
            "note" => print_note(&format!("hardpan: {}", word("text"))),
            "handler_failed" => {
                print_note(&format!("hardpan: {} ({}): {}", word("owner"), word("event"), word("what")));
            }
            _ => {}
        }
    }

    fn print_text(&mut self, text: &str) {
        if self.live && !text.is_empty() {
            screen::print_answer(&if io::stdout().is_terminal() {
                safe_lines(text)
            } else {
                text.to_owned()
            });
        }
    }

    fn print_message(&mut self, message: &Value) {
        let text = joined_texts(&message["content"]);
        match message["role"].as_str().unwrap_or_default() {
            "assistant" => {
                self.last = text;
                let parts = message["content"].as_array().into_iter().flatten();
                let calls = parts.filter(|part| part["type"] == "tool_call").filter_map(|part| {
                    let call = format!("{} {}", part["name"].as_str()?, call_subject(&part["arguments"]));
                    Some((part["id"].as_str()?.to_owned(), call.trim_end().to_owned()))
                });
                self.calls = calls.collect();
                screen::end_answer_line();
            }
            // A call that did not start: nothing else would tell the user what became of it.
            "tool_result" => {
                let call = self.calls.remove(message["call_id"].as_str().unwrap_or_default());
                if let Some(call) = call.filter(|_| message["is_error"] == true) {
                    print_note(&format!("· {call}: {}", not_run_reason(&text, &self.phrases)));
                }
            }
            // Shows where the answer to a queued message begins.
            "user" => {
                let typed = self.waiting.remove(&text).or(Some(text).filter(|_| self.runs));
                typed.iter().for_each(|typed| screen::print_lines(&safe_lines(&format!("> {typed}"))));
            }
            _ => {}
        }
    }

    /// Remembers what is queued: when it is delivered, its message follows the queue's update.
    fn update_queue(&mut self, event: &Value) {
        let queues = [&event["steering"], &event["follow_up"]];
        let accepted = queues.into_iter().filter_map(Value::as_array).flatten();
        let waits = accepted.filter_map(|accepted| {
            Some((accepted["text"].as_str()?.to_owned(), accepted["typed"].as_str()?.to_owned()))
        });
        self.waiting = waits.collect();
    }
}

/// Why a call was not run, for the user.
fn not_run_reason(answer: &str, phrases: &Phrases) -> String {
    if answer == &*phrases.agent.skipped {
        return "skipped: you said something else".to_owned();
    }
    let given = [&phrases.agent.denied, &phrases.agent.blocked].into_iter().find_map(|phrase| {
        let (before, after) = phrase.split_once("{reason}")?;
        answer.strip_prefix(before)?.strip_suffix(after)
    });
    format!("not run: {}", first_line(given.unwrap_or(answer)))
}

/// The concatenated text parts of a message's content.
fn joined_texts(content: &Value) -> String {
    let text = |part: &Value| part["text"].as_str().filter(|_| part["type"] == "text").map(str::to_owned);
    content.as_array().into_iter().flatten().filter_map(text).collect()
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
fn print_note(line: &str) {
    print_wrapped(&safe(line));
}

/// Prints sentences, wrapped between words to the terminal's width.
pub fn print_wrapped(text: &str) {
    screen::print_lines(&screen::width().map_or_else(|| text.to_owned(), |width| wrap(text, width)));
}

/// Prints the last lines of a command's output, dimmed.
fn print_command_output(output: &str) {
    let output = safe_lines(output.trim_end());
    let all = output.lines().count();
    let width = screen::width();
    let line = |line: &str| {
        let line = format!("  {}", line.replace('\t', "    "));
        width.map_or_else(|| line.clone(), |width| cut(&line, width))
    };
    let more = all.saturating_sub(LAST_LINES);
    let before = (more > 0).then(|| format!("  … {more} more"));
    let lines: Vec<String> = before.into_iter().chain(output.lines().skip(more).map(line)).collect();
    let lines = lines.join("\n");
    screen::print_lines(&if screen::is_styled() { format!("\x1b[2m{lines}\x1b[0m") } else { lines });
}

/// A call's argument values on one line; an ellipsis stands for texts of several lines.
fn arguments_summary(args: &Value) -> String {
    let word = |value: &Value| match value.as_str() {
        Some(text) if text.contains('\n') => "…".to_owned(),
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let Some(args) = args.as_object() else { return String::new() };
    let words = args.iter().map(|(_, value)| word(value));
    words.collect::<Vec<_>>().join(" ")
}

/// What a call is about: its path, command, URL or pattern, else its arguments.
fn call_subject(args: &Value) -> String {
    let named = ["path", "command", "url", "pattern"].into_iter().find_map(|name| args[name].as_str());
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

/// The line after an answer: how full the context is, how much came from the cache, what it cost.
pub fn status_line(agent: &Agent) -> Option<String> {
    let breakdown = agent.breakdown()?;
    let usage = agent.token_usage();
    let used = format!(
        "context {} of {} ({}%)",
        thousands(breakdown.total_tokens),
        thousands(breakdown.max_input_tokens),
        breakdown.total_tokens * 100 / breakdown.max_input_tokens.max(1)
    );
    let last = usage.last_request.unwrap_or_default();
    // No figure for what costs nothing or has no known price.
    let figure = |amount: f64| Some(amount).filter(|amount| *amount > 0.0).map(dollars);
    let paid = match (figure(last.dollars), figure(usage.session.dollars)) {
        (_, None) => String::new(),
        (None, Some(session)) => format!(" · session {session}"),
        (Some(last), Some(session)) => format!(" · {last} (session {session})"),
    };
    let lost = agent.last_verdict().filter(Verdict::is_loss).map_or_else(String::new, |verdict| {
        let tokens = usize::try_from(verdict.lost_tokens).unwrap_or(usize::MAX);
        format!(" · {} paid again ({})", thousands(tokens), verdict.cause.name().replace('_', " "))
    });
    let cached = format!("cache {}% read{lost}", cache_read_percent(&last));
    Some(format!("{used} · {cached}{paid}"))
}

/// When the provider's cache expires, and when Hardpan will refresh it.
pub fn cache_countdown(warmth: &CacheWarmth) -> String {
    let clock = |seconds: i64| format!("{}:{:02}", seconds / 60, seconds % 60);
    if warmth.expires_in <= 0 {
        return format!(
            "the cache has expired: the next request writes {} tokens again",
            thousands(warmth.tokens)
        );
    }
    let ping = match warmth.ping_due_in() {
        Some(seconds) => {
            format!("; Hardpan refreshes it in {}", clock(i64::try_from(seconds).unwrap_or(i64::MAX)))
        }
        None => String::new(),
    };
    format!("the cache of {} tokens expires in {}{ping}", thousands(warmth.tokens), clock(warmth.expires_in))
}

fn cache_read_percent(spent: &Spending) -> u64 {
    spent.read * 100 / spent.prompt_tokens().max(1)
}

/// The HUD of the last request, as text; none before the first request.
pub fn render_hud(agent: &Agent) -> Option<String> {
    with_hud(agent, |hud| hud.render(crate::views::width()))
}

/// Prints the HUD: as text on standard error, or as an event on standard output.
pub fn print_hud(agent: &Agent, output: OutputFormat) {
    match output {
        OutputFormat::Text => render_hud(agent).iter().for_each(|hud| screen::print_lines(hud)),
        OutputFormat::Json => {
            let event = with_hud(agent, |hud| serde_json::json!({"type": "hud", "hud": hud.json()}));
            event.iter().for_each(|event| drop(output::print(format!("{event}\n"))));
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
        empty_tiers: agent.layout_state().empty_tiers,
    }))
}

#[cfg(test)]
mod tests {
    use hardpan_context::PromptTexts;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_was_not_run_says_why_in_one_line() {
        let phrases = PromptTexts::builtin().unwrap().phrases;
        assert_eq!(not_run_reason(&phrases.agent.skipped, &phrases), "skipped: you said something else");
        let denied = "The call was not allowed: the person said instead: wait\nand see";
        assert_eq!(not_run_reason(denied, &phrases), "not run: the person said instead: wait");
        assert_eq!(not_run_reason("The call was blocked: not today", &phrases), "not run: not today");
        assert_eq!(not_run_reason("It was cut off.", &phrases), "not run: It was cut off.");
    }

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        assert_eq!(call_subject(&json!({"content": "x", "path": "a.txt"})), "a.txt");
        assert_eq!(call_subject(&json!({"command": "ls\ncd", "timeout": 3})), "ls");
        assert_eq!(
            call_subject(&json!({"to": "the moon", "by": 3})),
            arguments_summary(&json!({"to": "the moon", "by": 3}))
        );
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
