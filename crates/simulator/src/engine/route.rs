//! [`Request`]: which endpoint a request addresses, and with which key.

use std::fmt;

use crate::error_reply::ErrorReply;
use crate::server_codec::{Endpoint, ServerCodec};

/// An incoming HTTP request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The HTTP method, such as `POST` or `GET`.
    pub method: &'a str,
    /// The path, with or without a query.
    pub path: &'a str,
    /// Header names, in any case, and values.
    pub headers: &'a [(String, String)],
    /// The JSON body; empty for `GET`.
    pub body: &'a [u8],
}

impl fmt::Debug for Request<'_> {
    // Header values and the query may hold keys: they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.split('?').next().unwrap_or_default();
        write!(f, "{} {path} ({} bytes)", self.method, self.body.len())
    }
}

impl<'a> Request<'a> {
    /// The value of a header, trimmed; header names are case-insensitive. `None` if it is empty.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The token of the header `authorization`.
    pub(crate) fn bearer_token(&self) -> Option<&'a str> {
        let token = self.header("authorization")?.strip_prefix("Bearer ")?.trim();
        Some(token).filter(|token| !token.is_empty())
    }

    /// The value of a field of the query, as it stands there.
    pub(crate) fn query_value(&self, name: &str) -> Option<&'a str> {
        let (_, query) = self.path.split_once('?')?;
        let mut fields = query.split('&').filter_map(|field| field.split_once('='));
        fields.find(|(known, _)| *known == name).map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    /// The path without query and without version: some clients have it in their base URL, some do
    /// not. Empty if it does not begin with a slash.
    pub(crate) fn endpoint_path(&self) -> &'a str {
        let path = self.path.split('?').next().unwrap_or_default();
        let mut versions = ["/v1/", "/v1beta/", "/v1beta1/", "/"].iter();
        versions.find_map(|version| path.strip_prefix(version)).unwrap_or_default().trim_end_matches('/')
    }

    /// What the request addresses on its server.
    pub(super) fn endpoint(&self, server: &dyn ServerCodec) -> Result<Endpoint, ErrorReply> {
        let path = self.path.split('?').next().unwrap_or_default(); // a key may be in the query
        let Some(endpoint) = server.endpoint(self.endpoint_path()) else {
            return Err(ErrorReply::new(404, format!("nothing is at {} {path}", self.method)));
        };
        let methods = endpoint.methods();
        if !methods.contains(&self.method) {
            let methods = methods.join(" or ");
            return Err(ErrorReply::new(405, format!("{path} takes {methods}, not {}", self.method)));
        }
        Ok(endpoint)
    }
}

/// Which API keys are accepted.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum KeyPolicy {
    /// Any key, but there must be one.
    #[default]
    Any,
    /// Only these keys.
    Only(Vec<String>),
    /// Any key or none.
    NotNeeded,
}

impl fmt::Debug for KeyPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            KeyPolicy::Any => "Any",
            KeyPolicy::Only(_) => "Only(…)",
            KeyPolicy::NotNeeded => "NotNeeded",
        })
    }
}

impl KeyPolicy {
    /// Returns the request's key if it is accepted, and checks its other headers.
    pub(super) fn check<'a>(
        &self,
        server: &dyn ServerCodec,
        request: &Request<'a>,
    ) -> Result<Option<&'a str>, ErrorReply> {
        let key = server.api_key(request);
        let is_allowed = match self {
            KeyPolicy::Any => key.is_some(),
            KeyPolicy::Only(keys) => key.is_some_and(|key| keys.iter().any(|known| known == key)),
            KeyPolicy::NotNeeded => true,
        };
        if !is_allowed {
            return Err(server.refuse_key(key));
        }
        server.check_headers(request)?;
        Ok(key)
    }
}
