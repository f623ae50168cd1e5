//! OpenTelemetry: what the real binary sends to a collector on loopback, and what it never sends.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::process::Output;

use hardpan_test_support::{ReceivedRequest, TestResponse, TestServer};
use serde_json::{Value, json};
use test_cli::TestCli;

const SCRIPT: &str = "
turns:
  - when: {contains: Ask-the-helper}
    text: A-private-answer.
    tool_calls:
      - {id: call_a, name: read, arguments: {path: private-name.txt}}
      - {id: call_b, name: task, arguments: {task: Look-into-private-things.}}
  - {when: {contains: Look-into-private-things}, text: The-private-helper-is-done.}
default: {text: A-private-end.}
";

/// A collector that takes everything.
fn collector() -> TestServer {
    TestServer::start(|_, _| TestResponse::json(200, &json!({})))
}

fn cli(config: &str) -> TestCli {
    let cli = TestCli::with_script(&format!("subagents = \"on\"\n{config}"), SCRIPT);
    cli.sandbox.write("work/private-name.txt", "the-private-content\n");
    cli
}

fn run(cli: &TestCli, url: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = cli.command(&["-p", "Ask-the-helper", "--yes"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url).envs(variables.iter().copied());
    command.output().unwrap()
}

/// What was said about telemetry on standard error.
fn words(ran: &Output) -> String {
    let said = String::from_utf8_lossy(&ran.stderr).into_owned();
    said.lines().filter(|line| line.contains("telemetry")).collect::<Vec<_>>().join("\n")
}

const JSON: (&str, &str) = ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");

/// An attribute's value as plain JSON.
fn plain(value: &Value) -> Value {
    let (kind, value) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "intValue" => value.as_str().unwrap().parse::<i64>().unwrap().into(),
        "arrayValue" => value["values"].as_array().unwrap().iter().map(plain).collect(),
        _ => value.clone(),
    }
}

fn attributes(of: &Value) -> BTreeMap<String, Value> {
    let list = of["attributes"].as_array().unwrap();
    list.iter().map(|pair| (pair["key"].as_str().unwrap().to_owned(), plain(&pair["value"]))).collect()
}

fn bodies(received: &[ReceivedRequest], path: &str) -> Vec<Value> {
    received.iter().filter(|request| request.path == path).map(|request| request.body.clone()).collect()
}

/// All spans, in the order in which they began.
fn spans(received: &[ReceivedRequest]) -> Vec<Value> {
    let bodies = bodies(received, "/v1/traces");
    let scopes = bodies.iter().flat_map(|body| body["resourceSpans"][0]["scopeSpans"].as_array().unwrap());
    let mut spans: Vec<Value> = scopes.flat_map(|scope| scope["spans"].as_array().unwrap().clone()).collect();
    spans.sort_by_key(|span| span["startTimeUnixNano"].as_str().unwrap().to_owned());
    spans
}

#[test]
fn a_run_its_requests_its_tools_and_its_sub_agent_are_one_trace() {
    let collector = collector();
    let ran = run(&cli(""), &collector.url(), &[JSON, ("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key=hunter2")]);
    assert_eq!((ran.status.code(), words(&ran)), (Some(0), String::new()));
    let received = collector.received();
    assert!(received.iter().all(|request| request.header("x-api-key") == Some("hunter2")));
    let spans = spans(&received);
    let names: BTreeMap<&str, &str> =
        spans.iter().map(|span| (span["spanId"].as_str().unwrap(), span["name"].as_str().unwrap())).collect();
    let places: Vec<(&str, &str)> = spans
        .iter()
        .map(|span| {
            let parent = span["parentSpanId"].as_str().map_or("", |parent| names[parent]);
            (parent, span["name"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        places,
        [
            ("", "invoke_agent default"),
            ("invoke_agent default", "chat claude-sonnet-5"),
            ("invoke_agent default", "execute_tool read"),
            ("invoke_agent default", "execute_tool task"),
            ("execute_tool task", "invoke_agent default"),
            ("invoke_agent default", "chat claude-sonnet-5"),
            ("invoke_agent default", "chat claude-sonnet-5"),
        ]
    );
    assert!(spans.iter().all(|span| span["traceId"] == spans[0]["traceId"]), "{spans:#?}");
    let helper = spans[4]["spanId"].as_str();
    assert_eq!(spans[5]["parentSpanId"].as_str(), helper, "the helper's request is its own");
    let time = |span: &Value, name: &str| span[name].as_str().unwrap().parse::<u64>().unwrap();
    for span in &spans {
        let [start, end] = ["startTimeUnixNano", "endTimeUnixNano"].map(|name| time(span, name));
        assert!(start <= end, "{span:#}");
        if let Some(parent) = spans.iter().find(|parent| parent["spanId"] == span["parentSpanId"]) {
            assert!(time(parent, "startTimeUnixNano") <= start && end <= time(parent, "endTimeUnixNano"));
        }
    }
    // One request, whole but for what differs from run to run.
    let mut request = attributes(&spans[1]);
    let conversation = request.remove("gen_ai.conversation.id").unwrap();
    assert!(request.remove("gen_ai.response.id").unwrap().as_str().is_some_and(|id| !id.is_empty()));
    let used: Vec<f64> =
        ["input_tokens", "output_tokens", "cache_read.input_tokens", "cache_creation.input_tokens"]
            .iter()
            .map(|name| request.remove(&format!("gen_ai.usage.{name}")).unwrap().as_f64().unwrap())
            .collect();
    assert!(used[0] > 100.0 && used[1] > 0.0 && used[2] + used[3] <= used[0], "{used:?}");
    assert!(request.remove("hardpan.cost").unwrap().as_f64().unwrap() > 0.0);
    let expected = json!({
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-5",
        "gen_ai.response.model": "claude-sonnet-5",
        "gen_ai.response.finish_reasons": ["tool_call"],
    });
    assert_eq!(json!(request), expected);
    assert_eq!(spans[1]["kind"], 3);
    let tool = json!({
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "read",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "call_a",
        "gen_ai.conversation.id": conversation,
    });
    assert_eq!((json!(attributes(&spans[2])), &spans[2]["kind"]), (tool, &json!(1)));
}

#[test]
fn metrics_add_up_to_the_bill_of_the_session() {
    let collector = collector();
    let cli = cli("");
    let mut command = cli.command(&["-p", "Ask-the-helper", "--yes", "--output", "json"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env(JSON.0, JSON.1);
    let ran = command.env("OTEL_SERVICE_NAME", "agents-of-the-test").output().unwrap();
    let events = String::from_utf8(ran.stdout).unwrap();
    let ended = events.lines().rfind(|line| line.contains("\"agent_end\"")).unwrap();
    let billed = serde_json::from_str::<Value>(ended).unwrap()["token_usage"]["session"].clone();
    let bodies = bodies(&collector.received(), "/v1/metrics");
    let last = &bodies.last().unwrap()["resourceMetrics"][0];
    let resource = attributes(&last["resource"]);
    assert_eq!(resource["service.name"], "agents-of-the-test");
    assert_eq!(resource["service.instance.id"].as_str().unwrap().len(), 32);
    let metrics = last["scopeMetrics"][0]["metrics"].as_array().unwrap();
    let names: Vec<&str> = metrics.iter().map(|metric| metric["name"].as_str().unwrap()).collect();
    let expected = [
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "hardpan.cache.hit_rate",
        "hardpan.cost",
    ];
    assert_eq!(names, expected);
    let points = |index: usize, kind: &str| metrics[index][kind]["dataPoints"].as_array().unwrap().clone();
    let tokens = |token_type: &str| -> f64 {
        let of_type = points(0, "histogram").into_iter();
        let of_type = of_type.filter(|point| attributes(point)["gen_ai.token.type"] == token_type);
        of_type.map(|point| point["sum"].as_f64().unwrap()).sum()
    };
    let billed_tokens = |name: &str| billed[name].as_f64().unwrap();
    assert_eq!(tokens("output"), billed_tokens("output"));
    assert_eq!(tokens("cache_read"), billed_tokens("read"));
    assert_eq!(tokens("cache_creation"), billed_tokens("written"));
    assert_eq!(tokens("input"), billed_tokens("input") + billed_tokens("read") + billed_tokens("written"));
    let dollars: f64 = points(3, "sum").iter().map(|point| point["asDouble"].as_f64().unwrap()).sum();
    assert!((dollars - billed_tokens("dollars")).abs() < 1e-9, "{dollars} {billed}");
    let durations: Vec<(String, String)> = points(1, "histogram")
        .iter()
        .map(|point| {
            let name = attributes(point)["gen_ai.operation.name"].as_str().unwrap().to_owned();
            (name, point["count"].as_str().unwrap().to_owned())
        })
        .collect();
    let count = |name: &str| -> u64 {
        let own = durations.iter().filter(|(known, _)| known == name);
        own.map(|(_, count)| count.parse::<u64>().unwrap()).sum()
    };
    assert_eq!((count("chat"), count("execute_tool"), count("invoke_agent")), (3, 2, 2));
}

#[test]
fn a_compaction_is_a_request_of_its_own_and_metrics_add_up_to_all_that_was_paid() {
    let collector = collector();
    let cli = TestCli::with_script("", "default: {text: A-private-summary of what was said before.}\n");
    let prompt = "Remember this long text. ".repeat(2_000);
    let print = |arguments: &[&str]| {
        let mut command = cli.command(arguments);
        let command = command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url()).env(JSON.0, JSON.1);
        let ran = command.output().unwrap();
        assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stderr));
    };
    print(&["-p", &prompt]);
    print(&["--continue", "-p", &prompt]);
    print(&["--continue", "-p", "/compact"]);
    let received = collector.received();
    let spans = spans(&received);
    let purposes: Vec<Value> =
        spans.iter().filter_map(|span| attributes(span).get("hardpan.request.purpose").cloned()).collect();
    assert_eq!(purposes, ["compaction"]);
    let summary = spans.iter().find(|span| attributes(span).contains_key("hardpan.request.purpose")).unwrap();
    assert_eq!(summary["name"], "chat claude-sonnet-5");
    assert!(attributes(summary)["gen_ai.usage.output_tokens"].as_f64().unwrap() > 0.0);
    // The three processes each send their own sums.
    let dollars: f64 = bodies(&received, "/v1/metrics")
        .iter()
        .flat_map(|body| body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"].as_array().unwrap().clone())
        .filter(|metric| metric["name"] == "hardpan.cost")
        .flat_map(|metric| metric["sum"]["dataPoints"].as_array().unwrap().clone())
        .map(|point| point["asDouble"].as_f64().unwrap())
        .sum();
    let paid: Value =
        serde_json::from_slice(&cli.command(&["cost", "--json"]).output().unwrap().stdout).unwrap();
    let paid = paid["total"]["dollars"].as_f64().unwrap();
    assert!(paid > 0.0 && (dollars - paid).abs() < 1e-9, "{dollars} {paid}");
}

/// What must be nowhere: prompts, answers, arguments, results, names of files and folders, keys.
const PRIVATE: [&str; 9] = [
    "Ask-the-helper",
    "A-private-answer",
    "private-name",
    "private-content",
    "Look-into-private-things",
    "private-helper",
    "A-private-end",
    "the-key-of-the-test",
    "/work",
];

#[test]
fn no_text_of_the_conversation_is_in_what_is_sent() {
    for protocol in ["http/protobuf", "http/json"] {
        let collector = collector();
        let ran = run(&cli(""), &collector.url(), &[("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)]);
        assert_eq!(ran.status.code(), Some(0));
        let received = collector.received();
        let paths: Vec<&str> = received.iter().map(|request| request.path.as_str()).collect();
        assert!(paths.contains(&"/v1/traces") && paths.contains(&"/v1/metrics"), "{protocol}: {paths:?}");
        let text: String =
            received.iter().map(|request| String::from_utf8_lossy(&request.bytes).into_owned()).collect();
        assert!(text.contains("execute_tool read") && text.contains("gen_ai.client.token.usage"), "{text}");
        for private in PRIVATE {
            assert!(!text.contains(private), "{protocol}: {private} in {text}");
        }
    }
}

#[test]
fn texts_are_sent_to_those_who_ask_for_them_but_no_keys() {
    let collector = collector();
    let cli = cli(&format!("[telemetry]\nendpoint = \"{}\"\ncapture_content = true\n", collector.url()));
    cli.sandbox.write("work/private-name.txt", "the-private-content the-key-of-the-test\n");
    let ran = cli.command(&["-p", "Ask-the-helper", "--yes"]).env(JSON.0, JSON.1).output().unwrap();
    assert_eq!((ran.status.code(), words(&ran)), (Some(0), String::new()));
    let spans = spans(&collector.received());
    let text = |index: usize, name: &str| attributes(&spans[index])[name].as_str().unwrap().to_owned();
    assert!(text(0, "gen_ai.input.messages").contains("Ask-the-helper"));
    assert!(text(0, "gen_ai.output.messages").contains("A-private-end."));
    assert!(text(1, "gen_ai.output.messages").contains("A-private-answer."));
    assert_eq!(text(2, "gen_ai.tool.call.arguments"), r#"{"path":"private-name.txt"}"#);
    assert!(text(2, "gen_ai.tool.call.result").contains("the-private-content"));
    assert!(!format!("{spans:?}").contains("the-key-of-the-test"), "{spans:#?}");
    // The variable goes before the settings.
    let variable = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";
    let mut again = cli.command(&["-p", "Ask-the-helper", "--yes"]);
    let again = again.env(JSON.0, JSON.1).env(variable, "false").output().unwrap();
    assert_eq!(again.status.code(), Some(0));
    let later = collector.received();
    let bytes: Vec<u8> = later[later.len() - 2..].iter().flat_map(|request| request.bytes.clone()).collect();
    assert!(!String::from_utf8_lossy(&bytes).contains("private"));
}

#[test]
fn a_collector_that_is_away_or_silent_or_refuses_costs_one_warning() {
    let refusing = TestServer::start(|_, _| TestResponse::json(401, &json!({"message": "who are you?"})));
    // Takes connections, and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let (silent_url, gone_url) = (address(&silent), address(&gone));
    drop(gone);
    let key = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20hunter2");
    for (url, why) in [
        (refusing.url(), "answered with status 401"),
        (silent_url, "did not answer within"),
        (gone_url, "cannot be reached"),
    ] {
        let cli = cli("");
        let ran = run(&cli, &url, &[key, ("HARDPAN_LOG", "trace")]);
        let said = String::from_utf8(ran.stderr).unwrap();
        let answer = String::from_utf8(ran.stdout).unwrap();
        assert_eq!((ran.status.code(), answer.lines().last()), (Some(0), Some("A-private-end.")), "{said}");
        assert_eq!(said.matches("telemetry is not sent").count(), 1, "{said}");
        assert!(said.contains(why), "{why}: {said}");
        let log = cli.sandbox.work().with_file_name("home").join(".local/state/hardpan/hardpan.log");
        let log = std::fs::read_to_string(log).unwrap();
        assert!(log.contains("telemetry could not be sent"), "{log}");
        assert!(!said.contains("hunter2") && !log.contains("hunter2"));
    }
}

#[test]
fn mistakes_are_told_and_nobody_is_asked_without_a_reason() {
    let told = |variables: &[(&str, &str)]| {
        let cli = cli("");
        let ran = cli.command(&["-p", "Hello"]).envs(variables.iter().copied()).output().unwrap();
        assert_eq!(ran.status.code(), Some(0));
        words(&ran)
    };
    assert_eq!(told(&[]), "");
    let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9");
    assert_eq!(told(&[endpoint, ("OTEL_SDK_DISABLED", "true")]), "");
    let grpc = told(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
    assert!(grpc.contains("set it to http/protobuf or http/json"), "{grpc}");
    let address = told(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "me:hunter2@host")]);
    assert!(address.contains("is not valid") && !address.contains("hunter2"), "{address}");
}

#[test]
fn a_project_cannot_have_telemetry_sent() {
    let (own, foreign) = (collector(), collector());
    let cli = cli(&format!("[telemetry]\nendpoint = \"{}\"\n", own.url()));
    let project = format!("[telemetry]\nendpoint = \"{}\"\ncapture_content = true\n", foreign.url());
    cli.sandbox.write("work/.hardpan/config.toml", project);
    assert_eq!(cli.print(&["trust"]).code, Some(0));
    assert_eq!(cli.print(&["-p", "Ask-the-helper", "--yes"]).code, Some(0));
    assert!(foreign.received().is_empty());
    let received = own.received();
    assert!(!received.is_empty());
    let bytes: Vec<u8> = received.iter().flat_map(|request| request.bytes.clone()).collect();
    assert!(!String::from_utf8_lossy(&bytes).contains("private"));
}
