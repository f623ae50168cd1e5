//! The tables that commands print: providers, the blocks of a request, and the breakdown of
//! the context.

use std::io::{self, IsTerminal};

use hardpan_context::{
    AssembledPrompt, Breakdown, FoldOutlook, InstructionCost, LifetimeOutlook, SESSION_REQUESTS,
};
use hardpan_prompt::{CacheLifetime, ItemKind, Omission};
use hardpan_providers::{HttpRequest, mask_url};
use hardpan_session::StoredContent;
use serde::Serialize;

use crate::chat::commands::pluralize;
use crate::origins::{BlockOrigins, PartOrigin};
use crate::output::{Align, Table, cut, dollars, safe, thousands};

/// The width to print tables in: that of the terminal. Elsewhere nothing is cut, whatever `COLUMNS` says.
pub fn width() -> usize {
    if io::stdout().is_terminal() { columns() } else { UNCUT }
}

/// The columns for what is wrapped and never cut: `COLUMNS` if set, else the terminal's, else 100.
pub fn columns() -> usize {
    let set = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let found = set.or_else(|| terminal_size::terminal_size().map(|(width, _)| usize::from(width.0)));
    found.filter(|columns| *columns >= 20).unwrap_or(100)
}

/// The width where standard output is no terminal: a program that reads a table wants all of it.
const UNCUT: usize = 10_000;

/// A row of `hardpan providers`.
#[derive(Serialize)]
pub struct ProviderRow<'a> {
    pub id: &'a str,
    pub base_url: String,
    pub key_env: String,
    pub key: &'static str,
}

/// The table of `hardpan providers`.
pub fn providers(rows: &[ProviderRow<'_>]) -> String {
    let mut table = Table::new(&[
        ("provider", Align::Left),
        ("key", Align::Left),
        ("variable", Align::Left),
        ("address", Align::Left),
    ]);
    for row in rows {
        table.row(vec![row.id.to_owned(), row.key.to_owned(), row.key_env.clone(), row.base_url.clone()]);
    }
    table.render(width())
}

/// What stands before the body of an HTTP request: method, address and headers, and an empty line.
pub fn http_head(http: &HttpRequest) -> String {
    let headers = http.headers.iter().map(|(name, value)| format!("{name}: {}\n", safe(value)));
    format!("{} {}\n{}\n", http.method.name(), safe(&mask_url(&http.url)), headers.collect::<String>())
}

/// What a stored message holds, as text.
pub fn stored_content(stored: &StoredContent) -> String {
    let mut text = stored.full_text();
    for image in &stored.images {
        let line_end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
        text.push_str(&format!("{line_end}[image, {}]\n", image.media_type.name()));
    }
    text
}

/// The first line of a view: model, layout, and how full the window is.
fn headline(breakdown: &Breakdown, provider: &str) -> String {
    let approximate = if breakdown.tokenizer.exact { "" } else { "about " };
    format!(
        "{}/{} · {} · {approximate}{} of {} tokens\n",
        safe(provider),
        safe(&breakdown.model),
        breakdown.layout,
        thousands(breakdown.total_tokens),
        thousands(breakdown.max_input_tokens),
    )
}

fn price_line(breakdown: &Breakdown) -> String {
    if !breakdown.price.known {
        return "price: unknown for this model (add it to models.json in the config folder)\n".to_owned();
    }
    let (cold, warm) = (dollars(breakdown.price.cold), dollars(breakdown.price.warm));
    format!("price of the input: {cold} cold, {warm} warm\n")
}

/// How the lifetime of cache entries was chosen, in a line; nothing as long as there is nothing to choose
/// by.
pub fn lifetime_line(breakdown: &Breakdown) -> String {
    let outlook = breakdown.cache_lifetime.filter(|it| !it.pauses.is_empty() || !it.setting.is_auto());
    let Some(LifetimeOutlook { setting, pauses, expected_pauses, break_even_pauses }) = outlook else {
        return String::new();
    };
    let long = CacheLifetime::OneHour.name();
    let kept = match breakdown.breakpoints.iter().rfind(|mark| mark.ttl == long) {
        Some(mark) => format!("{long} for the first {} tokens", thousands(mark.tokens)),
        None => CacheLifetime::FiveMinutes.name().to_owned(),
    };
    let counted = match pauses.bridged {
        1 => "1 pause that an hour bridges".to_owned(),
        count => format!("{count} pauses that an hour bridges"),
    };
    format!(
        "cache lifetime ({setting}): {kept}; {counted}, {expected_pauses} more expected, {break_even_pauses} needed\n"
    )
}

/// Where the next fold would begin, and what it would cost and save, in a line.
pub fn fold_line(breakdown: &Breakdown) -> String {
    let Some(FoldOutlook { kept_tokens, garbage_tokens, price, rent, saving }) = breakdown.next_fold else {
        return String::new();
    };
    let units = |units: f64| if units < 0.0 { "0".to_owned() } else { thousands(units as usize) };
    format!(
        "garbage: {} tokens after the first {}; a fold there costs {} units and saves {} with every request; {} are paid\n",
        thousands(garbage_tokens),
        thousands(kept_tokens),
        units(price),
        units(saving),
        units(rent),
    )
}

fn left_out(left_out: &[Omission], width: usize) -> String {
    const SHOWN: usize = 20;
    if left_out.is_empty() {
        return String::new();
    }
    let mut text = format!("left out ({}):\n", left_out.len());
    for entry in left_out.iter().take(SHOWN) {
        text.push_str(&cut(
            &format!("  {}: {}", safe(&entry.key.to_string()), safe(&entry.reason.to_string())),
            width,
        ));
        text.push('\n');
    }
    if left_out.len() > SHOWN {
        text.push_str(&format!("  … and {} more (--json lists them)\n", left_out.len() - SHOWN));
    }
    text
}

/// The table of `hardpan request`: one row per block.
pub fn request(
    assembled: &AssembledPrompt,
    breakdown: &Breakdown,
    provider: &str,
    addresses: &[String],
) -> String {
    let width = width();
    let mut table = Table::new(&[
        ("#", Align::Right),
        ("block", Align::Left),
        ("place", Align::Left),
        ("tokens", Align::Right),
        ("", Align::Left),
        ("from", Align::Left),
    ]);
    let origins = crate::origins::origins(assembled, addresses);
    for (index, BlockOrigins { block, region, tokens, parts, breakpoint }) in origins.iter().enumerate() {
        let marker = breakpoint.map_or_else(String::new, |lifetime| format!("◆ {}", lifetime.name()));
        let (place, tokens) = (region.name().to_owned(), thousands(*tokens));
        table.row(vec![index.to_string(), block.clone(), place, tokens, marker, describe(parts)]);
    }
    let breakpoints = match breakdown.breakpoints.len() {
        0 => "no breakpoints\n".to_owned(),
        n => format!(
            "◆ {n} breakpoints, the last after {} tokens\n",
            thousands(breakdown.breakpoints[n - 1].tokens)
        ),
    };
    let parts = [headline(breakdown, provider), table.render(width), breakpoints, price_line(breakdown)];
    parts.concat() + &left_out(&breakdown.left_out, width)
}

/// The origins of a block's parts. Rules of the layout are named only if there is nothing else.
fn describe(parts: &[PartOrigin]) -> String {
    let has_others = parts.iter().any(|part| !part.origin.is_rule());
    let named = parts.iter().filter(|part| !has_others || !part.origin.is_rule());
    let mut names: Vec<String> = named.map(|part| part.origin.to_string()).collect();
    names.dedup();
    match names.len() {
        0..=3 => names.join(", "),
        n => format!("{}, {}, … ({n} parts)", names[0], names[1]),
    }
}

/// What each file of instructions and each skill costs; nothing if there are none.
fn instructions(breakdown: &Breakdown, width: usize) -> String {
    if breakdown.instructions.is_empty() {
        return String::new();
    }
    let mut table = Table::new(&[
        ("tokens", Align::Right),
        ("first request", Align::Right),
        ("each later one", Align::Right),
        ("session", Align::Right),
        ("instructions", Align::Left),
    ]);
    let price = |amount: f64| if breakdown.price.known { dollars(amount) } else { "?".to_owned() };
    for InstructionCost { name, tokens, written, read, session } in &breakdown.instructions {
        table.row(vec![thousands(*tokens), price(*written), price(*read), price(*session), name.clone()]);
    }
    let note = format!(
        "a session: {SESSION_REQUESTS} requests; [conventions] in config.toml leaves any of these out\n"
    );
    table.render(width) + &note
}

/// What it would cost to tell the model of the skills of the home folder; nothing if there are none.
pub fn unlisted_skills(
    skills: &[hardpan_context::Skill],
    target: &hardpan_context::Target,
    breakdown: &Breakdown,
) -> String {
    if skills.is_empty() {
        return String::new();
    }
    let costs = InstructionCost::of_unlisted(skills, target, breakdown.total_tokens);
    let tokens: usize = costs.iter().map(|cost| cost.tokens).sum();
    let session: f64 = costs.iter().map(|cost| cost.session).sum();
    let price = if breakdown.price.known {
        format!("{} in a session of {SESSION_REQUESTS} requests", dollars(session))
    } else {
        "at a price that is not known".to_owned()
    };
    format!(
        "{} in your home folder, for you to call with /skill:NAME; home_listed = true in [conventions] tells the model of them: {} tokens, {price}\n",
        pluralize(skills.len(), "skill"),
        thousands(tokens),
    )
}

/// The tables of `hardpan context`: regions with their contents, then tokens by kind.
pub fn context(breakdown: &Breakdown, provider: &str) -> String {
    const SHOWN: usize = 12;
    let width = width();
    let mut table = Table::new(&[
        ("tokens", Align::Right),
        ("share", Align::Right),
        ("cached", Align::Left),
        ("what", Align::Left),
    ]);
    let share =
        |tokens: usize| format!("{:.1}%", 100.0 * tokens as f64 / breakdown.total_tokens.max(1) as f64);
    for block in &breakdown.blocks {
        let cached = if block.cached { "yes" } else { "-" };
        table.row(vec![thousands(block.tokens), share(block.tokens), cached.into(), block.name.to_owned()]);
        let mut contents: Vec<_> = block.contents.iter().collect();
        let more = contents.len().saturating_sub(SHOWN);
        if more > 0 {
            contents.sort_by_key(|content| std::cmp::Reverse(content.tokens));
            contents.truncate(SHOWN);
        }
        for content in contents {
            let stable = match (content.unchanged_responses, content.threshold) {
                (Some(n), Some(threshold)) => format!(" (unchanged for {n} of {threshold})"),
                (Some(n), None) => format!(" (unchanged for {n})"),
                _ => String::new(),
            };
            let name = format!("  {}{stable}", content.key());
            table.row(vec![thousands(content.tokens), String::new(), String::new(), name]);
        }
        if more > 0 {
            let note = format!("  … and {more} smaller ones (--json lists them)");
            table.row(vec![String::new(), String::new(), String::new(), note]);
        }
    }
    let mut kinds = String::from("by kind:");
    for kind in ItemKind::ALL {
        let tokens = breakdown.breakdown.get(kind.column_name()).copied().unwrap_or(0);
        if tokens > 0 {
            kinds.push_str(&format!(" {} {}", kind.column_name(), thousands(tokens)));
        }
    }
    let mut marks = String::new();
    for mark in &breakdown.breakpoints {
        marks.push_str(&format!(
            "breakpoint ◆ {} after {}, {} tokens\n",
            mark.ttl,
            mark.block,
            thousands(mark.tokens)
        ));
    }
    let parts = [
        headline(breakdown, provider),
        table.render(width),
        kinds,
        "\n".into(),
        marks,
        instructions(breakdown, width),
        price_line(breakdown),
        lifetime_line(breakdown),
        fold_line(breakdown),
    ];
    parts.concat() + &left_out(&breakdown.left_out, width)
}
