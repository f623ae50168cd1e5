//! What a request showed, read off the request itself; and the tiers, put onto the next one.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use hardpan_prompt::{AgentMessage, Block, Content, Copy, Hash, Kind, Origin, Place, Source, Tier};

use rustc_hash::FxHashMap;

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
    // Only ever looked up by key.
    let (mut first_of, mut exchange_of): (FxHashMap<&str, usize>, FxHashMap<&str, usize>) =
        Default::default();
    exchange_of.reserve(snapshot.messages.len());
    for (number, exchange) in exchanges.iter().enumerate() {
        let messages = &snapshot.messages[exchange.clone()];
        // Two exchanges whose first messages have one name are one.
        let number = messages.first().map_or(number, |first| *first_of.entry(&first.id.0).or_insert(number));
        for message in messages {
            exchange_of.entry(&message.id.0).or_insert(number);
        }
    }
    let mut items: BTreeMap<Arc<str>, Sum> = BTreeMap::new();
    let mut said: Vec<Option<Sum>> = exchanges.iter().map(|_| None).collect();
    for (index, block) in assembled.prompt.blocks().enumerate() {
        let segments = assembled.measured.segments(assembled.prompt.tools.len() + index);
        each_piece(block, segments, &mut |origin, hash, tokens| {
            let sum = match &origin.source {
                Source::Item { key, copy: Copy::Current } => {
                    let Some(key) = item_key(origin.kind, key) else { return };
                    items.entry(key).or_insert_with(|| Sum::new(block.place))
                }
                Source::Message(id) => {
                    let Some(number) = exchange_of.get(&*id.0) else { return };
                    said[*number].get_or_insert_with(|| Sum::new(block.place))
                }
                Source::Item { .. } | Source::Tool(_) | Source::Rule(_) => return,
            };
            sum.hashes.extend_from_slice(hash.bytes());
            sum.tokens += tokens;
        });
    }
    let exchanges = exchanges
        .into_iter()
        .zip(said)
        .filter_map(|(exchange, sum)| Some(sum?.shown(exchange_key(&snapshot.messages[exchange]))));
    items.into_iter().map(|(key, sum)| sum.shown(key)).chain(exchanges).collect()
}

/// What was shown of one thing so far.
struct Sum {
    /// The hashes of its pieces, one after the other.
    hashes: Vec<u8>,
    tokens: usize,
    tier: Tier,
}

impl Sum {
    fn new(place: Place) -> Self {
        Sum { hashes: Vec::new(), tokens: 0, tier: tier(place) }
    }

    fn shown(self, key: Arc<str>) -> Shown {
        Shown { key, hash: Hash::of(&self.hashes), tokens: self.tokens, tier: self.tier }
    }
}

/// The parts of a block that may have origins of their own.
fn each_piece(block: &Block, counts: &[u32], take: &mut impl FnMut(&Origin, Hash, usize)) {
    match &*block.content {
        Content::Text(segments) => {
            for (segment, tokens) in segments.iter().zip(counts) {
                take(&segment.origin, segment.text.hash(), *tokens as usize);
            }
        }
        _ => {
            let tokens = counts.iter().map(|&tokens| tokens as usize).sum();
            block.origin().into_iter().for_each(|origin| take(origin, block.hash(), tokens));
        }
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
        let known: FxHashMap<&str, &Tracked> =
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
