//! [`schema()`]: the RPC protocol as a JSON schema, generated from the request and response types.

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
use super::response::OutputMessage;

/// The names of all events that the server forwards.
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

/// Any line of the protocol, in either direction.
#[derive(JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum Protocol {
    /// On standard input: a request.
    Request(Request),
    /// On standard output: a response or a question.
    OutputMessage(Box<OutputMessage>),
    /// On standard output: an event of the agent.
    Event(Event),
}

/// An event of the agent. docs/agent.md lists the fields of each.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is used")]
struct Event {
    /// The event's name.
    #[serde(rename = "type")]
    #[schemars(extend("enum" = EVENTS))]
    kind: String,
    /// The event's own fields.
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// The JSON schema of every line, in either direction.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Protocol).to_value();
    if let Some(object) = schema.as_object_mut() {
        object.insert("title".into(), "hardpan rpc, one line".into());
    }
    schema
}
