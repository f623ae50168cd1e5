//! What the commands print, and where.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};
use support::{Sandbox, snapshot, texts};

const NOW: [&str; 2] = ["--now", "2026-02-19T14:00:00Z"];
const LAYOUTS: [&str; 4] = ["strata", "panels", "tiers", "inline"];

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
        (&json!("claude-sonnet-5"), &json!(32000)),
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
    assert_eq!(texts(&body["messages"][0]), ["Grüße\nvon hier"]);
    let ran = sandbox.run_with_input(&["request", "-"], b"\xff\xfe");
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.starts_with("hardpan: the prompt on standard input cannot be read as UTF-8"),
        "{}",
        ran.stderr
    );
}

#[test]
fn the_time_of_the_request_can_be_given() {
    let sandbox = Sandbox::new();
    let body = sandbox.json(&["request", "Hi", "--json", "--now", "2026-02-19T15:00:00.9+01:00"]);
    let tail = texts(&body["messages"][0])[1];
    assert!(
        tail.starts_with("[state of the workspace]\nCurrent date and time: 2026-02-19T14:00:00Z\n"),
        "{tail}"
    );
    let file = snapshot("plain");
    let system =
        sandbox.text(&["prompt", "--snapshot", &file, "--layout", "tiers", "--now", "2027-01-01T00:00:00Z"]);
    assert!(
        system
            .ends_with("Current date and time: 2027-01-01T00:00:00Z\nCurrent working directory: /srv/app\n"),
        "{system}"
    );
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
    let text = sandbox.text(&["request", "--diff", &first, &second]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "The first 12 blocks are the same; the first that differs is messages[9].content[0]."
    );
    assert!(
        lines[1].contains(": rule:tail header, rule:clock, rule:working directory, git · from character 0: "),
        "{text}"
    );
    assert!(lines[2].ends_with(": message:m2 · from character 0: I look at who makes one."), "{text}");
    let tiers =
        sandbox.text(&["request", "--diff", &first, &second, "--layout", "tiers", "--model", "gpt-5.6"]);
    assert!(
        tiers.starts_with(
            "The first 1 blocks are the same; the first that differs is messages[0].content[0].\n"
        ),
        "{tiers}"
    );
    assert_eq!(sandbox.text(&["request", "--diff", &first, &first]), "The requests have the same blocks.\n");
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
    let first = "The first 3 blocks are the same; the first that differs is messages[2].content[0].\n  \
        a.json: origin not known · from character 6: Where is it?\n";
    assert_eq!(
        sandbox.text(&["request", "--diff", "a.json", "b.json"]),
        format!("{first}  b.json: origin not known · from character 6: Where was it?\n")
    );
    assert_eq!(
        sandbox.text(&["request", "--diff", "a.json", "c.json"]),
        format!("{first}  c.json: message:prompt · from character 6: Where was it?\n")
    );
    sandbox.write("work/d.json", "{}");
    let words = sandbox.failure(&["request", "--diff", "a.json", "d.json"]);
    assert!(words.starts_with("hardpan: d.json is neither a snapshot nor a request body"), "{words}");
}

#[test]
fn the_memory_of_one_request_makes_the_next_one_go_on() {
    let sandbox = Sandbox::new();
    let file = snapshot("strata_first_request");
    sandbox.bytes(&["request", "--snapshot", &file, "--json", "--next-memory", "memory.json"]);
    let written: Value =
        serde_json::from_slice(&fs::read(sandbox.work().join("memory.json")).unwrap()).unwrap();
    let second: Value =
        serde_json::from_slice(&fs::read(snapshot("strata_second_request")).unwrap()).unwrap();
    assert_eq!(second["memory"], written, "the second snapshot has the memory that the first request leaves");
    let words = sandbox.failure(&["request", "--snapshot", &file, "--next-memory", "no/such/folder"]);
    assert!(words.starts_with("hardpan: no/such/folder cannot be written"), "{words}");
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

fn context(sandbox: &Sandbox, name: &str, layout: &str, model: &str) -> Value {
    let file = snapshot(name);
    sandbox.json(&["context", "--snapshot", &file, "--layout", layout, "--model", model, "--json"])
}

fn assert_keys(value: &Value, documented: &[&str]) {
    let object = value.as_object().unwrap();
    for key in documented {
        assert!(object.contains_key(*key), "{key} is missing in {value}");
    }
}

#[test]
fn the_breakdown_has_every_documented_key() {
    let context = context(&Sandbox::new(), "l0_history", "tiers", "claude-sonnet-5");
    let top = [
        "model",
        "layout",
        "total_tokens",
        "max_input_tokens",
        "blocks",
        "breakdown",
        "tier_info",
        "empty_tiers",
        "breakpoints",
        "left_out",
        "price",
    ];
    assert_keys(&context, &top);
    assert_eq!((&context["model"], &context["layout"]), (&json!("claude-sonnet-5"), &json!("tiers")));
    for block in list(&context["blocks"]) {
        assert_keys(block, &["name", "tier", "tokens", "cached", "contents"]);
        list(&block["contents"])
            .iter()
            .for_each(|content| assert_keys(content, &["type", "key", "tokens", "n", "threshold"]));
    }
    let columns = ["system", "legend", "symbol_map", "tree", "files", "urls", "history", "panels", "tools"];
    let keys: BTreeSet<&str> = context["breakdown"].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, BTreeSet::from(columns));
    list(&context["breakpoints"]).iter().for_each(|mark| assert_keys(mark, &["block", "tokens", "ttl"]));
    list(&context["left_out"]).iter().for_each(|entry| assert_keys(entry, &["key", "reason"]));
    assert_keys(&context["price"], &["cold", "warm", "currency"]);
}

#[test]
fn the_tiers_say_what_they_hold() {
    let context = context(&Sandbox::new(), "l0_history", "tiers", "claude-sonnet-5");
    let mut info = context["tier_info"].clone();
    for tier in info.as_object_mut().unwrap().values_mut().filter_map(Value::as_object_mut) {
        assert!(tier.shift_remove("tokens").unwrap().as_u64() > Some(0));
    }
    assert_eq!(
        info,
        json!({
            "L0": {"symbols": 2, "files": 2, "history": 2, "has_tree": false, "has_system": true, "has_legend": true},
            "L1": {"symbols": 1, "files": 1, "history": 2, "has_tree": false},
            "L2": {"symbols": 1, "files": 1, "history": 0, "has_tree": false},
            "L3": {"symbols": 2, "files": 1, "history": 4, "has_tree": false},
            "active": {"symbols": 0, "files": 1, "history": 3, "has_tree": true, "has_urls": true, "has_history": true},
            "empty_tiers": 0
        })
    );
    assert_eq!(context["user_text"], "Stop it again.");
    let columns = &context["breakdown"];
    let map = columns["legend"].as_u64().unwrap() + columns["symbol_map"].as_u64().unwrap();
    assert_eq!(context["context_map_tokens"].as_u64(), Some(map));
    let contents = list(&context["blocks"]).iter().flat_map(|block| list(&block["contents"]));
    let entry = contents.into_iter().find(|content| content["key"] == "symbols:src/c.py").unwrap();
    assert_eq!(
        (&entry["n"], &entry["threshold"], &entry["type"]),
        (&json!(10), &json!(9), &json!("symbols"))
    );
    let left_out = list(&context["left_out"]);
    assert!(
        left_out.contains(&json!({"key": "symbols:src/open.py", "reason": "the file itself is open"})),
        "{left_out:?}"
    );
}

#[test]
fn empty_tiers_are_counted() {
    let context = context(&Sandbox::new(), "plain", "tiers", "claude-sonnet-5");
    assert_eq!((&context["empty_tiers"], &context["tier_info"]["empty_tiers"]), (&json!(3), &json!(3)));
}

#[test]
fn the_numbers_of_the_breakdown_add_up() {
    let sandbox = Sandbox::new();
    let tiers = BTreeSet::from(["L0", "L1", "L2", "L3", "active", "base", "log", "tail", "panel", "inline"]);
    let sum =
        |values: &mut dyn Iterator<Item = &Value>| values.map(|value| value.as_u64().unwrap()).sum::<u64>();
    for name in ["everything", "l0_history", "strata_second_request", "detached_and_summarised"] {
        for layout in LAYOUTS {
            for model in ["claude-sonnet-5", "gpt-5.6"] {
                let context = context(&sandbox, name, layout, model);
                let total = context["total_tokens"].as_u64().unwrap();
                let blocks = list(&context["blocks"]);
                assert_eq!(
                    sum(&mut blocks.iter().map(|block| &block["tokens"])),
                    total,
                    "{name} {layout} {model}"
                );
                assert_eq!(
                    sum(&mut context["breakdown"].as_object().unwrap().values()),
                    total,
                    "{name} {layout} {model}"
                );
                for block in blocks {
                    let contents = list(&block["contents"]).iter().map(|content| &content["tokens"]);
                    assert_eq!(
                        Some(sum(&mut contents.into_iter())),
                        block["tokens"].as_u64(),
                        "{name} {layout}: {block:#}"
                    );
                    assert!(tiers.contains(block["tier"].as_str().unwrap()), "{block:#}");
                }
                let marks = list(&context["breakpoints"]);
                assert!(marks.len() <= 4 && marks.iter().all(|mark| mark["tokens"].as_u64() <= Some(total)));
                let price = &context["price"];
                assert!(
                    price["warm"].as_f64() <= price["cold"].as_f64() && price["warm"].as_f64() > Some(0.0),
                    "{price}"
                );
            }
        }
    }
}

#[test]
fn tables_say_the_same_as_json() {
    let sandbox = Sandbox::new();
    let file = snapshot("strata_second_request");
    let table = sandbox.text(&["request", "--snapshot", &file]);
    let context = context(&sandbox, "strata_second_request", "strata", "claude-sonnet-5");
    let total = context["total_tokens"].as_u64().unwrap().to_string();
    let grouped = format!("{},{}", &total[..total.len() - 3], &total[total.len() - 3..]);
    let head = format!("anthropic/claude-sonnet-5 · strata · about {grouped} of 968,000 tokens\n");
    assert!(table.starts_with(&head), "{table}");
    assert_eq!(table.matches("◆ 5m").count(), list(&context["breakpoints"]).len(), "{table}");
    assert!(table.contains("file:src/ring.rs (update)"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    let text = sandbox.text(&["context", "--snapshot", &file]);
    assert!(text.starts_with(&head) && text.contains("\nby kind: system "), "{text}");
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
    let words = sandbox.failure(&["request", "Hi", "--model", "evil\x1b[2J"]);
    assert!(!words.contains('\x1b'), "{words:?}");
}

#[test]
fn a_folder_s_own_settings_wait_for_trust() {
    let sandbox = Sandbox::new();
    sandbox.write("work/.hardpan/prompts/agent.md", "The folder's agent.\n");
    sandbox.write("work/.hardpan/config.toml", "layout = \"inline\"\n");
    let note = "hardpan: this folder has settings of its own (.hardpan), which are not used: look at them, then run `hardpan trust`\n";
    let before = sandbox.run(&["prompt"]);
    assert_eq!((before.code, &*before.stderr), (Some(0), note));
    assert!(String::from_utf8(before.stdout).unwrap().starts_with("# Role\n"));

    let trusted = sandbox.run(&["trust"]);
    assert_eq!((trusted.code, &*trusted.stdout), (Some(0), &b""[..]));
    assert!(
        trusted.stderr.ends_with(" is trusted: its .hardpan/ settings and prompts are used\n"),
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
        "provider = \"openai\"\nmodel = \"gpt-5.5\"\nlayout = \"tiers\"\nmax_tokens = 1000\n",
    );
    sandbox.write("config/prompts/phrases.toml", "[tiers]\nok = \"Fine.\"\n");
    sandbox.write("config/prompts/system.md", "Be brief.\n");
    sandbox.write("config/prompts/system_extra.md", "Be kind.\n");
    sandbox.write("work/a.txt", "a\n");
    let body = sandbox.json(&["request", "Hi", "a.txt", "--json"]);
    assert_eq!((&body["model"], &body["max_completion_tokens"]), (&json!("gpt-5.5"), &json!(1000)));
    let messages = list(&body["messages"]);
    assert!(
        texts(&messages[0])[0].starts_with("Be brief.\n\nBe kind.\n\nCurrent date and time: "),
        "{}",
        messages[0]
    );
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
    let printed = sandbox.bytes(&[&["snapshot"], &what[..]].concat());
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
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["models", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}
