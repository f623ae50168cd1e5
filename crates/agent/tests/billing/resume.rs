use hardpan_context::LayoutName;
use hardpan_economy::Cause;
use hardpan_economy::verdict::Blame;
use hardpan_test_support::numbered_lines;

use crate::agents::{steady, with_files};

#[tokio::test]
async fn a_resumed_session_that_sends_the_same_bytes_loses_nothing() {
    for layout in LayoutName::ALL {
        let test_agent = steady(layout).await;
        test_agent.say("Look.").await;
        let test_agent = test_agent.restart().await;
        test_agent.say("Go on.").await;
        assert_eq!(test_agent.losses(), [], "{layout}");
        let verdict = test_agent.agent.last_verdict().unwrap();
        assert!(verdict.cause == Cause::AsExpected && verdict.read > 2000, "{layout}: {verdict:?}");
    }
}

#[tokio::test]
async fn the_session_was_resumed_and_sent_something_else() {
    let test_agent = with_files(LayoutName::Panels).await;
    test_agent.say("Hello.").await;
    let test_agent = test_agent.restart().await;
    test_agent.set_item("file:b.rs", &numbered_lines("gamma", 400));
    test_agent.say("Go on.").await;
    let loss = test_agent.the_loss().await;
    assert_eq!((&loss.cause, loss.blame), (&Cause::Resumed, Blame::Us));
    // A changed panel begins with another time.
    assert!(loss.sentence().contains("panel timestamp"), "{}", loss.sentence());
    // Only the first request after a resume can say so.
    test_agent.set_item("file:b.rs", &numbered_lines("delta", 400));
    test_agent.say("Go on.").await;
    assert!(matches!(test_agent.losses()[1].cause, Cause::ItemChanged { .. }));
}

#[tokio::test]
async fn the_session_was_resumed_and_another_process_found_nothing() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Look.").await;
    let test_agent = test_agent.restart().await;
    test_agent.clear_caches();
    test_agent.say("Go on.").await;
    let loss = test_agent.the_loss().await;
    assert_eq!((&loss.cause, loss.blame), (&Cause::Resumed, Blame::Provider));
}

#[tokio::test]
async fn a_session_that_rested_too_long_has_expired() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Look.").await;
    let test_agent = test_agent.restart().await;
    test_agent.pass_minutes(90);
    test_agent.say("Go on.").await;
    assert_eq!(
        test_agent.the_loss().await.cause,
        Cause::Expired { minutes: 90, lifetime: 5, avoidable_by: None }
    );
}

#[tokio::test]
async fn a_fork_is_held_against_what_it_began_with() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Hello.").await;
    test_agent.say("Look.").await;
    test_agent.stored().await;
    let fork = test_agent.fork(None);
    fork.say("Go on.").await;
    assert_eq!(fork.losses(), []);
    assert_eq!(fork.agent.last_verdict().unwrap().cause, Cause::AsExpected);
    // What the fork has said is nothing to the conversation that it came from.
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.losses(), []);
}

#[tokio::test]
async fn what_is_kept_for_the_next_process_stays_small() {
    let test_agent = with_files(LayoutName::Strata).await;
    for _ in 0..30 {
        test_agent.say("Look.").await;
    }
    let session = test_agent.stored().await;
    let of = |name: &str| -> Vec<usize> {
        let custom = session.entries.iter().filter_map(|entry| match &entry.record {
            hardpan_session::Record::Custom { custom_type, data } if &**custom_type == name => Some(data),
            _ => None,
        });
        custom.map(|data| data.to_string().len()).collect()
    };
    let watches = of("hardpan.watch");
    assert_eq!(watches.len(), 30);
    assert!(watches[29] < 2 * watches[1], "it does not grow with the conversation: {watches:?}");
    assert!(of("hardpan.items").iter().all(|size| *size < 10_000));
}
