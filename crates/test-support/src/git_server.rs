//! [`GitServer`]: repositories over HTTP, served by git's own `http-backend`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Serves the repositories in a folder. It ends when it is dropped.
pub struct GitServer {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl GitServer {
    /// Serves the bare repositories in `folder` on an address of this machine, such as `127.0.0.2`.
    pub fn start(folder: PathBuf, host: &str) -> Self {
        let listener = TcpListener::bind((host, 0)).expect("a free port");
        let address = listener.local_addr().expect("its address");
        let (requests, is_over) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
        let (count, over) = (requests.clone(), is_over.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if over.load(Ordering::Relaxed) {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
                let folder = folder.clone();
                // A client that goes away in the middle is none that a test asks about.
                thread::spawn(move || drop(serve(stream, &folder)));
            }
        });
        GitServer { address, requests, is_over }
    }

    /// The URL without a path.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// How many requests there were.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread that waits for connections.
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut line = String::new();
    reader.read_line(&mut line)?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut command = Command::new("git");
    command.arg("http-backend").env("GIT_PROJECT_ROOT", folder).env("GIT_HTTP_EXPORT_ALL", "1");
    command.env("REQUEST_METHOD", method).env("PATH_INFO", path).env("QUERY_STRING", query);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("REMOTE_ADDR", "127.0.0.1");
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let value = value.trim();
        match &*name.to_ascii_lowercase() {
            "content-length" => length = value.parse().unwrap_or(0),
            "content-type" => drop(command.env("CONTENT_TYPE", value)),
            "content-encoding" => drop(command.env("HTTP_CONTENT_ENCODING", value)),
            "git-protocol" => drop(command.env("GIT_PROTOCOL", value)),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    command.env("CONTENT_LENGTH", length.to_string());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    child.stdin.take().map_or(Ok(()), |mut input| input.write_all(&body))?;
    let output = child.wait_with_output()?.stdout;
    // The status is a header of a CGI program.
    let head_end = output.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap_or(0);
    let head = String::from_utf8_lossy(&output[..head_end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let rest = output.get(head_end + 4..).unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{head}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        rest.len()
    )?;
    stream.write_all(rest)?;
    stream.flush()
}
