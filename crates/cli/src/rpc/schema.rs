//! The protocol as a JSON schema.

use hardpan_agent::Event as _;
use hardpan_agent::events::{
    AgentEnd, AgentStart, BeforeProviderRequest, CacheVerdict, HandlerFailed, MessageEnd, MessageStart,
    MessageUpdate, ModelSelect, Note, QueueUpdate, SessionCompact, SessionFork, SessionShutdown,
    SessionStart, SessionSwitch, SessionTree, ToolExecutionEnd, ToolExecutionStart, ToolExecutionUpdate,
    TurnEnd, TurnStart,
};
use schemars::JsonSchema;
use serde_json::{Map, Value};

use super::request::Request;
use super::response::Line;

/// The events that are told.
const EVENTS: [&str; 22] = [
    SessionStart::NAME,
    SessionSwitch::NAME,
    SessionFork::NAME,
    SessionTree::NAME,
    SessionCompact::NAME,
    SessionShutdown::NAME,
    AgentStart::NAME,
    AgentEnd::NAME,
    TurnStart::NAME,
    TurnEnd::NAME,
    BeforeProviderRequest::NAME,
    MessageStart::NAME,
    MessageUpdate::NAME,
    MessageEnd::NAME,
    CacheVerdict::NAME,
    ToolExecutionStart::NAME,
    ToolExecutionUpdate::NAME,
    ToolExecutionEnd::NAME,
    ModelSelect::NAME,
    QueueUpdate::NAME,
    Note::NAME,
    HandlerFailed::NAME,
];

/// Every line, in and out.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Protocol {
    /// Standard input.
    Request(Request),
    /// Standard output.
    Line(Box<Line>),
    /// Standard output: something happened.
    Event(Event),
}

/// Something happened. The fields of each event are in docs/agent.md.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Event {
    /// Which event.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = EVENTS))]
    kind: String,
    /// What it carries.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// The schema of every line, in and out.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Protocol).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "hardpan rpc, one line".into());
    }
    schema
}
