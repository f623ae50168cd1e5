use std::collections::BTreeMap;

use hardpan_agent::Coupling;
use hardpan_context::{LayoutName, TierChangeReason};
use hardpan_prompt::Tier;
use hardpan_test_support::{TestAgent, numbered_lines};
use serde_json::Value;

use crate::agents::with_files;

/// The tracker as the next request will see it: key, tier, count.
fn tracked(test_agent: &TestAgent) -> BTreeMap<String, (Tier, u32)> {
    let memory = serde_json::to_value(test_agent.agent.layout_state()).unwrap();
    let entries = memory["tiers"].as_array().cloned().unwrap_or_default();
    let entry = |entry: &Value| {
        let tier = serde_json::from_value(entry["tier"].clone()).unwrap();
        (entry["key"].as_str().unwrap().to_owned(), (tier, entry["n"].as_u64().unwrap() as u32))
    };
    entries.iter().map(entry).collect()
}

#[tokio::test]
async fn every_complete_answer_counts_tool_turns_included() {
    let test_agent = with_files(LayoutName::Tiers).await;
    test_agent.say("Look.").await;
    assert_eq!(tracked(&test_agent)["file:a.rs"], (Tier::Active, 1));
    test_agent.say("Look.").await;
    let after = tracked(&test_agent);
    assert!(matches!(after["file:a.rs"].0, Tier::L3), "{after:?}");
    assert_eq!(after.keys().filter(|key| key.starts_with("history:")).count(), 2);
    test_agent.set_item("file:a.rs", &numbered_lines("gamma", 400));
    test_agent.say("Go on.").await;
    assert_eq!(tracked(&test_agent)["file:a.rs"], (Tier::Active, 0));
    assert!(test_agent.agent.tier_moves().iter().any(|change| change.reason == TierChangeReason::Changed));
}

#[tokio::test]
async fn the_map_begins_by_what_belongs_together() {
    let test_agent = TestAgent::in_process().layout(LayoutName::Tiers).start().await;
    for name in ["a", "b", "c", "d", "e", "f"] {
        test_agent.set_item(&format!("symbols:{name}.rs"), &numbered_lines(name, 300));
    }
    let pair = |one: &str, other: &str| vec![one.to_owned(), other.to_owned()];
    test_agent.workspace().coupling = Coupling {
        clusters: vec![pair("a.rs", "d.rs"), pair("b.rs", "e.rs"), pair("c.rs", "f.rs")],
        ..Coupling::default()
    };
    test_agent.say("Hello.").await;
    let tiers = tracked(&test_agent);
    for (one, other) in [("a", "d"), ("b", "e"), ("c", "f")] {
        let [one, other] = [one, other].map(|name| tiers[&format!("symbol:{name}.rs")].0);
        assert_eq!(one, other);
    }
    let used: std::collections::BTreeSet<Tier> = tiers.values().map(|entry| entry.0).collect();
    assert!([Tier::L1, Tier::L2, Tier::L3].iter().all(|tier| used.contains(tier)), "{tiers:?}");
}

#[tokio::test]
async fn a_resumed_session_goes_on_where_the_tiers_were() {
    let test_agent = with_files(LayoutName::Tiers).await;
    for _ in 0..5 {
        test_agent.say("Look.").await;
        test_agent.set_item("file:b.rs", &numbered_lines("beta", 300));
    }
    let before = tracked(&test_agent);
    assert!(before.len() > 5);
    let test_agent = test_agent.restart().await;
    assert_eq!(tracked(&test_agent), before);
}
