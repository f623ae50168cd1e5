//! `hardpan mcp login` with a strict authorization server and a server that asks for its tokens, both over
//! HTTP on loopback.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

#[path = "support/mcp_servers.rs"]
mod mcp_servers;
mod support;
#[path = "support/test_cli.rs"]
mod test_cli;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hardpan_test_support::{OauthFault, OauthServer, TestResponse, TestServer};
use mcp_servers::real_servers;
use serde_json::{Value, json};
use test_cli::TestCli;

/// A conversation whose model calls the server's tool when it is asked to.
fn cli(url: &str) -> TestCli {
    let script = "turns:\n  - {when: {contains: Count}, repeat: always, tool_calls: [{name: tickets__count, arguments: {}}]}\ndefault: {text: Done.}\n";
    let cli = TestCli::with_script("", script);
    configure(&cli, url);
    cli
}

/// Puts the server into the settings, in place of a former one.
fn configure(cli: &TestCli, url: &str) {
    let path = cli.sandbox.config().join("config.toml");
    let before = std::fs::read_to_string(&path).unwrap();
    let before = before.split("[mcp_servers.tickets]").next().unwrap();
    std::fs::write(path, format!("{before}[mcp_servers.tickets]\nurl = \"{url}\"\nstart_seconds = 60\n"))
        .unwrap();
}

fn login_file(cli: &TestCli) -> PathBuf {
    cli.sandbox.config().join("mcp-logins/tickets.json")
}

/// A login that waits for the browser.
struct LoginRun {
    child: Child,
    stderr: BufReader<std::process::ChildStderr>,
    said: String,
    address: String,
}

impl LoginRun {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut run = LoginRun { child, stderr, said: String::new(), address: String::new() };
        while !run.address.starts_with("http") {
            run.address = run.read_line();
        }
        run.address = run.address.trim().to_owned();
        run
    }

    fn of(cli: &TestCli) -> Self {
        LoginRun::start(cli.command(&["mcp", "login", "tickets", "--no-browser"]))
    }

    fn read_line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.stderr.read_line(&mut line).unwrap() > 0, "it ended: {}", self.said);
        self.said.push_str(&line);
        line
    }

    /// Reads until a line has this text.
    fn wait_for(&mut self, text: &str) {
        while !self.read_line().contains(text) {}
    }

    /// Waits for the end: the exit code, and everything that was printed.
    fn end(mut self) -> (Option<i32>, String) {
        let mut rest = String::new();
        self.stderr.read_to_string(&mut rest).unwrap();
        let output = self.child.wait_with_output().unwrap();
        let said = self.said + &rest + &String::from_utf8(output.stdout).unwrap();
        (output.status.code(), said)
    }
}

/// What a browser gets: status, the address that it is sent to, and the page.
fn get(address: &str) -> (u16, Option<String>, String) {
    let rest = address.strip_prefix("http://").unwrap();
    let (host, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, page) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let location = head.lines().find_map(|line| line.strip_prefix("location: "));
    (status, location.map(str::to_owned), page.to_owned())
}

/// Logs in as a person with a browser would.
fn log_in(cli: &TestCli, server: &OauthServer) {
    let run = LoginRun::of(cli);
    let (status, back, page) = get(&run.address);
    assert_eq!(status, 302, "{page}: {:?}", server.violations());
    let (status, _, page) = get(&back.unwrap());
    assert_eq!((status, page.contains("Hardpan has the answer")), (200, true), "{page}");
    let (code, said) = run.end();
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("logged in at tickets"), "{said}");
    no_secret_in(&said, server);
    assert_eq!(server.violations(), [""; 0]);
}

fn no_secret_in(text: &str, server: &OauthServer) {
    for secret in server.secrets() {
        assert!(!text.contains(&secret), "{secret} is in {text}");
    }
}

fn listed(cli: &TestCli) -> Value {
    let ran = cli.print(&["mcp", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let rows: Vec<Value> = serde_json::from_slice(&ran.stdout).unwrap();
    rows.into_iter().find(|row| row["name"] == "tickets").unwrap()
}

#[test]
fn a_login_is_stored_for_its_owner_and_used_by_conversations() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    let before = listed(&cli);
    assert!(before["error"].as_str().unwrap().contains("run `hardpan mcp login tickets`"), "{before}");
    log_in(&cli, &server);
    let file = login_file(&cli);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let row = listed(&cli);
    assert_eq!((&row["state"], &row["logged_in_at"]), (&json!("ready"), &json!(server.issuer())), "{row}");
    let text = cli.print(&["mcp"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains(&format!("  logged in at {}\n", server.issuer())), "{text}");
    let ran = cli.print(&["-p", "Count them", "--yes"]);
    assert_eq!((ran.code, cli.last_result().as_str()), (Some(0), "three tickets"), "{}", ran.stderr);
    no_secret_in(&ran.stderr, &server);
    assert_eq!((server.refreshes(), server.violations()), (0, Vec::new()));
}

#[test]
fn a_refused_token_is_renewed_once_and_a_login_that_has_ended_is_told() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    log_in(&cli, &server);
    server.end_access_tokens();
    let ran = cli.print(&["-p", "Count them", "--yes"]);
    assert_eq!((ran.code, cli.last_result().as_str()), (Some(0), "three tickets"), "{}", ran.stderr);
    assert_eq!((server.refreshes(), server.violations()), (1, Vec::new()));
    server.end_logins();
    let row = listed(&cli);
    assert!(row["error"].as_str().unwrap().contains("run `hardpan mcp login tickets`"), "{row}");
    assert!(!login_file(&cli).exists(), "a login that has ended is not kept");
    let ran = cli.print(&["-p", "Count them", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(cli.last_result().contains("run `hardpan mcp login tickets`"), "{}", cli.last_result());
    log_in(&cli, &server);
    assert_eq!(listed(&cli)["state"], "ready");
    assert_eq!(server.violations(), [""; 0]);
}

#[test]
fn processes_that_renew_at_once_do_not_lose_the_login() {
    // Each use of a token that ends so soon renews it first.
    let server = OauthServer::start(0, OauthFault::None);
    let cli = cli(&server.url());
    log_in(&cli, &server);
    for _ in 0..3 {
        let runs: Vec<Child> = (0..4)
            .map(|_| {
                let mut command = cli.command(&["mcp", "--json"]);
                command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
            })
            .collect();
        for run in runs {
            let output = run.wait_with_output().unwrap();
            let stdout = String::from_utf8(output.stdout).unwrap();
            let stderr = String::from_utf8(output.stderr).unwrap();
            assert!(stdout.contains("\"state\": \"ready\""), "{stdout}{stderr}");
        }
    }
    assert!(server.refreshes() >= 12, "{} refreshes", server.refreshes());
    assert_eq!((server.violations(), server.has_login()), (Vec::new(), true));
}

#[test]
fn a_denied_login_and_one_from_another_issuer_store_nothing() {
    for (fault, expected) in [
        (OauthFault::Denies, "the login was denied: access_denied: not today"),
        (OauthFault::ForeignIssuer, "issuer mismatch"),
    ] {
        let server = OauthServer::start(3600, fault);
        let cli = cli(&server.url());
        let run = LoginRun::of(&cli);
        get(&get(&run.address).1.unwrap());
        let (code, said) = run.end();
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!login_file(&cli).exists());
        assert_eq!(server.violations(), [""; 0]);
    }
}

#[test]
fn an_answer_with_another_state_is_refused_and_the_right_one_still_counts() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    let mut run = LoginRun::of(&cli);
    let back = get(&run.address).1.unwrap();
    let (before, after) = back.split_once("state=").unwrap();
    let (state, after) = after.split_once('&').unwrap();
    assert!(state.len() >= 16);
    let forged = format!("{before}state=made-up&{after}");
    let (status, _, page) = get(&forged);
    assert_eq!((status, page.contains("does not answer the login")), (400, true), "{page}");
    run.wait_for("answers another login");
    assert_eq!(get(&format!("{}other", before.split("callback").next().unwrap())).0, 404);
    assert_eq!(get(&back).0, 200);
    let (code, said) = run.end();
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(listed(&cli)["state"], "ready");
}

#[test]
fn the_address_can_be_pasted_where_the_browser_is_elsewhere() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    let mut run = LoginRun::of(&cli);
    let back = get(&run.address).1.unwrap();
    let mut input = run.child.stdin.take().unwrap();
    writeln!(input, "what address?").unwrap();
    run.wait_for("that is no answer to a login");
    writeln!(input, "  {back}").unwrap();
    let (code, said) = run.end();
    assert_eq!(code, Some(0), "{said}");
    no_secret_in(&said, &server);
    assert_eq!(listed(&cli)["state"], "ready");
}

#[test]
fn a_browser_that_never_comes_back_ends_with_a_line() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    let run = LoginRun::start(cli.command(&["mcp", "login", "tickets", "--no-browser", "--wait", "1"]));
    let (code, said) = run.end();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("nobody came back from the browser within 1 s: nothing is stored"), "{said}");
    assert!(!login_file(&cli).exists());
}

#[test]
fn the_browser_is_opened_with_the_address_and_nothing_else() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    let folder = cli.sandbox.work().with_file_name("bin");
    let program = cli.sandbox.write(
        "bin/xdg-open",
        "#!/bin/sh\nprintf '%s %s\\n' \"$#\" \"$1\" > \"$0.new\" && mv \"$0.new\" \"$0.called\"\n",
    );
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = cli.command(&["mcp", "login", "tickets"]);
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    command.env("PATH", path).env("DISPLAY", ":99");
    let mut run = LoginRun::start(command);
    run.wait_for("your browser should show it now");
    let called = folder.join("xdg-open.called");
    for _ in 0..12_000 {
        if called.exists() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(std::fs::read_to_string(called).unwrap(), format!("1 {}\n", run.address));
    get(&get(&run.address).1.unwrap());
    assert_eq!(run.end().0, Some(0));
}

#[test]
fn metadata_that_would_send_secrets_elsewhere_is_refused() {
    let elsewhere = TestServer::start(|_, _| TestResponse::json(200, &json!({})));
    let there = elsewhere.url();
    let s256 = |methods: Value| OauthFault::Metadata("code_challenge_methods_supported", methods);
    let cases = [
        (OauthFault::Resource(format!("{there}/mcp")), "resource mismatch"),
        (OauthFault::Metadata("issuer", json!(there)), "issuer mismatch"),
        (OauthFault::Metadata("issuer", Value::Null), "missing required issuer"),
        (
            OauthFault::Metadata("token_endpoint", json!("http://tokens.example/token")),
            "tokens only go to https",
        ),
        (
            OauthFault::Metadata("authorization_endpoint", json!("file:///etc/passwd")),
            "tokens only go to https",
        ),
        (
            OauthFault::Metadata("registration_endpoint", json!("http://tokens.example/r")),
            "tokens only go to https",
        ),
        (OauthFault::Metadata("registration_endpoint", Value::Null), "set `oauth_client_id`"),
        (s256(json!(["plain"])), "does not offer PKCE with S256"),
        (s256(Value::Null), "does not offer PKCE with S256"),
        (OauthFault::LargeMetadata(50 << 20), "the answer has more than 1048576 bytes"),
    ];
    for (fault, expected) in cases {
        let server = OauthServer::start(3600, fault.clone());
        let cli = cli(&server.url());
        let ran = cli.print(&["mcp", "login", "tickets", "--no-browser"]);
        assert_eq!(ran.code, Some(1), "{expected}: {}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
        assert!(!login_file(&cli).exists());
        assert!(!server.received().iter().any(|request| request.path == "/register"), "{expected}");
    }
    assert_eq!(elsewhere.received().len(), 0);
}

#[test]
fn a_redirect_of_the_token_endpoint_is_not_followed() {
    let elsewhere = TestServer::start(|_, _| TestResponse::json(200, &json!({"access_token": "a"})));
    let server = OauthServer::start(3600, OauthFault::TokenRedirect(elsewhere.url() + "/token"));
    let cli = cli(&server.url());
    let run = LoginRun::of(&cli);
    get(&get(&run.address).1.unwrap());
    let (code, said) = run.end();
    assert_eq!(code, Some(1), "{said}");
    no_secret_in(&said, &server);
    assert_eq!(elsewhere.received().len(), 0);
    assert!(!login_file(&cli).exists());
}

#[test]
fn a_login_is_for_one_address_and_goes_nowhere_else() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    log_in(&cli, &server);
    let other = TestServer::start(|_, _| {
        TestResponse::json(401, &json!({})).with_header("www-authenticate", "Bearer")
    });
    configure(&cli, &format!("{}/mcp", other.url()));
    let row = listed(&cli);
    assert!(row["error"].as_str().unwrap().contains("run `hardpan mcp login tickets`"), "{row}");
    assert_eq!(row["logged_in_at"], Value::Null);
    let received = other.received();
    assert!(!received.is_empty() && received.iter().all(|request| request.header("authorization").is_none()));
    // The login is still there for its own address.
    configure(&cli, &server.url());
    assert_eq!(listed(&cli)["state"], "ready");
}

#[test]
fn a_logout_ends_the_login_here_and_there() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    log_in(&cli, &server);
    let ran = cli.print(&["mcp", "logout", "tickets"]);
    assert_eq!((ran.code, &*ran.stdout), (Some(0), &b""[..]), "{}", ran.stderr);
    assert!(ran.stderr.contains("the login is deleted, here and there"), "{}", ran.stderr);
    assert_eq!((login_file(&cli).exists(), server.has_login()), (false, false));
    let ran = cli.print(&["mcp", "logout", "tickets"]);
    assert!(ran.stderr.contains("there is no login at tickets"), "{}", ran.stderr);
}

#[test]
fn a_server_that_is_removed_takes_its_login_with_it() {
    let server = OauthServer::start(3600, OauthFault::None);
    let cli = cli(&server.url());
    log_in(&cli, &server);
    // Also where the settings have another address by now.
    configure(&cli, "http://127.0.0.1:1/mcp");
    let ran = cli.print(&["mcp", "remove", "tickets"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("logged out of tickets: the login is deleted, here and there"),
        "{}",
        ran.stderr
    );
    assert_eq!((login_file(&cli).exists(), server.has_login()), (false, false));
}

#[test]
fn a_token_that_is_renewed_in_a_conversation_is_a_secret_like_the_others() {
    // Each use of a token that ends so soon renews it first.
    let server = OauthServer::start(0, OauthFault::TellsTokens);
    let cli = cli(&server.url());
    log_in(&cli, &server);
    let ran = cli.print(&["-p", "Count them", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = cli.last_result();
    let token = said.strip_prefix("three tickets ").expect("the token");
    assert!(server.secrets().len() > 3 && server.secrets().contains(&token.to_owned()), "{said}");
    let told = "replaced in the request, because it looks like a secret: login at tickets";
    assert!(ran.stderr.contains(told) && !ran.stderr.contains(token), "{}", ran.stderr);
}

#[test]
fn an_authorization_server_that_nobody_here_wrote_grants_renews_and_ends_a_login() {
    let Some(server) = FastMcpServer::start() else { return };
    let cli = cli(&server.url);
    assert!(listed(&cli)["error"].as_str().unwrap().contains("run `hardpan mcp login tickets`"));
    let run = LoginRun::of(&cli);
    let (status, back, page) = get(&run.address);
    assert_eq!(status, 302, "{page}");
    assert_eq!(get(&back.unwrap()).0, 200);
    let (code, said) = run.end();
    assert_eq!(code, Some(0), "{said}");
    let tokens = || std::fs::read_to_string(login_file(&cli)).unwrap();
    let first = tokens();
    assert_eq!(listed(&cli)["state"], "ready");
    assert_eq!(get(&server.url.replace("/mcp", "/end")).0, 200);
    let ran = cli.print(&["-p", "Count them", "--yes"]);
    assert_eq!((ran.code, cli.last_result().as_str()), (Some(0), "three tickets"), "{}", ran.stderr);
    assert_ne!(tokens(), first);
    let ran = cli.print(&["mcp", "logout", "tickets"]);
    assert!(ran.stderr.contains("the login is deleted, here and there"), "{}", ran.stderr);
    assert!(listed(&cli)["error"].as_str().unwrap().contains("run `hardpan mcp login tickets`"));
}

/// A server made with FastMCP, which asks for a login. It ends with the test.
struct FastMcpServer {
    child: Child,
    url: String,
}

impl FastMcpServer {
    fn start() -> Option<Self> {
        let python = real_servers()?.join("python/bin/python");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/login_server.py");
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new(python);
        command.arg(script).arg(port.to_string()).env("FASTMCP_CHECK_FOR_UPDATES", "off");
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut server =
            FastMcpServer { child: command.spawn().unwrap(), url: format!("http://127.0.0.1:{port}/mcp") };
        let listens = (0..1200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        assert!(listens, "the server does not listen: {:?}", server.child.try_wait());
        Some(server)
    }
}

impl Drop for FastMcpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_has_no_login_is_told() {
    let cli = cli("http://example.com/mcp");
    let said = |name: &str| cli.print(&["mcp", "login", name, "--no-browser"]).stderr;
    let path = cli.sandbox.config().join("config.toml");
    let more = "[mcp_servers.program]\ncommand = \"cat\"\n[mcp_servers.token]\nurl = \"https://example.com\"\nbearer_token_env = \"T\"\n";
    std::fs::write(&path, std::fs::read_to_string(&path).unwrap() + more).unwrap();
    assert!(said("tickets").contains("tokens only go to https addresses"), "{}", said("tickets"));
    assert!(said("program").contains("only a server with `url` has a login"), "{}", said("program"));
    assert!(said("token").contains("has a token in config.toml"), "{}", said("token"));
    assert!(said("other").contains("there is no server other"), "{}", said("other"));
}
