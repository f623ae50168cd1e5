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
use super::host::limits::json_bytes;
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
                    Some(content) = updates.recv() => {
                        (call.progress)(&limit_text(&text_of(&content), MAX_RESULT_TEXT));
                    }
                }
            };
            self.host.forget_updates(call.id);
            match result {
                Ok(result) => ToolOutcome {
                    file_observations: self.observe_file(call, &result["content"]).await,
                    content: limit_parts(parts_from_script(&result["content"])),
                    details: result.get("details").and_then(limit_details),
                    is_error: false,
                    ends_run: result["terminate"].as_bool() == Some(true),
                },
                Err(error) => {
                    // The place is for whoever wrote the extension.
                    let extension = self.host.name();
                    tracing::info!(extension, tool = &*self.declaration.name, "{error}");
                    ToolOutcome::failed(limit_text(&error.model_text(), MAX_RESULT_TEXT))
                        .with_details(json!({}))
                }
            }
        })
    }
}

/// Bytes of all texts of a result: the 50 kB of a command's output or a page of a file, and what a tool says about the
/// rest. A request that is too long ends the run, and what is stored is read at every start.
pub const MAX_RESULT_TEXT: usize = 51 << 10;

/// How many parts a result has.
const MAX_RESULT_PARTS: usize = 100;

/// Bytes of all images of a result, in base64: providers take no larger requests.
const MAX_RESULT_IMAGES: usize = 16 << 20;

/// Bytes of what is stored with a result and never sent, as JSON.
const MAX_DETAILS: usize = 1 << 20;

/// The text, if it is longer than `most` bytes without its middle: what an extension says comes first, and
/// how it ended last.
pub fn limit_text(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let start = text.floor_char_boundary(most / 2);
    let end = text.ceil_char_boundary(text.len() - most / 2);
    format!(
        "{}\n[{} bytes left out by Hardpan: a tool's result has at most {most}]\n{}",
        &text[..start],
        end - start,
        &text[end..]
    )
}

/// The parts of a result, no more and no longer than a request can have.
pub fn limit_parts(parts: Vec<MessagePart>) -> Vec<MessagePart> {
    let (count, mut text_room, mut image_room) = (parts.len(), MAX_RESULT_TEXT, MAX_RESULT_IMAGES);
    let mut kept = Vec::new();
    let mut left_out = count.saturating_sub(MAX_RESULT_PARTS);
    for part in parts.into_iter().take(MAX_RESULT_PARTS) {
        match part {
            MessagePart::Text { text } if text.len() > text_room => {
                if text_room == 0 {
                    left_out += 1;
                    continue;
                }
                kept.push(MessagePart::text(limit_text(&text, text_room)));
                text_room = 0;
            }
            MessagePart::Image(image) if image.data.len() > image_room => left_out += 1,
            part => {
                match &part {
                    MessagePart::Text { text } => text_room -= text.len(),
                    MessagePart::Image(image) => image_room -= image.data.len(),
                    _ => {}
                }
                kept.push(part);
            }
        }
    }
    if left_out > 0 {
        kept.push(MessagePart::text(format!(
            "[{left_out} of {count} parts left out by Hardpan: too many, or too large]"
        )));
    }
    kept
}

/// What is stored with a result; what is too large is not.
pub fn limit_details(details: &Value) -> Option<Value> {
    let is_kept = !details.is_null() && json_bytes(details) <= MAX_DETAILS;
    is_kept.then(|| details.clone())
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

#[cfg(test)]
mod tests {
    use hardpan_prompt::{Image, MediaType};

    use super::*;

    fn bytes_of(parts: &[MessagePart]) -> usize {
        parts.iter().map(|part| if let MessagePart::Text { text } = part { text.len() } else { 0 }).sum()
    }

    #[test]
    fn whatever_a_tool_returns_its_result_has_a_size_that_a_request_can_have() {
        let text = |bytes: usize| MessagePart::text("ä".repeat(bytes / 2));
        let results = [
            vec![text(30_000_000)],
            (0..300_000).map(|_| text(2)).collect(),
            (0..300_000).map(|_| text(0)).collect(),
            (0..50).map(|_| text(20_000)).collect(),
            vec![text(MAX_RESULT_TEXT), text(2), text(MAX_RESULT_TEXT + 2)],
        ];
        for parts in results {
            let count = parts.len();
            let limited = limit_parts(parts);
            assert!(limited.len() <= MAX_RESULT_PARTS + 1, "{count} parts");
            // With room for the notes about what is missing.
            assert!(bytes_of(&limited) <= MAX_RESULT_TEXT + 300, "{count} parts");
        }
        let image = |bytes: usize| {
            let data = "A".repeat(bytes).into();
            MessagePart::Image(Image { media_type: MediaType::Png, data, width: None, height: None })
        };
        assert_eq!(limit_parts(vec![image(MAX_RESULT_IMAGES), image(1)]).len(), 2);
        assert!(matches!(limit_parts(vec![image(MAX_RESULT_IMAGES + 1)])[..], [MessagePart::Text { .. }]));
    }

    #[test]
    fn a_result_of_an_ordinary_size_stays_as_it_is() {
        let parts = vec![MessagePart::text("a".repeat(MAX_RESULT_TEXT - 1)), MessagePart::text("b")];
        assert_eq!(limit_parts(parts.clone()), parts);
        assert_eq!(limit_text("short", 5), "short");
        assert_eq!(limit_details(&json!({"a": 1})), Some(json!({"a": 1})));
        assert_eq!(limit_details(&json!("a".repeat(MAX_DETAILS))), None);
    }
}
