//! [`FailureReport`] and [`classify`]: from a provider's words to a [`FailureKind`].

use std::time::Duration;

use serde_json::Value;

use crate::FailureKind;

/// The type of an error of an extension that answers in the place of a provider.
pub const EXTENSION_ERROR: &str = "extension_error";

/// What a provider said about a failure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FailureReport {
    /// Its words for the type of the error and its code: `overloaded_error`, `model_not_found`.
    pub words: Vec<String>,
    /// Its message for people; empty if it gave none.
    pub message: String,
    /// How long it asks to wait, if it says so in the body.
    pub retry_after: Option<Duration>,
}

impl FailureReport {
    /// Reads the error object that most servers send: `{"error": {"type", "code", "message"}}`.
    pub fn from_json(body: &Value) -> Self {
        let error = &body["error"];
        let message = error["message"].as_str().or(body["message"].as_str()).or(error.as_str());
        let words = [&error["type"], &error["code"], &body["type"]];
        FailureReport {
            words: words.iter().filter_map(|word| word.as_str()).map(str::to_owned).collect(),
            message: message.unwrap_or_default().to_owned(),
            retry_after: None,
        }
    }

    /// Whether the type or the code is one of these words.
    pub fn has_word(&self, wanted: &[&str]) -> bool {
        self.words.iter().any(|word| wanted.contains(&word.as_str()))
    }

    /// Whether the message contains one of these texts, which must be in lower case.
    pub fn mentions(&self, texts: &[&str]) -> bool {
        let message = self.message.to_lowercase();
        texts.iter().any(|text| message.contains(text))
    }

    /// The HTTP status that servers send with this error, for one that came within a stream.
    fn implied_status(&self) -> u16 {
        let status = |word: &String| {
            Some(match word.as_str() {
                "overloaded_error" => 529,
                "rate_limit_error" | "rate_limit_exceeded" => 429,
                "api_error" | "server_error" | "timeout_error" => 500,
                "authentication_error" => 401,
                "permission_error" => 403,
                "not_found_error" => 404,
                _ => return None,
            })
        };
        self.words.iter().find_map(status).unwrap_or(400)
    }
}

/// Classifies a failure by words that mean the same with all providers: type and code first, the
/// message only if these do not decide. No other code matches error texts, but for a codec that
/// knows its server better.
pub(crate) fn classify(status: Option<u16>, report: &FailureReport) -> FailureKind {
    match status.unwrap_or_else(|| report.implied_status()) {
        _ if report.has_word(&["context_length_exceeded", "exceed_context_size_error"]) => {
            FailureKind::ContextTooLong
        }
        _ if report.has_word(&[EXTENSION_ERROR]) => FailureKind::Extension,
        _ if report.has_word(&["model_not_found", "model_not_available", "model_decommissioned"]) => {
            FailureKind::ModelUnavailable
        }
        401 | 402 | 403 | 407 => FailureKind::Auth,
        404 if report.mentions(&["support tool use", "tool use"]) => FailureKind::ToolsRefused, // OpenRouter: no endpoint of the model
        404 if report.mentions(&["image input"]) => FailureKind::ImagesRefused,
        404 if report.mentions(&["model"]) => FailureKind::ModelUnavailable,
        404 | 405 => FailureKind::NotFound,
        413 => FailureKind::TooLarge,
        408 | 409 | 425 => FailureKind::Overload,
        429 if report.has_word(&["insufficient_quota"]) => FailureKind::Auth,
        429 => FailureKind::RateLimit,
        503 | 529 => FailureKind::Overload,
        500..=599 if report.has_word(&["overloaded_error", "server_is_overloaded", "slow_down"]) => {
            FailureKind::Overload
        }
        500..=599 => FailureKind::ServerError,
        400 | 422 if report.mentions(&TOO_LONG) => FailureKind::ContextTooLong,
        400 | 422 if report.mentions(&NO_TOOLS) => FailureKind::ToolsRefused,
        400 | 422 if report.mentions(&NO_IMAGES) => FailureKind::ImagesRefused,
        400 | 422 if report.mentions(&NO_STREAM) => FailureKind::StreamingRefused,
        400 | 422 if report.mentions(&UNKNOWN_FIELD) && report.mentions(&THINKING_FIELDS) => {
            FailureKind::ThinkingFieldsRefused
        }
        400 | 422 if report.mentions(&NEWER_FIELDS) => FailureKind::NewerFieldsRefused,
        400 | 422 if report.mentions(&NO_MODEL) => FailureKind::ModelUnavailable,
        300..=399 => FailureKind::NotFound,
        _ => FailureKind::BadRequest,
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
const NO_STREAM: [&str; 5] = [
    "does not support stream",
    "streaming is not supported",
    "stream is not supported",
    "streaming not supported",
    "'stream' does not support true",
];
/// Names of fields that only newer servers know, as a refusal quotes them.
const NEWER_FIELDS: [&str; 7] = [
    "diagnostics",
    "prompt_cache_options",
    "block_binding",
    "clear_at",
    "role 'system' is not supported",
    "unexpected role \"system\"",
    "for the `anthropic-beta` header",
];
/// How servers begin to say that they do not know a field at all. Without these words a refusal that
/// names a field of thinking is about its value.
const UNKNOWN_FIELD: [&str; 4] =
    ["extra inputs are not permitted", "unknown parameter", "unknown field", "unrecognized"];
const THINKING_FIELDS: [&str; 2] = ["output_config", "display"];
const NO_MODEL: [&str; 5] =
    ["model not found", "unknown model", "no such model", "invalid model", "not a valid model"];
