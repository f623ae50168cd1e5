//! MCP servers over HTTP that misbehave.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use hardpan_test_support::{TestResponse, TestServer};
use serde_json::{Value, json};

use super::mcp::{Process, RecordingSimulator, configure, listed, results};
use super::test_cli::TestCli;

/// What a server answers when it is asked for its tools; it does not end.
#[derive(Clone, Copy)]
enum EndlessBody {
    /// JSON.
    Json,
    /// An event of a stream.
    Event,
    /// A page that says no.
    Refusal,
}

/// A server, and its address.
fn start(misdeed: EndlessBody) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Whoever has enough goes away.
            std::thread::spawn(move || serve(stream, misdeed));
        }
    });
    format!("http://{address}/mcp")
}

fn serve(mut stream: TcpStream, misdeed: EndlessBody) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            let line = line.to_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        match message["method"].as_str() {
            Some("initialize") => {
                let info = json!({"protocolVersion": message["params"]["protocolVersion"],
                    "capabilities": {"tools": {}}, "serverInfo": {"name": "large", "version": "1"}});
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": info}).to_string();
                write!(
                    stream,
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{answer}",
                    answer.len()
                )?;
            }
            Some("tools/list") => return flood(stream, misdeed),
            Some(_) => write!(stream, "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")?,
            None => write!(stream, "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n")?,
        }
    }
}

/// Sends 64 MB, unless nobody reads them.
fn flood(mut stream: TcpStream, misdeed: EndlessBody) -> std::io::Result<()> {
    let (status, kind, begin) = match misdeed {
        EndlessBody::Json => ("200 OK", "application/json", "{\"jsonrpc\": \"2.0\", \"result\": \""),
        EndlessBody::Event => ("200 OK", "text/event-stream", "data: "),
        EndlessBody::Refusal => ("400 Bad Request", "text/html", "<p>"),
    };
    write!(stream, "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n")?;
    write!(stream, "{:x}\r\n{begin}\r\n", begin.len())?;
    let block = "x".repeat(1 << 20);
    for _ in 0..64 {
        write!(stream, "{:x}\r\n{block}\r\n", block.len())?;
    }
    write!(stream, "0\r\n\r\n")
}

#[test]
fn an_address_that_is_no_servers_is_told_in_words_that_help() {
    let page = |status, kind: &'static str, text: &'static str| {
        TestServer::start(move |_, _| TestResponse::new(status, kind, text))
    };
    let header = |status, name, value: &'static str| {
        TestServer::start(move |_, _| TestResponse::new(status, "text/plain", "").with_header(name, value))
    };
    let (redirect, challenge) =
        (|to| header(307, "location", to), |challenge| header(401, "www-authenticate", challenge));
    let introduction = |result: Value| {
        TestServer::start(move |_, request| {
            let id = &request.body["id"];
            TestResponse::json(200, &json!({"jsonrpc": "2.0", "id": id, "result": result}))
        })
    };
    let cases = [
        (
            page(500, "text/plain", "\u{1b}[31mout of order"),
            "its address answered with HTTP 500: it may be down",
        ),
        (
            page(404, "text/plain", "nothing"),
            "its address answered with HTTP 404 Not Found: nothing: check `url`",
        ),
        (
            redirect("/mcp/"),
            "its address answered with HTTP 307 Temporary Redirect: set `url` to ADDRESS/mcp/ in config.toml",
        ),
        (
            redirect("https://other.example/mcp"),
            "HTTP 307 Temporary Redirect: set `url` to https://other.example/mcp in config.toml",
        ),
        (
            page(405, "text/plain", ""),
            "HTTP 405 Method Not Allowed: check `url` in config.toml; it may be a server of the older SSE transport",
        ),
        (challenge("Basic realm=\"x\""), "it asks for a password (Basic), which is no login"),
        (challenge("Bearer"), "it asks for a login: run `hardpan mcp login sN`"),
        (
            page(200, "Application/JSON; charset=utf-8", "[1, 2"),
            "its address answered with no message of the protocol",
        ),
        (
            introduction(json!({"protocolVersion": "2025-06-18", "capabilities": {}})),
            "it does not speak the protocol: its answer to `initialize` has no serverInfo",
        ),
        (
            introduction(json!({"tools": []})),
            "its answer to `initialize` has no protocolVersion and no capabilities and no serverInfo",
        ),
        (page(307, "text/plain", ""), "its address answered with HTTP 307 Temporary Redirect: check `url`"),
        (
            page(200, "text/html", "<p>Hello"),
            "its address answered with text/html, and no message of the protocol",
        ),
        (page(200, "application/json", "[1, 2"), "its address answered with no message of the protocol"),
        (page(401, "application/json", "{}"), "it asks for a login: run `hardpan mcp login sN`"),
    ];
    let cli = TestCli::with_script("", "default: {text: Done.}");
    let address = |(number, (server, _)): (usize, &(TestServer, &str))| {
        format!("[mcp_servers.s{number:02}]\nurl = \"{}/mcp\"\nstart_seconds = 60\n", server.url())
    };
    let servers: String = cases.iter().enumerate().map(address).collect();
    // Nobody listens on the first port.
    configure(&cli, &(servers + "[mcp_servers.z]\nurl = \"http://127.0.0.1:1/mcp\"\nstart_seconds = 60\n"));
    let rows = listed(&cli);
    let expected = cases
        .iter()
        .map(|(server, expected)| expected.replace("ADDRESS", &server.url()))
        .chain(["its address cannot be reached: Connection refused".to_owned()]);
    for (row, expected) in rows.iter().zip(expected) {
        let error = row["error"].as_str().expect("an error");
        let expected = expected.replace("sN", &row["name"].to_string().replace('"', ""));
        assert!(error.contains(&expected) && !error.contains("rmcp"), "{expected}: {error}");
    }
    assert_eq!(rows.len(), cases.len() + 1);
}

#[test]
fn a_server_that_forgot_its_session_is_asked_again_to_tell_of_changes() {
    for words in [None, Some("restarted")] {
        a_new_session_is_told_of_changes(words);
    }
}

fn a_new_session_is_told_of_changes(words: Option<&str>) {
    let cli = TestCli::with_script("", "default: {text: unused}");
    let answers = format!(
        "turns:\n{}default: {{text: Done.}}\n",
        "  - {tool_calls: [{name: forgetful__touch, arguments: {}}]}\n  - {tool_calls: [{name: ls, arguments: {}}]}\n".repeat(3)
    );
    let simulator = RecordingSimulator::start(&cli.sandbox, &answers);
    let program = cli.sandbox.write("forgetful.py", include_str!("forgetful_mcp_server.py"));
    let mut command = Command::new("python3");
    let mut server = command
        .arg(program)
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .map(Process)
        .expect("python3 can be run");
    let mut address = String::new();
    let output = server.0.stdout.take().expect("it is piped");
    BufReader::new(output).read_line(&mut address).expect("an address");
    let settings = format!(
        "model = \"claude-sonnet-5\"\nmap_tokens = 0\n[providers.anthropic]\nbase_url = \"{}/v1\"\n\
         [mcp_servers.forgetful]\nurl = \"{}\"\nstart_seconds = 60\n",
        simulator.url,
        address.trim()
    );
    cli.sandbox.write("config/config.toml", settings);
    listed(&cli);
    let ran = cli.print(&["-p", "What does @forgetful:note://one say?", "--yes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let bodies = simulator.bodies();
    let told = |body: &Value| {
        let text = body["messages"].to_string();
        (0..3).filter(|count| text.contains(&format!("The count is {count}."))).max()
    };
    // The first call is forgotten, and each further one changes it; `ls` gives the news time to come.
    let last = bodies.last().and_then(told);
    assert_eq!((bodies.len(), bodies.first().and_then(told), last), (7, Some(0), Some(2)), "{words:?}");
}

/// A server with one tool, whose calls are answered by a function of the message.
fn server_with_calls(answer: impl Fn(&Value) -> TestResponse + Send + Sync + 'static) -> TestServer {
    TestServer::start(move |_, request| {
        let message = &request.body;
        let result = |result: Value| {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            TestResponse::new(200, "application/json", answer.to_string())
        };
        match message["method"].as_str() {
            Some("initialize") => result(json!({"protocolVersion": message["params"]["protocolVersion"],
                "capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}))
            .with_header("mcp-session-id", "one"),
            Some("tools/list") => {
                result(json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}))
            }
            Some("tools/call") => answer(message),
            Some(_) => TestResponse::new(202, "text/plain", ""),
            None => TestResponse::new(405, "text/plain", ""),
        }
    })
}

#[test]
fn an_error_that_names_no_request_is_the_error_of_the_one_that_it_answers() {
    let server = server_with_calls(|message| {
        let error = |words: &str| json!({"code": -32000, "message": words});
        let plain = |id: Value| json!({"jsonrpc": "2.0", "id": id, "error": error("no")}).to_string();
        let (json, events) = ("application/json", "text/event-stream");
        match message["params"]["arguments"]["text"].as_str() {
            Some("refusal") => TestResponse::new(400, json, plain(Value::Null)),
            Some("plain") => TestResponse::new(200, json, plain(Value::Null)),
            Some("no number") => {
                TestResponse::new(200, json, json!({"jsonrpc": "2.0", "error": error("no")}).to_string())
            }
            // So writes the official SDK for Python.
            Some("own number") => TestResponse::new(400, json, plain("server-error".into())),
            Some("event") => TestResponse::new(200, events, format!("data: {}\n\n", plain(Value::Null))),
            _ => {
                let words = error("Bad Request: the session is closed");
                let answer = json!({"jsonrpc": "2.0", "id": null, "error": words});
                TestResponse::new(400, json, answer.to_string())
            }
        }
    });
    let kinds = ["refusal", "plain", "no number", "own number", "event", "session"];
    let calls: Vec<String> =
        kinds.iter().map(|kind| format!("{{name: odd__echo, arguments: {{text: {kind}}}}}")).collect();
    let script = format!("turns:\n  - {{tool_calls: [{}]}}\ndefault: {{text: Done.}}\n", calls.join(", "));
    let cli = TestCli::with_script("", &script);
    configure(&cli, &format!("[mcp_servers.odd]\nurl = \"{}/mcp\"\nstart_seconds = 60\n", server.url()));
    listed(&cli);
    let answered = "The MCP server odd: it answered with an error: ";
    let mut expected = vec![format!("{answered}no."); 5];
    expected.push(format!("{answered}Bad Request: the session is closed."));
    assert_eq!(results(&cli, "Call it"), expected);
}

#[test]
fn an_answer_over_http_has_a_limit() {
    // A stream that ends too early is taken up again, until the time is over.
    for (misdeed, expected, seconds) in [
        (EndlessBody::Json, "an answer of more than 16 MB", 60),
        (EndlessBody::Event, "", 5),
        (EndlessBody::Refusal, "", 60),
    ] {
        let cli = TestCli::with_script("", "default: {text: Done.}");
        configure(
            &cli,
            &format!("[mcp_servers.large]\nurl = \"{}\"\nstart_seconds = {seconds}\n", start(misdeed)),
        );
        let rows = listed(&cli);
        assert_eq!(rows[0]["state"], "failed", "{rows:?}");
        let error = rows[0]["error"].as_str().expect("an error");
        assert!(error.contains(expected) && error.len() < 2000, "{error}");
        // The conversation goes on without it.
        let ran = cli.print(&["-p", "Hello"]);
        assert_eq!((ran.code, &*ran.stdout), (Some(0), &b"Done.\n"[..]), "{}", ran.stderr);
        // And there is something to do about it.
        let doctor = cli.print(&["doctor", "--json"]);
        let checks: Vec<Value> = serde_json::from_slice(&doctor.stdout).expect("JSON");
        let check = checks.iter().find(|check| check["name"] == "mcp").expect("a check");
        assert_eq!((doctor.code, &check["outcome"]), (Some(1), &"problem".into()), "{check}");
        assert!(
            check["remedy"].as_str().is_some_and(|remedy| remedy.contains("mcp_servers.large")),
            "{check}"
        );
    }
}
