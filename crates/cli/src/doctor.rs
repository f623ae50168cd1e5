//! `hardpan doctor`: looks for what keeps Hardpan from working well on this machine, and says what to
//! do about it.

use std::env;
use std::fmt;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};
use hardpan_app::mcp::ServerReport;
use hardpan_app::options::TargetOptions;
use hardpan_app::settings::{Settings, UserFolders};
use hardpan_app::target::{ProviderReason, provider_reason, resolve_target};
use hardpan_mcp::ServerError;
use hardpan_sandbox::{SandboxSupport, sandbox_support};
use hardpan_workspace::{FolderKind, find_project_root};
use serde::Serialize;

use crate::chat::commands::pluralize;
use crate::command_setup::{StderrNotices, working_folder};
use crate::output::{self, safe};

/// Flags of `hardpan doctor`.
#[derive(Debug, clap::Args)]
pub struct DoctorArgs {
    /// Folder to look at [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// How a check ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    /// As it should be.
    Ok,
    /// Hardpan works, with something missing.
    Warning,
    /// Something does not work.
    Problem,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Outcome::Ok => "ok",
            Outcome::Warning => "!",
            Outcome::Problem => "x",
        })
    }
}

/// One thing that was looked at.
#[derive(Debug, Serialize)]
struct Check {
    name: &'static str,
    outcome: Outcome,
    /// What was found.
    found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Check { name, outcome: Outcome::Ok, found: found.into(), remedy: None }
    }

    fn warning(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (outcome, remedy) = (Outcome::Warning, Some(remedy.into()));
        Check { name, outcome, found: found.into(), remedy }
    }

    fn problem(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        Check { outcome: Outcome::Problem, ..Check::warning(name, found, remedy) }
    }
}

/// Runs `hardpan doctor`. Fails if anything does not work.
pub fn doctor(args: &DoctorArgs) -> Result<()> {
    let folder = working_folder(args.dir.as_deref())?;
    let root = find_project_root(&folder);
    let folders = UserFolders::from_env();
    let mut checks = vec![Check::ok("version", env!("CARGO_PKG_VERSION"))];
    match Settings::load(&root, folders.clone(), &StderrNotices) {
        Ok(settings) => {
            checks.push(Check::ok("settings", "can be read"));
            checks.push(check_keys(&settings));
            checks.extend(check_servers(&folder, &settings));
        }
        Err(error) => checks.push(Check::problem(
            "settings",
            output::error_text(&error.into()),
            "correct the file, or move it away",
        )),
    }
    checks.extend(check_folders(&folders));
    checks.push(check_workspace(&root));
    checks.push(check_git());
    checks.push(check_sandbox());
    checks.extend(check_watch_limit());
    checks.extend(check_terminal());
    if args.json {
        output::print_json(&checks)?;
    } else {
        output::print(checks.iter().map(line).collect::<String>())?;
    }
    let problems = checks.iter().filter(|check| check.outcome == Outcome::Problem).count();
    if problems > 0 {
        bail!("{problems} of {} checks failed", checks.len());
    }
    Ok(())
}

fn line(check: &Check) -> String {
    let Check { name, outcome, found, remedy } = check;
    let mut line = format!("{:<3}{name:<11}{}\n", outcome.to_string(), safe(found));
    if let Some(remedy) = remedy {
        line.push_str(&format!("{:14}{}\n", "", safe(remedy)));
    }
    line
}

fn check_keys(settings: &Settings) -> Check {
    let mut with_key = Vec::new();
    for provider in settings.catalogue.providers() {
        match settings.key_source(&provider.id, &provider.profile) {
            Ok(Some(source)) => with_key.push((provider.id.as_str(), source)),
            Ok(None) => {}
            Err(error) => {
                let remedy = "correct keys.toml, and let only yourself read it (chmod 600)";
                return Check::problem("keys", output::error_text(&error.into()), remedy);
            }
        }
    }
    if with_key.is_empty() {
        let remedy = "run `hardpan key PROVIDER`, or set ANTHROPIC_API_KEY or another provider's variable (`hardpan providers` lists them)";
        return Check::warning("keys", "none: an offline assistant answers", remedy);
    }
    let named: Vec<String> = with_key.iter().map(|(id, source)| format!("{id} ({source})")).collect();
    let found = format!("found for {}", named.join(", "));
    let options = TargetOptions::default();
    let Ok(target) = resolve_target(&options, settings, None) else { return Check::ok("keys", found) };
    let used = target.provider;
    let why = match provider_reason(&options, settings) {
        ProviderReason::Named(name) => format!("because {name} says so"),
        ProviderReason::Setting(name) => format!("because `{name}` in config.toml says so"),
        ProviderReason::OnlyKey => "the only one with a key".to_owned(),
        ProviderReason::FirstOfSeveral => {
            "the first in the order of preference; `provider` in config.toml chooses".to_owned()
        }
        ProviderReason::NoKey => "the default".to_owned(),
    };
    if with_key.iter().any(|(id, _)| *id == used) {
        return Check::ok("keys", format!("{found}; {used} is used, {why}"));
    }
    let remedy = format!("run `hardpan key {used}`, or name another provider in config.toml");
    Check::warning("keys", format!("{found}; but {used} is used, {why}, and has none"), remedy)
}

/// Starts the MCP servers, and says which of them cannot be used.
fn check_servers(folder: &Path, settings: &Settings) -> Vec<Check> {
    if settings.config.mcp_servers.is_empty() {
        return Vec::new();
    }
    let reports = match crate::mcp::start_servers(folder) {
        Ok((reports, ..)) => reports,
        Err(error) => {
            let remedy = "remove what is wrong with them from config.toml (`hardpan docs mcp`)";
            return vec![Check::problem("mcp", output::error_text(&error), remedy)];
        }
    };
    let check = |report: &ServerReport| match &report.tools {
        _ if !report.enabled => Check::ok("mcp", format!("{}: disabled", report.name)),
        Ok(tools) => Check::ok("mcp", format!("{}: {}", report.name, pluralize(tools.len(), "tool"))),
        Err(error) => Check::problem(
            "mcp",
            format!("{}: {error}", report.name),
            format!("{} (`hardpan docs mcp`)", server_remedy(error, report.name.as_str())),
        ),
    };
    reports.iter().map(check).collect()
}

/// What to do about a server that cannot be used.
fn server_remedy(error: &ServerError, name: &str) -> String {
    match error {
        ServerError::NoProgram(_) | ServerError::NotStarted(_) => {
            format!("install the program, or correct `command` of [mcp_servers.{name}]")
        }
        ServerError::Refused(_) => "see what keeps the sandbox from working, below".to_owned(),
        ServerError::NoToken(variable) => format!("set the variable {variable}"),
        ServerError::InvalidHeader(_) => format!("correct `headers` of [mcp_servers.{name}]"),
        ServerError::StartTimeout(..) | ServerError::CallTimeout(_) => {
            format!("run its command by hand, or raise `start_seconds` of [mcp_servers.{name}]")
        }
        _ => {
            format!("run its command by hand, or leave it out with `enabled = false` in [mcp_servers.{name}]")
        }
    }
}

fn check_folders(folders: &UserFolders) -> Vec<Check> {
    let named =
        [("sessions", &folders.data, "HARDPAN_DATA_DIR"), ("cache", &folders.cache, "HARDPAN_CACHE_DIR")];
    let check = |(name, folder, variable): (&'static str, &Option<PathBuf>, &str)| match folder {
        None => {
            Check::problem(name, "there is no folder to store them in", format!("set HOME or {variable}"))
        }
        Some(folder) => match is_writable(folder) {
            Ok(()) => Check::ok(name, folder.display().to_string()),
            Err(error) => Check::problem(
                name,
                format!("cannot write to {}: {error}", folder.display()),
                format!("change its permissions, or set {variable}"),
            ),
        },
    };
    named.into_iter().map(check).collect()
}

/// Whether files can be made in a folder, or the folder itself.
fn is_writable(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let probe = folder.join(format!(".doctor-{}", std::process::id()));
    std::fs::File::create_new(&probe)?;
    std::fs::remove_file(&probe)
}

fn check_workspace(root: &Path) -> Check {
    let found = root.display().to_string();
    match FolderKind::of(root) {
        FolderKind::Project => Check::ok("folder", found),
        FolderKind::Plain => Check::ok("folder", format!("{found}, not a repository")),
        FolderKind::CatchAll => Check::warning(
            "folder",
            format!("{found} is not a project: only a part of its files is listed and indexed"),
            "start in a project's folder",
        ),
    }
}

fn check_git() -> Check {
    let version = Command::new("git").arg("--version").stdin(Stdio::null()).output();
    match version {
        Ok(output) if output.status.success() => {
            Check::ok("git", String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => Check::warning(
            "git",
            String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            "without git there is no status, no diff and no `hardpan commit`",
        ),
        Err(error) => Check::warning(
            "git",
            format!("cannot be run: {error}"),
            "install git: without it there is no status, no diff and no `hardpan commit`",
        ),
    }
}

fn check_sandbox() -> Check {
    match sandbox_support() {
        SandboxSupport::Full => {
            Check::ok("sandbox", "commands of the model write here only, without network")
        }
        SandboxSupport::Partial(missing) => Check::warning(
            "sandbox",
            format!("incomplete: {missing}"),
            "commands of the model ask first (`hardpan docs security`)",
        ),
        SandboxSupport::None(reason) => Check::warning(
            "sandbox",
            format!("none: {reason}"),
            "every command of the model asks first (`hardpan docs security`)",
        ),
    }
}

/// How many folders may be watched for changes; nothing where the system has no such limit.
fn check_watch_limit() -> Option<Check> {
    const FEW: u64 = 8192;
    let text = std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    let limit: u64 = text.trim().parse().ok()?;
    let found = format!("{limit} folders can be watched");
    Some(if limit > FEW {
        Check::ok("watching", found)
    } else {
        let remedy = "larger trees are read again before each request; raise fs.inotify.max_user_watches";
        Check::warning("watching", found, remedy)
    })
}

fn check_terminal() -> Vec<Check> {
    let mut checks = Vec::new();
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        checks.push(Check::ok("terminal", "this is not one: only `hardpan -p` and the commands work here"));
        return checks;
    }
    let term = env::var("TERM").unwrap_or_default();
    let size = terminal_size::terminal_size().map(|(columns, rows)| (columns.0, rows.0));
    let found = match size {
        Some((columns, rows)) => format!("{term}, {columns}×{rows}"),
        None => format!("{term}, of unknown size"),
    };
    checks.push(match (term.as_str(), size) {
        ("" | "dumb", _) => Check::warning("terminal", found, "lines are plain; set TERM for more"),
        (_, Some((columns, _))) if columns < 40 => {
            Check::warning("terminal", found, "make it at least 40 columns wide")
        }
        _ => Check::ok("terminal", found),
    });
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
        .iter()
        .find_map(|name| env::var(name).ok().filter(|it| !it.is_empty()));
    let locale = locale.unwrap_or_else(|| "none".to_owned());
    let is_utf8 = locale.to_lowercase().replace('-', "").contains("utf8");
    checks.push(if is_utf8 {
        Check::ok("locale", locale)
    } else {
        Check::warning(
            "locale",
            locale,
            "set LANG to one that ends in .UTF-8, or special characters may be garbled",
        )
    });
    checks
}
