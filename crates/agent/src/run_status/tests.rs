use std::time::Duration;

use hardpan_prompt::Vocabulary;

use super::*;

fn gate() -> Arc<RunGate> {
    RunGate::new(RunState::new(Vocabulary::O200k))
}

fn status(activity: Activity) -> RunStatus {
    RunStatus { activity, ..RunStatus::default() }
}

#[tokio::test]
async fn one_thing_happens_at_a_time_in_the_order_in_which_it_was_asked_for() {
    let gate = gate();
    assert_eq!(gate.status(), status(Activity::Idle));
    let first = gate.try_begin(Activity::Compacting).unwrap();
    assert_eq!(gate.status(), status(Activity::Compacting));
    assert!(gate.try_begin(Activity::Running).is_none());
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks = Vec::new();
    for activity in [Activity::Running, Activity::PingingCache, Activity::SwitchingSession] {
        let (waits, seen) = (gate.clone(), order.clone());
        let is_queued = lock(&gate.access).waiting.len();
        tasks.push(tokio::spawn(async move {
            let _alone = waits.begin(activity).await;
            lock(&seen).push(waits.status().activity);
        }));
        while lock(&gate.access).waiting.len() == is_queued {
            tokio::task::yield_now().await;
        }
    }
    drop(first);
    assert_eq!(gate.status(), status(Activity::Running), "it is never idle in between");
    gate.wait_until_idle().await;
    for task in tasks {
        task.await.unwrap();
    }
    assert_eq!(*lock(&order), [Activity::Running, Activity::PingingCache, Activity::SwitchingSession]);
    assert!(gate.try_begin(Activity::Running).is_some());
}

#[tokio::test]
async fn whoever_gives_up_waiting_holds_up_nobody() {
    let gate = gate();
    let first = gate.try_begin(Activity::Running).unwrap();
    for _ in 0..3 {
        let given_up = tokio::time::timeout(Duration::from_millis(1), gate.begin(Activity::Compacting)).await;
        assert!(given_up.is_err());
    }
    let (waits, begun) = (gate.clone(), Arc::new(tokio::sync::Notify::new()));
    let told = begun.clone();
    let last = tokio::spawn(async move {
        let _alone = waits.begin(Activity::PingingCache).await;
        told.notify_one();
    });
    while lock(&gate.access).waiting.len() < 4 {
        tokio::task::yield_now().await;
    }
    drop(first);
    begun.notified().await;
    last.await.unwrap();
    assert_eq!(gate.status(), status(Activity::Idle));
}

#[tokio::test]
async fn a_permit_that_arrives_too_late_goes_on_to_the_next() {
    let gate = gate();
    let first = gate.try_begin(Activity::Running).unwrap();
    let mut late = Box::pin(gate.begin(Activity::Compacting));
    assert!(futures_util::poll!(&mut late).is_pending());
    drop(first);
    assert_eq!(gate.status(), status(Activity::Compacting));
    drop(late);
    assert_eq!(gate.status(), status(Activity::Idle));
    assert!(gate.try_begin(Activity::Running).is_some());
}

#[test]
fn a_run_that_is_ending_does_not_keep_the_next_prompt_away() {
    let working = |activity, accepted| RunStatus { activity, accepted, shell_commands: 1 }.is_working();
    for activity in [Activity::Idle, Activity::Ending, Activity::Finishing] {
        assert_eq!((working(activity, 0), working(activity, 1)), (false, true), "{activity:?}");
    }
    for activity in [Activity::Running, Activity::Compacting, Activity::ShuttingDown] {
        assert!(working(activity, 0), "{activity:?}");
    }
}
