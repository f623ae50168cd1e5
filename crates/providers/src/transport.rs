//! [`Transport`] carries requests to a provider: over HTTP, or to a simulator within the process.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use thiserror::Error;

/// What a request wants of its URL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HttpMethod {
    /// To read it; there is no body.
    Get,
    /// To have its body processed.
    #[default]
    Post,
}

impl HttpMethod {
    /// The word in the request.
    pub fn name(self) -> &'static str {
        match self {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
        }
    }
}

/// An HTTP request, ready to be sent.
#[derive(Clone)]
pub struct HttpRequest {
    /// What it wants.
    pub method: HttpMethod,
    /// The absolute URL.
    pub url: String,
    /// Header names and values. Values may be API keys: `Debug` does not print them.
    pub headers: Vec<(String, String)>,
    /// The JSON body; empty for [`HttpMethod::Get`].
    pub body: Bytes,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &mask_url(&self.url))
            .field("headers", &names)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// A URL as it may be shown: without the name and password before its host, and without the values
/// of its query, which may be a key.
pub fn mask_url(url: &str) -> String {
    const MASK: &str = "•••";
    let (url, query) = url.split_once('?').map_or((url, None), |(url, query)| (url, Some(query)));
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let end = rest.find(['/', '#']).unwrap_or(rest.len());
    // The last `@`: a password may contain others.
    let host = rest[..end].rfind('@').map_or(0, |at| at + 1);
    let mask = if host > 0 { "•••@" } else { "" };
    let query = query.map_or_else(String::new, |query| {
        let masked = query.split('&').map(|pair| match pair.split_once('=') {
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.to_owned(),
        });
        format!("?{}", masked.collect::<Vec<_>>().join("&"))
    });
    format!("{scheme}{mask}{}{query}", &rest[host..])
}

/// The bytes of a response body, as they arrive.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// An HTTP response whose body is still arriving.
pub struct HttpResponse {
    /// The HTTP status code.
    pub status: u16,
    /// Header names, in lower case, and their values.
    pub headers: Vec<(String, String)>,
    /// The body; an item is `Err` if the connection breaks.
    pub body: ByteStream,
}

impl HttpResponse {
    /// The value of the header `name`, which must be in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpResponse")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// Why no response came, or why it broke off.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransportError {
    /// The server could not be reached.
    #[error("{host} cannot be reached: {reason}")]
    Unreachable {
        /// The host name of the URL.
        host: String,
        /// The message of the innermost cause, such as `Connection refused`.
        reason: String,
    },
    /// The connection broke while the response was arriving.
    #[error("the connection to {host} broke: {reason}")]
    Broken {
        /// The host name of the URL.
        host: String,
        /// The message of the innermost cause.
        reason: String,
    },
    /// The extension that brings the provider did not let it be sent, or the person did not.
    #[error("{reason}")]
    Extension {
        /// Why.
        reason: String,
    },
    /// The request cannot be sent, such as for an invalid URL, header or proxy.
    #[error("the request cannot be sent: {reason}")]
    Invalid {
        /// What is wrong with the request.
        reason: String,
    },
}

/// Carries requests to a provider. Dropping the future or the body's stream cancels the request.
pub trait Transport: Send + Sync {
    /// Sends a request and returns as soon as the response's status and headers have arrived.
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_passwords() {
        for (url, shown) in [
            ("https://api.example.com/v1", "https://api.example.com/v1"),
            ("http://user:pass@host:80/v1", "http://•••@host:80/v1"),
            ("http://user:p@ss@host", "http://•••@host"),
            ("https://host/v1?key=abc&x", "https://host/v1?key=•••&•••"),
            ("user:pass@host/v1", "•••@host/v1"),
            ("https://host/@user", "https://host/@user"),
            ("", ""),
        ] {
            assert_eq!(mask_url(url), shown, "{url}");
        }
    }
}
