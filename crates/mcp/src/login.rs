//! [`Login`]: the tokens that an authorization server has granted for a server, by OAuth 2.1.
//!
//! [`LoginAttempt`] gets one with the person's browser, [`LoginFile`] keeps it, and a connection sends and
//! refreshes its tokens by itself. A token goes to two places only: to the address that the login is for, and
//! to the endpoints that the authorization server named when it was granted.

mod attempt; // LoginAttempt: from a server's address to a login
mod error; // LoginError: why there is no login
mod http; // OauthHttp: requests with limits, to addresses that are allowed
mod login_client; // LoginClient: the requests of a connection, with a token
mod login_file; // LoginFile: where the login of a server is kept
mod redirect; // RedirectListener: what the browser comes back with
mod token_endpoint; // refreshing and revoking

use std::fmt;

use serde::{Deserialize, Serialize};

pub use attempt::LoginAttempt;
pub use error::LoginError;
pub(crate) use login_client::{LoginClient, LoginTokens};
pub use login_file::LoginFile;
pub use redirect::{InvalidAnswer, RedirectAnswer, RedirectListener};
pub use token_endpoint::revoke;

/// How long before its end a token is replaced, in seconds: the request with it takes a while. One that lives
/// for less than a few times as long is replaced in its last quarter.
const REPLACED_BEFORE: u64 = 30;

/// What the settings say about logging in at a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoginSettings {
    /// The client that is registered there; without one, Hardpan registers itself.
    pub client_id: Option<String>,
    /// What to ask for; if empty, what the server asks for.
    pub scopes: Vec<String>,
    /// The loopback port that the browser comes back to; any free one if it is not said.
    pub callback_port: Option<u16>,
}

/// The login at one server.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Login {
    /// The address of the server that the tokens are for, as the settings have it.
    pub url: String,
    /// The authorization server.
    pub issuer: String,
    /// What was granted.
    pub scopes: Vec<String>,
    /// When the access token ends, in seconds since 1970.
    pub expires_at: Option<u64>,
    /// How many seconds before that it is replaced.
    #[serde(default = "usual_margin")]
    replaced_before: u64,
    client: ClientIdentity,
    token_endpoint: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revocation_endpoint: Option<String>,
    /// What requests for tokens name as the thing that the tokens are for (RFC 8707).
    resource: String,
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
}

/// Who asks for tokens.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
struct ClientIdentity {
    id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    secret: Option<String>,
    /// Whether the secret goes into the body and not into a header.
    #[serde(default)]
    secret_in_body: bool,
}

/// A successful answer of a token endpoint.
#[derive(Deserialize)]
struct TokenAnswer {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

impl fmt::Debug for Login {
    /// Without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Login { url, issuer, expires_at, .. } = self;
        f.debug_struct("Login")
            .field("url", url)
            .field("issuer", issuer)
            .field("expires_at", expires_at)
            .finish()
    }
}

impl Login {
    /// Whether a token that has ended can be replaced without the person.
    pub fn can_refresh(&self) -> bool {
        self.refresh_token.is_some()
    }

    /// Whether the access token has ended, or is about to.
    pub fn is_ending(&self) -> bool {
        self.expires_at.is_some_and(|end| end <= now() + self.replaced_before)
    }

    /// The tokens and the client's secret: what no request, log or terminal may contain.
    pub fn secrets(&self) -> Vec<&str> {
        let others = [&self.refresh_token, &self.client.secret].into_iter().flatten();
        std::iter::once(&self.access_token).chain(others).map(String::as_str).collect()
    }

    /// Takes new tokens. A refresh token that the answer does not replace stays.
    fn take(&mut self, answer: TokenAnswer) -> Result<(), LoginError> {
        let is_sendable =
            |token: &str| !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        if !answer.token_type.eq_ignore_ascii_case("bearer") || !is_sendable(&answer.access_token) {
            return Err(LoginError::UnusableToken);
        }
        self.access_token = answer.access_token;
        self.expires_at = answer.expires_in.map(|seconds| now().saturating_add(seconds));
        self.replaced_before =
            answer.expires_in.map_or(REPLACED_BEFORE, |seconds| REPLACED_BEFORE.min(seconds / 4));
        if let Some(token) = answer.refresh_token.filter(|token| !token.is_empty()) {
            self.refresh_token = Some(token);
        }
        if let Some(scope) = answer.scope {
            self.scopes = scope.split_whitespace().map(str::to_owned).collect();
        }
        Ok(())
    }
}

fn usual_margin() -> u64 {
    REPLACED_BEFORE
}

/// The time, in seconds since 1970.
#[allow(
    clippy::disallowed_methods,
    reason = "tokens end by the clock of the world, and nothing else depends on it"
)]
fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub fn login() -> Login {
        Login {
            url: "https://a.example/mcp".into(),
            issuer: "https://b.example".into(),
            scopes: vec!["read".into()],
            expires_at: None,
            replaced_before: REPLACED_BEFORE,
            client: ClientIdentity { id: "me".into(), secret: None, secret_in_body: false },
            token_endpoint: "https://b.example/token".into(),
            revocation_endpoint: None,
            resource: "https://a.example/mcp".into(),
            access_token: "old-access".into(),
            refresh_token: Some("old-refresh".into()),
        }
    }

    fn answer(json: &str) -> TokenAnswer {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn an_answer_replaces_what_it_names() {
        let mut login = login();
        login.take(answer(r#"{"access_token": "new", "token_type": "bearer"}"#)).unwrap();
        assert_eq!((login.secrets(), login.expires_at), (vec!["new", "old-refresh"], None));
        let json = r#"{"access_token": "newer", "token_type": "Bearer", "expires_in": 10, "refresh_token": "r", "scope": "a b"}"#;
        login.take(answer(json)).unwrap();
        assert_eq!(login.secrets(), ["newer", "r"]);
        assert_eq!(login.scopes, ["a", "b"]);
    }

    #[test]
    fn a_token_is_replaced_before_it_ends_and_a_short_one_not_at_once() {
        let mut login = login();
        for (seconds, is_ending) in [(0, true), (8, false), (60, false), (3600, false)] {
            let json =
                format!(r#"{{"access_token": "new", "token_type": "bearer", "expires_in": {seconds}}}"#);
            login.take(answer(&json)).unwrap();
            assert_eq!(login.is_ending(), is_ending, "{seconds}");
        }
        for (left, margin, is_ending) in [(29, 30, true), (40, 30, false), (1, 2, true), (10, 2, false)] {
            login.expires_at = Some(now() + left);
            login.replaced_before = margin;
            assert_eq!(login.is_ending(), is_ending, "{left}");
        }
    }

    #[test]
    fn a_token_that_cannot_be_sent_is_refused() {
        for json in [
            r#"{"access_token": "a\r\nX-Other: b", "token_type": "bearer"}"#,
            r#"{"access_token": "", "token_type": "bearer"}"#,
            r#"{"access_token": "a", "token_type": "mac"}"#,
        ] {
            let mut login = login();
            assert!(matches!(login.take(answer(json)), Err(LoginError::UnusableToken)), "{json}");
            assert_eq!(login.secrets(), ["old-access", "old-refresh"]);
        }
    }

    #[test]
    fn no_secret_is_shown_for_debugging() {
        let shown = format!("{:?}", login());
        assert!(!shown.contains("old-access") && !shown.contains("old-refresh"), "{shown}");
    }
}
