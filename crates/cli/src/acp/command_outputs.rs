//! [`CommandOutputs`]: how a client shows what commands print: in a terminal of its own, in one that it
//! only draws, or as text.

use std::collections::BTreeMap;
use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    Meta, SessionUpdate, Terminal, ToolCall, ToolCallContent, ToolCallUpdate, ToolCallUpdateFields,
};
use hardpan_agent::events::ToolExecutionEnd;
use hardpan_app::ConversationApp;
use hardpan_app::settings::expand_home;
use hardpan_prompt::MessagePart;
use serde_json::{Value, json};

use super::command_terminal::{CommandEnd, CommandTerminal, FeedProgress, NoTerminal};
use super::connection::Connection;
use super::terminal_text::TerminalText;
use super::tool_calls::text_content;

/// The tool whose calls are commands.
const COMMAND_TOOL: &str = "bash";

/// By this field of its abilities a client says that it draws terminals from updates. It is no part of the
/// protocol: several editors have it, and the adapters of other agents use it.
const DRAWS_TERMINALS: &str = "terminal_output";

/// The outputs of one conversation.
pub struct CommandOutputs {
    app: Arc<ConversationApp>,
    connection: Connection,
    style: OutputStyle,
    /// Whether the client answers when it is asked for the end of a program.
    tells_exit: bool,
    open: BTreeMap<Arc<str>, OpenOutput>,
    ended: Vec<CommandTerminal>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum OutputStyle {
    /// As content of the call, told anew as it grows.
    Text,
    /// In a terminal that the client draws from what it is told.
    Drawn,
    /// In a terminal of the client's.
    Terminal,
}

enum OpenOutput {
    Drawn(TerminalText),
    Terminal(CommandTerminal),
}

/// How a client is told of the end of a command that it shows in a terminal.
pub struct ShownEnd {
    /// What shows the terminal, and what the terminal does not show.
    pub content: Vec<ToolCallContent>,
    /// What was printed last.
    pub last_output: Vec<SessionUpdate>,
    pub meta: Option<Meta>,
}

impl CommandOutputs {
    pub fn new(app: &Arc<ConversationApp>, connection: &Connection) -> Self {
        let client = connection.client();
        let draws = client.meta.is_some_and(|meta| meta.get(DRAWS_TERMINALS) == Some(&Value::Bool(true)));
        let style = match client.terminal {
            _ if draws => OutputStyle::Drawn,
            true if is_out_of_reach_for_commands(app) => OutputStyle::Terminal,
            _ => OutputStyle::Text,
        };
        let (open, ended) = Default::default();
        let (app, connection, tells_exit) = (app.clone(), connection.clone(), true);
        CommandOutputs { app, connection, style, tells_exit, open, ended }
    }

    /// A call as the client is first told of it.
    pub fn announce(&self, tool: &str, call: ToolCall) -> ToolCall {
        if self.style != OutputStyle::Drawn || tool != COMMAND_TOOL {
            return call;
        }
        let (id, folder) = (call.tool_call_id.0.clone(), self.app.scope.folder.display().to_string());
        let info = meta(&[("terminal_info", json!({ "terminal_id": id, "cwd": folder }))]);
        call.content(vec![terminal_content(id)]).meta(info)
    }

    /// A call begins. What shows its output, unless that is text.
    pub async fn begin(&mut self, id: &Arc<str>, tool: &str, args: &Value) -> Option<ToolCallContent> {
        let command = args["command"].as_str().filter(|_| tool == COMMAND_TOOL)?;
        let (output, terminal) = match self.style {
            OutputStyle::Text => return None,
            OutputStyle::Drawn => (OpenOutput::Drawn(TerminalText::default()), terminal_content(id.clone())),
            OutputStyle::Terminal => {
                match CommandTerminal::open(&self.app, &self.connection, id, command).await {
                    Ok(terminal) => {
                        let shown = terminal_content(terminal.id.0.clone());
                        (OpenOutput::Terminal(terminal), shown)
                    }
                    Err(NoTerminal::Refused) => return None,
                    Err(NoTerminal::NoAnswer) => {
                        self.style = OutputStyle::Text;
                        return None;
                    }
                }
            }
        };
        self.open.insert(id.clone(), output);
        Some(terminal)
    }

    /// Shows the output so far. None if it is shown as text; otherwise the update that says it, if one does.
    pub fn show(&mut self, id: &Arc<str>, visible: &str) -> Option<Option<SessionUpdate>> {
        match self.open.get_mut(id)? {
            OpenOutput::Drawn(text) => Some(drawn_output(id, text, visible)),
            OpenOutput::Terminal(terminal) => terminal.show(visible).then_some(None),
        }
    }

    /// A call has ended. None if its output is shown as text.
    pub async fn end(&mut self, event: &ToolExecutionEnd) -> Option<ShownEnd> {
        let id = &event.call_id;
        let end = CommandEnd::read(event.details.as_ref());
        // The result has the output, and notes about it, which the person reads there, too.
        let texts = event.content.iter().filter_map(|part| match part {
            MessagePart::Text { text } => Some(text.as_str()),
            _ => None,
        });
        let result: String = texts.collect();
        match self.open.remove(id)? {
            OpenOutput::Drawn(mut text) => {
                let visible = end.last_text(text.shown(), &result);
                let signal = end.signal.map(|signal| signal.to_string());
                let exit = json!({ "terminal_id": id, "exit_code": end.exit_code, "signal": signal });
                Some(ShownEnd {
                    content: vec![terminal_content(id.clone())],
                    last_output: drawn_output(id, &mut text, &visible).into_iter().collect(),
                    meta: Some(meta(&[("terminal_exit", exit)])),
                })
            }
            OpenOutput::Terminal(mut terminal) => {
                let progress = terminal.end(&result, &end).await;
                let mut content = vec![terminal_content(terminal.id.0.clone())];
                if progress == FeedProgress::Done && self.tells_exit {
                    self.tells_exit = terminal.wait_for_exit().await;
                }
                self.ended.push(terminal);
                match progress {
                    FeedProgress::Done => {}
                    FeedProgress::NeverCame => {
                        self.style = OutputStyle::Text;
                        return None;
                    }
                    // The terminal does not have all of it.
                    _ => content.extend(text_content(&result)),
                }
                Some(ShownEnd { content, last_output: Vec::new(), meta: None })
            }
        }
    }

    /// No call runs any more.
    pub fn end_all(&mut self) {
        let open = std::mem::take(&mut self.open).into_values();
        self.ended.extend(open.filter_map(|output| match output {
            OpenOutput::Terminal(terminal) => Some(terminal),
            OpenOutput::Drawn(_) => None,
        }));
    }

    /// Gives terminals back.
    pub async fn release_ended(&mut self) {
        for terminal in self.ended.drain(..) {
            terminal.release().await;
        }
    }
}

/// Whether commands cannot put another program in the place of this one, which runs in the terminal
/// outside of the sandbox.
fn is_out_of_reach_for_commands(app: &ConversationApp) -> bool {
    let program = std::env::current_exe().and_then(|path| path.canonicalize());
    let Ok(program) = program else { return false };
    let writable = app.settings.config.writable.iter().map(|folder| expand_home(folder));
    let own = [app.scope.root.clone(), std::env::temp_dir()].into_iter();
    let mut changeable = own.chain(writable).filter_map(|folder| folder.canonicalize().ok());
    !changeable.any(|folder| program.starts_with(folder))
}

fn terminal_content(id: Arc<str>) -> ToolCallContent {
    ToolCallContent::Terminal(Terminal::new(id))
}

fn drawn_output(id: &Arc<str>, text: &mut TerminalText, visible: &str) -> Option<SessionUpdate> {
    let data = text.advance(visible);
    let output = || meta(&[("terminal_output", json!({ "terminal_id": id, "data": data }))]);
    let update = || ToolCallUpdate::new(id.clone(), ToolCallUpdateFields::new()).meta(output());
    (!data.is_empty()).then(|| SessionUpdate::ToolCallUpdate(update()))
}

fn meta(fields: &[(&str, Value)]) -> Meta {
    fields.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect()
}
