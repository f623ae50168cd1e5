//! Which request it is, and who sends it.

use std::fmt;

use hardpan_models::Protocol;

use crate::refusal::Refusal;

/// A request as it came.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// `POST`, `GET`.
    pub method: &'a str,
    /// The path, with or without a query.
    pub path: &'a str,
    /// Header names and values.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
}

impl fmt::Debug for Request<'_> {
    // Header values may be keys: they are never printed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ({} bytes)", self.method, self.path, self.body.len())
    }
}

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Answer,
    Count,
    /// All models, or one.
    Models(Option<String>),
}

impl<'a> Request<'a> {
    /// A header's value; names are told apart by letters, not by case.
    pub(super) fn header(&self, name: &str) -> Option<&'a str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim()).filter(|value| !value.is_empty())
    }

    /// The path without its query and without `/v1`: clients differ in whether their base URL has it.
    fn place(&self) -> Option<&'a str> {
        let path = self.path.split('?').next()?;
        let path = path.strip_prefix("/v1/").or_else(|| path.strip_prefix('/'))?;
        Some(path.trim_end_matches('/'))
    }

    /// Whose language is spoken: told by the path, or by the headers where both know it.
    pub(super) fn protocol(&self) -> Protocol {
        match self.place() {
            Some("chat/completions") => Protocol::Openai,
            Some("messages" | "messages/count_tokens") => Protocol::Anthropic,
            _ if self.header("anthropic-version").is_some() || self.header("x-api-key").is_some() => {
                Protocol::Anthropic
            }
            _ => Protocol::Openai,
        }
    }

    pub(super) fn route(&self) -> Result<Route, Refusal> {
        let (route, method) = match self.place() {
            Some("messages" | "chat/completions") => (Route::Answer, "POST"),
            Some("messages/count_tokens") => (Route::Count, "POST"),
            Some("models") => (Route::Models(None), "GET"),
            Some(place) if place.starts_with("models/") => {
                (Route::Models(Some(place["models/".len()..].to_owned())), "GET")
            }
            _ => return Err(Refusal::new(404, format!("nothing is at {} {}", self.method, self.path))),
        };
        if self.method != method {
            return Err(Refusal::new(405, format!("{} takes {method}, not {}", self.path, self.method)));
        }
        Ok(route)
    }
}

/// Whose requests are taken.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Keys {
    /// Those with a key, whatever it is.
    #[default]
    Any,
    /// Those with one of these.
    Only(Vec<String>),
    /// All.
    NotNeeded,
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Keys::Any => "Any",
            Keys::Only(_) => "Only(…)",
            Keys::NotNeeded => "NotNeeded",
        })
    }
}

impl Keys {
    /// The key, if it may be used.
    pub(super) fn check<'a>(
        &self,
        protocol: Protocol,
        request: &Request<'a>,
    ) -> Result<Option<&'a str>, Refusal> {
        let bearer = request.header("authorization").and_then(|value| value.strip_prefix("Bearer "));
        let own = request.header("x-api-key").filter(|_| protocol == Protocol::Anthropic);
        let key = own.or(bearer).map(str::trim).filter(|key| !key.is_empty());
        let refused = match (protocol, key) {
            (Protocol::Anthropic, None) => Refusal::new(401, "x-api-key header is required"),
            (Protocol::Anthropic, Some(_)) => Refusal::new(401, "invalid x-api-key"),
            (Protocol::Openai, None) => {
                Refusal::new(401, "no API key: send it in a header, `Authorization: Bearer KEY`")
            }
            // The real server repeats a part of the key; no one needs to learn it from us.
            (Protocol::Openai, Some(_)) => {
                Refusal::new(401, "Incorrect API key provided").with_code("invalid_api_key")
            }
        };
        let allowed = match self {
            Keys::Any => key.is_some(),
            Keys::Only(keys) => key.is_some_and(|key| keys.iter().any(|known| known == key)),
            Keys::NotNeeded => true,
        };
        if !allowed {
            return Err(refused);
        }
        if protocol == Protocol::Anthropic && request.header("anthropic-version").is_none() {
            return Err(Refusal::invalid("anthropic-version: header is required"));
        }
        Ok(key)
    }
}
