use hardpan_models::Protocol;
use hardpan_prompt::TokenUsage;

use super::*;
use crate::stream::tests::*;
use crate::{Answer, ReportedUsage, ThinkTags, decode_answer_body};

fn read(payloads: &[&str]) -> Vec<AnswerEvent> {
    decode_stream(Protocol::Openai, ThinkTags::Leading, lines(payloads).as_bytes())
}

/// The events of deltas, without start and stop.
fn deltas(deltas: &[&str]) -> Vec<AnswerEvent> {
    let chunks: Vec<String> =
        deltas.iter().map(|delta| format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#)).collect();
    let mut payloads: Vec<&str> = chunks.iter().map(String::as_str).collect();
    payloads.push("[DONE]");
    let mut events = read(&payloads);
    events.pop();
    events.remove(0);
    events
}

#[test]
fn a_whole_stream_is_read() {
    let events = read(&[
        r#"{"id":"","model":"","choices":[],"prompt_filter_results":[]}"#,
        r#"{"id":"cc","object":"chat.completion.chunk","model":"gpt-x","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"finish_reason":null}],"usage":null}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[{"index":0,"delta":{"content":"Hel"},"finish_reason":null}]}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[{"index":1,"delta":{"content":"another"},"finish_reason":null}]}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[{"index":0,"delta":{"content":"lo"},"finish_reason":null}]}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"read","arguments":""}}]},"finish_reason":null}]}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\""}}]},"finish_reason":null}]}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]},"finish_reason":null}]}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}"#,
        r#"{"id":"cc","model":"gpt-x","choices":[],"usage":{"prompt_tokens":100,"completion_tokens":7,"total_tokens":107,"prompt_tokens_details":{"cached_tokens":64}}}"#,
        "[DONE]",
    ]);
    let expected = [
        start("cc", "gpt-x"),
        text("Hello"),
        call(0, "c1", "read"),
        delta(0, "{\"a\":1}"),
        AnswerEvent::Usage(
            TokenUsage { input: 36, cache_read: 64, output: 7, ..TokenUsage::default() }.into(),
        ),
        AnswerEvent::CallEnd { index: 0 },
        stop(StopReason::ToolUse),
    ];
    assert_eq!(events, expected);
}

#[test]
fn the_same_answer_unstreamed_gives_the_same_events() {
    let body = r#"{"id":"cc","object":"chat.completion","model":"gpt-x","choices":[{"index":0,"message":{"role":"assistant",
        "content":"<think>hm</think>Hello","reasoning_content":null,"refusal":null,
        "tool_calls":[{"id":"c1","type":"function","function":{"name":"read","arguments":"{\"a\":1}"}},
                      {"id":"c2","type":"function","function":{"name":"read","arguments":{"a":2}}}]},
        "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":10,"completion_tokens":7},"timings":{"cache_n":4}}"#;
    let mut events = decode_answer_body(Protocol::Openai, body.as_bytes());
    let AnswerEvent::Usage(usage) = events.remove(7) else { panic!("{events:?}") };
    assert_eq!((usage.tokens.input, usage.tokens.cache_read, usage.tokens.output), (6, 4, 7));
    let expected = [
        start("cc", "gpt-x"),
        reasoning("hm"),
        text("Hello"),
        call(0, "c1", "read"),
        delta(0, "{\"a\":1}"),
        call(1, "c2", "read"),
        delta(1, "{\"a\":2}"),
        AnswerEvent::CallEnd { index: 0 },
        AnswerEvent::CallEnd { index: 1 },
        stop(StopReason::ToolUse),
    ];
    assert_eq!(events, expected);
}

#[test]
fn reasoning_is_found_under_every_name() {
    let both = [reasoning("hm"), text("Hi")];
    assert_eq!(
        deltas(&[r#"{"reasoning_content":"hm"}"#, r#"{"content":"Hi","reasoning_content":null}"#]),
        both
    );
    assert_eq!(deltas(&[r#"{"reasoning":"hm","content":""}"#, r#"{"content":"Hi"}"#]), both);
    assert_eq!(deltas(&[r#"{"reasoning":"hm","reasoning_content":"hm"}"#, r#"{"content":"Hi"}"#]), both);
    assert_eq!(
        deltas(&[r#"{"content":"<thi"}"#, r#"{"content":"nk>hm</th"}"#, r#"{"content":"ink>\nHi"}"#]),
        both
    );
    let parts = r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"Hi"}]}"#;
    assert_eq!(deltas(&[parts]), both);
}

#[test]
fn whole_calls_in_one_piece_without_index_are_two_calls() {
    let calls = r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"f","arguments":null}}]}"#;
    let ends = |index| AnswerEvent::CallEnd { index };
    assert_eq!(deltas(&[calls]), [call(0, "a", "f"), delta(0, "{}"), call(1, "b", "f"), ends(0), ends(1)]);
}

#[test]
fn text_held_back_comes_before_the_call() {
    let calls = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]}"#;
    let expected =
        [text("<thi"), call(0, "a", "f"), delta(0, "{}"), text("nk>"), AnswerEvent::CallEnd { index: 0 }];
    assert_eq!(deltas(&[r#"{"content":"<thi"}"#, calls, r#"{"content":"nk>"}"#]), expected);
}

#[test]
fn the_end_is_found_with_and_without_its_marker() {
    let words = r#"{"id":"x","choices":[{"delta":{"content":"Hi"}}]}"#;
    let finish = r#"{"id":"x","choices":[{"delta":{},"finish_reason":"stop"}]}"#;
    for (payloads, reason) in [
        (&[words, finish, "[DONE]"][..], StopReason::End),
        (&[words, finish], StopReason::End),
        (&[words, "[DONE]"], StopReason::End),
        (&[words], StopReason::Cut),
    ] {
        assert_eq!(read(payloads)[1..], [text("Hi"), stop(reason)]);
    }
    let bare = format!("data: {words}\n\ndata: {finish}\n\ndata: [DONE]");
    let events = decode_stream(Protocol::Openai, ThinkTags::Leading, bare.as_bytes());
    assert_eq!(events.last(), Some(&stop(StopReason::End)));
}

#[test]
fn a_cut_call_is_never_run() {
    let call = r#"{"id":"x","choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"rm","arguments":"{\"all\":true}"}}]}}]}"#;
    let stream = lines(&[call]);
    for end in 0..=stream.len() {
        let events = decode_stream(Protocol::Openai, ThinkTags::Leading, &stream.as_bytes()[..end]);
        assert_eq!(events.last(), Some(&stop(StopReason::Cut)));
        assert!(events.into_iter().collect::<Answer>().calls().iter().all(|call| call.runnable.is_err()));
    }
    let length = r#"{"choices":[{"delta":{},"finish_reason":"length"}]}"#;
    let answer: Answer = read(&[call, length, "[DONE]"]).into_iter().collect();
    assert!(answer.calls()[0].runnable.is_err());
}

#[test]
fn usage_is_found_wherever_it_stands_and_told_once() {
    let usage = [
        AnswerEvent::Usage(ReportedUsage {
            searches: None,
            reports_cache: false,
            ..TokenUsage { input: 3, output: 2, ..TokenUsage::default() }.into()
        }),
        stop(StopReason::End),
    ];
    let counts = r#"{"prompt_tokens":3,"completion_tokens":2}"#;
    let choice = r#""delta":{},"finish_reason":"stop""#;
    for chunk in [
        format!(r#"{{"choices":[{{{choice}}}],"usage":{counts}}}"#),
        format!(r#"{{"choices":[{{{choice},"usage":{counts}}}]}}"#),
        format!(r#"{{"choices":[{{{choice}}}],"x_groq":{{"id":"r","usage":{counts}}}}}"#),
        format!(r#"{{"choices":[{{{choice}}}],"timings":{{"prompt_n":3,"predicted_n":2}}}}"#),
    ] {
        assert_eq!(read(&[&chunk, &chunk, "[DONE]"])[1..], usage, "{chunk}");
    }
}

#[test]
fn errors_inside_the_stream_end_it() {
    for payload in [
        r#"{"error":{"message":"no","type":"server_error","param":null,"code":null}}"#,
        r#"{"object":"error","message":"no","type":"server_error","param":null}"#,
        r#"{"id":"x","error":{"type":"server_error","message":"no"},"choices":[{"delta":{"content":""},"finish_reason":"error"}]}"#,
        r#"{"choices":[{"delta":{},"error":{"type":"server_error","message":"no"},"finish_reason":"error"}]}"#,
        r#"{"choices":[],"x_groq":{"error":{"type":"server_error","message":"no"}}}"#,
    ] {
        assert_eq!(read(&[payload, "[DONE]"]), [error("server_error", "no")], "{payload}");
    }
    assert_eq!(read(&[r#"{"error":"no"}"#]), [error("error", "no")]);
    assert_eq!(
        decode_answer_body(Protocol::Openai, br#"{"error":{"type":"t","message":"no"}}"#),
        [error("t", "no")]
    );
    assert_eq!(read(&[r#"{"error":null,"choices":[]}"#, "[DONE]"]), [stop(StopReason::End)]);
}

#[test]
fn a_refusal_is_text_and_says_so() {
    let refusal = r#"{"choices":[{"delta":{"refusal":"I will not"},"finish_reason":"stop"}]}"#;
    assert_eq!(read(&[refusal, "[DONE]"])[1..], [text("I will not"), stop(StopReason::Refusal)]);
}
