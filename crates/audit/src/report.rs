//! [`Report`]: audits as JSON, and functions that write them as text and as a page.

mod html; // one page that needs nothing else
mod plot; // curves as SVG
mod text; // tables for a terminal

use std::sync::Arc;

use hardpan_economy::cache::Moment;
use jiff::Timestamp;
use serde::Serialize;

use crate::Audit;
use crate::cache_audit::{AvoidableBy, Bill, CauseCategory};
pub use html::page;
pub use text::summary;

/// What `hardpan audit --json` prints: amounts in tokens, costs in units of one uncached input
/// token of the model. Answers are in `output` and `total_dollars` only.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Why tokens were paid again, equal causes of all sessions added up, the most expensive first.
    pub causes: Vec<CauseReport>,
    /// The sessions, in the order they were given.
    pub sessions: Vec<SessionReport>,
}

/// Losses with the same cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CauseReport {
    /// The cause without its figures.
    pub cause: &'static str,
    /// How many requests it hit.
    pub losses: usize,
    /// How many tokens were paid again.
    pub tokens: u64,
    /// What they cost beyond the price of reading them, where a price is known.
    pub dollars: f64,
    /// How certain it is: `recorded`, `compared`, `inferred`; several where sources differ.
    pub certainty: String,
    /// Who could have avoided it: `agent`, `person`, `nobody`.
    pub avoidable_by: &'static str,
    /// What to do about it; empty if there is nothing to say.
    pub advice: &'static str,
}

/// The audit of one session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionReport {
    /// The name of the recording, usually a path.
    pub file: String,
    /// Who recorded it: `pi`, `claude-code`, `codex`, `qwen-code`, `hardpan`.
    pub agent: &'static str,
    /// How many requests were billed.
    pub requests: usize,
    /// What was billed for all requests.
    pub billed: BilledReport,
    /// What the predictions would have cost.
    pub predicted: PredictedReport,
    /// How many requests were predicted correctly, hit or loss.
    pub right: usize,
    /// The losses, the most expensive first.
    pub losses: Vec<LossReport>,
    /// What a stable prefix would have cost, in units.
    pub stable_prefix_cost: f64,
    /// The part of `billed` for requests of which only the sum is recorded.
    pub side_requests: Vec<SideReport>,
    /// What prompts and answers cost together at list prices. Null where a price is not known.
    pub total_dollars: Option<f64>,
    /// The same according to the recording itself. Null where it has no total.
    pub recorded_dollars: Option<f64>,
    /// The models without a known price.
    pub unpriced: Vec<Arc<str>>,
}

/// What was billed for requests of which only the sum is recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SideReport {
    /// The model's id as it is recorded.
    pub model: Arc<str>,
    /// What the requests were for, by the agent's names.
    pub purposes: Vec<Arc<str>>,
    /// What was billed for their prompts.
    #[serde(flatten)]
    pub billed: BilledReport,
}

/// What was billed for the prompts of a session.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BilledReport {
    /// Tokens neither read from nor written to the cache.
    pub input: u64,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache, for any lifetime.
    pub write: u64,
    /// Tokens of the answers. Their price is in `total_dollars` only.
    pub output: u64,
    /// The cost of the prompts in units of one uncached input token.
    pub cost: f64,
    /// The cost of the prompts in dollars at list prices. Null where no price is known.
    pub dollars: Option<f64>,
}

/// What the predictions would have cost.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedReport {
    /// Tokens neither read from nor written to the cache.
    pub input: u64,
    /// Tokens read from the cache.
    pub read: u64,
    /// Tokens written to the cache, for any lifetime.
    pub write: u64,
    /// The cost in units of one uncached input token.
    pub cost: f64,
}

/// Tokens that had been cached and were paid again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossReport {
    /// Index of the billed request, from 0.
    pub request: usize,
    /// When the request was sent, RFC 3339.
    pub at: String,
    /// How many tokens were paid again.
    pub tokens: u64,
    /// What they cost beyond the price of reading them. Null where no price is known.
    pub dollars: Option<f64>,
    /// The cause in words.
    pub cause: String,
    /// Whether the agent could have avoided it.
    pub ours: bool,
    /// Where the cause is known from: `request`, `verdict`, `inferred`.
    pub source: &'static str,
}

impl Report {
    /// The report of these audits.
    pub fn from_audits(audits: &[Audit]) -> Self {
        let cause = |group: CauseGroup| CauseReport {
            cause: group.name,
            losses: group.count,
            tokens: group.tokens,
            dollars: micro(group.dollars),
            certainty: group.certainty,
            avoidable_by: group.avoidable_by.name(),
            advice: group.advice,
        };
        Report {
            causes: cause_groups(audits).into_iter().map(cause).collect(),
            sessions: audits.iter().map(SessionReport::from_audit).collect(),
        }
    }
}

impl SessionReport {
    fn from_audit(audit: &Audit) -> Self {
        let foretold = audit.predicted.tokens;
        let losses = audit.losses_by_cost().into_iter().map(|loss| LossReport {
            request: loss.request,
            at: rfc3339(loss.at),
            tokens: loss.tokens,
            dollars: loss.dollars.map(micro),
            cause: loss.cause.describe(),
            ours: loss.is_avoidable,
            source: loss.source.name(),
        });
        let side_requests = audit.side_requests.iter().map(|side| SideReport {
            model: side.model.clone(),
            purposes: side.purposes.clone(),
            billed: BilledReport::from_bill(&side.bill),
        });
        SessionReport {
            file: audit.file.clone(),
            agent: audit.agent.name(),
            requests: audit.requests.len(),
            billed: BilledReport::from_bill(&audit.billed),
            predicted: PredictedReport {
                input: foretold.input,
                read: foretold.cache_read,
                write: foretold.cache_written(),
                cost: milli(audit.predicted.cost),
            },
            right: audit.correct_predictions(),
            losses: losses.collect(),
            stable_prefix_cost: milli(audit.stable_prefix_cost),
            side_requests: side_requests.collect(),
            total_dollars: audit.total_dollars.map(micro),
            recorded_dollars: audit.recorded_dollars.map(micro),
            unpriced: audit.unpriced.clone(),
        }
    }
}

impl BilledReport {
    fn from_bill(bill: &Bill) -> Self {
        let Bill { tokens, cost, dollars } = *bill;
        BilledReport {
            input: tokens.input,
            read: tokens.cache_read,
            write: tokens.cache_written(),
            output: tokens.output,
            cost: milli(cost),
            dollars: dollars.map(micro),
        }
    }
}

/// Rounds to a thousandth of a token: sums of products of prices have noise in their last digits.
fn milli(cost: f64) -> f64 {
    (cost * 1e3).round() / 1e3
}

/// Rounds to a millionth of a dollar.
fn micro(dollars: f64) -> f64 {
    (dollars * 1e6).round() / 1e6
}

fn rfc3339(at: Moment) -> String {
    Timestamp::from_millisecond(at.0).unwrap_or_default().to_string()
}

/// Sums over all sessions of a report.
#[derive(Default)]
struct ReportTotals {
    requests: usize,
    right: usize,
    bill: Bill,
    /// Prompts and answers of the sessions whose prices are known.
    total_dollars: Option<f64>,
    side_cost: f64,
    side_dollars: f64,
    side_tokens: u64,
    stable_cost: f64,
    stable_dollars: f64,
    lost_tokens: u64,
    lost_cost: f64,
    lost_dollars: f64,
    losses: usize,
}

impl ReportTotals {
    fn from_audits(audits: &[Audit]) -> Self {
        let mut totals = ReportTotals::default();
        for audit in audits {
            totals.requests += audit.requests.len();
            totals.right += audit.correct_predictions();
            totals.bill.tokens += audit.billed.tokens;
            totals.bill.cost += audit.billed.cost;
            totals.bill.dollars = audit
                .billed
                .dollars
                .map(|more| more + totals.bill.dollars.unwrap_or(0.0))
                .or(totals.bill.dollars);
            totals.total_dollars = audit
                .total_dollars
                .map(|more| more + totals.total_dollars.unwrap_or(0.0))
                .or(totals.total_dollars);
            let side = audit.side_requests.iter().map(|side| &side.bill);
            totals.side_cost += side.clone().map(|bill| bill.cost).sum::<f64>();
            totals.side_tokens += side.clone().map(|bill| bill.tokens.prompt()).sum::<u64>();
            totals.side_dollars += side.filter_map(|bill| bill.dollars).sum::<f64>();
            totals.stable_cost += audit.stable_prefix_cost;
            totals.stable_dollars += stable_dollars(audit).unwrap_or(0.0);
            totals.losses += audit.losses.len();
            totals.lost_tokens =
                audit.losses.iter().fold(totals.lost_tokens, |lost, loss| lost.saturating_add(loss.tokens));
            totals.lost_cost += audit.losses.iter().map(|loss| loss.cost).sum::<f64>();
            totals.lost_dollars += audit.losses.iter().filter_map(|loss| loss.dollars).sum::<f64>();
        }
        totals
    }
}

impl ReportTotals {
    /// What was paid for prompts and answers; for prompts alone where no answer has a price.
    fn total_dollars(&self) -> Option<f64> {
        self.total_dollars.or(self.bill.dollars)
    }

    /// What was paid for answers.
    fn answer_dollars(&self) -> Option<f64> {
        Some((self.total_dollars? - self.bill.dollars?).max(0.0))
    }
}

/// What was paid again, as a share of all that was paid: of dollars where they are known.
fn share_of_bill(totals: &ReportTotals) -> String {
    match totals.total_dollars() {
        Some(paid) if paid > 0.0 => percent(totals.lost_dollars, paid),
        _ => percent(totals.lost_cost, totals.bill.cost),
    }
}

/// What a stable prefix would have cost in dollars, at the session's average price per unit.
fn stable_dollars(audit: &Audit) -> Option<f64> {
    let Bill { cost, dollars, .. } = audit.billed;
    dollars.filter(|_| cost > 0.0).map(|dollars| dollars * audit.stable_prefix_cost / cost)
}

/// Losses with the same cause, over all sessions.
struct CauseGroup {
    name: &'static str,
    advice: &'static str,
    count: usize,
    tokens: u64,
    cost: f64,
    dollars: f64,
    /// How certain the cause is: the words of its losses, the most frequent first.
    certainty: String,
    avoidable_by: AvoidableBy,
}

/// The causes of losses, equal ones added up, the most expensive first.
fn cause_groups(audits: &[Audit]) -> Vec<CauseGroup> {
    let mut groups: Vec<(CauseGroup, Vec<&'static str>)> = Vec::new();
    for loss in audits.iter().flat_map(|audit| &audit.losses) {
        let (CauseCategory { name, advice }, avoidable_by) = (loss.cause.category(), loss.avoidable_by());
        let is_same = |(group, _): &(CauseGroup, _)| group.name == name && group.avoidable_by == avoidable_by;
        let at = groups.iter().position(is_same).unwrap_or_else(|| {
            let (count, tokens, cost, dollars, certainty) = (0, 0, 0.0, 0.0, String::new());
            let group = CauseGroup { name, advice, count, tokens, cost, dollars, certainty, avoidable_by };
            groups.push((group, Vec::new()));
            groups.len() - 1
        });
        let (group, sources) = &mut groups[at];
        group.count += 1;
        group.tokens = group.tokens.saturating_add(loss.tokens);
        group.cost += loss.cost;
        group.dollars += loss.dollars.unwrap_or(0.0);
        sources.push(loss.source.certainty());
    }
    let finish =
        |(group, sources): (CauseGroup, Vec<&str>)| CauseGroup { certainty: counted(&sources), ..group };
    let mut groups: Vec<CauseGroup> = groups.into_iter().map(finish).collect();
    groups.sort_by(|a, b| b.cost.total_cmp(&a.cost).then(a.name.cmp(b.name)));
    groups
}

/// Equal words, or each with how often it occurs: `inferred`, `recorded 3, inferred 1`.
fn counted(words: &[&str]) -> String {
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for word in words {
        match counts.iter_mut().find(|(known, _)| known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    match &counts[..] {
        [(word, _)] => (*word).to_owned(),
        several => {
            several.iter().map(|(word, count)| format!("{word} {count}")).collect::<Vec<_>>().join(", ")
        }
    }
}

/// The `top` most expensive losses over all sessions, each with its session.
fn costliest_losses(audits: &[Audit], top: usize) -> Vec<(&Audit, &crate::Loss)> {
    let mut losses: Vec<_> =
        audits.iter().flat_map(|audit| audit.losses.iter().map(move |loss| (audit, loss))).collect();
    losses.sort_by(|(_, a), (_, b)| b.cost.total_cmp(&a.cost).then(a.at.cmp(&b.at)));
    losses.truncate(top);
    losses
}

/// A count with its noun: `1 request`, `37 requests`.
fn pluralize(count: usize, what: &str) -> String {
    format!(
        "{} {what}{}",
        hardpan_economy::format::format_number(count as u64),
        if count == 1 { "" } else { "s" }
    )
}

/// A share such as `54.5%`.
fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.1}%", 100.0 * part / whole) } else { "-".into() }
}

#[cfg(test)]
mod tests;
