//! Assembling and encoding a large request, against serialising the same body from ready-made
//! values.
//!
//! `cargo bench -p hardpan-context` prints one ratio per layout and codec; the limit is 3. Both
//! sides run in the same process, in turns, and the best of many rounds counts, so that a busy
//! machine changes little. A ratio over the limit fails the run only with `HARDPAN_BENCH=strict`.

#[path = "../tests/large_snapshot/mod.rs"]
mod large_snapshot;

use std::hint::black_box;
use std::time::{Duration, Instant};

use hardpan_context::{LayoutName, PromptTexts, RenderCache, Target, assemble};
use hardpan_models::Catalogue;

/// The allocator that the `hardpan` binary uses.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 60;
const LIMIT: f64 = 3.0;

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn time(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn main() {
    let texts = PromptTexts::builtin().expect("the built-in texts are valid");
    let mut over = false;
    for layout in LayoutName::ALL {
        for model in ["anthropic/claude-sonnet-5", "openai/gpt-5.5"] {
            let target = Target::new(Catalogue::builtin(), None, model).expect("the catalogue has it");
            let render_cache = RenderCache::new(target.vocabulary());
            // A session in progress: the memory of a first request, then one more request on top of
            // it.
            let first = assemble(&large_snapshot::large_snapshot(), layout, &target, &texts, &render_cache)
                .expect("it fits");
            let mut snapshot = large_snapshot::large_snapshot();
            snapshot.layout_state = first.layout_state;
            let encode = || {
                let assembled = assemble(&snapshot, layout, &target, &texts, &render_cache).expect("it fits");
                hardpan_providers::encode(&assembled.prompt, &target.profile)
            };
            let body = encode();
            let values: serde_json::Value = serde_json::from_slice(&body).expect("a body is JSON");
            assert_eq!(
                serde_json::to_vec(&values).expect("values serialise"),
                body,
                "the same body on both sides"
            );
            let (mut assembling, mut serialising) = (Duration::MAX, Duration::MAX);
            for _ in 0..ROUNDS {
                assembling = assembling.min(time(|| drop(black_box(encode()))));
                serialising = serialising.min(time(|| drop(black_box(serde_json::to_vec(&values)))));
            }
            let ratio = assembling.as_secs_f64() / serialising.as_secs_f64();
            over |= ratio > LIMIT;
            let tokens = render_cache.counter.measure(&first.prompt).total();
            println!(
                "assemble_and_encode {layout:6} {model:<26} ratio {ratio:.2} (limit {LIMIT}), {tokens} tokens, {} kB, {:.2} ms against {:.2} ms",
                body.len() / 1000,
                assembling.as_secs_f64() * 1e3,
                serialising.as_secs_f64() * 1e3,
            );
        }
    }
    let strict = std::env::var("HARDPAN_BENCH").is_ok_and(|value| value == "strict");
    assert!(!(over && strict), "a ratio is over its limit");
}
