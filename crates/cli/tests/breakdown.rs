//! `hardpan context`: its keys, and that its numbers add up.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::collections::BTreeSet;

use hardpan_models::{Catalogue, Protocol};
use hardpan_prompt::{TokenCounter, TokenFactor, Vocabulary};
use hardpan_providers::decode::decode_request;
use serde_json::{Value, json};
use support::{LAYOUTS, Sandbox, snapshot};

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn context(sandbox: &Sandbox, name: &str, layout: &str, model: &str) -> Value {
    let file = snapshot(name);
    sandbox.json(&["context", "--snapshot", &file, "--layout", layout, "--model", model, "--json"])
}

fn assert_keys(value: &Value, documented: &[&str]) {
    let object = value.as_object().unwrap();
    for key in documented {
        assert!(object.contains_key(*key), "{key} is missing in {value}");
    }
}

#[test]
fn the_breakdown_has_every_documented_key() {
    let context = context(&Sandbox::new(), "l0_history", "tiers", "claude-sonnet-5");
    let top = [
        "model",
        "layout",
        "total_tokens",
        "max_input_tokens",
        "blocks",
        "breakdown",
        "tier_info",
        "empty_tiers",
        "breakpoints",
        "left_out",
        "price",
    ];
    assert_keys(&context, &top);
    assert_eq!((&context["model"], &context["layout"]), (&json!("claude-sonnet-5"), &json!("tiers")));
    for block in list(&context["blocks"]) {
        assert_keys(block, &["name", "tier", "tokens", "cached", "contents"]);
        list(&block["contents"])
            .iter()
            .for_each(|content| assert_keys(content, &["type", "key", "tokens", "n", "threshold"]));
    }
    let columns = ["system", "legend", "symbol_map", "tree", "files", "urls", "history", "panels", "tools"];
    let keys: BTreeSet<&str> = context["breakdown"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(columns));
    list(&context["breakpoints"]).iter().for_each(|mark| assert_keys(mark, &["block", "tokens", "ttl"]));
    list(&context["left_out"]).iter().for_each(|entry| assert_keys(entry, &["key", "reason", "code"]));
    assert_keys(&context["price"], &["cold", "warm", "currency"]);
}

#[test]
fn the_tiers_say_what_they_hold() {
    let context = context(&Sandbox::new(), "l0_history", "tiers", "claude-sonnet-5");
    let mut info = context["tier_info"].clone();
    for tier in info.as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
        assert!(tier.shift_remove("tokens").unwrap().as_u64() > Some(0));
    }
    assert_eq!(
        info,
        json!({
            "L0": {"symbols": 2, "files": 2, "history": 2, "has_tree": false, "has_system": true, "has_legend": true},
            "L1": {"symbols": 1, "files": 1, "history": 2, "has_tree": false},
            "L2": {"symbols": 1, "files": 1, "history": 0, "has_tree": false},
            "L3": {"symbols": 2, "files": 1, "history": 4, "has_tree": false},
            "active": {"symbols": 0, "files": 1, "history": 2, "has_tree": true, "has_urls": true, "has_history": true},
            "empty_tiers": 0
        })
    );
    assert_eq!(context["user_text"], "Stop it again.");
    let columns = &context["breakdown"];
    let map = columns["legend"].as_u64().unwrap() + columns["symbol_map"].as_u64().unwrap();
    assert_eq!(context["context_map_tokens"].as_u64(), Some(map));
    let contents = list(&context["blocks"]).iter().flat_map(|block| list(&block["contents"]));
    let entry = contents.into_iter().find(|content| content["key"] == "symbols:src/c.py").unwrap();
    assert_eq!(
        (&entry["n"], &entry["threshold"], &entry["type"]),
        (&json!(10), &json!(9), &json!("symbols"))
    );
    let left_out = list(&context["left_out"]);
    assert!(
        left_out.contains(
            &json!({"key": "symbols:src/open.py", "reason": "the file itself is open", "code": "file_open"})
        ),
        "{left_out:?}"
    );
}

#[test]
fn empty_tiers_are_counted() {
    let context = context(&Sandbox::new(), "plain", "tiers", "claude-sonnet-5");
    assert_eq!((&context["empty_tiers"], &context["tier_info"]["empty_tiers"]), (&json!(3), &json!(3)));
}

#[test]
fn the_numbers_of_the_breakdown_add_up() {
    let sandbox = Sandbox::new();
    let tiers = BTreeSet::from(["L0", "L1", "L2", "L3", "active", "base", "log", "tail", "panel", "inline"]);
    let sum =
        |values: &mut dyn Iterator<Item = &Value>| values.map(|value| value.as_u64().unwrap()).sum::<u64>();
    for name in ["everything", "l0_history", "strata_second_request", "detached_and_summarised"] {
        for layout in LAYOUTS {
            for model in ["claude-sonnet-5", "gpt-5.6"] {
                let context = context(&sandbox, name, layout, model);
                let total = context["total_tokens"].as_u64().unwrap();
                let blocks = list(&context["blocks"]);
                assert_eq!(
                    sum(&mut blocks.iter().map(|block| &block["tokens"])),
                    total,
                    "{name} {layout} {model}"
                );
                assert_eq!(
                    sum(&mut context["breakdown"].as_object().unwrap().values()),
                    total,
                    "{name} {layout} {model}"
                );
                for block in blocks {
                    let contents = list(&block["contents"]).iter().map(|content| &content["tokens"]);
                    assert_eq!(
                        Some(sum(&mut contents.into_iter())),
                        block["tokens"].as_u64(),
                        "{name} {layout}: {block:#}"
                    );
                    assert!(tiers.contains(block["tier"].as_str().unwrap()), "{block:#}");
                }
                let marks = list(&context["breakpoints"]);
                assert!(marks.len() <= 4 && marks.iter().all(|mark| mark["tokens"].as_u64() <= Some(total)));
                let price = &context["price"];
                assert!(
                    price["warm"].as_f64() <= price["cold"].as_f64() && price["warm"].as_f64() > Some(0.0),
                    "{price}"
                );
            }
        }
    }
}

/// The tokens of a body's own blocks, counted from its bytes alone. What the server declares for its own
/// search, only the server knows.
fn counted(body: &Value) -> Vec<u64> {
    let mut body = body.clone();
    if let Some(tools) = body["tools"].as_array_mut() {
        tools.retain(|tool| tool.get("type").is_none());
    }
    let bytes = serde_json::to_vec(&body).unwrap();
    let prompt = decode_request(Protocol::Anthropic, &bytes).unwrap().prompt;
    let model = Catalogue::builtin().model(None, &prompt.model).unwrap();
    let measured =
        TokenCounter::new(Vocabulary::O200k).measure(&prompt).scaled(&TokenFactor::new(model.token_factor));
    measured.blocks().map(|tokens| tokens as u64).collect()
}

/// How much there is up to the end of each.
fn ends(tokens: impl IntoIterator<Item = u64>) -> Vec<u64> {
    let add = |sum: &mut u64, tokens: u64| {
        *sum += tokens;
        Some(*sum)
    };
    tokens.into_iter().scan(0, add).collect()
}

#[test]
fn a_region_has_the_tokens_of_the_bodys_own_blocks() {
    let sandbox = Sandbox::new();
    for name in ["everything", "l0_history", "strata_second_request", "detached_and_summarised"] {
        for layout in LAYOUTS {
            let file = snapshot(name);
            let asked = ["--snapshot", &file, "--layout", layout, "--model", "claude-sonnet-5", "--json"];
            let request = sandbox.json(&[&["request", "--origins"], &asked[..]].concat());
            let tokens = |value: &Value| -> Vec<u64> {
                list(value).iter().map(|block| block["tokens"].as_u64().unwrap()).collect()
            };
            let counted = counted(&request["body"]);
            assert_eq!(tokens(&request["origins"]), counted, "{name} {layout}");
            let regions = ends(tokens(&context(&sandbox, name, layout, "claude-sonnet-5")["blocks"]));
            let ends = ends(counted);
            assert_eq!(regions.last(), ends.last(), "{name} {layout}");
            assert!(regions.iter().all(|end| ends.contains(end)), "{name} {layout}: {regions:?} {ends:?}");
        }
    }
}

#[test]
fn tables_say_the_same_as_json() {
    let sandbox = Sandbox::new();
    let file = snapshot("strata_second_request");
    let model = ["--model", "claude-sonnet-5"];
    let table = sandbox.text(&[&["request", "--snapshot", &file], &model[..]].concat());
    let context = context(&sandbox, "strata_second_request", "strata", "claude-sonnet-5");
    let total = context["total_tokens"].as_u64().unwrap().to_string();
    let grouped = format!("{},{}", &total[..total.len() - 3], &total[total.len() - 3..]);
    let head = format!("anthropic/claude-sonnet-5 · strata · about {grouped} of 968,000 tokens\n");
    assert!(table.starts_with(&head), "{table}");
    assert_eq!(table.matches("◆ 5m").count(), list(&context["breakpoints"]).len(), "{table}");
    assert!(table.contains("file:src/ring.rs (update)"), "{table}");
    // Longer than any terminal in which it would have been cut.
    assert!(
        table.lines().any(|line| line.chars().count() > 100 && line.ends_with("(former copy)")),
        "{table}"
    );
    let text = sandbox.text(&[&["context", "--snapshot", &file], &model[..]].concat());
    assert!(text.starts_with(&head) && text.contains("\nby kind: system "), "{text}");
}
