//! [`OauthHttp`]: the requests of a login. None follows a redirect, takes longer or answers more than a
//! limit, or goes to an address that is not allowed.

use std::time::Duration;

use rmcp::transport::auth::{OAuthHttpClient, OAuthHttpClientFuture, OAuthHttpRequest};
use url::{Host, Url};

use super::error::LoginError;
use crate::connection::http_client;
use crate::failures::causes;

/// The largest answer, in bytes. Metadata and tokens have a few KB.
const MAX_ANSWER: usize = 1 << 20;

/// How long a request may take in all.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// Requests on behalf of a login at one server.
#[derive(Clone)]
pub(crate) struct OauthHttp {
    client: reqwest::Client,
    server: Url,
}

impl OauthHttp {
    /// Requests for a login at the server with this address.
    pub fn new(server: &str) -> Result<Self, LoginError> {
        let server = allowed_address(None, "the server's address", server)?;
        let client = http_client().map_err(|error| LoginError::Http(error.to_string()))?;
        Ok(OauthHttp { client, server })
    }

    /// The address of the server.
    pub fn server(&self) -> &Url {
        &self.server
    }

    /// Checks an address that the server or its authorization server named.
    pub fn check(&self, what: &'static str, address: &str) -> Result<(), LoginError> {
        allowed_address(Some(&self.server), what, address).map(|_| ())
    }

    /// Sends a request.
    pub async fn send(&self, request: http::Request<Vec<u8>>) -> Result<http::Response<Vec<u8>>, LoginError> {
        self.check("an address of the login", &request.uri().to_string())?;
        let failed = |error: reqwest::Error| LoginError::Http(causes(&error.without_url()));
        let request = reqwest::Request::try_from(request).map_err(failed)?;
        let exchange = async {
            let mut response = self.client.execute(request).await.map_err(failed)?;
            let mut answer = http::Response::new(Vec::new());
            (*answer.status_mut(), *answer.headers_mut()) = (response.status(), response.headers().clone());
            let kind = response.headers().get(http::header::CONTENT_TYPE);
            if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream")) {
                // A server that needs no login sends events until it is left.
                return Ok(answer);
            }
            while let Some(chunk) = response.chunk().await.map_err(failed)? {
                if answer.body().len() + chunk.len() > MAX_ANSWER {
                    return Err(LoginError::Http(format!("the answer has more than {MAX_ANSWER} bytes")));
                }
                answer.body_mut().extend_from_slice(&chunk);
            }
            Ok(answer)
        };
        let late = |_| LoginError::Http(format!("no answer within {} s", REQUEST_TIME.as_secs()));
        tokio::time::timeout(REQUEST_TIME, exchange).await.map_err(late)?
    }
}

impl OAuthHttpClient for OauthHttp {
    fn execute(&self, request: OAuthHttpRequest) -> OAuthHttpClientFuture<'_> {
        // Whatever the policy asks for, no redirect is followed.
        Box::pin(async move { self.send(request.request).await.map_err(Into::into) })
    }
}

/// An address that secrets may go to: `https`, or this machine if the server is there, too.
fn allowed_address(server: Option<&Url>, what: &'static str, address: &str) -> Result<Url, LoginError> {
    let refused = || LoginError::UnsafeAddress { what, address: crate::plain_text::plain_text(address, 300) };
    let url = Url::parse(address).map_err(|_| refused())?;
    let has_secret = !url.username().is_empty() || url.password().is_some();
    let may_be_here = server.is_none_or(is_loopback);
    let is_allowed = match url.scheme() {
        "https" => may_be_here || !is_loopback(&url),
        "http" => may_be_here && is_loopback(&url),
        _ => false,
    };
    if is_allowed && !has_secret { Ok(url) } else { Err(refused()) }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_to_https_and_from_this_machine_to_this_machine() {
        let allows = |server: &str, address: &str| {
            let server = Url::parse(server).unwrap();
            allowed_address(Some(&server), "it", address).is_ok()
        };
        let (far, near) = ("https://a.example/mcp", "http://127.0.0.1:3000/mcp");
        for (server, address, expected) in [
            (far, "https://b.example/token", true),
            (far, "http://a.example/token", false),
            (far, "http://127.0.0.1:1/token", false),
            (far, "https://localhost/token", false),
            (far, "https://me:secret@b.example/token", false),
            (far, "file:///etc/passwd", false),
            (far, "javascript:alert(1)", false),
            (far, "/token", false),
            (near, "http://localhost:1/token", true),
            (near, "http://[::1]:1/token", true),
            (near, "http://localhost.b.example/token", false),
            (near, "http://b.example/token", false),
            (near, "https://b.example/token", true),
        ] {
            assert_eq!(allows(server, address), expected, "{server} {address}");
        }
        assert!(allowed_address(None, "it", "http://a.example/mcp").is_err());
        assert!(allowed_address(None, "it", near).is_ok());
    }
}
