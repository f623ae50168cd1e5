//! [`SpineLimits`]: how far the agent goes on by itself, and what it has used of that.

use std::fmt;

use jiff::Timestamp;
use serde::Serialize;

use super::RunSummary;

/// How often a continuation may lead to nothing: no tool call, and the same work left.
const MAX_FRUITLESS: u32 = 2;

/// How far the agent goes on without the person. Counted from the person's last message on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpineLimits {
    /// Whether it goes on at all.
    pub auto_continue: bool,
    /// Turns.
    pub turns: u32,
    /// Tokens that the model writes.
    pub output_tokens: u64,
    /// Minutes.
    pub minutes: u32,
    /// Dollars.
    pub dollars: f64,
    /// Runs in a row that fail.
    pub errors: u32,
}

impl Default for SpineLimits {
    fn default() -> Self {
        SpineLimits {
            auto_continue: false,
            turns: 50,
            output_tokens: 100_000,
            minutes: 30,
            dollars: 2.0,
            errors: 3,
        }
    }
}

impl SpineLimits {
    /// A line for the model; none if the agent never goes on by itself.
    pub(super) fn describe(&self) -> Option<String> {
        let SpineLimits { auto_continue, turns, output_tokens, minutes, dollars, errors } = self;
        auto_continue.then(|| {
            format!(
                "You are continued while work remains, up to {turns} turns, {output_tokens} output tokens, {minutes} minutes, ${dollars} or {errors} errors in a row."
            )
        })
    }
}

/// The limit that stopped the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardRail {
    /// Too many turns.
    Turns,
    /// Too many tokens.
    OutputTokens,
    /// Too long.
    Minutes,
    /// Too expensive.
    Cost,
    /// Too many failures in a row.
    Errors,
    /// Continuations led to nothing.
    NoProgress,
}

impl fmt::Display for GuardRail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GuardRail::Turns => "the limit of turns is reached",
            GuardRail::OutputTokens => "the limit of output tokens is reached",
            GuardRail::Minutes => "the time limit is reached",
            GuardRail::Cost => "the cost limit is reached",
            GuardRail::Errors => "too many runs in a row failed",
            GuardRail::NoProgress => "going on led to nothing",
        })
    }
}

/// What was used since the person last said something.
#[derive(Debug, Default)]
pub(super) struct SpentSinceUser {
    began: Option<Timestamp>,
    turns: u32,
    output_tokens: u64,
    dollars: f64,
    /// Failures in a row.
    pub errors: u32,
    fruitless: u32,
}

impl SpentSinceUser {
    pub fn began(&mut self, now: Timestamp) {
        self.began = Some(now);
    }

    pub fn add(&mut self, run: &RunSummary) {
        self.turns = self.turns.saturating_add(run.turns);
        self.output_tokens = self.output_tokens.saturating_add(run.output_tokens);
        self.dollars += run.dollars;
        self.errors = if run.failed { self.errors + 1 } else { 0 };
    }

    pub fn note_progress(&mut self, made: bool) {
        self.fruitless = if made { 0 } else { self.fruitless + 1 };
    }

    /// The limit that is reached. A clock that jumps back does not count.
    pub fn reached(&self, limits: &SpineLimits, now: Timestamp) -> Option<GuardRail> {
        let seconds = self.began.map_or(0, |began| now.as_second().saturating_sub(began.as_second()));
        let checks = [
            (self.errors >= limits.errors, GuardRail::Errors),
            (self.turns >= limits.turns, GuardRail::Turns),
            (self.output_tokens >= limits.output_tokens, GuardRail::OutputTokens),
            (seconds >= i64::from(limits.minutes) * 60, GuardRail::Minutes),
            (self.dollars >= limits.dollars, GuardRail::Cost),
            (self.fruitless >= MAX_FRUITLESS, GuardRail::NoProgress),
        ];
        checks.into_iter().find(|(reached, _)| *reached).map(|(_, rail)| rail)
    }
}
