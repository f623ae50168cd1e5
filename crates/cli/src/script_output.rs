//! [`ScriptPrinter`]: a prompt's answer in the form that scripts for another agent read.
//!
//! A form is a [`ScriptFormat`]: it takes the agent's events and returns lines of JSON. A new one is a file
//! here, a variant of [`ChatOutput`] and a line in [`ScriptPrinter::start`].

mod answer_pieces; // AnswerPieces: an answer while it streams
mod claude; // ClaudeFormat: `claude -p --output-format stream-json` and `json`
mod codex; // CodexFormat: `codex exec --json`

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hardpan_agent::{AgentEvent, Spending};
use hardpan_app::ConversationApp;
use hardpan_panels::TodoStatus;
use hardpan_prompt::{MessagePart, TokenUsage};
use hardpan_tools::CallSubject;
use serde_json::Value;

use crate::event_reader::EventReader;
use crate::output::{self, OutputError, OutputFormat};
use crate::page_chat::program_clock;

/// How a conversation is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum ChatOutput {
    /// Text for people
    #[default]
    Text,
    /// Hardpan's events, one JSON object per line
    Json,
    /// The lines of `claude -p --output-format stream-json` (with -p)
    ClaudeStreamJson,
    /// The same with the pieces of answers as they stream (with -p)
    ClaudePartialJson,
    /// The object of `claude -p --output-format json` (with -p)
    ClaudeJson,
    /// The lines of `codex exec --json` (with -p)
    CodexJson,
}

/// What Claude Code's own flag takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ClaudeOutput {
    /// The answer
    Text,
    /// One object, when everything is done
    Json,
    /// One object per message
    StreamJson,
}

impl From<ClaudeOutput> for ChatOutput {
    fn from(asked: ClaudeOutput) -> Self {
        match asked {
            ClaudeOutput::Text => ChatOutput::Text,
            ClaudeOutput::Json => ChatOutput::ClaudeJson,
            ClaudeOutput::StreamJson => ChatOutput::ClaudeStreamJson,
        }
    }
}

impl ChatOutput {
    /// Whether standard output belongs to another agent's form.
    pub fn is_script_format(self) -> bool {
        match self {
            ChatOutput::Text | ChatOutput::Json => false,
            ChatOutput::ClaudeStreamJson
            | ChatOutput::ClaudePartialJson
            | ChatOutput::ClaudeJson
            | ChatOutput::CodexJson => true,
        }
    }

    /// How Hardpan prints what is its own: with another agent's form, for people, on standard error.
    pub fn own_format(self) -> OutputFormat {
        if self == ChatOutput::Json { OutputFormat::Json } else { OutputFormat::Text }
    }
}

/// What a form needs to know of the conversation.
struct ScriptSession {
    /// Id of the session.
    session: String,
    /// The folder that the agent works in.
    folder: String,
    /// Id of the model.
    model: String,
    /// Names of the tools that are on.
    tools: Vec<String>,
    /// Names of the MCP servers.
    servers: Vec<String>,
    /// Names of the slash commands.
    commands: Vec<String>,
    /// What the session had used before.
    used_before: Spending,
}

/// How everything ended.
#[derive(Clone, Debug, Default)]
pub struct ScriptEnd {
    /// What went wrong, for people; none if it ended well.
    pub failure: Option<String>,
    /// What a slash command or a shell command said, if the prompt was one.
    pub said: Option<String>,
}

/// A form that scripts read.
trait ScriptFormat: Send {
    /// The first lines.
    fn begin(&mut self, session: &ScriptSession) -> Vec<Value>;

    /// The lines for an event, `at` this time since the start.
    fn observe(&mut self, event: &AgentEvent, at: Duration) -> Vec<Value>;

    /// The last lines.
    fn end(&mut self, end: &ScriptEnd, at: Duration) -> Vec<Value>;
}

/// What forms ask of a conversation while it goes on.
struct CallDirectory {
    app: Arc<ConversationApp>,
}

impl CallDirectory {
    /// Server and tool, if a call is one of an MCP server.
    fn server_tool(&self, tool: &str, args: &Value) -> Option<(String, String)> {
        match self.app.agent.tools().describe(tool)?.subject(args) {
            CallSubject::ServerTool(name) => {
                name.split_once('.').map(|(server, tool)| (server.to_owned(), tool.to_owned()))
            }
            _ => None,
        }
    }

    /// The todo list: texts, and whether each is done.
    fn todos(&self) -> Vec<(String, bool)> {
        let todos = self.app.panels.todos().into_iter();
        todos.map(|(text, status)| (text, status == TodoStatus::Done)).collect()
    }
}

struct PrinterState {
    format: Box<dyn ScriptFormat>,
    app: Arc<ConversationApp>,
    has_begun: bool,
    /// The first failed write. The run goes on, since the session stores its result.
    write_error: Option<OutputError>,
}

impl PrinterState {
    fn begin(&mut self) {
        if !std::mem::replace(&mut self.has_begun, true) {
            let lines = self.format.begin(&script_session(&self.app));
            self.print(&lines);
        }
    }

    fn print(&mut self, lines: &[Value]) {
        for line in lines {
            if let Err(error) = output::print_json_line(line.to_string()) {
                self.write_error.get_or_insert(error);
            }
        }
    }
}

/// Prints a conversation in the form of another agent.
pub struct ScriptPrinter {
    reader: EventReader,
    state: Arc<Mutex<PrinterState>>,
    clock: hardpan_terminal::runner::Clock,
}

impl ScriptPrinter {
    /// Starts printing; none for the forms that are Hardpan's own.
    pub fn start(app: &Arc<ConversationApp>, output: ChatOutput) -> Option<Self> {
        let format: Box<dyn ScriptFormat> = match output {
            ChatOutput::Text | ChatOutput::Json => return None,
            ChatOutput::ClaudeStreamJson => Box::new(claude::ClaudeFormat::new(claude::Detail::Messages)),
            ChatOutput::ClaudePartialJson => Box::new(claude::ClaudeFormat::new(claude::Detail::Pieces)),
            ChatOutput::ClaudeJson => Box::new(claude::ClaudeFormat::new(claude::Detail::Result)),
            ChatOutput::CodexJson => Box::new(codex::CodexFormat::new(CallDirectory { app: app.clone() })),
        };
        let state = PrinterState { format, app: app.clone(), has_begun: false, write_error: None };
        let state = Arc::new(Mutex::new(state));
        let clock = program_clock();
        let (shared, time) = (state.clone(), clock.clone());
        let reader = EventReader::start(&app.agent, move |event| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            state.begin();
            let lines = state.format.observe(&event, time());
            state.print(&lines);
        });
        Some(ScriptPrinter { reader, state, clock })
    }

    /// Prints what is left, once the agent is shut down.
    pub async fn finish(self, end: &ScriptEnd) -> Result<(), OutputError> {
        self.reader.finish().await;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.begin();
        let lines = state.format.end(end, (self.clock)());
        state.print(&lines);
        state.write_error.take().map_or(Ok(()), Err)
    }
}

fn script_session(app: &ConversationApp) -> ScriptSession {
    let agent = &app.agent;
    let on = agent.tools().list().into_iter().filter(|tool| tool.state == hardpan_tools::ToolState::On);
    ScriptSession {
        session: agent.session().0.to_string(),
        folder: app.folder.to_string_lossy().into_owned(),
        model: agent.target().model.id,
        tools: on.map(|tool| tool.name.to_string()).collect(),
        servers: app.settings.config.mcp_servers.keys().map(ToString::to_string).collect(),
        commands: agent.commands().keys().map(ToString::to_string).collect(),
        used_before: agent.token_usage().session,
    }
}

/// The texts of a message, joined.
fn joined_texts(content: &[MessagePart]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What was used since `before`.
fn used_since(now: &Spending, before: &Spending) -> Spending {
    let less = |now: u64, before: u64| now.saturating_sub(before);
    let (tokens, earlier) = (&now.tokens, &before.tokens);
    Spending {
        tokens: TokenUsage {
            input: less(tokens.input, earlier.input),
            cache_read: less(tokens.cache_read, earlier.cache_read),
            cache_write_5m: less(tokens.cache_write_5m, earlier.cache_write_5m),
            cache_write_1h: less(tokens.cache_write_1h, earlier.cache_write_1h),
            output: less(tokens.output, earlier.output),
            reasoning: tokens.reasoning.map(|now| less(now, earlier.reasoning.unwrap_or(0))),
        },
        dollars: now.dollars - before.dollars,
        would_cost: now.would_cost - before.would_cost,
    }
}
