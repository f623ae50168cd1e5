//! [`ExtensionTool`]: a tool that an extension brings.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hardpan_prompt::{Json, MessagePart, Tool as Declaration};
use hardpan_tools::{Effect, Tool, ToolInvocation, ToolOutcome};
use serde_json::{Value, json};

use super::host::ExtensionHost;
use super::messages::parts_from_script;

/// A tool whose calls an extension carries out.
pub struct ExtensionTool {
    host: Arc<ExtensionHost>,
    declaration: Declaration,
}

impl ExtensionTool {
    /// The tool that `registerTool` describes.
    pub fn new(host: Arc<ExtensionHost>, described: &Value) -> Self {
        let text = |name: &str| described[name].as_str().map(Arc::<str>::from);
        let description = text("description").unwrap_or_default();
        let guidelines = described["promptGuidelines"].as_array().into_iter().flatten();
        let declaration = Declaration {
            name: text("name").unwrap_or_default(),
            // A tool without a snippet is listed with its description.
            snippet: text("promptSnippet").or_else(|| description.lines().next().map(Arc::from)),
            description,
            parameters: Json::new(&described["parameters"]),
            guidelines: guidelines.filter_map(|line| line.as_str().map(Arc::from)).collect(),
        };
        ExtensionTool { host, declaration }
    }
}

impl Tool for ExtensionTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// The extension's own code was trusted by the user, and what it does outside of it asks.
    fn effect(&self, _arguments: &Value) -> Effect {
        Effect::Reads
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let mut updates = self.host.follow_updates(call.id);
            let payload = json!({ "callId": call.id, "args": call.arguments.value() });
            let running = self.host.call_tool(&self.declaration.name, &payload);
            tokio::pin!(running);
            let result = loop {
                tokio::select! {
                    result = &mut running => break result,
                    Some(content) = updates.recv() => (call.progress)(&text_of(&content)),
                }
            };
            self.host.forget_updates(call.id);
            match result {
                Ok(result) => ToolOutcome {
                    content: parts_from_script(&result["content"]),
                    details: result.get("details").filter(|details| !details.is_null()).cloned(),
                    is_error: false,
                    file_observations: Vec::new(),
                },
                Err(error) => ToolOutcome::failed(error.to_string()),
            }
        })
    }
}

/// The text of an update, for a face that shows it.
fn text_of(content: &Value) -> String {
    let parts = parts_from_script(content);
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<&str>>().join("\n")
}
