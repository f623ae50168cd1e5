//! `hardpan replay`: what recorded sessions would have cost with each layout.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use hardpan_audit::{Billed, Policy, Recording, Replay, Replayed, Settings};
use hardpan_models::Catalogue;
use serde::Serialize;

use crate::audit::{DEPTH, catalogue, sessions_below};
use crate::output::{self, Align, Table, dollars, safe, safe_lines, thousands};
use crate::views::width;

/// What is replayed, and how it is shown.
#[derive(Debug, clap::Args)]
pub struct ReplayArgs {
    /// Sessions of pi, Claude Code, Codex or Hardpan, or folders of them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The layout: strata, panels, tiers, inline, append (plain append-only, as most agents do), or all
    #[arg(long, default_value = "all", value_parser = policies)]
    layout: Layouts,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// The policies that were asked for.
#[derive(Clone, Debug)]
struct Layouts(Vec<Policy>);

fn policies(name: &str) -> Result<Layouts, String> {
    if name == "all" {
        return Ok(Layouts(Policy::ALL.to_vec()));
    }
    let known = || Policy::ALL.map(Policy::name).join(", ");
    Policy::named(name)
        .map(|policy| Layouts(vec![policy]))
        .ok_or_else(|| format!("known are {}, all", known()))
}

/// One session, in units of one token of plain input.
#[derive(Serialize)]
struct Row {
    file: String,
    requests: usize,
    billed_cost: f64,
    floor: f64,
    clairvoyant: f64,
    layouts: BTreeMap<&'static str, Replayed>,
    #[serde(skip)]
    dollars: f64,
    /// What people should know beside the figures.
    #[serde(skip)]
    note: Option<String>,
}

/// Runs what was asked for.
pub fn replay(args: &ReplayArgs) -> Result<()> {
    let catalogue = catalogue();
    let mut files = Vec::new();
    for path in &args.files {
        if path.is_dir() { sessions_below(path, DEPTH, &mut files) } else { files.push(path.clone()) }
    }
    if files.is_empty() {
        bail!("no session (*.jsonl) is there");
    }
    let shows_progress = files.len() > 1 && io::stderr().is_terminal();
    let (mut rows, mut failed) = (Vec::new(), 0);
    for (number, file) in files.iter().enumerate() {
        if shows_progress {
            eprint!("\r{} of {} sessions replayed", number, files.len());
            io::stderr().flush()?;
        }
        match row(file, &args.layout.0, &catalogue) {
            Ok(row) => rows.push(row),
            Err(error) => {
                failed += 1;
                eprintln!("hardpan: left out: {}", safe_lines(&format!("{error:#}")));
            }
        }
    }
    if shows_progress {
        eprint!("\r\x1b[K");
    }
    if rows.is_empty() {
        bail!("none of the {failed} files could be replayed");
    }
    if args.json {
        let json = serde_json::json!({ "sessions": rows });
        return Ok(output::print(serde_json::to_string_pretty(&json)? + "\n")?);
    }
    Ok(output::print(rows.iter().map(table).collect::<Vec<_>>().join("\n"))?)
}

fn row(file: &Path, policies: &[Policy], catalogue: &Catalogue) -> Result<Row> {
    let recording = Recording::open(file)?;
    if recording.requests.is_empty() {
        bail!("{}: no request in it has a bill", file.display());
    }
    let replay = Replay::new(&recording, catalogue);
    let Billed { requests, cost, dollars, .. } = replay.billed();
    let layouts = policies.iter().map(|policy| (policy.name(), rounded(replay.run(*policy)))).collect();
    Ok(Row {
        file: file.display().to_string(),
        requests,
        billed_cost: round(cost),
        floor: round(replay.floor()),
        clairvoyant: round(replay.clairvoyant()),
        layouts,
        dollars,
        note: note(&recording, &replay, catalogue),
    })
}

/// What the figures leave out, and what could not be read.
fn note(recording: &Recording, replay: &Replay, catalogue: &Catalogue) -> Option<String> {
    let mut notes = Vec::new();
    if replay.switches() > 0 {
        let charged = Replay::with(recording, catalogue, Settings::Recorded).run(Policy::Strata).cost;
        let share = charged / replay.billed().cost.max(1.0);
        notes.push(format!(
            "{} switches of thinking, which lose the messages' cache in every layout, are not charged; with them strata is at {share:.3} of the bill",
            replay.switches()
        ));
    }
    if !recording.problems.is_empty() {
        notes.push(format!("{} lines could not be read in full", recording.problems.len()));
    }
    Some(notes.join("; ")).filter(|notes| !notes.is_empty())
}

/// Costs are sums of products with few decimals; what comes after is not meant.
fn round(cost: f64) -> f64 {
    (cost * 1000.0).round() / 1000.0
}

fn rounded(replayed: Replayed) -> Replayed {
    Replayed { cost: round(replayed.cost), ..replayed }
}

fn table(row: &Row) -> String {
    let columns = [
        ("", Align::Left),
        ("cost", Align::Right),
        ("of bill", Align::Right),
        ("of floor", Align::Right),
        ("read", Align::Right),
        ("written", Align::Right),
        ("input", Align::Right),
        ("folds", Align::Right),
        ("pings", Align::Right),
    ];
    let mut table = Table::new(&columns);
    let tokens = |cost: f64| thousands(cost.round() as usize);
    let ratio = |cost: f64, of: f64| if of > 0.0 { format!("{:.3}", cost / of) } else { "-".into() };
    let mut known = |name: &str, cost: f64, rest: [String; 5]| {
        let first = [name.to_owned(), tokens(cost), ratio(cost, row.billed_cost), ratio(cost, row.floor)];
        table.row(first.into_iter().chain(rest));
    };
    let nothing = || std::array::from_fn(|_| String::new());
    known("billed", row.billed_cost, nothing());
    for policy in Policy::ALL {
        let Some(Replayed { cost, read, write, input, folds, pings }) = row.layouts.get(policy.name()) else {
            continue;
        };
        let counts = [*read as usize, *write as usize, *input as usize, *folds, *pings];
        known(policy.name(), *cost, counts.map(thousands));
    }
    known("clairvoyant", row.clairvoyant, nothing());
    known("floor", row.floor, nothing());
    let head = format!(
        "{}: {} requests, input billed {}\n",
        safe(&row.file),
        thousands(row.requests),
        dollars(row.dollars)
    );
    let note = row.note.as_ref().map_or_else(String::new, |note| format!("({note})\n"));
    head + &table.render(width()) + &note
}
