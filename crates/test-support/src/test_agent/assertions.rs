//! What must hold for every conversation, whatever happened in it.

use hardpan_agent::{InputOutcome, RunEnd};

use crate::TestAgent;

impl TestAgent {
    /// Asserts that the stored session has the agent's messages.
    pub async fn assert_stored_matches_memory(&self) {
        let session = self.stored().await;
        assert_eq!(session.branch(None).expect("a branch").messages, self.agent.messages());
    }

    /// Asserts that everything is stored, and that both a fork and the resumed session have the same
    /// messages and can go on, which the simulator accepts.
    pub async fn assert_continues(self) -> Self {
        self.assert_stored_matches_memory().await;
        let messages = self.agent.messages();
        let spent = self.agent.token_usage().session;
        let fork = self.fork(None);
        let resumed = self.resume();
        for (agent, text) in [(&fork, "And in the fork?"), (&resumed, "And now?")] {
            assert_eq!(agent.agent.messages(), messages);
            assert_eq!(agent.agent.token_usage().session, spent);
            assert_eq!(agent.prompt(text).await, InputOutcome::Ran(RunEnd::Done));
            assert_eq!(agent.agent.messages()[..messages.len()], messages);
            agent.assert_stored_matches_memory().await;
        }
        resumed
    }

    /// Asserts that everything is stored, and that an agent which opens a copy of the session sends
    /// the same next request to the byte, which the simulator accepts. The clock must not run.
    pub async fn assert_copy_sends_the_same(&self) {
        self.assert_stored_matches_memory().await;
        let copy = self.copy();
        assert_eq!(copy.agent.messages(), self.agent.messages());
        self.say("And now?").await;
        let here = self.last_sent();
        copy.say("And now?").await;
        let there = self.last_sent();
        assert_eq!((there.body, there.status), (here.body, 200));
    }
}
