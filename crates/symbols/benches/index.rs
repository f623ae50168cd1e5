//! What the index costs, as ratios to parsing the same files with tree-sitter alone.
//!
//! `cargo bench -p hardpan-symbols` prints one line per figure with its limit. Both sides of a
//! ratio run in the same process, in turns, on the same threads, and the best of several rounds
//! counts, so that a busy machine changes little. A figure over its limit fails the run only with
//! `HARDPAN_BENCH=strict`.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use hardpan_symbols::{CodeMap, FileSource, Focus, MapRequest, SymbolIndex, TokenBudget};
use rayon::prelude::*;
use tree_sitter::Parser;

/// How many files, unless `HARDPAN_BENCH_FILES` says otherwise.
const FILES: usize = 2000;
const ROUNDS: usize = 5;

#[allow(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]
fn time<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let made = work();
    (start.elapsed(), made)
}

fn best<T>(mut work: impl FnMut() -> T) -> Duration {
    (0..ROUNDS).map(|_| time(|| black_box(work())).0).min().unwrap_or_default()
}

fn main() {
    let files = std::env::var("HARDPAN_BENCH_FILES").ok().and_then(|text| text.parse().ok()).unwrap_or(FILES);
    let tree = tree(files);
    let paths: Vec<&str> = tree.keys().map(String::as_str).collect();
    let bytes: usize = tree.values().map(|(_, text)| text.len()).sum();
    println!("{files} files, {} kB, {} threads", bytes / 1000, rayon::current_num_threads());

    let mut strict = Limits::default();
    let build = || {
        let mut index = SymbolIndex::default();
        index.add_files(&paths, |path, _| FileSource::Content(tree[path].1.clone().into_bytes()), |_| ());
        index
    };
    let mut index = build();
    let (mut parse, mut cold) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        parse = parse.min(time(|| parse_all(&tree)).0);
        cold = cold.min(time(build).0);
    }
    println!("parsing alone {:.0} ms, {:.1} MB/s", millis(parse), bytes as f64 / 1e6 / parse.as_secs_f64());
    strict.ratio("cold index", cold, parse, 2.0);

    let stored = index.save();
    let warm = best(|| SymbolIndex::load(&stored).expect("whole"));
    strict.ratio("warm start", warm, parse, 0.1);

    let count = |text: &str| text.len().div_ceil(4);
    let budget = Some(TokenBudget { tokens: 20_000, count_tokens: &count });
    let whole = index.map(&MapRequest::default());
    let chosen = index.map(&MapRequest { budget, ..MapRequest::default() });
    let mut edit = |previous: &CodeMap, choose: bool| {
        let mut worst = Duration::ZERO;
        for (round, path) in paths.iter().step_by(97).enumerate() {
            let text = format!("{}\n{}", tree[*path].1, addition(path, round));
            let memory = choose.then_some(&previous.memory);
            let (taken, _) = time(|| {
                index.update(path, text.as_bytes());
                index.map(&MapRequest { memory, previous: Some(previous), ..MapRequest::default() })
            });
            index.update(path, tree[*path].1.as_bytes());
            worst = worst.max(taken);
        }
        worst
    };
    let (whole_edit, chosen_edit) = (edit(&whole, false), edit(&chosen, true));
    strict.limit("one file edited, new map of a session (worst)", chosen_edit, 20.0);
    strict.limit("one file edited, new whole map (worst)", whole_edit, 20.0);

    let focus = Focus { files: vec![paths[files / 3].into()], names: vec!["process_batch_7".into()] };
    let rank = best(|| index.map(&MapRequest { focus: Some(&focus), budget, ..MapRequest::default() }));
    strict.limit("new focus, ranked and chosen anew", rank, 50.0);
    strict.end();
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[derive(Default)]
struct Limits {
    over: bool,
}

impl Limits {
    fn ratio(&mut self, what: &str, taken: Duration, against: Duration, limit: f64) {
        let ratio = taken.as_secs_f64() / against.as_secs_f64();
        self.over |= ratio > limit;
        println!("{what}: ratio {ratio:.2} (limit {limit}), {:.1} ms", millis(taken));
    }

    fn limit(&mut self, what: &str, taken: Duration, limit: f64) {
        self.over |= millis(taken) > limit;
        println!("{what}: {:.2} ms (limit {limit})", millis(taken));
    }

    fn end(self) {
        if self.over && std::env::var("HARDPAN_BENCH").is_ok_and(|value| value == "strict") {
            std::process::exit(1);
        }
    }
}

fn parse_all(tree: &BTreeMap<String, (&'static str, String)>) {
    let files: Vec<&(&str, String)> = tree.values().collect();
    files.par_iter().for_each_init(Parser::new, |parser, (grammar, text)| {
        let language = hardpan_grammars::language(grammar).expect("compiled in");
        parser.set_language(&language).expect("it fits");
        black_box(parser.parse(text, None));
    });
}

/// Path, grammar and text of every file. Names repeat and imports cross folders, as in real trees.
fn tree(files: usize) -> BTreeMap<String, (&'static str, String)> {
    (0..files)
        .map(|n| {
            let (folder, other) = (n / 40, (n * 7 + 4) % files);
            match n % 4 {
                0 => (format!("crates/part{folder}/src/m{n}.rs"), ("rust", rust(n))),
                1 => (format!("python/part{folder}/m{n}.py"), ("python", python(n, other - other % 4 + 1))),
                2 => (
                    format!("web/part{folder}/m{n}.ts"),
                    ("typescript", typescript(n, other - other % 4 + 2)),
                ),
                _ => (format!("go/part{folder}/m{n}.go"), ("go", go(n))),
            }
        })
        .collect()
}

fn addition(path: &str, round: usize) -> String {
    match path.rsplit('.').next() {
        Some("rs") => format!("pub fn added_{round}(value: u32) -> u32 {{ process_batch_7(value) }}\n"),
        Some("py") => format!("def added_{round}(value, other=1):\n    return process_batch_7(value)\n"),
        Some("ts") => format!("export const added{round} = (value: number) => processBatch7(value);\n"),
        _ => format!("func Added{round}(value int) int {{ return ProcessBatch7(value) }}\n"),
    }
}

fn rust(n: usize) -> String {
    let mut text = format!(
        "use std::collections::BTreeMap;\nuse serde::Serialize;\nuse crate::m{}::Record{};\n\n",
        n + 4,
        n + 4
    );
    text += &format!(
        "/// One of many.\n#[derive(Clone, Debug, Serialize)]\npub struct Record{n} {{\n    pub id: u64,\n    names: BTreeMap<String, Vec<u32>>,\n}}\n\n"
    );
    text += &format!(
        "impl Record{n} {{\n    pub fn new(id: u64) -> Self {{\n        Self {{ id, names: BTreeMap::new() }}\n    }}\n"
    );
    for m in 0..8 {
        text += &format!(
            "\n    /// Adds what is missing.\n    pub fn insert_{m}(&mut self, name: &str, values: &[u32]) -> Option<usize> {{\n        let entry = self.names.entry(name.to_string()).or_default();\n        for value in values.iter().filter(|value| **value > {m}) {{\n            if !entry.contains(value) {{\n                entry.push(*value);\n            }}\n        }}\n        match entry.len() {{\n            0 => None,\n            length => Some(length + Record{}::new(self.id).size()),\n        }}\n    }}\n",
            n + 4
        );
    }
    text += &format!(
        "    pub fn size(&self) -> usize {{\n        self.names.values().map(Vec::len).sum()\n    }}\n}}\n\npub fn process_batch_{n}(record: &mut Record{n}) -> usize {{\n    record.insert_1(\"a\", &[1, 2, 3]).unwrap_or(0) + record.size()\n}}\n"
    );
    text
}

fn python(n: usize, other: usize) -> String {
    let mut text = format!(
        "import logging\nfrom python.part{}.m{other} import Record{other}, process_batch_{other}\n\nLIMIT_{n} = 10\n\n\nclass Record{n}(Record{other}):\n    \"\"\"One of many.\"\"\"\n\n    def __init__(self, ident, names=None):\n        self.ident = ident\n        self.names = names or {{}}\n",
        other / 40
    );
    for m in 0..10 {
        text += &format!(
            "\n    def insert_{m}(self, name: str, values: list[int], strict: bool = False) -> int:\n        \"\"\"Adds what is missing.\"\"\"\n        entry = self.names.setdefault(name, [])\n        for value in values:\n            if value > {m} and value not in entry:\n                entry.append(value)\n        if strict and len(entry) > LIMIT_{n}:\n            raise ValueError(f\"too many: {{len(entry)}}\")\n        return process_batch_{other}(self, entry) + self.size()\n"
        );
    }
    text += &format!(
        "\n    @property\n    def total(self):\n        return sum(len(values) for values in self.names.values())\n\n    def size(self):\n        return self.total\n\n\nasync def process_batch_{n}(record, entries=()):\n    return record.insert_1(\"a\", [1, 2, 3]) + len(entries)\n"
    );
    text
}

fn typescript(n: usize, other: usize) -> String {
    let mut text = format!(
        "import {{ Record{other}, processBatch{other} }} from '../part{}/m{other}';\nimport React from 'react';\n\nexport interface Options{n} {{ strict?: boolean; limit: number }}\n\nexport class Record{n} extends Record{other} {{\n  private names = new Map<string, number[]>();\n  constructor(readonly id: number, options: Options{n}) {{ super(id); }}\n",
        other / 40
    );
    for m in 0..10 {
        text += &format!(
            "\n  // Adds what is missing.\n  insert{m}(name: string, values: number[], strict = false): number {{\n    const entry = this.names.get(name) ?? [];\n    for (const value of values) {{\n      if (value > {m} && !entry.includes(value)) {{ entry.push(value); }}\n    }}\n    if (strict) {{ throw new Error(`too many: ${{entry.length}}`); }}\n    return processBatch{other}(this.names.size, entry.map((value) => value * 2));\n  }}\n"
        );
    }
    text += &format!(
        "}}\n\nexport const processBatch{n} = (size: number, entries: number[] = []): number => size + entries.length;\n"
    );
    text
}

fn go(n: usize) -> String {
    let mut text = format!(
        "package part{}\n\nimport (\n\t\"fmt\"\n\t\"strings\"\n)\n\n// Record{n} is one of many.\ntype Record{n} struct {{\n\tID    int\n\tNames map[string][]int\n}}\n",
        n / 40
    );
    for m in 0..10 {
        text += &format!(
            "\n// Insert{m} adds what is missing.\nfunc (r *Record{n}) Insert{m}(name string, values ...int) (int, error) {{\n\tentry := r.Names[name]\n\tfor _, value := range values {{\n\t\tif value > {m} {{\n\t\t\tentry = append(entry, value)\n\t\t}}\n\t}}\n\tif strings.HasPrefix(name, \"x\") {{\n\t\treturn 0, fmt.Errorf(\"bad name: %s\", name)\n\t}}\n\tr.Names[name] = entry\n\treturn ProcessBatch{n}(r, len(entry)), nil\n}}\n"
        );
    }
    text += &format!("\nfunc ProcessBatch{n}(r *Record{n}, size int) int {{ return size + len(r.Names) }}\n");
    text
}
