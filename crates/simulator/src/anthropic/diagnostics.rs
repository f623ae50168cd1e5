//! Why a request missed the cache, told by comparing it with an earlier one.
//!
//! The principal type is [`Fingerprints`]: what the server remembers of requests that asked for
//! diagnostics.

use std::collections::BTreeMap;

use hardpan_economy::cache::Moment;
use hardpan_prompt::Hash;
use serde_json::{Value, json};

use super::signature::{system_hash, tools_hash};
use crate::diagnostics_mode::DiagnosticsMode;
use crate::engine::AcceptedRequest;

/// How long a fingerprint lives. The documentation says only that it is short.
const LIFETIME_MS: i64 = 60 * 60 * 1000;
/// The most fingerprints that are kept.
const MAX_FINGERPRINTS: usize = 10_000;

/// The fingerprints of earlier requests, by the id of their answer.
#[derive(Debug, Default)]
pub struct Fingerprints(BTreeMap<String, Fingerprint>);

/// What the server remembers of a request: hashes and sizes.
#[derive(Clone, Debug)]
struct Fingerprint {
    organisation: Hash,
    made: Moment,
    model: Hash,
    tools: Hash,
    system: Hash,
    /// Each block of the messages, with the role that said it.
    messages: Vec<Hash>,
    /// Everything else that a cache entry depends on.
    parameters: Hash,
}

impl Fingerprint {
    fn of(request: &AcceptedRequest, now: Moment) -> Self {
        let (decoded, prompt) = (&request.decoded, &request.decoded.prompt);
        let fields = &decoded.anthropic;
        let blocks = prompt.messages.iter().flat_map(|message| {
            message.blocks.iter().map(|block| block.hash().with_mark(message.role.mark()))
        });
        let mut betas = fields.betas.clone();
        betas.sort();
        let parameters = format!(
            "{:?} {:?} {:?} {:?} {:?} {:?} {betas:?}",
            decoded.tool_choice,
            prompt.thinking,
            prompt.effort,
            fields.display,
            fields.output_config,
            fields.context_management
        );
        let speed = fields.speed.as_deref().unwrap_or("standard");
        Fingerprint {
            organisation: request.organisation,
            made: now,
            model: Hash::of(format!("{} {speed}", prompt.model).as_bytes()),
            tools: tools_hash(prompt),
            system: system_hash(prompt),
            messages: blocks.collect(),
            parameters: Hash::of(parameters.as_bytes()),
        }
    }
}

impl Fingerprints {
    /// The field `diagnostics` of the answer with this id. Remembers the request if it asked.
    pub fn diagnose(
        &mut self,
        request: &AcceptedRequest,
        id: &str,
        now: Moment,
        mode: DiagnosticsMode,
    ) -> Value {
        let Some(asked) = &request.decoded.anthropic.diagnostics else { return Value::Null };
        let current = Fingerprint::of(request, now);
        let verdict = match (&asked.previous_message_id, mode) {
            (None, _) => Value::Null,
            (_, DiagnosticsMode::Pending) => json!({"cache_miss_reason": null}),
            (_, DiagnosticsMode::NotFound) => reason("previous_message_not_found", None),
            (_, DiagnosticsMode::Unavailable) => reason("unavailable", None),
            (Some(previous), DiagnosticsMode::Compared) => match self.0.get(previous) {
                Some(previous) if is_comparable(previous, &current) => compare(previous, &current, request),
                _ => reason("previous_message_not_found", None),
            },
        };
        if self.0.len() >= MAX_FINGERPRINTS {
            self.0.retain(|_, kept| now.since(kept.made) < LIFETIME_MS);
        }
        self.0.insert(id.to_owned(), current);
        verdict
    }
}

fn is_comparable(previous: &Fingerprint, current: &Fingerprint) -> bool {
    previous.organisation == current.organisation && current.made.since(previous.made) < LIFETIME_MS
}

/// Names the first difference, in the order of the prefix.
fn compare(previous: &Fingerprint, current: &Fingerprint, request: &AcceptedRequest) -> Value {
    let prompt = &request.decoded.prompt;
    // An estimate, as the real server's: what the model sees may be less than what was sent.
    let missed = |blocks: usize| {
        let before = blocks.checked_sub(1).map_or(0, |last| request.measured.tokens_through(last));
        Some(request.measured.total() - before.min(request.measured.total()))
    };
    if previous.model != current.model {
        return reason("model_changed", missed(0));
    }
    if previous.tools != current.tools {
        return reason("tools_changed", missed(0));
    }
    if previous.system != current.system {
        return reason("system_changed", missed(prompt.tools.len()));
    }
    let pairs = previous.messages.iter().zip(&current.messages);
    let shared = pairs.take_while(|(before, now)| before == now).count();
    if shared < previous.messages.len() {
        return reason("messages_changed", missed(prompt.tools.len() + prompt.system.len() + shared));
    }
    if previous.parameters != current.parameters {
        return reason("unavailable", None);
    }
    Value::Null
}

fn reason(kind: &str, missed_tokens: Option<usize>) -> Value {
    let mut reason = json!({"type": kind});
    if let Some(tokens) = missed_tokens {
        reason["cache_missed_input_tokens"] = json!(tokens);
    }
    json!({"cache_miss_reason": reason})
}
