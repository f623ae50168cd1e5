//! Whatever is wrong with the input: never a crash, always the name of it, nothing overwritten.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::fs;

use serde_json::{Value, json};
use support::{LAYOUTS, Sandbox, snapshot};

/// The words for an error must be the whole of standard error, after the program's name.
fn assert_says(sandbox: &Sandbox, args: &[&str], words: &str) {
    assert_eq!(sandbox.failure(args), format!("hardpan: {words}\n"));
}

/// The words must begin so; the rest lists what would be right.
fn assert_begins(sandbox: &Sandbox, args: &[&str], words: &str) {
    let said = sandbox.failure(args);
    assert!(said.starts_with(&format!("hardpan: {words}")), "{said}");
}

/// What a request left out, by key.
fn left_out(sandbox: &Sandbox, args: &[&str]) -> Vec<(String, String)> {
    let context = sandbox.json(&[&["context", "--json"], args].concat());
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    context["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (text(&entry["key"]), text(&entry["reason"])))
        .collect()
}

/// The first bytes of a PNG of this size: enough to know what it is.
fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    bytes.extend(width.to_be_bytes());
    bytes.extend(height.to_be_bytes());
    bytes.extend(b"\x08\x02\0\0\0\0\0\0\0");
    bytes
}

#[test]
fn files_that_cannot_be_shown_are_listed_and_the_request_is_made() {
    let sandbox = Sandbox::new();
    sandbox.write("work/good.rs", "fn good() {}\n");
    sandbox.write("work/latin.txt", b"caf\xe9\n");
    sandbox.write("work/binary.dat", b"\0\x01\x02");
    sandbox.write("work/folder/inside.txt", "x");
    sandbox.write("work/wide.png", png(8001, 10));
    sandbox.write("work/long.txt", "a line of text\n".repeat(80_000));
    let names = ["good.rs", "gone.txt", "latin.txt", "binary.dat", "folder", "wide.png", "long.txt"];
    let expected = [
        ("file:long.txt (the rest)", "cut: the first 1048575 of 1200000 bytes are shown"),
        ("file:gone.txt", "does not exist: check the spelling"),
        (
            "file:latin.txt",
            "is not UTF-8 (byte 3 is the first wrong one): convert it, for example with iconv",
        ),
        ("file:binary.dat", "is binary (byte 0 is a control character): only text can be shown"),
        ("file:folder", "is a directory: name a file in it"),
        ("file:wide.png", "the image is 8001×10 pixels; at most 8000×8000 are accepted: scale it down"),
    ];
    let listed = left_out(&sandbox, &names);
    assert_eq!(listed, expected.map(|(key, reason)| (key.to_owned(), reason.to_owned())));
    let args = [&["request", "Hi"], &names[..], &["--layout", "tiers", "--json"]].concat();
    let body = sandbox.json(&args).to_string();
    assert!(body.contains("good.rs\\n```\\nfn good() {}\\n\\n```"), "what can be shown is shown");
    assert!(!body.contains("latin.txt\\n```"), "nothing stands for what cannot");
}

#[cfg(unix)]
#[test]
fn a_named_pipe_is_not_waited_for() {
    let sandbox = Sandbox::new();
    let pipe = sandbox.work().join("pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let listed = left_out(&sandbox, &["pipe"]);
    let reason = "is a named pipe, not a regular file: copy what it holds into a file first";
    assert!(listed.contains(&("file:pipe".to_owned(), reason.to_owned())), "{listed:?}");
}

#[test]
fn where_no_file_could_be_read_there_is_no_section_of_files() {
    let sandbox = Sandbox::new();
    let body = sandbox.json(&["request", "Hi", "gone.txt", "--layout", "tiers", "--json"]);
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body:#}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let sandbox = Sandbox::new();
    assert_says(
        &sandbox,
        &["request", "Hi", "--provider", "antropic"],
        "unknown provider \"antropic\" (did you mean anthropic?); `hardpan providers` lists all that are known",
    );
    assert_says(
        &sandbox,
        &["context", "--layout", "stratta"],
        "unknown layout \"stratta\" (did you mean strata?); use strata, panels, tiers or inline",
    );
}

#[test]
fn a_model_that_no_list_has_is_used_all_the_same_with_a_warning() {
    let sandbox = Sandbox::new();
    let warning = |args: &[&str]| {
        let ran = sandbox.run(&[&["request", "Hi", "--json"], args].concat());
        let body: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        (body["model"].as_str().unwrap().to_owned(), ran.stderr)
    };
    let assumed = "assuming a window of 200000 tokens, unknown prices and no settings for thinking; describe it in \
        models.json, or check the name with `hardpan models --check`";
    assert_eq!(
        warning(&["--model", "claude-sonet-5"]),
        (
            "claude-sonet-5".to_owned(),
            format!(
                "hardpan: anthropic/claude-sonet-5 is not in the list of models (did you mean claude-sonnet-5, \
                 claude-sonnet-5-5 or claude-sonnet-4-6?): {assumed}\n"
            )
        )
    );
    let (model, words) = warning(&["--provider", "openai", "--model", "claude-sonnet-5"]);
    assert_eq!(model, "claude-sonnet-5");
    assert!(
        words.starts_with(
            "hardpan: openai/claude-sonnet-5 is not in the list of models (did you mean anthropic/claude-sonnet-5?)"
        ),
        "{words}"
    );
    assert_eq!(warning(&["--model", "claude-sonnet-5"]), ("claude-sonnet-5".into(), String::new()));
    // Nothing in the name tells the provider.
    let expected = format!(
        "hardpan: anthropic/sonet is not in the list of models (did you mean sonnet, claude-sonnet-5 or \
         claude-sonnet-5-5?): it goes to anthropic unless you name another with --provider; {assumed}\n"
    );
    assert_eq!(warning(&["--model", "sonet"]), ("sonet".into(), expected));
    let (model, words) = warning(&["--provider", "openai", "--model", "nosuchmodel"]);
    assert!(model == "nosuchmodel" && words.contains("openai/nosuchmodel"), "{words}");
    assert!(!words.contains("--provider"), "{words}");
}

#[test]
fn a_model_that_tells_no_provider_goes_to_the_only_one_with_a_key() {
    let sandbox = Sandbox::new();
    let named = |keys: &[&str]| {
        let mut command = sandbox.command(&["request", "Hi", "--model", "nosuchmodel"]);
        command.envs(keys.iter().map(|key| (key, "secret")));
        let ran = command.output().unwrap();
        let words = String::from_utf8(ran.stderr).unwrap();
        assert!(ran.status.success() && !words.contains("secret"), "{words}");
        words.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(named(&["OPENAI_API_KEY"]), "openai/nosuchmodel");
    assert_eq!(named(&["OPENAI_API_KEY", "GEMINI_API_KEY"]), "anthropic/nosuchmodel");
    assert_eq!(named(&[]), "anthropic/nosuchmodel");
}

#[test]
fn an_image_that_no_provider_takes_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("work/old.bmp", b"BM0000");
    sandbox.write("work/text.png", "no image");
    sandbox.write("work/wide.png", png(8001, 10));
    let other = "is no PNG, JPEG, GIF or WebP image, whatever its name says: convert it to one of these";
    assert_says(&sandbox, &["request", "Hi", "--image", "old.bmp"], &format!("old.bmp {other}"));
    assert_says(&sandbox, &["request", "Hi", "--image", "text.png"], &format!("text.png {other}"));
    assert_says(
        &sandbox,
        &["request", "Hi", "--image", "wide.png"],
        "wide.png cannot be sent: the image is 8001×10 pixels; at most 8000×8000 are accepted: scale it down",
    );
    assert_says(
        &sandbox,
        &["request", "Hi", "--image", "gone.png"],
        "gone.png does not exist: check the spelling",
    );
}

#[test]
fn a_malformed_snapshot_is_named_with_its_line() {
    let sandbox = Sandbox::new();
    let refuse = |json: &str, line: u32, words: &str| {
        let path = sandbox.write("work/snapshot.json", json);
        let said = sandbox.failure(&["request", "--snapshot", "snapshot.json"]);
        assert!(
            said.starts_with(&format!("hardpan: snapshot.json:{line}:")) && said.contains(words),
            "{said}"
        );
        assert!(
            said.ends_with("The format is described in docs/snapshot.md; `hardpan snapshot` makes one.\n"),
            "{said}"
        );
        assert_eq!(fs::read_to_string(path).unwrap(), json, "nothing is overwritten");
    };
    let head = "{\n\"version\": 1,\n\"now\": \"2026-02-19T14:00:00Z\"";
    let with = |rest: &str| format!("{head},\n{rest}\n}}");
    refuse("{\n\"version\": 1,\n", 3, "EOF while parsing");
    refuse(&with("\"prompt\": ,"), 4, "expected value (at prompt)");
    refuse(&with("\"promt\": \"Hi\""), 4, "unknown field `promt`, expected one of `version`, `now`");
    let message = "{\"id\": \"m\", \"role\": \"user\",\n\"contnet\": \"x\", \"content\": \"y\"}";
    refuse(
        &with(&format!("\"messages\": [\n{message}]")),
        6,
        "unknown field `contnet` in a message of the role `user`",
    );
    refuse(&with("\"prompt\": \"a\",\n\"prompt\": \"b\""), 5, "duplicate field `prompt`");
    refuse(
        &with("\"files\": [\n{\"path\": 5}]"),
        5,
        "invalid type: integer `5`, expected a string (at files[0].path)",
    );
    refuse(
        &with("\"prompt\": {\"id\": \"m\", \"txt\": \"\"}"),
        4,
        "unknown field `txt`, expected `id` or `text` (at prompt",
    );
    refuse(
        &with(
            "\"messages\": [\n{\"id\": \"m1\", \"role\": \"user\", \"content\": \"\"},\n{\"id\": \"m2\", \"role\": \"usr\"}]",
        ),
        6,
        "unknown variant `usr`, expected one of `user`, `assistant`",
    );
    refuse(
        &with("\"messages\": [\n{\"id\": \"m1\", \"role\": \"user\", \"content\": 5}]"),
        5,
        "invalid type: integer `5`",
    );
    refuse(
        &with("\"images\": [{\"media_type\": \"image/bmp\", \"data\": \"\"}]"),
        4,
        "unknown variant `image/bmp`",
    );
    refuse("{\"version\": 1}", 1, "missing field `now`");
    refuse("{\"version\": 1, \"now\": \"yesterday\"}", 1, "");
    refuse(&format!("{head}}} and more"), 3, "trailing characters");
}

#[test]
fn a_snapshot_that_contradicts_itself_is_refused() {
    let sandbox = Sandbox::new();
    let refuse = |fields: Value, words: &str| {
        let mut file = json!({"version": 1, "now": "2026-02-19T14:00:00Z", "prompt": "Hi"});
        file.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        sandbox.write("work/s.json", file.to_string());
        assert_says(&sandbox, &["request", "--snapshot", "s.json"], &format!("s.json: {words}"));
    };
    refuse(
        json!({"version": 2}),
        "this program reads snapshot version 1, not 2; make a new one with `hardpan snapshot`",
    );
    refuse(
        json!({"files": [{"path": "a", "content": ""}, {"path": "a", "content": ""}]}),
        "two items have the key `file:a`; keys must be unique",
    );
    refuse(
        json!({"items": [{"id": "P1", "header": "A", "content": ""}, {"id": "P1", "header": "B", "content": ""}]}),
        "two items have the key `panel:P1`; keys must be unique",
    );
    refuse(
        json!({"images": [{"media_type": "image/png", "data": "", "width": 1, "height": 9000}]}),
        "image 0: the image is 1×9000 pixels; at most 8000×8000 are accepted: scale it down",
    );
    refuse(
        json!({"tools": [{"name": "read"}, {"name": "read file"}]}),
        "tools[1]: the name \"read file\" should be 1 to 64 letters, digits, `_` or `-`",
    );
    refuse(
        json!({"tools": [{"name": "read"}, {"name": "read"}]}),
        "tools[1]: \"read\" is declared twice; rename one of them",
    );
    refuse(
        json!({"tools": [{"name": "read", "parameters": {"path": "string"}}]}),
        "tools[0]: the parameters of \"read\" should be a schema of \"type\": \"object\"",
    );
}

#[test]
fn an_image_of_the_conversation_that_no_provider_takes_is_left_out() {
    let sandbox = Sandbox::new();
    let image = json!({"type": "image", "media_type": "image/png", "data": "", "width": 9000, "height": 1});
    let content = json!([{"type": "text", "text": "Look."}, image]);
    let message = json!({"id": "m1", "role": "user", "content": content});
    let file = json!({"version": 1, "now": "2026-02-19T14:00:00Z", "messages": [message]});
    sandbox.write("work/s.json", file.to_string());
    let reason = "one of its images is not sent: the image is 9000×1 pixels; at most 8000×8000 are accepted: scale it down";
    assert_eq!(left_out(&sandbox, &["--snapshot", "s.json"]), [("message:m1".to_owned(), reason.to_owned())]);
}

#[test]
fn a_snapshot_that_cannot_be_read_is_named() {
    let sandbox = Sandbox::new();
    sandbox.write("work/latin.json", b"\"caf\xe9\"");
    assert_begins(&sandbox, &["request", "--snapshot", "gone.json"], "cannot read gone.json");
    assert_begins(&sandbox, &["request", "--snapshot", "."], "cannot read .");
    assert_begins(&sandbox, &["request", "--snapshot", "latin.json"], "cannot read latin.json");
}

#[test]
fn malformed_settings_are_named_with_their_line_and_left_alone() {
    let sandbox = Sandbox::new();
    let refuse = |name: &str, content: &str, words: &str| {
        let path = sandbox.write(&format!("config/{name}"), content);
        assert_begins(&sandbox, &["request", "Hi"], &format!("{}{words}", path.display()));
        assert_eq!(fs::read_to_string(&path).unwrap(), content, "nothing is overwritten");
        fs::remove_file(path).unwrap();
    };
    refuse(
        "config.toml",
        "layout = \"tiers\"\nmodel = 5\n",
        ":2: invalid type: integer `5`, expected a string",
    );
    refuse(
        "config.toml",
        "\nlayot = \"tiers\"\n",
        ":2: unknown field `layot`, expected one of `provider`, `model`",
    );
    refuse("config.toml", "layout = tiers\n", ":1: ");
    refuse(
        "config.toml",
        "\ncompact_at = 80\n",
        ":2: 80 is out of range: expected a number from 0 (never) to 1",
    );
    refuse("prompts/phrases.toml", "[tiers]\nok = Fine\n", ":2: ");
    refuse(
        "prompts/phrases.toml",
        "[tiers]\n\nokay = \"Fine.\"\n",
        ":3: unknown field `okay`, expected one of `repo_map`",
    );
    refuse("prompts/phrases.toml", "[tiers]\nok = 5\n", ":2: invalid type: integer `5`, expected a string");
    refuse(
        "prompts/sistem.md",
        "Hello.",
        ": there is no prompt of this name; rename it to one of system.md, agent.md",
    );
    refuse(
        "prompts/system.md",
        " \n",
        " is empty: a model needs some text here; remove the file to use the built-in one",
    );
    refuse(
        "models.json",
        "{\"providers\": [{\"id\": \"mine\"}]}",
        ": provider \"mine\" has no \"base_url\"; add one",
    );
    refuse("models.json", "{\"modles\": []}", ": unknown field `modles`, expected one of");
}

#[test]
fn wrong_options_are_answered_with_what_is_expected() {
    let sandbox = Sandbox::new();
    let ran = sandbox.run(&["request", "Hi", "--origins"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(2), &b""[..]));
    assert!(ran.stderr.contains("--json"), "{}", ran.stderr);
    assert_eq!(sandbox.run(&["reqest"]).code, Some(2));
    let hint = r#"to send a prompt, use -p and quotes: hardpan -p "…""#;
    for args in [&["question"][..], &["what is this?"], &["--hud", "what is this?"], &["-p", "what", "is"]] {
        let ran = sandbox.run(args);
        assert_eq!((ran.code, &*ran.stdout), (Some(2), &b""[..]), "{args:?}");
        assert!(ran.stderr.contains(hint), "{args:?}: {}", ran.stderr);
    }
    let ran = sandbox.run(&["--hud", "sessions"]);
    assert!(ran.code == Some(2) && !ran.stderr.contains(hint), "{}", ran.stderr);
    assert_begins(
        &sandbox,
        &["request", "Hi", "--now", "yesterday"],
        "--now yesterday: expected a time, such as 2026-02-19T14:00:00Z",
    );
    assert_says(
        &sandbox,
        &["request", "Hi", "--max-tokens", "999999"],
        "--max-tokens 999999 is out of range: claude-sonnet-5-5 answers with 1 to 128000 tokens",
    );
    assert_says(
        &sandbox,
        &["prompt", "--file", "sistem.md"],
        "there is no prompt file sistem.md; choose one of system.md, agent.md, commit_message.md, compaction.md, \
         reminder.md, phrases.toml, system_extra.md",
    );
}

#[test]
fn every_history_makes_a_request_and_what_cannot_be_sent_is_listed() {
    let sandbox = Sandbox::new();
    let file = snapshot("broken_history");
    for layout in LAYOUTS {
        let listed = left_out(&sandbox, &["--snapshot", &file, "--layout", layout]);
        let keys: Vec<&str> = listed.iter().map(|(key, _)| &**key).collect();
        // The call without an answer, the result without a call, the answer too many.
        assert_eq!(keys, ["call:", "message:m1", "message:m8"], "{layout}");
    }
}

#[test]
fn what_does_not_fit_the_window_is_left_out_in_order() {
    let sandbox = Sandbox::new();
    let text = |name: &str| format!("{name} {}", "and so on ".repeat(60));
    let file = json!({
        "version": 1, "now": "2026-02-19T14:00:00Z", "system": {"agent": "Be brief."},
        "items": [{"id": "P1", "header": "Todo", "content": text("todo")}],
        "files": [{"path": "a", "content": text("a")}, {"path": "b", "content": text("b")}],
        "symbols": {"legend": text("legend"), "entries": [{"path": "c", "content": text("c")}, {"path": "d", "content": text("d")}]},
        "tree": {"files": ["a", "b", "c", "d"]},
        "pages": [{"url": "https://example.org", "content": text("page")}],
        "messages": [
            {"id": "m1", "role": "user", "content": text("first")}, {"id": "m2", "role": "assistant", "content": text("first")},
            {"id": "m3", "role": "user", "content": text("second")}, {"id": "m4", "role": "assistant", "content": text("second")}
        ],
        "prompt": "Hi"
    });
    sandbox.write("work/s.json", file.to_string());
    let order = [
        "symbols:d",
        "symbols:c",
        "legend",
        "tree",
        "url:https://example.org",
        "panel:P1",
        "file:b",
        "file:a",
        "message:m1",
        "message:m2",
        "message:m3",
        "message:m4",
    ];
    let mut most = 0;
    for window in (1000..4000).step_by(200) {
        let models =
            json!({"models": [{"id": "small", "provider": "vllm", "context": window, "max_output": 500}]});
        sandbox.write("config/models.json", models.to_string());
        let args = ["--snapshot", "s.json", "--model", "vllm/small"];
        let context = sandbox.json(&[&["context", "--json"], &args[..]].concat());
        assert!(context["total_tokens"].as_u64() <= context["max_input_tokens"].as_u64(), "{context:#}");
        let listed = left_out(&sandbox, &args);
        let keys: Vec<&str> = listed.iter().map(|(key, _)| &**key).collect();
        assert_eq!(keys[..], order[..keys.len()], "{window}");
        assert!(listed.iter().all(|(_, reason)| reason == "no room: the window is full"));
        most = most.max(keys.len());
    }
    assert!(most >= 9, "the smallest window reaches the conversation: {most}");
    let prompt = "too long ".repeat(4000);
    let words = sandbox.failure(&["request", &prompt, "--model", "vllm/small"]);
    assert!(words.contains("the system prompt, the tools and the prompt alone are too long"), "{words}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_data_folder_that_cannot_be_made_is_named_with_the_variable_for_another() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&["-p", "hi"]);
    let output = command.env("HARDPAN_DATA_DIR", "/proc/none").output().unwrap();
    let words = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{words}");
    assert!(
        words.contains("/proc/none/sessions/") && words.contains("its folder cannot be created"),
        "{words}"
    );
    assert!(words.contains("name another data folder in HARDPAN_DATA_DIR"), "{words}");
    assert!(!words.contains("name another session"), "{words}");
}

#[test]
fn a_file_or_a_folder_that_cannot_be_read_is_no_workspace() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("work/notes.txt", "x");
    let name = file.to_str().unwrap();
    for args in [["context", "--dir", name], ["map", "--dir", name], ["log", "--dir", name]] {
        assert_says(&sandbox, &args, &format!("{name} is a file: name the folder it is in"));
    }
    assert_says(
        &sandbox,
        &["-p", "Hi", "--dir", name],
        &format!("{name} is a file: name the folder it is in"),
    );
}

/// Runs a command that may use a few gigabytes of addresses: a program that reads all of the disk into
/// memory fails.
#[cfg(target_os = "linux")]
fn run_within_bounds(sandbox: &Sandbox, args: &[&str]) -> (String, String) {
    let mut command = sandbox.command(args);
    let program = command.get_program().to_owned();
    let mut bounded = std::process::Command::new("sh");
    bounded.args(["-c", "ulimit -v 6000000; exec \"$0\" \"$@\""]).arg(program).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => bounded.env(name, value),
            None => bounded.env_remove(name),
        };
    }
    bounded.current_dir(command.current_dir(sandbox.work()).get_current_dir().unwrap());
    let output = bounded.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    (text(&output.stdout), text(&output.stderr))
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_holds_everything_is_looked_at_within_bounds() {
    let sandbox = Sandbox::new();
    let (_, said) = run_within_bounds(&sandbox, &["context", "--dir", "/"]);
    assert!(said.contains("/ is not a project: only a part of its files is listed and indexed"), "{said}");
    for folder in ["/proc", "/sys"] {
        let (context, _) = run_within_bounds(&sandbox, &["context", "--dir", folder, "--json"]);
        let context: Value = serde_json::from_str(&context).unwrap();
        assert!(context["total_tokens"].as_u64().unwrap() < 20_000, "{folder}");
    }
}
