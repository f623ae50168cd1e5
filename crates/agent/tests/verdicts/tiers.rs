use std::collections::BTreeMap;

use hardpan_agent::Coupling;
use hardpan_context::{LayoutName, Reason};
use hardpan_prompt::Tier;
use serde_json::Value;

use crate::trial::{Trial, text};

/// The tracker as the next request will see it: key, tier, count.
fn tracked(trial: &Trial) -> BTreeMap<String, (Tier, u32)> {
    let memory = serde_json::to_value(trial.agent.memory()).unwrap();
    let entries = memory["tiers"].as_array().cloned().unwrap_or_default();
    let entry = |entry: &Value| {
        let tier = serde_json::from_value(entry["tier"].clone()).unwrap();
        (entry["key"].as_str().unwrap().to_owned(), (tier, entry["n"].as_u64().unwrap() as u32))
    };
    entries.iter().map(entry).collect()
}

#[tokio::test]
async fn every_complete_answer_counts_tool_turns_included() {
    let trial = Trial::with_files(LayoutName::Tiers);
    trial.say("Look.").await;
    assert_eq!(tracked(&trial)["file:a.rs"], (Tier::Active, 1));
    trial.say("Look.").await;
    let after = tracked(&trial);
    assert!(matches!(after["file:a.rs"].0, Tier::L3), "{after:?}");
    assert_eq!(after.keys().filter(|key| key.starts_with("history:")).count(), 2);
    trial.write("file:a.rs", &text("gamma", 400));
    trial.say("Go on.").await;
    assert_eq!(tracked(&trial)["file:a.rs"], (Tier::Active, 0));
    assert!(trial.agent.moved().iter().any(|change| change.reason == Reason::Changed));
}

#[tokio::test]
async fn the_map_begins_by_what_belongs_together() {
    let trial = Trial::new(LayoutName::Tiers);
    for name in ["a", "b", "c", "d", "e", "f"] {
        trial.write(&format!("symbols:{name}.rs"), &text(name, 300));
    }
    let pair = |one: &str, other: &str| vec![one.to_owned(), other.to_owned()];
    trial.world().coupling = Coupling {
        clusters: vec![pair("a.rs", "d.rs"), pair("b.rs", "e.rs"), pair("c.rs", "f.rs")],
        ..Coupling::default()
    };
    trial.say("Hello.").await;
    let tiers = tracked(&trial);
    for (one, other) in [("a", "d"), ("b", "e"), ("c", "f")] {
        let [one, other] = [one, other].map(|name| tiers[&format!("symbol:{name}.rs")].0);
        assert_eq!(one, other);
    }
    let used: std::collections::BTreeSet<Tier> = tiers.values().map(|entry| entry.0).collect();
    assert!([Tier::L1, Tier::L2, Tier::L3].iter().all(|tier| used.contains(tier)), "{tiers:?}");
}

#[tokio::test]
async fn a_resumed_session_goes_on_where_the_tiers_were() {
    let trial = Trial::with_files(LayoutName::Tiers);
    for _ in 0..5 {
        trial.say("Look.").await;
        trial.write("file:b.rs", &text("beta", 300));
    }
    let before = tracked(&trial);
    assert!(before.len() > 5);
    let trial = trial.resume().await;
    assert_eq!(tracked(&trial), before);
}
