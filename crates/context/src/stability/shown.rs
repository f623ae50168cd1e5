//! What a request showed, read off the request itself; and the tiers, put onto the next one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use hardpan_prompt::{
    AgentMessage, Block, Chain, Content, Copy, Hash, Kind, MeasuredBlock, MessageId, Origin, Place, Source,
    Tier,
};

use super::{Tracked, Tracker};
use crate::{Assembled, Snapshot};

/// A tracked thing as a request showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// `file:PATH`, `symbol:PATH` or `history:ID`.
    pub key: Arc<str>,
    /// The hash of what was rendered.
    pub hash: Hash,
    /// The tokens of what was rendered.
    pub tokens: usize,
    /// The tier it stood in.
    pub tier: Tier,
}

/// Everything a request showed that is tracked: items, then the exchanges in the order of the conversation.
pub(super) fn shown(snapshot: &Snapshot, assembled: &Assembled) -> Vec<Shown> {
    let exchanges = exchanges(&snapshot.messages);
    let mut exchange_of: BTreeMap<&MessageId, Arc<str>> = BTreeMap::new();
    for exchange in &exchanges {
        let messages = &snapshot.messages[exchange.clone()];
        let key = exchange_key(messages);
        for message in messages {
            exchange_of.entry(&message.id).or_insert_with(|| key.clone());
        }
    }
    let mut seen: BTreeMap<Arc<str>, (Chain, usize, Tier)> = BTreeMap::new();
    let measured = &assembled.measured.blocks[assembled.prompt.tools.len()..];
    for (block, measured) in assembled.prompt.blocks().zip(measured) {
        for (origin, hash, tokens) in pieces(block, measured) {
            let key = match &origin.source {
                Source::Item { key, copy: Copy::Current } => item_key(origin.kind, key),
                Source::Message(id) => exchange_of.get(id).cloned(),
                Source::Item { .. } | Source::Tool(_) | Source::Rule(_) => None,
            };
            let Some(key) = key else { continue };
            let (chain, sum, _) = seen.entry(key).or_insert_with(|| (Chain::default(), 0, tier(block.place)));
            chain.add(hash);
            *sum += tokens;
        }
    }
    let one = |(key, (chain, tokens, tier)): (Arc<str>, (Chain, usize, Tier))| Shown {
        key,
        hash: chain.hash(),
        tokens,
        tier,
    };
    let in_order: Vec<Shown> = exchanges
        .iter()
        .filter_map(|exchange| seen.remove_entry(&exchange_key(&snapshot.messages[exchange.clone()])))
        .map(one)
        .collect();
    seen.into_iter().map(one).chain(in_order).collect()
}

/// The parts of a block that may have origins of their own.
fn pieces<'a>(block: &'a Block, measured: &MeasuredBlock) -> Vec<(&'a Origin, Hash, usize)> {
    match &block.content {
        Content::Text(segments) => segments
            .iter()
            .zip(measured.segments.iter())
            .map(|(segment, tokens)| (&segment.origin, segment.text.hash(), *tokens as usize))
            .collect(),
        _ => block.origin().map(|origin| (origin, block.hash(), measured.tokens)).into_iter().collect(),
    }
}

fn tier(place: Place) -> Tier {
    match place {
        Place::L0 => Tier::L0,
        Place::L1 => Tier::L1,
        Place::L2 => Tier::L2,
        Place::L3 => Tier::L3,
        _ => Tier::Active,
    }
}

/// Where each exchange begins and ends: a user's message and everything up to the next one.
fn exchanges(messages: &[AgentMessage]) -> Vec<Range<usize>> {
    let mut exchanges = Vec::new();
    let mut start = 0;
    for end in 1..=messages.len() {
        if end == messages.len() || (messages[end].is_user() && !messages[end - 1].is_user()) {
            exchanges.push(start..end);
            start = end;
        }
    }
    exchanges
}

fn exchange_key(exchange: &[AgentMessage]) -> Arc<str> {
    exchange.first().map(|message| format!("history:{}", message.id)).unwrap_or_default().into()
}

/// The tracker's key of an item, if its kind is tracked.
fn item_key(kind: Kind, key: &str) -> Option<Arc<str>> {
    let name = key.split_once(':').map_or(key, |(_, name)| name);
    match kind {
        Kind::File => Some(format!("file:{name}").into()),
        Kind::Symbols => Some(format!("symbol:{name}").into()),
        _ => None,
    }
}

impl Tracker {
    /// The snapshot with the tracker's tiers on its files, symbol entries and messages. What is not tracked has none, and
    /// stands where the layout puts it.
    pub fn assign(&self, snapshot: &Snapshot) -> Snapshot {
        let known: BTreeMap<&str, &Tracked> =
            self.entries.iter().map(|tracked| (&*tracked.key, tracked)).collect();
        let place = |key: &str| known.get(key).map(|tracked| (tracked.tier, tracked.n)).unzip();
        let mut snapshot = snapshot.clone();
        for item in &mut snapshot.items {
            if let Some(key) = item_key(item.kind, &item.key) {
                (item.tier, item.n) = place(&key);
            }
        }
        for exchange in exchanges(&snapshot.messages) {
            let messages = &mut snapshot.messages[exchange];
            let (tier, n) = place(&exchange_key(messages));
            messages.iter_mut().for_each(|message| (message.tier, message.n) = (tier, n));
        }
        snapshot
    }
}
