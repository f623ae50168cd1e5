//! Servers that are not the provider's own, over HTTP on loopback: where requests and keys go, and
//! what happens when a server knows less, reports less, or fails in its own way.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::process::Stdio;

use hardpan_test_support::{ReceivedRequest, TestResponse, TestServer};
use serde_json::{Value, json};
use support::{CommandOutput, Sandbox};

const ANTHROPIC_KEY: &str = "the-key-for-anthropic";
const OPENAI_KEY: &str = "the-key-for-openai";

/// A sandbox that waits little between tries and sends no map.
fn sandbox(settings: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    let patience = "[patience]\nlongest_wait_seconds = 0.05\n";
    sandbox.write("config/config.toml", format!("map_tokens = 0\n{settings}\n{patience}"));
    sandbox
}

/// Runs the binary with both keys and these variables.
fn run(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
    let mut command = sandbox.command(args);
    command.env("ANTHROPIC_API_KEY", ANTHROPIC_KEY).env("OPENAI_API_KEY", OPENAI_KEY);
    command.envs(variables.iter().copied()).stdin(Stdio::null());
    let output = command.output().expect("the binary can be run");
    let stderr = String::from_utf8(output.stderr).expect("words are UTF-8");
    assert!(!stderr.contains(ANTHROPIC_KEY) && !stderr.contains(OPENAI_KEY), "a key is never printed");
    CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
}

/// The answer of a run that must succeed.
fn answer(ran: &CommandOutput) -> &str {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    std::str::from_utf8(&ran.stdout).unwrap().trim_end()
}

/// An answer of Anthropic's form, streamed, with this usage besides the tokens of the answer.
fn anthropic_stream(content: &Value, stop: &str, usage: &Value) -> TestResponse {
    let mut first = usage.clone();
    first["output_tokens"] = 1.into();
    let (start, delta) = match content["type"].as_str() {
        Some("tool_use") => {
            let delta = json!({"type": "input_json_delta", "partial_json": content["input"].to_string()});
            (json!({"type": "tool_use", "id": content["id"], "name": content["name"], "input": {}}), delta)
        }
        _ => (
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": content["text"].as_str().unwrap()}),
        ),
    };
    TestResponse::events(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": [], "usage": first}}),
        json!({"type": "content_block_start", "index": 0, "content_block": start}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ])
}

/// "Fine.", in the form that the path asks for.
fn fine(request: &ReceivedRequest) -> TestResponse {
    if request.path.ends_with("/messages") {
        let text = json!({"type": "text", "text": "Fine."});
        return anthropic_stream(&text, "end_turn", &json!({"input_tokens": 40}));
    }
    assert!(request.path.ends_with("/chat/completions"), "{}", request.path);
    TestResponse::json(
        200,
        &json!({
            "choices": [{"message": {"role": "assistant", "content": "Fine."}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 40, "completion_tokens": 2}
        }),
    )
}

/// The refusal of a field, as Anthropic words it.
fn refusal(message: &str) -> TestResponse {
    let error = json!({"type": "invalid_request_error", "message": message});
    TestResponse::json(400, &json!({"type": "error", "error": error}))
}

/// Provider, model of the form that the test's server speaks, variable, path, and where the key is.
type Case = (&'static str, &'static str, &'static str, &'static str, fn(&ReceivedRequest) -> Option<String>);

const CASES: [Case; 2] = [
    ("anthropic", "claude-sonnet-5-5", "ANTHROPIC_BASE_URL", "/v1/messages", |request| {
        request.header("x-api-key").map(str::to_owned)
    }),
    ("openai", "gpt-4.1", "OPENAI_BASE_URL", "/v1/chat/completions", |request| {
        request.header("authorization")?.strip_prefix("Bearer ").map(str::to_owned)
    }),
];

#[test]
fn a_base_url_from_the_environment_works_with_and_without_its_version() {
    for (provider, model, variable, path, key) in CASES {
        for end in ["", "/", "/v1", "/v1/"] {
            let server = TestServer::start(|_, request| fine(request));
            let url = server.url() + end;
            let ran = run(
                &sandbox(""),
                &["-p", "Hi", "--provider", provider, "--model", model],
                &[(variable, &url)],
            );
            assert_eq!(answer(&ran), "Fine.", "{url}");
            let received = server.received();
            assert_eq!(received.len(), 1, "{url}: {received:?}");
            assert_eq!((received[0].method.as_str(), received[0].path.as_str()), ("POST", path), "{url}");
            let own = if provider == "anthropic" { ANTHROPIC_KEY } else { OPENAI_KEY };
            assert_eq!(key(&received[0]).as_deref(), Some(own));
            let told = format!(
                "hardpan: requests to {provider} go to {}/v1, with your key (set by {variable})\n",
                server.url()
            );
            assert_eq!(ran.stderr.matches(&told).count(), 1, "{}", ran.stderr);
        }
    }
}

#[test]
fn the_settings_come_before_the_environment() {
    for (provider, model, variable, path, _) in CASES {
        let [chosen, other] = [(); 2].map(|()| TestServer::start(|_, request| fine(request)));
        let settings = format!("[providers.{provider}]\nbase_url = \"{}\"", chosen.url());
        let args = ["-p", "Hi", "--provider", provider, "--model", model];
        let ran = run(&sandbox(&settings), &args, &[(variable, &other.url())]);
        assert_eq!(answer(&ran), "Fine.");
        assert_eq!((chosen.received()[0].path.as_str(), other.received().len()), (path, 0));
        let told = format!("go to {}/v1, with your key (set by config.toml)", chosen.url());
        assert!(ran.stderr.contains(&told), "{}", ran.stderr);
    }
}

#[test]
fn a_redirect_is_not_followed_so_that_no_key_goes_elsewhere() {
    for status in [301, 302, 307, 308] {
        let elsewhere = TestServer::start(|_, request| fine(request));
        let there = elsewhere.url() + "/v1/messages";
        let server = TestServer::start(move |_, _| {
            TestResponse::new(status, "text/html", "<a>Moved</a>").with_header("location", there.clone())
        });
        let ran = run(&sandbox(""), &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", &server.url())]);
        assert_eq!((ran.code, &ran.stdout[..]), (Some(1), &b""[..]), "{}", ran.stderr);
        assert!(ran.stderr.contains(&status.to_string()), "{}", ran.stderr);
        assert_eq!((server.received().len(), elsewhere.received().len()), (1, 0));
        // The list of models is read with the key, too.
        let checked = run(&sandbox(""), &["models", "--check"], &[("ANTHROPIC_BASE_URL", &server.url())]);
        assert_eq!((checked.code, elsewhere.received().len()), (Some(1), 0), "{}", checked.stderr);
    }
}

#[test]
fn a_project_cannot_send_the_key_elsewhere_even_if_it_is_trusted() {
    let [own, projects] = [(); 2].map(|()| TestServer::start(|_, request| fine(request)));
    let sandbox = sandbox("");
    sandbox.write(
        "work/.hardpan/config.toml",
        format!("[providers.anthropic]\nbase_url = \"{}\"\n", projects.url()),
    );
    let models = json!({"providers": [{"id": "anthropic", "base_url": projects.url()}]});
    sandbox.write("work/.hardpan/models.json", models.to_string());
    for is_trusted in [false, true] {
        if is_trusted {
            assert_eq!(sandbox.run(&["trust"]).code, Some(0));
        }
        let ran = run(&sandbox, &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", &own.url())]);
        assert_eq!(answer(&ran), "Fine.");
        assert_eq!(
            ran.stderr.contains("ignoring the project's provider addresses"),
            is_trusted,
            "{}",
            ran.stderr
        );
    }
    assert_eq!((own.received().len(), projects.received().len()), (2, 0));
}

#[test]
fn a_variable_of_another_provider_changes_nothing() {
    let [own, other] = [(); 2].map(|()| TestServer::start(|_, request| fine(request)));
    let (own_url, other_url) = (own.url(), other.url());
    let variables = [
        ("ANTHROPIC_BASE_URL", own_url.as_str()),
        ("OPENAI_BASE_URL", other_url.as_str()),
        ("XAI_BASE_URL", other_url.as_str()),
        ("BASE_URL", other_url.as_str()),
        ("HARDPAN_BASE_URL", other_url.as_str()),
    ];
    assert_eq!(answer(&run(&sandbox(""), &["-p", "Hi"], &variables)), "Fine.");
    assert_eq!((own.received().len(), other.received().len()), (1, 0));
    // A provider's address gets that provider's key, or none.
    let sandbox = sandbox("");
    let mut command = sandbox.command(&["-p", "Hi", "--provider", "openai", "--model", "gpt-4.1"]);
    command.env("ANTHROPIC_API_KEY", ANTHROPIC_KEY).env("OPENAI_BASE_URL", &other_url).stdin(Stdio::null());
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let received = other.received();
    assert_eq!((received.len(), received[0].header("authorization")), (1, None));
    assert!(!received[0].contains(ANTHROPIC_KEY));
}

#[test]
fn an_address_that_is_none_is_named_with_its_variable() {
    let ran = run(&sandbox(""), &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", "127.0.0.1:1")]);
    assert_eq!((ran.code, &ran.stdout[..]), (Some(1), &b""[..]), "{}", ran.stderr);
    let told =
        "\"127.0.0.1:1/v1\", does not begin with https:// or http://; correct it in ANTHROPIC_BASE_URL";
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

/// The events of a run of 100 requests against a server that reports this usage besides the input.
fn long_run(usage: Value) -> Vec<Value> {
    const REQUESTS: usize = 100;
    let server = TestServer::start(move |number, request| {
        // Every request is larger than the one before, as real ones are.
        let mut usage = usage.clone();
        usage["input_tokens"] = (3000 + 100 * number).into();
        assert_eq!(request.body["stream"], true);
        let call =
            json!({"type": "tool_use", "id": format!("call_{number}"), "name": "ls", "input": {"path": "."}});
        let text = json!({"type": "text", "text": "Done."});
        let is_last = number + 1 == REQUESTS;
        let (content, stop) = if is_last { (text, "end_turn") } else { (call, "tool_use") };
        anthropic_stream(&content, stop, &usage)
    });
    let sandbox = sandbox("");
    // Enough that a provider would cache it.
    sandbox.write("work/AGENTS.md", "Read this line with care.\n".repeat(400));
    let args = ["-p", "List it a hundred times", "--output", "json"];
    let ran = run(&sandbox, &args, &[("ANTHROPIC_BASE_URL", &server.url())]);
    assert_eq!((ran.code, server.received().len()), (Some(0), REQUESTS), "{}", ran.stderr);
    String::from_utf8(ran.stdout).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn verdicts(events: &[Value]) -> usize {
    events.iter().filter(|event| event["type"] == "cache_verdict").count()
}

#[test]
fn a_server_that_reports_no_cache_is_never_said_to_have_lost_it() {
    let silent = long_run(json!({}));
    assert!(silent.iter().any(|event| event["type"] == "agent_end"), "the events are complete");
    assert_eq!(verdicts(&silent), 0);
    // One that reports a cache which is always empty has lost it.
    let empty = long_run(json!({"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}));
    assert!(verdicts(&empty) > 0, "the same run with a report has verdicts");
}

#[test]
fn a_server_that_does_not_stream_is_asked_for_whole_answers_from_then_on() {
    let server = TestServer::start(|_, request| match request.body["stream"] == true {
        true => refusal("This server does not support streaming: send \"stream\": false"),
        false => TestResponse::json(
            200,
            &json!({
                "id": "msg_1", "type": "message", "role": "assistant", "stop_reason": "end_turn",
                "content": [{"type": "text", "text": "Fine."}], "usage": {"input_tokens": 40, "output_tokens": 2}
            }),
        ),
    });
    let sandbox = sandbox("");
    let url = server.url();
    let ran = run(&sandbox, &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", &url)]);
    assert_eq!(answer(&ran), "Fine.");
    assert_eq!(ran.stderr.matches("does not take streaming").count(), 1, "{}", ran.stderr);
    let streams: Vec<Value> =
        server.received().iter().map(|request| request.body["stream"].clone()).collect();
    assert_eq!(streams, [json!(true), json!(false)]);
    // The next process knows it, says so once, and shows what it sends.
    let told = format!(
        "hardpan: requests for anthropic/claude-sonnet-5-5 to {url}/v1 are sent without streaming, because the server refused that; "
    );
    let variables = [("ANTHROPIC_BASE_URL", url.as_str())];
    let shown = run(
        &sandbox,
        &["request", "Hi", "--continue", "--json", "--now", "2026-11-01T00:00:00Z"],
        &variables,
    );
    assert_eq!((shown.code, shown.stderr.matches(&told).count()), (Some(0), 1), "{}", shown.stderr);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(shown["stream"], json!(false));
    let ran = run(&sandbox, &["-p", "Hi", "--continue"], &variables);
    assert_eq!((answer(&ran), ran.stderr.matches(&told).count()), ("Fine.", 1), "{}", ran.stderr);
    assert_eq!((server.received().len(), &server.received()[2].body["stream"]), (3, &json!(false)));
    // Whoever wants to know whether the server has learned to stream has it tried again.
    assert_eq!(run(&sandbox, &["providers", "--forget-refusals"], &variables).code, Some(0));
    let ran = run(&sandbox, &["-p", "Hi", "--continue"], &variables);
    assert_eq!((answer(&ran), ran.stderr.contains(&told)), ("Fine.", false), "{}", ran.stderr);
    let streams: Vec<Value> =
        server.received()[3..].iter().map(|request| request.body["stream"].clone()).collect();
    assert_eq!(streams, [json!(true), json!(false)]);
    // Another server is not taken for this one.
    let other = TestServer::start(|_, request| fine(request));
    let ran = run(&sandbox, &["-p", "Hi", "--continue"], &[("ANTHROPIC_BASE_URL", &other.url())]);
    assert_eq!((answer(&ran), &other.received()[0].body["stream"]), ("Fine.", &json!(true)));
}

#[test]
fn a_server_that_refuses_diagnostics_is_not_sent_them_again() {
    for words in [
        "diagnostics: Extra inputs are not permitted",
        "Unknown parameter: 'diagnostics'.",
        "unknown field `diagnostics`, expected one of `model`, `messages`",
    ] {
        let server = TestServer::start(move |_, request| match request.body.get("diagnostics") {
            Some(_) => refusal(words),
            None => fine(request),
        });
        let sandbox = sandbox("");
        let url = server.url();
        let ran = run(&sandbox, &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", &url)]);
        assert_eq!(answer(&ran), "Fine.");
        assert_eq!(ran.stderr.matches("does not take newer request fields").count(), 1, "{}", ran.stderr);
        assert_eq!(server.received().len(), 2, "one refusal, one answer");
        let ran = run(&sandbox, &["-p", "Hi", "--continue"], &[("ANTHROPIC_BASE_URL", &url)]);
        let told = "are sent without newer request fields, because the server refused that";
        assert_eq!((answer(&ran), ran.stderr.matches(told).count()), ("Fine.", 1), "{}", ran.stderr);
        assert_eq!(server.received().len(), 3, "it is remembered");
    }
}

#[test]
fn a_gateway_that_fails_with_a_page_is_tried_again_and_quoted_in_one_line() {
    const PAGE: &str =
        "<html>\n<head><title>502 Bad Gateway</title></head>\n<body>\u{1b}[31mnginx</body></html>";
    let server = TestServer::start(|number, request| match number {
        0 | 1 => TestResponse::new(502, "text/html", PAGE),
        _ => fine(request),
    });
    let ran = run(&sandbox(""), &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", &server.url())]);
    assert_eq!((answer(&ran), server.received().len()), ("Fine.", 3));
    let retries: Vec<&str> = ran.stderr.lines().filter(|line| line.contains("Trying again")).collect();
    assert_eq!(retries.len(), 2, "{}", ran.stderr);
    assert!(retries[0].contains("502") && !ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
    // One that never recovers is given up, with the same words.
    let server = TestServer::start(|_, _| TestResponse::new(502, "text/html", PAGE));
    let ran = run(&sandbox(""), &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", &server.url())]);
    assert_eq!(
        (ran.code, &ran.stdout[..], server.received().len()),
        (Some(1), &b""[..], 5),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("(502)") && !ran.stderr.contains('\u{1b}'), "{}", ran.stderr);
}

#[test]
fn a_page_in_place_of_an_answer_is_an_error_and_no_answer() {
    let server = TestServer::start(|_, _| TestResponse::new(200, "text/html", "<html>Please log in</html>"));
    let ran = run(&sandbox(""), &["-p", "Hi"], &[("ANTHROPIC_BASE_URL", &server.url())]);
    assert_eq!((ran.code, &ran.stdout[..]), (Some(1), &b""[..]), "{}", ran.stderr);
}

#[test]
fn an_answer_that_filled_the_window_is_kept_and_the_way_on_is_named() {
    let server = TestServer::start(|_, _| {
        let text = json!({"type": "text", "text": "It goes on and"});
        anthropic_stream(&text, "model_context_window_exceeded", &json!({"input_tokens": 40}))
    });
    let sandbox = sandbox("");
    let ran = run(&sandbox, &["-p", "Hi", "--output", "json"], &[("ANTHROPIC_BASE_URL", &server.url())]);
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let events: Vec<Value> = String::from_utf8(ran.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let end = events.iter().find(|event| event["type"] == "agent_end").unwrap();
    assert!(end.to_string().contains("/compact"), "{end}");
    let id = sandbox.json(&["sessions", "--json"])[0]["id"].as_str().unwrap().to_owned();
    let shown = sandbox.text(&["sessions", "show", &id]);
    assert!(shown.contains("It goes on and"), "what came is kept: {shown}");
}
