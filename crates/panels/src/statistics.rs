//! [`Statistics`] (P3): what the conversation has used so far.
//!
//! The figures are those at the end of the last run: they stand still while the model works, since a
//! panel that changes with every request would be paid for with every request.

use std::sync::{Mutex, MutexGuard, PoisonError};

use hardpan_prompt::Volatility;
use hardpan_prompt::figures::format_dollars;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::panel::{Panel, RefreshStrategy, Revision};

/// What the panel shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StatisticsFigures {
    /// How many requests were sent.
    pub requests: u64,
    /// Tokens of all prompts.
    pub input: u64,
    /// How many of these were read from the cache.
    pub cached: u64,
    /// Tokens of all answers.
    pub output: u64,
    /// What all of it cost, in dollars.
    pub dollars: f64,
    /// Tokens of the last prompt.
    pub context: u64,
    /// How many the model can take.
    pub window: u64,
}

/// The statistics.
#[derive(Debug, Default)]
pub struct Statistics {
    figures: Mutex<StatisticsFigures>,
    revision: Revision,
}

impl Statistics {
    /// Shows these figures from now on.
    pub fn set(&self, figures: StatisticsFigures) {
        let mut current = self.lock();
        if *current != figures {
            *current = figures;
            drop(current);
            self.revision.bump();
        }
    }

    fn lock(&self) -> MutexGuard<'_, StatisticsFigures> {
        self.figures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn percent(part: u64, whole: u64) -> u64 {
    if whole == 0 { 0 } else { (part as f64 / whole as f64 * 100.0).round() as u64 }
}

impl Panel for Statistics {
    fn key(&self) -> &str {
        "statistics"
    }

    fn fixed_id(&self) -> Option<&'static str> {
        Some("P3")
    }

    fn title(&self) -> String {
        "Statistics".into()
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
        let StatisticsFigures { requests, input, cached, output, dollars, context, window } = *self.lock();
        (requests > 0).then(|| {
            format!(
                "Up to your last answer:\nrequests: {requests}\ninput tokens: {input}, {}% from the cache\noutput tokens: {output}\ncost: {}\ncontext: {context} of {window} tokens ({}%)",
                percent(cached, input),
                format_dollars(dollars),
                percent(context, window),
            )
        })
    }

    fn save(&self) -> Option<Value> {
        let figures = *self.lock();
        (figures.requests > 0).then(|| serde_json::to_value(figures).unwrap_or_default())
    }

    fn restore(&self, state: Option<&Value>) {
        let figures = state.and_then(|state| StatisticsFigures::deserialize(state).ok()).unwrap_or_default();
        *self.lock() = figures;
        self.revision.bump();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_figures_are_no_change() {
        let statistics = Statistics::default();
        assert_eq!(statistics.render(), None);
        let figures = StatisticsFigures {
            requests: 2,
            input: 3000,
            cached: 1000,
            output: 50,
            dollars: 0.012_34,
            context: 1600,
            window: 200_000,
        };
        statistics.set(figures);
        let revision = statistics.revision();
        statistics.set(figures);
        assert_eq!(statistics.revision(), revision);
        let shown = "Up to your last answer:\nrequests: 2\ninput tokens: 3000, 33% from the cache\noutput tokens: 50\ncost: $0.012\ncontext: 1600 of 200000 tokens (1%)";
        assert_eq!(statistics.render().unwrap(), shown);
        let restored = Statistics::default();
        restored.restore(statistics.save().as_ref());
        assert_eq!(restored.render().unwrap(), shown);
    }
}
