//! [`PendingInputs`]: the inputs that the agent has not finished, and whether it is busy with them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_agent::InputId;

use super::reply::PendingResponse;

/// The inputs that the agent has not finished.
#[derive(Clone, Default)]
pub struct PendingInputs(Arc<State>);

#[derive(Default)]
struct State {
    inputs: Mutex<InputTable>,
    busy_count: Arc<AtomicUsize>,
}

#[derive(Default)]
struct InputTable {
    /// How many inputs came so far; numbers their ids.
    count: u64,
    pending: BTreeMap<InputId, Arc<PendingInput>>,
}

/// An input that the agent has not finished.
pub struct PendingInput {
    pub reply: PendingResponse,
    pub busy: BusyGuard,
}

impl PendingInputs {
    /// Adds an input, which makes the agent busy.
    pub fn add(&self, reply: PendingResponse) -> (InputId, Arc<PendingInput>) {
        let input = Arc::new(PendingInput { reply, busy: self.begin_work() });
        let mut table = self.table();
        table.count += 1;
        let id = InputId(table.count);
        table.pending.insert(id, input.clone());
        (id, input)
    }

    pub fn get(&self, id: InputId) -> Option<Arc<PendingInput>> {
        self.table().pending.get(&id).cloned()
    }

    /// Forgets an input that is finished.
    pub fn remove(&self, id: InputId) {
        self.table().pending.remove(&id);
    }

    /// Marks the agent as busy with something that is no input.
    pub fn begin_work(&self) -> BusyGuard {
        self.0.busy_count.fetch_add(1, Ordering::SeqCst);
        BusyGuard { count: self.0.busy_count.clone(), over: AtomicBool::new(false) }
    }

    /// Whether the agent works on something, as far as the client can know.
    pub fn is_busy(&self) -> bool {
        self.0.busy_count.load(Ordering::SeqCst) > 0
    }

    fn table(&self) -> MutexGuard<'_, InputTable> {
        self.0.inputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Marks the agent as busy, until `end` or drop, whichever comes first.
pub struct BusyGuard {
    count: Arc<AtomicUsize>,
    over: AtomicBool,
}

impl BusyGuard {
    pub fn end(&self) {
        if !self.over.swap(true, Ordering::SeqCst) {
            self.count.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.end();
    }
}
