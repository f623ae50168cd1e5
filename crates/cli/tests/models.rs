//! `hardpan models`: the catalogue, its aliases, and the comparison with a provider's own list.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use hardpan_models::{Catalogue, DEFAULT_MODEL};
use hardpan_test_support::{SimulatorServer, TestResponse, TestServer};
use serde_json::{Value, json};
use support::{CommandOutput, Sandbox};

const KEY: &str = "the-key-of-the-test";

fn run(sandbox: &Sandbox, args: &[&str], variables: &[(&str, &str)]) -> CommandOutput {
    let output = sandbox.command(args).envs(variables.iter().copied()).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(!stderr.contains(KEY), "a key is never printed");
    CommandOutput { code: output.status.code(), stdout: output.stdout, stderr }
}

fn text(ran: &CommandOutput) -> &str {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    std::str::from_utf8(&ran.stdout).unwrap()
}

/// What a check printed that found a name without a model.
fn lost(ran: &CommandOutput) -> &str {
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let words = "hardpan: anthropic does not list the model of alias fable (claude-fable-";
    assert!(
        ran.stderr.starts_with(words) && ran.stderr.contains("alias opus (claude-opus-5-5)"),
        "{}",
        ran.stderr
    );
    std::str::from_utf8(&ran.stdout).unwrap()
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect()
}

#[test]
fn models_that_are_no_longer_sold_are_listed_only_when_asked_for() {
    let sandbox = Sandbox::new();
    let gone = Catalogue::builtin().models().find(|model| model.gone).unwrap();
    let ids = |args: &[&str]| -> Vec<String> {
        let listed = sandbox.json(&[&["models", "--json"], args].concat());
        let name = |model: &Value| {
            format!("{}/{}", model["provider"].as_str().unwrap(), model["id"].as_str().unwrap())
        };
        listed.as_array().unwrap().iter().map(name).collect()
    };
    assert!(!ids(&[]).contains(&gone.name()));
    assert!(ids(&["--all"]).contains(&gone.name()));
    assert_eq!(ids(&["--all"]).len(), Catalogue::builtin().models().count());
    let words = sandbox.failure(&["models", &gone.name()]);
    assert!(words.contains("no model that is still sold matches; --all lists"), "{words}");
    let shown = run(&sandbox, &["models", "--all", &gone.name()], &[("COLUMNS", "200")]);
    assert!(text(&shown).contains("no longer sold"), "{}", text(&shown));
}

#[test]
fn the_list_marks_the_default_and_shows_aliases_and_thinking() {
    let sandbox = Sandbox::new();
    let wide = [("COLUMNS", "200")];
    let shown = run(&sandbox, &["models", "sonnet", "--provider", "anthropic"], &wide);
    let line = |name: &str| {
        let start = format!("anthropic/{name} ");
        text(&shown).lines().find(|line| line.starts_with(&start)).unwrap().to_owned()
    };
    let default = line(DEFAULT_MODEL);
    assert!(default.contains(&format!("{DEFAULT_MODEL} [default]")), "{default}");
    assert!(default.contains("thinking off low–max") && default.ends_with("= claude, sonnet"), "{default}");
    assert!(line("claude-sonnet-4-5").contains("thinking off TOKENS"), "{}", text(&shown));
    assert_eq!(text(&shown).matches("[default]").count(), 1);
    let listed = sandbox.json(&["models", "--json", "sonnet"]);
    let default = listed.as_array().unwrap().iter().find(|model| model["default"] == true).unwrap();
    assert_eq!((&default["id"], &default["aliases"]), (&json!(DEFAULT_MODEL), &json!(["claude", "sonnet"])));
    assert_eq!(default["thinking"]["efforts"], json!(["low", "medium", "high", "xhigh", "max"]));
    // The default is the person's own, if there is one.
    sandbox.write("config/config.toml", "model = \"gpt\"\n");
    let listed = sandbox.json(&["models", "--json"]);
    let defaults = listed.as_array().unwrap().iter().filter(|model| model["default"] == true);
    let defaults: Vec<&Value> = defaults.map(|model| &model["provider"]).collect();
    assert_eq!(defaults, [&json!("openai")]);
}

#[test]
fn every_alias_leads_to_the_model_that_is_shown() {
    let sandbox = Sandbox::new();
    let listed = sandbox.json(&["models", "--aliases", "--json"]);
    let listed = listed.as_array().unwrap();
    assert!(listed.len() > 10, "{listed:?}");
    for entry in listed {
        let [alias, provider, model] =
            ["alias", "provider", "model"].map(|field| entry[field].as_str().unwrap());
        let body = run(&sandbox, &["request", "Hi", "--provider", provider, "--model", alias, "--json"], &[]);
        assert_eq!((body.code, &*body.stderr), (Some(0), ""), "{alias}");
        let shown = sandbox.text(&["models", "--aliases", alias, "--provider", provider]);
        assert!(shown.contains(&format!("{provider}/{model}\n")), "{shown}");
    }
}

#[test]
fn the_simulator_s_lists_are_compared_in_every_form() {
    let server = SimulatorServer::start("default: {text: Fine.}");
    let sandbox = Sandbox::new();
    for (provider, address, key) in [
        ("anthropic", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"),
        ("openai", "OPENAI_BASE_URL", "OPENAI_API_KEY"),
        ("gemini", "GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
    ] {
        let variables = [(address, server.url()), (key, KEY)];
        let ran = run(&sandbox, &["models", "--check", provider, "--json"], &variables);
        let checked: Value = serde_json::from_str(text(&ran)).unwrap();
        let expected =
            Catalogue::builtin().models().filter(|model| model.provider == provider && !model.gone).count();
        assert_eq!(
            (&checked["provider"], &checked["listed"]),
            (&json!(provider), &json!(expected)),
            "{checked}"
        );
        assert_eq!((&checked["missing"], &checked["unknown"]), (&json!([]), &json!([])), "{provider}");
        let names = checked["names"].as_array().unwrap();
        assert!(!names.is_empty() && names.iter().all(|name| name["listed"] == true), "{checked}");
        assert!(names[0]["alias"].is_null(), "its first name is the default, since its key is the only one");
    }
}

/// A provider of Anthropic's form that lists these models, one on each page.
fn paging_server(ids: &'static [&'static str]) -> TestServer {
    TestServer::start(move |_, request| {
        assert_eq!((request.method.as_str(), request.header("x-api-key")), ("GET", Some(KEY)));
        let after = request.path.split_once("after_id=").map(|(_, id)| id);
        let at = after.map_or(0, |id| ids.iter().position(|known| *known == id).unwrap() + 1);
        TestResponse::json(
            200,
            &json!({"data": [{"type": "model", "id": ids[at]}], "has_more": at + 1 < ids.len(), "last_id": ids[at]}),
        )
    })
}

#[test]
fn what_a_provider_lists_and_does_not_list_is_told_page_by_page() {
    let server =
        paging_server(&["claude-sonnet-5-5", "claude-haiku-4-5-20251001", "claude-opera-1", "claude-opus-5"]);
    let sandbox = Sandbox::new();
    let variables = [("ANTHROPIC_BASE_URL", &*server.url()), ("ANTHROPIC_API_KEY", KEY)];
    let ran = run(&sandbox, &["models", "--check", "--json"], &variables);
    let checked: Value = serde_json::from_str(lost(&ran)).unwrap();
    assert_eq!((&checked["provider"], &checked["listed"]), (&json!("anthropic"), &json!(4)));
    assert_eq!(checked["address"], format!("{}/v1", server.url()));
    assert_eq!(checked["unknown"], json!(["claude-opera-1"]));
    let missing = strings(&checked["missing"]);
    assert!(missing.contains(&"claude-opus-5-5") && !missing.contains(&"claude-haiku-4-5"), "{missing:?}");
    let names: Vec<(&Value, &Value)> =
        checked["names"].as_array().unwrap().iter().map(|name| (&name["alias"], &name["listed"])).collect();
    assert!(names.contains(&(&Value::Null, &json!(true))), "the default is there: {names:?}");
    assert!(names.contains(&(&json!("opus"), &json!(false))), "{names:?}");
    let shown = run(&sandbox, &["models", "--check", "anthropic"], &variables);
    let shown = lost(&shown);
    for line in [
        format!("anthropic lists 4 models at {}/v1\n", server.url()),
        format!("default: {DEFAULT_MODEL}, listed\n"),
        "NOT listed\n".into(),
        "in the catalogue, but not listed:\n".into(),
        "listed, but not in the catalogue:\n  claude-opera-1\n".into(),
    ] {
        assert!(shown.contains(&line), "{line:?} in {shown}");
    }
}

#[test]
fn without_a_key_or_a_list_nothing_is_compared() {
    let sandbox = Sandbox::new();
    assert_eq!(
        sandbox.failure(&["models", "--check"]),
        "hardpan: no key for anthropic: set ANTHROPIC_API_KEY, or add the key to keys.toml\n"
    );
    let words = sandbox.failure(&["models", "--check", "antropic"]);
    assert!(words.contains("did you mean anthropic"), "{words}");
    let check = |server: &TestServer| {
        let variables = [("ANTHROPIC_BASE_URL", &*server.url()), ("ANTHROPIC_API_KEY", KEY)];
        let ran = run(&sandbox, &["models", "--check"], &variables);
        assert_eq!((ran.code, &ran.stdout[..]), (Some(1), &b""[..]), "{}", ran.stderr);
        ran.stderr
    };
    for status in [404, 405, 501] {
        let server = TestServer::start(move |_, _| TestResponse::new(status, "text/plain", "no such page"));
        let told = check(&server);
        let wanted = format!("there is no list of models at {}/v1/models (status {status})", server.url());
        assert!(told.contains(&wanted), "{told}");
    }
    for body in ["<html>", "{}", "[1]", r#"{"data": {}}"#] {
        let server = TestServer::start(move |_, _| TestResponse::new(200, "application/json", body));
        assert!(check(&server).contains("is no list of models"), "{body}");
    }
    let server = TestServer::start(|_, request| {
        let key = request.header("x-api-key").unwrap();
        let error = json!({"type": "authentication_error", "message": format!("invalid key {key}")});
        TestResponse::json(401, &json!({"type": "error", "error": error}))
    });
    let told = check(&server);
    assert!(told.contains("401") && told.contains("invalid key"), "{told}");
}
