//! What goes to extensions and comes back, as Rust types. The types of `hardpan.d.ts` are made of them.
//!
//! An event is a [`ScriptEvent`]: its payload is what handlers get, its reply what they may return. A
//! payload is serialised as it is; a reply is read as far as it can be, because scripts return all sorts
//! of things: a field of another type counts as one that is not there.

/// Words that are always the same, such as the `type` of a part: a type for each.
macro_rules! literals {
    ($($name:ident = $word:literal),+ $(,)?) => { $(
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[schemars(inline)]
        pub enum $name {
            #[default]
            #[serde(rename = $word)]
            Word,
        }
    )+ };
}

mod entries; // entries of a session
mod events; // payloads of events
mod messages; // messages, their parts, usage
mod models; // models, tools, commands
mod replies; // what handlers return

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

pub use entries::*;
pub use events::*;
pub use messages::*;
pub use models::*;
pub use replies::*;

/// A handler returned what has no meaning for its event.
#[derive(Debug, thiserror::Error)]
#[error("what it returned is no reply to this event, and has no effect: {source}")]
pub struct UnusableReply {
    source: serde_json::Error,
}

/// An event as extensions know it: the type is its payload.
pub trait ScriptEvent: Serialize + JsonSchema + Send + Sync + Sized + 'static {
    /// Its name.
    const NAME: &'static str;
    /// What a handler may return.
    type Reply: DeserializeOwned + JsonSchema + Default;

    /// The payload as the text of its JSON, with the event's name in `type`.
    fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Named<'a, P> {
            #[serde(rename = "type")]
            name: &'a str,
            #[serde(flatten)]
            payload: &'a P,
        }
        // Payloads hold nothing that has no JSON.
        serde_json::to_string(&Named { name: Self::NAME, payload: self }).unwrap_or_default()
    }

    /// What a handler returned.
    fn read_reply(returned: Value) -> Result<Self::Reply, UnusableReply> {
        serde_json::from_value(returned).map_err(|source| UnusableReply { source })
    }
}

/// An event for the declarations.
pub struct EventTyping {
    /// Its name.
    pub name: &'static str,
    pub(super) payload: fn(&mut SchemaGenerator) -> Schema,
    /// None if a handler has nothing to return.
    pub(super) reply: Option<fn(&mut SchemaGenerator) -> Schema>,
}

/// Names each event, its payload and its reply, once for the runtime and for the declarations.
macro_rules! script_events {
    (questions { $($question_name:literal => $question:ident -> $reply:ident,)+ }
     notifications { $($notification_name:literal => $notification:ident,)+ }) => {
        $( impl ScriptEvent for $question {
            const NAME: &'static str = $question_name;
            type Reply = $reply;
        } )+
        $( impl ScriptEvent for $notification {
            const NAME: &'static str = $notification_name;
            type Reply = ();

            // Nobody asks for one.
            fn read_reply(_: Value) -> Result<(), UnusableReply> {
                Ok(())
            }
        } )+

        /// All events of extensions.
        pub const EVENTS: &[EventTyping] = &[
            $( EventTyping {
                name: $question_name,
                payload: |generator| generator.subschema_for::<$question>(),
                reply: Some(|generator| generator.subschema_for::<$reply>()),
            }, )+
            $( EventTyping {
                name: $notification_name,
                payload: |generator| generator.subschema_for::<$notification>(),
                reply: None,
            }, )+
        ];
    };
}

script_events! {
    questions {
        "input" => InputEvent -> InputEventResult,
        "before_agent_start" => BeforeAgentStartEvent -> BeforeAgentStartEventResult,
        "context" => ContextEvent -> ContextEventResult,
        "tool_call" => ToolCallEvent -> ToolCallEventResult,
        "tool_result" => ToolResultEvent -> ToolResultEventResult,
        "before_provider_request" => BeforeProviderRequestEvent -> BeforeProviderRequestEventResult,
        "session_before_switch" => SessionBeforeSwitchEvent -> CancelResult,
        "session_before_fork" => SessionBeforeForkEvent -> CancelResult,
        "session_before_tree" => SessionBeforeTreeEvent -> SessionBeforeTreeResult,
        "session_before_compact" => SessionBeforeCompactEvent -> SessionBeforeCompactResult,
        "resources_discover" => ResourcesDiscoverEvent -> ResourcesDiscoverResult,
        "user_bash" => UserBashEvent -> UserBashEventResult,
    }
    notifications {
        "session_start" => SessionStartEvent,
        "session_shutdown" => SessionShutdownEvent,
        "session_directory" => SessionDirectoryEvent,
        "session_switch" => SessionSwitchEvent,
        "session_fork" => SessionForkEvent,
        "session_tree" => SessionTreeEvent,
        "session_compact" => SessionCompactEvent,
        "session_compact_failed" => SessionCompactFailedEvent,
        "session_info_changed" => SessionInfoChangedEvent,
        "agent_start" => AgentStartEvent,
        "agent_end" => AgentEndEvent,
        "agent_settled" => AgentSettledEvent,
        "turn_start" => TurnStartEvent,
        "turn_end" => TurnEndEvent,
        "message_start" => MessageStartEvent,
        "message_update" => MessageUpdateEvent,
        "message_end" => MessageEndEvent,
        "tool_execution_start" => ToolExecutionStartEvent,
        "tool_execution_update" => ToolExecutionUpdateEvent,
        "tool_execution_end" => ToolExecutionEndEvent,
        "model_select" => ModelSelectEvent,
        "thinking_level_select" => ThinkingLevelSelectEvent,
        "after_provider_response" => AfterProviderResponseEvent,
        "ui_prompt_start" => UiPromptStartEvent,
        "ui_prompt_end" => UiPromptEndEvent,
    }
}

/// Reads a field that may hold anything: what does not fit is not there.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Option<T>, D::Error> {
    let value = Value::deserialize(deserializer)?;
    Ok(if value.is_null() { None } else { T::deserialize(value).ok() })
}

/// Reads a field that may hold anything: what does not fit is the default.
fn lenient_default<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(lenient(deserializer)?.unwrap_or_default())
}

/// Reads a list of which some items may be anything: those that do not fit are left out.
fn lenient_list<'de, D: Deserializer<'de>, T: DeserializeOwned>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error> {
    let items: Option<Vec<Value>> = lenient(deserializer)?;
    Ok(items.map(|items| items.into_iter().filter_map(|item| T::deserialize(item).ok()).collect()))
}

/// A value of the API, as JSON.
pub fn to_script(value: &impl Serialize) -> Value {
    // The types of the API hold nothing that has no JSON.
    serde_json::to_value(value).unwrap_or_default()
}
