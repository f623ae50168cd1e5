//! What can go wrong between us and a provider: one classification, in one place.

use std::time::Duration;

use hardpan_models::Protocol;
use serde_json::Value;

use crate::{HttpResponse, StreamError, TransportError};

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The server could not be reached, or the connection broke before anything was said.
    Transport,
    /// Too many requests or tokens.
    RateLimit,
    /// The server is too busy, or failed in itself.
    Overload,
    /// The request breaks a rule.
    BadRequest,
    /// No key, or a wrong one, or one that may not do this.
    Auth,
    /// Nothing is at this address.
    NotFound,
    /// The prompt does not fit the window.
    ContextTooLong,
    /// The body is larger than the server takes.
    TooLarge,
    /// The model takes no images, or not these.
    ImagesRefused,
    /// The model takes no tools.
    ToolsRefused,
    /// There is no such model, or it is not for this key.
    ModelUnavailable,
    /// No bytes came for too long.
    Stalled,
    /// The answer broke off in the middle.
    Cut,
    /// What came is no answer of this protocol.
    Garbage,
}

/// A failed request: what went wrong, in whose words, and when to try again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct ProviderError {
    /// What went wrong.
    pub failure: Failure,
    /// The HTTP status, if one came.
    pub status: Option<u16>,
    /// The provider's own words, or ours where it had none. Never holds a key.
    pub message: String,
    /// How long the provider asks us to wait.
    pub retry_after: Option<Duration>,
    /// The provider's id of the request, for its support.
    pub request_id: Option<String>,
}

impl Failure {
    /// Whether the same request may succeed a little later.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Failure::Transport
                | Failure::RateLimit
                | Failure::Overload
                | Failure::Stalled
                | Failure::Cut
                | Failure::Garbage
        )
    }

    /// What a person can do about it.
    pub fn remedy(&self) -> &'static str {
        match self {
            Failure::Transport => "check the network, the base URL and the proxy settings",
            Failure::RateLimit => "wait, or ask the provider for higher limits",
            Failure::Overload => "try again in a while, or choose another model",
            Failure::BadRequest => {
                "this is most likely a fault of hardpan: `hardpan request --json` shows the body"
            }
            Failure::Auth => {
                "set the provider's key (`hardpan providers` names its variable), or check what it may do"
            }
            Failure::NotFound => "check the provider's base URL",
            Failure::ContextTooLong => {
                "compact the conversation, close files, or choose a model with a larger window"
            }
            Failure::TooLarge => "send fewer or smaller images and files",
            Failure::ImagesRefused => "choose a model that takes images, or leave them out",
            Failure::ToolsRefused => "choose a model that calls tools",
            Failure::ModelUnavailable => "choose another model (`hardpan models`)",
            Failure::Stalled => "try again, or raise the limit for silence in the settings",
            Failure::Cut => "try again; what was received is kept",
            Failure::Garbage => "check the base URL: something other than a provider may be answering",
        }
    }

    fn what(&self) -> &'static str {
        match self {
            Failure::Transport => "the provider cannot be reached",
            Failure::RateLimit => "the provider's rate limit is reached",
            Failure::Overload => "the provider is overloaded",
            Failure::BadRequest => "the provider refused the request",
            Failure::Auth => "the provider refused the key",
            Failure::NotFound => "nothing answers at this address",
            Failure::ContextTooLong => "the prompt is too long for the model",
            Failure::TooLarge => "the request is too large",
            Failure::ImagesRefused => "the model refused the images",
            Failure::ToolsRefused => "the model refused the tools",
            Failure::ModelUnavailable => "the model is not available",
            Failure::Stalled => "the provider fell silent",
            Failure::Cut => "the answer broke off",
            Failure::Garbage => "the answer cannot be understood",
        }
    }
}

impl ProviderError {
    /// A failure in our own words.
    pub fn new(failure: Failure, message: impl Into<String>) -> Self {
        ProviderError { failure, status: None, message: message.into(), retry_after: None, request_id: None }
    }

    fn sentence(&self) -> String {
        let status = self.status.map_or_else(String::new, |status| format!(" ({status})"));
        let message = if self.message.is_empty() { String::new() } else { format!(": {}", self.message) };
        format!("{}{status}{message}; {}", self.failure.what(), self.failure.remedy())
    }

    /// The same with every trace of a key taken out: some servers repeat it in their errors.
    pub fn without_key(mut self, key: Option<&str>) -> Self {
        if let Some(key) = key.filter(|key| key.len() >= 8) {
            self.message = self.message.replace(key, "•••");
        }
        self
    }

    /// Reads a refusal: status, headers and body.
    pub fn of_response(protocol: Protocol, response: &HttpResponse, body: &[u8]) -> Self {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let error = &json["error"];
        let message = error["message"].as_str().or(json["message"].as_str()).or(error.as_str());
        let message = message.map_or_else(|| excerpt(body), str::to_owned);
        let words: Vec<&str> =
            [&error["type"], &error["code"], &json["type"]].iter().filter_map(|word| word.as_str()).collect();
        ProviderError {
            failure: classify(protocol, response.status, &words, &message),
            status: Some(response.status),
            message,
            retry_after: retry_after(response),
            request_id: response.header("request-id").or(response.header("x-request-id")).map(str::to_owned),
        }
    }

    /// Reads an error that came inside a stream, after a 200.
    pub fn of_stream(protocol: Protocol, error: &StreamError) -> Self {
        let status = match error.kind.as_str() {
            "overloaded_error" => 529,
            "rate_limit_error" | "rate_limit_exceeded" => 429,
            "api_error" | "server_error" | "timeout_error" => 500,
            "authentication_error" => 401,
            "permission_error" => 403,
            "not_found_error" => 404,
            StreamError::MALFORMED | StreamError::TOO_LONG => {
                return ProviderError::new(Failure::Garbage, &error.message);
            }
            _ => 400,
        };
        let failure = classify(protocol, status, &[&error.kind], &error.message);
        ProviderError::new(failure, error.message.clone())
    }

    /// A failure of the transport.
    pub fn of_transport(error: &TransportError) -> Self {
        let failure = match error {
            TransportError::Unreachable { .. } => Failure::Transport,
            TransportError::Broken { .. } => Failure::Cut,
            TransportError::Invalid { .. } => Failure::BadRequest,
        };
        ProviderError::new(failure, error.to_string())
    }
}

/// The start of a body that is no JSON: a proxy's page, say.
fn excerpt(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(400)]);
    let line: Vec<&str> = text.split_whitespace().collect();
    line.join(" ").chars().filter(|c| !c.is_control()).take(200).collect()
}

/// `retry-after` in seconds, or the finer `retry-after-ms` of some servers. Dates are not understood, and ignored.
fn retry_after(response: &HttpResponse) -> Option<Duration> {
    let number =
        |name: &str| response.header(name)?.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
    let seconds = number("retry-after-ms").map(|ms| ms / 1000.0).or_else(|| number("retry-after"))?;
    Some(Duration::from_secs_f64(seconds.min(86_400.0)))
}

/// The one place where words are matched: type and code first, the message only where these say too little.
fn classify(protocol: Protocol, status: u16, words: &[&str], message: &str) -> Failure {
    let has_word = |wanted: &[&str]| words.iter().any(|word| wanted.contains(word));
    let says = |parts: &[&str]| {
        let message = message.to_lowercase();
        parts.iter().any(|part| message.contains(part))
    };
    match status {
        _ if has_word(&["context_length_exceeded", "exceed_context_size_error"]) => Failure::ContextTooLong,
        _ if has_word(&["model_not_found", "model_not_available", "model_decommissioned"]) => {
            Failure::ModelUnavailable
        }
        401 | 403 | 407 => Failure::Auth,
        402 => Failure::Auth,
        404 if protocol == Protocol::Anthropic && has_word(&["not_found_error"]) && says(&["model"]) => {
            Failure::ModelUnavailable
        }
        404 if says(&["support tool use", "tool use"]) => Failure::ToolsRefused, // OpenRouter: no endpoint of the model
        404 if says(&["image input"]) => Failure::ImagesRefused,
        404 if says(&["model"]) => Failure::ModelUnavailable,
        404 | 405 => Failure::NotFound,
        413 => Failure::TooLarge,
        408 | 409 | 425 => Failure::Overload,
        429 if has_word(&["insufficient_quota"]) => Failure::Auth,
        429 => Failure::RateLimit,
        500..=599 => Failure::Overload,
        400 | 422 if says(&TOO_LONG) => Failure::ContextTooLong,
        400 | 422 if says(&NO_TOOLS) => Failure::ToolsRefused,
        400 | 422 if says(&NO_IMAGES) => Failure::ImagesRefused,
        400 | 422
            if says(&[
                "model not found",
                "unknown model",
                "no such model",
                "invalid model",
                "not a valid model",
            ]) =>
        {
            Failure::ModelUnavailable
        }
        300..=399 => Failure::NotFound,
        _ => Failure::BadRequest,
    }
}

const TOO_LONG: [&str; 6] = [
    "prompt is too long",
    "maximum context length",
    "context length exceeded",
    "exceeds the available context size",
    "input is too long",
    "context window",
];
const NO_TOOLS: [&str; 6] = [
    "does not support tools",
    "does not support tool",
    "tools are not supported",
    "tool use is not supported",
    "does not support function",
    "tool calling is not supported",
];
const NO_IMAGES: [&str; 7] = [
    "does not support image",
    "images are not supported",
    "image input is not supported",
    "does not support vision",
    "image_url is only supported",
    "unknown variant `image_url`",
    "not a multimodal model",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(protocol: Protocol, status: u16, body: &str) -> ProviderError {
        let response = HttpResponse {
            status,
            headers: vec![("retry-after".into(), "2".into()), ("request-id".into(), "req_1".into())],
            body: Box::pin(futures_util::stream::empty()),
        };
        ProviderError::of_response(protocol, &response, body.as_bytes())
    }

    #[test]
    fn every_refusal_has_its_class() {
        let anthropic = |status, kind: &str, message: &str| {
            let body = format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"{message}"}}}}"#);
            of(Protocol::Anthropic, status, &body).failure
        };
        let openai = |status, code: &str, message: &str| {
            let body = format!(
                r#"{{"error":{{"message":"{message}","type":"invalid_request_error","param":null,"code":"{code}"}}}}"#
            );
            of(Protocol::Openai, status, &body).failure
        };
        let table = [
            (anthropic(400, "invalid_request_error", "messages: Field required"), Failure::BadRequest),
            (
                anthropic(400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
                Failure::ContextTooLong,
            ),
            (anthropic(401, "authentication_error", "invalid x-api-key"), Failure::Auth),
            (anthropic(403, "permission_error", "no"), Failure::Auth),
            (anthropic(404, "not_found_error", "model: claude-9"), Failure::ModelUnavailable),
            (anthropic(413, "request_too_large", "too large"), Failure::TooLarge),
            (anthropic(429, "rate_limit_error", "slow down"), Failure::RateLimit),
            (anthropic(500, "api_error", "oops"), Failure::Overload),
            (anthropic(529, "overloaded_error", "Overloaded"), Failure::Overload),
            (
                openai(400, "context_length_exceeded", "This model's maximum context length is"),
                Failure::ContextTooLong,
            ),
            (openai(404, "model_not_found", "The model `x` does not exist"), Failure::ModelUnavailable),
            (openai(404, "404", "No endpoints found that support tool use"), Failure::ToolsRefused),
            (openai(404, "404", "No endpoints found that support image input"), Failure::ImagesRefused),
            (openai(400, "x", "gemma does not support tools"), Failure::ToolsRefused),
            (
                openai(400, "x", "Invalid content type. image_url is only supported by certain models."),
                Failure::ImagesRefused,
            ),
            (openai(429, "insufficient_quota", "You exceeded your current quota"), Failure::Auth),
            (openai(429, "rate_limit_exceeded", "Rate limit reached"), Failure::RateLimit),
            (openai(503, "x", "busy"), Failure::Overload),
            (of(Protocol::Openai, 404, "<html>not here</html>").failure, Failure::NotFound),
        ];
        for (index, (found, expected)) in table.into_iter().enumerate() {
            assert_eq!(found, expected, "case {index}");
        }
    }

    #[test]
    fn an_error_says_what_to_do_and_never_the_key() {
        let error = of(
            Protocol::Openai,
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-secret-123."}}"#,
        );
        let shown = error.without_key(Some("sk-secret-123")).to_string();
        assert_eq!(
            shown,
            "the provider refused the key (401): Incorrect API key provided: •••.; set the provider's key (`hardpan providers` names its variable), or check what it may do"
        );
    }

    #[test]
    fn waiting_times_are_read() {
        let error = of(Protocol::Anthropic, 429, "{}");
        assert_eq!(
            (error.retry_after, error.request_id.as_deref()),
            (Some(Duration::from_secs(2)), Some("req_1"))
        );
    }

    #[test]
    fn a_page_in_place_of_an_answer_is_shown_in_short() {
        let error = of(Protocol::Openai, 502, "<html>\n\x1b[31m  Bad gateway </html>");
        assert_eq!(
            (error.failure, error.message.as_str()),
            (Failure::Overload, "<html> [31m Bad gateway </html>")
        );
    }
}
