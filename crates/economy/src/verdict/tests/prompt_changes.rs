use std::sync::Arc;

use hardpan_prompt::{
    Block, Content, ItemCopy, Image, ItemKind, MediaType, Origin, Region, ResultPart, Role, Segment, Text, Thinking,
    PromptMessage,
};

use super::*;
use crate::ledger::Continuity;
use crate::test_session::{is_from, item, long, said};

fn names(names: &[&str]) -> Vec<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn origin(verdict: &Verdict) -> Option<PieceOrigin> {
    verdict.first_difference.as_ref().and_then(|spot| spot.origin.clone())
}

#[test]
fn other_tools_lose_everything_and_are_named() {
    let removed = after(|_, talk| drop(talk.tools.pop()));
    let none = || names(&[]);
    let cause = Cause::ToolsChanged { added: none(), removed: names(&["bash"]), changed: none() };
    assert_eq!((removed.cause, removed.blame, removed.read), (cause, Blame::Us, 0));
    assert!(
        removed.lost_tokens > 8000 && removed.lost_tokens < removed.expected_read + 1,
        "{}",
        removed.lost_tokens
    );
    // Sonnet 5: 2.5 dollars per million for writing, 0.2 for reading.
    assert!((removed.lost_dollars - removed.lost_tokens as f64 * 2.3 / 1e6).abs() < 1e-9);
    assert_eq!(removed.first_difference.unwrap().address, "system[0]");

    let added = after(|_, talk| {
        let mut tool = talk.tools[0].clone();
        tool.tool.name = "grep".into();
        talk.tools.push(tool);
    });
    assert_eq!(
        added.cause,
        Cause::ToolsChanged { added: names(&["grep"]), removed: none(), changed: none() }
    );
    let changed = after(|_, talk| talk.tools[1].tool.description = "Other.".into());
    assert_eq!(
        changed.cause,
        Cause::ToolsChanged { added: none(), removed: none(), changed: names(&["write"]) }
    );
    assert_eq!(changed.first_difference.as_ref().unwrap().address, "tools[1]");
    let reordered = after(|_, talk| talk.tools.swap(0, 2));
    assert_eq!(reordered.cause, Cause::ToolsChanged { added: none(), removed: none(), changed: none() });
    assert!(reordered.sentence().contains("in another order"));
}

#[test]
fn another_system_prompt_is_named_by_its_segment() {
    let verdict = after(|_, talk| talk.system[1].text = Text::new(long("other project", 800)));
    assert_eq!(
        (verdict.cause.clone(), verdict.blame),
        (Cause::SystemChanged("project files".into()), Blame::Us)
    );
    assert_eq!(origin(&verdict), Some(PieceOrigin::Rule("project files".into())));
    assert_eq!(verdict.read, 0); // no breakpoint stands between tools and system
    assert!(
        verdict.sentence().ends_with("the system prompt changed (project files). Ours."),
        "{}",
        verdict.sentence()
    );
}

#[test]
fn an_item_that_changed_before_what_was_cached_is_named() {
    let in_panels = |change: fn(&mut TestConversation)| {
        let mut trial = TestSession::anthropic();
        let mut talk = TestConversation { base_place: Region::Panel, ..TestConversation::new() };
        talk.user("m1", "Hello!");
        trial.next(&mut talk);
        talk.assistant("m2", &long("m2", 900)).user("m3", "Go on.");
        assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
        change(&mut talk);
        talk.assistant("m4", "Yes.").user("m5", "And now?");
        trial.next(&mut talk)
    };
    let cause = |key: &str, how| Cause::ItemChanged { key: key.into(), how };
    let changed = in_panels(|talk| talk.base[1] = item("file:b.rs", &long("b, edited", 3000)));
    assert_eq!((changed.cause.clone(), changed.blame), (cause("file:b.rs", ContentChange::Changed), Blame::Us));
    // What is paid again is a.rs and the conversation, not the new text.
    assert!((2900..3200).contains(&changed.lost_tokens), "{}", changed.lost_tokens);
    let added = in_panels(|talk| talk.base.insert(1, item("file:ab.rs", &long("ab", 100))));
    assert_eq!(added.cause, cause("file:ab.rs", ContentChange::Added));
    let removed = in_panels(|talk| drop(talk.base.remove(0)));
    assert_eq!(removed.cause, cause("file:a.rs", ContentChange::Removed));
    let moved = in_panels(|talk| talk.base.reverse());
    assert_eq!(moved.cause, cause("file:b.rs", ContentChange::Moved));
}

#[test]
fn a_message_that_changed_or_went_is_named() {
    let cause = |id: &str, how| Cause::MessageChanged { id: id.into(), how };
    let changed = after(|_, talk| talk.log[1].blocks[0] = said("m2", "Something else."));
    assert_eq!((changed.cause, changed.blame), (cause("m2", ContentChange::Changed), Blame::Us));
    assert!((400..700).contains(&changed.lost_tokens), "{}", changed.lost_tokens);
    assert_eq!(changed.first_difference.unwrap().address, "messages[4].content[0]");
    let removed = after(|_, talk| drop(talk.log.drain(1..3)));
    assert_eq!(removed.cause, cause("m2", ContentChange::Removed));
    let added = after(|_, talk| talk.log.insert(1, PromptMessage::new(Role::User, vec![said("m9", "Psst.")])));
    assert_eq!(added.cause, cause("m9", ContentChange::Added));
}

#[test]
fn a_fold_is_recognised_by_a_base_laid_anew() {
    let verdict = after(|_, talk| {
        let edited = item("file:a.rs", &long("a, edited", 2000));
        let place = talk.base.iter().position(|segment| is_from(segment, "file:a.rs")).unwrap();
        talk.base[place] = edited;
    });
    assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::Folded, Blame::Us));
    assert_eq!(origin(&verdict), Some(PieceOrigin::Item("file:a.rs".into())));
    assert!(verdict.sentence().contains("a fold laid the items anew, from file:a.rs on. Ours."));
    // Up to the end of the system prompt all was read; b.rs and the conversation were written again.
    assert!(verdict.read > 2000 && (3700..4200).contains(&verdict.lost_tokens), "{verdict:?}");
}

#[test]
fn a_fold_that_only_drops_an_update_is_one_too() {
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial);
    let told = Origin::item(ItemKind::File, &Arc::from("file:c.rs"), ItemCopy::Current);
    let update = Block::text(Region::Log, Text::new(long("c", 300)), told);
    let turn = talk.log.len() - 1;
    talk.log[turn].blocks.insert(0, update);
    talk.assistant("m8", &long("m8", 2000)).user("m9", "Next.");
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
    talk.log[turn].blocks.remove(0);
    talk.assistant("m10", "Good.").user("m11", "Next.");
    let verdict = trial.next(&mut talk);
    assert_eq!(verdict.cause, Cause::Folded);
    assert_eq!(origin(&verdict), Some(PieceOrigin::Message("m7".into())));
}

#[test]
fn a_stub_in_place_of_a_result_is_a_fold() {
    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial);
    talk.tool_round("m8", 1).assistant("m9", &long("m9", 2000)).user("m10", "Next.");
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
    for block in talk.log.iter_mut().flat_map(|turn| &mut turn.blocks) {
        if let Content::Result(result) = block.content.edit() {
            let stub = Origin::item(ItemKind::History, &Arc::from("file:d.rs"), ItemCopy::Stub);
            result.parts = vec![ResultPart::Text(vec![Segment::new("See above.", stub)])];
        }
    }
    assert_eq!(trial.next(&mut talk).cause, Cause::Folded);
}

#[test]
fn a_compaction_is_recognised_by_a_new_first_message() {
    let verdict = after(|_, talk| {
        let kept = talk.log.split_off(4);
        talk.log.clear();
        talk.user("k1", "A summary of all that was said.").assistant("k2", "I see.");
        talk.log.extend(kept);
        talk.log.last_mut().unwrap().blocks.push(said("m7", &long("m7", 50)));
    });
    assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::Compacted, Blame::Us));
    assert!(verdict.read > 7000 && verdict.lost_tokens < 300, "{verdict:?}");
}

#[test]
fn a_first_message_said_anew_is_no_compaction() {
    let verdict = after(|_, talk| {
        talk.log.clear();
        talk.user("n1", "Let me ask otherwise.");
        talk.base.pop();
    });
    assert_ne!(verdict.cause, Cause::Compacted);
}

#[test]
fn the_first_image_loses_the_messages() {
    let image = || {
        let image = Image { media_type: MediaType::Png, data: "".into(), width: Some(28), height: Some(28) };
        Block::new(Region::Log, Content::Image(image, Origin::message(&"m7".into())))
    };
    let verdict = after(|_, talk| talk.log.last_mut().unwrap().blocks.push(image()));
    assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::ImageAdded, Blame::Person));
    assert!(verdict.read > 2000 && verdict.lost_tokens > 5000, "{verdict:?}");

    let mut trial = TestSession::anthropic();
    let mut talk = warm(&mut trial);
    talk.log.last_mut().unwrap().blocks.push(image());
    trial.next(&mut talk);
    talk.assistant("m8", "A picture.").user("m9", "Again.");
    talk.log.last_mut().unwrap().blocks.push(image());
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
    talk.log
        .iter_mut()
        .for_each(|turn| turn.blocks.retain(|block| !matches!(*block.content, Content::Image(..))));
    let gone = trial.next(&mut talk);
    assert_eq!((gone.cause, gone.blame), (Cause::ImageRemoved, Blame::Us));
}

#[test]
fn other_settings_lose_the_messages_where_the_provider_says_so() {
    let thinking = after(|_, talk| talk.thinking = Thinking::Budget(2000));
    assert_eq!((thinking.cause.clone(), thinking.blame), (Cause::ThinkingChanged, Blame::Person));
    assert!(thinking.read > 2000 && thinking.lost_tokens > 5000, "{thinking:?}");
    let effort = after(|trial, _| trial.settings.effort = Some("high".into()));
    assert_eq!(effort.cause, Cause::EffortChanged);
    let choice = after(|trial, _| trial.settings.tool_choice = Some("none".into()));
    assert_eq!(choice.cause, Cause::SettingChanged("tool choice".into()));
    let citations = after(|trial, _| trial.settings.citations = true);
    assert_eq!((citations.cause, citations.read), (Cause::SettingChanged("citations".into()), 0));

    let mut trial = TestSession::new("openai", "gpt-5.5");
    let mut talk = warm(&mut trial);
    talk.thinking = Thinking::Budget(2000);
    trial.settings.effort = Some("high".into());
    assert_eq!(trial.next(&mut talk).cause, Cause::AsExpected);
}

#[test]
fn another_model_or_provider_has_another_cache() {
    let model = after(|trial, _| trial.switch("anthropic", "claude-opus-5"));
    let cause = Cause::ModelChanged { from: "claude-sonnet-5".into(), to: "claude-opus-5".into() };
    assert_eq!((model.cause.clone(), model.blame, model.read), (cause, Blame::Person, 0));
    assert!(model.lost_tokens > 8000 && model.lost_dollars > 0.0);
    let provider = after(|trial, _| trial.switch("openai", "gpt-5.5"));
    let cause = Cause::ProviderChanged { from: "anthropic".into(), to: "openai".into() };
    assert_eq!((provider.cause, provider.blame), (cause, Blame::Person));
}

#[test]
fn a_resumed_session_that_reads_otherwise_is_named_as_that() {
    let same = after(|trial, _| trial.continuity = Continuity::Resumed);
    assert_eq!(same.cause, Cause::AsExpected);
    let other = after(|trial, talk| {
        trial.continuity = Continuity::Resumed;
        talk.system[0].text = Text::new(long("newer agent", 1200));
    });
    assert_eq!((other.cause.clone(), other.blame), (Cause::Resumed, Blame::Us));
    assert!(other.sentence().contains("resumed by another process, from agent on"), "{}", other.sentence());
    let elsewhere = after(|trial, _| {
        trial.continuity = Continuity::Resumed;
        trial.cache = Default::default();
    });
    assert_eq!((elsewhere.cause, elsewhere.blame), (Cause::Resumed, Blame::Provider));
    let model = after(|trial, _| {
        trial.continuity = Continuity::Resumed;
        trial.switch("anthropic", "claude-opus-5");
    });
    assert!(matches!(model.cause, Cause::ModelChanged { .. }));
}

#[test]
fn a_resumed_watch_still_names_the_cause() {
    let verdict = after(|trial, talk| {
        let written = serde_json::to_string(&trial.monitor).unwrap();
        assert!(written.len() < 3000, "{}", written.len());
        trial.monitor = serde_json::from_str(&written).unwrap();
        talk.tools.pop();
    });
    assert!(matches!(verdict.cause, Cause::ToolsChanged { .. }));
}
