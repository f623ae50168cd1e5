//! [`Request`]: which endpoint a request addresses, in which protocol, with which key.

use std::fmt;

use hardpan_models::Protocol;

use crate::error_reply::ErrorReply;

/// An incoming HTTP request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The HTTP method, `POST` or `GET`.
    pub method: &'a str,
    /// The path, with or without a query.
    pub path: &'a str,
    /// Header names, in any case, and values.
    pub headers: &'a [(String, String)],
    /// The JSON body; empty for `GET`.
    pub body: &'a [u8],
}

impl fmt::Debug for Request<'_> {
    // Header values may be keys: they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} bytes)", self.method, self.path, self.body.len())
    }
}

/// The endpoint that a request addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Answer,
    Count,
    /// All models, or the one with this id.
    Models(Option<String>),
}

impl<'a> Request<'a> {
    /// The value of a header, trimmed; header names are case-insensitive. `None` if it is empty.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The path without query and without `/v1`: some clients have it in their base URL, some do
    /// not.
    fn endpoint_path(&self) -> Option<&'a str> {
        let path = self.path.split('?').next()?;
        let path = path.strip_prefix("/v1/").or_else(|| path.strip_prefix('/'))?;
        Some(path.trim_end_matches('/'))
    }

    /// The protocol of the request: by the path, or by the headers for paths that both protocols
    /// have.
    pub(super) fn protocol(&self) -> Protocol {
        match self.endpoint_path() {
            Some("chat/completions") => Protocol::Openai,
            Some("messages" | "messages/count_tokens") => Protocol::Anthropic,
            _ if self.header("anthropic-version").is_some() || self.header("x-api-key").is_some() => {
                Protocol::Anthropic
            }
            _ => Protocol::Openai,
        }
    }

    pub(super) fn route(&self) -> Result<Route, ErrorReply> {
        let (route, method) = match self.endpoint_path() {
            Some("messages" | "chat/completions") => (Route::Answer, "POST"),
            Some("messages/count_tokens") => (Route::Count, "POST"),
            Some("models") => (Route::Models(None), "GET"),
            Some(place) if place.starts_with("models/") => {
                (Route::Models(Some(place["models/".len()..].to_owned())), "GET")
            }
            _ => return Err(ErrorReply::new(404, format!("nothing is at {} {}", self.method, self.path))),
        };
        if self.method != method {
            return Err(ErrorReply::new(405, format!("{} takes {method}, not {}", self.path, self.method)));
        }
        Ok(route)
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
    /// Returns the request's key if it is accepted.
    pub(super) fn check<'a>(
        &self,
        protocol: Protocol,
        request: &Request<'a>,
    ) -> Result<Option<&'a str>, ErrorReply> {
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let own = request.header("x-api-key").filter(|_| protocol == Protocol::Anthropic);
        let key = own.or(bearer).map(str::trim).filter(|key| !key.is_empty());
        let refused = match (protocol, key) {
            (Protocol::Anthropic, None) => ErrorReply::new(401, "x-api-key header is required"),
            (Protocol::Anthropic, Some(_)) => ErrorReply::new(401, "invalid x-api-key"),
            (Protocol::Openai, None) => {
                ErrorReply::new(401, "no API key: send it in a header, `Authorization: Bearer KEY`")
            }
            // The real server repeats a part of the key; no one needs to learn it from us.
            (Protocol::Openai, Some(_)) => {
                ErrorReply::new(401, "Incorrect API key provided").with_code("invalid_api_key")
            }
        };
        let allowed = match self {
            KeyPolicy::Any => key.is_some(),
            KeyPolicy::Only(keys) => key.is_some_and(|key| keys.iter().any(|known| known == key)),
            KeyPolicy::NotNeeded => true,
        };
        if !allowed {
            return Err(refused);
        }
        if protocol == Protocol::Anthropic && request.header("anthropic-version").is_none() {
            return Err(ErrorReply::invalid("anthropic-version: header is required"));
        }
        Ok(key)
    }
}
