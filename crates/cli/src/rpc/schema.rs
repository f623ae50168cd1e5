//! [`schema()`]: the RPC protocol as a JSON schema, generated from the request and response types.

use std::borrow::Cow;

use hardpan_agent::AgentEvent;
use hardpan_agent::events::EVENTS;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;

use super::request::Request;
use super::response::OutputMessage;

/// Any line of the protocol, in either direction.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum RpcLine {
    /// On standard input: a request.
    Request(Request),
    /// On standard output: a response or a question.
    OutputMessage(Box<OutputMessage>),
    /// On standard output: an event of the agent.
    Event(Event),
}

/// An event of the agent.
struct Event;

impl JsonSchema for Event {
    fn schema_name() -> Cow<'static, str> {
        "Event".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> =
            EVENTS.iter().filter(|event| event.answer.is_none()).map(|event| event.name).collect();
        json_schema!({
            "description": "An event of the agent.",
            "type": "object",
            "properties": {
                "type": {"description": "The event's name.", "type": "string", "enum": names},
            },
            "required": ["type"],
            "allOf": [generator.subschema_for::<AgentEvent>()],
        })
    }
}

/// The JSON schema of every line, in either direction.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(RpcLine).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "hardpan rpc, one line".into());
    }
    schema
}
