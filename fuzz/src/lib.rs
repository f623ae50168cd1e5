//! The checks of the fuzz targets. Of streams: the same events however the bytes are cut, exactly one end, and
//! no runnable call in an answer that did not end cleanly. Of commands: [`is_one_command`].

use hardpan_models::Protocol;
use hardpan_providers::{
    Answer, AnswerEvent, StopReason, StreamDecoder, ThinkTags, decode_answer_body_with_tags,
};

/// Cuts `bytes` into pieces of 1 to 16 bytes; `seed` determines their lengths.
pub fn pieces(mut bytes: &[u8], seed: u8) -> impl Iterator<Item = &[u8]> {
    let mut state = seed;
    std::iter::from_fn(move || {
        state = state.wrapping_mul(141).wrapping_add(3);
        let (piece, rest) = bytes.split_at(bytes.len().min(1 + usize::from(state >> 4)));
        bytes = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Decodes `input` as a stream in one piece and in many, and as a whole body. Its first byte
/// selects the think tags and the cuts.
pub fn check(protocol: Protocol, input: &[u8]) {
    let Some((&seed, stream)) = input.split_first() else { return };
    let tags =
        [ThinkTags::Never, ThinkTags::Leading, ThinkTags::Anywhere, ThinkTags::Opened][usize::from(seed % 4)];
    let whole = decode(protocol, tags, std::iter::once(stream));
    assert_eq!(decode(protocol, tags, pieces(stream, seed)), whole);
    check_events(whole);
    check_events(decode_answer_body_with_tags(protocol, tags, stream));
}

fn decode<'a>(
    protocol: Protocol,
    tags: ThinkTags,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Vec<AnswerEvent> {
    let mut decoder = StreamDecoder::with_tags(protocol, tags);
    let mut events: Vec<AnswerEvent> = pieces.flat_map(|piece| decoder.push(piece)).collect();
    events.extend(decoder.finish());
    AnswerEvent::merge(events)
}

fn check_events(events: Vec<AnswerEvent>) {
    assert_eq!(events.iter().filter(|event| event.is_last()).count(), 1);
    assert!(events.last().is_some_and(AnswerEvent::is_last));
    let answer: Answer = events.into_iter().collect();
    let clean = matches!(answer.stop, Some(StopReason::End | StopReason::ToolUse | StopReason::StopSequence));
    for call in answer.calls() {
        assert!(call.runnable.is_err() || (clean && call.call.arguments.is_object()));
    }
    answer.parts();
}

/// Whether a shell reads a line as one simple command without expansions: written by the grammar of
/// POSIX (2.2 and 2.10), apart from the code that is tested.
pub fn is_one_command(line: &str) -> bool {
    let line = line.trim_matches([' ', '\t', '\n']);
    let mut quote = None;
    let mut at_word_start = true;
    let mut first_word = String::new();
    let mut words = 0;
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (_, '\n' | '\r' | '\0') => return false,
            (Some('\''), '\'') | (Some('"'), '"') => quote = None,
            (Some('"'), '$' | '`' | '\\') => return false,
            (Some(_), c) => {
                if words == 1 {
                    first_word.push(c);
                }
            }
            (None, ' ' | '\t') => {
                at_word_start = true;
                continue;
            }
            // Operators, expansions, patterns, comments.
            (None, ';' | '&' | '|' | '<' | '>' | '(' | ')' | '$' | '`' | '\\' | '*' | '?' | '[') => {
                return false;
            }
            (None, '#') if at_word_start => return false,
            // In an argument it is the name of a folder.
            (None, '~') if at_word_start && words == 0 => return false,
            (None, c) => {
                if at_word_start {
                    words += 1;
                    at_word_start = false;
                }
                match c {
                    '\'' | '"' => quote = Some(c),
                    c if words == 1 => first_word.push(c),
                    _ => {}
                }
                continue;
            }
        }
        at_word_start = false;
    }
    quote.is_none() && words > 0 && !first_word.contains('=')
}
