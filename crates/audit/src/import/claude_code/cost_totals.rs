//! [`CostTotals`]: the running totals that Claude Code writes as `cost-state`, compared with the
//! answers of the transcript.
//!
//! The totals contain every request of a session, also those that the transcript leaves out. They
//! go on when a session is resumed; where one is smaller than the one before it, counting began
//! anew.

use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::TokenUsage;
use serde_json::Value;

use super::super::SideUsage;
use super::super::json_fields::JsonFields;

/// Tokens by model, under a name without variants and dates.
pub(super) type UsageByModel = BTreeMap<Arc<str>, TokenUsage>;

#[derive(Default)]
pub(super) struct CostTotals {
    /// The sum of all counts that ended before the current one began anew.
    ended: (UsageByModel, f64),
    current: (UsageByModel, f64),
    /// The transcript's answers up to the last totals.
    answered: UsageByModel,
    is_read: bool,
}

impl CostTotals {
    /// Reads a line of totals, of which `answered` are in the transcript.
    pub fn read(&mut self, line: &Value, answered: UsageByModel) {
        let Some(dollars) = line.get("totalCostUSD").and_then(Value::as_f64) else { return };
        let models = line.get("modelUsage").and_then(Value::as_object);
        let mut usage = UsageByModel::new();
        for (model, tokens) in models.into_iter().flatten() {
            *usage.entry(plain_model(model)).or_default() += parse_totals(tokens);
        }
        if dollars < self.current.1 {
            add(&mut self.ended.0, &self.current.0);
            self.ended.1 += self.current.1;
        }
        self.current = (usage, dollars);
        self.answered = answered;
        self.is_read = true;
    }

    /// The total in dollars, if it covers all answers of the transcript.
    pub fn dollars(&self, answered: &UsageByModel) -> Option<f64> {
        (self.is_read && self.answered == *answered).then_some(self.ended.1 + self.current.1)
    }

    /// What the totals have beyond the transcript's answers.
    pub fn side_usage(&self, purposes: impl Fn(&str) -> Vec<Arc<str>>) -> Vec<SideUsage> {
        let mut totals = self.ended.0.clone();
        add(&mut totals, &self.current.0);
        let side = totals.into_iter().map(|(model, total)| {
            let usage = total.saturating_sub(&self.answered.get(&model).copied().unwrap_or_default());
            SideUsage { usage, purposes: purposes(&model), model }
        });
        // Without a prompt there was no request: the transcript only had a part of an answer.
        side.filter(|side| side.usage.prompt() > 0).collect()
    }
}

fn add(sum: &mut UsageByModel, more: &UsageByModel) {
    more.iter().for_each(|(model, usage)| *sum.entry(model.clone()).or_default() += *usage);
}

/// A model's name without the variant that only the totals have (`claude-opus-5[1m]`), and without
/// its date.
pub(super) fn plain_model(model: &str) -> Arc<str> {
    let plain = model.split('[').next().unwrap_or(model).trim();
    let dated =
        plain.rsplit_once('-').filter(|(_, day)| day.len() == 8 && day.bytes().all(|b| b.is_ascii_digit()));
    dated.map_or(plain, |(name, _)| name).into()
}

fn parse_totals(tokens: &Value) -> TokenUsage {
    let written = tokens.count("cacheCreationInputTokens");
    let cache_write_1h = tokens.count("cacheCreationEphemeral1hInputTokens").min(written);
    TokenUsage {
        input: tokens.count("inputTokens"),
        cache_read: tokens.count("cacheReadInputTokens"),
        cache_write_5m: written - cache_write_1h,
        cache_write_1h,
        output: tokens.count("outputTokens"),
        reasoning: None,
    }
}
