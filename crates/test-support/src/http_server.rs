//! [`TestServer`]: a server on loopback that answers as the test says, for everything that the
//! well-behaved simulator never does.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

/// A request as a [`TestServer`] received it.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// `POST`, `GET`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Header names, in lower case, and their values.
    pub headers: Vec<(String, String)>,
    /// The body; the fields of a form are an object, and what is no JSON otherwise is null.
    pub body: Value,
    /// The body as it came.
    pub bytes: Vec<u8>,
}

impl ReceivedRequest {
    /// The value of the header `name`, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// Whether this text is in any header or in the body.
    pub fn contains(&self, text: &str) -> bool {
        self.headers.iter().any(|(_, value)| value.contains(text)) || self.body.to_string().contains(text)
    }
}

/// What a [`TestServer`] answers.
#[derive(Clone, Debug)]
pub struct TestResponse {
    status: u16,
    headers: Vec<(&'static str, String)>,
    body: String,
    /// What comes after the test has come to the barrier, too.
    rest: Option<(Arc<Barrier>, String)>,
}

impl TestResponse {
    /// A response with this body, of this content type.
    pub fn new(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        let headers = vec![("content-type", content_type.to_owned())];
        TestResponse { status, headers, body: body.into(), rest: None }
    }

    /// A JSON body.
    pub fn json(status: u16, body: &Value) -> Self {
        TestResponse::new(status, "application/json", body.to_string())
    }

    /// A stream of server-sent events, each named after its `type` if it has one.
    pub fn events(events: &[Value]) -> Self {
        let event = |event: &Value| match event["type"].as_str() {
            Some(name) => format!("event: {name}\ndata: {event}\n\n"),
            None => format!("data: {event}\n\n"),
        };
        TestResponse::new(200, "text/event-stream", events.iter().map(event).collect::<String>())
    }

    /// The same response with one more header.
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// The same response with more content, which is sent once the test waits at the barrier, too.
    pub fn with_rest(mut self, barrier: Arc<Barrier>, rest: impl Into<String>) -> Self {
        self.rest = Some((barrier, rest.into()));
        self
    }

    fn write_to(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut head = format!("HTTP/1.1 {} Of The Test\r\nconnection: close\r\n", self.status);
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        let rest = self.rest.as_ref().map_or(0, |(_, rest)| rest.len());
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len() + rest));
        stream.write_all(head.as_bytes())?;
        stream.write_all(self.body.as_bytes())?;
        stream.flush()?;
        if let Some((barrier, rest)) = &self.rest {
            barrier.wait();
            stream.write_all(rest.as_bytes())?;
        }
        stream.flush()
    }
}

/// A server on loopback that records every request and answers it with a function. It ends when it
/// is dropped.
pub struct TestServer {
    address: SocketAddr,
    received: Arc<Mutex<Vec<ReceivedRequest>>>,
    is_over: Arc<AtomicBool>,
}

impl TestServer {
    /// Starts a server. `answer` gets each request and its number; the first is 0.
    pub fn start(answer: impl Fn(usize, &ReceivedRequest) -> TestResponse + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("its address");
        let received: Arc<Mutex<Vec<ReceivedRequest>>> = Arc::default();
        let is_over = Arc::new(AtomicBool::new(false));
        let (log, over, answer) = (received.clone(), is_over.clone(), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                let (log, answer) = (log.clone(), answer.clone());
                thread::spawn(move || serve(stream, &log, &*answer));
            }
        });
        TestServer { address, received, is_over }
    }

    /// The URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What was received so far.
    pub fn received(&self) -> Vec<ReceivedRequest> {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<ReceivedRequest>>,
    answer: &(dyn Fn(usize, &ReceivedRequest) -> TestResponse + Send + Sync),
) {
    // A client that goes away in the middle is none that a test asks about.
    let Ok(Some(request)) = read_request(&stream) else { return };
    let number = {
        let mut log = log.lock().unwrap_or_else(PoisonError::into_inner);
        log.push(request.clone());
        log.len() - 1
    };
    let _ = answer(number, &request).write_to(&mut stream);
}

fn read_request(stream: &TcpStream) -> std::io::Result<Option<ReceivedRequest>> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (Some(method), Some(path)) = (words.next(), words.next()) else { return Ok(None) };
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let is_form = headers.iter().any(|(name, value)| {
        name == "content-type" && value.starts_with("application/x-www-form-urlencoded")
    });
    let bytes = body;
    let body = match is_form {
        true => url::form_urlencoded::parse(&bytes).into_owned().collect(),
        false => serde_json::from_slice(&bytes).unwrap_or_default(),
    };
    Ok(Some(ReceivedRequest { method, path, headers, body, bytes }))
}
