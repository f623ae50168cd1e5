use hardpan_audit::{Audit, Replay, ReplayCost, ReplayPolicy};
use hardpan_context::KeepLevel;
use hardpan_models::Catalogue;

use crate::generated::SESSION;

fn run(replay: &Replay, policy: ReplayPolicy) -> ReplayCost {
    replay.run(policy).expect("its requests can be built")
}

fn session_replay() -> Replay {
    Replay::new(&SESSION.recording, Catalogue::builtin()).expect("it can be replayed")
}

#[test]
fn the_bill_is_reproduced_to_the_token() {
    let replay = session_replay();
    let (billed, audit) = (replay.billed(), Audit::from_recording(&SESSION.recording, Catalogue::builtin()));
    assert_eq!((billed.requests, billed.tokens), (SESSION.usages.len(), audit.billed.tokens));
    assert!((billed.cost - audit.billed.cost).abs() < 1e-6 * billed.cost, "{billed:?}");
}

#[test]
fn strata_costs_little_more_than_the_best_schedule_and_less_than_without_folds() {
    let replay = session_replay();
    let (strata, appended) =
        (run(&replay, ReplayPolicy::strata(KeepLevel::Current)), run(&replay, ReplayPolicy::APPEND));
    let (floor, clairvoyant) = (replay.floor(), replay.clairvoyant());
    assert!(strata.cost <= 0.7 * appended.cost, "{strata:?} {appended:?}");
    assert!(strata.cost <= 1.1 * clairvoyant, "{:.4} of clairvoyant full folds", strata.cost / clairvoyant);
    assert!(floor <= clairvoyant && floor <= strata.cost, "{floor} is no floor");
}

#[test]
fn no_other_policy_beats_strata() {
    let replay = session_replay();
    let strata = run(&replay, ReplayPolicy::strata(KeepLevel::Current)).cost;
    // What keeps less may cost less.
    let keeps_as_much = |policy: &ReplayPolicy| policy.keep() != Some(KeepLevel::Lean);
    for policy in ReplayPolicy::ALL.into_iter().filter(keeps_as_much) {
        let cost = run(&replay, policy).cost;
        assert!(cost >= strata, "{}: {:.4} of strata", policy.name(), cost / strata);
    }
}
