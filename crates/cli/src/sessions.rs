//! `hardpan sessions`: lists, searches, shows, exports and deletes conversations.

mod tree; // a session drawn as a tree

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Subcommand;
use hardpan_session::{Extent, Format, Session, Store, Summary};
use jiff::Timestamp;

use crate::chat::hands::Traces;
use crate::gather;
use crate::output::{self, Align, Table, dollars, safe};
use crate::settings::data_folder;
use crate::views::width;

/// Below so many columns a list shows less of each session.
const NARROW: usize = 70;

/// How something is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Show {
    Text,
    Json,
}

/// Whether a person is asked first.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    First,
    Not,
}

/// What of the sessions is wanted.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Sessions {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    whose: Whose,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// Of which folder.
#[derive(Debug, clap::Args)]
struct Whose {
    /// Those of all folders
    #[arg(long)]
    all: bool,
    /// The folder [default: this one]
    #[arg(long, value_name = "FOLDER", conflicts_with = "all")]
    dir: Option<PathBuf>,
}

/// One session.
#[derive(Debug, clap::Args)]
struct Which {
    /// Its id or the beginning of it, its name or a part of it, or its file
    #[arg(value_name = "SESSION")]
    text: String,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find messages that hold all of these words
    Search {
        /// The words, in any case of letters
        #[arg(required = true)]
        words: Vec<String>,
        #[command(flatten)]
        whose: Whose,
        /// Print the messages as JSON
        #[arg(long)]
        json: bool,
    },
    /// Show a session's messages as a tree: `|-` is where a branch was left, `*` where the session goes on
    Show {
        #[command(flatten)]
        which: Which,
    },
    /// Print a session as a document
    Export {
        #[command(flatten)]
        which: Which,
        /// markdown, html (one page that needs nothing else) or jsonl [default: by the ending of --output, else markdown]
        #[arg(long)]
        format: Option<Format>,
        /// Write to this file (.md, .html, .jsonl) instead of standard output
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// The branch that ends at this entry [default: the last one]
        #[arg(long, value_name = "ENTRY")]
        branch: Option<String>,
        /// Every branch
        #[arg(long, conflicts_with = "branch")]
        all: bool,
    },
    /// Print the path of a session's file
    Path {
        #[command(flatten)]
        which: Which,
    },
    /// Delete a session for good
    Delete {
        #[command(flatten)]
        which: Which,
        /// Do not ask
        #[arg(long)]
        yes: bool,
    },
}

/// Runs what was asked for.
pub fn sessions(args: &Sessions) -> Result<()> {
    let store = store()?;
    match &args.command {
        None => list(&store, &args.whose, show_as(args.json)),
        Some(Command::Search { words, whose, json }) => search(&store, words, whose, show_as(*json)),
        Some(Command::Show { which }) => show(&find(&store, which)?),
        Some(Command::Export { which, format, output, branch, all }) => {
            let extent = if *all { Extent::All } else { Extent::Branch(branch.as_deref()) };
            let format = format.map_or_else(|| format_of(output.as_deref()), Ok)?;
            export(&find(&store, which)?, extent, format, output.as_deref())
        }
        Some(Command::Path { which }) => {
            let path = find(&store, which)?.path;
            Ok(output::print(format!("{}\n", path.display()))?)
        }
        Some(Command::Delete { which, yes }) => {
            delete(&store, &find(&store, which)?, if *yes { Ask::Not } else { Ask::First })
        }
    }
}

fn show_as(json: bool) -> Show {
    if json { Show::Json } else { Show::Text }
}

/// Where the sessions are kept.
fn store() -> Result<Store> {
    let folder = data_folder().context("there is no folder for sessions: set HOME or HARDPAN_DATA_DIR")?;
    Ok(Store::new(folder.join("sessions")))
}

impl Whose {
    fn folder(&self) -> Result<Option<PathBuf>> {
        if self.all { Ok(None) } else { gather::folder(self.dir.as_deref()).map(Some) }
    }
}

fn find(store: &Store, which: &Which) -> Result<Summary> {
    Ok(store.find(Some(&gather::folder(None)?), &which.text)?)
}

fn list(store: &Store, whose: &Whose, show: Show) -> Result<()> {
    let sessions = store.list(whose.folder()?.as_deref());
    if show == Show::Json {
        return Ok(output::print(serde_json::to_string_pretty(&sessions)? + "\n")?);
    }
    if sessions.is_empty() {
        let place = if whose.all { "" } else { " here" };
        eprintln!("no sessions{place} yet: hardpan -p \"…\" starts one");
        return Ok(());
    }
    let folder: &[(&'static str, Align)] = if whose.all { &[("folder", Align::Left)] } else { &[] };
    let columns = [
        ("id", Align::Left),
        ("last used (UTC)", Align::Left),
        ("messages", Align::Right),
        ("cost", Align::Right),
        ("model", Align::Left),
    ];
    // On a narrow terminal, what a session is about says more than what it cost.
    let columns = if width() < NARROW { &columns[..1] } else { &columns[..] };
    let mut table = Table::new(&[columns, folder, &[("about", Align::Left)]].concat());
    for session in &sessions {
        let mut cells = vec![
            session.id.to_string(),
            day_and_minute(session.last_activity),
            session.messages.to_string(),
            dollars(session.dollars),
            session.model.as_deref().unwrap_or("-").to_owned(),
        ];
        cells.truncate(columns.len());
        cells.extend(whose.all.then(|| session.cwd.to_string()));
        cells.push(about(session));
        table.row(cells);
    }
    Ok(output::print(table.render(width()))?)
}

/// `2026-11-15 07:12`.
fn day_and_minute(time: Option<Timestamp>) -> String {
    time.map_or_else(|| "-".into(), |time| time.strftime("%Y-%m-%d %H:%M").to_string())
}

/// Its name, else what was first asked.
fn about(session: &Summary) -> String {
    let name = session.name.as_deref().or(session.first_prompt.as_deref()).unwrap_or("");
    match session.problems {
        0 => name.to_owned(),
        1 => format!("(1 damaged line) {name}"),
        several => format!("({several} damaged lines) {name}"),
    }
}

fn search(store: &Store, words: &[String], whose: &Whose, show: Show) -> Result<()> {
    let matches = store.search(whose.folder()?.as_deref(), words);
    if show == Show::Json {
        return Ok(output::print(serde_json::to_string_pretty(&matches)? + "\n")?);
    }
    if matches.is_empty() {
        let (here, wider) =
            if whose.all { ("", "") } else { (" here", "; --all searches those of all folders") };
        eprintln!("no message of the sessions{here} holds all of these words{wider}");
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

/// Opens a session, and says what is wrong with it.
fn open(summary: &Summary) -> Result<Session> {
    let session = Session::open(&summary.path)?;
    for problem in &session.problems {
        eprintln!("{}", safe(&format!("{}:{}: {}", summary.path.display(), problem.line, problem.what)));
    }
    Ok(session)
}

fn show(summary: &Summary) -> Result<()> {
    let session = open(summary)?;
    let name = session.name().map_or_else(String::new, |name| format!(" \"{name}\""));
    let mut text = safe(&format!("{}{name}, begun in {}", session.header.id, session.header.cwd)) + "\n";
    for line in tree::lines(&session) {
        let _ = writeln!(text, "{}", output::cut(&safe(&line), width()));
    }
    Ok(output::print(text)?)
}

/// The format that the ending of a file names; Markdown where there is no file.
fn format_of(file: Option<&Path>) -> Result<Format> {
    let Some(file) = file else { return Ok(Format::Markdown) };
    let ending = file.extension().map(|ending| ending.to_string_lossy().to_lowercase());
    match ending.as_deref() {
        Some("md" | "markdown") => Ok(Format::Markdown),
        Some("html" | "htm") => Ok(Format::Html),
        Some("jsonl") => Ok(Format::Jsonl),
        _ => bail!(
            "{}: its ending names no format: end it in .md, .html or .jsonl, or add --format markdown, html or jsonl",
            file.display()
        ),
    }
}

fn export(summary: &Summary, extent: Extent<'_>, format: Format, file: Option<&Path>) -> Result<()> {
    let text = open(summary)?.export(extent, format)?;
    match file {
        Some(file) => {
            std::fs::write(file, text).with_context(|| format!("{} cannot be written", file.display()))
        }
        None if io::stdout().is_terminal() => Ok(output::print(output::safe_lines(&text))?),
        None => Ok(output::print(text)?),
    }
}

fn delete(store: &Store, summary: &Summary, ask: Ask) -> Result<()> {
    let what = safe(&format!("{} ({})", summary.id, about(summary)));
    if ask == Ask::First && !io::stdin().is_terminal() {
        bail!("{what} is not deleted without being asked for: add --yes");
    }
    if ask == Ask::First && !is_confirmed(&what)? {
        eprintln!("nothing was deleted");
        return Ok(());
    }
    store.delete(summary)?;
    // Former contents of files and outputs of commands go with what was said about them.
    let traces = Traces::of(&summary.id, None);
    traces.remove().with_context(|| format!("{what} is deleted, but not all that its tools left"))?;
    eprintln!("deleted {what}");
    Ok(())
}

fn is_confirmed(what: &str) -> Result<bool> {
    eprint!("delete {what} for good? [y/N] ");
    io::stderr().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
