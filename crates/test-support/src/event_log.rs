//! [`EventLog`]: what an agent emitted, for tests that look at it afterwards.

use std::sync::{Mutex, MutexGuard};

use hardpan_agent::events::{HandlerFailed, MessageDelta};
use hardpan_agent::{Agent, AgentEvent, Event, EventStream, HandlerFault, PreparedInput};

/// The events that an agent emitted, in order.
pub struct EventLog(Mutex<Log>);

struct Log {
    stream: EventStream,
    seen: Vec<AgentEvent>,
}

impl EventLog {
    /// A log of everything that is emitted from now on.
    pub fn new(agent: &Agent) -> Self {
        EventLog(Mutex::new(Log { stream: agent.events().unbounded_stream(), seen: Vec::new() }))
    }

    /// All events so far.
    pub fn all(&self) -> Vec<AgentEvent> {
        self.read().seen.clone()
    }

    /// The events of one type, in order.
    pub fn of<E: Event<Reply = ()>>(&self) -> Vec<E> {
        self.read().seen.iter().filter_map(|event| event.payload().cloned()).collect()
    }

    /// How many events have this name.
    pub fn count(&self, name: &str) -> usize {
        self.read().seen.iter().filter(|event| event.name() == name).count()
    }

    /// Forgets the events so far.
    pub fn clear(&self) {
        self.read().seen.clear();
    }

    /// The log with everything that has come.
    fn read(&self) -> MutexGuard<'_, Log> {
        let mut log = self.0.lock().expect("the events");
        while let Some(event) = log.stream.try_recv() {
            log.seen.push(event);
        }
        log
    }
}

/// The event of a handler that failed.
pub fn handler_failed(owner: &str, event: &'static str, message: &str) -> HandlerFailed {
    HandlerFailed(HandlerFault { owner: owner.into(), event, message: message.into(), is_repeated: false })
}

/// An input as it waits in a queue.
pub fn queued_input(text: &str) -> PreparedInput {
    PreparedInput { text: text.into(), typed: text.into(), ..PreparedInput::default() }
}

/// The text of a piece of an answer.
pub fn text_of(delta: &MessageDelta) -> &str {
    match delta {
        MessageDelta::Text { text } => text,
        other => panic!("not a text, but {other:?}"),
    }
}
