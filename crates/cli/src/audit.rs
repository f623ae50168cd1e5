//! `hardpan audit`: what recorded sessions cost, and what was paid twice.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hardpan_audit::{Audit, Recording, Report, report};
use hardpan_models::Catalogue;

use crate::output::{self, safe, safe_lines};
use crate::settings::data_folder;

/// How deep a folder is looked through: Codex has `year/month/day/file`.
pub const MAX_FOLDER_DEPTH: usize = 8;

/// What is audited, and how it is shown.
#[derive(Debug, clap::Args)]
pub struct AuditArgs {
    /// Sessions of pi, Claude Code, Codex or Hardpan, or folders of them
    #[arg(required_unless_present = "discover")]
    files: Vec<PathBuf>,
    /// Look in the usual places of all these agents
    #[arg(long)]
    discover: bool,
    /// Print the audit as JSON (docs/audit.md)
    #[arg(long)]
    json: bool,
    /// Write a page with plots, which needs nothing else
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show so many losses, the dearest first
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

/// Runs what was asked for.
pub fn audit(args: &AuditArgs) -> Result<()> {
    let files = files(args)?;
    let catalogue = catalogue();
    let audits = audits(&files, &catalogue, args);
    if audits.is_empty() {
        bail!("no session could be read");
    }
    if let Some(path) = &args.html {
        let page = report::page(&audits, args.top.max(100));
        std::fs::write(path, page).with_context(|| format!("{} cannot be written", path.display()))?;
        eprintln!("the page is in {}", safe(&path.display().to_string()));
    }
    if args.json {
        return Ok(output::print(serde_json::to_string_pretty(&Report::from_audits(&audits))? + "\n")?);
    }
    Ok(output::print(safe_lines(&report::summary(&audits, args.top)))?)
}

/// The user's own prices, where there are any; settings that cannot be read are no reason not to look at a bill.
pub fn catalogue() -> Catalogue {
    match crate::run::load_settings(None) {
        Ok(settings) => settings.catalogue,
        Err(error) => {
            eprintln!("hardpan: the settings are left out: {}", safe_lines(&format!("{error:#}")));
            Catalogue::builtin().clone()
        }
    }
}

/// The files that were named or found.
fn files(args: &AuditArgs) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in &args.files {
        if path.is_dir() { collect_session_files(path, MAX_FOLDER_DEPTH, &mut files) } else { files.push(path.clone()) }
    }
    if args.discover {
        let places = default_session_folders();
        places.iter().for_each(|place| collect_session_files(place, MAX_FOLDER_DEPTH, &mut files));
        if files.is_empty() {
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            bail!("no sessions were found in {}", places.join(", "));
        }
    }
    if files.is_empty() {
        bail!("no sessions (*.jsonl) are in the folders that were named");
    }
    Ok(files)
}

/// Where agents keep their sessions; each has a variable that moves it.
fn default_session_folders() -> Vec<PathBuf> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let moved = |name: &str, usual: &str| of(name).or_else(|| of("HOME").map(|home| home.join(usual)));
    let places = [
        moved("PI_CODING_AGENT_DIR", ".pi/agent").map(|folder| folder.join("sessions")),
        moved("CLAUDE_CONFIG_DIR", ".claude").map(|folder| folder.join("projects")),
        moved("CODEX_HOME", ".codex").map(|folder| folder.join("sessions")),
        data_folder().map(|folder| folder.join("sessions")),
    ];
    places.into_iter().flatten().collect()
}

/// All session files below a folder, by name. Links to folders are not followed: they could lead round in a circle.
pub fn collect_session_files(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth > 0 => collect_session_files(&path, depth - 1, files),
            Ok(_) if path.extension().is_some_and(|ending| ending == "jsonl") && path.is_file() => {
                files.push(path);
            }
            _ => {}
        }
    }
}

/// The audits of those that can be read; the others are named.
fn audits(files: &[PathBuf], catalogue: &Catalogue, args: &AuditArgs) -> Vec<Audit> {
    let mut progress = Progress { shown: files.len() > 1 && io::stderr().is_terminal(), all: files.len() };
    let mut audits = Vec::new();
    for (number, file) in files.iter().enumerate() {
        progress.show(number);
        match Recording::open(file) {
            // Of what was only found, sessions in which nothing was billed are no news.
            Ok(recording) if recording.requests.is_empty() && args.discover => {}
            Ok(recording) => audits.push(Audit::from_recording(&recording, catalogue)),
            Err(error) => {
                progress.clear();
                eprintln!("hardpan: left out: {}", safe_lines(&error.to_string()));
            }
        }
    }
    progress.clear();
    audits
}

/// A line on a terminal that tells how far it is.
struct Progress {
    shown: bool,
    all: usize,
}

impl Progress {
    fn show(&mut self, number: usize) {
        if self.shown {
            eprint!("\r{number} of {} sessions\u{1b}[K", self.all);
            let _ = io::stderr().flush();
        }
    }

    fn clear(&mut self) {
        if self.shown {
            eprint!("\r\u{1b}[K");
        }
    }
}
