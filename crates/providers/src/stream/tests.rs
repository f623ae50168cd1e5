mod generated;

use hardpan_prompt::TokenUsage;

use super::*;
use crate::{Answer, StopReason};

/// Decodes a stream, and checks that the events do not depend on how its bytes are cut.
pub(crate) fn decode_stream(protocol: Protocol, tags: ThinkTags, stream: &[u8]) -> Vec<AnswerEvent> {
    let whole = decode_chunks(protocol, tags, [stream]);
    assert_eq!(decode_chunks(protocol, tags, stream.chunks(1)), whole);
    whole
}

pub(crate) fn decode_chunks<'a>(
    protocol: Protocol,
    tags: ThinkTags,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<AnswerEvent> {
    let mut decoder = StreamDecoder::with_tags(protocol, tags);
    let mut events: Vec<AnswerEvent> = pieces.into_iter().flat_map(|piece| decoder.push(piece)).collect();
    events.extend(decoder.finish());
    assert!(decoder.is_over());
    assert!(
        decoder.push(b"data: {}\n\n").is_empty() && decoder.finish().is_empty(),
        "nothing follows the end"
    );
    assert_ordered(&events);
    AnswerEvent::merge(events)
}

/// Checks that the start comes first and at most once, the end last and exactly once.
pub(crate) fn assert_ordered(events: &[AnswerEvent]) {
    let starts = events.iter().filter(|event| matches!(event, AnswerEvent::Start { .. })).count();
    assert!(starts <= 1, "{events:?}");
    let (last, rest) = events.split_last().expect("an end");
    assert!(last.is_last() && !rest.iter().any(AnswerEvent::is_last), "{events:?}");
}

/// `data:` lines with their blank lines.
pub(crate) fn lines(payloads: &[&str]) -> String {
    payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect()
}

pub(crate) fn text(text: &str) -> AnswerEvent {
    AnswerEvent::Text(text.into())
}

pub(crate) fn reasoning(text: &str) -> AnswerEvent {
    AnswerEvent::Reasoning(text.into())
}

pub(crate) fn call(index: usize, id: &str, name: &str) -> AnswerEvent {
    AnswerEvent::CallStart { index, id: id.into(), name: name.into() }
}

pub(crate) fn delta(index: usize, json: &str) -> AnswerEvent {
    AnswerEvent::CallDelta { index, json: json.into() }
}

pub(crate) fn start(id: &str, model: &str) -> AnswerEvent {
    AnswerEvent::Start { id: id.into(), model: model.into() }
}

pub(crate) fn stop(reason: StopReason) -> AnswerEvent {
    AnswerEvent::Stop(reason)
}

pub(crate) fn error(kind: &str, message: &str) -> AnswerEvent {
    AnswerEvent::Error(StreamError::from_provider(kind, message))
}

#[test]
fn an_endless_line_ends_the_answer() {
    let mut decoder = StreamDecoder::new(Protocol::Openai);
    let block = vec![b'x'; sse::LIMIT + 1];
    let events = decoder.push(&block);
    assert!(
        matches!(&events[..], [AnswerEvent::Error(error)] if error.kind == StreamErrorKind::TooLong),
        "{events:?}"
    );
    assert!(decoder.is_over());
}

#[test]
fn an_endless_answer_ends() {
    let mut decoder = StreamDecoder::new(Protocol::Anthropic);
    let ping = format!("data: {{\"type\":\"ping\",\"x\":\"{}\"}}\n\n", "x".repeat(8 << 20));
    let events: Vec<AnswerEvent> = (0..64).flat_map(|_| decoder.push(ping.as_bytes())).collect();
    assert!(
        matches!(&events[..], [AnswerEvent::Error(error)] if error.kind == StreamErrorKind::TooLong),
        "{events:?}"
    );
}

#[test]
fn what_is_no_answer_is_an_error_that_quotes_it() {
    for protocol in Protocol::ALL {
        for body in [&b"<html>Bad gateway</html>"[..], b"", b"{}", b"[1,2]", b"{\"choices\":[]}", b"\xFF"] {
            let events = decode_answer_body(protocol, body);
            assert!(matches!(&events[..], [AnswerEvent::Error(_)]), "{protocol:?} {events:?}");
        }
        let events = decode_answer_body(protocol, b"<html>Bad gateway</html>");
        assert!(
            matches!(&events[..], [AnswerEvent::Error(error)] if error.message.contains("<html>Bad gateway"))
        );
        let garbage = decode_stream(protocol, ThinkTags::Leading, b"data: <html>\n\ndata: [DONE]\n\n");
        assert!(
            matches!(&garbage[..], [AnswerEvent::Error(error)] if error.kind == StreamErrorKind::Malformed)
        );
    }
}

#[test]
fn an_empty_stream_is_cut() {
    for protocol in Protocol::ALL {
        assert_eq!(decode_stream(protocol, ThinkTags::Leading, b""), [stop(StopReason::Cut)]);
        assert_eq!(
            decode_stream(protocol, ThinkTags::Leading, b": warming up\n\ndata:\n\n"),
            [stop(StopReason::Cut)]
        );
    }
}
