//! The checker itself: each mistake is told from a right request, and by its own rule.

use hardpan_context::Target;
use hardpan_models::Catalogue;
use serde_json::{Value, json};

use super::{blocks, check};

/// A mistake, made in a body that has none.
type Change = fn(&mut Value);

fn target(model: &str) -> Target {
    Target::new(Catalogue::builtin(), None, model).expect("a listed model")
}

/// The rule that a body breaks after a change, if it breaks one.
fn broken(model: &str, mut body: Value, change: impl Fn(&mut Value)) -> Option<&'static str> {
    change(&mut body);
    let markers = blocks(&body).iter().filter(|block| block.marked).count();
    check(&body, &target(model), markers).err().map(|violation| violation.rule)
}

fn anthropic() -> Value {
    let text = |text: &str| json!({"type": "text", "text": text});
    json!({
        "model": "claude-sonnet-4-6", "max_tokens": 4000, "stream": true,
        "thinking": {"type": "enabled", "budget_tokens": 1024},
        "system": [text("Be brief.")],
        "tools": [{"name": "read", "description": "", "input_schema": {"type": "object"}}],
        "messages": [
            {"role": "user", "content": [text("go")]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "a", "name": "read", "input": {}},
                {"type": "tool_use", "id": "b", "name": "read", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "A"},
                {"type": "tool_result", "tool_use_id": "b", "content": [text("B")]},
                text("and now?"),
            ]},
        ],
    })
}

#[test]
fn mistakes_in_a_messages_request_are_found() {
    let broken = |change: Change| broken("claude-sonnet-4-6", anthropic(), change);
    assert_eq!(broken(|_| {}), None);
    let cases: [(Change, &str); 19] = [
        (
            |body| body["thinking"] = json!({"type": "between_tools"}),
            "the form of thinking is one that the model takes",
        ),
        (|body| body["output_config"] = json!({"effort": "xhigh"}), "the effort is one that the model takes"),
        (
            |body| {
                body["messages"]
                    .as_array_mut()
                    .expect("a list")
                    .push(json!({"role": "system", "content": []}));
            },
            "a system message has its place",
        ),
        (|body| body["thinking"]["block_binding"] = json!({}), "only bound reasoning is controlled"),
        (
            |body| drop(body["messages"][2]["content"].as_array_mut().expect("a list").remove(0)),
            "every call is answered",
        ),
        (
            |body| body["messages"][2]["content"][0]["tool_use_id"] = json!("z"),
            "a result answers a call of the message before",
        ),
        (|body| body["messages"][1]["content"][2]["id"] = json!("a"), "a call's id is used once"),
        (|body| body["messages"][1]["content"][1]["id"] = json!("a/b"), "a call's id is plain"),
        (|body| body["messages"][1]["content"][1]["input"] = json!([]), "arguments are an object"),
        (|body| body["messages"][0]["content"][0]["text"] = json!(" \n"), "no text is blank"),
        (|body| body["messages"][0]["role"] = json!("assistant"), "the user speaks first"),
        (
            |body| body["messages"][2]["content"].as_array_mut().expect("a list").swap(1, 2),
            "results come first",
        ),
        (|body| body["messages"][2]["content"][1]["content"] = json!([]), "no result is blank"),
        (
            |body| drop(body.as_object_mut().expect("a body").shift_remove("tools")),
            "tools that are used are declared",
        ),
        (
            |body| body["messages"][1]["content"].as_array_mut().expect("a list").swap(0, 2),
            "no message ends with reasoning",
        ),
        (
            |body| body["messages"][1]["content"].as_array_mut().expect("a list").swap(0, 1),
            "a round in progress begins with its reasoning",
        ),
        (|body| body["messages"][1]["content"][0]["signature"] = json!(""), "reasoning is signed"),
        (|body| body["thinking"]["budget_tokens"] = json!(4000), "the thinking budget fits"),
        (|body| body["messages"][0]["content"] = json!("go"), "a message says something, as a list"),
    ];
    for (change, rule) in cases {
        assert_eq!(broken(change), Some(rule));
    }
    let last = |body: &mut Value| {
        let again = json!({"role": "assistant", "content": [{"type": "text", "text": "so"}]});
        body["messages"].as_array_mut().expect("a list").push(again);
    };
    assert_eq!(self::broken("claude-sonnet-4-6", anthropic(), last), Some("the user speaks last"));
    let marked = |body: &mut Value| {
        let text = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
        body["messages"][0]["content"] = vec![text; 5].into();
    };
    assert_eq!(self::broken("claude-sonnet-4-6", anthropic(), marked), Some("at most 4 markers"));
}

fn openai() -> Value {
    let call =
        |id: &str| json!({"id": id, "type": "function", "function": {"name": "read", "arguments": "{}"}});
    json!({
        "model": "gpt-4o", "max_completion_tokens": 4000, "stream": true, "stream_options": {"include_usage": true},
        "tools": [{"type": "function", "function": {"name": "read", "description": "", "parameters": {"type": "object"}}}],
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": null, "tool_calls": [call("a"), call("b")]},
            {"role": "tool", "tool_call_id": "b", "content": "B"},
            {"role": "tool", "tool_call_id": "a", "content": ""},
            {"role": "user", "content": "and now?"},
        ],
    })
}

#[test]
fn mistakes_in_a_chat_request_are_found() {
    let broken = |change: Change| broken("gpt-4o", openai(), change);
    assert_eq!(broken(|_| {}), None);
    let cases: [(Change, &str); 11] = [
        (|body| body["messages"].as_array_mut().expect("a list").swap(4, 5), "every call is answered"),
        (
            |body| drop(body["messages"].as_array_mut().expect("a list").remove(2)),
            "a result answers a call of the message before",
        ),
        (|body| body["messages"][2]["tool_calls"][1]["id"] = json!("a"), "a call's id is used once"),
        (|body| body["messages"][2]["tool_calls"][1]["id"] = json!("x".repeat(41)), "a call's id is plain"),
        (
            |body| body["messages"][2]["tool_calls"][0]["function"]["arguments"] = json!("[]"),
            "arguments are an object",
        ),
        (|body| body["messages"][5]["content"] = json!(""), "no text is empty"),
        (
            |body| body["messages"][5]["content"] = json!([{"type": "text", "text": "x"}]),
            "one form of content",
        ),
        (|body| body["messages"][5]["role"] = json!("assistant"), "the user speaks last"),
        (|body| body["messages"].as_array_mut().expect("a list").swap(0, 1), "the system prompt comes first"),
        (
            |body| drop(body.as_object_mut().expect("a body").shift_remove("tools")),
            "tools that are used are declared",
        ),
        (|body| body["messages"][1]["reasoning"] = json!("hm"), "an object has its known fields"),
    ];
    for (change, rule) in cases {
        assert_eq!(broken(change), Some(rule));
    }
}

fn gemini() -> Value {
    let call = |id: &str| json!({"functionCall": {"id": id, "name": "read", "args": {}}});
    let response =
        |id: &str| json!({"functionResponse": {"id": id, "name": "read", "response": {"output": id}}});
    let mut first = call("a");
    first["thoughtSignature"] = json!("cw==");
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "tools": [{"functionDeclarations": [{"name": "read", "description": "", "parametersJsonSchema": {"type": "object"}}]}],
        "contents": [
            {"role": "user", "parts": [{"text": "go"}]},
            {"role": "model", "parts": [{"text": "so"}, first, call("b")]},
            {"role": "user", "parts": [response("a"), response("b")]},
            {"role": "user", "parts": [{"text": "and now?"}]},
        ],
        "generationConfig": {"maxOutputTokens": 4000, "thinkingConfig": {"includeThoughts": true}},
    })
}

#[test]
fn mistakes_in_a_gemini_request_are_found() {
    let broken = |change: Change| broken("gemini-3.5-flash", gemini(), change);
    assert_eq!(broken(|_| {}), None);
    let cases: [(Change, &str); 11] = [
        (
            |body| drop(body["contents"][2]["parts"].as_array_mut().expect("a list").remove(0)),
            "the next message answers every call",
        ),
        (
            |body| body["contents"][2]["parts"].as_array_mut().expect("a list").swap(0, 1),
            "the next message answers every call",
        ),
        (
            |body| drop(body["contents"].as_array_mut().expect("a list").remove(1)),
            "the next message answers every call",
        ),
        (|body| body["contents"][0]["role"] = json!("model"), "the user speaks first"),
        (|body| body["contents"][3]["role"] = json!("model"), "the user speaks last"),
        (
            |body| {
                let said = json!({"role": "model", "parts": [{"text": "hm"}]});
                body["contents"].as_array_mut().expect("a list").insert(1, said);
            },
            "calls follow the user",
        ),
        (
            |body| {
                let words = json!({"text": "more"});
                body["contents"][2]["parts"].as_array_mut().expect("a list").push(words);
            },
            "results are a message of their own",
        ),
        (
            |body| body["contents"][1]["parts"].as_array_mut().expect("a list").swap(1, 2),
            "the next message answers every call",
        ),
        (
            |body| {
                let part = body["contents"][1]["parts"][1].as_object_mut().expect("a part");
                part.shift_remove("thoughtSignature");
            },
            "the first call of a step is signed",
        ),
        (
            |body| {
                body["generationConfig"]["thinkingConfig"] =
                    json!({"thinkingLevel": "LOW", "thinkingBudget": 1});
            },
            "a level or a budget",
        ),
        (|body| body["contents"][3]["parts"][0]["text"] = json!(""), "no text is empty"),
    ];
    for (change, rule) in cases {
        assert_eq!(broken(change), Some(rule));
    }
}

fn responses() -> Value {
    let call = |id: &str| json!({"type": "function_call", "call_id": id, "name": "read", "arguments": "{}"});
    let output = |id: &str| json!({"type": "function_call_output", "call_id": id, "output": [{"type": "input_text", "text": "x"}]});
    let said = |text: &str| json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]});
    json!({
        "model": "gpt-5.5", "max_output_tokens": 4000, "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"], "reasoning": {"summary": "auto"},
        "tools": [{"type": "function", "name": "read", "description": "", "parameters": {"type": "object"}, "strict": false}],
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
            said("go"),
            {"type": "reasoning", "summary": [], "encrypted_content": "g"},
            {"type": "message", "role": "assistant", "phase": "commentary", "content": [{"type": "output_text", "text": "hm"}]},
            call("a"),
            call("b"),
            output("b"),
            output("a"),
            said("and now?"),
        ],
    })
}

#[test]
fn mistakes_in_a_responses_request_are_found() {
    let broken = |change: Change| broken("gpt-5.5", responses(), change);
    assert_eq!(broken(|_| {}), None);
    let cases: [(Change, &str); 12] = [
        (|body| drop(body["input"].as_array_mut().expect("a list").remove(7)), "every call is answered"),
        (|body| drop(body["input"].as_array_mut().expect("a list").remove(4)), "a result answers a call"),
        (|body| body["input"][5]["call_id"] = json!("a"), "a call's id is used once"),
        (|body| body["input"][4]["call_id"] = json!("x".repeat(65)), "a call's id is plain"),
        (|body| body["input"][4]["arguments"] = json!("[]"), "arguments are an object"),
        (|body| body["input"][2]["encrypted_content"] = json!(""), "reasoning is encrypted"),
        (|body| body["input"].as_array_mut().expect("a list").swap(2, 7), "reasoning leads to something"),
        (|body| body["input"][3]["content"][0]["type"] = json!("input_text"), "a part's type is known"),
        (|body| body["input"][3]["phase"] = json!("other"), "a phase where it is known"),
        (|body| body["input"].as_array_mut().expect("a list").swap(0, 1), "the system prompt comes first"),
        (|body| body["max_output_tokens"] = json!(15), "there is room for an answer"),
        (|body| body["input"][1]["id"] = json!("msg_1"), "an object has its known fields"),
    ];
    for (change, rule) in cases {
        assert_eq!(broken(change), Some(rule));
    }
}
