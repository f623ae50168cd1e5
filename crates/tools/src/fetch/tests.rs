use std::convert::Infallible;
use std::net::SocketAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Path;
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use futures_util::stream;
use hardpan_context::knowledge::FileKnowledge;
use hardpan_prompt::{Json, MessagePart};
use serde_json::{Value, json};

use super::*;
use crate::Scope;

const HTML: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "text/html; charset=utf-8")];

/// The smallest file that shows a line.
const PDF: &str = "%PDF-1.4\n1 0 obj << /Type /Catalog /Pages 2 0 R >> endobj\n2 0 obj << /Kids [3 0 R] >> endobj\n\
    3 0 obj << /Type /Page /Contents 4 0 R /Resources << /Font << /F << /Subtype /Type1 >> >> >> >> endobj\n\
    4 0 obj << /Length 44 >> stream\nBT /F 12 Tf 72 720 Td (Words on paper.) Tj ET\nendstream endobj\n\
    trailer << /Root 1 0 R /Info << /Title (Paper) >> >>";

/// A server on loopback; it ends with the test's runtime.
async fn server() -> SocketAddr {
    let endless = || async {
        let chunks =
            stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(b"<p>more and more</p>\n")));
        (HTML, Body::from_stream(chunks))
    };
    let endless_text = || async {
        let line = "more and more and more of it, a line that does not end the page\n".repeat(1000);
        let chunks = stream::repeat_with(move || Ok::<_, Infallible>(Bytes::from(line.clone())));
        ([(CONTENT_TYPE, "text/plain")], Body::from_stream(chunks))
    };
    let silent = || async { (HTML, Body::from_stream(stream::pending::<Result<Bytes, Infallible>>())) };
    let long: String = (0..10_000).map(|number| format!("<p>paragraph {number}</p>")).collect();
    let routes = Router::new()
        .route(
            "/page",
            get(|| async {
                (HTML, "<title>The page</title><h1>Hello</h1><p>a <a href=/x>link</a>\u{1b}[2J")
            }),
        )
        .route("/json", get(|| async { ([(CONTENT_TYPE, "application/json")], "{\"a\": 1}") }))
        .route("/image", get(|| async { ([(CONTENT_TYPE, "image/png")], "\u{0}") }))
        .route(
            "/latin",
            get(|| async { ([(CONTENT_TYPE, "text/plain; charset=ISO-8859-1")], &b"caf\xe9"[..]) }),
        )
        .route("/missing", get(|| async { (StatusCode::NOT_FOUND, "nothing here") }))
        .route("/hops/0", get(|| async { "arrived" }))
        .route(
            "/hops/{n}",
            get(|Path(n): Path<u32>| async move { Redirect::temporary(&(n - 1).to_string()) }),
        )
        .route("/loop", get(|| async { Redirect::permanent("/loop") }))
        .route("/to-file", get(|| async { Redirect::temporary("file:///etc/passwd") }))
        .route("/to-private", get(|| async { Redirect::temporary("http://169.254.169.254/latest") }))
        .route("/to-other", get(|| async { Redirect::temporary("http://localhost:1/?a=secret") }))
        .route("/endless", get(endless))
        .route("/endless-text", get(endless_text))
        .route("/pdf", get(|| async { ([(CONTENT_TYPE, "application/pdf")], PDF) }))
        .route("/bytes", get(|| async { ([(CONTENT_TYPE, "application/octet-stream")], PDF) }))
        .route("/silent", get(silent))
        .route("/long", get(move || async move { (HTML, long).into_response() }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, routes).await });
    address
}

fn tool(private_hosts: &[&str]) -> Fetch {
    let private_hosts = private_hosts.iter().map(ToString::to_string).collect();
    let limits = FetchLimits { time: Duration::from_secs(20), bytes: 1024 * 1024 };
    Fetch::with_limits(&WebOptions { private_hosts, proxy: None }, limits)
}

async fn call(tool: &Fetch, arguments: Value) -> (String, ToolOutcome) {
    let arguments = Json::new(&arguments);
    let scope = Scope::new("/", "/");
    let outcome = tool
        .run(ToolInvocation {
            id: "1",
            arguments: &arguments,
            scope: &scope,
            knowledge: &FileKnowledge::default(),
            progress: &|_| {},
        })
        .await;
    let MessagePart::Text { text } = &outcome.content[0] else { panic!("{outcome:?}") };
    (text.to_string(), outcome)
}

async fn failure(tool: &Fetch, url: &str) -> String {
    let (text, outcome) = call(tool, json!({"url": url})).await;
    assert!(outcome.is_error, "{text}");
    text
}

#[tokio::test]
async fn a_page_becomes_markdown_with_its_title_and_address() {
    let server = server().await;
    let (text, outcome) = call(&tool(&["127.0.0.1"]), json!({"url": format!("http://{server}/page")})).await;
    let expected =
        format!("Title: The page\nAddress: http://{server}/page\n\n# Hello\n\na [link](http://{server}/x)");
    assert_eq!(text, expected);
    let details = outcome.details.unwrap();
    assert_eq!(
        (&details["status"], &details["title"], &details["bytes"]),
        (&json!(200), &json!("The page"), &json!(65))
    );
}

#[tokio::test]
async fn other_texts_pass_through_and_what_is_no_text_is_refused() {
    let server = server().await;
    let tool = tool(&["127.0.0.1"]);
    let (text, _) = call(&tool, json!({"url": format!("http://{server}/json")})).await;
    assert!(text.ends_with("\n\n{\"a\": 1}"), "{text}");
    let (text, _) = call(&tool, json!({"url": format!("http://{server}/latin")})).await;
    assert!(text.ends_with("\n\ncafé"), "{text}");
    let told = failure(&tool, &format!("http://{server}/image")).await;
    assert_eq!(told, format!("http://{server}/image was not fetched: it is image/png, not text."));
    let told = failure(&tool, &format!("http://{server}/missing")).await;
    assert!(told.contains("nothing here") && told.contains("status 404"), "{told}");
}

#[tokio::test]
async fn redirects_are_followed_five_times_and_each_is_checked() {
    let server = server().await;
    let tool = tool(&["127.0.0.1"]);
    let (text, _) = call(&tool, json!({"url": format!("http://{server}/hops/5")})).await;
    assert!(
        text.starts_with(&format!("Address: http://{server}/hops/0")) && text.ends_with("arrived"),
        "{text}"
    );
    for path in ["hops/6", "loop"] {
        let told = failure(&tool, &format!("http://{server}/{path}")).await;
        assert!(told.contains("more than 5 times"), "{told}");
    }
    let told = failure(&tool, &format!("http://{server}/to-file")).await;
    assert!(told.contains("must begin with http"), "{told}");
    let told = failure(&tool, &format!("http://{server}/to-private")).await;
    assert!(told.contains("169.254.169.254") && told.contains("private network"), "{told}");
}

#[tokio::test]
async fn a_page_that_sends_to_another_host_is_told_and_not_followed() {
    let server = server().await;
    let told = failure(&tool(&["*"]), &format!("http://{server}/to-other")).await;
    let expected = "it sends to another host: fetch http://localhost:1/?a=secret if that is meant.";
    assert!(told.ends_with(expected), "{told}");
    let same = |from: &str, to: &str| is_same_host(&from.parse().unwrap(), &to.parse().unwrap());
    assert!(
        same("http://docs.rs/", "https://www.docs.rs/x")
            && same("https://www.docs.rs/", "https://DOCS.rs:443/")
    );
    assert!(
        !same("https://docs.rs/", "https://docs.rs.evil.com/") && !same("https://a.io/", "https://b.a.io/")
    );
}

#[tokio::test]
async fn this_machine_is_refused_by_number_and_by_name_unless_it_is_allowed() {
    let server = server().await;
    let port = server.port();
    for host in ["127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "2130706433"] {
        let told = failure(&tool(&[]), &format!("http://{host}:{port}/page")).await;
        assert!(told.contains("only fetched from if the user allows the host"), "{told}");
    }
    // The name is allowed, and what it means is used: the resolver is the one that connects.
    let (text, outcome) =
        call(&tool(&["localhost"]), json!({"url": format!("http://localhost:{port}/hops/0")})).await;
    assert!(!outcome.is_error && text.ends_with("arrived"), "{text}");
    assert!(
        failure(&tool(&["localhost"]), &format!("http://127.0.0.1:{port}/page")).await.contains("private")
    );
}

#[tokio::test]
async fn a_page_that_never_ends_is_cut_and_one_that_never_comes_is_given_up() {
    let server = server().await;
    let (text, outcome) = call(&tool(&["*"]), json!({"url": format!("http://{server}/endless")})).await;
    assert!(!outcome.is_error && text.contains("more and more"), "{text}");
    assert_eq!(outcome.details.unwrap()["bytes"], 1024 * 1024);
    let limits = FetchLimits { time: Duration::from_millis(200), bytes: 1000 };
    let impatient =
        Fetch::with_limits(&WebOptions { private_hosts: vec!["*".to_owned()], proxy: None }, limits);
    let told = failure(&impatient, &format!("http://{server}/silent")).await;
    assert!(told.contains("it took longer than"), "{told}");
}

#[tokio::test]
async fn a_long_page_is_read_on_from_where_it_was_cut() {
    let server = server().await;
    let tool = tool(&["*"]);
    let url = format!("http://{server}/long");
    let mut whole = String::new();
    let mut offset = 0;
    loop {
        let (text, outcome) = call(&tool, json!({"url": url, "offset": offset})).await;
        assert!(!outcome.is_error, "{text}");
        let body = text.split_once("\n\n").unwrap().1;
        let (body, notice) = body.rsplit_once('[').unwrap();
        assert!(body.len() <= MAX_ANSWER_BYTES);
        whole.push_str(body);
        match notice.split_once("offset=") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    let paragraphs: Vec<&str> = whole.trim_end().split("\n\n").collect();
    assert_eq!((paragraphs.len(), paragraphs[9_999]), (10_000, "paragraph 9999"));
    let (text, outcome) = call(&tool, json!({"url": url, "offset": 9_999_999})).await;
    assert!(outcome.is_error && text.contains("past its end"), "{text}");
}

#[tokio::test]
async fn what_is_no_address_is_told() {
    let tool = tool(&[]);
    assert!(failure(&tool, "not an address").await.contains("the address is not valid"));
    assert!(failure(&tool, "ftp://example.com/").await.contains("must begin with http"));
    assert!(failure(&tool, "https://user:secret@example.com/").await.contains("user name or a password"));
}

#[tokio::test]
async fn pdf_files_are_text_also_if_they_do_not_say_what_they_are() {
    let server = server().await;
    let tool = tool(&["*"]);
    for path in ["pdf", "bytes"] {
        let (text, outcome) = call(&tool, json!({"url": format!("http://{server}/{path}")})).await;
        assert!(!outcome.is_error);
        assert_eq!(text, format!("Title: Paper\nAddress: http://{server}/{path}\n\nWords on paper."));
    }
}

#[tokio::test]
async fn pages_of_the_context_end_with_a_note_where_they_are_cut() {
    let server = server().await;
    let web = WebOptions { private_hosts: vec!["*".to_owned()], proxy: None };
    let reader = Arc::new(PageReader::new(&web, None));
    let page = reader.read(&format!("http://{server}/endless-text"), 0).await.unwrap();
    let note = page.text.lines().next_back().unwrap();
    assert!(note.starts_with("[cut: 65536 of at least 52"), "{note}");
    let told = reader.read(&format!("http://{server}/loop"), 0).await.unwrap_err().to_string();
    assert_eq!(told, "it sends from one address to the next more than 5 times");
    let page = reader.read(&format!("http://{server}/pdf"), 0).await.unwrap();
    assert_eq!((page.title.as_deref(), &*page.text), (Some("Paper"), "Words on paper."));
}
