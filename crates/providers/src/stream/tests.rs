mod anthropic;
mod generated;
mod openai;

use super::*;
use crate::{Answer, StopReason, Usage};

/// The events of a stream, the same however its bytes are cut.
fn decode(protocol: Protocol, tags: ThinkTags, stream: &[u8]) -> Vec<Event> {
    let whole = pieces(protocol, tags, [stream]);
    assert_eq!(pieces(protocol, tags, stream.chunks(1)), whole);
    whole
}

fn pieces<'a>(protocol: Protocol, tags: ThinkTags, pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Event> {
    let mut decoder = Decoder::with_tags(protocol, tags);
    let mut events: Vec<Event> = pieces.into_iter().flat_map(|piece| decoder.push(piece)).collect();
    events.extend(decoder.finish());
    assert!(decoder.is_over());
    assert!(
        decoder.push(b"data: {}\n\n").is_empty() && decoder.finish().is_empty(),
        "nothing follows the end"
    );
    assert_ordered(&events);
    Event::merge(events)
}

/// Start first and at most once, the end last and exactly once.
fn assert_ordered(events: &[Event]) {
    let starts = events.iter().filter(|event| matches!(event, Event::Start { .. })).count();
    assert!(starts <= 1, "{events:?}");
    let (last, rest) = events.split_last().expect("an end");
    assert!(last.is_last() && !rest.iter().any(Event::is_last), "{events:?}");
}

/// `data:` lines with their blank lines.
fn lines(payloads: &[&str]) -> String {
    payloads.iter().map(|payload| format!("data: {payload}\n\n")).collect()
}

fn text(text: &str) -> Event {
    Event::Text(text.into())
}

fn reasoning(text: &str) -> Event {
    Event::Reasoning(text.into())
}

fn call(index: usize, id: &str, name: &str) -> Event {
    Event::CallStart { index, id: id.into(), name: name.into() }
}

fn delta(index: usize, json: &str) -> Event {
    Event::CallDelta { index, json: json.into() }
}

fn start(id: &str, model: &str) -> Event {
    Event::Start { id: id.into(), model: model.into() }
}

fn stop(reason: StopReason) -> Event {
    Event::Stop(reason)
}

fn error(kind: &str, message: &str) -> Event {
    Event::Error(StreamError::new(kind, message))
}

#[test]
fn an_endless_line_ends_the_answer() {
    let mut decoder = Decoder::new(Protocol::Openai);
    let block = vec![b'x'; sse::LIMIT + 1];
    let events = decoder.push(&block);
    assert!(
        matches!(&events[..], [Event::Error(error)] if error.kind == StreamError::TOO_LONG),
        "{events:?}"
    );
    assert!(decoder.is_over());
}

#[test]
fn an_endless_answer_ends() {
    let mut decoder = Decoder::new(Protocol::Anthropic);
    let ping = format!("data: {{\"type\":\"ping\",\"x\":\"{}\"}}\n\n", "x".repeat(8 << 20));
    let events: Vec<Event> = (0..64).flat_map(|_| decoder.push(ping.as_bytes())).collect();
    assert!(
        matches!(&events[..], [Event::Error(error)] if error.kind == StreamError::TOO_LONG),
        "{events:?}"
    );
}

#[test]
fn what_is_no_answer_is_an_error_that_quotes_it() {
    for protocol in [Protocol::Anthropic, Protocol::Openai] {
        for body in [&b"<html>Bad gateway</html>"[..], b"", b"{}", b"[1,2]", b"{\"choices\":[]}", b"\xFF"] {
            let events = events_of_body(protocol, body);
            assert!(matches!(&events[..], [Event::Error(_)]), "{protocol:?} {events:?}");
        }
        let events = events_of_body(protocol, b"<html>Bad gateway</html>");
        assert!(matches!(&events[..], [Event::Error(error)] if error.message.contains("<html>Bad gateway")));
        let garbage = decode(protocol, ThinkTags::Leading, b"data: <html>\n\ndata: [DONE]\n\n");
        assert!(matches!(&garbage[..], [Event::Error(error)] if error.kind == StreamError::MALFORMED));
    }
}

#[test]
fn an_empty_stream_is_cut() {
    for protocol in [Protocol::Anthropic, Protocol::Openai] {
        assert_eq!(decode(protocol, ThinkTags::Leading, b""), [stop(StopReason::Cut)]);
        assert_eq!(
            decode(protocol, ThinkTags::Leading, b": warming up\n\ndata:\n\n"),
            [stop(StopReason::Cut)]
        );
    }
}
