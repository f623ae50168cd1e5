//! Long scripted sessions of the binary with its tools and the simulator, in a small version. The
//! benchmark `live` measures the long one.

use std::path::PathBuf;

use hardpan_context::LayoutName;
use hardpan_test_support::live_work::{
    LiveOutcome, LiveSetup, PlannedWork, WorkKind, WorkShape, replay_session,
};
use tempfile::TempDir;

fn plan(kind: WorkKind, seed: u64) -> PlannedWork {
    PlannedWork::new(WorkShape { kind, seed, requests: 40, runs: 3 })
}

fn run(work: &PlannedWork, layout: LayoutName, folder: &TempDir) -> LiveOutcome {
    let setup = LiveSetup {
        binary: PathBuf::from(env!("CARGO_BIN_EXE_hardpan")),
        model: "claude-sonnet-5".into(),
        layout,
        settings: "compact_at = 0".into(),
        processes: 2,
    };
    setup.run(work, &folder.path().join("session.jsonl"))
}

#[test]
fn every_kind_of_work_is_carried_out_as_planned_and_billed_as_recorded() {
    let folder = TempDir::new().expect("a folder");
    for kind in WorkKind::ALL {
        let outcome = run(&plan(kind, 3), LayoutName::Strata, &folder);
        assert_eq!(outcome.problems, [], "{kind:?}");
        let replay = replay_session(env!("CARGO_BIN_EXE_hardpan").as_ref(), &outcome.session);
        let billed = replay["billed_cost"].as_f64().expect("a cost");
        assert!((billed / outcome.bill.units - 1.0).abs() < 1e-6, "{kind:?}: {billed} of {:?}", outcome.bill);
    }
}

#[test]
fn other_layouts_carry_out_the_same_work() {
    let folder = TempDir::new().expect("a folder");
    for layout in [LayoutName::Tiers, LayoutName::Panels, LayoutName::Inline] {
        assert_eq!(run(&plan(WorkKind::Edit, 4), layout, &folder).problems, [], "{layout}");
    }
}

#[test]
fn a_seed_plans_the_same_work_and_another_seed_plans_other_work() {
    for kind in WorkKind::ALL {
        assert_eq!(plan(kind, 1).script(), plan(kind, 1).script());
        assert_ne!(plan(kind, 1).script(), plan(kind, 2).script());
        let work = plan(kind, 1);
        assert_eq!(work.runs.iter().map(|run| run.steps.len()).sum::<usize>(), 40);
        assert!(work.runs.iter().all(|run| run.steps.last().is_some_and(|step| step.calls.is_empty())));
    }
}
