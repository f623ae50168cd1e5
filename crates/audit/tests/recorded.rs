//! A real session of 439 billed requests, where the folder that holds it is named by `HARDPAN_SESSIONS`.

use std::path::PathBuf;

use hardpan_audit::{Audit, CacheOutcome, LossCause, Recording, RequestTrigger, UnexplainedLoss};
use hardpan_models::Catalogue;

/// The audit of `pi-large.jsonl`; none, with a note, where it is not at hand.
fn pi_large() -> Option<Audit> {
    let Some(folder) = std::env::var_os("HARDPAN_SESSIONS") else {
        println!("skipped: HARDPAN_SESSIONS does not name the folder of pi-large.jsonl");
        return None;
    };
    let recording = Recording::open(&PathBuf::from(folder).join("pi-large.jsonl")).expect("it can be read");
    Some(Audit::from_recording(&recording, Catalogue::builtin()))
}

#[test]
fn the_bill_is_reproduced_to_the_token() {
    let Some(audit) = pi_large() else { return };
    let tokens = audit.billed.tokens;
    assert_eq!(audit.requests.len(), 439);
    assert_eq!(
        (tokens.input, tokens.cache_read, tokens.cache_write_5m, tokens.cache_write_1h),
        (1049, 43_229_469, 4_296_232, 0)
    );
    assert_eq!(audit.billed.cost.round(), 9_694_286.0);
    // Sonnet 4.5 at 3 dollars per million tokens of input.
    assert!(audit.billed.dollars.is_some_and(|dollars| (dollars - 29.082_857_7).abs() < 1e-6));
}

#[test]
fn hits_and_losses_are_foretold_and_no_alarm_is_false() {
    let Some(audit) = pi_large() else { return };
    let share = |wanted: &dyn Fn(RequestTrigger) -> bool| {
        let of_sort: Vec<_> = audit.requests.iter().filter(|request| wanted(request.trigger)).collect();
        let right = of_sort.iter().filter(|request| request.predicted == request.actual).count();
        println!("{right} of {}", of_sort.len());
        right as f64 / of_sort.len() as f64
    };
    assert!(share(&|trigger| trigger == RequestTrigger::Tools) >= 0.995);
    assert!(share(&|_| true) >= 0.93);
    let alarms = audit.requests.iter().filter(|request| request.predicted == CacheOutcome::Loss);
    assert_eq!(alarms.filter(|request| request.actual == CacheOutcome::Hit).count(), 0);
}

#[test]
fn every_loss_has_a_cause_and_what_is_not_recorded_is_said_so() {
    let Some(audit) = pi_large() else { return };
    let lost = audit.requests.iter().filter(|request| request.actual == CacheOutcome::Loss).count();
    assert_eq!(audit.losses.len(), lost);
    let unexplained = audit
        .losses
        .iter()
        .filter(|loss| loss.cause == LossCause::Unrecorded(UnexplainedLoss::WholePrefix))
        .count();
    println!("{lost} losses, {unexplained} of them with nothing recorded that explains them");
    for loss in &audit.losses {
        println!("{:3} {:7} {}", loss.request, loss.tokens, loss.cause.describe());
    }
    assert!(unexplained > 0 && unexplained < lost);
    // What the prototype found: a stable prefix would have paid .545 of the bill.
    let stable = audit.stable_prefix_cost / audit.billed.cost;
    println!("stable prefix {stable:.3}, predicted {:.3}", audit.predicted.cost / audit.billed.cost);
    assert!((0.54..0.55).contains(&stable), "{stable}");
}
