use hardpan_context::{LayoutName, Target};
use hardpan_economy::Act;
use hardpan_economy::foresight::Free;
use hardpan_models::Catalogue;
use hardpan_prompt::Thinking;

use crate::trial::{Trial, text};

fn opus() -> Target {
    Target::new(Catalogue::builtin(), None, "claude-opus-5").unwrap()
}

#[tokio::test]
async fn nothing_is_foreseen_before_the_first_request() {
    let trial = Trial::with_files(LayoutName::Strata);
    assert!(trial.agent.foresee(Act::Thinking).is_none());
}

#[tokio::test]
async fn what_is_foreseen_of_a_setting_is_what_is_paid() {
    let trial = Trial::with_files(LayoutName::Strata);
    trial.say("Look.").await;
    let foreseen = trial.agent.foresee(Act::Thinking).unwrap();
    assert!(foreseen.tokens_written_again > 2000 && matches!(foreseen.free_at, Some(Free::AtExpiry(_))));
    trial.agent.select_thinking(Thinking::Budget(2000)).await.unwrap();
    trial.say("Go on.").await;
    let loss = trial.the_loss().await;
    let off = loss.lost_tokens.abs_diff(foreseen.tokens_written_again);
    assert!(off * 50 < foreseen.tokens_written_again, "{loss:?} {foreseen:?}");
}

#[tokio::test]
async fn another_model_costs_its_own_cache_and_the_way_back_costs_nothing() {
    let trial = Trial::with_files(LayoutName::Strata);
    trial.say("Look.").await;
    let (sonnet, opus) = (trial.agent.target(), opus());
    let act = |target: &Target| {
        trial.agent.foresee(Act::SwitchModel { model: &target.model, wire: &target.wire }).unwrap()
    };
    assert!(act(&opus).dollars_now > 0.01 && act(&sonnet).dollars_now == 0.0);
    trial.agent.select_model(opus.clone()).await.unwrap();
    // Chosen, but not asked yet: the cache of the other is still there, and here there is nothing to lose.
    assert_eq!(act(&sonnet).dollars_now, 0.0);
    assert_eq!(trial.agent.foresee(Act::Thinking).unwrap().tokens_written_again, 0);
}

#[tokio::test]
async fn everything_is_free_once_the_cache_has_expired() {
    let trial = Trial::with_files(LayoutName::Panels);
    trial.say("Look.").await;
    let open = Act::Open { tokens: 1000 };
    assert!(trial.agent.foresee(open).unwrap().tokens_written_again > 0);
    assert!(trial.agent.foresee(Act::ToggleTool("look")).unwrap().tokens_written_again > 0);
    assert!(trial.agent.foresee(Act::Close("file:a.rs")).unwrap().tokens_written_again > 0);
    trial.wait(6);
    for act in [open, Act::ToggleTool("look"), Act::Close("file:a.rs"), Act::Thinking] {
        assert_eq!(trial.agent.foresee(act).unwrap().tokens_written_again, 0);
    }
}

#[tokio::test]
async fn in_the_default_layout_a_file_is_opened_and_closed_for_what_it_holds() {
    let trial = Trial::with_files(LayoutName::Strata);
    trial.say("Look.").await;
    assert_eq!(trial.agent.foresee(Act::Open { tokens: 1000 }).unwrap().tokens_written_again, 0);
    assert_eq!(trial.agent.foresee(Act::Close("file:a.rs")).unwrap().tokens_written_again, 0);
    trial.write("file:c.rs", &text("gamma", 100));
    trial.close("file:a.rs");
    trial.say("Go on.").await;
    assert_eq!(trial.losses(), []);
}
