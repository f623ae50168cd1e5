//! [`WebClient`]: requests of programs that run inside of Hardpan, to addresses that `fetch` may reach.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Method, Url};
use thiserror::Error;

use super::address_guard::{AddressError, AddressGuard};
use super::error::FetchError;
use super::{MAX_ADDRESS_BYTES, WebOptions, build_client, redirect_target};

/// How long a server may take until its answer begins, and for each further part.
const MAX_SILENCE: Duration = Duration::from_secs(120);

/// How long an answer may take as a whole: servers stream what a model writes.
const MAX_TIME: Duration = Duration::from_secs(3600);

/// The most bytes of an answer.
const MAX_BYTES: usize = 16 << 20;

/// What has arrived already is handed on together, up to so many bytes.
const PART_BYTES: usize = 256 << 10;

/// A request to a server.
#[derive(Clone, Debug)]
pub struct WebRequest {
    /// The method, such as `GET`.
    pub method: String,
    /// The address.
    pub url: String,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// What is sent.
    pub body: Option<Vec<u8>>,
}

/// What a server answers. Its content may still be arriving.
#[derive(Debug)]
pub struct WebAnswer {
    /// The status, such as 200.
    pub status: u16,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub body: WebBody,
    /// Where a redirect leads to. It is not followed.
    pub redirect: Option<String>,
}

/// The content of an answer, part by part. Dropping it ends the connection.
pub struct WebBody {
    parts: BoxStream<'static, Result<Bytes, reqwest::Error>>,
    /// How many bytes there were.
    length: usize,
    end: tokio::time::Instant,
}

impl std::fmt::Debug for WebBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WebBody").field("length", &self.length).finish_non_exhaustive()
    }
}

impl WebBody {
    /// What has arrived since the last part; waits for something. None after the end.
    pub async fn next_part(&mut self) -> Result<Option<Bytes>, WebRequestError> {
        let limit = self.end.min(tokio::time::Instant::now() + MAX_SILENCE);
        let late = |_| FetchError::TimedOut { seconds: MAX_SILENCE.as_secs() };
        let first = tokio::time::timeout_at(limit, self.parts.next()).await.map_err(late)?;
        let Some(first) = self.counted(first)? else { return Ok(None) };
        let mut part = BytesMut::from(first);
        while part.len() < PART_BYTES
            && let Some(next) = self.parts.next().now_or_never()
        {
            match self.counted(next)? {
                Some(more) => part.extend_from_slice(&more),
                None => break, // the next call sees the end, too
            }
        }
        Ok(Some(part.freeze()))
    }

    fn counted(&mut self, part: Option<Result<Bytes, reqwest::Error>>) -> Result<Option<Bytes>, FetchError> {
        let Some(part) = part.transpose().map_err(|error| FetchError::BrokeOff(error.into()))? else {
            // A stream that has ended is not asked again.
            self.parts = futures_util::stream::empty().boxed();
            return Ok(None);
        };
        self.length += part.len();
        if self.length > MAX_BYTES {
            return Err(FetchError::LargeAnswer { limit: MAX_BYTES });
        }
        Ok(Some(part))
    }
}

/// Why a request got no answer.
#[derive(Clone, Debug, Error)]
#[error(transparent)]
pub struct WebRequestError(#[from] FetchError);

/// Sends requests to public addresses, and to private hosts that the settings allow.
pub struct WebClient {
    client: Result<Client, FetchError>,
    guard: AddressGuard,
    is_proxied: bool,
}

impl WebClient {
    /// A client that may reach what `web` allows.
    pub fn new(web: &WebOptions) -> Self {
        let guard = AddressGuard { private_hosts: web.private_hosts.clone().into() };
        let client = build_client(web, guard.clone()).map_err(FetchError::from);
        WebClient { client, guard, is_proxied: web.proxy.is_some() }
    }

    /// The host of an address, if requests to it are possible at all.
    pub fn check_host(&self, url: &str) -> Result<String, WebRequestError> {
        let url = self.parse(url)?;
        Ok(url.host_str().unwrap_or_default().to_owned())
    }

    /// Scheme, host and port of an address, if requests to it are possible at all.
    pub fn check_origin(&self, url: &str) -> Result<String, WebRequestError> {
        Ok(self.parse(url)?.origin().ascii_serialization())
    }

    fn parse(&self, url: &str) -> Result<Url, FetchError> {
        if url.len() > MAX_ADDRESS_BYTES {
            return Err(FetchError::LongAddress);
        }
        let url: Url = url.parse().map_err(FetchError::InvalidAddress)?;
        self.guard.check_url(&url)?;
        Ok(url)
    }

    /// Sends a request, and waits until its answer begins. Redirects are answers.
    pub async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebRequestError> {
        let sent = tokio::time::timeout(MAX_SILENCE, self.send_unbounded(request)).await;
        let late = |_| FetchError::TimedOut { seconds: MAX_SILENCE.as_secs() };
        Ok(sent.map_err(late).flatten()?)
    }

    async fn send_unbounded(&self, request: WebRequest) -> Result<WebAnswer, FetchError> {
        let client = self.client.as_ref().map_err(Clone::clone)?;
        let url = self.parse(&request.url)?;
        if self.is_proxied
            && let Err(refused @ AddressError::Private { .. }) =
                self.guard.resolve_host(url.host_str().unwrap_or_default()).await
        {
            return Err(refused.into());
        }
        let method: Method = request.method.parse().map_err(|_| FetchError::InvalidMethod)?;
        let mut builder = client.request(method, url.clone());
        for (name, value) in &request.headers {
            let invalid = || FetchError::InvalidHeader { name: name.clone() };
            let header: HeaderName = name.parse().map_err(|_| invalid())?;
            builder = builder.header(header, HeaderValue::from_str(value).map_err(|_| invalid())?);
        }
        let builder = match request.body {
            Some(body) => builder.body(body),
            None => builder,
        };
        let response = builder.send().await?;
        let redirect = redirect_target(&response).and_then(|to| url.join(&to).ok()).map(String::from);
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let headers =
            response.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
        let status = response.status().as_u16();
        let (parts, end) = (response.bytes_stream().boxed(), tokio::time::Instant::now() + MAX_TIME);
        Ok(WebAnswer { status, headers, body: WebBody { parts, length: 0, end }, redirect })
    }
}
