//! `hardpan commit`: lets a model write a commit message for the staged changes, shows it, and
//! commits.

use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hardpan_app::commit::{
    CommitBill, CommitMessage, MessageAuthor, MessageWriter, Repository, StagedChanges,
};
use hardpan_app::error_text;
use hardpan_app::options::TargetOptions;
use hardpan_app::settings::Settings;

use crate::chat::ExitError;
use crate::command_setup::{StderrNotices, load_settings, working_folder};
use crate::output::{self, dollars, safe, thousands};

/// Flags of `hardpan commit`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  git add -p && hardpan commit")]
pub struct CommitArgs {
    /// Commit without asking
    #[arg(short, long, conflicts_with = "print")]
    yes: bool,
    /// Print the message without committing
    #[arg(short, long)]
    print: bool,
    /// Model that writes the message [default: small_model in config.toml, else the default model]
    #[arg(long)]
    model: Option<String>,
    /// Provider of the model
    #[arg(long)]
    provider: Option<String>,
    /// Folder to work in [default: the current folder]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// What to do with the message.
enum CommitMode {
    Print,
    Commit,
    Ask,
    /// Print it only, because there is no terminal to ask in.
    Show,
}

/// Where a message came from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WrittenBy {
    Model,
    /// There is no key: the names of the files are all that it says.
    FileNames,
}

/// Writes a message for the staged changes, shows it, and commits if the user agrees.
pub fn commit(args: &CommitArgs) -> Result<()> {
    let folder = working_folder(args.dir.as_deref())?;
    let settings = load_settings(args.dir.as_deref())?;
    let repository = Repository::at(&folder, &settings)?;
    let staged = repository.staged()?;
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let mode = match (args.print, args.yes) {
        (true, _) => CommitMode::Print,
        (_, true) => CommitMode::Commit,
        _ if terminal => CommitMode::Ask,
        _ => CommitMode::Show,
    };
    if matches!(mode, CommitMode::Commit | CommitMode::Ask) {
        repository.check_can_commit()?;
    }
    let (message, author) = write_message(args, &settings, &staged, &mode)?;
    show(&message)?;
    match mode {
        CommitMode::Print => Ok(()),
        CommitMode::Commit => Ok(repository.commit(&staged, &message, &show_output)?),
        CommitMode::Ask => ask(&repository, &staged, message),
        CommitMode::Show => {
            // Without a model, --yes commits nothing.
            let yes = if author == WrittenBy::Model { "add --yes, or " } else { "" };
            note!(
                "hardpan: not committed, because there is no terminal to ask in: {yes}save this message and run `git commit -F FILE`"
            );
            Ok(())
        }
    }
}

/// Writes the message with the model; without a key, makes a plain one from the file names.
fn write_message(
    args: &CommitArgs,
    settings: &Arc<Settings>,
    staged: &StagedChanges,
    mode: &CommitMode,
) -> Result<(CommitMessage, WrittenBy)> {
    let options = TargetOptions {
        model: args.model.clone(),
        provider: args.provider.clone(),
        ..TargetOptions::default()
    };
    let folder = working_folder(args.dir.as_deref())?;
    let mut writer = match MessageAuthor::choose(&options, settings, &folder, &StderrNotices::shared())? {
        MessageAuthor::Model(writer) => writer,
        MessageAuthor::NoKey { provider, key_variable } => {
            let key = key_variable.as_deref().unwrap_or("its key");
            if matches!(mode, CommitMode::Commit) {
                bail!(
                    "no key for {provider}, so no model can write the message; nothing was committed. Set {key}, or write the message yourself (git commit)"
                );
            }
            note!(
                "hardpan: no key for {provider}, so this message is made from the file names only. Set {key} to let a model read the changes."
            );
            return Ok((CommitMessage::from_file_names(&staged.files), WrittenBy::FileNames));
        }
    };
    let written = write_until_interrupted(&mut writer, staged);
    if writer.bill().requests > 0 {
        note!("{}", bill_line(writer.bill()));
    }
    writer.finish(&folder);
    Ok((written?, WrittenBy::Model))
}

/// The requests, their tokens and their cost in one line.
fn bill_line(bill: &CommitBill) -> String {
    let n = |tokens: u64| thousands(usize::try_from(tokens).unwrap_or(usize::MAX));
    let requests =
        if bill.requests == 1 { "1 request".to_owned() } else { format!("{} requests", bill.requests) };
    format!(
        "{requests} to {}: in {} (read {}, written {}), out {}; {}",
        safe(&bill.model),
        n(bill.spending.tokens.prompt()),
        n(bill.spending.tokens.cache_read),
        n(bill.spending.tokens.cache_written()),
        n(bill.spending.tokens.output),
        dollars(bill.spending.dollars)
    )
}

fn write_until_interrupted(writer: &mut MessageWriter, staged: &StagedChanges) -> Result<CommitMessage> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        tokio::select! {
            written = writer.write(staged) => Ok(written?),
            _ = tokio::signal::ctrl_c() => {
                Err(ExitError { code: 130, message: "interrupted; nothing was committed".into() }.into())
            }
        }
    })
}

fn show(message: &CommitMessage) -> Result<()> {
    let text = message.to_string();
    Ok(output::print(text)?)
}

/// Shows what git and hooks print. Standard output is reserved for the message.
fn show_output(text: &str) {
    if !text.trim().is_empty() {
        note!("{}", text.trim_end());
    }
}

/// Asks the user until they commit or decline.
fn ask(repository: &Repository, staged: &StagedChanges, mut message: CommitMessage) -> Result<()> {
    loop {
        note_inline!("Commit with this message? [y]es, [e]dit, [n]o: ");
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).context("cannot read your answer")?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(repository.commit(staged, &message, &show_output)?),
            "e" | "edit" => match repository.edit(&message) {
                Ok(edited) => {
                    message = edited;
                    show(&message)?;
                }
                Err(error) => note!("hardpan: {}", safe(&error_text(&error))),
            },
            "n" | "no" => return Err(declined()),
            "" if read == 0 => return Err(declined()),
            _ => note!("please answer y, e or n"),
        }
    }
}

fn declined() -> anyhow::Error {
    ExitError { code: 130, message: "nothing was committed".into() }.into()
}
