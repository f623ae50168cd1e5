//! What it costs to keep the context of a conversation true: all panels open, in a tree of 100,000
//! files. `cargo bench -p hardpan-app --bench refresh` prints each figure with its limit and, where git
//! or the disk decides, with what the same work takes by itself in the same run.
//!
//! `HARDPAN_BENCH_FILES` sets another number of files.

#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "a benchmark looks at the clock")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use hardpan_agent::{ContextSource, Input, InputOutcome, InputSource, ObserveReason, ObserveRequest, RunEnd};
use hardpan_app::approval::ApprovalMode;
use hardpan_app::options::{OpenOptions, ProviderAccess, SessionChoice};
use hardpan_app::settings::UserFolders;
use hardpan_app::{ConversationApp, FaceHooks};
use hardpan_context::Snapshot;
use hardpan_prompt::Item;
use hardpan_simulator::{Server, ServerConfig, serve};
use hardpan_test_support::scripted_engine;

const FILES_PER_FOLDER: usize = 100;
const ROUNDS: usize = 20;
const CHECKOUT_FILES: usize = 10_000;
const IDLE: Duration = Duration::from_secs(10);
const DEADLINE: Duration = Duration::from_secs(600);

/// Opens or fills every panel.
const SCRIPT: &str = r#"
turns:
  - when: {contains: Open everything}
    text: I open everything.
    tool_calls:
      - {name: panel, arguments: {action: todo_add, text: "first\nsecond"}}
      - {name: panel, arguments: {action: open, target: d0001/f001.py}}
      - {name: panel, arguments: {action: open, target: d0002/f001.py}}
      - {name: panel, arguments: {action: tree_filter, text: "d000*/*.py"}}
      - {name: panel, arguments: {action: tree_describe, target: d0001/f001.py, text: the first}}
      - {name: panel, arguments: {action: memory_write, target: build, text: Build with make.}}
      - {name: panel, arguments: {action: timer, target: "60", text: look at the build}}
      - {name: panel, arguments: {action: log, text: planned}}
      - {name: panel, arguments: {action: scratch_write, target: facts, text: it is large}}
      - {name: console, arguments: {action: start, text: "echo ready; exec sleep 100000"}}
      - {name: git, arguments: {command: log --oneline -5}}
default: {text: That is all.}
"#;

fn time<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed().as_secs_f64() * 1000.0)
}

fn best(times: impl IntoIterator<Item = f64>) -> f64 {
    times.into_iter().fold(f64::MAX, f64::min)
}

/// Processor time of this process, all threads, in milliseconds.
fn processor_ms() -> f64 {
    let usage = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = usage.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}

fn path_of(number: usize) -> String {
    format!("d{:04}/f{:03}.py", number / FILES_PER_FOLDER, number % FILES_PER_FOLDER)
}

fn write(root: &Path, number: usize, version: usize) {
    let text = format!("def f{number}_{version}(value):\n    return value + {version}\n");
    fs::write(root.join(path_of(number)), text).expect("a file");
}

fn git(root: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.current_dir(root).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    let names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "gc.auto=0"];
    let output = command.args(names).args(arguments).output().expect("git");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

struct Bench {
    app: ConversationApp,
    root: PathBuf,
    _server: Server,
}

impl Bench {
    /// A conversation with all panels, whose folder is watched.
    async fn open(home: &Path, root: &Path, name: &str) -> Self {
        let server = serve(ServerConfig::new(scripted_engine(SCRIPT, ""))).await.expect("a server");
        let user = home.join(name);
        fs::create_dir_all(user.join("config")).expect("a folder");
        let config = format!(
            "model = \"claude-sonnet-5\"\nlayout = \"panels\"\nsandbox = false\n\
             [providers.anthropic]\nbase_url = \"{}/v1\"\n",
            server.url()
        );
        fs::write(user.join("config/config.toml"), config).expect("a file");
        let keys = user.join("config/keys.toml");
        fs::write(&keys, "anthropic = \"a-key-of-the-benchmark\"\n").expect("a file");
        fs::set_permissions(&keys, fs::Permissions::from_mode(0o600)).expect("permissions");
        let options = OpenOptions {
            user_folders: UserFolders::below(&user),
            access: ProviderAccess::ByKey,
            approval: ApprovalMode::AllowAll,
            session: SessionChoice::New,
            ..OpenOptions::new(root.to_owned())
        };
        let app = ConversationApp::open(&options, &FaceHooks::default()).expect("a conversation");
        app.agent.start().await;
        let (text, images) = ("Open everything".to_owned(), Vec::new());
        let input = Input { text, below: None, images, source: InputSource::Interactive, id: None };
        let outcome = app.agent.prompt(input).await.expect("a run");
        assert_eq!(outcome, InputOutcome::Ran(RunEnd::Done));
        let bench = Bench { app, root: root.to_owned(), _server: server };
        let begun = Instant::now();
        while !bench.app.context.is_watched() {
            bench.refresh();
            assert!(begun.elapsed() < DEADLINE, "the folder is not watched");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        bench.refresh();
        bench
    }

    /// What the agent does before a request of a run: observes the folder, and adds the panels.
    fn refresh(&self) -> Vec<Item> {
        let target = self.app.agent.target();
        let request = ObserveRequest {
            now: self.app.agent.now(),
            reason: ObserveReason::NextRequest,
            prompt: "go on".into(),
            window: target.model.context as usize,
            token_factor: target.model.token_factor,
            repository_view: self.app.agent.layout().layout().repository_view(),
            bases: None,
            cache_read_share: 0.1,
            known_files: Vec::new(),
        };
        let mut snapshot: Snapshot = self.app.context.observe(&request).expect("a snapshot");
        self.app.context.add_panels(&mut snapshot);
        snapshot.items
    }

    fn timed_refresh(&self) -> f64 {
        time(|| self.refresh()).1
    }

    fn unchanged(&self) -> f64 {
        best((0..ROUNDS).map(|_| self.timed_refresh()))
    }

    /// Changes a file that is open, and refreshes.
    fn one_changed(&self) -> f64 {
        best((1..=ROUNDS).map(|round| {
            write(&self.root, FILES_PER_FOLDER + 1, round);
            self.timed_refresh()
        }))
    }
}

#[tokio::main]
async fn main() {
    let files = std::env::var("HARDPAN_BENCH_FILES").ok().and_then(|text| text.parse().ok());
    let files: usize = files.unwrap_or(99_000);
    let home = tempfile::tempdir().expect("a folder");
    let root = home.path().canonicalize().expect("a path").join("work");
    for number in 0..files {
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(root.join(path_of(number)).parent().expect("a folder")).expect("a folder");
        }
        write(&root, number, 0);
    }
    fs::write(root.join("pyproject.toml"), "").expect("a file"); // a project: all of it is listed
    println!("{files} files, all panels open, no repository:");
    let bench = Bench::open(home.path(), &root, "plain").await;
    println!("  nothing changed: {:.3} ms (limit 1)", bench.unchanged());
    println!("  one file changed: {:.3} ms (limit 10)", bench.one_changed());
    let added = best((0..ROUNDS).map(|round| {
        fs::write(root.join(format!("new{round}.py")), "def new(): ...\n").expect("a file");
        bench.timed_refresh()
    }));
    println!("  one file added: {added:.3} ms (limit 10)");
    bench.app.context.warm_up(&mut |_, _| ()); // what is indexed in the background ends first
    let before = processor_ms();
    tokio::time::sleep(IDLE).await;
    println!("  idle for {} s: {} ms of processor time (limit 0)", IDLE.as_secs(), processor_ms() - before);
    bench.app.agent.shutdown().await.expect("an end");
    drop(bench);

    git(&root, &["init", "-q", "-b", "main"]);
    git(&root, &["add", "."]);
    git(&root, &["commit", "-q", "-m", "one"]);
    git(&root, &["checkout", "-q", "-b", "other"]);
    (0..CHECKOUT_FILES.min(files)).for_each(|number| write(&root, number, 1000));
    git(&root, &["commit", "-q", "-a", "-m", "two"]);
    let bench = Bench::open(home.path(), &root, "repository").await;
    println!("{files} files, all panels open, in a repository:");
    println!("  nothing changed: {:.3} ms (limit 1)", bench.unchanged());
    let status = best((0..5).map(|_| time(|| git(&root, &["status", "--porcelain"])).1));
    let changed = bench.one_changed();
    println!("  one file changed: {changed:.0} ms; git status by itself {status:.0} ms");
    git(&root, &["checkout", "-q", "-f", "other"]);
    bench.refresh();
    let items_before = bench.refresh();
    let ((), checkout) = time(|| git(&root, &["checkout", "-q", "main"]));
    let processor = processor_ms();
    let (items, settled) = time(|| bench.refresh());
    let processor = processor_ms() - processor;
    let again = bench.timed_refresh();
    let (_, described) = time(|| bench.app.context.warm_up(&mut |_, _| ()));
    let changed = items.iter().filter(|item| {
        let before = items_before.iter().find(|before| before.key == item.key);
        before.is_none_or(|before| before.body.hash() != item.body.hash())
    });
    let status = best((0..2).map(|_| time(|| git(&root, &["status", "--porcelain"])).1));
    println!("  a checkout of {CHECKOUT_FILES} files (git took {checkout:.0} ms):");
    println!("    the refresh: {settled:.0} ms, {processor:.0} ms of processor time (limit 2000);");
    println!("    git status by itself: {status:.0} ms; the index after it: {described:.0} ms");
    println!("    the refresh after it: {again:.3} ms (limit 1): one refresh is enough");
    println!("    items that changed: {}", changed.map(|item| &*item.key).collect::<Vec<_>>().join(", "));
    bench.app.agent.shutdown().await.expect("an end");
}
