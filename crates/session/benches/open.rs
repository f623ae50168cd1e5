//! Opening a session of 2.4 MB, against parsing its lines into JSON values; and listing 1,000
//! sessions of 100 kB, against reading their bytes.
//!
//! `cargo bench -p hardpan-session` prints the ratios; the limit of the first is 3, of the second
//! 6. Both sides run in the same process, in turns, and the best of many rounds counts, so that a
//! busy machine changes little. A ratio over the limit fails the run only with
//! `HARDPAN_BENCH=strict`.

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hardpan_prompt::{AgentMessage, Json, MessageBody, MessagePart, TokenUsage, ToolCall};
use hardpan_session::{Entry, Header, PartialRecord, Record, RequestRecord, Session, SessionStore};
use jiff::Timestamp;
use serde_json::{Value, json};

const ROUNDS: usize = 60;
const LIMIT: f64 = 3.0;
const BYTES: usize = 2_400_000;

const LIST_ROUNDS: usize = 5;
const LIST_LIMIT: f64 = 6.0;
const LIST_BYTES: usize = 100_000;

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

/// A session as agents make them: questions, answers that stream, calls, files as results,
/// requests, memory.
fn session(bytes: usize) -> String {
    let header = Header { id: "s".into(), time: None, cwd: "/project".into(), extra: Default::default() };
    let mut file = header.to_line();
    let mut leaf: Option<Arc<str>> = None;
    let mut count = 0;
    while file.len() < bytes {
        for entry in exchange(&mut count, leaf.as_deref()) {
            file += &entry.to_line();
            if !matches!(entry.record, Record::Partial(_)) {
                leaf = Some(entry.id);
            }
        }
    }
    file
}

fn exchange(count: &mut usize, leaf: Option<&str>) -> Vec<Entry> {
    *count += 1;
    let n = *count;
    let id = |what: &str| format!("{what}{n:06}");
    let now = Timestamp::from_second(1_800_000_000 + n as i64).ok();
    let source: String = (0..60)
        .map(|line| format!("    let value_{line} = compute(\"{n}\", {line})?; // \"why\" it is so\n"))
        .collect();
    let message_entry = |id: &str, parent: Option<&str>, body| {
        let mut message = AgentMessage::new(id, body);
        message.time = now;
        Entry::message(parent, message)
    };
    let (question, call, result, answer) = (id("u"), id("c"), id("r"), id("a"));
    let text = "The failure comes from the parser: it takes the second token for a name.\n\n".repeat(6);
    let assistant = |content| MessageBody::Assistant {
        content,
        provider: Some("anthropic".into()),
        model: Some("claude-sonnet-5".into()),
        stop_reason: Some("end_turn".into()),
    };
    let arguments = Json::new(&json!({"path": "crates/session/src/session.rs", "offset": n, "limit": 60}));
    let tool_call = ToolCall { id: id("toolu_").into(), name: "read".into(), arguments, result: None };
    let partial = PartialRecord {
        message_id: answer.as_str().into(),
        parts: vec![MessagePart::text(&text[..200])],
        provider: None,
        model: None,
    };
    let request = RequestRecord {
        purpose: "turn".into(),
        provider: "anthropic".into(),
        model: "claude-sonnet-5".into(),
        message: Some(answer.as_str().into()),
        answer: None,
        prefix: None,
        usage: TokenUsage { input: 1200, cache_read: 88_000, output: 420, ..TokenUsage::default() },
        dollars: 0.0363,
        would_cost: None,
        factor: Some(1.14),
        started: now.unwrap_or_default(),
        first_token_ms: Some(812),
        ended_ms: Some(5310),
        layout: "strata".into(),
        extra: Default::default(),
    };
    vec![
        message_entry(
            &question,
            leaf,
            MessageBody::User {
                content: vec![MessagePart::text("Why does the build fail?\nLook at \"main\".")],
            },
        ),
        message_entry(
            &call,
            Some(&question),
            assistant(vec![
                MessagePart::Reasoning {
                    text: text.as_str().into(),
                    signature: Some("c2lnbmF0dXJl".repeat(20).into()),
                    redacted: None,
                },
                MessagePart::text("I will read it."),
                MessagePart::ToolCall(tool_call),
            ]),
        ),
        message_entry(
            &result,
            Some(&call),
            MessageBody::ToolResult {
                call_id: id("toolu_").into(),
                tool_name: Some("read".into()),
                content: vec![MessagePart::text(source)],
                is_error: false,
                not_run: None,
            },
        ),
        Entry::new(id("p"), Some(&result), now, Record::Partial(partial)),
        message_entry(&answer, Some(&result), assistant(vec![MessagePart::text(text.as_str())])),
        Entry::new(id("q"), Some(&answer), now, Record::Request(Arc::new(request))),
        Entry::new(
            id("m"),
            Some(&id("q")),
            now,
            Record::Memory { memory: json!({"base": [n, n + 1], "rent": 0.25}) },
        ),
    ]
}

/// The best times of both, in turns.
fn race(rounds: usize, ours: impl Fn(), theirs: impl Fn()) -> (Duration, Duration) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        best = (best.0.min(time(&ours)), best.1.min(time(&theirs)));
    }
    best
}

/// Prints the figures, and tells whether the ratio is over its limit.
fn is_over(what: &str, (ours, theirs): (Duration, Duration), limit: f64) -> bool {
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let [ours, theirs] = [ours, theirs].map(|time| time.as_secs_f64() * 1e3);
    println!("{what} ratio {ratio:.2} (limit {limit}), {ours:.2} ms against {theirs:.2} ms");
    ratio > limit
}

fn open() -> bool {
    let file = session(BYTES);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("bench.jsonl");
    std::fs::write(&path, &file).expect("it can be written");
    let read = || Session::open(&path).expect("it is a session");
    let values = || -> Vec<Value> {
        file.lines().map(|line| serde_json::from_str(line).expect("every line is JSON")).collect()
    };
    assert!(read().problems.is_empty());
    assert_eq!(read().entries.len() + 1, values().len());
    let best = race(ROUNDS, || drop(black_box(read())), || drop(black_box(values())));
    is_over(&format!("open_session {} entries, {} kB", read().entries.len(), file.len() / 1000), best, LIMIT)
}

fn list() -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, file) = (SessionStore::new(folder.path()), session(LIST_BYTES));
    let paths: Vec<_> = (0..1000)
        .map(|at| {
            store.new_path(
                Path::new(&format!("/project/{}", at % 10)),
                Timestamp::UNIX_EPOCH,
                &at.to_string(),
            )
        })
        .collect();
    for path in &paths {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
        std::fs::write(path, &file).expect("it can be written");
    }
    let read = || paths.iter().map(|path| std::fs::read(path).expect("it is there").len()).sum::<usize>();
    assert_eq!(store.list(None).len(), paths.len());
    let best = race(LIST_ROUNDS, || drop(black_box(store.list(None))), || _ = black_box(read()));
    is_over("list_sessions 1000 of 100 kB", best, LIST_LIMIT)
}

fn main() {
    let over = [open(), list()].contains(&true);
    let strict = std::env::var("HARDPAN_BENCH").is_ok_and(|value| value == "strict");
    assert!(!(over && strict), "a ratio is over its limit");
}
