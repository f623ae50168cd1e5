//! `kill -9` at random moments of a busy session: what was acknowledged is there, and the conversation goes on.
//!
//! The real binary talks to a strict simulator and is killed while it starts, streams, runs tools or writes. 50 kills in a
//! normal run; `HARDPAN_KILLS=1000` is the long mode. With commands that run, 12, and `HARDPAN_COMMAND_KILLS=200`. The moments follow from `HARDPAN_SEED`, which every failure names; what
//! the machine does meanwhile does not, so that a seed repeats the choices, not the instant.

mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use hardpan_agent::session_ledger::ledger_from_entries;
use hardpan_economy::ledger::RequestPurpose;
use hardpan_prompt::{AgentMessage, MessageBody, MessagePart};
use hardpan_session::{Record, Session, SessionProblemKind, SessionStore};
use hardpan_test_support::SimulatorServer;
use serde_json::Value;
use support::Sandbox;

/// Text that was shown this long before the kill must have been stored. The agent stores it every 0.4 s; the rest is for disks and
/// machines that are busy. What was really lost is printed.
const MAX_UNSTORED_AGE: Duration = Duration::from_secs(2);

/// So many kills befall one session before another is begun.
const KILLS_PER_SESSION: usize = 8;

/// So many rounds at once: most of a round is waiting for a stream.
const WORKERS: usize = 4;

/// A busy session: two tools in one answer, a third in the next, then a text that takes seconds to come.
fn script() -> String {
    let long: String = (0..120).map(|n| format!("Line {n} of a long answer. ")).collect();
    format!(
        "
turns:
  - when: {{has_tool_result: ls}}
    repeat: always
    pace: 12ms
    text: \"{long}\"
  - when: {{has_tool_result: grep}}
    repeat: always
    pace: 4ms
    text: Both are there. Now the folder, to be sure of what else there is.
    tool_calls: [{{name: ls, arguments: {{path: .}}}}]
  - when: {{contains: Look around}}
    repeat: always
    pace: 4ms
    text: Let me look at two things at once, first the notes and then what is said of rings.
    tool_calls:
      - {{name: read, arguments: {{path: notes.md}}}}
      - {{name: grep, arguments: {{pattern: ring}}}}
default: {{text: 'Fine, I go on.'}}
"
    )
}

/// A folder with something to look at, and the simulator as its provider.
fn sandbox(url: &str, config: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let config = format!("{config}[providers.anthropic]\nbase_url = \"{url}/v1\"\n");
    sandbox.write("config/config.toml", config);
    sandbox.write("work/notes.md", "A ring has no end.\n".repeat(40));
    sandbox.write("work/src/ring.rs", "pub struct Ring;\n\nimpl Ring {\n    pub fn push(&mut self) {}\n}\n");
    sandbox
}

fn hardpan(sandbox: &Sandbox, args: &[&str]) -> Command {
    let mut command = sandbox.command(args);
    let folder = |name: &str| sandbox.work().parent().expect("the sandbox").join(name);
    command.env("ANTHROPIC_API_KEY", "any").stdin(Stdio::null());
    command.env("HARDPAN_DATA_DIR", folder("data")).env("HARDPAN_STATE_DIR", folder("state"));
    command.env("HARDPAN_CACHE_DIR", folder("cache"));
    command
}

/// What the killed sessions are about.
struct KillPlan {
    script: String,
    /// Settings of the user.
    config: &'static str,
    flags: &'static [&'static str],
}

impl KillPlan {
    fn new(script: String, flags: &'static [&'static str]) -> Self {
        KillPlan { script, config: "", flags }
    }
}

/// Numbers that look random and follow from a seed (SplitMix64).
struct SplitMix64(u64);

impl SplitMix64 {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// When a process is killed.
#[derive(Clone, Copy, Debug)]
enum KillMoment {
    /// So long after its start: mostly while it reads its files and opens the session.
    AfterStart(Duration),
    /// So long after the event of this number: around a write, a tool, the start of a stream.
    AfterEvent(usize, Duration),
    /// So long after the long answer has begun.
    InTheStream(Duration),
}

impl KillMoment {
    fn choose(random: &mut SplitMix64) -> Self {
        let pause = Duration::from_micros(random.below(12_000));
        match random.below(10) {
            0 | 1 => KillMoment::AfterStart(Duration::from_millis(random.below(150))),
            2..=7 => KillMoment::AfterEvent(random.below(75) as usize, pause),
            _ => KillMoment::InTheStream(Duration::from_millis(random.below(2500))),
        }
    }
}

/// An event that a process printed, and when it was read.
struct TimedEvent {
    at: Instant,
    event: Value,
}

fn is_event(event: &Value, kind: &str) -> bool {
    event["type"] == kind
}

/// What a process prints, line by line; half a line at its end is none.
fn read_events(child: &mut Child) -> Receiver<TimedEvent> {
    let (sender, receiver) = mpsc::channel();
    let stdout = child.stdout.take().expect("it is piped");
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines() {
            let Ok(line) = line else { break };
            let Ok(event) = serde_json::from_str(&line) else { break };
            if sender.send(TimedEvent { at: now(), event }).is_err() {
                break;
            }
        }
    });
    receiver
}

#[allow(clippy::disallowed_methods, reason = "a process is killed by the clock")]
fn now() -> Instant {
    Instant::now()
}

/// Runs a process until its moment, kills it, and returns what it had said by then.
fn run_and_kill(mut command: Command, moment: KillMoment) -> (Vec<TimedEvent>, Instant) {
    let start = now();
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary can be run");
    let events = read_events(&mut child);
    let mut seen: Vec<TimedEvent> = Vec::new();
    let mut deadline = match moment {
        KillMoment::AfterStart(pause) => Some(start + pause),
        KillMoment::AfterEvent(..) | KillMoment::InTheStream(_) => None,
    };
    // Without a deadline the process ends by itself at the latest, and its output with it.
    loop {
        let patience = deadline.map_or(Duration::from_secs(120), |at| at.saturating_duration_since(now()));
        match events.recv_timeout(patience) {
            Ok(event) => {
                let at = event.at;
                seen.push(event);
                deadline = deadline.or_else(|| match moment {
                    KillMoment::AfterEvent(count, pause) if seen.len() > count => Some(at + pause),
                    KillMoment::InTheStream(pause) if long_answer_began(&seen) => Some(at + pause),
                    _ => None,
                });
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
    let killed = now();
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().expect("it has ended");
    seen.extend(events.try_iter());
    // The reader ends with the pipe; what it still had in hand counts, too.
    seen.extend(events.iter());
    (seen, killed)
}

fn long_answer_began(seen: &[TimedEvent]) -> bool {
    let text =
        |seen: &TimedEvent| seen.event["delta"]["text"].as_str().is_some_and(|text| text.contains("Line"));
    seen.last().is_some_and(text)
}

/// A session over many kills: what was acknowledged of it.
struct KilledSession {
    sandbox: Sandbox,
    /// Further flags of the process that is killed.
    flags: &'static [&'static str],
    acknowledged: Vec<(String, Value)>,
    /// How many requests the sub-agents have made whose end was told.
    task_requests: u64,
    /// How much streamed text was lost, at the worst: how long it had been shown.
    worst: Duration,
    counts: BTreeMap<&'static str, usize>,
}

impl KilledSession {
    fn new(url: &str, plan: &KillPlan) -> Self {
        KilledSession {
            sandbox: sandbox(url, plan.config),
            flags: plan.flags,
            acknowledged: Vec::new(),
            task_requests: 0,
            worst: Duration::ZERO,
            counts: BTreeMap::new(),
        }
    }

    fn store(&self) -> SessionStore {
        SessionStore::new(self.sandbox.work().parent().expect("the sandbox").join("data/sessions"))
    }

    /// The session's file; none if nothing has been said yet.
    fn file(&self) -> Option<PathBuf> {
        self.store().list(None).into_iter().next().map(|summary| summary.path)
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// One kill, and everything that must hold after it.
    fn kill_once(&mut self, moment: KillMoment) {
        let prompt = [&["-p", "Look around, please.", "--output", "json"], self.flags].concat();
        let begun = self.file().is_some();
        let args: Vec<&str> =
            if begun { ["--continue"].iter().chain(&prompt).copied().collect() } else { prompt };
        let (seen, killed) = run_and_kill(hardpan(&self.sandbox, &args), moment);
        self.acknowledge(&seen);
        self.assert_no_processes();
        let Some(path) = self.file() else {
            assert!(self.acknowledged.is_empty(), "the session is gone: {:?}", self.acknowledged);
            self.count("killed before the first word");
            return;
        };
        self.check_file(&path, &seen, killed);
        // Model and layout are those of the session.
        let yes = self.flags.iter().copied().filter(|flag| *flag == "--yes");
        let go_on: Vec<&str> =
            ["--continue", "-p", "Go on.", "--output", "json"].into_iter().chain(yes).collect();
        let output = hardpan(&self.sandbox, &go_on).output();
        let output = output.expect("the binary can be run");
        let words = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "the session must go on: {words}");
        let lines = String::from_utf8(output.stdout).expect("events are UTF-8");
        let event =
            |line: &str| TimedEvent { at: killed, event: serde_json::from_str(line).expect("an event") };
        self.acknowledge(&lines.lines().map(event).collect::<Vec<_>>());
        let session = Session::open(&path).expect("the session opens");
        assert!(session.problems.is_empty(), "it is whole again: {:?}", session.problems);
        self.assert_messages_stored(&session);
        self.assert_tasks_billed(&session);
    }

    /// Whatever ran in the workspace is gone with the agent, or right after it.
    fn assert_no_processes(&self) {
        let work = self.sandbox.work().canonicalize().expect("the workspace");
        let works_here = |process: &std::fs::DirEntry| {
            std::fs::read_link(process.path().join("cwd")).is_ok_and(|folder| folder.starts_with(&work))
        };
        let processes = || std::fs::read_dir("/proc").expect("the processes").flatten();
        let are_gone = (0..2000).any(|_| {
            let is_gone = !processes().any(|process| works_here(&process));
            if !is_gone {
                thread::sleep(Duration::from_millis(5));
            }
            is_gone
        });
        let name = |process: std::fs::DirEntry| {
            std::fs::read_to_string(process.path().join("cmdline")).unwrap_or_default()
        };
        assert!(are_gone, "{:?}", processes().filter(works_here).map(name).collect::<Vec<_>>());
    }

    fn acknowledge(&mut self, seen: &[TimedEvent]) {
        let ended = seen.iter().filter(|seen| is_event(&seen.event, "task_end"));
        self.task_requests += ended.filter_map(|end| end.event["used"]["requests"].as_u64()).sum::<u64>();
        for TimedEvent { event, .. } in seen.iter().filter(|seen| is_event(&seen.event, "message_end")) {
            let message = &event["message"];
            self.acknowledged.push((message["id"].as_str().expect("an id").to_owned(), message.clone()));
        }
    }

    /// What the file says right after the kill, before anything is repaired.
    fn check_file(&mut self, path: &Path, seen: &[TimedEvent], killed: Instant) {
        let session = Session::open(path).expect("the session opens");
        for problem in &session.problems {
            let torn = matches!(problem.kind, SessionProblemKind::CutOff { .. });
            let cut = matches!(problem.kind, SessionProblemKind::Recovered { .. });
            assert!(torn || cut, "only what a crash does is wrong: {problem:?}");
            self.count(if torn { "torn tail" } else { "answer recovered" });
        }
        self.assert_messages_stored(&session);
        let branch = session.branch(None).expect("a branch");
        let chosen = self.flags.windows(2).find(|flags| flags[0] == "--layout").map(|flags| flags[1]);
        if let Some(layout) = chosen.filter(|_| !branch.messages.is_empty()) {
            assert_eq!(branch.layout.as_deref(), Some(layout), "the layout of the flag");
        }
        let last = seen.iter().rev().find(|seen| is_event(&seen.event, "message_start"));
        self.count(match last.map(|last| &last.event["message"]) {
            None => "killed before the first event",
            Some(message) if self.acknowledged.iter().any(|(id, _)| message["id"] == **id) => {
                "killed between messages"
            }
            Some(message) if message["role"] == "assistant" => "killed in an answer",
            Some(_) => "killed while a message was stored",
        });
        self.assert_text_stored(&session, seen, killed);
    }

    /// What sub-agents that ended have used is on the bill of the conversation, and its parts add up.
    fn assert_tasks_billed(&self, session: &Session) {
        let ledger = ledger_from_entries(&session.entries);
        let tasks = ledger.by_purpose.get(&RequestPurpose::Task).copied().unwrap_or_default();
        assert!(tasks.requests >= self.task_requests, "{tasks:?} for {}", self.task_requests);
        let by_purpose: f64 = ledger.by_purpose.values().map(|totals| totals.dollars).sum();
        assert!((by_purpose - ledger.total.dollars).abs() < 1e-9, "{ledger:?}");
    }

    /// Every message that was acknowledged is in the branch, as it was and in that order.
    fn assert_messages_stored(&self, session: &Session) {
        let branch = session.branch(None).expect("a branch");
        let mut stored =
            branch.messages.iter().map(|message| serde_json::to_value(message).expect("a message"));
        for (id, message) in &self.acknowledged {
            let found = stored.find(|stored| stored["id"] == **id);
            assert_eq!(found.as_ref(), Some(message), "message {id} was acknowledged");
        }
    }

    /// Of an answer that did not end, what was shown a while ago is there.
    fn assert_text_stored(&mut self, session: &Session, seen: &[TimedEvent], killed: Instant) {
        let updates = || seen.iter().filter(|seen| is_event(&seen.event, "message_update"));
        let Some(id) = updates().next_back().map(|seen| seen.event["id"].clone()) else { return };
        if self.acknowledged.iter().any(|(known, _)| id == **known) {
            return;
        }
        let branch = session.branch(None).expect("a branch");
        let stored = branch.messages.iter().find(|message| id == *message.id.0).map(text).unwrap_or_default();
        let mut shown = String::new();
        for TimedEvent { at, event } in updates().filter(|seen| seen.event["id"] == id) {
            let before = shown.len();
            shown += event["delta"]["text"].as_str().unwrap_or_default();
            if shown.len() > before && stored.len() < shown.len() {
                let lost_for = killed.saturating_duration_since(*at);
                self.worst = self.worst.max(lost_for);
                assert!(
                    lost_for <= MAX_UNSTORED_AGE,
                    "text shown {lost_for:?} before the kill is lost: {shown:?} after {stored:?}"
                );
                break;
            }
        }
        assert!(
            stored.starts_with(&*shown) || shown.starts_with(&*stored),
            "{stored:?} is not what was shown: {shown:?}"
        );
    }
}

fn text(message: &AgentMessage) -> String {
    let MessageBody::Assistant { content, .. } = &*message.body else { return String::new() };
    let text = |part: &MessagePart| match part {
        MessagePart::Text { text } => Some(text.to_string()),
        _ => None,
    };
    content.iter().filter_map(text).collect()
}

fn from_environment(name: &str, otherwise: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(otherwise, |value| value.parse().expect("a number in the environment"))
}

#[test]
fn nothing_acknowledged_is_lost_by_a_kill_at_any_moment() {
    let kills = from_environment("HARDPAN_KILLS", 50) as usize;
    let (counts, worst, messages) = kill_sessions(kills, &KillPlan::new(script(), &[]), KillMoment::choose);
    println!(
        "{kills} kills, {messages} messages acknowledged; {counts:?}; text lost was at most {worst:?} old"
    );
    assert!(messages >= kills, "the sessions were busy");
}

/// Processes in the background, in the session of what starts them and in others, that would run for
/// hours.
const BACKGROUND: &str =
    "setsid sleep 4000 & (setsid nohup sleep 4000 > /dev/null 2>&1 &); sleep 4000 & echo begun;";

/// A model that calls `tool`, whose calls are given, until it has its result.
fn background_script(tool: &str, calls: &str) -> String {
    format!(
        "
turns:
  - when: {{has_tool_result: {tool}}}
    repeat: always
    pace: 4ms
    text: That was it.
  - when: {{contains: Look around}}
    repeat: always
    pace: 4ms
    text: Let me start something that takes its time.
    tool_calls: [{calls}]
default: {{text: 'Fine, I go on.'}}
"
    )
}

/// A command with processes in the background, then a quick end.
fn command_script() -> String {
    background_script("bash", &format!("{{name: bash, arguments: {{command: '{BACKGROUND} sleep 0.3'}}}}"))
}

/// A console that goes on, with the same processes, and a command beside it.
fn console_script() -> String {
    let start = format!("{{name: console, arguments: {{action: start, text: '{BACKGROUND} sleep 4000'}}}}");
    background_script("console", &format!("{start}, {{name: bash, arguments: {{command: 'sleep 0.3'}}}}"))
}

#[test]
fn commands_end_with_the_agent_that_is_killed_at_any_moment() {
    let kills = from_environment("HARDPAN_COMMAND_KILLS", 12) as usize;
    let moment = |random: &mut SplitMix64| {
        let pause = Duration::from_millis(random.below(400));
        match random.below(6) {
            0 => KillMoment::AfterStart(Duration::from_millis(random.below(150))),
            // The command starts at about the twentieth event.
            _ => KillMoment::AfterEvent(10 + random.below(20) as usize, pause),
        }
    };
    let (counts, _, messages) = kill_sessions(kills, &KillPlan::new(command_script(), &["--yes"]), moment);
    println!("{kills} kills, {messages} messages acknowledged; {counts:?}");
    assert!(messages >= kills, "the sessions were busy");
}

#[test]
fn consoles_end_with_the_agent_that_is_killed_at_any_moment() {
    let kills = from_environment("HARDPAN_COMMAND_KILLS", 12) as usize;
    let moment = |random: &mut SplitMix64| {
        let pause = Duration::from_millis(random.below(400));
        KillMoment::AfterEvent(10 + random.below(20) as usize, pause)
    };
    let flags = &["--yes", "--layout", "panels"];
    let (counts, _, messages) = kill_sessions(kills, &KillPlan::new(console_script(), flags), moment);
    println!("{kills} kills, {messages} messages acknowledged; {counts:?}");
    assert!(messages >= kills, "the sessions were busy");
}

/// Two sub-agents that read and write.
fn task_script() -> String {
    "
turns:
  - when: {contains: Look around}
    repeat: always
    pace: 4ms
    text: Two others look for me.
    tool_calls:
      - {name: task, arguments: {task: Find the ring.}}
      - {name: task, arguments: {task: Write it down.}}
  - {when: {contains: Find the ring}, repeat: always, pace: 4ms, text: I read., tool_calls: [{name: read, arguments: {path: notes.md}}]}
  - {when: {contains: Write it down}, repeat: always, pace: 4ms, text: I note it., tool_calls: [{name: bash, arguments: {command: 'sleep 4000 & sleep 0.2; echo written'}}]}
  - {when: {contains: has no end}, repeat: always, pace: 4ms, text: The ring is in the notes.}
  - {when: {contains: written}, repeat: always, pace: 4ms, text: It is noted.}
  - {when: {has_tool_result: task}, repeat: always, pace: 4ms, text: Both have looked.}
default: {text: 'Fine, I go on.'}
"
    .to_owned()
}

#[test]
fn nothing_is_lost_with_sub_agents_by_a_kill_at_any_moment() {
    let kills = from_environment("HARDPAN_COMMAND_KILLS", 12) as usize;
    let moment = |random: &mut SplitMix64| {
        let pause = Duration::from_millis(random.below(300));
        KillMoment::AfterEvent(10 + random.below(60) as usize, pause)
    };
    let plan = KillPlan {
        config: "subagents = \"on\"\n",
        ..KillPlan::new(task_script(), &["--yes", "--layout", "panels"])
    };
    let (counts, _, messages) = kill_sessions(kills, &plan, moment);
    println!("{kills} kills, {messages} messages acknowledged; {counts:?}");
    assert!(messages >= kills, "the sessions were busy");
}

/// Kills processes of sessions at chosen moments. Returns what they were about, how old lost text was
/// at the worst, and how many messages were acknowledged.
fn kill_sessions(
    kills: usize,
    plan: &KillPlan,
    choose: impl Fn(&mut SplitMix64) -> KillMoment + Sync,
) -> (BTreeMap<&'static str, usize>, Duration, usize) {
    let seed = from_environment("HARDPAN_SEED", 20_260_219);
    let simulator = SimulatorServer::start(&plan.script);
    let url = simulator.url();
    let sessions = Mutex::new((0..kills.div_ceil(KILLS_PER_SESSION)).collect::<Vec<_>>());
    let work = || {
        let next = || sessions.lock().expect("the list").pop();
        let mut done: Vec<KilledSession> = Vec::new();
        while let Some(number) = next() {
            let rounds = KILLS_PER_SESSION.min(kills - number * KILLS_PER_SESSION);
            let mut random = SplitMix64(seed ^ ((number as u64) << 32));
            let mut session = KilledSession::new(url, plan);
            for round in 0..rounds {
                let moment = choose(&mut random);
                let _context = FailureContext { seed, session: number, round, moment };
                session.kill_once(moment);
            }
            done.push(session);
        }
        done
    };
    let sessions_done: Vec<KilledSession> = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("a round failed; see above")).collect()
    });
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (what, count) in sessions_done.iter().flat_map(|session| &session.counts) {
        *counts.entry(what).or_default() += count;
    }
    let worst = sessions_done.iter().map(|session| session.worst).max().unwrap_or_default();
    let messages: usize = sessions_done.iter().map(|session| session.acknowledged.len()).sum();
    (counts, worst, messages)
}

/// Says where a round failed.
struct FailureContext {
    seed: u64,
    session: usize,
    round: usize,
    moment: KillMoment,
}

impl Drop for FailureContext {
    fn drop(&mut self) {
        if thread::panicking() {
            let FailureContext { seed, session, round, moment } = self;
            eprintln!("HARDPAN_SEED={seed}: session {session}, round {round}, killed {moment:?}");
        }
    }
}

#[test]
fn two_processes_cannot_write_one_session() {
    let simulator = SimulatorServer::start(&script());
    let sandbox = sandbox(simulator.url(), "");
    let mut first = hardpan(&sandbox, &["-p", "Look around, please.", "--output", "json"]);
    let mut first =
        first.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the binary can be run");
    let events = read_events(&mut first);
    let stored = events.iter().find(|seen| is_event(&seen.event, "message_end"));
    assert!(stored.is_some(), "the first process has begun");
    let second = hardpan(&sandbox, &["--continue", "-p", "Me too!"]).output().expect("the binary can be run");
    let words = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{words}");
    assert!(words.contains("another process writes to this session") && words.contains("fork"), "{words}");
    assert!(second.stdout.is_empty());
    let rest: Vec<TimedEvent> = events.iter().collect();
    assert!(first.wait().expect("it ends").success(), "the first is not disturbed");
    assert!(rest.iter().any(|seen| is_event(&seen.event, "agent_end")));
    let store = SessionStore::new(sandbox.work().parent().expect("the sandbox").join("data/sessions"));
    let [summary] = &store.list(None)[..] else { panic!("one session") };
    let session = Session::open(&summary.path).expect("the session opens");
    let said = |entry: &hardpan_session::Entry| match &entry.record {
        Record::Message(message) => serde_json::to_string(message).expect("a message"),
        _ => String::new(),
    };
    assert!(!session.entries.iter().map(said).any(|text| text.contains("Me too!")));
}
