//! What is foreseen, against what the provider then bills.

use hardpan_prompt::{Copy, Kind, Origin, Place, Text, Thinking};

use super::*;
use crate::trial::{Talk, Trial, item, known, long};
use crate::verdict::Cause;

fn warm(trial: &mut Trial, base_place: Place) -> Talk {
    let mut talk = Talk { base_place, ..Talk::new() };
    talk.user("m1", "Hello!");
    trial.next(&mut talk);
    talk.assistant("m2", &long("m2", 900)).user("m3", &long("m3", 600));
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
    talk
}

fn foreseen(trial: &Trial, act: Act<'_>) -> Foresight {
    foresee(&trial.watch, act, &trial.model, &trial.wire, Moment(trial.now + 60_000))
}

/// Foresees an act, does it, and compares: tokens and dollars within 5%.
fn holds(act: Act<'_>, place: Place, change: impl FnOnce(&mut Trial, &mut Talk)) -> Foresight {
    let mut trial = Trial::anthropic();
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

fn expires_in(foresight: &Foresight) -> bool {
    matches!(foresight.free_at, Some(Free::AtExpiry(_)))
}

#[test]
fn settings_tools_and_agents_cost_what_they_are_said_to() {
    let thinking = holds(Act::Thinking, Place::Base, |_, talk| talk.thinking = Thinking::Budget(2000));
    assert!(thinking.tokens_written_again > 5000 && expires_in(&thinking));
    let tool = holds(Act::ToggleTool("bash"), Place::Base, |_, talk| drop(talk.tools.pop()));
    assert!(tool.tokens_written_again > 8000 && expires_in(&tool));
    let sentence = "; free once the cache expires, in 4 minutes.";
    assert!(tool.sentence.starts_with("Switching the tool bash now means writing 8,"), "{}", tool.sentence);
    assert!(tool.sentence.ends_with(sentence), "{}", tool.sentence);
}

#[test]
fn another_agent_loses_what_follows_the_tools() {
    let mut trial = Trial::anthropic();
    warm(&mut trial, Place::Base);
    let agent = foreseen(&trial, Act::SwitchAgent);
    // No breakpoint stands after the tools, so all of it.
    assert_eq!(agent.tokens_written_again, trial.watch.cached_tokens());
    assert!(expires_in(&agent));
}

#[test]
fn another_model_writes_at_its_own_price() {
    let mut trial = Trial::anthropic();
    warm(&mut trial, Place::Base);
    let (model, wire) = known("anthropic", "claude-opus-5");
    let foresight = foreseen(&trial, Act::SwitchModel { model: &model, wire: &wire });
    let cached = trial.watch.cached_tokens();
    assert_eq!(foresight.tokens_written_again, cached);
    let expected = cached as f64 * (Prices::of(&model, &wire, cached).write - 0.2) / 1e6;
    assert!((foresight.dollars_now - expected).abs() < 1e-9);
    assert!(foresight.sentence.starts_with("Switching to anthropic/claude-opus-5 now means writing"));
    let (model, wire) = known("anthropic", "claude-sonnet-5");
    let same = foreseen(&trial, Act::SwitchModel { model: &model, wire: &wire });
    assert_eq!((same.tokens_written_again, same.free_at), (0, Some(Free::Now)));
}

#[test]
fn pruning_a_message_loses_what_follows_it_until_the_next_fold() {
    let foresight = holds(Act::Prune("m2"), Place::Base, |_, talk| drop(talk.log.remove(1)));
    assert_eq!(foresight.free_at, Some(Free::AtNextFold));
    assert!((550..700).contains(&foresight.tokens_written_again), "{}", foresight.sentence);
    let item = holds(Act::Prune("file:a.rs"), Place::Base, |_, talk| drop(talk.base.remove(0)));
    assert!((4400..4800).contains(&item.tokens_written_again), "{}", item.sentence);
}

#[test]
fn closing_an_item_is_told_in_strata_and_loses_what_follows_in_panels() {
    let strata = holds(Act::Close("file:a.rs"), Place::Base, |_, talk| {
        let origin = Origin::item(Kind::File, &"file:a.rs".into(), Copy::Stub);
        let closed = hardpan_prompt::Block::text(Place::Log, Text::new("a.rs was closed."), origin);
        talk.log.push(hardpan_prompt::Turn::new(hardpan_prompt::Role::User, vec![closed]));
    });
    assert_eq!((strata.tokens_written_again, strata.free_at), (0, Some(Free::Now)));
    assert_eq!(strata.sentence, "Closing file:a.rs now costs nothing.");
    let panels = holds(Act::Close("file:a.rs"), Place::Panel, |_, talk| drop(talk.base.remove(0)));
    assert!(panels.tokens_written_again > 4000 && expires_in(&panels));
    let mut trial = Trial::anthropic();
    warm(&mut trial, Place::Base);
    assert_eq!(foreseen(&trial, Act::Pin("file:a.rs")).dollars_now, 0.0);
    assert_eq!(foreseen(&trial, Act::Close("file:none.rs")).dollars_now, 0.0);
}

#[test]
fn opening_an_item_is_paid_once_and_read_from_then_on() {
    let mut trial = Trial::anthropic();
    warm(&mut trial, Place::Base);
    let strata = foreseen(&trial, Act::Open { tokens: 2000 });
    assert_eq!(strata.tokens_written_again, 0);
    let expected = "Opening it adds 2,000 tokens: $0.0050 once, then $0.0004 with each request.";
    assert_eq!(strata.sentence, expected);
    let mut trial = Trial::anthropic();
    let mut talk = warm(&mut trial, Place::Panel);
    let panels = foreseen(&trial, Act::Open { tokens: 2000 });
    talk.base.push(item("file:c.rs", &long("c", 2000)));
    let verdict = trial.next(&mut talk);
    assert!(panels.tokens_written_again > 1000 && verdict.lost_tokens >= panels.tokens_written_again);
}

#[test]
fn once_the_cache_has_expired_everything_is_free() {
    let mut trial = Trial::anthropic();
    warm(&mut trial, Place::Base);
    let waiting = foreseen(&trial, Act::Wait);
    assert_eq!((waiting.tokens_written_again, waiting.free_at), (trial.watch.cached_tokens(), None));
    assert!(waiting.sentence.starts_with("Letting the cache expire means writing"), "{}", waiting.sentence);
    assert_eq!(trial.watch.expires(), Some(Moment(trial.now + 300_000)));
    trial.wait(300);
    for act in [Act::Thinking, Act::ToggleTool("read"), Act::SwitchAgent, Act::Prune("m1")] {
        let foresight = foreseen(&trial, act);
        assert_eq!((foresight.tokens_written_again, foresight.free_at), (0, Some(Free::Now)));
        assert!(foresight.sentence.ends_with("costs nothing: nothing is cached."), "{}", foresight.sentence);
    }
}

#[test]
fn an_automatic_cache_keeps_what_comes_before_the_change() {
    let mut trial = Trial::new("openai", "gpt-5.5");
    let mut talk = warm(&mut trial, Place::Base);
    assert_eq!(foreseen(&trial, Act::Thinking).tokens_written_again, 0);
    let last = foreseen(&trial, Act::ToggleTool("bash")).tokens_written_again;
    let agent = foreseen(&trial, Act::SwitchAgent).tokens_written_again;
    assert!(agent <= last && last < trial.watch.cached_tokens() + 1);
    let message = foreseen(&trial, Act::Prune("m2"));
    talk.log.remove(1);
    let verdict = trial.next(&mut talk);
    let off = message.tokens_written_again.abs_diff(verdict.lost_tokens);
    assert!(verdict.is_loss() && off < 300, "{} against {}", message.sentence, verdict.sentence());
}

#[test]
fn a_conversation_that_has_not_begun_costs_nothing_to_change() {
    let trial = Trial::anthropic();
    let foresight = foreseen(&trial, Act::SwitchAgent);
    assert_eq!((foresight.dollars_now, foresight.free_at), (0.0, Some(Free::Now)));
    let written = serde_json::to_string(&foresight).unwrap();
    assert_eq!(serde_json::from_str::<Foresight>(&written).unwrap(), foresight);
}
