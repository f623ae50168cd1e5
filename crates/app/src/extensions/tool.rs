//! [`ExtensionTool`]: a tool that an extension brings.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::FileObservation;
use hardpan_mcp::rename_arguments;
use hardpan_prompt::{Json, MessagePart, Tool as Declaration};
use hardpan_tools::{CallSubject, Effect, ResultDisplay, SubjectKind, Tool, ToolInvocation, ToolOutcome};
use serde_json::{Value, json};

use super::host::ExtensionHost;
use super::messages::parts_from_script;

/// A tool whose calls an extension carries out.
pub struct ExtensionTool {
    host: Arc<ExtensionHost>,
    declaration: Declaration,
    /// The extension's names of arguments that are declared by other names, by these.
    argument_names: BTreeMap<String, String>,
    /// The built-in tool in whose place it stands, and which says what is asked about its calls.
    replaces: Option<Arc<dyn Tool>>,
}

impl ExtensionTool {
    /// The tool that `registerTool` describes, in the place of a built-in one if it has its name.
    pub fn new(host: Arc<ExtensionHost>, described: &Value, replaces: Option<Arc<dyn Tool>>) -> Self {
        let text = |name: &str| described[name].as_str().map(Arc::<str>::from);
        let description = text("description").unwrap_or_default();
        let guidelines = described["promptGuidelines"].as_array().into_iter().flatten();
        let mut parameters = parameters(&described["parameters"]);
        let argument_names = rename_arguments(&mut parameters);
        let declaration = Declaration {
            name: text("name").unwrap_or_default(),
            // A tool without a snippet is listed with its description.
            snippet: text("promptSnippet").or_else(|| description.lines().next().map(Arc::from)),
            description,
            parameters: Json::new(&parameters),
            guidelines: guidelines.filter_map(|line| line.as_str().map(Arc::from)).collect(),
        };
        ExtensionTool { host, declaration, argument_names, replaces }
    }

    /// The arguments of a call by the extension's own names.
    fn own_arguments(&self, arguments: Value) -> Value {
        let Value::Object(fields) = arguments else { return arguments };
        let own = |name: String| self.argument_names.get(&name).cloned().unwrap_or(name);
        Value::Object(fields.into_iter().map(|(name, value)| (own(name), value)).collect())
    }

    /// What a result in the place of `read` tells the model about a file: as much as the built-in tool
    /// tells, if it shows the same text.
    async fn observe_file(&self, call: ToolInvocation<'_>, content: &Value) -> Vec<FileObservation> {
        let Some(built_in) = self.replaces.as_ref().filter(|_| &*self.declaration.name == "read") else {
            return Vec::new();
        };
        let expected = built_in.run(call).await;
        let shown = text_of_parts(&expected.content);
        let is_same = !expected.is_error && text_of(content).contains(&*shown) && !shown.is_empty();
        if is_same { expected.file_observations } else { Vec::new() }
    }
}

impl Tool for ExtensionTool {
    fn declaration(&self) -> &Declaration {
        &self.declaration
    }

    /// The extension's own code was trusted by the user, and what it does outside of it asks. A tool in
    /// the place of a built-in one is asked about as that one is.
    fn effect(&self, arguments: &Value) -> Effect {
        self.replaces.as_ref().map_or(Effect::Reads, |built_in| built_in.effect(arguments))
    }

    fn subject(&self, arguments: &Value) -> CallSubject {
        self.replaces.as_ref().map_or(CallSubject::Other, |built_in| built_in.subject(arguments))
    }

    fn subject_kind(&self) -> SubjectKind {
        self.replaces.as_ref().map_or(SubjectKind::Other, |built_in| built_in.subject_kind())
    }

    fn result_display(&self) -> ResultDisplay {
        self.replaces.as_ref().map_or_else(ResultDisplay::default, |built_in| built_in.result_display())
    }

    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome> {
        Box::pin(async move {
            let mut updates = self.host.follow_updates(call.id);
            let args = self.own_arguments(call.arguments.value());
            let payload = json!({ "callId": call.id, "args": args });
            let command = match self.subject(&call.arguments.value()) {
                CallSubject::Command(command) => Some(command),
                _ => None,
            };
            // Whoever is asked about the call has seen this command: it runs without another question.
            let _approved = command.map(|command| self.host.allow_command(command));
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
                    file_observations: self.observe_file(call, &result["content"]).await,
                    content: parts_from_script(&result["content"]),
                    details: result.get("details").filter(|details| !details.is_null()).cloned(),
                    is_error: false,
                    ends_run: result["terminate"].as_bool() == Some(true),
                },
                Err(error) => ToolOutcome::failed(error.to_string()),
            }
        })
    }
}

/// The schema of a tool's arguments. Providers want an object, and `{}` says as much in JSON Schema.
fn parameters(described: &Value) -> Value {
    let mut schema = described.clone();
    if let Value::Object(fields) = &mut schema {
        fields.entry("type").or_insert_with(|| json!("object"));
        if fields["type"] == "object" {
            fields.entry("properties").or_insert_with(|| json!({}));
        }
    }
    schema
}

/// The text of an update, for a face that shows it.
fn text_of(content: &Value) -> String {
    text_of_parts(&parts_from_script(content))
}

fn text_of_parts(parts: &[MessagePart]) -> String {
    let texts = parts.iter().filter_map(|part| match part {
        MessagePart::Text { text } => Some(&**text),
        _ => None,
    });
    texts.collect::<Vec<&str>>().join("\n")
}
