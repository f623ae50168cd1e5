//! Requests over HTTP.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;

use crate::{HttpRequest, HttpResponse, Transport, TransportError};

/// Sends requests over HTTP, with TLS by rustls. Connections are kept and used again.
#[derive(Clone, Debug)]
pub struct Http {
    client: reqwest::Client,
}

impl Http {
    /// A transport that goes through `proxy`, or through what the environment names (`HTTPS_PROXY` and its kind).
    pub fn new(proxy: Option<&str>) -> Result<Self, TransportError> {
        // The first one to install a provider wins; any will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let invalid = |error: reqwest::Error| TransportError::Invalid { reason: reason(&error) };
        let mut builder = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(30))
            // A redirect would carry the key to a place nobody chose.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(proxy) = proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(invalid)?);
        }
        Ok(Http { client: builder.build().map_err(invalid)? })
    }
}

impl Transport for Http {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        Box::pin(async move {
            let url: reqwest::Url = request
                .url
                .parse()
                .map_err(|_| TransportError::Invalid { reason: format!("{} is no address", request.url) })?;
            let host = url.host_str().unwrap_or_default().to_owned();
            let mut builder = self.client.post(url).body(request.body);
            for (name, value) in request.headers {
                builder = builder.header(name, value);
            }
            let response = builder.send().await.map_err(|error| match error.is_builder() {
                true => TransportError::Invalid { reason: reason(&error) },
                false => TransportError::Unreachable { host: host.clone(), reason: reason(&error) },
            })?;
            let headers = response.headers().iter();
            let headers = headers.map(|(name, value)| {
                (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            });
            let (status, headers) = (response.status().as_u16(), headers.collect());
            let broken = move |error: reqwest::Error| TransportError::Broken {
                host: host.clone(),
                reason: reason(&error),
            };
            let body = response.bytes_stream().map(move |chunk| chunk.map_err(&broken));
            Ok(HttpResponse { status, headers, body: Box::pin(body) })
        })
    }
}

/// The innermost cause: it says what happened, the outer ones only that something did.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}
