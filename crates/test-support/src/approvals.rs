//! [`TestApprovals`]: who decides whether a call may run.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hardpan_agent::{ApprovalDecision, ApprovalHandler, ApprovalRequest, DenyAll};
use hardpan_prompt::DeniedBy;

use crate::NoteLog;

/// Who decides whether a call that changes something may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestApprovals {
    /// Allows `paint` every colour but red, and never decides about beige. The colours are noted.
    Colours,
    /// Allows everything.
    AllowAll,
    /// Denies everything, as where nobody can be asked.
    DenyAll,
}

impl TestApprovals {
    pub(crate) fn handler(self, asked: &NoteLog) -> Arc<dyn ApprovalHandler> {
        match self {
            TestApprovals::Colours => Arc::new(ColourApprover { asked: asked.clone() }),
            TestApprovals::AllowAll => Arc::new(AllowAll),
            TestApprovals::DenyAll => Arc::new(DenyAll),
        }
    }
}

struct ColourApprover {
    asked: NoteLog,
}

impl ApprovalHandler for ColourApprover {
    fn approve<'a>(&'a self, question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        self.asked.add(question.args["colour"].as_str().unwrap_or_default());
        Box::pin(async move {
            match question.args["colour"].as_str() {
                Some("red") => ApprovalDecision::Deny { by: DeniedBy::Person, reason: "not red".into() },
                Some("beige") => std::future::pending().await,
                _ => ApprovalDecision::Allow,
            }
        })
    }
}

struct AllowAll;

impl ApprovalHandler for AllowAll {
    fn approve<'a>(&'a self, _question: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalDecision> {
        Box::pin(std::future::ready(ApprovalDecision::Allow))
    }
}
