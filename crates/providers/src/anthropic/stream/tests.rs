use hardpan_models::Protocol;
use hardpan_prompt::{Json, ProviderBlock, ProviderBlockKind, TokenUsage, WebSource};

use super::*;
use crate::stream::tests::*;
use crate::{Answer, ReportedUsage, StreamErrorKind, ThinkTags, decode_answer_body};

const START: &str = r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":25,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":1}}}"#;
const STOP: &str = r#"{"type":"message_stop"}"#;

fn read(payloads: &[&str]) -> Vec<AnswerEvent> {
    decode_stream(Protocol::Anthropic, ThinkTags::Leading, lines(payloads).as_bytes())
}

fn usage(output: u64) -> AnswerEvent {
    let usage = TokenUsage {
        input: 25,
        cache_read: 100,
        cache_write_5m: 10,
        cache_write_1h: 20,
        output,
        reasoning: None,
    };
    AnswerEvent::Usage(usage.into())
}

#[test]
fn a_whole_stream_is_read() {
    let events = read(&[
        START,
        r#"{"type":"ping"}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Let me "}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"see"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq=="}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"xyz"}}"#,
        r#"{"type":"content_block_stop","index":1}"#,
        r#"{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Hé\n"}}"#,
        r#"{"type":"brand_new","delta":"of another form"}"#,
        r#"{"type":"content_block_delta","index":2,"delta":{"type":"citations_delta","citation":{"text":1}}}"#,
        r#"{"type":"content_block_stop","index":2}"#,
        r#"{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu_1","name":"read","input":{}}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":""}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}"#,
        r#"{"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"\"a\"}"}}"#,
        r#"{"type":"content_block_stop","index":3}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":89}}"#,
        STOP,
        STOP,
    ]);
    let expected = [
        start("msg_1", "claude-x"),
        usage(1),
        reasoning("Let me see"),
        AnswerEvent::Signature("Eq==".into()),
        AnswerEvent::RedactedReasoning("xyz".into()),
        text("Hé\n"),
        call(0, "toolu_1", "read"),
        delta(0, "{\"path\":\"a\"}"),
        AnswerEvent::CallEnd { index: 0 },
        usage(89),
        stop(StopReason::ToolUse),
    ];
    assert_eq!(events, expected);
}

#[test]
fn the_same_answer_unstreamed_gives_the_same_events() {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[
        {"type":"thinking","thinking":"hm","signature":"Eq=="},{"type":"redacted_thinking","data":"xyz"},
        {"type":"text","text":"Hi"},{"type":"tool_use","id":"t","name":"read","input":{"path": "a"}},
        {"type":"tool_use","id":"u","name":"list","input":{}}],
        "stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":25,"output_tokens":9}}"#;
    let expected = [
        start("msg_1", "claude-x"),
        AnswerEvent::Usage(ReportedUsage {
            searches: None,
            reports_cache: false,
            ..TokenUsage { input: 25, output: 9, ..TokenUsage::default() }.into()
        }),
        reasoning("hm"),
        AnswerEvent::Signature("Eq==".into()),
        AnswerEvent::RedactedReasoning("xyz".into()),
        text("Hi"),
        call(0, "t", "read"),
        delta(0, "{\"path\": \"a\"}"),
        AnswerEvent::CallEnd { index: 0 },
        call(1, "u", "list"),
        AnswerEvent::CallEnd { index: 1 },
        stop(StopReason::ToolUse),
    ];
    assert_eq!(decode_answer_body(Protocol::Anthropic, body.as_bytes()), expected);
}

#[test]
fn an_error_after_the_start_ends_the_answer() {
    let overloaded =
        r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"r"}"#;
    let begun = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}"#;
    let expected =
        [start("msg_1", "claude-x"), usage(1), text("Hel"), error("overloaded_error", "Overloaded")];
    assert_eq!(read(&[START, begun, overloaded, begun]), expected);
    assert_eq!(
        decode_answer_body(Protocol::Anthropic, overloaded.as_bytes()),
        [error("overloaded_error", "Overloaded")]
    );
    let named = b"event: error\ndata: {\"type\":\"error\",\"message\":\"no form\"}\n\n";
    assert_eq!(decode_stream(Protocol::Anthropic, ThinkTags::Leading, named), [error("error", "no form")]);
}

#[test]
fn a_cut_call_is_never_run_and_the_text_before_it_is_kept() {
    let call = r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"rm","input":{}}}"#;
    let json = r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"all\":true}"}}"#;
    let words = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I will"}}"#;
    let stream = lines(&[START, words, call, json, r#"{"type":"content_block_stop","index":1}"#]);
    // Wherever the stream is cut, and whatever reason is made of it.
    for end in 0..=stream.len() {
        let events = decode_stream(Protocol::Anthropic, ThinkTags::Leading, &stream.as_bytes()[..end]);
        assert_eq!(events.last(), Some(&stop(StopReason::Cut)));
        let answer: Answer = events.into_iter().collect();
        assert!(answer.calls().iter().all(|call| call.runnable.is_err()));
    }
    let length =
        r#"{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":5}}"#;
    let events = read(&[START, words, call, json, length, STOP]);
    let answer: Answer = events.into_iter().collect();
    assert_eq!(answer.text(), "I will");
    assert!(answer.calls()[0].runnable.is_err());
}

#[test]
fn a_stop_reason_without_the_end_marker_is_an_end() {
    let delta = r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}"#;
    assert_eq!(read(&[START, delta]).last(), Some(&stop(StopReason::End)));
    assert_eq!(read(&[START, STOP]).last(), Some(&stop(StopReason::End)));
    assert_eq!(read(&[START]).last(), Some(&stop(StopReason::Cut)));
}

#[test]
fn a_signature_that_is_not_whole_is_not_given_out() {
    let thinking =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"hm"}}"#;
    let half =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Eq"}}"#;
    let closed = r#"{"type":"content_block_stop","index":0}"#;
    assert_eq!(read(&[thinking, half]), [reasoning("hm"), stop(StopReason::Cut)]);
    let signed = [reasoning("hm"), AnswerEvent::Signature("EqEq".into()), stop(StopReason::Cut)];
    assert_eq!(read(&[thinking, half, half, closed]), signed);
}

#[test]
fn blocks_said_twice_and_indexes_used_twice_are_told_apart() {
    let open = |id: &str| {
        format!(
            r#"{{"type":"content_block_start","index":0,"content_block":{{"type":"tool_use","id":"{id}","name":"f","input":{{}}}}}}"#
        )
    };
    let (first, second) = (open("a"), open("b"));
    let closed = r#"{"type":"content_block_stop","index":0}"#;
    let events = read(&[&first, &first, closed, closed, &second, closed, STOP]);
    let ends = |index| AnswerEvent::CallEnd { index };
    assert_eq!(events, [call(0, "a", "f"), ends(0), call(1, "b", "f"), ends(1), stop(StopReason::ToolUse)]);
}

fn block(kind: ProviderBlockKind, id: &str, json: &str) -> AnswerEvent {
    let json = Json::new(&serde_json::from_str(json).unwrap());
    AnswerEvent::ProviderBlock(ProviderBlock { kind, id: id.into(), json })
}

#[test]
fn cited_text_is_kept_with_its_citations_and_its_sources_are_told() {
    let citation = r#"{"type":"web_search_result_location","cited_text":"E is.","url":"https://e.org","title":"E","encrypted_index":"i+="}"#;
    let events = read(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"So: "}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"content_block_start","index":1,"content_block":{"type":"text","text":"","citations":[]}}"#,
        r#"{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"é is"}}"#,
        &format!(
            r#"{{"type":"content_block_delta","index":1,"delta":{{"type":"citations_delta","citation":{citation}}}}}"#
        ),
        r#"{"type":"content_block_stop","index":1}"#,
        STOP,
    ]);
    let whole = format!(r#"{{"type":"text","text":"é is","citations":[{citation}]}}"#);
    let expected = [
        AnswerEvent::Text("So: é is".into()),
        block(ProviderBlockKind::CitedText { bytes: 5, after: 0 }, "", &whole),
        AnswerEvent::Sources(vec![WebSource { title: "E".into(), url: "https://e.org".into() }]),
        stop(StopReason::End),
    ];
    assert_eq!(events, expected);
}

#[test]
fn a_search_of_the_provider_is_told_and_kept_as_it_came() {
    let result = r#"{"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"web_search_result","url":"https://e.org","title":"E","encrypted_content":"x+/="}]}"#;
    let events = read(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"web_search","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"query\":"}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"\"news\"}"}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
        &format!(r#"{{"type":"content_block_start","index":1,"content_block":{result}}}"#),
        r#"{"type":"content_block_stop","index":1}"#,
        STOP,
    ]);
    let call = r#"{"type":"server_tool_use","id":"s","name":"web_search","input":{"query":"news"}}"#;
    let expected = [
        AnswerEvent::WebSearch { query: "news".into() },
        block(ProviderBlockKind::Call, "s", call),
        block(ProviderBlockKind::Result, "s", result),
        stop(StopReason::End),
    ];
    assert_eq!(events, expected);
}

#[test]
fn what_the_provider_does_itself_is_a_footnote() {
    let events = read(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"s","name":"code_execution","input":{}}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\""}}"#,
        r#"{"type":"content_block_stop","index":0}"#,
    ]);
    assert!(
        matches!(&events[..], [AnswerEvent::SkippedPart { part_type }, AnswerEvent::Stop(_)] if part_type == "server_tool_use")
    );
}

#[test]
fn a_piece_of_no_call_is_an_error() {
    let events = read(&[
        r#"{"type":"content_block_delta","index":9,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    ]);
    assert!(matches!(&events[..], [AnswerEvent::Error(error)] if error.kind == StreamErrorKind::Malformed));
}
