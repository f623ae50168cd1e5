//! The status line and the end of a run, in figures.

use std::time::Duration;

use hardpan_agent::{Spending, UsageReport};
use hardpan_app::ConversationApp;
use hardpan_terminal::blocks::{CacheState, Cost, LayerPart, StatusLine, Warmth};

/// The status line of a conversation. The face knows its mode.
pub fn status_line(app: &ConversationApp) -> StatusLine {
    let agent = &app.agent;
    let usage = agent.token_usage();
    let breakdown = agent.breakdown();
    let known = breakdown.as_ref().filter(|breakdown| breakdown.price.known);
    let warmth = agent.cache_warmth().map(|warmth| match u64::try_from(warmth.expires_in) {
        Ok(seconds @ 1..) => Warmth::Warm(Duration::from_secs(seconds)),
        _ => Warmth::Cold,
    });
    let next = known.map(|breakdown| match warmth {
        Some(Warmth::Warm(_)) => breakdown.price.warm,
        _ => breakdown.price.cold,
    });
    StatusLine {
        model: match agent.target() {
            target if app.is_simulated() || app.is_offline(&target) => "offline".to_owned(),
            target => target.model.name(),
        },
        layers: layers(&usage),
        cost: cost(&usage.session),
        next: next.filter(|price| *price > 0.0 && !app.is_simulated()),
        warmth: warmth.filter(|_| usage.requests > 0 && !app.is_simulated()),
        ..StatusLine::default()
    }
}

/// What was paid, and what was simulated.
pub fn cost(spending: &Spending) -> Cost {
    let simulated = Some(spending.would_cost).filter(|would_cost| *would_cost > 0.0);
    Cost { paid: spending.dollars, simulated, ..Cost::default() }
}

/// The last request from its stable to its new part: what was read, written and sent.
fn layers(usage: &UsageReport) -> Vec<LayerPart> {
    let tokens = usage.last_request.unwrap_or_default().tokens;
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let parts = [
        (count(tokens.cache_read), CacheState::Read),
        (count(tokens.cache_written()), CacheState::Written),
        (count(tokens.input), CacheState::Sent),
    ];
    parts.into_iter().filter(|(tokens, _)| *tokens > 0).collect()
}
