//! [`TaskLimits`]: how much a sub-agent may use, and [`BudgetGuard`], which stops it there.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hardpan_agent::Agent;
use hardpan_agent::events::{TaskLimit, TaskStop, TaskUsage, TurnEnd};
use hardpan_agent::expand::TaskBudget;

use super::approvals::Questions;

/// How often the time of a sub-agent is looked at.
const TICK: Duration = Duration::from_millis(200);

/// How much a sub-agent may use, how many work at the same time, and how deep they may start others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TaskLimits {
    /// Levels of sub-agents: 1 for those that start no others.
    pub depth: u32,
    /// Sub-agents of one agent at the same time.
    pub parallel: u32,
    /// Requests to the model.
    pub requests: u32,
    /// Tokens that the model writes.
    pub output_tokens: u64,
    /// Dollars.
    pub dollars: f64,
    /// Minutes, without the time that a person takes to answer.
    pub minutes: f64,
}

impl Default for TaskLimits {
    fn default() -> Self {
        TaskLimits {
            depth: 1,
            parallel: 4,
            requests: 50,
            output_tokens: 100_000,
            dollars: 2.0,
            minutes: 30.0,
        }
    }
}

impl TaskLimits {
    /// These limits, or those of the agent's definition where they are lower.
    pub fn narrowed(self, budget: TaskBudget) -> Self {
        let TaskBudget { requests, output_tokens, dollars, minutes } = budget;
        let lower = |limit: f64, own: Option<f64>| own.map_or(limit, |own| own.clamp(0.0, limit));
        TaskLimits {
            // A sub-agent that may not send a request cannot say so, either.
            requests: requests.map_or(self.requests, |own| own.min(self.requests)).max(1),
            output_tokens: output_tokens.map_or(self.output_tokens, |own| own.min(self.output_tokens)),
            dollars: lower(self.dollars, dollars),
            minutes: lower(self.minutes, minutes),
            ..self
        }
    }

    /// The limit that has been reached, after a turn of which more are to follow.
    fn reached(&self, used: &TaskUsage) -> Option<TaskLimit> {
        let limits = [
            (used.requests >= u64::from(self.requests), TaskLimit::Requests),
            (used.output_tokens >= self.output_tokens, TaskLimit::OutputTokens),
            (used.dollars >= self.dollars, TaskLimit::Dollars),
        ];
        limits.into_iter().find(|(is_reached, _)| *is_reached).map(|(_, limit)| limit)
    }

    /// A limit in words.
    pub(super) fn describe(&self, limit: TaskLimit) -> String {
        match limit {
            TaskLimit::Requests => format!("it has sent {} requests, which is its limit", self.requests),
            TaskLimit::OutputTokens => {
                format!("it has written {} tokens, which is its limit", self.output_tokens)
            }
            TaskLimit::Dollars => format!("it has spent ${}, which is its limit", self.dollars),
            TaskLimit::Minutes => format!("it has worked for {} minutes, which is its limit", self.minutes),
        }
    }
}

/// Why a sub-agent was stopped; none while nobody has stopped it.
#[derive(Clone, Default)]
pub(super) struct StopReason(Arc<Mutex<Option<TaskStop>>>);

impl StopReason {
    pub fn get(&self) -> Option<TaskStop> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Stops an agent for this reason. The first reason counts.
    fn stop(&self, agent: &Agent, reason: TaskStop) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        agent.abort();
    }
}

/// Stops a sub-agent when its budget is used up.
pub(super) struct BudgetGuard {
    pub limits: TaskLimits,
    /// What the conversation had used before the sub-agent began: that of a copy.
    pub before: TaskUsage,
    pub stop: StopReason,
}

impl BudgetGuard {
    /// What an agent has used since it began.
    pub fn used(before: &TaskUsage, agent: &Agent) -> TaskUsage {
        let now = total_usage(agent);
        TaskUsage {
            requests: now.requests - before.requests,
            prompt_tokens: now.prompt_tokens - before.prompt_tokens,
            cached_tokens: now.cached_tokens - before.cached_tokens,
            output_tokens: now.output_tokens - before.output_tokens,
            dollars: now.dollars - before.dollars,
        }
    }

    /// Looks at the budget after each turn that is not the last: an answer that was paid for is kept.
    pub fn follow(&self, agent: &Agent) {
        let (limits, before, stop) = (self.limits, self.before, self.stop.clone());
        agent.events().subscribe::<TurnEnd, _>("hardpan", move |ended, agent| {
            let reached = limits.reached(&Self::used(&before, &agent));
            if let Some(limit) = reached.filter(|_| !ended.tool_results.is_empty()) {
                stop.stop(&agent, TaskStop::Budget { limit });
            }
            async { Ok(()) }
        });
    }

    /// Stops the agent when its time is over. Never returns; to be raced with its run.
    pub async fn watch_time(&self, agent: &Agent, questions: &Questions) {
        let limit = Duration::try_from_secs_f64(self.limits.minutes * 60.0).unwrap_or(Duration::MAX);
        let (mut worked, mut last) = (Duration::ZERO, tokio::time::Instant::now());
        loop {
            tokio::time::sleep(TICK.min(limit).max(Duration::from_millis(1))).await;
            let at = tokio::time::Instant::now();
            if !questions.is_waiting() {
                worked += at - last;
            }
            last = at;
            if worked >= limit {
                self.stop.stop(agent, TaskStop::Budget { limit: TaskLimit::Minutes });
            }
        }
    }
}

/// What a conversation has used in all.
pub(super) fn total_usage(agent: &Agent) -> TaskUsage {
    let report = agent.token_usage();
    let tokens = report.session.tokens;
    TaskUsage {
        requests: report.requests,
        prompt_tokens: tokens.prompt(),
        cached_tokens: tokens.cache_read,
        output_tokens: tokens.output,
        dollars: report.session.dollars,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_lowers_the_limits_and_never_raises_them() {
        let limits = TaskLimits::default();
        let own =
            TaskBudget { requests: Some(5), dollars: Some(9.0), minutes: Some(-1.0), ..Default::default() };
        let narrowed = limits.narrowed(own);
        assert_eq!((narrowed.requests, narrowed.dollars, narrowed.minutes), (5, limits.dollars, 0.0));
        assert_eq!(narrowed.output_tokens, limits.output_tokens);
        let none = TaskBudget { requests: Some(0), ..Default::default() };
        assert_eq!(limits.narrowed(none).requests, 1);
    }

    #[test]
    fn the_first_limit_that_is_reached_is_named() {
        let limits = TaskLimits { requests: 2, output_tokens: 100, ..TaskLimits::default() };
        let used = |requests, output_tokens| TaskUsage { requests, output_tokens, ..Default::default() };
        assert_eq!(limits.reached(&used(1, 99)), None);
        assert_eq!(limits.reached(&used(1, 100)), Some(TaskLimit::OutputTokens));
        assert_eq!(limits.reached(&used(2, 100)), Some(TaskLimit::Requests));
    }
}
