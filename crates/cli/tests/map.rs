//! `hardpan map`, `hardpan symbols`, and the map in a prompt.

mod support;

use std::fs;

use support::{Sandbox, texts};

fn project() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(
        "work/src/clock.py",
        "def now():\n    return 0\n\ndef later(seconds=1):\n    return now() + seconds\n",
    );
    sandbox.write(
        "work/src/alarm.py",
        "from clock import later\n\nclass Alarm(Base):\n    async def ring(self): later()\n",
    );
    sandbox.write("work/README.md", "# Clocks\n\n## Alarms\n");
    sandbox
}

#[test]
fn the_map_has_a_legend_and_a_block_per_file() {
    let map = project().text(&["map"]);
    let (legend, blocks) = map.split_once("\n\n").expect("the legend ends with an empty line");
    assert!(legend.starts_with("c class"), "{legend}");
    assert_eq!(
        blocks,
        "README.md:\nh Clocks\n  h Alarms\nsrc/alarm.py:\ni→ src/clock.py\nc Alarm(Base)\n  am ring(self) →later\n\
         src/clock.py: ←1\nf now()\nf later(seconds?) ←1 →now\n"
    );
}

#[test]
fn paths_tokens_and_focus_narrow_it() {
    let sandbox = project();
    let part = sandbox.text(&["map", "src/clock.py"]);
    assert!(part.contains("f later") && !part.contains("Alarm"), "{part}");
    let below = sandbox.text(&["map", "--dir", "src", "clock.py"]);
    assert!(
        below.contains("clock.py: ←1\nf now()") && !below.contains("Alarm"),
        "paths are meant from the folder given"
    );
    let ran = sandbox.run(&["map", "--tokens", "125", "--focus", "src/alarm.py"]);
    assert_eq!(ran.code, Some(0));
    assert!(String::from_utf8(ran.stdout).unwrap().len() < sandbox.text(&["map"]).len());
    assert!(ran.stderr.starts_with("left out to fit the token limit:"), "{}", ran.stderr);
    assert!(sandbox.failure(&["map", "nowhere"]).contains("cannot find nowhere"));
    assert!(sandbox.failure(&["map", "/"]).contains("is outside of"));
}

#[test]
fn the_json_form_has_files_symbols_and_imports() {
    let report = project().json(&["map", "--json", "src"]);
    let clock = &report["files"][1];
    assert_eq!((clock["path"].as_str(), clock["language"].as_str()), (Some("src/clock.py"), Some("python")));
    assert_eq!((clock["references"].as_u64(), clock["symbols"][1]["line"].as_u64()), (Some(1), Some(4)));
    assert_eq!(clock["symbols"][1]["signature"], "(seconds?)");
    assert_eq!(report["files"][0]["local_imports"], serde_json::json!(["src/clock.py"]));
    assert_eq!(report["skipped"], serde_json::json!([]));
}

#[test]
fn a_symbol_is_found_with_its_uses() {
    let sandbox = project();
    assert_eq!(
        sandbox.text(&["symbols", "later"]),
        "src/clock.py:4: later(seconds?)\n  used in src/alarm.py\n"
    );
    assert_eq!(
        sandbox.json(&["symbols", "later", "--json"])[0]["used_by"],
        serde_json::json!(["src/alarm.py"])
    );
    assert!(sandbox.failure(&["symbols", "latr"]).contains("did you mean later"));
}

#[test]
fn the_same_tree_gives_the_same_bytes_cold_and_warm() {
    let sandbox = project();
    let cold = sandbox.text(&["map"]);
    for _ in 0..3 {
        assert_eq!(sandbox.text(&["map"]), cold);
    }
    sandbox.write("work/src/clock.py", "def never(): ...\n");
    let changed = sandbox.text(&["map"]);
    assert!(changed.contains("f never()") && !changed.contains("f now()"), "{changed}");
}

#[test]
fn a_prompt_has_the_overview_unless_it_is_told_otherwise() {
    let sandbox = project();
    let all = |args: &[&str]| {
        let body = sandbox.json(&[&["request", "Hi", "--json"], args].concat());
        body["messages"].as_array().unwrap().iter().flat_map(texts).collect::<String>()
    };
    let strata = all(&[]);
    assert!(strata.contains("=== overview ===") && strata.contains("\n clock.py: now, later\n"), "{strata}");
    assert!(!strata.contains("=== tree ===") && !strata.contains("=== legend ==="), "{strata}");
    let inline = all(&["--layout", "inline"]);
    let heading = "Directory structure of the workspace:\n\nFolders";
    assert!(inline.contains(heading) && inline.contains("\n clock.py: now, later"), "{inline}");
    let panels = all(&["--layout", "panels"]);
    assert!(panels.contains("======= [P5] Overview =======\nFolders"), "{panels}");
    assert!(!all(&["--no-map"]).contains("overview"));
    let tiers = sandbox.json(&["request", "Hi", "--layout", "tiers", "--json"]).to_string();
    assert!(tiers.contains("# Repository Structure") && tiers.contains("# File Tree (3 files)"), "{tiers}");
    assert!(!tiers.contains("Use symbols for the rest"), "{tiers}");
    let described = |layout: &str| {
        let body = sandbox.json(&["request", "Hi", "--layout", layout, "--json"]);
        body["system"].to_string().contains("# Symbol map")
    };
    assert_eq!([described("strata"), described("tiers")], [false, true]);
    assert_eq!(
        sandbox.text(&["map", "--overview"]),
        "./\n README.md\nsrc/\n alarm.py: Alarm\n clock.py: now, later\n"
    );
}

#[test]
fn a_prompt_has_the_map_if_it_is_asked_for_without_the_files_that_are_open() {
    let sandbox = project();
    sandbox.write("config/config.toml", "map_tokens = 2000\n");
    let body = sandbox.json(&["request", "Hi", "src/clock.py", "--json"]);
    let all = body["messages"].as_array().unwrap().iter().flat_map(texts).collect::<String>();
    assert!(all.contains("=== legend ===") && all.contains("=== symbols:src/alarm.py ==="), "{all}");
    assert!(!all.contains("=== symbols:src/clock.py ==="), "{all}");
    let without = sandbox.json(&["request", "Hi", "--no-map", "--json"]).to_string();
    assert!(!without.contains("symbols:src/alarm.py"));
    sandbox.write("config/config.toml", "map_tokens = 0\n");
    assert_eq!(sandbox.json(&["request", "Hi", "--json"]).to_string().matches("symbols:").count(), 0);
    sandbox.write("config/config.toml", "map_tokens = 120\n");
    let short = sandbox.json(&["request", "What does later do?", "--json"]).to_string();
    assert!(short.contains("later(seconds?)") && !short.contains("symbols:README.md"), "{short}");
}

#[test]
fn whatever_lies_around_a_map_comes_out() {
    let sandbox = project();
    sandbox.write("work/broken.rs", "fn whole() {}\nfn broken( {\nstruct Kept { a: u8 }\n");
    sandbox.write("work/latin.py", b"def caf\xe9(): ...\ndef plain(): ...\n");
    sandbox.write("work/big.js", "x = 1;\n".repeat(200_000));
    sandbox.write("work/jquery.min.js", format!("var a={};", "1,".repeat(50_000)));
    sandbox.write("work/odd 'name\"\twith\nlines.py", "def odd(): ...\n");
    sandbox.write("work/nested/.git/HEAD", "ref: refs/heads/main\n");
    sandbox.write("work/nested/inner.py", "def inner(): ...\n");
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        std::os::unix::fs::symlink("loop", sandbox.work().join("loop")).unwrap();
        fs::write(sandbox.work().join(std::ffi::OsStr::from_bytes(b"bad\xff.py")), "def bad(): ...\n")
            .unwrap();
    }
    let map = sandbox.text(&["map"]);
    assert!(map.contains("f whole()") && map.contains("f plain()"), "{map}");
    assert!(!map.contains('\t') && !map.contains('\x1b'), "{map}");
    let report = sandbox.json(&["map", "--json"]);
    let skipped: Vec<&str> =
        report["skipped"].as_array().unwrap().iter().filter_map(|s| s["path"].as_str()).collect();
    assert!(skipped.contains(&"big.js") && skipped.contains(&"jquery.min.js"), "{skipped:?}");
}
