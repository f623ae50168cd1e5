//! `hardpan import`: goes on with a conversation that began in another agent.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, bail};
use hardpan_app::gather::canonical_folder;
use hardpan_app::imported_session::{began_here, store_imported_session};
use hardpan_app::settings::UserFolders;
use hardpan_audit::{
    EntryContent, ImportedConversation, LeftOut, RecordedPart, Recording, SourceAgent, Speaker,
};
use hardpan_session::SessionStore;
use serde::Serialize;
use serde_json::json;

use crate::audit::{MAX_FOLDER_DEPTH, collect_session_files, session_places};
use crate::output::{self, Align, Table, cut, safe};
use crate::views::width;

/// How much of a file is read to say whose session it is.
const HEAD_BYTES: u64 = 256 * 1024;
/// How many files are looked at for a list, the newest first.
const MAX_LISTED: usize = 500;
/// How much of the first prompt a list shows, in characters.
const TITLE_CHARS: usize = 60;

/// Flags of `hardpan import`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  hardpan import --list
  hardpan import --last && hardpan --continue
  hardpan import ~/.codex/sessions/2026/11/16/rollout-….jsonl")]
pub struct ImportArgs {
    /// Session file of Claude Code, Codex, pi or Qwen Code
    #[arg(required_unless_present_any = ["last", "list"], conflicts_with_all = ["last", "list"])]
    file: Option<PathBuf>,
    /// Import the newest session that another agent recorded in this project
    #[arg(long, conflicts_with = "list")]
    last: bool,
    /// List the sessions that other agents recorded in this project, newest first
    #[arg(long)]
    list: bool,
    /// With --list: those of all projects
    #[arg(long, requires = "list")]
    all: bool,
    /// Import a session of another folder, or of a file that is not where its agent stores its sessions
    #[arg(long, conflicts_with = "list")]
    foreign: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Folder to work in [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// Runs `hardpan import`.
pub fn import(args: &ImportArgs) -> Result<()> {
    let folder = canonical_folder(args.dir.as_deref().unwrap_or(Path::new(".")))?;
    if args.list {
        let found = recorded_sessions(|began_in| args.all || began_here(began_in, &folder));
        return print_list(&found, args.json);
    }
    let file = match &args.file {
        Some(file) => file.clone(),
        None => {
            let newest = recorded_sessions(|began_in| began_here(began_in, &folder)).into_iter().next();
            let Some(newest) = newest else {
                bail!(
                    "no other agent has recorded a session in this project; `hardpan import --list --all` lists those of other projects"
                );
            };
            newest.file
        }
    };
    let recording = Recording::open_conversation(&file)?;
    if recording.agent == SourceAgent::Hardpan {
        bail!(
            "{} is a conversation of Hardpan: continue it with `hardpan --resume FILE --foreign`",
            file.display()
        );
    }
    if !args.foreign {
        refuse_foreign(&recording, &file, &folder)?;
    }
    let conversation = ImportedConversation::new(&recording);
    if conversation.messages == 0 {
        bail!("{} holds no message that could be continued", file.display());
    }
    let Some(sessions) = UserFolders::from_env().sessions() else {
        bail!("no folder to store sessions in: set HOME or HARDPAN_DATA_DIR");
    };
    let origin = json!({
        "agent": recording.agent.name(),
        "session": recording.id,
        "cwd": recording.cwd,
        "model": conversation.model,
    });
    let stored = store_imported_session(&SessionStore::new(sessions), &folder, conversation.entries, origin)?;
    let result = ImportResult {
        id: stored.id,
        file: stored.path.display().to_string(),
        agent: recording.agent.name(),
        messages: conversation.messages,
        model: conversation.model.as_deref(),
        left_out: conversation.left_out,
    };
    if args.json {
        return output::print_json(&result);
    }
    Ok(output::print(result.text(recording.agent))?)
}

/// What `hardpan import` has done.
#[derive(Serialize)]
struct ImportResult<'a> {
    id: String,
    file: String,
    agent: &'static str,
    messages: usize,
    model: Option<&'a str>,
    left_out: LeftOut,
}

impl ImportResult<'_> {
    fn text(&self, agent: SourceAgent) -> String {
        let mut text =
            format!("imported {} messages of a session of {} as {}\n", self.messages, agent.title(), self.id);
        for line in self.left_out.lines() {
            text.push_str(&format!("  left out: {line}\n"));
        }
        text.push_str("Go on with it: hardpan --continue\n");
        text
    }
}

/// Refuses a session that did not come about here: what it says, the model believes.
fn refuse_foreign(recording: &Recording, file: &Path, folder: &Path) -> Result<()> {
    let place = file.canonicalize()?;
    let is_stored = session_places()
        .iter()
        .any(|stored| stored.folder.canonicalize().is_ok_and(|stored| place.starts_with(stored)));
    let reason = match recording.cwd.as_deref() {
        _ if !is_stored => {
            format!("{} is not where {} stores its sessions", file.display(), recording.agent.title())
        }
        Some(cwd) if began_here(Path::new(cwd), folder) => return Ok(()),
        Some(cwd) => format!("this session began in another folder, {cwd}"),
        None => "this session does not say where it began".to_owned(),
    };
    bail!(
        "{reason}. What it says, somebody else may have written, and the model believes it. If you know it, import it with --foreign"
    );
}

/// A session of another agent, as a list shows it.
#[derive(Serialize)]
struct RecordedSession {
    file: PathBuf,
    agent: &'static str,
    cwd: Option<String>,
    /// When the file was last written, in seconds since 1970.
    modified: u64,
    /// How the first prompt begins.
    title: String,
}

/// The sessions that other agents have recorded in folders that `is_wanted`, newest first.
fn recorded_sessions(is_wanted: impl Fn(&Path) -> bool) -> Vec<RecordedSession> {
    let mut files = Vec::new();
    for place in session_places().iter().filter(|place| !place.is_own) {
        collect_session_files(&place.folder, MAX_FOLDER_DEPTH, &mut files);
    }
    let modified = |file: &PathBuf| file.metadata().and_then(|found| found.modified()).unwrap_or(UNIX_EPOCH);
    let mut dated: Vec<(SystemTime, PathBuf)> =
        files.into_iter().map(|file| (modified(&file), file)).collect();
    dated.sort_by(|a, b| b.cmp(a));
    let listed = dated.into_iter().take(MAX_LISTED).filter_map(|(modified, file)| {
        let recording = Recording::parse_conversation(&file.display().to_string(), &head(&file)?).ok()?;
        let cwd = recording.cwd.as_deref().map(str::to_owned);
        // Sub-agents have files of their own.
        let is_main = (0..recording.entries.len()).any(|at| !recording.side_entries.contains(&at));
        let is_listed = is_main && is_wanted(Path::new(cwd.as_deref().unwrap_or_default()));
        is_listed.then(|| RecordedSession {
            agent: recording.agent.name(),
            cwd,
            modified: modified.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()),
            title: title(&recording),
            file,
        })
    });
    listed.collect()
}

/// The first lines of a file, whole ones only.
fn head(file: &Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let opened: File = hardpan_files::RegularFile::open(file).ok()?.file;
    opened.take(HEAD_BYTES).read_to_end(&mut bytes).ok()?;
    if bytes.len() as u64 == HEAD_BYTES {
        let end = bytes.iter().rposition(|byte| *byte == b'\n')?;
        bytes.truncate(end + 1);
    }
    Some(bytes)
}

/// How the first prompt begins that a person seems to have typed.
fn title(recording: &Recording) -> String {
    let texts = recording.entries.iter().filter_map(|entry| match &entry.content {
        EntryContent::Message { speaker: Speaker::User, parts } => parts.iter().find_map(|part| match part {
            RecordedPart::Text(text) => Some(text.trim()),
            _ => None,
        }),
        _ => None,
    });
    let mut texts = texts;
    let typed = texts.find(|text| !text.starts_with('<') && !text.starts_with("# AGENTS.md"));
    let line = typed.unwrap_or_default().lines().next().unwrap_or_default();
    line.chars().take(TITLE_CHARS).collect()
}

fn print_list(found: &[RecordedSession], json: bool) -> Result<()> {
    if json {
        return output::print_json(&found);
    }
    if found.is_empty() {
        return Ok(output::print(
            "no other agent has recorded a session in this project (--all: in any project)\n",
        )?);
    }
    let mut table = Table::new(&[
        ("last written", Align::Left),
        ("agent", Align::Left),
        ("first prompt", Align::Left),
        ("file", Align::Left),
    ]);
    for session in found {
        let time = i64::try_from(session.modified)
            .ok()
            .and_then(|seconds| jiff::Timestamp::from_second(seconds).ok());
        let time = time.map(|time| time.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default();
        let file = safe(&session.file.display().to_string()).to_string();
        table.row(vec![time, session.agent.to_owned(), cut(&safe(&session.title), TITLE_CHARS), file]);
    }
    Ok(output::print(table.render(width()))?)
}
