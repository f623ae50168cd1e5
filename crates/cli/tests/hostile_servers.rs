//! Servers that send without end: every request ends, in bounded time and memory.
//! `scripts/hostile-inputs.py` tries many more of them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on may stop")]

mod support;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Stdio;
use std::time::{Duration, Instant};

use support::Sandbox;

/// What a run may take at most. The server sends this in less than a second.
const MOST_MEMORY_KB: u64 = 500 << 10;

/// What a hostile server sends after its head.
#[derive(Clone, Copy)]
struct Hostile {
    content_type: &'static str,
    status: u16,
    first: &'static str,
    again: &'static str,
    pause: Duration,
}

const ENDLESS: Hostile =
    Hostile { content_type: "application/json", status: 200, first: "", again: "0,", pause: Duration::ZERO };

const STREAM: Hostile = Hostile { content_type: "text/event-stream", ..ENDLESS };

/// Starts a server that answers every request so, and returns its URL.
fn start(hostile: Hostile) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || send_without_end(stream, hostile));
        }
    });
    url
}

fn send_without_end(mut stream: TcpStream, hostile: Hostile) -> std::io::Result<()> {
    let Hostile { content_type, status, first, again, pause } = hostile;
    // The request is small enough to be read at once, or in part: nobody looks at it.
    let _ = stream.read(&mut [0; 1 << 16])?;
    let head =
        format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-type: {content_type}\r\n\r\n{first}");
    stream.write_all(head.as_bytes())?;
    let many = if pause.is_zero() { again.repeat((1 << 16) / again.len()) } else { again.to_owned() };
    loop {
        stream.write_all(many.as_bytes())?;
        std::thread::sleep(pause);
    }
}

/// Runs a command against a server, and returns what it said, its memory in KB and its time.
#[allow(clippy::disallowed_methods, reason = "the time that it takes is what is asked about")]
fn run(provider: &str, hostile: Hostile, args: &[&str]) -> (String, u64, Duration) {
    let sandbox = Sandbox::new();
    let patience = "[patience]\ntries = 1\nsilence_seconds = 10\nprogress_seconds = 2\nanswer_seconds = 20\n";
    let url = start(hostile);
    let config = format!("map_tokens = 0\n[providers.{provider}]\nbase_url = \"{url}\"\n{patience}");
    sandbox.write("config/config.toml", config);
    let mut command = sandbox.command(args);
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "DEEPSEEK_API_KEY", "GEMINI_API_KEY"] {
        command.env(name, "the-key-of-the-test");
    }
    let began = Instant::now();
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stderr = child.stderr.take().unwrap();
    let said = std::thread::spawn(move || {
        let mut said = String::new();
        stderr.read_to_string(&mut said).map(|_| said)
    });
    let mut memory = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        memory = peak.and_then(|peak| peak.split_whitespace().next()?.parse().ok()).unwrap_or(memory);
        if began.elapsed() > Duration::from_secs(60) || memory > 2 * MOST_MEMORY_KB {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    (said.join().unwrap().unwrap(), memory, began.elapsed())
}

#[track_caller]
fn check(provider: &str, hostile: Hostile, args: &[&str], expected: &str) {
    let (said, memory, time) = run(provider, hostile, args);
    assert!(said.contains(expected), "{provider}: {said}");
    assert!(memory < MOST_MEMORY_KB, "{provider}: {memory} KB");
    assert!(time < Duration::from_secs(60), "{provider}: {time:?}");
}

#[test]
fn an_endless_answer_that_is_not_streamed_ends_in_every_protocol() {
    for (provider, model) in
        [("anthropic", "claude-sonnet-5"), ("openai", "gpt-5.5"), ("deepseek", ""), ("gemini", "")]
    {
        let mut args = vec!["-p", "Hello", "--provider", provider];
        args.extend(["--model", model].iter().filter(|_| !model.is_empty()));
        check(provider, ENDLESS, &args, "it has more than 8388608 bytes");
    }
}

#[test]
fn endless_text_arguments_and_comments_end() {
    let args = ["-p", "Hello", "--provider", "deepseek"];
    let text = "data: {\"choices\":[{\"delta\":{\"content\":\"word word word word word word word word word\"}}]}\n\n";
    check("deepseek", Hostile { again: text, ..STREAM }, &args, "bytes of content");
    check("deepseek", Hostile { again: ": still here\n\n", ..STREAM }, &args, "bytes without content");
    let first = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"ls\",\"arguments\":\"{\"}}]}}]}\n\n";
    let more = "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,\"}}]}}]}\n\n";
    check("deepseek", Hostile { first, again: more, ..STREAM }, &args, "bytes of arguments of one call");
}

#[test]
fn a_server_that_only_drips_is_left() {
    let args = ["-p", "Hello", "--provider", "deepseek"];
    let pause = Duration::from_millis(100);
    let nothing = "the model said nothing for 2 s";
    for again in [": still here\n\n", "x", "data: {\"choices\":[{\"delta\":{\"content\":\"\"}}]}\n\n"] {
        check("deepseek", Hostile { again, pause, ..STREAM }, &args, nothing);
    }
    check("deepseek", Hostile { again: " ", pause, ..ENDLESS }, &args, nothing);
}

#[test]
fn endless_errors_and_lists_of_models_end() {
    let args = ["-p", "Hello", "--provider", "deepseek"];
    check("deepseek", Hostile { status: 400, ..ENDLESS }, &args, "the provider refused the request (400)");
    check("deepseek", ENDLESS, &["models", "--check", "deepseek"], "it has more than 3145728 bytes");
}
