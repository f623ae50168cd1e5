//! [`Anthropic`]: requests to the simulated server of Anthropic Messages.

use hardpan_economy::cache::Moment;
use hardpan_simulator::{Engine, EngineSettings, Reply, Request};
use serde_json::{Value, json};

use crate::providers::merge_fields;

/// A server with the headers that its requests carry.
pub struct Anthropic {
    pub engine: Engine,
    pub version: &'static str,
    pub betas: String,
    pub now: Moment,
}

impl Anthropic {
    pub fn new(settings: EngineSettings) -> Self {
        let now = Moment(1_800_000_000_000);
        Anthropic { engine: Engine::new(settings), version: "2023-06-01", betas: String::new(), now }
    }

    pub fn with_betas(self, betas: &str) -> Self {
        Anthropic { betas: betas.to_owned(), ..self }
    }

    pub fn send_to(&self, path: &str, body: &Value) -> Reply {
        let mut headers = vec![
            ("x-api-key".to_owned(), "key".to_owned()),
            ("anthropic-version".to_owned(), self.version.to_owned()),
        ];
        if !self.betas.is_empty() {
            headers.push(("anthropic-beta".to_owned(), self.betas.clone()));
        }
        let body = body.to_string();
        let request = Request { method: "POST", path, headers: &headers, body: body.as_bytes() };
        let mut reply = self.engine.answer(&request, self.now);
        self.engine.commit_cache(&mut reply, self.now);
        reply
    }

    /// Status and body of a request to `messages`.
    pub fn send(&self, body: &Value) -> (u16, Value) {
        let reply = self.send_to("/v1/messages", body);
        (reply.status, serde_json::from_slice(&reply.body.bytes()).unwrap())
    }

    /// The answer to a request that must be accepted.
    pub fn answer(&self, body: &Value) -> Value {
        let (status, answer) = self.send(body);
        assert_eq!(status, 200, "{body}: {answer}");
        answer
    }

    /// The words in which a request is refused with status 400.
    pub fn refusal(&self, body: &Value) -> String {
        let (status, error) = self.send(body);
        assert_eq!(
            (status, &error["error"]["type"]),
            (400, &json!("invalid_request_error")),
            "{body}: {error}"
        );
        error["error"]["message"].as_str().unwrap().to_owned()
    }
}

/// A small request; the fields of `more` replace its own.
pub fn request(model: &str, more: Value) -> Value {
    let mut body = json!({
        "model": model,
        "max_tokens": 8000,
        "tools": [tool("read")],
        "messages": [user("Hello!")],
    });
    merge_fields(&mut body, more);
    body
}

pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool.", "input_schema": {"type": "object", "properties": {}}})
}

pub fn user(content: &str) -> Value {
    json!({"role": "user", "content": content})
}

pub fn assistant(content: &Value) -> Value {
    json!({"role": "assistant", "content": content})
}
