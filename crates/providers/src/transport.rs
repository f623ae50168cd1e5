//! How bytes get to a provider and back: over HTTP, or within the process.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use bytes::Bytes;
use futures_util::Stream;
use thiserror::Error;

/// A request as it leaves.
#[derive(Clone)]
pub struct HttpRequest {
    /// Where it goes.
    pub url: String,
    /// Header names and values. Values may be keys: they are never printed.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpRequest")
            .field("url", &self.url)
            .field("headers", &names)
            .field("body", &format_args!("{} bytes", self.body.len()))
            .finish()
    }
}

/// The bytes of an answer as they come.
pub type ByteStream = Pin<Box<dyn Stream<Item = Result<Bytes, TransportError>> + Send>>;

/// An answer as it arrives.
pub struct HttpResponse {
    /// The status code.
    pub status: u16,
    /// Header names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: ByteStream,
}

impl HttpResponse {
    /// The value of a header.
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

/// Why no answer came, or why it broke off.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TransportError {
    /// The server could not be reached.
    #[error("{host} cannot be reached: {reason}")]
    Unreachable {
        /// The server.
        host: String,
        /// Why.
        reason: String,
    },
    /// The connection broke while the answer came.
    #[error("the connection to {host} broke: {reason}")]
    Broken {
        /// The server.
        host: String,
        /// Why.
        reason: String,
    },
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {reason}")]
    Invalid {
        /// What is wrong with it.
        reason: String,
    },
}

/// Something that carries requests. Dropping the future or the body's stream cancels it at once.
pub trait Transport: Send + Sync {
    /// Sends a request and returns as soon as the answer's head is there.
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>>;
}
