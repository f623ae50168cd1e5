//! `hardpan trust`: shows what a project's own settings say, and uses them from now on. A
//! conversation in a terminal asks the same when they have changed.

use std::io::{self, BufRead, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result};
use hardpan_app::settings::{SettingsError, TrustReview, TrustState, UserFolders, remove_trust};

use crate::chat::ExitError;
use crate::command_setup::working_folder;
use crate::output::{safe, safe_lines};

/// Flags of `hardpan trust`.
#[derive(Debug, clap::Args)]
pub struct TrustArgs {
    /// Folder to trust [default: the current folder]
    folder: Option<std::path::PathBuf>,
    /// Stop trusting it
    #[arg(long)]
    remove: bool,
    /// Do not ask
    #[arg(short, long, conflicts_with = "remove")]
    yes: bool,
}

/// Shows what a yes would trust, asks if there is a terminal to ask in, and trusts it.
pub fn trust(args: &TrustArgs) -> Result<()> {
    let root = hardpan_workspace::find_project_root(&working_folder(args.folder.as_deref())?);
    let folders = UserFolders::from_env();
    if args.remove {
        let name = remove_trust(&root, &folders)?;
        note!("{} is no longer trusted", safe(&name));
        return Ok(());
    }
    let review = TrustReview::read(&root, &folders)?;
    show(&review);
    let asks = !args.yes && review.state != TrustState::Trusted && can_ask();
    if asks && !confirm("Use these settings, prompts and skills?")? {
        return Err(ExitError { code: 130, message: "nothing was changed".into() }.into());
    }
    review.accept(&folders)?;
    note!("{} is trusted: Hardpan now uses its .hardpan/ settings and prompts", safe(review.root()));
    Ok(())
}

/// Asks about a trusted project whose settings have changed, before a conversation starts in a
/// terminal. After a no, the conversation ignores them and says so.
pub fn review_changes(folder: &Path) -> Result<()> {
    let root = hardpan_workspace::find_project_root(folder);
    let folders = UserFolders::from_env();
    let review = match TrustReview::read(&root, &folders) {
        // The conversation itself says what is wrong.
        Err(SettingsError::ProjectFiles(_) | SettingsError::NoConfigFolder) => return Ok(()),
        review => review?,
    };
    if matches!(review.state, TrustState::Changed { .. }) && can_ask() {
        note!("This folder's own settings are not those that you trusted:");
        show(&review);
        if confirm("Use them as they are now?")? {
            review.accept(&folders)?;
        }
    }
    Ok(())
}

fn show(review: &TrustReview) {
    let diff = review.diff();
    if !diff.is_empty() {
        note!("{}", safe_lines(diff.trim_end()));
    }
}

/// Whether a person sees a question and can answer it.
pub fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a yes-or-no question in the terminal. Anything but a yes is a no.
pub fn confirm(question: &str) -> Result<bool> {
    note_inline!("{question} [y]es, [N]o: ");
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).context("cannot read your answer")?;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}
