//! The regions of a request: what they hold, and how much of them was read from the cache.

use std::collections::BTreeSet;

use hardpan_agent::Spending;
use hardpan_context::{Breakdown, BreakdownBlock, BreakdownContent};
use hardpan_prompt::ItemKind;
use serde_json::{Map, Value, json};

use crate::output::{safe, thousands};

/// A region of a request.
pub struct Region<'a> {
    /// What the breakdown says of it.
    pub block: &'a BreakdownBlock,
    /// Whether it is up to a breakpoint.
    pub cached: CacheCoverage,
    /// How many of its tokens the last request read from the cache; none where the provider has not said.
    pub read: Option<usize>,
    /// How many of what.
    holds: Vec<(Noun, usize)>,
}

/// How much of a region is up to a breakpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheCoverage {
    /// All of it.
    Yes,
    /// The last breakpoint is within it.
    Partly,
    /// Nothing.
    No,
}

impl CacheCoverage {
    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            CacheCoverage::Yes => "yes",
            CacheCoverage::Partly => "partly",
            CacheCoverage::No => "no",
        }
    }
}

/// What one and several of a thing are called.
type Noun = (&'static str, &'static str);

/// The regions in order. A provider reads from the cache from the front on, so what was read fills them in order.
///
/// `last` is what the provider counted for this request. Where our counts are estimates, they are off by about the same
/// factor everywhere: the share that was read is right even then, so it is that share of our total that is spread.
pub fn regions<'a>(breakdown: &'a Breakdown, last: Option<Spending>) -> Vec<Region<'a>> {
    let mut unread = last.map(|last| {
        let total = breakdown.total_tokens as u128;
        let read = u128::from(last.read) * total / u128::from(last.prompt_tokens().max(1));
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
    /// How much of it was read, in percent: 0 and 100 mean nothing and all.
    pub fn hit(&self) -> Option<u8> {
        let percent = |read: usize| match read {
            0 => 0,
            read if read >= self.block.tokens => 100,
            read => ((100.0 * read as f64 / self.block.tokens as f64).round() as u8).clamp(1, 99),
        };
        self.read.map(percent)
    }

    /// What it holds: `12 symbols, 3 files`. What the layout itself adds is named only where there is nothing else.
    pub fn describe_contents(&self) -> String {
        if self.holds.is_empty() {
            let mut rules: Vec<&str> =
                self.block.contents.iter().filter_map(|content| content.key.strip_prefix("rule:")).collect();
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

    /// For programs.
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

/// How many different things of each sort there are, in the order of their first.
fn count_contents(contents: &[BreakdownContent]) -> Vec<(Noun, usize)> {
    let mut seen = BTreeSet::new();
    let mut holds: Vec<(Noun, usize)> = Vec::new();
    for content in contents {
        let is_system = content.kind == ItemKind::System.name();
        if content.key.starts_with("rule:") && !is_system || !seen.insert((content.kind, &content.key)) {
            continue;
        }
        let noun = noun(content);
        match holds.iter_mut().find(|(known, _)| *known == noun) {
            Some((_, count)) if noun.0 != noun.1 => *count += 1,
            Some(_) => {} // there is one at most, whatever parts it has
            None => holds.push((noun, 1)),
        }
    }
    holds
}

/// What a thing is called. Of what there is only one, the word stands alone.
fn noun(content: &BreakdownContent) -> Noun {
    let copies = [
        (" (update)", ("update", "updates")),
        (" (former copy)", ("old copy", "old copies")),
        (" (stub)", ("stub", "stubs")),
    ];
    if let Some((_, noun)) = copies.iter().find(|(suffix, _)| content.key.ends_with(suffix)) {
        return *noun;
    }
    let kind = ItemKind::ALL.into_iter().find(|kind| kind.name() == content.kind);
    match kind.unwrap_or(ItemKind::History) {
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
