//! A turn of the agent in a session of 1,000 messages, against encoding its request alone.
//!
//! `cargo bench -p hardpan-agent --bench turn` prints one ratio per layout; the limit is 3. A turn
//! is everything but the provider: the copy of the conversation, the snapshot, assembling,
//! validating and encoding the request, taking in an answer of 40 pieces and a call, the call's
//! result, and writing all that to the session. Work is measured as processor time of all threads
//! of the process, which is the same on a busy machine, and which waiting for the disk is no part
//! of; how long that takes on top is printed beside it, from the clock. Both sides run in the same
//! process, in turns, and medians count. A ratio over the limit fails the run only with
//! `HARDPAN_BENCH=strict`. `HARDPAN_LAYOUT=strata` measures one layout alone, `HARDPAN_WARM=1`
//! after one run and not after two.

mod instant_provider;

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hardpan_agent::events::BeforeProviderRequest;
use hardpan_agent::{Agent, Conversation, SessionSwitchKind};
use hardpan_context::{LayoutName, Target};
use hardpan_models::Catalogue;
use hardpan_prompt::Prompt;
use hardpan_session::{Session, SessionLog};
use tempfile::TempDir;

/// The allocator of the `hardpan` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const MESSAGES: usize = 1000;
const TURNS: u32 = 10;
const ROUNDS: usize = 21;
/// Runs before one is measured: `tiers` takes some twenty answers to find the place of everything
/// in a conversation that it has not seen before.
const WARM: usize = 2;
const LIMIT: f64 = 3.0;

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn clock() -> Instant {
    Instant::now()
}

/// The processor time that this process has used, in all its threads.
fn worked() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
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
    let log = SessionLog::create(&path, instant_provider::header("long")).expect("a session");
    let saved = instant_provider::entries(MESSAGES).into_iter().map(|entry| log.append(entry)).last();
    saved.expect("there are entries").wait().expect("they are stored");
    drop(log);
    Session::open(&path).expect("it opens")
}

/// The agent that is measured. Each round starts from the same session, so that all rounds are
/// alike.
struct TurnBench {
    agent: Agent,
    folder: TempDir,
    session: Session,
    rounds: usize,
    prompt: Arc<Mutex<Option<Arc<Prompt>>>>,
}

impl TurnBench {
    fn new(layout: LayoutName, folder: TempDir) -> Self {
        let session = session(folder.path());
        let files = Arc::new(instant_provider::Files { count: 20, ..instant_provider::Files::default() });
        let first =
            Conversation::begin(&folder.path().join("first.jsonl"), instant_provider::header("first"));
        let provider = instant_provider::InstantProvider::new(TURNS as usize);
        let agent = instant_provider::agent(layout, provider, files, first.expect("a session"));
        TurnBench { agent, folder, session, rounds: 0, prompt: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("round_{}.jsonl", self.rounds))
    }

    /// One run, and encoding a request of it as often as the run has turns.
    async fn round(&mut self, target: &Target) -> Round {
        self.rounds += 1;
        let header = instant_provider::header(&format!("round_{}", self.rounds));
        let fork = Conversation::fork(&self.session, None, &self.path(), header).expect("a fork");
        self.agent.switch_session(fork, SessionSwitchKind::Fork { entry: None }).await;
        // The context is laid and shown, and the tiers have come to rest; only then are turns
        // alike.
        let seen = self.prompt.clone();
        self.agent.events().subscribe::<BeforeProviderRequest, _>("bench", move |event, _| {
            *seen.lock().expect("the prompt") = Some(event.prompt);
            std::future::ready(Ok(()))
        });
        let warm = std::env::var("HARDPAN_WARM").map_or(WARM, |runs| runs.parse().expect("a number of runs"));
        for _ in 0..warm {
            instant_provider::prompt(&self.agent, "Please look at everything.").await;
        }
        self.agent.events().unsubscribe("bench");
        let (start, before) = (clock(), worked());
        instant_provider::prompt(&self.agent, "And once more, please.").await;
        let (turn, took) = (worked() - before, start.elapsed());
        let prompt = self.prompt.lock().expect("the prompt").clone().expect("a prompt was sent");
        let before = worked();
        (0..TURNS).for_each(|_| drop(black_box(hardpan_providers::encode(&prompt, &target.profile))));
        let encoding = worked() - before;
        std::fs::remove_file(self.path()).expect("the session is there");
        Round { turn: turn / TURNS, took: took / TURNS, encoding: encoding / TURNS }
    }

    /// The medians of many rounds.
    async fn rounds(&mut self, target: &Target) -> Round {
        self.round(target).await; // warms what is remembered of texts and counts
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            rounds.push(self.round(target).await);
        }
        let of = |field: fn(&Round) -> Duration| median(rounds.iter().map(field).collect());
        Round {
            turn: of(|round| round.turn),
            took: of(|round| round.took),
            encoding: of(|round| round.encoding),
        }
    }
}

/// The times of a round, all per turn.
struct Round {
    /// Processor time of a turn.
    turn: Duration,
    /// Wall-clock time of a turn.
    took: Duration,
    /// Processor time of encoding alone.
    encoding: Duration,
}

#[tokio::main]
async fn main() {
    let target =
        Target::new(Catalogue::builtin(), None, instant_provider::MODEL).expect("the catalogue has it");
    let only = std::env::var("HARDPAN_LAYOUT").ok();
    let mut over = false;
    for layout in LayoutName::ALL
        .into_iter()
        .filter(|layout| only.as_deref().is_none_or(|only| only == layout.as_str()))
    {
        let memory = TurnBench::new(layout, in_memory()).rounds(&target).await;
        let disk = TurnBench::new(layout, on_disk()).rounds(&target).await;
        let ratio = memory.turn.as_secs_f64() / memory.encoding.as_secs_f64();
        over |= ratio > LIMIT;
        println!(
            "turn {layout:6} ratio {ratio:.2} (limit {LIMIT}): {:.2} ms against {:.2} ms of encoding; by the clock {:.2} ms with the session in memory, {:.2} ms on a disk",
            ms(memory.turn),
            ms(memory.encoding),
            ms(memory.took),
            ms(disk.took),
        );
    }
    let strict = std::env::var("HARDPAN_BENCH").is_ok_and(|value| value == "strict");
    assert!(!(over && strict), "a ratio is over its limit");
}
