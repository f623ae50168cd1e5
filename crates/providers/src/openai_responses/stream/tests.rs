//! Streams of the Responses API, as its server and smaller ones send them.

use hardpan_models::Protocol;
use hardpan_prompt::TokenUsage;

use crate::stream::tests::{call, decode_stream, delta, lines, reasoning, start, stop, text};
use crate::{
    AnswerEvent, ReportedUsage, StopReason, StreamError, StreamErrorKind, ThinkTags, decode_answer_body,
};

fn decode(payloads: &[&str]) -> Vec<AnswerEvent> {
    decode_stream(Protocol::OpenaiResponses, ThinkTags::default(), lines(payloads).as_bytes())
}

const CREATED: &str = r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","model":"gpt-6-luna","status":"in_progress","output":[],"usage":null,"error":null}}"#;
const COMPLETED: &str = r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}}"#;

fn usage() -> AnswerEvent {
    AnswerEvent::Usage(ReportedUsage {
        searches: None,
        reports_cache: false,
        ..TokenUsage { input: 10, output: 5, ..TokenUsage::default() }.into()
    })
}

fn end(index: usize) -> AnswerEvent {
    AnswerEvent::CallEnd { index }
}

/// Reasoning, a text and two calls: all events of the real server.
const FULL: [&str; 16] = [
    r#"{"type":"response.in_progress","response":{"id":"resp_1","status":"in_progress","output":[]}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"gAAA"}}"#,
    r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Two ","obfuscation":"x"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"cities"}"#,
    r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"Two cities"}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Two cities"}],"encrypted_content":"gAAAfull=="}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","content":[],"role":"assistant","phase":"commentary"}}"#,
    r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","annotations":[],"logprobs":[],"text":""}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Looking.","logprobs":[]}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","status":"completed","content":[{"type":"output_text","text":"Looking."}],"role":"assistant"}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","arguments":"","call_id":"call_1","name":"f"}}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"a\":1}"}"#,
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"a\":1}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"fc_1","type":"function_call","arguments":"{\"a\":1}","call_id":"call_1","name":"f"}}"#,
    r#"{"type":"response.output_item.done","output_index":3,"item":{"id":"fc_2","type":"function_call","arguments":"{\"a\":2}","call_id":"call_2","name":"f"}}"#,
];

fn full_events() -> Vec<AnswerEvent> {
    vec![
        start("resp_1", "gpt-6-luna"),
        reasoning("Two cities"),
        AnswerEvent::Signature("gAAAfull==".into()),
        text("Looking."),
        call(0, "call_1", "f"),
        delta(0, r#"{"a":1}"#),
        end(0),
        call(1, "call_2", "f"),
        delta(1, r#"{"a":2}"#),
        end(1),
        usage(),
        stop(StopReason::ToolUse),
    ]
}

#[test]
fn a_full_stream_is_read() {
    assert_eq!(decode(&[&[CREATED][..], &FULL, &[COMPLETED]].concat()), full_events());
}

#[test]
fn repeated_events_change_nothing() {
    let frames = FULL.iter().flat_map(|event| {
        let is_delta = event.contains(".delta\"");
        if is_delta { vec![*event] } else { vec![*event, *event] }
    });
    let frames: Vec<&str> = [CREATED, CREATED].into_iter().chain(frames).chain([COMPLETED]).collect();
    assert_eq!(decode(&frames), full_events());
}

#[test]
fn only_complete_items_are_enough() {
    let done: Vec<&str> = FULL.into_iter().filter(|event| event.contains("output_item.done")).collect();
    assert_eq!(decode(&[&[CREATED][..], &done, &[COMPLETED]].concat()), full_events());
}

#[test]
fn a_lean_stream_without_items_or_ids_is_read() {
    let events = decode(&[
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hel"}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"lo"}"#,
        r#"{"type":"response.something_new","delta":{"any":"shape"},"item":7}"#,
        r#"{"type":"response.completed","response":{"id":"resp_1","usage":{"input_tokens":10,"output_tokens":5}}}"#,
    ]);
    assert_eq!(events, [start("", ""), text("Hello"), usage(), stop(StopReason::End)]);
}

#[test]
fn items_of_the_servers_own_tools_are_skipped() {
    let events = decode(&[
        CREATED,
        r#"{"type":"response.output_item.added","output_index":0,"item":{"id":"ts_1","type":"tool_search_call","arguments":{"q":1},"content":3}}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"ts_1","type":"tool_search_call","arguments":{"q":1}}}"#,
        COMPLETED,
    ]);
    let skipped = AnswerEvent::SkippedPart { part_type: "tool_search_call".into() };
    assert_eq!(events, [start("resp_1", "gpt-6-luna"), skipped, usage(), stop(StopReason::End)]);
}

#[test]
fn two_messages_and_two_summaries_stay_apart() {
    let events = decode(&[
        CREATED,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[{"text":"a"},{"text":"b"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"id":"msg_1","type":"message","content":[{"text":"c"},{"text":"d"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"id":"msg_2","type":"message","content":[{"text":"e"}]}}"#,
        COMPLETED,
    ]);
    assert_eq!(
        events,
        [start("resp_1", "gpt-6-luna"), reasoning("a\n\nb"), text("cd\n\ne"), usage(), stop(StopReason::End)]
    );
}

#[test]
fn every_end_has_its_reason() {
    let ends = [
        (r#""status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}"#, StopReason::Length),
        (r#""status":"incomplete","incomplete_details":{"reason":"content_filter"}"#, StopReason::Refusal),
        (
            r#""status":"incomplete","incomplete_details":{"reason":"steered"}"#,
            StopReason::Other("steered".into()),
        ),
        (r#""status":"incomplete""#, StopReason::Other("incomplete".into())),
    ];
    for (fields, reason) in ends {
        let last = format!(r#"{{"type":"response.incomplete","response":{{"id":"resp_1",{fields}}}}}"#);
        assert_eq!(decode(&[CREATED, &last]).last(), Some(&stop(reason)), "{fields}");
    }
    let refusal =
        r#"{"type":"response.refusal.delta","item_id":"m","output_index":0,"content_index":0,"delta":"No."}"#;
    assert_eq!(
        decode(&[CREATED, refusal, COMPLETED]),
        [start("resp_1", "gpt-6-luna"), text("No."), usage(), stop(StopReason::Refusal)]
    );
    assert_eq!(decode(&[CREATED, "[DONE]"]).last(), Some(&stop(StopReason::Cut)));
}

#[test]
fn errors_are_read_nested_flat_and_in_a_failed_response() {
    let error = |kind: &str| {
        AnswerEvent::Error(StreamError {
            kind: StreamErrorKind::Provider(kind.into()),
            code: Some("rate_limit_exceeded".into()),
            message: "Wait.".into(),
        })
    };
    for (event, kind) in [
        (
            r#"{"type":"error","error":{"type":"tokens","code":"rate_limit_exceeded","message":"Wait."}}"#,
            "tokens",
        ),
        (r#"{"type":"error","code":"rate_limit_exceeded","message":"Wait.","param":null}"#, "error"),
        (
            r#"{"type":"response.failed","response":{"id":"resp_1","status":"failed","error":{"code":"rate_limit_exceeded","message":"Wait."}}}"#,
            "rate_limit_exceeded",
        ),
    ] {
        assert_eq!(decode(&[CREATED, event]), [start("resp_1", "gpt-6-luna"), error(kind)], "{event}");
    }
}

#[test]
fn a_body_gives_the_same_events_as_a_stream() {
    let body = r#"{"id":"resp_1","object":"response","model":"gpt-6-luna","status":"completed","error":null,
      "output":[
        {"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"Two cities"}],"encrypted_content":"gAAAfull=="},
        {"id":"msg_1","type":"message","role":"assistant","content":[{"type":"output_text","text":"Looking.","annotations":[]}]},
        {"id":"fc_1","type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}"},
        {"id":"fc_2","type":"function_call","call_id":"call_2","name":"f","arguments":"{\"a\":2}"}],
      "usage":{"input_tokens":10,"output_tokens":5,"total_tokens":15}}"#;
    assert_eq!(decode_answer_body(Protocol::OpenaiResponses, body.as_bytes()), full_events());
    let error = br#"{"error":{"type":"server_error","message":"oops"}}"#;
    assert!(matches!(decode_answer_body(Protocol::OpenaiResponses, error)[..], [AnswerEvent::Error(_)]));
}
