//! Sending, against the real simulator over real HTTP, and within the process.

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use support::Sandbox;

const KEY: &str = "sk-this-must-never-be-seen";

/// A running simulator, ended with the test.
struct SimulatorProcess {
    child: Child,
    url: String,
}

impl SimulatorProcess {
    fn start(sandbox: &Sandbox, args: &[&str]) -> Self {
        let mut command = sandbox.command(&["simulator"]);
        let mut child = command
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary can be run");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("it is piped"))
            .read_line(&mut line)
            .expect("it prints a line");
        let url =
            line.trim().strip_prefix("listening on ").expect("the first line is the address").to_owned();
        SimulatorProcess { child, url }
    }
}

impl Drop for SimulatorProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The simulator as the provider of this sandbox, with a key and little patience.
fn configure(sandbox: &Sandbox, simulator: &SimulatorProcess) {
    let url = &simulator.url;
    let providers = format!(
        "[providers.anthropic]\nbase_url = \"{url}/v1\"\n[providers.openai]\nbase_url = \"{url}/v1\"\n"
    );
    sandbox.write(
        "config/config.toml",
        providers + "[patience]\nlongest_wait_seconds = 0.05\nsilence_seconds = 1.5\n",
    );
}

fn send(sandbox: &Sandbox, args: &[&str]) -> (Option<i32>, String, String) {
    let mut command: Command = sandbox.command(&["request", "--now", "2026-02-19T14:00:00Z", "--send"]);
    command.args(args).env("ANTHROPIC_API_KEY", KEY).env("OPENAI_API_KEY", KEY);
    let output = command.output().expect("the binary can be run");
    let (stdout, stderr) =
        [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).expect("it is UTF-8")).into();
    assert!(!stdout.contains(KEY) && !stderr.contains(KEY), "a key is never printed");
    (output.status.code(), stdout, stderr)
}

#[test]
fn without_a_key_the_simulator_answers_and_says_how_to_get_a_real_one() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "work/src/ring.rs",
        "pub struct RingBuffer;\n\nimpl RingBuffer {\n    pub fn push(&mut self) {}\n}\n",
    );
    let ran = sandbox.run(&["request", "Where is RingBuffer defined?", "src/ring.rs", "--send"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let (words, answer) = (ran.stderr, String::from_utf8(ran.stdout).unwrap());
    assert!(words.starts_with("hardpan: no key for anthropic: the built-in simulator answers"), "{words}");
    assert!(words.contains("ANTHROPIC_API_KEY"), "{words}");
    assert!(answer.contains("src/ring.rs") && answer.contains("RingBuffer"), "{answer}");
    assert!(answer.contains("language model"), "it says what it is: {answer}");
}

#[test]
fn a_scripted_answer_comes_over_http_with_its_bill() {
    let sandbox = Sandbox::new();
    let script = sandbox.write("script.yaml", "turns: [{text: Good morning.}, {text: Good evening.}]\n");
    let simulator = SimulatorProcess::start(&sandbox, &["--script", script.to_str().unwrap()]);
    configure(&sandbox, &simulator);
    let file = sandbox.write("work/long.txt", "a line of text\n".repeat(2000));
    let args = ["Hello!", file.to_str().unwrap(), "--json"];
    let (code, first, words) = send(&sandbox, &args);
    assert_eq!(code, Some(0), "{words}");
    let (_, second, _) = send(&sandbox, &args);
    let [first, second] = [first, second].map(|json| serde_json::from_str::<Value>(&json).unwrap());
    assert_eq!((&first["text"], &second["text"]), (&"Good morning.".into(), &"Good evening.".into()));
    let usage = |answer: &Value, field: &str| answer["usage"][field].as_u64().unwrap();
    assert!(usage(&first, "cache_write_5m") > 1000 && usage(&first, "cache_read") == 0, "{first}");
    assert_eq!(
        usage(&second, "cache_read"),
        usage(&first, "cache_write_5m"),
        "the second request reads what the first wrote"
    );
    assert!(second["cost"].as_f64().unwrap() < first["cost"].as_f64().unwrap() / 5.0);
}

#[test]
fn every_fault_ends_well_for_all_protocols() {
    for (model, provider) in [("claude-sonnet-5", "anthropic"), ("gpt-4.1", "openai"), ("gpt-5.5", "openai")]
    {
        for (fault, notes) in [
            ("status=529,times=2", 2),
            ("status=429,retry-after=0,times=1", 1),
            ("delay=100ms,times=1", 0),
            ("stall=0,for=5s,times=1", 1),
            ("cut=0,times=1", 1),
            ("garbage=0,times=1", 1),
            ("drip=40,interval=1ms", 0),
            ("duplicate", 0),
            ("no-end", 0),
            ("error=0,times=1", 1),
        ] {
            let sandbox = Sandbox::new();
            let script = sandbox.write("script.yaml", "turns: [{text: Here I am.}]\n");
            let simulator =
                SimulatorProcess::start(&sandbox, &["--script", script.to_str().unwrap(), "--faults", fault]);
            configure(&sandbox, &simulator);
            let (code, answer, words) = send(&sandbox, &["Hello!", "--model", model, "--provider", provider]);
            assert_eq!((code, answer.as_str()), (Some(0), "Here I am.\n"), "{provider} {fault}: {words}");
            let retries = words.lines().filter(|line| line.contains("Trying again")).count();
            assert_eq!(retries, notes, "{provider} {fault}: {words}");
        }
    }
}

#[test]
fn a_refusal_says_what_to_do() {
    let sandbox = Sandbox::new();
    let simulator = SimulatorProcess::start(&sandbox, &["--faults", "status=401"]);
    configure(&sandbox, &simulator);
    let (code, answer, words) = send(&sandbox, &["Hello!"]);
    assert_eq!((code, answer.as_str()), (Some(1), ""));
    assert!(
        words.contains("the provider refused the key (401)") && words.contains("hardpan providers"),
        "{words}"
    );
    drop(simulator);
    let (code, _, words) = send(&sandbox, &["Hello!"]);
    assert_eq!(code, Some(1));
    assert!(words.contains("127.0.0.1 cannot be reached"), "{words}");
}

#[test]
fn the_printed_address_is_a_base_url() {
    let sandbox = Sandbox::new();
    let simulator = SimulatorProcess::start(&sandbox, &[]);
    let url = &simulator.url;
    let config =
        format!("[providers.anthropic]\nbase_url = \"{url}\"\n[providers.openai]\nbase_url = \"{url}\"\n");
    sandbox.write("config/config.toml", config);
    for (model, provider) in [("claude-sonnet-5", "anthropic"), ("gpt-4.1", "openai"), ("gpt-5.5", "openai")]
    {
        let (code, answer, words) = send(&sandbox, &["Hello!", "--model", model, "--provider", provider]);
        assert_eq!(code, Some(0), "{words}");
        assert!(answer.contains("language model"), "it says what it is: {answer}");
    }
}

/// How tokens compare to ours, as far as it was learned, by provider and model.
fn factors(sandbox: &Sandbox) -> Value {
    let state = sandbox.work().parent().expect("the sandbox").join("home/.local/state/hardpan/learned.json");
    let state = std::fs::read(state).expect("something was kept");
    serde_json::from_slice::<Value>(&state).expect("it is JSON")["factors"].clone()
}

#[test]
fn another_server_in_a_providers_place_teaches_nothing_about_its_tokens() {
    let sandbox = Sandbox::new();
    let simulator = SimulatorProcess::start(&sandbox, &[]);
    configure(&sandbox, &simulator);
    let chat = |args: &[&str]| {
        let mut command = sandbox.command(&["-p", "Hello!"]);
        let output = command.args(args).env("ANTHROPIC_API_KEY", KEY).output().expect("it can be run");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    assert_eq!(send(&sandbox, &["Hello!"]).0, Some(0));
    chat(&[]);
    assert_eq!(factors(&sandbox), serde_json::json!({}));
    // A provider whose own address it is counts as it counts.
    let models = serde_json::json!({
        "providers": [{"id": "mine", "like": "anthropic", "base_url": format!("{}/v1", simulator.url)}],
        "models": [{"provider": "mine", "id": "claude-sonnet-5", "context": 200_000, "max_output": 32_000}],
    });
    sandbox.write("config/models.json", models.to_string());
    chat(&["--provider", "mine", "--model", "claude-sonnet-5"]);
    let learned = factors(&sandbox);
    let names: Vec<&String> = learned.as_object().unwrap().keys().collect();
    assert_eq!(names, ["mine/claude-sonnet-5"]);
}

#[test]
fn a_model_that_is_gone_is_never_replaced_in_silence() {
    let sandbox = Sandbox::new();
    let simulator = SimulatorProcess::start(&sandbox, &[]);
    configure(&sandbox, &simulator);
    // The simulator serves what the settings list when it starts, so this comes afterwards.
    sandbox
        .write("config/models.json", r#"{"models": [{"provider": "anthropic", "id": "claude-sonnet-4-9"}]}"#);
    let (code, _, words) = send(&sandbox, &["Hello!", "--model", "claude-sonnet-4-9"]);
    assert_eq!(code, Some(1));
    assert!(
        words.contains("the model is not available (404)")
            && words.contains("Similar models of anthropic: claude-sonnet-4"),
        "{words}"
    );
}

#[cfg(unix)]
#[test]
fn keys_in_a_file_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let sandbox = Sandbox::new();
    let keys = sandbox.write("config/keys.toml", format!("anthropic = \"{KEY}\"\n"));
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o644)).unwrap();
    let words = sandbox.failure(&["request", "Hello!", "--send"]);
    assert!(words.contains("run `chmod 600"), "{words}");
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
    std::fs::write(&keys, format!("anthropic = {KEY}\n")).unwrap();
    let words = sandbox.failure(&["request", "Hello!", "--send"]);
    assert!(words.contains("expected lines like") && !words.contains(KEY), "{words}");
}
