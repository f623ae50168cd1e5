//! [`StabilityTracker::initial`]: the tiers of the symbol map before anything is known about how
//! often its entries change.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::Tier;

use super::{StabilityTracker, TrackedEntry, TrackedKey, entry_count};

/// A file that has an entry in the symbol map.
#[derive(Clone, Debug, PartialEq)]
pub struct SymbolMapFile {
    /// The file's path, as in the entry's key.
    pub path: Arc<str>,
    /// The tokens of its entry.
    pub tokens: usize,
    /// How much other files refer to it: a count or a score. Only the order matters.
    pub references: f64,
}

impl StabilityTracker {
    /// The tracker before the first request.
    ///
    /// Files that refer to each other tend to change together, so each cluster goes as a whole, the
    /// largest first, to the emptiest of L1 to L3. Without clusters, the most referenced fifth of
    /// the files goes to L1, the next three tenths to L2, the rest to L3. L1 or L2, if under the
    /// target, passes its entries to the next.
    ///
    /// `clusters` are lists of paths; paths without an entry are ignored.
    pub fn initial<P: AsRef<str>>(
        files: &[SymbolMapFile],
        clusters: &[Vec<P>],
        target_tokens: usize,
    ) -> StabilityTracker {
        let tiers = pack_clusters(files, clusters).unwrap_or_else(|| tiers_by_percentile(files));
        let files: BTreeMap<&str, &SymbolMapFile> = files.iter().map(|file| (&*file.path, file)).collect();
        let entries = files.values().map(|file| {
            let tier = tiers.get(&*file.path).copied().unwrap_or(Tier::L3);
            let key = TrackedKey::Symbols(file.path.clone());
            TrackedEntry {
                key,
                tier,
                unchanged_responses: entry_count(tier),
                hash: None,
                tokens: file.tokens,
                hidden_by_open_file: false,
            }
        });
        let mut entries: Vec<TrackedEntry> = entries.collect();
        for (tier, next) in [(Tier::L1, Tier::L2), (Tier::L2, Tier::L3)] {
            let held = entries.iter().filter(|entry| entry.tier == tier);
            if held.map(|entry| entry.tokens).sum::<usize>() < target_tokens {
                let moved = entries.iter_mut().filter(|entry| entry.tier == tier);
                moved.for_each(|entry| entry.tier = next);
            }
        }
        StabilityTracker::from_entries(entries)
    }
}

/// The tier of each path by its cluster; none if no cluster has two files.
fn pack_clusters<'a, P: AsRef<str>>(
    files: &'a [SymbolMapFile],
    clusters: &[Vec<P>],
) -> Option<BTreeMap<&'a str, Tier>> {
    let mut loose: BTreeMap<&str, &SymbolMapFile> = files.iter().map(|file| (&*file.path, file)).collect();
    let mut groups: Vec<Vec<&SymbolMapFile>> = clusters
        .iter()
        .map(|cluster| cluster.iter().filter_map(|path| loose.remove(path.as_ref())).collect())
        .collect();
    if !groups.iter().any(|group: &Vec<_>| group.len() > 1) {
        return None;
    }
    groups.extend(loose.into_values().map(|file| vec![file]));
    let tokens = |group: &[&SymbolMapFile]| group.iter().map(|file| file.tokens).sum::<usize>();
    groups.sort_by_key(|group| (Reverse(tokens(group)), group.first().map(|file| &*file.path)));
    let mut filled = [(0, Tier::L1), (0, Tier::L2), (0, Tier::L3)];
    let mut tiers = BTreeMap::new();
    for group in groups {
        let Some(emptiest) = filled.iter_mut().min() else { continue };
        emptiest.0 += tokens(&group);
        tiers.extend(group.iter().map(|file| (&*file.path, emptiest.1)));
    }
    Some(tiers)
}

fn tiers_by_percentile(files: &[SymbolMapFile]) -> BTreeMap<&str, Tier> {
    let mut order: Vec<&SymbolMapFile> = files.iter().collect();
    order.sort_by(|a, b| b.references.total_cmp(&a.references).then_with(|| a.path.cmp(&b.path)));
    let tier = |rank: usize| match rank * 100 / order.len() {
        0..20 => Tier::L1,
        20..50 => Tier::L2,
        _ => Tier::L3,
    };
    order.iter().enumerate().map(|(rank, file)| (&*file.path, tier(rank))).collect()
}
