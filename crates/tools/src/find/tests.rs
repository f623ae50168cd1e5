use std::fs::File;

use super::*;
use crate::test_workspace::{TestWorkspace, workspace};

fn project() -> TestWorkspace {
    workspace(&[
        (".git/config", ""),
        (".gitignore", "target\n*.log\n"),
        (".github/ci.yml", ""),
        ("Cargo.toml", ""),
        ("src/main.rs", ""),
        ("src/parse/mod.rs", ""),
        ("src/parse.rs", ""),
        ("src/x.log", ""),
        ("target/debug/main.rs", ""),
        ("tests/parse.rs", ""),
    ])
}

#[test]
fn a_name_is_found_at_any_depth_and_a_path_from_the_folder() {
    let project = project();
    let find = |pattern: &str| project.text(&Find, &json!({"pattern": pattern}));
    assert_eq!(find("*.rs"), "src/main.rs\nsrc/parse/mod.rs\nsrc/parse.rs\ntests/parse.rs");
    assert_eq!(find("src/*.rs"), "src/main.rs\nsrc/parse.rs");
    assert_eq!(find("src/**/*.rs"), "src/main.rs\nsrc/parse/mod.rs\nsrc/parse.rs");
    assert_eq!(find("*parse*"), "src/parse/\nsrc/parse.rs\ntests/parse.rs");
    assert_eq!(find("*.yml"), ".github/ci.yml");
    assert_eq!(find("config"), "[nothing matches; 11 paths looked at, without what git ignores]");
    let all = project.call(&Find, &json!({"pattern": "*"}));
    let text = ".github/\n.github/ci.yml\n.gitignore\nCargo.toml\nsrc/\nsrc/main.rs\nsrc/parse/\nsrc/parse/mod.rs\nsrc/parse.rs\ntests/\ntests/parse.rs";
    assert_eq!(
        all,
        ToolOutcome::text(text).with_details(json!({"paths": 11, "cut": false, "unreadable": 0}))
    );
}

#[test]
fn a_folder_can_be_named_and_names_lead_back() {
    let project = project();
    let find = |path: &str| project.text(&Find, &json!({"pattern": "*.rs", "path": path}));
    assert_eq!(find("src/parse"), "src/parse/mod.rs");
    assert_eq!(find("target"), "target/debug/main.rs");
    assert_eq!(project.text(&Find, &json!({"pattern": "config", "path": ".git"})), ".git/config");
    let failure = |path: &str| project.failure(&Find, &json!({"pattern": "*", "path": path}));
    assert_eq!(failure("Cargo.toml"), "Cargo.toml is a file: name a folder.");
    assert_eq!(failure("test"), "test does not exist. Nearest names: tests");
    assert!(failure("/").starts_with("/ is outside of the workspace."));
}

#[test]
fn a_long_list_is_cut_with_a_notice() {
    let project = workspace(&[]);
    (0..1500).for_each(|n| drop(File::create(project.path(&format!("{n:04}"))).unwrap()));
    let paths = |count: usize| (0..count).map(|n| format!("{n:04}\n")).collect::<String>();
    let find = |arguments| project.text(&Find, &arguments);
    assert_eq!(
        find(json!({"pattern": "*"})),
        paths(1000) + "[the first 1000; narrow pattern or path, or raise limit]"
    );
    assert_eq!(find(json!({"pattern": "*", "limit": 1500})) + "\n", paths(1500));
    std::fs::create_dir(project.path("z".repeat(200).as_str())).unwrap();
    (0..300).for_each(|n| project.write(&format!("{}/{n}", "z".repeat(200)), ""));
    let long = find(json!({"pattern": "z*/*"}));
    assert!(
        long.len() < 52_000 && long.ends_with("\n[the first 250, 50 KB; narrow pattern or path]"),
        "{}",
        &long[50_900..]
    );
}

#[test]
#[cfg(unix)]
fn links_are_listed_and_not_followed() {
    let project = workspace(&[("a/b", "")]);
    project.link("a/up", "..");
    project.link("out", "/");
    project.pipe("pipe");
    project.write("a/new\nline", "");
    assert_eq!(project.text(&Find, &json!({"pattern": "*"})), "a/\na/b\na/new\\nline\na/up\nout\npipe");
}

#[test]
fn what_a_declaration_names_is_understood() {
    let all = json!({"pattern": "a", "path": ".", "limit": 5});
    let schema = Find.declaration().parameters.value();
    assert!(schema["properties"].as_object().unwrap().keys().eq(all.as_object().unwrap().keys()));
    assert_eq!(workspace(&[("a", "")]).text(&Find, &all), "a");
}
