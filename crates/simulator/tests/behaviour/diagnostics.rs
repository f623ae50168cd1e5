use hardpan_simulator::{DiagnosticsMode, EngineSettings};
use serde_json::{Value, json};

use crate::anthropic_requests::{Anthropic, assistant, request, tool, user};
use crate::providers::scripted;

const MODEL: &str = "claude-opus-4-8";

fn server(diagnostics: DiagnosticsMode) -> Anthropic {
    Anthropic::new(EngineSettings { diagnostics, ..scripted("default: {text: Yes.}") })
}

/// The first request of a chain, and the one that follows it with these changes.
fn second(server: &Anthropic, more: &Value) -> Value {
    let first = json!({"system": "Be brief.", "diagnostics": {"previous_message_id": null}});
    let answer = server.answer(&request(MODEL, first));
    assert_eq!(answer["diagnostics"], Value::Null);
    let messages = json!([user("Hello!"), assistant(&answer["content"]), user("And?")]);
    let mut body = request(MODEL, json!({"system": "Be brief.", "messages": messages}));
    body["diagnostics"] = json!({"previous_message_id": answer["id"]});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.answer(&body)["diagnostics"].clone()
}

#[test]
fn the_first_difference_is_named() {
    let server = server(DiagnosticsMode::Compared);
    let kind = |more: Value| {
        let told = second(&server, &more)["cache_miss_reason"].clone();
        (told["type"].as_str().unwrap_or("none").to_owned(), told["cache_missed_input_tokens"].as_u64())
    };
    assert_eq!(second(&server, &json!({})), Value::Null);
    assert_eq!(second(&server, &json!({"max_tokens": 900, "metadata": {"user_id": "u"}})), Value::Null);
    let (changed, tokens) = kind(json!({"model": "claude-opus-5"}));
    assert!(changed == "model_changed" && tokens.is_some());
    let (changed, all) = kind(json!({"tools": [tool("read"), tool("write")], "system": "Be long."}));
    assert_eq!(changed, "tools_changed");
    let (changed, rest) = kind(json!({"system": "Be long."}));
    assert_eq!(changed, "system_changed");
    let (changed, least) = kind(json!({"messages": [user("Hi."), user("And?")]}));
    assert_eq!(changed, "messages_changed");
    assert!(all > rest && rest > least && least > Some(0), "{all:?} {rest:?} {least:?}");
    for more in [
        json!({"tool_choice": {"type": "auto"}}),
        json!({"thinking": {"type": "adaptive"}}),
        json!({"output_config": {"effort": "low"}}),
    ] {
        assert_eq!(kind(more), ("unavailable".to_owned(), None));
    }
    assert_eq!(
        kind(json!({"diagnostics": {"previous_message_id": "msg_none"}})),
        ("previous_message_not_found".to_owned(), None)
    );
}

#[test]
fn only_requests_that_asked_leave_a_fingerprint() {
    let server = server(DiagnosticsMode::Compared);
    let silent = server.answer(&request(MODEL, json!({})));
    assert_eq!(silent["diagnostics"], Value::Null);
    let asks = json!({"diagnostics": {"previous_message_id": silent["id"]}});
    let told = server.answer(&request(MODEL, asks))["diagnostics"].clone();
    assert_eq!(told, json!({"cache_miss_reason": {"type": "previous_message_not_found"}}));
}

#[test]
fn a_fingerprint_is_forgotten_and_belongs_to_its_organisation() {
    let mut server = server(DiagnosticsMode::Compared);
    let first = server.answer(&request(MODEL, json!({"diagnostics": {"previous_message_id": null}})));
    let asks = request(MODEL, json!({"diagnostics": {"previous_message_id": first["id"]}}));
    assert_eq!(server.answer(&asks)["diagnostics"], Value::Null);
    server.now = server.now.plus(2 * 60 * 60 * 1000);
    assert_eq!(
        server.answer(&asks)["diagnostics"]["cache_miss_reason"]["type"],
        "previous_message_not_found"
    );
}

#[test]
fn verdicts_can_be_forced() {
    for (mode, expected) in [
        (DiagnosticsMode::Pending, json!({"cache_miss_reason": null})),
        (DiagnosticsMode::NotFound, json!({"cache_miss_reason": {"type": "previous_message_not_found"}})),
        (DiagnosticsMode::Unavailable, json!({"cache_miss_reason": {"type": "unavailable"}})),
    ] {
        assert_eq!(second(&server(mode), &json!({})), expected);
    }
}

#[test]
fn a_stream_tells_it_at_its_beginning() {
    let server = server(DiagnosticsMode::NotFound);
    let mut body = request(MODEL, json!({"stream": true, "diagnostics": {"previous_message_id": "msg_1"}}));
    let text = |body: &Value| String::from_utf8(server.send_to("/v1/messages", body).body.bytes()).unwrap();
    let start = text(&body).lines().nth(1).unwrap().to_owned();
    assert!(
        start.contains(r#""diagnostics":{"cache_miss_reason":{"type":"previous_message_not_found"}}"#),
        "{start}"
    );
    body["diagnostics"] = Value::Null;
    assert!(text(&body).contains(r#""diagnostics":null"#));
}
