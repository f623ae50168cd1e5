//! [`summary`]: audits as text for a terminal. Dollars come first, then their causes with what to do
//! about each, then the details and the words.

use std::fmt::Write as _;

use crate::Audit;
use crate::report::{
    CauseGroup, ReportTotals, cause_groups, costliest_losses, percent, pluralize, rfc3339, share_of_bill,
};
use hardpan_economy::format::{format_dollars, format_number};

/// How many sessions are listed, the most expensive first.
const SESSIONS: usize = 10;

/// The words of an audit, and what they mean.
pub(super) const WORDS: [(&str, &str); 6] = [
    (
        "paid again",
        "text that the provider had in its cache, or should have had, at more than the price of reading it",
    ),
    (
        "read, written",
        "input that came from the provider's cache, at about a tenth of the price, or was stored in it",
    ),
    ("stable", "what the prompts would have cost if every request had only added to the one before"),
    ("recorded", "certain: the agent itself wrote down why, when it happened"),
    ("compared", "certain: the recording holds both requests, and they differ there"),
    ("inferred", "likely: concluded from times, sizes and the conversation"),
];

/// What was paid, what was paid again and why, and the `top` most expensive losses.
///
/// Names of files and models are untrusted text: the caller must remove control characters before
/// printing.
pub fn summary(audits: &[Audit], top: usize) -> String {
    let totals = ReportTotals::from_audits(audits);
    let mut out = String::new();
    write_money(&mut out, audits, &totals);
    if totals.losses > 0 {
        write_causes(&mut out, audits, &totals);
    }
    if audits.len() > 1 {
        write_sessions(&mut out, audits);
    }
    if totals.losses > 0 {
        write_losses(&mut out, audits, top, totals.losses);
    }
    write_details(&mut out, &totals);
    write_notes(&mut out, audits);
    write_words(&mut out);
    out
}

fn write_money(out: &mut String, audits: &[Audit], totals: &ReportTotals) {
    let what = match audits {
        [one] => format!("{} ({})", one.file, one.agent.name()),
        all => format!("{} sessions", format_number(all.len() as u64)),
    };
    let paid = totals.total_dollars().map_or_else(|| "no price is known".into(), format_dollars);
    let priced = |amount: Option<f64>| amount.map_or_else(|| "-".into(), format_dollars);
    let tokens = totals.bill.tokens;
    let share = |part: u64| percent(part as f64, tokens.prompt() as f64);
    let mut line = |name: &str, dollars: Option<f64>, tokens: u64, says: String| {
        let _ =
            writeln!(out, "{name:<11} {:>9}  {:>13} tokens  {says}", priced(dollars), format_number(tokens));
    };
    let mut lines = vec![
        (
            "prompts",
            totals.bill.dollars,
            tokens.prompt(),
            format!(
                "{} read from the cache, {} written to it, {} neither",
                share(tokens.cache_read),
                share(tokens.cache_written()),
                share(tokens.input)
            ),
        ),
        ("answers", totals.answer_dollars(), tokens.output, "reasoning included".to_owned()),
        (
            "paid again",
            totals.bill.dollars.map(|_| totals.lost_dollars),
            totals.lost_tokens,
            format!("{} of the bill, in {}", share_of_bill(totals), pluralize(totals.losses, "request")),
        ),
    ];
    if totals.side_cost > 0.0 {
        let side = totals.bill.dollars.map(|_| totals.side_dollars);
        lines.push(("of it side", side, totals.side_tokens, side_purposes(audits)));
    }
    let head = format!("{what}: {paid} for {}\n\n", pluralize(totals.requests, "billed request"));
    lines.into_iter().for_each(|(name, dollars, tokens, says)| line(name, dollars, tokens, says));
    out.insert_str(0, &head);
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

fn write_causes(out: &mut String, audits: &[Audit], totals: &ReportTotals) {
    let _ = writeln!(out, "\nWhy it was paid again, the dearest first:");
    for CauseGroup { name, advice, count, tokens, cost, dollars, certainty, avoidable_by } in
        cause_groups(audits)
    {
        let price = if totals.bill.dollars.is_some() { format_dollars(dollars) } else { "-".into() };
        let share = percent(cost, totals.lost_cost);
        let (times, tokens) = (format!("{count}×"), format_number(tokens));
        let _ = writeln!(out, "\n{price:>9}  {share:>6}  {times:>5}  {name}");
        let _ = writeln!(out, "{:26}{tokens} tokens · {certainty} · {}", "", avoidable_by.describe());
        if !advice.is_empty() {
            let _ = writeln!(out, "{:26}do: {advice}", "");
        }
    }
}

fn write_sessions(out: &mut String, audits: &[Audit]) {
    let mut dear: Vec<&Audit> = audits.iter().collect();
    dear.sort_by(|a, b| b.billed.cost.total_cmp(&a.billed.cost).then(a.file.cmp(&b.file)));
    let _ = writeln!(
        out,
        "\n{:>9}  {:>10}  {:>8}  {:>6}  session",
        "dollars", "paid again", "requests", "stable"
    );
    for audit in dear.iter().take(SESSIONS) {
        let lost: f64 = audit.losses.iter().filter_map(|loss| loss.dollars).sum();
        let priced = |amount: Option<f64>| amount.map_or_else(|| "-".into(), format_dollars);
        let _ = writeln!(
            out,
            "{:>9}  {:>10}  {:>8}  {:>6}  {} ({})",
            priced(audit.total_dollars),
            priced(audit.billed.dollars.map(|_| lost)),
            audit.requests.len(),
            percent(audit.stable_prefix_cost, audit.billed.cost),
            audit.file,
            audit.agent.name(),
        );
    }
    if dear.len() > SESSIONS {
        let _ = writeln!(out, "and {} more (--json has all)", dear.len() - SESSIONS);
    }
}

fn write_losses(out: &mut String, audits: &[Audit], top: usize, all: usize) {
    if top == 0 {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:>9}  {:>9}  {:>7}  {:<20}  {:<9}  cause",
        "dollars", "tokens", "request", "at", "certainty"
    );
    let several = audits.len() > 1;
    let shown = costliest_losses(audits, top);
    for (audit, loss) in &shown {
        let _ = writeln!(
            out,
            "{:>9}  {:>9}  {:>7}  {:<20}  {:<9}  {}{}",
            loss.dollars.map_or_else(|| "-".into(), format_dollars),
            format_number(loss.tokens),
            loss.request,
            rfc3339(loss.at).split('.').next().unwrap_or_default().trim_end_matches('Z'),
            loss.source.certainty(),
            loss.cause.describe(),
            if several { format!(" · {}", audit.file) } else { String::new() },
        );
    }
    if all > shown.len() {
        let _ = writeln!(out, "and {} more (--top {all} shows all)", all - shown.len());
    }
}

/// What compares agents and layouts: independent of the models' prices.
fn write_details(out: &mut String, totals: &ReportTotals) {
    let stable = match totals.bill.dollars {
        Some(_) => format!(", {}", format_dollars(totals.stable_dollars)),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "\nIn prices of one uncached input token: {} paid for prompts; stable {} ({} of that{stable}).\n\
         The audit foretold {} of the requests rightly, hit or loss.",
        format_number(totals.bill.cost.round() as u64),
        format_number(totals.stable_cost.round() as u64),
        percent(totals.stable_cost, totals.bill.cost),
        percent(totals.right as f64, totals.requests as f64),
    );
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
            "\n{} {} a total of {}; at list prices it is {}.",
            pluralize(count, "recording"),
            if count == 1 { "gives" } else { "give" },
            format_dollars(told),
            format_dollars(ours)
        );
    }
    let problems: usize = audits.iter().map(|audit| audit.problems).sum();
    if problems > 0 {
        let _ =
            writeln!(out, "\n{} lines could not be read, or not in full.", format_number(problems as u64));
    }
}

fn write_words(out: &mut String) {
    out.push_str("\nWords:\n");
    for (word, meaning) in WORDS {
        let _ = writeln!(out, "  {word:<13}  {meaning}");
    }
}
