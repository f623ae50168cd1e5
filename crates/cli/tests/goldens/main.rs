//! Every snapshot in every layout for every form of the wire, to the byte.
//!
//! The body of `hardpan request --snapshot F --layout L --provider P --model M --json` is reviewed in three
//! forms, all in `reviewed/`:
//!
//! - `digests.snap`: one hash for every body: which of them changed;
//! - `outline.LAYOUT.snap`: one line for every block: how they changed. The first codec is written in full, the
//!   others as what differs from it;
//! - `body.LAYOUT.PROTOCOL.snap`: the whole body of the richest snapshot, one for each layout and protocol.
//!
//! To take in a change that was meant: `INSTA_UPDATE=always cargo test -p hardpan-cli --test goldens`, and read
//! the diff.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

#[path = "../support/mod.rs"]
mod support;

mod gemini; // a body of Gemini in the words of the others
mod outline;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::num::NonZero;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex};
use std::thread;

use outline::Outline;
use serde_json::Value;
use support::{LAYOUTS, Sandbox, snapshot, tests};

/// A form of the wire: its name here, the provider, the model.
type Codec = (&'static str, &'static str, &'static str);

/// The forms that every snapshot is encoded in.
const CODECS: [Codec; 6] = [
    ("anthropic", "anthropic", "claude-sonnet-5"),
    ("openai", "openai", "gpt-4.1"),
    ("responses", "openai", "gpt-5.5"),
    ("responses-breakpoints", "openai", "gpt-5.6"),
    ("openrouter", "openrouter", "anthropic/claude-sonnet-4.5"),
    ("gemini", "gemini", "gemini-3.5-flash"),
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

/// The snapshot whose bodies are reviewed whole, in one codec of each protocol.
const RICHEST: &str = "everything";
const PROTOCOLS: [&str; 4] = ["anthropic", "openai", "responses", "gemini"];

/// Snapshot, layout, codec.
type Combination = (String, &'static str, &'static str);

/// Every body, as the binary prints it: made once for all tests of this file.
static BODIES: LazyLock<BTreeMap<Combination, Vec<u8>>> = LazyLock::new(|| {
    let mut waiting = Vec::new();
    for name in snapshots() {
        for layout in LAYOUTS {
            waiting.extend(codecs(&name).map(|codec| (name.clone(), layout, *codec)));
        }
    }
    let (waiting, bodies) = (Mutex::new(waiting), Mutex::new(BTreeMap::new()));
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, NonZero::get) {
            scope.spawn(|| {
                let sandbox = Sandbox::new();
                while let Some((name, layout, codec)) = { waiting.lock().unwrap().pop() } {
                    let body = request(&sandbox, &name, layout, codec);
                    bodies.lock().unwrap().insert((name, layout, codec.0), body);
                }
            });
        }
    });
    bodies.into_inner().unwrap()
});

fn request(sandbox: &Sandbox, name: &str, layout: &str, (_, provider, model): Codec) -> Vec<u8> {
    let file = snapshot(name);
    let target = ["--layout", layout, "--provider", provider, "--model", model, "--json"];
    sandbox.bytes(&[&["request", "--snapshot", &file], &target[..]].concat())
}

fn body(name: &str, layout: &'static str, codec: &'static str) -> Value {
    serde_json::from_slice(&BODIES[&(name.to_owned(), layout, codec)]).unwrap()
}

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

/// 128 bits of BLAKE3, in hexadecimal digits.
fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex()[..32].to_owned()
}

fn assert_reviewed(name: &str, value: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(tests().join("goldens/reviewed"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, value));
}

#[test]
fn every_body_has_the_reviewed_bytes() {
    let mut table = String::new();
    for ((name, layout, codec), body) in BODIES.iter() {
        writeln!(table, "{} {name} {layout} {codec}", digest(body)).unwrap();
    }
    assert_reviewed("digests", &table);
}

fn assert_outline_reviewed(layout: &'static str) {
    let mut text = String::new();
    for name in snapshots() {
        let mut base: Option<Outline> = None;
        for (codec, ..) in codecs(&name) {
            let outline = Outline::of(&body(&name, layout, codec));
            let blocks =
                base.as_ref().map_or_else(|| outline.blocks.clone(), |base| outline.blocks_against(base));
            writeln!(text, "== {name} · {codec} · {}\n{blocks}", outline.fields).unwrap();
            base.get_or_insert(outline);
        }
    }
    assert_reviewed(&format!("outline.{layout}"), &text);
}

#[test]
fn the_outlines_of_strata_are_as_reviewed() {
    assert_outline_reviewed("strata");
}

#[test]
fn the_outlines_of_panels_are_as_reviewed() {
    assert_outline_reviewed("panels");
}

#[test]
fn the_outlines_of_tiers_are_as_reviewed() {
    assert_outline_reviewed("tiers");
}

#[test]
fn the_outlines_of_inline_are_as_reviewed() {
    assert_outline_reviewed("inline");
}

fn assert_body_reviewed(protocol: &'static str) {
    for layout in LAYOUTS {
        let body = serde_json::to_string_pretty(&body(RICHEST, layout, protocol)).unwrap();
        assert_reviewed(&format!("body.{layout}.{protocol}"), &body);
    }
}

#[test]
fn whole_bodies_for_anthropic_are_as_reviewed() {
    assert_body_reviewed("anthropic");
}

#[test]
fn whole_bodies_for_openai_are_as_reviewed() {
    assert_body_reviewed("openai");
}

#[test]
fn whole_bodies_for_gemini_are_as_reviewed() {
    assert_body_reviewed("gemini");
}

#[test]
fn whole_bodies_for_responses_are_as_reviewed() {
    assert_body_reviewed("responses");
}

#[test]
fn no_golden_is_left_over() {
    let mut expected = BTreeSet::from(["digests.snap".to_owned()]);
    for layout in LAYOUTS {
        expected.insert(format!("outline.{layout}.snap"));
        expected.extend(PROTOCOLS.map(|protocol| format!("body.{layout}.{protocol}.snap")));
    }
    let entries = fs::read_dir(tests().join("goldens/reviewed")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // What a failed run proposes (`.snap.new`) is not a golden.
    let found: BTreeSet<String> = names.filter(|name| !name.ends_with(".new")).collect();
    assert_eq!(found, expected);
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
