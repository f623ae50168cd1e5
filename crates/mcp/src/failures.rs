//! What errors of the protocol's crate mean for the person: which server, what happened, what to do.

use std::error::Error;

use rmcp::service::{ClientInitializeError, ServiceError};
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, StreamableHttpError,
};
use serde_json::Value;

use crate::config::ServerName;
use crate::error::ServerError;
use crate::error_output::ErrorOutput;
use crate::http_refusal::HttpRefusal;
use crate::login::LoginError;
use crate::plain_text::plain_text;
use crate::program::InputClosed;

/// Why a server cannot be used that did not begin as the protocol says.
pub(crate) fn start_error(
    name: &ServerName,
    error: &ClientInitializeError,
    error_output: &ErrorOutput,
) -> ServerError {
    // The crate's own error does not name this one as its source.
    let cause: &(dyn Error + 'static) = match error {
        ClientInitializeError::TransportError { error, .. } => error,
        other => other,
    };
    if let Some(error) = transport_error(name, cause, error_output) {
        return error;
    }
    match error {
        error if error.is_authorization_required() => ServerError::LoginRequired(name.clone()),
        ClientInitializeError::ConnectionClosed(_) => ServerError::Ended(error_output.explain()),
        ClientInitializeError::JsonRpcError(error) => ServerError::Answer(plain_text(&error.message, 500)),
        ClientInitializeError::ExpectedInitResult(Some(result)) => {
            ServerError::Protocol(missing_fields(&serde_json::to_value(result).unwrap_or_default()))
        }
        ClientInitializeError::ExpectedInitResult(None) | ClientInitializeError::ExpectedInitResponse(_) => {
            other_answer()
        }
        other => ServerError::Protocol(plain_text(&causes(other), 500)),
    }
}

/// What an answer to `initialize` lacks.
fn missing_fields(answer: &Value) -> String {
    let fields = ["protocolVersion", "capabilities", "serverInfo"];
    let missing: Vec<&str> = fields.into_iter().filter(|field| answer[field].is_null()).collect();
    match missing.is_empty() {
        true => "its answer to `initialize` has another form than the protocol says".to_owned(),
        false => format!("its answer to `initialize` has no {}", missing.join(" and no ")),
    }
}

/// Why a request to a server failed.
pub(crate) fn request_error(
    name: &ServerName,
    error: ServiceError,
    error_output: &ErrorOutput,
) -> ServerError {
    let ended = || ServerError::Ended(error_output.explain());
    match error {
        ServiceError::McpError(error) => ServerError::Answer(plain_text(&error.message, 2000)),
        ServiceError::Timeout { timeout } => ServerError::CallTimeout(timeout),
        ServiceError::TransportSend(error) => {
            transport_error(name, &error, error_output).unwrap_or_else(ended)
        }
        ServiceError::TransportClosed => ended(),
        ServiceError::UnexpectedResponse => other_answer(),
        other => ServerError::Protocol(plain_text(&other.to_string(), 500)),
    }
}

/// The error for an answer of another kind than the request.
pub(crate) fn other_answer() -> ServerError {
    ServerError::Protocol("it answered a request with something else".into())
}

/// What a failure to send or to receive means, if it is one.
fn transport_error(
    name: &ServerName,
    error: &(dyn Error + 'static),
    error_output: &ErrorOutput,
) -> Option<ServerError> {
    chain(error).find_map(|error| {
        if let Some(scope) = error.downcast_ref::<InsufficientScopeError>() {
            let scope = scope.get_required_scope().map(|scope| plain_text(scope, 200));
            return Some(ServerError::ScopeRequired { name: name.clone(), scope });
        }
        if error.is::<AuthRequiredError>() {
            return Some(ServerError::LoginRequired(name.clone()));
        }
        if error.is::<InputClosed>() {
            return Some(ServerError::Ended(error_output.explain()));
        }
        match error.downcast_ref::<AuthError>() {
            Some(AuthError::AuthorizationRequired) => return Some(ServerError::LoginRequired(name.clone())),
            Some(AuthError::TokenRefreshFailed(text)) => {
                return Some(ServerError::Login(LoginError::NotRenewed(plain_text(text, 500))));
            }
            _ => {}
        }
        http_error(name, error.downcast_ref()?)
    })
}

/// What a failure over HTTP means. None for those that have a cause which says more.
fn http_error(name: &ServerName, error: &StreamableHttpError<reqwest::Error>) -> Option<ServerError> {
    Some(match error {
        StreamableHttpError::Auth(_)
        | StreamableHttpError::AuthRequired(_)
        | StreamableHttpError::InsufficientScope(_) => return None,
        StreamableHttpError::Io(error) => match HttpRefusal::within(error) {
            Some(HttpRefusal::Moved { status, to }) => {
                ServerError::Moved { status: format!("HTTP {status}"), to: plain_text(to, 300) }
            }
            Some(HttpRefusal::NoPost) => ServerError::NoPost,
            Some(HttpRefusal::Password { scheme }) => ServerError::Password(plain_text(scheme, 40)),
            None => ServerError::Broken(plain_text(&error.to_string(), 300)),
        },
        StreamableHttpError::Client(error) if error.is_connect() => {
            ServerError::Unreachable(plain_text(&innermost(error), 300))
        }
        StreamableHttpError::Client(error) => ServerError::Broken(plain_text(&innermost(error), 300)),
        // The client makes this of answers that are temporary, and only of those.
        StreamableHttpError::HttpStatus(status) => {
            ServerError::Unavailable(plain_text(&status.to_string(), 300))
        }
        // Not all servers say with a challenge that they want a login.
        StreamableHttpError::UnexpectedServerResponse(text) if text.starts_with("HTTP 401") => {
            ServerError::LoginRequired(name.clone())
        }
        StreamableHttpError::UnexpectedServerResponse(text) => {
            ServerError::HttpAnswer(plain_text(text.trim_end_matches([':', ' ']), 300))
        }
        StreamableHttpError::UnexpectedContentType(kind) => {
            let kind = plain_text(kind.as_deref().unwrap_or("something without a type"), 100);
            ServerError::HttpAnswer(format!("{kind}, and no message of the protocol"))
        }
        StreamableHttpError::Deserialize(error) => {
            ServerError::HttpAnswer(format!("no message of the protocol ({error})"))
        }
        other => ServerError::Broken(plain_text(&causes(other), 300)),
    })
}

/// An error, what caused it, and so on.
fn chain<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'a (dyn Error + 'static)| (*error).source())
}

/// The first cause of an error: those in between name layers of the client.
fn innermost(error: &(dyn Error + 'static)) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error with what caused it.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let cause = error.to_string();
        if !text.contains(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
        source = error.source();
    }
    text
}
