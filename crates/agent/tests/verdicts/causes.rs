use hardpan_agent::events::{
    BeforeAgentStart, BeforeAgentStartReply, BeforeCompactReply, Context, SessionBeforeCompact,
};
use hardpan_context::{LayoutName, Target};
use hardpan_economy::Cause;
use hardpan_economy::verdict::{Blame, How};
use hardpan_models::Catalogue;
use hardpan_prompt::{Body, Part, Thinking};

use crate::trial::{Trial, pixel, text};

const STRATA: LayoutName = LayoutName::Strata;

/// Two prompts, each answered, with nothing lost.
async fn begun(layout: LayoutName) -> Trial {
    let trial = Trial::steady(layout).await;
    trial.say("Look.").await;
    assert_eq!(trial.losses(), [], "{layout}");
    trial
}

#[tokio::test]
async fn the_tools_changed() {
    for layout in LayoutName::ALL {
        let trial = begun(layout).await;
        trial.change_tools();
        trial.say("Go on.").await;
        let Cause::ToolsChanged { added, removed, changed } = trial.cause().await else { panic!("{layout}") };
        assert_eq!(
            (added, removed, changed),
            (vec!["smell".into()], vec!["listen".into()], vec![]),
            "{layout}"
        );
        assert_eq!(trial.losses()[0].ours, Blame::Us);
    }
}

#[tokio::test]
async fn the_system_prompt_changed() {
    for layout in LayoutName::ALL {
        let trial = begun(layout).await;
        trial.agent.events().on::<BeforeAgentStart, _>("poet", |event, _| async move {
            let system_prompt = Some(format!("{} In verse.", event.system_prompt));
            Ok(BeforeAgentStartReply { message: None, system_prompt })
        });
        trial.say("Go on.").await;
        assert!(matches!(trial.cause().await, Cause::SystemChanged(_)), "{layout}: {:?}", trial.losses());
    }
}

#[tokio::test]
async fn an_item_changed_in_panels() {
    let trial = Trial::with_files(LayoutName::Panels);
    trial.say("Hello.").await;
    trial.write("file:b.rs", &text("gamma", 400));
    trial.say("Go on.").await;
    assert_eq!(trial.cause().await, Cause::ItemChanged { key: "file:b.rs".into(), how: How::Changed });
}

#[tokio::test]
async fn an_item_changed_in_tiers() {
    let trial = Trial::with_files(LayoutName::Tiers);
    // A file is cached once it has been unchanged for a while.
    for _ in 0..6 {
        trial.say("Go on.").await;
    }
    let before = trial.losses().len();
    trial.write("file:a.rs", &text("gamma", 400));
    trial.say("Go on.").await;
    let losses = trial.losses();
    let [loss] = &losses[before..] else { panic!("{losses:?}") };
    assert_eq!(loss.cause, Cause::ItemChanged { key: "file:a.rs".into(), how: How::Changed });
}

#[tokio::test]
async fn the_clock_and_the_footer_of_panels_lose_what_is_cached() {
    let trial = Trial::with_files(LayoutName::Panels);
    trial.say("Hello.").await;
    trial.say("Go on.").await;
    trial.wait(1);
    trial.say("Go on.").await;
    let causes: Vec<Cause> = trial.losses().into_iter().map(|loss| loss.cause).collect();
    let expected =
        [Cause::LayoutChanged("panel footer".into()), Cause::SystemChanged("date and directory".into())];
    assert_eq!(causes, expected);
}

#[tokio::test]
async fn a_message_changed() {
    let trial = begun(STRATA).await;
    trial.agent.events().on::<Context, _>("editor", |event, _| async move {
        let mut messages = event.messages;
        messages[0].body = Body::User { content: vec![Part::text("Goodbye.")] }.into();
        Ok(Some(messages))
    });
    trial.say("Go on.").await;
    let Cause::MessageChanged { id, how } = trial.cause().await else { panic!("{:?}", trial.losses()) };
    assert_eq!((&*id, how), (&*trial.agent.messages()[0].id.0, How::Changed));
}

#[tokio::test]
async fn an_image_was_added() {
    let trial = begun(STRATA).await;
    trial.show("What is this?", vec![pixel()]).await;
    assert_eq!(trial.cause().await, Cause::ImageAdded);
    assert_eq!(trial.losses()[0].ours, Blame::Person);
}

#[tokio::test]
async fn thinking_changed() {
    let trial = begun(STRATA).await;
    trial.agent.select_thinking(Thinking::Budget(2000)).await.unwrap();
    trial.say("Go on.").await;
    assert_eq!(trial.cause().await, Cause::ThinkingChanged);
}

#[tokio::test]
async fn the_model_changed() {
    let trial = begun(STRATA).await;
    let other = Target::new(Catalogue::builtin(), None, "claude-opus-5").unwrap();
    trial.agent.select_model(other).await.unwrap();
    trial.say("Go on.").await;
    let (from, to) = ("claude-sonnet-5".into(), "claude-opus-5".into());
    assert_eq!(trial.cause().await, Cause::ModelChanged { from, to });
}

#[tokio::test]
async fn a_fold_laid_the_items_anew() {
    let trial = begun(STRATA).await;
    trial.write("file:a.rs", &text("gamma", 400));
    trial.say("It has changed.").await;
    assert_eq!(trial.losses(), []);
    trial.world().fold = true;
    trial.say("Go on.").await;
    assert_eq!(trial.cause().await, Cause::Folded);
}

#[tokio::test]
async fn the_conversation_was_compacted() {
    let trial = begun(STRATA).await;
    for _ in 0..10 {
        trial.say(&text("A long story", 500)).await;
    }
    trial.agent.events().on::<SessionBeforeCompact, _>("scribe", |_, _| async {
        Ok(BeforeCompactReply::Summary { text: "It was a long story.".into() })
    });
    trial.agent.compact(None).await.unwrap();
    trial.say("Go on.").await;
    assert_eq!(trial.cause().await, Cause::Compacted);
}

#[tokio::test]
async fn the_cache_expired() {
    for layout in LayoutName::ALL {
        let trial = begun(layout).await;
        trial.wait(12);
        trial.say("Go on.").await;
        assert_eq!(trial.cause().await, Cause::Expired { minutes: 12, lifetime: 5 }, "{layout}");
        assert_eq!(trial.losses()[0].ours, Blame::Person);
        assert!(trial.losses()[0].sentence().contains("expired after 5 minutes (12 minutes unused)"));
    }
}

#[tokio::test]
async fn more_blocks_came_at_once_than_the_provider_looks_back() {
    let calls = vec!["{name: look, arguments: {at: a}}"; 25].join(", ");
    let script =
        format!("turns:\n  - when: {{equals: Look.}}\n    tool_calls: [{calls}]\ndefault: {{text: Fine.}}");
    let trial = Trial::with(LayoutName::Panels, "claude-sonnet-5", &script);
    trial.say(&text("A long story", 400)).await;
    trial.say("Look.").await;
    let Cause::TooManyNewBlocks { blocks, look_back: 20 } = trial.cause().await else {
        panic!("{:?}", trial.losses());
    };
    assert!(blocks >= 50, "{blocks}");
    // The default layout marks where the last request ended, however many blocks come.
    let trial = Trial::with(STRATA, "claude-sonnet-5", &script);
    trial.say(&text("A long story", 400)).await;
    trial.say("Look.").await;
    assert_eq!(trial.losses(), []);
}

#[tokio::test]
async fn the_prompt_is_below_the_minimum() {
    // This model keeps nothing under 4,096 tokens.
    let trial = Trial::with(LayoutName::Panels, "claude-haiku-4-5", "default: {text: Fine.}");
    trial.say("Hello.").await;
    trial.say("Go on.").await;
    let losses = trial.losses();
    let Some(Cause::BelowMinimum { tokens, minimum: 4096 }) = losses.last().map(|loss| &loss.cause) else {
        panic!("{losses:?}");
    };
    assert!(*tokens < 4096 && losses[0].ours == Blame::Provider, "{losses:?}");
    // The default layout asks for no entry that would not be kept: nothing was promised, nothing is lost.
    let trial = Trial::with(STRATA, "claude-haiku-4-5", "default: {text: Fine.}");
    trial.say("Hello.").await;
    trial.say("Go on.").await;
    assert_eq!(trial.losses(), []);
    assert!(matches!(trial.agent.verdict().unwrap().cause, Cause::BelowMinimum { minimum: 4096, .. }));
}

#[tokio::test]
async fn the_provider_evicted_it() {
    for layout in LayoutName::ALL {
        let trial = begun(layout).await;
        trial.evict();
        trial.say("Go on.").await;
        assert_eq!(trial.cause().await, Cause::Evicted, "{layout}");
        assert_eq!(trial.losses()[0].ours, Blame::Provider);
    }
}

#[tokio::test]
async fn two_conversations_are_kept_apart() {
    let trial = begun(STRATA).await;
    let other = begun(LayoutName::Inline).await;
    trial.say("Go on.").await;
    other.say("Go on.").await;
    assert_eq!((trial.losses(), other.losses()), (vec![], vec![]));
}

#[tokio::test]
async fn a_clean_session_of_two_hundred_requests_loses_nothing() {
    let trial = Trial::with_files(STRATA);
    for turn in 0..100 {
        // Now and then a file is opened; every prompt is followed by a round of tools.
        if turn % 10 == 5 {
            trial.write(&format!("file:new{turn}.rs"), &text("delta", 50));
        }
        trial.wait(i64::from(turn % 4));
        trial.say("Look.").await;
        assert_eq!(trial.losses(), [], "turn {turn}");
        assert!(turn == 0 || trial.agent.verdict().unwrap().cause == Cause::AsExpected);
    }
    let usage = trial.agent.token_usage();
    assert_eq!(usage.requests, 200);
    assert!(usage.session.read > 9 * (usage.session.input + usage.session.written), "{:?}", usage.session);
    assert!(trial.agent.ledger().losses.is_empty());
}
