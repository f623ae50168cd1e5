//! [`HttpTransport`]: requests over HTTP, with `reqwest`.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use futures_util::StreamExt;

use crate::{HttpMethod, HttpRequest, HttpResponse, Transport, TransportError, mask_url};

/// Sends requests over HTTP, with TLS by rustls. Connections are reused.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: reqwest::Client,
}

impl HttpTransport {
    /// A transport that uses `proxy`, or else the proxy that the environment names (`HTTPS_PROXY`,
    /// `HTTP_PROXY`, `ALL_PROXY`).
    pub fn new(proxy: Option<&str>) -> Result<Self, TransportError> {
        // The first provider that is installed stays; any of them works.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let invalid = |error: reqwest::Error| TransportError::Invalid { reason: reason(&error) };
        let mut builder = reqwest::Client::builder()
            .connect_timeout(Duration::from_secs(30))
            // A redirect would send the key to a server that the user did not choose.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(proxy) = proxy {
            builder = builder.proxy(reqwest::Proxy::all(proxy).map_err(invalid)?);
        }
        Ok(HttpTransport { client: builder.build().map_err(invalid)? })
    }
}

impl Transport for HttpTransport {
    fn send(
        &self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, TransportError>> + Send + '_>> {
        Box::pin(async move {
            let url: reqwest::Url = request.url.parse().map_err(|_| TransportError::Invalid {
                reason: format!("{} is not a URL", mask_url(&request.url)),
            })?;
            let host = url.host_str().unwrap_or_default().to_owned();
            let mut builder = match request.method {
                HttpMethod::Get => self.client.get(url),
                HttpMethod::Post => self.client.post(url).body(request.body),
            };
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

/// The message of the innermost cause, which is the most specific.
fn reason(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The host of a URL, as a request finds it: an address of version 6 has no brackets. None if it is no URL
/// that requests go to.
pub fn url_host(url: &str) -> Option<String> {
    let url: reqwest::Url = url.parse().ok()?;
    let host = url.host_str().filter(|_| matches!(url.scheme(), "http" | "https"))?;
    Some(host.trim_start_matches('[').trim_end_matches(']').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_a_url_is_where_a_request_goes() {
        for (url, host) in [
            ("https://api.acme.test/v1", Some("api.acme.test")),
            ("http://user:word@api.acme.test:8080?x", Some("api.acme.test")),
            ("http://192.0.2.2:18999\\@127.0.0.1", Some("192.0.2.2")),
            ("http:192.0.2.2/x://127.0.0.1", Some("192.0.2.2")),
            ("http://[::1]:80/v1", Some("::1")),
            ("http://0x7f.1/", Some("127.0.0.1")),
            ("localhost:1234", None),
            ("file:///etc/passwd", None),
        ] {
            assert_eq!(url_host(url).as_deref(), host, "{url}");
        }
    }
}
