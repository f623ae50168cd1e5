//! [`serve_tools`]: offers tools to another agent, on standard input and output.
//!
//! The functions behind the tools compute on threads of their own, a few at a time. They are given
//! arguments that fit their schema, and cannot be stopped: an answer that nobody waits for any more is
//! dropped.

use std::io::{self, BufReader, Write};
use std::sync::Arc;
use std::thread;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, Implementation,
    ListToolsResult, PaginatedRequestParams, ProgressNotificationParam, ServerCapabilities, Tool,
    ToolAnnotations,
};
use rmcp::service::{RequestContext, RxJsonRpcMessage, TxJsonRpcMessage, serve_server};
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServerHandler};
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, mpsc, oneshot};

use crate::arguments::{check_arguments, without_nulls};
use crate::error::ServeError;
use crate::program::{MAX_LINE, WAITING_MESSAGES, read_line, write_messages};

/// How many calls compute at once.
const MAX_RUNNING: usize = 2;

/// The longest text of an answer, in bytes.
const MAX_TEXT: usize = 200 * 1024;

/// The longest data of an answer, in bytes; more is left out, the text says the same.
const MAX_DATA: usize = 200 * 1024;

/// Told how far a call is: steps done, and all steps.
pub type ProgressFunction<'a> = &'a (dyn Fn(usize, usize) + Send + Sync);

/// What a tool does with its arguments.
pub type ToolFunction = dyn Fn(&Map<String, Value>, ProgressFunction<'_>) -> ToolReply + Send + Sync;

/// A tool that other agents can call. It only reads.
#[derive(Clone)]
pub struct OfferedTool {
    /// Name that agents call it by.
    pub name: &'static str,
    /// What it is good for, for the model of the other agent.
    pub description: &'static str,
    /// JSON schema of the arguments.
    pub parameters: Value,
    /// Computes the answer.
    pub run: Arc<ToolFunction>,
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolReply {
    /// For the model.
    pub text: String,
    /// The same for programs: an object.
    pub data: Option<Value>,
    /// The call failed, and the text says why.
    pub is_error: bool,
}

impl ToolReply {
    /// An answer with these words.
    pub fn text(text: impl Into<String>) -> Self {
        ToolReply { text: text.into(), data: None, is_error: false }
    }

    /// A call that failed for this reason.
    pub fn error(text: impl Into<String>) -> Self {
        ToolReply { text: text.into(), data: None, is_error: true }
    }
}

/// Offers tools on standard input and output until the input ends.
pub async fn serve_tools(tools: Vec<OfferedTool>, instructions: &'static str) -> Result<(), ServeError> {
    let server =
        ToolServer { tools: tools.into(), instructions, running: Arc::new(Semaphore::new(MAX_RUNNING)) };
    let service = match serve_server(server, StdioTransport::start()).await {
        Ok(service) => service,
        // Whoever started it went away before a word was said.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(ServeError::NotInitialized(Box::new(error))),
    };
    service.waiting().await.map(|_| ()).map_err(ServeError::Stopped)
}

#[derive(Clone)]
struct ToolServer {
    tools: Arc<[OfferedTool]>,
    instructions: &'static str,
    running: Arc<Semaphore>,
}

impl ToolServer {
    async fn call(
        &self,
        tool: &OfferedTool,
        arguments: Map<String, Value>,
        context: RequestContext<RoleServer>,
    ) -> ToolReply {
        let arguments = without_nulls(&tool.parameters, arguments);
        if let Err(problem) = check_arguments(&tool.parameters, &arguments) {
            return ToolReply::error(format!(
                "The arguments do not fit: {problem}. Schema: {}",
                tool.parameters
            ));
        }
        let Ok(permit) = self.running.clone().acquire_owned().await else {
            return ToolReply::error("The server is ending.");
        };
        let (sender, mut reports) = mpsc::channel(1);
        let run = tool.run.clone();
        let mut work = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            // A report that finds no room is replaced by the next one.
            run(&arguments, &|done, all| {
                let _ = sender.try_send((done, all));
            })
        });
        let token = context.meta.get_progress_token();
        loop {
            tokio::select! {
                reply = &mut work => return reply.unwrap_or_else(|_| ToolReply::error("The call failed: this is a fault of Hardpan.")),
                () = context.ct.cancelled() => return ToolReply::error("The call was cancelled."),
                Some((done, all)) = reports.recv() => {
                    if let Some(token) = token.clone() {
                        let report = ProgressNotificationParam::new(token, done as f64).with_total(all as f64);
                        // A client that is gone need not be told.
                        let _ = context.peer.notify_progress(report).await;
                    }
                }
            }
        }
    }
}

impl ServerHandler for ToolServer {
    fn get_info(&self) -> rmcp::model::ServerConfig {
        rmcp::model::ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("hardpan", env!("CARGO_PKG_VERSION")))
            .with_instructions(self.instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let declare = |tool: &OfferedTool| {
            let schema = tool.parameters.as_object().cloned().unwrap_or_default();
            let hints = ToolAnnotations::new().read_only(true).open_world(false);
            Tool::new(tool.name, tool.description, schema).with_annotations(hints)
        };
        Ok(ListToolsResult::with_all_items(self.tools.iter().map(declare).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.tools.iter().find(|tool| tool.name == request.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name).collect();
            let words = format!("there is no tool of this name; there are {}", names.join(", "));
            return Err(ErrorData::invalid_params(words, None));
        };
        let reply = self.call(tool, request.arguments.unwrap_or_default(), context).await;
        let content = vec![ContentBlock::text(cut(reply.text))];
        let mut result =
            if reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
        result.structured_content =
            reply.data.filter(|data| data.is_object() && data.to_string().len() <= MAX_DATA);
        Ok(result.into())
    }
}

/// A text with at most so many bytes, and a note if some are missing.
fn cut(mut text: String) -> String {
    if text.len() > MAX_TEXT {
        let end = (0..=MAX_TEXT).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push_str("\n… the rest is cut: ask for less\n");
    }
    text
}

/// Messages on standard input and output, one per line.
struct StdioTransport {
    messages: mpsc::Receiver<RxJsonRpcMessage<RoleServer>>,
    output: std::sync::mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>,
}

/// Standard output was closed.
#[derive(Debug, thiserror::Error)]
#[error("nobody reads the answers any more")]
struct OutputClosed;

impl StdioTransport {
    /// Starts to read and to write, on threads of their own that end with the streams.
    fn start() -> Self {
        let (output, waiting) = std::sync::mpsc::channel();
        let (sender, messages) = mpsc::channel(WAITING_MESSAGES);
        let answers = output.clone();
        thread::spawn(move || read_requests(&sender, &answers));
        thread::spawn(move || write_messages(io::stdout().lock(), &waiting));
        StdioTransport { messages, output }
    }
}

fn read_requests(
    sender: &mpsc::Sender<RxJsonRpcMessage<RoleServer>>,
    answers: &std::sync::mpsc::Sender<(Vec<u8>, oneshot::Sender<()>)>,
) {
    let (mut reader, mut line) = (BufReader::new(io::stdin().lock()), Vec::new());
    while let Ok(Some(())) = read_line(&mut reader, MAX_LINE, &mut line) {
        if line.trim_ascii().is_empty() {
            continue;
        }
        match serde_json::from_slice(&line) {
            Ok(message) => {
                if sender.blocking_send(message).is_err() {
                    return;
                }
            }
            Err(error) => {
                let error =
                    json!({"code": -32700, "message": format!("no message of the protocol: {error}")});
                let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
                let (done, _) = oneshot::channel();
                if answers.send((format!("{answer}\n").into_bytes(), done)).is_err() {
                    return;
                }
            }
        }
    }
}

impl Transport<RoleServer> for StdioTransport {
    type Error = OutputClosed;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), OutputClosed>> + Send + 'static {
        let mut line = serde_json::to_vec(&item).unwrap_or_default();
        let (done, written) = oneshot::channel();
        let sent = writeln!(line).is_ok() && self.output.send((line, done)).is_ok();
        async move {
            match sent {
                true => written.await.map_err(|_| OutputClosed),
                false => Err(OutputClosed),
            }
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        self.messages.recv().await
    }

    async fn close(&mut self) -> Result<(), OutputClosed> {
        self.messages.close();
        Ok(())
    }
}
