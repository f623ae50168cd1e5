//! [`McpTool`]: a tool whose calls a server carries out.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use hardpan_mcp::{ServerError, ServerTool};
use hardpan_prompt::{Json, Tool as Declaration};
use hardpan_tools::{CallSubject, Effect, Tool, ToolClaim, ToolInvocation, ToolOutcome};
use serde_json::Value;

use super::McpServer;

/// A tool of a server. It does not keep the server alive.
pub(super) struct McpTool {
    server: Weak<McpServer>,
    /// The name that the server knows it by.
    name: String,
    /// The server's names of arguments that are declared by other names, by these.
    argument_names: BTreeMap<String, String>,
    /// `server.tool`, as rules name it.
    subject: String,
    /// Whether the server says that it only reads.
    says_read_only: bool,
    declaration: Declaration,
}

impl McpTool {
    pub fn new(server: &Arc<McpServer>, tool: &ServerTool) -> Self {
        McpTool {
            server: Arc::downgrade(server),
            name: tool.name.clone(),
            argument_names: tool.argument_names.clone(),
            subject: format!("{}.{}", server.name, tool.name),
            says_read_only: tool.read_only_hint,
            declaration: Declaration {
                name: tool.exposed_name.as_str().into(),
                description: tool.description.as_str().into(),
                parameters: Json::new(&tool.parameters),
                snippet: None,
                guidelines: Vec::new(),
            },
        }
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolOutcome {
        let Value::Object(arguments) = call.arguments.value() else {
            return ToolOutcome::failed("The arguments must be an object, as declared.");
        };
        let own_name = |name: String| self.argument_names.get(&name).cloned().unwrap_or(name);
        let arguments = arguments.into_iter().map(|(name, value)| (own_name(name), value)).collect();
        let Some(server) = self.server.upgrade() else {
            return ToolOutcome::failed("The conversation has no such server any more.");
        };
        let failed = |error: ServerError| {
            let again = match error {
                ServerError::Ended(_) | ServerError::Hangs(_) => ". The next call starts it again.",
                _ => ".",
            };
            ToolOutcome::failed(format!("The MCP server {}: {error}{again}", server.name))
        };
        // One that has ended is started again here, once for each call.
        let connection = match server.connect().await {
            Ok(connection) => connection,
            Err(error) => return failed(error),
        };
        match connection.call(&self.name, arguments, call.progress).await {
            Ok(answer) => ToolOutcome {
                content: answer.content,
                details: None,
                is_error: answer.is_error,
                file_observations: Vec::new(),
                ends_run: false,
            },
            Err(error) => failed(error),
        }
    }
}

impl Tool for McpTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// Whatever the server says about it: nobody here has checked that it only reads.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Changes
    }

    fn subject(&self, _arguments: &Value) -> CallSubject {
        CallSubject::ServerTool(self.subject.clone())
    }

    fn claim(&self) -> Option<ToolClaim> {
        self.says_read_only.then_some(ToolClaim::OnlyReads)
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(self.call(call))
    }
}
