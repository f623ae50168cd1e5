//! `docs/conformance.md` says the truth: each of its rows has a state, a test that exists and runs, or a
//! reason, and its figures are those of the rows.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The documents, and how many statements each has. A statement does not go away.
const DOCUMENTS: [(&str, usize); 5] = [("a", 87), ("b", 60), ("c", 94), ("d", 96), ("e", 68)];

const STATES: [&str; 3] = ["holds", "differs", "not yet"];

/// A row of one of the tables.
struct Row {
    id: String,
    statement: String,
    state: String,
    tests: Vec<String>,
    reason: String,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(repository().join("docs/conformance.md")).unwrap()
}

/// The cells of a line of a table.
fn cells(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").map(str::trim).collect())
}

/// Whether the row begins with the number of a statement: `a17`.
fn is_statement(id: &str) -> bool {
    let documents = || DOCUMENTS.iter().filter_map(|(name, _)| id.strip_prefix(name));
    documents().any(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The tests that a cell names, and what else it says.
fn tests_and_reason(cell: &str) -> (Vec<String>, String) {
    let (mut tests, mut reason) = (Vec::new(), String::new());
    for (at, part) in cell.split('`').enumerate() {
        match at % 2 {
            1 if part.contains("::") => tests.push(part.to_owned()),
            _ => reason.push_str(part),
        }
    }
    (tests, reason.trim_matches([' ', ',', ';']).to_owned())
}

fn rows(page: &str) -> Vec<Row> {
    let lines = page.lines().filter_map(cells).filter(|cells| is_statement(cells[0]));
    let row = |cells: Vec<&str>| {
        let [id, statement, state, evidence] = cells[..] else { panic!("{cells:?} has not four cells") };
        let (tests, reason) = tests_and_reason(evidence);
        Row { id: id.to_owned(), statement: statement.to_owned(), state: state.to_owned(), tests, reason }
    };
    lines.map(row).collect()
}

/// Where the test `crate::module::name` may stand.
fn candidates(test: &str) -> Option<(Vec<PathBuf>, &str)> {
    let (path, name) = test.rsplit_once("::")?;
    let (package, modules) = path.split_once("::")?;
    let modules = modules.replace("::", "/");
    let folder = repository().join("crates").join(package);
    let files = ["src", "tests"].into_iter().flat_map(|root| {
        let folder = folder.join(root);
        [".rs", "/tests.rs", "/main.rs", "/mod.rs"].map(|end| folder.join(format!("{modules}{end}")))
    });
    Some((files.filter(|file| file.is_file()).collect(), name))
}

/// Whether a source has a function of this name that `cargo test` runs.
fn runs(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let head = format!("fn {name}(");
    let is_head = |line: &str| line.strip_prefix("async ").unwrap_or(line).starts_with(&head);
    lines.iter().enumerate().filter(|(_, line)| is_head(line)).any(|(at, _)| {
        let above =
            || lines[..at].iter().rev().take_while(|line| line.starts_with("#[") || line.starts_with("//"));
        let is_test = |line: &&&str| line.starts_with("#[test]") || line.starts_with("#[tokio::test");
        above().any(|line| is_test(&line)) && !above().any(|line| line.starts_with("#[ignore"))
    })
}

fn exists(test: &str) -> bool {
    let Some((files, name)) = candidates(test) else { return false };
    files.iter().any(|file| runs(&fs::read_to_string(file).unwrap(), name))
}

#[test]
fn every_row_has_a_test_that_exists_or_a_reason() {
    let mut faults = Vec::new();
    for Row { id, statement, state, tests, reason } in rows(&page()) {
        if statement.is_empty() || !STATES.contains(&&*state) {
            faults.push(format!("{id}: no statement, or the unknown state \"{state}\""));
        }
        match &*state {
            "holds" if tests.is_empty() => faults.push(format!("{id} holds, but no test shows it")),
            "differs" | "not yet" if reason.is_empty() => faults.push(format!("{id} has no reason")),
            _ => {}
        }
        let missing = tests.iter().filter(|test| !exists(test));
        faults.extend(missing.map(|test| format!("{id}: there is no test {test}, or it is ignored")));
    }
    assert!(faults.is_empty(), "docs/conformance.md:\n{}", faults.join("\n"));
}

#[test]
fn every_statement_is_there_once_and_the_figures_are_those_of_the_rows() {
    let page = page();
    let mut rows = rows(&page).into_iter();
    let mut expected: Vec<Vec<String>> = Vec::new();
    let mut all = [0; 4];
    for (document, count) in DOCUMENTS {
        let mut states: BTreeMap<String, usize> = BTreeMap::new();
        for number in 1..=count {
            let row = rows.next().unwrap_or_else(|| panic!("{document}{number} is missing"));
            assert_eq!(row.id, format!("{document}{number}"));
            *states.entry(row.state).or_default() += 1;
        }
        let of = |state: &str| states.get(state).copied().unwrap_or_default();
        let figures = [count, of("holds"), of("differs"), of("not yet")];
        all.iter_mut().zip(figures).for_each(|(sum, figure)| *sum += figure);
        expected.push(figures.map(|figure| figure.to_string()).to_vec());
    }
    assert!(rows.next().is_none(), "there are more rows than statements");
    expected.push(all.map(|figure| figure.to_string()).to_vec());
    let is_summary = |cells: &Vec<&str>| cells.len() == 5 && cells[1].parse::<usize>().is_ok();
    let summary = page.lines().filter_map(cells).filter(is_summary);
    let told: Vec<Vec<String>> =
        summary.map(|cells| cells[1..].iter().map(|&cell| cell.to_owned()).collect()).collect();
    assert_eq!(told, expected, "the table at the top of docs/conformance.md");
}

#[test]
fn an_ignored_or_renamed_test_is_noticed() {
    let source = "#[test]\nfn runs() {}\n\n#[test]\n#[ignore = \"slow\"]\nfn is_ignored() {}\n\nfn helper() {}\n\n\
                  #[tokio::test(flavor = \"multi_thread\")]\nasync fn waits() {}\n";
    let names = ["runs", "waits", "is_ignored", "helper", "run", "gone"];
    assert_eq!(names.map(|name| runs(source, name)), [true, true, false, false, false, false]);
    assert!(exists("cli::conformance::an_ignored_or_renamed_test_is_noticed"));
    assert!(!exists("cli::conformance::gone") && !exists("cli::nowhere::gone") && !exists("gone"));
    let (tests, reason) = tests_and_reason("by `design`, and so on; `a::b`, `c::d`");
    assert_eq!((tests.join(" "), &*reason), ("a::b c::d".to_owned(), "by design, and so on"));
}
