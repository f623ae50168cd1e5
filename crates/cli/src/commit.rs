//! `hardpan commit`: a commit message from what is staged, shown before it is used.

mod message; // what a commit message is, and what it is not
mod model; // asking the model for it
mod staged; // what is staged, as git tells it

use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::args::Whom;
use crate::chat::Unfinished;
use crate::gather;
use crate::output::{self, safe, safe_lines};
use crate::route::Route;
use crate::run::load_settings;
use crate::settings::Settings;
use message::Message;
use model::Writer;
use staged::{Repository, Staged};

/// How a commit is made.
#[derive(Debug, clap::Args)]
pub struct Commit {
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
enum Use {
    Print,
    Commit,
    Ask,
    /// There is nobody to ask.
    Show,
}

/// Writes a message for what is staged, shows it, and commits if that is wanted.
pub fn commit(args: &Commit) -> Result<()> {
    let folder = gather::folder(args.dir.as_deref())?;
    let settings = load_settings(args.dir.as_deref())?;
    let repository = Repository::at(&folder)?;
    let staged = repository.staged()?;
    let terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
    let wanted = match (args.print, args.yes) {
        (true, _) => Use::Print,
        (_, true) => Use::Commit,
        _ if terminal => Use::Ask,
        _ => Use::Show,
    };
    let message = write(args, &settings, &staged, &wanted)?;
    show(&message)?;
    match wanted {
        Use::Print => Ok(()),
        Use::Commit => repository.commit(&staged, &message),
        Use::Ask => ask(&repository, &staged, message),
        Use::Show => {
            eprintln!(
                "hardpan: nothing was committed: `hardpan commit --yes` commits, and so does `git commit -F FILE` with this message"
            );
            Ok(())
        }
    }
}

/// The message: by the model, or a plain one where there is none.
fn write(args: &Commit, settings: &Settings, staged: &Staged, wanted: &Use) -> Result<Message> {
    let small = args.model.clone().or_else(|| {
        // A provider that was named chooses among its own models.
        settings.config.small_model.clone().filter(|_| args.provider.is_none())
    });
    let whom = Whom { model: small, provider: args.provider.clone(), ..Whom::default() };
    let mut target = gather::target(&whom, settings, None)?;
    gather::use_learned(&mut target, &crate::state::State::load());
    let route = Route::choose(&target, settings, None)?;
    if route.simulated {
        let key = target.wire.key_env.first().map_or("its key", String::as_str);
        if matches!(wanted, Use::Commit) {
            bail!(
                "no key for {}, so no model writes the message, and nothing was committed: set {key}, or commit with a message of your own (git commit)",
                target.provider
            );
        }
        eprintln!(
            "hardpan: no key for {}, so no model reads the changes: this message is made from the names of the files. Set {key} for a real one.",
            target.provider
        );
        return Ok(message::plain(&staged.files));
    }
    Writer::new(target, settings, route).write(staged, &gather::folder(args.dir.as_deref())?)
}

fn show(message: &Message) -> Result<()> {
    let text = message.to_string();
    Ok(output::print(if io::stdout().is_terminal() { safe_lines(&text) } else { text })?)
}

/// Asks until there is an answer.
fn ask(repository: &Repository, staged: &Staged, mut message: Message) -> Result<()> {
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
    Unfinished { code: 130, message: "nothing was committed".into() }.into()
}
