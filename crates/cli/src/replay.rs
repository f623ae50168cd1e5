//! `hardpan replay`: computes what recorded sessions would have cost with each layout.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use hardpan_audit::{BilledTotals, Recording, Replay, ReplayCost, ReplayPolicy, ThinkingSwitches};
use hardpan_context::{KeepLevel, LifetimeSetting};
use hardpan_models::Catalogue;
use serde::Serialize;

use crate::audit::{MAX_FOLDER_DEPTH, catalogue, collect_session_files};
use crate::output::{self, Align, Table, dollars, error_text, safe, safe_lines, thousands};
use crate::views::width;

/// Flags of `hardpan replay`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  hardpan replay ~/.codex/sessions --layout strata")]
pub struct ReplayArgs {
    /// Session files of pi, Claude Code, Codex, Qwen Code or Hardpan, or folders that contain them
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Layout to replay: strata, panels, tiers, inline, append (strata without folds: append-only,
    /// like most agents), or all
    #[arg(long, default_value = "all", value_parser = policies)]
    layout: SelectedPolicies,
    /// How much folds of strata keep: all, history, current or lean; by default current, history and
    /// lean are compared
    #[arg(long)]
    keep: Option<KeepLevel>,
    /// How long the provider is asked to keep what requests cache: auto, 5m or 1h
    #[arg(long, value_name = "TIME", default_value_t)]
    cache_lifetime: LifetimeSetting,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// The value of `--layout`.
#[derive(Clone, Debug)]
struct SelectedPolicies(Vec<ReplayPolicy>);

/// A value of `--layout` that names no layout.
#[derive(Debug, thiserror::Error)]
#[error("expected one of {}, all", LAYOUTS.join(", "))]
struct UnknownPolicy;

/// The values of `--layout` but `all`.
const LAYOUTS: [&str; 5] = ["strata", "panels", "tiers", "inline", "append"];

fn policies(name: &str) -> Result<SelectedPolicies, UnknownPolicy> {
    let is_selected = |policy: &ReplayPolicy| match policy.keep() {
        Some(KeepLevel::All) => name == "append",
        Some(_) => name == "strata",
        None => policy.name() == name,
    };
    match name {
        "all" => Ok(SelectedPolicies(ReplayPolicy::ALL.to_vec())),
        name if LAYOUTS.contains(&name) => {
            Ok(SelectedPolicies(ReplayPolicy::ALL.into_iter().filter(is_selected).collect()))
        }
        _ => Err(UnknownPolicy),
    }
}

impl ReplayArgs {
    /// The policies to replay: of those of `strata`, only the one with `--keep`.
    fn policies(&self) -> Vec<ReplayPolicy> {
        let mut policies = self.layout.0.clone();
        if let Some(keep) = self.keep
            && let Some(first) =
                policies.iter().position(|policy| policy.keep().is_some_and(|keep| keep != KeepLevel::All))
        {
            policies.retain(|policy| policy.keep().is_none_or(|keep| keep == KeepLevel::All));
            policies.insert(first, ReplayPolicy::strata(keep));
            policies.dedup();
        }
        policies.iter().map(|policy| policy.with_lifetime(self.cache_lifetime)).collect()
    }
}

/// The costs of one session with each layout, in units of one token of uncached input.
#[derive(Serialize)]
struct SessionReplay {
    file: String,
    requests: usize,
    billed_cost: f64,
    floor: f64,
    clairvoyant: f64,
    layouts: BTreeMap<&'static str, ReplayCost>,
    /// What was billed in dollars. Null where the price of a model is not known.
    billed_dollars: Option<f64>,
    /// The models without a known price.
    unpriced: Vec<Arc<str>>,
    /// The tokens of requests of which only the sum is recorded: they are in no figure above.
    side_tokens: u64,
    /// A remark to print below the table.
    #[serde(skip)]
    note: Option<String>,
}

/// Runs `hardpan replay`.
pub fn replay(args: &ReplayArgs) -> Result<()> {
    let (catalogue, policies) = (catalogue(), args.policies());
    let mut files = Vec::new();
    for path in &args.files {
        if path.is_dir() {
            collect_session_files(path, MAX_FOLDER_DEPTH, &mut files);
        } else {
            files.push(path.clone());
        }
    }
    if files.is_empty() {
        bail!("found no sessions (*.jsonl) in these folders");
    }
    let shows_progress = files.len() > 1 && io::stderr().is_terminal();
    let (mut rows, mut failed) = (Vec::new(), 0);
    for (number, file) in files.iter().enumerate() {
        if shows_progress {
            progress!("\r{} of {} sessions replayed", number, files.len());
        }
        match replay_file(file, &policies, &catalogue) {
            Ok(row) => rows.push(row),
            Err(error) => {
                failed += 1;
                note!("hardpan: skipped: {}", safe_lines(&error_text(&error)));
            }
        }
    }
    if shows_progress {
        progress!("\r\x1b[K");
    }
    if rows.is_empty() {
        bail!("cannot replay any of the {failed} files");
    }
    if args.json {
        let json = serde_json::json!({ "sessions": rows });
        return output::print_json(&json);
    }
    output::print(rows.iter().map(table).collect::<Vec<_>>().join("\n"))?;
    Ok(output::print_wrapped(LEGEND)?)
}

/// What the table's words mean.
const LEGEND: &str = "
cost         what the prompts cost, in prices of one uncached input token
of bill      the share of what was billed: below 1 is cheaper than it was
of floor     how far above the cheapest thinkable bill
read         tokens read from the cache, at about a tenth of the price
written      tokens stored in the cache
input        tokens neither read nor written, at the full price
folds        how often old copies were taken out of the prompt
recalls      how often the model would have asked for something back that a fold took out

billed       what the recording says
strata …     what this layout would have cost; `append` never takes anything out, like most agents
clairvoyant  strata with folds at the best moments, known only afterwards
floor        every token written once and read ever after, which no order of the prompt can undercut
";

fn replay_file(file: &Path, policies: &[ReplayPolicy], catalogue: &Catalogue) -> Result<SessionReplay> {
    let recording = Recording::open(file)?;
    let replay = Replay::new(&recording, catalogue)?;
    let BilledTotals { requests, cost, dollars, .. } = replay.billed();
    let mut layouts = BTreeMap::new();
    for policy in policies {
        layouts.insert(policy.name(), round_cost(replay.run(*policy)?));
    }
    Ok(SessionReplay {
        file: file.display().to_string(),
        requests,
        billed_cost: round_to_thousandth(cost),
        floor: round_to_thousandth(replay.floor()),
        clairvoyant: round_to_thousandth(replay.clairvoyant()),
        layouts,
        billed_dollars: dollars.map(|dollars| (dollars * 1e6).round() / 1e6),
        unpriced: replay.unpriced().to_vec(),
        side_tokens: replay.side_tokens(),
        note: remarks(&recording, &replay, catalogue)?,
    })
}

/// What the costs leave out, and what could not be read.
fn remarks(recording: &Recording, replay: &Replay, catalogue: &Catalogue) -> Result<Option<String>> {
    let mut notes = Vec::new();
    if replay.thinking_switch_count() > 0 {
        let charged = Replay::with_thinking_switches(recording, catalogue, ThinkingSwitches::Recorded)?
            .run(ReplayPolicy::strata(KeepLevel::default()))?
            .cost;
        let share = charged / replay.billed().cost.max(1.0);
        notes.push(format!(
            "not counted: {} changes of the thinking setting, which lose the cache of the messages in every layout; with them, strata costs {share:.3} of the bill",
            replay.thinking_switch_count()
        ));
    }
    if replay.side_tokens() > 0 {
        notes.push(format!(
            "not counted: {} tokens of side requests, of which only the sum is recorded",
            thousands(replay.side_tokens() as usize)
        ));
    }
    if !recording.problems.is_empty() {
        notes.push(format!("{} lines could not be read completely", recording.problems.len()));
    }
    Ok(Some(notes.join("; ")).filter(|notes| !notes.is_empty()))
}

/// Rounds a cost to thousandths: the prices have few decimals, so further digits are float noise.
fn round_to_thousandth(cost: f64) -> f64 {
    (cost * 1000.0).round() / 1000.0
}

fn round_cost(replayed: ReplayCost) -> ReplayCost {
    ReplayCost { cost: round_to_thousandth(replayed.cost), ..replayed }
}

fn table(row: &SessionReplay) -> String {
    let columns = [
        ("", Align::Left),
        ("cost", Align::Right),
        ("of bill", Align::Right),
        ("of floor", Align::Right),
        ("read", Align::Right),
        ("written", Align::Right),
        ("input", Align::Right),
        ("folds", Align::Right),
        ("recalls", Align::Right),
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
    for policy in ReplayPolicy::ALL {
        let Some(ReplayCost { cost, read, write, input, folds, recalls }) = row.layouts.get(policy.name())
        else {
            continue;
        };
        let counts = [*read as usize, *write as usize, *input as usize, *folds, *recalls];
        known(policy.name(), *cost, counts.map(thousands));
    }
    known("clairvoyant", row.clairvoyant, nothing());
    known("floor", row.floor, nothing());
    let price = match row.billed_dollars {
        Some(billed) => format!("input billed {}", dollars(billed)),
        None => format!(
            "tokens and ratios only: no price is known of {} (`models.json` can give one, see `hardpan docs configuration`)",
            safe(&row.unpriced.join(", "))
        ),
    };
    let head = format!("{}: {} requests, {price}\n", safe(&row.file), thousands(row.requests));
    let note = row.note.as_ref().map_or_else(String::new, |note| format!("({note})\n"));
    head + &table.render(width()) + &note
}
