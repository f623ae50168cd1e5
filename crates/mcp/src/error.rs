//! [`ServerError`]: why a server cannot be used, in words for the person and the model.

use std::io;
use std::time::Duration;

use thiserror::Error;

use crate::config::ServerName;
use crate::login::LoginError;

/// Why a server cannot be started or does not answer. The text is the second half of a sentence.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No program of this name is on the search path.
    #[error("there is no program {0}: install it, or write its path as `command`")]
    NoProgram(String),
    /// The system does not start the program.
    #[error("it could not be started: {0}")]
    NotStarted(#[source] io::Error),
    /// The settings require a sandbox that there is not.
    #[error("it could not be started: {0}")]
    Refused(String),
    /// A header of the settings is none.
    #[error("the header {0} cannot be sent: check its name and its value")]
    InvalidHeader(String),
    /// The variable with the token is not set.
    #[error("the variable {0} (`bearer_token_env`) is not set")]
    NoToken(String),
    /// It asks for a login.
    #[error("it asks for a login: run `hardpan mcp login {0}`, or set `bearer_token_env` in config.toml")]
    LoginRequired(ServerName),
    /// The login is for less than a call needs.
    #[error("the login does not allow this{}: add it to `oauth_scopes`, and run `hardpan mcp login {name}`", needed(.scope))]
    ScopeRequired {
        /// The server.
        name: ServerName,
        /// What it asks for.
        scope: Option<String>,
    },
    /// The login cannot be used.
    #[error("{}", crate::failures::causes(.0))]
    Login(#[source] LoginError),
    /// It did not start in time.
    #[error("it did not start within {} s{}", .0.as_secs(), said(.1))]
    StartTimeout(Duration, Option<String>),
    /// Nobody answers at its address.
    #[error("its address cannot be reached: {0}")]
    Unreachable(String),
    /// The connection to its address broke.
    #[error("the connection to its address broke: {0}")]
    Broken(String),
    /// Its address answers that it cannot now.
    #[error("its address answered with {0}: it may be down or overloaded, so try again later")]
    Unavailable(String),
    /// Its address answers with something else than a server does.
    #[error("its address answered with {0}: check `url` in config.toml")]
    HttpAnswer(String),
    /// Its address answers that it is elsewhere.
    #[error("its address answered with {status}: set `url` to {to} in config.toml")]
    Moved {
        /// What it answered.
        status: String,
        /// Where it is.
        to: String,
    },
    /// Its address takes no messages.
    #[error(
        "its address answered with HTTP 405 Method Not Allowed: check `url` in config.toml; it may be a server of the older SSE transport, which Hardpan does not speak"
    )]
    NoPost,
    /// It asks for a password.
    #[error(
        "it asks for a password ({0}), which is no login that Hardpan can make: set `headers` with `Authorization` in config.toml"
    )]
    Password(String),
    /// It does not speak the protocol.
    #[error("it does not speak the protocol: {0}")]
    Protocol(String),
    /// It speaks a version of the protocol that is not known.
    #[error("it speaks the version {0} of the protocol, which is not known here")]
    UnknownVersion(String),
    /// The connection ended.
    #[error("it ended{}", said(.0))]
    Ended(Option<String>),
    /// A call took too long.
    #[error("it did not answer within {} s", .0.as_secs())]
    CallTimeout(Duration),
    /// A call took too long, and the server does not say that it is still there, either.
    #[error("it did not answer within {} s, and then no ping: the connection to it was ended", .0.as_secs())]
    Hangs(Duration),
    /// It answered a request with an error.
    #[error("it answered with an error: {0}")]
    Answer(String),
    /// The list of tools has no end.
    #[error("it lists more than {max} {what}: only servers with fewer can be used")]
    TooMuch {
        /// How many there may be.
        max: usize,
        /// Of what.
        what: &'static str,
    },
}

fn needed(scope: &Option<String>) -> String {
    scope.as_ref().map(|scope| format!(" (it needs {scope})")).unwrap_or_default()
}

/// What the program printed last, where that may explain its end.
fn said(text: &Option<String>) -> String {
    text.as_ref().map(|text| format!("; it printed: {text}")).unwrap_or_default()
}

/// Why tools can no longer be offered.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The other side did not introduce itself as the protocol says.
    #[error("the client did not begin as the Model Context Protocol says")]
    NotInitialized(#[source] Box<rmcp::service::ServerInitializeError>),
    /// The server's own task stopped.
    #[error("the server stopped")]
    Stopped(#[source] tokio::task::JoinError),
}
