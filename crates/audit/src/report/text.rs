//! [`summary`]: audits as text for a terminal.

use std::fmt::Write as _;

use crate::Audit;
use crate::report::{ReportTotals, costliest_losses, dollars, loss_categories, percent, pluralize, rfc3339};
use hardpan_economy::format::format_number;

/// How many sessions are listed, the most expensive first.
const SESSIONS: usize = 10;

/// What was paid, what a stable prefix would have paid, and the `top` most expensive losses.
///
/// Names of files and models are untrusted text: the caller must remove control characters before
/// printing.
pub fn summary(audits: &[Audit], top: usize) -> String {
    let totals = ReportTotals::from_audits(audits);
    let mut out = String::new();
    write_totals(&mut out, audits, &totals);
    if audits.len() > 1 {
        write_sessions(&mut out, audits);
    }
    if totals.losses > 0 {
        write_causes(&mut out, audits, &totals);
        write_losses(&mut out, audits, top, totals.losses);
    }
    write_notes(&mut out, audits);
    out
}

fn write_totals(out: &mut String, audits: &[Audit], totals: &ReportTotals) {
    let tokens = totals.bill.tokens;
    let prompt = tokens.prompt();
    let what = match audits {
        [one] => format!("{} ({})", one.file, one.agent.name()),
        all => format!("{} sessions", format_number(all.len() as u64)),
    };
    let priced =
        |amount: f64| totals.bill.dollars.map_or_else(String::new, |_| format!(", {}", dollars(amount)));
    let share = |part: u64| percent(part as f64, prompt as f64);
    let written = tokens.cache_written();
    let side = if totals.side_cost > 0.0 {
        format!(
            "of it side   {:>15} units{}: {}\n",
            format_number(totals.side_cost.round() as u64),
            priced(totals.side_dollars),
            side_purposes(audits)
        )
    } else {
        String::new()
    };
    let _ = write!(
        out,
        "{what}: {}\n\n\
         input        {:>15} tokens: {} read from the cache, {} written to it, {} neither\n\
         paid         {:>15} input-token units{}\n\
         {side}\
         stable       {:>15} units ({} of what was paid{}): every request only adds to the one before\n\
         lost         {:>15} tokens in {}{}: paid again although they had been cached\n\
         foretold     {:>15} of the requests rightly, hit or loss\n",
        pluralize(totals.requests, "billed request"),
        format_number(prompt),
        share(tokens.cache_read),
        share(written),
        share(tokens.input),
        format_number(totals.bill.cost.round() as u64),
        priced(totals.bill.dollars.unwrap_or(0.0)),
        format_number(totals.stable_cost.round() as u64),
        percent(totals.stable_cost, totals.bill.cost),
        priced(totals.stable_dollars),
        format_number(totals.lost_tokens),
        pluralize(totals.losses, "request"),
        priced(totals.lost_dollars),
        percent(totals.right as f64, totals.requests as f64),
    );
}

/// What the side requests were for, as far as it is recorded.
fn side_purposes(audits: &[Audit]) -> String {
    let sides = audits.iter().flat_map(|audit| &audit.side_requests);
    let mut purposes: Vec<&str> = sides.flat_map(|side| &side.purposes).map(|purpose| &**purpose).collect();
    purposes.sort_unstable();
    purposes.dedup();
    match purposes.is_empty() {
        true => "requests of which only the sum is recorded".into(),
        false => format!("requests of which only the sum is recorded ({})", purposes.join(", ")),
    }
}

fn write_sessions(out: &mut String, audits: &[Audit]) {
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
            format_number(audit.billed.cost.round() as u64),
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

fn write_causes(out: &mut String, audits: &[Audit], totals: &ReportTotals) {
    let _ = writeln!(out, "\n{:>6}  {:>13}  {:>9}  {:>6}  why", "losses", "tokens", "dollars", "share");
    for category in loss_categories(audits) {
        let _ = writeln!(
            out,
            "{:>6}  {:>13}  {:>9}  {:>6}  {}{}",
            category.count,
            format_number(category.tokens),
            if totals.bill.dollars.is_some() { dollars(category.dollars) } else { "-".into() },
            percent(category.cost, totals.lost_cost),
            category.name,
            if category.ours == category.count { " (the agent's doing)" } else { "" },
        );
    }
}

fn write_losses(out: &mut String, audits: &[Audit], top: usize, all: usize) {
    if top == 0 {
        return;
    }
    let _ = writeln!(out, "\n{:>7}  {:<20}  {:>9}  {:>9}  cause", "request", "at", "tokens", "dollars");
    let several = audits.len() > 1;
    let shown = costliest_losses(audits, top);
    for (audit, loss) in &shown {
        let _ = writeln!(
            out,
            "{:>7}  {:<20}  {:>9}  {:>9}  {} ({}){}",
            loss.request,
            rfc3339(loss.at).split('.').next().unwrap_or_default().trim_end_matches('Z'),
            format_number(loss.tokens),
            loss.dollars.map_or_else(|| "-".into(), dollars),
            loss.cause.describe(),
            loss.source.describe(),
            if several { format!(" · {}", audit.file) } else { String::new() },
        );
    }
    if all > shown.len() {
        let _ = writeln!(out, "and {} more (--top {all} shows all)", all - shown.len());
    }
}

fn write_notes(out: &mut String, audits: &[Audit]) {
    let mut unpriced: Vec<&str> =
        audits.iter().flat_map(|audit| &audit.unpriced).map(|model| &**model).collect();
    unpriced.sort_unstable();
    unpriced.dedup();
    if !unpriced.is_empty() {
        let _ = writeln!(out, "\nNo price is known of {}: not in the dollars.", unpriced.join(", "));
    }
    let recorded = audits.iter().filter_map(|audit| Some((audit.recorded_dollars?, audit.total_dollars?)));
    let (count, told, ours) = recorded.fold((0, 0.0, 0.0), |(count, told, ours), (more_told, more_ours)| {
        (count + 1, told + more_told, ours + more_ours)
    });
    if count > 0 {
        let _ = writeln!(
            out,
            "\nAnswers included, {} {} a total of {}; at list prices it is {}.",
            pluralize(count, "recording"),
            if count == 1 { "gives" } else { "give" },
            dollars(told),
            dollars(ours)
        );
    }
    let problems: usize = audits.iter().map(|audit| audit.problems).sum();
    if problems > 0 {
        let _ =
            writeln!(out, "\n{} lines could not be read, or not in full.", format_number(problems as u64));
    }
}
