use hardpan_prompt::TokenFactor;

use super::*;
use crate::test_session::long_text;

/// So many requests: turns of words and of tools, a clock in TAIL that never shows the same time.
fn clean(provider: &str, model: &str, factor: f64, requests: usize) {
    let mut session = TestSession::new(provider, model);
    session.factor = TokenFactor::new(factor);
    let mut conversation = TestConversation::new();
    for number in 0..requests {
        match number % 4 {
            0 | 3 => conversation.user(&format!("u{number}"), &long_text("question", 20 + number % 7 * 40)),
            1 => conversation.tool_round(&format!("t{number}"), 1 + number % 9),
            _ => conversation
                .tool_round(&format!("t{number}"), 12)
                .assistant(&format!("a{number}"), &long_text("answer", 150))
                .user(&format!("b{number}"), "Well?"),
        };
        conversation.tail = long_text(&format!("It is {number} o'clock"), 5 + number % 60);
        session.wait(200);
        let prompt = conversation.prompt(model);
        let verdict = session.send(&prompt);
        let expected = if number == 0 { Cause::FirstRequest } else { Cause::AsExpected };
        assert_eq!(verdict.cause, expected, "request {number} to {model}: {}", verdict.sentence());
        assert!(number == 0 || verdict.read > 0, "request {number} to {model}");
    }
}

#[test]
fn a_clean_session_of_200_requests_has_no_verdict() {
    clean("anthropic", "claude-sonnet-5", 1.0, 200);
    clean("openai", "gpt-5.5", 1.0, 200);
    clean("openai", "gpt-5.6", 1.0, 200);
    clean("vllm", "any", 1.0, 200);
}

#[test]
fn nor_has_one_whose_provider_counts_otherwise() {
    for factor in [0.8, 1.11, 1.3] {
        clean("anthropic", "claude-sonnet-5", factor, 40);
        clean("openai", "gpt-5.5", factor, 40);
        clean("openai", "gpt-5.6", factor, 40);
    }
}

#[test]
fn a_provider_without_a_cache_loses_nothing() {
    let mut session = TestSession::new("mistral", "mistral-large-latest");
    let mut conversation = TestConversation::new();
    for number in 0..5 {
        conversation.user(&format!("u{number}"), "Go on.");
        if number == 3 {
            conversation.tools.clear();
        }
        assert!(!session.next(&mut conversation).is_loss());
    }
}

#[test]
fn a_provider_that_reports_nothing_is_not_judged() {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    let prompt = conversation.prompt("claude-sonnet-5");
    let (measured, _) = session.bill(&prompt);
    let mut monitor = std::mem::take(&mut session.monitor);
    assert_eq!(monitor.examine_for_loss(&session.completed_request(&prompt, &measured, None)), None);
    // The next request is still held against what was sent, by our own count.
    session.monitor = monitor;
    conversation.assistant("m8", "Yes.").user("m9", "Go on.");
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
    conversation.tools.pop();
    assert!(matches!(session.next(&mut conversation).cause, Cause::ToolsChanged { .. }));
}

#[test]
fn what_is_kept_grows_with_the_blocks_and_not_with_the_texts() {
    let size = |tokens: usize| {
        let mut session = TestSession::anthropic();
        let mut conversation = TestConversation::new();
        conversation.user("m1", &long_text("m1", tokens));
        session.next(&mut conversation);
        serde_json::to_string(&session.monitor).unwrap().len()
    };
    assert!(size(50_000) < size(50) + 20);
}
