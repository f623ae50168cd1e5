//! [`page`]: audits as one self-contained HTML page without scripts, light or dark as the reader's
//! system is.

use std::fmt::Write as _;

use crate::report::plot::Plot;
use crate::report::text::WORDS;
use crate::report::{CauseGroup, ReportTotals, cause_groups, percent, pluralize, rfc3339, share_of_bill};
use crate::{Audit, Loss};
use hardpan_economy::format::{format_dollars, format_number, format_short_number};

/// Allows nothing but the page's own style: names in a session are untrusted text.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// How many sessions get plots, the most expensive first. All are in the table.
const DRAWN: usize = 40;

const STYLE: &str = "
:root { color-scheme: light dark; --line: #ddd; --quiet: #666; --paid: #36c; --stable: #2a8a4a; --loss: #c33; --back: #fff; --text: #1a1a1a; }
@media (prefers-color-scheme: dark) { :root { --line: #3a3a3a; --quiet: #a0a0a0; --paid: #7aa7ff; --stable: #6fd08c; --loss: #ff7b72; --back: #161616; --text: #e8e8e8; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; background: var(--back); color: var(--text); }
h1 { font-size: 1.5rem; overflow-wrap: anywhere; } h2 { font-size: 1.2rem; margin-top: 2.5rem; overflow-wrap: anywhere; }
.figures { display: flex; flex-wrap: wrap; gap: 1rem 2.5rem; margin: 1.5rem 0; padding: 0; list-style: none; }
.figures b { display: block; font-size: 1.5rem; } .figures span, .quiet, figcaption { color: var(--quiet); font-size: .9rem; }
.wide { overflow-x: auto; } table { border-collapse: collapse; width: 100%; font-size: .9rem; } th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1rem 0; } svg { width: 100%; height: auto; } svg text { fill: var(--quiet); font-size: 12px; }
.grid { stroke: var(--line); } polyline { fill: none; stroke-width: 1.8; } .paid { stroke: var(--paid); } .stable { stroke: var(--stable); stroke-dasharray: 6 3; }
.loss line { stroke: var(--loss); stroke-opacity: .35; } .loss circle { fill: var(--loss); }
.key { display: inline-block; width: 1.6rem; border-top: 3px solid; vertical-align: middle; } .key.paid { border-color: var(--paid); } .key.stable { border-color: var(--stable); } .key.lost { border-color: var(--loss); }
details { margin: 1rem 0; } summary { cursor: pointer; } dt { font-weight: bold; } dd { margin: 0 0 .4rem 1rem; }
.cause { border-left: 3px solid var(--loss); padding-left: .8rem; margin: 1rem 0; overflow-wrap: anywhere; } .cause p { margin: .2rem 0; }
@media (max-width: 40rem) {
body { margin: 1rem auto; padding: 0 .6rem; } .figures { gap: .6rem 1.2rem; } .figures b { font-size: 1.2rem; }
.wide tr:first-child { display: none; } .wide table, .wide tbody, .wide tr, .wide td { display: block; width: auto; }
.wide tr { border-bottom: 1px solid var(--line); padding: .4rem 0; } .wide td, .wide td.n { border: 0; padding: 0; text-align: left; white-space: normal; }
.wide td::before { content: attr(data-name) \" \"; color: var(--quiet); }
svg text { font-size: 26px; }
}
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
    let words = words();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{POLICY}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <style>{STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{body}\
         {words}</body>\n</html>\n"
    )
}

fn figures(totals: &ReportTotals) -> String {
    let priced = |amount: Option<f64>| amount.map_or_else(|| "-".into(), format_dollars);
    let tokens = totals.bill.tokens;
    let side = (totals.side_cost > 0.0).then(|| {
        let dollars = priced(totals.bill.dollars.map(|_| totals.side_dollars));
        (dollars, "of that for side requests".to_owned())
    });
    let rows = [
        (
            priced(totals.total_dollars()),
            format!("paid for {}, answers included", pluralize(totals.requests, "request")),
        ),
        (
            priced(totals.bill.dollars.map(|_| totals.lost_dollars)),
            format!(
                "of that paid again ({}), in {}",
                share_of_bill(totals),
                pluralize(totals.losses, "request")
            ),
        ),
        (
            priced(totals.bill.dollars.map(|_| totals.stable_dollars)),
            format!(
                "for prompts with a stable prefix ({} of what they cost)",
                percent(totals.stable_cost, totals.bill.cost)
            ),
        ),
        (
            percent(tokens.cache_read as f64, tokens.prompt() as f64),
            format!("of {} input tokens read from the cache", format_number(tokens.prompt())),
        ),
        (format_number(tokens.output), format!("output tokens, {}", priced(totals.answer_dollars()))),
    ];
    let items: String = rows
        .iter()
        .chain(&side)
        .map(|(figure, what)| format!("<li><b>{figure}</b><span>{what}</span></li>\n"))
        .collect();
    format!("<ul class=\"figures\">\n{items}</ul>\n")
}

/// The causes, with what to do about each.
fn causes(audits: &[Audit]) -> String {
    let groups = cause_groups(audits);
    if groups.is_empty() {
        return "<p>Nothing was paid again.</p>\n".into();
    }
    let whole: f64 = groups.iter().map(|group| group.cost).sum();
    let block = |group: &CauseGroup| {
        let CauseGroup { name, advice, count, tokens, cost, dollars, certainty, avoidable_by } = group;
        let advice =
            if advice.is_empty() { String::new() } else { format!("<p>Do: {}.</p>", escape(advice)) };
        format!(
            "<div class=\"cause\"><p><b>{}</b> ({}) · {}</p>\n<p class=\"quiet\">{count} times · {} tokens · {} · {}</p>{advice}</div>\n",
            format_dollars(*dollars),
            percent(*cost, whole),
            escape(name),
            format_number(*tokens),
            escape(certainty),
            avoidable_by.describe(),
        )
    };
    format!(
        "<h2>Why it was paid again, and what to do</h2>\n{}",
        groups.iter().map(block).collect::<String>()
    )
}

fn words() -> String {
    let rows = WORDS.iter().map(|(word, meaning)| format!("<dt>{word}</dt><dd>{meaning}</dd>\n"));
    format!("<h2>Words</h2>\n<dl>\n{}</dl>\n", rows.collect::<String>())
}

/// A table whose columns have a name and an alignment. On a narrow screen each row becomes a block in
/// which every cell names its column.
fn table(columns: &[(&str, bool)], rows: &[Vec<String>]) -> String {
    let class = |is_number: bool| if is_number { " class=\"n\"" } else { "" };
    let head = columns.iter().map(|(name, is_number)| format!("<th{}>{name}</th>", class(*is_number)));
    let row = |cells: &Vec<String>| {
        let cells = columns.iter().zip(cells).map(|((name, is_number), cell)| {
            format!("<td{} data-name=\"{name}\">{}</td>", class(*is_number), escape(cell))
        });
        format!("<tr>{}</tr>\n", cells.collect::<String>())
    };
    format!(
        "<div class=\"wide\"><table><tr>{}</tr>\n{}</table></div>\n",
        head.collect::<String>(),
        rows.iter().map(row).collect::<String>()
    )
}

fn list(dear: &[&Audit]) -> String {
    let row = |audit: &&Audit| {
        vec![
            audit.file.clone(),
            audit.agent.name().to_owned(),
            audit.requests.len().to_string(),
            audit.total_dollars.map_or_else(|| "-".into(), format_dollars),
            percent(audit.stable_prefix_cost, audit.billed.cost),
            audit.losses.len().to_string(),
        ]
    };
    let columns = [
        ("file", false),
        ("agent", false),
        ("requests", true),
        ("dollars", true),
        ("stable", true),
        ("losses", true),
    ];
    format!("<h2>Sessions</h2>\n{}", table(&columns, &dear.iter().map(row).collect::<Vec<_>>()))
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
    let money = |value: f64| if unit.is_some() { format_dollars(value) } else { short(value) };
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
    let row = |loss: &&Loss| {
        vec![
            loss.request.to_string(),
            rfc3339(loss.at),
            format_number(loss.tokens),
            loss.dollars.map_or_else(|| "-".into(), format_dollars),
            loss.source.certainty().to_owned(),
            loss.cause.describe(),
        ]
    };
    let columns = [
        ("request", true),
        ("at", false),
        ("tokens", true),
        ("dollars", true),
        ("certainty", false),
        ("cause", false),
    ];
    let rows = table(&columns, &ranked.iter().take(top).map(row).collect::<Vec<_>>());
    let more = ranked.len().saturating_sub(top);
    let more = if more > 0 { format!("<p class=\"quiet\">and {more} more</p>\n") } else { String::new() };
    format!(
        "<details open><summary>{}, the dearest first</summary>\n{rows}{more}</details>\n",
        if ranked.len() == 1 { "1 loss".into() } else { format!("{} losses", ranked.len()) }
    )
}

fn sentence(loss: &Loss) -> String {
    format!("request {}: {} tokens, {}", loss.request, format_number(loss.tokens), loss.cause.describe())
}

/// A short number of tokens or units.
fn short(value: f64) -> String {
    format_short_number(value.max(0.0).round() as u64)
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
