use std::fs::{self, File};

use serde_json::json;

use super::search::SearchedFile;
use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

fn project() -> TestWorkspace {
    workspace(&[
        (".git/config", "spend\n"),
        (".gitignore", "target\n"),
        ("README.md", "# Shop\n\nSpend a budget.\n"),
        (
            "src/budget.rs",
            "//! Money.\n\npub struct Budget {\n    left: u32,\n}\n\nimpl Budget {\n    pub fn spend(&mut self) {}\n}\n",
        ),
        ("src/lib/a.rs", "budget.spend();\r\nend\r\n"),
        ("src/lib-b.rs", "fn f(x: u8) { spend(x) }"),
        ("target/x.rs", "spend\n"),
    ])
}

#[test]
fn matches_come_with_path_and_line_in_the_order_of_paths() {
    let project = project();
    let outcome = project.call(&Grep, &json!({"pattern": "spend"}));
    let text = "src/budget.rs:8:    pub fn spend(&mut self) {}\nsrc/lib/a.rs:1:budget.spend();\nsrc/lib-b.rs:1:fn f(x: u8) { spend(x) }";
    let details = json!({"matches": 3, "files": 3, "cut": false, "binary": 0, "unreadable": 0});
    assert_eq!(outcome, ToolOutcome::text(text).with_details(details));
}

#[test]
fn the_search_can_be_narrowed() {
    let project = project();
    let grep = |arguments| project.text(&Grep, &arguments);
    assert_eq!(
        grep(json!({"pattern": "SPEND", "ignore_case": true, "glob": "*.md"})),
        "README.md:3:Spend a budget."
    );
    assert_eq!(grep(json!({"pattern": "spend", "path": "src/lib"})), "src/lib/a.rs:1:budget.spend();");
    assert_eq!(
        grep(json!({"pattern": "spend", "path": "src/lib-b.rs"})),
        "src/lib-b.rs:1:fn f(x: u8) { spend(x) }"
    );
    assert_eq!(
        grep(json!({"pattern": "spend", "glob": "lib/*", "path": "src"})),
        "src/lib/a.rs:1:budget.spend();"
    );
    assert_eq!(grep(json!({"pattern": "spend", "glob": "!*.rs"})), "[no match in 2 files]");
    assert_eq!(grep(json!({"pattern": "spend(", "literal": true, "glob": "src/*"})).lines().count(), 2);
    assert_eq!(grep(json!({"pattern": r"\bend$"})), "src/lib/a.rs:2:end");
    assert_eq!(grep(json!({"pattern": "spend", "path": "target"})), "target/x.rs:1:spend");
    assert_eq!(grep(json!({"pattern": "spend", "path": ".git"})), ".git/config:1:spend");
}

#[test]
fn context_is_marked_and_gaps_are_too() {
    let project = workspace(&[("a", "1\nx\n3\n4\n5\nx\nx\n8\n"), ("b", "0\nx\n")]);
    let expected = "a-1-1\na:2:x\na-3-3\n--\na-5-5\na:6:x\na:7:x\na-8-8\n--\nb-1-0\nb:2:x";
    assert_eq!(project.text(&Grep, &json!({"pattern": "x", "context": 1})), expected);
    // The context of a match that is not shown is not shown either.
    let expected = "a-1-1\na:2:x\na-3-3\n[the first 1 match; narrow pattern, path or glob, or raise limit]";
    assert_eq!(project.text(&Grep, &json!({"pattern": "x", "context": 1, "limit": 1})), expected);
}

#[test]
fn many_matches_are_cut_with_a_notice_and_as_many_as_asked_for_are_not() {
    let project = workspace(&[]);
    (0..150).for_each(|n| project.write(&format!("{n:03}"), "x\nx\n"));
    let lines =
        |count: usize| (0..count).map(|n| format!("{:03}:{}:x\n", n / 2, n % 2 + 1)).collect::<String>();
    let grep = |arguments| project.text(&Grep, &arguments);
    let notice = |count| format!("[the first {count} matches; narrow pattern, path or glob, or raise limit]");
    assert_eq!(grep(json!({"pattern": "x"})), lines(100) + &notice(100));
    assert_eq!(grep(json!({"pattern": "x", "limit": 299})), lines(299) + &notice(299));
    assert_eq!(grep(json!({"pattern": "x", "limit": 300})) + "\n", lines(300));
    assert_eq!(grep(json!({"pattern": "x", "limit": u64::MAX})) + "\n", lines(300));
}

#[test]
fn more_files_than_one_batch_stay_in_order() {
    let project = workspace(&[]);
    (0..3 * BATCH_SIZE).for_each(|n| project.write(&format!("{:02}/{n:04}", n % 7), "x\n"));
    let mut paths: Vec<String> = (0..3 * BATCH_SIZE).map(|n| format!("{:02}/{n:04}:1:x", n % 7)).collect();
    paths.sort();
    assert_eq!(project.text(&Grep, &json!({"pattern": "x", "limit": 5000})), paths.join("\n"));
}

#[test]
fn long_lines_are_cut_around_the_match_and_many_bytes_after_it() {
    let line = format!("{}needle{}", "a".repeat(600), "b".repeat(600));
    let project = workspace(&[("min.js", &line)]);
    let expected = format!("min.js:1:…{}needle{}…", "a".repeat(125), "b".repeat(369));
    assert_eq!(project.text(&Grep, &json!({"pattern": "needle"})), expected);
    project.write("min.js", (line.clone() + "\n").repeat(200));
    let text = project.text(&Grep, &json!({"pattern": "needle", "limit": 200}));
    assert!(
        text.len() < 52_000
            && text.ends_with("\n[the first 99 matches, 50 KB; narrow pattern, path or glob]"),
        "{}",
        &text[text.len() - 100..]
    );
}

#[test]
fn a_pattern_that_cannot_be_used_is_told_with_its_place_and_the_remedy() {
    let project = project();
    let grep = |pattern: &str| project.failure(&Grep, &json!({"pattern": pattern}));
    assert_eq!(
        grep("fn spend("),
        "The pattern is no regular expression: regex parse error:\n    fn spend(\n            ^\nerror: unclosed group\nTo search for it as plain text, set literal: true."
    );
    assert_eq!(grep(""), "The pattern is empty: every line would match. Say what to look for.");
    assert_eq!(
        grep("a\nb"),
        "The pattern has more than one line, and lines are searched one by one: search for one of them."
    );
    assert!(grep(r"a\nb").starts_with("The pattern is no regular expression: "));
    assert!(grep("(((a{1000}){1000}){1000}){1000}").starts_with("The pattern is no regular expression: "));
    assert_eq!(
        project.failure(&Grep, &json!({"pattern": "x", "path": "scr"})),
        "scr does not exist. Nearest names: src"
    );
}

#[test]
#[cfg(unix)]
fn what_cannot_be_searched_is_counted_and_links_lead_nowhere() {
    let project = workspace(&[("a.txt", "needle\n")]);
    fs::write(project.outside().join("secret"), "needle\n").unwrap();
    project.link("link", "../secret");
    project.link("loop", "loop");
    project.link("folder", "..");
    project.pipe("pipe");
    project.write("a.bin", b"needle\n\0");
    // What was found before a file turns out to be binary does not count.
    project.write("late.bin", [b"needle\n".to_vec(), b"text\n".repeat(50_000), vec![0]].concat());
    let utf16: Vec<u8> = "\u{feff}a needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    project.write("utf16.txt", utf16);
    let expected = "a.txt:1:needle\nutf16.txt:1:a needle\n[2 binary files skipped]";
    assert_eq!(project.text(&Grep, &json!({"pattern": "needle"})), expected);
    assert_eq!(
        project.failure(&Grep, &json!({"pattern": "x", "path": "pipe"})),
        "pipe is neither a file nor a folder."
    );
    assert!(project.failure(&Grep, &json!({"pattern": "x", "path": "link"})).starts_with("link is outside"));
}

#[test]
fn a_line_without_an_end_is_given_up() {
    let project = workspace(&[("a", "x\n")]);
    project.write("endless", "y".repeat(20 * 1024 * 1024));
    assert_eq!(project.text(&Grep, &json!({"pattern": "x|y$"})), "a:1:x\n[1 file could not be searched]");
    if File::create(project.path("hole")).unwrap().set_len(1 << 40).is_ok() {
        assert_eq!(
            project.text(&Grep, &json!({"pattern": "x", "path": "hole"})),
            "[no match in 0 files; 1 binary file skipped]"
        );
    }
}

/// What `file` makes of a path, with bounds and a pattern of its own.
fn found(project: &TestWorkspace, path: &Path, cancel: &CancelFlag) -> SearchedFile {
    let guard = project.scope.guard();
    let matcher = RegexMatcher::new("s").unwrap();
    let search = FileSearcher { matcher, limit: 9, context: 0, guard: &guard, cancel };
    search.search_file(&mut search.build_searcher(), path)
}

#[test]
#[cfg(unix)]
fn a_file_that_became_a_link_or_vanished_is_not_searched() {
    let project = workspace(&[("a.txt", "s\n")]);
    fs::write(project.outside().join("secret"), "s\n").unwrap();
    project.link("link", "../secret");
    let cancel = CancelFlag::default();
    assert!(
        matches!(found(&project, &project.path("a.txt"), &cancel), SearchedFile::Lines(lines) if lines.len() == 1)
    );
    // The walk saw a file; when it is opened, a link has taken its place.
    assert_eq!(found(&project, &project.path("link"), &cancel), SearchedFile::Unreadable);
    assert_eq!(found(&project, &project.path("gone"), &cancel), SearchedFile::Nothing);
}

#[test]
#[cfg(target_os = "linux")]
fn foreign_names_and_bytes_are_shown_as_well_as_can_be() {
    use std::os::unix::ffi::OsStrExt;
    let project = workspace(&[("two\nlines", "x\n")]);
    let name = std::ffi::OsStr::from_bytes(b"gr\xfcn");
    fs::write(project.path("").join(name), b"x\xfc\x1b[0m\n").unwrap();
    let expected = "gr\u{fffd}n:1:x\u{fffd}\x1b[0m\ntwo\\nlines:1:x";
    assert_eq!(project.text(&Grep, &json!({"pattern": "x"})), expected);
}

#[test]
fn what_a_declaration_names_is_understood() {
    let all = json!({
        "pattern": "a", "path": ".", "glob": "*", "ignore_case": true, "literal": true, "context": 1, "limit": 5,
    });
    let schema = Grep.declaration().parameters.value();
    assert!(schema["properties"].as_object().unwrap().keys().eq(all.as_object().unwrap().keys()));
    assert_eq!(workspace(&[("f", "A\n")]).text(&Grep, &all), "f:1:A");
}
