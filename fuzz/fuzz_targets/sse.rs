#![no_main]

use hardpan_providers::sse::Parser;

type Owned = (Option<String>, String, Option<String>);

fn parse<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<Owned> {
    let (mut parser, mut events) = (Parser::default(), Vec::new());
    for mut piece in pieces {
        while let Ok(Some(event)) = parser.next(&mut piece) {
            events.push((event.event.map(Into::into), event.data.into(), event.id.map(Into::into)));
        }
        assert!(piece.is_empty(), "a parser that needs more has taken all");
    }
    if let Ok(Some(event)) = parser.finish() {
        events.push((event.event.map(Into::into), event.data.into(), event.id.map(Into::into)));
    }
    events
}

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Some((&seed, stream)) = input.split_first() {
        assert_eq!(parse(hardpan_fuzz::pieces(stream, seed)), parse(std::iter::once(stream)));
    }
});
