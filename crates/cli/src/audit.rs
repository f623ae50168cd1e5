//! `hardpan audit`: analyses what recorded sessions cost, and what they paid twice.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use hardpan_app::settings::UserFolders;
use hardpan_audit::import::ImportError;
use hardpan_audit::{Audit, Recording, Report, report};
use hardpan_models::Catalogue;

use crate::command_setup::load_settings;
use crate::output::{self, error_text, safe, safe_lines};

/// How deep to search a folder. Codex stores `year/month/day/file`; this leaves room above that.
pub const MAX_FOLDER_DEPTH: usize = 8;

/// Flags of `hardpan audit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hardpan audit --discover
  hardpan audit ~/.claude/projects --html report.html")]
pub struct AuditArgs {
    /// Session files of pi, Claude Code, Codex, Qwen Code or Hardpan, or folders that contain them
    #[arg(required_unless_present = "discover")]
    files: Vec<PathBuf>,
    /// Search the default folders of all these agents
    #[arg(long)]
    discover: bool,
    /// Print the audit as JSON (see `hardpan docs audit`)
    #[arg(long)]
    json: bool,
    /// Also write a self-contained HTML page with plots
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show the N most expensive losses
    #[arg(long, value_name = "N", default_value_t = 10)]
    top: usize,
}

/// Runs `hardpan audit`.
pub fn audit(args: &AuditArgs) -> Result<()> {
    let files = files(args)?;
    let catalogue = catalogue();
    let mut progress = Progress { shown: files.len() > 1 && io::stderr().is_terminal(), all: files.len() };
    let audits = audit_files(&files, &catalogue, args.discover, &mut |number| progress.show(number));
    progress.clear();
    if audits.is_empty() {
        bail!("cannot read any of these sessions");
    }
    if let Some(path) = &args.html {
        let page = report::page(&audits, args.top.max(100));
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        note!("wrote {}", safe(&path.display().to_string()));
    }
    if args.json {
        return output::print_json(&Report::from_audits(&audits));
    }
    Ok(output::print_wrapped(safe_lines(&report::summary(&audits, args.top)))?)
}

/// The catalogue with the user's own prices. Settings that cannot be read are reported and ignored:
/// an audit needs none.
pub fn catalogue() -> Catalogue {
    match load_settings(None) {
        Ok(settings) => settings.catalogue.clone(),
        Err(error) => {
            note!("hardpan: ignoring your settings: {}", safe_lines(&error_text(&error)));
            Catalogue::builtin().clone()
        }
    }
}

/// The session files that were named, or found with `--discover`.
fn files(args: &AuditArgs) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in &args.files {
        if path.is_dir() {
            collect_session_files(path, MAX_FOLDER_DEPTH, &mut files);
        } else {
            files.push(path.clone());
        }
    }
    if args.discover {
        let places: Vec<PathBuf> = session_places().into_iter().map(|place| place.folder).collect();
        places.iter().for_each(|place| collect_session_files(place, MAX_FOLDER_DEPTH, &mut files));
        if files.is_empty() {
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            bail!("found no sessions in {}", places.join(", "));
        }
    }
    if files.is_empty() {
        bail!("found no sessions (*.jsonl) in these folders");
    }
    Ok(files)
}

/// A folder where an agent stores its sessions.
pub struct SessionPlace {
    /// The agent, as people know it.
    pub name: &'static str,
    pub folder: PathBuf,
    /// It is Hardpan's own.
    pub is_own: bool,
}

/// The folders where agents store their sessions. For each, a variable overrides the default.
pub fn session_places() -> Vec<SessionPlace> {
    let of = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let moved = |name: &str, usual: &str| of(name).or_else(|| of("HOME").map(|home| home.join(usual)));
    let places = [
        ("pi", moved("PI_CODING_AGENT_DIR", ".pi/agent").map(|folder| folder.join("sessions"))),
        ("Claude Code", moved("CLAUDE_CONFIG_DIR", ".claude").map(|folder| folder.join("projects"))),
        ("Codex", moved("CODEX_HOME", ".codex").map(|folder| folder.join("sessions"))),
        ("Qwen Code", of("HOME").map(|home| home.join(".qwen/projects"))),
        (OWN_NAME, UserFolders::from_env().sessions()),
    ];
    let place = |(name, folder): (&'static str, Option<PathBuf>)| {
        Some(SessionPlace { name, folder: folder?, is_own: name == OWN_NAME })
    };
    places.into_iter().filter_map(place).collect()
}

/// How Hardpan's own sessions are called.
const OWN_NAME: &str = "Hardpan";

/// Appends all session files below a folder to `files`, sorted by name. Does not follow links to
/// folders, which could form a cycle.
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

/// Audits the files that can be read, and reports the others on standard error. `progress` is told how many
/// are done. With `skip_empty`, sessions without a bill are only counted.
pub fn audit_files(
    files: &[PathBuf],
    catalogue: &Catalogue,
    skip_empty: bool,
    progress: &mut dyn FnMut(usize),
) -> Vec<Audit> {
    let (mut audits, mut without_bill, mut skipped) = (Vec::new(), 0, Vec::new());
    for (number, file) in files.iter().enumerate() {
        progress(number);
        match Recording::open(file) {
            Ok(recording) => audits.push(Audit::from_recording(&recording, catalogue)),
            // Folders of sessions are full of those that ended before an answer.
            Err(ImportError::NoRequests { .. }) if skip_empty => without_bill += 1,
            Err(error) => skipped.push(error.to_string()),
        }
    }
    progress(files.len());
    skipped.iter().for_each(|error| note!("hardpan: skipped: {}", safe_lines(error)));
    if without_bill > 0 {
        note!("hardpan: skipped {without_bill} sessions without a billed request");
    }
    Audit::deduct_sub_agents(&mut audits);
    audits
}

/// A progress line on the terminal.
struct Progress {
    shown: bool,
    all: usize,
}

impl Progress {
    fn show(&mut self, number: usize) {
        if self.shown {
            progress!("\r{number} of {} sessions\u{1b}[K", self.all);
        }
    }

    fn clear(&mut self) {
        if self.shown {
            progress!("\r\u{1b}[K");
        }
    }
}
