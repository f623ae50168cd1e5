//! What is settled of a conversation: converted once, and the same in every request from then on.
//!
//! Where the model speaks after somebody else has spoken, nothing that comes later changes what came before: every call
//! before it has been answered or never will be. The conversion remembers what it had made up to the last such place, and
//! goes on from there as long as the messages before it are the very same. A turn converts what is new in it.

use std::sync::Arc;

use hardpan_models::Protocol;
use hardpan_prompt::{AgentMessage, Body, LeftOut, State};
use rustc_hash::FxHashSet;

use super::conversion::Conversion;
use super::pairing::Pairing;
use super::{Calls, Exchanges, Said, Spoken};
use crate::layout::Input;

/// What a conversion depends on besides the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Terms {
    pub calls: Calls,
    pub exchanges: Exchanges,
    provider: String,
    model: String,
    protocol: Protocol,
    reasoning: Option<String>,
}

impl Terms {
    pub(super) fn of(input: &Input<'_>, calls: Calls, exchanges: Exchanges) -> Self {
        let target = input.target;
        Terms {
            calls,
            exchanges,
            provider: target.provider.clone(),
            model: target.model.id.clone(),
            protocol: target.wire.protocol,
            reasoning: target.wire.reasoning_field.name().map(str::to_owned),
        }
    }
}

/// The beginning of a conversation, and what it became.
#[derive(Clone, Debug, Default)]
pub(super) struct Settled {
    /// The messages, as they were.
    pub messages: Vec<AgentMessage>,
    pub said: Vec<Arc<Said>>,
    pub left_out: Vec<LeftOut>,
    /// The positions of results that answer nobody.
    pub orphans: Vec<usize>,
    pub used_ids: FxHashSet<Arc<str>>,
}

impl Settled {
    /// Whether a conversation begins with it.
    pub(super) fn begins(&self, messages: &[AgentMessage]) -> bool {
        messages.len() >= self.messages.len()
            && self.messages.iter().zip(messages).all(|(before, now)| is_same(before, now))
    }
}

/// Whether two messages are sent alike: the body is the very same one, not one that happens to be equal.
fn is_same(before: &AgentMessage, now: &AgentMessage) -> bool {
    // Every field is named, so that a new one forces a decision here.
    let AgentMessage { id, time: _, state, tl_dr, tier: _, n: _, body } = before;
    Arc::ptr_eq(body, &now.body) && *state == now.state && *id == now.id && *tl_dr == now.tl_dr
}

/// Whether everything before message `index` is settled.
fn settles(messages: &[AgentMessage], index: usize) -> bool {
    let speaks = |at: usize| matches!(*messages[at].body, Body::Assistant { .. });
    let heard = |at: usize| matches!(messages[at].state, State::Whole | State::TlDr) && !speaks(at);
    index > 0 && speaks(index) && heard(index - 1)
}

/// Converts the messages after those that are settled, and says what is settled now.
pub(super) fn go_on(
    input: &Input<'_>,
    messages: &[AgentMessage],
    terms: &Terms,
    before: Option<Settled>,
) -> (Spoken, Settled) {
    let mut settled = before.unwrap_or_default();
    let start = settled.messages.len();
    let mut conversion = Conversion {
        input,
        messages,
        calls: terms.calls,
        exchanges: terms.exchanges,
        index: start,
        pairing: Pairing::of(messages, start),
        used_ids: std::mem::take(&mut settled.used_ids),
        new_ids: Vec::new(),
        goes_on: false,
        spoken: Spoken { said: settled.said.clone(), left_out: settled.left_out.clone() },
    };
    let mut end = (start, settled.said.len(), settled.left_out.len());
    for (index, message) in messages.iter().enumerate().skip(start) {
        if index > start && settles(messages, index) {
            end = (index, conversion.spoken.said.len(), conversion.spoken.left_out.len());
            conversion.new_ids.clear();
        }
        if matches!(message.state, State::Whole | State::TlDr) {
            conversion.message(index);
            conversion.goes_on &= matches!(*message.body, Body::Assistant { .. });
        }
    }
    let (end, said, left_out) = end;
    let orphans: Vec<usize> = settled.orphans.iter().copied().chain(conversion.pairing.orphans()).collect();
    for id in &conversion.new_ids {
        conversion.used_ids.remove(id);
    }
    settled.messages.extend_from_slice(&messages[start..end]);
    settled.said.extend_from_slice(&conversion.spoken.said[settled.said.len()..said]);
    settled.left_out.extend_from_slice(&conversion.spoken.left_out[settled.left_out.len()..left_out]);
    settled.orphans = orphans.iter().copied().filter(|orphan| *orphan < end).collect();
    settled.used_ids = std::mem::take(&mut conversion.used_ids);
    conversion.report(&orphans);
    (conversion.spoken, settled)
}
