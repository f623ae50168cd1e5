//! `hardpan commit`: lets a model write a commit message for the staged changes, shows it, and
//! commits.

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use hardpan_app::commit::message::{self, CommitMessage};
use hardpan_app::commit::model::MessageWriter;
use hardpan_app::commit::staged::{Repository, StagedChanges};
use hardpan_app::gather;
use hardpan_app::learned_state::LearnedState;
use hardpan_app::options::TargetOptions;
use hardpan_app::provider_route::ProviderRoute;
use hardpan_app::request::load_settings;
use hardpan_app::settings::Settings;

use crate::chat::ExitError;
use crate::output::{self, error_text, safe, safe_lines};

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

/// Writes a message for the staged changes, shows it, and commits if the user agrees.
pub fn commit(args: &CommitArgs) -> Result<()> {
    let folder = gather::working_folder(args.dir.as_deref())?;
    let settings = load_settings(args.dir.as_deref())?;
    let repository = Repository::at(&folder)?;
    let staged = repository.staged()?;
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let mode = match (args.print, args.yes) {
        (true, _) => CommitMode::Print,
        (_, true) => CommitMode::Commit,
        _ if terminal => CommitMode::Ask,
        _ => CommitMode::Show,
    };
    let message = write_message(args, &settings, &staged, &mode)?;
    show(&message)?;
    match mode {
        CommitMode::Print => Ok(()),
        CommitMode::Commit => repository.commit(&staged, &message),
        CommitMode::Ask => ask(&repository, &staged, message),
        CommitMode::Show => {
            eprintln!(
                "hardpan: not committed, because there is no terminal to ask in: add --yes, or save this message and run `git commit -F FILE`"
            );
            Ok(())
        }
    }
}

/// Writes the message with the model; without a key, makes a plain one from the file names.
fn write_message(
    args: &CommitArgs,
    settings: &Settings,
    staged: &StagedChanges,
    mode: &CommitMode,
) -> Result<CommitMessage> {
    let small = args.model.clone().or_else(|| {
        // --provider chooses among that provider's models.
        settings.config.small_model.clone().filter(|_| args.provider.is_none())
    });
    let options = TargetOptions { model: small, provider: args.provider.clone(), ..TargetOptions::default() };
    let mut target = gather::resolve_target(&options, settings, None)?;
    gather::apply_learned_factor(&mut target, &LearnedState::load());
    let route = ProviderRoute::choose(&target, settings, None)?;
    if route.simulated {
        let key = target.profile.key_env.first().map_or("its key", String::as_str);
        if matches!(mode, CommitMode::Commit) {
            bail!(
                "no key for {}, so no model can write the message; nothing was committed. Set {key}, or write the message yourself (git commit)",
                target.provider
            );
        }
        eprintln!(
            "hardpan: no key for {}, so this message is made from the file names only. Set {key} to let a model read the changes.",
            target.provider
        );
        return Ok(message::from_file_names(&staged.files));
    }
    let mut writer = MessageWriter::new(target, settings, route);
    let written = write_until_interrupted(&mut writer, staged);
    writer.bill_line().iter().for_each(|line| eprintln!("{line}"));
    writer.finish(&gather::working_folder(args.dir.as_deref())?);
    written
}

fn write_until_interrupted(writer: &mut MessageWriter<'_>, staged: &StagedChanges) -> Result<CommitMessage> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    runtime.block_on(async {
        tokio::select! {
            written = writer.write(staged) => written,
            _ = tokio::signal::ctrl_c() => {
                Err(ExitError { code: 130, message: "interrupted; nothing was committed".into() }.into())
            }
        }
    })
}

fn show(message: &CommitMessage) -> Result<()> {
    let text = message.to_string();
    Ok(output::print(if io::stdout().is_terminal() { safe_lines(&text) } else { text })?)
}

/// Asks the user until they commit or decline.
fn ask(repository: &Repository, staged: &StagedChanges, mut message: CommitMessage) -> Result<()> {
    loop {
        eprint!("Commit with this message? [y]es, [e]dit, [n]o: ");
        io::stderr().flush().context("cannot write to the terminal")?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).context("cannot read your answer")?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return repository.commit(staged, &message),
            "e" | "edit" => match repository.edit(&message) {
                Ok(edited) => {
                    message = edited;
                    show(&message)?;
                }
                Err(error) => eprintln!("hardpan: {}", safe(&error_text(error.as_ref()))),
            },
            "n" | "no" => return Err(declined()),
            "" if read == 0 => return Err(declined()),
            _ => eprintln!("please answer y, e or n"),
        }
    }
}

fn declined() -> anyhow::Error {
    ExitError { code: 130, message: "nothing was committed".into() }.into()
}
