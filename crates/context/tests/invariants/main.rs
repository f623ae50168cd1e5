//! The invariants of the design (1 to 5), over random sessions, all layouts and all codecs.
//!
//! `HARDPAN_CASES` sets how many sessions are tried (10,000 if left out), `HARDPAN_SEED` the first seed. Each session has a
//! seed of its own, so that a failure names one that fails by itself: `HARDPAN_SEED=… HARDPAN_CASES=1`.

mod coverage; // what has occurred
mod dice; // repeatable chance
mod items; // random context
mod oracle; // the invariants
mod patch; // applying a diff
mod run; // a session, request by request
mod session; // random sessions
mod shrink; // smaller sessions that fail alike
mod talk; // random conversations
mod targets; // models and providers
mod verdict; // a broken rule
mod wire; // the providers' rules, on the bytes
mod words; // random texts

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hardpan_context::LayoutName;
use hardpan_prompt::Json;

use coverage::Coverage;
use run::{Warm, World};
use session::Session;
use verdict::{Failure, Verdict};

/// The size of a usual run, and how often it must meet each kind of case.
const CASES: u64 = 10_000;
const AT_LEAST: u64 = 20;

fn number(variable: &str, default: u64) -> u64 {
    let Ok(text) = std::env::var(variable) else { return default };
    text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number"))
}

#[test]
fn every_request_of_every_session_keeps_the_invariants() {
    let (first, cases) = (number("HARDPAN_SEED", 20_260_219), number("HARDPAN_CASES", CASES));
    let world = World::new();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let (mut warm, mut seen) = (Warm::default(), Coverage::default());
        while !stop.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            if index >= cases {
                break;
            }
            let seed = first.wrapping_add(index);
            let session = session::session(seed, &world.makers);
            if let Err(failure) = tried(&world, &mut warm, &session, &mut seen) {
                stop.store(true, Relaxed);
                return Err((seed, session, failure));
            }
        }
        Ok(seen)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().expect("panics are caught")).collect()
    });
    let mut seen = Coverage::default();
    for result in results {
        match result {
            Ok(part) => seen.add(&part),
            Err((seed, session, failure)) => report(&world, seed, session, failure),
        }
    }
    if cases >= CASES {
        everything_was_met(&world, &seen);
    }
}

#[test]
fn a_long_fraction_survives_its_written_form() {
    let sent = Json::new(&serde_json::json!({"x": 829.0 / 7.0}));
    let kept: Json = serde_json::from_str(sent.as_str()).expect("JSON");
    assert_eq!(kept.as_str(), sent.as_str());
}

/// A panic is a broken rule, too.
fn tried(world: &World, warm: &mut Warm, session: &Session, seen: &mut Coverage) -> Verdict {
    catch_unwind(AssertUnwindSafe(|| run::session(world, warm, session, seen))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
        Err(Failure { rule: "nothing panics", detail: text.unwrap_or_default() })
    })
}

fn report(world: &World, seed: u64, session: Session, failure: Failure) {
    let fails =
        |session: &Session| tried(world, &mut Warm::default(), session, &mut Coverage::default()).err();
    let (session, failure) = shrink::shrink(session, failure, fails);
    for (number, request) in session.requests.iter().enumerate() {
        let json = serde_json::to_string(&request.file).unwrap_or_default();
        eprintln!(
            "request {number} ({:?}) for {}:\n{json}",
            request.step,
            world.targets[request.target].model.name()
        );
    }
    panic!("broken: {}\n{}\nAgain: HARDPAN_SEED={seed} HARDPAN_CASES=1", failure.rule, failure.detail);
}

fn everything_was_met(world: &World, seen: &Coverage) {
    let mut kinds: BTreeSet<String> = coverage::kinds().collect();
    kinds.extend(world.targets.iter().map(|target| format!("target: {}", target.model.name())));
    kinds.extend(LayoutName::ALL.iter().map(|layout| format!("layout: {layout}")));
    let rare = kinds.iter().filter(|kind| seen.count(kind) < AT_LEAST);
    let rare: Vec<String> = rare.map(|kind| format!("{kind}: {}", seen.count(kind))).collect();
    assert!(rare.is_empty(), "met fewer than {AT_LEAST} times: {rare:#?}");
    assert_eq!(seen.unknown(&kinds), Vec::<String>::new(), "counted, but not in the list of kinds");
}
