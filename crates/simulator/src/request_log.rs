//! [`RequestLog`]: one JSON line per request that the server got, for tools that compare clients.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use hardpan_economy::Rates;
use hardpan_economy::ledger::Prices;
use hardpan_models::{Model, ProviderProfile};
use hardpan_prompt::TokenUsage;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::engine::Request;
use crate::reply::{Body, Reply};

/// What an answer is billed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AnswerBill {
    /// The provider that the model was found at.
    pub provider: String,
    /// The model's id in the catalogue.
    pub model: String,
    /// The tokens of prompt and answer by how they are billed.
    pub usage: TokenUsage,
    /// The price of the prompt in tokens of plain input: a token read from the cache at a tenth of
    /// the price is 0.1. The answer is not counted.
    pub input_units: f64,
    /// The price of prompt and answer.
    pub dollars: f64,
}

impl AnswerBill {
    /// The bill at the model's prices.
    pub(crate) fn new(model: &Model, profile: &ProviderProfile, usage: TokenUsage) -> Self {
        let rates = Rates::for_model(model, profile, usage.prompt());
        let unit = rates.input_dollars(&TokenUsage { input: 1, ..TokenUsage::default() });
        AnswerBill {
            provider: model.provider.to_string(),
            model: model.id.to_string(),
            usage,
            input_units: if unit > 0.0 {
                round(rates.input_dollars(&usage) / unit)
            } else {
                usage.prompt() as f64
            },
            dollars: Prices::for_model(model, profile, usage.prompt()).dollars(&usage),
        }
    }
}

/// Rounds to a thousandth of a token.
fn round(units: f64) -> f64 {
    (units * 1000.0).round() / 1000.0
}

/// A file that gets one JSON line per request. Keys are not logged: they are in headers or in the
/// query, and neither is written.
#[derive(Clone, Debug)]
pub struct RequestLog {
    file: Arc<Mutex<File>>,
}

/// A line of the log.
#[derive(Debug, Serialize)]
struct RequestRecord<'a> {
    /// When the request had been read, in milliseconds since 1970.
    at_ms: i64,
    method: &'a str,
    path: &'a str,
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    bill: Option<&'a AnswerBill>,
    /// The body of a refusal.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    /// The request's body as it came; text that is no JSON as a string.
    body: RequestBody<'a>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RequestBody<'a> {
    Json(&'a RawValue),
    Text(String),
}

impl RequestLog {
    /// Creates the file, or empties it.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(RequestLog { file: Arc::new(Mutex::new(File::create(path)?)) })
    }

    /// Writes the line of a request and its reply.
    pub(crate) fn record(&self, request: &Request<'_>, reply: &Reply, at_ms: i64) -> io::Result<()> {
        let body = serde_json::from_slice(request.body)
            .map(RequestBody::Json)
            .unwrap_or_else(|_| RequestBody::Text(String::from_utf8_lossy(request.body).into_owned()));
        let error = match &reply.body {
            Body::Whole(bytes) if reply.status >= 400 => serde_json::from_slice(bytes).ok(),
            _ => None,
        };
        let record = RequestRecord {
            at_ms,
            method: request.method,
            path: request.path.split('?').next().unwrap_or_default(),
            status: reply.status,
            bill: reply.bill.as_deref(),
            error,
            body,
        };
        let mut line = serde_json::to_vec(&record)?;
        // A body may be written over several lines.
        line.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
        line.push(b'\n');
        self.file.lock().unwrap_or_else(PoisonError::into_inner).write_all(&line)
    }
}
