use hardpan_models::Protocol;
use hardpan_simulator::{EngineSettings, KeyPolicy, RateLimits, SignatureCheck};
use serde_json::{Value, json};

use crate::providers::{
    MESSAGE_PROTOCOLS, TestProvider, body, both_providers, headers, in_process_provider, path, scripted,
};

fn settings() -> EngineSettings {
    scripted("default: {reasoning: Hm., text: Yes.}")
}

/// The status and the error of a request that must be rejected.
async fn refused(provider: &TestProvider, protocol: Protocol, more: Value) -> (u16, Value) {
    let got = provider.send(protocol, &body(protocol, more)).await;
    let error = got.json();
    match protocol {
        Protocol::Anthropic => {
            assert_eq!(error["type"], "error", "{error}");
            assert_eq!(error["request_id"].as_str(), got.header("request-id"), "{error}");
        }
        Protocol::Openai | Protocol::OpenaiResponses => {
            let fields: Vec<&String> = error["error"].as_object().unwrap().keys().collect();
            assert_eq!(fields, ["message", "type", "param", "code"], "{error}");
            assert!(got.header("x-request-id").is_some());
        }
        protocol => panic!("{protocol:?} has tests of its own"),
    }
    (got.status, error["error"].clone())
}

#[tokio::test]
async fn a_key_is_needed_and_any_will_do() {
    for provider in both_providers(settings).await {
        for protocol in MESSAGE_PROTOCOLS {
            let ask = |headers: Vec<(String, String)>| {
                provider.send_with(
                    path(protocol),
                    headers,
                    body(protocol, json!({})).to_string().into_bytes(),
                )
            };
            let none = ask(vec![("anthropic-version".into(), "2023-06-01".into())]).await;
            let kind = if protocol == Protocol::Anthropic {
                "authentication_error"
            } else {
                "invalid_request_error"
            };
            assert_eq!((none.status, &none.json()["error"]["type"]), (401, &json!(kind)));
            assert_eq!(ask(headers(protocol)).await.status, 200);
            let bearer = vec![
                ("authorization".into(), "Bearer x".into()),
                ("anthropic-version".into(), "2023-06-01".into()),
            ];
            assert_eq!(ask(bearer).await.status, 200);
        }
        let unversioned = vec![("x-api-key".into(), "x".into())];
        let got = provider
            .send_with(
                "/messages",
                unversioned,
                body(Protocol::Anthropic, json!({})).to_string().into_bytes(),
            )
            .await;
        assert_eq!((got.status, &got.json()["error"]["type"]), (400, &json!("invalid_request_error")));
    }
}

#[tokio::test]
async fn only_known_keys_are_taken_where_there_are_some() {
    let provider =
        in_process_provider(EngineSettings { keys: KeyPolicy::Only(vec!["other".into()]), ..settings() });
    for protocol in MESSAGE_PROTOCOLS {
        let (status, error) = refused(&provider, protocol, json!({})).await;
        assert_eq!(status, 401);
        assert!(!error.to_string().contains("secret"), "{error}");
    }
    let provider = in_process_provider(EngineSettings { keys: KeyPolicy::NotNeeded, ..settings() });
    let got = provider
        .send_with(path(Protocol::Openai), vec![], body(Protocol::Openai, json!({})).to_string().into_bytes())
        .await;
    assert_eq!(got.status, 200);
}

#[tokio::test]
async fn an_unknown_model_is_not_found() {
    for provider in both_providers(settings).await {
        let (status, error) = refused(&provider, Protocol::Anthropic, json!({"model": "claude-none"})).await;
        assert_eq!(
            (status, &error["type"], &error["message"]),
            (404, &json!("not_found_error"), &json!("model: claude-none"))
        );
        let (status, error) = refused(&provider, Protocol::Openai, json!({"model": "gpt-none"})).await;
        assert_eq!((status, &error["code"]), (404, &json!("model_not_found")));
        // A model of the other protocol is none of ours.
        assert_eq!(refused(&provider, Protocol::Openai, json!({"model": "claude-sonnet-5"})).await.0, 404);
        assert_eq!(refused(&provider, Protocol::Anthropic, json!({"model": "gpt-4o"})).await.0, 404);
    }
}

#[tokio::test]
async fn a_request_over_the_limit_is_too_large() {
    for provider in both_providers(settings).await {
        let mut request = body(Protocol::Anthropic, json!({})).to_string().into_bytes();
        request.resize(32 * 1024 * 1024 + 1, b' ');
        let got = provider.send_with("/messages", headers(Protocol::Anthropic), request).await;
        assert_eq!((got.status, &got.json()["error"]["type"]), (413, &json!("request_too_large")));
    }
}

#[tokio::test]
async fn a_prompt_over_the_window_is_too_long() {
    let provider = in_process_provider(settings());
    let content = "word ".repeat(140_000);
    let more = json!({"messages": [{"role": "user", "content": content}]});
    let (status, error) = refused(&provider, Protocol::Openai, more).await;
    assert_eq!((status, &error["code"]), (400, &json!("context_length_exceeded")));
    assert!(
        error["message"]
            .as_str()
            .unwrap()
            .starts_with("This model's maximum context length is 128000 tokens")
    );
    let content = "word ".repeat(210_000);
    let more = json!({"model": "claude-haiku-4-5", "messages": [{"role": "user", "content": content}]});
    let (status, error) = refused(&provider, Protocol::Anthropic, more).await;
    let message = error["message"].as_str().unwrap();
    assert!(
        status == 400
            && message.starts_with("prompt is too long: ")
            && message.ends_with(" tokens > 200000 maximum"),
        "{message}"
    );
}

#[tokio::test]
async fn anthropic_refuses_in_its_own_words() {
    let provider = in_process_provider(settings());
    let call = json!({"type": "tool_use", "id": "t1", "name": "read", "input": {}});
    let marked = json!({"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}});
    let cases = [
        (
            json!({"messages": [{"role": "user", "content": [{"type": "text", "text": ""}]}]}),
            "messages.0.content.0: text content blocks must be non-empty",
        ),
        (
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [call]}, {"role": "user", "content": "b"}]}),
            "tool_use ids were found without tool_result blocks immediately after: t1",
        ),
        (
            json!({"messages": [{"role": "user", "content": [marked, marked, marked, marked, marked]}]}),
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (
            json!({"cache_control": {"type": "ephemeral"}, "messages": [{"role": "user", "content": [marked, marked, marked, marked, {"type": "text", "text": "y"}]}]}),
            "A maximum of 4 blocks with cache_control may be provided. Found 5.",
        ),
        (
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}),
            "must end with a user message",
        ),
        (json!({"max_tokens": 500_000}), "max_tokens: 500000 > 128000"),
        (
            json!({"model": "claude-haiku-4-5", "thinking": {"type": "enabled", "budget_tokens": 100}}),
            "thinking.budget_tokens",
        ),
        (json!({"max_tokens": 0, "stream": true}), "max_tokens"),
        (json!({"tool_choice": {"type": "tool", "name": "none"}}), "none"),
        (
            json!({"model": "claude-haiku-4-5", "max_tokens": 4000, "thinking": {"type": "enabled", "budget_tokens": 2000}, "tool_choice": {"type": "any"}}),
            "tool_choice",
        ),
        (json!({"temperature": 3}), "temperature"),
        (json!({"unheard_of": 1}), "unheard_of"),
        (json!({"messages": []}), "messages"),
        (json!({"messages": "hello"}), "messages"),
    ];
    for (more, words) in cases {
        let (status, error) = refused(&provider, Protocol::Anthropic, more.clone()).await;
        assert_eq!((status, &error["type"]), (400, &json!("invalid_request_error")), "{more}");
        assert!(error["message"].as_str().unwrap().contains(words), "{more}: {error}");
    }
    let torn = provider.send_with("/messages", headers(Protocol::Anthropic), b"{\"model\": ".to_vec()).await;
    assert_eq!((torn.status, &torn.json()["error"]["type"]), (400, &json!("invalid_request_error")));
}

#[tokio::test]
async fn a_model_that_is_no_longer_sold_is_not_found() {
    let provider = in_process_provider(settings());
    let (status, error) =
        refused(&provider, Protocol::Anthropic, json!({"model": "claude-3-haiku-20240307"})).await;
    assert_eq!((status, &error["message"]), (404, &json!("model: claude-3-haiku-20240307")));
    let (status, error) = refused(&provider, Protocol::Openai, json!({"model": "gpt-4-0314"})).await;
    assert_eq!((status, &error["code"]), (404, &json!("model_not_found")));
}

#[tokio::test]
async fn openai_refuses_in_its_own_words() {
    let provider = in_process_provider(settings());
    let call = json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{}"}});
    let image = json!([{"type": "image_url", "image_url": {"url": "data:image/png;base64,aGVsbG8h"}}]);
    let cases = [
        (
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": null, "tool_calls": [call]}, {"role": "user", "content": "b"}]}),
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
        ),
        (
            json!({"messages": [{"role": "user", "content": "a"}, {"role": "tool", "tool_call_id": "c9", "content": "x"}]}),
            "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'",
        ),
        (json!({"model": "gpt-5.5"}), "Use 'max_completion_tokens' instead"),
        (
            json!({"model": "deepseek/deepseek-chat", "messages": [{"role": "user", "content": image}]}),
            "does not support images",
        ),
        (json!({"model": "deepseek/deepseek-reasoner"}), "does not support tools"),
        (json!({"max_tokens": 100_000}), "max_tokens"),
        (
            json!({"model": "gpt-5.6", "max_tokens": null}),
            "Function tools with reasoning_effort are not supported for gpt-5.6",
        ),
        (
            json!({"model": "gpt-6-astra", "max_tokens": null}),
            "Function tools are not supported for gpt-6-astra",
        ),
        (
            json!({"model": "gpt-5.6", "max_tokens": null, "reasoning_effort": "max"}),
            "does not support 'max'",
        ),
        (
            json!({"model": "gpt-5.1", "max_tokens": null, "stop": "x"}),
            "'stop' is not supported with this model",
        ),
        (json!({"n": 2}), "n must be 1"),
        (json!({"unheard_of": 1}), "unheard_of"),
        (json!({"messages": []}), "messages"),
    ];
    for (more, words) in cases {
        let (status, error) = refused(&provider, Protocol::Openai, more.clone()).await;
        assert_eq!((status, &error["type"]), (400, &json!("invalid_request_error")), "{more}");
        assert!(error["message"].as_str().unwrap().contains(words), "{more}: {error}");
    }
}

#[tokio::test]
async fn reasoning_must_come_back_as_it_was_given() {
    let thinking = json!({"type": "adaptive", "display": "summarized"});
    let more = json!({"max_tokens": 4000, "thinking": thinking});
    let provider = in_process_provider(settings());
    let first = provider.send(Protocol::Anthropic, &body(Protocol::Anthropic, more.clone())).await.json();
    assert_eq!(first["content"][0]["type"], "thinking");
    let again = |content: Value| {
        let messages = json!([{"role": "user", "content": "Hello!"}, {"role": "assistant", "content": content}, {"role": "user", "content": "And?"}]);
        body(Protocol::Anthropic, json!({"messages": messages, "max_tokens": 4000, "thinking": thinking}))
    };
    assert_eq!(provider.send(Protocol::Anthropic, &again(first["content"].clone())).await.status, 200);
    let mut changed = first["content"].clone();
    changed[0]["thinking"] = json!("Hm!");
    let refused = provider.send(Protocol::Anthropic, &again(changed.clone())).await;
    assert!(
        refused.status == 400 && refused.json()["error"]["message"].as_str().unwrap().contains("signature")
    );
    let provider =
        in_process_provider(EngineSettings { signatures: SignatureCheck::Unchecked, ..settings() });
    assert_eq!(provider.send(Protocol::Anthropic, &again(changed)).await.status, 200);
}

#[tokio::test]
async fn a_minute_has_its_limits_and_every_answer_tells_them() {
    let limits = RateLimits { requests: 2, ..RateLimits::default() };
    for protocol in MESSAGE_PROTOCOLS {
        for provider in both_providers(|| EngineSettings { limits, ..settings() }).await {
            let (left, limit) = match protocol {
                Protocol::Anthropic => {
                    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-limit")
                }
                Protocol::Openai | Protocol::OpenaiResponses => {
                    ("x-ratelimit-remaining-requests", "x-ratelimit-limit-requests")
                }
                protocol => panic!("{protocol:?} has tests of its own"),
            };
            for expected in ["1", "0"] {
                let got = provider.send(protocol, &body(protocol, json!({}))).await;
                assert_eq!(
                    (got.status, got.header(left), got.header(limit)),
                    (200, Some(expected), Some("2"))
                );
            }
            let got = provider.send(protocol, &body(protocol, json!({}))).await;
            let seconds: u64 = got.header("retry-after").unwrap().parse().unwrap();
            assert!(got.status == 429 && (1..=60).contains(&seconds));
            provider.clock.advance(60_000);
            assert_eq!(provider.send(protocol, &body(protocol, json!({}))).await.status, 200);
        }
    }
}

#[tokio::test]
async fn openai_refuses_lists_that_do_not_say_of_what_and_too_many_tools() {
    let provider = in_process_provider(settings());
    for protocol in [Protocol::Openai, Protocol::OpenaiResponses] {
        let tools = |schema: Value| {
            let tool = json!({"name": "find", "description": "Finds.", "parameters": schema});
            match protocol {
                Protocol::Openai => json!({"tools": [{"type": "function", "function": tool}]}),
                _ => {
                    json!({"tools": [{"type": "function", "name": tool["name"], "parameters": tool["parameters"]}]})
                }
            }
        };
        let object = |name: &str, schema: Value| json!({"type": "object", "properties": {name: schema}});
        for (schema, place) in [
            (object("ids", json!({"type": "array"})), "'properties', 'ids'"),
            (object("ids", json!({"type": ["array", "null"], "items": null})), "'properties', 'ids'"),
            (
                object("a", object("b", json!({"anyOf": [{"type": "string"}, {"type": "array"}]}))),
                "'properties', 'a', 'properties', 'b', 'anyOf', '1'",
            ),
            (object("a", json!({"type": "array", "items": {"type": "array"}})), "'properties', 'a', 'items'"),
        ] {
            let (status, error) = refused(&provider, protocol, tools(schema)).await;
            let field = if protocol == Protocol::Openai { "function.parameters" } else { "parameters" };
            assert_eq!(
                (status, error),
                (
                    400,
                    json!({
                        "message": format!("Invalid schema for function 'find': In context=({place}), array schema missing items."),
                        "type": "invalid_request_error",
                        "param": format!("tools[0].{field}"),
                        "code": "invalid_function_parameters",
                    })
                )
            );
        }
        let tool = |number: usize| match protocol {
            Protocol::Openai => json!({"type": "function", "function": {"name": format!("t{number}")}}),
            _ => json!({"type": "function", "name": format!("t{number}"), "parameters": {"type": "object"}}),
        };
        let many = |count: usize| json!({"tools": (0..count).map(tool).collect::<Vec<_>>()});
        let (status, error) = refused(&provider, protocol, many(129)).await;
        let words = "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 129 instead.";
        assert_eq!((status, &error["message"], &error["param"]), (400, &json!(words), &json!("tools")));
        assert_eq!(provider.send(protocol, &body(protocol, many(128))).await.status, 200);
        let whole = object("items", json!({"type": "array", "items": {}}));
        assert_eq!(provider.send(protocol, &body(protocol, tools(whole))).await.status, 200);
    }
}
