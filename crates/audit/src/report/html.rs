//! [`page`]: audits as one self-contained HTML page without scripts, light or dark as the reader's
//! system is.

use std::fmt::Write as _;

use crate::report::plot::Plot;
use crate::report::{ReportTotals, dollars, loss_categories, percent, pluralize, rfc3339};
use crate::{Audit, Loss};
use hardpan_economy::format::format_number;

/// Allows nothing but the page's own style: names in a session are untrusted text.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// How many sessions get plots, the most expensive first. All are in the table.
const DRAWN: usize = 40;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #ddd; --quiet: #666; --paid: #36c; --stable: #2a8a4a; --loss: #c33; --back: #fff; --text: #1a1a1a; }
@media (prefers-color-scheme: dark) { :root { --line: #3a3a3a; --quiet: #a0a0a0; --paid: #7aa7ff; --stable: #6fd08c; --loss: #ff7b72; --back: #161616; --text: #e8e8e8; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; background: var(--back); color: var(--text); }
h1 { font-size: 1.5rem; } h2 { font-size: 1.2rem; margin-top: 2.5rem; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.5rem 0; padding: 0; list-style: none; }
.figures b { display: block; font-size: 1.5rem; } .figures span, .quiet, figcaption { color: var(--quiet); font-size: .9rem; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; } svg text { fill: var(--quiet); font-size: 12px; }
.grid { stroke: var(--line); } polyline { fill: none; stroke-width: 1.8; } .paid { stroke: var(--paid); } .stable { stroke: var(--stable); stroke-dasharray: 6 3; }
.loss line { stroke: var(--loss); stroke-opacity: .35; } .loss circle { fill: var(--loss); }
.key { display: inline-block; width: 1.6rem; border-top: 3px solid; vertical-align: middle; } .key.paid { border-color: var(--paid); } .key.stable { border-color: var(--stable); } .key.lost { border-color: var(--loss); }
details { margin: 1rem 0; } summary { cursor: pointer; }
";

/// The page of these audits. The table of each session has at most `top` losses.
pub fn page(audits: &[Audit], top: usize) -> String {
    let title = match audits {
        [one] => format!("The bill of {}", escape(&one.file)),
        all => format!("The bill of {} sessions", all.len()),
    };
    let mut dear: Vec<&Audit> = audits.iter().collect();
    dear.sort_by(|a, b| b.billed.cost.total_cmp(&a.billed.cost).then(a.file.cmp(&b.file)));
    let mut body = figures(&ReportTotals::from_audits(audits));
    body += &causes(audits);
    if audits.len() > 1 {
        body += &list(&dear);
    }
    dear.iter().take(DRAWN).for_each(|audit| body += &session(audit, top));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\
         <p class=\"quiet\">Costs are in units of one uncached input token of the model, answers left out; dollars are at list \
         prices. A stable prefix is that of an agent whose every request only adds to the one before.</p>\n</body>\n</html>\n"
    )
}

fn figures(totals: &ReportTotals) -> String {
    let money =
        |amount: f64| totals.bill.dollars.map_or_else(String::new, |_| format!(" · {}", dollars(amount)));
    let units = |cost: f64| format_number(cost.round() as u64);
    let tokens = totals.bill.tokens;
    let side = (totals.side_cost > 0.0).then(|| {
        (units(totals.side_cost), format!("of that for side requests{}", money(totals.side_dollars)))
    });
    let rows = [
        (format_number(totals.requests as u64), "billed requests".to_owned()),
        (units(totals.bill.cost), format!("units paid{}", money(totals.bill.dollars.unwrap_or(0.0)))),
        (
            percent(totals.stable_cost, totals.bill.cost),
            format!("of that with a stable prefix{}", money(totals.stable_dollars)),
        ),
        (
            percent(tokens.cache_read as f64, tokens.prompt() as f64),
            "of the input read from the cache".to_owned(),
        ),
        (
            format_number(totals.lost_tokens),
            format!(
                "tokens paid again in {}{}",
                pluralize(totals.losses, "request"),
                money(totals.lost_dollars)
            ),
        ),
    ];
    let items: String = rows
        .iter()
        .chain(&side)
        .map(|(figure, what)| format!("<li><b>{figure}</b><span>{what}</span></li>\n"))
        .collect();
    format!("<ul class=\"figures\">\n{items}</ul>\n")
}

fn causes(audits: &[Audit]) -> String {
    let loss_categories = loss_categories(audits);
    if loss_categories.is_empty() {
        return "<p>Nothing was paid again.</p>\n".into();
    }
    let whole: f64 = loss_categories.iter().map(|category| category.cost).sum();
    let rows: String = loss_categories
        .iter()
        .map(|category| {
            format!(
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                escape(category.name),
                category.count,
                format_number(category.tokens),
                dollars(category.dollars),
                percent(category.cost, whole)
            )
        })
        .collect();
    format!(
        "<h2>Why it was paid again</h2>\n<table><tr><th>cause</th><th class=\"n\">losses</th><th class=\"n\">tokens</th>\
         <th class=\"n\">dollars</th><th class=\"n\">share</th></tr>\n{rows}</table>\n"
    )
}

fn list(dear: &[&Audit]) -> String {
    let rows: String = dear
        .iter()
        .map(|audit| {
            format!(
                "<tr><td>{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                escape(&audit.file),
                audit.agent.name(),
                audit.requests.len(),
                audit.billed.dollars.map_or_else(|| "-".into(), dollars),
                percent(audit.stable_prefix_cost, audit.billed.cost),
                audit.losses.len()
            )
        })
        .collect();
    format!(
        "<h2>Sessions</h2>\n<table><tr><th>file</th><th>agent</th><th class=\"n\">requests</th><th class=\"n\">dollars</th>\
         <th class=\"n\">stable</th><th class=\"n\">losses</th></tr>\n{rows}</table>\n"
    )
}

fn session(audit: &Audit, top: usize) -> String {
    let mut out =
        format!("<h2>{} <span class=\"quiet\">{}</span></h2>\n", escape(&audit.file), audit.agent.name());
    if let (Some(first), Some(last)) = (audit.requests.first(), audit.requests.last()) {
        let _ = writeln!(
            out,
            "<p class=\"quiet\">{} requests from {} to {}. <span class=\"key paid\"></span> as it was \
             <span class=\"key stable\"></span> with a stable prefix <span class=\"key lost\"></span> a loss</p>",
            audit.requests.len(),
            rfc3339(first.at),
            rfc3339(last.at)
        );
    }
    out += &plots(audit);
    out + &losses(&audit.losses_by_cost(), top)
}

fn plots(audit: &Audit) -> String {
    let requests = &audit.requests;
    let marks: Vec<(usize, String)> =
        audit.losses.iter().map(|loss| (loss.request, escape(&sentence(loss)))).collect();
    // One average price for the whole session keeps both curves comparable.
    let unit =
        audit.billed.dollars.filter(|_| audit.billed.cost > 0.0).map(|dollars| dollars / audit.billed.cost);
    let sums = |cost: &dyn Fn(&crate::AuditedRequest) -> f64| -> Vec<f64> {
        let mut totals = 0.0;
        requests
            .iter()
            .map(|request| {
                totals += cost(request) * unit.unwrap_or(1.0);
                totals
            })
            .collect()
    };
    let costs =
        [("paid", sums(&|request| request.bill.cost)), ("stable", sums(&|request| request.stable_cost))];
    let money = |value: f64| if unit.is_some() { dollars(value) } else { short(value) };
    let shares = |request: &crate::AuditedRequest| {
        let tokens = request.bill.tokens;
        100.0 * tokens.cache_read as f64 / tokens.prompt().max(1) as f64
    };
    let rates = [("paid", requests.iter().map(shares).collect())];
    let sizes = [("paid", requests.iter().map(|request| request.bill.tokens.prompt() as f64).collect())];
    let rate = |value: f64| format!("{value:.0}%");
    [
        Plot { title: "Cost so far", curves: &costs, top: None, unit: &money, marks: &marks },
        Plot {
            title: "Share of the input read from the cache",
            curves: &rates,
            top: Some(100.0),
            unit: &rate,
            marks: &marks,
        },
        Plot {
            title: "Size of the context, in tokens",
            curves: &sizes,
            top: None,
            unit: &short,
            marks: &marks,
        },
    ]
    .iter()
    .map(Plot::svg)
    .collect()
}

fn losses(ranked: &[&Loss], top: usize) -> String {
    if ranked.is_empty() {
        return "<p>Nothing was paid again.</p>\n".into();
    }
    let rows: String = ranked
        .iter()
        .take(top)
        .map(|loss| {
            format!(
                "<tr><td class=\"n\">{}</td><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td>{}</td></tr>\n",
                loss.request,
                rfc3339(loss.at),
                format_number(loss.tokens),
                loss.dollars.map_or_else(|| "-".into(), dollars),
                escape(&format!("{} ({})", loss.cause.describe(), loss.source.describe()))
            )
        })
        .collect();
    let more = ranked.len().saturating_sub(top);
    let more = if more > 0 { format!("<p class=\"quiet\">and {more} more</p>\n") } else { String::new() };
    format!(
        "<details open><summary>{}, the dearest first</summary>\n<table><tr><th class=\"n\">request</th><th>at</th>\
         <th class=\"n\">tokens</th><th class=\"n\">dollars</th><th>cause</th></tr>\n{rows}</table>\n{more}</details>\n",
        if ranked.len() == 1 { "1 loss".into() } else { format!("{} losses", ranked.len()) }
    )
}

fn sentence(loss: &Loss) -> String {
    format!("request {}: {} tokens, {}", loss.request, format_number(loss.tokens), loss.cause.describe())
}

/// A short number: `120k`, `1.5M`.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", (value / 1e4).round() / 100.0),
        value if value >= 1e3 => format!("{}k", (value / 1e2).round() / 10.0),
        value => format!("{value:.0}"),
    }
}

/// Escapes markup and replaces control characters, also those that change the direction of writing.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // The listed ones change the direction of writing.
            c if c.is_control()
                || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                out.push('\u{fffd}');
            }
            c => out.push(c),
        }
    }
    out
}
