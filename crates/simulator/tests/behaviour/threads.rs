use serde_json::{Value, json};

use crate::anthropic_requests::{Anthropic, request, tool, user};
use crate::providers::{merge_fields, scripted};

const BETA: &str = "message-threads-2026-08-12";

fn server() -> Anthropic {
    Anthropic::new(scripted("default: {text: Yes.}")).with_betas(BETA)
}

/// The first request of a thread; the fields of `more` replace its own.
fn first(more: Value) -> Value {
    let mut body = request("claude-opus-5", json!({"system": "Be brief.", "thread": {"type": "create"}}));
    merge_fields(&mut body, more);
    body
}

/// A request that sends only what is new.
fn next(previous: &Value, more: Value) -> Value {
    let thread = json!({"type": "continue", "previous_message_id": previous["id"]});
    let mut body = json!({
        "model": "claude-opus-5",
        "max_tokens": 8000,
        "messages": [user("And then?")],
        "thread": thread,
    });
    merge_fields(&mut body, more);
    body
}

/// Status and stable code of a refusal.
fn refusal(server: &Anthropic, body: &Value) -> (u16, String) {
    let (status, error) = server.send(body);
    (status, error["error"]["details"]["error_code"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_thread_is_billed_as_the_whole_conversation() {
    let server = server();
    let opening = server.answer(&first(json!({})));
    let continued = server.answer(&next(&opening, json!({})));
    let again = server.answer(&next(&continued, json!({})));
    let answer = |answer: &Value| json!({"role": "assistant", "content": answer["content"]});
    let messages =
        json!([user("Hello!"), answer(&opening), user("And then?"), answer(&continued), user("And then?"),]);
    let whole = server.answer(&first(json!({"messages": messages})));
    assert_eq!(again["usage"]["input_tokens"], whole["usage"]["input_tokens"]);
    assert_eq!(again["content"][0]["type"], whole["content"][0]["type"]);
}

#[test]
fn each_answer_is_continued_once() {
    let server = server();
    let opening = server.answer(&first(json!({})));
    server.answer(&next(&opening, json!({})));
    let refused = (400, "thread_already_continued".to_owned());
    assert_eq!(refusal(&server, &next(&opening, json!({}))), refused);
}

#[test]
fn a_thread_keeps_its_system_prompt_and_tools() {
    let server = server();
    let opening = server.answer(&first(json!({})));
    for changed in [json!({"system": "Be verbose."}), json!({"tools": [tool("write")]})] {
        let refused = (400, "thread_fingerprint_mismatch".to_owned());
        assert_eq!(refusal(&server, &next(&opening, changed)), refused);
    }
    server.answer(&next(&opening, json!({"system": "Be brief.", "tools": [tool("read")]})));
}

#[test]
fn a_thread_is_not_found_when_nobody_began_it_or_it_is_five_minutes_old() {
    let mut server = server();
    let not_found = (404, "thread_not_found".to_owned());
    assert_eq!(refusal(&server, &next(&json!({"id": "msg_1"}), json!({}))), not_found);
    let unkept = server.answer(&request("claude-opus-5", json!({})));
    assert_eq!(refusal(&server, &next(&unkept, json!({}))), not_found);
    let opening = server.answer(&first(json!({})));
    server.now = server.now.plus(4 * 60 * 1000);
    let continued = server.answer(&next(&opening, json!({})));
    server.now = server.now.plus(4 * 60 * 1000);
    let last = server.answer(&next(&continued, json!({})));
    server.now = server.now.plus(5 * 60 * 1000);
    assert_eq!(refusal(&server, &next(&last, json!({}))), not_found);
}

#[test]
fn a_thread_needs_its_header() {
    let server = server();
    let opening = server.answer(&first(json!({})));
    let server = server.with_betas("");
    assert_eq!(server.refusal(&next(&opening, json!({}))), "thread: Extra inputs are not permitted");
}
