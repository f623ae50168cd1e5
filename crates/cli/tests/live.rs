//! Long scripted sessions of the binary with its tools and the simulator, in a small version. The
//! benchmark `live` measures the long one.

use std::path::PathBuf;

use hardpan_context::LayoutName;
use hardpan_test_support::live_work::{LiveOutcome, LiveSetup, PlannedWork, WorkKind, WorkShape};
use tempfile::TempDir;

fn plan(kind: WorkKind, seed: u64, requests: usize) -> PlannedWork {
    PlannedWork::new(WorkShape { kind, seed, requests, runs: 4 })
}

fn run(work: &PlannedWork, layout: LayoutName, settings: &str) -> LiveOutcome {
    run_with_model("claude-sonnet-5", work, layout, settings)
}

fn run_with_model(model: &str, work: &PlannedWork, layout: LayoutName, settings: &str) -> LiveOutcome {
    let folder = TempDir::new().expect("a folder");
    let setup = LiveSetup {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_hardpan")),
        model: model.into(),
        layout,
        settings: format!("compact_at = 0\n{settings}"),
        processes: 2,
        pauses: 0,
    };
    setup.run(work, &folder.path().join("session.jsonl"))
}

#[test]
fn folds_make_every_kind_of_work_cheaper_and_the_replay_has_the_bill() {
    for kind in WorkKind::ALL {
        let work = plan(kind, 7, 64);
        let append_only = run(&work, LayoutName::Strata, "keep = \"all\"");
        let strata = run(&work, LayoutName::Strata, "");
        for outcome in [&append_only, &strata] {
            assert_eq!(outcome.problems, [], "{kind:?}");
            let billed = outcome.replay["billed_cost"].as_f64().expect("a cost");
            assert!(
                (billed / outcome.bill.units - 1.0).abs() < 1e-6,
                "{kind:?}: {billed} of {:?}",
                outcome.bill
            );
        }
        assert_replayed(&append_only, "append");
        assert_replayed(&strata, "strata");
        assert_eq!(append_only.folds, 0, "{kind:?}");
        assert!(strata.folds > 0, "{kind:?}");
        let ratio = strata.bill.units / append_only.bill.units;
        assert!(ratio < 0.95, "{kind:?}: strata costs {ratio:.3} of append-only");
    }
}

/// The replay of a session comes to its own bill.
fn assert_replayed(outcome: &LiveOutcome, policy: &str) {
    let replayed = &outcome.replay["layouts"][policy];
    let share = replayed["cost"].as_f64().expect("a cost") / outcome.bill.units;
    assert!((share - 1.0).abs() < 0.005, "{policy} replays {share} of {:?}", outcome.bill);
}

/// The first process folds, and leaves reasoning out with it; the second one goes on from there. A
/// whole loss of the cache would be an eighth of the bill.
#[test]
fn a_model_that_binds_its_reasoning_goes_on_after_a_fold_in_another_process() {
    let work = plan(WorkKind::TestLoop, 11, 120);
    let strata = run_with_model("claude-sonnet-5-5", &work, LayoutName::Strata, "");
    assert_eq!(strata.problems, []);
    assert!(strata.folds > 0);
    assert_replayed(&strata, "strata");
}

#[test]
fn other_layouts_carry_out_the_same_work() {
    for layout in [LayoutName::Tiers, LayoutName::Panels, LayoutName::Inline] {
        assert_eq!(run(&plan(WorkKind::Edit, 4, 32), layout, "").problems, [], "{layout}");
    }
}

#[test]
fn a_seed_plans_the_same_work_and_another_seed_plans_other_work() {
    for kind in WorkKind::ALL {
        let work = plan(kind, 1, 40);
        assert_eq!(work.script(), plan(kind, 1, 40).script());
        assert_ne!(work.script(), plan(kind, 2, 40).script());
        assert_eq!(work.runs.iter().map(|run| run.steps.len()).sum::<usize>(), 40);
        assert!(work.runs.iter().all(|run| run.steps.last().is_some_and(|step| step.calls.is_empty())));
    }
}
