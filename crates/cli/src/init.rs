//! `hardpan init` and `/init`: writes an AGENTS.md from what is known without a model. An existing file
//! is never replaced. `/init` then offers to let the model improve it.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hardpan_agent::{Input, InputSource};
use hardpan_app::ConversationApp;
use hardpan_app::approval::is_yes;
use hardpan_app::project_guide::{ProjectGuide, guide_path};
use hardpan_files::FileGuard;
use hardpan_workspace::find_project_root;
use serde::Serialize;

use crate::chat::commands::SlashCommandError;
use crate::command_setup::working_folder;
use crate::output::{self, dollars, safe, safe_lines, thousands};
use crate::trust;

/// Flags of `hardpan init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Folder of the project [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
    /// Write the file without asking
    #[arg(long)]
    yes: bool,
    /// Print JSON; writes only with --yes
    #[arg(long)]
    json: bool,
}

/// What there is, and what could be.
#[derive(Debug, Serialize)]
pub struct GuideProposal {
    /// Where the file is or would be.
    pub path: PathBuf,
    /// The file is there already, and stays as it is.
    pub exists: bool,
    /// Whether it was written now.
    pub written: bool,
    /// The proposed text.
    pub text: String,
    /// From what is there to what is proposed.
    pub diff: String,
}

impl GuideProposal {
    pub fn new(guard: &FileGuard, root: &Path) -> Self {
        let path = guide_path(root);
        let exists = path.symlink_metadata().is_ok();
        let before = guard.open(&path).ok().and_then(|file| file.read_text(1 << 20).ok()).unwrap_or_default();
        let guide = ProjectGuide::read(guard, root);
        let (text, diff) = (guide.to_markdown(), guide.diff_from(&before));
        GuideProposal { path, exists, written: false, text, diff }
    }

    /// Writes the file. Fails if there is one by now.
    pub fn write(&mut self) -> std::io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&self.path)?;
        file.write_all(self.text.as_bytes())?;
        self.written = true;
        Ok(())
    }
}

/// Runs `hardpan init`.
pub fn init(args: &InitArgs) -> Result<()> {
    let root = find_project_root(&working_folder(args.dir.as_deref())?);
    let mut proposal = GuideProposal::new(&FileGuard::for_folder(&root), &root);
    let cannot = format!("cannot write {}", proposal.path.display());
    if args.json {
        if args.yes && !proposal.exists {
            proposal.write().context(cannot)?;
        }
        return output::print_json(&proposal);
    }
    output::print(safe_lines(&proposal.diff))?;
    let path = safe(&proposal.path.display().to_string());
    if proposal.exists {
        note!("{path} is there already and stays as it is; above is what differs from a new one");
        return Ok(());
    }
    let is_wanted = args.yes || (trust::can_ask() && trust::confirm(&format!("Write {path}?"))?);
    if !is_wanted {
        note!("nothing is written; --yes writes it without asking");
        return Ok(());
    }
    proposal.write().context(cannot)?;
    note!("wrote {path}. To let a model improve it: hardpan -p \"{IMPROVE}\"");
    Ok(())
}

/// What a model is asked to do with the file.
const IMPROVE: &str = "Read AGENTS.md and the code, correct what is wrong in it, and add what an agent needs to know: how to build and test, conventions, traps. Keep it short.";

/// `/init`: shows the proposal, asks, and writes it. Then the model may improve it, if there is one: it
/// reads the code and edits the file as in any other run, so that each edit is asked about.
pub async fn init_here(app: &ConversationApp) -> Result<String, SlashCommandError> {
    let look = || GuideProposal::new(&app.scope.guard(), &app.scope.root);
    let mut proposal = tokio::task::block_in_place(look);
    let path = proposal.path.display().to_string();
    let done = if proposal.exists {
        let diff = if proposal.diff.is_empty() { "nothing differs".to_owned() } else { proposal.diff };
        format!("{path} is there already and stays as it is. A new one would differ so:\n{diff}")
    } else {
        let question = format!("{}\nWrite this to {path}? y or n", proposal.text);
        let answer = app.agent.ask_user(&question).await.unwrap_or_default();
        if !is_yes(&answer) {
            return Ok("nothing is written".to_owned());
        }
        proposal.write().map_err(|error| SlashCommandError::NotWritten { path: path.clone(), error })?;
        format!("wrote {path}.")
    };
    if app.is_offline(&app.agent.target()) || !wants_improvement(app, &done).await {
        return Ok(done);
    }
    let (text, source) = (IMPROVE.to_owned(), InputSource::Interactive);
    let input = Input { text, below: None, images: Vec::new(), source, id: None };
    app.agent.prompt(input).await?;
    app.save_state().await;
    Ok(format!("{path}: what the model changed is above; /undo takes it back"))
}

/// Asks whether the model is to work on the file, with the price of its first request.
async fn wants_improvement(app: &ConversationApp, done: &str) -> bool {
    let preview = app.preview_request(IMPROVE).await.ok();
    let price = preview.map(|preview| {
        let breakdown = preview.breakdown();
        let dollars = breakdown.price.known.then(|| format!(", {}", dollars(breakdown.price.cold)));
        format!(
            " Its first request has {} tokens{}.",
            thousands(breakdown.total_tokens),
            dollars.unwrap_or_default()
        )
    });
    let model = app.agent.target().model.name();
    let question = format!(
        "{done}\nLet {model} read the code and improve it? It asks before each edit.{} y or n",
        price.unwrap_or_default()
    );
    app.agent.ask_user(&question).await.is_some_and(|answer| is_yes(&answer))
}
