//! The bars of the replay on a real session of 439 billed requests, where the folder that holds it is named by `HARDPAN_SESSIONS`.

use std::path::PathBuf;

use hardpan_audit::{Recording, Replay, ReplayPolicy};
use hardpan_models::Catalogue;

/// `pi-large.jsonl`, ready to be replayed; none, with a note, where it is not at hand.
fn pi_large() -> Option<Replay> {
    let Some(folder) = std::env::var_os("HARDPAN_SESSIONS") else {
        println!("skipped: HARDPAN_SESSIONS does not name the folder of pi-large.jsonl");
        return None;
    };
    let recording = Recording::open(&PathBuf::from(folder).join("pi-large.jsonl")).expect("it can be read");
    Some(Replay::new(&recording, Catalogue::builtin()))
}

#[test]
fn the_bill_is_reproduced_to_the_token() {
    let Some(replay) = pi_large() else { return };
    let billed = replay.billed();
    assert_eq!((billed.requests, billed.cost.round()), (439, 9_694_286.0));
    let appended = replay.run(ReplayPolicy::Append);
    assert_eq!(
        appended.read + appended.write + appended.input,
        billed.tokens.prompt(),
        "every request has its billed size"
    );
}

#[test]
fn strata_costs_less_than_half_and_little_more_than_the_floor() {
    let Some(replay) = pi_large() else { return };
    let billed = replay.billed().cost;
    let strata = replay.run(ReplayPolicy::Strata).cost;
    let (floor, clairvoyant) = (replay.floor(), replay.clairvoyant());
    println!(
        "strata {:.4} of the bill, {:.4} of the floor, {:.4} of clairvoyant full folds",
        strata / billed,
        strata / floor,
        strata / clairvoyant
    );
    assert!(strata <= 0.45 * billed);
    assert!(strata <= 1.03 * clairvoyant);
    assert!(strata <= 1.12 * floor);
}

#[test]
fn no_other_policy_beats_strata() {
    let Some(replay) = pi_large() else { return };
    let strata = replay.run(ReplayPolicy::Strata).cost;
    for policy in ReplayPolicy::ALL {
        let cost = replay.run(policy).cost;
        println!("{} {:.4} of the bill", policy.name(), cost / replay.billed().cost);
        assert!(cost >= strata, "{}", policy.name());
    }
}
