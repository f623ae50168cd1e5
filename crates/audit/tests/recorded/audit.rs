use std::sync::LazyLock;

use hardpan_audit::{Audit, CacheOutcome, RequestTrigger};
use hardpan_models::Catalogue;
use hardpan_prompt::TokenUsage;

use crate::generated::{EVICTION_BEFORE, PAUSE_BEFORE, REQUESTS_PER_STEP, SESSION, SWITCH_BEFORE};

static AUDIT: LazyLock<Audit> =
    LazyLock::new(|| Audit::from_recording(&SESSION.recording, Catalogue::builtin()));

#[test]
fn the_bill_is_reproduced_to_the_token() {
    let reported: TokenUsage = SESSION.usages.iter().copied().sum();
    assert_eq!(AUDIT.requests.len(), SESSION.usages.len());
    assert_eq!(AUDIT.billed.tokens, reported);
    let TokenUsage { input, cache_read, cache_write_5m, cache_write_1h, .. } = reported;
    // What follows the pause is written for an hour.
    assert!(cache_write_1h > 0);
    let written = 1.25 * cache_write_5m as f64 + 2.0 * cache_write_1h as f64;
    let cost = input as f64 + 0.1 * cache_read as f64 + written;
    assert!((AUDIT.billed.cost - cost).abs() < 1e-6 * cost, "{} {cost}", AUDIT.billed.cost);
    let price = Catalogue::builtin().model(None, "claude-sonnet-5").expect("a model").price.input / 1e6;
    let dollars = AUDIT.billed.dollars.expect("its price is known");
    assert!((dollars - cost * price).abs() < 1e-9, "{dollars}");
}

#[test]
fn hits_and_losses_are_foretold_and_no_alarm_is_false() {
    let wrong = |trigger: Option<RequestTrigger>| -> Vec<usize> {
        let requests = AUDIT.requests.iter().enumerate();
        let of_sort =
            requests.filter(|(_, request)| trigger.is_none_or(|trigger| request.trigger == trigger));
        of_sort.filter(|(_, request)| request.predicted != request.actual).map(|(index, _)| index).collect()
    };
    assert_eq!(wrong(Some(RequestTrigger::Tools)), [0; 0]);
    // Neither what a provider forgets nor which tools were declared is recorded before the bill.
    assert_eq!(wrong(None), [EVICTION_BEFORE, SWITCH_BEFORE].map(|step| step * REQUESTS_PER_STEP));
    let alarms = AUDIT.requests.iter().filter(|request| request.predicted == CacheOutcome::Loss);
    assert_eq!(alarms.filter(|request| request.actual == CacheOutcome::Hit).count(), 0);
}

#[test]
fn every_loss_has_its_cause_and_nothing_else_is_called_a_loss() {
    let lost = AUDIT.requests.iter().filter(|request| request.actual == CacheOutcome::Loss).count();
    assert_eq!(AUDIT.losses.len(), lost);
    let mut losses: Vec<(usize, String)> =
        AUDIT.losses.iter().map(|loss| (loss.request / REQUESTS_PER_STEP, loss.cause.describe())).collect();
    losses.sort();
    let expected = [
        (
            PAUSE_BEFORE,
            "the cache expired after 5 minutes (12 minutes unused; a lifetime of 60 minutes would have kept it)",
        ),
        (EVICTION_BEFORE, "nothing of ours differs, and the provider no longer had it"),
        (SWITCH_BEFORE, "the tools changed (removed fetch)"),
    ];
    assert_eq!(losses, expected.map(|(step, cause)| (step, cause.to_owned())));
    let avoidable: Vec<usize> = AUDIT
        .losses
        .iter()
        .filter(|loss| loss.is_avoidable)
        .map(|loss| loss.request / REQUESTS_PER_STEP)
        .collect();
    assert_eq!(avoidable, [SWITCH_BEFORE]);
    let stable = AUDIT.stable_prefix_cost / AUDIT.billed.cost;
    assert!((0.5..1.0).contains(&stable), "a stable prefix would have paid {stable} of the bill");
}
