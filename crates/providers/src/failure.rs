//! [`ProviderError`]: why a request failed. All errors of all providers are classified here, into
//! one [`FailureKind`].

mod classify; // FailureReport: what a provider said, and what it means

use std::time::Duration;

use hardpan_models::Protocol;

pub(crate) use self::classify::classify;
pub use self::classify::{EXTENSION_ERROR, FailureReport};
use crate::codec::codec;
use crate::limits::short_message;
use crate::{HttpResponse, StreamError, StreamErrorKind, TransportError};

/// The class of a failed request. It decides whether to retry and what to advise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// The server could not be reached.
    Transport,
    /// The provider's limit of requests or tokens per time is reached.
    RateLimit,
    /// The server is overloaded.
    Overload,
    /// The server, or one between it and us, has an internal error.
    ServerError,
    /// The provider considers the request invalid.
    BadRequest,
    /// The key is missing, wrong, out of quota, or lacks a permission.
    Auth,
    /// The URL does not exist on the server.
    NotFound,
    /// The prompt does not fit into the model's context window.
    ContextTooLong,
    /// The request body has more bytes than the server accepts.
    TooLarge,
    /// The model does not support images.
    ImagesRefused,
    /// The model does not support tools.
    ToolsRefused,
    /// The server does not know fields of the request that only newer servers know.
    NewerFieldsRefused,
    /// The server does not know the fields that say how much to think, and how to show it.
    ThinkingFieldsRefused,
    /// The server does not stream answers.
    StreamingRefused,
    /// The model does not exist, or the key has no access to it.
    ModelUnavailable,
    /// No bytes came within the idle timeout.
    Stalled,
    /// The connection broke before the answer ended.
    Cut,
    /// The response cannot be parsed as an answer of this protocol.
    Malformed,
    /// The response is larger, or takes longer, than any model's answer.
    AnswerTooLong,
    /// The extension that answers in the place of a provider says so.
    Extension,
}

/// A failed request: its class, the provider's message, and when to retry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct ProviderError {
    /// The class of the failure, the same for all providers.
    pub failure: FailureKind,
    /// The HTTP status; `None` if no response came, or the error came within a stream.
    pub status: Option<u16>,
    /// The provider's message, or ours if it gave none. Never contains a key after
    /// [`redact_key`](Self::redact_key).
    pub message: String,
    /// How long the provider asks to wait, in the header `retry-after` or in the body.
    pub retry_after: Option<Duration>,
    /// The provider's id of the request, to quote to its support.
    pub request_id: Option<String>,
    /// The error underneath; `None` if the failure is an HTTP response or our own finding. Its text
    /// is part of `message`, so print either this error or its source.
    pub source: Option<FailureSource>,
}

/// The error underneath a [`ProviderError`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FailureSource {
    /// The transport failed: no response came, or it broke off.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The response's body is an error, or cannot be parsed.
    #[error("{}", .0.message)]
    Stream(StreamError),
}

impl From<StreamError> for FailureSource {
    fn from(error: StreamError) -> Self {
        FailureSource::Stream(error)
    }
}

impl FailureKind {
    /// Whether the same request may succeed a little later, so that a retry makes sense.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            FailureKind::Transport
                | FailureKind::RateLimit
                | FailureKind::Overload
                | FailureKind::ServerError
                | FailureKind::Stalled
                | FailureKind::Cut
                | FailureKind::Malformed
        )
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            FailureKind::Transport => "check the network, the base URL and the proxy settings",
            FailureKind::RateLimit => "wait, or ask the provider for higher limits",
            FailureKind::Overload | FailureKind::ServerError => {
                "try again in a while, or choose another model"
            }
            FailureKind::NewerFieldsRefused | FailureKind::ThinkingFieldsRefused => {
                "check the provider's base URL: this server is an older one"
            }
            FailureKind::StreamingRefused => "choose a model or a server that streams its answers",
            FailureKind::BadRequest => {
                "this is most likely a bug in hardpan: `hardpan request --json` shows the body"
            }
            FailureKind::Auth => {
                "set the provider's key (`hardpan providers` names its variable), or check what it may do"
            }
            FailureKind::NotFound => "check the provider's base URL",
            FailureKind::ContextTooLong => {
                "compact the conversation, close files, or choose a model with a larger window"
            }
            FailureKind::TooLarge => "send fewer or smaller images and files",
            FailureKind::ImagesRefused => "choose a model that takes images, or leave them out",
            FailureKind::ToolsRefused => "choose a model that calls tools",
            FailureKind::ModelUnavailable => "choose another model (`hardpan models`)",
            FailureKind::Stalled => "try again, or raise the limit for silence in the settings",
            FailureKind::Cut => "try again; what was received is kept",
            FailureKind::Extension => "do what it says, or choose another model",
            FailureKind::Malformed | FailureKind::AnswerTooLong => {
                "check the base URL: something other than a provider may be answering"
            }
        }
    }

    fn summary(&self) -> &'static str {
        match self {
            FailureKind::Transport => "the provider cannot be reached",
            FailureKind::RateLimit => "the provider's rate limit is reached",
            FailureKind::Overload => "the provider is overloaded",
            FailureKind::ServerError => "the provider, or a server on the way to it, has failed",
            FailureKind::NewerFieldsRefused => "the provider refused fields that newer servers know",
            FailureKind::ThinkingFieldsRefused => "the provider refused settings of effort and thinking",
            FailureKind::StreamingRefused => "the provider refused to stream its answer",
            FailureKind::BadRequest => "the provider refused the request",
            FailureKind::Auth => "the provider refused the key",
            FailureKind::NotFound => "nothing answers at this address",
            FailureKind::ContextTooLong => "the prompt is too long for the model",
            FailureKind::TooLarge => "the request is too large",
            FailureKind::ImagesRefused => "the model refused the images",
            FailureKind::ToolsRefused => "the model refused the tools",
            FailureKind::ModelUnavailable => "the model is not available",
            FailureKind::Stalled => "the provider fell silent",
            FailureKind::Cut => "the answer broke off",
            FailureKind::Malformed => "the answer cannot be understood",
            FailureKind::AnswerTooLong => "the answer exceeds a limit",
            FailureKind::Extension => "the extension that brings the provider reports an error",
        }
    }
}

impl ProviderError {
    /// A failure with our own message, without an HTTP response.
    pub fn new(failure: FailureKind, message: impl Into<String>) -> Self {
        ProviderError {
            failure,
            status: None,
            message: short_message(message.into()),
            retry_after: None,
            request_id: None,
            source: None,
        }
    }

    fn with_source(self, source: impl Into<FailureSource>) -> Self {
        ProviderError { source: Some(source.into()), ..self }
    }

    fn sentence(&self) -> String {
        let status = self.status.map_or_else(String::new, |status| format!(" ({status})"));
        let message = if self.message.is_empty() { String::new() } else { format!(": {}", self.message) };
        format!("{}{status}{message}; {}", self.failure.summary(), self.failure.remedy())
    }

    /// Masks the key in the message: some servers repeat it in their errors.
    pub fn redact_key(mut self, key: Option<&str>) -> Self {
        if let Some(key) = key.filter(|key| key.len() >= 8) {
            self.message = self.message.replace(key, "•••");
            if let Some(FailureSource::Stream(error)) = &mut self.source {
                error.message = error.message.replace(key, "•••");
            }
        }
        self
    }

    /// Classifies an error response by its status, headers and body.
    pub fn from_response(protocol: Protocol, response: &HttpResponse, body: &[u8]) -> Self {
        let codec = codec(protocol);
        let mut report = codec.parse_error_body(&serde_json::from_slice(body).unwrap_or_default());
        if report.message.is_empty() {
            report.message = excerpt(body);
        }
        ProviderError {
            failure: codec.classify_failure(Some(response.status), &report),
            status: Some(response.status),
            retry_after: retry_after(response).or_else(|| codec.retry_delay(&report)),
            message: short_message(report.message),
            request_id: response.header("request-id").or(response.header("x-request-id")).map(str::to_owned),
            source: None,
        }
    }

    /// Classifies an error that came within a stream, after status 200.
    pub fn from_stream_error(protocol: Protocol, error: StreamError) -> Self {
        let mut retry_after = None;
        let failure = match &error.kind {
            StreamErrorKind::Provider(word) => {
                let words = [Some(word), error.code.as_ref()].into_iter().flatten().cloned().collect();
                let report = FailureReport { words, message: error.message.clone(), retry_after: None };
                retry_after = codec(protocol).retry_delay(&report);
                codec(protocol).classify_failure(None, &report)
            }
            StreamErrorKind::Malformed => FailureKind::Malformed,
            StreamErrorKind::TooLong => FailureKind::AnswerTooLong,
        };
        ProviderError { retry_after, ..ProviderError::new(failure, &error.message).with_source(error) }
    }
}

impl From<TransportError> for ProviderError {
    fn from(error: TransportError) -> Self {
        let failure = match error {
            TransportError::Unreachable { .. } => FailureKind::Transport,
            TransportError::Broken { .. } => FailureKind::Cut,
            TransportError::Invalid { .. } => FailureKind::BadRequest,
            TransportError::Extension { .. } => FailureKind::Extension,
        };
        ProviderError::new(failure, error.to_string()).with_source(error)
    }
}

/// The first words of a body that is not JSON, such as a proxy's HTML page.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(400)]);
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().filter(|c| !c.is_control()).take(200).collect()
}

/// The header `retry-after` in seconds, or the finer `retry-after-ms` of some servers. Dates are
/// ignored.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let number =
        |name: &str| response.header(name)?.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    Some(Duration::from_secs_f64(seconds.min(86_400.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_for(protocol: Protocol, status: u16, body: &str) -> ProviderError {
        let response = HttpResponse {
            status,
            headers: vec![("retry-after".into(), "2".into()), ("request-id".into(), "req_1".into())],
            body: Box::pin(futures_util::stream::empty()),
        };
        ProviderError::from_response(protocol, &response, body.as_bytes())
    }

    #[test]
    fn every_refusal_has_its_class() {
        let anthropic = |status, kind: &str, message: &str| {
            let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#);
            error_for(Protocol::Anthropic, status, &body).failure
        };
        let openai = |status, code: &str, message: &str| {
            let body = format!(
                r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":null,"code":"{code}"}}}}"#
            );
            error_for(Protocol::Openai, status, &body).failure
        };
        let table = [
            (anthropic(400, "invalid_request_error", "messages: Field required"), FailureKind::BadRequest),
            (
                anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
                FailureKind::ContextTooLong,
            ),
            (
                anthropic(400, "invalid_request_error", "diagnostics: Extra inputs are not permitted"),
                FailureKind::NewerFieldsRefused,
            ),
            (
                anthropic(
                    400,
                    "invalid_request_error",
                    "thinking.adaptive.display: Extra inputs are not permitted",
                ),
                FailureKind::ThinkingFieldsRefused,
            ),
            (openai(400, "x", "Unknown parameter: 'output_config'."), FailureKind::ThinkingFieldsRefused),
            (
                // The field is known, its value is not.
                anthropic(400, "invalid_request_error", "output_config.effort 'xhigh' is not supported"),
                FailureKind::BadRequest,
            ),
            (anthropic(401, "authentication_error", "invalid x-api-key"), FailureKind::Auth),
            (anthropic(403, "permission_error", "no"), FailureKind::Auth),
            (anthropic(404, "not_found_error", "model: claude-9"), FailureKind::ModelUnavailable),
            (anthropic(413, "request_too_large", "too large"), FailureKind::TooLarge),
            (anthropic(429, "rate_limit_error", "slow down"), FailureKind::RateLimit),
            (anthropic(500, "api_error", "oops"), FailureKind::ServerError),
            (anthropic(529, "overloaded_error", "Overloaded"), FailureKind::Overload),
            (
                openai(400, "context_length_exceeded", "This model's maximum context length is"),
                FailureKind::ContextTooLong,
            ),
            (openai(404, "model_not_found", "The model `x` does not exist"), FailureKind::ModelUnavailable),
            (openai(404, "404", "No endpoints found that support tool use"), FailureKind::ToolsRefused),
            (openai(404, "404", "No endpoints found that support image input"), FailureKind::ImagesRefused),
            (openai(400, "x", "gemma does not support tools"), FailureKind::ToolsRefused),
            (
                openai(400, "x", "Invalid content type. image_url is only supported by certain models."),
                FailureKind::ImagesRefused,
            ),
            (openai(429, "insufficient_quota", "You exceeded your current quota"), FailureKind::Auth),
            (openai(429, "rate_limit_exceeded", "Rate limit reached"), FailureKind::RateLimit),
            (openai(503, "x", "busy"), FailureKind::Overload),
            (error_for(Protocol::Openai, 404, "<html>not here</html>").failure, FailureKind::NotFound),
        ];
        for (index, (found, expected)) in table.into_iter().enumerate() {
            assert_eq!(found, expected, "case {index}");
        }
    }

    #[test]
    fn an_error_says_what_to_do_and_never_the_key() {
        let error = error_for(
            Protocol::Openai,
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-secret-123."}}"#,
        );
        let shown = error.redact_key(Some("sk-secret-123")).to_string();
        assert_eq!(
            shown,
            "the provider refused the key (401): Incorrect API key provided: •••.; set the provider's key (`hardpan providers` names its variable), or check what it may do"
        );
    }

    #[test]
    fn waiting_times_are_read() {
        let error = error_for(Protocol::Anthropic, 429, "{}");
        assert_eq!(
            (error.retry_after, error.request_id.as_deref()),
            (Some(Duration::from_secs(2)), Some("req_1"))
        );
    }

    #[test]
    fn a_page_in_place_of_an_answer_is_shown_in_short() {
        let error = error_for(Protocol::Openai, 502, "<html>\n\x1b[31m  Bad gateway </html>");
        assert_eq!(
            (error.failure, error.message.as_str()),
            (FailureKind::ServerError, "<html> [31m Bad gateway </html>")
        );
    }
}
