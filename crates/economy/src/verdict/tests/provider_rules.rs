use hardpan_prompt::{TokenFactor, CacheLifetime};

use super::*;
use crate::ledger::RequestPurpose;
use crate::test_session::long;

#[test]
fn silence_that_outlasts_the_cache_is_a_persons() {
    let verdict = after(|trial, _| trial.wait(12 * 60));
    let cause = Cause::Expired { minutes: 13, lifetime: 5 };
    assert_eq!((verdict.cause.clone(), verdict.blame, verdict.read), (cause, Blame::Person, 0));
    assert_eq!(verdict.lost_tokens, verdict.expected_read);
    let sentence = verdict.sentence();
    assert!(
        sentence.ends_with("the cache expired after 5 minutes (13 minutes unused). Yours."),
        "{sentence}"
    );
}

#[test]
fn a_tool_that_outlasts_the_cache_is_ours() {
    let verdict = after(|trial, talk| {
        talk.tool_round("m8", 1);
        trial.wait(600);
    });
    assert!(matches!(verdict.cause, Cause::Expired { .. }));
    assert_eq!(verdict.blame, Blame::Us);
}

#[test]
fn what_expired_was_lost_whatever_else_changed() {
    let verdict = after(|trial, talk| {
        talk.tools.pop();
        talk.base.reverse();
        trial.wait(600);
    });
    assert!(matches!(verdict.cause, Cause::Expired { .. }));
}

#[test]
fn an_hour_is_an_hour() {
    let after_minutes = |minutes: i64| {
        let mut trial = TestSession::anthropic();
        let mut talk = TestConversation { lifetime: CacheLifetime::OneHour, ..TestConversation::new() };
        talk.user("m1", "Hello!");
        trial.next(&mut talk);
        talk.assistant("m2", "Hello.").user("m3", "Go on.");
        trial.wait(minutes * 60);
        trial.next(&mut talk)
    };
    assert_eq!(after_minutes(40).cause, Cause::AsExpected);
    let late = after_minutes(70);
    assert_eq!(late.cause, Cause::Expired { minutes: 71, lifetime: 60 });
    // Sonnet 5: 4 dollars per million for writing for an hour, 0.2 for reading.
    assert!((late.lost_dollars - late.lost_tokens as f64 * 3.8 / 1e6).abs() < 1e-9);
}

#[test]
fn with_two_lifetimes_only_the_shorter_part_expires() {
    let mut trial = TestSession::anthropic();
    let mut talk = TestConversation::new();
    talk.user("m1", &long("m1", 2000));
    let mixed = |talk: &mut TestConversation, trial: &mut TestSession| {
        let mut prompt = talk.prompt("claude-sonnet-5");
        prompt.system[0].breakpoint = Some(CacheLifetime::OneHour);
        trial.send(&prompt)
    };
    mixed(&mut talk, &mut trial);
    talk.assistant("m2", "Hello.").user("m3", "Go on.");
    trial.wait(600);
    let verdict = mixed(&mut talk, &mut trial);
    assert!(verdict.read > 2000);
    assert_eq!(verdict.cause, Cause::Expired { minutes: 10, lifetime: 5 });
    // Now the tools change within the hour, after the rest has expired: what lived is lost by the tools.
    talk.assistant("m4", "Hello.").user("m5", "Go on.");
    talk.tools.pop();
    trial.wait(600);
    let verdict = mixed(&mut talk, &mut trial);
    assert!(matches!(verdict.cause, Cause::ToolsChanged { .. }), "{verdict:?}");
}

#[test]
fn more_new_blocks_than_the_provider_looks_back_are_counted() {
    let verdict = after(|_, talk| {
        talk.marks_frontier = false;
        talk.tool_round("m8", 18);
    });
    let Cause::TooManyNewBlocks { blocks, look_back } = verdict.cause else { panic!("{verdict:?}") };
    assert_eq!((blocks, look_back, verdict.blame), (38, 20, Blame::Us));
    assert!(verdict.read > 7000 && verdict.lost_tokens > 700, "{verdict:?}");
    let marked = after(|_, talk| {
        talk.tool_round("m8", 18);
    });
    assert_eq!(marked.cause, Cause::AsExpected);
}

#[test]
fn a_request_without_a_breakpoint_reads_nothing() {
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial);
    let mut prompt = talk.prompt("claude-sonnet-5");
    prompt.blocks_mut().for_each(|block| block.breakpoint = None);
    trial.wait(60);
    let verdict = trial.send(&prompt);
    assert_eq!((verdict.cause, verdict.blame), (Cause::Unmarked, Blame::Us));
}

#[test]
fn a_prefix_under_the_minimum_is_the_providers_rule() {
    let small = |factor: f64| {
        let mut trial = TestSession::new("anthropic", "claude-haiku-4-5");
        trial.factor = TokenFactor::new(factor);
        let mut talk = TestConversation { base: Vec::new(), ..TestConversation::new() };
        talk.user("m1", &long("m1", 2000));
        trial.next(&mut talk);
        talk.assistant("m2", "Hello.").user("m3", "Go on.");
        trial.next(&mut talk)
    };
    // We count some 4,330 and mark; the provider counts fewer than 4,096.
    let verdict = small(0.9);
    let Cause::BelowMinimum { tokens, minimum } = verdict.cause else { panic!("{verdict:?}") };
    assert!(tokens < 4096 && minimum == 4096 && verdict.is_loss());
    assert_eq!((verdict.blame, verdict.read), (Blame::Provider, 0));
    assert_eq!(small(1.0).cause, Cause::AsExpected);
}

#[test]
fn without_a_breakpoint_a_small_prefix_is_explained_and_no_loss() {
    let mut trial = TestSession::new("openai", "gpt-5.5");
    let mut talk = TestConversation { base: Vec::new(), system: Vec::new(), tools: Vec::new(), ..TestConversation::new() };
    talk.system.push(crate::test_session::item("x", "Be brief."));
    talk.user("m1", "Hello!");
    trial.next(&mut talk);
    talk.assistant("m2", "Hello.").user("m3", "Go on.");
    let verdict = trial.next(&mut talk);
    assert!(matches!(verdict.cause, Cause::BelowMinimum { minimum: 1024, .. }), "{verdict:?}");
    assert!(!verdict.is_loss());
}

#[test]
fn what_the_provider_dropped_is_the_providers() {
    for (provider, model) in [("anthropic", "claude-sonnet-5"), ("openai", "gpt-5.5"), ("openai", "gpt-5.6")]
    {
        let mut trial = TestSession::new(provider, model);
        let mut talk = warm(&mut trial);
        trial.cache = Default::default();
        let verdict = trial.next(&mut talk);
        assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::Evicted, Blame::Provider), "{model}");
        assert!(verdict.lost_tokens > 7000 && verdict.lost_dollars > 0.0);
    }
}

#[test]
fn a_small_change_does_not_hide_that_the_provider_dropped_everything() {
    let verdict = after(|trial, talk| {
        talk.log[3].blocks[0] = crate::test_session::said("m4", "Something else.");
        trial.cache = Default::default();
    });
    assert_eq!(verdict.cause, Cause::Evicted);
}

#[test]
fn a_request_sent_before_the_answer_began_could_read_nothing() {
    let mut trial = TestSession::anthropic();
    let mut talk = TestConversation::new();
    talk.user("m1", "Hello!");
    trial.next(&mut talk);
    trial.now += 300;
    let prompt = talk.prompt("claude-sonnet-5");
    let verdict = trial.send(&prompt);
    assert_eq!((verdict.read, verdict.cause), (0, Cause::AsExpected));
}

#[test]
fn a_ping_keeps_the_conversation_warm_and_its_ending_is_not_expected() {
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial);
    trial.next(&mut talk);
    for purpose in [RequestPurpose::Ping, RequestPurpose::Compaction] {
        trial.purpose = purpose;
        trial.wait(200);
        let mut helper = talk.clone();
        helper.assistant("h1", "Done.").user("h2", &long("summarise", 500));
        assert_eq!(trial.next(&mut helper).cause, Cause::AsExpected);
    }
    trial.purpose = RequestPurpose::Turn;
    trial.wait(200);
    talk.assistant("m8", "Done.").user("m9", "Go on.");
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
}

#[test]
fn a_compaction_that_does_not_share_the_prefix_is_told() {
    let verdict = after(|trial, talk| {
        trial.purpose = RequestPurpose::Compaction;
        talk.tools.clear();
    });
    let Cause::ToolsChanged { removed, .. } = &verdict.cause else { panic!("{verdict:?}") };
    assert_eq!(removed.len(), 3);
}

#[test]
fn a_commit_message_is_a_prompt_of_its_own() {
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial);
    trial.purpose = RequestPurpose::Commit;
    let mut other = TestConversation { tools: Vec::new(), base: Vec::new(), ..TestConversation::new() };
    other.user("c1", "Write a message for this change.");
    assert!(!trial.next(&mut other).is_loss());
    trial.purpose = RequestPurpose::Turn;
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
}
