use hardpan_context::LayoutName;
use hardpan_prompt::Thinking;

use crate::trial::{Trial, text};

/// What the last request read and wrote.
fn last(trial: &Trial) -> (u64, u64) {
    let usage = trial.world().usages.last().cloned().expect("a usage");
    (usage.cache_read, usage.cache_write_5m)
}

#[tokio::test]
async fn a_ping_is_a_read_and_the_cache_lives_on() {
    let trial = Trial::with_files(LayoutName::Strata);
    assert!(trial.agent.warmth().is_none());
    trial.say("Hello.").await;
    let warmth = trial.agent.warmth().unwrap();
    assert_eq!((warmth.expires_in, warmth.pings, warmth.ping_in()), (300, 0, Some(280)));
    trial.wait(4);
    assert_eq!(trial.agent.warmth().unwrap().expires_in, 60);
    let spent = trial.agent.ping().await.unwrap();
    assert!(spent.read > 2000 && spent.written == 0 && spent.output == 1, "{spent:?}");
    let warmth = trial.agent.warmth().unwrap();
    assert_eq!((warmth.expires_in, warmth.pings), (300, 1));
    // Seven minutes after it was written it is still there.
    trial.wait(3);
    trial.say("Are you there?").await;
    let (read, _) = last(&trial);
    assert!(read > 2000, "{read}");
    assert_eq!(trial.agent.warmth().unwrap().pings, 0);
    assert!(trial.losses().is_empty());
}

#[tokio::test]
async fn a_pause_is_not_kept_warm_for_ever_and_not_at_all_while_thinking() {
    let trial = Trial::with_files(LayoutName::Strata);
    trial.say("Hello.").await;
    for _ in 0..2 {
        assert!(trial.agent.warmth().unwrap().ping_pays);
        trial.wait(4);
        trial.agent.ping().await.unwrap();
    }
    assert!(!trial.agent.warmth().unwrap().ping_pays, "two pings are enough");
    trial.agent.select_thinking(Thinking::Budget(2000)).await.unwrap();
    trial.say("Think.").await;
    assert!(!trial.agent.warmth().unwrap().ping_pays);
}

#[tokio::test]
async fn an_expired_cache_is_a_free_fold() {
    let trial = Trial::with_files(LayoutName::Strata);
    trial.say("Hello.").await;
    trial.write("file:a.rs", &text("gamma", 400));
    trial.say("It changed.").await;
    let garbage = |trial: &Trial| trial.agent.breakdown().unwrap().total_tokens;
    let before = garbage(&trial);
    trial.say("Go on.").await;
    assert!(garbage(&trial) >= before, "while it is warm nothing is touched");
    trial.wait(6);
    trial.say("And now?").await;
    assert!(garbage(&trial) + 1000 < before, "{} {before}", garbage(&trial));
    let (read, written) = last(&trial);
    assert!(written > 2000, "{read} {written}");
}
