use std::time::Duration;

use hardpan_models::Protocol;
use hardpan_providers::{AnswerEvent, CallRejection, StopReason, StreamDecoder};
use hardpan_simulator::{Engine, EngineSettings, Request};
use serde_json::{Value, json};

use crate::providers::{
    MESSAGE_PROTOCOLS, body, both_providers, headers, in_process_provider, path, scripted,
};

const SCRIPT: &str = r#"
default:
  reasoning: The file may say it. Or it may not, who knows.
  text: "Let me look at “größere” things, step by step, before I answer."
  tool_calls:
    - {name: read, arguments: {path: src/a.rs, why: "said \"so\""}}
    - {name: read, arguments: {path: src/b.rs}, id: my_own_id}
"#;

fn thinking(protocol: Protocol, stream: bool) -> Value {
    match protocol {
        Protocol::Anthropic => body(
            protocol,
            json!({"stream": stream, "max_tokens": 4000, "thinking": {"type": "adaptive", "display": "summarized"}}),
        ),
        Protocol::Openai => body(
            protocol,
            json!({"stream": stream, "model": "deepseek/deepseek-chat", "stream_options": {"include_usage": true}}),
        ),
        Protocol::OpenaiResponses => body(
            protocol,
            json!({"stream": stream, "model": "gpt-6-luna", "reasoning": {"effort": "high", "summary": "auto"}}),
        ),
        protocol => panic!("{protocol:?} has tests of its own"),
    }
}

#[tokio::test]
async fn an_answer_is_the_same_streamed_or_whole_over_http_or_not() {
    for protocol in MESSAGE_PROTOCOLS {
        let mut answers = Vec::new();
        for stream in [true, false] {
            let mut request = thinking(protocol, stream);
            if !stream && protocol == Protocol::Openai {
                request.as_object_mut().unwrap().remove("stream_options");
            }
            for provider in both_providers(|| scripted(SCRIPT)).await {
                let got = provider.send(protocol, &request).await;
                assert_eq!((got.status, &got.broken), (200, &None));
                assert_eq!(got.header("x-hardpan-simulated"), Some("tokens counted with o200k_base"));
                answers.push(got.answer(protocol));
            }
        }
        let first = &answers[0];
        assert_eq!(first.stop, Some(StopReason::ToolUse));
        assert!(first.parts().len() == 4, "{first:?}");
        let calls = first.calls();
        assert!(
            calls.iter().all(|call| call.runnable.is_ok()) && &*calls[1].call.id == "my_own_id",
            "{calls:?}"
        );
        assert_eq!(calls[0].call.arguments.as_str(), r#"{"path":"src/a.rs","why":"said \"so\""}"#);
        let usage = first.usage.as_ref().unwrap();
        assert!(usage.tokens.prompt() > 10 && usage.tokens.output > 30, "{usage:?}");
        for other in &answers[1..] {
            let (mut first, mut other) = (first.clone(), other.clone());
            // What only one of the forms tells besides.
            [&mut first, &mut other]
                .into_iter()
                .for_each(|answer| answer.usage.as_mut().unwrap().other.clear());
            assert_eq!(other, first);
        }
    }
}

#[tokio::test]
async fn a_stream_has_the_frames_of_its_protocol() {
    let provider = in_process_provider(scripted(
        "default: {text: One two., tool_calls: [{name: read, arguments: {path: a}, id: c1}]}",
    ));
    let got = provider.send(Protocol::Anthropic, &body(Protocol::Anthropic, json!({"stream": true}))).await;
    let text = String::from_utf8(got.bytes).unwrap();
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(
        names,
        [
            "message_start",
            "content_block_start",
            "ping",
            "content_block_delta",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
    let got = provider.send(Protocol::Openai, &body(Protocol::Openai, json!({"stream": true}))).await;
    let text = String::from_utf8(got.bytes).unwrap();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let deltas: Vec<Value> = lines[..lines.len() - 1]
        .iter()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["choices"][0]["delta"].clone())
        .collect();
    assert_eq!(lines.last(), Some(&"[DONE]"));
    let call =
        json!({"id": "c1", "type": "function", "function": {"name": "read", "arguments": ""}, "index": 0});
    let expected = [
        json!({"role": "assistant", "content": "", "refusal": null}),
        json!({"content": "One two."}),
        json!({"tool_calls": [call]}),
        json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"path\":\"a\"}"}}]}),
        json!({}),
    ];
    assert_eq!(deltas, expected);
    assert!(!text.contains("usage"), "usage comes only where it was asked for");
}

#[tokio::test]
async fn the_limit_of_tokens_cuts_a_call_in_its_middle_and_it_is_not_run() {
    for protocol in MESSAGE_PROTOCOLS {
        for provider in both_providers(|| scripted(SCRIPT)).await {
            let got =
                provider.send(protocol, &body(protocol, json!({"stream": true, "max_tokens": 28}))).await;
            let answer = got.answer(protocol);
            assert_eq!(answer.stop, Some(StopReason::Length), "{answer:?}");
            let calls = answer.calls();
            assert!(!calls.is_empty() && calls.iter().all(|call| call.runnable.is_err()), "{calls:?}");
            assert!(matches!(calls[0].runnable, Err(CallRejection::Stopped(StopReason::Length))));
        }
    }
}

#[tokio::test]
async fn reasoning_is_shown_only_where_it_was_asked_for() {
    let provider = in_process_provider(scripted(SCRIPT));
    for protocol in MESSAGE_PROTOCOLS {
        let got = provider.send(protocol, &body(protocol, json!({"stream": true}))).await;
        assert!(!got.events(protocol).iter().any(|event| matches!(event, AnswerEvent::Reasoning(_))));
    }
}

#[tokio::test]
async fn a_stop_sequence_ends_the_answer() {
    let provider = in_process_provider(scripted("default: {text: 'one, two, three'}"));
    let got = provider
        .send(
            Protocol::Anthropic,
            &body(Protocol::Anthropic, json!({"stop_sequences": [", three", ", two"]})),
        )
        .await
        .json();
    assert_eq!(
        (&got["content"][0]["text"], &got["stop_reason"], &got["stop_sequence"]),
        (&json!("one"), &json!("stop_sequence"), &json!(", two"))
    );
    let got =
        provider.send(Protocol::Openai, &body(Protocol::Openai, json!({"stop": [", two"]}))).await.json();
    assert_eq!(
        (&got["choices"][0]["message"]["content"], &got["choices"][0]["finish_reason"]),
        (&json!("one"), &json!("stop"))
    );
}

#[tokio::test]
async fn a_script_goes_on_with_the_conversation() {
    let yaml = "
turns:
  - {text: Let me look., tool_calls: [{name: read, arguments: {path: a}, id: c1}]}
  - {when: {has_tool_result: read}, text: It is empty.}
";
    for protocol in MESSAGE_PROTOCOLS {
        for provider in both_providers(|| scripted(yaml)).await {
            let first = provider.send(protocol, &body(protocol, json!({}))).await.answer(protocol);
            assert_eq!(first.text(), "Let me look.");
            let messages = match protocol {
                Protocol::Anthropic => json!([
                    {"role": "user", "content": "Hello!"},
                    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "read", "input": {"path": "a"}}]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "nothing"}]},
                ]),
                Protocol::Openai => json!([
                    {"role": "user", "content": "Hello!"},
                    {"role": "assistant", "content": null, "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}}]},
                    {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
                ]),
                Protocol::OpenaiResponses => json!([
                    {"role": "user", "content": "Hello!"},
                    {"type": "function_call", "call_id": "c1", "name": "read", "arguments": "{\"path\":\"a\"}"},
                    {"type": "function_call_output", "call_id": "c1", "output": "nothing"},
                ]),
                protocol => panic!("{protocol:?} has tests of its own"),
            };
            let second = provider.send(protocol, &body(protocol, json!({"messages": messages}))).await;
            assert_eq!(second.answer(protocol).text(), "It is empty.", "{}", second.json());
            let third = provider.send(protocol, &body(protocol, json!({}))).await;
            assert_eq!(third.status, 500);
            assert!(third.json()["error"]["message"].as_str().unwrap().contains("no turn left"));
        }
    }
}

#[tokio::test]
async fn without_a_script_the_assistant_answers_and_says_what_it_is() {
    for protocol in MESSAGE_PROTOCOLS {
        for provider in both_providers(EngineSettings::default).await {
            let got = provider.send(protocol, &body(protocol, json!({"stream": true}))).await;
            assert!(got.answer(protocol).text().contains("no language model"));
            let question = json!([{"role": "user", "content": "Where is the volcano?"}]);
            let got =
                provider.send(protocol, &body(protocol, json!({"messages": question, "stream": true}))).await;
            assert!(got.answer(protocol).text().contains("found nothing"), "{}", got.answer(protocol).text());
        }
    }
}

#[tokio::test]
async fn the_assistant_calls_one_tool_at_a_time_where_it_is_told_to() {
    let provider = in_process_provider(EngineSettings::default());
    let schema = json!({"type": "object"});
    let tools: Vec<Value> =
        ["grep", "find"].iter().map(|name| json!({"name": name, "input_schema": schema})).collect();
    let request = |choice: Value| {
        let messages = json!([{"role": "user", "content": "Where are volcano and glacier?"}]);
        body(Protocol::Anthropic, json!({"messages": messages, "tools": tools, "tool_choice": choice}))
    };
    let calls = |answer: hardpan_providers::Answer| {
        answer.calls().iter().map(|call| call.call.name.to_string()).collect::<Vec<_>>()
    };
    let many = provider
        .send(Protocol::Anthropic, &request(json!({"type": "auto"})))
        .await
        .answer(Protocol::Anthropic);
    assert_eq!(calls(many), ["grep", "grep", "find"]);
    let one = json!({"type": "auto", "disable_parallel_tool_use": true});
    let one = provider.send(Protocol::Anthropic, &request(one)).await.answer(Protocol::Anthropic);
    assert_eq!(calls(one), ["grep"]);
}

#[tokio::test]
async fn counting_agrees_with_the_bill() {
    for provider in both_providers(EngineSettings::default).await {
        let mut request = body(Protocol::Anthropic, json!({"system": "Be brief."}));
        let billed =
            provider.send(Protocol::Anthropic, &request).await.json()["usage"]["input_tokens"].clone();
        request.as_object_mut().unwrap().remove("max_tokens");
        let counted = provider
            .send_with(
                "/messages/count_tokens",
                headers(Protocol::Anthropic),
                request.to_string().into_bytes(),
            )
            .await;
        assert_eq!(counted.json(), json!({"input_tokens": billed}));
    }
}

#[tokio::test]
async fn a_base_url_may_lack_its_version() {
    for mut provider in both_providers(EngineSettings::default).await {
        provider.base_url = provider.base_url.strip_suffix("/v1").unwrap().to_owned();
        for protocol in MESSAGE_PROTOCOLS {
            assert_eq!(provider.send(protocol, &body(protocol, json!({}))).await.status, 200);
        }
        let asked = provider.send_with("/v2/messages", headers(Protocol::Anthropic), b"{}".to_vec()).await;
        assert_eq!(asked.status, 404);
    }
}

#[tokio::test]
async fn models_are_listed_in_both_forms() {
    let [provider, _] = both_providers(EngineSettings::default).await;
    let (status, list) = provider.get("/v1/models?limit=5", headers(Protocol::Anthropic)).await;
    assert!(
        status == 200 && list["data"].as_array().unwrap().iter().any(|row| row["id"] == "claude-sonnet-5"),
        "{list}"
    );
    let (_, list) = provider.get("/v1/models", headers(Protocol::Openai)).await;
    assert!(
        list["object"] == "list" && list["data"].as_array().unwrap().iter().any(|row| row["id"] == "gpt-4o"),
        "{list}"
    );
    assert_eq!(provider.get("/v1/models/gpt-4o", headers(Protocol::Openai)).await.1["id"], "gpt-4o");
    assert_eq!(provider.get("/models/gpt-4o", headers(Protocol::Openai)).await.1["id"], "gpt-4o");
    assert_eq!(provider.get("/v1/models/gpt-none", headers(Protocol::Openai)).await.0, 404);
    assert_eq!(provider.get("/v1/messages", headers(Protocol::Anthropic)).await.0, 405);
    assert_eq!(provider.get("/", vec![]).await.0, 404);
}

#[tokio::test]
async fn delays_of_a_script_are_kept() {
    let provider = in_process_provider(scripted(
        "default: {text: 'some words that take more than one piece to say', delay: 30ms, pace: 10ms}",
    ));
    let start = tokio::time::Instant::now();
    provider.send(Protocol::Openai, &body(Protocol::Openai, json!({"stream": true}))).await;
    assert!(
        start.elapsed() >= Duration::from_millis(70),
        "30 ms, and 10 ms before each of at least 4 later pieces"
    );
}

#[test]
fn the_same_requests_give_the_same_bytes() {
    for protocol in MESSAGE_PROTOCOLS {
        let run = || {
            let engine = Engine::new(scripted(SCRIPT));
            let (headers, body) = (headers(protocol), thinking(protocol, true).to_string());
            let path = format!("/v1{}", path(protocol));
            let request = Request { method: "POST", path: &path, headers: &headers, body: body.as_bytes() };
            [0, 1].map(|_| engine.answer(&request, hardpan_economy::cache::Moment(5_000)).body.bytes())
        };
        let [first, second] = run();
        assert_eq!([first.clone(), second.clone()], run());
        assert_ne!(first, second, "ids differ within a run");
        let mut decoder = StreamDecoder::new(protocol);
        let mut single: Vec<AnswerEvent> = first.iter().flat_map(|byte| decoder.push(&[*byte])).collect();
        single.extend(decoder.finish());
        let mut decoder = StreamDecoder::new(protocol);
        let mut whole = decoder.push(&first);
        whole.extend(decoder.finish());
        assert_eq!(single, whole);
    }
}
