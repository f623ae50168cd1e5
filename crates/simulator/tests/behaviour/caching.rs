use hardpan_models::Protocol;
use hardpan_simulator::EngineSettings;
use serde_json::{Value, json};

use crate::providers::{
    MESSAGE_PROTOCOLS, TestProvider, body, both_providers, in_process_provider, merge_fields, scripted,
};

const MINUTE: i64 = 60_000;

/// A text of more than 2000 tokens.
fn long(of: &str) -> String {
    format!("{of} says much. ").repeat(600)
}

fn marked(text: &str, ttl: &str) -> Value {
    json!({"type": "text", "text": text, "cache_control": {"type": "ephemeral", "ttl": ttl}})
}

fn anthropic(more: Value) -> Value {
    let mut request =
        body(Protocol::Anthropic, json!({"system": [marked(&long("system"), "5m")], "tools": []}));
    request.as_object_mut().unwrap().remove("tools");
    merge_fields(&mut request, more);
    request
}

/// The billed tokens: read, written for five minutes, written for an hour, neither.
async fn billed(provider: &TestProvider, request: &Value) -> [u64; 4] {
    let got = provider.send(Protocol::Anthropic, request).await;
    let usage = got
        .answer(Protocol::Anthropic)
        .usage
        .map(|usage| usage.tokens)
        .unwrap_or_else(|| panic!("{}", String::from_utf8_lossy(&got.bytes)));
    [usage.cache_read, usage.cache_write_5m, usage.cache_write_1h, usage.input]
}

#[tokio::test]
async fn what_one_turn_writes_the_next_one_reads() {
    for stream in [false, true] {
        for provider in both_providers(|| scripted("default: {text: Yes.}")).await {
            let request = anthropic(json!({"stream": stream}));
            let [read, written, hour, input] = billed(&provider, &request).await;
            assert!(
                read == 0 && hour == 0 && written > 1024 && (1..10).contains(&input),
                "{written} {input}"
            );
            assert_eq!(billed(&provider, &request).await, [written, 0, 0, input]);
            let more = json!([
                {"role": "user", "content": "Hello!"},
                {"role": "assistant", "content": "Yes."},
                {"role": "user", "content": [marked(&long("user"), "5m")]},
            ]);
            let [read, added, _, rest] =
                billed(&provider, &anthropic(json!({"messages": more, "stream": stream}))).await;
            assert!(read == written && added > 1024 && rest == 0, "{read} {added} {rest}");
        }
    }
}

#[tokio::test]
async fn five_minutes_end_an_entry_and_a_read_renews_it() {
    let provider = in_process_provider(scripted("default: {text: Yes.}"));
    let request = anthropic(json!({}));
    let [_, written, _, input] = billed(&provider, &request).await;
    for minutes in [4, 4, 4] {
        provider.clock.advance(minutes * MINUTE);
        assert_eq!(billed(&provider, &request).await, [written, 0, 0, input]);
    }
    provider.clock.advance(5 * MINUTE);
    assert_eq!(billed(&provider, &request).await, [0, written, 0, input]);
}

#[tokio::test]
async fn an_hour_is_billed_apart_and_lasts_longer() {
    let provider = in_process_provider(scripted("default: {text: Yes.}"));
    let content = json!([marked(&long("user"), "5m"), {"type": "text", "text": "And?"}]);
    let request = anthropic(
        json!({"system": [marked(&long("system"), "1h")], "messages": [{"role": "user", "content": content}]}),
    );
    let [read, short, hour, _] = billed(&provider, &request).await;
    assert!(read == 0 && short > 1024 && hour > 1024);
    let raw = provider.send(Protocol::Anthropic, &request).await.json();
    assert_eq!(
        raw["usage"]["cache_creation"],
        json!({"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0})
    );
    provider.clock.advance(50 * MINUTE);
    let [read, again, none, _] = billed(&provider, &request).await;
    assert_eq!((read, again, none), (hour, short, 0));
}

#[tokio::test]
async fn two_parallel_requests_both_write() {
    for provider in both_providers(|| scripted("default: {text: Yes., delay: 400ms}")).await {
        let request = anthropic(json!({}));
        let (first, second) = tokio::join!(billed(&provider, &request), billed(&provider, &request));
        assert!(first[0] == 0 && first[1] > 1024);
        assert_eq!(first, second);
        provider.clock.advance(1);
        assert_eq!(billed(&provider, &request).await[0], first[1]);
    }
}

#[tokio::test]
async fn settings_that_the_table_names_lose_the_messages() {
    let provider = in_process_provider(scripted("default: {text: Yes.}"));
    let tools = json!([{"name": "read", "input_schema": {"type": "object"}}]);
    let messages = json!([{"role": "user", "content": [marked(&long("user"), "5m")]}]);
    let request = |more: Value| {
        let mut request = anthropic(json!({"tools": tools, "messages": messages}));
        merge_fields(&mut request, more);
        request
    };
    let [_, written, _, _] = billed(&provider, &request(json!({}))).await;
    let [read, rewritten, _, _] = billed(
        &provider,
        &request(json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}})),
    )
    .await;
    assert!(read > 1024 && rewritten > 1024 && read + rewritten == written, "{read} {rewritten} {written}");
    assert_eq!(billed(&provider, &request(json!({}))).await[0], written);
}

#[tokio::test]
async fn automatic_mode_marks_the_last_block_and_a_request_for_nothing_warms() {
    let provider = in_process_provider(scripted("turns: [{text: Yes.}]"));
    let messages = json!([{"role": "user", "content": long("user")}]);
    let request = |max: u32| {
        let mut request = anthropic(
            json!({"messages": messages, "max_tokens": max, "cache_control": {"type": "ephemeral"}}),
        );
        request.as_object_mut().unwrap().remove("system");
        request
    };
    let warmed = provider.send(Protocol::Anthropic, &request(0)).await.json();
    assert_eq!(
        (&warmed["content"], &warmed["stop_reason"], &warmed["usage"]["output_tokens"]),
        (&json!([]), &json!("max_tokens"), &json!(0))
    );
    let [read, written, _, _] = billed(&provider, &request(10)).await;
    assert!(read > 1024 && written == 0);
    let mut refused = request(0);
    refused["stream"] = json!(true);
    assert_eq!(provider.send(Protocol::Anthropic, &refused).await.status, 400);
}

#[tokio::test]
async fn each_key_and_each_model_has_a_cache_of_its_own() {
    let provider = in_process_provider(scripted("default: {text: Yes.}"));
    let request = anthropic(json!({}));
    let [_, written, _, _] = billed(&provider, &request).await;
    let other = anthropic(json!({"model": "claude-sonnet-4-6"}));
    assert_eq!(billed(&provider, &other).await[..2], [0, written]);
    let headers = vec![
        ("authorization".to_owned(), "Bearer another".to_owned()),
        ("anthropic-version".to_owned(), "2023-06-01".to_owned()),
    ];
    let got = provider.send_with("/messages", headers, request.to_string().into_bytes()).await;
    assert_eq!(got.answer(Protocol::Anthropic).usage.unwrap().tokens.cache_write_5m, written);
}

#[tokio::test]
async fn openai_caches_by_itself_and_counts_what_it_read_as_part_of_the_prompt() {
    for stream in [false, true] {
        for provider in both_providers(|| scripted("default: {text: Yes.}")).await {
            let mut request = body(
                Protocol::Openai,
                json!({"messages": [{"role": "user", "content": long("user")}], "stream": stream}),
            );
            if stream {
                request["stream_options"] = json!({"include_usage": true});
            }
            let first = provider
                .send(Protocol::Openai, &request)
                .await
                .answer(Protocol::Openai)
                .usage
                .unwrap()
                .tokens;
            assert_eq!((first.cache_read, first.cache_write_5m), (0, 0));
            let second = provider
                .send(Protocol::Openai, &request)
                .await
                .answer(Protocol::Openai)
                .usage
                .unwrap()
                .tokens;
            assert!(second.cache_read >= 1024 && second.cache_read % 128 == 0, "{second:?}");
            assert_eq!(second.prompt(), first.prompt());
        }
    }
}

#[tokio::test]
async fn openai_from_5_6_on_tells_its_writes() {
    let provider = in_process_provider(scripted("default: {text: Yes.}"));
    let part = json!({"type": "text", "text": long("user"), "prompt_cache_breakpoint": {"mode": "explicit"}});
    let mut request = body(
        Protocol::Openai,
        json!({"model": "gpt-5.6", "reasoning_effort": "none", "messages": [{"role": "user", "content": [part]}]}),
    );
    request.as_object_mut().unwrap().remove("max_tokens");
    let first =
        provider.send(Protocol::Openai, &request).await.answer(Protocol::Openai).usage.unwrap().tokens;
    assert!(first.cache_write_5m > 1024 && first.cache_read == 0, "{first:?}");
    let second =
        provider.send(Protocol::Openai, &request).await.answer(Protocol::Openai).usage.unwrap().tokens;
    assert_eq!((second.cache_read, second.cache_write_5m), (first.cache_write_5m, 0));
}

#[tokio::test]
async fn a_request_that_is_refused_leaves_nothing_behind() {
    for protocol in MESSAGE_PROTOCOLS {
        let provider = in_process_provider(EngineSettings {
            faults: "status=500,times=1".parse().unwrap(),
            ..scripted("default: {text: Yes.}")
        });
        let request = match protocol {
            Protocol::Anthropic => anthropic(json!({})),
            Protocol::Openai | Protocol::OpenaiResponses => {
                body(protocol, json!({"messages": [{"role": "user", "content": long("user")}]}))
            }
            protocol => panic!("{protocol:?} has tests of its own"),
        };
        assert_eq!(provider.send(protocol, &request).await.status, 500);
        assert_eq!(
            provider.send(protocol, &request).await.answer(protocol).usage.unwrap().tokens.cache_read,
            0
        );
    }
}

#[tokio::test]
async fn responses_from_5_6_on_read_at_the_ends_of_messages_and_tell_why_not() {
    let provider = in_process_provider(scripted("default: {text: Yes.}"));
    let message =
        |name: &str| json!({"role": "user", "content": [{"type": "input_text", "text": long(name)}]});
    let request = |messages: Vec<Value>, more: Value| {
        let fixed =
            json!({"model": "gpt-5.6", "messages": messages, "store": false, "prompt_cache_key": "a"});
        let mut request = body(Protocol::OpenaiResponses, fixed);
        merge_fields(&mut request, more);
        request
    };
    let first =
        provider.send(Protocol::OpenaiResponses, &request(vec![message("a")], json!({}))).await.json();
    let usage = &first["usage"];
    let written = usage["input_tokens_details"]["cache_write_tokens"].clone();
    assert_eq!(
        (&usage["input_tokens_details"]["cached_tokens"], &written),
        (&json!(0), &usage["input_tokens"])
    );
    let said = json!({"role": "assistant", "content": "Yes."});
    let grown = vec![message("a"), said, message("b")];
    let compare = json!({"comparison_response_id": first["id"]});
    let ask = async |more: Value| {
        let answer = provider.send(Protocol::OpenaiResponses, &request(grown.clone(), more)).await.json();
        (
            answer["usage"]["input_tokens_details"]["cached_tokens"].clone(),
            answer["prompt_cache_diagnostics"].clone(),
        )
    };
    for (more, reason) in [
        (json!({"prompt_cache_key": "b"}), "prompt_cache_key_changed"),
        (json!({"reasoning": {"effort": "low"}}), "reasoning_effort_changed"),
        (json!({"text": {"verbosity": "low"}}), "verbosity_changed"),
        (json!({"tools": []}), "tools_changed"),
    ] {
        let mut more = more;
        more["prompt_cache_options"] = compare.clone();
        let (read, told) = ask(more).await;
        assert_eq!((read, &told["type"], &told["reason"]), (json!(0), &json!("cache_miss"), &json!(reason)));
    }
    let (read, told) = ask(json!({"prompt_cache_options": compare})).await;
    assert_eq!((read, told), (written, json!({"type": "cache_hit"})));
}
