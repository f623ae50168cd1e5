//! [`DeferredCommands`]: what a person wants to be done once it costs nothing. They wait as long as the
//! program runs.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slash commands that wait, in order.
#[derive(Debug, Default)]
pub struct DeferredCommands(Mutex<Vec<String>>);

impl DeferredCommands {
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
