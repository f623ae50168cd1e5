//! Every snapshot in every layout for every form of the wire, to the byte.
//!
//! A golden is the body of `hardpan request --snapshot F --layout L --provider P --model M --json`, printed over
//! many lines so that it can be reviewed; made compact again it must be what the command prints. To take in a
//! change that was meant: `HARDPAN_UPDATE_GOLDENS=1 cargo test -p hardpan-cli --test goldens`, and review the diff.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use support::{LAYOUTS, Sandbox, snapshot, tests};

/// A form of the wire: the golden's suffix, the provider, the model.
type Codec = (&'static str, &'static str, &'static str);

/// The forms that every snapshot is encoded in.
const CODECS: [Codec; 4] = [
    ("anthropic", "anthropic", "claude-sonnet-5"),
    ("openai", "openai", "gpt-5.5"),
    ("openai-breakpoints", "openai", "gpt-5.6"),
    ("openrouter", "openrouter", "anthropic/claude-sonnet-4.5"),
];

/// The rows of data whose differences show only here, and a model without tools.
const MORE: [(&str, &[Codec]); 3] = [
    ("everything", &[("without-tools", "deepseek", "deepseek-reasoner")]),
    (
        "images",
        &[
            ("deepseek", "deepseek", "deepseek-v4-pro"),
            ("groq", "groq", "meta-llama/llama-4-scout-17b-16e-instruct"),
            ("xai", "xai", "grok-4.5"),
        ],
    ),
    (
        "reasoning",
        &[
            ("deepseek", "deepseek", "deepseek-v4-pro"),
            ("groq", "groq", "openai/gpt-oss-120b"),
            ("xai", "xai", "grok-4.5"),
            ("without-tools", "deepseek", "deepseek-reasoner"),
        ],
    ),
];

fn snapshots() -> Vec<String> {
    let entries = fs::read_dir(tests().join("snapshots")).unwrap();
    let name = |path: PathBuf| path.file_stem().unwrap().to_str().unwrap().to_owned();
    let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap().path())).collect();
    names.sort();
    names
}

fn codecs(snapshot: &str) -> impl Iterator<Item = &'static Codec> {
    let more = MORE.iter().filter(move |(name, _)| *name == snapshot).flat_map(|(_, codecs)| *codecs);
    CODECS.iter().chain(more)
}

fn golden(snapshot: &str, layout: &str, codec: &str) -> PathBuf {
    tests().join("goldens").join(snapshot).join(format!("{layout}.{codec}.json"))
}

fn updating() -> bool {
    std::env::var_os("HARDPAN_UPDATE_GOLDENS").is_some_and(|value| value == "1")
}

fn check(layout: &str) {
    let sandbox = Sandbox::new();
    let mut wrong = Vec::new();
    for name in snapshots() {
        for (codec, provider, model) in codecs(&name) {
            let file = snapshot(&name);
            let whom = ["--layout", layout, "--provider", provider, "--model", model, "--json"];
            let body = sandbox.bytes(&[&["request", "--snapshot", &file], &whom[..]].concat());
            let path = golden(&name, layout, codec);
            if updating() {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, pretty(&body)).unwrap();
            }
            wrong.extend(
                difference(&body, fs::read(&path).ok()).map(|what| format!("{}: {what}", path.display())),
            );
        }
    }
    let remedy = "HARDPAN_UPDATE_GOLDENS=1 takes the change in; review it";
    assert!(wrong.is_empty(), "{} bodies are not as reviewed ({remedy}):\n{}", wrong.len(), wrong.join("\n"));
}

fn pretty(body: &[u8]) -> String {
    let body: Value = serde_json::from_slice(body).unwrap();
    serde_json::to_string_pretty(&body).unwrap() + "\n"
}

/// What is wrong with a body, by its golden.
fn difference(body: &[u8], golden: Option<Vec<u8>>) -> Option<String> {
    let Some(golden) = golden else { return Some("there is no golden".to_owned()) };
    let reviewed: Value = match serde_json::from_slice(&golden) {
        Ok(value) => value,
        Err(error) => return Some(format!("the golden is not JSON: {error}")),
    };
    if serde_json::to_vec(&reviewed).unwrap() == body {
        return None;
    }
    let (now, before) = (pretty(body), pretty(&golden));
    let mut lines = now.lines().zip(before.lines()).enumerate();
    let Some((line, (now, before))) = lines.find(|(_, (now, before))| now != before) else {
        return Some("one is longer than the other, or the golden is not pretty-printed".to_owned());
    };
    let same = now.chars().zip(before.chars()).take_while(|(a, b)| a == b).count().saturating_sub(30);
    let from = |text: &str| text.chars().skip(same).take(100).collect::<String>();
    Some(format!("line {}\n  reviewed: …{}\n  now:      …{}", line + 1, from(before), from(now)))
}

#[test]
fn bodies_of_strata_are_as_reviewed() {
    check("strata");
}

#[test]
fn bodies_of_panels_are_as_reviewed() {
    check("panels");
}

#[test]
fn bodies_of_tiers_are_as_reviewed() {
    check("tiers");
}

#[test]
fn bodies_of_inline_are_as_reviewed() {
    check("inline");
}

#[test]
fn no_golden_is_left_over() {
    let mut expected = BTreeSet::new();
    for name in snapshots() {
        expected.extend(
            LAYOUTS.iter().flat_map(|layout| codecs(&name).map(|codec| golden(&name, layout, codec.0))),
        );
    }
    let folders = fs::read_dir(tests().join("goldens")).unwrap().map(|entry| entry.unwrap().path());
    let found = folders.flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let left_over: Vec<PathBuf> = found.filter(|path| !expected.contains(path)).collect();
    assert!(left_over.is_empty(), "no snapshot makes these goldens: {left_over:?}");
}

#[test]
fn there_are_snapshots_of_every_sort() {
    let required = [
        "plain",
        "tools",
        "parallel_tools_with_orphan",
        "reasoning",
        "images",
        "detached_and_summarised",
        "l0_history",
        "everything",
    ];
    let there = snapshots();
    for name in required {
        assert!(there.iter().any(|snapshot| snapshot == name), "{name}");
    }
}
