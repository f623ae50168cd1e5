//! [`LoginClient`]: the requests of a connection, with the token of a login. A token that ends is replaced
//! before it does, and one that the server refuses is replaced once.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::stream::BoxStream;
use rmcp::model::ClientJsonRpcMessage;
use rmcp::transport::auth::AuthError;
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::Login;
use super::error::LoginError;
use super::http::OauthHttp;
use super::login_file::LoginFile;
use super::token_endpoint;
use crate::client_side::ClientHost;
use crate::http_client::BoundedHttpClient;

/// The headers of each request, as the transport has them. Their order means nothing.
#[expect(clippy::disallowed_types, reason = "the type of the protocol's crate")]
type Headers = std::collections::HashMap<http::HeaderName, http::HeaderValue>;

type HttpError = StreamableHttpError<reqwest::Error>;

/// The tokens of a server, which several processes may use and replace.
pub(crate) struct LoginTokens {
    file: LoginFile,
    http: OauthHttp,
    /// What the file had when it was read last.
    known: Mutex<Login>,
    /// One refresh at a time.
    refreshing: tokio::sync::Mutex<()>,
    /// Who is told of other tokens.
    host: Arc<dyn ClientHost>,
}

impl LoginTokens {
    /// The tokens in a file, if there is a login for its server.
    pub fn open(file: &LoginFile, host: &Arc<dyn ClientHost>) -> Result<Option<Arc<Self>>, LoginError> {
        let Some(login) = file.read()? else { return Ok(None) };
        // The person may have logged in since the conversation began.
        host.tokens_changed(&login);
        let (http, known, refreshing) = (OauthHttp::new(file.url())?, Mutex::new(login), Default::default());
        Ok(Some(Arc::new(LoginTokens { file: file.clone(), http, known, refreshing, host: host.clone() })))
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Login> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A token that the server should take.
    async fn token(self: &Arc<Self>) -> Result<String, LoginError> {
        let known = self.known().clone();
        if known.is_ending() && known.can_refresh() {
            return self.replace(known.access_token).await;
        }
        Ok(known.access_token)
    }

    /// A token in place of this one, which has ended or was refused.
    async fn replace(self: &Arc<Self>, refused: String) -> Result<String, LoginError> {
        let tokens = self.clone();
        // In a task of its own: a call that is cancelled must not lose a refresh token that the
        // authorization server has just replaced.
        let replaced = tokio::spawn(async move { tokens.replace_once(&refused).await });
        replaced.await.unwrap_or_else(|error| Err(LoginError::NotRenewed(error.to_string())))
    }

    async fn replace_once(self: Arc<Self>, refused: &str) -> Result<String, LoginError> {
        let _one = self.refreshing.lock().await;
        let file = self.file.clone();
        let lock = tokio::task::spawn_blocking(move || file.lock()).await;
        let lock = lock.map_err(|error| LoginError::NotRenewed(error.to_string()))??;
        // Another process may have replaced it, or the person logged in again.
        let mut login = self.file.read()?.ok_or(LoginError::Required)?;
        if login.access_token == refused || login.is_ending() {
            match token_endpoint::refresh(&mut login, &self.http).await {
                Ok(()) => self.file.replace(&lock, &login)?,
                Err(LoginError::Required) => {
                    self.file.delete(&lock)?;
                    return Err(LoginError::Required);
                }
                Err(error) => return Err(error),
            }
        }
        let token = login.access_token.clone();
        self.host.tokens_changed(&login);
        *self.known() = login;
        Ok(token)
    }
}

/// Sends the requests of a connection with the token of a login.
#[derive(Clone)]
pub(crate) struct LoginClient {
    client: BoundedHttpClient,
    tokens: Arc<LoginTokens>,
}

impl LoginClient {
    /// Requests by this client, with these tokens.
    pub fn new(client: BoundedHttpClient, tokens: Arc<LoginTokens>) -> Self {
        LoginClient { client, tokens }
    }

    /// Makes a request with a token, and once more with another if the server refuses the first.
    async fn send<T, F>(&self, request: impl Fn(Option<String>) -> F) -> Result<T, HttpError>
    where
        F: Future<Output = Result<T, HttpError>>,
    {
        let token = self.tokens.token().await.map_err(auth_error)?;
        match request(Some(token.clone())).await {
            Err(error) if is_refused(&error) => {
                let token = self.tokens.replace(token).await.map_err(auth_error)?;
                match request(Some(token)).await {
                    Err(error) if is_refused(&error) => Err(AuthError::AuthorizationRequired.into()),
                    answer => answer,
                }
            }
            answer => answer,
        }
    }
}

/// Whether the server answered 401, which not all do with a challenge.
fn is_refused(error: &HttpError) -> bool {
    match error {
        StreamableHttpError::AuthRequired(_) => true,
        StreamableHttpError::Client(error) => error.status() == Some(http::StatusCode::UNAUTHORIZED),
        // The protocol's crate keeps the status in its text alone.
        StreamableHttpError::UnexpectedServerResponse(text) => text.starts_with("HTTP 401"),
        _ => false,
    }
}

fn auth_error(error: LoginError) -> HttpError {
    match error {
        LoginError::Required => AuthError::AuthorizationRequired.into(),
        other => AuthError::TokenRefreshFailed(crate::failures::causes(&other)).into(),
    }
}

impl StreamableHttpClient for LoginClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.send(|token| {
            self.client.post_message(uri.clone(), message.clone(), session_id.clone(), token, headers.clone())
        })
        .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        self.send(|token| {
            let (uri, message, session_id) = (uri.clone(), message.clone(), session_id.clone());
            let headers = headers.clone();
            self.client.post_message_with_max_sse_event_size(uri, message, session_id, token, headers, max)
        })
        .await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), HttpError> {
        self.send(|token| self.client.delete_session(uri.clone(), session_id.clone(), token, headers.clone()))
            .await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.send(|token| {
            let (session_id, last) = (session_id.clone(), last_event_id.clone());
            self.client.get_stream(uri.clone(), session_id, last, token, headers.clone())
        })
        .await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        _: Option<String>,
        headers: Headers,
        max: usize,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, HttpError> {
        self.send(|token| {
            let (uri, session_id, last) = (uri.clone(), session_id.clone(), last_event_id.clone());
            self.client.get_stream_with_max_sse_event_size(uri, session_id, last, token, headers.clone(), max)
        })
        .await
    }
}
