//! [`ContextFacts`]: what is said below the table.

use std::time::Duration;

use ratatui::text::{Line, Span};

use crate::blocks::conversation::Cost;
use crate::blocks::format::{clock, count, counted, dollars, percent};
use crate::text::{escape, pad_right, wrap_indented};
use crate::theme::{Role, Theme};

/// What is said below the table. What is not known is not said.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextFacts {
    /// What is sent without being needed.
    pub garbage: Option<Garbage>,
    /// The fold that comes next.
    pub next_fold: Option<NextFold>,
    /// When the cache forgets the prompt.
    pub expiry: Option<CacheExpiry>,
    /// What was last paid again.
    pub verdict: Option<LastVerdict>,
    /// The last request.
    pub last: Option<LastRequest>,
    /// All requests.
    pub session: Option<SessionTotals>,
    /// Tokens by kind of content, without those that are zero.
    pub kinds: Vec<(String, usize)>,
}

/// What is sent without being needed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Garbage {
    /// Its tokens.
    pub tokens: usize,
    /// Older copies of items and results.
    pub copies: usize,
    /// What it costs with every request, in dollars.
    pub rent: f64,
    /// What it has cost since the last fold.
    pub paid: f64,
}

/// The fold that comes next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NextFold {
    /// In about so many requests; `None` if it does not pay at the present rate.
    pub in_requests: Option<usize>,
    /// What it costs, in dollars.
    pub costs: f64,
    /// The tokens that it drops.
    pub drops: usize,
    /// What each request saves after it.
    pub saves: f64,
}

/// When the cache forgets the prompt. Folding is free then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheExpiry {
    /// In this time; zero if it is over.
    pub remaining: Duration,
    /// What the next request costs then, in dollars.
    pub cold: f64,
    /// What it costs before.
    pub warm: f64,
}

/// What was last paid again.
#[derive(Clone, Debug, PartialEq)]
pub struct LastVerdict {
    /// The number of the request.
    pub request: usize,
    /// Tokens that were paid again.
    pub tokens: usize,
    /// What they cost, in dollars.
    pub dollars: f64,
    /// Why: `fuzzy.ts changed on disk`.
    pub cause: String,
    /// Somebody could have avoided it.
    pub is_avoidable: bool,
}

/// What the provider billed for the last request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LastRequest {
    /// Tokens sent without the cache.
    pub input: usize,
    /// Tokens read from the cache.
    pub read: usize,
    /// Tokens written to the cache.
    pub written: usize,
    /// Tokens of the answer.
    pub output: usize,
    /// What it cost.
    pub cost: Cost,
}

/// What the session has cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionTotals {
    /// Requests so far.
    pub requests: usize,
    /// What they cost.
    pub cost: Cost,
    /// What they would have cost without a cache, in dollars.
    pub without_cache: f64,
    /// Input tokens read from the cache, and all of them.
    pub read: (usize, usize),
    /// What was paid again, in dollars, and in how many requests.
    pub lost: (f64, usize),
}

impl ContextFacts {
    /// The facts, one line each. A narrow screen gets those that may change what one does next.
    pub(super) fn lines(&self, is_wide: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
        let mut rows = Vec::new();
        let dot = theme.glyphs.separator;
        if let Some(garbage) = self.garbage.filter(|garbage| garbage.tokens > 0) {
            rows.push(("garbage", self.garbage_text(garbage, is_wide, dot), Role::Text));
        }
        if let Some(fold) = self.next_fold.filter(|_| is_wide) {
            rows.push(("next fold", fold_text(fold, theme), Role::Text));
        }
        if let Some(expiry) = self.expiry {
            // Without garbage, or in a layout that does not fold, nothing is gained when it expires.
            let has_fold = self.garbage.is_some() || self.next_fold.is_some();
            let label = if is_wide && has_fold { "free fold" } else { "expires" };
            rows.push((label, expiry_text(expiry, is_wide, has_fold, dot), Role::Text));
        }
        if let Some(verdict) = &self.verdict {
            rows.push(("verdict", verdict_text(verdict, is_wide, dot), Role::Care));
        }
        if let Some(last) = self.last.filter(|_| is_wide) {
            rows.push(("last", last_text(last, dot), Role::Text));
        }
        if let Some(session) = self.session.filter(|_| is_wide) {
            rows.push(("session", session_text(session, dot), Role::Text));
        }
        if is_wide && !self.kinds.is_empty() {
            let kinds: Vec<String> = self
                .kinds
                .iter()
                .map(|(kind, tokens)| format!("{} {}", escape(kind), count(*tokens)))
                .collect();
            rows.push(("by kind", kinds.join(&format!(" {dot} ")), Role::Text));
        }
        let label_columns = if is_wide { 11 } else { 9 };
        let indent = Span::raw(" ".repeat(label_columns + 1));
        let row_lines = |(label, text, role): (&str, String, Role)| {
            let label =
                Span::styled(format!(" {}", pad_right(label, label_columns)), theme.style(Role::Quiet));
            wrap_indented(&[Span::styled(text, theme.style(role))], columns, &label, &indent)
        };
        rows.into_iter().flat_map(row_lines).collect()
    }

    fn garbage_text(&self, garbage: Garbage, is_wide: bool, dot: &str) -> String {
        let Garbage { tokens, copies, rent, paid } = garbage;
        let (tokens, rent, paid) = (count(tokens), dollars(rent), dollars(paid));
        if is_wide {
            let copies = counted(copies, "copy", "copies");
            return format!(
                "{tokens} tokens, {copies} {dot} rent {rent} a request, {paid} paid since the last fold"
            );
        }
        let fold = match self.next_fold.and_then(|fold| fold.in_requests) {
            Some(requests) => format!(" {dot} fold in about {requests}"),
            None => String::new(),
        };
        format!("{tokens} {dot} rent {rent} a request, {paid} paid{fold}")
    }
}

fn fold_text(fold: NextFold, theme: &Theme) -> String {
    let NextFold { in_requests, costs, drops, saves } = fold;
    let place = theme.glyphs.older_entry;
    let when = match in_requests {
        Some(requests) => format!("in about {}", counted(requests, "request", "requests")),
        None => "not before the cache expires".to_owned(),
    };
    let (costs, drops, saves) = (dollars(costs.max(0.0)), count(drops), dollars(saves));
    format!("at {place}, {when}: costs {costs}, drops {drops} tokens, saves {saves} a request")
}

fn expiry_text(expiry: CacheExpiry, is_wide: bool, has_fold: bool, dot: &str) -> String {
    let CacheExpiry { remaining, cold, warm } = expiry;
    if remaining.is_zero() {
        return format!("now: the cache has expired, the next request costs {}", dollars(cold));
    }
    let (remaining, cold, warm) = (clock(remaining), dollars(cold), dollars(warm));
    match (is_wide, has_fold) {
        (true, true) => format!(
            "when the cache expires, in {remaining}: the next request then costs {cold} instead of {warm}"
        ),
        (true, false) => format!("in {remaining}: the next request then costs {cold} instead of {warm}"),
        (false, true) => format!("in {remaining} {dot} then a free fold, {cold} once"),
        (false, false) => format!("in {remaining} {dot} then {cold} once"),
    }
}

fn verdict_text(verdict: &LastVerdict, is_wide: bool, dot: &str) -> String {
    let LastVerdict { request, tokens, dollars: paid, cause, is_avoidable } = verdict;
    let (tokens, paid, cause) = (count(*tokens), dollars(*paid), escape(cause));
    let avoidable = if *is_avoidable { format!(" {dot} avoidable") } else { String::new() };
    if is_wide {
        return format!("request {request}: {tokens} tokens paid again, {paid}: {cause}{avoidable}");
    }
    format!("{tokens} paid again, {paid}: {cause}{avoidable}")
}

fn last_text(last: LastRequest, dot: &str) -> String {
    let LastRequest { input, read, written, output, cost } = last;
    let share = percent(read, input + read + written);
    let figures = [
        format!("in {}", count(input)),
        format!("read {}", count(read)),
        format!("written {}", count(written)),
        format!("out {}", count(output)),
        cost.text(),
        format!("{share} read"),
    ];
    figures.join(&format!(" {dot} "))
}

fn session_text(session: SessionTotals, dot: &str) -> String {
    let SessionTotals { requests, cost, without_cache, read, lost } = session;
    let requests = counted(requests, "request", "requests");
    let cost = match cost.simulated.filter(|amount| *amount > 0.0) {
        Some(amount) => {
            let (paid, would_be) = (dollars(cost.paid), dollars(amount));
            format!("{paid} (would be {would_be}, without a cache {})", dollars(without_cache))
        }
        None => format!("{} (without a cache {})", cost.text(), dollars(without_cache)),
    };
    let mut text = format!("{requests} {dot} {cost} {dot} {} read", percent(read.0, read.1));
    if lost.1 > 0 {
        text.push_str(&format!(" {dot} lost {} in {}", dollars(lost.0), counted(lost.1, "miss", "misses")));
    }
    text
}
