//! [`ChildApprovals`]: the approvals of a sub-agent are those of the agent that started it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures_util::future::BoxFuture;
use hardpan_agent::{ApprovalDecision, ApprovalHandler, ApprovalRequest};
use tokio::sync::{Mutex, MutexGuard};

/// Whose turn it is to ask a person: sub-agents that work at the same time ask one after the other.
#[derive(Default)]
pub(crate) struct Questions {
    turn: Mutex<()>,
    waiting: AtomicU32,
}

impl Questions {
    /// Whether a sub-agent waits for an answer.
    pub fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    async fn wait(&self) -> QuestionTurn<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let counted = WaitCount(self);
        QuestionTurn { _turn: self.turn.lock().await, _counted: counted }
    }
}

struct WaitCount<'a>(&'a Questions);

impl Drop for WaitCount<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

struct QuestionTurn<'a> {
    _turn: MutexGuard<'a, ()>,
    _counted: WaitCount<'a>,
}

/// Asks the handler of the agent that started the sub-agent, and says which sub-agent wants to know.
pub(super) struct ChildApprovals {
    handler: Arc<dyn ApprovalHandler>,
    agent: Arc<str>,
    questions: Arc<Questions>,
}

impl ChildApprovals {
    pub fn new(handler: Arc<dyn ApprovalHandler>, agent: &str, questions: Arc<Questions>) -> Self {
        ChildApprovals { handler, agent: agent.into(), questions }
    }
}

impl ApprovalHandler for ChildApprovals {
    fn approve<'a>(&'a self, question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(async move {
            let _turn = self.questions.wait().await;
            let question = ApprovalRequest { agent: Some(self.agent.clone()), ..question.clone() };
            self.handler.approve(&question).await
        })
    }

    fn ask_user<'a>(&'a self, question: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let _turn = self.questions.wait().await;
            self.handler.ask_user(&format!("[{}] {question}", self.agent)).await
        })
    }
}
