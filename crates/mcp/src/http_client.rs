//! [`BoundedHttpClient`]: messages to a server over HTTP, whose answers are bounded.
//!
//! The transport of the protocol's crate limits the events of a stream, but reads a plain answer whole,
//! whatever its length. Here both have the same limit.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderName, HeaderValue, StatusCode};
use reqwest::{Client, Response};
use rmcp::model::{ClientJsonRpcMessage, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};

use crate::http_refusal::HttpRefusal;
use crate::message_text::read_messages;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const SESSION: &str = "mcp-session-id";

/// How much of a refusal is read, in bytes.
const MAX_REFUSAL: usize = 64 * 1024;

#[expect(clippy::disallowed_types, reason = "the transport's own type")]
type Headers = std::collections::HashMap<HeaderName, HeaderValue>;
type ClientError = StreamableHttpError<reqwest::Error>;

/// A client whose answers, and the events of whose streams, have at most a number of bytes.
#[derive(Clone)]
pub(crate) struct BoundedHttpClient {
    client: Client,
    max_bytes: usize,
    renewals: SessionRenewals,
}

/// Whether the server has forgotten its session, so that another one begins.
#[derive(Clone, Default)]
pub(crate) struct SessionRenewals {
    has_forgotten: Arc<AtomicBool>,
    /// The request that it refused last because of that.
    refused: Arc<Mutex<Option<RequestId>>>,
}

impl SessionRenewals {
    fn note(&self) {
        self.has_forgotten.store(true, Ordering::Relaxed);
    }

    /// Whether it has since this was last called.
    pub fn take(&self) -> bool {
        self.has_forgotten.swap(false, Ordering::Relaxed)
    }

    /// Whether another session is worth a try for a request: if one was begun for it, what the server
    /// says of sessions has another reason.
    fn may_help(&self, asked: Option<&RequestId>) -> bool {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match asked {
            Some(asked) if refused.as_ref() == Some(asked) => false,
            Some(asked) => {
                *refused = Some(asked.clone());
                true
            }
            None => true,
        }
    }
}

impl BoundedHttpClient {
    pub fn new(client: Client, max_bytes: usize, renewals: SessionRenewals) -> Self {
        BoundedHttpClient { client, max_bytes, renewals }
    }

    /// The body of an answer; none if it is too long.
    async fn read_body(&self, mut response: Response, max: usize) -> Result<Option<Vec<u8>>, ClientError> {
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(StreamableHttpError::Client)? {
            if body.len() + chunk.len() > max {
                return Ok(None);
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Some(body))
    }

    /// What an answer that is no success means.
    async fn refusal(
        &self,
        response: Response,
        asked: Option<RequestId>,
        has_session: bool,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        if let Some(refusal) = HttpRefusal::of(&response) {
            return Err(refusal.into());
        }
        let status = response.status();
        let header = |name: HeaderName| {
            response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
        };
        match (status, header(WWW_AUTHENTICATE)) {
            (StatusCode::UNAUTHORIZED, Some(challenge)) => {
                return Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)));
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                let scope = scope_of(&challenge);
                let missing = InsufficientScopeError::new(challenge, scope);
                return Err(StreamableHttpError::InsufficientScope(missing));
            }
            (StatusCode::NOT_FOUND, _) if has_session => {
                self.renewals.note();
                return Err(StreamableHttpError::SessionExpired);
            }
            _ => {}
        }
        let is_temporary = status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error();
        let temporary = is_temporary.then(|| HttpStatusError::new(status.as_u16(), header(RETRY_AFTER)));
        let session = header(HeaderName::from_static(SESSION));
        let is_refused_login = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        let is_json = has_type(&response, JSON) && !is_refused_login;
        let body = self.read_body(response, MAX_REFUSAL).await?.unwrap_or_default();
        // Servers that were started again say so in words of their own.
        let is_forgotten = has_session && status == StatusCode::BAD_REQUEST && speaks_of_session(&body);
        if is_forgotten && self.renewals.may_help(asked.as_ref()) {
            self.renewals.note();
            return Err(StreamableHttpError::SessionExpired);
        }
        // A refusal may be an answer of the protocol.
        if let Ok(message @ JsonRpcMessage::Error(_)) = serde_json::from_slice::<ServerJsonRpcMessage>(&body)
            && is_json
        {
            return Ok(match asked {
                Some(asked) => StreamableHttpPostResponse::Json(with_id(message, asked), session),
                None => StreamableHttpPostResponse::Accepted,
            });
        }
        if let Some(temporary) = temporary {
            return Err(temporary.into());
        }
        let text: String = String::from_utf8_lossy(&body).chars().take(500).collect();
        Err(StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {text}"))))
    }

    /// What a successful answer means.
    async fn answer(
        &self,
        response: Response,
        asked: Option<RequestId>,
        max_event: usize,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let session =
            response.headers().get(SESSION).and_then(|value| value.to_str().ok()).map(str::to_owned);
        if has_type(&response, EVENTS) {
            let events = bounded_events(response, asked, max_event);
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let content_type = response
            .headers()
            .get(CONTENT_TYPE)
            .map(|kind| String::from_utf8_lossy(kind.as_bytes()).into_owned());
        let Some(asked) = asked else {
            // Nobody waits for what is said to a notification.
            return Ok(StreamableHttpPostResponse::Accepted);
        };
        if !has_type(&response, JSON) {
            return Err(StreamableHttpError::UnexpectedContentType(content_type));
        }
        let Some(body) = self.read_body(response, self.max_bytes).await? else {
            let words = format!("an answer of more than {} MB", self.max_bytes >> 20);
            let error = ErrorData::internal_error(words, None);
            return Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::error(error, Some(asked)), session));
        };
        // Other messages of a list answer nothing that was asked.
        let message = match read_messages(&body).and_then(|messages| answer_to(&asked, messages)) {
            Some(message) => message,
            None => serde_json::from_slice(&body).map_err(StreamableHttpError::Deserialize)?,
        };
        Ok(StreamableHttpPostResponse::Json(with_id(message, asked), session))
    }
}

/// An answer as the one to a request, which it is: what a server could not make out has no number, and
/// some give their own. Nothing else would end the wait for it.
fn with_id(message: ServerJsonRpcMessage, asked: RequestId) -> ServerJsonRpcMessage {
    match message {
        JsonRpcMessage::Error(error) => JsonRpcMessage::error(error.error, Some(asked)),
        JsonRpcMessage::Response(mut response) => {
            response.id = asked;
            JsonRpcMessage::Response(response)
        }
        other => other,
    }
}

/// Whether a refusal says that the server does not know the session.
fn speaks_of_session(body: &[u8]) -> bool {
    let text = String::from_utf8_lossy(body).to_lowercase();
    text.contains("session") || text.contains("not initialized") || text.contains("uninitialized")
}

/// The message of these that answers a request; the only one, if there is one.
fn answer_to(asked: &RequestId, mut messages: Vec<ServerJsonRpcMessage>) -> Option<ServerJsonRpcMessage> {
    let answers = |message: &ServerJsonRpcMessage| match message {
        JsonRpcMessage::Response(response) => response.id == *asked,
        JsonRpcMessage::Error(error) => error.id.as_ref() == Some(asked),
        _ => false,
    };
    match messages.iter().position(answers) {
        Some(place) => Some(messages.swap_remove(place)),
        None if messages.len() == 1 => messages.pop(),
        None => None,
    }
}

fn has_type(response: &Response, kind: &str) -> bool {
    let found = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    found
        .and_then(|found| found.get(..kind.len()))
        .is_some_and(|found| found.eq_ignore_ascii_case(kind.as_bytes()))
}

/// The rights that a challenge names.
fn scope_of(challenge: &str) -> Option<String> {
    let start = challenge.to_ascii_lowercase().find("scope=")? + "scope=".len();
    let rest = &challenge[start..];
    let scope = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).next(),
    };
    scope.filter(|scope| !scope.is_empty()).map(str::to_owned)
}

/// The events of a stream, which ends with an error once one is too long.
fn bounded_events(
    response: Response,
    asked: Option<RequestId>,
    max: usize,
) -> BoxStream<'static, Result<Sse, SseError>> {
    let (mut length, mut was_end) = (0_usize, false);
    let bounded = response.bytes_stream().map(move |chunk| {
        let chunk = chunk.map_err(io::Error::other)?;
        for byte in &chunk {
            let is_end = matches!(byte, b'\n' | b'\r');
            length = if is_end && was_end { 0 } else { length + 1 };
            was_end = is_end;
            if length > max {
                return Err(io::Error::other(format!("an event of more than {} MB", max >> 20)));
            }
        }
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bounded)
        .map(move |event| event.map(|event| readable_event(event, asked.as_ref())))
        .boxed()
}

/// An event whose data the transport can read, if they are a message. An error without a number is about
/// the request that the stream answers.
fn readable_event(mut event: Sse, asked: Option<&RequestId>) -> Sse {
    let Some(data) = event.data.as_deref() else { return event };
    let read = serde_json::from_str::<ServerJsonRpcMessage>(data);
    let is_plain = read.is_ok();
    let message = match read.ok().or_else(|| only_message(data)) {
        Some(JsonRpcMessage::Error(error)) if error.id.is_none() && asked.is_some() => {
            JsonRpcMessage::error(error.error, asked.cloned())
        }
        Some(message) if !is_plain => message,
        _ => return event,
    };
    if let Ok(data) = serde_json::to_string(&message) {
        event.data = Some(data);
    }
    event
}

/// The message in a text that holds one, and is not quite JSON.
fn only_message(text: &str) -> Option<ServerJsonRpcMessage> {
    let mut messages = read_messages(text.as_bytes())?;
    messages.pop().filter(|_| messages.is_empty())
}

impl StreamableHttpClient for BoundedHttpClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let max = self.max_bytes;
        self.post_message_with_max_sse_event_size(uri, message, session_id, auth_header, custom_headers, max)
            .await
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, ClientError> {
        let mut request = self.client.post(&*uri).header(ACCEPT, format!("{EVENTS}, {JSON}"));
        if let Some(token) = auth_header {
            request = request.bearer_auth(token);
        }
        for (name, value) in custom_headers {
            if name == ACCEPT || name == SESSION || name == "last-event-id" {
                return Err(StreamableHttpError::ReservedHeaderConflict(name.to_string()));
            }
            request = request.header(name, value);
        }
        let has_session = session_id.is_some();
        if let Some(session) = session_id {
            request = request.header(SESSION, &*session);
        }
        let body = serde_json::to_vec(&message)?;
        let request = request.header(CONTENT_TYPE, JSON).body(body);
        let response = request.send().await.map_err(StreamableHttpError::Client)?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        let asked = match message {
            JsonRpcMessage::Request(request) => Some(request.id),
            _ => None,
        };
        if !status.is_success() {
            return self.refusal(response, asked, has_session).await;
        }
        self.answer(response, asked, max_sse_event_size).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), ClientError> {
        self.client.delete_session(uri, session_id, auth_header, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, ClientError> {
        let max = self.max_bytes;
        self.client
            .get_stream_with_max_sse_event_size(
                uri,
                session_id,
                last_event_id,
                auth_header,
                custom_headers,
                max,
            )
            .await
    }
}
