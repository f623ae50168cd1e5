use hardpan_audit::{Audit, Replay, ReplayCost, ReplayPolicy};
use hardpan_context::Keep;
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
    let appended = run(&replay, ReplayPolicy::APPEND);
    let sizes = appended.read + appended.write + appended.input;
    assert_eq!(sizes, billed.tokens.prompt(), "every request has its billed size");
}

#[test]
fn strata_costs_less_than_half_and_little_more_than_the_best_schedule() {
    let replay = session_replay();
    let billed = replay.billed().cost;
    let strata = run(&replay, ReplayPolicy::strata(Keep::Current)).cost;
    let (floor, clairvoyant) = (replay.floor(), replay.clairvoyant());
    assert!(strata <= 0.5 * billed, "{:.4} of the bill", strata / billed);
    assert!(strata <= 1.05 * clairvoyant, "{:.4} of clairvoyant full folds", strata / clairvoyant);
    assert!(floor <= clairvoyant && floor <= strata, "{floor} is no floor");
}

#[test]
fn no_other_policy_beats_strata() {
    let replay = session_replay();
    let strata = run(&replay, ReplayPolicy::strata(Keep::Current)).cost;
    for policy in ReplayPolicy::ALL {
        let cost = run(&replay, policy).cost;
        assert!(cost >= strata, "{}: {:.4} of strata", policy.name(), cost / strata);
    }
}
