//! [`PendingInputs`]: the inputs that the agent has not finished, with the responses that they wait
//! for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hardpan_agent::InputId;

use super::reply::PendingResponse;

/// The inputs that the agent has not finished.
#[derive(Clone, Default)]
pub struct PendingInputs(Arc<Mutex<InputTable>>);

#[derive(Default)]
struct InputTable {
    /// How many inputs came so far; numbers their ids.
    count: u64,
    pending: BTreeMap<InputId, Arc<PendingResponse>>,
}

impl PendingInputs {
    /// Adds an input by its response.
    pub fn add(&self, reply: PendingResponse) -> (InputId, Arc<PendingResponse>) {
        let reply = Arc::new(reply);
        let mut table = self.table();
        table.count += 1;
        let id = InputId(table.count);
        table.pending.insert(id, reply.clone());
        (id, reply)
    }

    pub fn get(&self, id: InputId) -> Option<Arc<PendingResponse>> {
        self.table().pending.get(&id).cloned()
    }

    /// Forgets an input that is finished.
    pub fn remove(&self, id: InputId) {
        self.table().pending.remove(&id);
    }

    fn table(&self) -> MutexGuard<'_, InputTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
