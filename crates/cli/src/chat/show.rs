//! What a person sees of the events: the answer on standard output, everything else on standard error.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_agent::{Agent, Spent, Warmth};
use hardpan_context::Phrases;
use hardpan_economy::Verdict;
use hardpan_prompt::{AgentMessage, Body, Part};
use serde_json::Value;

use super::open::Opened;
use super::screen;
use crate::args::Output;
use crate::hud::{Hud, wrap::wrap};
use crate::output::{self, cut, dollars, safe, safe_lines, thousands};

/// So many lines of what a command printed are shown: its last ones, which say how it ended.
const LAST_LINES: usize = 5;

/// So many lines are shown of what was said before.
const FEW_LINES: usize = 6;

/// Follows an agent with text.
#[derive(Clone)]
pub struct Text(Arc<Mutex<State>>);

struct State {
    /// Whether text is shown as it comes, or the last answer's at the end.
    live: bool,
    last: String,
    /// The calls that have not begun, as they are shown.
    calls: BTreeMap<String, String>,
    phrases: Phrases,
    /// What waits to be delivered: what was typed, by what goes to the model.
    waiting: BTreeMap<String, String>,
    /// Whether a run has begun: what the person says from then on was typed before.
    runs: bool,
}

impl Text {
    /// Shows what the agent does. `live` shows text as it comes; otherwise only the last answer is printed, at the end, so
    /// that a pipe gets the answer and nothing else.
    pub fn follow(opened: &Opened, live: bool) -> Self {
        let text = Text(Arc::new(Mutex::new(State {
            live,
            last: String::new(),
            calls: BTreeMap::new(),
            phrases: opened.settings.texts.phrases.clone(),
            waiting: BTreeMap::new(),
            runs: false,
        })));
        opened.agent.events().watch({
            let text = text.clone();
            move |event| text.lock().see(event)
        });
        text
    }

    /// The run is over: what was not shown as it came is printed.
    pub fn finish(&self) -> io::Result<()> {
        let state = self.lock();
        if state.live {
            screen::end_line();
            return Ok(());
        }
        match state.last.trim_end() {
            // A run that failed before its first answer has none, not an empty one.
            "" => Ok(()),
            last => output::print(last.to_owned() + "\n"),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn see(&mut self, event: &Value) {
        let word = |name: &str| event[name].as_str().unwrap_or_default();
        match word("type") {
            "message_update" if event["delta"]["kind"] == "text" => {
                self.text(event["delta"]["text"].as_str().unwrap_or_default());
            }
            "message_end" => self.message(&event["message"]),
            "queue_update" => self.wait(event),
            "agent_start" => self.runs = true,
            "agent_end" => self.runs = false,
            "tool_execution_start" => {
                self.calls.remove(word("call_id"));
                short(&format!("· {} {}", word("tool_name"), summary(&event["args"])));
            }
            "tool_execution_end" if word("tool_name") == "bash" => printed(&texts(&event["content"])),
            "tool_execution_end" if event["is_error"] == true => {
                note(&format!("  failed: {}", first_line(&texts(&event["content"]))));
            }
            "cache_verdict" => note(&format!("hardpan: {}", word("sentence"))),
            "note" => note(&format!("hardpan: {}", word("text"))),
            "handler_failed" => {
                note(&format!("hardpan: {} ({}): {}", word("owner"), word("event"), word("what")));
            }
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.live && !text.is_empty() {
            screen::answer(&if io::stdout().is_terminal() { safe_lines(text) } else { text.to_owned() });
        }
    }

    fn message(&mut self, message: &Value) {
        let text = texts(&message["content"]);
        match message["role"].as_str().unwrap_or_default() {
            "assistant" => {
                self.last = text;
                let parts = message["content"].as_array().into_iter().flatten();
                let calls = parts.filter(|part| part["type"] == "tool_call").filter_map(|part| {
                    let call = format!("{} {}", part["name"].as_str()?, subject(&part["arguments"]));
                    Some((part["id"].as_str()?.to_owned(), call.trim_end().to_owned()))
                });
                self.calls = calls.collect();
                screen::end_line();
            }
            // One that did not begin: nothing else tells the person what became of it.
            "tool_result" => {
                let call = self.calls.remove(message["call_id"].as_str().unwrap_or_default());
                if let Some(call) = call.filter(|_| message["is_error"] == true) {
                    note(&format!("· {call}: {}", not_run(&text, &self.phrases)));
                }
            }
            // What follows answers it, and not what stands above.
            "user" => {
                let typed = self.waiting.remove(&text).or(Some(text).filter(|_| self.runs));
                typed.iter().for_each(|typed| screen::tell(&safe_lines(&format!("> {typed}"))));
            }
            _ => {}
        }
    }

    /// What is taken out of the queues to be delivered is told after its message.
    fn wait(&mut self, event: &Value) {
        let queues = [&event["steering"], &event["follow_up"]];
        let accepted = queues.into_iter().filter_map(Value::as_array).flatten();
        let waits = accepted.filter_map(|accepted| {
            Some((accepted["text"].as_str()?.to_owned(), accepted["typed"].as_str()?.to_owned()))
        });
        self.waiting = waits.collect();
    }
}

/// Why a call was not run, in words for the person.
fn not_run(answer: &str, phrases: &Phrases) -> String {
    if answer == &*phrases.agent.skipped {
        return "skipped: you said something else".to_owned();
    }
    let given = [&phrases.agent.denied, &phrases.agent.blocked].into_iter().find_map(|phrase| {
        let (before, after) = phrase.split_once("{reason}")?;
        answer.strip_prefix(before)?.strip_suffix(after)
    });
    format!("not run: {}", first_line(given.unwrap_or(answer)))
}

/// The texts of a message's parts.
fn texts(content: &Value) -> String {
    let text = |part: &Value| part["text"].as_str().filter(|_| part["type"] == "text").map(str::to_owned);
    content.as_array().into_iter().flatten().filter_map(text).collect()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}

/// A line that may be cut where there is no room for it. A file has room.
fn short(line: &str) {
    let line = safe(line);
    screen::tell(&screen::width().map_or_else(|| line.clone(), |width| cut(&line, width)));
}

/// A sentence: nothing of it is left out.
fn note(line: &str) {
    say(&safe(line));
}

/// Tells sentences, parted between words where a line of the terminal ends.
pub fn say(text: &str) {
    screen::tell(&screen::width().map_or_else(|| text.to_owned(), |width| wrap(text, width)));
}

/// The last lines of what a command printed.
fn printed(output: &str) {
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
    screen::tell(&if screen::is_styled() { format!("\x1b[2m{lines}\x1b[0m") } else { lines });
}

/// A call's arguments in one line: values, not names, and nothing of texts of several lines but that they are there.
fn summary(args: &Value) -> String {
    let word = |value: &Value| match value.as_str() {
        Some(text) if text.contains('\n') => "…".to_owned(),
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let Some(args) = args.as_object() else { return String::new() };
    let words = args.iter().map(|(_, value)| word(value));
    words.collect::<Vec<_>>().join(" ")
}

/// What a call is about, without what it would have done there.
fn subject(args: &Value) -> String {
    let named = ["path", "command", "url", "pattern"].into_iter().find_map(|name| args[name].as_str());
    named.map_or_else(|| summary(args), |subject| first_line(subject).to_owned())
}

/// What was said last, in short: the person's words and the answer.
pub fn last_exchange(messages: &[AgentMessage]) -> Option<String> {
    let words = |parts: &[Part]| -> String {
        let text = |part: &Part| if let Part::Text { text } = part { Some(text.to_string()) } else { None };
        parts.iter().filter_map(text).collect::<Vec<_>>().join("\n").trim().to_owned()
    };
    let asked = messages.iter().rposition(|message| matches!(*message.body, Body::User { .. }))?;
    let Body::User { content } = &*messages[asked].body else { return None };
    let question = format!("> {}", few_lines(&words(content)));
    let answers = messages[asked..].iter().rev().filter_map(|message| match &*message.body {
        Body::Assistant { content, .. } => Some(words(content)).filter(|words| !words.is_empty()),
        _ => None,
    });
    let answer = answers.map(|answer| few_lines(&answer)).next();
    Some([question].into_iter().chain(answer).collect::<Vec<_>>().join("\n"))
}

/// The beginning of a text.
fn few_lines(text: &str) -> String {
    // As many columns as a few lines have, so that a paragraph in one line is short, too.
    let most = FEW_LINES * crate::views::width();
    let mut lines = text.lines();
    let few = cut(&lines.by_ref().take(FEW_LINES).collect::<Vec<_>>().join("\n"), most);
    if lines.next().is_some() { few + "\n…" } else { few }
}

/// One line after an answer: how full the context is, how much of it was read from the cache, what it cost.
pub fn status(agent: &Agent) -> Option<String> {
    let breakdown = agent.breakdown()?;
    let usage = agent.token_usage();
    let used = format!(
        "context {} of {} ({}%)",
        thousands(breakdown.total_tokens),
        thousands(breakdown.max_input_tokens),
        breakdown.total_tokens * 100 / breakdown.max_input_tokens.max(1)
    );
    let last = usage.last_request.unwrap_or_default();
    // What costs nothing, or has no price that is known, is not worth a figure.
    let figure = |amount: f64| Some(amount).filter(|amount| *amount > 0.0).map(dollars);
    let paid = match (figure(last.dollars), figure(usage.session.dollars)) {
        (_, None) => String::new(),
        (None, Some(session)) => format!(" · session {session}"),
        (Some(last), Some(session)) => format!(" · {last} (session {session})"),
    };
    let lost = agent.verdict().filter(Verdict::is_loss).map_or_else(String::new, |verdict| {
        let tokens = usize::try_from(verdict.lost_tokens).unwrap_or(usize::MAX);
        format!(" · {} paid again ({})", thousands(tokens), verdict.cause.name().replace('_', " "))
    });
    let cached = format!("cache {}% read{lost}", share(&last));
    Some(format!("{used} · {cached}{paid}"))
}

/// How long the cache will live, and what is done about it.
pub fn countdown(warmth: &Warmth) -> String {
    let clock = |seconds: i64| format!("{}:{:02}", seconds / 60, seconds % 60);
    if warmth.expires_in <= 0 {
        return format!(
            "the cache has expired: the next request writes {} tokens anew",
            thousands(warmth.tokens)
        );
    }
    let ping = match warmth.ping_in() {
        Some(seconds) => format!("; kept warm in {}", clock(i64::try_from(seconds).unwrap_or(i64::MAX))),
        None => String::new(),
    };
    format!("the cache of {} tokens expires in {}{ping}", thousands(warmth.tokens), clock(warmth.expires_in))
}

fn share(spent: &Spent) -> u64 {
    spent.read * 100 / spent.prompt().max(1)
}

/// The HUD of the last request, as text.
pub fn hud(agent: &Agent) -> Option<String> {
    with_hud(agent, |hud| hud.render(crate::views::width()))
}

/// The HUD where it belongs: text on standard error, or an event among the others.
pub fn print_hud(agent: &Agent, output: Output) {
    match output {
        Output::Text => hud(agent).iter().for_each(|hud| screen::tell(hud)),
        Output::Json => {
            let event = with_hud(agent, |hud| serde_json::json!({"type": "hud", "hud": hud.json()}));
            event.iter().for_each(|event| drop(output::print(format!("{event}\n"))));
        }
    }
}

fn with_hud<T>(agent: &Agent, show: impl FnOnce(&Hud<'_>) -> T) -> Option<T> {
    let breakdown = agent.breakdown()?;
    let (usage, target) = (agent.token_usage(), agent.target());
    Some(show(&Hud {
        verdict: agent.verdict(),
        breakdown: &breakdown,
        provider: &target.provider,
        max_output: target.max_tokens,
        last: usage.last_request,
        session: usage.session,
        requests: usage.requests,
        empty_tiers: agent.memory().empty_tiers,
    }))
}

#[cfg(test)]
mod tests {
    use hardpan_context::Texts;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_that_was_not_run_says_why_in_one_line() {
        let phrases = Texts::builtin().unwrap().phrases;
        assert_eq!(not_run(&phrases.agent.skipped, &phrases), "skipped: you said something else");
        let denied = "The call was not allowed: the person said instead: wait\nand see";
        assert_eq!(not_run(denied, &phrases), "not run: the person said instead: wait");
        assert_eq!(not_run("The call was blocked: not today", &phrases), "not run: not today");
        assert_eq!(not_run("It was cut off.", &phrases), "not run: It was cut off.");
    }

    #[test]
    fn a_call_is_named_by_what_it_is_about() {
        assert_eq!(subject(&json!({"content": "x", "path": "a.txt"})), "a.txt");
        assert_eq!(subject(&json!({"command": "ls\ncd", "timeout": 3})), "ls");
        assert_eq!(
            subject(&json!({"to": "the moon", "by": 3})),
            summary(&json!({"to": "the moon", "by": 3}))
        );
        assert_eq!(subject(&json!("broken")), "");
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
