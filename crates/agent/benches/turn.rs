//! A turn of the agent in a session of 1,000 messages, against encoding its request alone.
//!
//! `cargo bench -p hardpan-agent --bench turn` prints one ratio per layout; the limit is 3. A turn is everything but the
//! provider: the copy of the conversation, the snapshot, assembling, validating and encoding the request, taking in an
//! answer of 40 pieces and a call, the call's result, and what is stored of it all. The session is in memory (`/dev/shm`), so
//! that no disk is waited for; what a disk adds is printed beside it. Both sides run in the same process, in turns, and medians
//! count. A ratio over the limit fails the run only with `HARDPAN_BENCH=strict`.

mod instant;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hardpan_agent::events::BeforeProviderRequest;
use hardpan_agent::{Agent, Conversation, Switch};
use hardpan_context::{LayoutName, Target};
use hardpan_models::Catalogue;
use hardpan_prompt::Prompt;
use hardpan_session::{Log, Session};
use tempfile::TempDir;

const MESSAGES: usize = 1000;
const TURNS: usize = 10;
const ROUNDS: usize = 21;
const LIMIT: f64 = 3.0;

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn clock() -> Instant {
    Instant::now()
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A folder in memory where there is one.
fn in_memory() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { TempDir::new_in(memory) } else { TempDir::new() }.expect("a folder")
}

/// A folder on the disk that this is built on.
fn on_disk() -> TempDir {
    TempDir::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder")
}

/// A session of many messages.
fn session(folder: &Path) -> Session {
    let path = folder.join("long.jsonl");
    let log = Log::create(&path, instant::header("long")).expect("a session");
    let saved = instant::entries(MESSAGES).into_iter().map(|entry| log.append(entry)).last();
    saved.expect("there are entries").wait().expect("they are stored");
    drop(log);
    Session::open(&path).expect("it opens")
}

/// The session to be measured with, begun anew for each round, so that all rounds are alike.
struct Rig {
    agent: Agent,
    folder: TempDir,
    session: Session,
    rounds: usize,
    prompt: Arc<Mutex<Option<Arc<Prompt>>>>,
}

impl Rig {
    fn new(layout: LayoutName, folder: TempDir) -> Self {
        let session = session(folder.path());
        let files = Arc::new(instant::Files { count: 20, ..instant::Files::default() });
        let first = Conversation::begin(&folder.path().join("first.jsonl"), instant::header("first"));
        let provider = instant::Instant::new(TURNS);
        let agent = instant::agent(layout, provider, files, first.expect("a session"));
        Rig { agent, folder, session, rounds: 0, prompt: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("round_{}.jsonl", self.rounds))
    }

    /// The time of one turn, and of encoding a request of that turn.
    async fn round(&mut self, target: &Target) -> (Duration, Duration) {
        self.rounds += 1;
        let header = instant::header(&format!("round_{}", self.rounds));
        let fork = Conversation::fork(&self.session, None, &self.path(), header).expect("a fork");
        self.agent.switch(fork, Switch::Fork { entry: None }).await;
        // The context is laid and shown once; only then are turns alike.
        let seen = self.prompt.clone();
        self.agent.events().on::<BeforeProviderRequest, _>("bench", move |event, _| {
            *seen.lock().expect("the prompt") = Some(event.prompt);
            std::future::ready(Ok(()))
        });
        instant::prompt(&self.agent, "Please look at everything.").await;
        self.agent.events().off("bench");
        let start = clock();
        instant::prompt(&self.agent, "And once more, please.").await;
        let turn = start.elapsed() / TURNS as u32;
        let prompt = self.prompt.lock().expect("the prompt").clone().expect("a prompt was sent");
        let start = clock();
        drop(black_box(hardpan_providers::encode(&prompt, &target.wire)));
        let encoding = start.elapsed();
        std::fs::remove_file(self.path()).expect("the session is there");
        (turn, encoding)
    }

    async fn rounds(&mut self, target: &Target) -> (Duration, Duration) {
        self.round(target).await; // warms what is remembered of texts and counts
        let mut times = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (turn, encoding) = self.round(target).await;
            times.0.push(turn);
            times.1.push(encoding);
        }
        (median(times.0), median(times.1))
    }
}

#[tokio::main]
async fn main() {
    let target = Target::new(Catalogue::builtin(), None, instant::MODEL).expect("the catalogue has it");
    let mut over = false;
    for layout in LayoutName::ALL {
        let (turn, encoding) = Rig::new(layout, in_memory()).rounds(&target).await;
        let (durable, _) = Rig::new(layout, on_disk()).rounds(&target).await;
        let ratio = turn.as_secs_f64() / encoding.as_secs_f64();
        over |= ratio > LIMIT;
        println!(
            "turn {layout:6} ratio {ratio:.2} (limit {LIMIT}): {:.2} ms against {:.2} ms of encoding; with a disk to wait for {:.2} ms, {:.0} % of it for the disk",
            ms(turn),
            ms(encoding),
            ms(durable),
            (1.0 - turn.as_secs_f64() / durable.as_secs_f64()) * 100.0,
        );
    }
    let strict = std::env::var("HARDPAN_BENCH").is_ok_and(|value| value == "strict");
    assert!(!(over && strict), "a ratio is over its limit");
}
