//! The invariants of the design (1 to 5), over random sessions, all layouts and all codecs.
//!
//! `HARDPAN_CASES` sets how many sessions are tried (10,000 if left out), `HARDPAN_SEED` the first
//! seed. Each session has a seed of its own, so that a failure names one that fails by itself:
//! `HARDPAN_SEED=… HARDPAN_CASES=1`.

mod body_rules; // the providers' rules, checked on the bytes
mod checks; // the invariants, as checks on finished requests
mod conversations; // random conversations
mod coverage; // which kinds of cases have occurred
mod random_items; // random context
mod random_session; // random sessions
mod random_text; // random texts
mod rng; // repeatable random numbers
mod session_runner; // runs a session through every layout
mod shrink; // finds smaller sessions that break the same rule
mod stored_state; // the state of the layouts, as sessions store it
mod targets; // models and providers
mod unified_diff; // applying a diff
mod violation; // which rule a request breaks

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use hardpan_context::LayoutName;
use hardpan_prompt::Json;

use coverage::Coverage;
use random_session::Session;
use session_runner::{Environment, WarmCaches};
use violation::{CheckResult, Violation};

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
    let environment = Environment::new();
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let work = || {
        let (mut caches, mut coverage) = (WarmCaches::default(), Coverage::default());
        while !stop.load(Relaxed) {
            let index = next.fetch_add(1, Relaxed);
            if index >= cases {
                break;
            }
            let seed = first.wrapping_add(index);
            let session = random_session::generate_session(seed, &environment.model_names);
            if let Err(violation) = check_session(&environment, &mut caches, &session, &mut coverage) {
                stop.store(true, Relaxed);
                return Err((seed, session, violation));
            }
        }
        Ok(coverage)
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        running.into_iter().map(|thread| thread.join().expect("panics are caught")).collect()
    });
    let mut coverage = Coverage::default();
    for result in results {
        match result {
            Ok(part) => coverage.add(&part),
            Err((seed, session, violation)) => report(&environment, seed, session, violation),
        }
    }
    if cases >= CASES {
        assert_full_coverage(&environment, &coverage);
    }
}

#[test]
fn a_long_fraction_survives_its_written_form() {
    let sent = Json::new(&serde_json::json!({"x": 829.0 / 7.0}));
    let kept: Json = serde_json::from_str(sent.as_str()).expect("JSON");
    assert_eq!(kept.as_str(), sent.as_str());
}

/// A panic is a broken rule, too.
fn check_session(
    environment: &Environment,
    caches: &mut WarmCaches,
    session: &Session,
    coverage: &mut Coverage,
) -> CheckResult {
    catch_unwind(AssertUnwindSafe(|| session_runner::run_session(environment, caches, session, coverage)))
        .unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            let text = text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            Err(Violation { rule: "nothing panics", detail: text.unwrap_or_default() })
        })
}

fn report(environment: &Environment, seed: u64, session: Session, violation: Violation) {
    let fails = |session: &Session| {
        check_session(environment, &mut WarmCaches::default(), session, &mut Coverage::default()).err()
    };
    let (session, violation) = shrink::shrink(session, violation, fails);
    for (number, request) in session.requests.iter().enumerate() {
        let json = serde_json::to_string(&request.file).unwrap_or_default();
        eprintln!(
            "request {number} ({:?}) for {}:\n{json}",
            request.step,
            environment.targets[request.target].model.name()
        );
    }
    panic!("broken: {}\n{}\nAgain: HARDPAN_SEED={seed} HARDPAN_CASES=1", violation.rule, violation.detail);
}

fn assert_full_coverage(environment: &Environment, coverage: &Coverage) {
    let mut kinds: BTreeSet<String> = coverage::kinds().collect();
    kinds.extend(environment.targets.iter().map(|target| format!("target: {}", target.model.name())));
    kinds.extend(LayoutName::ALL.iter().map(|layout| format!("layout: {layout}")));
    let rare = kinds.iter().filter(|kind| coverage.count(kind) < AT_LEAST);
    let rare: Vec<String> = rare.map(|kind| format!("{kind}: {}", coverage.count(kind))).collect();
    assert!(rare.is_empty(), "met fewer than {AT_LEAST} times: {rare:#?}");
    assert_eq!(coverage.unknown(&kinds), Vec::<String>::new(), "counted, but not in the list of kinds");
}
