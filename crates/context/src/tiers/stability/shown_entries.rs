//! [`ShownEntry`]: what a request showed, read from the prompt itself; and
//! [`StabilityTracker::assign_tiers`], which puts tiers onto the next snapshot.

use std::collections::BTreeMap;

use hardpan_prompt::{Block, Content, Hash, Item, ItemCopy, Origin, Region, Source, Tier, exchange_ranges};

use rustc_hash::FxHashMap;

use super::{StabilityTracker, TrackedEntry, TrackedKey};
use crate::{AssembledPrompt, Snapshot};

/// A file, symbol entry or exchange as a request showed it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownEntry {
    /// What it is.
    pub key: TrackedKey,
    /// The hash of its current body, or of the messages of an exchange.
    pub hash: Hash,
    /// The tokens of its rendered text.
    pub tokens: usize,
    /// The tier it was shown in.
    pub tier: Tier,
}

/// Everything a request showed that is tracked: items, then exchanges in conversation order.
pub fn collect_shown_entries(snapshot: &Snapshot, assembled: &AssembledPrompt) -> Vec<ShownEntry> {
    let exchanges = exchange_ranges(&snapshot.messages);
    // Only ever looked up by key.
    let (mut first_of, mut exchange_of): (FxHashMap<&str, usize>, FxHashMap<&str, usize>) =
        Default::default();
    exchange_of.reserve(snapshot.messages.len());
    for (number, exchange) in exchanges.iter().enumerate() {
        let messages = &snapshot.messages[exchange.clone()];
        // Two exchanges whose first messages have the same id count as one.
        let number = messages.first().map_or(number, |first| *first_of.entry(&first.id.0).or_insert(number));
        for message in messages {
            exchange_of.entry(&message.id.0).or_insert(number);
        }
    }
    // An item counts as unchanged by its body, wherever the request shows it.
    let bodies: FxHashMap<&str, Hash> =
        snapshot.items.iter().map(|item| (&*item.key, item.body.hash())).collect();
    let mut items: BTreeMap<TrackedKey, ShownEntry> = BTreeMap::new();
    let mut exchange_contents: Vec<Option<ShownContent>> = exchanges.iter().map(|_| None).collect();
    for (index, block) in assembled.prompt.blocks().enumerate() {
        let segments = assembled.measured.segments(assembled.prompt.tools.len() + index);
        for_each_piece(block, segments, &mut |origin, hash, tokens| match &origin.source {
            Source::Item { key, copy: ItemCopy::Current | ItemCopy::Former }
                if block.region != Region::Tail =>
            {
                let Some(tracked) = TrackedKey::of_item(origin.kind, key) else { return };
                let Some(hash) = bodies.get(&**key).copied() else { return };
                let tier = tier_of_region(block.region);
                items.insert(tracked.clone(), ShownEntry { key: tracked, hash, tokens, tier });
            }
            Source::Message(id) => {
                let Some(number) = exchange_of.get(&*id.0) else { return };
                let sum = exchange_contents[*number].get_or_insert_with(|| ShownContent::new(block.region));
                sum.hashes.extend_from_slice(hash.bytes());
                sum.tokens += tokens;
            }
            Source::Item { .. } | Source::Tool(_) | Source::Rule(_) => {}
        });
    }
    let exchanges = exchanges.into_iter().zip(exchange_contents).filter_map(|(exchange, sum)| {
        Some(sum?.into_entry(TrackedKey::of_exchange(&snapshot.messages[exchange.start].id)))
    });
    items.into_values().chain(exchanges).collect()
}

/// What has been collected of one exchange so far.
struct ShownContent {
    /// The hashes of its pieces, one after the other.
    hashes: Vec<u8>,
    tokens: usize,
    tier: Tier,
}

impl ShownContent {
    fn new(region: Region) -> Self {
        ShownContent { hashes: Vec::new(), tokens: 0, tier: tier_of_region(region) }
    }

    fn into_entry(self, key: TrackedKey) -> ShownEntry {
        ShownEntry { key, hash: Hash::of(&self.hashes), tokens: self.tokens, tier: self.tier }
    }
}

/// Calls `take` with the origin, hash and tokens of each part of a block that can have an origin of
/// its own.
fn for_each_piece(block: &Block, counts: &[u32], take: &mut impl FnMut(&Origin, Hash, usize)) {
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

fn tier_of_region(region: Region) -> Tier {
    match region {
        Region::L0 => Tier::L0,
        Region::L1 => Tier::L1,
        Region::L2 => Tier::L2,
        Region::L3 => Tier::L3,
        _ => Tier::Active,
    }
}

impl StabilityTracker {
    /// The snapshot with the tracker's tiers on its files, symbol entries and messages. The layout
    /// chooses the tier of what is not tracked.
    pub fn assign_tiers(&self, snapshot: &Snapshot) -> Snapshot {
        let known = self.entries_by_key();
        let mut snapshot = snapshot.clone();
        self.assign_item_tiers(&mut snapshot.items);
        for exchange in exchange_ranges(&snapshot.messages) {
            let messages = &mut snapshot.messages[exchange];
            let tracked = known.get(&TrackedKey::of_exchange(&messages[0].id));
            let (tier, n) = tracked.map(|tracked| (tracked.tier, tracked.unchanged_responses)).unzip();
            messages.iter_mut().for_each(|message| (message.tier, message.unchanged_responses) = (tier, n));
        }
        snapshot
    }

    /// Puts the tracker's tiers onto files and symbol entries.
    pub fn assign_item_tiers(&self, items: &mut [Item]) {
        let known = self.entries_by_key();
        for item in items {
            if let Some(key) = TrackedKey::of_item(item.kind, &item.key) {
                let tracked = known.get(&key);
                (item.tier, item.unchanged_responses) =
                    tracked.map(|tracked| (tracked.tier, tracked.unchanged_responses)).unzip();
            }
        }
    }

    fn entries_by_key(&self) -> FxHashMap<&TrackedKey, &TrackedEntry> {
        self.entries.iter().map(|tracked| (&tracked.key, tracked)).collect()
    }
}
