//! What an action would cost before it is taken.
//!
//! The principal function is [`forecast_cost`]. Another model, another setting, a tool switched on:
//! each loses some of the cache, and costs what must be written again beyond what reading it would
//! have cost. Once the cache has expired, or at the next fold, the same action is free.

#[cfg(test)]
mod tests;

use hardpan_models::{CacheKind, Model, ProviderProfile};
use hardpan_prompt::{Region, TokenUsage};
use serde::{Deserialize, Serialize};

use crate::cache::{CacheRules, Invalidation, Moment, Section};
use crate::format::{format_dollars, format_minutes, format_number, replace_control_characters};
use crate::ledger::Prices;
use crate::verdict::{CacheMonitor, PieceOrigin};

/// An action that would change the next request.
#[derive(Clone, Copy, Debug)]
pub enum PlannedAction<'a> {
    /// Switch to another model.
    SwitchModel {
        /// The model to switch to.
        model: &'a Model,
        /// The profile of its provider for this model.
        profile: &'a ProviderProfile,
    },
    /// Change the thinking budget or the effort.
    Thinking,
    /// Declare other tools at once, because the tool of this name was switched on or off.
    ToggleTool(&'a str),
    /// Switch a tool on or off, by name, and tell it by a message after all that is cached.
    AppendToolChange(&'a str),
    /// Open an item.
    Open {
        /// Size of the item's body.
        tokens: u64,
    },
    /// Close an item, by key.
    Close(&'a str),
    /// Pin an item, by key.
    Pin(&'a str),
    /// Remove an item (by key) or a message (by id) at once.
    Prune(&'a str),
    /// Switch to another agent, and so to another system prompt.
    SwitchAgent,
    /// Do nothing until the cache has expired.
    Wait,
}

/// When an action becomes free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreeWhen {
    /// The action costs nothing now.
    Now,
    /// When the cache expires, at this moment (milliseconds since 1970), unless it is used before.
    AtExpiry(i64),
    /// At the next fold, which is when the cache expires at the latest.
    AtNextFold,
}

/// What an action would cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostForecast {
    /// Cached tokens that would have to be written again.
    pub tokens_written_again: u64,
    /// Dollars that the next request would cost more than without the action.
    pub dollars_now: f64,
    /// When the action would be free. `None`: never, or the cache's lifetime is not documented.
    pub free_at: Option<FreeWhen>,
    /// The forecast as a sentence for a person.
    pub sentence: String,
}

/// Forecasts what `action` would cost at `now` in the conversation that `monitor` follows.
pub fn forecast_cost(
    monitor: &CacheMonitor,
    action: PlannedAction<'_>,
    model: &Model,
    profile: &ProviderProfile,
    now: Moment,
) -> CostForecast {
    ForecastContext { monitor, model, profile, rules: CacheRules::for_model(model, profile), now }
        .forecast_cost(action)
}

struct ForecastContext<'a> {
    monitor: &'a CacheMonitor,
    model: &'a Model,
    profile: &'a ProviderProfile,
    rules: CacheRules,
    now: Moment,
}

/// What an action loses of the cache.
struct Loss {
    tokens: u64,
    /// Whether the next fold makes the action free.
    foldable: bool,
}

impl ForecastContext<'_> {
    fn forecast_cost(&self, action: PlannedAction<'_>) -> CostForecast {
        match action {
            PlannedAction::Open { tokens } => self.forecast_open(tokens),
            PlannedAction::SwitchModel { model, profile } => self.forecast_model_switch(model, profile),
            action => {
                let Loss { tokens, foldable } = self.estimate_loss(action);
                let dollars = self.rewrite_cost(tokens);
                // Waiting is what makes the others free.
                let free_at =
                    self.free_at(tokens, foldable).filter(|_| !matches!(action, PlannedAction::Wait));
                self.build_forecast(&describe_action(action), tokens, dollars, free_at)
            }
        }
    }

    fn estimate_loss(&self, action: PlannedAction<'_>) -> Loss {
        let by_section = self.rules.invalidation == Invalidation::BySection;
        let from = |block: usize| self.monitor.tokens_lost_from(&self.rules, block, self.now);
        let all = |tokens| Loss { tokens, foldable: false };
        let at_fold = |tokens| Loss { tokens, foldable: self.monitor.uses_folds() };
        match action {
            PlannedAction::Open { .. }
            | PlannedAction::SwitchModel { .. }
            | PlannedAction::AppendToolChange(_)
            | PlannedAction::Pin(_) => all(0), // a pinned item stays where it is
            PlannedAction::Wait => all(from(0)),
            PlannedAction::SwitchAgent => all(from(self.monitor.section_start(Section::System))),
            PlannedAction::Thinking if by_section => all(from(self.monitor.section_start(Section::Messages))),
            PlannedAction::Thinking if self.rules.invalidation == Invalidation::Everything => all(from(0)),
            PlannedAction::Thinking => all(0),
            PlannedAction::ToggleTool(_) if self.rules.invalidation != Invalidation::None => at_fold(from(0)),
            PlannedAction::ToggleTool(name) => {
                let found = self
                    .monitor
                    .find_piece(|origin| matches!(origin, PieceOrigin::Tool(tool) if **tool == *name));
                at_fold(from(
                    found.map_or_else(|| self.monitor.section_start(Section::System), |(block, ..)| block),
                ))
            }
            PlannedAction::Close(key) => match self.monitor.find_piece(|origin| is_named(origin, key)) {
                // In `strata` it is told in the LOG; the body stays where it is until the next
                // fold.
                Some((_, Region::Base | Region::Log, _)) => all(0),
                found => self.loss_by_removal(found),
            },
            PlannedAction::Prune(key) => {
                self.loss_by_removal(self.monitor.find_piece(|origin| is_named(origin, key)))
            }
        }
    }

    /// What follows the removed item must be written again, but not the item itself.
    fn loss_by_removal(&self, found: Option<(usize, Region, u64)>) -> Loss {
        let Some((block, place, own)) = found else { return Loss { tokens: 0, foldable: false } };
        let tokens = self.monitor.tokens_lost_from(&self.rules, block, self.now).saturating_sub(own);
        Loss { tokens, foldable: matches!(place, Region::Base | Region::Log) && self.monitor.uses_folds() }
    }

    fn forecast_open(&self, tokens: u64) -> CostForecast {
        // `panels` shows items before the conversation, which then moves; elsewhere a new item
        // comes after what is cached.
        let after = self.monitor.region_end(Region::Panel).map(|last| last + 1);
        let moved = after.map_or(0, |block| self.monitor.tokens_lost_from(&self.rules, block, self.now));
        let prices = self.prices();
        let once = prices.dollars(&TokenUsage { cache_write_5m: tokens, ..TokenUsage::default() });
        let each = prices.dollars(&TokenUsage { cache_read: tokens, ..TokenUsage::default() });
        let dollars_now = once + self.rewrite_cost(moved);
        let mut foresight =
            self.build_forecast("Opening it now", moved, dollars_now, self.free_at(moved, false));
        let adds = format!("Opening it adds {} tokens", format_number(tokens));
        let price = if prices.input > 0.0 {
            format!(": {} once, then {} with each request", format_dollars(once), format_dollars(each))
        } else {
            String::new()
        };
        let also = if moved > 0 { format!(". {}", foresight.sentence) } else { ".".into() };
        foresight.sentence = format!("{adds}{price}{also}");
        foresight
    }

    fn forecast_model_switch(&self, model: &Model, profile: &ProviderProfile) -> CostForecast {
        let same = model.id == self.model.id && model.provider == self.model.provider;
        let cached = if same { 0 } else { self.monitor.tokens_lost_from(&self.rules, 0, self.now) };
        // The same text has another number of tokens in another vocabulary.
        let tokens = (cached as f64 * model.token_factor / self.model.token_factor.max(0.01)).round() as u64;
        let there = Prices::for_model(model, profile, tokens);
        let writes = CacheRules::for_model(model, profile).cache.kind != CacheKind::None;
        let price = if writes { there.write } else { there.input };
        let reading = self.prices().dollars(&TokenUsage { cache_read: cached, ..TokenUsage::default() });
        let dollars = (tokens as f64 * price / 1e6 - reading).max(0.0);
        self.build_forecast(
            &describe_action(PlannedAction::SwitchModel { model, profile }),
            tokens,
            dollars,
            self.free_at(tokens, false),
        )
    }

    /// Dollars for writing tokens again, beyond reading them.
    fn rewrite_cost(&self, tokens: u64) -> f64 {
        let prices = self.prices();
        let none = TokenUsage::default();
        let write = match self.monitor.has_long_lifetime(&self.rules) {
            true => TokenUsage { cache_write_1h: tokens, ..none },
            false => TokenUsage { cache_write_5m: tokens, ..none },
        };
        (prices.dollars(&write) - prices.dollars(&TokenUsage { cache_read: tokens, ..none })).max(0.0)
    }

    fn prices(&self) -> Prices {
        Prices::for_model(self.model, self.profile, self.monitor.cached_tokens())
    }

    fn free_at(&self, tokens: u64, foldable: bool) -> Option<FreeWhen> {
        let expiry = || self.monitor.expires_at().map(|moment| FreeWhen::AtExpiry(moment.0));
        match (tokens, foldable) {
            (0, _) => Some(FreeWhen::Now),
            (_, true) => Some(FreeWhen::AtNextFold),
            (_, false) => expiry(),
        }
    }

    fn build_forecast(
        &self,
        action: &str,
        tokens: u64,
        price: f64,
        free_at: Option<FreeWhen>,
    ) -> CostForecast {
        let action = replace_control_characters(action);
        let sentence = if tokens == 0 {
            let why = if self.monitor.is_warm(self.now) { "" } else { ": nothing is cached" };
            format!("{action} costs nothing{why}.")
        } else {
            let price = if price > 0.0 { format!(" ({})", format_dollars(price)) } else { String::new() };
            let free = match free_at {
                Some(FreeWhen::AtExpiry(at)) => {
                    let left = Moment(at).since(self.now).max(0) as u64;
                    format!("; free once the cache expires, in {}", format_minutes(left.div_ceil(60_000)))
                }
                Some(FreeWhen::AtNextFold) => "; free at the next fold".into(),
                Some(FreeWhen::Now) | None => String::new(),
            };
            format!("{action} means writing {} tokens again{price}{free}.", format_number(tokens))
        };
        CostForecast { tokens_written_again: tokens, dollars_now: price, free_at, sentence }
    }
}

fn is_named(origin: &PieceOrigin, name: &str) -> bool {
    matches!(origin, PieceOrigin::Item(key) | PieceOrigin::Message(key) if **key == *name)
}

fn describe_action(action: PlannedAction<'_>) -> String {
    match action {
        PlannedAction::SwitchModel { model, .. } => format!("Switching to {} now", model.name()),
        PlannedAction::Thinking => "Changing how the model thinks now".into(),
        PlannedAction::ToggleTool(name) | PlannedAction::AppendToolChange(name) => {
            format!("Switching the tool {name} now")
        }
        PlannedAction::Open { .. } => "Opening it now".into(),
        PlannedAction::Close(key) => format!("Closing {key} now"),
        PlannedAction::Pin(key) => format!("Pinning {key} now"),
        PlannedAction::Prune(key) => format!("Taking out {key} now"),
        PlannedAction::SwitchAgent => "Switching the agent now".into(),
        PlannedAction::Wait => "Letting the cache expire".into(),
    }
}
