//! [`Spine`] (P7): what happened that the model should know of, and whether it goes on by itself.
//!
//! A notification is processed once a request that showed it was answered. When a run ends while work
//! remains, [`Spine::after_run`] decides whether the agent continues with a message of its own; when a
//! timer is due or a console has news while it rests, [`Spine::when_idle`] does. Guard rails bound how
//! long that goes on without the person: turns, output tokens, time, cost, errors, and continuations that
//! lead to nothing.

mod guard_rails; // SpineLimits: how far the agent goes on by itself
mod notification; // NotificationKind: what happened that the model should know of

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hardpan_prompt::Volatility;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use crate::panel::{ActionCall, ActionError, Panel, PanelAction, RefreshStrategy, Revision};
use guard_rails::SpentSinceUser;
pub use guard_rails::{GuardRail, SpineLimits};
use notification::Notification;
pub use notification::NotificationKind;

/// How many notifications are kept.
const MAX_NOTIFICATIONS: usize = 50;
/// The longest notification, in characters.
const MAX_TEXT: usize = 300;
/// How many timers can wait.
const MAX_TIMERS: usize = 20;
/// The first wait after a failure; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest wait after a failure.
const LONGEST_WAIT: Duration = Duration::from_secs(16);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Timer {
    due: Timestamp,
    text: String,
}

/// What the session stores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct SpineState {
    notifications: VecDeque<Notification>,
    last: u32,
    timers: Vec<Timer>,
}

/// What only this process knows.
#[derive(Debug, Default)]
struct Progress {
    /// The last notification that a request has shown.
    shown: u32,
    spent: SpentSinceUser,
    /// The work that the last continuation was about.
    last_work: Vec<String>,
    /// Set by an abort, until the person says something.
    is_stopped: bool,
    /// A message of ours has no answer yet.
    awaits_answer: bool,
    /// The person was told that a guard rail stopped the agent.
    has_told_stop: bool,
}

/// How a run ended, as far as the spine is concerned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunSummary {
    /// Whether the person aborted it.
    pub aborted: bool,
    /// Whether it ended with a failure.
    pub failed: bool,
    /// Whether the last message was answered.
    pub answered: bool,
    /// How many tool calls there were.
    pub calls: u32,
    /// How many turns it took.
    pub turns: u32,
    /// How many tokens the model wrote.
    pub output_tokens: u64,
    /// What it cost.
    pub dollars: f64,
    /// Whether inputs of the person wait.
    pub inputs_wait: bool,
    /// What is left to do.
    pub todos: Vec<String>,
}

/// What happens after a run.
#[derive(Clone, Debug, PartialEq)]
pub enum SpineDecision {
    /// Nothing: no work remains, or somebody else decides.
    Rest,
    /// The agent goes on with this message, after a wait.
    Continue {
        /// What the model is told.
        message: String,
        /// How many pieces of work it names.
        work: usize,
        /// How long to wait before: after failures, longer each time.
        wait: Duration,
    },
    /// Work remains, but the agent has gone as far as it may without the person.
    Stop(GuardRail),
}

/// Notifications and auto-continuation.
pub struct Spine {
    limits: SpineLimits,
    state: Mutex<SpineState>,
    progress: Mutex<Progress>,
    revision: Revision,
    /// Told of work that may wake the agent, and of timers.
    news: Notify,
}

impl Spine {
    /// A spine that goes on within these limits; without any, it never does.
    pub fn new(limits: SpineLimits) -> Self {
        let (state, progress, revision, news) = Default::default();
        Spine { limits, state, progress, revision, news }
    }

    /// How far it goes on by itself.
    pub fn limits(&self) -> &SpineLimits {
        &self.limits
    }

    /// Adds a notification, unless the same one waits already.
    pub fn notify(&self, kind: NotificationKind, text: &str, now: Timestamp) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text: String = line.chars().take(MAX_TEXT).collect();
        let mut state = self.lock();
        let is_same = |old: &Notification| !old.processed && old.kind == kind && old.text == text;
        if state.notifications.iter().any(is_same) {
            return;
        }
        state.last += 1;
        let number = state.last;
        state.notifications.push_back(Notification { number, at: now, kind, text, processed: false });
        while state.notifications.len() > MAX_NOTIFICATIONS {
            state.notifications.pop_front();
        }
        drop(state);
        self.revision.bump();
        if kind.is_work() {
            self.news.notify_one();
        }
    }

    /// Waits until there is work that may wake the agent, or another timer.
    pub async fn wait_for_news(&self) {
        self.news.notified().await;
    }

    /// When the next timer is due.
    pub fn next_due(&self) -> Option<Timestamp> {
        self.lock().timers.iter().map(|timer| timer.due).min()
    }

    /// The person said something: what the agent may do by itself begins anew.
    pub fn user_message(&self, now: Timestamp) {
        let mut progress = self.lock_progress();
        *progress = Progress { shown: progress.shown, ..Progress::default() };
        progress.spent.began(now);
        drop(progress);
        self.notify(NotificationKind::UserMessage, "in the conversation", now);
    }

    /// A request is about to be made, which shows what is known now. What the person said is part of it
    /// and counts as processed.
    pub fn before_request(&self, now: Timestamp) {
        self.ring_timers(now);
        let mut state = self.lock();
        let new = state.notifications.iter_mut().filter(|new| !new.processed);
        for notification in new.filter(|new| new.kind == NotificationKind::UserMessage) {
            notification.processed = true;
            self.revision.bump();
        }
        let shown = state.last;
        drop(state);
        self.lock_progress().shown = shown;
    }

    /// Decides what happens after a run.
    pub fn after_run(&self, run: &RunSummary, now: Timestamp) -> SpineDecision {
        self.ring_timers(now);
        if run.answered {
            self.mark_processed();
        }
        self.note_todos(run, now);
        let mut progress = self.lock_progress();
        progress.is_stopped |= run.aborted;
        progress.awaits_answer &= !run.answered;
        progress.spent.add(run);
        // Never two messages of our own without an answer between them.
        if progress.is_stopped || run.inputs_wait || !run.answered || !self.limits.auto_continue {
            return SpineDecision::Rest;
        }
        let work = self.remaining_work(&run.todos);
        if work.is_empty() {
            progress.last_work.clear();
            return SpineDecision::Rest;
        }
        let is_stuck = run.calls == 0 && work == progress.last_work;
        progress.spent.note_progress(!is_stuck);
        self.decide(&mut progress, work, now)
    }

    /// Decides whether news wake the agent that rests. Todos do not: the agent left them.
    pub fn when_idle(&self, now: Timestamp) -> SpineDecision {
        self.ring_timers(now);
        let mut progress = self.lock_progress();
        if progress.is_stopped || progress.awaits_answer || !self.limits.auto_continue {
            return SpineDecision::Rest;
        }
        let work = self.remaining_work(&[]);
        if work.is_empty() {
            return SpineDecision::Rest;
        }
        self.decide(&mut progress, work, now)
    }

    /// Goes on with this work, within the guard rails.
    fn decide(&self, progress: &mut Progress, work: Vec<String>, now: Timestamp) -> SpineDecision {
        if let Some(rail) = progress.spent.reached(&self.limits, now) {
            let is_new = !std::mem::replace(&mut progress.has_told_stop, true);
            return if is_new { SpineDecision::Stop(rail) } else { SpineDecision::Rest };
        }
        let wait = match progress.spent.errors {
            0 => Duration::ZERO,
            errors => (FIRST_WAIT * 2_u32.pow(errors.min(10) - 1)).min(LONGEST_WAIT),
        };
        let lines: Vec<String> = work.iter().map(|line| format!("- {line}")).collect();
        let count = work.len();
        progress.last_work = work;
        progress.awaits_answer = true;
        let message = format!(
            "[automatic: the user did not write this] Work remains:\n{}\nGo on with it. If you cannot, or it is done, update the todo list and say so.",
            lines.join("\n")
        );
        SpineDecision::Continue { message, work: count, wait }
    }

    /// What is a reason to go on: notifications that no request has shown, and todos.
    fn remaining_work(&self, todos: &[String]) -> Vec<String> {
        let state = self.lock();
        let fresh = state.notifications.iter().filter(|new| !new.processed && new.kind.is_work());
        let mut work: Vec<String> = fresh.map(|new| format!("{}: {}", new.kind.name(), new.text)).collect();
        work.extend(todos.iter().map(|todo| format!("todo {todo}")));
        work
    }

    /// Notes that a run left todos; once none are left, that is no news any more.
    fn note_todos(&self, run: &RunSummary, now: Timestamp) {
        {
            let mut state = self.lock();
            let known = state.notifications.iter_mut().filter(|known| !known.processed);
            for known in known.filter(|known| known.kind == NotificationKind::TodoLeft) {
                known.processed = true;
                self.revision.bump();
            }
        }
        match run.todos.len() {
            0 => {}
            1 => self.notify(NotificationKind::TodoLeft, "1 todo is not done", now),
            left => self.notify(NotificationKind::TodoLeft, &format!("{left} todos are not done"), now),
        }
    }

    /// Marks what the last answered request showed.
    fn mark_processed(&self) {
        let shown = self.lock_progress().shown;
        let mut state = self.lock();
        let mut changed = false;
        for notification in state.notifications.iter_mut().filter(|old| old.number <= shown) {
            changed |= !std::mem::replace(&mut notification.processed, true);
        }
        drop(state);
        if changed {
            self.revision.bump();
        }
    }

    /// Turns the timers that are due into notifications.
    pub fn ring_timers(&self, now: Timestamp) {
        let due: Vec<Timer> = {
            let mut state = self.lock();
            let (due, waiting) =
                std::mem::take(&mut state.timers).into_iter().partition(|timer| timer.due <= now);
            state.timers = waiting;
            due
        };
        due.iter().for_each(|timer| self.notify(NotificationKind::Timer, &timer.text, now));
    }

    fn set_timer(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        let (minutes, text) = (call.target()?, call.text()?);
        let invalid = || ActionError::Invalid {
            what: "number of minutes",
            name: minutes.to_owned(),
            expected: "1 to 1440",
        };
        let count: i64 =
            minutes.parse().ok().filter(|count| (1..=1440).contains(count)).ok_or_else(invalid)?;
        let due = call.now.checked_add(jiff::SignedDuration::from_mins(count)).map_err(|_| invalid())?;
        let mut state = self.lock();
        if state.timers.len() >= MAX_TIMERS {
            return Err(ActionError::Full { what: "the spine", limit: format!("{MAX_TIMERS} timers") });
        }
        state.timers.push(Timer { due, text: text.chars().take(MAX_TEXT).collect() });
        drop(state);
        self.revision.bump();
        self.news.notify_one();
        let unit = if count == 1 { "minute" } else { "minutes" };
        Ok(format!("you are reminded after {count} {unit}"))
    }

    fn lock(&self) -> MutexGuard<'_, SpineState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Panel for Spine {
    fn key(&self) -> &str {
        "spine"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P7")
    }

    fn title(&self) -> String {
        "Spine".into()
    }

    fn strategy(&self) -> RefreshStrategy {
        RefreshStrategy::Derived
    }

    fn volatility(&self) -> Volatility {
        Volatility::Tail
    }

    fn revision(&self) -> u64 {
        self.revision.current()
    }

    fn render(&self) -> Option<String> {
        let state = self.lock();
        let mut lines: Vec<String> = self.limits.describe().into_iter().collect();
        let new = state.notifications.iter().filter(|new| !new.processed);
        lines.extend(new.map(Notification::line));
        lines.extend(
            state
                .timers
                .iter()
                .map(|timer| format!("timer at {}: {}", timer.due.strftime("%Y-%m-%d %H:%M"), timer.text)),
        );
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    fn actions(&self) -> &'static [PanelAction] {
        const { &[PanelAction::new("timer", "target: minutes, text")] }
    }

    fn act(&self, call: &ActionCall<'_>) -> Result<String, ActionError> {
        match call.action {
            "timer" => self.set_timer(call),
            _ => Err(ActionError::UnknownAction { action: call.action.to_owned() }),
        }
    }

    fn save(&self) -> Option<Value> {
        let state = self.lock();
        (*state != SpineState::default()).then(|| serde_json::to_value(&*state).unwrap_or_default())
    }

    fn restore(&self, state: Option<&Value>) {
        let state = state.and_then(|state| SpineState::deserialize(state).ok()).unwrap_or_default();
        *self.lock() = state;
        *self.lock_progress() = Progress::default();
        self.revision.bump();
        self.news.notify_one();
    }
}

#[cfg(test)]
mod tests;
