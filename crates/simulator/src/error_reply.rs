//! [`ErrorReply`]: an error response in the format of its server.

use hardpan_models::Protocol;
use hardpan_prompt::validate::Violation;
use hardpan_providers::decode::DecodeError;
use serde_json::{Value, json};

/// An error response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorReply {
    /// The HTTP status code, 400 or above.
    pub status: u16,
    /// The message for the client.
    pub message: String,
    /// OpenAI's `code`.
    pub code: Option<&'static str>,
    /// OpenAI's `param`: the field that is wrong.
    pub param: Option<String>,
    /// The header `retry-after`, in seconds.
    pub retry_after: Option<u32>,
}

impl ErrorReply {
    /// An error with a status and a message.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        ErrorReply { status, message: message.into(), code: None, param: None, retry_after: None }
    }

    /// An invalid request: status 400.
    pub fn invalid(message: impl Into<String>) -> Self {
        ErrorReply::new(400, message)
    }

    /// Sets OpenAI's `code`.
    pub fn with_code(self, code: &'static str) -> Self {
        ErrorReply { code: Some(code), ..self }
    }

    /// Sets OpenAI's `param`.
    pub fn with_param(self, param: impl Into<String>) -> Self {
        ErrorReply { param: Some(param.into()), ..self }
    }

    /// The error for a violated rule of the validator.
    pub fn from_violation(protocol: Protocol, violation: &Violation) -> Self {
        let message = violation.to_string();
        match (protocol, violation) {
            (_, Violation::TooLarge { .. }) => ErrorReply::new(413, message),
            (Protocol::Openai, Violation::TooLong { tokens, max }) => ErrorReply::invalid(format!(
                "This model's maximum context length is {max} tokens. However, your messages resulted in {tokens} \
                 tokens. Please reduce the length of the messages."
            ))
            .with_code("context_length_exceeded")
            .with_param("messages"),
            (Protocol::Openai, _) => ErrorReply::invalid(message).with_param("messages"),
            (Protocol::Anthropic, _) => ErrorReply::invalid(message),
        }
    }

    /// The error for a body that cannot be parsed.
    pub fn from_decode_error(error: &DecodeError) -> Self {
        ErrorReply { code: error.code, param: error.param.clone(), ..ErrorReply::invalid(&error.message) }
    }

    /// An error that a fault injects.
    pub fn injected(status: u16, retry_after: Option<u32>) -> Self {
        let message = match status {
            401 => "the key is not valid (simulated)",
            403 => "the key may not do this (simulated)",
            404 => "nothing of this name was found (simulated)",
            413 => "the request is too large (simulated)",
            429 => "the rate limit is reached; try again later (simulated)",
            529 | 503 => "the server is overloaded; try again later (simulated)",
            504 => "the server took too long (simulated)",
            400..=499 => "the request is refused (simulated)",
            _ => "the server failed in itself (simulated)",
        };
        ErrorReply { retry_after, ..ErrorReply::new(status, message) }
    }

    /// The `type` of the error, in the protocol's word.
    pub fn kind(&self, protocol: Protocol) -> &'static str {
        match (protocol, self.status) {
            (Protocol::Anthropic, 401) => "authentication_error",
            (_, 403) => "permission_error",
            (Protocol::Anthropic, 404) => "not_found_error",
            (Protocol::Anthropic, 413) => "request_too_large",
            (Protocol::Anthropic, 429) => "rate_limit_error",
            (Protocol::Anthropic, 504) => "timeout_error",
            (Protocol::Anthropic, 529) => "overloaded_error",
            (Protocol::Anthropic, 500..) => "api_error",
            (Protocol::Openai, 429) => "requests",
            (Protocol::Openai, 500..) => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// The JSON body in the format of the protocol.
    pub fn body(&self, protocol: Protocol, request_id: &str) -> Value {
        let ErrorReply { message, param, .. } = self;
        let kind = self.kind(protocol);
        match protocol {
            Protocol::Anthropic => {
                json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id})
            }
            Protocol::Openai => {
                let code = self.code.or(if self.status == 429 { Some("rate_limit_exceeded") } else { None });
                json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
            }
        }
    }
}
