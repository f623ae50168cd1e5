//! `--hud`: what the last request held, what it cost, and what of it came from the cache (seed c).

mod bars; // shares drawn as bars, lines within a frame
mod blocks; // the regions of a request: what they hold, and how much was read from the cache
#[cfg(test)]
mod tests;

use hardpan_agent::Spent;
use hardpan_context::{Breakdown, LayoutName};
use hardpan_economy::Verdict;
use hardpan_prompt::Kind;
use serde_json::{Value, json};

use crate::output::{Align, Table, cut, dollars, safe, thousands};
use bars::{bar, frame, padded};
use blocks::{Region, regions};

/// Narrower than this the lines are cut, wider than that the bars do not grow.
const WIDTHS: (usize, usize) = (40, 100);

/// Everything that is shown after a request.
pub struct Hud<'a> {
    /// What the last request held.
    pub breakdown: &'a Breakdown,
    /// The provider it went to.
    pub provider: &'a str,
    /// The most tokens an answer may have.
    pub max_output: u32,
    /// What that request used; none before the provider has said so.
    pub last: Option<Spent>,
    /// What the session used, that request included.
    pub session: Spent,
    /// How many requests that was.
    pub requests: u64,
    /// What is to be said about how it used the cache, by what the provider reported.
    pub verdict: Option<Verdict>,
    /// `tiers`: how many tiers were skipped, over the whole session.
    pub empty_tiers: u32,
}

impl Hud<'_> {
    /// As text, in lines of at most `width` columns. It needs no colour.
    pub fn render(&self, width: usize) -> String {
        let width = width.clamp(WIDTHS.0, WIDTHS.1);
        let parts = [self.headline(), self.categories(width), self.spending(width), self.blocks(width)];
        let text = parts.join("\n");
        text.lines().map(|line| cut(line, width) + "\n").collect()
    }

    /// The same, for programs.
    pub fn json(&self) -> Value {
        let breakdown = self.breakdown;
        let regions: Vec<Value> = regions(breakdown, self.last).iter().map(Region::json).collect();
        let mut value = json!({
            "provider": self.provider,
            "model": breakdown.model,
            "layout": breakdown.layout,
            "tokens": breakdown.total_tokens,
            "exact": breakdown.tokenizer.exact,
            "max_input_tokens": breakdown.max_input_tokens,
            "max_output_tokens": self.max_output,
            "categories": breakdown.breakdown,
            "last_request": self.last,
            "session": self.session,
            "requests": self.requests,
            "blocks": regions,
            "verdict": self.verdict,
        });
        if breakdown.layout == LayoutName::Tiers {
            value["empty_tiers"] =
                json!({ "last_request": breakdown.empty_tiers, "session": self.empty_tiers });
        }
        value
    }

    /// The model and its limits, and how full they are.
    fn headline(&self) -> String {
        let breakdown = self.breakdown;
        let about = if breakdown.tokenizer.exact { "" } else { "about " };
        let (used, most) = (breakdown.total_tokens, breakdown.max_input_tokens);
        let name = safe(&format!("{}/{} · {}", self.provider, breakdown.model, breakdown.layout));
        format!(
            "{name}\ninput {about}{} of {} tokens ({})\nanswer up to {} tokens\n",
            thousands(used),
            thousands(most),
            share(used, most),
            thousands(self.max_output as usize),
        )
    }

    /// Tokens by kind, with their share of the request.
    fn categories(&self, width: usize) -> String {
        const NAME: usize = 10; // "symbol map"
        const SHARE: usize = 6; // "100.0%"
        let total = self.breakdown.total_tokens;
        let digits = thousands(total).len();
        let room = width.saturating_sub(NAME + digits + SHARE + 6);
        let mut text = String::new();
        for kind in Kind::ALL {
            let tokens = self.breakdown.breakdown.get(kind.column()).copied().unwrap_or(0);
            if tokens == 0 {
                continue;
            }
            let (name, count, share) = (category(kind), thousands(tokens), share(tokens, total));
            let bar = bar(tokens, total, room);
            text.push_str(&format!("{name:<NAME$}  {count:>digits$}  {share:>SHARE$}  {bar}\n"));
        }
        text
    }

    /// What the last request and the session used.
    fn spending(&self, width: usize) -> String {
        let exact = self.table(thousands).render(usize::MAX);
        let fits = exact.lines().all(|line| line.chars().count() <= width);
        let mut text = if fits { exact } else { self.table(short).render(width) };
        let rate = |spent: Spent| share(count(spent.read), count(spent.prompt()));
        text.push_str(&match self.last {
            Some(last) => {
                format!("from the cache: {} of the last prompt, {} of all\n", rate(last), rate(self.session))
            }
            None => format!("from the cache: {} of all\n", rate(self.session)),
        });
        text.extend(self.verdict.iter().map(|verdict| safe(&verdict.sentence()) + "\n"));
        text
    }

    fn table(&self, number: impl Fn(usize) -> String) -> Table {
        let right = ["input", "read", "written", "output", "cost"].map(|head| (head, Align::Right));
        let mut table = Table::new(&[&[("tokens", Align::Left)], &right[..]].concat());
        let mut row = |name: String, spent: Option<Spent>| {
            let unknown = !self.breakdown.price.known;
            let cells = spent.map_or_else(
                || vec!["-".to_owned(); 5],
                |spent| {
                    let tokens = [spent.input, spent.read, spent.written, spent.output];
                    let cost =
                        if unknown && spent.dollars == 0.0 { "-".into() } else { dollars(spent.dollars) };
                    tokens.map(|n| number(count(n))).into_iter().chain([cost]).collect()
                },
            );
            table.row([name].into_iter().chain(cells));
        };
        row("last request".into(), self.last);
        row(format!("session ({})", thousands(count(self.requests))), Some(self.session));
        table
    }

    /// The regions of the request in order, as boxes: where they end, what they hold, what was read of them.
    fn blocks(&self, width: usize) -> String {
        const BAR: usize = 10;
        let regions = regions(self.breakdown, self.last);
        let widest = |text: fn(&Region<'_>) -> String, head: &str| {
            regions.iter().map(|region| text(region).len()).chain([head.len()]).max().unwrap_or(0)
        };
        let name = widest(|region| region.block.name.to_owned(), "block");
        let tokens = widest(|region| thousands(region.block.tokens), "tokens");
        let has_bars = self.last.is_some() && width >= 80;
        let cells = |first: &str, second: &str, cached: &str, hit: &str, bar: &str| {
            let bar = if has_bars { format!("  {}", padded(bar, BAR)) } else { String::new() };
            format!("{first:<name$}  {second:>tokens$}  {cached:<6}  {hit:>4}{bar}")
        };
        let mut frame = frame(width, "cache blocks");
        frame.row(&cells("block", "tokens", "cached", "hit", ""), "holds");
        for (index, region) in regions.iter().enumerate() {
            let is_first_uncached = |before: &Region<'_>| before.block.cached && !region.block.cached;
            if index == 0 || is_first_uncached(&regions[index - 1]) {
                frame.rule();
            }
            let hit = region.hit().map_or_else(|| "-".into(), |percent| format!("{percent}%"));
            let bar = region.read.map_or_else(String::new, |read| bar(read, region.block.tokens, BAR));
            let (count, cached) = (thousands(region.block.tokens), region.cached.word());
            frame.row(&cells(region.block.name, &count, cached, &hit, &bar), &region.words());
        }
        let empty = (self.breakdown.layout == LayoutName::Tiers).then(|| {
            let (now, all) = (self.breakdown.empty_tiers, self.empty_tiers);
            format!("empty tiers: {now} now, {all} in the session")
        });
        frame.close(empty.as_deref().unwrap_or_default())
    }
}

/// The name of a category, for people.
fn category(kind: Kind) -> &'static str {
    match kind {
        Kind::Symbols => "symbol map",
        Kind::Page => "pages",
        kind => kind.column(),
    }
}

/// `12.3%`; of nothing, everything is nothing.
fn share(part: usize, whole: usize) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

fn count(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX)
}

/// `12.3k`, `4.56M`: three digits are enough where there is no room for all.
fn short(n: usize) -> String {
    match n {
        0..=9_999 => thousands(n),
        10_000..=99_949 => format!("{:.1}k", n as f64 / 1e3),
        99_950..=999_499 => format!("{:.0}k", n as f64 / 1e3),
        999_500..=999_499_999 => format!("{:.1}M", n as f64 / 1e6),
        _ => format!("{:.1}G", n as f64 / 1e9),
    }
}
