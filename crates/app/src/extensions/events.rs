//! The events that extensions can take part in: what their handlers get, and what their replies mean.
//!
//! The names and fields are those of the published API; where it has two generations of an event, both
//! are raised (`agent_end` and `agent_settled`, `session_switch` and `session_start`).

mod notifications; // events that tell something
mod questions; // events whose replies count

use std::sync::Arc;

use hardpan_agent::events::{HandlerTooSlow, ToolCallEvent, ToolCallReply};
use hardpan_agent::{Agent, Event, HandlerError};
use hardpan_extensions::ScriptError;
use serde_json::Value;

use super::api::ScriptEvent;
use super::event_order::ToolEventOrder;
use super::host::ExtensionHost;

/// Subscribes a handler of an extension to an event. False if there is no such event.
pub fn subscribe(agent: &Agent, host: &Arc<ExtensionHost>, event: &str, handler: &str) -> bool {
    let subscriber = Subscriber { agent, host, name: event, handler };
    subscriber.subscribe_question() || subscriber.subscribe_notification()
}

/// In this name calls are blocked while a guard is missing. It is no extension's, so that nothing that happens to one
/// of them takes the block away: only loading all anew does.
pub const MISSING_GUARD: &str = "a missing guard";

/// Blocks every tool call, because an extension that decides about them is not there.
pub fn block_all_calls(agent: &Agent, reason: String) {
    agent.events().subscribe::<ToolCallEvent, _>(MISSING_GUARD, move |_, _| {
        let reason = reason.clone();
        async move { Ok(ToolCallReply::Block { reason }) }
    });
}

/// The error of a handler. One that computes without end is not asked for ever.
fn handler_error(error: ScriptError) -> HandlerError {
    match error {
        ScriptError::TooLong(_) => HandlerTooSlow(error.to_string()).into(),
        other => other.into(),
    }
}

struct Subscriber<'a> {
    agent: &'a Agent,
    host: &'a Arc<ExtensionHost>,
    name: &'a str,
    handler: &'a str,
}

impl Subscriber<'_> {
    fn order(&self) -> ToolEventOrder {
        self.host.tool_event_order()
    }

    /// Calls the handler with a payload, and makes its result the reply.
    fn on<E: Event, P: ScriptEvent>(
        &self,
        payload: impl Fn(&E, &Agent) -> P + Send + Sync + 'static,
        reply: impl Fn(&E, P::Reply) -> E::Reply + Send + Sync + 'static,
    ) -> bool
    where
        E::Reply: Default,
    {
        self.on_checked(payload, move |event, returned| Ok(reply(event, returned)))
    }

    /// The same where a result may be of no use: then the handler counts as one that failed.
    fn on_checked<E: Event, P: ScriptEvent>(
        &self,
        payload: impl Fn(&E, &Agent) -> P + Send + Sync + 'static,
        reply: impl Fn(&E, P::Reply) -> Result<E::Reply, HandlerError> + Send + Sync + 'static,
    ) -> bool
    where
        E::Reply: Default,
    {
        let (host, handler): (_, Arc<str>) = (self.host.clone(), self.handler.into());
        let reply = Arc::new(reply);
        let subscribed = move |event: E, agent: Agent| {
            let payload = payload(&event, &agent).to_json();
            let (host, handler, reply) = (host.clone(), handler.clone(), reply.clone());
            async move {
                let called = host.call_handler(&handler, payload).await;
                match called.map_err(handler_error)? {
                    // What a short function happens to return says nothing.
                    Value::Null | Value::Bool(_) | Value::Number(_) => Ok(E::Reply::default()),
                    returned => reply(&event, P::read_reply(returned)?),
                }
            }
        };
        self.agent.events().subscribe_as::<E, _>(self.host.name(), P::NAME, subscribed);
        true
    }

    /// Tells the handler of an event that asks nothing.
    fn tell<E: Event<Reply = ()>, P: ScriptEvent>(
        &self,
        payload: impl Fn(&E, &Agent) -> P + Send + Sync + 'static,
    ) -> bool {
        self.on::<E, P>(payload, |_, _| ())
    }
}
