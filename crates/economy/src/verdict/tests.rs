//! Every cause as a small conversation, with this crate's own model of a provider on the other
//! side.

mod no_loss; // long conversations that lose nothing
mod prompt_changes;
mod provider_rules; // losses caused by the provider's rules: lifetimes, look-back, minimum, eviction // losses caused by changes of the prompt

use super::*;
use crate::test_session::{TestConversation, TestSession};

/// A conversation of a few turns that is warm.
fn warm_conversation(session: &mut TestSession) -> TestConversation {
    let mut conversation = TestConversation::new();
    conversation.user("m1", "Hello! What is in a.rs?");
    assert_eq!(session.next(&mut conversation).cause, Cause::FirstRequest);
    for (answer, question) in [("m2", "m3"), ("m4", "m5")] {
        conversation
            .assistant(answer, &crate::test_session::long_text(answer, 300))
            .user(question, &crate::test_session::long_text(question, 100));
        let verdict = session.next(&mut conversation);
        assert_eq!(verdict.cause, Cause::AsExpected, "{}", verdict.sentence());
        assert!(verdict.read > 7000);
    }
    conversation.assistant("m6", "That is all.").user("m7", "Thank you. Go on.");
    conversation
}

/// What one change to a warm conversation loses.
fn verdict_after(change: impl FnOnce(&mut TestSession, &mut TestConversation)) -> Verdict {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    change(&mut session, &mut conversation);
    session.next(&mut conversation)
}

#[test]
fn a_sentence_tells_tokens_dollars_cause_and_whose_doing_it_was() {
    let verdict = Verdict {
        lost_tokens: 49_120,
        lost_dollars: 0.154,
        blame: Blame::Us,
        ..Verdict::without_loss(Cause::SystemChanged("project files".into()), 49_120, 0)
    };
    let expected = "49,120 tokens ($0.154) were paid again: the system prompt changed (project files). Hardpan could have avoided it.";
    assert_eq!(verdict.sentence(), expected);
    let free = Verdict {
        lost_dollars: 0.0,
        lost_tokens: 1,
        cause: Cause::Evicted,
        blame: Blame::Provider,
        ..verdict
    };
    let expected = "1 token was paid again: nothing of ours differs, and the provider no longer had it. Only the provider could have avoided it.";
    assert_eq!(free.sentence(), expected);
    let first = Verdict::without_loss(Cause::FirstRequest, 0, 0);
    assert_eq!(
        first.sentence(),
        "Nothing was lost: the first request of a conversation finds nothing cached."
    );
    let second_conversation = Verdict::without_loss(Cause::FirstRequest, 0, 2_163);
    assert_eq!(
        second_conversation.sentence(),
        "Nothing was lost: the first request found 2,163 tokens in the cache already."
    );
}

#[test]
fn a_verdict_survives_its_written_form() {
    let verdict = verdict_after(|_, conversation| drop(conversation.tools.pop()));
    assert!(verdict.is_loss());
    let written = serde_json::to_string(&verdict).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&written).unwrap(), verdict);
}

#[test]
fn names_cannot_write_to_the_terminal() {
    let cause = Cause::ItemChanged { key: "file:\u{1b}[2J".into(), how: ContentChange::Changed };
    let verdict = Verdict { lost_tokens: 5, blame: Blame::Us, ..Verdict::without_loss(cause, 5, 0) };
    assert!(!verdict.sentence().contains('\u{1b}'));
}
