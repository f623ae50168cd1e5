//! [`ErrorReply`]: an error response, before its server encodes it.

use hardpan_providers::decode::DecodeError;

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
}
