//! What the commands print, and where.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{LAYOUTS, Sandbox, snapshot, texts};

const NOW: [&str; 2] = ["--now", "2026-02-19T14:00:00Z"];

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

#[test]
fn the_body_is_all_that_json_prints() {
    let sandbox = Sandbox::new();
    let bytes = sandbox.bytes(&["request", "Hi", "--json"]);
    assert_eq!((bytes.first(), bytes.last()), (Some(&b'{'), Some(&b'}')), "no line end in a pipe");
    let body: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(
        (&body["model"], &body["max_tokens"]),
        (&json!("claude-sonnet-5-5"), &json!(32000)),
        "the defaults"
    );
    assert_eq!(serde_json::to_vec(&body).unwrap(), bytes, "no blank space either");
}

#[test]
fn the_prompt_may_come_on_standard_input() {
    let sandbox = Sandbox::new();
    let ran = sandbox
        .run_with_input(&["request", "-", "--layout", "tiers", "--json"], "Grüße\nvon hier\n".as_bytes());
    let body: Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(texts(&body["messages"][0])[0], "Grüße\nvon hier");
    let ran = sandbox.run_with_input(&["request", "-"], b"\xff\xfe");
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.starts_with("hardpan: cannot read the prompt on standard input as UTF-8"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_time_of_the_request_can_be_given() {
    let sandbox = Sandbox::new();
    let body = sandbox.json(&["request", "Hi", "--json", "--now", "2026-02-19T15:00:00.9+01:00"]);
    let tail = texts(body["messages"].as_array().unwrap().last().unwrap())[0];
    assert!(
        tail.starts_with("[state of the workspace]\nCurrent date and time: 2026-02-19T14:00:00Z\n"),
        "{tail}"
    );
    let file = snapshot("plain");
    let given = ["--snapshot", &file, "--layout", "tiers", "--now", "2027-01-01T00:00:00Z"];
    let body = sandbox.json(&[&["request", "--json"], &given[..]].concat());
    let last = body["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(
        texts(last).last(),
        Some(&"Current date and time: 2027-01-01T00:00:00Z\nCurrent working directory: /srv/app")
    );
    let system = sandbox.text(&[&["prompt"], &given[..]].concat());
    assert!(!system.contains("2027-01-01"), "no system prompt has a clock: {system}");
}

#[test]
fn the_printed_system_prompt_is_the_one_that_is_sent() {
    let sandbox = Sandbox::new();
    sandbox.write("work/AGENTS.md", "Be brief.\n");
    for layout in LAYOUTS {
        let body = sandbox.json(&["request", "Hi", "--layout", layout, "--json"]);
        let printed = sandbox.text(&["prompt", "--layout", layout]);
        assert_eq!(body["system"][0]["text"].as_str(), printed.strip_suffix('\n'), "{layout}");
    }
}

#[test]
fn files_become_panels_from_ten_on() {
    let sandbox = Sandbox::new();
    sandbox.write("work/src/b.rs", "fn b() {}\n");
    sandbox.write("work/src/a.rs", "fn a() {}\n");
    let body = sandbox.json(&["request", "Hi", "src/b.rs", "src/a.rs", "--layout", "panels", "--json"]);
    let shown: BTreeSet<&str> = list(&body["messages"]).iter().flat_map(texts).collect();
    assert!(shown.contains("======= [P10] File: src/b.rs =======\nfn b() {}\n"), "{shown:#?}");
    assert!(shown.contains("======= [P11] File: src/a.rs =======\nfn a() {}\n"), "{shown:#?}");
}

#[test]
fn the_origin_of_every_block_is_where_it_says() {
    let sandbox = Sandbox::new();
    let targets = [
        ("anthropic", "claude-sonnet-5"),
        ("openai", "gpt-4.1"),
        ("openai", "gpt-5.5"),
        ("openrouter", "anthropic/claude-sonnet-4.5"),
    ];
    for name in ["everything", "images", "reasoning"] {
        for layout in LAYOUTS {
            for (provider, model) in targets {
                let file = snapshot(name);
                let whom = ["--layout", layout, "--provider", provider, "--model", model];
                let args = [&["request", "--snapshot", &file, "--json", "--origins"], &whom[..]].concat();
                let printed = sandbox.json(&args);
                assert_eq!(printed.as_object().unwrap().keys().collect::<Vec<_>>(), ["body", "origins"]);
                for row in list(&printed["origins"]) {
                    check_origin(&printed["body"], row)
                        .unwrap_or_else(|what| panic!("{name} {layout} {model}: {what}: {row}"));
                }
            }
        }
    }
}

/// A block is where its address says, and as long as its parts say.
fn check_origin(body: &Value, row: &Value) -> Result<(), String> {
    let address = row["block"].as_str().unwrap();
    let pointer = format!("/{}", address.replace('[', "/").replace("].", "/").replace(']', ""));
    let block = body.pointer(&pointer).ok_or("it is not there")?;
    let from = list(&row["from"]);
    if from.is_empty() || from.iter().any(|part| !part["origin"].is_string() || !part["kind"].is_string()) {
        return Err("it comes from nowhere".into());
    }
    let marked = block.get("cache_control").is_some();
    if marked != row["breakpoint"].is_string() {
        return Err("its breakpoint is elsewhere".into());
    }
    let bytes: u64 = from.iter().filter_map(|part| part["bytes"].as_u64()).sum();
    match block["text"].as_str() {
        // A result with an image is told as one block, and sent as several parts.
        Some(text) if block["type"] == "text" && text.len() as u64 != bytes && from.len() == 1 => {
            Err(format!("it has {} bytes", text.len()))
        }
        _ => Ok(()),
    }
}

#[test]
fn the_first_difference_of_two_snapshots_is_named_with_its_origin() {
    let sandbox = Sandbox::new();
    let (first, second) = (snapshot("strata_first_request"), snapshot("strata_second_request"));
    // The second snapshot goes on from what this model's request left.
    let model = ["--model", "claude-sonnet-5"];
    let text = sandbox.text(&[&["request", "--diff", &first, &second], &model[..]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "The first 12 blocks are equal; the first difference is in messages[9].content[0].");
    assert!(
        lines[1].contains(": rule:tail header, rule:clock, rule:working directory, git · from character 0: "),
        "{text}"
    );
    assert!(lines[2].ends_with(": message:m2 · from character 0: I look at who makes one."), "{text}");
    let tiers =
        sandbox.text(&["request", "--diff", &first, &second, "--layout", "tiers", "--model", "gpt-5.6"]);
    assert!(
        tiers.starts_with("The first 2 blocks are equal; the first difference is in input[1].content[0].\n"),
        "{tiers}"
    );
    assert_eq!(sandbox.text(&["request", "--diff", &first, &first]), "Both requests have the same blocks.\n");
}

#[test]
fn bodies_are_compared_with_or_without_their_origins() {
    let sandbox = Sandbox::new();
    let file = snapshot("plain");
    let keep = |name: &str, args: &[&str]| {
        let args = [&["request"], args, &["--snapshot", &file, "--layout", "tiers", "--json"]].concat();
        sandbox.write(&format!("work/{name}"), sandbox.bytes(&args));
    };
    keep("a.json", &["Where is it?"]);
    keep("b.json", &["Where was it?"]);
    keep("c.json", &["Where was it?", "--origins"]);
    let first = "The first 3 blocks are equal; the first difference is in messages[2].content[0].\n  \
        a.json: text of the user · from character 6: Where is it?\n";
    assert_eq!(
        sandbox.text(&["request", "--diff", "a.json", "b.json"]),
        format!("{first}  b.json: text of the user · from character 6: Where was it?\n")
    );
    assert_eq!(
        sandbox.text(&["request", "--diff", "a.json", "c.json"]),
        format!("{first}  c.json: message:prompt · from character 6: Where was it?\n")
    );
    sandbox.write("work/d.json", "{}");
    let words = sandbox.failure(&["request", "--diff", "a.json", "d.json"]);
    assert!(
        words.starts_with(
            "hardpan: d.json is neither a snapshot (from `hardpan snapshot`) nor a request body"
        ),
        "{words}"
    );
}

#[test]
fn the_memory_of_one_request_makes_the_next_one_go_on() {
    let sandbox = Sandbox::new();
    let file = snapshot("strata_first_request");
    let target = ["--model", "claude-sonnet-5", "--json", "--next-memory", "memory.json"];
    sandbox.bytes(&[&["request", "--snapshot", &file], &target[..]].concat());
    let written: Value =
        serde_json::from_slice(&fs::read(sandbox.work().join("memory.json")).unwrap()).unwrap();
    let second: Value =
        serde_json::from_slice(&fs::read(snapshot("strata_second_request")).unwrap()).unwrap();
    assert_eq!(second["memory"], written, "the second snapshot has the memory that the first request leaves");
    let words = sandbox.failure(&["request", "--snapshot", &file, "--next-memory", "no/such/folder"]);
    assert!(words.starts_with("hardpan: cannot write no/such/folder"), "{words}");
}

#[test]
fn a_long_conversation_is_detached_into_a_panel_that_stays() {
    let sandbox = Sandbox::new();
    let message = |n: usize| {
        let role = if n.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"id": format!("m{n}"), "role": role, "content": format!("{n}: {}", "some words ".repeat(150))})
    };
    let mut file = json!({
        "version": 1, "now": "2026-02-19T14:00:00Z", "system": {"agent": "Be brief."}, "prompt": "Go on.",
        "messages": (0..60).map(message).collect::<Vec<_>>()
    });
    sandbox.write("work/first.json", file.to_string());
    let args = ["--layout", "panels", "--json", "--next-memory", "memory.json"];
    let first = sandbox.json(&[&["request", "--snapshot", "first.json"], &args[..]].concat());
    let panel = texts(&first["messages"][2])[0];
    assert!(
        panel.starts_with("======= [H1] Conversation history (m0 to m25) =======\n[m0] user: 0: some words"),
        "{panel}"
    );
    file["memory"] = serde_json::from_slice(&fs::read(sandbox.work().join("memory.json")).unwrap()).unwrap();
    assert_eq!(file["memory"]["panels"]["histories"][0]["messages"].as_array().map(Vec::len), Some(26));
    file["now"] = json!("2026-02-19T14:05:00Z");
    sandbox.write("work/second.json", file.to_string());
    let second = sandbox.json(&[&["request", "--snapshot", "second.json"], &args[..]].concat());
    assert_eq!(second["messages"].as_array().unwrap()[..3], first["messages"].as_array().unwrap()[..3]);
}

#[test]
fn a_name_cannot_steer_the_terminal() {
    let sandbox = Sandbox::new();
    let name = "evil\x1b[2J\u{202e}name.txt";
    sandbox.write(&format!("work/{name}"), "x");
    for args in [&["request", "Hi", name][..], &["context", name], &["request", "Hi", "gone\x1b[2J.txt"]] {
        let text = sandbox.text(args);
        assert!(text.chars().all(|c| (!c.is_control() || c == '\n') && c != '\u{202e}'), "{text:?}");
    }
    // An unknown model is tried, with a warning that names it.
    let tried = sandbox.run(&["request", "Hi", "--model", "evil\x1b[2J"]);
    let words = format!("{}{}", String::from_utf8_lossy(&tried.stdout), tried.stderr);
    assert!(!words.contains('\x1b'), "{words:?}");
}

#[test]
fn a_folder_s_own_settings_wait_for_trust() {
    let sandbox = Sandbox::new();
    sandbox.write("work/.hardpan/prompts/agent.md", "The folder's agent.\n");
    sandbox.write("work/.hardpan/config.toml", "layout = \"inline\"\n");
    let note = "hardpan: ignoring this folder's own settings (.hardpan): read them, then run `hardpan trust` to use them\n";
    let before = sandbox.run(&["prompt"]);
    assert_eq!((before.code, &*before.stderr), (Some(0), note));
    assert!(String::from_utf8(before.stdout).unwrap().starts_with("# Role\n"));

    let trusted = sandbox.run(&["trust"]);
    assert_eq!((trusted.code, &*trusted.stdout), (Some(0), &b""[..]));
    assert!(
        trusted.stderr.ends_with(" is trusted: Hardpan now uses its .hardpan/ settings and prompts\n"),
        "{}",
        trusted.stderr
    );
    assert!(
        sandbox.text(&["prompt"]).starts_with("The folder's agent.\n\n# Role\n"),
        "its layout and its text"
    );
    assert_eq!(sandbox.text(&["prompt", "--file", "agent.md"]), "The folder's agent.\n");

    assert_eq!(sandbox.run(&["trust", "--remove"]).code, Some(0));
    assert_eq!(sandbox.run(&["prompt"]).stderr, note);
}

#[test]
fn texts_and_defaults_can_be_set() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "config/config.toml",
        "provider = \"openai\"\nmodel = \"gpt-4.1\"\nlayout = \"tiers\"\nmax_tokens = 1000\n",
    );
    sandbox.write("config/prompts/phrases.toml", "[tiers]\nok = \"Fine.\"\n");
    sandbox.write("config/prompts/system.md", "Be brief.\n");
    sandbox.write("config/prompts/system_extra.md", "Be kind.\n");
    sandbox.write("work/a.txt", "a\n");
    let body = sandbox.json(&["request", "Hi", "a.txt", "--json", "--no-tools"]);
    assert_eq!((&body["model"], &body["max_completion_tokens"]), (&json!("gpt-4.1"), &json!(1000)));
    let messages = list(&body["messages"]);
    assert_eq!(messages[0], json!({"role": "system", "content": "Be brief.\n\nBe kind."}));
    assert_eq!(messages[2], json!({"role": "assistant", "content": "Fine."}));
    let file = snapshot("plain");
    let other = sandbox.json(&[
        "request",
        "--snapshot",
        &file,
        "--model",
        "claude-sonnet-5",
        "--layout",
        "inline",
        "--json",
    ]);
    assert_eq!(other["model"], "claude-sonnet-5", "flags come before settings");
}

#[test]
fn a_snapshot_of_the_folder_makes_the_same_request() {
    let sandbox = Sandbox::new();
    sandbox.write("work/src/a.rs", "fn a() {}\n");
    sandbox.write("work/AGENTS.md", "Be kind.\n");
    let what = [&["What is this?", "src/a.rs"], &NOW[..]].concat();
    let printed = sandbox.bytes(&[&["snapshot", "--layout", "tiers"], &what[..]].concat());
    sandbox.write("work/snapshot.json", &printed);
    fs::remove_file(sandbox.work().join("src/a.rs")).unwrap();
    fs::remove_file(sandbox.work().join("AGENTS.md")).unwrap();
    let again = sandbox.bytes(&["snapshot", "--snapshot", "snapshot.json"]);
    assert_eq!(printed, again, "its written form is stable");
    let body =
        sandbox.json(&["request", "--snapshot", "snapshot.json", "--layout", "tiers", "--json"]).to_string();
    for part in [
        "Be kind.",
        "# File Tree (2 files)\\n\\nAGENTS.md\\nsrc/a.rs",
        "src/a.rs\\n```\\nfn a() {}\\n\\n```",
        "What is this?",
    ] {
        assert!(body.contains(part), "{part}: {body}");
    }
}

#[test]
fn the_schema_in_the_documents_is_the_one_in_use() {
    let documented = fs::read_to_string(support::tests().join("../../../docs/snapshot.schema.json")).unwrap();
    assert_eq!(
        Sandbox::new().text(&["snapshot", "--schema"]),
        documented,
        "`hardpan snapshot --schema` prints it"
    );
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["models", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn hardpan_s_own_documents_are_listed_and_printed() {
    let sandbox = Sandbox::new();
    let listed: Vec<Value> = serde_json::from_value(sandbox.json(&["docs", "--json"])).unwrap();
    assert!(listed.iter().any(|document| document["name"] == "agent"));
    for name in ["agent", "AGENT.md", "docs/agent.md"] {
        assert!(sandbox.text(&["docs", name]).starts_with("# The agent\n"), "{name}");
    }
    let words = sandbox.failure(&["docs", "agnet"]);
    assert!(words.contains("did you mean agent") && words.contains("hardpan docs"), "{words}");
    let system = sandbox.text(&["prompt", "--snapshot", &snapshot("tools")]);
    assert!(system.contains("`hardpan docs NAME`"), "the model is told where to look");
}

#[test]
fn the_doctor_says_what_is_missing_and_what_to_do() {
    let sandbox = Sandbox::new();
    let text = sandbox.text(&["doctor"]);
    assert!(text.contains("!  keys       none: an offline assistant answers\n"), "{text}");
    assert!(text.contains("set ANTHROPIC_API_KEY"), "{text}");
    let checks = sandbox.json(&["doctor", "--json"]);
    let outcome = |name: &str| {
        let found = checks.as_array().unwrap().iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("no check {name}"))["outcome"].as_str().unwrap().to_owned()
    };
    assert_eq!([outcome("settings"), outcome("sessions"), outcome("folder")], ["ok", "ok", "ok"]);
    sandbox.write("config/config.toml", "model = 3\n");
    let ran = sandbox.run(&["doctor"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("1 of "), "{}", ran.stderr);
    assert!(String::from_utf8(ran.stdout).unwrap().contains("x  settings   "));
}

#[test]
fn keys_are_stored_and_the_doctor_says_which_is_used_and_why() {
    let sandbox = Sandbox::new();
    let stored = sandbox.run_with_input(&["key", "openai"], b"hush-1234\n");
    assert_eq!(stored.code, Some(0), "{}", stored.stderr);
    assert!(stored.stderr.contains("keys.toml") && !stored.stderr.contains("hush"), "{}", stored.stderr);
    let used = |expected: &str| {
        let text = sandbox.text(&["doctor"]);
        assert!(text.contains(expected), "{expected}: {text}");
    };
    used("ok keys       found for openai (keys.toml); openai is used, the only one with a key\n");
    assert_eq!(sandbox.run_with_input(&["key", "xai"], b"hush-5678\n").code, Some(0));
    used("; openai is used, the first in the order of preference; ");
    sandbox.write("config/config.toml", "provider = \"xai\"\n");
    used("; xai is used, because `provider` in config.toml says so\n");
    sandbox.write("config/config.toml", "provider = \"gemini\"\n");
    used("; but gemini is used, because `provider` in config.toml says so, and has none\n");
    assert!(sandbox.failure(&["key", "nosuch"]).contains("unknown provider"));
    assert_eq!(sandbox.run_with_input(&["key", "xai"], b"two words\n").code, Some(1));
}

#[test]
fn a_guide_is_written_once_and_never_over_another() {
    let sandbox = Sandbox::new();
    sandbox.write("work/Cargo.toml", "[package]\nname = \"x\"\n");
    let proposal = sandbox.json(&["init", "--json"]);
    assert_eq!((&proposal["exists"], &proposal["written"]), (&false.into(), &false.into()));
    let path = sandbox.work().join("AGENTS.md");
    assert!(!path.exists() && sandbox.run(&["init"]).code == Some(0) && !path.exists(), "nobody said yes");
    assert_eq!(sandbox.run(&["init", "--yes"]).code, Some(0));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("- test: `cargo test` (Cargo.toml)\n"), "{text}");
    fs::write(&path, "Mine.\n").unwrap();
    let shown = String::from_utf8(sandbox.run(&["init", "--yes"]).stdout).unwrap();
    assert!(shown.contains("-Mine.\n") && fs::read_to_string(&path).unwrap() == "Mine.\n", "{shown}");
}

#[test]
fn completions_and_the_manual_know_every_command() {
    let sandbox = Sandbox::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = sandbox.text(&["completions", shell]);
        assert!(["doctor", "audit", "replay"].iter().all(|name| script.contains(name)), "{shell}");
    }
    let page = sandbox.text(&["man"]);
    assert!(page.contains("HARDPAN AUDIT") && page.contains("discover"), "{page}");
}
