//! [`Threads`]: conversations that the server keeps, so that a request sends only what is new.

use std::collections::BTreeMap;

use hardpan_prompt::{Hash, Json};
use hardpan_providers::decode::{DecodedRequest, betas};
use serde_json::{Value, json};

use super::rules::thread_with_others;
use crate::error_reply::ErrorReply;

/// How long a thread lives after its last use, in seconds.
const LIFETIME: i64 = 5 * 60;
/// The most threads that are kept.
const MAX_THREADS: usize = 1000;
/// What a thread keeps besides its messages, and what later requests may leave out.
const FIXED: [&str; 2] = ["system", "tools"];

/// The threads of a server, by the id of the answer that ends them so far.
#[derive(Debug, Default)]
pub struct Threads(BTreeMap<String, Thread>);

#[derive(Debug)]
struct Thread {
    owner: Hash,
    /// Seconds since 1970.
    last_use: i64,
    /// Whether a later request went on from here: that may be done once.
    is_continued: bool,
    /// `system`, `tools` and `messages`, the answer included.
    conversation: Value,
}

impl Threads {
    /// The body of a request that continues a thread, with the whole conversation in it. `None`: it
    /// continues none.
    pub fn resolve(
        &self,
        decoded: &DecodedRequest,
        body: &[u8],
        owner: Hash,
        now: i64,
    ) -> Result<Option<Vec<u8>>, ErrorReply> {
        let Some(id) = previous_id(decoded) else { return Ok(None) };
        // The rules refuse these.
        if !decoded.anthropic.has_beta(betas::THREADS) || thread_with_others(decoded).is_some() {
            return Ok(None);
        }
        let kept = self.0.get(&id).filter(|kept| kept.owner == owner && now - kept.last_use < LIFETIME);
        let Some(Thread { is_continued, conversation, .. }) = kept else {
            return Err(ErrorReply::new(404, "thread: not found").with_code("thread_not_found"));
        };
        if *is_continued {
            let message = "thread.previous_message_id: this response has already been continued";
            return Err(ErrorReply::invalid(message).with_code("thread_already_continued"));
        }
        let Ok(mut body) = serde_json::from_slice::<Value>(body) else { return Ok(None) };
        let changed: Vec<&str> = FIXED
            .into_iter()
            .filter(|name| !body[*name].is_null() && body[*name] != conversation[*name])
            .collect();
        if !changed.is_empty() {
            let message = format!("thread: {} differs from the thread's", changed.join(" and "));
            return Err(ErrorReply::invalid(message).with_code("thread_fingerprint_mismatch"));
        }
        for name in FIXED.into_iter().filter(|name| !conversation[*name].is_null()) {
            body[name] = conversation[name].clone();
        }
        let messages = |value: &Value| value["messages"].as_array().cloned().unwrap_or_default();
        body["messages"] = Value::Array([messages(conversation), messages(&body)].concat());
        Ok(Some(body.to_string().into_bytes()))
    }

    /// Keeps the conversation of a request that asks for it, with its answer.
    pub fn keep(&mut self, decoded: &DecodedRequest, id: String, content: &Value, owner: Hash, now: i64) {
        let Some(conversation) = &decoded.anthropic.conversation else { return };
        if let Some(previous) = previous_id(decoded).and_then(|previous| self.0.get_mut(&previous)) {
            previous.is_continued = true;
        }
        if self.0.len() >= MAX_THREADS {
            self.0.retain(|_, kept| now - kept.last_use < LIFETIME);
        }
        let mut conversation = conversation.value();
        if let Some(messages) = conversation["messages"].as_array_mut() {
            messages.push(json!({"role": "assistant", "content": content}));
        }
        self.0.insert(id, Thread { owner, last_use: now, is_continued: false, conversation });
    }
}

/// The answer that a request goes on from.
fn previous_id(decoded: &DecodedRequest) -> Option<String> {
    let thread = decoded.anthropic.thread.as_ref().map(Json::value)?;
    Some(thread["previous_message_id"].as_str().filter(|_| thread["type"] == "continue")?.to_owned())
}
