//! [`RedirectListener`]: the page on this machine that the browser comes back to, and [`RedirectAnswer`]:
//! what it brings.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use url::Url;

use super::error::LoginError;
use crate::plain_text::plain_text;

/// The path that the browser comes back to.
const PATH: &str = "/callback";

/// The largest head of a request, in bytes. Codes of some servers have several KB.
const MAX_HEAD: usize = 32 << 10;

/// How long a browser may take to send its request, and to read the answer.
const REQUEST_TIME: Duration = Duration::from_secs(10);

/// How many browsers may be connected at once. Browsers open connections that they do not use.
const MAX_CONNECTIONS: usize = 32;

/// What the browser brings back.
#[derive(Clone, PartialEq, Eq)]
pub enum RedirectAnswer {
    /// The person may go on.
    Granted {
        /// What a token is given for.
        code: String,
        /// The authorization server that says so.
        issuer: Option<String>,
    },
    /// Nothing was granted, for this reason.
    Denied(String),
}

/// Why an address is no answer to a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidAnswer {
    /// It has neither a code nor an error.
    #[error("that is no answer to a login: expected the address of the page after the login")]
    NoAnswer,
    /// It answers another login, or somebody else made it up.
    #[error("that answers another login (its state is a different one), and is ignored")]
    WrongState,
}

impl RedirectAnswer {
    /// Reads the address that the browser came back to: it has to have this state.
    pub fn read(address: &str, state: &str) -> Result<Self, InvalidAnswer> {
        let url = Url::parse(address.trim()).map_err(|_| InvalidAnswer::NoAnswer)?;
        let parameter = |name: &str| {
            let mut values = url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value);
            values.next().map(std::borrow::Cow::into_owned)
        };
        let (code, error) = (parameter("code"), parameter("error"));
        if code.is_none() && error.is_none() {
            return Err(InvalidAnswer::NoAnswer);
        }
        if parameter("state").as_deref() != Some(state) {
            return Err(InvalidAnswer::WrongState);
        }
        match (error, code) {
            (None, Some(code)) => Ok(RedirectAnswer::Granted { code, issuer: parameter("iss") }),
            (error, _) => {
                let texts = [error, parameter("error_description")];
                let texts: Vec<String> = texts.iter().flatten().map(|text| plain_text(text, 300)).collect();
                Ok(RedirectAnswer::Denied(texts.join(": ")))
            }
        }
    }
}

/// Waits on a loopback port for the browser.
pub struct RedirectListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl RedirectListener {
    /// Listens on this port, or on any free one.
    pub async fn bind(port: Option<u16>) -> Result<Self, LoginError> {
        let port = port.unwrap_or(0);
        let failed = |source| LoginError::NoPort { port, source };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(RedirectListener { listener, address })
    }

    /// The address that the browser has to come back to.
    pub fn redirect_uri(&self) -> String {
        format!("http://{}{PATH}", self.address)
    }

    /// Waits for an answer with this state. Others are refused, and `invalid` is told; so that nobody who
    /// guesses the port can end a login.
    pub async fn answer(&self, state: &str, mut invalid: impl FnMut(InvalidAnswer)) -> RedirectAnswer {
        let (sender, mut answers) = mpsc::channel(MAX_CONNECTIONS);
        // They end with this function.
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                accepted = self.listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    if let Ok((stream, _)) = accepted {
                        let (sender, state, address) = (sender.clone(), state.to_owned(), self.address);
                        connections.spawn(async move {
                            let _ = tokio::time::timeout(REQUEST_TIME, take_request(stream, address, &state, &sender)).await;
                        });
                    }
                }
                Some(answer) = answers.recv() => match answer {
                    Ok(answer) => {
                        // The page is on its way to the browser.
                        let _ = tokio::time::timeout(Duration::from_secs(1), async {
                            while connections.join_next().await.is_some() {}
                        }).await;
                        return answer;
                    }
                    Err(reason) => invalid(reason),
                },
                Some(_) = connections.join_next(), if !connections.is_empty() => {}
            }
        }
    }
}

/// Reads a request and answers it with a page.
async fn take_request(
    mut stream: TcpStream,
    address: SocketAddr,
    state: &str,
    answers: &mpsc::Sender<Result<RedirectAnswer, InvalidAnswer>>,
) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < MAX_HEAD {
        let mut part = [0; 4096];
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            count => head.extend_from_slice(&part[..count]),
        }
    }
    let line =
        String::from_utf8_lossy(head.split(|byte| *byte == b'\r').next().unwrap_or_default()).into_owned();
    let target = line.strip_prefix("GET ").and_then(|rest| rest.split(' ').next());
    let is_ours = target
        .and_then(|target| target.strip_prefix(PATH))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('?'));
    let Some(target) = target.filter(|_| is_ours) else {
        return send_page(&mut stream, "404 Not Found", "There is nothing here.").await;
    };
    let answer = RedirectAnswer::read(&format!("http://{address}{target}"), state);
    let (status, text) = match &answer {
        Ok(RedirectAnswer::Granted { .. }) => {
            ("200 OK", "Hardpan has the answer. You can close this page and go back to the terminal.")
        }
        Ok(RedirectAnswer::Denied(_)) => ("200 OK", "The login was not granted. The terminal says more."),
        Err(_) => ("400 Bad Request", "This does not answer the login that Hardpan waits for."),
    };
    // Whoever waits may have gone.
    let _ = answers.send(answer).await;
    send_page(&mut stream, status, text).await
}

/// Sends a page with nothing of the request in it.
async fn send_page(stream: &mut TcpStream, status: &str, text: &str) -> std::io::Result<()> {
    let page = format!("<!doctype html><meta charset=\"utf-8\"><title>Hardpan</title><p>{text}</p>\n");
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\
         cache-control: no-store\r\nreferrer-policy: no-referrer\r\ncontent-security-policy: default-src 'none'\r\n\r\n",
        page.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(page.as_bytes()).await?;
    stream.shutdown().await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(query: &str) -> Result<(String, Option<String>), String> {
        match RedirectAnswer::read(&format!(" http://127.0.0.1:1/callback{query}\n"), "s") {
            Ok(RedirectAnswer::Granted { code, issuer }) => Ok((code, issuer)),
            Ok(RedirectAnswer::Denied(reason)) => Err(reason),
            Err(error) => Err(format!("{error:?}")),
        }
    }

    #[test]
    fn an_answer_has_the_state_of_the_login() {
        assert_eq!(read("?code=a%20b&state=s"), Ok(("a b".into(), None)));
        assert_eq!(read("?state=s&iss=https://b&code=c"), Ok(("c".into(), Some("https://b".into()))));
        assert_eq!(read("?code=a&state=t"), Err("WrongState".into()));
        assert_eq!(read("?code=a"), Err("WrongState".into()));
        assert_eq!(read("?error=access_denied"), Err("WrongState".into()));
        assert_eq!(read("?code=a&state=t&state=s"), Err("WrongState".into()));
        assert_eq!(read(""), Err("NoAnswer".into()));
        assert_eq!(RedirectAnswer::read("yes", "s").err(), Some(InvalidAnswer::NoAnswer));
        assert_eq!(
            read("?error=access_denied&error_description=not%20%1b%5B31mtoday&state=s"),
            Err("access_denied: not today".into())
        );
        assert_eq!(read("?error=access_denied&code=c&state=s"), Err("access_denied".into()));
    }
}
