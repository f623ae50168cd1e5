//! One function per command.

use std::io::IsTerminal;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hardpan_context::{Assembled, Breakdown, FILES, Input, Memo, Snapshot, Target};
use hardpan_prompt::validate::{check_size, validate};

use crate::args::{Args, Command, What};
use crate::gather::{self, Gathered, gather};
use crate::settings::{self, Settings};
use crate::{diff, docs, map, origins, output, send, simulator, views};

/// The question that is asked when none is given.
const SAMPLE_PROMPT: &str = "What does this project do, and where should I start reading?";

/// Runs what was asked for.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        None => crate::chat::chat(&args.chat),
        Some(Command::Request { what, diff: Some(files), .. }) => {
            let text = diff::diff(&files[0], &files[1], what, &load(what)?)?;
            Ok(output::print(text)?)
        }
        Some(Command::Request { prompt, files, what, json, send: true, next_memory, .. }) => {
            // One question and its answer: nothing would run what the model calls.
            let what = What { no_tools: true, ..what.with(prompt, files) };
            let settings = load(&what)?;
            let made = assemble(&what, &settings)?;
            write_memory(&made, next_memory.as_deref())?;
            send::send(&made, &settings, if *json { send::Show::Json } else { send::Show::Text })
        }
        Some(Command::Request { prompt, files, what, json, origins, next_memory, .. }) => {
            let form = if *origins {
                Form::Origins
            } else if *json {
                Form::Body
            } else {
                Form::Table
            };
            request(&what.with(prompt, files), &form, next_memory.as_deref())
        }
        Some(Command::Context { files, prompt, what, json }) => context(&what.with(prompt, files), *json),
        Some(Command::Snapshot { prompt, files, what, schema }) => {
            snapshot(&what.with(prompt, files), *schema)
        }
        Some(Command::Map { paths, tokens, focus, json, dir }) => map::map(
            dir.as_deref(),
            paths,
            *tokens,
            focus,
            if *json { map::Show::Json } else { map::Show::Text },
        ),
        Some(Command::Symbols { name, json, dir }) => {
            map::symbols(dir.as_deref(), name, if *json { map::Show::Json } else { map::Show::Text })
        }
        Some(Command::Prompt { what, file }) => prompt(what, file.as_deref()),
        Some(Command::Models { filter, provider, json }) => {
            models(filter.as_deref(), provider.as_deref(), *json)
        }
        Some(Command::Providers { json }) => providers(*json),
        Some(Command::Simulator { port, script, faults }) => {
            simulator::run(*port, script.as_deref(), faults.as_deref())
        }
        Some(Command::Sessions(args)) => crate::sessions::sessions(args),
        Some(Command::Cost(args)) => crate::cost::cost(args),
        Some(Command::Why(args)) => crate::why::why(args),
        Some(Command::Commit(args)) => crate::commit::commit(args),
        Some(Command::Audit(args)) => crate::audit::audit(args),
        Some(Command::Replay(args)) => crate::replay::replay(args),
        Some(Command::Rpc(args)) => crate::rpc::rpc(args),
        Some(Command::Trust { folder, remove }) => trust(folder.as_deref(), *remove),
        Some(Command::Docs { name, json }) => {
            docs::docs(name.as_deref(), if *json { docs::Show::Json } else { docs::Show::Text })
        }
        Some(Command::Sandbox { policy, command }) => sandbox(policy, command),
    }
}

/// A request as it would be sent.
pub struct Made {
    pub assembled: Assembled,
    pub snapshot: Snapshot,
    pub target: Target,
    pub memo: Memo,
}

impl Made {
    pub fn body(&self) -> Vec<u8> {
        hardpan_providers::encode(&self.assembled.prompt, &self.target.wire)
    }

    pub fn addresses(&self) -> Vec<String> {
        hardpan_providers::addresses(&self.assembled.prompt, &self.target.wire)
    }

    fn breakdown(&self) -> Breakdown {
        let mut breakdown = Breakdown::of(&self.assembled, &self.snapshot, &self.target, &self.memo);
        let addresses = self.addresses();
        for (marked, breakpoint) in breakdown.breakpoints.iter_mut().zip(self.assembled.prompt.breakpoints())
        {
            marked.block.clone_from(&addresses[breakpoint.block]);
        }
        breakdown
    }
}

/// Gathers and assembles.
pub fn assemble(what: &What, settings: &Settings) -> Result<Made> {
    let Gathered { snapshot, target, layout } = gather(what, settings)?;
    let memo = Memo::new(target.vocabulary());
    let assembled = hardpan_context::assemble(&snapshot, layout, &target, &settings.texts, &memo)?;
    let rules = hardpan_providers::rules(&target.wire, target.model.prefill);
    validate(&assembled.prompt, &rules).context(
        "the request would be refused; this is a fault of hardpan: please report it with the snapshot",
    )?;
    Ok(Made { assembled, snapshot, target, memo })
}

/// The settings of the folder that the command works in, with what there is to say about them.
fn load(what: &What) -> Result<Settings> {
    load_settings(what.whom.dir.as_deref())
}

/// The settings of a folder, with what there is to say about them.
pub fn load_settings(dir: Option<&Path>) -> Result<Settings> {
    let settings = Settings::load(&hardpan_workspace::root_of(&gather::folder(dir)?))?;
    for note in &settings.notes {
        eprintln!("hardpan: {}", output::safe(note));
    }
    Ok(settings)
}

fn write_memory(made: &Made, path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let memory = serde_json::to_vec_pretty(&made.assembled.memory)?;
    std::fs::write(path, memory).with_context(|| format!("{} cannot be written", path.display()))
}

enum Form {
    Table,
    Body,
    Origins,
}

fn request(what: &What, form: &Form, next_memory: Option<&Path>) -> Result<()> {
    let made = assemble(what, &load(what)?)?;
    write_memory(&made, next_memory)?;
    let body = made.body();
    check_size(body.len())?;
    match form {
        Form::Table => {
            let table =
                views::request(&made.assembled, &made.breakdown(), &made.target.provider, &made.addresses());
            output::print(table)?;
        }
        Form::Body => print_json(&body)?,
        Form::Origins => {
            let origins = origins::origins(&made.assembled, &made.addresses());
            let mut json = b"{\"body\":".to_vec();
            json.extend(body);
            json.extend(b",\"origins\":");
            json.extend(serde_json::to_vec(&origins)?);
            json.push(b'}');
            print_json(&json)?;
        }
    }
    Ok(())
}

/// The exact bytes; a line end follows only where a person is looking.
fn print_json(bytes: &[u8]) -> Result<()> {
    output::print(bytes)?;
    if std::io::stdout().is_terminal() {
        output::print("\n")?;
    }
    Ok(())
}

fn context(what: &What, json: bool) -> Result<()> {
    let made = assemble(what, &load(what)?)?;
    let breakdown = made.breakdown();
    if json {
        return Ok(output::print(serde_json::to_string_pretty(&breakdown)? + "\n")?);
    }
    Ok(output::print(views::context(&breakdown, &made.target.provider))?)
}

fn snapshot(what: &What, schema: bool) -> Result<()> {
    let json = if schema {
        serde_json::to_string_pretty(&hardpan_context::schema())?
    } else {
        let (file, _) = gather::snapshot_file(what, &load(what)?)?;
        serde_json::to_string_pretty(&file)?
    };
    Ok(output::print(json + "\n")?)
}

fn prompt(what: &What, file: Option<&str>) -> Result<()> {
    let settings = load(what)?;
    let texts = &settings.texts;
    let text = match file {
        None => {
            let Gathered { snapshot, target, layout } = gather(what, &settings)?;
            let memo = Memo::new(target.vocabulary());
            let input = Input { snapshot: &snapshot, target: &target, texts, memo: &memo };
            let segments = hardpan_context::system_prompt(&input, layout);
            segments.iter().map(|segment| segment.text.as_str()).collect()
        }
        Some("system.md") => texts.system.to_string(),
        Some("agent.md") => texts.agent.to_string(),
        Some("commit_message.md") => texts.commit_message.to_string(),
        Some("compaction.md") => texts.compaction.to_string(),
        Some("reminder.md") => texts.reminder.to_string(),
        Some("system_extra.md") => texts.extra.as_ref().map(ToString::to_string).unwrap_or_default(),
        Some("phrases.toml") => FILES[5].1.to_owned(),
        Some(name) => {
            let known = FILES.map(|(name, _)| name).join(", ");
            bail!("there is no prompt file {name}; known are {known}, system_extra.md");
        }
    };
    Ok(output::print(text.trim_end().to_owned() + "\n")?)
}

fn models(filter: Option<&str>, provider: Option<&str>, json: bool) -> Result<()> {
    let settings = load(&What::default())?;
    if let Some(provider) = provider {
        settings.catalogue.provider(provider)?;
    }
    let wanted = |model: &&hardpan_models::Model| {
        provider.is_none_or(|provider| model.provider == provider)
            && filter.is_none_or(|filter| model.name().to_lowercase().contains(&filter.to_lowercase()))
    };
    let models: Vec<_> = settings.catalogue.models().filter(wanted).collect();
    if json {
        return Ok(output::print(serde_json::to_string_pretty(&models)? + "\n")?);
    }
    if models.is_empty() {
        bail!("no model matches; `hardpan models` lists all");
    }
    output::print(views::models(models.iter().copied()))?;
    eprintln!(
        "{} models; prices in dollars per million tokens, as of {}",
        models.len(),
        settings.catalogue.as_of()
    );
    Ok(())
}

fn providers(json: bool) -> Result<()> {
    let settings = load(&What::default())?;
    let mut rows = Vec::new();
    for provider in settings.catalogue.providers() {
        let config = settings.config.providers.get(&provider.id);
        let base_url =
            config.and_then(|config| config.base_url.clone()).unwrap_or(provider.wire.base_url.clone());
        let key = if provider.wire.key_env.is_empty() {
            "none needed"
        } else if settings.key(&provider.id, &provider.wire)?.is_some() {
            "set"
        } else {
            "not set"
        };
        rows.push(views::ProviderRow {
            id: &provider.id,
            base_url,
            key_env: provider.wire.key_env.join(" or "),
            key,
        });
    }
    if json {
        return Ok(output::print(serde_json::to_string_pretty(&rows)? + "\n")?);
    }
    Ok(output::print(views::providers(&rows))?)
}

/// Becomes a command that may only do what the policy allows.
fn sandbox(policy: &str, command: &[std::ffi::OsString]) -> Result<()> {
    let policy = serde_json::from_str(policy).context("the policy is not valid")?;
    let [program, arguments @ ..] = command else { bail!("there is no command") };
    let mut command = std::process::Command::new(program);
    Err(hardpan_tools::enter_and_exec(&policy, command.args(arguments)).into())
}

fn trust(folder: Option<&Path>, remove: bool) -> Result<()> {
    let root = hardpan_workspace::root_of(&gather::folder(folder)?);
    let name = settings::trust(&root, remove)?;
    let verb =
        if remove { "no longer trusted" } else { "trusted: its .hardpan/ settings and prompts are used" };
    eprintln!("{} is {verb}", output::safe(&name));
    Ok(())
}

/// Without a command: the request and the breakdown for this folder and a sample prompt.
pub fn welcome() -> Result<()> {
    let mut what = What { prompt: Some(SAMPLE_PROMPT.to_owned()), ..What::default() };
    let folder = gather::folder(None)?;
    what.files.extend(["README.md"].map(Into::into).into_iter().filter(|name| folder.join(name).is_file()));
    let made = assemble(&what, &load(&what)?)?;
    let breakdown = made.breakdown();
    let lines = [
        format!("If you asked about this folder: \"{SAMPLE_PROMPT}\"\nthis request would be sent:\n\n"),
        views::request(&made.assembled, &breakdown, &made.target.provider, &made.addresses()),
        "\nand this is what it holds:\n\n".to_owned(),
        views::context(&breakdown, &made.target.provider),
        "\nGo on with:\n".to_owned(),
        "  hardpan request \"your question\" FILES…   the request for your own question (--json: its exact body)\n".to_owned(),
        "  hardpan context FILES…                   what the context holds\n".to_owned(),
        "  hardpan -p \"your question\"               the answer\n".to_owned(),
        "  hardpan                                  a conversation, in a terminal\n".to_owned(),
        "  hardpan --help                           everything else\n".to_owned(),
    ];
    Ok(output::print(lines.concat())?)
}
