//! Long sessions of the real agent with its real tools, paid to the simulator.
//!
//! `cargo bench -p hardpan-cli --bench live` plans three kinds of work from a seed, carries each out
//! with several policies, and prints what the simulator billed for them, against append-only and
//! against the schedule of somebody who knows the future. It fails if a request was refused, a call
//! ended otherwise than planned, or a file is not as the planned edits leave it. Options follow
//! `--`: `cargo bench -p hardpan-cli --bench live -- --seed 7 --kind edit --requests 156`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use hardpan_context::LayoutName;
use hardpan_models::Catalogue;
use hardpan_test_support::live_work::{LiveOutcome, LiveSetup, PlannedWork, WorkKind, WorkShape};
use serde_json::{Value, json};

/// Options of the benchmark.
#[derive(Parser)]
#[command(name = "live")]
struct Options {
    /// Seed of files and work
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Kinds of work: edit, test-loop, explore [default: all]
    #[arg(long, value_parser = work_kind)]
    kind: Vec<WorkKind>,
    /// Requests of each session
    #[arg(long, default_value_t = 156)]
    requests: usize,
    /// Prompts of each session
    #[arg(long, default_value_t = 6)]
    runs: usize,
    /// Processes that share the prompts; each but the first resumes the session
    #[arg(long, default_value_t = 2)]
    processes: usize,
    /// Pauses between prompts that are longer than the cache lives
    #[arg(long, default_value_t = 0)]
    pauses: usize,
    /// Policies to compare with append-only: strata, history, lean, tiers, panels, inline
    /// [default: strata, and in edit-heavy work the other layouts]
    #[arg(long, value_parser = policy)]
    policy: Vec<Policy>,
    /// Models, by id: the first reads cached tokens at a tenth, the second at a twentieth
    #[arg(long, default_values = ["claude-sonnet-5", "claude-sonnet-5-5"])]
    model: Vec<String>,
    /// Another binary than the one of this build
    #[arg(long, default_value = env!("CARGO_BIN_EXE_hardpan"))]
    binary: PathBuf,
    /// Folder that keeps the session files [default: a temporary one]
    #[arg(long)]
    sessions: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// What `cargo bench` passes
    #[arg(long, hide = true)]
    bench: bool,
}

/// A way of making requests.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Policy {
    name: &'static str,
    /// What `hardpan replay` calls it.
    replayed_as: &'static str,
    layout: LayoutName,
    /// Lines of `config.toml`.
    settings: &'static str,
}

/// The simulator counts fewer tokens than Hardpan expects of these models, so that a summary would
/// come long before the window is full.
const NO_SUMMARIES: &str = "compact_at = 0\n";

/// Requests only grow. All others are compared with it.
const APPEND_ONLY: Policy = Policy {
    name: "append-only",
    replayed_as: "append",
    layout: LayoutName::Strata,
    settings: "keep = \"all\"\n",
};

const POLICIES: [Policy; 6] = [
    Policy { name: "strata", replayed_as: "strata", layout: LayoutName::Strata, settings: "" },
    Policy {
        name: "history",
        replayed_as: "strata-history",
        layout: LayoutName::Strata,
        settings: "keep = \"history\"\n",
    },
    Policy {
        name: "lean",
        replayed_as: "strata-lean",
        layout: LayoutName::Strata,
        settings: "keep = \"lean\"\n",
    },
    Policy { name: "tiers", replayed_as: "tiers", layout: LayoutName::Tiers, settings: "" },
    Policy { name: "panels", replayed_as: "panels", layout: LayoutName::Panels, settings: "" },
    Policy { name: "inline", replayed_as: "inline", layout: LayoutName::Inline, settings: "" },
];

/// A name that the benchmark does not know.
#[derive(Debug, thiserror::Error)]
#[error("expected one of {0}")]
struct UnknownName(String);

fn work_kind(name: &str) -> Result<WorkKind, UnknownName> {
    WorkKind::named(name).ok_or_else(|| UnknownName(WorkKind::ALL.map(WorkKind::name).join(", ")))
}

fn policy(name: &str) -> Result<Policy, UnknownName> {
    let names = || POLICIES.map(|policy| policy.name).join(", ");
    POLICIES.into_iter().find(|policy| policy.name == name).ok_or_else(|| UnknownName(names()))
}

/// A session of one kind of work with one model, made by one policy.
struct Measurement {
    kind: WorkKind,
    model: String,
    policy: Policy,
    /// What a cached token costs, as a share of plain input.
    read_price: f64,
    outcome: LiveOutcome,
    append_only_units: f64,
    /// Of the append-only session, by its replay.
    clairvoyant: f64,
    floor: f64,
    /// What the replay of this very session says it cost, over its bill, less one.
    deviation: Option<f64>,
}

impl Measurement {
    fn ratio(&self) -> f64 {
        self.outcome.bill.units / self.append_only_units
    }

    fn garbage_share(&self) -> f64 {
        self.outcome.garbage as f64 / self.outcome.bill.last_prompt.max(1) as f64
    }

    /// The most that this may cost as a share of append-only, where there is such a limit. Short
    /// sessions have little to fold.
    fn limit(&self) -> Option<f64> {
        if self.outcome.bill.requests < 150 {
            return None;
        }
        let index = usize::from(self.read_price < 0.075);
        match (self.policy.name, self.kind) {
            ("strata", WorkKind::Edit) => Some([0.82, 0.90][index]),
            ("strata", WorkKind::TestLoop) => Some([0.80, 0.88][index]),
            ("strata", WorkKind::Explore) => Some([0.78, 0.86][index]),
            ("tiers" | "panels" | "inline", WorkKind::Edit) => Some(1.35),
            _ => None,
        }
    }

    fn json(&self) -> Value {
        let LiveOutcome { bill, session, folds, garbage, problems, replay: _ } = &self.outcome;
        json!({
            "kind": self.kind.name(), "model": self.model, "policy": self.policy.name,
            "requests": bill.requests, "units": bill.units, "usage": bill.usage,
            "last_prompt_tokens": bill.last_prompt, "longest_prompt_tokens": bill.longest_prompt,
            "of_append_only": self.ratio(), "limit": self.limit(),
            "read_price": self.read_price, "of_clairvoyant": bill.units / self.clairvoyant,
            "clairvoyant": self.clairvoyant, "floor": self.floor, "folds": folds,
            "garbage_tokens": garbage, "replay_deviation": self.deviation,
            "session": session, "problems": problems.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }

    fn row(&self) -> String {
        let bill = &self.outcome.bill;
        let deviation = self.deviation.map_or("–".into(), |share| format!("{:+.2}%", share * 100.0));
        let limit = self.limit().map_or_else(String::new, |limit| format!(" (≤ {limit:.2})"));
        format!(
            "| {} | {} | {} | {} | {:.0} | {:.0} | {:.3}{limit} | {:.3} | {:.3} | {} | {:.0}% | {deviation} |",
            self.kind.name(),
            self.model,
            self.policy.name,
            bill.requests,
            bill.last_prompt as f64 / 1000.0,
            bill.units,
            self.ratio(),
            bill.units / self.clairvoyant,
            bill.units / self.floor,
            self.outcome.folds,
            self.garbage_share() * 100.0,
        )
    }
}

const HEADER: &str = "| work | model | policy | requests | last prompt, 1,000 tokens | units | of append-only | of clairvoyant | of floor | folds | garbage | replay |
|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|";

/// What a token read from the cache costs, as a share of plain input.
fn read_price(model: &str) -> f64 {
    let found = Catalogue::builtin().model(None, model).ok();
    let price = found.and_then(|model| Some(model.price.cache_read? / model.price.input));
    price.expect("a model with a price for cached tokens")
}

/// Append-only, then what it is compared with.
fn policies_for(options: &Options, kind: WorkKind) -> Vec<Policy> {
    let is_default = |policy: &Policy| {
        policy.name == "strata" || (kind == WorkKind::Edit && policy.layout != LayoutName::Strata)
    };
    let chosen = match options.policy.is_empty() {
        true => POLICIES.into_iter().filter(is_default).collect(),
        false => options.policy.clone(),
    };
    [APPEND_ONLY].into_iter().chain(chosen).collect()
}

fn measure(options: &Options, folder: &Path) -> Vec<Measurement> {
    let mut measurements = Vec::new();
    let kinds = if options.kind.is_empty() { &WorkKind::ALL[..] } else { &options.kind };
    for kind in kinds {
        let shape =
            WorkShape { kind: *kind, seed: options.seed, requests: options.requests, runs: options.runs };
        let work = PlannedWork::new(shape);
        for model in &options.model {
            let mut reference = None;
            for policy in &policies_for(options, *kind) {
                eprintln!("{} · {model} · {} …", kind.name(), policy.name);
                let setup = LiveSetup {
                    binary: options.binary.clone(),
                    model: model.clone(),
                    layout: policy.layout,
                    settings: format!("{NO_SUMMARIES}{}", policy.settings),
                    processes: options.processes,
                    pauses: options.pauses,
                };
                let file =
                    folder.join(format!("{}-{model}-{}-{}.jsonl", kind.name(), policy.name, options.seed));
                let outcome = setup.run(&work, &file);
                let replay = &outcome.replay;
                let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
                let (append_only_units, clairvoyant, floor) = *reference.get_or_insert_with(|| {
                    (outcome.bill.units, number(&replay["clairvoyant"]), number(&replay["floor"]))
                });
                let replayed = &replay["layouts"][policy.replayed_as]["cost"];
                let deviation = replayed.as_f64().map(|cost| cost / outcome.bill.units - 1.0);
                let measurement = Measurement {
                    kind: *kind,
                    model: model.clone(),
                    policy: *policy,
                    read_price: read_price(model),
                    outcome,
                    append_only_units,
                    clairvoyant,
                    floor,
                    deviation,
                };
                eprintln!("{}", measurement.row());
                measurements.push(measurement);
            }
        }
    }
    measurements
}

fn main() -> ExitCode {
    let options = Options::parse();
    let temporary = tempfile::TempDir::new().expect("a folder");
    let folder = options.sessions.as_deref().unwrap_or(temporary.path());
    std::fs::create_dir_all(folder).expect("the folder for sessions");
    let measurements = measure(&options, folder);
    if options.json {
        let rows: Vec<Value> = measurements.iter().map(Measurement::json).collect();
        println!("{}", serde_json::to_string_pretty(&rows).expect("figures are JSON"));
    } else {
        println!("{HEADER}");
        measurements.iter().for_each(|measurement| println!("{}", measurement.row()));
    }
    let mut failed = false;
    for measurement in &measurements {
        for problem in &measurement.outcome.problems {
            failed = true;
            eprintln!(
                "{} · {} · {}: {problem}",
                measurement.kind.name(),
                measurement.model,
                measurement.policy.name
            );
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
