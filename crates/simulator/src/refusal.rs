//! Requests that are not answered, in the servers' own forms.

use hardpan_models::Protocol;
use hardpan_prompt::validate::Violation;
use hardpan_providers::decode::DecodeError;
use serde_json::{Value, json};

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// What is wrong.
    pub message: String,
    /// OpenAI's `code`.
    pub code: Option<&'static str>,
    /// OpenAI's `param`: the field that is wrong.
    pub param: Option<String>,
    /// How long the server asks to wait, in seconds.
    pub retry_after: Option<u32>,
}

impl Refusal {
    /// A refusal with a status and a message.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Refusal { status, message: message.into(), code: None, param: None, retry_after: None }
    }

    /// A request that breaks a rule.
    pub fn invalid(message: impl Into<String>) -> Self {
        Refusal::new(400, message)
    }

    /// The same with OpenAI's `code`.
    pub fn with_code(self, code: &'static str) -> Self {
        Refusal { code: Some(code), ..self }
    }

    /// The same with OpenAI's `param`.
    pub fn with_param(self, param: impl Into<String>) -> Self {
        Refusal { param: Some(param.into()), ..self }
    }

    /// A broken rule of the validator.
    pub fn of_violation(protocol: Protocol, violation: &Violation) -> Self {
        let message = violation.to_string();
        match (protocol, violation) {
            (_, Violation::TooLarge { .. }) => Refusal::new(413, message),
            (Protocol::Openai, Violation::TooLong { tokens, max }) => Refusal::invalid(format!(
                "This model's maximum context length is {max} tokens. However, your messages resulted in {tokens} \
                 tokens. Please reduce the length of the messages."
            ))
            .with_code("context_length_exceeded")
            .with_param("messages"),
            (Protocol::Openai, _) => Refusal::invalid(message).with_param("messages"),
            (Protocol::Anthropic, _) => Refusal::invalid(message),
        }
    }

    /// A body that cannot be read.
    pub fn of_decoding(error: &DecodeError) -> Self {
        Refusal { code: error.code, param: error.param.clone(), ..Refusal::invalid(&error.message) }
    }

    /// What a server says that fails on order.
    pub fn on_order(status: u16, retry_after: Option<u32>) -> Self {
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
        Refusal { retry_after, ..Refusal::new(status, message) }
    }

    /// The word for the status: Anthropic's, or OpenAI's.
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

    /// The body.
    pub fn body(&self, protocol: Protocol, request_id: &str) -> Value {
        let Refusal { message, param, .. } = self;
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
