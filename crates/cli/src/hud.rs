//! [`Hud`]: the display of `--hud`: what the last request held, what it cost, and how much of it
//! came from the cache.

mod bars; // bars for shares, and Frame: a box around lines
pub mod blocks; // Region: what a part of the request holds, and how much the cache delivered
#[cfg(test)]
pub mod tests;
pub mod wrap; // breaks text into lines of a given width

use hardpan_agent::Spending;
use hardpan_agent::events::TaskUsage;
use hardpan_context::{Breakdown, SessionFigure};
use hardpan_economy::Verdict;
use hardpan_prompt::ItemKind;
use serde_json::{Value, json};

use crate::output::{Align, Table, dollars, paid_or_simulated, safe, thousands};
use crate::views::{fold_line, lifetime_line};
use bars::{Frame, bar, frame, padded};
use blocks::{Region, regions};
use wrap::wrap;

/// The narrowest and the widest display, in columns.
const WIDTH_RANGE: (usize, usize) = (40, 100);

/// A region's contents are printed beside its figures if this many columns are free, else below.
const MIN_CONTENTS_WIDTH: usize = 20;

/// The columns of the spending table.
const SPENDING_COLUMNS: [&str; 5] = ["input", "read", "written", "output", "cost"];

/// The figures to show after a request.
pub struct Hud<'a> {
    /// Of the last request.
    pub breakdown: &'a Breakdown,
    /// The id of the provider that the request went to.
    pub provider: &'a str,
    /// Token limit of an answer.
    pub max_output: u32,
    /// Spending of the last request; none until the provider has reported it.
    pub last: Option<Spending>,
    /// Spending of the whole session, the last request included.
    pub session: Spending,
    /// Number of requests of the session.
    pub requests: u64,
    /// What of the session sub-agents have used; none if there were none.
    pub tasks: Option<TaskUsage>,
    /// How the last request used the cache, judged by the reported usage.
    pub verdict: Option<Verdict>,
    /// The layout's own figures.
    pub layout_figures: &'a [SessionFigure],
}

/// What sub-agents have used of the session's sum.
fn task_line(tasks: &TaskUsage) -> String {
    let TaskUsage { requests, prompt_tokens, cached_tokens, output_tokens, dollars: paid } = *tasks;
    format!(
        "of the session, sub-agents: {} requests, {} tokens ({} from the cache), {} written, {}\n",
        thousands(count(requests)),
        thousands(count(prompt_tokens)),
        share(count(cached_tokens), count(prompt_tokens)),
        thousands(count(output_tokens)),
        dollars(paid)
    )
}

impl Hud<'_> {
    /// The display as text without colours, in lines of at most `width` columns. A narrow terminal
    /// gets more lines, not less content.
    pub fn render(&self, width: usize) -> String {
        let width = width.clamp(WIDTH_RANGE.0, WIDTH_RANGE.1);
        let parts =
            [wrap(&self.headline(), width), self.categories(width), self.spending(width), self.blocks(width)];
        parts.join("\n")
    }

    /// The same figures for programs.
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
            "next_fold": breakdown.next_fold,
            "cache_lifetime": breakdown.cache_lifetime,
            "verdict": self.verdict,
        });
        if let Some(tasks) = &self.tasks {
            value["tasks"] = json!(tasks);
        }
        for SessionFigure { name, last_request, session, .. } in self.layout_figures {
            value[*name] = json!({ "last_request": last_request, "session": session });
        }
        value
    }

    /// The model, its limits, and how full its window is.
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
        for kind in ItemKind::ALL {
            let tokens = self.breakdown.breakdown.get(kind.column_name()).copied().unwrap_or(0);
            if tokens == 0 {
                continue;
            }
            let (name, count, share) = (category(kind), thousands(tokens), share(tokens, total));
            let bar = bar(tokens, total, room);
            text.push_str(&format!("{name:<NAME$}  {count:>digits$}  {share:>SHARE$}  {bar}\n"));
        }
        text
    }

    /// Spending of the last request and of the session.
    fn spending(&self, width: usize) -> String {
        let mut text = self.spending_rows();
        if text.lines().any(|line| line.chars().count() > width) {
            text = self.spending_columns();
        }
        let rate = |spent: Spending| share(count(spent.tokens.cache_read), count(spent.tokens.prompt()));
        let mut words = match self.last {
            Some(last) => {
                format!("from the cache: {} of the last prompt, {} of all\n", rate(last), rate(self.session))
            }
            None => format!("from the cache: {} of all\n", rate(self.session)),
        };
        words.extend(self.tasks.iter().map(task_line));
        words.push_str(&lifetime_line(self.breakdown));
        words.push_str(&fold_line(self.breakdown));
        words.extend(self.verdict.iter().map(|verdict| safe(&verdict.sentence()) + "\n"));
        text + &wrap(&words, width)
    }

    /// The spending table with a row for the last request and one for the session.
    fn spending_rows(&self) -> String {
        let mut table = Table::new(
            &[&[("tokens", Align::Left)], &SPENDING_COLUMNS.map(|head| (head, Align::Right))[..]].concat(),
        );
        let requests = format!("session ({})", thousands(count(self.requests)));
        for (name, spent) in [("last request".to_owned(), self.last), (requests, Some(self.session))] {
            table.row([name].into_iter().chain(self.figures(spent)));
        }
        table.render(usize::MAX)
    }

    /// The spending table for narrow terminals, with a column for each.
    fn spending_columns(&self) -> String {
        let columns = [("tokens", Align::Left), ("last request", Align::Right), ("session", Align::Right)];
        let mut table = Table::new(&columns);
        for ((name, last), session) in
            SPENDING_COLUMNS.into_iter().zip(self.figures(self.last)).zip(self.figures(Some(self.session)))
        {
            table.row([name.to_owned(), last, session]);
        }
        table.row(["requests".to_owned(), String::new(), thousands(count(self.requests))]);
        table.render(usize::MAX)
    }

    /// The cells of [`SPENDING_COLUMNS`].
    fn figures(&self, spent: Option<Spending>) -> [String; 5] {
        let Some(Spending { tokens, dollars: paid, would_cost }) = spent else {
            return SPENDING_COLUMNS.map(|_| "-".to_owned());
        };
        let [input, read, written, output] =
            [tokens.input, tokens.cache_read, tokens.cache_written(), tokens.output]
                .map(|n| thousands(count(n)));
        let is_unknown = !self.breakdown.price.known && paid == 0.0;
        let price = if is_unknown { "-".to_owned() } else { paid_or_simulated(paid, would_cost) };
        [input, read, written, output, price]
    }

    /// The regions of the request in order, in a frame: tokens, cache hits and contents.
    fn blocks(&self, width: usize) -> String {
        const BAR: usize = 10;
        let regions = regions(self.breakdown, self.last);
        let widest = |text: fn(&Region<'_>) -> String, head: &str| {
            regions.iter().map(|region| text(region).len()).chain([head.len()]).max().unwrap_or(0)
        };
        let name = widest(|region| region.block.name.to_owned(), "block");
        let tokens = widest(|region| thousands(region.block.tokens), "tokens");
        let has_bars = self.last.is_some() && width >= 80;
        let cells = |gap: &str, [first, second, cached, hit, bar]: [&str; 5]| {
            let bar = if has_bars { format!("{gap}{}", padded(bar, BAR)) } else { String::new() };
            format!("{first:<name$}{gap}{second:>tokens$}{gap}{cached:<6}{gap}{hit:>4}{bar}")
        };
        let head = ["block", "tokens", "cached", "hit", ""];
        let has_room = cells("  ", head).len() + MIN_CONTENTS_WIDTH + 6 <= width;
        let (gap, row): (_, fn(&mut Frame, &str, &str)) =
            if has_room { ("  ", Frame::row) } else { (" ", Frame::rows) };
        let mut frame = frame(width, "cache blocks");
        row(&mut frame, &cells(gap, head), "holds");
        for (index, region) in regions.iter().enumerate() {
            let is_first_uncached = |before: &Region<'_>| before.block.cached && !region.block.cached;
            if index == 0 || is_first_uncached(&regions[index - 1]) {
                frame.rule();
            }
            let hit = region.hit().map_or_else(|| "-".into(), |percent| format!("{percent}%"));
            let bar = region.read.map_or_else(String::new, |read| bar(read, region.block.tokens, BAR));
            let (count, cached) = (thousands(region.block.tokens), region.cached.name());
            let cells = cells(gap, [region.block.name, &count, cached, &hit, &bar]);
            row(&mut frame, &cells, &region.describe_contents());
        }
        let figures =
            self.layout_figures.iter().map(|SessionFigure { label, last_request, session, .. }| {
                format!("{label}: {last_request} now, {session} in the session")
            });
        frame.close(&figures.collect::<Vec<_>>().join("; "))
    }
}

/// The display name of a kind.
fn category(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Symbols => "symbol map",
        ItemKind::Page => "pages",
        kind => kind.column_name(),
    }
}

/// A percentage such as `12.3%`; `0.0%` of nothing.
fn share(part: usize, whole: usize) -> String {
    format!("{:.1}%", 100.0 * part as f64 / whole.max(1) as f64)
}

fn count(tokens: u64) -> usize {
    usize::try_from(tokens).unwrap_or(usize::MAX)
}
