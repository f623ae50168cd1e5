//! Going back to an earlier point of the same session. Nothing is lost: the branch that is left stays in the file.

use hardpan_context::fill;
use hardpan_prompt::{Body, Text};

use crate::agent::{Agent, AgentError, lock};
use crate::compact::Form;
use crate::events::SessionTree;
use crate::run::unless_stopped;

/// What becomes of what was learned on the branch that is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// Nothing is taken along.
    Silently,
    /// A summary of it is taken along.
    WithSummary,
}

impl Agent {
    /// Goes to an entry of this session: what is said next follows it.
    pub async fn go_to(&self, entry: &str, leave: Leave) -> Result<(), AgentError> {
        let mut bench = self.inner.bench.try_lock().map_err(|_| AgentError::Busy)?;
        let no_way = |reason: String| AgentError::Entry { reason };
        let token = self.fresh_token();
        let from = lock(&self.inner.conversation).leaf().cloned();
        let messages = self.messages();
        let summary = match leave {
            Leave::WithSummary if !messages.is_empty() => {
                // A summary that leads nowhere is not paid for.
                lock(&self.inner.conversation).find(entry).map_err(no_way)?;
                let phrase = &self.inner.setup.texts.phrases.agent.branch_request;
                let request = fill(phrase, &[("from", entry)]);
                let all = messages.len();
                let asking =
                    self.summarise(&mut bench, &messages, all, &request, "branch_summary", Form::OnPrefix);
                let asked = unless_stopped(&token, asking).await;
                Some(
                    asked
                        .map_err(|_| no_way("it was stopped; nothing has changed".into()))?
                        .map_err(no_way)?,
                )
            }
            Leave::Silently | Leave::WithSummary => None,
        };
        lock(&self.inner.conversation).go_to(entry).map_err(no_way)?;
        *lock(&self.inner.asked) = None;
        if let Some(summary) = summary {
            self.say(Body::BranchSummary { summary: Text::new(summary) }).await?;
        }
        self.events().tell(self, SessionTree { from, to: entry.into() }).await;
        drop(bench);
        self.settle().await
    }
}
