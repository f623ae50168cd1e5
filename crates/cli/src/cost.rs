//! `hardpan cost`: adds up the bills in the session files.

mod summary; // CostSummary: the bills of many sessions, each request counted once

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use hardpan_app::side_requests::SIDE_REQUESTS_FOLDER;
use hardpan_audit::SourceAgent;
use hardpan_economy::Ledger;
use hardpan_economy::ledger::{Account, RequestPurpose, Totals};
use hardpan_prompt::ItemKind;
use hardpan_session::{SessionStore, SessionSummary};
use serde_json::{Value, json};

use crate::chat::commands::pluralize;
use crate::command_setup::{data_folder, working_folder};
use crate::output::{self, Align, Table, dollars, safe, thousands};
use crate::views::width;
use summary::CostSummary;

pub use summary::read_bills;

/// Flags of `hardpan cost`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hardpan cost --all --by day
  hardpan cost 3f2a --by key")]
pub struct CostArgs {
    /// Session id (or its beginning), name (or a part of it), or file [default: all sessions of
    /// this folder]
    #[arg(value_name = "SESSION")]
    session: Option<String>,
    /// Include the sessions of all folders
    #[arg(long, conflicts_with = "session")]
    all: bool,
    /// Group the costs by this [default: session; for a single session: kind]
    #[arg(long, value_enum)]
    by: Option<GroupBy>,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Use the sessions of this folder [default: the current folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    dir: Option<PathBuf>,
}

/// What `hardpan cost` groups by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum GroupBy {
    /// One row per conversation
    Session,
    /// One row per day, in your time zone
    Day,
    /// One row per provider and model
    Model,
    /// One row per folder
    Project,
    /// One row per kind of content: files, history, tools, …
    Kind,
    /// One row per file, tool or other item
    Key,
}

impl GroupBy {
    fn name(self) -> &'static str {
        match self {
            GroupBy::Session => "session",
            GroupBy::Day => "day",
            GroupBy::Model => "model",
            GroupBy::Project => "project",
            GroupBy::Kind => "kind",
            GroupBy::Key => "key",
        }
    }
}

/// Runs `hardpan cost`.
pub fn cost(args: &CostArgs) -> Result<()> {
    let data = data_folder()?;
    let store = SessionStore::new(data.join("sessions"));
    let folder = if args.all { None } else { Some(working_folder(args.dir.as_deref())?) };
    let sessions: Vec<SessionSummary> = match &args.session {
        Some(text) => vec![find_own_session(&store, folder.as_deref(), text, "cost")?],
        None => {
            let asides = SessionStore::new(data.join(SIDE_REQUESTS_FOLDER)).list(folder.as_deref());
            store.list(folder.as_deref()).into_iter().chain(asides).collect()
        }
    };
    let usual = if args.session.is_some() { GroupBy::Kind } else { GroupBy::Session };
    let by = args.by.unwrap_or(usual);
    let summary = CostSummary::from_sessions(&sessions);
    let rows = rows(&summary, by);
    if args.json {
        return output::print_json(&as_json(&summary, by, &rows));
    }
    if summary.ledger.total.requests == 0 {
        let place = if args.all { "" } else { " here" };
        note!("no costs{place} yet: ask a model something with hardpan -p \"…\"");
        simulated_remark(&summary).iter().for_each(|remark| note!("{remark}"));
        return Ok(());
    }
    output::print(table(&summary.ledger.total, by, &rows).render(width()))?;
    remarks(&summary).iter().for_each(|remark| note!("{remark}"));
    Ok(())
}

/// Finds a session of Hardpan. For a recording of another agent, names the command that reads it.
pub fn find_own_session(
    store: &SessionStore,
    folder: Option<&Path>,
    text: &str,
    command: &str,
) -> Result<SessionSummary> {
    let path = folder.unwrap_or(Path::new("")).join(text);
    let foreign = hardpan_audit::recording_agent(&path).filter(|agent| *agent != SourceAgent::Hardpan);
    if let Some(agent) = foreign {
        let quoted = shell_word(text);
        bail!(
            "{} is a session of {}, and `hardpan {command}` reads those of Hardpan: run `hardpan audit {quoted}`",
            safe(text),
            agent.title()
        );
    }
    Ok(store.find(folder, text)?)
}

/// A text as a word of a shell.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~');
    if text.chars().all(is_plain) { safe(text) } else { format!("'{}'", safe(&text.replace('\'', r"'\''"))) }
}

/// The costs of one session with all remarks, for `/cost`.
pub fn session_costs(session: &SessionSummary, by: GroupBy) -> String {
    let summary = CostSummary::from_sessions(std::slice::from_ref(session));
    let table = match summary.ledger.total.requests {
        0 => String::new(),
        _ => table(&summary.ledger.total, by, &rows(&summary, by)).render(width()),
    };
    table + &remarks(&summary).join("\n")
}

/// A row of the table: its label and its totals.
type BillRow = (String, Totals);

fn rows(summary: &CostSummary, by: GroupBy) -> Vec<BillRow> {
    let named = |map: &BTreeMap<_, Totals>| -> Vec<BillRow> {
        map.iter().map(|(name, totals): (&std::sync::Arc<str>, _)| (name.to_string(), *totals)).collect()
    };
    let mut rows = match by {
        // Already in calendar order; the others go by cost.
        GroupBy::Day => return named(&summary.ledger.by_day),
        GroupBy::Session => summary.sessions.clone(),
        GroupBy::Model => named(&summary.ledger.by_model),
        GroupBy::Project => summary.projects.iter().map(|(name, totals)| (name.clone(), *totals)).collect(),
        GroupBy::Kind => kinds(&summary.ledger),
        GroupBy::Key => {
            summary.ledger.by_key.iter().map(|(account, totals)| (account_label(account), *totals)).collect()
        }
    };
    rows.sort_by(|a, b| b.1.dollars.total_cmp(&a.1.dollars).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// Totals by kind of content; accounts that are not part of a prompt, such as output, by name.
fn kinds(ledger: &Ledger) -> Vec<BillRow> {
    let parts =
        ledger.by_kind().into_iter().filter_map(|(kind, totals)| Some((kind?.name().to_owned(), totals)));
    let others = ledger.by_key.iter().filter(|(account, _)| account.kind.is_none());
    parts.chain(others.map(|(account, totals)| (account_label(account), *totals))).collect()
}

/// The label of an account in the table.
fn account_label(account: &Account) -> String {
    if let Some(agent) = account.task_agent() {
        return format!("sub-agent {agent}");
    }
    match account.kind {
        Some(kind) if account.is_unnamed() => format!("{} (not named)", kind.name()),
        Some(ItemKind::History) | None => account.key.to_string(),
        Some(kind) => format!("{}  {}", kind.name(), account.key),
    }
}

fn table(total: &Totals, by: GroupBy, rows: &[BillRow]) -> Table {
    let right = ["requests", "input", "read", "written", "output", "cost"].map(|head| (head, Align::Right));
    let mut table = Table::new(&[&right[..], &[(by.name(), Align::Left)]].concat());
    let count = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    let mut line = |name: &str, totals: &Totals| {
        let tokens = &totals.tokens;
        let figures =
            [totals.requests, tokens.input, tokens.cache_read, tokens.cache_written(), tokens.output]
                .map(count);
        table.row(figures.into_iter().chain([dollars(totals.dollars), safe(name)]));
    };
    rows.iter().for_each(|(name, totals)| line(name, totals));
    if rows.len() != 1 {
        line("all", total);
    }
    table
}

/// The remarks below the table: losses, unaccounted tokens, estimates and unreadable files.
fn remarks(summary: &CostSummary) -> Vec<String> {
    let mut remarks = Vec::new();
    let count = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    let losses = &summary.ledger.losses;
    if !losses.is_empty() {
        let tokens = losses.values().map(|loss| loss.tokens).sum();
        let price = losses.values().map(|loss| loss.dollars).sum();
        let causes: Vec<String> = losses
            .iter()
            .map(|(cause, loss)| format!("{} {}×", cause.replace('_', " "), loss.times))
            .collect();
        remarks.push(format!(
            "paid again for cached content: {} tokens, {} ({}); run `hardpan why` for details",
            count(tokens),
            dollars(price),
            causes.join(", ")
        ));
    }
    if let Some(tasks) = summary.ledger.by_purpose.get(&RequestPurpose::Task) {
        let (requests, price) = (count(tasks.requests), dollars(tasks.dollars));
        remarks.push(format!(
            "of this, sub-agents and MCP servers: {requests} requests, {price}; --by kind names them"
        ));
    }
    let unaccounted = summary.ledger.totals_for_key("unaccounted");
    if unaccounted.tokens.total() > 0 {
        remarks.push(format!(
            "unaccounted for: {} tokens, {}: billed, but not part of what we sent",
            count(unaccounted.tokens.total()),
            dollars(unaccounted.dollars)
        ));
    }
    if summary.estimated > 0 {
        remarks.push(format!(
            "{} requests are estimates, because their provider reported no usage",
            summary.estimated
        ));
    }
    remarks.extend(simulated_remark(summary));
    remarks.extend(summary.unreadable.iter().map(|problem| safe(problem)));
    remarks
}

/// That requests are left out, because nobody paid for them.
fn simulated_remark(summary: &CostSummary) -> Option<String> {
    let (requests, would_cost) = summary.simulated;
    (requests > 0).then(|| {
        let answers = pluralize(usize::try_from(requests).unwrap_or(usize::MAX), "answer");
        let price = dollars(would_cost);
        format!("left out: {answers} of the simulator, which cost nothing; a model's would have cost {price}")
    })
}

fn as_json(summary: &CostSummary, by: GroupBy, rows: &[BillRow]) -> Value {
    let rows: Vec<Value> = match by {
        GroupBy::Key => summary
            .ledger
            .by_key
            .iter()
            .map(|(account, totals)| with_totals(json!(account), totals))
            .collect(),
        _ => rows.iter().map(|(name, totals)| with_totals(json!({by.name(): name}), totals)).collect(),
    };
    let mut value = json!({
        "by": by.name(),
        "rows": rows,
        "total": summary.ledger.total,
        "losses": summary.ledger.losses,
        "unaccounted": summary.ledger.totals_for_key("unaccounted"),
        "estimated_requests": summary.estimated,
        "unreadable": summary.unreadable,
    });
    if let Some(tasks) = summary.ledger.by_purpose.get(&RequestPurpose::Task) {
        value["tasks"] = json!(tasks);
    }
    if let (requests @ 1.., would_cost) = summary.simulated {
        value["simulated"] = json!({"requests": requests, "would_cost": would_cost});
    }
    value
}

fn with_totals(mut row: Value, totals: &Totals) -> Value {
    if let (Value::Object(row), Ok(Value::Object(totals))) = (&mut row, serde_json::to_value(totals)) {
        row.extend(totals);
    }
    row
}
