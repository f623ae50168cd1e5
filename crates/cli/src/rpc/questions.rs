//! Questions to whoever is at the other end, and their answers.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures_util::future::BoxFuture;
use hardpan_agent::Approval;
use hardpan_agent::approval::Rule;
use tokio::sync::oneshot;

use super::reply::Out;
use super::response::Line;
use crate::chat::approve::{Ask, Verdict};

/// What the model is told when nobody answers any more.
const NOBODY: &str = "nobody is there to ask any more";

/// The questions that wait for an answer.
pub struct Questions {
    out: Out,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Nothing can be answered any more.
    closed: bool,
    /// How many were asked.
    asked: u64,
    waiting: BTreeMap<String, oneshot::Sender<Verdict>>,
}

impl Questions {
    /// No questions yet.
    pub fn new(out: &Out) -> Self {
        Questions { out: out.clone(), state: Mutex::default() }
    }

    /// Takes the answer to the question of this id.
    pub fn answer(&self, id: Option<&str>, verdict: Verdict) -> Result<(), String> {
        let id = id.ok_or("the id must be that of the question")?;
        let waiting = self.state().waiting.remove(id);
        // A question that was given up in the meantime is as good as one that never was.
        let sent = waiting.and_then(|question| question.send(verdict).ok());
        sent.ok_or_else(|| {
            format!("no question {id:?} waits for an answer: it has one, or the run was stopped")
        })
    }

    /// Nobody will answer any more: what waits, and what will be asked, is a no.
    pub fn close(&self) {
        let mut state = self.state();
        state.closed = true;
        state.waiting.clear();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A question's id, and where its answer comes; none once nobody answers any more.
    fn open(&self) -> Option<(String, oneshot::Receiver<Verdict>)> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        state.asked += 1;
        let id = format!("q{}", state.asked);
        state.waiting.insert(id.clone(), sender);
        Some((id, answer))
    }
}

impl Ask for Questions {
    fn ask<'a>(&'a self, question: &'a Approval, rule: Option<&'a Rule>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let Some((id, answer)) = self.open() else { return Verdict::No(NOBODY.into()) };
            // The future is dropped when the run is stopped: then nothing waits any more.
            let _forget = Forget { questions: self, id: &id };
            self.out.line(&Line::ApprovalRequest {
                id: id.clone(),
                call_id: question.call_id.clone(),
                tool_name: question.tool_name.clone(),
                args: question.args.clone(),
                rule: rule.map(ToString::to_string),
            });
            answer.await.unwrap_or_else(|_| Verdict::No(NOBODY.into()))
        })
    }
}

struct Forget<'a> {
    questions: &'a Questions,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.questions.state().waiting.remove(self.id);
    }
}
