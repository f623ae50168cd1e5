//! [`Tool`]: what a tool is, how it is called and what it answers.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hardpan_context::knowledge::{FileKnowledge, FileObservation};
use hardpan_prompt::{Json, MessagePart};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Scope;

/// Something that a model can call. A new tool implements this trait and is registered in a
/// [`ToolRegistry`](crate::ToolRegistry).
///
/// Nothing depends on a tool's name: whatever others need to know about a tool or one of its calls,
/// they ask it here.
pub trait Tool: Send + Sync {
    /// What the model reads about the tool: name, description, parameters.
    fn declaration(&self) -> &hardpan_prompt::Tool;

    /// What a call with these arguments may do. Calls that only read need no permission from the
    /// user. The arguments come from the model and may be of any form.
    fn effect(&self, arguments: &Value) -> Effect;

    /// What a call with these arguments acts on.
    fn subject(&self, _arguments: &Value) -> CallSubject {
        CallSubject::Other
    }

    /// The kind of subject that the tool's calls have, as rules about the tool name it.
    fn subject_kind(&self) -> SubjectKind {
        SubjectKind::Other
    }

    /// Whether neighbouring calls of one answer run at the same time, whatever they change.
    fn runs_in_parallel(&self) -> bool {
        false
    }

    /// The call of another tool that a call with these arguments stands for. Permissions, events and
    /// results are then about that tool; only the conversation keeps the call as the model made it.
    fn inner_call(&self, _arguments: &Value) -> Option<InnerCall> {
        None
    }

    /// What its source says about the tool and nobody has checked, for a question about a call.
    fn claim(&self) -> Option<ToolClaim> {
        None
    }

    /// How faces show a result to the user.
    fn result_display(&self) -> ResultDisplay {
        ResultDisplay::Brief
    }

    /// Runs one call. Dropping the future ends the work and leaves nothing running. A failure is an
    /// outcome with `is_error`, never a panic.
    fn run<'a>(&'a self, call: ToolInvocation<'a>) -> BoxFuture<'a, ToolOutcome>;
}

/// A call that another one stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct InnerCall {
    /// The tool's name in the registry.
    pub name: Arc<str>,
    /// An object.
    pub arguments: Value,
}

/// What the source of a tool says about it. Nothing relies on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ToolClaim {
    /// That it only reads.
    OnlyReads,
}

impl ToolClaim {
    /// The claim as a sentence, which says whose it is.
    pub fn sentence(self) -> &'static str {
        match self {
            ToolClaim::OnlyReads => "The server says that it only reads.",
        }
    }
}

/// What a tool may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It only reads.
    Reads,
    /// It may change files or reach other machines, so the user is asked unless a rule allows it.
    Changes,
}

/// What a call acts on: what approvals are asked about and what rules match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", content = "value", rename_all = "snake_case")]
pub enum CallSubject {
    /// A command line.
    Command(String),
    /// A file that is read or changed, by its path as the model wrote it.
    File(String),
    /// A web address.
    Url(String),
    /// A tool of a server, as `server.tool`.
    ServerTool(String),
    /// Anything else, or arguments that do not say.
    Other,
}

impl CallSubject {
    /// The subject that the argument `name` holds; [`CallSubject::Other`] if it is not there.
    pub(crate) fn of_argument(make: fn(String) -> Self, arguments: &Value, name: &str) -> Self {
        arguments[name].as_str().map_or(CallSubject::Other, |value| make(value.to_owned()))
    }
}

/// The kinds of [`CallSubject`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubjectKind {
    /// Command lines: a rule names the first words.
    Command,
    /// Files: a rule names a path pattern.
    File,
    /// Web addresses: a rule names a host.
    Url,
    /// Anything else: a rule can only name the tool.
    Other,
}

/// How faces show a result to the user, who can always ask for all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResultDisplay {
    /// Nothing but the first line of a failure.
    #[default]
    Brief,
    /// The last lines: the output of a command.
    LastLines,
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
    /// What the model has seen of files before this call.
    pub knowledge: &'a FileKnowledge,
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
    /// What call and result tell the model about files.
    pub file_observations: Vec<FileObservation>,
    /// Whether the model need not read the result: if every result of an answer says so, no further
    /// request is made because of them.
    pub ends_run: bool,
}

impl ToolOutcome {
    /// A successful answer of one text.
    pub fn text(text: impl Into<String>) -> Self {
        ToolOutcome {
            content: vec![MessagePart::text(text.into())],
            details: None,
            is_error: false,
            file_observations: Vec::new(),
            ends_run: false,
        }
    }

    /// A failed call. `why` says what is wrong and what to do instead.
    pub fn failed(why: impl Into<String>) -> Self {
        ToolOutcome { is_error: true, ..ToolOutcome::text(why) }
    }

    /// Sets the details.
    pub fn with_details(self, details: Value) -> Self {
        ToolOutcome { details: Some(details), ..self }
    }

    /// Adds what call and result tell about a file.
    pub fn with_observation(mut self, observation: FileObservation) -> Self {
        self.file_observations.push(observation);
        self
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
