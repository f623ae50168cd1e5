//! What is foreseen, against what the provider then bills.

use hardpan_prompt::{ItemCopy, ItemKind, Origin, Region, Text, Thinking};

use super::*;
use crate::test_session::{TestConversation, TestSession, item, known, long};
use crate::verdict::Cause;

fn warm(trial: &mut TestSession, base_place: Region) -> TestConversation {
    let mut talk = TestConversation { base_place, ..TestConversation::new() };
    talk.user("m1", "Hello!");
    trial.next(&mut talk);
    talk.assistant("m2", &long("m2", 900)).user("m3", &long("m3", 600));
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
    talk
}

fn foreseen(trial: &TestSession, act: PlannedAction<'_>) -> CostForecast {
    forecast_cost(&trial.monitor, act, &trial.model, &trial.profile, Moment(trial.now + 60_000))
}

/// Foresees an act, does it, and compares: tokens and dollars within 5%.
fn holds(act: PlannedAction<'_>, place: Region, change: impl FnOnce(&mut TestSession, &mut TestConversation)) -> CostForecast {
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial, place);
    let foresight = foreseen(&trial, act);
    change(&mut trial, &mut talk);
    talk.assistant("m4", "Yes.").user("m5", "Go on.");
    let verdict = trial.next(&mut talk);
    let (foreseen, lost) = (foresight.tokens_written_again as f64, verdict.lost_tokens as f64);
    assert!(
        (foreseen - lost).abs() <= 0.05 * lost + 30.0,
        "{} against {}",
        foresight.sentence,
        verdict.sentence()
    );
    assert!((foresight.dollars_now - verdict.lost_dollars).abs() <= 0.05 * verdict.lost_dollars + 1e-4);
    foresight
}

fn expires_in(foresight: &CostForecast) -> bool {
    matches!(foresight.free_at, Some(FreeWhen::AtExpiry(_)))
}

#[test]
fn settings_tools_and_agents_cost_what_they_are_said_to() {
    let thinking = holds(PlannedAction::Thinking, Region::Base, |_, talk| talk.thinking = Thinking::Budget(2000));
    assert!(thinking.tokens_written_again > 5000 && expires_in(&thinking));
    let tool = holds(PlannedAction::ToggleTool("bash"), Region::Base, |_, talk| drop(talk.tools.pop()));
    assert!(tool.tokens_written_again > 8000 && expires_in(&tool));
    let sentence = "; free once the cache expires, in 4 minutes.";
    assert!(tool.sentence.starts_with("Switching the tool bash now means writing 8,"), "{}", tool.sentence);
    assert!(tool.sentence.ends_with(sentence), "{}", tool.sentence);
}

#[test]
fn another_agent_loses_what_follows_the_tools() {
    let mut trial = TestSession::anthropic();
    warm(&mut trial, Region::Base);
    let agent = foreseen(&trial, PlannedAction::SwitchAgent);
    // No breakpoint stands after the tools, so all of it.
    assert_eq!(agent.tokens_written_again, trial.monitor.cached_tokens());
    assert!(expires_in(&agent));
}

#[test]
fn another_model_writes_at_its_own_price() {
    let mut trial = TestSession::anthropic();
    warm(&mut trial, Region::Base);
    let (model, profile) = known("anthropic", "claude-opus-5");
    let foresight = foreseen(&trial, PlannedAction::SwitchModel { model: &model, profile: &profile });
    let cached = trial.monitor.cached_tokens();
    assert_eq!(foresight.tokens_written_again, cached);
    let expected = cached as f64 * (Prices::for_model(&model, &profile, cached).write - 0.2) / 1e6;
    assert!((foresight.dollars_now - expected).abs() < 1e-9);
    assert!(foresight.sentence.starts_with("Switching to anthropic/claude-opus-5 now means writing"));
    let (model, profile) = known("anthropic", "claude-sonnet-5");
    let same = foreseen(&trial, PlannedAction::SwitchModel { model: &model, profile: &profile });
    assert_eq!((same.tokens_written_again, same.free_at), (0, Some(FreeWhen::Now)));
}

#[test]
fn pruning_a_message_loses_what_follows_it_until_the_next_fold() {
    let foresight = holds(PlannedAction::Prune("m2"), Region::Base, |_, talk| drop(talk.log.remove(1)));
    assert_eq!(foresight.free_at, Some(FreeWhen::AtNextFold));
    assert!((550..700).contains(&foresight.tokens_written_again), "{}", foresight.sentence);
    let item = holds(PlannedAction::Prune("file:a.rs"), Region::Base, |_, talk| drop(talk.base.remove(0)));
    assert!((4400..4800).contains(&item.tokens_written_again), "{}", item.sentence);
}

#[test]
fn closing_an_item_is_told_in_strata_and_loses_what_follows_in_panels() {
    let strata = holds(PlannedAction::Close("file:a.rs"), Region::Base, |_, talk| {
        let origin = Origin::item(ItemKind::File, &"file:a.rs".into(), ItemCopy::Stub);
        let closed = hardpan_prompt::Block::text(Region::Log, Text::new("a.rs was closed."), origin);
        talk.log.push(hardpan_prompt::PromptMessage::new(hardpan_prompt::Role::User, vec![closed]));
    });
    assert_eq!((strata.tokens_written_again, strata.free_at), (0, Some(FreeWhen::Now)));
    assert_eq!(strata.sentence, "Closing file:a.rs now costs nothing.");
    let panels = holds(PlannedAction::Close("file:a.rs"), Region::Panel, |_, talk| drop(talk.base.remove(0)));
    assert!(panels.tokens_written_again > 4000 && expires_in(&panels));
    let mut trial = TestSession::anthropic();
    warm(&mut trial, Region::Base);
    assert_eq!(foreseen(&trial, PlannedAction::Pin("file:a.rs")).dollars_now, 0.0);
    assert_eq!(foreseen(&trial, PlannedAction::Close("file:none.rs")).dollars_now, 0.0);
}

#[test]
fn opening_an_item_is_paid_once_and_read_from_then_on() {
    let mut trial = TestSession::anthropic();
    warm(&mut trial, Region::Base);
    let strata = foreseen(&trial, PlannedAction::Open { tokens: 2000 });
    assert_eq!(strata.tokens_written_again, 0);
    let expected = "Opening it adds 2,000 tokens: $0.0050 once, then $0.0004 with each request.";
    assert_eq!(strata.sentence, expected);
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial, Region::Panel);
    let panels = foreseen(&trial, PlannedAction::Open { tokens: 2000 });
    talk.base.push(item("file:c.rs", &long("c", 2000)));
    let verdict = trial.next(&mut talk);
    assert!(panels.tokens_written_again > 1000 && verdict.lost_tokens >= panels.tokens_written_again);
}

#[test]
fn once_the_cache_has_expired_everything_is_free() {
    let mut trial = TestSession::anthropic();
    warm(&mut trial, Region::Base);
    let waiting = foreseen(&trial, PlannedAction::Wait);
    assert_eq!((waiting.tokens_written_again, waiting.free_at), (trial.monitor.cached_tokens(), None));
    assert!(waiting.sentence.starts_with("Letting the cache expire means writing"), "{}", waiting.sentence);
    assert_eq!(trial.monitor.expires_at(), Some(Moment(trial.now + 300_000)));
    trial.wait(300);
    for act in [PlannedAction::Thinking, PlannedAction::ToggleTool("read"), PlannedAction::SwitchAgent, PlannedAction::Prune("m1")] {
        let foresight = foreseen(&trial, act);
        assert_eq!((foresight.tokens_written_again, foresight.free_at), (0, Some(FreeWhen::Now)));
        assert!(foresight.sentence.ends_with("costs nothing: nothing is cached."), "{}", foresight.sentence);
    }
}

#[test]
fn an_automatic_cache_keeps_what_comes_before_the_change() {
    let mut trial = TestSession::new("openai", "gpt-5.5");
    let mut talk = warm(&mut trial, Region::Base);
    assert_eq!(foreseen(&trial, PlannedAction::Thinking).tokens_written_again, 0);
    let last = foreseen(&trial, PlannedAction::ToggleTool("bash")).tokens_written_again;
    let agent = foreseen(&trial, PlannedAction::SwitchAgent).tokens_written_again;
    assert!(agent <= last && last < trial.monitor.cached_tokens() + 1);
    let message = foreseen(&trial, PlannedAction::Prune("m2"));
    talk.log.remove(1);
    let verdict = trial.next(&mut talk);
    let off = message.tokens_written_again.abs_diff(verdict.lost_tokens);
    assert!(verdict.is_loss() && off < 300, "{} against {}", message.sentence, verdict.sentence());
}

#[test]
fn a_conversation_that_has_not_begun_costs_nothing_to_change() {
    let trial = TestSession::anthropic();
    let foresight = foreseen(&trial, PlannedAction::SwitchAgent);
    assert_eq!((foresight.dollars_now, foresight.free_at), (0.0, Some(FreeWhen::Now)));
    let written = serde_json::to_string(&foresight).unwrap();
    assert_eq!(serde_json::from_str::<CostForecast>(&written).unwrap(), foresight);
}
