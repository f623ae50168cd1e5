//! Runs a thousand concurrent streams from one simulator on two threads; each must end without an
//! error.
//!
//! Client and server share the machine and the process, so the figures are
//! those of both together. It ends by itself: a stream that takes longer than a minute is an error.

#![expect(clippy::disallowed_methods, reason = "a benchmark looks at the clock")]

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hardpan_simulator::{Engine, EngineSettings, Script, ServerConfig, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Barrier;
use tokio::time::timeout;

const STREAMS: usize = 1000;
const LONGEST: Duration = Duration::from_secs(60);
/// The chunks are a few milliseconds apart, so that all streams are active at once.
const PACE: Duration = Duration::from_millis(5);

const ANTHROPIC: (&str, &str, &str) = (
    "/v1/messages",
    "x-api-key: any\r\nanthropic-version: 2023-06-01\r\n",
    r#"{"model":"claude-sonnet-5","max_tokens":4000,"stream":true,"messages":[{"role":"user","content":"Go on!"}]}"#,
);
const OPENAI: (&str, &str, &str) = (
    "/v1/chat/completions",
    "authorization: Bearer any\r\n",
    r#"{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"Go on!"}]}"#,
);

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(run())
}

async fn run() -> Result<(), Box<dyn Error>> {
    let words = "All these words come one after the other, as the words of a model do. ".repeat(20);
    let script = Script::from_yaml("bench", &format!("default: {{text: '{words}'}}"))?.with_pace(PACE);
    let settings = EngineSettings { script: Some(script), ..EngineSettings::default() };
    let server = serve(ServerConfig::new(Engine::new(settings))).await?;
    let address = server.address();
    let mut failed = 0;
    for (name, request) in [("anthropic", ANTHROPIC), ("openai", OPENAI)] {
        let warm = stream(address, request, &Barrier::new(1)).await?; // loads the vocabulary
        let together = Arc::new(Barrier::new(STREAMS));
        let start = Instant::now();
        let tasks: Vec<_> = (0..STREAMS)
            .map(|_| {
                let together = together.clone();
                tokio::spawn(async move { timeout(LONGEST, stream(address, request, &together)).await })
            })
            .collect();
        let (mut bytes, mut events, mut errors, mut first_error) = (0, 0, 0, None);
        for task in tasks {
            match task.await? {
                Ok(Ok(read)) => (bytes, events) = (bytes + read.bytes, events + read.events),
                Ok(Err(error)) => {
                    (errors, first_error) = (errors + 1, first_error.or(Some(error.to_string())));
                }
                Err(_) => {
                    (errors, first_error) = (errors + 1, first_error.or(Some("it took too long".into())));
                }
            }
        }
        let seconds = start.elapsed().as_secs_f64();
        println!(
            "{name}: {STREAMS} streams of {} events at once in {seconds:.2} s: {:.0} events/s, {:.1} MB/s, errors={errors}",
            warm.events,
            events as f64 / seconds,
            bytes as f64 / seconds / 1e6
        );
        if let Some(error) = first_error {
            println!(
                "the first error: {error} (is the limit of open files, `ulimit -n`, above {}?)",
                2 * STREAMS + 50
            );
        }
        failed += errors;
    }
    server.stop(Duration::from_secs(1)).await?;
    println!("simulator_concurrent_errors {failed} (limit 0)");
    if failed > 0 { Err(format!("{failed} streams failed").into()) } else { Ok(()) }
}

struct Read {
    bytes: usize,
    events: usize,
}

/// One request, read to its end. It waits until all others are connected.
async fn stream(
    address: SocketAddr,
    (path, headers, body): (&str, &str, &str),
    together: &Barrier,
) -> io::Result<Read> {
    let connected = TcpStream::connect(address).await;
    together.wait().await;
    let mut socket = connected?;
    let size = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: simulator\r\nconnection: close\r\ncontent-length: {size}\r\n{headers}\r\n{body}"
    );
    socket.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await?;
    let text = String::from_utf8_lossy(&answer);
    let is_whole =
        text.starts_with("HTTP/1.1 200") && (text.contains("[DONE]") || text.contains("event: message_stop"));
    if !is_whole || !text.ends_with("0\r\n\r\n") {
        return Err(io::Error::other(format!(
            "no whole answer: {}",
            text.chars().take(80).collect::<String>()
        )));
    }
    Ok(Read { bytes: answer.len(), events: text.matches("data: ").count() })
}
