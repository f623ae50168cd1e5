use hardpan_context::{LayoutName, Target};
use hardpan_economy::PlannedAction;
use hardpan_economy::forecast::FreeWhen;
use hardpan_models::Catalogue;
use hardpan_models::ThinkingSetting;
use hardpan_test_support::numbered_lines;

use crate::agents::with_files;

fn opus() -> Target {
    Target::new(Catalogue::builtin(), None, "claude-opus-5").unwrap()
}

#[tokio::test]
async fn nothing_is_foreseen_before_the_first_request() {
    let test_agent = with_files(LayoutName::Strata).await;
    assert!(test_agent.agent.forecast_cost(PlannedAction::Thinking).is_none());
}

#[tokio::test]
async fn what_is_foreseen_of_a_setting_is_what_is_paid() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Look.").await;
    let foreseen = test_agent.agent.forecast_cost(PlannedAction::Thinking).unwrap();
    assert!(foreseen.tokens_written_again > 2000 && matches!(foreseen.free_at, Some(FreeWhen::AtExpiry(_))));
    test_agent.agent.select_thinking(ThinkingSetting::Budget(2000)).await.unwrap();
    test_agent.say("Go on.").await;
    let loss = test_agent.the_loss().await;
    let off = loss.lost_tokens.abs_diff(foreseen.tokens_written_again);
    assert!(off * 50 < foreseen.tokens_written_again, "{loss:?} {foreseen:?}");
}

#[tokio::test]
async fn another_model_costs_its_own_cache_and_the_way_back_costs_nothing() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Look.").await;
    let (sonnet, opus) = (test_agent.agent.target(), opus());
    let act = |target: &Target| {
        test_agent
            .agent
            .forecast_cost(PlannedAction::SwitchModel { model: &target.model, profile: &target.profile })
            .unwrap()
    };
    assert!(act(&opus).dollars_now > 0.01 && act(&sonnet).dollars_now == 0.0);
    test_agent.agent.select_model(opus.clone()).await.unwrap();
    // Chosen, but not asked yet: the cache of the other is still there, and here there is nothing
    // to lose.
    assert_eq!(act(&sonnet).dollars_now, 0.0);
    assert_eq!(test_agent.agent.forecast_cost(PlannedAction::Thinking).unwrap().tokens_written_again, 0);
}

#[tokio::test]
async fn everything_is_free_once_the_cache_has_expired() {
    let test_agent = with_files(LayoutName::Panels).await;
    test_agent.say("Look.").await;
    let open = PlannedAction::Open { tokens: 1000 };
    assert!(test_agent.agent.forecast_cost(open).unwrap().tokens_written_again > 0);
    assert!(
        test_agent.agent.forecast_cost(PlannedAction::ToggleTool("look")).unwrap().tokens_written_again > 0
    );
    assert!(
        test_agent.agent.forecast_cost(PlannedAction::Close("file:a.rs")).unwrap().tokens_written_again > 0
    );
    test_agent.pass_minutes(6);
    for act in
        [open, PlannedAction::ToggleTool("look"), PlannedAction::Close("file:a.rs"), PlannedAction::Thinking]
    {
        assert_eq!(test_agent.agent.forecast_cost(act).unwrap().tokens_written_again, 0);
    }
}

#[tokio::test]
async fn in_the_default_layout_a_file_is_opened_and_closed_for_what_it_holds() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Look.").await;
    assert_eq!(
        test_agent.agent.forecast_cost(PlannedAction::Open { tokens: 1000 }).unwrap().tokens_written_again,
        0
    );
    assert_eq!(
        test_agent.agent.forecast_cost(PlannedAction::Close("file:a.rs")).unwrap().tokens_written_again,
        0
    );
    test_agent.set_item("file:c.rs", &numbered_lines("gamma", 100));
    test_agent.remove_item("file:a.rs");
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.losses(), []);
}
