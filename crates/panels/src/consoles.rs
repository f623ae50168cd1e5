//! [`ConsoleTool`] and its panels: programs that go on between requests, each in a terminal of its own.
//!
//! A console is shown as a panel with the last lines of its output. Its program ends when the panel is
//! closed, when the conversation is left, and when Hardpan ends, however that comes.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hardpan_prompt::{Json, Tool as Declaration, Volatility};
use hardpan_sandbox::ProcessEnd;
use hardpan_tools::{
    CallSubject, Console, ConsoleEnd, ConsoleShell, ConsoleView, Effect, Scope, SubjectKind, Tool,
    ToolInvocation, ToolOutcome, WaitOutcome, parse_arguments, parse_keys,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::panel::{Panel, RefreshStrategy};
use crate::registry::PanelRegistry;

/// What stands before the colon in the keys of consoles.
const KIND: &str = "console";
/// How many consoles may run at once.
const MAX_RUNNING: usize = 8;
/// How many lines a panel shows.
const SHOWN_LINES: usize = 100;
/// How many lines an answer shows: the panel has more.
const ANSWERED_LINES: usize = 20;
/// How long to wait, in seconds, unless the call says, and at most.
const DEFAULT_WAIT: u64 = 10;
const MAX_WAIT: u64 = 300;
/// The longest command in a title, in characters.
const TITLE_CHARACTERS: usize = 60;

/// Called when the output of a watched console has the text, or a program has ended by itself: the id of
/// the panel, and what happened.
pub type ConsoleListener = Arc<dyn Fn(&str, &str) + Send + Sync>;

/// A console as a panel.
struct ConsolePanel {
    key: String,
    state: Mutex<PanelState>,
    /// Whether the model knows that the program has ended, or waits for it.
    end: EndKnowledge,
}

/// Who learns of the end of a program from the answer of a call need not be told again, unless it asked
/// for that.
#[derive(Default)]
struct EndKnowledge {
    calls: AtomicUsize,
    is_known: AtomicBool,
    is_notified: AtomicBool,
}

impl EndKnowledge {
    /// A call waits, and its answer says whether the program has ended.
    async fn learn(&self, waiting: impl Future<Output = WaitOutcome>) -> WaitOutcome {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let outcome = waiting.await;
        if outcome == WaitOutcome::Ended {
            self.is_known.store(true, Ordering::SeqCst);
        }
        self.calls.fetch_sub(1, Ordering::SeqCst);
        outcome
    }

    /// Whether the model must be told, which happens once.
    fn must_notify(&self, is_asked: bool) -> bool {
        let is_known = self.is_known.load(Ordering::SeqCst) || self.calls.load(Ordering::SeqCst) > 0;
        (is_asked || !is_known) && !self.is_notified.swap(true, Ordering::SeqCst)
    }
}

enum PanelState {
    Running(Arc<Console>),
    /// It ran in an earlier life of the conversation.
    Former(FormerConsole),
}

/// What is stored of a console.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct FormerConsole {
    command: String,
    end: String,
    lines: Vec<String>,
    earlier_lines: u64,
}

impl FormerConsole {
    fn of(console: &Console) -> Self {
        let ConsoleView { lines, earlier_lines, end } = console.view(SHOWN_LINES);
        let end = end.map_or_else(|| "ended with the conversation".to_owned(), describe_end);
        FormerConsole { command: console.command().to_owned(), end, lines, earlier_lines }
    }
}

fn describe_end(end: ConsoleEnd) -> String {
    match end {
        ConsoleEnd::Stopped => "stopped".to_owned(),
        ConsoleEnd::Process(ProcessEnd::Exit(code)) => format!("ended with exit code {code}"),
        ConsoleEnd::Process(ProcessEnd::Signal(signal)) => format!("ended by signal {signal}"),
        ConsoleEnd::Process(ProcessEnd::Unknown) => "ended".to_owned(),
    }
}

fn render(command: &str, end: &str, lines: &[String], earlier_lines: u64) -> String {
    let mut text = format!("$ {command}\n({end})\n");
    if earlier_lines > 0 {
        text.push_str(&format!("… {earlier_lines} earlier lines\n"));
    }
    for line in lines {
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

impl ConsolePanel {
    fn lock(&self) -> MutexGuard<'_, PanelState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn console(&self) -> Option<Arc<Console>> {
        match &*self.lock() {
            PanelState::Running(console) => Some(console.clone()),
            PanelState::Former(_) => None,
        }
    }
}

impl Panel for ConsolePanel {
    fn key(&self) -> &str {
        &self.key
    }

    fn title(&self) -> String {
        let state = self.lock();
        let command = match &*state {
            PanelState::Running(console) => console.command(),
            PanelState::Former(former) => &former.command,
        };
        let line: String =
            command.lines().next().unwrap_or_default().chars().take(TITLE_CHARACTERS).collect();
        format!("Console: {line}")
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Streaming
    }

    fn volatility(&self) -> Volatility {
        Volatility::Tail
    }

    fn revision(&self) -> u64 {
        self.console().map_or(0, |console| console.revision())
    }

    fn render(&self) -> Option<String> {
        Some(match &*self.lock() {
            PanelState::Running(console) => {
                let ConsoleView { lines, earlier_lines, end } = console.view(SHOWN_LINES);
                let end = end.map_or_else(|| "running".to_owned(), describe_end);
                render(console.command(), &end, &lines, earlier_lines)
            }
            PanelState::Former(FormerConsole { command, end, lines, earlier_lines }) => {
                render(command, end, lines, *earlier_lines)
            }
        })
    }

    fn save(&self) -> Option<Value> {
        let former = match &*self.lock() {
            PanelState::Running(console) => FormerConsole::of(console),
            PanelState::Former(former) => former.clone(),
        };
        serde_json::to_value(former).ok()
    }

    fn close(&self) {
        if let Some(console) = self.console() {
            console.stop();
        }
    }
}

/// The tool `console`: starts programs that go on, types into them, and waits for what they print.
pub struct ConsoleTool {
    registry: Weak<PanelRegistry>,
    shell: ConsoleShell,
    panels: Mutex<Vec<(Arc<str>, Arc<ConsolePanel>)>>,
    listener: ConsoleListener,
    declaration: Declaration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    action: Action,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    seconds: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Start,
    Send,
    Wait,
    Watch,
    Stop,
}

impl ConsoleTool {
    /// The tool for the consoles of a conversation. Consoles of a resumed one come back as they were
    /// last, without their programs.
    pub fn new(registry: &Arc<PanelRegistry>, shell: ConsoleShell, listener: ConsoleListener) -> Self {
        registry.register_opener(
            KIND,
            Arc::new(|key, state| {
                let former: FormerConsole = serde_json::from_value(state?.clone()).ok()?;
                let (state, end) = (Mutex::new(PanelState::Former(former)), EndKnowledge::default());
                Some(Arc::new(ConsolePanel { key: key.to_owned(), state, end }))
            }),
        );
        let description = "Run programs that go on, such as servers and debuggers, each in a terminal \
            that you see as a panel. start (text: command) answers with the id; send (id, text: keys; \
            <Enter>, <C-c>, <Esc>, <Up> and the like are keys); wait (id, text: what to wait for, or \
            nothing for the end; seconds); watch (id, text): you are told when it is printed or the \
            program ends; stop (id).";
        let declaration = Declaration {
            name: KIND.into(),
            description: description.into(),
            parameters: Json::new(&json!({
                "type": "object",
                "properties": {
                    "action": {"type": "string", "enum": ["start", "send", "wait", "watch", "stop"]},
                    "id": {"type": "string"},
                    "text": {"type": "string"},
                    "seconds": {"type": "integer"},
                },
                "required": ["action"],
            })),
            snippet: Some("run programs that go on, in a terminal".into()),
            guidelines: Vec::new(),
        };
        let panels = Mutex::default();
        ConsoleTool { registry: Arc::downgrade(registry), shell, panels, listener, declaration }
    }

    async fn carry_out(&self, call: &ToolInvocation<'_>) -> Result<ToolOutcome, ToolOutcome> {
        let Arguments { action, id, text, seconds } = parse_arguments(call)?;
        let seconds = seconds.unwrap_or(DEFAULT_WAIT).clamp(1, MAX_WAIT);
        let text = text.filter(|text| !text.is_empty());
        let missing = |what: &str| ToolOutcome::failed(format!("Give the argument `{what}`."));
        if action == Action::Start {
            let command = text.ok_or_else(|| missing("text"))?;
            return self.start(call.id, &command, call.scope);
        }
        let id = id.ok_or_else(|| missing("id"))?;
        let (panel, console) = self.find(&id)?;
        match action {
            Action::Start => Err(missing("text")),
            Action::Send => {
                let keys = parse_keys(&text.ok_or_else(|| missing("text"))?);
                console.send(&keys).map_err(|error| ToolOutcome::failed(error.to_string()))?;
                Ok(ToolOutcome::text(format!("Typed into {id}.")))
            }
            Action::Wait => {
                let waiting = console.wait(text.as_deref(), Duration::from_secs(seconds));
                let waited = panel.end.learn(waiting).await;
                let said = match waited {
                    WaitOutcome::Matched => "It was printed.".to_owned(),
                    WaitOutcome::Ended => "The program has ended.".to_owned(),
                    WaitOutcome::TimedOut => format!("Not within {seconds} seconds; the program runs."),
                };
                let view = console.view(ANSWERED_LINES);
                let end = view.end.map_or_else(|| "running".to_owned(), describe_end);
                let shown = render(console.command(), &end, &view.lines, view.earlier_lines);
                Ok(ToolOutcome::text(format!("{said}\n{}", shown.trim_end())))
            }
            Action::Watch => {
                self.watch(&id, &panel, text, true);
                Ok(ToolOutcome::text(format!("You are told when it happens in {id}.")))
            }
            Action::Stop => {
                console.stop();
                console.wait(None, Duration::from_secs(DEFAULT_WAIT)).await;
                Ok(ToolOutcome::text(format!(
                    "Stopped {id}. Close the panel when you need its output no more."
                )))
            }
        }
    }

    fn start(&self, call: &str, command: &str, scope: &Scope) -> Result<ToolOutcome, ToolOutcome> {
        let Some(registry) = self.registry.upgrade() else {
            return Err(ToolOutcome::failed("The conversation has ended."));
        };
        self.forget_closed(&registry);
        let running = self.lock().iter().filter(|(_, panel)| is_running(panel)).count();
        if running >= MAX_RUNNING {
            return Err(ToolOutcome::failed(format!("{MAX_RUNNING} consoles run already: stop one first.")));
        }
        let started = self.shell.start(command, scope);
        let console = started.map_err(|error| ToolOutcome::failed(error.to_string()))?;
        // The id of the call: no other console of the conversation has it.
        let key = format!("{KIND}:{call}");
        let state = Mutex::new(PanelState::Running(Arc::new(console)));
        let panel = Arc::new(ConsolePanel { key, state, end: EndKnowledge::default() });
        let id = registry.add(panel.clone());
        self.watch(&id, &panel, None, false);
        self.lock().push((id.clone(), panel));
        Ok(ToolOutcome::text(format!("Started as {id}.")))
    }

    fn find(&self, id: &str) -> Result<(Arc<ConsolePanel>, Arc<Console>), ToolOutcome> {
        let panels = self.lock();
        let found = panels.iter().find(|(known, _)| known.eq_ignore_ascii_case(id.trim()));
        let console = found.and_then(|(_, panel)| Some((panel.clone(), panel.console()?)));
        console.ok_or_else(|| {
            let known: Vec<&str> = panels.iter().map(|(id, _)| &**id).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            ToolOutcome::failed(format!("{id} is no console that runs; there is {known}."))
        })
    }

    /// Tells the listener once, when the text is printed or the program has ended by itself.
    fn watch(&self, id: &str, panel: &Arc<ConsolePanel>, text: Option<String>, is_asked: bool) {
        let (panel, listener, id) = (Arc::downgrade(panel), self.listener.clone(), id.to_owned());
        tokio::spawn(async move {
            loop {
                // Not held for long: a console that is closed ends.
                let Some(panel) = panel.upgrade() else { return };
                let Some(console) = panel.console() else { return };
                match console.wait(text.as_deref(), Duration::from_secs(MAX_WAIT)).await {
                    WaitOutcome::TimedOut => continue,
                    WaitOutcome::Matched => {
                        listener(&id, &format!("{id} printed {:?}", text.as_deref().unwrap_or_default()));
                    }
                    WaitOutcome::Ended => {
                        let end = console.view(1).end;
                        if end != Some(ConsoleEnd::Stopped) && panel.end.must_notify(is_asked) {
                            let end = end.map_or_else(|| "ended".to_owned(), describe_end);
                            listener(&id, &format!("{id} {end}"));
                        }
                    }
                }
                return;
            }
        });
    }

    /// Closed panels are no longer in the registry.
    fn forget_closed(&self, registry: &PanelRegistry) {
        self.lock().retain(|(_, panel)| registry.get(&panel.key).is_some());
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Arc<str>, Arc<ConsolePanel>)>> {
        self.panels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_running(panel: &ConsolePanel) -> bool {
    panel.console().is_some_and(|console| console.view(0).end.is_none())
}

impl Tool for ConsoleTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    fn effect(&self, arguments: &Value) -> Effect {
        match arguments["action"].as_str() {
            Some("wait" | "watch" | "stop") => Effect::Reads,
            _ => Effect::Changes,
        }
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        match (arguments["action"].as_str(), arguments["text"].as_str()) {
            // What is typed may be a command, too.
            (Some("start" | "send"), Some(text)) => CallSubject::Command(text.to_owned()),
            _ => CallSubject::Other,
        }
    }

    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::Command
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move { self.carry_out(&call).await.unwrap_or_else(|failed| failed) })
    }
}

#[cfg(test)]
mod tests;
