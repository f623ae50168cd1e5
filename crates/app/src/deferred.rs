//! [`DeferredCommands`]: what a person wants to be done once it costs nothing. The session stores
//! them: they wait until then, also in another process.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_agent::Agent;
use serde_json::json;

/// The session entry that stores the commands that wait.
pub(crate) const DEFERRED_ENTRY: &str = "hardpan.deferred";

/// Slash commands that wait, in order.
#[derive(Debug, Default)]
pub struct DeferredCommands(Mutex<Vec<String>>);

impl DeferredCommands {
    /// Those that the agent's conversation has stored.
    pub(crate) fn restored(agent: &Agent) -> Self {
        DeferredCommands(Mutex::new(stored_commands(agent)))
    }

    /// Goes on with those that the agent's conversation, another one now, has stored.
    pub(crate) fn switch_to(&self, agent: &Agent) {
        *self.lock() = stored_commands(agent);
    }

    /// Stores what waits, if that has changed.
    pub(crate) async fn store(&self, agent: &Agent) {
        let commands = self.list();
        if commands != stored_commands(agent) {
            // A session that cannot be written reports it with the next message.
            let _ = agent.store_extension_state(DEFERRED_ENTRY, json!(commands)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What waits.
    pub fn list(&self) -> Vec<String> {
        self.lock().clone()
    }

    /// Lets a command wait, if it does not yet.
    pub fn add(&self, command: &str) {
        let mut commands = self.lock();
        if !commands.iter().any(|known| known == command) {
            commands.push(command.to_owned());
        }
    }

    /// Takes the commands that are free.
    pub fn take(&self, is_free: impl Fn(&str) -> bool) -> Vec<String> {
        let (free, waiting) = std::mem::take(&mut *self.lock()).into_iter().partition(|it| is_free(it));
        *self.lock() = waiting;
        free
    }
}

fn stored_commands(agent: &Agent) -> Vec<String> {
    let stored = agent.extension_state(DEFERRED_ENTRY);
    stored.and_then(|stored| serde_json::from_value(stored).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_waits_once_until_it_is_free() {
        let deferred = DeferredCommands::default();
        ["/a", "/b", "/a"].iter().for_each(|command| deferred.add(command));
        assert_eq!(deferred.list(), ["/a", "/b"]);
        assert_eq!(deferred.take(|command| command == "/b"), ["/b"]);
        assert_eq!((deferred.take(|_| true), deferred.list()), (vec!["/a".to_owned()], Vec::new()));
    }
}
