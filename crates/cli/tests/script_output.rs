//! `--output claude-stream-json`, `claude-json` and `codex-json`: whole lines, as scripts for other agents
//! read them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use test_cli::TestCli;

const SCRIPT: &str = r#"
turns:
  - when: {contains: Change it}
    reasoning: First this, then that.
    text: I change it.
    tool_calls:
      - {id: call_a, name: edit, arguments: {path: a.txt, old_text: one, new_text: two}}
      - {id: call_b, name: write, arguments: {path: b.txt, content: "new\n"}}
      - {id: call_c, name: bash, arguments: {command: "echo printed; exit 3"}}
      - {id: call_d, name: read, arguments: {path: a.txt}}
      - {id: call_e, name: read, arguments: {path: missing.txt}}
  - {when: {contains: Only write}, tool_calls: [{id: call_f, name: write, arguments: {path: c.txt, content: x}}]}
  - {when: {contains: Be long}, text: A long answer, stop: length}
default: {text: It is done.}
"#;

fn cli() -> TestCli {
    TestCli::with_script("sandbox = \"off\"", SCRIPT)
}

/// The lines of a run, and its exit code.
fn lines(cli: &TestCli, args: &[&str]) -> (Vec<Value>, Option<i32>) {
    let ran = cli.print(args);
    let text = String::from_utf8(ran.stdout).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
    (lines.collect(), ran.code)
}

/// The same without what differs from run to run: ids, times, counts of tokens, prices, folders.
fn stable(value: &Value) -> Value {
    let Value::Object(fields) = value else {
        return match value {
            Value::Array(items) => items.iter().map(stable).collect(),
            other => other.clone(),
        };
    };
    let field = |(name, value): (&String, &Value)| {
        let value = match name.as_str() {
            "session_id" | "thread_id" | "uuid" | "cwd" | "signature" if value.is_string() => {
                json!(name.to_uppercase())
            }
            "id" if value.as_str().is_some_and(|id| id.starts_with("msg_")) => json!("MESSAGE"),
            "duration_ms" | "duration_api_ms" | "total_cost_usd" | "costUSD" if value.is_number() => json!(0),
            name if value.is_number() && (name.ends_with("_tokens") || name.ends_with("Tokens")) => json!(0),
            "tools" | "slash_commands" => json!(!value.as_array().unwrap().is_empty()),
            "hardpan_version" => json!("VERSION"),
            _ => stable(value),
        };
        (name.clone(), value)
    };
    fields.iter().map(field).collect::<serde_json::Map<_, _>>().into()
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| stable(line).to_string() + "\n").collect()
}

#[test]
fn messages_and_their_result_are_lines_as_claude_code_prints_them() {
    let cli = cli();
    let (lines, code) =
        lines(&cli, &["-p", "Change it", "--yes", "--output-format", "stream-json", "--verbose"]);
    assert_eq!(code, Some(0));
    compare("claude_stream_json", &text(&lines));
    let ids: BTreeSet<&str> = lines.iter().map(|line| line["uuid"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), lines.len());
    let sessions: BTreeSet<&str> = lines.iter().map(|line| line["session_id"].as_str().unwrap()).collect();
    assert_eq!(sessions.len(), 1);
    let result = lines.last().unwrap();
    let sum = |name: &str| -> u64 {
        let answers = lines.iter().filter(|line| line["type"] == "assistant");
        answers.map(|line| line["message"]["usage"][name].as_u64().unwrap()).sum()
    };
    for name in ["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"] {
        assert_eq!(result["usage"][name].as_u64(), Some(sum(name)), "{name}");
    }
    assert!(sum("output_tokens") > 0 && result["total_cost_usd"].as_f64().unwrap() > 0.0);
    // The next prompt of the session is billed by itself.
    let session = result["session_id"].as_str().unwrap();
    let (again, _) = lines_of_result(&cli, session);
    assert_eq!((&again["session_id"], &again["num_turns"]), (&result["session_id"], &json!(1)));
    assert!(again["total_cost_usd"].as_f64() < result["total_cost_usd"].as_f64(), "{again}");
}

#[test]
fn pieces_of_answers_are_the_answers() {
    let args = ["-p", "Change it", "--yes", "--output-format", "stream-json", "--include-partial-messages"];
    let (lines, code) = lines(&cli(), &args);
    assert_eq!(code, Some(0));
    // Puts the pieces together as clients of Anthropic's API do.
    let (mut message, mut inputs, mut compared) = (Value::Null, BTreeMap::<usize, String>::new(), 0);
    for line in &lines {
        let (event, delta) = (&line["event"], &line["event"]["delta"]);
        let block = event["index"].as_u64().unwrap_or_default() as usize;
        match (line["type"].as_str().unwrap(), event["type"].as_str().unwrap_or_default()) {
            ("stream_event", "message_start") => {
                message = event["message"].clone();
                inputs.clear();
            }
            ("stream_event", "content_block_start") => {
                assert_eq!(message["content"].as_array().unwrap().len(), block);
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
            }
            ("stream_event", "content_block_delta") => match delta["type"].as_str().unwrap() {
                "input_json_delta" => {
                    *inputs.entry(block).or_default() += delta["partial_json"].as_str().unwrap();
                }
                kind => {
                    let field = kind.trim_end_matches("_delta");
                    let so_far = message["content"][block][field].as_str().unwrap().to_owned();
                    message["content"][block][field] = json!(so_far + delta[field].as_str().unwrap());
                }
            },
            ("stream_event", "message_delta") => message["stop_reason"] = delta["stop_reason"].clone(),
            ("assistant", _) => {
                let whole = &line["message"];
                let texts = |message: &Value, field: &str| -> Vec<String> {
                    let blocks = message["content"].as_array().unwrap().iter();
                    blocks.filter_map(|block| block[field].as_str().map(str::to_owned)).collect()
                };
                for field in ["type", "text", "thinking", "name", "id"] {
                    assert_eq!(texts(&message, field), texts(whole, field), "{field}");
                }
                for (block, input) in &inputs {
                    let input: Value = serde_json::from_str(input).unwrap();
                    assert_eq!(input, whole["content"][*block]["input"]);
                }
                assert_eq!(message["stop_reason"], whole["stop_reason"]);
                compared += 1;
            }
            _ => {}
        }
    }
    assert_eq!(compared, 2);
}

fn lines_of_result(cli: &TestCli, session: &str) -> (Value, Option<i32>) {
    let (lines, code) = lines(cli, &["-p", "And now?", "--resume", session, "--output", "claude-json"]);
    assert_eq!(lines.len(), 1);
    (lines[0].clone(), code)
}

#[test]
fn what_happens_is_items_of_a_turn_as_codex_prints_them() {
    let (lines, code) = lines(&cli(), &["-p", "Change it", "--yes", "--output", "codex-json"]);
    assert_eq!(code, Some(0));
    compare("codex_json", &text(&lines));
    let usage = &lines.last().unwrap()["usage"];
    assert!(usage["input_tokens"].as_u64() > usage["cached_input_tokens"].as_u64(), "{usage}");
}

#[test]
fn failures_and_denials_are_told_in_each_form() {
    let mut told = String::new();
    for (args, expected) in [
        (&["-p", "Only write"][..], 0),
        (&["-p", "Be long"], 3),
        (&["-p", "/session-that-fails"], 1),
        (&["-p", "!exit 4"], 1),
        (&["-p", "!echo mine"], 0),
    ] {
        for format in ["claude-json", "codex-json"] {
            let args = [args, &["--output", format]].concat();
            let (lines, code) = lines(&cli(), &args);
            assert_eq!(code, Some(expected), "{args:?}: {lines:?}");
            told += &format!("{}: {}\n{}\n", args[1], format, text(&lines));
        }
    }
    compare("failures", &told);
    // A provider that refuses.
    let broken =
        TestCli::with_script("[patience]\ntries = 1", "turns: [{when: {contains: never}, text: Never.}]");
    let (lines, code) = lines(&broken, &["-p", "Hello", "--output", "claude-json"]);
    let result = &lines[0];
    assert_eq!(
        (code, &result["subtype"], &result["is_error"]),
        (Some(1), &json!("error_during_execution"), &json!(true))
    );
    assert_eq!(result["errors"][0], result["result"]);
}

#[test]
fn these_forms_are_for_one_prompt() {
    let cli = cli();
    let ran = cli.print_with(&["--plain", "--output", "codex-json"], "Hello\n");
    assert_eq!((ran.code, ran.stdout.as_slice()), (Some(1), &b""[..]));
    assert!(ran.stderr.contains("give it with -p"), "{}", ran.stderr);
    let ran = cli.print(&["-p", "Hello", "--output", "json", "--output-format", "json"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

/// Compares lines with the reviewed ones, which are not among the snapshots that requests are made of.
fn compare(name: &str, lines: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("script_output");
    settings.bind(|| insta::assert_snapshot!(name, lines));
}
