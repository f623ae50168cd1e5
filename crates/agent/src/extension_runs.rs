//! [`ExtensionRuns`]: how often extensions make the model work without the person, and what becomes of
//! their messages and commands once the person has stopped the agent.

use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};

/// How many runs and follow-ups extensions may begin in a row without an input of the person: room for
/// a loop that works through a list, and a bound on what one costs that never ends.
pub const MAX_EXTENSION_RUNS: u32 = 25;

/// How many messages of extensions wait for the next input of the person after a stop.
const MAX_HELD_MESSAGES: u32 = 16;

/// Counts what extensions begin by themselves.
#[derive(Debug, Default)]
pub(crate) struct ExtensionRuns {
    /// Runs and follow-ups since the last input of the person.
    begun: u32,
    /// Messages for a run that goes on, since the last input of the person or call of the model.
    steered: u32,
    /// Messages that were held since then.
    held: u32,
    /// The person has stopped the agent, and sent nothing since.
    is_stopped: bool,
    /// The limit was reached, and that was told.
    is_limit_told: bool,
}

/// What becomes of a message of an extension that would make the model work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ExtensionMessage {
    /// It is delivered.
    Delivered,
    /// It waits for the next input of the person.
    Held,
    /// It is dropped, and the person is told why.
    Refused,
    /// It is dropped; the person was told before.
    Dropped,
}

impl ExtensionRuns {
    /// Decides about a message.
    pub fn admit(&mut self) -> ExtensionMessage {
        if self.is_stopped && self.held < MAX_HELD_MESSAGES {
            self.held += 1;
            return ExtensionMessage::Held;
        }
        if !self.is_stopped && self.begun < MAX_EXTENSION_RUNS {
            self.begun += 1;
            return ExtensionMessage::Delivered;
        }
        self.refuse()
    }

    /// Decides about a message for a run that goes on. Each may cost a request, so without a call of the model between
    /// them they are as many as runs.
    pub fn admit_steering(&mut self) -> ExtensionMessage {
        if self.is_stopped || self.steered < MAX_EXTENSION_RUNS {
            self.steered += 1;
            return ExtensionMessage::Delivered;
        }
        self.refuse()
    }

    /// The model has made calls: what extensions say to those is no loop of theirs.
    pub fn note_calls(&mut self) {
        self.steered = 0;
    }

    fn refuse(&mut self) -> ExtensionMessage {
        match std::mem::replace(&mut self.is_limit_told, true) {
            false if !self.is_stopped => ExtensionMessage::Refused,
            _ => ExtensionMessage::Dropped,
        }
    }

    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }
}

impl Agent {
    /// Stops what runs because the person wants it: the run ([`Agent::abort`]), and the commands of
    /// extensions, which are not waited for any more. Messages of extensions that would begin a run wait
    /// for the next input of the person.
    pub fn stop(&self) {
        lock(&self.inner.extension_runs).is_stopped = true;
        self.stop_extension_commands();
        self.abort();
    }

    /// Stops waiting for the commands of extensions that run now.
    pub fn stop_extension_commands(&self) {
        std::mem::replace(&mut *lock(&self.inner.command_stop), CancellationToken::new()).cancel();
    }

    /// The person has said something: what extensions may begin by themselves is counted anew.
    pub fn note_person(&self) {
        *lock(&self.inner.extension_runs) = ExtensionRuns::default();
    }

    /// Cancelled when the person stops the commands that run now.
    pub(crate) fn command_stop(&self) -> CancellationToken {
        lock(&self.inner.command_stop).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_for_a_run_have_the_same_limit_between_calls_of_the_model() {
        let mut runs = ExtensionRuns::default();
        for _ in 0..MAX_EXTENSION_RUNS {
            assert_eq!(runs.admit_steering(), ExtensionMessage::Delivered);
        }
        assert_eq!(runs.admit_steering(), ExtensionMessage::Refused);
        assert_eq!(runs.admit_steering(), ExtensionMessage::Dropped);
        runs.note_calls();
        assert_eq!(runs.admit_steering(), ExtensionMessage::Delivered);
    }

    #[test]
    fn after_the_limit_one_message_is_refused_and_the_others_are_dropped() {
        let mut runs = ExtensionRuns::default();
        for _ in 0..MAX_EXTENSION_RUNS {
            assert_eq!(runs.admit(), ExtensionMessage::Delivered);
        }
        assert_eq!(runs.admit(), ExtensionMessage::Refused);
        assert_eq!(runs.admit(), ExtensionMessage::Dropped);
    }

    #[test]
    fn after_a_stop_a_few_messages_wait_and_none_begins_a_run() {
        let mut runs = ExtensionRuns { is_stopped: true, ..ExtensionRuns::default() };
        for _ in 0..MAX_HELD_MESSAGES {
            assert_eq!(runs.admit(), ExtensionMessage::Held);
        }
        assert_eq!(runs.admit(), ExtensionMessage::Dropped);
    }
}
