use hardpan_simulator::{Account, AdaptiveThinking, AnthropicSettings, EngineSettings};
use serde_json::{Value, json};

use crate::anthropic_requests::{Anthropic, assistant, request, tool, user};
use crate::providers::scripted;

fn settings(anthropic: AnthropicSettings) -> EngineSettings {
    EngineSettings { anthropic, ..scripted("default: {text: Yes.}") }
}

fn always() -> AnthropicSettings {
    AnthropicSettings { adaptive_thinking: AdaptiveThinking::Always, ..AnthropicSettings::default() }
}

fn kinds(answer: &Value) -> Vec<&str> {
    answer["content"].as_array().unwrap().iter().map(|block| block["type"].as_str().unwrap()).collect()
}

#[test]
fn a_model_thinks_where_thinking_is_on() {
    let server = Anthropic::new(settings(always()));
    let thought = ["thinking", "text"];
    for (model, more, expected) in [
        ("claude-opus-5-5", json!({}), &thought[..]),
        ("claude-fable-5-2", json!({}), &thought),
        ("claude-sonnet-5", json!({}), &thought),
        ("claude-sonnet-5", json!({"thinking": {"type": "disabled"}}), &thought[1..]),
        ("claude-sonnet-5-5", json!({"thinking": {"type": "between_tools"}}), &thought[1..]),
        ("claude-opus-4-8", json!({}), &thought[1..]),
        ("claude-opus-4-8", json!({"thinking": {"type": "adaptive"}}), &thought),
        ("claude-haiku-4-5", json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}), &thought),
        ("claude-haiku-5-5", json!({"tool_choice": {"type": "any"}}), &thought[1..]),
    ] {
        let answer = server.answer(&request(model, more.clone()));
        assert_eq!(kinds(&answer), expected, "{model} {more}");
        let tokens = answer["usage"]["output_tokens_details"]["thinking_tokens"].as_u64().unwrap();
        assert_eq!(tokens > 0, expected.len() == 2);
        assert!(tokens <= answer["usage"]["output_tokens"].as_u64().unwrap());
    }
    // Adaptive models may answer without; those that always think may not.
    let server = Anthropic::new(settings(AnthropicSettings::default()));
    assert_eq!(kinds(&server.answer(&request("claude-sonnet-5", json!({})))), ["text"]);
    assert_eq!(kinds(&server.answer(&request("claude-opus-5-5", json!({})))), thought);
}

#[test]
fn effort_decides_how_long_a_model_thinks() {
    let server = Anthropic::new(settings(always())).with_betas("mid-conversation-output-config-2026-07-01");
    let tokens = |more: Value| {
        let answer = server.answer(&request("claude-opus-5-5", more));
        answer["usage"]["output_tokens_details"]["thinking_tokens"].as_u64().unwrap()
    };
    let effort = |effort: &str| tokens(json!({"output_config": {"effort": effort}}));
    let all = ["low", "medium", "high", "xhigh", "max"].map(effort);
    assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    assert_eq!(tokens(json!({})), effort("medium"));
    let told = json!({"role": "system", "content": [], "output_config": {"effort": "max"}});
    assert_eq!(tokens(json!({"messages": [told, user("Hello!")]})), effort("max"));
    // A change counts from the next user message on.
    assert_eq!(tokens(json!({"messages": [user("Hello!"), told]})), effort("medium"));
}

#[test]
fn thinking_that_is_left_out_comes_as_a_signature_only() {
    let server = Anthropic::new(settings(always()));
    let show = |display: &str| json!({"thinking": {"type": "adaptive", "display": display}});
    for (model, more, is_shown) in [
        ("claude-opus-5-5", json!({}), false),
        ("claude-opus-5-5", show("summarized"), true),
        ("claude-opus-4-6", json!({"thinking": {"type": "adaptive"}}), true),
        ("claude-opus-4-6", show("omitted"), false),
    ] {
        let mut body = request(model, more);
        let answer = server.answer(&body);
        let block = &answer["content"][0];
        assert_eq!((block["thinking"] != "", block["signature"] != ""), (is_shown, true), "{model}");
        body["stream"] = json!(true);
        let stream = String::from_utf8(server.send_to("/v1/messages", &body).body.bytes()).unwrap();
        assert_eq!(stream.contains("thinking_delta"), is_shown);
        assert_eq!(stream.matches("signature_delta").count(), 1);
        // What the client writes into the empty field does not matter.
        let mut echoed = answer["content"].clone();
        if !is_shown {
            echoed[0]["thinking"] = json!("Something.");
        }
        body["stream"] = json!(false);
        body["messages"] = json!([user("Hello!"), assistant(&echoed), user("And?")]);
        server.answer(&body);
    }
}

/// A conversation of two turns on a model, and the same with something changed before the thinking.
struct Changed {
    same: Value,
    other: Value,
}

fn conversation(server: &Anthropic, model: &str, thinking: &Value) -> Changed {
    let first = server.answer(&request(model, json!({"thinking": thinking})));
    let messages = |start: &str| json!([user(start), assistant(&first["content"]), user("And?")]);
    let body = |start: &str| request(model, json!({"thinking": thinking, "messages": messages(start)}));
    Changed { same: body("Hello!"), other: body("Good morning!") }
}

#[test]
fn thinking_is_bound_to_its_conversation_by_model_and_account() {
    let words = "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.";
    for (account, model, is_refused) in [
        (Account::New, "claude-opus-5-5", true),
        (Account::Old, "claude-opus-5-5", false),
        (Account::Old, "claude-fable-5-2", true),
        (Account::New, "claude-opus-5", false),
    ] {
        let server = Anthropic::new(settings(AnthropicSettings { account, ..always() }));
        let Changed { same, other } = conversation(&server, model, &json!({"type": "adaptive"}));
        server.answer(&same);
        if is_refused {
            assert!(server.refusal(&other).starts_with(words), "{model}");
        } else {
            server.answer(&other);
        }
    }
}

#[test]
fn stale_thinking_is_dropped_where_the_request_asks_for_it() {
    let server = Anthropic::new(settings(AnthropicSettings { account: Account::Old, ..always() }))
        .with_betas("thinking-binding-controls-2026-08-01");
    let binding = json!({"prefix_mismatch_behavior": "drop_block"});
    let thinking = json!({"type": "adaptive", "display": "summarized", "block_binding": binding});
    let Changed { same, other } = conversation(&server, "claude-opus-5-5", &thinking);
    let kept = server.answer(&same);
    assert_eq!(kept["input_transformations"], json!([]));
    let dropped = server.answer(&other);
    let expected = json!([{"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}]);
    assert_eq!(dropped["input_transformations"], expected);
    let tokens = |answer: &Value| answer["usage"]["input_tokens"].as_u64().unwrap();
    assert!(tokens(&dropped) < tokens(&kept), "dropped thinking is free");
    // Without the wish, an old account is only told.
    let plain = json!({"type": "adaptive"});
    let Changed { other, .. } = conversation(&server, "claude-opus-5-5", &plain);
    assert_eq!(server.answer(&other)["input_transformations"][0]["type"], "thinking_mismatch_allowed");
}

#[test]
fn what_is_no_edit_keeps_the_binding_and_a_gap_does_not() {
    let server = Anthropic::new(settings(always()));
    let model = "claude-sonnet-5-5";
    let mut messages = vec![user("One")];
    for next in ["Two", "Three", "Four"] {
        let answer = server.answer(&request(model, json!({"messages": messages})));
        messages.push(assistant(&answer["content"]));
        messages.push(user(next));
    }
    let send = |messages: &[Value], more: Value| {
        let mut body = request(model, json!({"messages": messages}));
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        server.send(&body).0
    };
    let without = |turns: &[usize]| {
        let mut messages = messages.clone();
        for turn in turns {
            messages[2 * turn + 1]["content"].as_array_mut().unwrap().remove(0);
        }
        messages
    };
    assert_eq!(
        send(&messages, json!({"output_config": {"effort": "low"}, "tool_choice": {"type": "auto"}})),
        200
    );
    for gone in [&[0][..], &[0, 1], &[2], &[0, 1, 2]] {
        assert_eq!(send(&without(gone), json!({})), 200, "{gone:?}");
    }
    assert_eq!(send(&without(&[1]), json!({})), 400, "a gap");
    let mut deferred = tool("rare");
    deferred["defer_loading"] = json!(true);
    let mut late = request(model, json!({"messages": messages}));
    late["tools"].as_array_mut().unwrap().push(deferred);
    assert_eq!(server.send(&late).0, 200);
    assert_eq!(send(&messages, json!({"system": "Be brief."})), 400);
    assert_eq!(send(&messages, json!({"tools": [tool("read"), tool("write")]})), 400);
    let mut moved = messages.clone();
    moved[0] = json!({"role": "user", "content": [{"type": "text", "text": "One", "cache_control": {"type": "ephemeral"}}]});
    assert_eq!(send(&moved, json!({})), 200);
}

#[test]
fn another_models_thinking_is_read_or_left_out_silently() {
    let server = Anthropic::new(settings(always()));
    let first = server.answer(&request("claude-opus-5-5", json!({})));
    let messages = json!([user("Hello!"), assistant(&first["content"]), user("And?")]);
    server.answer(&request("claude-sonnet-5-5", json!({"messages": messages})));
    // The way back still finds it as it was.
    server.answer(&request("claude-opus-5-5", json!({"messages": messages})));
}

#[test]
fn the_list_of_models_tells_what_each_takes() {
    let catalogue = hardpan_models::Catalogue::builtin();
    let server = Anthropic::new(settings(AnthropicSettings::default()));
    for model in catalogue.models().filter(|model| model.provider == "anthropic" && !model.gone) {
        let headers = [("x-api-key", "k"), ("anthropic-version", "2026-10-21")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        let path = format!("/v1/models/{}", model.id);
        let request_ =
            hardpan_simulator::Request { method: "GET", path: &path, headers: &headers, body: b"" };
        let entry: Value =
            serde_json::from_slice(&server.engine.answer(&request_, server.now).body.bytes()).unwrap();
        let types = &entry["capabilities"]["thinking"]["types"];
        for kind in ["adaptive", "enabled", "disabled", "between_tools"] {
            let mut thinking = json!({"type": kind});
            if kind == "enabled" {
                thinking["budget_tokens"] = json!(2000);
            }
            let status = server.send(&request(&model.id, json!({"thinking": thinking}))).0;
            let is_supported = types[kind]["supported"] == true;
            assert_eq!(status == 200, is_supported, "{} {kind}", model.id);
        }
        for effort in ["low", "medium", "high", "xhigh", "max"] {
            let status = server.send(&request(&model.id, json!({"output_config": {"effort": effort}}))).0;
            let is_supported = entry["capabilities"]["effort"][effort]["supported"] == true;
            assert_eq!(status == 200, is_supported, "{} {effort}", model.id);
        }
    }
}
