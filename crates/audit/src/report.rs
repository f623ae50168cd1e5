//! Audits as text for people, as JSON, and as a page.

mod html; // one page that needs nothing else
mod plot; // curves as SVG
mod text; // tables for a terminal

use hardpan_economy::cache::Moment;
use jiff::Timestamp;
use serde::Serialize;

use crate::Audit;
use crate::bill::Bill;
pub use html::page;
pub use text::summary;

/// What `hardpan audit --json` prints: amounts in tokens, costs in units of one uncached input token of the model, answers
/// left out.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// One per file.
    pub sessions: Vec<SessionReport>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionReport {
    /// The file.
    pub file: String,
    /// Who recorded it: `pi`, `claude-code`, `codex`, `hardpan`.
    pub agent: &'static str,
    /// How many requests were billed.
    pub requests: usize,
    /// What was billed.
    pub billed: BilledReport,
    /// What was foretold.
    pub predicted: PredictedReport,
    /// How many requests were foretold rightly, hit or loss.
    pub right: usize,
    /// What was paid again, the dearest first.
    pub losses: Vec<LossReport>,
    /// What a stable prefix would have paid.
    pub stable_prefix_cost: f64,
}

/// What was billed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BilledReport {
    /// Neither read nor written.
    pub input: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written to it, for whatever lifetime.
    pub write: u64,
    /// In units.
    pub cost: f64,
    /// At list prices; none where no price is known.
    pub dollars: Option<f64>,
}

/// What was foretold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedReport {
    /// Neither read nor written.
    pub input: u64,
    /// Read from the cache.
    pub read: u64,
    /// Written to it, for whatever lifetime.
    pub write: u64,
    /// In units.
    pub cost: f64,
}

/// Something that was paid again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossReport {
    /// The billed request, from 0.
    pub request: usize,
    /// When it was sent, RFC 3339.
    pub at: String,
    /// How many tokens.
    pub tokens: u64,
    /// What they cost beyond the price of reading them; none where no price is known.
    pub dollars: Option<f64>,
    /// Why, in words.
    pub cause: String,
    /// Whether the program that laid out the prompt could have avoided it.
    pub ours: bool,
}

impl Report {
    /// The report of these audits.
    pub fn of(audits: &[Audit]) -> Self {
        Report { sessions: audits.iter().map(SessionReport::of).collect() }
    }
}

impl SessionReport {
    fn of(audit: &Audit) -> Self {
        let Bill { tokens, cost, dollars } = audit.billed;
        let foretold = audit.predicted.tokens;
        let losses = audit.ranked().into_iter().map(|loss| LossReport {
            request: loss.request,
            at: rfc3339(loss.at),
            tokens: loss.tokens,
            dollars: loss.dollars.map(micro),
            cause: loss.why.words(),
            ours: loss.ours,
        });
        SessionReport {
            file: audit.file.clone(),
            agent: audit.agent.name(),
            requests: audit.requests.len(),
            billed: BilledReport {
                input: tokens.input,
                read: tokens.read,
                write: tokens.write.saturating_add(tokens.write_1h),
                cost: milli(cost),
                dollars: dollars.map(micro),
            },
            predicted: PredictedReport {
                input: foretold.input,
                read: foretold.read,
                write: foretold.write.saturating_add(foretold.write_1h),
                cost: milli(audit.predicted.cost),
            },
            right: audit.right(),
            losses: losses.collect(),
            stable_prefix_cost: milli(audit.stable_prefix_cost),
        }
    }
}

/// A sum of products of prices has noise in its last digits; a thousandth of a token is nothing.
fn milli(cost: f64) -> f64 {
    (cost * 1e3).round() / 1e3
}

/// A millionth of a dollar is nothing either.
fn micro(dollars: f64) -> f64 {
    (dollars * 1e6).round() / 1e6
}

fn rfc3339(at: Moment) -> String {
    Timestamp::from_millisecond(at.0).unwrap_or_default().to_string()
}

/// What all sessions of a report have in common.
#[derive(Default)]
struct Sum {
    requests: usize,
    right: usize,
    bill: Bill,
    stable_cost: f64,
    stable_dollars: f64,
    lost_tokens: u64,
    lost_cost: f64,
    lost_dollars: f64,
    losses: usize,
}

impl Sum {
    fn of(audits: &[Audit]) -> Self {
        let mut sum = Sum::default();
        for audit in audits {
            sum.requests += audit.requests.len();
            sum.right += audit.right();
            sum.bill.tokens.add(&audit.billed.tokens);
            sum.bill.cost += audit.billed.cost;
            sum.bill.dollars =
                audit.billed.dollars.map(|more| more + sum.bill.dollars.unwrap_or(0.0)).or(sum.bill.dollars);
            sum.stable_cost += audit.stable_prefix_cost;
            sum.stable_dollars += stable_dollars(audit).unwrap_or(0.0);
            sum.losses += audit.losses.len();
            sum.lost_tokens =
                audit.losses.iter().fold(sum.lost_tokens, |lost, loss| lost.saturating_add(loss.tokens));
            sum.lost_cost += audit.losses.iter().map(|loss| loss.cost).sum::<f64>();
            sum.lost_dollars += audit.losses.iter().filter_map(|loss| loss.dollars).sum::<f64>();
        }
        sum
    }
}

/// What a stable prefix would have cost in dollars, at the session's mean price of a unit.
fn stable_dollars(audit: &Audit) -> Option<f64> {
    let Bill { cost, dollars, .. } = audit.billed;
    dollars.filter(|_| cost > 0.0).map(|dollars| dollars * audit.stable_prefix_cost / cost)
}

/// Losses of one sort, over all sessions.
struct Sort {
    name: &'static str,
    count: usize,
    tokens: u64,
    cost: f64,
    dollars: f64,
    ours: usize,
}

/// The sorts of losses, the dearest first.
fn sorts(audits: &[Audit]) -> Vec<Sort> {
    let mut sorts: Vec<Sort> = Vec::new();
    for loss in audits.iter().flat_map(|audit| &audit.losses) {
        let name = loss.why.sort();
        let at = sorts.iter().position(|sort| sort.name == name).unwrap_or_else(|| {
            sorts.push(Sort { name, count: 0, tokens: 0, cost: 0.0, dollars: 0.0, ours: 0 });
            sorts.len() - 1
        });
        let sort = &mut sorts[at];
        sort.count += 1;
        sort.tokens = sort.tokens.saturating_add(loss.tokens);
        sort.cost += loss.cost;
        sort.dollars += loss.dollars.unwrap_or(0.0);
        sort.ours += usize::from(loss.ours);
    }
    sorts.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.name.cmp(b.name)));
    sorts
}

/// A loss with its session, the dearest first over all sessions.
fn dearest(audits: &[Audit], top: usize) -> Vec<(&Audit, &crate::Loss)> {
    let mut losses: Vec<_> =
        audits.iter().flat_map(|audit| audit.losses.iter().map(move |loss| (audit, loss))).collect();
    losses.sort_by(|(_, a), (_, b)| b.cost.total_cmp(&a.cost).then(a.at.cmp(&b.at)));
    losses.truncate(top);
    losses
}

/// `$29.08`; with four places where two would show nothing.
fn dollars(amount: f64) -> String {
    if amount != 0.0 && amount.abs() < 0.1 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// `1 request`, `37 requests`.
fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", hardpan_economy::words::number(count as u64), if count == 1 { "" } else { "s" })
}

/// `54.5%`.
fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1}%", 100.0 * part / whole) } else { "-".into() }
}

#[cfg(test)]
mod tests;
