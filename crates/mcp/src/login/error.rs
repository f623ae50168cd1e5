//! [`LoginError`]: why there is no login, and what to do about it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a login cannot be had, kept or used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LoginError {
    /// The server is no server on the network.
    #[error("only a server with `url` has a login")]
    NoAddress,
    /// An address that a token may not go to.
    #[error(
        "{what} is {address}: tokens only go to https addresses, and to this machine if the server is on it"
    )]
    UnsafeAddress {
        /// What has the address.
        what: &'static str,
        /// The address.
        address: String,
    },
    /// The server does not say how to log in.
    #[error("the server does not say where to log in: if it needs a token, set `bearer_token_env`")]
    NoMetadata,
    /// The authorization server has no PKCE with S256.
    #[error("its authorization server does not offer PKCE with S256, without which a login can be stolen")]
    NoPkce,
    /// There is no client, and none can be registered.
    #[error("its authorization server registers no clients: register one there, and set `oauth_client_id`")]
    NoRegistration,
    /// The authorization server says no, or nonsense.
    #[error("the login failed: {0}")]
    Refused(String),
    /// The person or the authorization server denied it.
    #[error("the login was denied: {0}")]
    Denied(String),
    /// The answer has a token that cannot be sent.
    #[error("the authorization server's token cannot be used: it is no bearer token")]
    UnusableToken,
    /// The login is gone, or was never there.
    #[error("there is no login, or it has ended")]
    Required,
    /// A new token could not be had this time.
    #[error("the login could not be renewed: {0}")]
    NotRenewed(String),
    /// No port to listen on.
    #[error("cannot listen on port {port} for the browser: choose another `oauth_callback_port`")]
    NoPort {
        /// The port.
        port: u16,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file of the login.
    #[error("cannot use {path}, which keeps the login")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Others than the owner can read the file of the login.
    #[error("others can read {0}, which keeps the login: run `chmod 600` on it")]
    NotPrivate(PathBuf),
    /// A request that failed.
    #[error("{0}")]
    Http(String),
}
