//! [`run`] dispatches to one function per command; [`assemble`] builds the request that several of
//! them show or send.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::CommandFactory;
use hardpan_agent::RequestPreview;
use hardpan_app::gather::read_snapshot_file;
use hardpan_app::learned_state::LearnedState;
use hardpan_app::options::RequestPurpose;
use hardpan_app::request::{self, AssembledRequest};
use hardpan_app::settings::{Settings, UserFolders};
use hardpan_context::{LayoutInput, PHRASES, PHRASES_FILE, PROMPT_FILES};
use hardpan_prompt::validate::check_size;
use hardpan_providers::mask_url;

use crate::args::{Args, Command, RequestArgs};
use crate::command_setup::{StderrNotices, load_settings, working_folder};
use crate::output::OutputFormat;
use crate::{diff, docs, map, origins, output, send, simulator, views};

/// The prompt of the sample request that `hardpan` shows when it has neither prompt nor terminal.
const SAMPLE_PROMPT: &str = "What does this project do, and where should I start reading?";

/// Runs the command that was parsed, or starts a conversation where there is none.
pub fn run(args: &Args) -> Result<()> {
    match &args.command {
        None => crate::chat::chat(&args.chat),
        Some(Command::Request { request_args, diff: Some(files), .. }) => {
            let text = diff::diff(&files[0], &files[1], request_args, &load_settings_for(request_args)?)?;
            Ok(output::print(text)?)
        }
        Some(Command::Request { prompt, files, request_args, json, send: true, next_memory, .. }) => {
            // Nothing here would run a tool call, so no tools are declared.
            let purpose = RequestPurpose::Send;
            let with_input = request_args.with_input(prompt, files);
            let request_args = RequestArgs { no_tools: true, purpose, ..with_input };
            let settings = load_settings_for(&request_args)?;
            let request = assemble(&request_args, &settings)?;
            write_layout_state(&request, next_memory.as_deref())?;
            send::send(&request, &settings, OutputFormat::from_json_flag(*json))
        }
        Some(Command::Request { prompt, files, request_args, json, http, origins, next_memory, .. }) => {
            let form = if *origins {
                RequestOutput::Origins
            } else if *http {
                RequestOutput::Http
            } else if *json {
                RequestOutput::Body
            } else {
                RequestOutput::Table
            };
            request(&request_args.with_input(prompt, files), &form, next_memory.as_deref())
        }
        Some(Command::Context { files, prompt, request_args, json }) => {
            context(&request_args.with_input(prompt, files), *json)
        }
        Some(Command::Snapshot { prompt, files, request_args, schema }) => {
            snapshot(&request_args.with_input(prompt, files), *schema)
        }
        Some(Command::Map { paths, overview: true, tokens, dir, .. }) => {
            map::overview(dir.as_deref(), paths, *tokens)
        }
        Some(Command::Map { paths, tokens, focus, json, dir, .. }) => {
            map::map(dir.as_deref(), paths, *tokens, focus, OutputFormat::from_json_flag(*json))
        }
        Some(Command::Symbols { name, json, dir }) => {
            map::symbols(dir.as_deref(), name, OutputFormat::from_json_flag(*json))
        }
        Some(Command::Prompt { request_args, file }) => prompt(request_args, file.as_deref()),
        Some(Command::Models(args)) => crate::models::models(args),
        Some(Command::Providers { forget_refusals: true, .. }) => forget_refusals(),
        Some(Command::Providers { json, .. }) => providers(*json),
        Some(Command::Simulator(args)) => simulator::run(args),
        Some(Command::Sessions(args)) => crate::sessions::sessions(args),
        Some(Command::Cost(args)) => crate::cost::cost(args),
        Some(Command::Why(args)) => crate::why::why(args),
        Some(Command::Log(args)) => crate::log::log(args),
        Some(Command::Commit(args)) => crate::commit::commit(args),
        Some(Command::Audit(args)) => crate::audit::audit(args),
        Some(Command::Import(args)) => crate::import::import(args),
        Some(Command::Replay(args)) => crate::replay::replay(args),
        Some(Command::Rpc(args)) => crate::rpc::rpc(args),
        Some(Command::Acp(args)) => crate::acp::acp(args),
        Some(Command::Extensions(args)) => crate::extensions::run(args),
        Some(Command::Mcp(args)) => crate::mcp::run(args),
        Some(Command::Trust(args)) => crate::trust::trust(args),
        Some(Command::Doctor(args)) => crate::doctor::doctor(args),
        Some(Command::Init(args)) => crate::init::init(args),
        Some(Command::Key(args)) => crate::key_entry::key(args),
        Some(Command::Completions { shell }) => Ok(output::print(completions(*shell))?),
        Some(Command::Man) => Ok(output::print(manual_page()?)?),
        Some(Command::Docs { name, json }) => {
            docs::docs(name.as_deref(), OutputFormat::from_json_flag(*json))
        }
    }
}

/// The script that completes commands and flags in a shell.
fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "hardpan", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The manual page of the program and of all its commands.
fn manual_page() -> Result<String> {
    let mut page = Vec::new();
    let command = Args::command();
    clap_mangen::Man::new(command.clone()).render(&mut page)?;
    for subcommand in command.get_subcommands().filter(|it| it.get_name() != "help") {
        let name = format!("hardpan {}", subcommand.get_name());
        let man = clap_mangen::Man::new(subcommand.clone().display_name(name.clone()).bin_name(name.clone()));
        page.extend(format!(".SH \"{}\"\n", name.to_uppercase()).bytes());
        man.render_synopsis_section(&mut page)?;
        man.render_description_section(&mut page)?;
        man.render_options_section(&mut page)?;
    }
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Builds the request that the flags ask for, and shows notices.
pub fn assemble(request_args: &RequestArgs, settings: &Arc<Settings>) -> Result<AssembledRequest> {
    let (options, notices) = (request_args.options()?, StderrNotices::shared());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the async runtime")?;
    Ok(runtime.block_on(request::assemble(&options, settings, &notices))?)
}

/// Loads the settings for the folder that the command works in.
fn load_settings_for(request_args: &RequestArgs) -> Result<Arc<Settings>> {
    load_settings(request_args.target_args.dir.as_deref())
}

fn write_layout_state(request: &AssembledRequest, path: Option<&Path>) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    let memory = serde_json::to_vec_pretty(&request.preview.assembled.layout_state)?;
    std::fs::write(path, memory).with_context(|| format!("cannot write {}", path.display()))
}

/// How `hardpan request` prints a request.
enum RequestOutput {
    Table,
    Body,
    Http,
    Origins,
}

fn request(request_args: &RequestArgs, form: &RequestOutput, next_memory: Option<&Path>) -> Result<()> {
    let request = assemble(request_args, &load_settings_for(request_args)?)?;
    write_layout_state(&request, next_memory)?;
    let body = request.body();
    check_size(body.len())?;
    match form {
        RequestOutput::Table => {
            let preview = &request.preview;
            let (provider, addresses) = (&preview.target.provider, request.addresses());
            output::print(views::request(&preview.assembled, &request.breakdown(), provider, &addresses))?;
        }
        RequestOutput::Body => output::print_exact_json(body)?,
        RequestOutput::Http => {
            let mut text = views::http_head(request.http()).into_bytes();
            text.extend(body);
            output::print_exact_json(&text)?;
        }
        RequestOutput::Origins => {
            let origins = origins::origins(&request.preview.assembled, &request.addresses());
            let mut json = b"{\"body\":".to_vec();
            json.extend(body);
            json.extend(b",\"origins\":");
            json.extend(serde_json::to_vec(&origins)?);
            json.push(b'}');
            output::print_exact_json(&json)?;
        }
    }
    Ok(())
}

fn context(request_args: &RequestArgs, json: bool) -> Result<()> {
    let request = assemble(request_args, &load_settings_for(request_args)?)?;
    let breakdown = request.breakdown();
    if json {
        return output::print_json(&breakdown);
    }
    let target = &request.preview.target;
    let unlisted = views::unlisted_skills(&request.unlisted_skills, target, &breakdown);
    Ok(output::print(views::context(&breakdown, &target.provider) + &unlisted)?)
}

fn snapshot(request_args: &RequestArgs, schema: bool) -> Result<()> {
    let json = if schema {
        serde_json::to_string_pretty(&hardpan_context::snapshot_schema())?
    } else {
        let settings = load_settings_for(request_args)?;
        let file = match &request_args.snapshot {
            Some(path) => read_snapshot_file(path, &request_args.options()?, &settings)?,
            None => assemble(request_args, &settings)?.snapshot_file(),
        };
        serde_json::to_string_pretty(&file)?
    };
    Ok(output::print_json_line(json)?)
}

fn prompt(request_args: &RequestArgs, file: Option<&str>) -> Result<()> {
    let settings = load_settings_for(request_args)?;
    let texts = &settings.texts;
    let text = match file {
        None => {
            let RequestPreview { assembled, snapshot, target, render_cache, .. } =
                &assemble(request_args, &settings)?.preview;
            let input = LayoutInput { snapshot, target, texts, render_cache };
            let segments = hardpan_context::system_prompt_segments(&input, assembled.layout.layout());
            segments.iter().map(|segment| segment.text.as_str()).collect()
        }
        Some("system.md") => texts.system.to_string(),
        Some("agent.md") => texts.agent.to_string(),
        Some("commit_message.md") => texts.commit_message.to_string(),
        Some("compaction.md") => texts.compaction.to_string(),
        Some("reminder.md") => texts.reminder.to_string(),
        Some("system_extra.md") => texts.extra.as_ref().map(ToString::to_string).unwrap_or_default(),
        Some(PHRASES_FILE) => PHRASES.to_owned(),
        Some(name) => {
            let known = PROMPT_FILES.map(|(name, _)| name).join(", ");
            bail!("there is no prompt file {name}; choose one of {known}, system_extra.md");
        }
    };
    Ok(output::print(text.trim_end().to_owned() + "\n")?)
}

fn providers(json: bool) -> Result<()> {
    let settings = load_settings_for(&RequestArgs::default())?;
    let mut rows = Vec::new();
    for provider in settings.catalogue.providers() {
        let base_url = mask_url(&settings.base_url(&provider.id, &provider.profile).url);
        let key = if provider.profile.key_env.is_empty() {
            "none needed"
        } else if settings.key(&provider.id, &provider.profile)?.is_some() {
            "set"
        } else {
            "not set"
        };
        rows.push(views::ProviderRow {
            id: &provider.id,
            base_url,
            key_env: provider.profile.key_env.join(" or "),
            key,
        });
    }
    if json {
        return output::print_json(&rows);
    }
    Ok(output::print(views::providers(&rows))?)
}

fn forget_refusals() -> Result<()> {
    LearnedState::load(&UserFolders::from_env()).forget_refusals();
    note!("forgotten: the next request to each server is sent whole again");
    Ok(())
}

/// Shows a sample request for this folder: what `hardpan` does with neither prompt nor terminal.
pub fn welcome(folder: Option<&Path>) -> Result<()> {
    let mut request_args = RequestArgs { prompt: Some(SAMPLE_PROMPT.to_owned()), ..RequestArgs::default() };
    request_args.target_args.dir = folder.map(Path::to_owned);
    let folder = working_folder(folder)?;
    request_args
        .files
        .extend(["README.md"].map(Into::into).into_iter().filter(|name| folder.join(name).is_file()));
    let request = assemble(&request_args, &load_settings_for(&request_args)?)?;
    let (breakdown, provider) = (request.breakdown(), &request.preview.target.provider);
    let lines = [
        format!("If you asked about this folder: \"{SAMPLE_PROMPT}\"\nHardpan would send this request:\n\n"),
        views::request(&request.preview.assembled, &breakdown, provider, &request.addresses()),
        "\nThis is what it contains:\n\n".to_owned(),
        views::context(&breakdown, provider),
        "\nTry next:\n".to_owned(),
        "  hardpan request \"your question\" FILES…   show the request for your own question (--json: its exact body)\n".to_owned(),
        "  hardpan context FILES…                   show what fills the context window\n".to_owned(),
        "  hardpan -p \"your question\"               get an answer\n".to_owned(),
        "  hardpan                                  start a conversation, in a terminal\n".to_owned(),
        "  hardpan --help                           list everything else\n".to_owned(),
    ];
    Ok(output::print(lines.concat())?)
}
