//! [`HttpRefusal`]: what an address answers that says more than its status.

use std::io;

use http::StatusCode;
use http::header::{LOCATION, WWW_AUTHENTICATE};
use reqwest::Response;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use thiserror::Error;

/// What an address answers that says more than its status.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the address refuses the request")]
pub(crate) enum HttpRefusal {
    /// The server is at another address.
    Moved {
        /// In words.
        status: String,
        /// The other address.
        to: String,
    },
    /// Nothing can be sent there.
    NoPost,
    /// It asks for a password, in a way that no login replaces.
    Password {
        /// The way.
        scheme: String,
    },
}

impl HttpRefusal {
    /// What a response refuses, if that is known.
    pub fn of(response: &Response) -> Option<Self> {
        let status = response.status();
        let headers = response.headers();
        match status {
            StatusCode::METHOD_NOT_ALLOWED => Some(HttpRefusal::NoPost),
            StatusCode::UNAUTHORIZED => {
                let challenges = headers.get_all(WWW_AUTHENTICATE).iter();
                let challenges: Vec<&str> = challenges.filter_map(|value| value.to_str().ok()).collect();
                password_scheme(&challenges).map(|scheme| HttpRefusal::Password { scheme: scheme.to_owned() })
            }
            status if status.is_redirection() => {
                let to = headers.get(LOCATION)?.to_str().ok()?;
                let to = response.url().join(to).ok()?;
                Some(HttpRefusal::Moved { status: status.to_string(), to: to.into() })
            }
            _ => None,
        }
    }

    /// The refusal in an error of the transport.
    pub fn within(error: &io::Error) -> Option<&Self> {
        error.get_ref()?.downcast_ref()
    }
}

impl From<HttpRefusal> for StreamableHttpError<reqwest::Error> {
    fn from(refusal: HttpRefusal) -> Self {
        StreamableHttpError::Io(io::Error::other(refusal))
    }
}

/// The first way of these challenges, if none of them takes a token.
fn password_scheme<'a>(challenges: &[&'a str]) -> Option<&'a str> {
    let takes_token = |challenge: &&str| challenge.to_ascii_lowercase().contains("bearer");
    if challenges.iter().any(takes_token) {
        return None;
    }
    let scheme = challenges.first()?.split([' ', ',']).next()?;
    let known = ["basic", "digest", "negotiate", "ntlm"];
    known.contains(&&*scheme.to_ascii_lowercase()).then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_asked_for_where_no_token_is_taken() {
        for (challenges, expected) in [
            (&["Basic realm=\"x\""][..], Some("Basic")),
            (&["NTLM", "Negotiate"], Some("NTLM")),
            (&["Bearer"], None),
            (&["Basic realm=\"x\", Bearer scope=\"a\""], None),
            (&["Basic", "bearer"], None),
            (&["DPoP"], None),
            (&[], None),
        ] {
            assert_eq!(password_scheme(challenges), expected, "{challenges:?}");
        }
    }
}
