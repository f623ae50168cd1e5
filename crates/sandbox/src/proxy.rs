//! [`HostPattern`] and the proxy that lets programs reach the hosts that patterns name.
//!
//! The program has a network of its own, in which nothing is but a port that this process listens on.
//! Whoever connects there asks for a host (`CONNECT host:443`, or `GET http://host/`); this process
//! connects if a pattern allows it. So programs need no names resolved, and cannot reach anything by
//! its address.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::os::fd::OwnedFd;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use crate::public_address::is_public_address;

/// The longest head of a request.
const MAX_HEAD: usize = 16 * 1024;
/// The most connections at the same time; more are refused.
const MAX_CONNECTIONS: usize = 128;
/// How long a program may take for the head of its request, and a host to answer a connection.
const PATIENCE: Duration = Duration::from_secs(20);
/// The ports that a pattern without a port allows.
const USUAL_PORTS: [u16; 2] = [80, 443];

/// Hosts that programs may reach: `crates.io`, `*.npmjs.org` (its subdomains), `localhost:8080`.
///
/// Without a port, the usual ones of the web. A name that leads to this machine or to a private
/// network is refused, unless the pattern is that address, or `localhost`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    host: String,
    /// It stands for the subdomains of the host.
    is_wildcard: bool,
    port: Option<u16>,
}

/// A pattern that names no host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no host: write `crates.io`, `*.npmjs.org` or `localhost:8080`")]
pub struct InvalidHostPattern(String);

impl FromStr for HostPattern {
    type Err = InvalidHostPattern;

    fn from_str(text: &str) -> Result<Self, InvalidHostPattern> {
        let invalid = || InvalidHostPattern(text.to_owned());
        let (is_wildcard, rest) = match text.strip_prefix("*.") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (host, port) = split_port(rest).ok_or_else(invalid)?;
        let is_name = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        let is_address = host.parse::<IpAddr>().is_ok();
        if host.is_empty() || !(is_address || host.chars().all(is_name)) || (is_address && is_wildcard) {
            return Err(invalid());
        }
        Ok(HostPattern { host, is_wildcard, port })
    }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_wildcard { "*." } else { "" })?;
        f.write_str(&self.host)?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

impl HostPattern {
    fn allows(&self, host: &str, port: u16) -> bool {
        let is_host = if self.is_wildcard {
            host.strip_suffix(&*self.host).is_some_and(|before| before.len() > 1 && before.ends_with('.'))
        } else {
            host == self.host
        };
        is_host && self.port.map_or_else(|| USUAL_PORTS.contains(&port), |only| only == port)
    }

    fn allows_private(&self) -> bool {
        !self.is_wildcard && (self.host == "localhost" || self.host.parse::<IpAddr>().is_ok())
    }
}

/// `host`, `host:port`, `[::1]` or `[::1]:port`, the host in lower case and without a dot at its end.
fn split_port(text: &str) -> Option<(String, Option<u16>)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']')?;
            (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some("")))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => Some(port.parse().ok().filter(|port| *port != 0)?),
        None => None,
    };
    Some((host.trim_end_matches('.').to_ascii_lowercase(), port))
}

/// A proxy for one program. It stops to listen when it is dropped.
pub(crate) struct Proxy {
    listener: Arc<OwnedFd>,
}

impl Proxy {
    /// Serves a socket that listens in the program's network.
    pub fn serve(listener: OwnedFd, hosts: Vec<HostPattern>) -> io::Result<Self> {
        let accepting = TcpListener::from(listener.try_clone()?);
        let (hosts, connections) = (Arc::new(hosts), Arc::new(AtomicUsize::new(0)));
        thread::Builder::new().name("proxy".to_owned()).spawn(move || {
            while let Ok((client, _)) = accepting.accept() {
                let (hosts, connections) = (hosts.clone(), connections.clone());
                if connections.fetch_add(1, Ordering::Relaxed) >= MAX_CONNECTIONS {
                    connections.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let serve = move || {
                    let _ = serve_client(client, &hosts);
                    connections.fetch_sub(1, Ordering::Relaxed);
                };
                if thread::Builder::new().name("proxy".to_owned()).spawn(serve).is_err() {
                    break;
                }
            }
        })?;
        Ok(Proxy { listener: Arc::new(listener) })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&*self.listener, rustix::net::Shutdown::Both);
    }
}

fn serve_client(mut client: TcpStream, hosts: &[HostPattern]) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let (head, rest) = read_head(&mut client)?;
    let Some(request) = ProxyRequest::parse(&head) else {
        return answer(&mut client, "400 Bad Request", "not a request to a proxy");
    };
    let mut server = match connect(&request, hosts) {
        Ok(server) => server,
        Err(Refusal::Forbidden) => {
            let why = format!("the sandbox allows no connection to {}:{}", request.host, request.port);
            return answer(&mut client, "403 Forbidden", &why);
        }
        Err(Refusal::Unreachable(error)) => {
            let why = format!("{}:{} cannot be reached: {error}", request.host, request.port);
            return answer(&mut client, "502 Bad Gateway", &why);
        }
    };
    match &request.head {
        // `CONNECT`: what follows is between the two.
        None => client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?,
        Some(head) => server.write_all(head.as_bytes())?,
    }
    server.write_all(&rest)?;
    client.set_read_timeout(None)?;
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let upwards = thread::spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    let _ = io::copy(&mut server, &mut client);
    // The server is done, so the program is: an HTTP request was sent with `Connection: close`.
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = upwards.join();
    Ok(())
}

fn answer(client: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    let length = why.len() + 1;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(format!("{head}{why}\n").as_bytes())
}

/// The head of a request, without the empty line at its end, and what came after it.
fn read_head(client: &mut TcpStream) -> io::Result<(String, Vec<u8>)> {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let length = client.read(&mut buffer)?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.extend_from_slice(&buffer[..length]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            bytes.truncate(end);
            let head = String::from_utf8(bytes).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
            return Ok((head, rest));
        }
        if bytes.len() > MAX_HEAD {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
}

/// What a program asks the proxy for.
struct ProxyRequest {
    host: String,
    port: u16,
    /// What to send to the server; none for a tunnel.
    head: Option<String>,
}

impl ProxyRequest {
    fn parse(head: &str) -> Option<Self> {
        // A line end of one character is one for some servers, and would hide a header from us.
        if head.split("\r\n").any(|line| line.contains(|c: char| c.is_control() && c != '\t')) {
            return None;
        }
        let (line, headers) = head.split_once("\r\n").unwrap_or((head, ""));
        let [method, target, version] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        if method == "CONNECT" {
            let (host, port) = split_port(target)?;
            return Some(ProxyRequest { host, port: port?, head: None });
        }
        let rest = target.strip_prefix("http://")?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = split_port(authority)?;
        // One request for each connection, to the host that was checked.
        let mut head = format!("{method} {path} {version}\r\nHost: {authority}\r\nConnection: close\r\n");
        for header in headers.split("\r\n") {
            let name = header.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
            let is_ours = matches!(&*name, "host" | "connection" | "keep-alive" | "upgrade" | "")
                || name.starts_with("proxy-");
            if !is_ours {
                head += header;
                head += "\r\n";
            }
        }
        head += "\r\n";
        Some(ProxyRequest { host, port: port.unwrap_or(80), head: Some(head) })
    }
}

enum Refusal {
    Forbidden,
    Unreachable(io::Error),
}

fn connect(request: &ProxyRequest, hosts: &[HostPattern]) -> Result<TcpStream, Refusal> {
    let mut allowing = hosts.iter().filter(|pattern| pattern.allows(&request.host, request.port)).peekable();
    if allowing.peek().is_none() {
        return Err(Refusal::Forbidden);
    }
    let allows_private = allowing.any(HostPattern::allows_private);
    let found = (&*request.host, request.port).to_socket_addrs().map_err(Refusal::Unreachable)?;
    let found: Vec<SocketAddr> = found.collect();
    let is_allowed = |address: &&SocketAddr| allows_private || is_public_address(address.ip());
    let mut last = Refusal::Forbidden;
    for address in found.iter().filter(is_allowed) {
        match TcpStream::connect_timeout(address, PATIENCE) {
            Ok(server) => return Ok(server),
            Err(error) => last = Refusal::Unreachable(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> HostPattern {
        text.parse().unwrap()
    }

    #[test]
    fn patterns_allow_what_they_name_and_nothing_that_looks_like_it() {
        let allows = |text: &str, target: &str| {
            let (host, port) = split_port(target).unwrap();
            pattern(text).allows(&host, port.unwrap_or(443))
        };
        for (text, target) in [
            ("crates.io", "crates.io"),
            ("crates.io", "CRATES.io."),
            ("Crates.IO", "crates.io:80"),
            ("*.npmjs.org", "registry.npmjs.org"),
            ("*.npmjs.org", "a.b.npmjs.org:443"),
            ("localhost:8080", "localhost:8080"),
            ("[::1]", "[::1]:443"),
            ("[::1]:9", "[::1]:9"),
        ] {
            assert!(allows(text, target), "{text} {target}");
        }
        for (text, target) in [
            ("crates.io", "static.crates.io"),
            ("crates.io", "notcrates.io"),
            ("crates.io", "crates.io.evil.example"),
            ("crates.io", "crates.io:22"),
            ("*.npmjs.org", "npmjs.org"),
            ("*.npmjs.org", "evilnpmjs.org"),
            ("*.npmjs.org", ".npmjs.org"),
            ("localhost:8080", "localhost:8081"),
            ("localhost:8080", "localhost"),
        ] {
            assert!(!allows(text, target), "{text} {target}");
        }
        for text in ["", "*", "*.", "a b", "http://a", "a/b", "a:b", "a:0", "*.1.2.3.4", "a@b"] {
            assert!(text.parse::<HostPattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_request_goes_to_the_host_that_was_checked() {
        let head = "GET http://a.example:81/x?y HTTP/1.1\r\nHost: other.example\r\nProxy-Connection: keep-alive\r\nAccept: */*";
        let request = ProxyRequest::parse(head).unwrap();
        assert_eq!((&*request.host, request.port), ("a.example", 81));
        assert_eq!(
            request.head.as_deref(),
            Some("GET /x?y HTTP/1.1\r\nHost: a.example:81\r\nConnection: close\r\nAccept: */*\r\n\r\n")
        );
        for hidden in ["X: 1\nHost: other.example", "X: 1\rHost: other.example", "X: \0"] {
            let head = format!("GET http://a.example/ HTTP/1.1\r\n{hidden}");
            assert!(ProxyRequest::parse(&head).is_none(), "{head:?}");
        }
        assert!(ProxyRequest::parse("GET\nHost:x http://a.example/ HTTP/1.1").is_none());
        for head in
            ["GET / HTTP/1.1", "CONNECT a.example HTTP/1.1", "GET https://a/ HTTP/1.1", "", "CONNECT :443 x"]
        {
            let parsed = ProxyRequest::parse(head);
            assert!(
                parsed.is_none_or(|request| !pattern("a.example").allows(&request.host, request.port)),
                "{head}"
            );
        }
    }
}
