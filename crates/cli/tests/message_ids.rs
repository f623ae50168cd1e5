//! Message ids, documents and plugins: on the wire only where a provider's row of data says so.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use serde_json::{Value, json};
use support::{LAYOUTS, Sandbox, snapshot, texts};

/// A server that wants message ids, as a user would add it.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let rows = json!({
        "providers": [{
            "id": "notes",
            "base_url": "https://notes.example/v1",
            "message_ids": true,
            "document_context": true,
            "include_reasoning": true,
            "web_search_plugin": "web-search"
        }],
        "models": [{"provider": "notes", "id": "scribe", "vision": true, "context": 200000}]
    });
    sandbox.write("config/models.json", rows.to_string());
    sandbox
}

fn body(sandbox: &Sandbox, name: &str, layout: &str) -> Value {
    let file = snapshot(name);
    sandbox.json(&["request", "--snapshot", &file, "--layout", layout, "--model", "notes/scribe", "--json"])
}

fn messages(body: &Value) -> &[Value] {
    body["messages"].as_array().unwrap()
}

#[test]
fn messages_of_the_conversation_have_their_ids_and_others_have_none() {
    let body = body(&sandbox(), "everything", "inline");
    let rows: Vec<(&str, Option<&str>)> = messages(&body)[1..]
        .iter()
        .map(|message| (message["role"].as_str().unwrap(), message.get("message_id").and_then(Value::as_str)))
        .collect();
    let conversation = [
        ("user", Some("m1")),
        ("assistant", Some("m2")),
        ("user", Some("m3")),
        ("assistant", Some("m4")),
        ("tool", None),
        ("tool", None),
        ("assistant", Some("m7")),
        ("user", Some("m8")),
        ("user", Some("m9")),
        ("user", Some("m10")),
        ("user", Some("m12")),
        ("user", Some("m13")),
        ("assistant", Some("m14")),
    ];
    assert_eq!(rows[..13], conversation);
    assert!(rows[13..rows.len() - 1].iter().all(|row| *row == ("user", None)), "{rows:?}");
    assert_eq!(rows.last(), Some(&("user", Some("m17"))));
}

#[test]
fn the_system_message_s_id_depends_on_its_text_alone() {
    let sandbox = sandbox();
    let id =
        |name: &str| body(&sandbox, name, "inline")["messages"][0]["message_id"].as_str().unwrap().to_owned();
    let everything = id("everything");
    assert_eq!(everything, id("everything"));
    assert_eq!(id("images"), id("reasoning"), "the same text");
    assert_ne!(everything, id("images"));
    let digits = everything.strip_prefix("system-").unwrap();
    assert!(digits.len() == 16 && digits.chars().all(|c| c.is_ascii_hexdigit()), "{everything}");
}

#[test]
fn documents_are_attached_to_the_last_user_message() {
    let body = body(&sandbox(), "everything", "inline");
    let [before @ .., last] = messages(&body) else { panic!("there are messages") };
    assert_eq!(texts(last)[0], "Make it 42.");
    assert_eq!(last["documentContext"], json!({"documentIds": ["doc-7", "doc-8"]}));
    assert!(before.iter().all(|message| message.get("documentContext").is_none()));
    assert_eq!(body["plugins"], json!([{"id": "web-search", "max_results": 3}]));
    assert_eq!((&body["stream"], &body["include_reasoning"]), (&json!(true), &json!(true)));
}

#[test]
fn what_a_provider_does_not_understand_is_not_sent_but_listed() {
    let sandbox = sandbox();
    let file = snapshot("everything");
    let body =
        sandbox.json(&["request", "--snapshot", &file, "--layout", "inline", "--model", "gpt-4.1", "--json"]);
    let known =
        |message: &Value| message.get("message_id").is_none() && message.get("documentContext").is_none();
    assert!(messages(&body).iter().all(known) && body.get("plugins").is_none());
    let context =
        sandbox.json(&["context", "--snapshot", &file, "--layout", "inline", "--model", "gpt-4.1", "--json"]);
    let left_out: Vec<&str> =
        context["left_out"].as_array().unwrap().iter().map(|entry| entry["key"].as_str().unwrap()).collect();
    for key in [
        "document:doc-7",
        "document:doc-8",
        "web_search",
        "call:c3",
        "message:m11",
        "panel:chat",
        "file:data.bin",
    ] {
        assert!(left_out.contains(&key), "{key}: {left_out:?}");
    }
}

#[test]
fn a_continuation_lists_its_images_and_documents() {
    let sandbox = sandbox();
    let file = snapshot("continuation");
    for layout in LAYOUTS {
        let context = sandbox.json(&[
            "context",
            "--snapshot",
            &file,
            "--layout",
            layout,
            "--model",
            "notes/scribe",
            "--json",
        ]);
        let left_out = context["left_out"].to_string();
        assert!(
            left_out.contains("image:logo.png") && left_out.contains("document:doc-1"),
            "{layout}: {left_out}"
        );
    }
}
