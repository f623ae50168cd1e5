//! What the binary is built from: known licences, crates.io as the only source, few duplicates.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licences that ask for no more than their text beside the binary.
const LICENCES: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "MIT-0",
    "MPL-2.0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Crates that are there in two versions, because dependencies disagree. A new one is worth a look.
/// `indexmap` and `schemars` are so in the lock file alone: the older ones are optional parts of
/// `serde_with`, which are not built.
const DUPLICATES: [&str; 15] = [
    "base64",
    "bitflags",
    "cpufeatures",
    "getrandom",
    "hashbrown",
    "indexmap",
    "itertools",
    "pastey",
    "rand",
    "rand_core",
    "schemars",
    "similar",
    "syn",
    "thiserror",
    "thiserror-impl",
];

/// All packages that are built on this machine.
fn packages() -> Vec<Value> {
    let version = Command::new("rustc").arg("-vV").output().unwrap();
    let version = String::from_utf8(version.stdout).unwrap();
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).unwrap();
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Whether an SPDX expression can be met with the licences above.
fn is_allowed(expression: &str) -> bool {
    // The old way to write OR.
    let expression = expression.replace('/', " OR ").replace(['(', ')'], " ");
    let words: Vec<&str> = expression.split_whitespace().collect();
    // Parentheses only group alternatives, so that every part of an AND must have one of them.
    words.split(|word| *word == "AND").all(|part| {
        part.split(|word| *word == "OR").any(|licence| match licence {
            [licence] | [licence, "WITH", "LLVM-exception"] => LICENCES.contains(licence),
            _ => false,
        })
    })
}

#[test]
fn every_licence_is_known_and_every_crate_comes_from_the_registry() {
    assert!(
        is_allowed("(MIT OR GPL-3.0) AND Unicode-3.0")
            && !is_allowed("GPL-3.0")
            && !is_allowed("MIT AND GPL-3.0")
    );
    let packages = packages();
    assert!(packages.len() > 100);
    for package in &packages {
        let (name, licence) = (&package["name"], package["license"].as_str().unwrap_or_default());
        assert!(is_allowed(licence), "{name}: {licence}");
        // A path is a crate of this workspace.
        let source = package["source"].as_str();
        let is_known =
            source.is_none_or(|source| source == "registry+https://github.com/rust-lang/crates.io-index");
        assert!(is_known, "{name}: {source:?}");
    }
}

#[test]
fn no_crate_is_there_twice_unnoticed() {
    let mut versions: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for package in packages() {
        let text = |name: &str| package[name].as_str().unwrap().to_owned();
        versions.entry(text("name")).or_default().insert(text("version"));
    }
    let twice = versions.iter().filter(|(_, versions)| versions.len() > 1);
    let unknown: Vec<_> = twice.filter(|(name, _)| !DUPLICATES.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}
