//! [`EventStream`]: how a face receives an agent's events.
//!
//! Nothing is lost, and the order is that of emission. An event is in the stream before the call
//! that caused it continues: once `agent.prompt(…).await` returns, all events of the run are there.
//!
//! **Back-pressure.** A bounded stream ([`Events::stream`](super::Events::stream)) holds about
//! [`STREAM_CAPACITY`] events. While it is full, a run waits for the face to read: between the
//! pieces of an answer, between a tool's updates, before each tool call and before each request.
//! An abort ends the wait, and the events that follow it are still delivered. Nothing but a run
//! waits: choosing a model, queueing an input or shutting down never depends on a reader.
//!
//! So a face reads in a task of its own, or in the same `select!` that drives its prompt. A program
//! that reads only after `prompt` has returned takes an
//! [unbounded stream](super::Events::unbounded_stream), which grows with the run.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use tokio::sync::Notify;

use super::AgentEvent;
use crate::agent::lock;

/// A run waits while a bounded stream holds this many events or more.
pub const STREAM_CAPACITY: usize = 256;

/// Receives every event that is emitted after it was made. Dropping it ends the delivery.
pub struct EventStream {
    queue: Arc<StreamQueue>,
}

impl EventStream {
    /// Waits for the next event. `None` once the agent is gone and all events are read.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        loop {
            let arrived = self.queue.arrived.notified();
            if let Some(event) = self.queue.take() {
                return Some(event);
            }
            if self.queue.is_drained() {
                return None;
            }
            arrived.await;
        }
    }

    /// The next event, if one is there.
    pub fn try_recv(&mut self) -> Option<AgentEvent> {
        self.queue.take()
    }

    /// How many events are there to be read.
    pub fn len(&self) -> usize {
        lock(&self.queue.state).events.len()
    }

    /// Whether there is nothing to be read now.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.queue.close();
        lock(&self.queue.state).events.clear();
    }
}

/// The events between an agent and one reader.
pub(super) struct StreamQueue {
    state: Mutex<QueueState>,
    capacity: usize,
    /// Wakes the reader.
    arrived: Notify,
    /// Wakes the runs that wait for the reader.
    room: Notify,
}

#[derive(Default)]
struct QueueState {
    events: VecDeque<AgentEvent>,
    /// No more events come: the agent is gone, or nobody reads them.
    closed: bool,
}

impl StreamQueue {
    /// A queue, and the stream that reads it.
    pub fn new(capacity: usize) -> (Arc<Self>, EventStream) {
        let (state, arrived, room) = Default::default();
        let queue = Arc::new(StreamQueue { state, capacity, arrived, room });
        (queue.clone(), EventStream { queue })
    }

    /// Adds an event, whether or not the queue is full.
    pub fn push(&self, event: AgentEvent) {
        let mut state = lock(&self.state);
        if !state.closed {
            state.events.push_back(event);
            self.arrived.notify_one();
        }
    }

    /// Ends the stream once its events are read.
    pub fn close(&self) {
        lock(&self.state).closed = true;
        self.arrived.notify_one();
        self.room.notify_waiters();
    }

    pub fn is_closed(&self) -> bool {
        lock(&self.state).closed
    }

    /// Waits until the queue holds fewer events than its capacity, or nobody reads it any more.
    pub async fn wait_for_room(&self) {
        loop {
            let room = self.room.notified();
            tokio::pin!(room);
            // From here on a notification is not missed.
            room.as_mut().enable();
            if self.has_room() {
                return;
            }
            room.await;
        }
    }

    fn has_room(&self) -> bool {
        let state = lock(&self.state);
        state.closed || state.events.len() < self.capacity
    }

    /// Whether all events are read and no more come.
    fn is_drained(&self) -> bool {
        let state = lock(&self.state);
        state.closed && state.events.is_empty()
    }

    fn take(&self) -> Option<AgentEvent> {
        let mut state = lock(&self.state);
        let event = state.events.pop_front()?;
        // Runs that wait go on when the queue falls below its capacity.
        if state.events.len() + 1 == self.capacity {
            self.room.notify_waiters();
        }
        Some(event)
    }
}
