use super::*;

/// A session of Claude Code: a prompt, a compaction that only the totals know, and another prompt.
fn session(totals: &Value) -> String {
    let answer = |id: &str, parent: &str, minute: u64, [read, write]: [u64; 2]| {
        json!({"type": "assistant", "uuid": id, "parentUuid": parent, "sessionId": "s", "requestRef": format!("r-{id}"),
            "timestamp": format!("2026-11-14T09:0{minute}:04Z"),
            "message": {"id": id, "role": "assistant", "model": "claude-sonnet-5", "content": [{"type": "text", "text": "So."}],
                "usage": {"input_tokens": 2, "output_tokens": 10, "cache_read_input_tokens": read, "cache_creation_input_tokens": write}}})
    };
    let asked = |id: &str, parent: Value, minute: u64| {
        json!({"type": "user", "uuid": id, "parentUuid": parent, "sessionId": "s",
            "timestamp": format!("2026-11-14T09:0{minute}:00Z"), "message": {"role": "user", "content": "Why?"}})
    };
    let sent = |id: &str, source: &str, model: &str| {
        json!({"type": "api-request", "sessionId": "s", "id": id, "querySource": source, "params": {"model": model},
            "keep": 0, "tail": []})
    };
    let lines = [
        asked("u1", Value::Null, 0),
        sent("r-a1", "repl", "claude-sonnet-5"),
        answer("a1", "u1", 0, [0, 20_000]),
        sent("r-failed", "repl", "claude-sonnet-5"),
        sent("r-compact", "compact", "claude-sonnet-5"),
        sent("r-title", "title", "claude-haiku-4-5"),
        asked("u2", json!("a1"), 1),
        sent("r-a2", "repl", "claude-sonnet-5"),
        answer("a2", "u2", 1, [20_000, 500]),
        totals.clone(),
    ];
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn totals(haiku: bool) -> Value {
    let usage = |input: u64, read: u64, write: u64, output: u64| json!({"inputTokens": input, "cacheReadInputTokens": read, "cacheCreationInputTokens": write, "outputTokens": output});
    // Two requests of the transcript, and one of 20,014 tokens with an answer of 900.
    let mut models = json!({"claude-sonnet-5[1m]": usage(8, 40_000, 20_510, 920)});
    let dollars = if haiku { 0.068_851 } else { 0.068_491 };
    if haiku {
        models["claude-haiku-4-5-20251001"] = usage(300, 0, 0, 12);
    }
    json!({"type": "cost-state", "sessionId": "s", "totalCostUSD": dollars, "modelUsage": models})
}

#[test]
fn what_only_the_totals_know_is_billed_as_side_requests() {
    let audit = audit("c.jsonl", &session(&totals(true)));
    let side: Vec<_> = audit
        .side_requests
        .iter()
        .map(|side| {
            (&*side.model, side.bill.tokens, side.purposes.iter().map(|name| &**name).collect::<Vec<_>>())
        })
        .collect();
    let compaction =
        TokenUsage { input: 4, cache_read: 20_000, cache_write_5m: 10, output: 900, ..TokenUsage::default() };
    let title = TokenUsage { input: 300, output: 12, ..TokenUsage::default() };
    assert_eq!(
        side,
        [("claude-haiku-4-5", title, vec!["title"]), ("claude-sonnet-5", compaction, vec!["compact"])]
    );
    assert_eq!(audit.requests.len(), 2);
    // All that the recording's own totals have.
    let all = audit.billed.tokens;
    assert_eq!((all.input, all.cache_read, all.cache_write_5m), (308, 40_000, 20_510));
    let total = audit.total_dollars.unwrap();
    assert!((total - audit.recorded_dollars.unwrap()).abs() < 1e-9, "{total}");
    let units = 300.0 + 4.0 + 2000.0 + 12.5;
    let conversation = 4.0 + 2000.0 + 1.25 * 20_500.0;
    assert!((audit.billed.cost - conversation - units).abs() < 1e-6);
    assert!((audit.stable_prefix_cost - audit.billed.cost).abs() < 1e-6);
}

#[test]
fn totals_without_anything_more_and_totals_from_before_add_nothing() {
    let mut exact = totals(false);
    exact["modelUsage"] = json!({"claude-sonnet-5": {"inputTokens": 4, "cacheReadInputTokens": 20_000,
        "cacheCreationInputTokens": 20_500, "outputTokens": 25}});
    assert_eq!(audit("c.jsonl", &session(&exact)).side_requests, []);
    // Written before the last answer, the totals do not cover it.
    let text = session(&exact);
    let (lines, last) = (text.lines().collect::<Vec<_>>(), text.lines().last().unwrap());
    let early = [&lines[..3], &[last], &lines[3..lines.len() - 1]].concat().join("\n");
    assert_eq!(audit("c.jsonl", &early).recorded_dollars, None);
}

#[test]
fn counts_that_begin_anew_are_added_up() {
    let text = session(&totals(false));
    let mut again = totals(false);
    again["totalCostUSD"] = 0.01.into();
    again["modelUsage"] = json!({"claude-sonnet-5": {"inputTokens": 7, "cacheReadInputTokens": 1000}});
    let audit = audit("c.jsonl", &format!("{text}{again}\n"));
    assert_eq!(audit.billed.tokens.cache_read, 41_000);
    assert!(audit.recorded_dollars.is_some_and(|dollars| (dollars - 0.078_491).abs() < 1e-9));
}

#[test]
fn a_sub_agent_with_a_file_of_its_own_is_not_counted_twice() {
    let sub = json!({"type": "user", "uuid": "x1", "parentUuid": null, "isSidechain": true, "sessionId": "s",
        "timestamp": "2026-11-14T09:00:10Z", "message": {"role": "user", "content": "Search."}});
    let found = json!({"type": "assistant", "uuid": "x2", "parentUuid": "x1", "isSidechain": true, "sessionId": "s",
        "timestamp": "2026-11-14T09:00:20Z", "message": {"id": "x2", "role": "assistant", "model": "claude-sonnet-5",
            "content": [], "usage": {"input_tokens": 4, "cache_read_input_tokens": 20_000, "cache_creation_input_tokens": 10, "output_tokens": 900}}});
    let mut audits =
        [audit("c.jsonl", &session(&totals(false))), audit("agent-x.jsonl", &format!("{sub}\n{found}\n"))];
    let before = audits[0].billed;
    Audit::deduct_sub_agents(&mut audits);
    assert_eq!(audits[0].side_requests, []);
    assert!((audits[0].billed.cost + audits[1].billed.cost - before.cost).abs() < 1e-6);
    assert_eq!(audits[0].billed.tokens.cache_read, 20_000);
}
