//! `hardpan cost`: what was paid, read from the session files.

mod aside; // the bills of requests that are part of no conversation
mod sum; // the bills of many sessions, each request once

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use hardpan_economy::Ledger;
use hardpan_economy::ledger::{Account, Totals};
use hardpan_prompt::Kind;
use hardpan_session::{Store, Summary};
use serde_json::{Value, json};

use crate::gather;
use crate::output::{self, Align, Table, dollars, safe, thousands};
use crate::settings::data_folder;
use crate::views::width;
use aside::ASIDES;
use sum::Sum;

pub use aside::keep;
pub use sum::read;

/// What is added up, and by what.
#[derive(Debug, clap::Args)]
pub struct Cost {
    /// A session: its id or the beginning of it, its name or a part of it, or its file [default: all of this folder]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Those of all folders
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// By what [default: session; with a session: kind]
    #[arg(long, value_enum)]
    by: Option<By>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
    /// The folder [default: this one]
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    dir: Option<PathBuf>,
}

/// What a bill is added up by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The conversation.
    Session,
    /// The day, where the person was.
    Day,
    /// The provider and the model.
    Model,
    /// The folder.
    Project,
    /// What sort of thing was sent.
    Kind,
    /// The item, tool or rule.
    Key,
}

impl By {
    fn word(self) -> &'static str {
        match self {
            By::Session => "session",
            By::Day => "day",
            By::Model => "model",
            By::Project => "project",
            By::Kind => "kind",
            By::Key => "key",
        }
    }
}

/// Adds up what was asked for.
pub fn cost(args: &Cost) -> Result<()> {
    let data = data_folder().context("there is no folder for sessions: set HOME or HARDPAN_DATA_DIR")?;
    let store = Store::new(data.join("sessions"));
    let folder = if args.all { None } else { Some(gather::folder(args.dir.as_deref())?) };
    let sessions: Vec<Summary> = match &args.session {
        Some(text) => vec![store.find(folder.as_deref(), text)?],
        None => {
            let asides = Store::new(data.join(ASIDES)).list(folder.as_deref());
            store.list(folder.as_deref()).into_iter().chain(asides).collect()
        }
    };
    let usual = if args.session.is_some() { By::Kind } else { By::Session };
    let by = args.by.unwrap_or(usual);
    let sum = Sum::of(&sessions);
    let rows = rows(&sum, by);
    if args.json {
        return Ok(output::print(serde_json::to_string_pretty(&as_json(&sum, by, &rows))? + "\n")?);
    }
    if sum.ledger.total.requests == 0 {
        let place = if args.all { "" } else { " here" };
        eprintln!("nothing was paid{place} yet: hardpan -p \"…\" asks a model");
        return Ok(());
    }
    output::print(table(&sum.ledger.total, by, &rows).render(width()))?;
    remarks(&sum).iter().for_each(|remark| eprintln!("{remark}"));
    Ok(())
}

/// A line of the bill: what it is for, and the sum.
type Line = (String, Totals);

fn rows(sum: &Sum, by: By) -> Vec<Line> {
    let named = |map: &BTreeMap<_, Totals>| -> Vec<Line> {
        map.iter().map(|(name, totals): (&std::sync::Arc<str>, _)| (name.to_string(), *totals)).collect()
    };
    let mut rows = match by {
        // In the order of the calendar.
        By::Day => return named(&sum.ledger.by_day),
        By::Session => sum.sessions.clone(),
        By::Model => named(&sum.ledger.by_model),
        By::Project => sum.projects.iter().map(|(name, totals)| (name.clone(), *totals)).collect(),
        By::Kind => kinds(&sum.ledger),
        By::Key => sum.ledger.by_key.iter().map(|(account, totals)| (key(account), *totals)).collect(),
    };
    rows.sort_by(|a, b| b.1.dollars.total_cmp(&a.1.dollars).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// By kind; what is no part of a prompt goes by its own name.
fn kinds(ledger: &Ledger) -> Vec<Line> {
    let parts =
        ledger.by_kind().into_iter().filter_map(|(kind, totals)| Some((kind?.word().to_owned(), totals)));
    let others = ledger.by_key.iter().filter(|(account, _)| account.kind.is_none());
    parts.chain(others.map(|(account, totals)| (account.key.to_string(), *totals))).collect()
}

/// What a person calls an account.
fn key(account: &Account) -> String {
    match account.kind {
        Some(kind) if &*account.key == "all" => format!("{} (not named)", kind.word()),
        Some(Kind::History) | None => account.key.to_string(),
        Some(kind) => format!("{}  {}", kind.word(), account.key),
    }
}

fn table(total: &Totals, by: By, rows: &[Line]) -> Table {
    let right = ["requests", "input", "read", "written", "output", "cost"].map(|head| (head, Align::Right));
    let mut table = Table::new(&[&right[..], &[(by.word(), Align::Left)]].concat());
    let count = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    let mut line = |name: &str, totals: &Totals| {
        let tokens = &totals.tokens;
        let written = tokens.write + tokens.write_1h;
        let figures = [totals.requests, tokens.input, tokens.read, written, tokens.output].map(count);
        table.row(figures.into_iter().chain([dollars(totals.dollars), safe(name)]));
    };
    rows.iter().for_each(|(name, totals)| line(name, totals));
    if rows.len() != 1 {
        line("all", total);
    }
    table
}

/// What the table does not tell.
fn remarks(sum: &Sum) -> Vec<String> {
    let mut remarks = Vec::new();
    let count = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    let losses = &sum.ledger.losses;
    if !losses.is_empty() {
        let tokens = losses.values().map(|loss| loss.tokens).sum();
        let price = losses.values().map(|loss| loss.dollars).sum();
        let causes: Vec<String> = losses
            .iter()
            .map(|(cause, loss)| format!("{} {}×", cause.replace('_', " "), loss.times))
            .collect();
        remarks.push(format!(
            "paid again for what had been cached: {} tokens, {} ({}); `hardpan why` tells more",
            count(tokens),
            dollars(price),
            causes.join(", ")
        ));
    }
    let unaccounted = sum.ledger.of_key("unaccounted");
    if unaccounted.tokens.total() > 0 {
        remarks.push(format!(
            "unaccounted for: {} tokens, {}: billed, and not among what was sent",
            count(unaccounted.tokens.total()),
            dollars(unaccounted.dollars)
        ));
    }
    if sum.estimated > 0 {
        remarks
            .push(format!("{} requests are by our own count: their provider reported none", sum.estimated));
    }
    remarks.extend(sum.unreadable.iter().map(|problem| safe(problem)));
    remarks
}

fn as_json(sum: &Sum, by: By, rows: &[Line]) -> Value {
    let rows: Vec<Value> = match by {
        By::Key => sum.ledger.by_key.iter().map(|(account, totals)| with(json!(account), totals)).collect(),
        _ => rows.iter().map(|(name, totals)| with(json!({by.word(): name}), totals)).collect(),
    };
    json!({
        "by": by.word(),
        "rows": rows,
        "total": sum.ledger.total,
        "losses": sum.ledger.losses,
        "unaccounted": sum.ledger.of_key("unaccounted"),
        "estimated_requests": sum.estimated,
        "unreadable": sum.unreadable,
    })
}

fn with(mut row: Value, totals: &Totals) -> Value {
    if let (Value::Object(row), Ok(Value::Object(totals))) = (&mut row, serde_json::to_value(totals)) {
        row.extend(totals);
    }
    row
}
