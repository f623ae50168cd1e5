//! `prompt_cache_diagnostics`: why a request did not reuse the cache of an earlier one.
//!
//! The principal type is [`ComparisonRecords`]: hashes and sizes of recent requests. They are kept
//! whether or not the answer is stored.

use std::collections::BTreeMap;

use hardpan_economy::cache::Moment;
use hardpan_prompt::{Block, Hash, Json, Prompt};
use serde_json::{Value, json};

use super::response;
use crate::diagnostics_mode::DiagnosticsMode;
use crate::engine::AcceptedRequest;
use crate::wire::{AnswerHead, make_id};

/// How long a record lives. The documentation says only that it is short.
const LIFETIME_MS: i64 = 60 * 60 * 1000;
/// The most records that are kept.
const MAX_RECORDS: usize = 10_000;

/// What a prefix depends on besides its text, in the order in which the server looks: where the
/// response says it, and the reason that a difference gives.
const SETTINGS: [(&str, &str); 7] = [
    ("/model", "model_changed"),
    ("/prompt_cache_key", KEY_CHANGED),
    ("/service_tier", "service_tier_changed"),
    ("/tools", "tools_changed"),
    ("/text/format", "text_format_changed"),
    ("/reasoning/effort", "reasoning_effort_changed"),
    ("/text/verbosity", "verbosity_changed"),
];
const KEY_CHANGED: &str = "prompt_cache_key_changed";

/// What is remembered of recent requests, by the id of their answer.
#[derive(Debug, Default)]
pub struct ComparisonRecords(BTreeMap<String, ComparisonRecord>);

#[derive(Clone, Debug)]
struct ComparisonRecord {
    owner: Hash,
    made: Moment,
    /// Of each of [`SETTINGS`].
    settings: [Hash; SETTINGS.len()],
    has_compaction: bool,
    /// The blocks of system prompt and messages that were in the cache after the request.
    prefix: Vec<Hash>,
    /// The tokens that were in the cache after the request.
    reusable: u64,
}

impl ComparisonRecord {
    fn of(request: &AcceptedRequest, head: &AnswerHead, owner: Hash, now: Moment) -> Self {
        let mut response = response::in_progress(request, head);
        if response["service_tier"] == "auto" {
            response["service_tier"] = json!("default");
        }
        let hash = |path| Hash::of(response.pointer(path).unwrap_or(&Value::Null).to_string().as_bytes());
        let reusable = head.tokens.cache_read + head.tokens.cache_written();
        let blocks = input_blocks(&request.rendered.prompt);
        let first = request.rendered.prompt.tools.len();
        let ends = (first..).map(|index| request.measured.tokens_through(index) as u64);
        ComparisonRecord {
            owner,
            made: now,
            settings: SETTINGS.map(|(path, _)| hash(path)),
            has_compaction: request.decoded.items.iter().any(is_compaction),
            prefix: blocks
                .zip(ends)
                .take_while(|(_, end)| *end <= reusable)
                .map(|(block, _)| block)
                .collect(),
            reusable,
        }
    }
}

impl ComparisonRecords {
    /// The field `prompt_cache_diagnostics` of the answer; `null` where the request did not ask.
    /// Remembers the request.
    pub fn compare(
        &mut self,
        request: &AcceptedRequest,
        head: &AnswerHead,
        owner: Hash,
        now: Moment,
        mode: DiagnosticsMode,
    ) -> Value {
        let current = ComparisonRecord::of(request, head, owner, now);
        let options = request.decoded.other.get("prompt_cache_options").map(Json::value);
        let named = options.as_ref().and_then(|options| options["comparison_response_id"].as_str());
        let found = |id: &str| {
            let is_alive = |record: &&ComparisonRecord| now.since(record.made) < LIFETIME_MS;
            self.0.get(id).filter(|record| record.owner == owner).filter(is_alive)
        };
        let told = match (named, mode) {
            (None, _) => Value::Null,
            // A comparison that is not ready has no word of its own.
            (Some(_), DiagnosticsMode::Pending | DiagnosticsMode::Unavailable) => {
                json!({"type": "unavailable"})
            }
            (Some(_), DiagnosticsMode::NotFound) => json!({"type": "comparison_response_not_found"}),
            (Some(id), DiagnosticsMode::Compared) => match found(id) {
                Some(earlier) => tell_difference(earlier, &current, request, head),
                None => json!({"type": "comparison_response_not_found"}),
            },
        };
        if self.0.len() >= MAX_RECORDS {
            self.0.retain(|_, kept| now.since(kept.made) < LIFETIME_MS);
        }
        self.0.insert(make_id("resp_", head.number, 0), current);
        told
    }
}

fn tell_difference(
    earlier: &ComparisonRecord,
    current: &ComparisonRecord,
    request: &AcceptedRequest,
    head: &AnswerHead,
) -> Value {
    let reason = first_difference(earlier, current, request);
    let missed = earlier.reusable.saturating_sub(head.tokens.cache_read);
    match reason {
        _ if earlier.reusable == 0 => json!({"type": "unavailable"}), // too short to be cached
        Some(reason) if missed > 0 || reason == KEY_CHANGED => json!({
            "type": "cache_miss",
            "reason": reason,
            "cache_missed_tokens": missed,
            "comparison_reusable_tokens": earlier.reusable,
        }),
        None if missed > 0 => json!({"type": "unavailable"}), // the entry is gone
        _ => json!({"type": "cache_hit"}),
    }
}

/// The first difference that breaks the prefix, in the order in which the server looks.
fn first_difference(
    earlier: &ComparisonRecord,
    current: &ComparisonRecord,
    request: &AcceptedRequest,
) -> Option<&'static str> {
    let settings = earlier.settings.iter().zip(&current.settings);
    if let Some(at) = settings.into_iter().position(|(before, now)| before != now) {
        return Some(SETTINGS[at].1);
    }
    if current.has_compaction && !earlier.has_compaction {
        return Some("context_compacted");
    }
    let mut blocks = input_blocks(&request.rendered.prompt);
    let is_same = earlier.prefix.iter().all(|before| blocks.next().as_ref() == Some(before));
    (!is_same).then_some("input_changed")
}

/// The blocks of system prompt and messages, with the role that said them.
fn input_blocks(prompt: &Prompt) -> impl Iterator<Item = Hash> {
    let said = prompt
        .messages
        .iter()
        .flat_map(|message| message.blocks.iter().map(|block| block.hash().with_mark(message.role.mark())));
    prompt.system.iter().map(Block::hash).chain(said)
}

fn is_compaction(item: &Json) -> bool {
    item.value()["type"] == "compaction"
}
