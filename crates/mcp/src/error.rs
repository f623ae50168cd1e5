//! [`ServerError`]: why a server cannot be used, in words for the person and the model.

use std::io;
use std::time::Duration;

use thiserror::Error;

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
    #[error("it asks for a login: set `bearer_token_env` or `headers` for it in config.toml")]
    LoginRequired,
    /// It did not start in time.
    #[error("it did not start within {} s{}", .0.as_secs(), said(.1))]
    StartTimeout(Duration, Option<String>),
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

/// What the program printed last, where that may explain its end.
fn said(text: &Option<String>) -> String {
    text.as_ref().map(|text| format!("; it printed: {text}")).unwrap_or_default()
}
