//! [`Region`]: a part of a request, with its contents and how much of it came from the cache.

use std::collections::BTreeSet;

use hardpan_agent::Spending;
use hardpan_context::{Breakdown, BreakdownBlock, BreakdownContent};
use hardpan_prompt::{ItemCopy, ItemKind, Source};
use serde_json::{Map, Value, json};

use crate::output::{safe, thousands};

/// A region of the layout, as the last request filled it.
pub struct Region<'a> {
    /// The region in the breakdown.
    pub block: &'a BreakdownBlock,
    /// How much of it lies before the last breakpoint.
    pub cached: CacheCoverage,
    /// How many of its tokens came from the cache; none if the provider reported no usage.
    pub read: Option<usize>,
    /// What it contains, with counts.
    holds: Vec<(Noun, usize)>,
}

/// How much of a region lies before the last breakpoint, and so can be cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheCoverage {
    Yes,
    /// The last breakpoint is within the region.
    Partly,
    No,
}

impl CacheCoverage {
    /// The value in the display and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            CacheCoverage::Yes => "yes",
            CacheCoverage::Partly => "partly",
            CacheCoverage::No => "no",
        }
    }
}

/// The singular and the plural of a noun; equal if there is only ever one.
type Noun = (&'static str, &'static str);

/// The regions in order. Caches cover a prefix of the request, so the tokens read fill the regions
/// from the front.
///
/// `last` is the provider's count for this request. If our own counts are estimates, they are off
/// by about the same factor everywhere. The share that was read is right even then, so we spread
/// that share of our total.
pub fn regions<'a>(breakdown: &'a Breakdown, last: Option<Spending>) -> Vec<Region<'a>> {
    let mut unread = last.map(|last| {
        let total = breakdown.total_tokens as u128;
        let read = u128::from(last.tokens.cache_read) * total / u128::from(last.tokens.prompt().max(1));
        usize::try_from(read).unwrap_or(usize::MAX)
    });
    let frontier = breakdown.breakpoints.last().map_or(0, |last| last.tokens);
    let mut start = 0;
    let region = |block: &'a BreakdownBlock| {
        let BreakdownBlock { tokens, cached, contents, .. } = block;
        let cached = match start < frontier {
            _ if *cached => CacheCoverage::Yes,
            true => CacheCoverage::Partly,
            false => CacheCoverage::No,
        };
        start += tokens;
        let read = unread.as_mut().map(|unread| {
            let read = (*tokens).min(*unread);
            *unread -= read;
            read
        });
        Region { block, cached, read, holds: count_contents(contents) }
    };
    breakdown.blocks.iter().map(region).collect()
}

impl Region<'_> {
    /// The percentage read from the cache. 0 and 100 mean exactly nothing and everything.
    pub fn hit(&self) -> Option<u8> {
        let percent = |read: usize| match read {
            0 => 0,
            read if read >= self.block.tokens => 100,
            read => ((100.0 * read as f64 / self.block.tokens as f64).round() as u8).clamp(1, 99),
        };
        self.read.map(percent)
    }

    /// Its contents: `12 symbols, 3 files`. Text that the layout adds is named only if there is
    /// nothing else.
    pub fn describe_contents(&self) -> String {
        if self.holds.is_empty() {
            let mut rules: Vec<&str> = self.block.contents.iter().filter_map(rule_name).collect();
            rules.dedup();
            return safe(&rules.join(", "));
        }
        let word = |((one, many), count): &(Noun, usize)| match count {
            _ if one == many => (*one).to_owned(),
            1 => format!("1 {one}"),
            count => format!("{} {many}", thousands(*count)),
        };
        self.holds.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// The region in the JSON form of the HUD.
    pub fn json(&self) -> Value {
        let key = |many: &str| many.replace(' ', "_");
        let holds: Map<String, Value> =
            self.holds.iter().map(|((_, many), count)| (key(many), json!(count))).collect();
        json!({
            "name": self.block.name,
            "tier": self.block.tier,
            "tokens": self.block.tokens,
            "cached": self.cached.name(),
            "read": self.read,
            "hit_percent": self.hit(),
            "holds": holds,
        })
    }
}

/// The name of the rule by which the layout added the content, if it did.
fn rule_name(content: &BreakdownContent) -> Option<&'static str> {
    match content.source {
        Source::Rule(name) => Some(name),
        _ => None,
    }
}

/// Counts the different items by noun, in the order of their first appearance.
fn count_contents(contents: &[BreakdownContent]) -> Vec<(Noun, usize)> {
    let mut seen = BTreeSet::new();
    let mut holds: Vec<(Noun, usize)> = Vec::new();
    for content in contents {
        let is_frame = rule_name(content).is_some() && content.kind != ItemKind::System;
        if is_frame || !seen.insert((content.kind, &content.source)) {
            continue;
        }
        let noun = noun(content);
        match holds.iter_mut().find(|(known, _)| *known == noun) {
            Some((_, count)) if noun.0 != noun.1 => *count += 1,
            Some(_) => {} // only ever one, whatever parts it has
            None => holds.push((noun, 1)),
        }
    }
    holds
}

/// The noun for an item.
fn noun(content: &BreakdownContent) -> Noun {
    if let Source::Item { copy, .. } = &content.source {
        match copy {
            ItemCopy::Update => return ("update", "updates"),
            ItemCopy::Former => return ("old copy", "old copies"),
            ItemCopy::Stub => return ("stub", "stubs"),
            ItemCopy::Current => {}
        }
    }
    match content.kind {
        ItemKind::System => ("system prompt", "system prompt"),
        ItemKind::Legend => ("legend", "legend"),
        ItemKind::Symbols => ("symbol", "symbols"),
        ItemKind::Tree => ("tree", "tree"),
        ItemKind::File => ("file", "files"),
        ItemKind::Page => ("page", "pages"),
        ItemKind::Panel => ("panel", "panels"),
        ItemKind::History => ("message", "messages"),
        ItemKind::Tool => ("tool", "tools"),
    }
}
