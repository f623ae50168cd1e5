//! Small sessions of each agent, with bills as providers write them.

mod causes; // each cause, on a session that has it
mod formats; // one sample per format
mod model; // the tree of frontiers against the cache model
mod recorded_requests; // causes that are read off recorded requests
mod side_requests; // requests of which only the sum is recorded

use hardpan_models::Catalogue;
use serde_json::{Value, json};

use super::*;

const START: i64 = 1_786_698_000_000;
const MINUTE: i64 = 60_000;

/// A session of pi, said line by line.
#[derive(Clone)]
pub(super) struct PiSession {
    lines: Vec<Value>,
    now: i64,
    model: &'static str,
}

impl PiSession {
    pub fn new() -> Self {
        let session = json!({"type": "session", "version": 3, "id": "s", "timestamp": START, "cwd": "/p"});
        PiSession { lines: vec![session], now: START, model: "claude-sonnet-4-5" }
    }

    pub fn model(mut self, model: &'static str) -> Self {
        self.model = model;
        self
    }

    pub fn wait(mut self, ms: i64) -> Self {
        self.now += ms;
        self
    }

    pub fn line(mut self, line: Value) -> Self {
        self.lines.push(line);
        self
    }

    fn message(self, message: &Value) -> Self {
        let now = self.now;
        self.line(json!({"type": "message", "timestamp": now, "message": message}))
    }

    pub fn ask(self) -> Self {
        let at = self.now;
        self.message(&json!({"role": "user", "content": [{"type": "text", "text": "Why?"}], "timestamp": at}))
    }

    pub fn result(self) -> Self {
        let content = json!([{"type": "text", "text": "12 lines"}]);
        self.message(
            &json!({"role": "toolResult", "toolCallId": "c", "toolName": "read", "content": content}),
        )
    }

    /// An answer that took 4 seconds, for input, read and written tokens.
    pub fn answer(self, usage: [u64; 3]) -> Self {
        self.answer_with(usage, "stop", &json!([{"type": "text", "text": "Because."}]))
    }

    pub fn call(self, usage: [u64; 3]) -> Self {
        let call = json!([{"type": "toolCall", "id": "c", "name": "read", "arguments": {"path": "a.rs"}}]);
        self.answer_with(usage, "toolUse", &call)
    }

    pub fn answer_with(mut self, [input, read, write]: [u64; 3], stop: &str, content: &Value) -> Self {
        let started = self.now;
        self.now += 4000;
        let usage = json!({"input": input, "output": 20, "cacheRead": read, "cacheWrite": write});
        let model = self.model;
        self.message(&json!({
            "role": "assistant", "provider": "anthropic", "model": model, "stopReason": stop,
            "content": content, "usage": usage, "timestamp": started,
        }))
    }

    pub fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    pub fn audit(&self) -> Audit {
        audit("s.jsonl", &self.text())
    }
}

pub(super) fn audit(name: &str, text: &str) -> Audit {
    let recording = Recording::parse(name, text.trim_start().as_bytes()).unwrap();
    Audit::from_recording(&recording, Catalogue::builtin())
}

/// The request, the tokens and the words of each loss.
pub(super) fn losses(audit: &Audit) -> Vec<(usize, u64, String)> {
    audit.losses.iter().map(|loss| (loss.request, loss.tokens, loss.cause.describe())).collect()
}

/// What was foretold and what happened, of each request.
pub(super) fn outcomes(audit: &Audit) -> Vec<(CacheOutcome, CacheOutcome)> {
    audit.requests.iter().map(|request| (request.predicted, request.actual)).collect()
}
