//! Audits for a person at a terminal.

use std::fmt::Write as _;

use crate::Audit;
use crate::report::{Sum, counted, dearest, dollars, percent, rfc3339, sorts};
use hardpan_economy::words::number;

/// So many sessions are listed, the dearest first.
const SESSIONS: usize = 10;

/// What was paid, what a stable prefix would have paid, and the dearest losses, at most `top` of them.
///
/// Names of files and models are foreign text: whoever prints this takes care of control characters.
pub fn summary(audits: &[Audit], top: usize) -> String {
    let sum = Sum::of(audits);
    let mut out = String::new();
    totals(&mut out, audits, &sum);
    if audits.len() > 1 {
        sessions(&mut out, audits);
    }
    if sum.losses > 0 {
        causes(&mut out, audits, &sum);
        losses(&mut out, audits, top, sum.losses);
    }
    notes(&mut out, audits);
    out
}

fn totals(out: &mut String, audits: &[Audit], sum: &Sum) {
    let tokens = sum.bill.tokens;
    let prompt = tokens.prompt();
    let what = match audits {
        [one] => format!("{} ({})", one.file, one.agent.name()),
        all => format!("{} sessions", number(all.len() as u64)),
    };
    let priced =
        |amount: f64| sum.bill.dollars.map_or_else(String::new, |_| format!(", {}", dollars(amount)));
    let share = |part: u64| percent(part as f64, prompt as f64);
    let written = tokens.write.saturating_add(tokens.write_1h);
    let _ = write!(
        out,
        "{what}: {}\n\n\
         input        {:>15} tokens: {} read from the cache, {} written to it, {} neither\n\
         paid         {:>15} input-token units{}\n\
         stable       {:>15} units ({} of what was paid{}): every request only adds to the one before\n\
         lost         {:>15} tokens in {}{}: paid again although they had been cached\n\
         foretold     {:>15} of the requests rightly, hit or loss\n",
        counted(sum.requests, "billed request"),
        number(prompt),
        share(tokens.read),
        share(written),
        share(tokens.input),
        number(sum.bill.cost.round() as u64),
        priced(sum.bill.dollars.unwrap_or(0.0)),
        number(sum.stable_cost.round() as u64),
        percent(sum.stable_cost, sum.bill.cost),
        priced(sum.stable_dollars),
        number(sum.lost_tokens),
        counted(sum.losses, "request"),
        priced(sum.lost_dollars),
        percent(sum.right as f64, sum.requests as f64),
    );
}

fn sessions(out: &mut String, audits: &[Audit]) {
    let mut dear: Vec<&Audit> = audits.iter().collect();
    dear.sort_by(|a, b| b.billed.cost.total_cmp(&a.billed.cost).then(a.file.cmp(&b.file)));
    let _ = writeln!(
        out,
        "\n{:>8}  {:>12}  {:>9}  {:>6}  {:>6}  session",
        "requests", "units", "dollars", "stable", "losses"
    );
    for audit in dear.iter().take(SESSIONS) {
        let _ = writeln!(
            out,
            "{:>8}  {:>12}  {:>9}  {:>6}  {:>6}  {} ({})",
            audit.requests.len(),
            number(audit.billed.cost.round() as u64),
            audit.billed.dollars.map_or_else(|| "-".into(), dollars),
            percent(audit.stable_prefix_cost, audit.billed.cost),
            audit.losses.len(),
            audit.file,
            audit.agent.name(),
        );
    }
    if dear.len() > SESSIONS {
        let _ = writeln!(out, "and {} more (--json has all)", dear.len() - SESSIONS);
    }
}

fn causes(out: &mut String, audits: &[Audit], sum: &Sum) {
    let _ = writeln!(out, "\n{:>6}  {:>13}  {:>9}  {:>6}  why", "losses", "tokens", "dollars", "share");
    for sort in sorts(audits) {
        let _ = writeln!(
            out,
            "{:>6}  {:>13}  {:>9}  {:>6}  {}{}",
            sort.count,
            number(sort.tokens),
            if sum.bill.dollars.is_some() { dollars(sort.dollars) } else { "-".into() },
            percent(sort.cost, sum.lost_cost),
            sort.name,
            if sort.ours == sort.count { " (the agent's doing)" } else { "" },
        );
    }
}

fn losses(out: &mut String, audits: &[Audit], top: usize, all: usize) {
    if top == 0 {
        return;
    }
    let _ = writeln!(out, "\n{:>7}  {:<20}  {:>9}  {:>9}  cause", "request", "at", "tokens", "dollars");
    let several = audits.len() > 1;
    let shown = dearest(audits, top);
    for (audit, loss) in &shown {
        let _ = writeln!(
            out,
            "{:>7}  {:<20}  {:>9}  {:>9}  {}{}",
            loss.request,
            rfc3339(loss.at).split('.').next().unwrap_or_default().trim_end_matches('Z'),
            number(loss.tokens),
            loss.dollars.map_or_else(|| "-".into(), dollars),
            loss.why.words(),
            if several { format!(" · {}", audit.file) } else { String::new() },
        );
    }
    if all > shown.len() {
        let _ = writeln!(out, "and {} more (--top {all} shows all)", all - shown.len());
    }
}

fn notes(out: &mut String, audits: &[Audit]) {
    let mut unpriced: Vec<&str> =
        audits.iter().flat_map(|audit| &audit.unpriced).map(|model| &**model).collect();
    unpriced.sort_unstable();
    unpriced.dedup();
    if !unpriced.is_empty() {
        let _ = writeln!(out, "\nNo price is known of {}: not in the dollars.", unpriced.join(", "));
    }
    let problems: usize = audits.iter().map(|audit| audit.problems).sum();
    if problems > 0 {
        let _ = writeln!(out, "\n{} lines could not be read, or not in full.", number(problems as u64));
    }
}
