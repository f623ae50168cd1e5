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

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hardpan_agent::events::BeforeProviderRequest;
use hardpan_agent::{Conversation, SessionSwitchKind};
use hardpan_context::{LayoutName, Target};
use hardpan_models::Catalogue;
use hardpan_prompt::{AgentMessage, Json, MessageBody, MessagePart, Prompt, ToolCall, Volatility};
use hardpan_session::{Entry, Session, SessionLog};
use hardpan_test_support::{InstantProvider, TestAgent, TestClock, Toolset, code, header};
use serde_json::json;
use tempfile::TempDir;

/// The allocator of the `hardpan` binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The model that is asked.
const MODEL: &str = "claude-sonnet-5-5";

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
    let log = SessionLog::create(&path, header("long")).expect("a session");
    let saved = entries(MESSAGES).into_iter().map(|entry| log.append(entry)).last();
    saved.expect("there are entries").wait().expect("they are stored");
    drop(log);
    Session::open(&path).expect("it opens")
}

/// The entries of a conversation: questions, calls, results, answers.
fn entries(messages: usize) -> Vec<Entry> {
    let mut parent: Option<String> = None;
    let body = |n: usize| {
        let call = || format!("call_{}", n / 4).into();
        match n % 4 {
            0 => MessageBody::User {
                content: vec![MessagePart::text(format!(
                    "Please look at part {n} and tell me what it does."
                ))],
            },
            2 => MessageBody::ToolResult {
                call_id: call(),
                tool_name: Some("look".into()),
                content: vec![MessagePart::text(code(n, 15))],
                is_error: false,
                not_run: None,
            },
            kind => {
                let mut content =
                    vec![MessagePart::text(format!("It computes {n} values in a row.\n{}", code(n, 2)))];
                if kind == 1 {
                    let arguments = Json::new(&json!({"at": format!("src/part_{n}.rs")}));
                    content.push(MessagePart::ToolCall(ToolCall {
                        id: call(),
                        name: "look".into(),
                        arguments,
                        result: None,
                    }));
                }
                let stop_reason = Some(if kind == 1 { "tool_use".into() } else { "end".into() });
                MessageBody::Assistant {
                    content,
                    provider: Some("anthropic".into()),
                    model: Some(MODEL.into()),
                    stop_reason,
                }
            }
        }
    };
    let entry = |n: usize| {
        let message = AgentMessage::new(format!("m{n}").as_str(), body(n));
        let entry = Entry::message(parent.as_deref(), message);
        parent = Some(format!("m{n}"));
        entry
    };
    (0..messages).map(entry).collect()
}

/// The agent that is measured. Each round starts from the same session, so that all rounds are
/// alike.
struct TurnBench {
    test_agent: TestAgent,
    folder: TempDir,
    session: Session,
    rounds: usize,
    prompt: Arc<Mutex<Option<Arc<Prompt>>>>,
}

impl TurnBench {
    async fn new(layout: LayoutName, folder: TempDir) -> Self {
        let session = session(folder.path());
        let provider = InstantProvider::new(TURNS as usize);
        let builder =
            TestAgent::in_process().transport(provider).without_recording().tools(Toolset::ReadAndLook);
        let builder = builder.layout(layout).clock(TestClock::Running).volatility(Volatility::Slow);
        let file = |n: usize| format!("file:src/part_{n}.rs");
        let builder = (0..20).fold(builder, |builder, n| builder.item(&file(n), &code(n, 20)));
        let test_agent = builder.start().await;
        TurnBench { test_agent, folder, session, rounds: 0, prompt: Arc::default() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join(format!("round_{}.jsonl", self.rounds))
    }

    /// One run, and encoding a request of it as often as the run has turns.
    async fn round(&mut self, target: &Target) -> Round {
        self.rounds += 1;
        let header = header(&format!("round_{}", self.rounds));
        let fork = Conversation::fork(&self.session, None, &self.path(), header).expect("a fork");
        self.test_agent.agent.switch_session(fork, SessionSwitchKind::Fork { entry: None }).await;
        // The context is laid and shown, and the tiers have come to rest; only then are turns
        // alike.
        let seen = self.prompt.clone();
        self.test_agent.agent.events().subscribe::<BeforeProviderRequest, _>("bench", move |event, _| {
            *seen.lock().expect("the prompt") = Some(event.prompt);
            std::future::ready(Ok(()))
        });
        let warm = std::env::var("HARDPAN_WARM").map_or(WARM, |runs| runs.parse().expect("a number of runs"));
        for _ in 0..warm {
            self.test_agent.say("Please look at everything.").await;
        }
        self.test_agent.agent.events().unsubscribe("bench");
        let (start, before) = (clock(), worked());
        self.test_agent.say("And once more, please.").await;
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
    let target = Target::new(Catalogue::builtin(), None, MODEL).expect("the catalogue has it");
    let only = std::env::var("HARDPAN_LAYOUT").ok();
    let mut over = false;
    for layout in LayoutName::ALL
        .into_iter()
        .filter(|layout| only.as_deref().is_none_or(|only| only == layout.as_str()))
    {
        let memory = TurnBench::new(layout, in_memory()).await.rounds(&target).await;
        let disk = TurnBench::new(layout, on_disk()).await.rounds(&target).await;
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
