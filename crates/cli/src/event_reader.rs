//! How faces read the agent's events. [`EventReader`] passes them to a function on a thread of its
//! own, so that a terminal or a pipe that blocks stops neither signals nor the agent's tasks.
//! [`OrderedQueue`] puts what a face has to say itself between them, where it belongs.

use std::ops::ControlFlow;

use hardpan_agent::{Agent, AgentEvent, EventStream};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// What an [`OrderedQueue`] gives next.
pub enum QueueItem<T> {
    Event(Box<AgentEvent>),
    Own(T),
}

/// The agent's events and a face's own items. An item comes after every event that was emitted
/// before the item was sent.
pub struct OrderedQueue<T> {
    events: EventStream,
    items: mpsc::UnboundedReceiver<T>,
    /// An item, and how many events come before it.
    next_item: Option<(T, usize)>,
}

impl<T> OrderedQueue<T> {
    pub fn new(events: EventStream, items: mpsc::UnboundedReceiver<T>) -> Self {
        OrderedQueue { events, items, next_item: None }
    }

    /// The next event or item. None once the agent is gone and nobody can send items.
    pub async fn next(&mut self) -> Option<QueueItem<T>> {
        if self.next_item.is_none() {
            tokio::select! {
                biased;
                Some(item) = self.items.recv() => self.next_item = Some((item, self.events.len())),
                Some(event) = self.events.recv() => return Some(QueueItem::Event(event.into())),
                else => return None,
            }
        }
        let (item, before) = self.next_item.take()?;
        if before > 0
            && let Some(event) = self.events.try_recv()
        {
            self.next_item = Some((item, before - 1));
            return Some(QueueItem::Event(event.into()));
        }
        Some(QueueItem::Own(item))
    }

    /// Passes everything that comes to `handle`, on a thread of its own, until that breaks off.
    pub fn run(
        mut self,
        mut handle: impl FnMut(QueueItem<T>) -> ControlFlow<()> + Send + 'static,
    ) -> JoinHandle<()>
    where
        T: Send + 'static,
    {
        let runtime = Handle::current();
        tokio::task::spawn_blocking(move || {
            while let Some(item) = runtime.block_on(self.next()) {
                if handle(item).is_break() {
                    break;
                }
            }
        })
    }
}

/// A place between two events.
enum Mark {
    /// Tells the sender that all events before it have been handled.
    Reached(oneshot::Sender<()>),
    /// No more events are read.
    End,
}

/// Passes an agent's events to a function, in order.
pub struct EventReader {
    marks: mpsc::UnboundedSender<Mark>,
    task: JoinHandle<()>,
}

impl EventReader {
    /// Starts reading the events that are emitted from now on.
    pub fn start(agent: &Agent, mut handle: impl FnMut(AgentEvent) + Send + 'static) -> Self {
        let (marks, items) = mpsc::unbounded_channel();
        let task = OrderedQueue::new(agent.events().stream(), items).run(move |item| {
            match item {
                QueueItem::Event(event) => handle(*event),
                // The other side may have stopped waiting.
                QueueItem::Own(Mark::Reached(reached)) => drop(reached.send(())),
                QueueItem::Own(Mark::End) => return ControlFlow::Break(()),
            }
            ControlFlow::Continue(())
        });
        EventReader { marks, task }
    }

    /// Waits until all events that were emitted so far have been handled.
    pub async fn catch_up(&self) {
        let (sender, reached) = oneshot::channel();
        if self.marks.send(Mark::Reached(sender)).is_ok() {
            let _ = reached.await;
        }
    }

    /// Handles the events that were emitted so far and ends. Call it once the agent is shut down.
    pub async fn finish(self) {
        let _ = self.marks.send(Mark::End);
        let _ = self.task.await;
    }
}

#[cfg(test)]
mod tests;
