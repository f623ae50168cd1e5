//! Many turns with all kinds of calls while the provider fails in all kinds of ways.
//! `HARDPAN_TURNS` says how many.

use std::path::Path;
use std::time::Duration;

use hardpan_agent::events::{SessionCompact, ToolExecutionStart};
use hardpan_agent::{RunEnd, ShellVisibility};
use hardpan_session::Session;
use hardpan_test_support::{SUMMARY_REQUEST_TEXT, TestAgent, assert_calls_paired, long_text};

/// Turns of a normal run of the tests.
const TURNS: usize = 200;

/// What goes wrong: refusals, cuts, silence, garbage. Each befalls its own share of the requests.
const FAULTS: &str = "status=529,probability=0.05,seed=1; status=500,probability=0.03,seed=2; cut=300,probability=0.04,seed=3; \
    stall=200,for=700ms,probability=0.01,seed=4; garbage=250,probability=0.03,seed=5; error=300,probability=0.03,seed=6; \
    no-end,probability=0.03,seed=7; duplicate,probability=0.05,seed=8";

/// One turn of each kind, for ever: prompts begin with its word.
const SCRIPT: &str = "
  - {when: {contains: 'kind 0'}, repeat: always, text: Reading., tool_calls: [{name: read, arguments: {path: a.txt}}, {name: grep, arguments: {pattern: line}}]}
  - {when: {contains: 'kind 1'}, repeat: always, tool_calls: [{name: write, arguments: {path: made/new.txt, content: new}}, {name: ls, arguments: {path: .}}]}
  - {when: {contains: 'kind 2'}, repeat: always, tool_calls: [{name: edit, arguments: {path: a.txt, old_text: first, new_text: First}}, {name: edit, arguments: {path: a.txt, old_text: First, new_text: first}}]}
  - {when: {contains: 'kind 3'}, repeat: always, tool_calls: [{name: bash, arguments: {command: 'sleep 100 > /dev/null 2>&1 & seq 1 5000; exit 3'}}]}
  - {when: {contains: 'kind 4'}, repeat: always, tool_calls: [{name: fetch, arguments: {url: 'http://127.0.0.1:1/nobody'}}, {name: find, arguments: {pattern: '*.txt'}}]}
  - {when: {contains: 'kind 5'}, repeat: always, tool_calls: [{name: bash, arguments: {command: sleep 100, timeout: 100}}]}
  - {when: {contains: 'kind 6'}, repeat: always, tool_calls: [{name: unknown, arguments: {}}, {name: read, arguments: {path: ../../etc/passwd}}]}
default: {text: Done.}
";

fn turns() -> usize {
    std::env::var("HARDPAN_TURNS").ok().and_then(|turns| turns.parse().ok()).unwrap_or(TURNS)
}

#[tokio::test(flavor = "multi_thread")]
async fn hundreds_of_turns_with_faults_leave_nothing_behind() {
    let script = format!(
        "turns:\n  - {{when: {{contains: {SUMMARY_REQUEST_TEXT}}}, repeat: always, text: What was done.}}{SCRIPT}"
    );
    let test_agent = TestAgent::with_real_tools()
        .script(script)
        .faults(FAULTS)
        .silence(Duration::from_millis(500))
        .settings(|settings| settings.compact_at = 0.7)
        .open("a.txt")
        .start()
        .await;
    test_agent.write("a.txt", &format!("first line\n{}", long_text("line", 300)));
    let mut early = None;
    let (mut done, mut stopped) = (0, 0);
    for turn in 0..turns() {
        let kind = turn % 7;
        let text = format!("kind {kind}, turn {turn}: {}", long_text("rope", 60));
        if kind == 5 {
            // A command that would run for ever: the person stops it, or a fault has kept it from
            // being run.
            let before = test_agent.events_of::<ToolExecutionStart>().len();
            let running = test_agent.begin(&text);
            test_agent
                .until(|| {
                    running.is_finished() || test_agent.events_of::<ToolExecutionStart>().len() > before
                })
                .await;
            test_agent.agent.abort();
            running.await.unwrap();
            stopped += 1;
        } else if test_agent.run(&text).await == RunEnd::Done {
            done += 1;
        }
        if turn % 20 == 10 {
            test_agent
                .agent
                .run_shell_command("sleep 100 & echo mine".into(), ShellVisibility::Model)
                .await
                .unwrap();
        }
        if turn == turns() / 4 {
            early = Some(Held::now());
        }
    }
    assert!(done > turns() / 3 && stopped > 0, "{done} of {} ended well", turns());
    let sent = test_agent.sent_requests();
    let wrong: Vec<_> = sent.iter().filter(|sent| (400..500).contains(&sent.status)).collect();
    assert!(wrong.is_empty(), "{} requests were not valid: {}", wrong.len(), wrong[0].body);
    assert!(sent.iter().filter(|sent| sent.status != 200).count() > turns() / 20, "faults befell it");
    assert!(!test_agent.events_of::<SessionCompact>().is_empty(), "the window was full at times");
    is_sound(&test_agent).await;
    leaves_nothing(&test_agent, early.expect("a look after a quarter")).await;
    while test_agent.run("And now?").await != RunEnd::Done {}
}

/// What is stored can be read and says what the agent says, whatever happened on the way.
async fn is_sound(test_agent: &TestAgent) {
    let session: Session = test_agent.stored().await;
    let messages = test_agent.agent.messages();
    assert_eq!(session.branch(None).expect("a branch").messages, messages);
    assert_calls_paired(&messages);
    assert_eq!(test_agent.copy().agent.messages(), messages);
}

async fn leaves_nothing(test_agent: &TestAgent, early: Held) {
    // Reapers are threads: the last ones may still be at it.
    test_agent.until(|| children().is_empty()).await;
    let late = Held::now();
    assert!(late.files <= early.files + 20, "open files: {early:?}, then {late:?}");
    assert!(late.threads <= early.threads + 20, "threads: {early:?}, then {late:?}");
    // The requests and events that the test itself keeps are the greater part of what grows.
    let kept: usize = test_agent.sent_requests().iter().map(|sent| sent.body.len()).sum();
    let grown = late.resident.saturating_sub(early.resident);
    assert!(grown < 200 * 1024 * 1024 + 4 * kept, "memory: {early:?}, then {late:?}, {kept} kept");
}

/// What this process holds.
#[derive(Debug)]
struct Held {
    files: usize,
    threads: usize,
    /// Bytes of memory.
    resident: usize,
}

impl Held {
    fn now() -> Self {
        let status = std::fs::read_to_string("/proc/self/status").expect("the kernel tells");
        let number = |name: &str| -> usize {
            let line =
                status.lines().find_map(|line| line.strip_prefix(name)).expect("a line of the kernel's");
            line.trim_start_matches(':')
                .split_whitespace()
                .next()
                .and_then(|word| word.parse().ok())
                .expect("a number")
        };
        let files = std::fs::read_dir("/proc/self/fd").expect("open files").count();
        Held { files, threads: number("Threads"), resident: number("VmRSS") * 1024 }
    }
}

/// The processes named sleep in whose parents' line this process is, or that lost theirs but work
/// in a test's folder.
fn children() -> Vec<String> {
    let this = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").expect("the kernel tells").flatten();
    let stat = processes.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
    let is_ours = |stat: &String| {
        let (pid_and_name, rest) = stat.rsplit_once(") ").unwrap_or_default();
        let mut rest = rest.split_whitespace();
        let (state, parent) = (rest.next().unwrap_or_default(), rest.next().unwrap_or_default());
        let pid = pid_and_name.split(' ').next().unwrap_or_default();
        let folder = std::fs::read_link(Path::new("/proc").join(pid).join("cwd")).unwrap_or_default();
        state != "Z"
            && (parent == this
                || pid_and_name.ends_with("(sleep") && folder.ends_with("work") && is_soaking(&folder))
    };
    stat.filter(is_ours).collect()
}

/// Whether a folder is that of the soak: other tests run at the same time.
fn is_soaking(folder: &Path) -> bool {
    folder.join("made/new.txt").exists()
}
