use hardpan_context::{LayoutName, LifetimeSetting};
use hardpan_prompt::TokenUsage;
use hardpan_test_support::{TestAgent, numbered_lines};
use serde_json::Value;

use crate::agents::two_files;

/// The prices of the model that these tests use, in units of one token of plain input.
pub fn units(usages: &[TokenUsage]) -> f64 {
    let price = |usage: &TokenUsage| {
        let [read, short, long] = [usage.cache_read, usage.cache_write_5m, usage.cache_write_1h];
        usage.input as f64 + 0.1 * read as f64 + 1.25 * short as f64 + 2.0 * long as f64
    };
    usages.iter().map(price).sum()
}

/// The lifetimes that a body asks for, in the order of its breakpoints: `5m` where none is named.
fn lifetimes(body: &str) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            Value::Object(fields) => {
                let marker = fields.get("cache_control");
                found.extend(marker.map(|marker| marker["ttl"].as_str().unwrap_or("5m").to_owned()));
                fields.values().for_each(|value| collect(value, found));
            }
            _ => {}
        }
    }
    let body: Value = serde_json::from_str(body).expect("JSON");
    let mut found = Vec::new();
    ["tools", "system", "messages"].iter().for_each(|part| collect(&body[part], &mut found));
    found
}

/// A conversation of several prompts, with a pause of so many minutes before each but the first.
async fn talk(layout: LayoutName, setting: LifetimeSetting, pauses: &[i64]) -> TestAgent {
    let test_agent = two_files(layout).cache_lifetime(setting).start().await;
    test_agent.say(&numbered_lines("A story", 60)).await;
    for minutes in pauses {
        test_agent.pass_minutes(*minutes);
        test_agent.say("Go on.").await;
    }
    test_agent
}

#[tokio::test]
async fn a_session_with_pauses_costs_less_than_with_five_minutes() {
    let pauses = [10; 6];
    let short = talk(LayoutName::Strata, LifetimeSetting::FiveMinutes, &pauses).await;
    let auto = talk(LayoutName::Strata, LifetimeSetting::Auto, &pauses).await;
    let (short_units, auto_units) = (units(&short.usages()), units(&auto.usages()));
    assert!(auto_units < 0.6 * short_units, "{auto_units} {short_units}");
    // The first pause is lost, and what is written then lives for an hour.
    let asked: Vec<Vec<String>> = auto.sent_bodies().iter().map(|body| lifetimes(body)).collect();
    assert!(asked[0].iter().all(|lifetime| lifetime == "5m"), "{asked:?}");
    assert!(asked[1..].iter().flatten().all(|lifetime| lifetime == "1h"), "{asked:?}");
    assert_eq!((short.losses().len(), auto.losses().len()), (6, 1));
    let written: Vec<u64> = auto.usages().iter().map(|usage| usage.cache_write_1h).collect();
    assert!(
        written[0] == 0 && written[1] > 5000 && written[2..].iter().all(|tokens| *tokens < 200),
        "{written:?}"
    );
    // The bytes do not depend on the setting otherwise.
    let plain = |bodies: Vec<String>| -> Vec<String> {
        bodies.iter().map(|body| body.replace(r#","ttl":"1h""#, "")).collect()
    };
    assert_eq!(plain(auto.sent_bodies()), short.sent_bodies());
}

#[tokio::test]
async fn a_session_without_pauses_costs_the_same() {
    for layout in LayoutName::ALL {
        for pauses in [&[0, 1, 2, 4, 0, 3][..], &[90, 90, 300]] {
            let short = talk(layout, LifetimeSetting::FiveMinutes, pauses).await;
            let auto = talk(layout, LifetimeSetting::Auto, pauses).await;
            assert_eq!(auto.sent_bodies(), short.sent_bodies(), "{layout} {pauses:?}");
            assert_eq!(auto.usages(), short.usages(), "{layout} {pauses:?}");
        }
    }
}

#[tokio::test]
async fn longer_lifetimes_come_first_in_every_layout_and_setting() {
    for layout in LayoutName::ALL {
        for setting in LifetimeSetting::ALL {
            let test_agent = talk(layout, setting, &[10, 0, 10, 90, 10, 10, 0]).await;
            for body in test_agent.sent_bodies() {
                let asked = lifetimes(&body);
                let first_short = asked.iter().position(|lifetime| lifetime == "5m").unwrap_or(asked.len());
                assert!(asked[first_short..].iter().all(|lifetime| lifetime == "5m"), "{layout} {asked:?}");
                let is_fixed = match setting {
                    LifetimeSetting::Auto => true,
                    LifetimeSetting::FiveMinutes => first_short == 0,
                    LifetimeSetting::OneHour => first_short == asked.len(),
                };
                assert!(is_fixed, "{layout} {setting} {asked:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_session_opened_again_asks_for_the_same_lifetimes() {
    let test_agent = talk(LayoutName::Strata, LifetimeSetting::Auto, &[10, 0]).await;
    test_agent.pass_minutes(12);
    test_agent.assert_copy_sends_the_same().await;
    let test_agent = test_agent.restart().await;
    test_agent.say("Go on.").await;
    assert!(lifetimes(&test_agent.last_sent().body).iter().all(|lifetime| lifetime == "1h"));
    assert!(test_agent.agent.last_verdict().is_some_and(|verdict| verdict.read > 5000));
}

#[tokio::test]
async fn what_holds_garbage_is_kept_for_five_minutes_and_what_comes_before_it_for_an_hour() {
    let test_agent = talk(LayoutName::Strata, LifetimeSetting::Auto, &[10, 0]).await;
    // Two updates of a new item: the first of them is garbage in the LOG, with much after it.
    test_agent.set_item("file:c.rs", &numbered_lines("gamma", 200));
    test_agent.say("It is new.").await;
    test_agent.say(&numbered_lines("A long story", 300)).await;
    test_agent.set_item("file:c.rs", &numbered_lines("delta", 200));
    test_agent.say("It changed.").await;
    // The system prompt alone is too small for an entry: the first breakpoint is the end of BASE.
    assert_eq!(lifetimes(&test_agent.last_sent().body), ["1h", "5m", "5m"]);
    // After another pause the LOG folds for nothing, and BASE is read.
    let before = test_agent.agent.breakdown().unwrap().total_tokens;
    test_agent.pass_minutes(10);
    test_agent.say("And now?").await;
    let breakdown = test_agent.agent.breakdown().unwrap();
    assert!(breakdown.total_tokens + 1000 < before, "{} {before}", breakdown.total_tokens);
    let usage = *test_agent.usages().last().unwrap();
    let base = breakdown.breakpoints[0].tokens as u64;
    assert!(usage.cache_read + 50 > base && usage.cache_read > 5000, "{usage:?} {base}");
    // A conversation that has folded will have garbage again.
    let asked = lifetimes(&test_agent.last_sent().body);
    assert!(asked[0] == "1h" && asked[1..].iter().all(|lifetime| lifetime == "5m"), "{asked:?}");
}

#[tokio::test]
async fn pings_know_for_how_long_the_cache_lives() {
    let test_agent = talk(LayoutName::Strata, LifetimeSetting::OneHour, &[]).await;
    let warmth = test_agent.agent.cache_warmth().unwrap();
    assert_eq!((warmth.expires_in, warmth.ping_due_in()), (3600, Some(3580)));
    test_agent.pass_minutes(50);
    assert_eq!(test_agent.agent.cache_warmth().unwrap().expires_in, 600);
    test_agent.say("Go on.").await;
    assert_eq!(test_agent.losses(), []);
}
