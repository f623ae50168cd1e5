//! Who is told what, in which order, and how long they may take.
//!
//! An event is a value. Whoever registered for its type gets a copy, in the order of registration; what comes back is
//! taken by whoever raised it. A handler runs as a task of its own: one that panics, fails or takes too long is reported,
//! and neither the loop nor the session waits for it any longer.

mod kinds; // every event, its payload and its reply

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;

use crate::Agent;
pub use kinds::*;

/// Something that happens, and what a handler may say to it.
pub trait Event: Clone + Serialize + Send + Sync + 'static {
    /// Its name, for extensions and programs.
    const NAME: &'static str;
    /// What a handler answers; `()` where there is nothing to say.
    type Reply: Send + 'static;
}

/// Why a handler failed, in its own words.
pub type HandlerError = Box<dyn std::error::Error + Send + Sync>;

/// A handler that did not do its part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Who registered it.
    pub owner: Arc<str>,
    /// The event it was called for.
    pub event: &'static str,
    /// What went wrong.
    pub what: String,
}

/// A handler that took too long this often is not called any more.
const MOST_TIMEOUTS: u32 = 3;

type Run<E> = dyn Fn(E, Agent) -> BoxFuture<'static, Result<<E as Event>::Reply, HandlerError>> + Send + Sync;

struct Handler<E: Event> {
    owner: Arc<str>,
    timeouts: AtomicU32,
    run: Box<Run<E>>,
}

/// Takes every told event as JSON: `{"type": …}` and the event's fields.
type Watcher = Arc<dyn Fn(&Value) + Send + Sync>;

/// A handler of whatever event, and who registered it.
#[derive(Clone)]
struct Registered {
    owner: Arc<str>,
    handler: Arc<dyn Any + Send + Sync>,
}

/// The handlers of all events.
pub struct Events {
    handlers: RwLock<HashMap<TypeId, Vec<Registered>>>,
    watchers: RwLock<Vec<Watcher>>,
    limit: Duration,
}

impl Events {
    /// No handlers; each may take `limit`.
    pub(crate) fn new(limit: Duration) -> Self {
        Events { handlers: RwLock::default(), watchers: RwLock::default(), limit }
    }

    /// Registers a handler. `owner` is the name it goes by in reports.
    pub fn on<E: Event, F>(&self, owner: &str, handler: impl Fn(E, Agent) -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<E::Reply, HandlerError>> + Send + 'static,
    {
        let run = Box::new(move |event: E, agent: Agent| {
            let future: BoxFuture<'static, _> = Box::pin(handler(event, agent));
            future
        });
        let owner: Arc<str> = owner.into();
        let handler = Arc::new(Handler::<E> { owner: owner.clone(), timeouts: AtomicU32::new(0), run });
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.entry(TypeId::of::<E>()).or_default().push(Registered { owner, handler });
    }

    /// Takes away every handler of an owner.
    pub fn off(&self, owner: &str) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.values_mut().for_each(|list| list.retain(|registered| &*registered.owner != owner));
    }

    /// Shows every told event to a face, as JSON. A watcher must be quick: the loop waits for it.
    pub fn watch(&self, watcher: impl Fn(&Value) + Send + Sync + 'static) {
        self.watchers.write().unwrap_or_else(PoisonError::into_inner).push(Arc::new(watcher));
    }

    /// Whether anyone would be asked.
    pub(crate) fn has<E: Event>(&self) -> bool {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        handlers.get(&TypeId::of::<E>()).is_some_and(|list| !list.is_empty())
    }

    /// Whether anyone would be told or shown: an event that is costly to make is made for somebody.
    pub(crate) fn is_wanted<E: Event>(&self) -> bool {
        self.has::<E>() || !self.watchers.read().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Tells everyone, in order. Nothing that a handler does or fails to do comes back.
    pub(crate) async fn tell<E: Event<Reply = ()>>(&self, agent: &Agent, event: E) {
        self.show(&event);
        let (_, faults) = self.ask(agent, event, |_, ()| ControlFlow::Continue(())).await;
        self.report(&faults);
    }

    /// Asks everyone, in order; `take` may change the event for those who come after, or end the asking.
    pub(crate) async fn ask<E: Event>(
        &self,
        agent: &Agent,
        mut event: E,
        mut take: impl FnMut(&mut E, E::Reply) -> ControlFlow<()>,
    ) -> (E, Vec<Fault>) {
        let mut faults = Vec::new();
        for handler in self.of::<E>() {
            match self.call(&handler, event.clone(), agent.clone()).await {
                Ok(reply) => {
                    if take(&mut event, reply).is_break() {
                        break;
                    }
                }
                Err(fault) => faults.push(fault),
            }
        }
        (event, faults)
    }

    /// Shows what handlers did wrong.
    pub(crate) fn report(&self, faults: &[Fault]) {
        for fault in faults {
            self.show(&HandlerFailed(fault.clone()));
        }
    }

    /// Shows an event to the faces alone.
    pub(crate) fn show<E: Event>(&self, event: &E) {
        let watchers = self.watchers.read().unwrap_or_else(PoisonError::into_inner).clone();
        if watchers.is_empty() {
            return;
        }
        let value = to_json(event);
        watchers.iter().for_each(|watcher| watcher(&value));
    }

    fn of<E: Event>(&self) -> Vec<Arc<Handler<E>>> {
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        let list = handlers.get(&TypeId::of::<E>()).cloned().unwrap_or_default();
        list.into_iter().filter_map(|registered| registered.handler.downcast::<Handler<E>>().ok()).collect()
    }

    async fn call<E: Event>(
        &self,
        handler: &Arc<Handler<E>>,
        event: E,
        agent: Agent,
    ) -> Result<E::Reply, Fault> {
        let fault = |what: String| Fault { owner: handler.owner.clone(), event: E::NAME, what };
        if handler.timeouts.load(Ordering::Relaxed) >= MOST_TIMEOUTS {
            return Err(fault(format!("not called: it took too long {MOST_TIMEOUTS} times")));
        }
        // A task of its own: a handler that blocks its thread or breaks, from its first line on, does so there. It ends
        // with whoever waits for it, so that a run that is stopped leaves nothing behind.
        let called = handler.clone();
        let mut task = AbortOnDropHandle::new(tokio::spawn(async move { (called.run)(event, agent).await }));
        match tokio::time::timeout(self.limit, &mut task).await {
            Ok(Ok(Ok(reply))) => Ok(reply),
            Ok(Ok(Err(error))) => Err(fault(error.to_string())),
            Ok(Err(_)) => Err(fault("it broke (panicked)".into())),
            Err(_) => {
                task.abort();
                handler.timeouts.fetch_add(1, Ordering::Relaxed);
                Err(fault(format!("it took longer than {} s", self.limit.as_secs_f64())))
            }
        }
    }
}

/// `{"type": NAME}` and the event's fields.
fn to_json<E: Event>(event: &E) -> Value {
    let mut object = serde_json::Map::from_iter([("type".to_owned(), json!(E::NAME))]);
    match serde_json::to_value(event) {
        Ok(Value::Object(fields)) => object.extend(fields),
        Ok(Value::Null) | Err(_) => {}
        Ok(other) => {
            object.insert("value".into(), other);
        }
    }
    Value::Object(object)
}
