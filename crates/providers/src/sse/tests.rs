use proptest::prelude::*;

use super::*;

type Owned = (Option<String>, String, Option<String>);

fn owned(event: SseEvent<'_>) -> Owned {
    (event.event.map(Into::into), event.data.into(), event.id.map(Into::into))
}

fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<Owned> {
    let (mut parser, mut events) = (Parser::default(), Vec::new());
    for mut piece in pieces {
        while let Some(event) = parser.next(&mut piece).unwrap() {
            events.push(owned(event));
        }
    }
    events.extend(parser.finish().unwrap().map(owned));
    events
}

fn data(stream: &str) -> Vec<String> {
    let bytewise: Vec<_> = parse(stream.as_bytes().chunks(1)).into_iter().map(|(_, data, _)| data).collect();
    let whole: Vec<_> = parse([stream.as_bytes()]).into_iter().map(|(_, data, _)| data).collect();
    assert_eq!(bytewise, whole);
    whole
}

#[test]
fn all_three_line_ends_are_understood() {
    for end in ["\n", "\r\n", "\r"] {
        assert_eq!(data(&"data: a|data: b||data:c||".replace('|', end)), ["a\nb", "c"], "{end:?}");
    }
}

#[test]
fn comments_unknown_fields_and_empty_events_are_passed_over() {
    assert_eq!(data(": hi\n\nevent: x\n\nfoo: bar\ndata: 1\n\n:\n\n\n"), ["1"]);
    let events = parse([&b"event: lost\n\ndata: 1\n\n"[..]]);
    assert_eq!(events, [(None, "1".into(), None)], "an event's name does not outlive it");
}

#[test]
fn a_field_without_value_or_space_is_a_field() {
    assert_eq!(data("data\n\ndata:\n\ndata:  two\n\ndata\ndata\n\n"), ["", "", " two", "\n"]);
}

#[test]
fn ids_stay_and_retry_is_kept() {
    let mut parser = Parser::default();
    let mut bytes: &[u8] = b"id: 7\nretry: 250\nretry: soon\ndata: a\n\nid: \0\ndata: b\n\n";
    assert_eq!(parser.next(&mut bytes).unwrap().unwrap().id, Some("7"));
    assert_eq!(parser.next(&mut bytes).unwrap().unwrap().id, Some("7"));
    assert_eq!(parser.retry_ms(), Some(250));
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_beginning_only() {
    assert_eq!(data("\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n"), ["a"]);
}

#[test]
fn what_stands_at_the_end_is_given_out_even_without_its_line_end() {
    assert_eq!(data("data: a\n\ndata: [DONE]"), ["a", "[DONE]"]);
    assert_eq!(data("data: a\ndata: b\n"), ["a\nb"]);
    assert_eq!(data("data: a\nda"), ["a"]);
    assert_eq!(data("event: a"), [""; 0]);
}

#[test]
fn what_is_not_utf8_is_replaced() {
    let stream: &[u8] = b"data: a\xFFb\xE2\x82\n\n";
    assert_eq!(parse([stream]), [(None, "a\u{FFFD}b\u{FFFD}".into(), None)]);
    assert_eq!(parse(stream.chunks(1)), parse([stream]));
}

#[test]
fn an_endless_line_is_an_error_and_not_a_full_memory() {
    let mut parser = Parser::default();
    let block = [b'x'; 1 << 20];
    let taken = (0..).take_while(|_| parser.next(&mut &block[..]).is_ok()).count();
    assert_eq!(taken, LIMIT >> 20);
    let mut parser = Parser::default();
    let line = [b"data: ", &block[..], b"\n"].concat();
    assert!((0..20).any(|_| parser.next(&mut &line[..]).is_err()), "nor is an event of endless lines");
}

proptest! {
    #[test]
    fn where_the_bytes_are_cut_makes_no_difference(
        words in prop::collection::vec(prop::sample::select(vec![
            &b"data"[..], b":", b" ", b"\n", b"\r", b"\r\n", b"event", b"id", b"\xEF\xBB\xBF", b"\xE2\x82\xAC", b"\xF0\x9F", b"x", b"\n\n", b"data: y\n\n",
        ]), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
    ) {
        let stream = words.concat();
        let whole = parse([&stream[..]]);
        prop_assert_eq!(&parse(stream.chunks(1)), &whole);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).chain([0, stream.len()]).collect();
        cuts.sort_unstable();
        prop_assert_eq!(&parse(cuts.windows(2).map(|pair| &stream[pair[0]..pair[1]])), &whole);
    }
}
