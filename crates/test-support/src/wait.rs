//! [`NoteLog`] and [`AnswerGate`]: waiting for what happens in other tasks.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use hardpan_agent::events::MessageUpdate;
use serde_json::json;

use crate::TestAgent;

/// The longest that anything is waited for. Nothing takes that long unless it never happens.
pub const MAX_WAIT: Duration = Duration::from_secs(60);

/// Waits until a condition holds; whether it did within [`MAX_WAIT`].
pub(crate) async fn wait_until(mut holds: impl FnMut() -> bool) -> bool {
    let looking = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(MAX_WAIT, looking).await.is_ok()
}

/// A shared log that handlers write to and tests wait for.
#[derive(Clone, Debug, Default)]
pub struct NoteLog(Arc<Mutex<Vec<String>>>);

impl NoteLog {
    /// Adds a line.
    pub fn add(&self, note: impl Into<String>) {
        self.0.lock().expect("the notes").push(note.into());
    }

    /// All lines so far.
    pub fn all(&self) -> Vec<String> {
        self.0.lock().expect("the notes").clone()
    }

    /// Waits until the log has this many lines.
    pub async fn until(&self, count: usize) {
        let enough = wait_until(|| self.all().len() >= count).await;
        assert!(enough, "there never were {count} notes, but these: {:#?}", self.all());
    }
}

/// Holds a streaming answer until the test releases it.
#[derive(Clone, Debug, Default)]
pub struct AnswerGate {
    /// A line for each time that the gate was reached.
    pub reached: NoteLog,
    release: NoteLog,
}

impl AnswerGate {
    /// Holds answers at a piece that contains this text.
    pub fn hold(&self, test_agent: &TestAgent, piece: &'static str) {
        let gate = self.clone();
        test_agent.agent.events().subscribe::<MessageUpdate, _>("hold", move |event, _| {
            let gate = gate.clone();
            async move {
                if json!(event.delta).to_string().contains(piece) {
                    gate.wait().await;
                }
                Ok(())
            }
        });
    }

    /// Notes that the gate is reached, and waits until it is released.
    pub async fn wait(&self) {
        self.reached.add("here");
        self.release.until(1).await;
    }

    /// Waits until somebody stands at the gate.
    pub async fn reached(&self) {
        self.reached.until(1).await;
    }

    /// Lets everybody through, now and later.
    pub fn release(&self) {
        self.release.add("now");
    }
}
