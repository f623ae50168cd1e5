//! [`SettledPrefix`]: the part of a conversation that is converted once and then reused.
//!
//! Where the model speaks after another message, nothing that comes later changes how the messages
//! before that point are converted: every call before it has been answered or never will be. The
//! conversion keeps its result up to the last such point, and continues from there as long as the
//! stored messages before it are the same objects. A turn thus converts only its new messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use hardpan_models::Protocol;
use hardpan_prompt::{AgentMessage, MessageBody, MessageId, MessageState, Omission};
use rustc_hash::FxHashSet;

use super::conversion::Conversion;
use super::pairing::CallPairing;
use super::{ConvertedHistory, ConvertedMessage, ExchangeMerging, ToolCallHandling};
use crate::layout::LayoutInput;

/// What a conversion depends on besides the messages. A cached prefix is valid only for the same
/// settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConversionSettings {
    pub calls: ToolCallHandling,
    pub exchanges: ExchangeMerging,
    provider: String,
    model: String,
    protocol: Protocol,
    reasoning: Option<String>,
    stale_reasoning: Arc<BTreeSet<MessageId>>,
    sends_searches: bool,
}

impl ConversionSettings {
    pub(super) fn new(input: &LayoutInput<'_>, calls: ToolCallHandling, exchanges: ExchangeMerging) -> Self {
        let target = input.target;
        ConversionSettings {
            calls,
            exchanges,
            provider: target.provider.clone(),
            model: target.model.id.clone(),
            protocol: target.profile.protocol,
            reasoning: target.profile.reasoning_field.name().map(str::to_owned),
            stale_reasoning: input.snapshot.stale_reasoning.clone(),
            sends_searches: input.web_search().is_some(),
        }
    }
}

/// The beginning of a conversation, and its conversion.
#[derive(Clone, Debug, Default)]
pub(super) struct SettledPrefix {
    /// The stored messages that were converted.
    pub messages: Vec<AgentMessage>,
    pub converted: Vec<Arc<ConvertedMessage>>,
    pub left_out: Vec<Omission>,
    /// The positions of results that answer no call.
    pub orphans: Vec<usize>,
    pub used_ids: FxHashSet<Arc<str>>,
}

impl SettledPrefix {
    /// Whether these messages begin with the same messages, so that the conversion can be reused.
    pub(super) fn is_prefix_of(&self, messages: &[AgentMessage]) -> bool {
        messages.len() >= self.messages.len()
            && self.messages.iter().zip(messages).all(|(before, now)| is_same_message(before, now))
    }
}

/// Whether two messages convert alike. Bodies are compared by address, which is fast and never
/// wrong; an equal body at another address is converted again.
fn is_same_message(before: &AgentMessage, now: &AgentMessage) -> bool {
    // Every field is named, so that a new one forces a decision here.
    let AgentMessage { id, time: _, state, tl_dr, tier: _, unchanged_responses: _, facts: _, body } = before;
    Arc::ptr_eq(body, &now.body) && *state == now.state && *id == now.id && *tl_dr == now.tl_dr
}

/// Whether the conversion of everything before message `index` can no longer change.
fn is_settled_before(messages: &[AgentMessage], index: usize) -> bool {
    let is_model = |at: usize| matches!(*messages[at].body, MessageBody::Assistant { .. });
    let is_other =
        |at: usize| matches!(messages[at].state, MessageState::Whole | MessageState::TlDr) && !is_model(at);
    index > 0 && is_model(index) && is_other(index - 1)
}

/// Converts the messages after the settled prefix, and returns the new, longer prefix.
pub(super) fn extend_conversion(
    input: &LayoutInput<'_>,
    messages: &[AgentMessage],
    settings: &ConversionSettings,
    before: Option<SettledPrefix>,
) -> (ConvertedHistory, SettledPrefix) {
    let mut settled = before.unwrap_or_default();
    let start = settled.messages.len();
    let mut conversion = Conversion {
        input,
        messages,
        calls: settings.calls,
        exchanges: settings.exchanges,
        index: start,
        pairing: CallPairing::new(messages, start),
        used_ids: std::mem::take(&mut settled.used_ids),
        new_ids: Vec::new(),
        continues_message: false,
        history: ConvertedHistory { messages: settled.converted.clone(), left_out: settled.left_out.clone() },
    };
    let mut end = (start, settled.converted.len(), settled.left_out.len());
    for (index, message) in messages.iter().enumerate().skip(start) {
        if index > start && is_settled_before(messages, index) {
            end = (index, conversion.history.messages.len(), conversion.history.left_out.len());
            conversion.new_ids.clear();
        }
        if matches!(message.state, MessageState::Whole | MessageState::TlDr) {
            conversion.convert_message(index);
            conversion.continues_message &= matches!(*message.body, MessageBody::Assistant { .. });
        }
    }
    let (end, converted, left_out) = end;
    let orphans: Vec<usize> = settled.orphans.iter().copied().chain(conversion.pairing.orphans()).collect();
    for id in &conversion.new_ids {
        conversion.used_ids.remove(id);
    }
    settled.messages.extend_from_slice(&messages[start..end]);
    settled.converted.extend_from_slice(&conversion.history.messages[settled.converted.len()..converted]);
    settled.left_out.extend_from_slice(&conversion.history.left_out[settled.left_out.len()..left_out]);
    settled.orphans = orphans.iter().copied().filter(|orphan| *orphan < end).collect();
    settled.used_ids = std::mem::take(&mut conversion.used_ids);
    conversion.list_orphans(&orphans);
    (conversion.history, settled)
}
