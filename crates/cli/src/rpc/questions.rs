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
    waiting: BTreeMap<String, Waiting>,
}

/// What a question waits for.
enum Waiting {
    Verdict(oneshot::Sender<Verdict>),
    Text(oneshot::Sender<Option<String>>),
}

/// What somebody answers.
pub enum Answer {
    /// A yes or a no.
    Verdict(Verdict),
    /// A line of text; none where the person gave up.
    Text(Option<String>),
}

impl Questions {
    /// No questions yet.
    pub fn new(out: &Out) -> Self {
        Questions { out: out.clone(), state: Mutex::default() }
    }

    /// Takes the answer to the question of this id.
    pub fn answer(&self, id: Option<&str>, answer: Answer) -> Result<(), String> {
        let id = id.ok_or("the id must be that of the question")?;
        let mut state = self.state();
        // A question that was given up in the meantime is as good as one that never was.
        let sent = match (state.waiting.remove(id), answer) {
            (Some(Waiting::Verdict(question)), Answer::Verdict(verdict)) => question.send(verdict).is_ok(),
            (Some(Waiting::Text(question)), Answer::Text(text)) => question.send(text).is_ok(),
            (Some(question), _) => {
                state.waiting.insert(id.to_owned(), question);
                return Err(format!("question {id:?} is of the other kind: approval or input"));
            }
            (None, _) => false,
        };
        let gone = || format!("no question {id:?} waits for an answer: it has one, or the run was stopped");
        sent.then_some(()).ok_or_else(gone)
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
    fn open<T>(&self, kind: fn(oneshot::Sender<T>) -> Waiting) -> Option<(String, oneshot::Receiver<T>)> {
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let (sender, answer) = oneshot::channel();
        state.asked += 1;
        let id = format!("q{}", state.asked);
        state.waiting.insert(id.clone(), kind(sender));
        Some((id, answer))
    }
}

impl Ask for Questions {
    fn ask<'a>(&'a self, question: &'a Approval, rule: Option<&'a Rule>) -> BoxFuture<'a, Verdict> {
        Box::pin(async move {
            let Some((id, answer)) = self.open(Waiting::Verdict) else { return Verdict::No(NOBODY.into()) };
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

    fn input<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let (id, answer) = self.open(Waiting::Text)?;
            let _forget = Forget { questions: self, id: &id };
            self.out.line(&Line::InputRequest { id: id.clone(), prompt: question.to_owned() });
            answer.await.ok().flatten()
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
