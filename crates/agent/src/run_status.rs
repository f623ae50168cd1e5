//! [`RunStatus`]: what the agent is doing. [`RunGate`] is the one place that knows: work passes
//! through it one piece at a time, in order, and takes the [`RunState`] along.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{OwnedMutexGuard, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::agent::{Agent, lock};
use crate::error::AgentError;
use crate::run::RunState;

/// What the agent is doing with its conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing.
    #[default]
    Idle,
    /// A run: requests, answers, tool calls. Inputs are queued for it.
    Running,
    /// A run announces its end. An input that is queued now starts the next run.
    Ending,
    /// What is left of a run, or of shell commands, is stored.
    Finishing,
    /// A summary replaces old messages, at the user's request.
    Compacting,
    /// The conversation goes back to an earlier entry.
    ChangingBranch,
    /// Another conversation takes this one's place.
    SwitchingSession,
    /// Extensions are loaded anew: nothing runs while their guards are away.
    ReloadingExtensions,
    /// The provider's cache is kept warm.
    PingingCache,
    /// The conversation is stored for the last time.
    ShuttingDown,
}

/// Everything that is going on in an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunStatus {
    /// What is done with the conversation; one thing at a time.
    pub activity: Activity,
    /// How many inputs, or other work, were accepted and have not begun.
    pub accepted: usize,
    /// How many shell commands of the user are running. They do not hinder anything else.
    pub shell_commands: usize,
}

impl RunStatus {
    /// Whether a prompt would have to wait for something else. That a run is about to be over does
    /// not count: the next one may be prepared already.
    pub fn is_working(&self) -> bool {
        let is_over = matches!(self.activity, Activity::Idle | Activity::Ending | Activity::Finishing);
        self.accepted > 0 || !is_over
    }
}

/// Lets one piece of work at a time use the [`RunState`], first come, first served.
pub(crate) struct RunGate {
    status: watch::Sender<RunStatus>,
    access: Mutex<Access>,
    /// Locked by whoever has the permit, so that nobody ever waits for this lock.
    state: Arc<tokio::sync::Mutex<RunState>>,
}

#[derive(Default)]
struct Access {
    is_taken: bool,
    waiting: VecDeque<(Activity, oneshot::Sender<Permit>)>,
}

/// The right to work with the conversation. Dropping it lets the next one in.
struct Permit(Arc<RunGate>);

/// The permit, and what it permits to work with. The state is let go first.
pub(crate) struct RunGuard {
    state: OwnedMutexGuard<RunState>,
    _permit: Permit,
}

/// As long as it lives, no run begins.
pub struct RunPause {
    _alone: RunGuard,
}

/// Marks the agent as busy with work that was accepted and has not begun.
pub struct WorkClaim(Arc<RunGate>);

/// Marks a shell command of the user as running.
pub(crate) struct ShellCommandMark(Arc<RunGate>);

impl RunGate {
    pub fn new(state: RunState) -> Arc<Self> {
        Arc::new(RunGate {
            status: watch::Sender::new(RunStatus::default()),
            access: Mutex::default(),
            state: Arc::new(tokio::sync::Mutex::new(state)),
        })
    }

    pub fn status(&self) -> RunStatus {
        *self.status.borrow()
    }

    /// Changes what whoever has the permit is doing.
    pub fn set_activity(&self, activity: Activity) {
        self.change_status(|status| status.activity = activity);
    }

    fn change_status(&self, change: impl FnOnce(&mut RunStatus)) {
        self.status.send_if_modified(|status| {
            let before = *status;
            change(status);
            *status != before
        });
    }

    /// Begins work if nothing else is going on.
    pub fn try_begin(self: &Arc<Self>, activity: Activity) -> Option<RunGuard> {
        let permit = self.take_permit(&mut lock(&self.access), activity)?;
        let state = self.state.clone().try_lock_owned().ok()?;
        Some(RunGuard { state, _permit: permit })
    }

    /// Begins work once everything that came before is over.
    pub async fn begin(self: &Arc<Self>, activity: Activity) -> RunGuard {
        let permit = loop {
            let (sender, receiver) = oneshot::channel();
            {
                let mut access = lock(&self.access);
                if let Some(permit) = self.take_permit(&mut access, activity) {
                    break permit;
                }
                access.waiting.push_back((activity, sender));
            }
            if let Ok(permit) = receiver.await {
                break permit;
            }
        };
        RunGuard { state: self.state.clone().lock_owned().await, _permit: permit }
    }

    fn take_permit(self: &Arc<Self>, access: &mut Access, activity: Activity) -> Option<Permit> {
        if std::mem::replace(&mut access.is_taken, true) {
            return None;
        }
        self.set_activity(activity);
        Some(Permit(self.clone()))
    }

    /// Resolves when nothing is done with the conversation.
    pub async fn wait_until_idle(&self) {
        // It fails only if the sender is gone, which is in here.
        let _ = self.status.subscribe().wait_for(|status| status.activity == Activity::Idle).await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let next = {
            let mut access = lock(&self.0.access);
            let next = access.waiting.pop_front();
            access.is_taken = next.is_some();
            self.0.set_activity(next.as_ref().map_or(Activity::Idle, |(activity, _)| *activity));
            next
        };
        if let Some((_, sender)) = next {
            // If nobody waits there any more, this drops the permit, which goes to the next one.
            drop(sender.send(Permit(self.0.clone())));
        }
    }
}

impl Deref for RunGuard {
    type Target = RunState;
    fn deref(&self) -> &RunState {
        &self.state
    }
}

impl DerefMut for RunGuard {
    fn deref_mut(&mut self) -> &mut RunState {
        &mut self.state
    }
}

impl Drop for WorkClaim {
    fn drop(&mut self) {
        self.0.change_status(|status| status.accepted = status.accepted.saturating_sub(1));
    }
}

impl Drop for ShellCommandMark {
    fn drop(&mut self) {
        self.0.change_status(|status| status.shell_commands = status.shell_commands.saturating_sub(1));
    }
}

impl Agent {
    /// Waits until the agent is idle, and lets no run begin until the pause is dropped.
    pub async fn pause_runs(&self) -> RunPause {
        RunPause { _alone: self.begin(Activity::ReloadingExtensions).await }
    }

    /// What the agent is doing.
    pub fn status(&self) -> RunStatus {
        self.inner.gate.status()
    }

    /// Whether anything is done with the conversation: a run, also one that is ending, a compaction,
    /// a ping.
    pub fn is_busy(&self) -> bool {
        self.status().activity != Activity::Idle
    }

    /// What aborts the run that is in progress; none if there is none.
    pub(crate) fn run_token(&self) -> Option<CancellationToken> {
        let is_run =
            matches!(self.status().activity, Activity::Running | Activity::Ending | Activity::Finishing);
        is_run.then(|| lock(&self.inner.abort).clone())
    }

    /// Waits until nothing is done with the conversation.
    pub async fn wait_until_idle(&self) {
        self.inner.gate.wait_until_idle().await;
    }

    /// Follows what the agent is doing: a receiver that has the current status and every later one.
    pub fn watch_status(&self) -> watch::Receiver<RunStatus> {
        self.inner.gate.status.subscribe()
    }

    /// Marks the agent as busy before the work begins that makes it so, until the claim is dropped.
    pub fn claim_work(&self) -> WorkClaim {
        self.inner.gate.change_status(|status| status.accepted += 1);
        WorkClaim(self.inner.gate.clone())
    }

    pub(crate) fn mark_shell_command(&self) -> ShellCommandMark {
        self.inner.gate.change_status(|status| status.shell_commands += 1);
        ShellCommandMark(self.inner.gate.clone())
    }

    /// Begins work with the conversation, if nothing else is going on.
    pub(crate) fn try_begin(&self, activity: Activity) -> Result<RunGuard, AgentError> {
        self.inner.gate.try_begin(activity).ok_or(AgentError::Busy)
    }

    /// Begins work with the conversation once everything that came before is over.
    pub(crate) async fn begin(&self, activity: Activity) -> RunGuard {
        self.inner.gate.begin(activity).await
    }
}

#[cfg(test)]
mod tests;
