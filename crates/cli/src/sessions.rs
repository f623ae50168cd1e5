//! `hardpan sessions`: lists, searches, shows, exports and deletes conversations.

mod tree; // a session drawn as a tree

use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use hardpan_app::settings::UserFolders;
use hardpan_app::tool_set::SessionArtifacts;
use hardpan_session::{ExportFormat, ExportScope, Session, SessionError, SessionStore, SessionSummary};
use jiff::Timestamp;

use crate::command_setup::{session_store, working_folder};
use crate::output::{self, Align, OutputFormat, Table, dollars, safe};
use crate::views::{self, width};

/// Below this many columns, a list shows less about each session.
const NARROW: usize = 70;

/// From this many columns on, a list has room for the branches of git.
const WIDE: usize = 100;

/// Whether to ask the user before deleting.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    Ask,
    Skip,
}

/// Flags of `hardpan sessions`.
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  hardpan sessions --all
  hardpan sessions search build error
  hardpan sessions export 3f2a --output talk.html"
)]
pub struct SessionsArgs {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    folder_args: FolderArgs,
    /// Print the list as JSON
    #[arg(long)]
    json: bool,
}

/// Flags that choose whose sessions to list.
#[derive(Debug, clap::Args)]
struct FolderArgs {
    /// Include the sessions of all folders
    #[arg(long)]
    all: bool,
    /// Use the sessions of this folder [default: the current folder]
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    dir: Option<PathBuf>,
    /// Only sessions that were last used on this branch of git
    #[arg(long, value_name = "BRANCH")]
    branch: Option<String>,
}

/// The argument that names a session.
#[derive(Debug, clap::Args)]
struct SessionArg {
    /// Session id (or its beginning), name (or a part of it), or file
    #[arg(value_name = "SESSION")]
    text: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find messages that contain all of the given words
    Search {
        /// Words to search for; upper and lower case do not matter
        #[arg(required = true)]
        words: Vec<String>,
        #[command(flatten)]
        folder_args: FolderArgs,
        /// Print the messages as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a session's messages as a tree: `|-` marks a branch that was left, `*` the current
    /// message
    Show {
        #[command(flatten)]
        session: SessionArg,
    },
    /// Print the whole content of a message, also if requests show only a line of it
    Recall {
        #[command(flatten)]
        session: SessionArg,
        /// The message's id (`hardpan sessions show` lists them)
        #[arg(value_name = "ENTRY")]
        entry: String,
        /// Look on the branch that ends at this entry [default: the current branch]
        #[arg(long, value_name = "ENTRY")]
        branch: Option<String>,
        /// Print the content as JSON, with its images
        #[arg(long)]
        json: bool,
    },
    /// Export a session as Markdown, HTML or JSON lines
    Export {
        #[command(flatten)]
        session: SessionArg,
        /// Format: markdown, html (a self-contained page) or jsonl [default: by the extension of
        /// --output, else markdown]
        #[arg(long)]
        format: Option<ExportFormat>,
        /// Write to this file (.md, .html, .jsonl) instead of standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Export the branch that ends at this entry [default: the current branch]
        #[arg(long, value_name = "ENTRY")]
        branch: Option<String>,
        /// Export every branch
        #[arg(long, conflicts_with = "branch")]
        all: bool,
    },
    /// Print the path of a session's file
    Path {
        #[command(flatten)]
        session: SessionArg,
    },
    /// Delete a session permanently
    Delete {
        #[command(flatten)]
        session: SessionArg,
        /// Delete without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Runs `hardpan sessions` and its subcommands.
pub fn sessions(args: &SessionsArgs) -> Result<()> {
    let store = session_store()?;
    match &args.command {
        None => list(&store, &args.folder_args, OutputFormat::from_json_flag(args.json)),
        Some(Command::Search { words, folder_args, json }) => {
            search(&store, words, folder_args, OutputFormat::from_json_flag(*json))
        }
        Some(Command::Show { session }) => show(&find(&store, session)?),
        Some(Command::Recall { session, entry, branch, json }) => {
            let summary = find(&store, session)?;
            recall(&summary, branch.as_deref(), entry, OutputFormat::from_json_flag(*json))
        }
        Some(Command::Export { session, format, output, branch, all }) => {
            let extent = if *all { ExportScope::All } else { ExportScope::Branch(branch.as_deref()) };
            let format = format.map_or_else(|| format_of(output.as_deref()), Ok)?;
            export(&find(&store, session)?, extent, format, output.as_deref())
        }
        Some(Command::Path { session }) => {
            let path = find(&store, session)?.path;
            Ok(output::print(format!("{}\n", path.display()))?)
        }
        Some(Command::Delete { session, yes }) => {
            delete(&store, &find(&store, session)?, if *yes { Confirmation::Skip } else { Confirmation::Ask })
        }
    }
}

impl FolderArgs {
    fn folder(&self) -> Result<Option<PathBuf>> {
        if self.all { Ok(None) } else { working_folder(self.dir.as_deref()).map(Some) }
    }

    fn is_wanted(&self, session: &SessionSummary) -> bool {
        self.branch.is_none() || session.git_branch.as_deref() == self.branch.as_deref()
    }
}

fn find(store: &SessionStore, session: &SessionArg) -> Result<SessionSummary> {
    Ok(store.find(Some(&working_folder(None)?), &session.text)?)
}

fn list(store: &SessionStore, folder_args: &FolderArgs, format: OutputFormat) -> Result<()> {
    let mut sessions = store.list(folder_args.folder()?.as_deref());
    sessions.retain(|session| folder_args.is_wanted(session));
    if format == OutputFormat::Json {
        return output::print_json(&sessions);
    }
    if sessions.is_empty() {
        let place = if folder_args.all { "" } else { " here" };
        match &folder_args.branch {
            Some(branch) => note!("no session{place} was last used on the branch {}", safe(branch)),
            None => note!("no sessions{place} yet: start one with hardpan -p \"…\""),
        }
        return Ok(());
    }
    let folder: &[(&'static str, Align)] = if folder_args.all { &[("folder", Align::Left)] } else { &[] };
    let columns = list_columns(width());
    let mut table = Table::new(&[columns, folder, &[("about", Align::Left)]].concat());
    for session in &sessions {
        let mut cells = vec![
            session.id.to_string(),
            day_and_minute(session.last_activity),
            session.messages.to_string(),
            dollars(session.dollars),
            session.model.as_deref().unwrap_or("-").to_owned(),
            session.git_branch.as_deref().unwrap_or("-").to_owned(),
        ];
        cells.truncate(columns.len());
        cells.extend(folder_args.all.then(|| session.cwd.to_string()));
        cells.push(session_title(session));
        table.row(cells);
    }
    Ok(output::print(table.render(width()))?)
}

/// The columns of a list before a session's title. On a narrow terminal, the title is more useful than
/// the cost.
fn list_columns(width: usize) -> &'static [(&'static str, Align)] {
    const COLUMNS: [(&str, Align); 6] = [
        ("id", Align::Left),
        ("last used (UTC)", Align::Left),
        ("messages", Align::Right),
        ("cost", Align::Right),
        ("model", Align::Left),
        ("branch", Align::Left),
    ];
    match width {
        ..NARROW => &COLUMNS[..1],
        NARROW..WIDE => &COLUMNS[..5],
        _ => &COLUMNS,
    }
}

/// A time to the minute, in UTC: `2026-11-15 07:12`.
pub fn day_and_minute(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".into(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// The session's name, else its first prompt, with a warning if lines are damaged.
fn session_title(session: &SessionSummary) -> String {
    let name = session.name.as_deref().or(session.first_prompt.as_deref()).unwrap_or("");
    match session.problems {
        0 => name.to_owned(),
        1 => format!("(1 damaged line) {name}"),
        several => format!("({several} damaged lines) {name}"),
    }
}

fn search(
    store: &SessionStore,
    words: &[String],
    folder_args: &FolderArgs,
    format: OutputFormat,
) -> Result<()> {
    let mut matches = store.search(folder_args.folder()?.as_deref(), words);
    matches.retain(|found| folder_args.is_wanted(&found.summary));
    if format == OutputFormat::Json {
        return output::print_json(&matches);
    }
    if matches.is_empty() {
        let (here, wider) = if folder_args.all {
            ("", "")
        } else {
            (" here", "; --all searches the sessions of all folders")
        };
        note!("no message in the sessions{here} contains all of these words{wider}");
        return Ok(());
    }
    let columns =
        [("session", Align::Left), ("entry", Align::Left), ("role", Align::Left), ("line", Align::Left)];
    let mut table = Table::new(&columns);
    for found in matches {
        table.row([found.summary.id.to_string(), found.entry, found.role.to_owned(), found.excerpt]);
    }
    Ok(output::print(table.render(width()))?)
}

/// Opens a session, and prints the problems of its file.
fn open(summary: &SessionSummary) -> Result<Session> {
    let session = Session::open(&summary.path)?;
    for problem in &session.problems {
        note!("{}", safe(&format!("{}:{}: {}", summary.path.display(), problem.line, problem.kind)));
    }
    Ok(session)
}

fn show(summary: &SessionSummary) -> Result<()> {
    let session = open(summary)?;
    let name = session.name().map_or_else(String::new, |name| format!(" \"{name}\""));
    let mut text = safe(&format!("{}{name}, begun in {}", session.header.id, session.header.cwd)) + "\n";
    for line in tree::draw(&session) {
        let _ = writeln!(text, "{}", output::cut(&safe(&line), width()));
    }
    Ok(output::print(text)?)
}

fn recall(summary: &SessionSummary, branch: Option<&str>, entry: &str, format: OutputFormat) -> Result<()> {
    let stored = open(summary)?.stored_content(branch, entry)?;
    match format {
        OutputFormat::Json => output::print_json(&stored),
        OutputFormat::Text => Ok(output::print(views::stored_content(&stored))?),
    }
}

/// The export format for a file's extension; Markdown without a file.
fn format_of(file: Option<&Path>) -> Result<ExportFormat> {
    let Some(file) = file else { return Ok(ExportFormat::Markdown) };
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some("md" | "markdown") => Ok(ExportFormat::Markdown),
        Some("html" | "htm") => Ok(ExportFormat::Html),
        Some("jsonl") => Ok(ExportFormat::Jsonl),
        _ => bail!(
            "{}: unknown extension: use .md, .html or .jsonl, or add --format markdown, html or jsonl",
            file.display()
        ),
    }
}

fn export(
    summary: &SessionSummary,
    extent: ExportScope<'_>,
    format: ExportFormat,
    file: Option<&Path>,
) -> Result<()> {
    let text = render_export(&open(summary)?, extent, format)?;
    match file {
        Some(file) => std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display())),
        None if format == ExportFormat::Jsonl => Ok(output::print_controls(&text)?),
        None => Ok(output::print(text)?),
    }
}

/// An export as text. It is read with other programs: `cat` shows it, a browser, a viewer of JSON.
pub fn render_export(
    session: &Session,
    extent: ExportScope<'_>,
    format: ExportFormat,
) -> Result<String, SessionError> {
    let text = session.export(extent, format)?;
    Ok(match format {
        ExportFormat::Jsonl => output::escape_json(text),
        ExportFormat::Markdown | ExportFormat::Html => output::strip_lines(&text),
    })
}

fn delete(store: &SessionStore, summary: &SessionSummary, confirmation: Confirmation) -> Result<()> {
    let description = safe(&format!("{} ({})", summary.id, session_title(summary)));
    if confirmation == Confirmation::Ask && !io::stdin().is_terminal() {
        bail!("not deleting {description} without confirmation: add --yes");
    }
    if confirmation == Confirmation::Ask && !is_confirmed(&description)? {
        note!("nothing was deleted");
        return Ok(());
    }
    store.delete(summary)?;
    // The journal and the outputs of commands belong to the session.
    let artifacts = SessionArtifacts::for_session(&summary.id, &UserFolders::from_env(), None);
    artifacts.remove().with_context(|| format!("deleted {description}, but not all files of its tools"))?;
    note!("deleted {description}");
    Ok(())
}

fn is_confirmed(description: &str) -> Result<bool> {
    note_inline!("delete {description} permanently? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_has_room_for_what_a_session_is_about() {
        let names = |width| list_columns(width).iter().map(|(name, _)| *name).collect::<Vec<_>>();
        assert_eq!((names(69), names(70).len(), names(100).len()), (vec!["id"], 5, 6));
    }
}
