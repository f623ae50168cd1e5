//! One page, complete in itself: no scripts, nothing loaded, light or dark as the reader's system is.

use std::fmt::Write as _;

use crate::report::plot::Plot;
use crate::report::{Sum, counted, dollars, percent, rfc3339, sorts};
use crate::{Audit, Loss};
use hardpan_economy::words::number;

/// Nothing but the page's own style may be used: names in a session are foreign text.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// So many sessions are drawn, the dearest first; all are in the table.
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

/// The page of these audits; each session's table has at most `top` losses.
pub fn page(audits: &[Audit], top: usize) -> String {
    let title = match audits {
        [one] => format!("The bill of {}", escape(&one.file)),
        all => format!("The bill of {} sessions", all.len()),
    };
    let mut dear: Vec<&Audit> = audits.iter().collect();
    dear.sort_by(|a, b| b.billed.cost.total_cmp(&a.billed.cost).then(a.file.cmp(&b.file)));
    let mut body = figures(&Sum::of(audits));
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

fn figures(sum: &Sum) -> String {
    let money =
        |amount: f64| sum.bill.dollars.map_or_else(String::new, |_| format!(" · {}", dollars(amount)));
    let units = |cost: f64| number(cost.round() as u64);
    let tokens = sum.bill.tokens;
    let rows = [
        (number(sum.requests as u64), "billed requests".to_owned()),
        (units(sum.bill.cost), format!("units paid{}", money(sum.bill.dollars.unwrap_or(0.0)))),
        (
            percent(sum.stable_cost, sum.bill.cost),
            format!("of that with a stable prefix{}", money(sum.stable_dollars)),
        ),
        (percent(tokens.read as f64, tokens.prompt() as f64), "of the input read from the cache".to_owned()),
        (
            number(sum.lost_tokens),
            format!("tokens paid again in {}{}", counted(sum.losses, "request"), money(sum.lost_dollars)),
        ),
    ];
    let items: String =
        rows.iter().map(|(figure, what)| format!("<li><b>{figure}</b><span>{what}</span></li>\n")).collect();
    format!("<ul class=\"figures\">\n{items}</ul>\n")
}

fn causes(audits: &[Audit]) -> String {
    let sorts = sorts(audits);
    if sorts.is_empty() {
        return "<p>Nothing was paid again.</p>\n".into();
    }
    let whole: f64 = sorts.iter().map(|sort| sort.cost).sum();
    let rows: String = sorts
        .iter()
        .map(|sort| {
            format!(
                "<tr><td>{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td><td class=\"n\">{}</td></tr>\n",
                escape(sort.name),
                sort.count,
                number(sort.tokens),
                dollars(sort.dollars),
                percent(sort.cost, whole)
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
    out + &losses(&audit.ranked(), top)
}

fn plots(audit: &Audit) -> String {
    let requests = &audit.requests;
    let marks: Vec<(usize, String)> =
        audit.losses.iter().map(|loss| (loss.request, escape(&sentence(loss)))).collect();
    // One price for the whole session keeps both curves comparable; models of a session mostly cost alike.
    let unit =
        audit.billed.dollars.filter(|_| audit.billed.cost > 0.0).map(|dollars| dollars / audit.billed.cost);
    let sums = |cost: &dyn Fn(&crate::Judged) -> f64| -> Vec<f64> {
        let mut sum = 0.0;
        requests
            .iter()
            .map(|request| {
                sum += cost(request) * unit.unwrap_or(1.0);
                sum
            })
            .collect()
    };
    let costs =
        [("paid", sums(&|request| request.bill.cost)), ("stable", sums(&|request| request.stable_cost))];
    let money = |value: f64| if unit.is_some() { dollars(value) } else { short(value) };
    let shares = |request: &crate::Judged| {
        let tokens = request.bill.tokens;
        100.0 * tokens.read as f64 / tokens.prompt().max(1) as f64
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
                number(loss.tokens),
                loss.dollars.map_or_else(|| "-".into(), dollars),
                escape(&loss.why.words())
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
    format!("request {}: {} tokens, {}", loss.request, number(loss.tokens), loss.why.words())
}

/// `120k`, `1.5M`.
fn short(value: f64) -> String {
    match value {
        value if value >= 1e6 => format!("{}M", (value / 1e4).round() / 100.0),
        value if value >= 1e3 => format!("{}k", (value / 1e2).round() / 10.0),
        value => format!("{value:.0}"),
    }
}

/// Text as text: nothing of it is markup, and no control character is left.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // The last ones turn the direction of writing.
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
