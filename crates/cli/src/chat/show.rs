//! What a person sees of the events: the answer on standard output, everything else on standard error.

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_agent::{Agent, Spent, Warmth};
use hardpan_economy::Verdict;
use serde_json::Value;

use crate::args::Output;
use crate::hud::Hud;
use crate::output::{self, cut, dollars, safe, safe_lines, thousands};

/// The longest line about a tool, in columns.
const LINE: usize = 100;

/// Follows an agent with text.
#[derive(Clone)]
pub struct Text(Arc<Mutex<State>>);

struct State {
    /// Whether text is shown as it comes, or the last answer's at the end.
    live: bool,
    /// Whether the line on standard output has begun.
    open: bool,
    last: String,
}

impl Text {
    /// Shows what the agent does. `live` shows text as it comes; otherwise only the last answer is printed, at the end, so
    /// that a pipe gets the answer and nothing else.
    pub fn follow(agent: &Agent, live: bool) -> Self {
        let text = Text(Arc::new(Mutex::new(State { live, open: false, last: String::new() })));
        agent.events().watch({
            let text = text.clone();
            move |event| text.see(event)
        });
        text
    }

    fn see(&self, event: &Value) {
        let word = |name: &str| event[name].as_str().unwrap_or_default();
        match word("type") {
            "message_update" if event["delta"]["kind"] == "text" => {
                self.lock().text(event["delta"]["text"].as_str().unwrap_or_default());
            }
            "message_end" if event["message"]["role"] == "assistant" => {
                let parts = event["message"]["content"].as_array().cloned().unwrap_or_default();
                let said = |part: &Value| {
                    part["text"].as_str().filter(|_| part["type"] == "text").map(str::to_owned)
                };
                let mut state = self.lock();
                state.last = parts.iter().filter_map(said).collect();
                state.end_line();
            }
            "tool_execution_start" => {
                let line = format!("· {} {}", word("tool_name"), summary(&event["args"]));
                self.lock().aside(&line);
            }
            "tool_execution_end" if event["is_error"] == true => {
                let why = event["content"][0]["text"].as_str().unwrap_or_default();
                self.lock().aside(&format!("  failed: {}", why.lines().next().unwrap_or_default()));
            }
            "cache_verdict" => self.lock().tell(&format!("hardpan: {}", word("sentence"))),
            "note" => self.lock().aside(&format!("hardpan: {}", word("text"))),
            "handler_failed" => {
                let line = format!("hardpan: {} ({}): {}", word("owner"), word("event"), word("what"));
                self.lock().aside(&line);
            }
            _ => {}
        }
    }

    /// The run is over: what was not shown as it came is printed.
    pub fn finish(&self) -> io::Result<()> {
        let mut state = self.lock();
        if state.live {
            state.end_line();
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
    fn text(&mut self, text: &str) {
        if self.live && !text.is_empty() {
            let shown = if io::stdout().is_terminal() { safe_lines(text) } else { text.to_owned() };
            let _ = output::print(shown);
            self.open = !text.ends_with('\n');
        }
    }

    fn end_line(&mut self) {
        if self.open {
            let _ = output::print("\n");
            self.open = false;
        }
    }

    fn aside(&mut self, line: &str) {
        self.tell(&cut(line, LINE));
    }

    /// The same, where the end of the line says what matters.
    fn tell(&mut self, line: &str) {
        self.end_line();
        let _ = writeln!(io::stderr(), "{}", safe(line));
    }
}

/// A call's arguments in one line: values, not names, and nothing of texts of several lines but that they are there.
fn summary(args: &Value) -> String {
    let word = |value: &Value| match value.as_str() {
        Some(text) if text.contains('\n') => "…".to_owned(),
        Some(text) => text.to_owned(),
        None => value.to_string(),
    };
    let words = args.as_object().into_iter().flatten().map(|(_, value)| word(value));
    words.collect::<Vec<_>>().join(" ")
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
    let session = dollars(usage.session.dollars);
    let lost = agent.verdict().filter(Verdict::is_loss).map_or_else(String::new, |verdict| {
        let tokens = usize::try_from(verdict.lost_tokens).unwrap_or(usize::MAX);
        format!(" · {} paid again ({})", thousands(tokens), verdict.cause.name().replace('_', " "))
    });
    let cached = format!("cache {}% read{lost}", share(&last));
    Some(format!("{used} · {cached} · {} (session {session})", dollars(last.dollars)))
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
        Output::Text => hud(agent).iter().for_each(|hud| eprint!("{hud}")),
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
        empty_tiers: breakdown.empty_tiers,
    }))
}
