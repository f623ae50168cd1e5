use hardpan_context::LayoutName;
use hardpan_models::ThinkingSetting;
use hardpan_test_support::{TestAgent, numbered_lines};

use crate::agents::{two_files, with_files};

/// What the last request read and wrote.
fn last(test_agent: &TestAgent) -> (u64, u64) {
    let usage = test_agent.usages().last().cloned().expect("a usage");
    (usage.cache_read, usage.cache_written())
}

#[tokio::test]
async fn a_ping_is_a_read_and_the_cache_lives_on() {
    let test_agent = with_files(LayoutName::Strata).await;
    assert!(test_agent.agent.cache_warmth().is_none());
    test_agent.say("Hello.").await;
    let warmth = test_agent.agent.cache_warmth().unwrap();
    assert_eq!((warmth.expires_in, warmth.pings, warmth.ping_due_in()), (300, 0, Some(280)));
    test_agent.pass_minutes(4);
    assert_eq!(test_agent.agent.cache_warmth().unwrap().expires_in, 60);
    let spent = test_agent.agent.ping_cache().await.unwrap();
    let tokens = spent.tokens;
    assert!(tokens.cache_read > 2000 && tokens.cache_written() == 0 && tokens.output == 1, "{spent:?}");
    let warmth = test_agent.agent.cache_warmth().unwrap();
    assert_eq!((warmth.expires_in, warmth.pings), (300, 1));
    // Seven minutes after it was written it is still there.
    test_agent.pass_minutes(3);
    test_agent.say("Are you there?").await;
    let (read, _) = last(&test_agent);
    assert!(read > 2000, "{read}");
    assert_eq!(test_agent.agent.cache_warmth().unwrap().pings, 0);
    assert!(test_agent.losses().is_empty());
}

#[tokio::test]
async fn a_pause_is_not_kept_warm_for_ever_and_not_at_all_with_a_thinking_budget() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Hello.").await;
    for _ in 0..2 {
        assert!(test_agent.agent.cache_warmth().unwrap().ping_pays);
        test_agent.pass_minutes(4);
        test_agent.agent.ping_cache().await.unwrap();
    }
    assert!(!test_agent.agent.cache_warmth().unwrap().ping_pays, "two pings are enough");
    let test_agent = two_files(LayoutName::Strata).model("claude-sonnet-4-5").start().await;
    test_agent.say("Hello.").await;
    assert!(test_agent.agent.cache_warmth().unwrap().ping_pays);
    test_agent.agent.select_thinking(ThinkingSetting::Budget(2000)).await.unwrap();
    test_agent.say("Think.").await;
    assert!(!test_agent.agent.cache_warmth().unwrap().ping_pays);
}

#[tokio::test]
async fn an_expired_cache_is_a_free_fold() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Hello.").await;
    test_agent.set_item("file:a.rs", &numbered_lines("gamma", 400));
    test_agent.say("It changed.").await;
    let garbage = |test_agent: &TestAgent| test_agent.agent.breakdown().unwrap().total_tokens;
    let before = garbage(&test_agent);
    test_agent.say("Go on.").await;
    assert!(garbage(&test_agent) >= before, "while it is warm nothing is touched");
    test_agent.pass_minutes(6);
    test_agent.say("And now?").await;
    assert!(garbage(&test_agent) + 1000 < before, "{} {before}", garbage(&test_agent));
    let (read, written) = last(&test_agent);
    assert!(written > 2000, "{read} {written}");
}
