//! What handlers return.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use super::{Content, ImagePart, Message, NewMessage, lenient, lenient_list};

#[derive(Default, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum InputEventResult {
    #[default]
    Continue,
    /// Another input takes the place of this one.
    Transform {
        text: String,
        /// Those of the input stay if this is left out.
        #[serde(default, deserialize_with = "lenient_list")]
        images: Option<Vec<ImagePart>>,
    },
    /// The extension has done what the input was for: nothing goes to the model.
    Handled,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BeforeAgentStartEventResult {
    /// A message that goes before the prompt.
    #[serde(deserialize_with = "lenient")]
    pub message: Option<NewMessage>,
    #[serde(deserialize_with = "lenient")]
    pub system_prompt: Option<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
pub struct ContextEventResult {
    // A number stands for a message that stayed as it was.
    #[serde(default, deserialize_with = "lenient")]
    #[schemars(with = "Vec<Message>", !default)]
    pub messages: Option<Vec<Value>>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToolCallEventResult {
    // The engine hands over a boolean. Anything else that a script takes for true blocks as well.
    #[serde(deserialize_with = "truthy")]
    pub block: Option<bool>,
    /// What the model is told.
    #[serde(deserialize_with = "lenient")]
    pub reason: Option<String>,
    /// Whether the run ends with a blocked call.
    #[serde(deserialize_with = "lenient")]
    pub terminate: Option<bool>,
    // What the engine adds if the handler changed the arguments in place.
    #[serde(rename = "changedInput", deserialize_with = "lenient")]
    #[schemars(skip)]
    pub changed_input: Option<Value>,
}

/// Whether a script takes a value for true.
fn truthy<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<bool>, D::Error> {
    Ok(Some(match Value::deserialize(deserializer)? {
        Value::Null => false,
        Value::Bool(is_true) => is_true,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }))
}

/// What is left out stays as it is.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ToolResultEventResult {
    #[serde(deserialize_with = "lenient")]
    pub content: Option<Content>,
    #[serde(deserialize_with = "lenient")]
    pub details: Option<Value>,
    #[serde(deserialize_with = "lenient")]
    pub is_error: Option<bool>,
}

/// Another body of the request. Handlers return it as it is, and the engine wraps it.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct BeforeProviderRequestEventResult {
    #[serde(deserialize_with = "lenient")]
    pub payload: Option<Value>,
}

impl JsonSchema for BeforeProviderRequestEventResult {
    fn schema_name() -> Cow<'static, str> {
        "BeforeProviderRequestEventResult".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-typescript": "unknown" })
    }
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CancelResult {
    #[serde(deserialize_with = "lenient")]
    pub cancel: Option<bool>,
    /// What the person is told.
    #[serde(deserialize_with = "lenient")]
    pub reason: Option<String>,
}

impl CancelResult {
    /// Why a handler that cancels something does not want it; it need not say.
    pub fn into_reason(self) -> Option<String> {
        let reason = self.reason.unwrap_or_else(|| "an extension cancelled it".to_owned());
        (self.cancel == Some(true)).then_some(reason)
    }
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SessionBeforeTreeResult {
    #[serde(flatten)]
    pub cancel: CancelResult,
    #[serde(deserialize_with = "lenient")]
    pub summary: Option<GivenSummary>,
    #[serde(deserialize_with = "lenient")]
    pub custom_instructions: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub label: Option<String>,
}

/// A summary of the branch that is left.
#[derive(Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct GivenSummary {
    pub summary: String,
    #[expect(dead_code, reason = "extensions may give details, and nothing here shows them")]
    pub details: Option<Value>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SessionBeforeCompactResult {
    #[serde(flatten)]
    pub cancel: CancelResult,
    #[serde(deserialize_with = "lenient")]
    pub compaction: Option<GivenCompaction>,
}

/// A summary of the messages that go.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct GivenCompaction {
    pub summary: String,
    #[serde(default, deserialize_with = "lenient")]
    pub first_kept_entry_id: Option<String>,
    #[expect(dead_code, reason = "extensions give it, and Hardpan counts by itself")]
    #[schemars(with = "Option<u64>")]
    pub tokens_before: Option<IgnoredAny>,
    #[serde(default, deserialize_with = "lenient")]
    pub details: Option<Value>,
}

/// Folders and files, relative to the extension's own folder.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourcesDiscoverResult {
    #[serde(deserialize_with = "lenient_list")]
    pub skill_paths: Option<Vec<String>>,
    #[serde(deserialize_with = "lenient_list")]
    pub prompt_paths: Option<Vec<String>>,
    /// Taken, and not used: themes are the person's choice.
    #[schemars(with = "Option<Vec<String>>")]
    pub theme_paths: Option<IgnoredAny>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct UserBashEventResult {
    /// The output, instead of running the command.
    #[serde(deserialize_with = "lenient")]
    pub result: Option<BashResult>,
    /// Runs the command in its own way; the engine calls it, and gives its result.
    #[schemars(with = "Option<BashOperations>")]
    pub operations: Option<IgnoredAny>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BashResult {
    pub output: String,
    #[serde(default, deserialize_with = "lenient")]
    pub exit_code: Option<i32>,
    #[expect(dead_code, reason = "extensions give more, and nothing here uses it")]
    #[serde(flatten)]
    #[schemars(with = "serde_json::Map<String, Value>")]
    pub rest: Rest,
}

/// Fields that nobody reads.
pub struct Rest;

impl<'de> Deserialize<'de> for Rest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(deserializer).map(|_| Rest)
    }
}

/// Functions of the script.
pub struct BashOperations;

impl JsonSchema for BashOperations {
    fn schema_name() -> Cow<'static, str> {
        "BashOperations".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-typescript": "{ exec(command: string, cwd: string, options: { onData(data: string | Uint8Array): void; signal: AbortSignal }): Promise<{ exitCode: number | null }> }"
        })
    }
}
