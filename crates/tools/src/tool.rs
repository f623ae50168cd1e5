//! What a tool is.

use futures_util::future::BoxFuture;
use hardpan_prompt::{Json, Part};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Scope;

/// Something that a model may have done.
pub trait Tool: Send + Sync {
    /// What the model is told of it.
    fn declaration(&self) -> &hardpan_prompt::Tool;

    /// What a call may do to the world: what only reads is never asked about.
    fn effect(&self) -> Effect;

    /// Does what the call asks for. Dropping the future ends the work and leaves nothing running.
    fn run<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Outcome>;
}

/// What a tool may do to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It looks, and changes nothing.
    Reads,
    /// It may change something.
    Changes,
}

/// One call of a tool.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The provider's id for it.
    pub id: &'a str,
    /// The arguments, an object.
    pub arguments: &'a Json,
    /// Which files it may touch.
    pub scope: &'a Scope,
    /// Takes what there is to show while the work goes on: the whole text so far.
    pub progress: &'a (dyn Fn(&str) + Send + Sync),
}

/// What a call answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// For the model: text and images.
    pub content: Vec<Part>,
    /// For people and programs: what the text does not say.
    pub details: Option<Value>,
    /// Whether it failed.
    pub is_error: bool,
}

impl Outcome {
    /// A text that answers the call.
    pub fn text(text: impl Into<String>) -> Self {
        Outcome { content: vec![Part::text(text.into())], details: None, is_error: false }
    }

    /// A call that failed, and why: what is wrong and what to do instead.
    pub fn failed(why: impl Into<String>) -> Self {
        Outcome { is_error: true, ..Outcome::text(why) }
    }

    /// The same, with details.
    pub fn with_details(self, details: Value) -> Self {
        Outcome { details: Some(details), ..self }
    }
}

/// Reads a call's arguments. The error names the field and is fit to answer the call with.
pub fn arguments<T: DeserializeOwned>(call: &Call<'_>) -> Result<T, Outcome> {
    // A model that leaves an optional argument out sometimes says null.
    let mut value = call.arguments.value();
    if let Value::Object(fields) = &mut value {
        fields.retain(|_, value| !value.is_null());
    }
    serde_json::from_value(value).map_err(|error| {
        Outcome::failed(format!(
            "The arguments cannot be used: {error}. Make the call again with arguments as declared."
        ))
    })
}
