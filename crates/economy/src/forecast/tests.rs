//! Forecasts, compared with what the provider then bills.

use hardpan_prompt::{ItemCopy, ItemKind, Origin, Region, Text, Thinking};

use super::*;
use crate::test_session::{TestConversation, TestSession, catalogue_entry, item, long_text};
use crate::verdict::Cause;

fn warm_conversation(session: &mut TestSession, base_place: Region) -> TestConversation {
    let mut conversation = TestConversation { base_place, ..TestConversation::new() };
    conversation.user("m1", "Hello!");
    session.next(&mut conversation);
    conversation.assistant("m2", &long_text("m2", 900)).user("m3", &long_text("m3", 600));
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
    conversation
}

fn forecast_for(session: &TestSession, act: PlannedAction<'_>) -> CostForecast {
    forecast_cost(&session.monitor, act, &session.model, &session.profile, Moment(session.now + 60_000))
}

/// Foresees an act, does it, and compares: tokens and dollars within 5%.
fn holds(
    act: PlannedAction<'_>,
    place: Region,
    change: impl FnOnce(&mut TestSession, &mut TestConversation),
) -> CostForecast {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session, place);
    let forecast = forecast_for(&session, act);
    change(&mut session, &mut conversation);
    conversation.assistant("m4", "Yes.").user("m5", "Go on.");
    let verdict = session.next(&mut conversation);
    let (expected, lost) = (forecast.tokens_written_again as f64, verdict.lost_tokens as f64);
    assert!(
        (expected - lost).abs() <= 0.05 * lost + 30.0,
        "{} against {}",
        forecast.sentence,
        verdict.sentence()
    );
    assert!((forecast.dollars_now - verdict.lost_dollars).abs() <= 0.05 * verdict.lost_dollars + 1e-4);
    forecast
}

fn expires_in(forecast: &CostForecast) -> bool {
    matches!(forecast.free_at, Some(FreeWhen::AtExpiry(_)))
}

#[test]
fn settings_tools_and_agents_cost_what_they_are_said_to() {
    let thinking = holds(PlannedAction::Thinking, Region::Base, |_, conversation| {
        conversation.thinking = Thinking::Budget(2000);
    });
    assert!(thinking.tokens_written_again > 5000 && expires_in(&thinking));
    let tool = holds(PlannedAction::ToggleTool("bash"), Region::Base, |_, conversation| {
        drop(conversation.tools.pop());
    });
    assert!(tool.tokens_written_again > 8000);
    assert_eq!(tool.free_at, Some(FreeWhen::AtNextFold));
    let sentence = "; free at the next fold.";
    assert!(tool.sentence.starts_with("Switching the tool bash now means writing 8,"), "{}", tool.sentence);
    assert!(tool.sentence.ends_with(sentence), "{}", tool.sentence);
}

#[test]
fn another_agent_loses_what_follows_the_tools() {
    let mut session = TestSession::anthropic();
    warm_conversation(&mut session, Region::Base);
    let agent = forecast_for(&session, PlannedAction::SwitchAgent);
    // No breakpoint stands after the tools, so all of it.
    assert_eq!(agent.tokens_written_again, session.monitor.cached_tokens());
    assert!(expires_in(&agent));
}

#[test]
fn another_model_writes_at_its_own_price() {
    let mut session = TestSession::anthropic();
    warm_conversation(&mut session, Region::Base);
    let (model, profile) = catalogue_entry("anthropic", "claude-opus-5");
    let forecast = forecast_for(&session, PlannedAction::SwitchModel { model: &model, profile: &profile });
    let cached = session.monitor.cached_tokens();
    assert_eq!(forecast.tokens_written_again, cached);
    let expected = cached as f64 * (Prices::for_model(&model, &profile, cached).write - 0.2) / 1e6;
    assert!((forecast.dollars_now - expected).abs() < 1e-9);
    assert!(forecast.sentence.starts_with("Switching to anthropic/claude-opus-5 now means writing"));
    let (model, profile) = catalogue_entry("anthropic", "claude-sonnet-5");
    let same = forecast_for(&session, PlannedAction::SwitchModel { model: &model, profile: &profile });
    assert_eq!((same.tokens_written_again, same.free_at), (0, Some(FreeWhen::Now)));
}

#[test]
fn pruning_a_message_loses_what_follows_it_until_the_next_fold() {
    let forecast =
        holds(PlannedAction::Prune("m2"), Region::Base, |_, conversation| drop(conversation.log.remove(1)));
    assert_eq!(forecast.free_at, Some(FreeWhen::AtNextFold));
    assert!((550..700).contains(&forecast.tokens_written_again), "{}", forecast.sentence);
    let item = holds(PlannedAction::Prune("file:a.rs"), Region::Base, |_, conversation| {
        drop(conversation.base.remove(0));
    });
    assert!((4400..4800).contains(&item.tokens_written_again), "{}", item.sentence);
}

#[test]
fn closing_an_item_is_told_in_strata_and_loses_what_follows_in_panels() {
    let strata = holds(PlannedAction::Close("file:a.rs"), Region::Base, |_, conversation| {
        let origin = Origin::item(ItemKind::File, &"file:a.rs".into(), ItemCopy::Stub);
        let closed = hardpan_prompt::Block::text(Region::Log, Text::new("a.rs was closed."), origin);
        conversation.log.push(hardpan_prompt::PromptMessage::new(hardpan_prompt::Role::User, vec![closed]));
    });
    assert_eq!((strata.tokens_written_again, strata.free_at), (0, Some(FreeWhen::Now)));
    assert_eq!(strata.sentence, "Closing file:a.rs now costs nothing.");
    let panels = holds(PlannedAction::Close("file:a.rs"), Region::Panel, |_, conversation| {
        drop(conversation.base.remove(0));
    });
    assert!(panels.tokens_written_again > 4000 && expires_in(&panels));
    let mut session = TestSession::anthropic();
    warm_conversation(&mut session, Region::Base);
    assert_eq!(forecast_for(&session, PlannedAction::Pin("file:a.rs")).dollars_now, 0.0);
    assert_eq!(forecast_for(&session, PlannedAction::Close("file:none.rs")).dollars_now, 0.0);
    assert_eq!(
        forecast_for(&session, PlannedAction::AppendToolChange("bash")).sentence,
        "Switching the tool bash now costs nothing."
    );
}

#[test]
fn opening_an_item_is_paid_once_and_read_from_then_on() {
    let mut session = TestSession::anthropic();
    warm_conversation(&mut session, Region::Base);
    let strata = forecast_for(&session, PlannedAction::Open { tokens: 2000 });
    assert_eq!(strata.tokens_written_again, 0);
    let expected = "Opening it adds 2,000 tokens: $0.0050 once, then $0.0004 with each request.";
    assert_eq!(strata.sentence, expected);
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session, Region::Panel);
    let panels = forecast_for(&session, PlannedAction::Open { tokens: 2000 });
    conversation.base.push(item("file:c.rs", &long_text("c", 2000)));
    let verdict = session.next(&mut conversation);
    assert!(panels.tokens_written_again > 1000 && verdict.lost_tokens >= panels.tokens_written_again);
}

#[test]
fn once_the_cache_has_expired_everything_is_free() {
    let mut session = TestSession::anthropic();
    warm_conversation(&mut session, Region::Base);
    let waiting = forecast_for(&session, PlannedAction::Wait);
    assert_eq!((waiting.tokens_written_again, waiting.free_at), (session.monitor.cached_tokens(), None));
    assert!(waiting.sentence.starts_with("Letting the cache expire means writing"), "{}", waiting.sentence);
    assert_eq!(session.monitor.expires_at(), Some(Moment(session.now + 300_000)));
    session.wait(300);
    for act in [
        PlannedAction::Thinking,
        PlannedAction::ToggleTool("read"),
        PlannedAction::SwitchAgent,
        PlannedAction::Prune("m1"),
    ] {
        let forecast = forecast_for(&session, act);
        assert_eq!((forecast.tokens_written_again, forecast.free_at), (0, Some(FreeWhen::Now)));
        assert!(forecast.sentence.ends_with("costs nothing: nothing is cached."), "{}", forecast.sentence);
    }
}

#[test]
fn an_automatic_cache_keeps_what_comes_before_the_change() {
    let mut session = TestSession::new("openai", "gpt-5.4");
    let mut conversation = warm_conversation(&mut session, Region::Base);
    assert_eq!(forecast_for(&session, PlannedAction::Thinking).tokens_written_again, 0);
    let last = forecast_for(&session, PlannedAction::ToggleTool("bash")).tokens_written_again;
    let agent = forecast_for(&session, PlannedAction::SwitchAgent).tokens_written_again;
    assert!(agent <= last && last < session.monitor.cached_tokens() + 1);
    let message = forecast_for(&session, PlannedAction::Prune("m2"));
    conversation.log.remove(1);
    let verdict = session.next(&mut conversation);
    let off = message.tokens_written_again.abs_diff(verdict.lost_tokens);
    assert!(verdict.is_loss() && off < 300, "{} against {}", message.sentence, verdict.sentence());
}

#[test]
fn a_conversation_that_has_not_begun_costs_nothing_to_change() {
    let session = TestSession::anthropic();
    let forecast = forecast_for(&session, PlannedAction::SwitchAgent);
    assert_eq!((forecast.dollars_now, forecast.free_at), (0.0, Some(FreeWhen::Now)));
    let written = serde_json::to_string(&forecast).unwrap();
    assert_eq!(serde_json::from_str::<CostForecast>(&written).unwrap(), forecast);
}
