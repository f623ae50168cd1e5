use std::collections::BTreeMap;

use hardpan_agent::session_ledger;
use hardpan_context::{LayoutName, Target};
use hardpan_economy::ledger::{Account, Totals};
use hardpan_models::Catalogue;
use hardpan_prompt::{ItemKind, TokenUsage};
use hardpan_test_support::{TestAgent, numbered_lines};

use crate::agents::with_files;

fn reported(usages: &[TokenUsage]) -> TokenUsage {
    usages.iter().copied().sum()
}

fn sum<'a>(all: impl IntoIterator<Item = &'a Totals>) -> (TokenUsage, f64) {
    let mut tokens = TokenUsage::default();
    let mut dollars = 0.0;
    for totals in all {
        tokens += totals.tokens;
        dollars += totals.dollars;
    }
    (tokens, dollars)
}

#[tokio::test]
async fn the_bill_adds_up_to_what_the_provider_reported_in_every_layout() {
    for layout in LayoutName::ALL {
        let test_agent = with_files(layout).await;
        for turn in 0..6 {
            test_agent.say("Look.").await;
            if turn == 2 {
                let other = Target::new(Catalogue::builtin(), None, "claude-opus-5").unwrap();
                test_agent.agent.select_model(other).await.unwrap();
                test_agent.pass_minutes(24 * 60);
            }
            test_agent.set_item("file:b.rs", &numbered_lines("beta", 400 + turn));
        }
        let expected = reported(&test_agent.usages());
        let stored = session_ledger::ledger_from_entries(&test_agent.stored().await.entries);
        for ledger in [test_agent.agent.ledger(), stored] {
            assert_eq!((ledger.total.tokens, ledger.total.requests), (expected, 12), "{layout}");
            let parts: [Vec<&Totals>; 4] = [
                ledger.by_day.values().collect(),
                ledger.by_model.values().collect(),
                ledger.by_purpose.values().collect(),
                ledger.by_key.values().collect(),
            ];
            for part in parts {
                let (tokens, dollars) = sum(part);
                assert_eq!(tokens, expected, "{layout}");
                assert!((dollars - ledger.total.dollars).abs() < 1e-9, "{layout}");
            }
            assert_eq!((ledger.by_day.len(), ledger.by_model.len()), (2, 2), "{layout}");
            assert!(ledger.totals_for_key("file:a.rs").tokens.prompt() > 12_000, "{layout}");
        }
        let usage = test_agent.agent.token_usage();
        assert!((usage.session.dollars - test_agent.agent.ledger().total.dollars).abs() < 1e-9);
    }
}

#[tokio::test]
async fn what_the_agent_knows_is_what_the_file_says() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Look.").await;
    test_agent.pass_minutes(7);
    test_agent.say("Go on.").await;
    let (here, stored) =
        (test_agent.agent.ledger(), session_ledger::ledger_from_entries(&test_agent.stored().await.entries));
    let round = |ledger: &hardpan_economy::Ledger| -> BTreeMap<Account, (TokenUsage, i64, u64)> {
        let row = |totals: &Totals| (totals.tokens, (totals.dollars * 1e9).round() as i64, totals.hits);
        ledger.by_key.iter().map(|(account, totals)| (account.clone(), row(totals))).collect()
    };
    assert_eq!(round(&here), round(&stored));
    assert_eq!(here.losses, stored.losses);
    assert_eq!(here.losses["expired"].times, 1);
    let back = test_agent.restart().await;
    assert_eq!(round(&back.agent.ledger()), round(&stored));
}

#[tokio::test]
async fn a_crash_before_the_end_of_a_run_leaves_the_sums_by_kind() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Look.").await;
    let session = test_agent.stored().await;
    let unsettled =
        session.entries.iter().filter(|entry| matches!(entry.record, hardpan_session::Record::Request(_)));
    let ledger = session_ledger::ledger_from_entries(unsettled);
    assert_eq!(ledger.total.tokens, reported(&test_agent.usages()));
    let files = Account { kind: Some(ItemKind::File), key: "all".into() };
    let named = test_agent.agent.ledger();
    let both =
        named.totals_for_key("file:a.rs").tokens.prompt() + named.totals_for_key("file:b.rs").tokens.prompt();
    assert_eq!(ledger.by_key[&files].tokens.prompt(), both);
}

#[tokio::test]
async fn helper_calls_are_billed_and_read_the_conversations_cache() {
    let script = "
turns:
  - when: {contains: summar}
    text: It was a long story.
    repeat: always
default: {text: Fine.}
";
    let test_agent = TestAgent::in_process().layout(LayoutName::Strata).script(script).start().await;
    for _ in 0..8 {
        test_agent.say(&numbered_lines("A long story", 400)).await;
    }
    let before = test_agent.agent.ledger();
    let cached = test_agent.agent.token_usage().last_request.unwrap();
    test_agent.agent.compact(None).await.unwrap();
    let after = test_agent.agent.ledger();
    assert_eq!(after.total.requests, before.total.requests + 1);
    let helper = &after.by_purpose[&hardpan_economy::ledger::RequestPurpose::Compaction];
    assert_eq!(helper.requests, 1);
    assert!(helper.tokens.cache_read >= cached.tokens.cached(), "{helper:?}");
    assert_eq!(test_agent.losses(), [], "a summary on the session's own prefix loses nothing");
    assert_eq!(
        session_ledger::ledger_from_entries(&test_agent.stored().await.entries).by_purpose,
        after.by_purpose
    );
}

#[tokio::test]
async fn a_fork_is_billed_for_its_own_branch() {
    let test_agent = with_files(LayoutName::Strata).await;
    test_agent.say("Hello.").await;
    let leaf = test_agent.agent.messages().last().unwrap().id.0.clone();
    test_agent.say("Look.").await;
    // The branch ends with the answer: the record of its request comes after it.
    test_agent.stored().await;
    let fork = test_agent.fork(Some(&leaf));
    assert_eq!(fork.agent.ledger().total.requests, 0);
    let whole = test_agent.fork(None);
    assert_eq!(whole.agent.ledger().total.tokens, test_agent.agent.ledger().total.tokens);
    assert_eq!(whole.agent.token_usage().requests, 3);
}

#[tokio::test]
async fn what_is_said_of_a_panel_is_what_was_billed() {
    let test_agent = with_files(LayoutName::Panels).await;
    test_agent.say("Hello.").await;
    test_agent.say("Go on.").await;
    // Neither the panel nor what is before it has changed. The footer is another, but an entry ends
    // before it.
    let memory = serde_json::to_value(test_agent.agent.layout_state()).unwrap();
    let shown = memory["panels"]["shown"].as_array().unwrap();
    assert_eq!(shown.iter().map(|panel| &panel["hits"]).collect::<Vec<_>>(), [1, 1]);
    let breakdown = test_agent.agent.breakdown().unwrap();
    let contents = breakdown.blocks.iter().flat_map(|block| &block.contents);
    let panels: Vec<_> = contents.filter(|content| content.hit.is_some()).collect();
    assert_eq!(panels.len(), 2);
    for panel in panels {
        let billed = test_agent.agent.ledger().totals_for_key(&panel.key());
        assert_eq!((panel.hit, panel.cost), (Some(true), Some(billed.dollars)));
        assert_eq!((billed.hits, billed.misses), (1, 1));
    }
}
