use std::sync::Arc;

use hardpan_prompt::{
    Block, Content, Image, ItemCopy, ItemKind, MediaType, Origin, PromptMessage, Region, ResultPart, Role,
    Segment, Text, Thinking,
};

use super::*;
use crate::ledger::Continuity;
use crate::test_session::{is_from, item, long_text, message_block};

fn names(names: &[&str]) -> Vec<Arc<str>> {
    names.iter().map(|name| Arc::from(*name)).collect()
}

fn origin(verdict: &Verdict) -> Option<PieceOrigin> {
    verdict.first_difference.as_ref().and_then(|spot| spot.origin.clone())
}

#[test]
fn other_tools_lose_everything_and_are_named() {
    let removed = verdict_after(|_, conversation| drop(conversation.tools.pop()));
    let none = || names(&[]);
    let cause =
        Cause::ToolsChanged { added: none(), removed: names(&["bash"]), changed: none(), listed: none() };
    assert_eq!((removed.cause, removed.blame, removed.read), (cause, Blame::Us, 0));
    assert!(
        removed.lost_tokens > 8000 && removed.lost_tokens < removed.expected_read + 1,
        "{}",
        removed.lost_tokens
    );
    // Sonnet 5: 2.5 dollars per million for writing, 0.2 for reading.
    assert!((removed.lost_dollars - removed.lost_tokens as f64 * 2.3 / 1e6).abs() < 1e-9);
    assert_eq!(removed.first_difference.unwrap().address, "system[0]");

    let added = verdict_after(|_, conversation| {
        let mut tool = conversation.tools[0].clone();
        tool.tool.name = "grep".into();
        conversation.tools.push(tool);
    });
    assert_eq!(
        added.cause,
        Cause::ToolsChanged { added: names(&["grep"]), removed: none(), changed: none(), listed: none() }
    );
    let changed = verdict_after(|_, conversation| conversation.tools[1].tool.description = "Other.".into());
    assert_eq!(
        changed.cause,
        Cause::ToolsChanged { added: none(), removed: none(), changed: names(&["write"]), listed: none() }
    );
    assert_eq!(changed.first_difference.as_ref().unwrap().address, "tools[1]");
    let reordered = verdict_after(|_, conversation| conversation.tools.swap(0, 2));
    assert_eq!(
        reordered.cause,
        Cause::ToolsChanged { added: none(), removed: none(), changed: none(), listed: none() }
    );
    assert!(reordered.sentence().contains("in another order"));
}

#[test]
fn another_system_prompt_is_named_by_its_segment() {
    let verdict = verdict_after(|_, conversation| {
        conversation.system[1].text = Text::new(long_text("other project", 800));
    });
    assert_eq!(
        (verdict.cause.clone(), verdict.blame),
        (Cause::SystemChanged("project files".into()), Blame::Us)
    );
    assert_eq!(origin(&verdict), Some(PieceOrigin::Rule("project files".into())));
    assert_eq!(verdict.read, 0); // no breakpoint stands between tools and system
    assert!(
        verdict
            .sentence()
            .ends_with("the system prompt changed (project files). Hardpan could have avoided it."),
        "{}",
        verdict.sentence()
    );
}

#[test]
fn an_item_that_changed_before_what_was_cached_is_named() {
    let in_panels = |change: fn(&mut TestConversation)| {
        let mut session = TestSession::anthropic();
        let mut conversation = TestConversation { base_place: Region::Panel, ..TestConversation::new() };
        conversation.user("m1", "Hello!");
        session.next(&mut conversation);
        conversation.assistant("m2", &long_text("m2", 900)).user("m3", "Go on.");
        assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
        change(&mut conversation);
        conversation.assistant("m4", "Yes.").user("m5", "And now?");
        session.next(&mut conversation)
    };
    let cause = |key: &str, how| Cause::ItemChanged { key: key.into(), how };
    let changed =
        in_panels(|conversation| conversation.base[1] = item("file:b.rs", &long_text("b, edited", 3000)));
    assert_eq!(
        (changed.cause.clone(), changed.blame),
        (cause("file:b.rs", ContentChange::Changed), Blame::Us)
    );
    // What is paid again is a.rs and the conversation, not the new text.
    assert!((2900..3200).contains(&changed.lost_tokens), "{}", changed.lost_tokens);
    let added =
        in_panels(|conversation| conversation.base.insert(1, item("file:ab.rs", &long_text("ab", 100))));
    assert_eq!(added.cause, cause("file:ab.rs", ContentChange::Added));
    let removed = in_panels(|conversation| drop(conversation.base.remove(0)));
    assert_eq!(removed.cause, cause("file:a.rs", ContentChange::Removed));
    let moved = in_panels(|conversation| conversation.base.reverse());
    assert_eq!(moved.cause, cause("file:b.rs", ContentChange::Moved));
}

#[test]
fn a_message_that_changed_or_went_is_named() {
    let cause = |id: &str, how| Cause::MessageChanged { id: id.into(), how };
    let changed = verdict_after(|_, conversation| {
        conversation.log[1].blocks[0] = message_block("m2", "Something else.");
    });
    assert_eq!((changed.cause, changed.blame), (cause("m2", ContentChange::Changed), Blame::Us));
    assert!((400..700).contains(&changed.lost_tokens), "{}", changed.lost_tokens);
    assert_eq!(changed.first_difference.unwrap().address, "messages[4].content[0]");
    let removed = verdict_after(|_, conversation| drop(conversation.log.drain(1..3)));
    assert_eq!(removed.cause, cause("m2", ContentChange::Removed));
    let added = verdict_after(|_, conversation| {
        conversation.log.insert(1, PromptMessage::new(Role::User, vec![message_block("m9", "Psst.")]));
    });
    assert_eq!(added.cause, cause("m9", ContentChange::Added));
}

#[test]
fn a_fold_is_recognised_by_a_base_laid_anew() {
    let verdict = verdict_after(|_, conversation| {
        let edited = item("file:a.rs", &long_text("a, edited", 2000));
        let place = conversation.base.iter().position(|segment| is_from(segment, "file:a.rs")).unwrap();
        conversation.base[place] = edited;
    });
    assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::Folded, Blame::Us));
    assert_eq!(origin(&verdict), Some(PieceOrigin::Item("file:a.rs".into())));
    assert!(
        verdict
            .sentence()
            .contains("a fold laid the items anew, from file:a.rs on. Hardpan could have avoided it.")
    );
    // Up to the end of the system prompt all was read; b.rs and the conversation were written
    // again.
    assert!(verdict.read > 2000 && (3700..4200).contains(&verdict.lost_tokens), "{verdict:?}");
}

#[test]
fn a_fold_that_only_drops_an_update_is_one_too() {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    let told = Origin::item(ItemKind::File, &Arc::from("file:c.rs"), ItemCopy::Current);
    let update = Block::text(Region::Log, Text::new(long_text("c", 300)), told);
    let turn = conversation.log.len() - 1;
    conversation.log[turn].blocks.insert(0, update);
    conversation.assistant("m8", &long_text("m8", 2000)).user("m9", "Next.");
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
    conversation.log[turn].blocks.remove(0);
    conversation.assistant("m10", "Good.").user("m11", "Next.");
    let verdict = session.next(&mut conversation);
    assert_eq!(verdict.cause, Cause::Folded);
    assert_eq!(origin(&verdict), Some(PieceOrigin::Message("m7".into())));
}

#[test]
fn a_stub_in_place_of_a_result_is_a_fold() {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    conversation.tool_round("m8", 1).assistant("m9", &long_text("m9", 2000)).user("m10", "Next.");
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
    for block in conversation.log.iter_mut().flat_map(|turn| &mut turn.blocks) {
        if let Content::Result(result) = block.content.edit() {
            let stub = Origin::item(ItemKind::History, &Arc::from("file:d.rs"), ItemCopy::Stub);
            result.parts = vec![ResultPart::Text(vec![Segment::new("See above.", stub)])];
        }
    }
    assert_eq!(session.next(&mut conversation).cause, Cause::Folded);
}

#[test]
fn a_call_taken_out_with_its_result_is_a_fold_too() {
    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    conversation.tool_round("m8", 2).assistant("m9", &long_text("m9", 2000)).user("m10", "Next.");
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
    let is_first = |block: &Block| match &*block.content {
        Content::Call(call) => &*call.id == "m8_0",
        Content::Result(result) => &*result.call_id == "m8_0",
        _ => false,
    };
    for message in &mut conversation.log {
        message.blocks.retain(|block| !is_first(block));
        for block in &mut message.blocks {
            if matches!(&*block.content, Content::Result(result) if &*result.call_id == "m8_1")
                && let Content::Result(result) = block.content.edit()
            {
                let stub = Origin::item(ItemKind::History, &Arc::from("file:d.rs"), ItemCopy::Stub);
                result.parts.push(ResultPart::Text(vec![Segment::new("Taken out: d.rs.", stub)]));
            }
        }
    }
    // The first difference is the answer that made both calls.
    let verdict = session.next(&mut conversation);
    assert_eq!(verdict.cause, Cause::Folded);
    assert_eq!(origin(&verdict), Some(PieceOrigin::Message("m8".into())));
}

#[test]
fn a_compaction_is_recognised_by_a_new_first_message() {
    let verdict = verdict_after(|_, conversation| {
        let kept = conversation.log.split_off(4);
        conversation.log.clear();
        conversation.user("k1", "A summary of all that was said.").assistant("k2", "I see.");
        conversation.log.extend(kept);
        conversation.log.last_mut().unwrap().blocks.push(message_block("m7", &long_text("m7", 50)));
    });
    assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::Compacted, Blame::Us));
    assert!(verdict.read > 7000 && verdict.lost_tokens < 300, "{verdict:?}");
}

#[test]
fn a_first_message_said_anew_is_no_compaction() {
    let verdict = verdict_after(|_, conversation| {
        conversation.log.clear();
        conversation.user("n1", "Let me ask otherwise.");
        conversation.base.pop();
    });
    assert_ne!(verdict.cause, Cause::Compacted);
}

#[test]
fn the_first_image_loses_the_messages() {
    let image = || {
        let image = Image { media_type: MediaType::Png, data: "".into(), width: Some(28), height: Some(28) };
        Block::new(Region::Log, Content::Image(image, Origin::message(&"m7".into())))
    };
    let verdict = verdict_after(|_, conversation| conversation.log.last_mut().unwrap().blocks.push(image()));
    assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::ImageAdded, Blame::Person));
    assert!(verdict.read > 2000 && verdict.lost_tokens > 5000, "{verdict:?}");

    let mut session = TestSession::anthropic();
    let mut conversation = warm_conversation(&mut session);
    conversation.log.last_mut().unwrap().blocks.push(image());
    session.next(&mut conversation);
    conversation.assistant("m8", "A picture.").user("m9", "Again.");
    conversation.log.last_mut().unwrap().blocks.push(image());
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
    conversation
        .log
        .iter_mut()
        .for_each(|turn| turn.blocks.retain(|block| !matches!(*block.content, Content::Image(..))));
    let gone = session.next(&mut conversation);
    assert_eq!((gone.cause, gone.blame), (Cause::ImageRemoved, Blame::Us));
}

#[test]
fn a_picture_that_a_tool_answers_with_is_nobodys_fault() {
    let verdict = verdict_after(|_, conversation| {
        let answer = conversation.tool_round("m8", 1).log.last_mut().unwrap();
        let Content::Result(result) = answer.blocks[0].content.edit() else { panic!("a result") };
        let image = Image { media_type: MediaType::Png, data: "".into(), width: Some(28), height: Some(28) };
        result.parts.push(ResultPart::Image(image));
    });
    assert_eq!((verdict.cause.clone(), verdict.blame), (Cause::ImageAdded, Blame::Nobody));
    assert!(
        verdict.sentence().ends_with("an image was added to a conversation without images."),
        "{verdict:?}"
    );
}

#[test]
fn other_settings_lose_the_messages_where_the_provider_says_so() {
    let thinking = verdict_after(|_, conversation| conversation.thinking = Thinking::Budget(2000));
    assert_eq!((thinking.cause.clone(), thinking.blame), (Cause::ThinkingChanged, Blame::Person));
    assert!(thinking.read > 2000 && thinking.lost_tokens > 5000, "{thinking:?}");
    let effort = verdict_after(|session, _| session.settings.effort = Some("high".into()));
    assert_eq!(effort.cause, Cause::EffortChanged);
    let choice = verdict_after(|session, _| session.settings.tool_choice = Some("none".into()));
    assert_eq!(choice.cause, Cause::SettingChanged("tool choice".into()));
    let citations = verdict_after(|session, _| session.settings.citations = true);
    assert_eq!((citations.cause, citations.read), (Cause::SettingChanged("citations".into()), 0));

    let mut session = TestSession::new("openai", "gpt-5.4");
    let mut conversation = warm_conversation(&mut session);
    conversation.thinking = Thinking::Budget(2000);
    session.settings.effort = Some("high".into());
    assert_eq!(session.next(&mut conversation).cause, Cause::AsExpected);
}

#[test]
fn another_model_or_provider_has_another_cache() {
    let model = verdict_after(|session, _| session.switch("anthropic", "claude-opus-5"));
    let cause = Cause::ModelChanged { from: "claude-sonnet-5".into(), to: "claude-opus-5".into() };
    assert_eq!((model.cause.clone(), model.blame, model.read), (cause, Blame::Person, 0));
    assert!(model.lost_tokens > 8000 && model.lost_dollars > 0.0);
    let provider = verdict_after(|session, _| session.switch("openai", "gpt-5.4"));
    let cause = Cause::ProviderChanged { from: "anthropic".into(), to: "openai".into() };
    assert_eq!((provider.cause, provider.blame), (cause, Blame::Person));
}

#[test]
fn a_resumed_session_that_reads_otherwise_is_named_as_that() {
    let same = verdict_after(|session, _| session.continuity = Continuity::Resumed);
    assert_eq!(same.cause, Cause::AsExpected);
    let other = verdict_after(|session, conversation| {
        session.continuity = Continuity::Resumed;
        conversation.system[0].text = Text::new(long_text("newer agent", 1200));
    });
    assert_eq!((other.cause.clone(), other.blame), (Cause::Resumed, Blame::Us));
    assert!(other.sentence().contains("resumed by another process, from agent on"), "{}", other.sentence());
    let elsewhere = verdict_after(|session, _| {
        session.continuity = Continuity::Resumed;
        session.cache = Default::default();
    });
    assert_eq!((elsewhere.cause, elsewhere.blame), (Cause::Resumed, Blame::Provider));
    let model = verdict_after(|session, _| {
        session.continuity = Continuity::Resumed;
        session.switch("anthropic", "claude-opus-5");
    });
    assert!(matches!(model.cause, Cause::ModelChanged { .. }));
}

#[test]
fn a_resumed_monitor_still_names_the_cause() {
    let verdict = verdict_after(|session, conversation| {
        let written = serde_json::to_string(&session.monitor).unwrap();
        assert!(written.len() < 3000, "{}", written.len());
        session.monitor = serde_json::from_str(&written).unwrap();
        conversation.tools.pop();
    });
    assert!(matches!(verdict.cause, Cause::ToolsChanged { .. }));
}
