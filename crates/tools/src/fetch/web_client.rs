//! [`WebClient`]: requests of programs that run inside of Hardpan, to addresses that `fetch` may reach.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, Method, Url};
use thiserror::Error;

use super::address_guard::{AddressError, AddressGuard};
use super::error::FetchError;
use super::{MAX_ADDRESS_BYTES, WebOptions, build_client, redirect_target};

/// How long a request may take.
const MAX_TIME: Duration = Duration::from_secs(120);

/// The most bytes of an answer.
const MAX_BYTES: usize = 16 << 20;

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

/// What a server answered.
#[derive(Clone, Debug)]
pub struct WebAnswer {
    /// The status, such as 200.
    pub status: u16,
    /// Names and values of headers.
    pub headers: Vec<(String, String)>,
    /// The content.
    pub body: Vec<u8>,
    /// Where a redirect leads to. It is not followed.
    pub redirect: Option<String>,
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

    fn parse(&self, url: &str) -> Result<Url, FetchError> {
        if url.len() > MAX_ADDRESS_BYTES {
            return Err(FetchError::LongAddress);
        }
        let url: Url = url.parse().map_err(FetchError::InvalidAddress)?;
        self.guard.check_url(&url)?;
        Ok(url)
    }

    /// Sends a request. Redirects are answers.
    pub async fn send(&self, request: WebRequest) -> Result<WebAnswer, WebRequestError> {
        let sent = tokio::time::timeout(MAX_TIME, self.send_unbounded(request)).await;
        let late = |_| FetchError::TimedOut { seconds: MAX_TIME.as_secs() };
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
        let (mut body, mut stream) = (Vec::new(), response.bytes_stream());
        while let Some(chunk) = stream.next().await {
            body.extend_from_slice(&chunk.map_err(|error| FetchError::BrokeOff(error.into()))?);
            if body.len() > MAX_BYTES {
                return Err(FetchError::LargeAnswer { limit: MAX_BYTES });
            }
        }
        Ok(WebAnswer { status, headers, body, redirect })
    }
}
