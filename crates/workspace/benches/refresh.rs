//! What it costs to know what changed: in a tree of 100,000 files and 1,000 folders, with nothing
//! changed, one file changed, one file added, and after a checkout that writes 10,000 files.
//!
//! `cargo bench -p hardpan-workspace --bench refresh` prints milliseconds; the limits stand beside
//! them. `HARDPAN_BENCH_FILES` sets another number of files.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hardpan_workspace::{
    Changes, FileGuard, LiveIndex, TEXT_LIMIT, WatchPosition, WorkspaceWatch, read_text,
};

const FILES_PER_FOLDER: usize = 100;
const ROUNDS: usize = 20;
const CHECKOUT_FILES: usize = 10_000;
const IDLE: Duration = Duration::from_secs(2);

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn time<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let start = Instant::now();
    let value = work();
    (value, start.elapsed().as_secs_f64() * 1000.0)
}

fn path_of(number: usize) -> String {
    format!("d{:04}/f{:03}.py", number / FILES_PER_FOLDER, number % FILES_PER_FOLDER)
}

fn write(root: &Path, number: usize, version: usize) {
    let text = format!("def f{number}_{version}(value):\n    return value + {version}\n");
    fs::write(root.join(path_of(number)), text).expect("a file");
}

/// Processor time of this process, all threads, in milliseconds.
fn processor_ms() -> f64 {
    let usage = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = usage.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = after_name.split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() * 10.0
}

struct Readers {
    watch: Arc<WorkspaceWatch>,
    index: Arc<LiveIndex>,
    position: WatchPosition,
}

impl Readers {
    /// What a request needs: the changes, the changed files, the list and the index.
    fn refresh(&mut self, root: &Path) -> Changes {
        let changes = self.watch.changes_since(&mut self.position);
        for file in changes.files.iter().take(100) {
            let _ = read_text(&root.join(file), TEXT_LIMIT);
        }
        let _ = self.watch.file_list();
        self.index.with_current(&mut |_, _| (), |_| ());
        changes
    }
}

fn main() {
    let files: usize =
        std::env::var("HARDPAN_BENCH_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(99_900);
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().canonicalize().expect("a path");
    for number in 0..files {
        if number % FILES_PER_FOLDER == 0 {
            fs::create_dir_all(root.join(path_of(number)).parent().expect("a folder")).expect("a folder");
        }
        write(&root, number, 0);
    }
    fs::write(root.join("pyproject.toml"), "").expect("a file"); // a project: all of it is listed
    let cache = tempfile::tempdir().expect("a folder");
    let guard = FileGuard::for_folder(&root);
    let index = LiveIndex::new(guard.clone(), &root, Some(cache.path()));
    let ((), indexed) = time(|| index.with_current(&mut |_, _| (), |_| ()));
    let (watch, started) = time(|| Arc::new(WorkspaceWatch::start(guard, &root).expect("a watch")));
    println!("{files} files: indexing them {indexed:.0} ms, starting the watch {started:.0} ms");
    index.set_watch(watch.clone());
    let mut readers = Readers { watch, index, position: WatchPosition::default() };
    let (_, first) = time(|| readers.refresh(&root));
    println!("the first refresh after the start: {first:.0} ms");

    let best = |times: Vec<f64>| times.into_iter().fold(f64::MAX, f64::min);
    let unchanged = (0..ROUNDS).map(|_| {
        let (changes, took) = time(|| readers.refresh(&root));
        assert!(changes.is_empty());
        took
    });
    println!("nothing changed: {:.3} ms (limit 1)", best(unchanged.collect()));
    let changed = (1..=ROUNDS).map(|round| {
        write(&root, files / 2, round);
        let (changes, took) = time(|| readers.refresh(&root));
        assert_eq!(changes.files.len(), 1);
        took
    });
    println!("one file changed: {:.3} ms (limit 10)", best(changed.collect()));
    let added = (0..3).map(|round| {
        fs::write(root.join(format!("new{round}.py")), "def new(): ...\n").expect("a file");
        let (changes, took) = time(|| readers.refresh(&root));
        assert!(changes.list);
        took
    });
    println!("one file added: {:.1} ms", best(added.collect()));
    for number in 0..CHECKOUT_FILES.min(files) {
        write(&root, number, 1000);
    }
    let (changes, took) = time(|| readers.refresh(&root));
    println!("{CHECKOUT_FILES} files written: {took:.0} ms (limit 2000), everything: {}", changes.everything);
    assert!(readers.refresh(&root).is_empty(), "one refresh is enough");

    let before = processor_ms();
    std::thread::sleep(IDLE);
    println!("idle for {} s: {} ms of processor time", IDLE.as_secs(), processor_ms() - before);
}
