//! [`Tool`]: what a tool is, how it is called and what it answers.

use futures_util::future::BoxFuture;
use hardpan_prompt::{Json, MessagePart};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Scope;

/// Something that a model can call. A new tool implements this trait and is added to a list of
/// tools.
pub trait Tool: Send + Sync {
    /// What the model reads about the tool: name, description, parameters.
    fn declaration(&self) -> &hardpan_prompt::Tool;

    /// What a call may do. Tools that only read need no permission from the user.
    fn effect(&self) -> Effect;

    /// Runs one call. Dropping the future ends the work and leaves nothing running. A failure is an
    /// outcome with `is_error`, never a panic.
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome>;
}

/// What a tool may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    Reads,
    /// It may change files or reach other machines, so the user is asked unless a rule allows it.
    Changes,
}

/// One call of a tool by the model.
#[derive(Clone, Copy)]
pub struct ToolInvocation<'a> {
    /// The provider's id of the call.
    pub id: &'a str,
    /// The arguments, a JSON object.
    pub arguments: &'a Json,
    /// Which files the call may use.
    pub scope: &'a Scope,
    /// Receives output while the call runs: each time the whole text so far.
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
}

/// The answer to a call, also when it failed.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolOutcome {
    /// Text and images for the model.
    pub content: Vec<MessagePart>,
    /// Structured data for people and programs, such as a diff or an exit code; the model does not
    /// see it.
    pub details: Option<Value>,
    /// Whether the call failed.
    pub is_error: bool,
}

impl ToolOutcome {
    /// A successful answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutcome { content: vec![MessagePart::text(text.into())], details: None, is_error: false }
    }

    /// A failed call. `why` says what is wrong and what to do instead.
    pub fn failed(why: impl Into<String>) -> Self {
        ToolOutcome { is_error: true, ..ToolOutcome::text(why) }
    }

    /// Sets the details.
    pub fn with_details(self, details: Value) -> Self {
        ToolOutcome { details: Some(details), ..self }
    }
}

/// Parses the arguments of a call. The error is an answer for the model that names the field.
pub fn parse_arguments<T: DeserializeOwned>(call: &ToolInvocation<'_>) -> Result<T, ToolOutcome> {
    // Models sometimes pass null for an optional argument.
    let mut value = call.arguments.value();
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(value).map_err(|error| {
        ToolOutcome::failed(format!(
            "The arguments cannot be used: {error}. Make the call again with arguments as declared."
        ))
    })
}
