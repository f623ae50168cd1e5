//! Measures parsing an SSE stream of text deltas into events, relative to parsing its JSON alone.
//!
//! The JSON is parsed into a struct that holds the same fields, borrowed where it can be: the
//! strictest yardstick, since a `Value` costs several times as much (that ratio is printed too).
//! Both are timed in turn in one run, the best of each counts, and the bytes come in pieces of 4
//! KiB, as a socket gives them.

#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::borrow::Cow;
use std::hint::black_box;
use std::time::{Duration, Instant};

use hardpan_models::Protocol;
use hardpan_providers::StreamDecoder;
use serde::Deserialize;

const DELTAS: usize = 20_000;
const ROUNDS: usize = 60;
const CHUNK_SIZE: usize = 4 << 10;
const LIMIT: f64 = 3.0;

#[derive(Deserialize)]
#[expect(dead_code, reason = "read for the time it takes")]
struct Line<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    index: u64,
    #[serde(borrow)]
    delta: Delta<'a>,
}

#[derive(Deserialize)]
#[expect(dead_code, reason = "read for the time it takes")]
struct Delta<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    #[serde(borrow)]
    text: Cow<'a, str>,
}

fn main() {
    let words = [" the", " parser", "\\n", " reads", " a \\\"word\\\"", ",", " größer", " fn main()"];
    let payload = |n: usize| {
        let text = words[n % words.len()];
        format!(
            r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"text_delta","text":"{text}"}}}}"#
        )
    };
    let payloads: Vec<String> = (0..DELTAS).map(payload).collect();
    let stream: String =
        payloads.iter().map(|data| format!("event: content_block_delta\ndata: {data}\n\n")).collect();

    let (mut events, mut typed, mut value) = (Duration::MAX, Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        events = events.min(time(|| parse_stream(stream.as_bytes())));
        typed = typed.min(time(|| payloads.iter().filter(|data| parses::<Line<'_>>(data)).count()));
        value = value.min(time(|| payloads.iter().filter(|data| parses::<serde_json::Value>(data)).count()));
    }
    let per_delta = |time: Duration| time.as_nanos() / DELTAS as u128;
    println!(
        "{DELTAS} deltas, {} bytes: events {} ns, typed JSON {} ns, JSON values {} ns each",
        stream.len(),
        per_delta(events),
        per_delta(typed),
        per_delta(value)
    );
    println!("sse_parse_ratio_to_values {:.2}", events.as_secs_f64() / value.as_secs_f64());
    println!("sse_parse_ratio {:.2} (limit {LIMIT})", events.as_secs_f64() / typed.as_secs_f64());
}

fn parse_stream(bytes: &[u8]) -> usize {
    let mut decoder = StreamDecoder::new(Protocol::Anthropic);
    bytes.chunks(CHUNK_SIZE).map(|piece| black_box(decoder.push(piece)).len()).sum()
}

fn parses<'a, T: Deserialize<'a>>(data: &'a str) -> bool {
    serde_json::from_str::<T>(data).map(black_box).is_ok()
}

fn time(work: impl Fn() -> usize) -> Duration {
    let start = Instant::now();
    assert_eq!(black_box(work()), DELTAS);
    start.elapsed()
}
