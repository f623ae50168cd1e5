//! What an event costs that nobody handles: `cargo bench -p hardpan-agent --bench events`.
//!
//! Starting a conversation raises two events, `session_start` and `resources_discover`, through the same
//! dispatch as every other event. The limit is a microsecond for each.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hardpan_test_support::TestAgent;

/// The allocator of the `hardpan` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 51;
const STARTS: u32 = 2000;
const EVENTS_OF_A_START: u32 = 2;
const LIMIT: Duration = Duration::from_micros(1);

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn clock() -> Instant {
    Instant::now()
}

#[allow(clippy::unwrap_used, reason = "a benchmark that fails fails")]
fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let test_agent = runtime.block_on(TestAgent::in_process().without_recording().start());
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            runtime.block_on(async {
                let begun = clock();
                for _ in 0..STARTS {
                    black_box(&test_agent.agent).start().await;
                }
                begun.elapsed() / (STARTS * EVENTS_OF_A_START)
            })
        })
        .collect();
    times.sort();
    let median = times[ROUNDS / 2];
    let ratio = median.as_secs_f64() / LIMIT.as_secs_f64();
    println!("an event without a handler: {median:?}, {ratio:.2} of the limit of {LIMIT:?}");
}
