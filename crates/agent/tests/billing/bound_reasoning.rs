//! Models whose reasoning is bound to everything before it: what Hardpan sends back is never
//! refused and never dropped by the provider, whatever happens to the conversation.

use hardpan_agent::events::BeforeCompactReply;
use hardpan_agent::events::{Note, NoteKind, SessionBeforeCompact};
use hardpan_context::LayoutName;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::Effort;
use hardpan_test_support::{TestAgent, numbered_lines};

use crate::agents::two_files;

/// The models whose provider checks the binding.
const BOUND_MODELS: [&str; 4] =
    ["claude-opus-5-5", "claude-sonnet-5-5", "claude-haiku-5-5", "claude-fable-5-2"];

const SCRIPT: &str = "
turns:
  - when: {equals: Look.}
    reasoning: I should look first.
    tool_calls: [{name: look, arguments: {at: a}}]
    repeat: always
default: {reasoning: Let me think about it., text: Fine.}
";

async fn thinking_agent(model: &str, layout: LayoutName) -> TestAgent {
    two_files(layout).model(model).script(SCRIPT).start().await
}

/// How many blocks of reasoning the last request carried.
fn reasoning_sent(test_agent: &TestAgent) -> usize {
    test_agent.last_sent().body.matches(r#""type":"thinking""#).count()
}

fn assert_nothing_was_dropped(test_agent: &TestAgent, when: &str) {
    let is_drop = |note: &Note| matches!(note.kind, NoteKind::DroppedReasoning { .. });
    let dropped: Vec<Note> = test_agent.events_of::<Note>().into_iter().filter(is_drop).collect();
    assert!(dropped.is_empty(), "{when}: {dropped:?}");
}

#[tokio::test]
async fn reasoning_goes_back_turn_after_turn_while_the_clock_runs() {
    for model in BOUND_MODELS {
        let test_agent = thinking_agent(model, LayoutName::Strata).await;
        for turn in 1..=4 {
            test_agent.say("Look.").await;
            test_agent.pass_minutes(1);
            assert_nothing_was_dropped(&test_agent, model);
            // Each exchange is two answers; the last of them is not sent back yet.
            assert_eq!(reasoning_sent(&test_agent), 2 * turn - 1, "{model}, turn {turn}");
        }
        assert!(test_agent.losses().is_empty(), "{model}: {:?}", test_agent.losses());
    }
}

#[tokio::test]
async fn what_changes_the_past_leaves_the_reasoning_after_it_out() {
    for model in BOUND_MODELS {
        let test_agent = thinking_agent(model, LayoutName::Strata).await;
        test_agent.say("Look.").await;
        test_agent.set_item("file:a.rs", &numbered_lines("gamma", 400));
        test_agent.say("It changed.").await;
        assert_nothing_was_dropped(&test_agent, "an update");
        assert!(reasoning_sent(&test_agent) > 0, "an update is told later: nothing before has changed");
        test_agent.pass_minutes(20);
        test_agent.say("A fold that is free.").await;
        assert_nothing_was_dropped(&test_agent, "a fold");
        assert_eq!(reasoning_sent(&test_agent), 0, "{model}: a fold changes what all of it came after");
        test_agent.say("Look.").await;
        assert_nothing_was_dropped(&test_agent, "after the fold");
        assert!(reasoning_sent(&test_agent) > 0, "{model}: reasoning since the fold goes back");
        test_agent.agent.events().subscribe::<SessionBeforeCompact, _>("scribe", |_, _| async {
            Ok(BeforeCompactReply::summary("They looked."))
        });
        for _ in 0..8 {
            test_agent.say(&numbered_lines("A long story", 800)).await;
        }
        test_agent.agent.compact(None).await.unwrap();
        test_agent.say("Look.").await;
        assert_nothing_was_dropped(&test_agent, "a compaction");
    }
}

#[tokio::test]
async fn layouts_that_change_their_beginning_send_no_reasoning_back() {
    for layout in LayoutName::ALL {
        let test_agent = thinking_agent("claude-opus-5-5", layout).await;
        for _ in 0..3 {
            test_agent.say("Look.").await;
            test_agent.pass_minutes(1);
            assert_nothing_was_dropped(&test_agent, layout.as_str());
        }
    }
}

#[tokio::test]
async fn a_change_of_effort_loses_neither_reasoning_nor_the_cache() {
    let test_agent = thinking_agent("claude-opus-5-5", LayoutName::Strata).await;
    test_agent.say("Look.").await;
    test_agent.agent.select_thinking(ThinkingSetting::Level(Effort::Max)).await.unwrap();
    test_agent.say("Look.").await;
    assert!(test_agent.last_sent().body.contains(r#""output_config":{"effort":"max"}"#));
    assert_nothing_was_dropped(&test_agent, "a change of effort");
    assert_eq!(reasoning_sent(&test_agent), 3);
    assert!(test_agent.losses().is_empty(), "{:?}", test_agent.losses());
}

#[tokio::test]
async fn a_session_opened_again_sends_the_same_reasoning_back() {
    let test_agent = thinking_agent("claude-sonnet-5-5", LayoutName::Strata).await;
    test_agent.say("Look.").await;
    let test_agent = test_agent.resume();
    test_agent.say("Look.").await;
    assert_nothing_was_dropped(&test_agent, "a resumed session");
    assert_eq!(reasoning_sent(&test_agent), 3);
}

/// An earlier process folded and left reasoning out: a later one must neither send that again nor take
/// the cache for lost, which would be a reason to fold once more.
#[tokio::test]
async fn a_session_opened_again_after_a_fold_reads_its_cache() {
    for model in BOUND_MODELS {
        let test_agent = thinking_agent(model, LayoutName::Strata).await;
        test_agent.say("Look.").await;
        test_agent.set_item("file:a.rs", &numbered_lines("gamma", 400));
        test_agent.say("It changed.").await;
        test_agent.pass_minutes(20);
        test_agent.say("A fold that is free.").await;
        assert_eq!(reasoning_sent(&test_agent), 0, "{model}: the fold left all of it out");
        test_agent.set_item("file:a.rs", &numbered_lines("delta", 400));
        test_agent.say("Look.").await;
        let sent_before = reasoning_sent(&test_agent);
        assert!(sent_before > 0, "{model}: reasoning since the fold goes back");
        let test_agent = test_agent.resume();
        test_agent.say("Look.").await;
        assert_nothing_was_dropped(&test_agent, "a resumed session");
        assert!(test_agent.losses().is_empty(), "{model}: {:?}", test_agent.losses());
        assert_eq!(
            reasoning_sent(&test_agent),
            sent_before + 2,
            "{model}: what was sent before, and two answers"
        );
    }
}
