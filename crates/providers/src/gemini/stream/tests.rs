use hardpan_models::Protocol;
use hardpan_prompt::{MessagePart, TokenUsage};

use crate::stream::tests::{call, decode_stream, delta, error, lines, reasoning, start, stop, text};
use crate::{Answer, AnswerEvent, StopReason, StreamErrorKind, ThinkTags, decode_answer_body};

fn decode(payloads: &[&str]) -> Vec<AnswerEvent> {
    decode_stream(Protocol::Gemini, ThinkTags::Leading, lines(payloads).replace('\n', "\r\n").as_bytes())
}

fn signature(seal: &str) -> AnswerEvent {
    AnswerEvent::Signature(seal.into())
}

fn usage(cache_read: u64, input: u64, output: u64, thoughts: u64) -> AnswerEvent {
    let reasoning = Some(thoughts).filter(|tokens| *tokens > 0);
    AnswerEvent::Usage(TokenUsage { input, cache_read, output, reasoning, ..TokenUsage::default() }.into())
}

/// The chunks that Google's own client takes: thoughts, a text, two parallel calls.
const TWO_CALLS: [&str; 4] = [
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"**Reading**\nI will read both.","thought":true}]},"index":0}],"usageMetadata":{"promptTokenCount":5000,"cachedContentTokenCount":4000,"thoughtsTokenCount":20,"totalTokenCount":5020}}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Looking."}]},"index":0}],"usageMetadata":{"promptTokenCount":5000,"cachedContentTokenCount":4000,"thoughtsTokenCount":20,"candidatesTokenCount":2,"totalTokenCount":5022}}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"fc1","name":"read_file","args":{"file_path":"a.txt"}},"thoughtSignature":"c2lnQQ=="},{"functionCall":{"id":"fc2","name":"read_file","args":{"file_path":"b.txt"}}}]},"index":0}],"usageMetadata":{"promptTokenCount":5000,"cachedContentTokenCount":4000,"thoughtsTokenCount":20,"candidatesTokenCount":30,"totalTokenCount":5050}}"#,
    r#"{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":5000,"cachedContentTokenCount":4000,"thoughtsTokenCount":20,"candidatesTokenCount":30,"totalTokenCount":5050},"modelVersion":"m","responseId":"r1"}"#,
];

fn two_calls() -> Vec<AnswerEvent> {
    vec![
        start("", ""),
        usage(4000, 1000, 20, 20),
        reasoning("**Reading**\nI will read both."),
        text("Looking."),
        signature("c2lnQQ=="),
        call(0, "fc1", "read_file"),
        delta(0, r#"{"file_path":"a.txt"}"#),
        AnswerEvent::CallEnd { index: 0 },
        call(1, "fc2", "read_file"),
        delta(1, r#"{"file_path":"b.txt"}"#),
        AnswerEvent::CallEnd { index: 1 },
        usage(4000, 1000, 50, 20),
        stop(StopReason::ToolUse),
    ]
}

#[test]
fn thoughts_text_and_parallel_calls_are_read() {
    assert_eq!(decode(&TWO_CALLS), two_calls());
    let answer: Answer = two_calls().into_iter().collect();
    let kinds: Vec<&str> = answer
        .parts()
        .iter()
        .map(|part| match part {
            MessagePart::Reasoning { signature: Some(_), .. } => "signature",
            MessagePart::Reasoning { .. } => "reasoning",
            MessagePart::Text { .. } => "text",
            MessagePart::ToolCall(_) => "call",
            MessagePart::Image(_) => "image",
            MessagePart::ProviderBlock(_) | MessagePart::Sources { .. } => "search",
        })
        .collect();
    assert_eq!(kinds, ["reasoning", "text", "signature", "call", "call"]);
    assert!(answer.calls().iter().all(|call| call.runnable.is_ok()));
}

#[test]
fn a_list_of_chunks_is_the_same_answer() {
    let list = format!("[{}]", TWO_CALLS.join(",\r\n"));
    assert_eq!(decode_answer_body(Protocol::Gemini, list.as_bytes()), two_calls());
}

#[test]
fn a_whole_answer_is_read() {
    let body = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi.","thoughtSignature":"cw=="}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":2,"totalTokenCount":6},"modelVersion":"gemini-3.5-flash","responseId":"r2"}"#;
    assert_eq!(
        decode_answer_body(Protocol::Gemini, body.as_bytes()),
        [
            start("r2", "gemini-3.5-flash"),
            usage(0, 4, 2, 0),
            signature("cw=="),
            text("Hi."),
            stop(StopReason::End)
        ]
    );
}

#[test]
fn a_signature_may_come_with_an_empty_text() {
    let events = decode(&[
        r#"{"candidates":[{"content":{"parts":[{"text":"Hel"}]}}],"responseId":"r"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"lo"}]}}],"responseId":"r"}"#,
        r#"{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"cw=="}]},"finishReason":"STOP"}],"responseId":"r"}"#,
    ]);
    assert_eq!(events, [start("r", ""), text("Hello"), signature("cw=="), stop(StopReason::End)]);
}

#[test]
fn calls_without_ids_get_one_and_calls_without_arguments_have_none() {
    let events = decode(&[
        r#"{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"g","args":null}}]},"finishReason":"STOP"}],"responseId":"r"}"#,
    ]);
    let expected = [
        start("r", ""),
        call(0, "r_0", "f"),
        AnswerEvent::CallEnd { index: 0 },
        call(1, "r_1", "g"),
        AnswerEvent::CallEnd { index: 1 },
        stop(StopReason::ToolUse),
    ];
    assert_eq!(events, expected);
}

#[test]
fn every_finish_reason_has_its_meaning() {
    let table = [
        ("STOP", StopReason::End),
        ("MAX_TOKENS", StopReason::Length),
        ("SAFETY", StopReason::Refusal),
        ("PROHIBITED_CONTENT", StopReason::Refusal),
        ("MALFORMED_FUNCTION_CALL", StopReason::Other("MALFORMED_FUNCTION_CALL".into())),
        ("OTHER", StopReason::Other("OTHER".into())),
    ];
    for (word, reason) in table {
        let chunk = format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"text":"a"}}]}},"finishReason":"{word}"}}]}}"#
        );
        assert_eq!(decode(&[&chunk]), [start("", ""), text("a"), stop(reason)], "{word}");
    }
}

#[test]
fn a_call_that_nobody_can_read_is_an_error_if_nothing_else_was_said() {
    let events = decode(&[r#"{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#]);
    assert!(
        matches!(&events[..], [AnswerEvent::Start { .. }, AnswerEvent::Error(error)] if error.kind == StreamErrorKind::Malformed),
        "{events:?}"
    );
}

#[test]
fn a_blocked_prompt_is_a_refusal() {
    let events =
        decode(&[r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":7}}"#]);
    assert_eq!(events, [start("", ""), usage(0, 7, 0, 0), stop(StopReason::Refusal)]);
}

#[test]
fn errors_end_the_answer() {
    let unavailable = r#"{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}"#;
    let mut expected = error("UNAVAILABLE", "overloaded");
    if let AnswerEvent::Error(error) = &mut expected {
        error.code = Some("503".into());
    }
    assert_eq!(decode(&[unavailable]), [expected.clone()]);
    let list = format!("[{unavailable}]");
    assert_eq!(decode_answer_body(Protocol::Gemini, list.as_bytes()), [expected]);
}

#[test]
fn parts_of_other_kinds_are_skipped() {
    let events = decode(&[
        r#"{"candidates":[{"content":{"parts":[{"executableCode":{"code":"1"}},{"text":"a"},{"inlineData":{}}]},"finishReason":"STOP"}]}"#,
    ]);
    let skipped = |part_type: &str| AnswerEvent::SkippedPart { part_type: part_type.into() };
    assert_eq!(
        events,
        [start("", ""), skipped("executableCode"), text("a"), skipped("inlineData"), stop(StopReason::End)]
    );
}

#[test]
fn a_stream_cut_anywhere_runs_no_call() {
    let stream = lines(&TWO_CALLS);
    let last = stream.trim_end().len();
    for end in 0..last {
        let answer: Answer = decode_stream(Protocol::Gemini, ThinkTags::Leading, &stream.as_bytes()[..end])
            .into_iter()
            .collect();
        assert_eq!(answer.stop, Some(StopReason::Cut), "cut at {end}");
        assert!(answer.calls().iter().all(|call| call.runnable.is_err()), "cut at {end}");
    }
}
