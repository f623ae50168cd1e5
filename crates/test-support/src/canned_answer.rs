//! A server that gives one answer, to the byte: for answers that the well-behaved simulator never
//! gives.

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::NoteLog;

/// Starts a server that takes one request, notes that it arrived, and answers it with these events
/// of an Anthropic stream. Without events it stays silent. Returns its URL.
pub(crate) fn serve_canned_answer(events: &[Value], notes: NoteLog) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a port that does not block");
    let url = format!("http://{}/v1/messages", listener.local_addr().expect("its address"));
    let event =
        |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().expect("a type"));
    let body: String = events.iter().map(event).collect();
    tokio::spawn(async move {
        let listener = TcpListener::from_std(listener).expect("a port");
        let (mut stream, _) = listener.accept().await.expect("a connection");
        read_request(&mut stream).await;
        notes.add("a request");
        if body.is_empty() {
            std::future::pending::<()>().await;
        }
        let length = body.len();
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all((head + &body).as_bytes()).await.expect("an answer");
    });
    url
}

async fn read_request(stream: &mut TcpStream) {
    let (mut request, mut whole) = (Vec::new(), usize::MAX);
    while request.len() < whole {
        stream.read_buf(&mut request).await.expect("a request");
        let text = String::from_utf8_lossy(&request).to_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.and_then(|length| length.parse::<usize>().ok()).expect("a length");
            whole = head.len() + 4 + length;
        }
    }
}
