//! [`EventLog`]: what an agent emitted, for tests that look at it afterwards.

#![allow(dead_code, reason = "each test crate uses some of it")]

use std::sync::{Mutex, PoisonError};

use hardpan_agent::{Agent, AgentEvent, Event, EventStream};

/// The events that an agent emitted, in order.
pub struct EventLog(Mutex<(EventStream, Vec<AgentEvent>)>);

impl EventLog {
    /// A log of everything that is emitted from now on.
    pub fn new(agent: &Agent) -> Self {
        EventLog(Mutex::new((agent.events().unbounded_stream(), Vec::new())))
    }

    /// All events so far.
    pub fn all(&self) -> Vec<AgentEvent> {
        let mut log = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (stream, seen) = &mut *log;
        seen.extend(std::iter::from_fn(|| stream.try_recv()));
        seen.clone()
    }

    /// The events of one type, in order.
    pub fn of<E: Event<Reply = ()>>(&self) -> Vec<E> {
        self.all().iter().filter_map(|event| event.payload().cloned()).collect()
    }

    /// Forgets the events so far.
    pub fn clear(&self) {
        self.all();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.clear();
    }
}
