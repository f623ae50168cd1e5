//! [`EventInfo`]: the events as data, for schemas and documents.

use schemars::generate::SchemaSettings;
use schemars::{Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::notifications::NOTIFICATIONS;
use super::questions::QUESTIONS;

/// All events: first those that faces receive, then those that handlers answer.
pub const EVENTS: &[EventInfo] = &{
    let mut all = [NOTIFICATIONS[0]; NOTIFICATIONS.len() + QUESTIONS.len()];
    let mut at = 0;
    while at < all.len() {
        let is_notification = at < NOTIFICATIONS.len();
        all[at] = if is_notification { NOTIFICATIONS[at] } else { QUESTIONS[at - NOTIFICATIONS.len()] };
        at += 1;
    }
    all
};

/// What is known of an event type without an event.
#[derive(Clone, Copy)]
pub struct EventInfo {
    /// The event's name: `type` in JSON.
    pub name: &'static str,
    pub(super) description: &'static str,
    /// What a handler may answer, in a few words; `None` if there is nothing to decide.
    pub answer: Option<&'static str>,
    pub(super) payload_schema: fn(&mut SchemaGenerator) -> Schema,
    pub(super) reply_schema: fn(&mut SchemaGenerator) -> Schema,
}

impl EventInfo {
    /// When the event is emitted, in a sentence or two.
    pub fn description(&self) -> String {
        self.description.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Names of the payload's fields in JSON, in order.
    fn fields(&self) -> Vec<String> {
        let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
        let mut generator = settings.into_generator();
        let mut fields = Vec::new();
        collect_fields((self.payload_schema)(&mut generator).as_value(), &mut fields);
        fields
    }
}

fn collect_fields(schema: &Value, fields: &mut Vec<String>) {
    for name in schema["properties"].as_object().into_iter().flat_map(Map::keys) {
        if !fields.contains(name) {
            fields.push(name.clone());
        }
    }
    // The fields of an enum that is flattened into the payload.
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    variants.for_each(|variant| collect_fields(variant, fields));
}

/// All events as a Markdown table, for `docs/agent.md`.
pub fn markdown_table() -> String {
    let mut table = "| event | when | fields | what a handler may answer |\n|---|---|---|---|\n".to_owned();
    for event in EVENTS {
        let fields: Vec<String> = event.fields().iter().map(|field| format!("`{field}`")).collect();
        let (name, when, answer) = (event.name, event.description(), event.answer.unwrap_or("–"));
        table += &format!("| `{name}` | {when} | {} | {answer} |\n", fields.join(", "));
    }
    table
}

/// The JSON schema of all events: under the name of each, its payload as a handler gets it and,
/// where it asks something, the reply.
pub fn schema() -> Value {
    let mut generator = SchemaGenerator::default();
    let mut events = Map::new();
    for event in EVENTS {
        let mut properties = json!({"payload": (event.payload_schema)(&mut generator)});
        if event.answer.is_some() {
            properties["reply"] = (event.reply_schema)(&mut generator).to_value();
        }
        events
            .insert(event.name.into(), json!({"description": event.description(), "properties": properties}));
    }
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "hardpan events",
        "description": "What handlers get and reply, by the name of the event.",
        "type": "object",
        "properties": events,
        "$defs": generator.take_definitions(true),
    })
}
