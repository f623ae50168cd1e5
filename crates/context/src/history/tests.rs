use serde_json::{Value, json};

use crate::test_snapshots::{
    assemble_for, assemble_for_claude, calls, left_out, lines, model, result, snapshot, tool, user,
};
use crate::{LayoutName, Snapshot};

/// A snapshot of a request that nothing follows: it has neither breakpoints nor the time.
fn alone(json: Value) -> Snapshot {
    Snapshot { stands_alone: true, ..snapshot(json) }
}

/// The conversation as `inline` sends it: nothing else is around it.
fn sent(messages: &Value) -> (Vec<String>, Vec<String>) {
    let snapshot = alone(json!({"messages": messages, "tools": [tool("read")], "prompt": "now"}));
    let made = assemble_for_claude(&snapshot, LayoutName::Inline);
    (lines(&made.prompt), left_out(&made.prompt))
}

#[test]
fn results_stand_right_after_their_calls_and_in_their_order() {
    let (lines, left_out) = sent(&json!([
        user("m1", "go"),
        calls("m2", &[("a", "read"), ("b", "read")]),
        user("m3", "hurry"),
        result("m4", "b", "B"),
        result("m5", "a", "A"),
    ]));
    assert_eq!(
        lines,
        [
            "user: go",
            "model: [a read{}]",
            "model: [b read{}]",
            "user: [a answers Done: A]",
            "user: [b answers Done: B]",
            "user: hurry",
            "user: now",
        ]
    );
    assert_eq!(left_out, [""; 0]);
}

#[test]
fn orphans_are_left_out_and_listed() {
    let (lines, left_out) = sent(&json!([
        result("m0", "z", "answers nobody"),
        user("m1", "go"),
        calls("m2", &[("a", "read"), ("b", "read")]),
        result("m3", "a", "A"),
        result("m4", "a", "A again"),
    ]));
    assert_eq!(lines, ["user: go", "model: [a read{}]", "user: [a answers Done: A]", "user: now"]);
    assert_eq!(
        left_out,
        [
            "call:b: no result of this call is known",
            "message:m0: it answers no call that is sent",
            "message:m4: it answers no call that is sent",
        ]
    );
}

#[test]
fn an_id_used_twice_is_made_unique() {
    let (lines, _) = sent(&json!([
        user("m1", "go"),
        calls("m2", &[("a", "read")]),
        result("m3", "a", "first"),
        calls("m4", &[("a", "read")]),
        result("m5", "a", "second"),
        calls("m6", &[("pan el/1", "my tool")]),
        result("m7", "pan el/1", "third"),
    ]));
    assert_eq!(
        lines[1..7],
        [
            "model: [a read{}]",
            "user: [a answers Done: first]",
            "model: [a_2 read{}]",
            "user: [a_2 answers Done: second]",
            "model: [pan_el_1 my_tool{}]",
            "user: [pan_el_1 answers Done: third]",
        ]
    );
}

#[test]
fn calls_stored_one_by_one_are_merged() {
    let (lines, _) = sent(&json!([
        user("m1", "go"),
        calls("m2", &[("a", "read")]),
        calls("m3", &[("b", "read")]),
        result("m4", "a", "A"),
        result("m5", "b", "B"),
    ]));
    assert_eq!(
        lines[1..5],
        ["model: [a read{}]", "model: [b read{}]", "user: [a answers Done: A]", "user: [b answers Done: B]"]
    );
}

#[test]
fn a_result_stored_with_its_call_counts_before_a_message() {
    let call = json!({"type": "tool_call", "id": "a", "name": "read", "arguments": "{oops",
        "result": {"content": "stored", "is_error": true}});
    let (lines, left_out) = sent(&json!([
        user("m1", "go"),
        {"id": "m2", "role": "assistant", "content": [call]},
        result("m3", "a", "in a message"),
    ]));
    assert_eq!(lines[1], r#"model: [a read{"arguments":"{oops"}]"#);
    assert_eq!(lines[2], "user: [a answers Failed: stored]");
    assert_eq!(left_out, [""; 0]);
}

#[test]
fn states_decide_what_is_said() {
    let mut whole = [user("m1", "long"), model("m2", "also long"), user("m3", "gone"), model("m4", "frozen")];
    whole[0]["state"] = json!("tl_dr");
    whole[0]["tl_dr"] = json!("short");
    whole[2]["state"] = json!("deleted");
    whole[3]["state"] = json!("detached");
    assert_eq!(sent(&json!(whole)).0, ["user: short", "model: also long", "user: now"]);
}

#[test]
fn other_kinds_speak_as_the_user() {
    let (lines, left_out) = sent(&json!([
        {"id": "c", "role": "custom", "custom_type": "note", "content": "noted", "display": false},
        {"id": "b", "role": "bash_execution", "command": "make", "output": "boom\n", "exit_code": 2},
        {"id": "h", "role": "bash_execution", "command": "id", "output": "x", "exclude_from_context": true},
        {"id": "s", "role": "compaction_summary", "summary": "so far"},
        {"id": "r", "role": "branch_summary", "summary": "elsewhere"},
    ]));
    assert_eq!(lines[0], "user: noted");
    assert_eq!(lines[1], "user: Ran `make`\n```\nboom\n```\nThe command exited with code 2.");
    assert!(lines[2].ends_with("<summary>\nso far\n</summary>"), "{}", lines[2]);
    assert!(lines[3].ends_with("<summary>\nelsewhere\n</summary>"), "{}", lines[3]);
    assert_eq!(left_out, ["message:h: run with `!!`: kept from the model"]);
}

#[test]
fn reasoning_goes_back_only_to_the_model_that_made_it() {
    let thought = |id: &str, model: &str, signature: Value| {
        json!({"id": id, "role": "assistant", "provider": "anthropic", "model": model, "content": [
            {"type": "reasoning", "text": "hm", "signature": signature}, {"type": "text", "text": "yes"}]})
    };
    let messages = json!([
        user("m1", "a"),
        thought("m2", "claude-sonnet-5", json!("sig")),
        user("m3", "b"),
        thought("m4", "claude-sonnet-5", Value::Null),
        user("m5", "c"),
        thought("m6", "claude-opus-5", json!("sig")),
    ]);
    let (lines, left_out) = sent(&messages);
    assert_eq!(
        lines,
        [
            "user: a",
            "model: [thinks hm]",
            "model: yes",
            "user: b",
            "model: yes",
            "user: c",
            "model: yes",
            "user: now"
        ]
    );
    assert_eq!(left_out.len(), 2);
    let snapshot = alone(json!({"messages": messages, "prompt": "now"}));
    let elsewhere = assemble_for(&snapshot, LayoutName::Inline, "gpt-5.5");
    assert!(!lines_hold(&elsewhere.prompt, "thinks"));
}

fn lines_hold(prompt: &hardpan_prompt::Prompt, what: &str) -> bool {
    lines(prompt).iter().any(|line| line.contains(what))
}

#[test]
fn thinking_is_off_in_a_round_that_began_without_it() {
    let round = |first: Value| {
        json!({"messages": [user("m1", "go"), first, result("m3", "a", "A")], "tools": [tool("read")],
            "thinking": {"budget_tokens": 2000}})
    };
    let call = json!({"type": "tool_call", "id": "a", "name": "read"});
    let thought = json!({"type": "reasoning", "text": "hm", "signature": "s"});
    let with = json!({"id": "m2", "role": "assistant", "content": [thought, call]});
    let without = json!({"id": "m2", "role": "assistant", "content": [call]});
    let thinking = |first| {
        assemble_for(&snapshot(round(first)), LayoutName::Strata, "claude-sonnet-4-6").prompt.thinking
    };
    assert_eq!(thinking(with), hardpan_prompt::Thinking::Budget(2000));
    assert_eq!(thinking(without), hardpan_prompt::Thinking::Unspecified);
}

#[test]
fn a_conversation_begins_and_ends_with_the_user() {
    let snapshot = alone(json!({"messages": [model("m1", "hello"), model("m2", "anyone?")]}));
    let lines = lines(&assemble_for_claude(&snapshot, LayoutName::Inline).prompt);
    assert_eq!(
        lines,
        [
            "user: The context follows; the conversation comes after it.",
            "model: hello",
            "model: anyone?",
            "user: Please continue."
        ]
    );
}

#[test]
fn without_tools_in_use_calls_are_stripped() {
    let snapshot = alone(json!({"agent_mode": "off", "tools": [tool("read")], "prompt": "now", "messages": [
        user("m1", "go"),
        {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "let me see"}, {"type": "tool_call", "id": "a", "name": "read"}]},
        result("m3", "a", "A"),
    ]}));
    let made = assemble_for_claude(&snapshot, LayoutName::Inline);
    assert_eq!(lines(&made.prompt), ["user: go", "model: let me see", "user: now"]);
    assert!(made.prompt.tools.is_empty());
}

/// The lines of a conversation with this answer of the model, in a request that asks for searches, and
/// what is left out of it.
fn with_search(content: &Value, stop: &str, more: &[Value]) -> (Vec<String>, Vec<String>) {
    let answer = json!({"id": "m2", "role": "assistant", "content": content, "stop_reason": stop});
    let messages: Vec<Value> = [user("m1", "go"), answer].into_iter().chain(more.iter().cloned()).collect();
    let mut file = json!({"messages": messages, "tools": [tool("read")], "web_search": {"max_results": 3}});
    if stop != "pause" {
        file["prompt"] = json!("now");
    }
    let made = assemble_for_claude(&snapshot(file), LayoutName::Inline);
    let lines = lines(&made.prompt).into_iter().filter(|line| line.starts_with("model: ")).collect();
    (lines, left_out(&made.prompt))
}

fn block(kind: &Value, name: &str) -> Value {
    json!({"type": "provider_block", "kind": kind, "id": "s1", "json": {"block": name}})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[test]
fn a_search_is_sent_with_its_result_or_not_at_all() {
    let (call, result) = (block(&json!("call"), "call"), block(&json!("result"), "result"));
    let whole = [r#"model: [provider {"block":"call"}]"#, r#"model: [provider {"block":"result"}]"#];
    let (lines, _) = with_search(&json!([call, result]), "end", &[]);
    assert_eq!(lines, whole);
    for alone in [&call, &result] {
        let (lines, left_out) = with_search(&json!([text("I look."), alone]), "cut", &[]);
        assert_eq!(lines, ["model: I look."]);
        assert!(left_out.iter().any(|line| line.starts_with("message:m2: its web search")), "{left_out:?}");
    }
    // The provider paused, gets the search back, and answers with the result.
    let (lines, _) = with_search(&json!([call]), "pause", &[]);
    assert_eq!(lines, whole[..1]);
    let rest =
        json!({"id": "m3", "role": "assistant", "content": [result, text("Found.")], "stop_reason": "end"});
    let (lines, _) = with_search(&json!([call]), "pause", &[rest, user("m4", "and?")]);
    assert_eq!(lines, [whole[0], whole[1], "model: Found."]);
}

#[test]
fn cited_pieces_take_the_place_of_their_text() {
    let cited = |bytes: usize, after: usize, name: &str| {
        block(&json!({"cited_text": {"bytes": bytes, "after": after}}), name)
    };
    // "Só " is four bytes, " und " five.
    let content = json!([text("Só eins und zwei."), cited(4, 10, "eins"), cited(5, 0, "zwei.")]);
    let (lines, left_out) = with_search(&content, "end", &[]);
    let expected = [
        "model: Só ",
        r#"model: [provider {"block":"eins"}]"#,
        "model:  und ",
        r#"model: [provider {"block":"zwei."}]"#,
    ];
    assert_eq!((lines, left_out), (expected.map(str::to_owned).to_vec(), Vec::new()));
    // Places that the text does not have.
    for wrong in [cited(99, 0, "x"), cited(1, 99, "x"), cited(1, 15, "inside a letter")] {
        let (lines, _) = with_search(&json!([text("Só eins und zwei."), wrong]), "end", &[]);
        assert_eq!(lines, ["model: Só eins und zwei."]);
    }
}
