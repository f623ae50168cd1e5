//! Where the symbol map begins, before anything is known of how it changes.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use hardpan_prompt::Tier;

use super::round::{Round, entry};
use super::{Tracked, Tracker};

/// A file with an entry in the symbol map.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapped {
    /// The file's path, as in the entry's key.
    pub path: Arc<str>,
    /// The tokens of the entry.
    pub tokens: usize,
    /// How much other files refer to it: a count or a rank. Only the order matters.
    pub references: f64,
}

impl Tracker {
    /// The tracker before the first request. Files that refer to each other change together, so clusters of them go whole,
    /// the largest first, to the emptiest of L1 to L3. Where no two files belong together, the fifth that is most referred
    /// to goes to L1, the next three tenths to L2, the rest to L3. A tier under the target gives its entries down.
    ///
    /// `clusters` are paths; one of a single file counts as a file by itself, and a path without an entry is passed over.
    pub fn first<P: AsRef<str>>(files: &[Mapped], clusters: &[Vec<P>], target_tokens: usize) -> Tracker {
        let tiers = packed(files, clusters).unwrap_or_else(|| by_percentile(files));
        let files: BTreeMap<&str, &Mapped> = files.iter().map(|file| (&*file.path, file)).collect();
        let entries = files.values().map(|file| {
            let tier = tiers.get(&*file.path).copied().unwrap_or(Tier::L3);
            let key = format!("symbol:{}", file.path).into();
            Tracked { key, tier, n: entry(tier), hash: None, tokens: file.tokens, aside: false }
        });
        let mut round = Round::begin(entries.collect(), target_tokens);
        while round.give() {}
        round.finish().0
    }
}

/// The tier of each path by its cluster; none if no two files belong together.
fn packed<'a, P: AsRef<str>>(files: &'a [Mapped], clusters: &[Vec<P>]) -> Option<BTreeMap<&'a str, Tier>> {
    let mut loose: BTreeMap<&str, &Mapped> = files.iter().map(|file| (&*file.path, file)).collect();
    let mut groups: Vec<Vec<&Mapped>> = clusters
        .iter()
        .map(|cluster| cluster.iter().filter_map(|path| loose.remove(path.as_ref())).collect())
        .collect();
    if !groups.iter().any(|group: &Vec<_>| group.len() > 1) {
        return None;
    }
    groups.extend(loose.into_values().map(|file| vec![file]));
    let tokens = |group: &[&Mapped]| group.iter().map(|file| file.tokens).sum::<usize>();
    groups.sort_by_key(|group| (Reverse(tokens(group)), group.first().map(|file| &*file.path)));
    let mut held = [(0, Tier::L1), (0, Tier::L2), (0, Tier::L3)];
    let mut tiers = BTreeMap::new();
    for group in groups {
        let Some(emptiest) = held.iter_mut().min() else { continue };
        emptiest.0 += tokens(&group);
        tiers.extend(group.iter().map(|file| (&*file.path, emptiest.1)));
    }
    Some(tiers)
}

fn by_percentile(files: &[Mapped]) -> BTreeMap<&str, Tier> {
    let mut order: Vec<&Mapped> = files.iter().collect();
    order.sort_by(|a, b| b.references.total_cmp(&a.references).then_with(|| a.path.cmp(&b.path)));
    let tier = |place: usize| match place * 100 / order.len() {
        0..20 => Tier::L1,
        20..50 => Tier::L2,
        _ => Tier::L3,
    };
    order.iter().enumerate().map(|(place, file)| (&*file.path, tier(place))).collect()
}
