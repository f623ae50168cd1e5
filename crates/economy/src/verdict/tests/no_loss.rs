use hardpan_prompt::TokenFactor;

use super::*;
use crate::test_session::long;

/// So many requests: turns of words and of tools, a clock in TAIL that never shows the same time.
fn clean(provider: &str, model: &str, factor: f64, requests: usize) {
    let mut trial = TestSession::new(provider, model);
    trial.factor = TokenFactor::new(factor);
    let mut talk = TestConversation::new();
    for number in 0..requests {
        match number % 4 {
            0 | 3 => talk.user(&format!("u{number}"), &long("question", 20 + number % 7 * 40)),
            1 => talk.tool_round(&format!("t{number}"), 1 + number % 9),
            _ => talk
                .tool_round(&format!("t{number}"), 12)
                .assistant(&format!("a{number}"), &long("answer", 150))
                .user(&format!("b{number}"), "Well?"),
        };
        talk.tail = long(&format!("It is {number} o'clock"), 5 + number % 60);
        trial.wait(200);
        let prompt = talk.prompt(model);
        let verdict = trial.send(&prompt);
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
    let mut trial = TestSession::new("mistral", "mistral-large-latest");
    let mut talk = TestConversation::new();
    for number in 0..5 {
        talk.user(&format!("u{number}"), "Go on.");
        if number == 3 {
            talk.tools.clear();
        }
        assert!(!trial.next(&mut talk).is_loss());
    }
}

#[test]
fn a_provider_that_reports_nothing_is_not_judged() {
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial);
    let prompt = talk.prompt("claude-sonnet-5");
    let (measured, _) = trial.bill(&prompt);
    let mut monitor = std::mem::take(&mut trial.monitor);
    assert_eq!(monitor.examine_for_loss(&trial.completed_request(&prompt, &measured, None)), None);
    // The next request is still held against what was sent, by our own count.
    trial.monitor = monitor;
    talk.assistant("m8", "Yes.").user("m9", "Go on.");
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
    talk.tools.pop();
    assert!(matches!(trial.next(&mut talk).cause, Cause::ToolsChanged { .. }));
}

#[test]
fn what_is_kept_grows_with_the_blocks_and_not_with_the_texts() {
    let size = |tokens: usize| {
        let mut trial = TestSession::anthropic();
        let mut talk = TestConversation::new();
        talk.user("m1", &long("m1", tokens));
        trial.next(&mut talk);
        serde_json::to_string(&trial.monitor).unwrap().len()
    };
    assert!(size(50_000) < size(50) + 20);
}
