use hardpan_agent::events::{
    BeforeAgentStart, BeforeAgentStartReply, BeforeCompactReply, ContextEvent, SessionBeforeCompact,
};
use hardpan_context::{LayoutName, Target};
use hardpan_economy::Cause;
use hardpan_economy::verdict::{Blame, ContentChange};
use hardpan_models::Catalogue;
use hardpan_models::ThinkingSetting;
use hardpan_prompt::{MessageBody, MessagePart};
use hardpan_test_support::{TestAgent, numbered_lines, pixel};

use crate::agents::{steady, with_files};

const STRATA: LayoutName = LayoutName::Strata;

/// Two prompts, each answered, with nothing lost.
async fn begun(layout: LayoutName) -> TestAgent {
    let test_agent = steady(layout).await;
    test_agent.say("Look.").await;
    assert_eq!(test_agent.losses(), [], "{layout}");
    test_agent
}

/// What a handler changed, which the cause must be put down to.
fn change_by(owner: &str, cause: Cause) -> Cause {
    match cause {
        Cause::ChangedByExtension { extension, change } if *extension == *owner => *change,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn the_tools_changed() {
    for layout in LayoutName::ALL {
        let test_agent = begun(layout).await;
        test_agent.change_tools();
        test_agent.agent.declare_tools_now().await.unwrap();
        test_agent.say("Go on.").await;
        let Cause::ToolsChanged { added, removed, changed, .. } = test_agent.the_loss().await.cause else {
            panic!("{layout}")
        };
        assert_eq!(
            (added, removed, changed),
            (vec!["smell".into()], vec!["listen".into()], vec![]),
            "{layout}"
        );
        assert_eq!(test_agent.losses()[0].blame, Blame::Us);
    }
}

#[tokio::test]
async fn the_system_prompt_changed() {
    for layout in LayoutName::ALL {
        let test_agent = begun(layout).await;
        test_agent.agent.events().subscribe::<BeforeAgentStart, _>("poet", |event, _| async move {
            let system_prompt = Some(format!("{} In verse.", event.system_prompt));
            Ok(BeforeAgentStartReply { message: None, system_prompt })
        });
        test_agent.say("Go on.").await;
        assert!(
            matches!(change_by("poet", test_agent.the_loss().await.cause), Cause::SystemChanged(_)),
            "{layout}: {:?}",
            test_agent.losses()
        );
    }
}

#[tokio::test]
async fn an_item_changed_in_panels() {
    let test_agent = with_files(LayoutName::Panels).await;
    test_agent.say("Hello.").await;
    test_agent.set_item("file:b.rs", &numbered_lines("gamma", 400));
    test_agent.say("Go on.").await;
    assert_eq!(
        test_agent.the_loss().await.cause,
        Cause::ItemChanged { key: "file:b.rs".into(), how: ContentChange::Changed }
    );
}

#[tokio::test]
async fn an_item_changed_in_tiers() {
    let test_agent = with_files(LayoutName::Tiers).await;
    // A file is cached once it has been unchanged for a while.
    for _ in 0..6 {
        test_agent.say("Go on.").await;
    }
    let before = test_agent.losses().len();
    test_agent.set_item("file:a.rs", &numbered_lines("gamma", 400));
    test_agent.say("Go on.").await;
    let losses = test_agent.losses();
    let [loss] = &losses[before..] else { panic!("{losses:?}") };
    // What follows a change is rewritten, so the other file takes the chance to rise: it stands first.
    assert_eq!(loss.cause, Cause::ItemChanged { key: "file:b.rs".into(), how: ContentChange::Moved });
}

#[tokio::test]
async fn the_footer_of_panels_loses_the_conversation_with_each_run() {
    let test_agent = with_files(LayoutName::Panels).await;
    test_agent.say("Hello.").await;
    test_agent.say("Go on.").await;
    test_agent.pass_minutes(1);
    test_agent.say("Go on.").await;
    let causes: Vec<Cause> = test_agent.losses().into_iter().map(|loss| loss.cause).collect();
    let footer = || Cause::LayoutChanged("panel footer".into());
    assert_eq!(causes, [footer(), footer()]);
}

#[tokio::test]
async fn a_message_changed() {
    let test_agent = begun(STRATA).await;
    test_agent.agent.events().subscribe::<ContextEvent, _>("editor", |event, _| async move {
        let mut messages = event.messages;
        messages[0].body = MessageBody::User { content: vec![MessagePart::text("Goodbye.")] }.into();
        Ok(Some(messages))
    });
    test_agent.say("Go on.").await;
    let Cause::MessageChanged { id, how } = change_by("editor", test_agent.the_loss().await.cause) else {
        panic!("{:?}", test_agent.losses())
    };
    assert_eq!((&*id, how), (&*test_agent.agent.messages()[0].id.0, ContentChange::Changed));
}

#[tokio::test]
async fn an_image_was_added() {
    let test_agent = begun(STRATA).await;
    test_agent.show("What is this?", vec![pixel()]).await;
    assert_eq!(test_agent.the_loss().await.cause, Cause::ImageAdded);
    assert_eq!(test_agent.losses()[0].blame, Blame::Person);
}

#[tokio::test]
async fn thinking_changed() {
    let test_agent = begun(STRATA).await;
    test_agent.agent.select_thinking(ThinkingSetting::Off).await.unwrap();
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.the_loss().await.cause, Cause::ThinkingChanged);
}

#[tokio::test]
async fn the_effort_changed() {
    // The model thinks as before; a budget stands for one of its levels.
    let test_agent = begun(STRATA).await;
    test_agent.agent.select_thinking(ThinkingSetting::Budget(2000)).await.unwrap();
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.the_loss().await.cause, Cause::EffortChanged);
    assert_eq!(test_agent.losses()[0].blame, Blame::Person);
}

#[tokio::test]
async fn the_model_changed() {
    let test_agent = begun(STRATA).await;
    let other = Target::new(Catalogue::builtin(), None, "claude-opus-5").unwrap();
    test_agent.agent.select_model(other).await.unwrap();
    test_agent.say("Go on.").await;
    let (from, to) = ("claude-sonnet-5".into(), "claude-opus-5".into());
    assert_eq!(test_agent.the_loss().await.cause, Cause::ModelChanged { from, to });
}

#[tokio::test]
async fn a_fold_laid_the_items_anew() {
    let test_agent = begun(STRATA).await;
    test_agent.set_item("file:a.rs", &numbered_lines("gamma", 400));
    test_agent.say("It has changed.").await;
    assert_eq!(test_agent.losses(), []);
    test_agent.workspace().fold = true;
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.the_loss().await.cause, Cause::Folded);
}

#[tokio::test]
async fn the_conversation_was_compacted() {
    let test_agent = begun(STRATA).await;
    for _ in 0..10 {
        test_agent.say(&numbered_lines("A long story", 500)).await;
    }
    test_agent.agent.events().subscribe::<SessionBeforeCompact, _>("scribe", |_, _| async {
        Ok(BeforeCompactReply::summary("It was a long story."))
    });
    test_agent.agent.compact(None).await.unwrap();
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.the_loss().await.cause, Cause::Compacted);
}

#[tokio::test]
async fn the_cache_expired() {
    for layout in LayoutName::ALL {
        let test_agent = begun(layout).await;
        test_agent.pass_minutes(12);
        test_agent.say("Go on.").await;
        // The model that the test of `inline` speaks to has no longer lifetime.
        let avoidable_by = Some(60).filter(|_| layout != LayoutName::Inline);
        let expired = Cause::Expired { minutes: 12, lifetime: 5, avoidable_by };
        assert_eq!(test_agent.the_loss().await.cause, expired, "{layout}");
        assert_eq!(test_agent.losses()[0].blame, Blame::Person);
        assert!(test_agent.losses()[0].sentence().contains("expired after 5 minutes (12 minutes unused"));
    }
}

#[tokio::test]
async fn however_many_blocks_come_at_once_the_last_request_is_found_again() {
    // A run of calls, or of results, counts as one block; images count one by one, and a provider looks
    // back 20.
    for layout in LayoutName::ALL {
        let test_agent =
            TestAgent::in_process().layout(layout).script("default: {text: Fine.}").start().await;
        test_agent.show(&numbered_lines("A long story", 400), vec![pixel()]).await;
        test_agent.show("Look.", vec![pixel(); 25]).await;
        assert_eq!(test_agent.losses(), [], "{layout}");
        assert!(test_agent.agent.last_verdict().is_some_and(|verdict| verdict.read > 2000), "{layout}");
    }
}

#[tokio::test]
async fn the_prompt_is_below_the_minimum() {
    // This model keeps nothing under 4,096 tokens: nothing was promised, nothing is lost.
    for layout in [LayoutName::Strata, LayoutName::Panels, LayoutName::Tiers] {
        let test_agent = TestAgent::in_process()
            .layout(layout)
            .model("claude-haiku-4-5")
            .script("default: {text: Fine.}")
            .start()
            .await;
        test_agent.say("Hello.").await;
        test_agent.say("Go on.").await;
        assert_eq!(test_agent.losses(), [], "{layout}");
        let cause = test_agent.agent.last_verdict().unwrap().cause;
        assert!(matches!(cause, Cause::BelowMinimum { minimum: 4096, .. }), "{layout}: {cause:?}");
    }
}

#[tokio::test]
async fn the_provider_evicted_it() {
    for layout in LayoutName::ALL {
        let test_agent = begun(layout).await;
        test_agent.clear_caches();
        test_agent.say("Go on.").await;
        assert_eq!(test_agent.the_loss().await.cause, Cause::Evicted, "{layout}");
        assert_eq!(test_agent.losses()[0].blame, Blame::Provider);
    }
}

#[tokio::test]
async fn two_conversations_are_kept_apart() {
    let test_agent = begun(STRATA).await;
    let other = begun(LayoutName::Inline).await;
    test_agent.say("Go on.").await;
    other.say("Go on.").await;
    assert_eq!((test_agent.losses(), other.losses()), (vec![], vec![]));
}

#[tokio::test]
async fn a_clean_session_of_two_hundred_requests_loses_nothing() {
    let test_agent = with_files(STRATA).await;
    for turn in 0..100 {
        // Now and then a file is opened; every prompt is followed by a round of tools.
        if turn % 10 == 5 {
            test_agent.set_item(&format!("file:new{turn}.rs"), &numbered_lines("delta", 50));
        }
        test_agent.pass_minutes(i64::from(turn % 4));
        test_agent.say("Look.").await;
        assert_eq!(test_agent.losses(), [], "turn {turn}");
        assert!(turn == 0 || test_agent.agent.last_verdict().unwrap().cause == Cause::AsExpected);
    }
    let usage = test_agent.agent.token_usage();
    assert_eq!(usage.requests, 200);
    let tokens = usage.session.tokens;
    assert!(tokens.cache_read > 9 * (tokens.input + tokens.cache_written()), "{tokens:?}");
    assert!(test_agent.agent.ledger().losses.is_empty());
}
