//! `hardpan commit`: a commit message from what is staged, shown before it is used.

mod message; // what a commit message is, and what it is not
mod model; // asking the model for it
mod staged; // what is staged, as git tells it

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::args::TargetArgs;
use crate::chat::ExitError;
use crate::inputs;
use crate::output::{self, safe, safe_lines};
use crate::provider_route::ProviderRoute;
use crate::run::load_settings;
use crate::settings::Settings;
use message::CommitMessage;
use model::MessageWriter;
use staged::{Repository, StagedChanges};

/// How a commit is made.
#[derive(Debug, clap::Args)]
pub struct CommitArgs {
    /// Commit with the message, without asking
    #[arg(short, long, conflicts_with = "print")]
    yes: bool,
    /// Print the message, and commit nothing
    #[arg(short, long)]
    print: bool,
    /// The model that writes [default: small_model of the settings, else the model]
    #[arg(long)]
    model: Option<String>,
    /// Its provider
    #[arg(long)]
    provider: Option<String>,
    /// The folder to work in [default: this one]
    #[arg(long, value_name = "FOLDER")]
    dir: Option<PathBuf>,
}

/// What is done with the message.
enum CommitMode {
    Print,
    Commit,
    Ask,
    /// There is nobody to ask.
    Show,
}

/// Writes a message for what is staged, shows it, and commits if that is wanted.
pub fn commit(args: &CommitArgs) -> Result<()> {
    let folder = inputs::working_folder(args.dir.as_deref())?;
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
                "hardpan: nothing was committed: `hardpan commit --yes` commits, and so does `git commit -F FILE` with this message"
            );
            Ok(())
        }
    }
}

/// The message: by the model, or a plain one where there is none.
fn write_message(args: &CommitArgs, settings: &Settings, staged: &StagedChanges, mode: &CommitMode) -> Result<CommitMessage> {
    let small = args.model.clone().or_else(|| {
        // A provider that was named chooses among its own models.
        settings.config.small_model.clone().filter(|_| args.provider.is_none())
    });
    let target_args = TargetArgs { model: small, provider: args.provider.clone(), ..TargetArgs::default() };
    let mut target = inputs::resolve_target(&target_args, settings, None)?;
    inputs::apply_learned_factor(&mut target, &crate::learned_state::LearnedState::load());
    let route = ProviderRoute::choose(&target, settings, None)?;
    if route.simulated {
        let key = target.profile.key_env.first().map_or("its key", String::as_str);
        if matches!(mode, CommitMode::Commit) {
            bail!(
                "no key for {}, so no model writes the message, and nothing was committed: set {key}, or commit with a message of your own (git commit)",
                target.provider
            );
        }
        eprintln!(
            "hardpan: no key for {}, so no model reads the changes: this message is made from the names of the files. Set {key} for a real one.",
            target.provider
        );
        return Ok(message::from_file_names(&staged.files));
    }
    MessageWriter::new(target, settings, route).write(staged, &inputs::working_folder(args.dir.as_deref())?)
}

fn show(message: &CommitMessage) -> Result<()> {
    let text = message.to_string();
    Ok(output::print(if io::stdout().is_terminal() { safe_lines(&text) } else { text })?)
}

/// Asks until there is an answer.
fn ask(repository: &Repository, staged: &StagedChanges, mut message: CommitMessage) -> Result<()> {
    loop {
        eprint!("Commit with this message? [y]es, [e]dit, [n]o: ");
        io::stderr().flush().context("the terminal cannot be written to")?;
        let mut line = String::new();
        let read = io::stdin().lock().read_line(&mut line).context("the answer cannot be read")?;
        match line.trim().to_lowercase().as_str() {
            "y" | "yes" => return repository.commit(staged, &message),
            "e" | "edit" => match repository.edit(&message) {
                Ok(edited) => {
                    message = edited;
                    show(&message)?;
                }
                Err(error) => eprintln!("hardpan: {}", safe(&format!("{error:#}"))),
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
