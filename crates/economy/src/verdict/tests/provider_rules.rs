use hardpan_prompt::{CacheLifetime, TokenFactor};

use super::*;
use crate::ledger::RequestPurpose;
use crate::test_session::long_text;

#[test]
fn silence_that_outlasts_the_cache_is_a_persons() {
    let verdict = verdict_after(|session, _| session.wait(12 * 60));
    let cause = Cause::Expired { minutes: 13, lifetime: 5, avoidable_by: Some(60) };
    assert_eq!((verdict.cause.clone(), verdict.blame, verdict.read), (cause, Blame::Person, 0));
    assert_eq!(verdict.lost_tokens, verdict.expected_read);
    let sentence = verdict.sentence();
    assert!(
        sentence.ends_with("the cache expired after 5 minutes (13 minutes unused; a lifetime of 60 minutes would have kept it). You could have avoided it."),
        "{sentence}"
    );
}

#[test]
fn a_tool_that_outlasts_the_cache_is_ours() {
    let verdict = verdict_after(|session, conversation| {
        conversation.tool_round("m8", 1);
        session.wait(600);
    });
    assert!(matches!(verdict.cause, Cause::Expired { .. }));
    assert_eq!(verdict.blame, Blame::Us);
}

#[test]
fn what_expired_was_lost_whatever_else_changed() {
    let verdict = verdict_after(|session, conversation| {
        conversation.tools.pop();
        conversation.base.reverse();
        session.wait(600);
    });
    assert!(matches!(verdict.cause, Cause::Expired { .. }));
}

#[test]
fn an_hour_is_an_hour() {
    let after_minutes = |minutes: i64| {
        let mut session = TestSession::anthropic();
        let mut conversation =
            TestConversation { lifetime: CacheLifetime::OneHour, ..TestConversation::new() };
        conversation.user("m1", "Hello!");
        session.next(&mut conversation);
        conversation.assistant("m2", "Hello.").user("m3", "Go on.");
        session.wait(minutes * 60);
        session.next(&mut conversation)
    };
    assert_eq!(after_minutes(40).cause, Cause::AsExpected);
    let late = after_minutes(70);
    assert_eq!(late.cause, Cause::Expired { minutes: 71, lifetime: 60, avoidable_by: None });
    // Sonnet 5: 4 dollars per million for writing for an hour, 0.2 for reading.
    assert!((late.lost_dollars - late.lost_tokens as f64 * 3.8 / 1e6).abs() < 1e-9);
}

#[test]
fn with_two_lifetimes_only_the_shorter_part_expires() {
    let mut session = TestSession::anthropic();
    let mut conversation = TestConversation::new();
    conversation.user("m1", &long_text("m1", 2000));
    let mixed = |conversation: &mut TestConversation, session: &mut TestSession| {
        let mut prompt = conversation.prompt("claude-sonnet-5");
        prompt.system[0].breakpoint = Some(CacheLifetime::OneHour);
        session.send(&prompt)
    };
    mixed(&mut conversation, &mut session);
    conversation.assistant("m2", "Hello.").user("m3", "Go on.");
    session.wait(600);
    let verdict = mixed(&mut conversation, &mut session);
    assert!(verdict.read > 2000);
    assert_eq!(verdict.cause, Cause::Expired { minutes: 10, lifetime: 5, avoidable_by: Some(60) });
    // Now the tools change within the hour, after the rest has expired: what lived is lost by the
    // tools.
    conversation.assistant("m4", "Hello.").user("m5", "Go on.");
    conversation.tools.pop();
    session.wait(600);
    let verdict = mixed(&mut conversation, &mut session);
    assert!(matches!(verdict.cause, Cause::ToolsChanged { .. }), "{verdict:?}");
}

#[test]
fn more_new_blocks_than_the_provider_looks_back_are_counted() {
    let rounds = |conversation: &mut TestConversation| {
        for round in 0..12 {
            conversation.tool_round(&format!("m8_{round}"), 2);
        }
    };
    let verdict = verdict_after(|_, conversation| {
        conversation.marks_frontier = false;
        rounds(conversation);
    });
    let Cause::TooManyNewBlocks { blocks, look_back } = verdict.cause else { panic!("{verdict:?}") };
    assert_eq!((blocks, look_back, verdict.blame), (50, 20, Blame::Us));
    assert!(verdict.read > 7000 && verdict.lost_tokens > 700, "{verdict:?}");
    let marked = verdict_after(|_, conversation| rounds(conversation));
    assert_eq!(marked.cause, Cause::AsExpected);
    // Parallel calls are one position, and so are their results.
    let parallel = verdict_after(|_, conversation| {
        conversation.marks_frontier = false;
        conversation.tool_round("m8", 18);
    });
    assert_eq!(parallel.cause, Cause::AsExpected);
}

#[test]
fn a_request_without_a_breakpoint_reads_nothing() {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    let mut prompt = conversation.prompt("claude-sonnet-5");
    prompt.blocks_mut().for_each(|block| block.breakpoint = None);
    session.wait(60);
    let verdict = session.send(&prompt);
    assert_eq!((verdict.cause, verdict.blame), (Cause::Unmarked, Blame::Us));
}

#[test]
fn a_prefix_under_the_minimum_is_explained_and_no_loss() {
    let small = |factor: f64| {
        let mut session = TestSession::new("anthropic", "claude-haiku-4-5");
        session.factor = TokenFactor::new(factor);
        let mut conversation = TestConversation { base: Vec::new(), ..TestConversation::new() };
        conversation.user("m1", &long_text("m1", 2000));
        session.next(&mut conversation);
        conversation.assistant("m2", "Hello.").user("m3", "Go on.");
        session.next(&mut conversation)
    };
    // We count some 4,330 and mark; the provider counts fewer than 4,096.
    let verdict = small(0.9);
    let Cause::BelowMinimum { tokens, minimum } = verdict.cause else { panic!("{verdict:?}") };
    assert!(tokens < 4096 && minimum == 4096 && !verdict.is_loss());
    assert_eq!((verdict.blame, verdict.read), (Blame::Nobody, 0));
    assert_eq!(small(1.0).cause, Cause::AsExpected);
}

#[test]
fn without_a_breakpoint_a_small_prefix_is_explained_and_no_loss() {
    let mut session = TestSession::new("openai", "gpt-5.4");
    let mut conversation = TestConversation {
        base: Vec::new(),
        system: Vec::new(),
        tools: Vec::new(),
        ..TestConversation::new()
    };
    conversation.system.push(crate::test_session::item("x", "Be brief."));
    conversation.user("m1", "Hello!");
    session.next(&mut conversation);
    conversation.assistant("m2", "Hello.").user("m3", "Go on.");
    let verdict = session.next(&mut conversation);
    assert!(matches!(verdict.cause, Cause::BelowMinimum { minimum: 1024, .. }), "{verdict:?}");
    assert!(!verdict.is_loss());
}

#[test]
fn what_the_provider_dropped_is_the_providers() {
    for (provider, model) in [("anthropic", "claude-sonnet-5"), ("openai", "gpt-5.4"), ("openai", "gpt-5.6")]
    {
        let mut session = TestSession::new(provider, model);
        let mut conversation = warm_conversation(&mut session);
        session.cache = Default::default();
        let verdict = session.next(&mut conversation);
        assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::Evicted, Blame::Provider), "{model}");
        assert!(verdict.lost_tokens > 7000 && verdict.lost_dollars > 0.0);
    }
}

#[test]
fn a_small_change_does_not_hide_that_the_provider_dropped_everything() {
    let verdict = verdict_after(|session, conversation| {
        conversation.log[3].blocks[0] = crate::test_session::message_block("m4", "Something else.");
        session.cache = Default::default();
    });
    assert_eq!(verdict.cause, Cause::Evicted);
}

#[test]
fn a_request_sent_before_the_answer_began_could_read_nothing() {
    let mut session = TestSession::anthropic();
    let mut conversation = TestConversation::new();
    conversation.user("m1", "Hello!");
    session.next(&mut conversation);
    session.now += 300;
    let prompt = conversation.prompt("claude-sonnet-5");
    let verdict = session.send(&prompt);
    assert_eq!((verdict.read, verdict.cause), (0, Cause::AsExpected));
}

#[test]
fn a_ping_keeps_the_conversation_warm_and_its_ending_is_not_expected() {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    session.next(&mut conversation);
    for purpose in [RequestPurpose::Ping, RequestPurpose::Compaction] {
        session.purpose = purpose;
        session.wait(200);
        let mut helper = conversation.clone();
        helper.assistant("h1", "Done.").user("h2", &long_text("summarise", 500));
        assert_eq!(session.next(&mut helper).cause, Cause::AsExpected);
    }
    session.purpose = RequestPurpose::Turn;
    session.wait(200);
    conversation.assistant("m8", "Done.").user("m9", "Go on.");
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
}

#[test]
fn a_compaction_that_does_not_share_the_prefix_is_told() {
    let verdict = verdict_after(|session, conversation| {
        session.purpose = RequestPurpose::Compaction;
        conversation.tools.clear();
    });
    let Cause::ToolsChanged { removed, .. } = &verdict.cause else { panic!("{verdict:?}") };
    assert_eq!(removed.len(), 3);
}

#[test]
fn a_commit_message_is_a_prompt_of_its_own() {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    session.purpose = RequestPurpose::Commit;
    let mut other = TestConversation { tools: Vec::new(), base: Vec::new(), ..TestConversation::new() };
    other.user("c1", "Write a message for this change.");
    assert!(!session.next(&mut other).is_loss());
    session.purpose = RequestPurpose::Turn;
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
}
