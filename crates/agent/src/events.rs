//! [`Events`]: the event pipeline. Faces read events from a stream; handlers are asked in order.
//!
//! All events are declared in two tables, `events/notifications.rs` and `events/questions.rs`. [`EVENTS`]
//! lists them, and [`schema`] describes their JSON.
//!
//! **Faces** (terminal, print, RPC) get every [`AgentEvent`] from an [`EventStream`]; its module
//! says what happens when a face does not keep up.
//!
//! **Handlers** take part. Every handler subscribed to an event's type gets a copy, in the order of
//! subscription; the code that emitted the event uses the replies. A handler runs in a task of its
//! own: one that panics, fails or takes too long is reported, and neither the loop nor the session
//! waits for it any longer. While it waits for a person, its [`HandlerClock`] stands still.
//!
//! ```
//! # use hardpan_agent::{Agent, events::{ToolCallEvent, ToolCallReply}};
//! fn forbid_bash(agent: &Agent) {
//!     agent.events().subscribe::<ToolCallEvent, _>("no-bash", |call, _agent| async move {
//!         Ok(match &*call.tool_name {
//!             "bash" => ToolCallReply::Block { reason: "bash is disabled here".into() },
//!             _ => ToolCallReply::Allow,
//!         })
//!     });
//! }
//! ```

mod catalogue; // EventInfo: the events as data; their schema and their documentation
mod clock; // HandlerClock: how long a handler may take, without the time of a person
mod declare; // what an entry of a table becomes
mod face_request; // Dialog, FaceChange: what an extension asks of a face
mod notifications; // the events that tell something
mod payloads; // types of the events' fields
mod questions; // the events that ask something, and their replies
mod replies; // what handlers reply
pub mod stream; // EventStream: how a face receives events

use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::Agent;
pub use catalogue::{EVENTS, EventInfo, markdown_table, schema};
pub use clock::{ClockPause, HandlerClock};
pub use face_request::{Dialog, DialogAnswer, FaceChange, WidgetPlace};
pub use notifications::*;
pub use payloads::*;
pub use questions::*;
pub use replies::*;
pub use stream::EventStream;
use stream::{STREAM_CAPACITY, StreamQueue};

/// Something that happens, and the reply that a handler may give.
pub trait Event: Clone + Serialize + JsonSchema + Send + Sync + 'static {
    /// The event's `type` in JSON.
    const NAME: &'static str;
    /// What a handler returns; `()` if there is nothing to decide.
    type Reply: Send + 'static;
}

/// The error of a handler; its text is reported.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// The error of a handler that found out by itself that it took too long. It counts as one that the time limit ended.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HandlerTooSlow(pub String);

/// A handler that failed, panicked or took too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HandlerFault {
    /// The owner it was subscribed under.
    pub owner: Arc<str>,
    /// `type` of the event it was called for.
    pub event: &'static str,
    /// What went wrong, for people.
    #[serde(rename = "what")]
    pub message: String,
    /// Whether the person has been told the same: it is not told again.
    #[serde(skip)]
    pub is_repeated: bool,
}

/// How long an aborted run still waits for the handlers of each notification.
const ABORT_GRACE: Duration = Duration::from_millis(500);

/// A handler that timed out this often is not called any more.
const MAX_TIMEOUTS: u32 = 3;

type HandlerFn<E> =
    dyn Fn(E, Agent) -> BoxFuture<'static, Result<<E as Event>::Reply, HandlerError>> + Send + Sync;

struct Handler<E: Event> {
    owner: Arc<str>,
    /// How whoever wrote it calls the event.
    event_name: &'static str,
    timeouts: AtomicU32,
    /// Whether the person knows that it is not called any more.
    is_end_told: AtomicBool,
    run: Box<HandlerFn<E>>,
}

impl<E: Event> Handler<E> {
    fn fault(&self, message: String) -> HandlerFault {
        HandlerFault { owner: self.owner.clone(), event: self.event_name, message, is_repeated: false }
    }
}

/// A handler of some event type, and its owner.
#[derive(Clone)]
struct RegisteredHandler {
    owner: Arc<str>,
    handler: Arc<dyn Any + Send + Sync>,
}

/// The handlers of an agent's events, and the streams that faces read.
pub struct Events {
    handlers: RwLock<BTreeMap<TypeId, Vec<RegisteredHandler>>>,
    streams: RwLock<Vec<Arc<StreamQueue>>>,
    timeout: Duration,
}

impl Events {
    /// A registry without handlers; each may take up to `timeout`.
    pub(crate) fn new(timeout: Duration) -> Self {
        Events { handlers: RwLock::default(), streams: RwLock::default(), timeout }
    }

    /// Subscribes a handler to an event type. `owner` names it in fault reports and in
    /// [`Events::unsubscribe`].
    pub fn subscribe<E: Event, F>(&self, owner: &str, handler: impl Fn(E, Agent) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<E::Reply, HandlerError>> + Send + 'static,
    {
        self.subscribe_as(owner, E::NAME, handler);
    }

    /// Subscribes a handler for which the event has another name: reports of its faults use that.
    pub fn subscribe_as<E: Event, F>(
        &self,
        owner: &str,
        event_name: &'static str,
        handler: impl Fn(E, Agent) -> F + Send + Sync + 'static,
    ) where
        F: Future<Output = Result<E::Reply, HandlerError>> + Send + 'static,
    {
        let run = Box::new(move |event: E, agent: Agent| {
            let future: BoxFuture<'static, _> = Box::pin(handler(event, agent));
            future
        });
        let owner: Arc<str> = owner.into();
        let handler = Arc::new(Handler::<E> {
            owner: owner.clone(),
            event_name,
            timeouts: AtomicU32::new(0),
            is_end_told: AtomicBool::new(false),
            run,
        });
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.entry(TypeId::of::<E>()).or_default().push(RegisteredHandler { owner, handler });
    }

    /// Removes all handlers of an owner.
    pub fn unsubscribe(&self, owner: &str) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.values_mut().for_each(|list| list.retain(|registered| &*registered.owner != owner));
    }

    /// Whether anybody of this name has handlers.
    pub fn has_owner(&self, owner: &str) -> bool {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        handlers.values().flatten().any(|registered| &*registered.owner == owner)
    }

    /// A stream of all events from now on, for a face that reads while the agent works. A run waits
    /// for a reader that falls behind: see [`stream`].
    pub fn stream(&self) -> EventStream {
        self.add_stream(STREAM_CAPACITY)
    }

    /// A stream of all events from now on that no run waits for, for programs that read when the
    /// run is over.
    pub fn unbounded_stream(&self) -> EventStream {
        self.add_stream(usize::MAX)
    }

    fn add_stream(&self, capacity: usize) -> EventStream {
        let (queue, stream) = StreamQueue::new(capacity);
        let mut streams = self.streams.write().unwrap_or_else(PoisonError::into_inner);
        streams.retain(|queue| !queue.is_closed());
        streams.push(queue);
        stream
    }

    fn streams(&self) -> Vec<Arc<StreamQueue>> {
        self.streams.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until every face has read enough for the run to go on.
    pub(crate) async fn wait_for_readers(&self) {
        for queue in self.streams() {
            queue.wait_for_room().await;
        }
    }

    /// Whether the event has handlers.
    pub(crate) fn has_handlers<E: Event>(&self) -> bool {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        handlers.get(&TypeId::of::<E>()).is_some_and(|list| !list.is_empty())
    }

    /// Whether the event has handlers or a face reads events. Events that are costly to build are
    /// skipped otherwise.
    pub(crate) fn has_listeners<E: Event>(&self) -> bool {
        self.has_handlers::<E>() || !self.streams.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Puts the event into all streams, then notifies the handlers, in order. Faults are reported,
    /// not returned.
    pub(crate) async fn emit<E: Event<Reply = ()> + Into<AgentEvent>>(&self, agent: &Agent, event: E) {
        self.publish(&event);
        self.tell_handlers(agent, event).await;
    }

    /// Tells the handlers alone, in order: what no face needs.
    pub(crate) async fn tell_handlers<E: Event<Reply = ()>>(&self, agent: &Agent, event: E) {
        match agent.run_token() {
            Some(token) => self.tell_unless_aborted(agent, event, token).await,
            None => self.tell_all_handlers(agent, event).await,
        }
    }

    async fn tell_all_handlers<E: Event<Reply = ()>>(&self, agent: &Agent, event: E) {
        let (_, faults) = self.ask_handlers(agent, event, |_, ()| ControlFlow::Continue(())).await;
        self.report_faults(&faults);
    }

    /// Tells the handlers, in order. Once the token is cancelled, nobody waits for them any longer than
    /// [`ABORT_GRACE`]; they go on within their own limit.
    pub(crate) async fn tell_unless_aborted<E: Event<Reply = ()>>(
        &self,
        agent: &Agent,
        event: E,
        token: CancellationToken,
    ) {
        if !self.has_handlers::<E>() {
            return;
        }
        let told = agent.clone();
        let telling = tokio::spawn(async move { told.events().tell_all_handlers(&told, event).await });
        let given_up = async {
            token.cancelled().await;
            tokio::time::sleep(ABORT_GRACE).await;
        };
        tokio::select! {
            biased;
            // A handler that panics is reported as its fault.
            _ = telling => {}
            () = given_up => {}
        }
    }

    /// Does what [`Events::emit`] does, with a limit on the time of all handlers together.
    pub(crate) async fn emit_within<E: Event<Reply = ()> + Into<AgentEvent>>(
        &self,
        agent: &Agent,
        event: E,
        limit: Duration,
    ) {
        self.publish(&event);
        let sleep = tokio::time::sleep(limit);
        tokio::pin!(sleep);
        for handler in self.handlers_of::<E>() {
            let called = tokio::select! {
                biased;
                called = self.call_handler(&handler, event.clone(), agent.clone()) => called,
                () = &mut sleep => {
                    let message = format!("not waited for longer than {} s", limit.as_secs_f64());
                    Err(handler.fault(message))
                }
            };
            self.report_faults(called.err().as_slice());
        }
    }

    /// Asks the handlers, in order. `take` gets each reply; it may change the event for the
    /// handlers that follow, or stop.
    pub(crate) async fn ask_handlers<E: Event>(
        &self,
        agent: &Agent,
        event: E,
        mut take: impl FnMut(&mut E, E::Reply) -> ControlFlow<()>,
    ) -> (E, Vec<HandlerFault>) {
        self.ask_owners(agent, event, |event, reply, _| take(event, reply)).await
    }

    /// Asks the handlers, in order; `take` also gets the owner of each.
    pub(crate) async fn ask_owners<E: Event>(
        &self,
        agent: &Agent,
        mut event: E,
        mut take: impl FnMut(&mut E, E::Reply, &Arc<str>) -> ControlFlow<()>,
    ) -> (E, Vec<HandlerFault>) {
        let mut faults = Vec::new();
        for handler in self.handlers_of::<E>() {
            match self.call_handler(&handler, event.clone(), agent.clone()).await {
                Ok(reply) => {
                    if take(&mut event, reply, &handler.owner).is_break() {
                        break;
                    }
                }
                Err(fault) => faults.push(fault),
            }
        }
        (event, faults)
    }

    /// Tells the faces about handlers that failed.
    pub(crate) fn report_faults(&self, faults: &[HandlerFault]) {
        for fault in faults.iter().filter(|fault| !fault.is_repeated) {
            self.publish(&HandlerFailed(fault.clone()));
        }
    }

    /// Puts an event into all streams; handlers are not notified.
    pub(crate) fn publish(&self, event: &(impl Clone + Into<AgentEvent>)) {
        let streams = self.streams.read().unwrap_or_else(PoisonError::into_inner);
        streams.iter().for_each(|queue| queue.push(event.clone().into()));
    }

    fn handlers_of<E: Event>(&self) -> Vec<Arc<Handler<E>>> {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        let list = handlers.get(&TypeId::of::<E>()).cloned().unwrap_or_default();
        list.into_iter().filter_map(|registered| registered.handler.downcast::<Handler<E>>().ok()).collect()
    }

    async fn call_handler<E: Event>(
        &self,
        handler: &Arc<Handler<E>>,
        event: E,
        agent: Agent,
    ) -> Result<E::Reply, HandlerFault> {
        let fault = |message| handler.fault(message);
        if handler.timeouts.load(Ordering::Relaxed) >= MAX_TIMEOUTS {
            let is_repeated = handler.is_end_told.swap(true, Ordering::Relaxed);
            let end = fault(format!("not called any more: it took too long {MAX_TIMEOUTS} times"));
            return Err(HandlerFault { is_repeated, ..end });
        }
        // In a task of its own, so that a handler that blocks its thread or panics does so there.
        // The task is aborted with its waiter: a run that is aborted leaves nothing behind.
        let called = handler.clone();
        let clock = HandlerClock::default();
        let running = clock.clone().scope(async move { (called.run)(event, agent).await });
        let mut task = AbortOnDropHandle::new(tokio::spawn(running));
        match clock.timeout(self.timeout, &mut task).await {
            Some(Ok(Ok(reply))) => Ok(reply),
            Some(Ok(Err(error))) => {
                if error.is::<HandlerTooSlow>() {
                    handler.timeouts.fetch_add(1, Ordering::Relaxed);
                }
                Err(fault(error.to_string()))
            }
            Some(Err(_)) => Err(fault("it broke (panicked)".into())),
            None => {
                task.abort();
                handler.timeouts.fetch_add(1, Ordering::Relaxed);
                Err(fault(format!("it took longer than {} s", self.timeout.as_secs_f64())))
            }
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        // Each stream gives what it still has, then `None`.
        self.streams().iter().for_each(|queue| queue.close());
    }
}

#[cfg(test)]
mod tests;
